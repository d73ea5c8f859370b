"""What a command looks at grows with the sessions, however many are in one folder."""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from sessrotate.reading.search import Query
from sessrotate.reports import machine_search
from support import homes
from support.command_line import ID, write
from support.talks import talk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUERY = Query(re.compile("no such words"), lambda view: view.kind)


def counting(
    found: Counter[str], name: str, real: Callable[..., Any], *args: Any, **options: Any
) -> Any:
    found[name] += 1
    return real(*args, **options)


def looks(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often a search through so many sessions opens files and lists folders."""
    home = homes.home(folder, monkeypatch, talk())
    for number in range(1, count):
        other = f"{number:08x}{ID[8:]}"
        write(home.live.with_name(f"{other}.jsonl"), talk().replace(ID.encode(), other.encode()))
    found: Counter[str] = Counter()
    with monkeypatch.context() as counted:
        for name in ("open", "listdir", "scandir", "read", "stat", "lstat"):
            counted.setattr(os, name, partial(counting, found, name, getattr(os, name)))
        known = machine_search.known(lambda path, reason: pytest.fail(f"{path}: {reason}"))
        assert len(known) == count
        assert len([*machine_search.found(known, QUERY, lambda *_: "")]) == count
    return found


def test_a_search_through_twice_as_many_sessions_looks_at_twice_as_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = looks(tmp_path / "once", 20, monkeypatch)
    twice = looks(tmp_path / "twice", 40, monkeypatch)
    assert once["open"] >= 20
    assert {name: count for name, count in twice.items() if count > 2 * once[name]} == {}
