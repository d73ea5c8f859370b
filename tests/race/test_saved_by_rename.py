"""A program saves the session by rename every few milliseconds while it is changed in place.

The oracle knows what was saved last, and looks for it in all files by itself. Whatever was saved
before that, the program has overwritten by its next save, as it would have without us.
"""

from __future__ import annotations

import random
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.errors import SessrotateError
from sessrotate.retention import bring_back, put_away
from sessrotate.system import in_use, zstd
from support import command_line, homes
from support.command_line import row
from support.newcomers import needs_exchange, saved
from support.processes import forked

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

    from support.homes import Home

pytestmark: Final = pytest.mark.race

DATA: Final = command_line.session(boundaries=2)
ROUNDS: Final = 300
FIRST: Final = 1000
PAUSE: Final = 0.003
"""Seconds between two saves, at most."""

WAIT: Final = 0.05


def saving(path: Path, chance: random.Random, orders: Connection) -> None:
    """Save as often as told, and tell the last number then, which is in the row at the end."""
    number = FIRST
    while (count := orders.recv()) is not None:
        for _ in range(count):
            number += 1
            with suppress(FileNotFoundError):
                saved(path, DATA + row(number))
            time.sleep(chance.uniform(0, PAUSE))
        orders.send(number)


def rotate(home: Home) -> None:
    home.rotate(WAIT, adopt=True)


def restore(home: Home) -> None:
    home.restore(WAIT)


def put_it_away(home: Home) -> None:
    put_away.put_away(home.where, WAIT)


def bring_it_back(home: Home) -> None:
    bring_back.bring_back(home.where, WAIT)


PREPARED: Final[dict[Callable[[Home], None], Callable[[Home], None]]] = {
    restore: rotate,
    bring_it_back: put_it_away,
}


@dataclass
class Tally:
    """How often a deed was done, and how often it was refused."""

    rounds: int = 0
    done: int = 0
    refused: int = 0
    lost: list[int] = field(default_factory=list)


def is_there(config: Path, line: bytes) -> bool:
    """Tell whether a line is in any file, compressed or not."""
    for path in config.rglob("*"):
        if path.is_file() and path.suffix != ".zst" and line in path.read_bytes():
            return True
        if path.suffix == ".zst":
            with path.open("rb") as file:
                if line in b"".join(zstd.decompressed(file.read, 1 << 20)):
                    return True
    return False


@pytest.mark.parametrize("deed", [rotate, restore, put_it_away, bring_it_back])
def test_the_last_save_is_never_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: Callable[[Home], None], seed: str
) -> None:
    if deed in {rotate, restore}:
        needs_exchange()
    monkeypatch.setattr(in_use, "writers", lambda *_: iter(()))
    tally, chance = Tally(), random.Random(seed)
    home = homes.home(tmp_path, monkeypatch, DATA)
    with forked(partial(saving, home.live, random.Random(f"saver {seed}"))) as orders:
        while tally.rounds < ROUNDS or (not tally.refused and tally.rounds < 3 * ROUNDS):
            tally.rounds += 1
            if (archives := home.config / "sessrotate").exists():
                shutil.rmtree(archives)
            home.live.write_bytes(DATA)
            if deed in PREPARED:
                PREPARED[deed](home)
            orders.send(chance.randint(1, 12))
            while not orders.poll():
                try:
                    deed(home)
                    tally.done += 1
                except SessrotateError:
                    tally.refused += 1
            number = orders.recv()
            if not is_there(home.config, row(number)):
                tally.lost.append(number)
    assert tally.lost == [], tally
    assert tally.refused, f"not raced: they never met: {tally}"
