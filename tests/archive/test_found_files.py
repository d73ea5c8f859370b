"""What is found of a session: which files are open, and what each tells of an interrupted swap."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from sessrotate.archive import found_files, record, state
from sessrotate.archive.record import UNKNOWN, Mark, PutAway, Record
from sessrotate.errors import DamagedError
from support import command_line, homes
from support.command_line import ID, append, boundary, row
from support.homes import Home
from support.trimming import keep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.archive.found_files import FoundFiles
    from sessrotate.archive.record import Drafted, Match

DATA: Final = command_line.session(boundaries=2)
MORE: Final = row(90) + boundary(91) + row(92)
BEFORE: Final = "sessrotate.fs.take_place"
BEHIND: Final = "sessrotate.in_place.seal.finish"


@contextmanager
def looked(home: Home) -> Iterator[FoundFiles]:
    with state.opened(home.where) as found:
        yield found


# ── what an interrupted swap left ────────────────────────────────────────────────────────────


def as_it_is(_home: Home) -> None:
    pass


def older_copy(home: Home) -> None:
    home.live.unlink()
    shutil.copy(home.pack, home.live)


def foreign(home: Home) -> None:
    home.live.unlink()
    home.live.write_bytes(b"somebody's\n" + DATA)


def gone(home: Home) -> None:
    home.live.unlink()


def with_another_record(home: Home) -> None:
    """Have the record tell of another new file: the header counts what the rotation brought."""
    told = record.read(home.archive)
    assert told.intent is not None
    swap = replace(told.intent.swap, new=Mark.of(b"another"))
    intent = replace(told.intent, swap=swap)
    (home.archive / "record.json").write_bytes(record.dump(replace(told, intent=intent)))


def with_a_changed_tail(home: Home) -> None:
    with_another_record(home)
    data = home.live.read_bytes()
    home.live.write_bytes(data.replace(b"compactMetadata", b"compactMetaData", 1))


@pytest.mark.parametrize(
    ("point", "then", "match"),
    [
        (BEFORE, as_it_is, "pack"),
        (BEFORE, older_copy, "old"),
        (BEFORE, foreign, "other"),
        (BEFORE, gone, "pack"),
        (BEHIND, as_it_is, "new"),
        (BEHIND, older_copy, "old"),
        (BEHIND, foreign, "other"),
        (BEHIND, gone, "pack"),
        (BEHIND, with_another_record, "new"),
        (BEHIND, with_a_changed_tail, "other"),
    ],
)
def test_what_the_live_file_is_its_bytes_tell(
    home: Home, point: str, then: Callable[[Home], None], match: Match
) -> None:
    homes.crashed(home.rotate, point)
    then(home)
    with looked(home) as found:
        assert found.intent is not None
        assert found_files.match(found, found.intent) == match
        assert found.is_gone == (then is gone)
        assert (found.live is not None) == (found.pack is not None or then is not gone)


def test_a_new_file_that_its_client_trimmed_is_told_by_what_the_client_kept(home: Home) -> None:
    home.rotate()
    homes.crashed(home.restore, BEHIND)
    home.append(MORE)
    keep(home.live)
    with looked(home) as found:
        assert found.intent is not None
        assert found_files.match(found, found.intent) == "kept"


def test_a_live_file_that_is_gone_is_absent_without_a_whole_pack(home: Home) -> None:
    home.append(MORE)
    homes.crashed(home.rotate, BEHIND)
    home.live.unlink()
    with looked(home) as found:
        assert found.intent is not None
        cut = found.intent.swap.cut
    os.truncate(home.pack, cut)
    with looked(home) as found:
        assert found.intent is not None
        assert (found.live, found_files.match(found, found.intent)) == (None, "absent")


@pytest.mark.parametrize(
    ("made", "drafted"),
    [
        (lambda _home: None, "absent"),
        (lambda home: home.where.draft.hardlink_to(home.pack), "old"),
        (lambda home: home.where.draft.hardlink_to(home.live), "live"),
        (lambda home: home.where.draft.write_bytes(b"x"), "other"),
    ],
)
def test_what_has_the_drafts_name_is_told_without_opening_it(
    home: Home, made: Callable[[Home], object], drafted: Drafted
) -> None:
    homes.crashed(home.rotate, BEHIND)
    home.where.draft.unlink(missing_ok=True)
    made(home)
    with looked(home) as found:
        assert found_files.drafted(found) == drafted
        if drafted == "other":
            home.where.draft.unlink()  # it went away while it was looked at
            assert found_files.drafted(found) == "absent"


# ── a pack that may be anybody's ─────────────────────────────────────────────────────────────


def test_a_pack_with_a_second_name_of_somebodys_gives_no_line(home: Home) -> None:
    homes.crashed(home.rotate, BEHIND)
    append(home.pack, row(99))
    home.where.draft.unlink(missing_ok=True)
    with looked(home) as found:
        assert found.pack is not None
        assert not found_files.has_other_name(home.where, found.pack)
    home.where.draft.hardlink_to(home.pack)  # ours: a kill in the middle of a swap leaves it
    with looked(home) as found:
        assert found.pack is not None
        assert not found_files.has_other_name(home.where, found.pack)
    home.where.draft.unlink()
    (home.config / "backup").hardlink_to(home.pack)
    with state.opened(home.where) as found:
        assert found.pack is not None
        assert found_files.has_other_name(home.where, found.pack)
        assert found.problem == found_files.other_name(home.where)
        told = found_files.problem_of_late(found, found.residue, is_pack_known=True)
        assert told == found_files.other_name(home.where)
        told = found_files.problem_of_late(found, found.residue, is_pack_known=False)
        assert "is not the file that was replaced" in str(told)
        nothing = replace(found.residue, end=found.residue.start)
        assert found_files.problem_of_late(found, nothing, is_pack_known=True) is None
    home.live.unlink()
    with pytest.raises(DamagedError, match="has another name"), looked(home):
        pass


# ── the manifest, and a session that is whole again ──────────────────────────────────────────


def test_a_damaged_manifest_is_none_where_the_header_can_replace_it(home: Home) -> None:
    home.rotate()
    (home.archive / "manifest.json").write_bytes(b"{")
    with looked(home) as found:
        assert (found.manifest, found.restored) == (None, None)
    home.live.write_bytes(DATA)
    with pytest.raises(DamagedError, match=r"manifest\.json"), looked(home):
        pass


def test_a_manifest_of_another_session_is_not_ours(home: Home) -> None:
    home.rotate()
    path = home.archive / "manifest.json"
    path.write_bytes(path.read_bytes().replace(ID.encode(), ID.replace("5", "6").encode()))
    with pytest.raises(DamagedError, match="does not belong to"), looked(home):
        pass


def test_what_is_left_of_the_archive_of_a_session_that_is_whole_is_its_files(home: Home) -> None:
    home.rotate()
    home.restore()
    trash = home.archive / "trash"
    trash.mkdir()
    (trash / home.segment(9).name).write_bytes(b"x")
    home.segment(0).unlink()
    with looked(home) as found:
        kept = found.restored
        assert kept is not None
        assert (found.manifest, kept.at != "") == (None, True)
        assert kept.files == (home.segment(1), home.archive / "manifest.json")
        assert kept.others == (home.segment(9).name,)
        assert kept.has_segments
        assert kept.bytes == sum(path.stat().st_size for path in kept.files)
        assert kept.allocated > 0
        home.segment(1).unlink()
        assert not replace(kept, files=kept.files[1:]).has_segments
        assert kept.bytes == (home.archive / "manifest.json").stat().st_size


@pytest.mark.parametrize("damage", [None, b"{"])
def test_without_its_record_a_live_file_that_has_all_is_whole_again(
    home: Home, damage: bytes | None
) -> None:
    home.rotate()
    home.live.write_bytes(DATA)
    home.lose_record(damage)
    with looked(home) as found:
        assert found.restored is not None
        assert (found.restored.at, found.manifest) == ("", None)
        assert found.record.restored == (None if damage is None else UNKNOWN)
    home.live.write_bytes(DATA[:-1].replace(b"row 0", b"Row 0", 1))
    with looked(home) as found:
        assert (found.restored is None) == (damage is None)


def test_a_record_that_is_no_file_is_named(home: Home) -> None:
    home.rotate()
    (home.archive / "record.json").mkdir()
    with pytest.raises(DamagedError, match="is not a file: move it away"), looked(home):
        pass


def test_a_session_that_was_put_away_has_its_live_file_in_the_archive(home: Home) -> None:
    home.rotate()
    away = home.archive / "archived"
    away.mkdir()
    home.live.rename(away / home.live.name)
    with looked(home) as found:  # its record is lost
        assert (found.live is not None, found.is_away) == (True, True)
        assert found.header is not None
        assert found.own > 0
    told = Record(ID, away=PutAway("archived", ""))
    (home.archive / "record.json").write_bytes(record.dump(told))
    with looked(home) as found:
        assert (found.live is not None, found.record) == (True, told)


def test_what_a_client_kept_is_found_but_not_under_a_name_that_the_pack_still_has(
    home: Home,
) -> None:
    homes.crashed(home.rotate, BEHIND)
    home.append(MORE)
    keep(home.live)
    with looked(home) as found:
        (kept,) = found.kept
        assert found.successor is not None
        assert found.successor is not found.live
        assert found.successor.path == kept
    kept.unlink()
    kept.hardlink_to(home.pack)
    with looked(home) as found:
        assert found.kept == ()
