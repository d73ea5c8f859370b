"""What a crash left is undone before the swap, finished after it, and otherwise not touched."""

from __future__ import annotations

import shutil
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import state
from sessrotate.errors import DamagedError, RefusedError
from sessrotate.in_place import recover
from sessrotate.in_place.recover import Deed
from support import command_line, homes
from support.command_line import ID, boundary, called, row, write
from support.crash.changes import Faults, Killed
from support.homes import Home, snapshot
from support.newcomers import saved

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from pathlib import Path

DATA: Final = command_line.session(boundaries=2)
MORE: Final = boundary(80) + row(81)


@pytest.fixture
def home(home: Home) -> Home:
    home.rotate()
    home.append(MORE)
    return home


def dying(
    folder: Path, patch: pytest.MonkeyPatch, *, back: bool
) -> Iterator[tuple[int, Home, os.stat_result]]:
    """Yield sessions whose rotation or restoration died at each of its operations.

    With the number of the operation, and what the live file was before.
    """
    for at in count(1):
        home = homes.home(folder / str(at), patch, DATA)
        home.rotate()
        home.append(MORE)
        old, crash = home.live.stat(), Faults(at)
        with crash.installed(), suppress(Killed):
            _ = home.restore() if back else home.rotate()
        if not crash.failed:
            return
        yield at, home, old


def deed(home: Home) -> Deed:
    with state.opened(home.where) as found:
        return recover.plan(found).deed


@pytest.mark.parametrize("back", [False, True], ids=["rotation", "restoration"])
def test_there_is_one_moment_before_which_all_is_undone_and_after_it_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: bool
) -> None:
    deeds: list[Deed] = []
    for at, home, old in dying(tmp_path, monkeypatch, back=back):
        was_swapped = home.live.stat().st_ino != old.st_ino
        told = deed(home)
        deeds.append(told)
        assert told in ({"finish", "nothing"} if was_swapped else {"undo", "nothing"}), at
        before = snapshot(home.config)
        assert deed(home) == told
        assert snapshot(home.config) == before
        recover.recover(home.where, 0.2)
        assert deed(home) == "nothing"
        assert not home.is_busy()
        assert "live.partial" not in home.archived()
        assert home.stitched() == DATA + MORE
        assert (home.live.stat().st_ino != old.st_ino) == was_swapped
    assert deeds[0] == "nothing"
    assert {"undo", "finish"} <= set(deeds)
    assert len(deeds) > 25


def test_a_pack_that_may_hold_what_the_live_file_does_not_is_kept(home: Home) -> None:
    write(home.pack, home.live.read_bytes() + row(90))
    before = snapshot(home.config)
    with pytest.raises(
        DamagedError,
        match=r"may hold lines the session lacks.* append .* then move the file away",
    ):
        home.rotate()
    assert snapshot(home.config) == before


@pytest.mark.parametrize("more", [b"", row(90)])
def test_a_backup_made_two_files_of_the_pack_and_the_live_file(home: Home, more: bytes) -> None:
    write(home.pack, home.live.read_bytes())
    home.append(more)
    home.rotate()
    assert not home.pack.exists()
    assert home.stitched() == DATA + MORE + more


def test_unfinished_files_alone_are_removed(home: Home) -> None:
    for name in ("live.partial", "manifest.json.partial", "x.3.jsonl.partial"):
        write(home.archive / name, b"half")
    assert home.rotate().recovered.deed == "undo"
    assert not [name for name in home.archived() if name.endswith(".partial")]


def test_what_is_not_ours_stays_in_the_archive(home: Home) -> None:
    write(home.archive / "notes.txt", b"mine")
    home.rotate()
    home.restore()
    assert (home.archive / "notes.txt").read_bytes() == b"mine"


def test_an_empty_archive_that_a_crash_left_goes(home: Home) -> None:
    home.restore()
    shutil.rmtree(home.archive)
    home.archive.mkdir()
    assert home.restore() is None
    assert not home.archive.exists()


def test_once_the_archive_counts_a_rewritten_live_file_does_not_keep_the_rest_from_it(
    home: Home,
) -> None:
    homes.crashed(home.rotate, "sessrotate.in_place.seal._close")
    lines = home.live.read_bytes().splitlines(keepends=True)
    home.live.write_bytes(b"".join(lines[1:]))
    assert deed(home) == "finish"
    with pytest.raises(DamagedError, match="holds another version"):
        home.rotate()
    with pytest.raises(RefusedError, match="no longer begins with its header"):
        home.rotate()
    assert not home.is_busy()
    home.live.write_bytes(b"".join(lines))
    assert home.stitched() == DATA + MORE


LOST: Final = pytest.mark.parametrize("left", [None, b"", b"{"], ids=["lost", "empty", "damaged"])


def pack_is_named(home: Home, *commands: str) -> None:
    """Check that commands leave the replaced file to a person."""
    for command in commands:
        ended = called(command, ID)
        assert ended.code == 74, ended
        assert f"No record explains {home.pack}, and the session has all" in ended.err
    home.pack.rename(home.config / "pack")


@LOST
@pytest.mark.parametrize("times", [1, 2])
def test_where_its_record_is_lost_what_counts_is_listed(
    home: Home, times: int, left: bytes | None
) -> None:
    for number in range(1, times):
        home.rotate()
        home.append(boundary(100 + number) + row(200 + number))
    before = home.stitched()
    homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
    home.append(row(300))
    home.lose_record(left)
    assert called("stitch", ID).out.encode() == before + row(300)
    assert str(home.pack) in called("doctor").out
    assert "not here" not in called("list").err
    pack_is_named(home, "rotate", "restore", "rotate")
    assert home.stitched() == before + row(300)
    home.rotate()
    assert home.stitched() == before + row(300)
    assert not home.is_busy()
    assert called("doctor").code == 0


def test_where_its_record_is_lost_tombstones_and_pins_stay_as_they_were(home: Home) -> None:
    home.append(boundary(100) + row(200))
    home.rotate()
    assert called("pin", ID, "2", "--note", "the design").code == 0
    assert called("prune", ID, "--keep-last", "1", "--yes").code == 0
    home.append(boundary(101) + row(201))
    homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
    home.lose_record()
    pack_is_named(home, "rotate")
    with state.opened(home.where) as found:
        assert found.manifest is not None
        pins = [each.pin for each in found.manifest.segments]
        assert pins == [None, None, "the design", None, None]
        assert [bool(each.pruned) for each in found.manifest.segments] == [True] * 2 + [False] * 3
    home.rotate()
    assert called("doctor").code == 0
    assert called("restore", ID).code == 0
    assert home.stitched() == DATA + MORE + boundary(100) + row(200) + boundary(101) + row(201)


def test_where_its_record_is_lost_an_archive_of_other_segments_is_not_gone_on_from(
    home: Home,
) -> None:
    home.rotate()
    home.append(boundary(100) + row(200))
    homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
    home.lose_record()
    path = home.archive / "manifest.json"
    with state.opened(home.where) as found:
        assert found.manifest is not None
        digest = found.manifest.segments[-1].digest
    data = path.read_bytes()
    assert data.count(digest.encode()) == 1
    other = digest[:-1] + ("0" if digest[-1] != "0" else "1")
    path.write_bytes(data.replace(digest.encode(), other.encode()))
    ended = called("rotate", ID)
    assert ended.code == 74
    assert "it belongs to an archive other than" in ended.err
    path.write_bytes(data)
    pack_is_named(home, "rotate")
    assert home.stitched().endswith(row(200))


@LOST
@pytest.mark.parametrize("back", [False, True], ids=["rotation", "restoration"])
def test_wherever_it_dies_and_loses_its_record_all_is_there_or_what_has_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: bool, left: bytes | None
) -> None:
    at = 0
    for at, home, _ in dying(tmp_path, monkeypatch, back=back):
        home.lose_record(left)
        ended = called("restore" if back else "rotate", ID)
        if ended.code == 74:
            assert str(home.pack) in ended.err, at
            home.pack.rename(home.config / "pack")
            home.rotate()
        assert home.stitched() == DATA + MORE, at
        assert "pack" not in home.archived(), at
    assert at > 10


@pytest.mark.parametrize("more", [b"", row(150)], ids=["has it", "lacks a line of it"])
def test_an_older_copy_does_not_count_less_whatever_it_has(home: Home, more: bytes) -> None:
    """The newer one may come back, and goes on from what was archived since."""
    home.rotate()
    older = home.live.read_bytes()
    home.append(more + boundary(100) + row(200))
    home.rotate()
    newer, whole, segments = home.live.read_bytes(), home.stitched(), home.segments()
    home.live.write_bytes(older)
    ended = called("rotate", ID)
    assert ended.code == 77
    assert "is an older copy" in ended.err
    assert home.segments() == segments
    home.live.write_bytes(newer)
    assert home.stitched() == whole


def test_an_older_copy_that_is_put_back_after_the_exchange_takes_nothing_from_it(
    home: Home,
) -> None:
    home.rotate()
    home.append(boundary(100) + row(200))
    older, whole = home.live.read_bytes(), home.stitched()
    homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
    newer, segments = home.live.read_bytes(), home.segments()
    saved(home.live, older)
    ended = called("rotate", ID)
    assert ended.code == 74
    assert "holds another version" in ended.err
    assert home.segments() == segments
    home.live.write_bytes(newer)
    assert home.stitched() == whole


@pytest.mark.parametrize("at", ["swap.swap", "seal.finish"])
def test_a_live_file_that_lost_its_header_is_not_read_as_all_there_is(home: Home, at: str) -> None:
    home.rotate()
    home.append(boundary(100) + row(200))
    homes.crashed(home.rotate, f"sessrotate.in_place.{at}")
    lines = home.live.read_bytes().splitlines(keepends=True)
    home.live.write_bytes(b"".join(lines[1:]))
    assert called("stitch", ID).code == 74
    assert called("rotate", ID).code == 74
    assert called("stitch", ID).code == 74


def test_copies_stay_where_the_live_file_was_overwritten_after_they_were_made(home: Home) -> None:
    homes.crashed(home.rotate, "sessrotate.in_place.swap.swap")
    home.live.write_bytes(row(1))
    before = snapshot(home.config)
    ended = called("rotate", ID)
    assert ended.code == 74
    assert "after its history was copied" in ended.err
    assert snapshot(home.config) == before


@LOST
def test_what_died_before_its_first_swap_is_no_restored_session(
    home: Home, left: bytes | None
) -> None:
    homes.crashed(home.rotate, "sessrotate.in_place.swap.swap")
    home.lose_record(left)
    called("run")
    assert called("rotate", ID).code == 0
    assert home.stitched() == DATA + MORE
    assert not home.is_busy()
    assert called("doctor").code == 0


def test_a_record_of_another_rotation_does_not_say_which_copies_go(home: Home) -> None:
    homes.crashed(home.rotate, "sessrotate.in_place.swap.swap")
    first = (home.archive / "record.json").read_bytes()
    home.rotate()
    home.append(boundary(100) + row(200))
    whole = home.stitched()
    homes.crashed(home.rotate, "sessrotate.in_place.swap.swap")
    (home.archive / "record.json").write_bytes(first)
    home.rotate()
    assert home.stitched() == whole
    assert not home.is_busy()


def test_what_died_before_it_said_so_leaves_the_archive_of_a_restored_session(home: Home) -> None:
    home.rotate()
    home.restore()
    segments = home.segments()
    assert segments
    homes.crashed(home.rotate, "sessrotate.in_place.swap.write_intent")
    assert home.pack.exists()
    assert home.stitched() == DATA + MORE
    assert called("run").code == 0
    assert not home.is_busy()
    assert home.segments() == segments
    assert home.record()["restored"] is not None
    home.rotate()
    assert home.stitched() == DATA + MORE
