"""A deep list says what a parse of all lines says; and who runs is asked for all at once."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sessrotate.clients.preview import Continues
from sessrotate.errors import StorageError
from sessrotate.reading import session
from sessrotate.reports import SessionInfo, listing
from sessrotate.segments import headers, scan
from sessrotate.system import in_use
from support import command_line, fakes, oracle, processes
from support.command_line import ID
from support.homes import PROJECT, Home

DATA = command_line.session(boundaries=3)
OTHER = "0ddba11a-0000-4000-a000-00000000000a"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "claude"


def entries(told: dict[str, str] | None = None) -> dict[str, SessionInfo]:
    found = listing.sessions(hidden=True, on_unread=({} if told is None else told).__setitem__)
    return {each.id: each for each in found}


def deepened(told: dict[str, str] | None = None) -> dict[str, SessionInfo]:
    take = ({} if told is None else told).__setitem__
    found = listing.deepened(
        listing.sessions(hidden=True, on_unread=take), lambda _done: None, take
    )
    return {each.id: each for each in found}


# ── scanned ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("folder", sorted(FIXTURES.iterdir()), ids=lambda path: path.name)
def test_what_real_sessions_hold_is_told_as_by_a_parse_of_all_of_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder))
    cheap, deep = entries(), deepened()
    live = [path for path in folder.glob("projects/*/*.jsonl") if "agent-" not in path.name]
    assert cheap.keys() == deep.keys() == {path.stem for path in live}
    for path in live:
        data = path.read_bytes()
        offsets = oracle.boundaries(data)
        tail = len(data) - (offsets[-1] if offsets else 0)
        told = deep[path.stem]
        assert (told.compactions, told.live_tail_bytes, told.bytes) == (
            len(offsets),
            tail,
            len(data),
        )
        assert cheap[path.stem].compactions in {None, len(offsets)}
        assert cheap[path.stem].live_tail_bytes in {None, tail}
        rows = [json.loads(line) for line in data.splitlines()]
        folders = [row["cwd"] for row in rows if "cwd" in row]
        times = [row["timestamp"] for row in rows if "timestamp" in row]
        assert told.project == folders[0]
        assert told.started is not None
        assert told.started[:19] == times[0][:19]  # a snapshot before it may have its own
        assert told.ended is not None
        assert told.ended >= max(row["timestamp"] for row in rows if row["type"] == "assistant")
        assert told.title.text == _title(path)


def _title(path: Path) -> str:
    """Return the title by all of the file."""
    with session.open_session(path) as opened:
        return str(opened.title())


@pytest.mark.parametrize("padding", [0, 30_000])
def test_a_rotated_session_has_the_compactions_and_the_tail_it_had(
    home: Home, padding: int
) -> None:
    data = command_line.session(boundaries=4, padding=padding)
    home.live.write_bytes(data)
    before = deepened()[ID]
    home.rotate()
    found = deepened()[ID]
    assert (found.compactions, found.live_tail_bytes) == (4, len(oracle.bodies(data)[-1]))
    assert (before.compactions, before.live_tail_bytes) == (4, found.live_tail_bytes)
    more = command_line.boundary(99) + command_line.row(100, pad="p" * 200_000)
    home.append(more)
    found = deepened()[ID]
    assert (found.compactions, found.live_tail_bytes) == (5, len(more))


def test_compactions_that_were_carried_are_not_counted_twice(home: Home) -> None:
    home.rotate()
    header_line, _, rest = home.live.read_bytes().partition(b"\n")
    header = headers.parse_live(header_line + b"\n", ID)
    assert header is not None
    carried = command_line.boundary(7)
    bare = rest[header.carried_bytes :]
    home.live.write_bytes(
        headers.live_line(replace(header, carried_bytes=len(carried))) + carried + bare
    )
    found = deepened()[ID]
    assert (found.compactions, found.live_tail_bytes) == (3, len(bare))


@pytest.mark.parametrize("data", [b"", b"no session of anybody\n", bytes(99) + b"x\n" * 99_999])
def test_a_file_that_no_client_claims_is_not_called_unreadable(home: Home, data: bytes) -> None:
    home.live.write_bytes(data)
    told: dict[str, str] = {}
    found = deepened(told)[ID]
    known = (0, 0, 0) if not data else (None, None, None)
    assert (found.compactions, found.live_tail_bytes, found.gain_bytes) == known
    assert told == {}


def test_one_that_cannot_be_scanned_stays_as_it_is_and_is_told(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.live.write_bytes(command_line.session(boundaries=4, padding=30_000))

    def failing(*_: Any) -> Any:
        raise StorageError("Cannot read the session: no.")

    monkeypatch.setattr(scan, "scan", failing)
    told: dict[str, str] = {}
    found = deepened(told)[ID]
    assert (found.compactions, told) == (None, {str(home.live): "Cannot read the session: no."})


def test_what_continues_what_is_told(home: Home) -> None:
    clone = home.live.with_name(f"{OTHER}.jsonl")
    late = command_line.row(50, timestamp="2099-03-01T12:00:00.000Z")
    clone.write_bytes(oracle.bodies(DATA)[1] + late)
    found = deepened()
    assert found[ID].continues is None
    assert found[OTHER].continues == Continues(ID, "same rows")
    assert entries()[OTHER].continues is None


# ── all clients ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("home")
def test_sessions_of_another_client_are_listed_and_scanned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "fakes").mkdir()
    path = tmp_path / "fakes" / "fake-one.txt.jsonl"
    path.write_bytes(fakes.SESSION + b"x" * 200_000)
    fakes.registered(monkeypatch, fakes.Fake(tmp_path / "fakes"))
    assert entries().keys() == {ID, "one"}
    told = deepened()["one"]
    assert (told.client, told.path, told.bytes) == ("fake", path, path.stat().st_size)
    assert (told.compactions, told.live_tail_bytes) == (2, path.stat().st_size - fakes.CUTS[1])
    assert told.archived_bytes == 0


# ── who runs ─────────────────────────────────────────────────────────────────────────────────


def test_running_is_who_says_so_and_who_writes(home: Home) -> None:
    for number in (1, 2, 3):
        command_line.write(home.live.with_name(f"{number}{OTHER[1:]}.jsonl"), DATA)
    processes.register(home, os.getpid(), sessionId=f"1{OTHER[1:]}")
    writes, reads = (home.live.with_name(f"{number}{OTHER[1:]}.jsonl") for number in (2, 3))
    with processes.holding((writes, os.O_WRONLY | os.O_APPEND), (reads, os.O_RDONLY)):
        running = {name for name, each in entries().items() if each.is_running}
    expected = {f"1{OTHER[1:]}"}
    if sys.platform.startswith("linux"):  # only there is told who writes
        expected.add(f"2{OTHER[1:]}")
    assert running == expected
    assert {name for name, each in entries().items() if each.is_running} == {f"1{OTHER[1:]}"}


def test_the_system_is_asked_once_for_all_sessions(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        command_line.write(home.live.with_name(f"{number:02}{OTHER[2:]}.jsonl"), DATA)
    asked, real = list[int](), in_use.written

    def counted(files: set[tuple[int, int]]) -> set[tuple[int, int]]:
        asked.append(len(files))
        return real(files)

    monkeypatch.setattr(in_use, "written", counted)
    monkeypatch.setattr(in_use, "clients", None)
    monkeypatch.setattr(in_use, "writers", None)
    assert len(entries()) == 21
    assert asked == [21]


@pytest.mark.usefixtures("home")
def test_a_project_without_a_folder_in_its_records_is_called_by_its_client() -> None:
    assert entries()[ID].project == PROJECT
