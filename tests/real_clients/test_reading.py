"""The conversation that we read from a session is the one that the real client sends.

What is compared: every text, tool call (id, name, arguments) and tool result, in order, of the
request's messages and of the records of `Session.conversation()`. What is not in the rows of a
session as such cannot be, and is left out of both sides (`told`):

- what clients add when they send: reminders in messages and behind tools' results, attachments
  rendered as reminders or (2.1.330) as messages of the role `system`, and the notes of tasks,
  which become reminders; blanks around a text;
- how texts are spread over messages: clients merge neighbours of one role;
- the prompt that we resume with, and "No response requested.", which older clients put before it;
- client-owned texts of the samples, which are filler there;
- that later clients send the tool `Task` by its new name `Agent`;
- of pictures and thinking, all but that they are there.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate import open_session
from sessrotate.clients.preview import Continues
from sessrotate.reports import listing
from support import reading
from support.command_line import piped
from support.real_clients.client import QUESTION
from support.real_clients.editing import Session
from support.real_clients.making import MAKERS, Sessions
from support.real_clients.mock_api import Block, blocks, call
from support.real_clients.rotating import rotate
from support.real_clients.synthetic import CASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.real_clients.client import Client
    from support.real_clients.mock_api import Body, Moment, Request

    Told = tuple[str, ...]

FIXTURES: Final = sorted(
    path
    for path in (Path(__file__).parents[2] / "fixtures" / "claude").glob("*/projects/*/*.jsonl")
    if not path.name.startswith("agent-")
)

_PRESERVED = "rows that a later client's compaction preserved are not put behind its summary"

DIFFERS: Final = {
    **{
        ("2.0.28", sample): _PRESERVED
        for sample in ("A-2.1.330", "auto-2.1.300", "auto-2.1.330", "dup-2.1.300", "hook-2.1.260")
    },
    ("2.1.112", "hook-2.1.260"): _PRESERVED,
    ("2.0.28", "four_preserved_by_their_ends_alone"): _PRESERVED,
    ("2.0.28", "gone_back_before_a_preserving_compaction"): _PRESERVED,
    (
        "2.1.112",
        "gone_back_before_a_preserving_compaction",
    ): "what went back follows the row before it by time, not the preserved rows",
    ("2.0.28", "a_row_continues_one_that_is_nowhere"): "it begins the conversation there",
}
"""Where a client sends another conversation than its rows are, and why; newer ones do not."""

SOMETIMES: Final = {
    ("2.0.28", "compacted_twice_at_once"),
    ("2.0.28", "compacted_often"),
}
"""It goes on from the newest row by its time, and may date the output of `/compact` behind the turn
after it, which it then forgets."""

RARE: Final = (
    "four_preserved_by_their_ends_alone",
    "gone_back_before_a_preserving_compaction",
    "gone_back_before_two_plain_compactions",
    "gone_back_after_the_compaction",
    "a_row_continues_one_that_is_nowhere",
    "a_subagents_rows_in_the_session",
    "a_torn_last_line",
)
"""Cases of `support.real_clients.synthetic` in which another conversation might be read."""

NO_RESPONSE: Final = ("assistant", "No response requested.")

PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)
"""A picture of one pixel."""

_ADDED: Final = re.compile(
    r"<system-reminder>.*?</system-reminder>|<task-notification>.*?</task-notification>", re.DOTALL
)
_FILLER: Final = "Lorem ipsum"


def told(role: str, message: Body) -> Iterator[Told]:
    """Yield what a message tells, without what clients add when they send it."""
    for block in blocks(message):
        kind = block["type"]
        if kind == "text":
            said = plain(block["text"])
            if said and not said.startswith(_FILLER):
                yield role, said
        elif kind == "tool_use":
            name = "Agent" if block["name"] == "Task" else block["name"]
            yield role, kind, block["id"], name, json.dumps(block["input"])
        elif kind == "tool_result":
            yield role, kind, block["tool_use_id"], plain(result(block))
        else:
            yield role, kind


def plain(text: str) -> str:
    return _ADDED.sub("", text).strip()


def result(block: Block) -> str:
    """Return a tool's result as one text."""
    return "\n".join(str(each.get("text", each["type"])) for each in blocks(block))


def sent(client: Client, path: Path) -> list[Told]:
    """Return what the client tells the model when it resumes a session, but for our question."""
    body, _ = client.resume_body(path)
    found = [
        each
        for message in body["messages"]
        if message["role"] != "system"
        for each in told(message["role"], message)
    ]
    assert found.pop() == ("user", QUESTION)
    return without_reply(found)


def read(path: Path) -> list[Told]:
    """Return what we read from a session: in the library, and by the command."""
    lines = reading.conversation(path, {"CLAUDE_CONFIG_DIR": str(path.parents[2])})
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    found = [
        each
        for row in rows
        if row["type"] in {"user", "assistant"}
        for each in told(row["type"], row["message"])
    ]
    return without_reply(found)


def without_reply(found: list[Told]) -> list[Told]:
    return found[:-1] if found[-1:] == [NO_RESPONSE] else found


def check(client: Client, path: Path, name: str) -> None:
    """Compare what we read with what a client sends; what differs must be known to do so."""
    expected, found = sent(client, path), read(path)
    assert expected
    case = client.version.like, name
    if case not in SOMETIMES or found == expected:
        assert (found == expected) == (case not in DIFFERS), expected
    else:
        assert "<local-command-stdout>" in expected[-1][1], expected


@pytest.mark.parametrize("kind", MAKERS)
def test_the_conversation_of_a_session_is_what_its_client_sends(
    sessions: Sessions, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, path = sessions.get(kind)
    check(client, path, kind)

    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(client.config))
    whole = read(path)
    assert rotate(client, path).code == 0
    assert read(path) == whole


@pytest.mark.parametrize("path", FIXTURES, ids=[path.parts[-4] for path in FIXTURES])
def test_the_conversation_of_a_sample_is_what_any_client_sends(client: Client, path: Path) -> None:
    check(client, path, path.parts[-4])


@pytest.mark.parametrize("name", RARE)
def test_the_conversation_of_a_rare_session_is_what_its_client_sends(
    sessions: Sessions, name: str
) -> None:
    client, path = sessions.get("compacted")
    session = Session.read(path)
    CASES[name].change(session)
    path.write_bytes(session.data)
    check(client, path, name)


def test_what_a_client_wrote_behind_its_last_checkpoint_is_read(sessions: Sessions) -> None:
    client, path = sessions.get("compacted")
    session = Session.read(path)
    answer = session.answer("After, question 1.")
    del session.rows[session.at(answer) + 1 :]
    path.write_bytes(session.data)
    check(client, path, "a crash before the checkpoint")
    assert "After, question 1." in {each[-1] for each in read(path)}


def test_what_was_typed_while_the_client_worked_is_read_where_it_is_sent(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two prompts come while a tool is called, one with a picture, and one before the turn ends."""
    path = typed_meanwhile(client)
    lost = {"type": "queue-operation", "operation": "enqueue", "content": "LOST"}
    with path.open("a") as file:
        file.write(json.dumps({**lost, "sessionId": path.stem}) + "\n")
    said = ["Fire it.", "MEANWHILE-ONE", "MEANWHILE-PICTURE", "MEANWHILE-LAST"]
    body, _ = client.resume_body(path)
    sent = json.dumps(body["messages"])
    assert "LOST" not in sent
    if client.version.like == "2.0.28":  # it answers them, and does not write them down
        assert [sent.count(each) for each in said] == [1, 0, 0, 1]
        return
    assert [sent.count(each) for each in said] == [1] * 4
    assert sent.count('"type": "image"') == 1

    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(client.config))
    answers = re.findall("(?:Reply|Calling) [a-z]{16}", sent)
    for arguments in ((), ("--history",)):
        shown = piped("read", path, *arguments).out
        typed = re.findall(r"^> ([\w-]+(?: it\.)?|\[image/png)", shown, re.MULTILINE)
        more = ["LOST"] if arguments else []  # which is not sent
        assert typed == [*said[:3], "[image/png", said[3], *more]
        # Behind the same answers as in the request, but for what 2.1.260 says once more behind
        # the results, as a message of the system.
        assert re.findall("(?:Reply|Calling) [a-z]{16}|MEANWHILE-LAST", shown) == [
            *answers[:2], "MEANWHILE-LAST", *answers[2:],
        ]  # fmt: skip
        assert shown.index(answers[0]) < shown.index(said[1]) < shown.index(said[2])
        assert shown.index(said[2]) < shown.index(answers[1])


def typed_meanwhile(client: Client) -> Path:
    """Have prompts typed while the client works, as people do; return the session's file."""
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    calls = call("Bash", command="echo fired", description="Say a word")
    with client.conversation() as conversation:
        moments: list[str] = []

        def meanwhile(request: Request, moment: Moment) -> None:
            if not request.is_conversation or moment != "before" or len(moments) == 2:
                return
            moments.append(moment)
            if len(moments) == 1:
                conversation.send(text("MEANWHILE-ONE"))
                conversation.send(text("MEANWHILE-PICTURE"), {"type": "image", "source": source})
            else:
                conversation.send(text("MEANWHILE-LAST"))
            time.sleep(1)  # until the client has read them: nothing tells it

        with client.api.meanwhile(meanwhile):
            turn = conversation.say(f"Fire it. {calls}")
            conversation.end_of_turn()
    return client.session_file(turn.session)


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def test_a_fork_is_known_to_continue_its_trunk(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, path = sessions.get("forked")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(client.config))
    found = {each.path.name: each for each in listing.sessions(continuations=True)}
    fork = found.pop(path.name)
    (trunk,) = found.values()
    assert (trunk.continues, fork.continues) == (None, Continues(trunk.id, "same rows"))


def test_an_agent_is_known_by_the_call_that_started_it(sessions: Sessions) -> None:
    _, path = sessions.get("with_subagent")
    with open_session(path) as session:
        agents = [agent for agent in session.agents() if not agent.is_warm_up]
        calls = {
            json.loads(record.line)["message"]["content"][0]["id"]
            for record in session.history()
            if b'"tool_use"' in record.line and b"errand" in record.line
        }
    assert len(agents) == 2
    assert {agent.call for agent in agents} == calls
