"""A line that was in flight when a rotator died comes before what its writer wrote next."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import found_files, state
from sessrotate.archive.found_files import FoundFiles
from sessrotate.errors import RefusedError, SessrotateError
from sessrotate.in_place import seal, swap
from sessrotate.in_place.seal import NotQuietError
from support import command_line, homes
from support.command_line import ID, assert_one_sentence, boundary, called, row
from support.homes import Crash, Home, Killed, snapshot
from support.race.writers import take_back

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DATA: Final = command_line.session(boundaries=2)
MORE: Final = boundary(80) + row(81)

IN_FLIGHT: Final = row(1)
"""What a writer has for the old file, where it waits; then it opens the path again."""

NEXT: Final = row(2)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return homes.home(tmp_path, monkeypatch, DATA + MORE)


def killed(run: Callable[[], object], *, at: str) -> None:
    """Run until a function of `_Swap` or of the package would be called."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swap, "undone_unless_swapped", lambda *_: contextlib.nullcontext())
        patch.setattr(at, lambda *_, **__: Crash(1).met())
        with pytest.raises(Killed):
            run()


AFTER_THE_RENAME: Final = "sessrotate.in_place.swap._Swap._drain"


def in_flight(home: Home, line: bytes) -> None:
    """Let the line of a writer come that had waited for the replaced file."""
    with home.pack.open("ab") as file:
        file.write(line)


def unfinished(home: Home, *, back: bool = False) -> bytes:
    """Kill a rotation, or restoration, behind its rename; let a writer go on. Return all there is.

    Between its lines, and after the rename, another client's line comes to the new file.
    """
    if back:
        home.rotate()
    killed(home.restore if back else home.rotate, at=AFTER_THE_RENAME)
    home.append(row(3))
    in_flight(home, IN_FLIGHT)
    home.append(NEXT)
    return DATA + MORE + IN_FLIGHT + row(3) + NEXT


@pytest.mark.parametrize("back", [False, True], ids=["rotation", "restoration"])
def test_a_line_in_flight_when_a_rotator_is_killed_comes_before_its_writers_next(
    home: Home, back: bool
) -> None:
    whole = unfinished(home, back=back)
    assert home.stitched() == whole
    with pytest.MonkeyPatch.context() as patch:
        seen = Looked(home)
        seen.install(patch)
        home.restore()
    assert set(seen.histories) == {whole}
    assert seen.count > 30
    assert home.live.read_bytes() == whole
    assert home.is_whole


class Looked(Crash):
    """Looks at the history before every operation, and lets it happen."""

    def __init__(self, home: Home) -> None:
        super().__init__(0)
        self._home = home
        self._is_looking = False
        self.histories: list[bytes] = []

    def install(self, patch: pytest.MonkeyPatch) -> None:
        super().install(patch)
        # Whoever looks at a file that this process has leased would wait for itself.
        for name in ("read", "write"):
            patch.setattr(f"sessrotate.system.lease.{name}", lambda _fd: "taken")
        patch.setattr("sessrotate.system.lease.release", lambda _fd: None)
        patch.setattr("sessrotate.system.lease.is_wanted", lambda _fd: False)

    def _wrapped(self, name: str, real: Callable[..., object]) -> Callable[..., object]:
        del name

        def call(*args: object, **kwargs: object) -> object:
            if not self._is_looking:
                self._is_looking = True
                self.count += 1
                self.histories.append(self._home.stitched())
                self._is_looking = False
            return real(*args, **kwargs)

        return call


def test_the_live_file_has_all_lines_in_order_when_the_next_run_is_done(home: Home) -> None:
    whole = unfinished(home)
    home.rotate()
    assert home.live.read_bytes().endswith(MORE + IN_FLIGHT + row(3) + NEXT)
    assert home.stitched() == whole
    assert home.archived() == {"manifest.json", *(home.segment(n).name for n in range(3))}


@pytest.mark.parametrize("back", [False, True], ids=["rotation", "restoration"])
def test_rotators_may_be_killed_there_one_after_the_other(home: Home, back: bool) -> None:
    whole = unfinished(home, back=back)
    for number in range(5, 9):
        killed(home.rotate, at=AFTER_THE_RENAME)
        assert home.intent()["operation"] == "insert"
        in_flight(home, row(number * 10))
        home.append(row(number * 10 + 1))
        whole += row(number * 10) + row(number * 10 + 1)
        assert home.stitched() == whole
    home.restore()
    assert home.live.read_bytes() == whole


@pytest.mark.parametrize("operation", ["late", "insert"])
@pytest.mark.parametrize("damaged", [None, b"{"], ids=["gone", "damaged"])
def test_a_manifest_lost_meanwhile_is_what_it_was_with_its_pins(
    home: Home, operation: str, damaged: bytes | None
) -> None:
    home.rotate()
    assert called("pin", ID, "1").code == 0
    home.append(boundary(90) + row(91))
    whole = home.stitched()
    at = "sessrotate.in_place.merge_late.execute" if operation == "late" else AFTER_THE_RENAME
    killed(home.rotate, at=AFTER_THE_RENAME)
    home.append(NEXT)
    in_flight(home, IN_FLIGHT)
    home.append(row(3))
    killed(home.rotate, at=at)
    assert home.intent()["operation"] == operation
    kept = (home.archive / "manifest.json").read_bytes()
    if damaged is None:
        (home.archive / "manifest.json").unlink()
    else:
        (home.archive / "manifest.json").write_bytes(damaged)
    assert home.stitched() == whole + IN_FLIGHT + NEXT + row(3)
    home.rotate()
    assert (home.archive / "manifest.json").read_bytes() == kept
    assert kept.count(b'"pin": null') == sum(home.segment(n).exists() for n in range(1, 9))
    assert home.stitched() == whole + IN_FLIGHT + NEXT + row(3)


def test_lines_that_nobody_wrote_after_are_brought_over_too(home: Home) -> None:
    killed(home.rotate, at=AFTER_THE_RENAME)
    in_flight(home, IN_FLIGHT)
    home.rotate()
    assert home.live.read_bytes().endswith(MORE + IN_FLIGHT)
    assert home.stitched() == DATA + MORE + IN_FLIGHT


def test_equal_lines_are_as_many_as_were_written(home: Home) -> None:
    mode = b'{"type":"mode","sessionId":"s"}\n'
    killed(home.rotate, at=AFTER_THE_RENAME)
    home.append(NEXT + mode)
    in_flight(home, mode + mode)
    whole = DATA + MORE + mode + mode + NEXT + mode
    killed(home.rotate, at=AFTER_THE_RENAME)
    home.append(mode)
    in_flight(home, row(7) + mode)
    whole += row(7) + mode + mode
    assert home.stitched() == whole
    home.rotate()
    assert home.stitched() == whole


@pytest.mark.parametrize("copied", [False, True], ids=["", "a backup made two files of one"])
def test_a_line_like_the_late_one_is_not_taken_for_it(home: Home, copied: bool) -> None:
    mode = b'{"type":"mode","sessionId":"s"}\n'
    killed(home.rotate, at=AFTER_THE_RENAME)
    in_flight(home, mode)
    killed(home.rotate, at="sessrotate.in_place.merge_late.execute")
    home.append(NEXT if copied else mode)
    whole = DATA + MORE + mode + (NEXT if copied else mode)
    killed(home.rotate, at="sessrotate.in_place.swap.swap")
    assert home.pack.samefile(home.live)
    if copied:
        data = home.pack.read_bytes()
        home.pack.unlink()
        home.pack.write_bytes(data)
    assert home.stitched() == whole
    home.rotate()
    assert home.stitched() == whole


@pytest.mark.parametrize("operation", ["rotate", "late", "insert"])
def test_whoever_reads_while_late_lines_are_put_in_place_looks_again(
    home: Home, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """All is done between a look at the intent and one at the other files."""
    whole = unfinished(home)
    if operation != "rotate":
        killed(
            home.rotate,
            at="sessrotate.in_place.merge_late.execute"
            if operation == "late"
            else AFTER_THE_RENAME,
        )
    assert home.intent()["operation"] == operation
    real, looks = found_files.look, []

    def look(*args: object) -> FoundFiles:
        looks.append(args)
        if len(looks) == 1:
            monkeypatch.setattr(found_files, "look", real)
            step()
            monkeypatch.setattr(found_files, "look", look)
        return real(*args)  # type: ignore[arg-type]  # whatever it is given

    def step() -> None:
        ends = {"rotate": "sessrotate.in_place.seal._seal", "late": AFTER_THE_RENAME}
        if operation in ends:
            killed(home.rotate, at=ends[operation])
        else:
            home.rotate()

    monkeypatch.setattr(found_files, "look", look)
    assert home.stitched() == whole
    assert len(looks) > 1


def test_whoever_reads_while_a_merge_begins_looks_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins between a look at the names in the archive and one at the record."""
    whole = waiting(home)
    real, looks = found_files.record_of, []

    def look(*args: object) -> bytes | None:
        looks.append(args)
        if len(looks) == 1:
            monkeypatch.setattr(found_files, "record_of", real)
            killed(home.rotate, at="sessrotate.in_place.swap.swap")
            monkeypatch.setattr(found_files, "record_of", look)
        return real(*args)  # type: ignore[arg-type]  # whatever it is given

    monkeypatch.setattr(found_files, "record_of", look)
    assert home.stitched() == whole
    assert home.intent()["operation"] == "insert"


def test_what_comes_to_the_pack_after_it_was_copied_is_not_forgotten(home: Home) -> None:
    """Without leases nobody knows; and with them it costs nothing."""
    unfinished(home)
    killed(home.rotate, at="sessrotate.fs.shorten")
    assert home.intent()["late"]["end"] == home.pack.stat().st_size
    in_flight(home, row(7))
    whole = DATA + MORE + IN_FLIGHT + row(7) + row(3) + NEXT
    assert home.stitched() == whole
    home.rotate()
    assert home.stitched() == whole


@pytest.mark.parametrize("operation", ["rotate", "restore", "insert"])
def test_lines_that_were_kept_and_then_appended_with_later_ones_are_there_once(
    home: Home, operation: str
) -> None:
    """A run died when it had kept them; another, without leases, appends all that is late."""
    whole = DATA + MORE
    if operation == "insert":
        whole = unfinished(home)
        killed(home.rotate, at=AFTER_THE_RENAME)
    else:
        if operation == "restore":
            home.rotate()
        killed(home.restore if operation == "restore" else home.rotate, at=AFTER_THE_RENAME)
    in_flight(home, row(30))
    killed(home.rotate, at="sessrotate.in_place.seal._drop_tail")
    assert (home.intent()["operation"], home.intent()["late"]["end"] > 0) == (operation, True)
    in_flight(home, row(31))
    whole += row(30) + row(31)
    assert home.stitched() == whole
    with pytest.MonkeyPatch.context() as patch:
        homes.without_leases(patch)
        with pytest.raises(NotQuietError):
            home.rotate()
    assert home.stitched() == whole
    home.restore()
    assert home.live.read_bytes() == whole


# ── an insertion that cannot be done yet ─────────────────────────────────────────────────────


@pytest.fixture
def holder(home: Home) -> Iterator[subprocess.Popen[bytes]]:
    """Have another process that opens the live file for writing when it is told to."""
    code = (
        "import sys; sys.stdin.readline(); file = open(sys.argv[1], 'ab'); print(flush=True);"
        "sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(home.live)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def hold(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    process.stdout.readline()


def test_a_writer_that_holds_the_live_file_is_waited_for_and_then_named(
    home: Home, holder: subprocess.Popen[bytes]
) -> None:
    whole = unfinished(home)
    hold(holder)
    with pytest.raises(NotQuietError, match=f"process {holder.pid} has it open for writing"):
        home.rotate()
    assert home.archived() >= {"late", "record.json", home.segment(1).name}
    assert not home.archived() & {"pack", "live.partial"}
    assert (home.archive / "late").stat().st_mode & 0o7777 == 0o600
    assert home.stitched() == whole
    assert not home.problems()
    before = snapshot(home.archive)
    with pytest.raises(NotQuietError):
        home.restore()
    assert {file: facts[-1] for file, facts in snapshot(home.archive).items()} == {
        file: facts[-1] for file, facts in before.items()
    }
    ended = called("doctor")
    assert "merge of late lines was interrupted: the next run finishes it" in ended.out
    holder.kill()
    holder.wait()
    home.append(row(4))
    done = home.rotate()
    assert done.recovered.past == "Finished a merge of late lines that was interrupted."
    assert home.stitched() == whole + row(4)
    assert "late" not in home.archived()
    assert not home.is_busy()


def waiting(home: Home) -> bytes:
    """Leave nothing but late lines that wait to be inserted."""
    whole = unfinished(home)
    killed(home.rotate, at="sessrotate.in_place.merge_late.execute")
    assert home.intent()["operation"] == "late"
    return whole


@pytest.mark.parametrize("left", [None, b"{"], ids=["lost", "damaged"])
def test_late_lines_whose_record_is_lost_are_named_with_what_to_do(
    home: Home, left: bytes | None
) -> None:
    whole, record = waiting(home), home.archive / "record.json"
    late = (home.archive / "late").read_bytes()
    if left is None:
        record.unlink()
    else:
        record.write_bytes(left)
    command = f"cat {home.archive / 'late'} >> {home.live} && rm {home.archive / 'late'}"
    for name, code in (("stitch", 74), ("rotate", 77), ("restore", 77), ("verify", 1)):
        ended = called(name, ID)
        assert ended.code == code, ended
        assert f"put them last: `{command}`" in ended.err + ended.out
    assert command in called("doctor").out
    assert (home.archive / "late").read_bytes() == late
    subprocess.run(["sh", "-c", command], check=True)
    assert sorted(home.stitched().splitlines()) == sorted(whole.splitlines())
    assert home.stitched().endswith(late)
    home.restore()
    home.rotate()
    assert called("doctor").code == 0
    assert home.stitched().endswith(late)


@pytest.mark.parametrize("back", [False, True], ids=["rotation", "restoration"])
def test_a_live_file_that_must_not_be_replaced_keeps_the_late_lines_waiting(
    home: Home, back: bool
) -> None:
    whole = waiting(home)
    backup = home.config / "backup"
    backup.hardlink_to(home.live)
    data = home.live.read_bytes()
    with pytest.raises(RefusedError, match="has another name"):
        _ = home.restore() if back else home.rotate()
    assert backup.read_bytes() == home.live.read_bytes() == data
    assert home.stitched() == whole
    backup.unlink()
    home.restore()
    assert home.live.read_bytes() == whole


@pytest.mark.parametrize("is_kept", [True, False], ids=["in a file of their own", "in the pack"])
def test_late_lines_whose_place_is_gone_come_last_but_never_behind_a_torn_line(
    home: Home, is_kept: bool
) -> None:
    """A client took back what led up to them, went on, and died half-way through a line."""
    killed(home.rotate, at=AFTER_THE_RENAME)
    in_flight(home, IN_FLIGHT)
    if is_kept:
        home.append(NEXT)
        killed(home.rotate, at="sessrotate.in_place.merge_late.execute")
    assert take_back(home.live, row(81).partition(b',"session')[0])
    home.append(row(5) + row(6)[:40])
    whole = DATA + boundary(80) + (NEXT if is_kept else b"") + row(5) + IN_FLIGHT + row(6)[:40]
    assert home.stitched() == whole
    home.rotate()
    assert home.stitched() == whole


def test_a_live_file_that_is_gone_is_not_made_of_late_lines(home: Home) -> None:
    waiting(home)
    data = home.live.read_bytes()
    home.live.unlink()
    before = snapshot(home.config)
    ended = called("restore", ID)
    assert_one_sentence(ended, 74)
    assert "put a copy of that in its place" in ended.err
    assert snapshot(home.config) == before
    home.append(data)
    home.rotate()
    assert home.stitched() == DATA + MORE + IN_FLIGHT + row(3) + NEXT


def test_a_live_file_that_goes_while_late_lines_are_put_in_comes_back(home: Home) -> None:
    whole = unfinished(home)
    killed(home.rotate, at="sessrotate.in_place.swap.swap")
    assert home.pack.samefile(home.live)
    home.live.unlink()
    assert home.stitched() == whole
    home.rotate()
    assert home.stitched() == whole


@pytest.mark.parametrize(
    "at",
    ["sessrotate.in_place.swap.swap", AFTER_THE_RENAME, "sessrotate.in_place.merge_late.close"],
)
def test_a_backup_made_two_files_of_the_names_of_one(home: Home, at: str) -> None:
    whole = unfinished(home)
    if at.endswith("close"):
        killed(home.rotate, at=AFTER_THE_RENAME)
        in_flight(home, row(5))
        home.append(row(6))
        whole += row(5) + row(6)
    killed(home.rotate, at=at)
    for path in (home.live, home.pack):
        if path.exists():
            data = path.read_bytes()
            path.unlink()
            path.write_bytes(data)
    assert home.stitched() == whole
    home.rotate()
    assert home.stitched() == whole


# ── a client that takes lines back ───────────────────────────────────────────────────────────


def test_where_a_client_took_back_what_led_up_to_late_lines_they_come_last(home: Home) -> None:
    waiting(home)
    begin = home.live.read_bytes()
    begin = begin[: begin.index(boundary(80)) + len(boundary(80))]
    home.live.write_bytes(begin + row(30) + row(31))
    whole = DATA + boundary(80) + row(30) + row(31) + IN_FLIGHT
    assert home.stitched() == whole
    home.append(row(32))
    home.rotate()
    assert home.stitched() == DATA + boundary(80) + row(30) + row(31) + row(32) + IN_FLIGHT


@pytest.mark.parametrize("kept", [0, 1], ids=["all that came since", "what led up to them too"])
def test_a_client_may_take_lines_back_while_late_ones_are_put_in(
    home: Home, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    waiting(home)
    data = home.live.read_bytes()
    short = data[: data.index(row(81) if kept else row(3))]
    real = swap.begin

    def begin(*args: object) -> None:
        real(*args)  # type: ignore[arg-type]  # whatever it is given
        os.truncate(home.live, len(short))

    with monkeypatch.context() as patch:
        patch.setattr(swap, "begin", begin)
        if kept:
            with pytest.raises(NotQuietError, match="was changed while it was read"):
                home.rotate()
        else:
            home.rotate()
    home.rotate()
    assert home.live.read_bytes() == short + IN_FLIGHT


@pytest.mark.parametrize("lines", [IN_FLIGHT, IN_FLIGHT + row(3), row(3) + NEXT])
def test_a_late_line_that_a_client_takes_back_when_it_is_in_does_not_come_again(
    home: Home, lines: bytes
) -> None:
    whole = unfinished(home)
    killed(home.rotate, at=AFTER_THE_RENAME)
    data = home.live.read_bytes()
    assert lines in data
    home.live.write_bytes(data.replace(lines, b"") + row(50))
    whole = whole.replace(lines, b"") + row(50)
    assert home.stitched() == whole
    home.rotate()
    assert home.stitched() == whole
    assert home.live.read_bytes() == data.replace(lines, b"") + row(50)


# ── late lines that are not what they were ───────────────────────────────────────────────────


def gone(path: Path) -> None:
    path.unlink()


def shorter(path: Path) -> None:
    os.truncate(path, 10)


def changed(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))


@pytest.mark.parametrize("damage", [gone, shorter, changed])
def test_late_lines_that_changed_are_not_put_in(home: Home, damage: Callable[[Path], None]) -> None:
    waiting(home)
    damage(home.archive / "late")
    before = snapshot(home.config)
    with pytest.raises(SessrotateError, match="late has changed"):
        home.rotate()
    with pytest.raises(SessrotateError, match="late has changed"):
        home.stitched()
    after = snapshot(home.config)
    ours = str(home.archive / "record.json")
    assert {k: v for k, v in after.items() if k != ours} == {
        k: v for k, v in before.items() if k != ours
    }
    assert called("verify", ID).code == 1


def test_a_stranger_called_like_late_lines_is_named_and_left_alone(home: Home) -> None:
    home.rotate()
    mine = command_line.write(home.archive / "late", b"mine")
    home.append(boundary(90) + row(91))
    with pytest.raises(RefusedError, match=r"No record explains .*/late; .* move the file away"):
        home.rotate()
    assert mine.read_bytes() == b"mine"
    mine.unlink()
    home.rotate()
    assert home.stitched() == DATA + MORE + boundary(90) + row(91)


# ── without leases ───────────────────────────────────────────────────────────────────────────


def test_without_leases_late_lines_go_to_their_place_when_all_is_quiet(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes.without_leases(monkeypatch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seal, "finish", lambda *_: None)
        home.rotate()
    home.append(NEXT)
    in_flight(home, IN_FLIGHT)
    whole = DATA + MORE + IN_FLIGHT + NEXT
    operations = []
    for _ in range(2):
        with pytest.raises(NotQuietError):
            home.rotate()
        assert home.stitched() == whole
        operations.append(home.intent()["operation"])
        home.age()
    assert operations == ["rotate", "insert"]
    home.rotate()
    assert home.live.read_bytes().endswith(MORE + IN_FLIGHT + NEXT)
    with state.opened(home.where) as found:
        assert found.intent is None
