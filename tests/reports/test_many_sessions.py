"""What a command looks at grows with the sessions, however many are in one folder."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from sessrotate import doctor, status
from sessrotate.archive import place
from sessrotate.cli.archive import _plans
from sessrotate.clients.claude import client as claude
from sessrotate.in_place import operations
from sessrotate.job import config
from sessrotate.reading.search import Query
from sessrotate.reports import discovery, machine_search
from sessrotate.retention import put_away
from support import homes
from support.command_line import ID, write
from support.talks import talk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUERY = Query((re.compile("no such words"),), lambda view: view.kind)
LATER = 4e9


def search() -> list[object]:
    machine = machine_search.Machine(lambda path, reason: pytest.fail(f"{path}: {reason}"))
    known = [*chain.from_iterable(machine.rounds())]
    return [*machine_search.found(known, QUERY, lambda *_: "", around=machine.around)]


LOOKS: dict[str, Callable[[], object]] = {
    "search": search,
    "list": lambda: [*discovery.sessions()],
    "status": lambda: status.look(config.parsed(""), time.time(), homes.silent),
    "doctor": doctor.look,
    "archive": lambda: [*_plans(put_away.wanted(1.0, None, LATER, LATER))],
}


def counting(
    found: Counter[str], name: str, real: Callable[..., Any], *args: Any, **options: Any
) -> Any:
    said = real(*args, **options)
    is_own = not str(args[0]).startswith("/proc")  # what other processes do is their business
    found[name] += is_own
    if name == "listdir" and is_own:
        found["names that were listed"] += len(said)
    return said


def looked(
    look: Callable[[], object],
    folder: Path,
    count: int,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_rotated: bool = False,
) -> Counter[str]:
    """Return how often something asks the system, of so many sessions in one folder."""
    home = homes.home(folder, monkeypatch, talk())
    for number in range(1, count):
        other = f"{number:08x}{ID[8:]}"
        write(home.live.with_name(f"{other}.jsonl"), talk().replace(ID.encode(), other.encode()))
    assert len([*claude.sessions()]) == count
    for path in [*claude.sessions()] if is_rotated else ():
        assert operations.rotate_session(place.of_live(path), 1, homes.silent).seconds is not None
    look()  # what is loaded when it is first needed
    found: Counter[str] = Counter()
    with monkeypatch.context() as counted:
        for name in ("open", "listdir", "scandir", "read", "stat", "lstat"):
            counted.setattr(os, name, partial(counting, found, name, getattr(os, name)))
        look()
    return found


@pytest.mark.parametrize("name", LOOKS)
def test_twice_as_many_sessions_in_a_folder_take_twice_as_many_looks(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = looked(LOOKS[name], tmp_path / "once", 20, monkeypatch)
    twice = looked(LOOKS[name], tmp_path / "more", 40, monkeypatch)
    assert once["stat"] + once["lstat"] + once["open"] >= 20
    assert {each: n for each, n in twice.items() if n > 2 * once[each]} == {}


ROTATED = {
    "search": [15, 4, 19],
    "list": [7, 2, 9],
    "status": [2, 3, 20],
    "doctor": [5, 3, 19],
}
"""How often each rotated session has files opened, folders listed, and entries looked at.

Not of `archive`: that asks all processes who has a file open.
"""


@pytest.mark.parametrize("name", ROTATED)
def test_a_rotated_session_is_looked_at_no_more_often_than_it_needs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = looked(LOOKS[name], tmp_path / "few", 3, monkeypatch, is_rotated=True)
    more = looked(LOOKS[name], tmp_path / "more", 8, monkeypatch, is_rotated=True)
    kinds = (("open",), ("listdir", "scandir"), ("stat", "lstat"))
    assert [sum(more[e] - few[e] for e in kind) / 5 for kind in kinds] == ROTATED[name]
