"""What a record mostly is, for any client's views."""

from __future__ import annotations

import pytest

from sessrotate.clients import view
from sessrotate.clients.view import (
    Block,
    Gist,
    Image,
    Speaker,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    View,
)

PICTURE = Image("image/png", "d" * 50, "")


def result(*blocks: Block) -> ToolResult:
    return ToolResult("t", blocks, is_error=False)


@pytest.mark.parametrize(
    ("speaker", "blocks", "kind"),
    [
        ("user", (), "user text"),
        ("assistant", (), "assistant text"),
        ("user", (Text("a"),), "user text"),
        ("assistant", (Text("a"),), "assistant text"),
        ("assistant", (Thinking(""),), "thinking"),
        ("assistant", (Thinking(""), Text("")), "thinking"),
        ("assistant", (Thinking("abc"), Text("abcd")), "assistant text"),
        (
            "assistant",
            (Text("abc"), ToolCall("t", "x" * 9, {"a": ["bc", {"k": "d"}]})),
            "assistant text",
        ),
        ("assistant", (Text("abc"), ToolCall("t", "", {"a": ["bc", {"k": "de"}]})), "tool calls"),
        ("user", (result(),), "tool results"),
        ("user", (result(Text("a" * 60), PICTURE),), "tool results"),
        ("user", (result(Text("a" * 40), PICTURE),), "images"),
        ("user", (result(Text("a" * 40)), result(Text("b" * 20), PICTURE)), "tool results"),
        ("user", (Text("see"), PICTURE), "images"),
        ("user", (Image("", "", "https://e"), Text("https://ee")), "user text"),
        ("assistant", (Unknown("web_search_tool_result", {"a": "b"}),), "tool results"),
        ("assistant", (Unknown("new", {"a": "bcd"}), Text("a")), "unknown"),
    ],
)
def test_a_message_is_what_most_of_its_characters_are(
    speaker: Speaker, blocks: tuple[Block, ...], kind: str
) -> None:
    assert view.gist_of(View(kind=speaker, type=speaker, blocks=blocks)).kind == kind


@pytest.mark.parametrize(
    ("speaker", "word", "kind"),
    [
        ("system", "compact_boundary", "compactions"),
        ("system", "turn_duration", "metadata"),
        ("attachment", "attachment", "attachments"),
        ("other", "progress", "progress"),
        ("other", "file-history-delta", "file-history"),
        ("other", "mode", "metadata"),
        ("other", "", "unknown"),
    ],
)
def test_what_is_no_message_is_told_by_the_client_s_word(
    speaker: Speaker, word: str, kind: str
) -> None:
    seen = View(kind=speaker, type=word, blocks=(Text("x" * 99),), time="2026-03-01")
    assert view.gist_of(seen) == Gist(kind, "2026-03-01")  # type: ignore[arg-type] # a str here


def test_calls_and_the_first_result_are_named() -> None:
    blocks = (
        ToolCall("a", "Bash", {}),
        ToolCall("b", "Read", {}),
        result(),
        ToolResult("u", (), is_error=True),
    )
    found = view.gist_of(View(kind="user", type="user", blocks=blocks))
    assert (found.calls, found.result) == ((("a", "Bash"), ("b", "Read")), "t")


def test_what_nobody_can_read_is_unknown() -> None:
    assert view.gist_of(None) == Gist("unknown")
