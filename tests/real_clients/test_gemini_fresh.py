"""Sessions that the real Gemini CLI has just written are read as it does.

What is compared of a resume: every text, call (name, arguments) and result, in order, of the
request and of the records of `Session.conversation()`. What the client says of itself and the
prompt that we resume with are left out of both; of a result that the client has twice, the first.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate import open_session
from sessrotate.clients.view import Text, ToolCall, ToolResult
from sessrotate.export import jsonl, markdown
from support import reading
from support.real_clients.gemini_api import SUMMARY, GeminiApi
from support.real_clients.gemini_client import VERSIONS, Gemini, install
from support.real_clients.installing import UnavailableError
from support.real_clients.required import cannot_test

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from support.real_clients.gemini_api import Body

    Told = tuple[Any, ...]

QUESTION: Final = "What did we do so far?"
WANTED: Final = tuple(os.environ.get("SESSROTATE_GEMINI_VERSIONS", "").split()) or VERSIONS
UPDATING: Final = {"0.61.0"}
"""Clients that append everything again at each resume."""

TALK: Final = (
    "one",
    "two [[run seq 1 2500]]",
    "three",
    "four [[run echo four]]",
    "five",
)


@pytest.fixture(scope="module")
def api() -> Iterator[GeminiApi]:
    with GeminiApi() as running:
        yield running


@pytest.fixture(scope="module", params=WANTED)
def talked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, api: GeminiApi
) -> Gemini:
    """Return a client that had a talk of five turns, each in a process of its own."""
    number: str = request.param
    try:
        install(number)
    except UnavailableError as error:
        cannot_test(f"NOT TESTED with Gemini CLI {number}: {error}")
    client = Gemini(number, tmp_path_factory.mktemp("gemini"), api)
    for turn, text in enumerate(TALK):
        client.prompt(text, resumes=turn > 0, compresses=text == TALK[3])
    return client


def sent(body: Body) -> list[Told]:
    """Return what a request has of the conversation before its last message."""
    found: list[Told] = []
    for content in body["contents"]:
        for part in content["parts"]:
            if "functionCall" in part:
                call = part["functionCall"]
                found.append(("call", call["name"], call["args"]))
            elif "functionResponse" in part:
                found.append(("result", part["functionResponse"]["response"]["output"]))
            elif not part.get("thought"):
                found.append((content["role"], part["text"].strip()))
    assert found.pop() == ("user", QUESTION)
    return [told for told in found if not str(told[1]).startswith("<session_context>")]


def said(session: Any) -> list[Told]:
    """Return the same of a session's conversation."""
    found: list[Told] = []
    for record in session.conversation():
        view = session.view(record)
        for block in view.blocks:
            match block:
                case Text(text):
                    role = "user" if view.kind == "user" else "model"
                    found.append((role, text.strip()))
                case ToolCall(_, name, arguments):
                    found.append(("call", name, arguments))
                case ToolResult(_, blocks):
                    found.append(("result", "".join(b.text for b in blocks if isinstance(b, Text))))
                case _:
                    pass
    return found


def once(told: Iterable[Told]) -> list[Told]:
    """Return it without results that directly follow an equal one."""
    found: list[Told] = []
    for each in told:
        if not (found and each[0] == "result" and each == found[-1]):
            found.append(each)
    return found


def test_its_conversation_is_what_the_client_sends(talked: Gemini, tmp_path: Path) -> None:
    before = tmp_path / talked.path.name
    shutil.copyfile(talked.path, before)
    body = talked.prompt(QUESTION)[-1]
    with open_session(before) as session:
        told, expected = once(said(session)), once(sent(body))
        assert reading.conversation(before)
    assert told == expected
    words = [each[1] for each in told]
    assert ("five" in words, QUESTION in words) == (True, False)
    compressed = any(SUMMARY in str(each[1]) for each in told)
    assert compressed == (talked.number in UPDATING)


def test_every_turn_is_read_once(talked: Gemini) -> None:
    with open_session(talked.path) as session:
        views = [session.view(record) for record in session.said(session.history())]
        exported = b"".join(jsonl.pieces(session)).decode()
        document = b"".join(markdown.pieces(session)).decode()
        title = session.title()
    blocks = [block for view in views if view is not None for block in view.blocks]
    prompts = [b.text for b in blocks if isinstance(b, Text) and b.text in TALK]
    assert prompts == list(TALK)
    calls = [block.arguments["command"] for block in blocks if isinstance(block, ToolCall)]
    assert calls == ["seq 1 2500", "echo four"]
    assert sum(isinstance(block, ToolResult) for block in blocks) == 2
    assert (title.text, title.source) == ("one", "first prompt")
    for turn in TALK:
        assert turn in exported
        assert turn.split()[0] in document
