"""Every id that a command prints is one that all commands take, and means that very session."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from support import command_line, homes
from support.command_line import called

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.command_line import Ended

FIXTURES: Final = Path(__file__).parents[2] / "fixtures"
CLAUDE: Final = ("A-2.0.28", "A-2.1.330")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home with sessions of all clients: rotated, put away, copied, in two formats."""
    top = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        made = homes.home(top, patch, command_line.session())
        made.rotate()
        for name in ("lost", "put-away"):
            homes.another(made, name, command_line.session())
        made.live.with_name("lost.jsonl").unlink()
        assert called("archive", "put-away").code == 0
        projects = made.live.parent.parent
        for sample in CLAUDE:
            for each in (FIXTURES / "claude" / sample / "projects").iterdir():
                shutil.copytree(each, projects / sample)
        whole = next((projects / CLAUDE[1]).glob("*.jsonl"))
        for name in (f"{whole.stem} (1).jsonl", f"{whole.name}.conflict.20261101-101010"):
            shutil.copy(whole, whole.with_name(name))
        shutil.copy(whole, projects / "5E55107B-0000-4000-A000-00000000000B.jsonl")
    day = top / "codex" / "sessions" / "2026" / "11" / "21"
    day.mkdir(parents=True)
    for path in FIXTURES.glob("codex/*/rollout-*"):
        shutil.copy(path, day)
    shutil.copy(path, day / f"{path.name}.conflict.20261101-101010")
    for version in FIXTURES.glob("gemini/*"):
        (folder,) = (version / "tmp").iterdir()
        shutil.copytree(folder, top / ".gemini" / "tmp" / version.name)
    for number, year in enumerate((2027, 2020)):  # the later client goes on, or the older one
        _in_two_formats(top / ".gemini" / "tmp" / "both" / "chats", number, year)
    return top


def _in_two_formats(chats: Path, number: int, year: int) -> None:
    """Make a session that both clients went on with, the later one in this year."""
    (old,) = FIXTURES.glob("gemini/0.38.2/tmp/*/chats/*.json")
    uuid = f"832e801{number}-0000-4000-8000-000000000000"
    told = json.loads(old.read_text()) | {"sessionId": uuid}
    messages = told["messages"]
    path = chats / f"session-2026-11-21T23-51-{uuid[:8]}.json"
    chats.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told))
    asked = messages[0] | {"id": "later", "timestamp": f"{year}-01-01T00:00:00.000Z"}
    del told["messages"]
    rows = "".join(f"{json.dumps(row)}\n" for row in (told, *messages[:2], asked))
    path.with_suffix(".jsonl").write_text(rows)


@pytest.fixture(autouse=True)
def here(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes.home(machine, monkeypatch)
    monkeypatch.setenv("CODEX_HOME", str(machine / "codex"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(machine))
    for client in ("CODEX", "GEMINI"):
        monkeypatch.delenv(f"{client}_SESSIONS_DIR", raising=False)
    monkeypatch.chdir(tmp_path)


def _listed() -> dict[str, Path | None]:
    rows = called("list", "--hidden", "--json").document()
    return {row["session"]: Path(row["path"]) for row in rows}


def _shown() -> dict[str, Path | None]:
    found: dict[str, Path | None] = {}
    for options in ((), ("--hidden",)):
        table = called("list", *options).out.split("\n\n")[1].splitlines()
        end = table[0].index("client")
        found |= dict.fromkeys(line[:end].strip() for line in table[1:])
    return found


def _searched() -> dict[str, Path | None]:
    hits = called("search", "--json", "e").out.splitlines()
    return dict.fromkeys(json.loads(hit)["session"] for hit in hits)


def _read() -> dict[str, Path | None]:
    told = called("search", "e").out
    named = re.findall(r"sessrotate read (?:'([^']+)'|(\S+)) --at", told)
    return dict.fromkeys(one or other for one, other in named)


def _reported() -> dict[str, Path | None]:
    rows = called("report", "--all", "--json").document()["sessions"]
    return {row["session"]: Path(row["path"]) for row in rows}


@pytest.mark.parametrize("told", [_listed, _shown, _searched, _read, _reported])
def test_every_id_that_is_printed_is_taken(told: Callable[[], dict[str, Path | None]]) -> None:
    found = told()
    assert len(found) > 10
    failed: list[tuple[str, Ended]] = []
    for session, path in found.items():
        for name in ("whole", "page.html"):
            Path(name).unlink(missing_ok=True)
        for command in (
            ("read", session, "--history", "--format", "jsonl", "--quiet"),
            ("report", session, "--json"),
            ("verify", session),
            ("stitch", session, "-o", "whole"),
            ("export", session, "-o", "page.html"),
        ):
            ended = called(*command)
            if ended.code:
                failed.append((" ".join(command), ended))
            if command[0] == "report" and path is not None and not ended.code:
                assert Path(ended.document()["path"]) == path
    assert failed == []
