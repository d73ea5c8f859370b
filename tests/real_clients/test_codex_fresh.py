"""Sessions that the real Codex has just written are read as it reads them.

What is compared of a resume: every text, call (id, name, arguments) and result, in order, of the
request and of the records of `Session.conversation()`. What clients say of themselves (developers'
messages, notes in tags) is left out of both, and the prompt that we resume with.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate import open_session
from support import reading
from support.codex_sessions import live
from support.real_clients.codex_api import SUMMARY, ResponsesApi, asked
from support.real_clients.codex_client import VERSIONS, WINDOW, Codex, at_home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.real_clients.codex_api import Body

    Told = tuple[str, ...]

FIXTURES: Final = Path(__file__).parents[2] / "fixtures" / "codex"
QUESTION: Final = "What did we do so far?"
WANTED: Final = tuple(os.environ.get("SESSROTATE_CODEX_VERSIONS", "").split()) or VERSIONS
WRAPS: Final = {"0.42.0"}
"""Clients that send what the user asked before a compaction as one text, with words around it."""

_OF_THE_CLIENT: Final = re.compile(r"<[a-z_ ]+>|# AGENTS\.md")

TALK: Final = (
    "one [[run seq 1 5]]",
    f"two [[usage {WINDOW + 9_000}]]",
    "three [[run echo three]]",
    f"four [[usage {WINDOW + 9_000}]]",
    "five",
)
"""Five turns with two compactions among them."""


@pytest.fixture(scope="module")
def api() -> Iterator[ResponsesApi]:
    with ResponsesApi() as running:
        yield running


@pytest.fixture(scope="module", params=WANTED)
def talked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, api: ResponsesApi
) -> Codex:
    codex = at_home(request.param, tmp_path_factory.mktemp("codex") / "home", api)
    codex.prompt(TALK[0])
    for text in TALK[1:]:
        codex.prompt(text, resume=codex.session)
    return codex


@pytest.fixture
def client(talked: Codex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Codex:
    """Return a copy of the client and its session, for a test to go on with."""
    shutil.copytree(talked.home, tmp_path / "home", symlinks=True)
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "home" / "config"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "nobody"))
    return Codex(talked.number, tmp_path / "home", talked.api)


def told(item: Body) -> Iterator[Told]:
    """Yield what an item tells, without what the client says of itself."""
    kind = item.get("type", "message")
    if kind == "message":
        content = item["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        for part in parts:
            if item["role"] in {"user", "assistant"} and not _OF_THE_CLIENT.match(part["text"]):
                yield item["role"], part["text"]
    elif kind == "function_call":
        yield kind, item["call_id"], item["name"], item["arguments"]
    elif kind == "function_call_output":
        yield kind, item["call_id"], json.dumps(item["output"])


def read(path: Path) -> list[Told]:
    rows: list[dict[str, Any]] = [json.loads(line) for line in reading.conversation(path)]
    items = (row.get("payload", row) for row in rows)
    return [
        each
        for item in items
        for each in ([("user", item["message"])] if set(item) == {"message"} else told(item))
    ]


def sent(client: Codex) -> list[Told]:
    """Return what the client sends when it resumes its session, but for our question."""
    body = client.prompt(QUESTION, resume=client.session)[-1]
    assert asked(body["input"]) == QUESTION
    found = [each for item in body["input"] for each in told(item)]
    assert found.pop() == ("user", QUESTION)
    return found


def check(found: list[Told], expected: list[Told], client: Codex) -> None:
    """Compare what we read with what the client sends."""
    if client.number not in WRAPS:
        assert found == expected
        return
    rest = "\n".join(each[-1] for each in expected)
    for each in found:
        _, here, rest = rest.partition(each[-1])
        assert here == each[-1]


def test_what_a_resume_sends_is_what_we_read(client: Codex) -> None:
    found = read(client.path)
    assert found
    assert any(SUMMARY in each[-1] for each in found)
    check(found, sent(client), client)


def test_the_live_records_are_all_that_the_client_needs(client: Codex) -> None:
    found = read(client.path)
    with open_session(client.path) as session:
        lines = live(session)
        is_less = len(lines) < sum(1 for _ in session.history())
    assert is_less == (client.number in {"0.142.5", "0.169.0"})
    client.path.write_bytes(b"".join(line + b"\n" for line in lines))
    # Databases hold byte offsets into the file as it was; without them the client reads it.
    for database in client.config.glob("*.sqlite*"):
        database.unlink()
    check(found, sent(client), client)
