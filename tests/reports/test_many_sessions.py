"""What a command looks at grows with the sessions, however many are in one folder."""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from sessrotate import doctor
from sessrotate.cli.archive import _plans
from sessrotate.clients.claude import client as claude
from sessrotate.reading.search import Query
from sessrotate.reports import discovery, machine_search, on_disk
from sessrotate.retention import archive
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
    return [*machine_search.found(known, QUERY, lambda *_: "")]


LOOKS: dict[str, Callable[[], object]] = {
    "search": search,
    "list": lambda: [*discovery.sessions(hidden=True)],
    "status": on_disk.of_clients,
    "doctor": doctor.look,
    "archive": lambda: [*_plans(archive.wanted(1.0, None, LATER))],
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
    look: Callable[[], object], folder: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> Counter[str]:
    """Return how often something asks the system, of so many sessions in one folder."""
    home = homes.home(folder, monkeypatch, talk())
    for number in range(1, count):
        other = f"{number:08x}{ID[8:]}"
        write(home.live.with_name(f"{other}.jsonl"), talk().replace(ID.encode(), other.encode()))
    assert len([*claude.sessions()]) == count
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
