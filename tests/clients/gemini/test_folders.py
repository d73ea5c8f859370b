"""Where Gemini CLI's sessions are, what they are called and what is beside them."""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sessrotate import find, open_session
from sessrotate.clients.gemini import client as gemini
from sessrotate.clients.gemini import folders, preview, reader
from sessrotate.clients.gemini import json_client as gemini_json
from sessrotate.errors import WrongUsageError
from sessrotate.reports import discovery, listing
from support.gemini_sessions import (
    APPENDED,
    FIXTURES,
    TIME,
    UUID,
    WHOLE,
    context,
    file,
    line,
    message,
    metadata,
    update,
)

ROOT = "/srv/r2/gw1"
STEM = f"session-2026-11-21T23-37-{UUID[:8]}"


@pytest.fixture
def chats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a project's sessions, where the client keeps it; no other has any."""
    monkeypatch.delenv("GEMINI_SESSIONS_DIR", raising=False)
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    folder = tmp_path / ".gemini" / "tmp" / "gw1" / "chats"
    folder.mkdir(parents=True)
    return folder


# ── found ────────────────────────────────────────────────────────────────────────────────────


def test_sessions_of_both_formats_are_found_and_nothing_else(chats: Path) -> None:
    (chats / f"{STEM}.jsonl").write_bytes(file(metadata(), message("a")))
    (chats / "session-2026-01-01T00-00-00000000.json").write_text("{}")
    for other in ("notes.jsonl", f"{STEM}.jsonl.0001", "session-x.txt"):
        (chats / other).touch()
    (chats / UUID).mkdir()
    (chats / UUID / "agent.jsonl").touch()
    (chats / "session-folder.jsonl").mkdir()
    assert [path.name for path in gemini.sessions()] == [f"{STEM}.jsonl"]
    assert [path.suffix for path in gemini_json.sessions()] == [".json"]


@pytest.mark.parametrize("wanted", [STEM, STEM[:30], UUID, UUID[:8], UUID[:5], UUID[:20]])
def test_a_session_is_found_by_its_files_name_and_by_its_uuid(chats: Path, wanted: str) -> None:
    path = chats / f"{STEM}.jsonl"
    path.write_bytes(file(metadata(), message("a")))
    assert find.path_of(wanted) == path


def test_the_folder_of_its_agents_is_not_taken_for_the_session(
    chats: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = chats / f"{STEM}.jsonl"
    path.write_bytes(file(metadata(), message("a")))
    other = UUID.replace("a", "b")
    for name in (UUID, other, UUID[:8]):
        (chats / name).mkdir()
    monkeypatch.chdir(chats)
    assert find.path_of(UUID) == path
    assert str(find.path_of(other)) == other
    assert str(find.path_of(UUID[:8])) == UUID[:8]  # what is no whole id may be any folder
    assert str(find.path_of(f"./{UUID}")) == UUID
    (chats / f"{STEM[:-10]}-later-{UUID[:8]}.jsonl").write_bytes(file(metadata(), message("b")))
    with pytest.raises(WrongUsageError, match="matches 2 sessions"):
        find.path_of(UUID)


@pytest.mark.parametrize("wanted", [UUID[:8] + "-0000", "session-2027", "aa6eaa52"])
def test_a_session_of_another_uuid_is_not(chats: Path, wanted: str) -> None:
    (chats / f"{STEM}.jsonl").write_bytes(file(metadata(), message("a")))
    with pytest.raises(WrongUsageError, match="no file or session"):
        find.path_of(wanted)


def test_the_stub_that_a_resume_leaves_is_not_taken_for_the_session(chats: Path) -> None:
    shutil.copytree(FIXTURES / "0.61.0" / "tmp" / "gw1" / "chats", chats, dirs_exist_ok=True)
    assert len(list(chats.iterdir())) == 2
    for wanted in (UUID, UUID[:8]):
        assert find.path_of(wanted).name == f"{STEM}.jsonl"
    assert len(list(gemini.sessions("session-2026"))) == 2


def test_a_session_that_a_later_client_copied_to_go_on_is_one_session(chats: Path) -> None:
    """0.61.0 resumes a `.json` in a `.jsonl` of its name, and leaves the former as it is."""
    earlier, later = chats / f"{STEM}.json", chats / f"{STEM}.jsonl"
    earlier.write_text(json.dumps(metadata(messages=[message("a")]), indent=2))
    assert [*gemini_json.sessions()] == [earlier]
    later.write_bytes(file(metadata()))  # killed before it had copied anything
    assert [*gemini_json.sessions()] == [earlier]
    assert find.path_of(UUID) == find.path_of(STEM) == earlier
    later.write_bytes(file(metadata(), message("a"), message("b")))
    assert ([*gemini_json.sessions()], [*gemini.sessions()]) == ([], [later])
    assert ([*gemini_json.copies()], [*gemini.copies()]) == ([earlier], [])
    assert find.path_of(UUID) == find.path_of(STEM) == later
    shown = {each.info.path: each.info.standing for each in discovery.sessions()}
    assert shown == {later: "session", earlier: "copy"}
    assert [each.path for each in listing.sessions()] == [later]
    os.utime(later, ns=(0, 0))  # as a backup may set it: a file's own time says nothing
    assert ([*gemini_json.copies()], [*gemini.copies()]) == ([earlier], [])


@pytest.mark.parametrize(
    ("rows", "messages", "goes_on"),
    [
        # A client was killed while it copied.
        ([message("a"), b'{"id":"b","ti'], "ab", ".jsonl"),
        ([message("a", timestamp="2025-01-01T00:00:00.000Z")], "ab", ".json"),
        # Both went on, and the last one counts; of two of one time, the later format.
        ([message("a"), message("c", timestamp="2027-01-01T00:00:00.000Z")], "ab", ".jsonl"),
        ([message("a"), message("c", timestamp="2025-01-01T00:00:00.000Z")], "ab", ".json"),
        ([message("a"), message("c")], "ab", ".jsonl"),
        ([message("a"), b'{"$rewindTo":"a"}', message("c")], "ab", ".jsonl"),
    ],
)
def test_of_a_sessions_two_files_one_is_the_session_and_the_other_a_copy_by_its_files_name(
    chats: Path, rows: Any, messages: str, goes_on: str
) -> None:
    by = {suffix: chats / f"{STEM}{suffix}" for suffix in (".json", ".jsonl")}
    said = json.dumps(metadata(messages=[message(name) for name in messages]), indent=2)
    by[".json"].write_text(said)
    by[".jsonl"].write_bytes(
        b"\n".join(r if isinstance(r, bytes) else line(r) for r in (metadata(), *rows))
    )
    session = by.pop(goes_on)
    (copy,) = by.values()
    assert find.path_of(STEM) == find.path_of(UUID) == find.path_of(UUID[:8].upper()) == session
    assert find.path_of(copy.name) == copy
    assert [*gemini_json.copies(), *gemini.copies()] == [copy]  # what `doctor` names
    found = {each.path: each for each in listing.sessions(hidden=True)}
    assert {path: each.standing for path, each in found.items()} == {
        session: "session",
        copy: "copy",
    }
    assert (found[session].name, found[copy].name) == (UUID, copy.name)


def test_a_file_with_no_time_in_sight_was_used_when_it_was_changed(chats: Path) -> None:
    old, new = chats / f"{STEM}.json", chats / f"{STEM}.jsonl"
    old.write_text(json.dumps(metadata(messages=[message("a")]), indent=2))
    new.write_bytes(file(metadata(), message("a"), message("b", content="b" * 100_000)))
    assert [*gemini_json.copies(), *gemini.copies()] == [old]
    assert find.path_of(UUID) == new


def test_two_sessions_of_one_minute_are_no_copies(chats: Path) -> None:
    whole = json.dumps(metadata(messages=[message("a")], sessionId=UUID[:-1] + "0"), indent=2)
    (chats / f"{STEM}.json").write_text(whole)
    (chats / f"{STEM}.jsonl").write_bytes(file(metadata(), message("b")))
    assert [*gemini_json.copies(), *gemini.copies()] == []


def test_a_link_that_is_called_like_its_other_file_hides_nothing(chats: Path) -> None:
    """Both are one file, or the other may be gone tomorrow."""
    path = chats / f"{STEM}.json"
    path.write_text(json.dumps(metadata(messages=[message("a")]), indent=2))
    path.with_suffix(".jsonl").symlink_to(path.name)
    assert [*gemini_json.sessions()] == [path]
    assert [*gemini_json.copies(), *gemini.copies()] == []


def test_a_json_is_no_copy_of_what_no_list_shows(chats: Path) -> None:
    (chats / f"{STEM}.json").write_text(json.dumps(metadata(messages=[message("a")])))
    (chats / f"{STEM}.jsonl").write_bytes(file(metadata(kind="subagent"), message("a")))
    assert [path.suffix for path in gemini_json.sessions()] == [".json"]


def test_where_sessions_are_is_said_by_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_SESSIONS_DIR", str(tmp_path))
    assert folders.sessions_folder() == tmp_path
    monkeypatch.delenv("GEMINI_SESSIONS_DIR")
    monkeypatch.delenv("GEMINI_CLI_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folders.sessions_folder() == tmp_path / ".gemini" / "tmp"
    assert list(gemini.sessions()) == []


@pytest.mark.parametrize(
    ("name", "session"),
    [(f"{STEM}.jsonl", STEM), (f"{STEM}.json", STEM), (f"{STEM}.jsonl.zst", STEM), ("x", "x")],
)
def test_a_session_is_called_as_its_file(name: str, session: str) -> None:
    assert gemini.session_of(name) == gemini_json.session_of(name) == session


# ── projects ─────────────────────────────────────────────────────────────────────────────────


def test_a_sessions_folder_is_told_by_its_mark_the_clients_list_or_what_is_known(
    chats: Path,
) -> None:
    project = chats.parent
    digest = sha256(ROOT.encode()).hexdigest()
    assert folders.folder_of(project, digest) is None
    assert folders.folder_of(project, digest, ["/other", ROOT]) == ROOT
    (project / ".project_root").write_text("/other\n")
    assert folders.folder_of(project, digest) is None
    (project / ".project_root").write_text(f"{ROOT}\n")
    assert folders.folder_of(project, digest) == ROOT
    (project / ".project_root").unlink()
    registry = project.parent.parent / "projects.json"
    registry.write_text(json.dumps({"projects": {"/other": "other", ROOT: "gw1"}}))
    assert folders.folder_of(project, digest) == ROOT
    assert folders.folder_of(project.parent / digest, None) == ROOT


@pytest.mark.parametrize("registry", ["", "[]", '{"projects":5}', "{" * 100_000, "\xff"])
def test_a_list_of_projects_that_is_none_tells_nothing(chats: Path, registry: str) -> None:
    (chats.parents[2] / "projects.json").write_text(registry, encoding="latin-1")
    assert folders.folder_of(chats.parent, "0" * 64) is None


@pytest.mark.parametrize("path", [*APPENDED, *WHOLE], ids=lambda path: path.stem[-14:])
def test_real_sessions_name_the_hash_of_their_folder(path: Path) -> None:
    digest = preview.project_hash(path.read_bytes())
    assert digest == folders.hash_of(ROOT)
    known = () if path.parts[-3] == "gw1" else (ROOT,)
    assert folders.folder_of(path.parent.parent, digest, known) == ROOT


# ── titles, at a glance and by all of it ─────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rows", "title", "source", "standing"),
    [
        ([message("a", content="one\n two")], "one two", "first prompt", "session"),
        ([message("a", content="/help"), message("b")], "text of b", "first prompt", "session"),
        ([update(context(), message("b"))], "text of b", "first prompt", "session"),
        ([message("a"), {"$set": {"summary": "It"}}], "It", "summary", "session"),
        (
            [message("a"), {"$set": {"summary": "It"}}, {"$set": {"summary": "At"}}],
            "At",
            "summary",
            "session",
        ),
        ([update(context())], "", "none", "empty"),
        ([message("a", content="/quit"), message("i", "info", "bye")], "", "none", "empty"),
        ([message("b", "gemini", "x")], "", "none", "session"),
        ([metadata(kind="subagent"), message("a")], "text of a", "first prompt", "agent"),
    ],
)
def test_a_session_is_called_what_its_client_lists(
    rows: Any, title: str, source: str, standing: str
) -> None:
    data = file(metadata(), *rows)
    seen = reader.sight(data, data, is_whole=True)
    assert (seen.title.text, seen.title.source, seen.standing) == (title, source, standing)
    assert (seen.id, seen.started, seen.ended) == (UUID, TIME, TIME)


def test_a_prompt_whose_end_is_out_of_sight_is_seen_as_far_as_it_goes() -> None:
    long = "\u00fc\\n" * 30_000
    for content in (long, [{"text": long}]):
        data = file(metadata(), message("a", content=content))[: 64 * 1024]
        seen = reader.sight(data, b"", is_whole=False)
        assert seen.title.text == preview.titled(None, long).text
        assert seen.standing == "session"


# ── beside it ────────────────────────────────────────────────────────────────────────────────


def test_agents_are_found_with_the_calls_that_started_them(chats: Path) -> None:
    path = chats / f"{STEM}.jsonl"
    call = {"id": "call-1", "name": "explore", "args": {}, "agentId": "agent-1"}
    path.write_bytes(file(metadata(), message("a", "gemini", "", toolCalls=[call])))
    (chats / UUID).mkdir()
    for name, asked in (("agent-1", "look around"), ("agent-2", "look again")):
        rows = (metadata(kind="subagent", sessionId=name), message("x", content=asked))
        (chats / UUID / f"{name}.jsonl").write_bytes(file(*rows))
    with open_session(path) as session:
        one, two = session.agents()
        assert (one.id, one.call, one.asked) == ("agent-1", "call-1", "look around")
        assert (two.id, two.call, two.asked) == ("agent-2", None, "look again")
        assert one.bytes == one.path.stat().st_size
        assert len(list(session.records_of(one))) == 2


UUIDS = ("..", ".", "", "../chats", "a/b", "a\0b", "x" * 5000)


@pytest.mark.parametrize("begins", [(), *([metadata(sessionId=name)] for name in UUIDS)])
def test_a_uuid_that_is_a_path_or_is_not_there_leads_nowhere(chats: Path, begins: Any) -> None:
    path = chats / f"{STEM}.jsonl"
    path.write_bytes(file(*begins, message("a")))
    (chats.parent / "outside.jsonl").touch()
    with open_session(path) as session:
        assert session.agents() == []


def test_a_list_counts_what_lies_beside_sessions_once(chats: Path) -> None:
    project, uuid = chats.parent, f"{'b' * 8}{UUID[8:]}"
    old, new = (chats / f"session-2026-{month}-01T00-00-{UUID[:8]}.jsonl" for month in (10, 11))
    other = chats / f"session-2026-12-01T00-00-{uuid[:8]}.jsonl"
    json_copy = old.with_suffix(".json")
    for path, name in ((old, UUID), (new, UUID), (other, uuid)):
        path.write_bytes(file(metadata(sessionId=name), message("a")))
    json_copy.write_text(json.dumps(metadata(messages=[message("a")])))
    beside = {
        f"chats/{UUID}/agent-1.jsonl": 30,
        f"tool-outputs/session-{UUID}/out.txt": 3000,
        f"logs/session-{UUID}.jsonl": 400,
        f"{UUID}/plans/plan.md": 50,
        "logs.json": 1,
        "checkpoint-before.json": 200,
        f"tool-outputs/session-{uuid}/out.txt": 60_000,
        f"chats/{uuid}/agent-1.jsonl": 500_000,
    }
    not_of_them = {"other.json": 7, "tool-outputs/session-other/out.txt": 8, "chats/x/y.jsonl": 9}
    for name, size in (beside | not_of_them).items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_bytes(b"1" * size)
    found = {each.info.path: each.info for each in discovery.sessions()}
    assert {path: info.side_bytes for path, info in found.items()} == {
        old: 3681,
        new: 0,
        other: 560_000,
        json_copy: 0,
    }
    counted = [project / name for name in beside]
    counted += [path for path in project.rglob("*") if path.is_dir() and UUID[8:] in path.name]
    counted += [project / UUID / "plans"]
    of_files = sum(path.stat().st_blocks * 512 for path in [*found, *counted])
    assert sum(info.disk_bytes for info in found.values()) == of_files


# ── in a list ────────────────────────────────────────────────────────────────────────────────


def test_a_list_names_the_folder_that_a_session_was_run_in(chats: Path) -> None:
    digest = folders.hash_of(ROOT)
    rows = (metadata(projectHash=digest), message("a"))
    (chats / f"{STEM}.jsonl").write_bytes(file(*rows))
    hashed = chats.parents[1] / digest / "chats"
    hashed.mkdir(parents=True)
    whole = metadata(projectHash=digest, messages=[message("a")])
    (hashed / "session-2026-01-01T00-00-00000000.json").write_text(json.dumps(whole, indent=2))

    def shown() -> list[str]:
        return sorted(str(each.sight.folder) for each in discovery.sessions())

    assert shown() == [digest[:8], "gw1"]
    row = {"type": "user", "sessionId": "s", "uuid": "u", "cwd": ROOT, "message": {"content": "a"}}
    claude = chats.parents[3] / "claude" / "projects" / "-srv"
    claude.mkdir(parents=True)
    (claude / "5e55107a-0000-4000-a000-0000000000c0.jsonl").write_bytes(file(row))
    assert shown() == [ROOT] * 3
