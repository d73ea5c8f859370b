"""A client trims its own session at the moment in which it is rotated: no line is lost.

The client appends, compacts and trims by the order of calls that 2.1.287 to 2.1.332 have, and
remembers every line that it wrote. What it trims has a second name: of its own if it is told to
`keep`, else of the hook, which comes before each compaction.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.errors import InUseError, SessrotateError
from sessrotate.in_place import operations
from sessrotate.system import in_use
from support import command_line, homes
from support.abilities import needs_leases
from support.command_line import boundary, row
from support.homes import silent
from support.processes import forked
from support.trimming import kept_name, trimmed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection
    from pathlib import Path

    from support.homes import Home

pytestmark: Final = pytest.mark.race

DATA: Final = command_line.session(boundaries=2)
ROUNDS: Final = 100
TURNS: Final = 2
PAUSE: Final = 0.012
"""Seconds between two steps of the client, at most."""

TURN: Final = 0.12
"""Seconds from a trim to the next compaction, at least: it takes clients some."""

EDGE: Final = 4096
"""Bytes that a client compares at the head, the middle and the end before it replaces its file."""

WAIT: Final = 0.05


@dataclass
class Trimmer:
    """A client in its process, and every line that it wrote."""

    live: Path
    chance: random.Random
    is_keeping: bool
    numbers: Iterator[int] = field(default_factory=lambda: count(1000))
    written: list[bytes] = field(default_factory=list)
    trims: int = 0

    def live_on(self) -> None:
        """Talk, compact and trim, some times."""
        for _ in range(TURNS):
            self.append(*(self.row() for _ in range(self.chance.randint(1, 3))))
            if not self.is_keeping:
                self.link()  # the hook's, before the compaction is written
            self.append(boundary(next(self.numbers)), self.row())
            self.append(self.row())
            self.trim()
            self.append(b'{"type":"mode","sessionId":"s","mode":"default"}\n')

    def row(self) -> bytes:
        return row(next(self.numbers))

    def append(self, *lines: bytes) -> None:
        data = b"".join(lines)
        with self.live.open("ab", buffering=0) as file:
            file.write(data)
        self.written.append(data)
        time.sleep(self.chance.uniform(0, PAUSE))

    def link(self) -> None:
        """Give the live file a second name, unless it has one."""
        name = kept_name(self.live)
        name.parent.mkdir(0o700, parents=True, exist_ok=True)
        if not any(path.samefile(self.live) for path in name.parent.iterdir()):
            name.hardlink_to(self.live)

    def trim(self) -> None:
        """Put a smaller file in the place of the live one, if that is still what it was."""
        with self.live.open("rb") as file:
            data = file.read()
        was = self.live.stat().st_ino
        draft = self.live.with_name(f"{self.live.name}.compact.tmp.00000000")
        draft.write_bytes(trimmed(data))
        time.sleep(self.chance.uniform(0, PAUSE / 4))
        if self.is_keeping:
            self.link()
        with self.live.open("rb") as file:
            now = file.read()
        if self.live.stat().st_ino != was or edges(now, len(data)) != edges(data, len(data)):
            draft.unlink()
            return
        with draft.open("ab") as file:
            file.write(now[len(data) :])
        draft.rename(self.live)
        self.trims += 1
        time.sleep(TURN)


def edges(data: bytes, size: int) -> tuple[bytes, ...]:
    middle = size // 2
    return data[:EDGE], data[middle : middle + EDGE], data[max(0, size - EDGE) : size]


def living(path: Path, chance: random.Random, is_keeping: bool, orders: Connection) -> None:
    """Live a life for each order, and tell what was written in it."""
    while orders.recv() is not None:
        client = Trimmer(path, chance, is_keeping)
        client.live_on()
        orders.send((b"".join(client.written), client.trims))


def said(home: Home, error: Exception) -> str:
    """Return what a refusal says, without the paths of this run."""
    return re.sub(rf"{home.config}\S+/", "", re.sub(r"\d{13}-[0-9a-f]{8}", "KEPT", str(error)))


def rotate(home: Home, met: Counter[str]) -> None:
    try:
        done = operations.rotate_session(home.where, WAIT, silent, live=True)
    except InUseError:
        met["in use"] += 1
    except SessrotateError as error:
        met[said(home, error)] += 1
    else:
        if done.refusal is not None:
            met[said(home, done.refusal)] += 1
        met["rotated"] += done.seconds is not None
        met["put together"] += bool(done.together)


@needs_leases
@pytest.mark.parametrize("is_keeping", [False, True], ids=["the hook", "keep"])
def test_no_line_of_a_client_that_trims_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: str, *, is_keeping: bool
) -> None:
    monkeypatch.setattr(in_use, "clients", lambda *_: iter(()))
    chance, met, trims = random.Random(seed), Counter[str](), 0
    home = homes.home(tmp_path, monkeypatch, DATA)
    client = partial(living, home.live, random.Random(f"client {seed}"), is_keeping)
    with forked(client) as orders:
        for number in range(ROUNDS):
            shutil.rmtree(home.config / "sessrotate", ignore_errors=True)
            shutil.rmtree(home.live.with_suffix(""), ignore_errors=True)
            home.live.unlink(missing_ok=True)
            home.live.write_bytes(DATA)
            orders.send(True)
            while not orders.poll():
                rotate(home, met)
                time.sleep(chance.uniform(0, PAUSE))
            written, done = orders.recv()
            trims += done
            rotate(home, met)
            rotate(home, met)
            expected = DATA + written
            with suppress(SessrotateError):
                if home.stitched() == expected:
                    met["whole"] += 1
                    continue
            # It is refused then, and every line is in some file.
            there = b"".join(p.read_bytes() for p in home.config.rglob("*") if p.is_file())
            lost = [line for line in expected.splitlines(keepends=True) if line not in there]
            assert lost == [], (number, met)
    assert met["whole"] > ROUNDS * 0.97, met
    assert min(trims, met["rotated"], met["put together"]) > ROUNDS // 4, (met, trims)
