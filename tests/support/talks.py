"""Makes the rows of conversations: prompts, answers, tools and what clients write among them.

Rule: one function for each kind of row, in the shape of the real clients (2.0.28 to 2.1.330).
"""

from __future__ import annotations

import json
from typing import Any

from support.command_line import boundary, row

MODEL = "model-of-a-test"


def prompt(number: int, text: str, **fields: object) -> bytes:
    return row(number, message={"role": "user", "content": text}, **fields)


def answer(number: int, *blocks: str | dict[str, Any], **fields: object) -> bytes:
    content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    message = {"role": "assistant", "model": MODEL, "content": content}
    return row(number, type="assistant", message=message, **fields)


def thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": "s"}


def call(name: str, identity: str, **arguments: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments}


def result(number: int, identity: str, content: object, **fields: object) -> bytes:
    error = {"is_error": True} if fields.pop("is_error", False) else {}
    block = {"type": "tool_result", "tool_use_id": identity, "content": content, **error}
    return row(number, message={"role": "user", "content": [block]}, **fields)


def summary(number: int, text: str) -> bytes:
    return prompt(number, text, isCompactSummary=True)


def chained(*rows: bytes) -> bytes:
    """Return these rows, each the child of the one before it, as a client writes them.

    A compaction has no parent, an agent's row is no parent, and what is no row stays as it is.
    """
    parent, done = None, []
    for each in rows:
        line = each
        try:
            fields = json.loads(each)
        except ValueError:
            fields = {}
        if uuid := fields.get("uuid"):
            is_root = fields.get("subtype") == "compact_boundary"
            fields["parentUuid"] = None if is_root else parent
            line = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            parent = parent if fields.get("isSidechain") else uuid
        done.append(line)
    return b"".join(done)


def talk(*more: bytes) -> bytes:
    """Return a session of two segments with one of everything that is shown or hidden."""
    return chained(
        *[
            row(0, type="mode", uuid=None, message=None),
            prompt(1, "first prompt"),
            answer(2, thinking("a hidden thought"), "I will look."),
            answer(3, call("Read", "t1", file_path="/srv/a.txt")),
            answer(4, call("Bash", "t2", command="make\ntest", description="run")),
            result(5, "t1", "one\ntwo\n"),
            result(6, "t2", [{"type": "text", "text": "it broke"}], is_error=True),
            answer(7, "first answer"),
            prompt(8, "caveat", isMeta=True),
            row(9, type="attachment", message=None, attachment={"type": "note", "content": "att"}),
            prompt(10, "to the agent", isSidechain=True, agentId="a1"),
            answer(11, "of the agent", isSidechain=True, agentId="a1"),
            prompt(12, "<local-command-stdout>out</local-command-stdout>"),
            prompt(13, "second prompt"),
            answer(14, "second answer"),
            boundary(15, compactMetadata={"trigger": "manual", "preTokens": 12345}),
            summary(16, "what was before"),
            prompt(17, "<command-name>/review</command-name>\n<command-args>all</command-args>"),
            answer(18, "third answer"),
        ],
        *more,
    )
