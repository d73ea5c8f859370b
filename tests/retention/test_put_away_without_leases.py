"""A session is put away where no lease proves that nobody writes to it any more."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import away_file
from sessrotate.retention import bring_back, put_away
from sessrotate.system import in_use
from support import command_line, homes
from support.command_line import ID, row
from support.homes import Home
from support.portable import lack

if TYPE_CHECKING:
    from pathlib import Path

DATA: Final = command_line.session(boundaries=3, padding=20_000)
LATE: Final = row(96)
DAY: Final = 86_400


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    homes.without_leases(monkeypatch)
    lack(monkeypatch, "open_files")
    return homes.home(tmp_path, monkeypatch, DATA)


def away(home: Home) -> Path:
    found = away_file.away(home.where)
    assert found is not None
    return found


def aged(home: Home, seconds: float) -> None:
    """Let time pass since the session was archived."""
    then = time.time() - seconds
    for path in (home.archive / "archived").rglob("*"):
        os.utime(path, (then, then))
    note = home.archive / "record.json"
    found = json.loads(note.read_bytes())
    found["away"]["at"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(then))
    note.write_bytes(json.dumps(found).encode() + b"\n")


def test_what_a_held_descriptor_writes_after_the_archiving_comes_back(home: Home) -> None:
    writer = os.open(home.live, os.O_WRONLY | os.O_APPEND)
    put_away.put_away(home.where, 1)
    os.write(writer, LATE)
    put_away.put_away(home.where, 1)
    os.write(writer, LATE)
    bring_back.bring_back(home.where, 1)
    os.write(writer, LATE)
    os.close(writer)
    assert home.live.read_bytes() == DATA + 3 * LATE


def test_it_is_compressed_when_it_has_been_quiet_for_a_day(home: Home) -> None:
    put_away.put_away(home.where, 1)
    aged(home, 0.9 * DAY)
    assert home.where not in put_away.wanted(0, None, time.time(), 0)
    put_away.put_away(home.where, 1)
    assert away(home).read_bytes() == DATA
    aged(home, 1.1 * DAY)
    assert home.where in put_away.wanted(None, None, time.time(), 0)
    put_away.put_away(home.where, 1)
    assert away(home).name == f"{ID}.jsonl.sessrotate.zst"
    assert home.where not in put_away.wanted(None, None, time.time(), 0)
    bring_back.bring_back(home.where, 1)
    assert home.live.read_bytes() == DATA


def test_a_file_that_a_process_is_known_to_have_open_stays_plain(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_away.put_away(home.where, 1)
    aged(home, 9 * DAY)
    monkeypatch.setattr(in_use, "_writing", lambda files: [(7, file) for file in files])
    put_away.put_away(home.where, 1)
    assert away(home).read_bytes() == DATA
