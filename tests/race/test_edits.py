"""A client that edits its session in place, at any moment of a rotation: the edit counts, or waits.

Rule: what must come out is computed from what the client made of the bytes that it had read.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

import homes
from homes import Crash, Home, Meanwhile
from race.writers import take_back, written_anew
from sessrotate import lease, rotate, swap
from sessrotate.errors import DamagedError, InUseError, SessrotateError
from support_cli import ID, boundary, row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODE: Final = b'{"type":"mode","sessionId":"%s"}\n' % ID.encode()

HISTORY: Final = row(1) + row(2) + MODE + boundary(3) + row(4) + row(5)
TAIL: Final = boundary(6) + row(7) + MODE + row(8) + MODE
DATA: Final = HISTORY + TAIL

LATE: Final = row(9) + MODE


def uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-a000-00000000000a"


def mark(number: int) -> bytes:
    return b'"uuid":"%s"' % uuid(number).encode()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return homes.home(tmp_path, monkeypatch, DATA)


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
            data = self.home.live.read_bytes() if _is_free(self.home.live) else b""
            if take_back(self.home.live, mark(self.number), os.O_NONBLOCK):
                self.done.append(written_anew(data, uuid(self.number)))

    def look(self) -> None:
        """Read the whole file."""
        self.read = self.home.live.read_bytes() if _is_free(self.home.live) else b""

    def write(self) -> None:
        """Write it anew without the row, if it was read."""
        if self.read and _is_free(self.home.live):
            self.done.append(written_anew(self.read, uuid(self.number)))
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


def rotated(home: Home, meanwhile: Crash) -> SessrotateError | None:
    """Rotate while something happens; return what kept that from being done."""
    with pytest.MonkeyPatch.context() as patch:
        meanwhile.install(patch)
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
    assert not home.archived() & {"pack", "intent.json"}


DEEDS: Final = {"near the end": Editor.near_the_end, "all of it": Editor.both}


@pytest.mark.parametrize("how", DEEDS)
@pytest.mark.parametrize("number", [7, 8, 5, 1], ids=["tail", "last", "history", "first"])
def test_a_row_may_be_taken_back_at_any_call_of_a_rotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, number: int
) -> None:
    outcomes = set()
    at = 0
    while True:
        at += 1
        home = homes.home(tmp_path / str(at), monkeypatch, DATA)
        editor = Editor(home, number)
        meanwhile = Meanwhile(at, lambda editor=editor: DEEDS[how](editor))
        error = rotated(home, meanwhile)
        if not meanwhile.happened:
            break
        # A row that is archived by then is in no file that the client knows.
        is_there = bool(editor.done) and home.live.read_bytes().find(mark(number)) < 0
        was_archived = number < 6 and mark(number) in home.stitched()
        edited = written_anew(DATA, uuid(number)) if is_there and not was_archived else DATA
        outcomes.add((bool(editor.done), type(error)))
        check_as_edited(home, error, edited)
    assert (True, type(None)) in outcomes
    assert at > 20


def test_a_whole_session_that_was_read_before_and_is_written_after_the_swap_is_never_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited = written_anew(DATA, uuid(8))
    outcomes = set()
    at = 0
    while True:
        at += 1
        home = homes.home(tmp_path / str(at), monkeypatch, DATA)
        editor = Editor(home, 8)
        editor.look()
        meanwhile = Meanwhile(at, editor.write)
        error = rotated(home, meanwhile)
        if not meanwhile.happened:
            break
        outcomes.add(type(error))
        if not editor.done:
            continue
        # As without us, the client's file is what it wrote.
        assert home.live.read_bytes().endswith(edited[-len(TAIL) :][-60:])
        try:
            assert home.stitched() == edited
        except DamagedError:
            assert home.live.read_bytes() == edited
            homes.snapshot(home.config)
            home.rotate(adopt=True)
            assert home.stitched() == edited
    assert at > 20
