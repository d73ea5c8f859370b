"""The list has every session that somebody used, by its edges, wherever it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sessrotate.archive import place
from sessrotate.in_place import aside
from sessrotate.reports import SessionInfo, discovery, file_edges, listing
from sessrotate.retention import prune, put_away
from sessrotate.retention.policy import Policy
from support import command_line, homes, oracle
from support.command_line import ID
from support.homes import PROJECT, Home
from support.lines import as_lines

DATA = command_line.session(boundaries=3)
OTHER = "0ddba11a-0000-4000-a000-00000000000a"


def user(said: str, **fields: Any) -> dict[str, Any]:
    return {"type": "user", "sessionId": OTHER, "message": {"content": said}, **fields}


def only() -> SessionInfo:
    (found,) = discovery.sessions()
    return found.info


def test_a_live_session_is_listed_with_what_its_edges_say(home: Home) -> None:
    live = home.live.with_name(f"{OTHER}.jsonl")
    home.live.rename(live)
    said = {"cwd": "/home/somebody/é", "gitBranch": "main", "uuid": "u1"}
    rows = [
        user("First", timestamp="2026-03-01T12:00:00.000Z", **said),
        user("x" * 200_000),
        user("Last", timestamp="2026-03-01T13:00:00.000Z", gitBranch="other"),
    ]
    live.write_bytes(as_lines(*rows))
    (session,) = discovery.sessions()
    assert session.place == place.of(live)
    found, edges = session.info, session.sight
    assert (found.bytes, found.archived_bytes, found.segments) == (live.stat().st_size, 0, 0)
    assert found.modified == live.stat().st_mtime_ns / 1e9
    assert (str(edges.title), edges.folder, edges.first) == ("First", "/home/somebody/é", "u1")
    assert edges.branch == "other"
    assert (edges.started, edges.ended) == ("2026-03-01T12:00:00.000Z", "2026-03-01T13:00:00.000Z")


def test_a_rotated_session_is_listed_as_it_was(home: Home) -> None:
    (before,) = discovery.sessions()
    home.rotate()
    (session,) = discovery.sessions()
    tail = oracle.bodies(DATA)[-1]
    assert session.place == before.place
    assert session.sight == before.sight
    found = session.info
    assert found.bytes == home.live.stat().st_size
    assert found.archived_bytes == len(DATA) - len(tail)
    assert found.segments == 3


def test_a_session_whose_live_file_is_gone_is_listed_by_its_archive(home: Home) -> None:
    (before,) = discovery.sessions()
    home.rotate()
    home.live.unlink()
    (session,) = discovery.sessions()
    found = session.info
    assert (session.place, session.file) == (before.place, None)
    assert (found.is_live, found.bytes, found.segments) == (False, 0, 3)
    assert found.title == before.info.title
    assert found.modified == home.archive.stat().st_mtime_ns / 1e9


def test_a_title_that_a_rotation_carried_is_the_sessions(home: Home) -> None:
    title = {"type": "custom-title", "customTitle": "A name", "sessionId": ID}
    first, *rest = oracle.bodies(DATA)
    home.live.write_bytes(b"".join([first, rest[0], as_lines(title), *rest[1:]]))
    home.rotate()
    home.append(as_lines(*[user("x" * 2000)] * 40))
    assert str(only().title) == "A name"


def test_what_nobody_used_is_hidden_unless_asked_for(home: Home) -> None:
    folder = home.live.parent
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "warm.jsonl").write_bytes(as_lines(user("Warmup")))
    (folder / "side.jsonl").write_bytes(as_lines(user("Go", isSidechain=True)))
    (folder / "agent-1.jsonl").write_bytes(as_lines(user("Go")))
    (folder / "notes.txt").write_bytes(b"none")
    (folder / ".jsonl").write_bytes(DATA)
    assert [each.id for each in listing.sessions()] == [ID]
    told = {each.id: each.standing for each in listing.sessions(hidden=True)}
    others = {"empty": "empty", "warm": "warm-up", "side": "agent", OTHER: "agent"}
    assert told == {ID: "session", **others}


def test_locks_and_what_was_put_aside_are_no_projects(home: Home) -> None:
    home.rotate()
    aside.put_aside(home.where)
    assert [each.info.path.parent.name for each in discovery.sessions()] == [PROJECT]


# ── archives, and what is put away ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("called", [ID, OTHER])
def test_what_was_pruned_is_not_archived_any_more_but_takes_room_in_the_trash(
    home: Home, called: str
) -> None:
    """Also of a file that was given another name than its rows have."""
    home.live.write_bytes(DATA.replace(ID.encode(), called.encode()))
    home.rotate()
    before = only()
    policy = Policy(keep_last=1)
    planned = prune.prepare([home.where], policy, 1.8e9, lambda _done: None)
    assert [done.error for done in prune.execute(planned, 0.2)] == [None]
    found = only()
    assert found.archived_bytes == len(oracle.bodies(DATA)[2])
    assert found.archived_disk_bytes == homes.on_disk(home.archive)
    assert (found.segments, found.compactions) == (before.segments, before.compactions)
    assert (found.project, found.last_used) == (before.project, before.last_used)


@pytest.mark.parametrize("is_rotated", [False, True])
@pytest.mark.parametrize("padding", [0, 60_000])
def test_a_session_that_is_put_away_is_listed_by_what_it_says(
    home: Home, is_rotated: bool, padding: int
) -> None:
    home.live.write_bytes(command_line.session(boundaries=3, padding=padding))
    if is_rotated:
        home.rotate()
    before = only()
    assert before.archived_bytes is not None
    put_away.put_away(home.where, 0.2)
    found = only()
    assert (found.id, found.is_live) == (before.id, False)
    assert (found.bytes, found.live_tail_bytes) == (0, 0)
    assert found.archived_bytes == len(command_line.session(boundaries=3, padding=padding))
    assert found.archived_disk_bytes == homes.on_disk(home.archive)
    assert found.title == before.title
    assert found.compactions in {None, 3}
    assert found.modified == before.modified


def test_an_archive_that_says_nothing_is_listed_all_the_same(home: Home) -> None:
    home.rotate()
    home.live.unlink()
    (home.archive / "manifest.json").write_bytes(b"{}")
    told: dict[str, str] = {}
    (session,) = discovery.sessions(unread=told.__setitem__)
    found = session.info
    assert (found.id, found.archived_bytes, found.standing) == (ID, None, "session")
    assert found.archived_disk_bytes == homes.on_disk(home.archive)
    assert list(told) == [str(home.archive)]


# ── what is cheap to know ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_rotated", [False, True])
def test_compactions_live_tail_and_gain_of_a_live_file_are_left_to_a_scan(
    home: Home, is_rotated: bool
) -> None:
    if is_rotated:
        home.rotate()
    found = only()
    assert (found.compactions, found.live_tail_bytes, found.gain_bytes) == (None, None, None)
    assert found.segments == (3 if is_rotated else 0)


# ── unreadable, vanishing, growing ───────────────────────────────────────────────────────────


def test_what_cannot_be_read_is_shown_with_its_size_and_told(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def guarded(path: Any, *rest: Any, **more: Any) -> int:
        if str(path) == str(home.live):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", guarded)
    told: dict[str, str] = {}
    (session,) = discovery.sessions(unread=told.__setitem__)
    found = session.info
    assert (found.id, found.bytes, session.sight.folder) == (ID, len(DATA), None)
    assert (found.compactions, found.live_tail_bytes) == (None, None)
    assert told == {str(home.live): "Permission denied"}


def test_a_folder_that_cannot_be_read_is_told_and_hides_no_other(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = home.live.parent.with_name("-other")
    command_line.write(other / f"{OTHER}.jsonl", DATA)
    real = os.scandir

    def guarded(path: Any) -> Any:
        if str(path) == str(other):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", guarded)
    told: dict[str, str] = {}
    assert [each.info.id for each in discovery.sessions(unread=told.__setitem__)] == [ID]
    assert told == {str(other): "Permission denied"}


def test_what_goes_away_meanwhile_is_passed_over(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        command_line.write(home.live.with_name(f"{number}{OTHER[1:]}.jsonl"), DATA)
    real = file_edges.of

    def vanishing(path: Any) -> Any:
        Path(path).unlink()
        return real(path)

    told: dict[str, str] = {}
    monkeypatch.setattr(file_edges, "of", vanishing)
    assert list(discovery.sessions(unread=told.__setitem__)) == []
    assert told == {}


def test_a_file_that_grows_is_told_as_of_one_moment(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, grown, before = os.read, list[bool](), only()

    def growing(fd: int, size: int) -> bytes:
        home.append(command_line.row(99, timestamp="2099-03-01T12:00:00.000Z"))
        grown.append(True)
        return real(fd, size)

    monkeypatch.setattr(os, "read", growing)
    found = only()
    assert grown
    assert (found.bytes, found.ended) == (len(DATA), before.ended)


# ── what continues what ──────────────────────────────────────────────────────────────────────


def test_a_clone_of_a_rotated_session_continues_it(home: Home) -> None:
    clone = home.live.with_name(f"{OTHER}.jsonl")
    late = as_lines(user("On", timestamp="2099-03-01T12:00:00.000Z"))
    clone.write_bytes(b"".join(oracle.bodies(DATA)[1:2]) + late)
    home.rotate()
    assert [(path.stem, link.session, link.reason) for path, link in listing.links()] == [
        (OTHER, ID, "same rows")
    ]


@pytest.mark.parametrize("is_rotated", [True, False])
def test_when_it_was_used_is_said_as_before_once_it_is_put_away(
    home: Home, is_rotated: bool
) -> None:
    if is_rotated:
        home.rotate()
    os.utime(home.live, (4e9, 4e9))
    before = only()
    put_away.put_away(home.where, 0.2, lambda _done: None)
    after = only()
    assert after.is_away
    assert (after.last_used, after.ended) == (before.last_used, before.ended)
    assert before.last_used < 2e9
