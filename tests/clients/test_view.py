"""What a person asked, told from what the client says in his name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sessrotate.clients import view
from sessrotate.clients.claude import preview as claude_preview
from sessrotate.clients.claude import view as claude_view
from sessrotate.clients.claude.rows import shown_of
from sessrotate.clients.view import Text
from sessrotate.parsing import Record
from support import talks

FILES = sorted((Path(__file__).parents[2] / "fixtures" / "claude").rglob("*.jsonl"))


def test_a_session_is_called_by_a_prompt_and_by_all_but_commands() -> None:
    """The two definitions agree over what real clients wrote, but for where they mean not to."""
    called = commands = 0
    for line in [line for path in FILES for line in path.read_bytes().splitlines()]:
        found, row = claude_view.view(Record(0, 0, line, len(line))), json.loads(line)
        shown = shown_of(line)
        assert found is not None
        assert shown is not None
        titles, is_prompt = claude_preview.is_listed(shown), view.is_prompt(found)
        assert is_prompt == titles, line
        is_typed = view.is_typed(found)
        is_command = is_typed and str(row["message"]["content"]).startswith("<command-")
        assert is_typed == (is_prompt or is_command), line
        called, commands = called + titles, commands + is_command
    assert called > 50
    assert commands > 5  # all of them are /compact, which begins no turn


@pytest.mark.parametrize(
    ("said", "is_prompt", "typed"),
    [
        ("<command-name>/review</command-name>\n<command-args>x</command-args>", True, "/review x"),
        ("<command-name>/compact</command-name>", False, "/compact"),
        ("<command-name>/compact</command-name>\n<command-args>x</command-args>", False,
         "/compact x"),
        ("<command-name>/compact</command-name> and more", True, None),
        ("say <command-name>/compact</command-name>", True, None),
    ],
)  # fmt: skip
def test_to_ask_for_a_compaction_begins_no_turn(
    said: str, is_prompt: bool, typed: str | None
) -> None:
    line = talks.prompt(1, said)
    found = claude_view.view(Record(0, 0, line, len(line)))
    assert found is not None
    assert view.is_prompt(found) == is_prompt
    assert view.is_typed(found)
    assert view.asked(found) == (typed or said)
    assert found.blocks == (Text(typed or said),)
