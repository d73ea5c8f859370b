"""An entry of a client's folder, or of ours, that nobody can look into: it stops no command.

Rule: every command does the rest, names the entry, and says by its exit code that it did not see
everything.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from support import homes
from support.command_line import ID, called, session, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.homes import Home

DATA: Final = session(boundaries=3)
OTHER: Final = "0ddba11a-0000-4000-a000-00000000000a"
LONG: Final = "n" * 300

COMMANDS: Final = (
    (),
    ("list",),
    ("list", "--deep"),
    ("doctor",),
    ("report", "--all"),
    ("search", "no such words"),
    ("run", "--dry-run"),
    ("tidy", "--dry-run"),
    ("verify", "--all"),
    ("prune", "--all", "--keep-last", "1", "--dry-run"),
    ("rotate", "--all", "--dry-run"),
    ("run",),
)

PLACES: Final = {
    "a project": "claude/projects/-bad",
    "a session": f"claude/projects/{homes.PROJECT}/{OTHER}.jsonl",
    "all projects": "claude/projects",
    "the client's folder": "claude",
    "an archive": f"claude/sessrotate/archives/{OTHER}",
    "all archives": "claude/sessrotate/archives",
    "a year of Codex": ".codex/sessions/2026",
    "all of Codex": ".codex/sessions",
    "a project of Gemini": ".gemini/tmp/bad",
    "chats of Gemini": ".gemini/tmp/bad/chats",
}

REAL: Final[dict[str, Callable[[Path], object]]] = {
    "leads to itself": lambda path: path.symlink_to(path.name),
    "leads below a file": lambda path: path.symlink_to(Path(__file__) / "x"),
    "leads to too long a name": lambda path: path.symlink_to(LONG),
}

ITSELF: Final = errno.ENOTCONN
"""Of a dead mount, which has no status either; of what else is refused, a link has one."""


@pytest.fixture
def home(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / ".codex"))
    monkeypatch.setenv("GEMINI_SESSIONS_DIR", str(tmp_path / ".gemini" / "tmp"))
    for name in ("CODEX_SESSIONS_DIR", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def bad(home: Home, name: str) -> Path:
    """Return a place in the home; what is there is away."""
    path = home.config.parent / PLACES[name].replace("claude", home.config.name, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.rename(home.config.parent / "away")
    return path


def refuse(patch: pytest.MonkeyPatch, bad: Path, number: int) -> None:
    """Let the system answer so of a path, and of all below it."""

    def guarded(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(path: Any, *rest: Any, **more: Any) -> Any:
            text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
            is_of_name = name == "lstat" or more.get("follow_symlinks") is False
            is_refused = text == str(bad) and (number == ITSELF or not is_of_name)
            if is_refused or text.startswith(f"{bad}/"):
                raise OSError(number, os.strerror(number), text)
            return real(path, *rest, **more)

        return call

    for name in ("stat", "lstat", "open", "scandir", "listdir"):
        patch.setattr(os, name, guarded(name))


def check(path: Path, reason: str, name: str) -> None:
    """Run all commands, and look at what they say of a bad entry."""
    for command in COMMANDS:
        ended = called(*command)
        said = ended.out if command == ("doctor",) else ended.err
        # Where all archives are out of reach, no session can be read as one that has none.
        is_lost = name == "all archives" and ended.code in {74, 77}
        assert ended.code == 1 or is_lost, (command, ended)
        is_told = reason in said or "it is a symbolic link" in said or "is a symbolic link," in said
        assert (str(path) in said, is_told) == (True, True), (command, ended)
        assert "Traceback" not in ended.err, (command, ended)
        assert "standard output" not in ended.err, (command, ended)


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("number", [errno.EACCES, ITSELF], ids=errno.errorcode.get)
def test_an_entry_that_the_system_refuses_is_named_and_stops_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    path = home.config.parent / PLACES[name].replace("claude", home.config.name, 1)
    if not path.exists():
        path.mkdir(parents=True) if path.suffix != ".jsonl" else write(path, DATA)
    if name == "all archives":
        home.rotate()
    with monkeypatch.context() as patch:
        refuse(patch, path, number)
        check(path, os.strerror(number), name)


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("kind", REAL)
def test_a_link_that_leads_nowhere_the_system_goes_is_named_and_stops_nothing(
    home: Home, name: str, kind: str
) -> None:
    path = bad(home, name)
    REAL[kind](path)
    with pytest.raises(OSError, match=r".") as raised:
        path.stat()
    check(path, raised.value.strerror or "", name)


@pytest.mark.parametrize("name", ["a project", "a year of Codex", "a project of Gemini"])
def test_what_can_be_seen_is_shown_beside_what_cannot(home: Home, name: str) -> None:
    path = bad(home, name)
    path.symlink_to(path.name)
    assert ID[:8] in called("list").out
    assert "1 session:" in called("report", "--all").out
    found = called("search", "-F", "row 0")
    assert (found.code, str(path) in found.err) == (0, True)
    assert called("verify", "--all", "--json").document()["ok"] is False
    assert called("run", "--json").document()["code"] == 1
    assert called("tidy", "-n", ID).code == 0  # which sessions are meant is known


def test_a_link_to_nothing_hides_nothing(home: Home) -> None:
    (home.config / "projects" / "-gone").symlink_to("nowhere")
    for folder in (".codex", ".gemini/tmp"):  # or `doctor` names what is not there
        (home.config.parent / folder).mkdir(parents=True, exist_ok=True)
    for command in COMMANDS:
        ended = called(*command)
        assert "Cannot read" not in ended.err
        assert ended.code == (command[:1] == ("search",)), (command, ended)


def test_a_path_that_the_system_refuses_is_one_sentence(home: Home) -> None:
    for command in (("report", LONG), ("read", str(home.config / LONG))):
        ended = called(*command)
        assert (ended.code in {2, 74}, ended.err.count("\n")) == (True, 1), ended
        assert "standard output" not in ended.err


@pytest.mark.usefixtures("home")
def test_an_error_that_is_not_of_writing_is_not_called_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sessrotate.reports.listing.sessions", homes.failing(errno.EIO))
    ended = called("list")
    assert (ended.code, ended.err) == (74, "sessrotate: Cannot go on: Input/output error.\n")


# ── a file that a crash left with nothing but zeros ──────────────────────────────────────────


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 10 << 20)


ZEROS: Final[dict[str, Callable[[Path], object]]] = {
    "ten": lambda path: path.write_bytes(bytes(10)),
    "more than is looked at": lambda path: path.write_bytes(bytes(3 << 20)),
    "a hole": sparse,
}


@pytest.mark.parametrize("kind", ZEROS)
def test_a_file_of_zeros_is_no_session_and_only_the_doctor_asks_for_something(
    home: Home, kind: str
) -> None:
    path = home.live.with_name(f"{OTHER}.jsonl")
    ZEROS[kind](path)
    before = path.stat()
    for command in (*COMMANDS, ("tidy", "--yes"), ("search", "-F", "row 0")):
        ended = called(*command)
        expected = 1 if command in {("doctor",), ("search", "no such words")} else 0
        assert (ended.code, ended.err) == (expected, ""), (command, ended)
        is_named = "only zeros" in ended.out
        assert is_named or command != ("doctor",), ended
    assert len(called("list", "--hidden", "--json").document()) == 1
    assert len(called("report", "--all", "--json").document()["sessions"]) == 1
    assert called("rotate", OTHER).code == 65
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_other_clients_files_of_zeros_are_no_sessions_either(home: Home) -> None:
    chats = home.config.parent / ".gemini" / "tmp" / "a" / "chats"
    write(chats / "session-2026-03-01T10-00-0ddba11a.jsonl", bytes(99))
    day = home.config.parent / ".codex" / "sessions" / "2026" / "03" / "01"
    write(day / f"rollout-2026-03-01T10-00-00-{OTHER}.jsonl", bytes(99))
    for command in (("report", "--all"), ("run",), ("list", "--deep", "--hidden")):
        ended = called(*command)
        assert (ended.code, ended.err) == (0, ""), (command, ended)


def test_rows_between_zeros_are_a_session(home: Home) -> None:
    path = home.live.with_name(f"{OTHER}.jsonl")
    path.write_bytes(bytes(100_000) + b"\n" + DATA.replace(ID.encode(), OTHER.encode()))
    os.truncate(path, 10 << 20)
    assert OTHER[:8] in called("list").out
    assert "only zeros" not in called("doctor").out
