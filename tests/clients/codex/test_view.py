"""What rows of Codex say: each thing once, the client's own words apart from the user's."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.codex.reader import conversation, key, view
from sessrotate.clients.view import (
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
from support.codex_sessions import BARE, FILES, ID, Rows, as_line, message, opened, record
from support.examples import examples
from support.lines import values


def said(kind: str, **payload: Any) -> View:
    found = view(record(Rows().add(kind, **payload)))
    assert found is not None
    return found


def item(**payload: Any) -> View:
    return said("response_item", **payload)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem[:20]}")
def test_everything_in_a_real_session_is_understood(path: Path) -> None:
    views = [view(record(line)) for line in path.read_bytes().splitlines()]
    assert all(each is not None for each in views)
    blocks = [block for each in views if each for block in each.blocks]
    assert not any(isinstance(block, Unknown) for block in blocks)
    results = [b for block in blocks if isinstance(block, ToolResult) for b in block.blocks]
    assert not any(isinstance(block, Unknown) for block in results)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem[:20]}")
def test_each_thing_that_was_said_is_shown_once(path: Path) -> None:
    texts: Counter[str] = Counter()
    written: Counter[str] = Counter()
    for line in path.read_bytes().splitlines():
        found = view(record(line))
        assert found is not None
        if found.kind in {"user", "assistant"} and not found.is_meta:
            texts.update(block.text for block in found.blocks if isinstance(block, Text))
        row = json.loads(line)
        payload = row["payload"]
        if row["type"] == "response_item" and payload.get("role") in {"user", "assistant"}:
            written.update(part["text"] for part in payload["content"])
    assert texts
    assert all(count <= written[text] for text, count in texts.items())


def test_a_real_session_of_bare_rows_is_read() -> None:
    session = opened(BARE)
    shown = [view(each) for each in conversation(session)]
    asked = "alpha [[run echo hi; seq 1 5]]"
    call = "call_41c923d929fdd014"
    command = {"command": ["bash", "-lc", "echo hi; seq 1 5"]}
    assert [each.blocks[0] for each in shown if each and not each.is_meta] == [
        Text(asked),
        Thinking("thinking of alpha [[run echo hi;"),
        ToolCall(call, "shell", command),
        ToolResult(call, (Text("hi\n1\n2\n3\n4\n5\n"),), is_error=False),
        Thinking("thinking of alpha [[run echo hi;"),
        Text(f"Answer to: {asked}"),
    ]
    assert len({key(each) for each in session.history()}) == len(list(session.history()))


@pytest.mark.parametrize("shape", ["bare", "legacy", "paginated"])
def test_all_shapes_of_rows_say_the_same(shape: str) -> None:
    rows = Rows(shape)
    rows.turn("hello")
    views = [found for line in rows.lines if (found := view(record(line)))]
    shown = [found for found in views if found.kind != "other"]
    assert [(found.kind, found.blocks) for found in shown] == [
        ("user", (Text("hello"),)),
        ("assistant", (Text("re: hello"),)),
    ]
    assert all((found.time is None) == (shape == "bare") for found in shown)


@pytest.mark.parametrize(
    ("text", "is_meta", "is_summary"),
    [
        ("fix the tests", False, False),
        ("<environment_context>\n  <cwd>/srv</cwd>", True, False),
        ("# AGENTS.md instructions for /srv\n\n<INSTRUCTIONS>", True, False),
        ("<user_instructions>\n\nbe brief", True, False),
        ("<turn_aborted>\nby the user", True, False),
        ("<div> is what I mean", False, False),
        (
            "Another language model started to solve this problem and produced a summary of",
            False,
            True,
        ),
    ],
)
def test_what_the_client_says_in_the_users_name_is_no_prompt(
    text: str, is_meta: bool, is_summary: bool
) -> None:
    found = item(**message("user", text))
    assert (found.kind, found.is_meta, found.is_summary) == ("user", is_meta, is_summary)


@pytest.mark.parametrize(
    ("origin", "kind", "is_meta", "is_summary"),
    [
        ("user", "user.text", False, False),
        ("harness", "environments.environment_context", True, False),
        ("harness", "compaction.summary", False, True),
    ],
)
def test_a_newer_client_says_itself_who_speaks(
    origin: str, kind: str, is_meta: bool, is_summary: bool
) -> None:
    passed = {
        "content_item_kinds": [kind],
        "content_item_metadata": [{"provenance": {"type": origin}}],
    }
    name = "internal_chat_message_metadata_passthrough"
    found = item(**message("user", "<environment_context>"), **{name: passed})
    assert (found.is_meta, found.is_summary) == (is_meta, is_summary)


def test_developers_and_base_instructions_are_the_clients() -> None:
    found = item(**message("developer", "be careful"))
    assert (found.kind, found.is_meta, found.blocks) == ("system", True, (Text("be careful"),))
    meta = said("session_meta", id=ID, base_instructions={"text": "you are"}, cwd="/srv")
    assert (meta.kind, meta.is_meta, meta.uuid) == ("system", True, ID)
    assert meta.blocks == (Text("you are"),)
    bare = view(record(as_line({"id": ID, "timestamp": "t", "instructions": "be brief"})))
    assert bare is not None
    assert (bare.type, bare.is_meta, bare.blocks) == ("session_meta", True, (Text("be brief"),))


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        (
            {"history_base": {"thread_id": "T", "end_ordinal_exclusive": 1118}},
            "This session continues T at ordinal 1,118.",
        ),
        ({"history_base": {"thread_id": "T"}}, "This session was forked from T."),
        ({"forked_from_id": "T"}, "This session was forked from T."),
    ],
)
def test_a_fork_says_what_it_continues(meta: dict[str, Any], words: str) -> None:
    assert said("session_meta", id=ID, **meta).blocks == (Text(words),)


def test_thinking_is_its_summary_or_nothing_that_was_kept() -> None:
    summary = [{"type": "summary_text", "text": "first"}, {"type": "summary_text", "text": "then"}]
    raw = [{"type": "reasoning_text", "text": "all of it"}]
    found = item(type="reasoning", id="rs_1", summary=summary, content=raw)
    assert found.kind == "assistant"
    assert found.blocks == (Thinking("first"), Thinking("then"), Thinking("all of it"))
    hidden = item(type="reasoning", summary=[], content=None, encrypted_content="x")
    assert hidden.blocks == (Thinking(""),)


@pytest.mark.parametrize(
    ("payload", "call"),
    [
        (
            {"type": "function_call", "name": "shell", "arguments": '{"cmd":"ls"}', "call_id": "c"},
            ToolCall("c", "shell", {"cmd": "ls"}),
        ),
        (
            {"type": "function_call", "name": "shell", "arguments": "{cut", "call_id": "c"},
            ToolCall("c", "shell", "{cut"),
        ),
        (
            {"type": "local_shell_call", "id": "l", "call_id": "c", "action": {"type": "exec"}},
            ToolCall("c", "local_shell", {"type": "exec"}),
        ),
        (
            {
                "type": "custom_tool_call",
                "name": "apply_patch",
                "input": "*** Begin",
                "call_id": "c",
            },
            ToolCall("c", "apply_patch", "*** Begin"),
        ),
        (
            {"type": "web_search_call", "id": "w", "action": {"query": "tides"}},
            ToolCall("w", "web_search", {"query": "tides"}),
        ),
    ],
)
def test_every_kind_of_call_is_a_tool_call(payload: dict[str, Any], call: ToolCall) -> None:
    found = item(**payload)
    assert (found.kind, found.blocks) == ("assistant", (call,))


PNG = "data:image/png;base64,iVBOR"


@pytest.mark.parametrize(
    ("output", "blocks", "is_error"),
    [
        ("done", (Text("done"),), False),
        ("", (), False),
        ('{"output":"no","metadata":{"exit_code":2}}', (Text("no"),), True),
        ('{"output":"yes","metadata":{"exit_code":0}}', (Text("yes"),), False),
        ('{"output":{"a":1}}', (Text('{"output":{"a":1}}'),), False),
        ('{"output":', (Text('{"output":'),), False),
        ({"content": "it failed", "success": False}, (Text("it failed"),), True),
        ({"new": 1}, (Unknown("", {"new": 1}),), False),
        ([{"type": "input_image", "image_url": PNG}], (Image("image/png", "iVBOR", ""),), False),
        ([{"type": "hologram"}], (Unknown("hologram", {"type": "hologram"}),), False),
    ],
)
def test_what_a_tool_gave(output: Any, blocks: tuple[Any, ...], is_error: bool) -> None:
    for kind in ("function_call_output", "custom_tool_call_output"):
        found = item(type=kind, call_id="c", output=output)
        assert (found.kind, found.blocks) == ("user", (ToolResult("c", blocks, is_error),))


def test_pictures_are_data_or_an_address() -> None:
    content = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": PNG},
        {"type": "input_image", "image_url": "https://example.org/a.png"},
    ]
    found = item(type="message", role="user", content=content)
    assert found.blocks == (
        Text("look"),
        Image("image/png", "iVBOR", ""),
        Image("", "", "https://example.org/a.png"),
    )
    made = item(type="image_generation_call", id="i", result="iVBOR", status="completed")
    assert made.blocks == (Image("image/png", "iVBOR", ""),)


def test_a_compaction_is_a_boundary_and_says_its_summary_if_no_item_does() -> None:
    found = said("compacted", message="so far", replacement_history=[message("user", "x")])
    assert (found.is_boundary, found.is_summary, found.blocks) == (True, False, ())
    found = said("compacted", message="so far")
    assert (found.is_boundary, found.is_summary, found.blocks) == (True, True, (Text("so far"),))
    left = item(type="compaction", encrypted_content="x")
    assert (left.is_summary, left.blocks) == (True, (Thinking(""),))


def test_a_compaction_too_long_to_be_held_is_still_one() -> None:
    line = Rows().add("compacted", message="so\nfar", replacement_history=["x" * LONGEST])
    found = view(Record(1, 0, line[:LONGEST], len(line)))
    assert found is not None
    assert (found.is_boundary, found.blocks) == (True, ())
    assert view(Record(1, 0, line[:LONGEST], len(line), is_ended=False)) is None
    other = Rows().item(**message("user", "x" * LONGEST))
    assert view(Record(0, 0, other[:LONGEST], len(other))) is None


def test_a_turn_names_its_model_and_an_answer_its_cost() -> None:
    assert said("turn_context", model="gpt-5", cwd="/srv").model == "gpt-5"
    last = {"input_tokens": 1000, "cached_input_tokens": 600, "output_tokens": 50}
    total = {"total_tokens": 9050}
    event = said(
        "event_msg", type="token_count", info={"last_token_usage": last, "total_token_usage": total}
    )
    entry = said("token_usage_record", usage=last, thread_token_usage=total)
    assert event.tokens == entry.tokens == Tokens(400, 600, 0, 50)
    assert event.message == entry.message is not None
    assert event.kind == entry.kind == "other"
    assert said("event_msg", type="token_count", info=None).tokens is None


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"type": "error", "message": "no network"}, "error: no network"),
        ({"type": "turn_aborted", "reason": "interrupted"}, "turn aborted: interrupted"),
        ({"type": "thread_rolled_back", "num_turns": 2}, "thread rolled back: 2"),
    ],
)
def test_events_that_nothing_else_tells_are_told(payload: dict[str, Any], text: str) -> None:
    found = said("event_msg", **payload)
    assert (found.kind, found.blocks) == ("system", (Text(text),))


ODD = values(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    st.sampled_from(
        [
            *("type", "content", "text", "summary", "output", "info", "role", "image_url"),
            "arguments",
        ]
    ),
    leaves=12,
    most=4,
)
KINDS = st.sampled_from(
    [
        *("session_meta", "response_item", "compacted", "turn_context", "event_msg"),
        "token_usage_record",
    ]
)
TYPES = st.sampled_from(
    [
        *("message", "reasoning", "function_call", "function_call_output", "compaction"),
        *("token_count", "item_completed", "user_message", "error", "image_generation_call", "?"),
    ]
)


@given(
    KINDS,
    TYPES,
    st.dictionaries(
        st.sampled_from(
            [
                *("role", "content", "output", "info", "item", "message", "summary", "id"),
                *("source", "base_instructions", "internal_chat_message_metadata_passthrough"),
            ]
        ),
        ODD,
        max_size=5,
    ),
)
@examples(400)
def test_no_value_is_too_odd(kind: str, payload_type: str, payload: dict[str, Any]) -> None:
    payload["type"] = payload_type
    line = as_line({"timestamp": 5, "type": kind, "payload": payload})
    assert isinstance(view(record(line)), View)
    bare = as_line(payload)
    assert isinstance(view(record(bare)), View)


def test_the_same_words_twice_are_two_records_also_without_a_time() -> None:
    line = as_line(message("user", "continue"))
    first, again = Record(0, 0, line, len(line)), Record(0, 90, line, len(line))
    assert key(first) != key(again)
    assert key(record(Rows().item(**message("user", "continue")))) is None
