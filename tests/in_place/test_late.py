"""A line that was in flight when a rotator died is there once, behind all that came since.

If rows of the conversation came since, the last of them is said again behind it: clients go on from
the row that stands last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import found_files
from sessrotate.archive.found_files import FoundFiles
from sessrotate.in_place import seal, waiting
from support import command_line, homes
from support.command_line import ID, append, boundary, called, row
from support.crash.changes import Before, Faults, Killed
from support.crash.scenes import leases_granted
from support.homes import Home, crashed
from support.race.writers import take_back
from support.trimming import keep

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.archive.record import Waiting

DATA: Final = command_line.session(boundaries=2)
MORE: Final = boundary(80) + row(81)

IN_FLIGHT: Final = row(1)
"""What a writer has for the old file, where it waits; then it opens the path again."""

NEXT: Final = row(2)
"""What it writes then: what came late goes before this, said again."""

MODE: Final = b'{"type":"mode","sessionId":"s"}\n'
"""A row of settings: a client writes the very same again and again."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return homes.home(tmp_path, monkeypatch, DATA + MORE)


def killed_when_all_came_over(home: Home) -> None:
    """Rotate until the record would say that the live file has all late lines."""
    real = vars(waiting)["_write"]

    def write(where: Place, now: Waiting) -> None:
        if now.batch is None:
            Faults(1).met()
        real(where, now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "_write", write)
        with pytest.raises(Killed):
            home.rotate()


AFTER_THE_RENAME: Final = "sessrotate.in_place.swap._Swap._drain"
APPENDING: Final = "sessrotate.fs.append"
BEHIND: Final = "sessrotate.in_place.waiting.said_again"
"""Right behind that."""


def in_flight(home: Home, line: bytes) -> None:
    """Let the line of a writer come that had waited for the replaced file."""
    append(replaced(home), line)


def replaced(home: Home) -> Path:
    """Return the replaced file: the pack, or it waits."""
    return home.pack if home.pack.exists() else waiting.packs(home.where)[-1].path


def unfinished(home: Home, *, back: bool = False) -> bytes:
    """Kill a rotation, or restoration, behind its rename; let a writer go on. Return all there is.

    Between its lines, and after the rename, another client's line comes to the new file.
    """
    if back:
        home.rotate()
    crashed(home.restore if back else home.rotate, AFTER_THE_RENAME)
    home.append(row(3))
    in_flight(home, IN_FLIGHT)
    home.append(NEXT)
    return DATA + MORE + row(3) + NEXT + IN_FLIGHT


BACK: Final = pytest.mark.parametrize("back", [False, True], ids=["rotation", "restoration"])


@BACK
def test_a_line_in_flight_when_a_rotator_is_killed_is_there_for_every_reader(
    home: Home, back: bool
) -> None:
    whole = unfinished(home, back=back)
    assert home.stitched() == whole
    histories: list[bytes] = []
    with leases_granted(), Before(lambda: histories.append(home.stitched())).installed():
        home.restore()
    half = NEXT[: len(NEXT) // 2]  # it is looked at in the middle of each write, too
    assert [*dict.fromkeys(histories)] == [whole, whole + half, whole + NEXT]
    assert len(histories) > 30
    assert home.live.read_bytes() == whole + NEXT
    assert home.is_whole


def test_the_live_file_has_all_lines_when_the_next_run_is_done(home: Home) -> None:
    whole = unfinished(home)
    home.rotate()
    assert home.live.read_bytes().endswith(MORE + row(3) + NEXT + IN_FLIGHT + NEXT)
    assert home.stitched() == whole + NEXT
    assert home.archived() == {"manifest.json", *(home.segment(n).name for n in range(3))}


@BACK
def test_rotators_may_be_killed_before_they_bring_lines_over_one_after_the_other(
    home: Home, back: bool
) -> None:
    since, late = unfinished(home, back=back).removesuffix(IN_FLIGHT), IN_FLIGHT
    for number in range(5, 9):
        crashed(home.rotate, APPENDING)
        in_flight(home, row(number * 10))
        home.append(row(number * 100 + 1))
        since, late = since + row(number * 100 + 1), late + row(number * 10)
        assert home.stitched() == since + late
    home.restore()
    assert home.live.read_bytes() == since + late + row(801)


@BACK
def test_rotators_may_be_killed_behind_that_one_after_the_other(home: Home, back: bool) -> None:
    whole, last = unfinished(home, back=back), NEXT
    crashed(home.rotate, APPENDING)
    for number in range(5, 9):
        killed_when_all_came_over(home)
        whole += last
        assert home.stitched() == whole
        in_flight(home, row(number * 10))
        last = row(number * 100 + 1)
        home.append(last)
        whole += last + row(number * 10)
        assert home.stitched() == whole
    home.restore()
    assert home.live.read_bytes() == whole + last


@pytest.mark.parametrize(
    ("since", "late", "again"),
    [
        pytest.param(b"", IN_FLIGHT, b"", id="lines that nobody wrote after are brought over too"),
        pytest.param(NEXT, MODE, b"", id="settings say no row again"),
        pytest.param(NEXT + MODE, IN_FLIGHT, NEXT, id="settings do not keep a row from it"),
    ],
)
def test_the_last_row_of_the_conversation_is_said_again_behind_a_row_that_comes_late(
    home: Home, since: bytes, late: bytes, again: bytes
) -> None:
    crashed(home.rotate, AFTER_THE_RENAME)
    home.append(since)
    in_flight(home, late)
    home.rotate()
    assert home.live.read_bytes().endswith(MORE + since + late + again)
    assert home.stitched() == DATA + MORE + since + late + again


def test_equal_lines_are_as_many_as_were_written(home: Home) -> None:
    crashed(home.rotate, AFTER_THE_RENAME)
    home.append(NEXT + MODE)
    in_flight(home, MODE + MODE)
    whole = DATA + MORE + NEXT + MODE + MODE + MODE
    assert home.stitched() == whole
    crashed(home.rotate, BEHIND)
    home.append(MODE)
    in_flight(home, row(7) + MODE)
    whole += MODE + row(7) + MODE
    assert home.stitched() == whole
    home.rotate()
    assert home.stitched() == whole + NEXT


def test_late_lines_that_begin_as_much_else_does_are_there_once(home: Home) -> None:
    home.append(MODE * 2000)
    crashed(home.rotate, AFTER_THE_RENAME)
    home.append(row(3))
    in_flight(home, MODE * 200 + IN_FLIGHT)
    crashed(home.rotate, BEHIND)
    home.rotate()
    whole = DATA + MORE + MODE * 2000 + row(3) + MODE * 200 + IN_FLIGHT + row(3)
    assert home.stitched() == whole


def test_whoever_reads_while_late_lines_come_over_looks_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is done between a look at the intent and one at the other files."""
    whole = unfinished(home)
    real, looks = found_files.look, []

    def look(*args: object) -> FoundFiles:
        looks.append(args)
        if len(looks) == 1:
            monkeypatch.setattr(found_files, "look", real)
            home.rotate()
            monkeypatch.setattr(found_files, "look", look)
        return real(*args)  # type: ignore[arg-type]  # whatever it is given

    monkeypatch.setattr(found_files, "look", look)
    assert home.stitched() == whole + NEXT
    assert len(looks) > 1


def test_late_lines_wait_until_the_live_file_ends_with_a_whole_line(home: Home) -> None:
    torn = b'{"torn":1,'
    crashed(home.rotate, AFTER_THE_RENAME)
    in_flight(home, IN_FLIGHT)
    home.append(torn)
    home.rotate()
    assert home.live.read_bytes().endswith(torn)
    assert home.stitched() == DATA + MORE + torn + IN_FLIGHT
    assert f"`echo >> {home.live}`" in called("doctor").out
    home.append(NEXT[1:])
    home.rotate()
    assert home.stitched() == DATA + MORE + torn + NEXT[1:] + IN_FLIGHT + torn + NEXT[1:]


@pytest.mark.parametrize(
    ("left", "told"),
    [
        pytest.param(IN_FLIGHT[:20], IN_FLIGHT, id="of a late line"),
        pytest.param(IN_FLIGHT + NEXT[:20], IN_FLIGHT + NEXT[:20], id="of a row said again"),
    ],
)
def test_half_a_line_that_a_full_disk_left_is_made_whole(
    home: Home, left: bytes, told: bytes
) -> None:
    crashed(home.rotate, AFTER_THE_RENAME)
    home.append(NEXT)
    in_flight(home, IN_FLIGHT)
    crashed(home.rotate, APPENDING)
    home.append(left)
    assert home.stitched() == DATA + MORE + NEXT + told
    home.rotate()
    assert home.stitched() == DATA + MORE + NEXT + IN_FLIGHT + NEXT
    home.append(row(7))
    assert home.stitched() == DATA + MORE + NEXT + IN_FLIGHT + NEXT + row(7)


def test_a_row_is_said_again_by_the_next_run_where_this_one_dies_before(home: Home) -> None:
    whole = unfinished(home)
    crashed(home.rotate, BEHIND)
    assert home.stitched() == whole
    in_flight(home, row(8))
    home.rotate()
    assert home.stitched() == whole + NEXT + row(8) + NEXT


def test_where_the_live_file_is_gone_the_replaced_one_comes_back_with_its_late_lines(
    home: Home,
) -> None:
    unfinished(home)
    home.live.unlink()
    assert called("restore", ID).code == 0
    assert home.live.read_bytes() == home.stitched() == DATA + MORE + IN_FLIGHT


@pytest.mark.parametrize("at", [APPENDING, BEHIND])
def test_a_backup_made_two_files_of_the_names_of_one(home: Home, at: str) -> None:
    whole = unfinished(home)
    crashed(home.rotate, at)
    for path in (home.live, replaced(home)):
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
    assert home.stitched() == whole
    home.rotate()
    assert home.stitched() == whole + NEXT


# ── a client that takes lines back ───────────────────────────────────────────────────────────


def test_late_lines_are_there_where_a_client_took_back_what_led_up_to_them(home: Home) -> None:
    crashed(home.rotate, AFTER_THE_RENAME)
    in_flight(home, IN_FLIGHT)
    assert take_back(home.live, row(81).partition(b',"session')[0])
    home.append(row(5))
    whole = DATA + boundary(80) + row(5) + IN_FLIGHT
    assert home.stitched() == whole
    home.rotate()
    assert home.stitched() == whole + row(5)


# ── without leases ───────────────────────────────────────────────────────────────────────────


def test_without_leases_late_lines_come_over_at_once(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes.without_leases(monkeypatch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seal, "finish", lambda *_: None)
        home.rotate()
    home.append(NEXT)
    in_flight(home, IN_FLIGHT + row(4)[:9])
    home.rotate()
    assert home.live.read_bytes().endswith(MORE + NEXT + IN_FLIGHT + NEXT)
    (waits,) = waiting.packs(home.where)
    append(waits.path, row(4)[9:])
    whole = DATA + MORE + NEXT + IN_FLIGHT + NEXT + row(4)
    home.rotate()
    assert home.stitched() == whole + NEXT
    home.age(90 * 3600)
    home.rotate()
    assert home.stitched() == whole + NEXT
    assert not any(waiting.packs(home.where))


@BACK
def test_late_lines_wait_until_what_their_client_trimmed_is_put_together(
    home: Home, back: bool
) -> None:
    """They may have come over before the trim, so that what was kept has them."""
    unfinished(home, back=back)
    crashed(home.rotate, BEHIND)
    home.append(boundary(90) + row(91))
    keep(home.live)
    waiting.settle(home.where)
    assert IN_FLIGHT not in home.live.read_bytes()
    home.rotate()
    assert home.stitched().count(IN_FLIGHT) == 1
    assert home.stitched().endswith(boundary(90) + row(91))
