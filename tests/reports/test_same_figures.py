"""`list`, `report` and the status say the same of what is archived and on disk."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.archive import place
from sessrotate.render import size
from sessrotate.reports import listing, next_steps
from support import command_line, homes, oracle
from support.command_line import ID, called
from support.lines import as_lines

if TYPE_CHECKING:
    from pathlib import Path

    from support.homes import Home

DATA: Final = command_line.session(boundaries=3, padding=3_000)
TAIL: Final = len(oracle.bodies(DATA)[-1])
HISTORY: Final = len(DATA) - TAIL
PRUNED: Final = len(oracle.bodies(DATA)[0])

SESSIONS: Final = {
    name: f"{name}000-0000-4000-a000-00000000000a"
    for name in ("9ab10", "9ab20", "9ab30", "9ab40", "9ab50")
}
PLAIN, AWAY, BOTH, RESTORED, GONE = SESSIONS.values()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Make a home with a session rotated, and others put away, restored, pruned, and left alone."""
    made = homes.home(tmp_path, monkeypatch, DATA)
    for name in SESSIONS.values():
        live = made.live.with_name(f"{name}.jsonl")
        command_line.write(live, DATA.replace(ID.encode(), name.encode()))
    for words in (
        ("rotate", ID, BOTH, RESTORED, GONE),
        ("archive", AWAY, BOTH),
        ("restore", RESTORED),
        ("prune", GONE, "--keep-last", "2"),
    ):
        yes = [] if words[0] == "restore" else ["--yes"]
        ended = called(*words, *yes)
        assert ended.code == 0, ended
    return made


def listed() -> dict[str, dict[str, Any]]:
    return {each["session"]: each for each in called("list", "--hidden", "--json").document()}


def summed(name: str) -> int:
    return sum(each[name] or 0 for each in listed().values())


def reported() -> dict[str, Any]:
    found: dict[str, Any] = called("report", "--all", "--json").document()
    return found


@pytest.mark.usefixtures("home")
def test_the_report_of_a_session_has_the_title_that_lists_have() -> None:
    """Also where the segments that it begins with were pruned, and all of it was put away."""
    for session in (AWAY, BOTH, GONE):
        assert called("restore", session, "--keep-rotated").code in {0, 77}
    for session in (ID, *SESSIONS.values()):
        if session != PLAIN:
            called("rotate", session)
            assert called("prune", session, "--keep-last", "1", "--yes").code == 0
    assert called("archive", BOTH, ID, "--yes").code == 0
    titles = {name: each["title"] for name, each in listed().items()}
    assert len({*titles.values()}) > 1
    for session, title in titles.items():
        assert called("report", session, "--json").document()["title"] == title
    assert {each["session"]: each["title"] for each in reported()["sessions"]} == titles


def beside(home: Home, session: str = PLAIN) -> int:
    """Put what clients keep beside a session there; return what all of it takes of the disk."""
    folder = home.live.parent / session
    command_line.write(folder / "subagents" / "agent-1.jsonl", os.urandom(10_000))
    command_line.write(folder / "tool-results" / "a.txt", b"x" * 5)
    row = {"type": "user", "sessionId": session, "message": {"content": "Go"}}
    flat = home.live.with_name("agent-2.jsonl")
    command_line.write(flat, as_lines(row))
    return homes.on_disk(folder) + homes.on_disk(flat)


@pytest.mark.usefixtures("home")
def test_archived_is_as_much_history_wherever_it_is_said() -> None:
    right = {
        ID: HISTORY,
        PLAIN: 0,
        AWAY: len(DATA),
        BOTH: len(DATA),
        RESTORED: 0,
        GONE: HISTORY - PRUNED,
    }
    found = {name: each["archived_bytes"] for name, each in listed().items()}
    assert found == right
    report = reported()
    assert {each["session"]: each["archived_bytes"] for each in report["sessions"]} == right
    whole = sum(right.values())
    assert report["archived_bytes"] == sum(each["archived_bytes"] for each in report["clients"])
    assert (summed("archived_bytes"), report["archived_bytes"]) == (whole, whole)
    assert f"{size(whole)} archived, " in called("list").out
    assert f", {size(whole)} of it archived; " in called("report", "--all").out
    kinds = called("report", "--all", "--kinds", "--json").document()
    assert kinds["archived_bytes"] == whole


def test_what_archives_take_of_the_disk_is_what_du_says(home: Home) -> None:
    ours = home.config / "sessrotate"
    right = homes.on_disk(ours / "archives")
    right -= (ours / "archives").lstat().st_blocks * 512
    assert summed("archived_disk_bytes") == right
    pruned = home.config / "sessrotate" / "archives" / GONE / "trash"
    left = (ours / "archives" / RESTORED).iterdir()
    trash = homes.on_disk(pruned)
    trash += sum(homes.on_disk(path) for path in left if path.name != "record.json")
    assert reported()["trash_bytes"] == trash


def test_on_disk_is_the_same_everywhere_and_has_what_lies_beside_a_session(home: Home) -> None:
    before = {name: each["disk_bytes"] for name, each in listed().items()}
    more = beside(home)
    after = {name: each["disk_bytes"] for name, each in listed().items()}
    assert after == {**before, PLAIN: before[PLAIN] + more}
    whole = summed("disk_bytes")
    assert reported()["disk_bytes"] == whole
    assert f", {size(whole)} on disk, " in called("list").out
    assert f"; {size(whole)} on disk, " in called("report", "--all").out
    assert called().out.startswith(f"On disk    Claude Code {size(whole)} (6 sessions, ")


@pytest.mark.usefixtures("home")
def test_in_brief_a_session_is_as_old_as_in_the_list() -> None:
    named = {each.id: each.last_used for each in listing.sessions(hidden=True)}
    brief = [each for client in next_steps.of_clients(place.archives()) for each in client.infos]
    assert {each.id: each.last_used for each in brief} == named
    assert len(named) == 6


def test_what_nobody_used_is_on_disk_too_and_said_apart_in_the_list(home: Home) -> None:
    used = summed("disk_bytes")
    row = {"type": "user", "sessionId": "a", "message": {"content": "Warmup"}}
    path = command_line.write(home.live.with_name("a.jsonl"), as_lines(row))
    assert reported()["disk_bytes"] == used + homes.on_disk(path)
    said = called("list").out
    assert f", {size(used)} on disk, " in said
    assert f", 1 unused hidden ({size(homes.on_disk(path))})" in said
    assert f"Claude Code {size(used + homes.on_disk(path))} (6 sessions, " in called().out


def test_without_an_archive_on_disk_is_said_where_something_lies_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = homes.home(tmp_path, monkeypatch, DATA)
    assert "on disk" not in called("list").out
    beside(made, ID)
    whole = summed("disk_bytes")
    for words in (("list",), ("report", "--all")):
        assert f"{size(whole)} on disk" in called(*words).out
    assert " on disk " in called("list").out.split("\n")[2]
    page = tmp_path / "page.html"
    assert called("report", "--all", "--html", str(page)).code == 0
    assert f'"disk_bytes":{whole},' in page.read_text()


def test_a_transcript_that_names_two_sessions_counts_once(home: Home) -> None:
    before = summed("disk_bytes")
    rows = [{"type": "user", "sessionId": name} for name in (PLAIN, RESTORED, "no-such-session")]
    lines = as_lines(*rows)
    path = command_line.write(home.live.with_name("agent-3.jsonl"), lines)
    assert summed("disk_bytes") == before + homes.on_disk(path)
    assert summed("side_bytes") == len(lines)


def test_what_is_of_no_session_is_said_apart(home: Home) -> None:
    assert "no session" not in called().out
    lost = home.live.parent / "10570000-0000-4000-a000-00000000000a" / "tool-results" / "a.txt"
    command_line.write(lost, os.urandom(2 << 20))
    said = called().out.splitlines()[0]
    assert re.search(r", and 2\.\d MiB of no session$", said)
    assert f"Claude Code {size(summed('disk_bytes'))} (" in said


@pytest.mark.parametrize("words", [("report", AWAY), ("report", BOTH)])
def test_a_session_that_was_put_away_is_archived_in_its_own_report(
    home: Home, words: tuple[str, ...]
) -> None:
    found = called(*words, "--json").document()
    assert found["archived_bytes"] == found["bytes"] == len(DATA)
    assert {each["standing"] for each in found["segments"]} == {"sealed"}
    assert "archived" in called(*words).out
    assert home.live.exists()
