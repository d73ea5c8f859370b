"""A text in the user's name is taken apart where what was typed begins and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.claude.view import parts_of, typed_at_a_tool
from sessrotate.clients.view import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

WORDS = st.sampled_from(["Mend it", "<div>a</div>", "a < b", "line\n\nline", "<system-reminder"])
REMINDERS = st.sampled_from(["", "x\ny", "<b>"]).map("<system-reminder>{}</system-reminder>".format)
ELEMENTS = st.one_of(
    REMINDERS,
    st.sampled_from(
        [
            "<ide_opened_file>The user opened a.py.</ide_opened_file>",
            "<ide_selection>x\n</ide_selection>",
            "<user-prompt-submit-hook>told</user-prompt-submit-hook>",
        ]
    ),
)


def text(found: Iterable[Text], *, is_note: bool) -> list[str]:
    return [part.text for part in found if part.is_note == is_note]


@given(
    st.lists(ELEMENTS, max_size=3),
    st.lists(st.tuples(WORDS, REMINDERS), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from(["", "\n", " \n\n"]),
)
def test_what_was_typed_is_what_is_no_element(
    before: list[str], told: list[tuple[str, str]], is_last_typed: bool, blank: str
) -> None:
    pieces = [*before, *(piece for pair in told for piece in pair)][: -1 if is_last_typed else None]
    found = parts_of(blank.join(pieces))
    assert text(found, is_note=False) == [words for words, _ in told]
    assert [part.text for part in found] == pieces


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", []),
        (" words ", [" words "]),
        ("<system-reminder>torn", []),
        ("<ide_selection>torn", []),
        ("<task-notification>done</task-notification>\nRead the output file.", []),
        ("<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>", []),
        ("<bash-input>ls</bash-input>", ["!ls"]),
        ("<user-memory-input>never</user-memory-input>", ["never"]),
        ('<teammate-message teammate_id="lead" color="blue">\nTask\n</teammate-message>', ["Task"]),
        ("<command-message>r</command-message>\n<command-name>/r</command-name>", ["/r"]),
        ("<command-name>/r</command-name> x", ["<command-name>/r</command-name> x"]),
        ("<command-name>/r", ["<command-name>/r"]),
    ],
)
def test_tags_around_what_was_typed_are_left_out(said: str, expected: list[str]) -> None:
    found = parts_of(said)
    assert text(found, is_note=False) == expected
    assert expected or text(found, is_note=True) == ([said] if said else [])


def test_only_what_the_client_says_of_its_user_was_typed_at_a_tool() -> None:
    assert typed_at_a_tool("It says: The user answered: no") == ""
    assert typed_at_a_tool("The user answered: no") == "no"
    assert typed_at_a_tool("The user doesn't want to proceed with this tool use. STOP.") == ""
