"""A session is found by its path, its id, or the beginning of one that is its alone."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sessrotate import find
from sessrotate.archive import place
from sessrotate.clients.claude import client as claude
from sessrotate.clients.codex import client as codex
from sessrotate.errors import StorageError, WrongUsageError
from support import command_line, homes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.archive.place import Place


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("-a/1111aaaa.jsonl", "-a/1111bbbb.jsonl", "-b/2222cccc.jsonl", "-b/agent-2.jsonl"):
        path = tmp_path / "config" / "projects" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "config" / "projects" / "a-file").touch()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("CLAUDE_PROJECTS_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "config" / "projects"


def test_a_path_is_itself(projects: Path) -> None:
    assert find.path_of(str(projects / "nothing")) == projects / "nothing"
    Path("2222cccc").touch()
    assert find.path_of("2222cccc") == Path("2222cccc")


def test_a_folder_called_like_a_session_is_the_session(projects: Path) -> None:
    """Clients keep such a one beside the session's file, where somebody may be."""
    for name in ("2222cccc", "2222ccc", "22"):
        Path(name).mkdir()
    assert find.path_of("2222cccc") == projects / "-b" / "2222cccc.jsonl"
    assert find.path_of("2222ccc") == Path("2222ccc")
    assert find.path_of("22") == Path("22")
    assert find.path_of("./2222cccc") == Path("2222cccc")


def test_the_session_that_is_kept_beside_a_folder_of_its_name_is_meant_where_somebody_is(
    projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the project's folder, and in a copy of it that no client knows."""
    saved = projects.parent / "saved"
    for folder in (projects / "-a", projects / "-b", saved):
        said(folder / f"{UUID}.jsonl", 1)
        (folder / UUID / "subagents").mkdir(parents=True)
    for folder in (projects / "-a", projects / "-b"):
        monkeypatch.chdir(folder)
        assert find.path_of(UUID) == Path(f"{UUID}.jsonl")
    monkeypatch.chdir(saved)
    with pytest.raises(WrongUsageError, match="2 files"):
        find.path_of(UUID)
    shutil.rmtree(projects)
    assert find.path_of(UUID) == Path(f"{UUID}.jsonl")
    (saved / UUID / f"{UUID}.1.jsonl").touch()
    assert find.path_of(UUID) == Path(UUID)  # `split` made it


@pytest.mark.parametrize("called", [str.lower, str.upper])
@pytest.mark.parametrize("asked", [str.lower, str.upper])
def test_capitals_make_no_difference(
    projects: Path, called: Callable[[str], str], asked: Callable[[str], str]
) -> None:
    path = projects / "-a" / f"{called(UUID)}.jsonl"
    said(path, 1)
    for wanted in (UUID, UUID[:8], UUID[:13], f"{UUID} (1)"):
        if "(" in wanted:
            path = path.rename(path.with_name(f"{called(UUID)} (1).jsonl"))
        assert find.path_of(asked(wanted)) == path


def test_where_capitals_make_a_difference_the_name_that_was_given_counts(projects: Path) -> None:
    for name in ("NOTES", "notes"):
        said(projects / "-a" / f"{name}.jsonl", 1)
    if len({*(projects / "-a").iterdir()}) < 4:
        pytest.skip("this file system knows no capitals")
    for name in ("NOTES", "notes"):
        assert find.path_of(name) == projects / "-a" / f"{name}.jsonl"
    with pytest.raises(WrongUsageError, match="2 sessions"):
        find.path_of("Notes")


def test_an_archive_is_found_in_capitals_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes.home(tmp_path, monkeypatch, command_line.session())
    home.rotate()
    home.live.unlink()
    assert find.path_of(command_line.ID.upper()) == home.live


def test_an_id_or_its_beginning_is_looked_up(projects: Path) -> None:
    for name in ("2222cccc", "2222", "2222ccc"):
        assert find.path_of(name) == projects / "-b" / "2222cccc.jsonl"


def test_an_id_that_another_begins_with_is_still_found(projects: Path) -> None:
    (projects / "-a" / "1111.jsonl").touch()
    assert find.path_of("1111") == projects / "-a" / "1111.jsonl"


def test_several_matches_are_listed(projects: Path) -> None:
    with pytest.raises(WrongUsageError) as caught:
        find.path_of("1111")
    assert str(projects / "-a" / "1111aaaa.jsonl") in str(caught.value)
    assert "2 sessions. Give more of the id, or a path:" in str(caught.value)


def test_where_the_whole_id_is_there_twice_a_path_is_asked_for(projects: Path) -> None:
    (projects / "-b" / "1111aaaa.jsonl").touch()
    with pytest.raises(WrongUsageError, match="Give the path of one:"):
        find.path_of("1111aaaa")


@pytest.mark.usefixtures("projects")
@pytest.mark.parametrize("name", ["222", "3333", "agent-2", "a-file"])
def test_what_is_no_session_is_not_found(name: str) -> None:
    with pytest.raises(WrongUsageError):
        find.path_of(name)


def test_the_projects_folder_may_be_named_outright(
    projects: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("CLAUDE_PROJECTS_DIR", str(projects))
    assert find.path_of("2222").name == "2222cccc.jsonl"


# ── several files ────────────────────────────────────────────────────────────────────────────

UUID = "0011aaaa-1111-4111-8111-000000000011"


def said(path: Path, number: int, parent: str | None = None, time: str = "08:00:00") -> None:
    """Have something said at the end of a session: its row follows `parent`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row = {
        "type": "user",
        "uuid": f"row {number}",
        "parentUuid": parent,
        "timestamp": f"2026-03-01T{time}.000Z",
        "sessionId": UUID,
        "message": {"role": "user", "content": "Go on"},
    }
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


# sverrirsig/claude-control #8: a stub of the same id in a worktree's project.
def test_a_file_that_nobody_used_is_in_no_sessions_way(projects: Path) -> None:
    used, stub = projects / "-a" / f"{UUID}.jsonl", projects / "-b" / f"{UUID}.jsonl"
    stub.write_text(f'{{"type":"last-prompt","lastPrompt":"Go on","sessionId":"{UUID}"}}\n')
    assert find.path_of(UUID) == stub  # there is no other
    said(used, 1)
    assert find.path_of(UUID) == used
    assert find.path_of(UUID[:8]) == used
    said(stub, 1)
    with pytest.raises(WrongUsageError):
        find.path_of(UUID)


def test_only_what_holds_no_row_is_left_out(projects: Path) -> None:
    """What a list hides may be what is meant: it is large, and its end is out of sight, say."""
    used, other = projects / "-a" / f"{UUID}.jsonl", projects / "-b" / f"{UUID}.jsonl"
    said(used, 1)
    row = {"type": "user", "uuid": "a", "isSidechain": True, "message": {"content": "Look"}}
    command_line.write(other, json.dumps(row).encode() + b"\n")
    with pytest.raises(WrongUsageError):
        find.path_of(UUID)


# anthropics/claude-code #88277: moved while it ran, its second part is at the old path.
def test_of_two_parts_of_a_session_it_is_told_which_goes_on_from_which(projects: Path) -> None:
    first, second = projects / "-new" / f"{UUID}.jsonl", projects / "-old" / f"{UUID}.jsonl"
    said(first, 1)
    said(first, 2, "row 1", "08:00:05")
    said(second, 3, "row 2", "08:00:09")
    with pytest.raises(WrongUsageError) as caught:
        find.path_of(UUID)
    sizes = [path.stat().st_size for path in (first, second)]
    times = [f"last used 2026-03-01T08:00:{second}.000Z" for second in ("05", "09")]
    assert str(caught.value).splitlines() == [
        f"{UUID} matches 2 files. Give the path of one:",
        f"  {first} (claude, {sizes[0]} bytes, {times[0]})",
        f"  {second} (claude, {sizes[1]} bytes, {times[1]}, continues {first})",
    ]


# dpclark4/frugal-tokens PR #70: one session in two project folders.
def test_of_two_equal_files_neither_goes_on_from_the_other(projects: Path) -> None:
    for project in ("-one", "-two"):
        said(projects / project / f"{UUID}.jsonl", 1)
        said(projects / project / f"{UUID}.jsonl", 2, "row 1")
    with pytest.raises(WrongUsageError) as caught:
        find.path_of(UUID)
    assert "2 files" in str(caught.value)
    assert "goes on" not in str(caught.value)


# letta-ai/letta-code #3506: what macOS keeps beside a file on other file systems.
@pytest.mark.parametrize("name", ["._{}.jsonl", ".{}.jsonl.swp", ".sync_{}.jsonl"])
def test_a_hidden_file_is_nobodys_session(projects: Path, name: str) -> None:
    live = projects / "-a" / f"{UUID}.jsonl"
    said(live, 1)
    live.with_name(name.format(UUID)).write_bytes(b"\0\5\x16\7" * 1024)
    assert find.path_of(UUID) == live
    assert [*claude.sessions("0011")] == [live]
    with pytest.raises(WrongUsageError):
        find.path_of(name.format(UUID).removesuffix(".jsonl"))


COPIED = (
    "{} (1)",
    "{} copy",
    "{}-copy-2",
    "{}.sync-conflict-20261125-101500-ABCDEFG",
    "{} (conflicted copy 2026-11-25)",
    "Copy of {}",
)
"""What file managers, Syncthing and Dropbox call the copies that they make."""


# tawanorg/claude-sync #69, #70.
CONFLICT = "{}.jsonl.conflict.20261101-101010"


@pytest.mark.parametrize("name", [*(f"{name}.jsonl" for name in COPIED), CONFLICT])
def test_a_copy_is_found_only_where_there_is_no_session(projects: Path, name: str) -> None:
    live = projects / "-a" / f"{UUID}.jsonl"
    copy = live.with_name(name.format(UUID))
    said(copy, 1)
    for other in (f"{UUID}.jsonl.lock", f"{UUID}.jsonl.conflict.", "x.jsonl.conflict.20261101"):
        live.with_name(other).touch()
    assert [*claude.sessions(UUID[:8])] == []
    assert [*claude.copies()] == [copy]
    assert find.path_of(copy.name.removesuffix(".jsonl")) == copy
    assert find.path_of(UUID) == find.path_of(UUID[:8]) == copy
    said(live, 1)
    assert find.path_of(UUID) == live
    assert [*claude.sessions(UUID[:8])] == [live]


# openai/codex #39853, centauri-ai/coslash #229.
def test_of_codex_too_copies_come_last_and_either_uuid_of_two_finds_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, projects: Path
) -> None:
    assert projects.exists()
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.delenv("CODEX_SESSIONS_DIR", raising=False)
    day = tmp_path / "codex" / "sessions" / "2026" / "03" / "02"
    root, thread = "01900000-0000-7000-8000-000000000080", "01a00000-0000-7000-8000-000000000081"

    def made(name: str) -> Path:
        path = day / f"rollout-2026-03-02T09-00-00-{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        asked = {"type": "user_message", "message": "Go on"}
        path.write_text(
            "".join(
                json.dumps({"timestamp": "2026-03-02T09:00:00.000Z", "type": kind, "payload": told})
                + "\n"
                for kind, told in (("session_meta", {"id": root}), ("event_msg", asked))
            )
        )
        return path

    both = made(f"{root}_{thread}")
    assert find.path_of(root) == find.path_of(thread) == find.path_of("01a0") == both
    only = made(root)
    assert (find.path_of(root), find.path_of(thread)) == (only, both)
    copies = [made(f"{root} (1)"), made(f"{root[:-1]}1 (2)")]
    conflict = both.with_name(f"{only.name}.conflict.20261101-101010")
    shutil.copy(only, conflict)
    assert [*codex.copies()] == [copies[0], conflict, copies[1]]
    assert (find.path_of(root), find.path_of(thread)) == (only, both)
    assert find.path_of(f"{root[:-1]}1") == copies[1]
    assert find.path_of(f"{root} (1)") == copies[0]
    assert find.path_of(f"{root}.jsonl.conflict") == conflict
    capitals = only.with_name(only.name.replace(root, root.upper().replace("8", "9")))
    shutil.copy(only, capitals)
    assert find.path_of(root.replace("8", "9")) == capitals


def test_a_session_that_its_folder_lists_twice_while_it_is_renamed_is_one(
    projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: 2 * real(path))
    assert find.path_of("2222") == projects / "-b" / "2222cccc.jsonl"


def test_what_cannot_be_read_may_hide_a_session_that_is_not_found(
    projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the mount of the client's folder is gone: nobody can say that there is none."""
    monkeypatch.setattr(find, "hidden", lambda: {str(projects): "Not connected"})
    assert find.path_of("2222cccc") == projects / "-b" / "2222cccc.jsonl"
    with pytest.raises(StorageError, match=f"may be in {projects}, which cannot be read: Not conn"):
        find.path_of("3333")


def test_a_session_that_is_replaced_while_it_is_looked_for_is_one(
    projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found by its live file and by its archive, and a swap comes in between."""
    live = projects / "-b" / "2222cccc.jsonl"
    real = place.archives

    def archives(prefix: str) -> Iterator[Place]:
        draft = projects / "draft"
        draft.touch()
        draft.replace(live)
        yield from (*real(prefix), place.of_live(live))

    monkeypatch.setattr(place, "archives", archives)
    assert find.path_of("2222") == live
