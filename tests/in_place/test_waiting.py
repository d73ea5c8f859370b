"""Replaced files that a client may still write to, where no lease proves that none does."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import doctor
from sessrotate.in_place import waiting
from sessrotate.system import in_use
from support import command_line, homes
from support.abilities import needs_leases
from support.command_line import ID, append, boundary, called, row, session
from support.crash.changes import Faults, Killed
from support.homes import Home
from support.portable import lack
from support.race.checking import lines_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.archive.record import Waiting

DAY: Final = 86_400.0
DATA: Final = session(boundaries=3)
LATE: Final = row(96)
NEXT: Final = row(97)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A session on a system without leases, and without a list of open files."""
    homes.without_leases(monkeypatch)
    lack(monkeypatch, "open_files")
    return homes.home(tmp_path, monkeypatch, DATA)


def sealed(home: Home) -> None:
    """Rotate: the history is archived at once."""
    home.rotate()
    assert home.segment(0).exists()


def held(home: Home) -> int:
    """Open the live file for appending, as a program does that keeps it open."""
    return os.open(home.live, os.O_WRONLY | os.O_APPEND)


def waiting_packs(home: Home) -> list[Path]:
    return [each.path for each in waiting.packs(home.where)]


def test_a_line_that_comes_after_sealing_is_in_no_sealed_segment_and_not_lost(home: Home) -> None:
    writer = held(home)
    sealed(home)
    os.write(writer, LATE)
    assert not home.problems()
    home.rotate()
    assert home.stitched() == DATA + LATE
    home.restore()
    assert home.stitched() == DATA + LATE
    os.close(writer)


def test_it_is_said_that_the_replaced_file_waits(home: Home) -> None:
    rotated = home.rotate()
    assert rotated.pending is not None
    assert "stays until nobody has written to it for a day" in rotated.pending
    assert home.rotate().pending is None
    assert home.stitched() == DATA


def test_a_record_with_a_batch_that_ends_before_it_begins_says_nothing(home: Home) -> None:
    sealed(home)
    path = home.archive / "record.json"
    told = home.record()
    for end, is_known in ((9, True), (7, False)):
        told["waiting"][0]["batch"] = {"span": {"start": 8, "end": end}, "floor": 0}
        path.write_text(json.dumps(told) + "\n")
        (each,) = waiting.packs(home.where)
        assert (each.told is not None) == is_known


def test_a_replaced_file_is_kept_whole_until_it_was_quiet_for_a_day(home: Home) -> None:
    inode = home.live.stat().st_ino
    sealed(home)
    (pack,) = waiting_packs(home)
    assert (pack.stat().st_ino, pack.read_bytes()) == (inode, DATA)
    home.age(23 * 3600)
    home.rotate()
    assert waiting_packs(home) == [pack]
    home.age(2 * 3600)
    home.rotate()
    assert not waiting_packs(home)
    assert "waiting" not in home.archived()
    assert home.stitched() == DATA


def test_a_replaced_file_that_a_process_is_known_to_have_open_is_kept(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed(home)
    home.age(90 * 3600)
    with monkeypatch.context() as patch:
        status = waiting_packs(home)[0].stat()
        patch.setattr(in_use, "_writing", lambda _: [(7, (status.st_dev, status.st_ino))])
        home.rotate()
        assert waiting_packs(home)
    home.rotate()
    assert not waiting_packs(home)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[Home, float], None]:
    """Return what rotates a session by a clock that is off by days."""
    real = time.time

    def rotate(home: Home, days: float) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: real() + days * DAY)
            home.rotate()

    return rotate


def test_a_clock_that_is_far_ahead_lets_no_replaced_file_go_in_that_run(
    home: Home, at: Callable[[Home, float], None]
) -> None:
    sealed(home)
    (pack,) = waiting_packs(home)
    at(home, 400)
    assert waiting_packs(home) == [pack]
    at(home, 2)
    assert not waiting_packs(home)
    assert home.stitched() == DATA


def test_several_replaced_files_wait_at_once_and_each_brings_its_lines(home: Home) -> None:
    first = held(home)
    sealed(home)
    second = held(home)
    more = boundary(50) + row(51)
    home.append(more)
    sealed(home)
    assert len(waiting_packs(home)) == 2
    os.write(first, LATE)
    os.write(second, NEXT)
    home.rotate()
    assert home.stitched() == DATA + more + LATE + row(51) + NEXT
    assert not home.problems()


def test_half_a_line_waits_for_its_other_half(home: Home) -> None:
    writer = held(home)
    sealed(home)
    os.write(writer, LATE[:10])
    home.rotate()
    assert DATA.endswith(home.live.read_bytes()[-500:])
    assert home.stitched() == DATA + LATE[:10]
    os.write(writer, LATE[10:])
    home.rotate()
    assert home.stitched() == DATA + LATE


def test_lines_wait_while_the_live_file_ends_in_half_a_line(home: Home) -> None:
    writer = held(home)
    sealed(home)
    os.write(writer, LATE)
    home.append(NEXT[:10])
    home.rotate()
    assert home.live.read_bytes().endswith(NEXT[:10])
    assert home.stitched() == DATA + NEXT[:10] + LATE
    home.append(NEXT[10:])
    home.rotate()
    assert home.stitched() == DATA + NEXT + LATE + NEXT


def test_a_replaced_file_edited_in_place_is_kept_for_ever_and_doctor_says_so(home: Home) -> None:
    sealed(home)
    (pack,) = waiting_packs(home)
    with pack.open("r+b") as file:
        file.write(b"X")
    home.age(90 * 3600)
    home.rotate()
    assert waiting_packs(home) == [pack]
    assert home.stitched() == DATA
    (finding,) = (each for each in doctor.findings() if each.session == ID)
    assert (finding.kind, finding.path) == ("edited", str(pack))


@pytest.mark.parametrize("rest", [b"", b'"half":1}\n'], ids=["whole", "completed since then"])
def test_a_line_comes_over_once_wherever_a_crash_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: bytes
) -> None:
    data = DATA + (b"{" if rest else b"")
    for at, home, writer, crash in sealed_and_held(tmp_path, monkeypatch, data):
        os.write(writer, LATE)
        home.append(rest)
        until(crash, home.rotate)
        home.append(NEXT)
        home.rotate()
        told = home.stitched().removeprefix(data + rest)
        assert told in {LATE + NEXT, NEXT + LATE + NEXT}, at


def test_a_line_came_over_once_though_the_live_file_is_cut_before_the_record_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at, home, writer, crash in sealed_and_held(tmp_path, monkeypatch, DATA):
        os.write(writer, LATE)
        home.append(boundary(50) + row(51))
        until(crash, home.restore)
        home.append(row(52, pad="x" * 9000))  # or more than the session has would wait
        os.write(writer, NEXT)
        home.append(b'{"half":')
        home.rotate()
        told = home.stitched()
        assert (told.count(LATE), told.count(NEXT)) == (1, 1), at


def test_a_session_is_rotated_until_more_than_its_own_size_waits(home: Home) -> None:
    data, number = DATA, 100
    while sum(each.stat().st_size for each in waiting_packs(home)) <= len(data):
        sealed(home)
        home.append(more := boundary(number) + row(number + 1))
        data, number = data + more, number + 2
    before = homes.snapshot(home.config)
    for way in ("--dry-run", "--yes"):
        refused = called("rotate", ID, way)
        assert refused.code == 75
        assert "more than the whole session" in refused.err
    assert homes.snapshot(home.config) == before
    assert "Rotated" not in called("tidy", "--yes").out
    home.age(25 * 3600)
    assert called("rotate", ID).code == 0
    assert home.stitched() == data


def sealed_and_held(
    folder: Path, patch: pytest.MonkeyPatch, data: bytes
) -> Iterator[tuple[int, Home, int, Faults]]:
    """Yield rotated sessions, who holds the replaced file, and a crash that comes one call later.

    The last one is that in which it came no more.
    """
    homes.without_leases(patch)
    lack(patch, "open_files")
    for at in itertools.count(1):
        home, crash = homes.home(folder / str(at), patch, data), Faults(at)
        writer = held(home)
        sealed(home)
        yield at, home, writer, crash
        os.close(writer)
        if not crash.failed:
            return


def until(crash: Faults, deed: Callable[[], object]) -> None:
    """Do something until a crash, or to its end."""
    with crash.installed(), suppress(Killed):
        deed()


@pytest.mark.parametrize("lacking", [[], ["exact_renames"]], ids=["system", "portable"])
def test_sealing_is_finished_wherever_a_crash_comes_and_the_file_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: list[str]
) -> None:
    homes.without_leases(monkeypatch)
    lack(monkeypatch, *lacking)
    lack(monkeypatch, "open_files")
    for at in itertools.count(1):
        home = homes.home(tmp_path / str(at), monkeypatch, DATA)
        writer = held(home)
        home.rotate()
        home.age()
        crash = Faults(at)
        until(crash, home.rotate)
        assert home.stitched() == DATA, at
        home.age()
        home.rotate()
        os.write(writer, LATE)
        os.close(writer)
        home.rotate()
        assert home.stitched() == DATA + LATE, at
        assert not home.problems()
        if not crash.failed:
            return


def test_a_restored_session_keeps_its_archive_until_the_replaced_file_is_quiet(home: Home) -> None:
    sealed(home)
    writer = held(home)
    done = home.restore()
    assert done is not None
    assert done.pending
    home.age(2 * 3600)
    os.write(writer, LATE)
    home.restore()
    assert home.stitched() == DATA + LATE
    os.close(writer)
    home.age(90 * 3600)
    home.restore()
    assert home.live.read_bytes() == DATA + LATE
    assert home.is_whole


@pytest.mark.parametrize("days", [0.01, 1.5])
def test_a_line_that_comes_while_a_restoration_waits_is_in_the_live_file_at_its_next_run(
    home: Home, days: float
) -> None:
    writer = held(home)
    sealed(home)
    home.restore()
    os.write(writer, LATE)
    os.close(writer)
    home.age(days * DAY)
    command_line.called("run", "--quiet")
    assert home.live.read_bytes() == home.stitched() == DATA + LATE
    for _ in range(3):
        home.age(1.1 * DAY)
        command_line.called("run", "--quiet")
    assert home.is_whole
    assert home.live.read_bytes() == DATA + LATE


def test_a_line_that_comes_while_the_session_is_archived_is_in_the_live_file_when_it_is_back(
    home: Home,
) -> None:
    writer = held(home)
    sealed(home)
    assert command_line.called("archive", ID).code == 0
    os.write(writer, LATE)
    os.close(writer)
    assert command_line.called("restore", "--keep-rotated", ID).code == 0
    assert home.stitched() == DATA + LATE


def test_list_counts_replaced_files_that_wait_as_on_the_disk(home: Home) -> None:
    sealed(home)
    (listed,) = command_line.called("list", "--json").document()
    assert listed["archived_disk_bytes"] == homes.on_disk(home.archive)
    waits = sum(homes.on_disk(file) for file in home.archive.glob("waiting/*"))
    assert listed["waiting_disk_bytes"] == waits > len(DATA)
    assert "of it freed later" in command_line.called("list").out


def test_run_brings_lines_over_and_says_what_it_freed(home: Home) -> None:
    writer = held(home)
    sealed(home)
    os.write(writer, LATE)
    os.close(writer)
    assert command_line.called("run").code == 0
    assert home.stitched() == DATA + LATE
    home.age(90 * 3600)
    ended = command_line.called("run")
    assert "Recovered 1 session" in ended.out
    assert not waiting_packs(home)


def test_a_hard_link_among_the_files_that_wait_brings_no_line_of_another_file(
    home: Home, tmp_path: Path
) -> None:
    sealed(home)
    (pack,) = waiting_packs(home)
    secret = tmp_path / "secret"
    secret.write_bytes(DATA + b"a secret\n")
    pack.unlink()
    pack.hardlink_to(secret)
    home.rotate()
    assert home.stitched() == DATA
    assert "hard link" in " ".join(each.detail for each in doctor.findings())


@pytest.mark.parametrize("left", [None, b"{"], ids=["lost", "damaged"])
def test_what_comes_after_a_restoration_whose_record_is_lost_stays_in_the_replaced_file(
    home: Home, left: bytes | None
) -> None:
    sealed(home)
    writer = held(home)
    done = home.restore()
    assert done is not None
    assert done.pending
    home.lose_record(left)
    *_, waits = waiting_packs(home)
    os.write(writer, LATE)
    os.close(writer)
    for command in (["run"], ["restore", ID], ["rotate", ID]):
        called(*command)
        assert home.live.read_bytes() == DATA
    assert waits.read_bytes().endswith(LATE)
    assert str(waits) in called("doctor").out


def test_putting_an_archive_aside_says_what_waits_in_it(home: Home) -> None:
    sealed(home)
    writer = held(home)
    assert "moves with it: lines written" in called("aside", ID, "--dry-run").out
    os.close(writer)


# ── with leases, a file waits that somebody has open ─────────────────────────────────────────


@pytest.fixture
def leased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return homes.home(tmp_path, monkeypatch, DATA)


def last_lines(home: Home, number: int) -> list[bytes]:
    return home.stitched().splitlines(keepends=True)[-number:]


@needs_leases
def test_a_rotation_is_done_though_somebody_has_the_replaced_file_open(leased: Home) -> None:
    homes.crashed(leased.rotate, "sessrotate.in_place.seal.finish")
    with leased.pack.open("ab") as writer:
        ended = called("rotate", ID)
        assert (ended.code, leased.is_busy()) == (0, False)
        writer.write(LATE)
    planned = called("run", "--dry-run").out
    assert "Would recover 1 session" in planned
    assert "Recovered 1 session" in called("run").out
    assert leased.live.read_bytes().endswith(LATE)
    assert not waiting_packs(leased)
    assert "Nothing to do." in called("run").out


@needs_leases
def test_half_a_line_of_a_program_that_died_tears_no_line_of_another(leased: Home) -> None:
    writers = []
    for number in range(2):
        leased.append(boundary(50 + 10 * number) + row(51 + 10 * number))
        homes.crashed(leased.rotate, "sessrotate.in_place.seal.finish")
        writers.append(leased.pack.open("ab", buffering=0))
        leased.rotate()
    writers[0].write(LATE[:20])
    writers[1].write(NEXT)
    assert last_lines(leased, 3)[1:] == [NEXT, LATE[:20]]
    for writer in writers:
        writer.close()
    leased.rotate()
    assert leased.live.read_bytes().endswith(NEXT)
    leased.append(row(98))
    assert last_lines(leased, 3) == [NEXT, row(98), LATE[:20]]
    (half,) = waiting_packs(leased)
    assert f"{half}, a live file that was replaced, ends with half a line" in called("doctor").out
    assert "Nothing to do." in called("run").out
    assert "Would change nothing" in called("run", "--dry-run").out


@needs_leases
@pytest.mark.parametrize(
    ("data", "rest", "told"),
    [
        pytest.param(b'{"half":', b"1}\n", [b'{"half":1}\n', LATE], id="half a line is not torn"),
        pytest.param(NEXT, b"", [NEXT, LATE, NEXT], id="a row is said again"),
    ],
)
def test_what_a_client_writes_just_before_late_lines_come_is_before_them(
    leased: Home, data: bytes, rest: bytes, told: list[bytes]
) -> None:
    homes.crashed(leased.rotate, "sessrotate.in_place.seal.finish")
    append(leased.pack, LATE)
    with before_late_lines_come(leased, data):
        leased.rotate()
    if rest:
        leased.append(rest)
        leased.rotate()
    assert last_lines(leased, len(told)) == told


@contextmanager
def before_late_lines_come(home: Home, data: bytes) -> Iterator[None]:
    """Have a client write between the note of late lines and the lines."""
    real = vars(waiting)["_write"]

    def write(where: Place, now: Waiting) -> None:
        real(where, now)
        if now.batch is not None and not home.live.read_bytes().endswith(data):
            home.append(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "_write", write)
        yield


@pytest.mark.parametrize("hours", [0, 25])
@pytest.mark.parametrize("command", ["restore", "run"])
def test_what_waits_is_kept_aside_where_the_live_file_is_gone(
    home: Home, command: str, hours: int
) -> None:
    sealed(home)
    home.live.unlink()
    home.age(hours * 3600)
    ended = called(command, *([ID] if command == "restore" else []))
    assert ended.code == 0
    (kept,) = (home.config / "sessrotate" / "aside").iterdir()
    assert kept.read_bytes() == DATA
    assert not waiting_packs(home)
    assert ("holds what it had when it was last replaced" in ended.out) == (command == "restore")
    assert str(kept) in called("doctor").out


MORE: Final = boundary(50) + row(51) + row(52)
LESS: Final[dict[str, Callable[[list[bytes]], bytes]]] = {
    "nothing": lambda _: b"",
    "the live file without its last rows": lambda lives: _shorter(lives[-1]),
    "the live file of the rotation before": lambda lives: lives[0],
    "the live file from before a line came late": lambda lives: lives[-1].removesuffix(LATE),
    "the whole session without its last rows": lambda _: _shorter(DATA + MORE),
}
"""What another program puts in a live file's place, of the live files after each rotation."""


def _shorter(data: bytes) -> bytes:
    return b"".join(data.splitlines(keepends=True)[:-2])


@pytest.mark.parametrize("put_back", LESS.values(), ids=LESS)
def test_what_waits_is_not_removed_while_the_live_file_lacks_a_line_of_it(
    home: Home, put_back: Callable[[list[bytes]], bytes]
) -> None:
    sealed(home)
    lives = [home.live.read_bytes()]
    home.append(MORE)
    writer = held(home)
    sealed(home)
    os.write(writer, LATE)
    os.close(writer)
    home.rotate()
    lives.append(home.live.read_bytes())
    assert lives[-1].endswith(LATE)
    home.live.write_bytes(put_back(lives))
    home.age(25 * 3600)
    for command in (["run"], ["restore", ID], ["run"]):
        called(*command)
        there = lines_in(path for path in home.config.rglob("*") if path.is_file())
        assert {*(DATA + MORE + LATE).splitlines(keepends=True)} <= there.keys()


@pytest.mark.parametrize("damage", [b"", b"no segment", None], ids=["empty", "other", "missing"])
def test_what_waits_is_not_removed_while_a_segment_is_damaged(
    home: Home, damage: bytes | None
) -> None:
    sealed(home)
    home.segment(1).unlink()
    if damage is not None:
        home.segment(1).write_bytes(damage)
    home.age(25 * 3600)
    assert called("run").code == 0
    (pack,) = waiting_packs(home)
    assert pack.read_bytes() == DATA


@pytest.mark.parametrize("is_trashed", [True, False])
def test_a_line_that_came_late_is_kept_though_a_rule_took_what_stood_before_it(
    home: Home, is_trashed: bool
) -> None:
    """The replaced file ends inside a segment that is pruned, and an older copy lacks the line."""
    sealed(home)
    for number in (40, 50):
        home.append(row(number, pad="p" * 5000) + boundary(number + 1) + row(number + 2))
        home.rotate()
    older = home.live.read_bytes()
    append(waiting_packs(home)[0], LATE)
    called("run")
    assert called("prune", ID, "--keep-last", "1", "--yes").code == 0
    if not is_trashed:
        called("prune", ID, "--empty-trash", "--grace", "0", "--yes")
    home.live.write_bytes(older)
    home.age(25 * 3600)
    called("run")
    assert LATE in lines_in(path for path in home.config.rglob("*") if path.is_file())
