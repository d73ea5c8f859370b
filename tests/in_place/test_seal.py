"""What follows a swap: what becomes of the file that was replaced, and of late lines."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import names, units
from sessrotate.archive import place
from sessrotate.in_place import second_names, waiting
from sessrotate.system import locks
from support import command_line, homes
from support.abilities import needs_leases
from support.command_line import ID, append, assert_one_sentence, boundary, row
from support.homes import Home, snapshot

if TYPE_CHECKING:
    pass

KIB: Final = 1024

DATA: Final = command_line.session(boundaries=3, padding=40 * KIB) + boundary(90) + row(91)
"""Four segments of 120 KiB, and a tail of one row."""

LARGEST: Final = max(map(len, command_line.segments_of(DATA)))

NAMES: Final = [names.sealed_file(ID, number) for number in range(4)]


@pytest.fixture
def unsealed(home: Home) -> Home:
    """A session whose rotation ended with the swap."""
    homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
    return home


def test_a_pack_that_somebody_linked_stays_what_it_is(unsealed: Home) -> None:
    backup = unsealed.config.parent / "backup"
    backup.hardlink_to(unsealed.pack)
    unsealed.rotate()
    assert backup.read_bytes() == DATA
    assert unsealed.stitched() == DATA
    assert not unsealed.pack.exists()
    assert unsealed.segment(0).stat().st_nlink == 1


def test_an_unfinished_rotation_is_no_alarm_in_a_list_which_counts_its_history(
    unsealed: Home,
) -> None:
    ended = command_line.called("list")
    assert (ended.code, ended.err) == (0, "")
    (entry,) = command_line.called("list", "--json").document()
    assert entry["archived_bytes"] == len(DATA) - len(command_line.segments_of(DATA)[-1])
    assert entry["archive_missing"] is False
    assert unsealed.stitched() == DATA


EDITED: Final = DATA[:-3] + b"!" + DATA[-2:]
"""As long as before, so that nothing but its time tells that it is another file."""


@needs_leases
@pytest.mark.parametrize(
    ("mode", "data", "late"),
    [
        pytest.param("ab", row(95), row(95), id="a line more"),
        pytest.param("r+b", EDITED, EDITED.splitlines(keepends=True)[-1], id="an edit in its tail"),
    ],
)
def test_what_a_writer_of_the_pack_writes_while_it_is_waited_for_is_a_late_line(
    unsealed: Home, monkeypatch: pytest.MonkeyPatch, mode: str, data: bytes, late: bytes
) -> None:
    """A writer that has the old file open, writes, and closes: only then is the lease to be had."""
    real, writer = locks.read_lease, unsealed.pack.open(mode)

    def reading(fd: int) -> locks.Answer:
        answer = real(fd)
        if answer == "busy":
            writer.write(data)
            writer.close()
        return answer

    monkeypatch.setattr(locks, "read_lease", reading)
    ended = command_line.called("rotate", ID, "--wait", "5")
    assert writer.closed
    assert (ended.code, unsealed.pack.exists()) == (0, False)
    assert unsealed.stitched() == DATA + late


@needs_leases
def test_a_replaced_file_that_somebody_has_open_for_writing_waits_however_old_it_is(
    unsealed: Home,
) -> None:
    unsealed.age()
    with unsealed.pack.open("ab") as writer:
        unsealed.rotate(wait=0)
        assert not unsealed.is_busy()
        unsealed.age()
        unsealed.rotate(wait=0)
        (waits,) = waiting.packs(unsealed.where)
        assert os.path.samestat(os.fstat(writer.fileno()), waits.path.stat())
        writer.write(row(95))
        writer.flush()
        assert unsealed.stitched() == DATA + row(95)
    unsealed.rotate()
    assert unsealed.live.read_bytes().endswith(row(95))
    assert unsealed.stitched() == DATA + row(95)
    assert not waiting.packs(unsealed.where)


def test_a_byte_that_changed_in_the_pack_is_kept_with_it(unsealed: Home) -> None:
    with unsealed.pack.open("r+b") as file:
        file.seek(LARGEST * 2)
        file.write(b"X")
    edited = unsealed.pack.read_bytes()
    ended = command_line.called("rotate", ID)
    assert ended.code == 74
    (kept,) = (unsealed.config / "sessrotate" / "aside").iterdir()
    assert f"A program changed the session while it was replaced: {kept}" in ended.err
    assert kept.read_bytes() == edited
    assert str(kept) in command_line.called("doctor").out
    assert command_line.called("rotate", ID).code == 0
    assert not unsealed.is_busy()
    assert unsealed.stitched() == DATA


@pytest.mark.parametrize("damage", [None, b"other"])
def test_a_segment_that_is_lost_before_the_archive_counts_is_copied_again(
    unsealed: Home, damage: bytes | None
) -> None:
    unsealed.segment(1).unlink()
    if damage is not None:
        unsealed.segment(1).write_bytes(damage)
    unsealed.rotate()
    assert unsealed.stitched() == DATA
    assert not unsealed.problems()


def test_a_segment_that_is_lost_with_its_part_of_the_pack_leaves_that(unsealed: Home) -> None:
    unsealed.segment(1).unlink()
    with unsealed.pack.open("r+b") as file:
        file.seek(LARGEST + LARGEST // 2)
        file.write(b"X")
    ended = command_line.called("rotate", ID)
    assert ended.code == 74
    assert "egment 1" in ended.err
    assert len(unsealed.pack.read_bytes()) == len(DATA)


@pytest.mark.parametrize("now", [b"", b"{}\n", row(1)])
def test_a_pack_stays_if_the_live_file_is_not_the_new_one_any_more(home: Home, now: bytes) -> None:
    """Another program empties it, or saves it anew, when the archive counts already."""
    homes.crashed(home.rotate, "sessrotate.in_place.seal._close")
    home.live.write_bytes(now)
    ended = command_line.called("rotate", ID)
    assert ended.code == 74
    (kept,) = (home.config / "sessrotate" / "aside").iterdir()
    assert str(kept) in ended.err
    assert kept.read_bytes() == DATA
    assert home.live.read_bytes() == now


def test_a_live_file_that_is_saved_without_its_header_is_no_trim(unsealed: Home) -> None:
    """It is the end of the old file then, as where its client had trimmed that."""
    own = unsealed.live.read_bytes().splitlines(keepends=True)
    other = unsealed.live.with_name("other")
    other.write_bytes(b"".join(line for line in own if line in DATA))
    assert DATA.endswith(other.read_bytes())
    other.rename(unsealed.live)
    for command in (["rotate", ID], ["run"], ["rotate", ID]):
        assert command_line.called(*command).code in {74, 77, 0}  # `run` says it in its plan
        (kept,) = (unsealed.config / "sessrotate" / "aside").iterdir()
        assert kept.read_bytes() == DATA
        assert len(unsealed.archived() & {*NAMES}) == len(NAMES)


def test_a_pack_of_other_bytes_adds_nothing_to_the_live_file(unsealed: Home) -> None:
    unsealed.pack.write_bytes(b"other\n" * len(DATA))
    before = snapshot(unsealed.config)
    ended = command_line.called("split", "--in-place", ID)
    assert_one_sentence(ended, 74)
    assert "is not the file that was replaced" in ended.err
    assert snapshot(unsealed.config) == before


def test_a_session_begun_anew_after_a_crash_is_left_alone(unsealed: Home) -> None:
    anew = command_line.session(boundaries=1)
    unsealed.live.write_bytes(anew)
    for code in (74, 77):
        ended = command_line.called("split", "--in-place", ID)
        assert_one_sentence(ended, code)
        assert unsealed.live.read_bytes() == anew
        (kept,) = (unsealed.config / "sessrotate" / "aside").iterdir()
        assert kept.read_bytes() == DATA
        assert len(unsealed.archived() & {*NAMES}) == len(NAMES)


def test_a_live_file_that_goes_before_it_is_sealed_is_not_the_end(unsealed: Home) -> None:
    unsealed.live.unlink()
    out = unsealed.config / "out"
    assert command_line.called("stitch", unsealed.live, "-o", out).code == 0
    assert out.read_bytes() == DATA
    ended = command_line.called("split", "--in-place", unsealed.live)
    assert ended.code == 0
    assert unsealed.stitched() == DATA
    assert "pack" not in unsealed.archived()


def test_late_lines_of_a_pack_that_somebody_linked_go_nowhere(unsealed: Home) -> None:
    backup = unsealed.config.parent / "backup"
    backup.hardlink_to(unsealed.pack)
    append(unsealed.pack, row(96))
    live, old = unsealed.live.read_bytes(), backup.read_bytes()
    ended = command_line.called("rotate", ID)
    assert (ended.code, "has another name (a hard link)" in ended.err) == (74, True)
    assert (unsealed.live.read_bytes(), backup.read_bytes()) == (live, old)
    backup.unlink()
    assert command_line.called("rotate", ID).code == 0
    assert unsealed.stitched() == DATA + row(96)


def test_the_name_that_the_hook_gave_goes_from_the_replaced_file_to_the_new_one(home: Home) -> None:
    second_names.give(home.where, home.live)
    homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
    folder = home.live.with_suffix("") / "before-cleanup"
    assert any(path.samefile(home.pack) for path in folder.iterdir())
    home.rotate()
    assert [path.samefile(home.live) for path in folder.iterdir()] == [True]
    assert not home.pack.exists()


@pytest.mark.parametrize("now", [b"", DATA[:5000], b"{}\n", row(1)])
def test_no_late_line_goes_to_a_file_that_another_program_put_there(
    unsealed: Home, now: bytes
) -> None:
    append(unsealed.pack, row(96))
    unsealed.where.draft.unlink(missing_ok=True)
    unsealed.live.unlink()
    unsealed.live.write_bytes(now)
    old = unsealed.pack.read_bytes()
    assert command_line.called("rotate", ID).code == 74
    assert unsealed.live.read_bytes() == now
    kept = [path for path in (unsealed.pack, *place.aside()) if path.is_file()]
    assert [path.read_bytes() for path in kept] == [old]


# ── what follows a restoration ───────────────────────────────────────────────────────────────


def test_a_restoration_whose_live_file_lacks_a_byte_keeps_its_archive(home: Home) -> None:
    home.rotate()
    homes.crashed(home.restore, "sessrotate.in_place.seal.finish")
    with home.live.open("r+b") as file:
        file.seek(2 * LARGEST)
        file.write(b"X")
    before = {name: (home.archive / name).read_bytes() for name in NAMES}
    ended = command_line.called("restore", ID)
    assert (ended.code, "does not match the history that was put there" in ended.err) == (74, True)
    (aside,) = place.aside()
    assert {name: (aside / name).read_bytes() for name in NAMES} == before


def test_since_when_a_session_is_whole_is_noted_until_it_is_rotated_by_name(home: Home) -> None:
    home.rotate()
    assert home.record()["restored"] is None
    home.restore()
    since = units.seconds(home.record()["restored"])
    assert since is not None
    assert abs(since - time.time()) < 3600
    home.append(row(96))
    home.rotate()
    assert home.record()["restored"] is None
    assert home.stitched() == DATA + row(96)
