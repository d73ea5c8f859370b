"""A view says what its row says, and no row is an error."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from sessrotate.clients.claude.view import view
from sessrotate.clients.view import (
    Block,
    Image,
    Text,
    Thinking,
    Tokens,
    ToolCall,
    ToolResult,
    Unknown,
    View,
)
from sessrotate.parsing import LONGEST, Record

FILES = sorted((Path(__file__).parents[3] / "fixtures" / "claude").rglob("*.jsonl"))
ROWS = [line for path in FILES for line in path.read_bytes().splitlines()]


def of(row: Any) -> View:
    found = view(record(json.dumps(row).encode()))
    assert found is not None
    return found


def record(line: bytes) -> Record:
    return Record(0, 0, line, len(line))


def texts(blocks: tuple[Block, ...]) -> list[str]:
    """Return all that people read in some blocks."""
    found = []
    for block in blocks:
        if isinstance(block, Text | Thinking):
            found.append(block.text)
        elif isinstance(block, ToolResult):
            found += texts(block.blocks)
    return found


def strings(value: Any, key: str) -> list[str]:
    """Return what stands under a key anywhere in a value, in order."""
    if isinstance(value, list):
        return [*chain.from_iterable(strings(each, key) for each in value)]
    if not isinstance(value, dict):
        return []
    own = [value[key]] if isinstance(value.get(key), str) else []
    return [*own, *chain.from_iterable(strings(each, key) for each in value.values())]


# ── samples ──────────────────────────────────────────────────────────────────────────────────


def test_every_row_of_the_samples_has_a_view_of_its_kind() -> None:
    kinds = Counter()  # type: ignore[var-annotated]  # of strings, as the assertion shows
    for line in ROWS:
        row, found = json.loads(line), view(record(line))
        assert found is not None
        told = row["type"] if row["type"] in {"user", "assistant", "system", "attachment"} else ""
        assert found.kind == (told or "other")
        assert found.type == row.get("subtype", row["type"])
        assert (found.uuid, found.parent) == (row.get("uuid"), row.get("parentUuid"))
        assert (found.time, found.agent) == (row.get("timestamp"), row.get("agentId"))
        assert found.is_meta == row.get("isMeta", False)
        assert found.is_sidechain == row.get("isSidechain", False)
        assert found.is_summary == row.get("isCompactSummary", False)
        assert found.is_boundary == (row.get("subtype") == "compact_boundary")
        kinds[found.kind] += 1
    assert kinds == {"user": 204, "assistant": 158, "system": 34, "attachment": 264, "other": 361}


def test_every_message_of_the_samples_is_in_its_blocks() -> None:
    for line in ROWS:
        row, found = json.loads(line), view(record(line))
        assert found is not None
        if row["type"] not in {"user", "assistant"}:
            continue
        content = row["message"]["content"]
        if isinstance(content, str):
            command = re.search("<command-name>(.*)</command-name>", content)
            if command is None:
                is_note = content.startswith(("<local-command-", "<task-notification>"))
                assert found.blocks == (Text(content, is_note and not found.is_meta),)
            else:  # as it was typed
                assert texts(found.blocks)[0].startswith(command[1])
            continue
        assert len(found.blocks) == len(content)
        assert not [block for block in found.blocks if isinstance(block, Unknown)]
        said = [
            text
            for block in content
            for text in (
                [block["content"]]
                if isinstance(block.get("content"), str)
                else strings({**block, "input": None}, "text")
            )
        ]
        assert texts(found.blocks) == said
        calls = [block for block in found.blocks if isinstance(block, ToolCall)]
        assert [(call.id, call.name, call.arguments) for call in calls] == [
            (block["id"], block["name"], block["input"])
            for block in content
            if block["type"] == "tool_use"
        ]


def test_what_2_1_330_rendered_of_an_attachment_is_what_it_says() -> None:
    rendered = [row for row in map(json.loads, ROWS) if isinstance(row.get("rendered"), list)]
    assert rendered
    for row in rendered:
        assert not [block for block in of(row).blocks if isinstance(block, Unknown)]
    plain = next(
        row for row in map(json.loads, ROWS) if "attachment" in row and "rendered" not in row
    )
    assert of(plain).blocks == (Unknown(plain["attachment"]["type"], plain["attachment"]),)


# ── shapes ───────────────────────────────────────────────────────────────────────────────────

SOURCE = {"type": "base64", "media_type": "image/png", "data": "AAAA"}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "text", "text": "a"}, Text("a")),
        ("a", Text("a")),
        ({"type": "thinking", "thinking": "a", "signature": "s"}, Thinking("a")),
        ({"type": "redacted_thinking", "data": "s"}, Thinking("")),
        (
            {"type": "tool_use", "id": "i", "name": "n", "input": {"x": 1}},
            ToolCall("i", "n", {"x": 1}),
        ),
        ({"type": "server_tool_use", "id": "i", "name": "n"}, ToolCall("i", "n", None)),
        ({"type": "image", "source": SOURCE}, Image("image/png", "AAAA", "")),
        ({"type": "image", "source": {"type": "url", "url": "u"}}, Image("", "", "u")),
        ({"type": "document", "source": SOURCE}, Image("image/png", "AAAA", "")),
        ({"type": "image"}, Unknown("image", {"type": "image"})),
        ({"type": "tool_result", "tool_use_id": "i"}, ToolResult("i", (), is_error=False)),
        (
            {"type": "tool_result", "tool_use_id": "i", "content": "a", "is_error": True},
            ToolResult("i", (Text("a"),), is_error=True),
        ),
        (
            {
                "type": "tool_result",
                "tool_use_id": "i",
                "content": [{"type": "image", "source": SOURCE}],
            },
            ToolResult("i", (Image("image/png", "AAAA", ""),), is_error=False),
        ),
        # anthropics/claude-code #63790: tools that the provider runs.
        ({"type": "mcp_tool_use", "id": "i", "name": "n", "input": 1}, ToolCall("i", "n", 1)),
        (
            {
                "type": "web_search_tool_result",
                "tool_use_id": "i",
                "content": [
                    {"type": "web_search_result", "title": "Tides", "url": "https://example.org/"},
                    {"type": "web_search_result", "title": "Moons"},
                ],
            },
            ToolResult(
                "i",
                (Text("Tides · https://example.org/"), Text("Moons")),
                is_error=False,
                tool="web_search",
            ),
        ),
        (
            {
                "type": "advisor_tool_result",
                "tool_use_id": "i",
                "content": {"type": "advisor_result", "text": "a"},
            },
            ToolResult("i", (Text("a"),), is_error=False, tool="advisor"),
        ),
        (
            {"type": "tool_result", "tool_use_id": "i", "content": {"k": "v"}},
            ToolResult("i", (Unknown("", {"k": "v"}),), is_error=False),
        ),
        ({"type": "new"}, Unknown("new", {"type": "new"})),
        (7, Unknown("", 7)),
    ],
)
def test_a_block_is_read_by_its_type(block: Any, expected: Block) -> None:
    assert of({"type": "user", "message": {"content": [block]}}).blocks == (expected,)


# getagentseal/codeburn PR #450: other programs write a text or a block where clients write a list.
@pytest.mark.parametrize("kind", ["user", "assistant"])
def test_a_message_that_is_a_text_is_that_text(kind: str) -> None:
    assert of({"type": kind, "message": "a"}).blocks == (Text("a"),)


def test_a_content_that_is_one_block_is_that_block() -> None:
    block = {"type": "text", "text": "a"}
    assert of({"type": "user", "message": {"content": block}}).blocks == (Text("a"),)


def test_what_an_answer_cost_is_read_from_its_usage() -> None:
    usage = {"input_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 3}
    row = {"type": "assistant", "message": {"id": "m", "model": "x", "usage": {**usage}}}
    assert of(row).tokens == Tokens(1, 2, 3, 0)
    assert (of(row).message, of(row).model) == ("m", "x")
    row["message"]["usage"] = {"input_tokens": True, "output_tokens": -1}  # type: ignore[index]  # it is an object
    assert of(row).tokens == Tokens(0, 0, 0, 0)
    assert not isinstance(of(row).tokens.sent, bool)  # type: ignore[union-attr]  # as just seen


@pytest.mark.parametrize("line", [b"", b"no JSON", b"[]", b'"text"', b"null", b'{"type":', b"\0"])
def test_what_is_no_row_has_no_view(line: bytes) -> None:
    assert view(record(line)) is None


def test_a_row_too_long_to_be_held_has_no_view() -> None:
    assert view(Record(0, 0, b'{"type":"user"}', LONGEST + 1)) is None


@pytest.mark.parametrize("levels", [1, 20, 100, 200, 300, 400, 450, 480, 490, 5000])
def test_results_in_results_are_no_error_however_deep(levels: int) -> None:
    inner = '{"type":"tool_result","content":['
    line = '{"type":"user","message":{"content":[' + inner * levels + "]}" * levels + "]}}"
    found = view(record(line.encode()))
    assert found is None or found.kind == "user"
    assert found is not None or levels > 400
