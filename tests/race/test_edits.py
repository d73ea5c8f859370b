"""A client that edits its session in place, at any moment of a rotation: the edit counts, or waits.

Rule: what must come out is computed from what the client made of the bytes that it had read.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import fs
from sessrotate.errors import DamagedError, InUseError, SessrotateError
from sessrotate.in_place import seal, swap
from sessrotate.system import in_use, locks
from support import homes
from support.abilities import needs_leases
from support.command_line import ID, append, boundary, row, uuid_of
from support.crash.changes import Faults, Meanwhile
from support.homes import Home
from support.race.writers import coming_late, take_back, written_anew

if TYPE_CHECKING:
    from pathlib import Path

MODE: Final = b'{"type":"mode","sessionId":"%s"}\n' % ID.encode()

HISTORY: Final = row(0) + row(1) + row(2) + MODE + boundary(3) + row(4) + row(5)
"""The first row stays in the live file; the next one is in the archive alone after a rotation."""

TAIL: Final = boundary(6) + row(7) + MODE + row(8) + MODE
DATA: Final = HISTORY + TAIL

LATE: Final = row(9) + MODE


def mark(number: int) -> bytes:
    return b'"uuid":"%s"' % uuid_of(number).encode()


@pytest.fixture(autouse=True)
def _nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no processes to look through."""
    (tmp_path / "proc").mkdir()
    monkeypatch.setattr(in_use, "_PROC", tmp_path / "proc")


@dataclass
class Editor:
    """A client that takes a row back; while it would have to wait for a file, it does nothing."""

    home: Home
    number: int
    read: bytes = b""
    done: list[bytes] = field(default_factory=list)

    def near_the_end(self) -> None:
        """Take it back by what 2.1.112 does first."""
        with contextlib.suppress(BlockingIOError):
            self.look()
            if take_back(self.home.live, mark(self.number), os.O_NONBLOCK):
                self.done.append(written_anew(self.read, uuid_of(self.number)))

    def look(self) -> None:
        """Read the whole file."""
        self.read = self.home.live.read_bytes() if _is_free(self.home.live) else b""

    def write(self) -> None:
        """Write it anew without the row, if it was read."""
        if self.read and _is_free(self.home.live):
            self.done.append(written_anew(self.read, uuid_of(self.number)))
            self.home.live.write_bytes(self.done[-1])

    def both(self) -> None:
        self.look()
        self.write()


def _is_free(path: Path) -> bool:
    """Tell whether a client that opens a file for writing need not wait."""
    try:
        os.close(_open(path, os.O_WRONLY | os.O_NONBLOCK))
    except BlockingIOError:
        return False
    return True


_open: Final = os.open


def rotated(home: Home, meanwhile: Faults) -> SessrotateError | None:
    """Rotate while something happens; return what kept that from being done."""
    with meanwhile.installed():
        try:
            home.rotate()
        except SessrotateError as error:
            return error
    return None


def check_as_edited(home: Home, error: SessrotateError | None, edited: bytes) -> None:
    """Check that all is as the client left it, rotated or not."""
    if error is not None:
        assert isinstance(error, InUseError), error
        assert home.live.read_bytes() == edited
        assert home.archived() == set()
    assert home.stitched() == edited
    home.rotate()
    assert home.stitched() == edited
    assert home.problems() == []
    assert not home.is_busy()


def goes_on(editor: Editor) -> None:
    """Write all of it anew, and append more than was taken away."""
    editor.both()
    if editor.done:
        editor.home.append(LATE)
        editor.done[-1] += LATE


DEEDS: Final = {"near the end": Editor.near_the_end, "all of it": Editor.both, "and on": goes_on}


@needs_leases  # or what a client edits in the old file stays there, and `doctor` names it
@pytest.mark.parametrize("how", DEEDS)
@pytest.mark.parametrize("number", [8, 7, 5, 1], ids=["last", "tail", "history", "first"])
def test_a_row_may_be_taken_back_at_any_call_of_a_rotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, number: int
) -> None:
    outcomes: set[type[SessrotateError] | None] = set()
    for at in count(1):
        home = homes.home(tmp_path / str(at), monkeypatch, DATA)
        editor = Editor(home, number)
        meanwhile = Meanwhile(at, partial(DEEDS[how], editor))
        error = rotated(home, meanwhile)
        if not meanwhile.failed:
            break
        edited = DATA
        if editor.done:
            # A row that is archived by then is in no file that the client knows: it stays.
            was_archived = mark(number) not in editor.read and number < 6
            edited = DATA if was_archived else written_anew(DATA, uuid_of(number))
            edited += LATE if how == "and on" else b""
            outcomes.add(type(error) if error else None)
        check_as_edited(home, error, edited)
    assert at > 20
    # An edit of the tail is followed; one of the history needs another plan.
    assert None in outcomes
    assert outcomes == {None, InUseError} if number < 6 else outcomes <= {None, InUseError}


@pytest.mark.parametrize("number", [8, 7])
def test_a_row_may_be_taken_back_while_a_rotation_waits_for_its_client(
    home: Home, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real = locks.read_lease
    edits: list[bool] = []

    def read(fd: int) -> locks.Answer:
        if not edits:
            edits.append(take_back(home.live, mark(number)))
            home.append(LATE)
            return "busy"
        return real(fd)

    monkeypatch.setattr(locks, "read_lease", read)
    home.rotate(wait=10)
    assert home.stitched() == written_anew(DATA, uuid_of(number)) + LATE


def test_a_change_that_moves_nothing_is_noticed_and_nothing_is_replaced(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No client makes one; somebody with an editor may."""
    real = fs.add_name

    def linking(path: Path, name: Path) -> None:
        real(path, name)
        with home.live.open("r+b") as file:
            file.write(changed)

    changed = DATA.replace(b"row 1 ", b"ROW 1 ")
    monkeypatch.setattr(fs, "add_name", linking)
    with pytest.raises(InUseError):
        home.rotate()
    assert home.live.read_bytes() == changed
    assert home.archived() == set()


@needs_leases
@pytest.mark.parametrize("number", [8, 7])
def test_a_client_that_found_the_old_file_may_take_a_row_back_after_the_swap(
    home: Home, number: int
) -> None:
    def edit() -> bool:
        is_there = take_back(home.pack, mark(number))
        append(home.pack, LATE)
        return is_there

    with coming_late(home, edit) as edits:
        home.rotate()
    assert edits == [True]
    assert home.stitched() == written_anew(DATA, uuid_of(number)) + LATE
    assert home.live.read_bytes().endswith(LATE)
    assert home.problems() == []


@needs_leases
def test_a_client_that_takes_a_row_of_the_history_back_after_the_swap_loses_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swap, "_LATE", 0.05)
    late = coming_late(home, lambda: take_back(home.pack, mark(5)))
    with late as edits, pytest.raises(SessrotateError) as caught:
        home.rotate()
    assert caught.value.exit_code == 74
    assert edits == [True]
    # Nobody else had the file: what the client took back is all that is gone.
    assert home.pack.read_bytes() == written_anew(DATA, uuid_of(5))
    assert home.live.read_bytes().endswith(TAIL)


@needs_leases
def test_what_came_late_does_not_come_again_when_a_client_takes_a_row_back(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client edits the new file after the drain, and before the pack lost its tail."""

    def finish(*arguments: object) -> None:
        assert take_back(home.live, mark(8))
        finishing(*arguments)  # type: ignore[arg-type]  # as they came

    finishing = seal.finish
    monkeypatch.setattr(seal, "finish", finish)
    with coming_late(home, lambda: append(home.pack, LATE)) as late:
        home.rotate()
    assert late
    assert home.stitched() == written_anew(DATA, uuid_of(8)) + LATE


@needs_leases
def test_a_whole_session_that_was_read_before_and_is_written_after_the_swap_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is what 2.0.76 does with every edit; no line that it kept is lost."""
    edited = written_anew(DATA, uuid_of(8))
    after = 0
    for at in count(1):
        home = homes.home(tmp_path / str(at), monkeypatch, DATA)
        editor = Editor(home, 8)
        editor.look()
        meanwhile = Meanwhile(at, editor.write)
        error = rotated(home, meanwhile)
        if not meanwhile.failed:
            break
        if not editor.done:
            continue
        if home.live.read_bytes() == edited and home.archived():
            after += 1
            with contextlib.suppress(DamagedError):  # unless it lacks nothing of the archive
                assert home.stitched() == edited
            assert home.live.read_bytes() == edited
        else:
            check_as_edited(home, error, edited)
    assert after > 5
