"""Clients that write to a live file while it is rotated, and what each of them wrote.

Rule: a writer does what Claude Code does: it opens the path for appending, writes, and closes;
and it takes its last row back as the client does. What it wrote is known from its own count, and
not from any file that is rotated.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.system import locks

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.homes import Home

SAME: Final = 4
"""One of so many rows of a writer is the same bytes each time, as clients' metadata is."""

_END: Final = 65_536
"""Bytes at the end of a session in which a client looks for the row that it takes back."""

_ROW: Final = re.compile(rb'.*"writer":(\d+),"number":(\d+)\}\n')
_SAME_ROW: Final = re.compile(rb'\{"type":"mode","sessionId":"(\d+)"\}\n')


@dataclass(frozen=True)
class Habits:
    """How a writer behaves. All times are seconds, drawn evenly from nothing up to the figure."""

    pause: float = 0.004
    """Between two rows."""
    hold: float = 0.0
    """Between open and write."""
    takes_back: float = 0.0
    """In what share of cases it takes its last row back."""


@dataclass(frozen=True)
class Wrote:
    """What a writer did: how many rows, which of them it took back, and its waits for an open.

    `compacts` says that its rows are compactions, each of them unlike the others; `held` is how
    many rows it writes at most to a file that it opened once.
    """

    rows: int
    removed: frozenset[int] = frozenset()
    compacts: bool = False
    held: int = 1
    waits: tuple[float, ...] = field(default=(), repr=False)


def is_same(number: int) -> bool:
    """Tell whether the row of this number is the same as others of its writer."""
    return number % SAME == SAME - 1


def row(writer: int, number: int) -> bytes:
    """Return one line: always the same for the same writer and number."""
    if is_same(number):
        return b'{"type":"mode","sessionId":"%d"}\n' % writer
    pad = "x" * (20 + hash((writer, number)) % 300)
    return _line({"type": "user", "uuid": f"{writer}-{number}", "message": pad}, writer, number)


def compaction(writer: int, number: int) -> bytes:
    """Return the line of a compaction, a row of the writer's like others."""
    fields = {"type": "system", "subtype": "compact_boundary", "uuid": f"{writer}-{number}"}
    return _line({**fields, "compactMetadata": {"trigger": "auto"}}, writer, number)


def _line(fields: dict[str, Any], writer: int, number: int) -> bytes:
    fields |= {"writer": writer, "number": number}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def told(line: bytes) -> tuple[int, int | None] | None:
    """Return whose line this is and its number, None for one of those that are all the same.

    Returns None if it is no whole line of a writer.
    """
    if same := _SAME_ROW.fullmatch(line):
        return int(same[1]), None
    if not (match := _ROW.fullmatch(line)):
        return None
    writer, number = int(match[1]), int(match[2])
    return (writer, number) if line in {row(writer, number), compaction(writer, number)} else None


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def append(live: Path, line: bytes, hold: float = 0) -> float:
    """Append a line as a client does; return how many seconds it had to wait for the file."""
    begun = time.perf_counter()
    fd = os.open(live, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    waited = time.perf_counter() - begun
    if hold:
        time.sleep(hold)
    os.write(fd, line)
    os.close(fd)
    return waited


def take_back(live: Path, mark: bytes, flags: int = 0) -> bool:
    """Take the last row with this mark back, as 2.1.112 does if it is near the file's end.

    Returns whether it was there. `flags` are for opening the file.
    """
    fd = os.open(live, os.O_RDWR | flags)
    try:
        size = os.fstat(fd).st_size
        start = max(0, size - _END)
        end = os.pread(fd, size - start, start)
        at = end.rfind(mark)
        newline = end.rfind(b"\n", 0, max(at, 0))
        if at < 0 or (newline < 0 and start):
            return False
        following = end.find(b"\n", at + len(mark))
        rest = end[following + 1 :] if following >= 0 else b""
        os.ftruncate(fd, start + newline + 1)
        if rest:
            os.pwrite(fd, rest, start + newline + 1)
    finally:
        os.close(fd)
    return True


def written_anew(data: bytes, uuid: str) -> bytes:
    """Return a whole session without a row, as 2.0.76 writes it, and 2.1.112 if it is far back."""
    return b"\n".join(line for line in data.split(b"\n") if not _is_row(line, uuid))


def _is_row(line: bytes, uuid: str) -> bool:
    try:
        return bool(json.loads(line)["uuid"] == uuid)
    except (ValueError, KeyError, TypeError):
        return False


@contextlib.contextmanager
def coming_late(home: Home, deed: Callable[[], object]) -> Iterator[list[object]]:
    """Have a client do something, once, as soon as the old file's lease goes behind the swap.

    Yields what came of it. Whoever found the old file under the name before can come no earlier.
    """
    release, done = locks.release_lease, list[object]()

    def releasing(fd: int) -> None:
        release(fd)
        if home.pack.exists() and not home.pack.samefile(home.live) and not done:
            done.append(deed())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locks, "release_lease", releasing)
        yield done


class Turns:
    """What writers agree on among themselves where one of them edits in place; rotators do not.

    Such an edit loses what others append between its reading and its writing, and that is the
    client's own doing. And a client takes back what it has just written, so that no compaction
    comes in between.
    """

    def __init__(self, folder: Path) -> None:
        self._files = (folder / "rows", folder / "compactions")
        for file in self._files:
            file.touch()

    @contextlib.contextmanager
    def rows(self, *, alone: bool) -> Iterator[None]:
        """Append in the block, or edit with nobody else appending."""
        with _locked(self._files[0], alone=alone):
            yield

    @contextlib.contextmanager
    def compactions(self, *, alone: bool) -> Iterator[None]:
        """Compact in the block, or keep others from it."""
        with _locked(self._files[1], alone=alone):
            yield


@contextlib.contextmanager
def _locked(file: Path, *, alone: bool) -> Iterator[None]:
    fd = os.open(file, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        os.close(fd)


class Writer:
    """One writer at work."""

    def __init__(
        self,
        live: Path,
        writer: int,
        habits: Habits,
        turns: Turns | None,
        chance: random.Random,
    ) -> None:
        self._live, self._writer, self._habits, self._turns = live, writer, habits, turns
        self._chance = chance
        self._waits: list[float] = []
        self._removed: set[int] = set()
        self.rows = 0

    def write(self) -> None:
        """Append a row, and perhaps take it back."""
        if self._turns is None:
            self._append()
        elif is_same(self.rows) or self._chance.random() >= self._habits.takes_back:
            with self._turns.rows(alone=False):
                self._append()
        else:
            with self._turns.compactions(alone=False):
                with self._turns.rows(alone=False):
                    self._append()
                self._pause()
                with self._turns.rows(alone=True):
                    self._take_back(self.rows - 1)
        self._pause()

    def _pause(self) -> None:
        time.sleep(self._chance.random() * self._habits.pause)

    def _append(self) -> None:
        hold = self._chance.random() * self._habits.hold
        self._waits.append(append(self._live, row(self._writer, self.rows), hold))
        self.rows += 1

    def _take_back(self, number: int) -> None:
        if take_back(self._live, b'"uuid":"%d-%d"' % (self._writer, number)):
            self._removed.add(number)

    @property
    def wrote(self) -> Wrote:
        """What was written up to now."""
        return Wrote(self.rows, frozenset(self._removed), waits=tuple(self._waits))
