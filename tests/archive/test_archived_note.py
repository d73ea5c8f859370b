"""A note says what it was told, and whatever else stands in its place is damage."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sessrotate.archive import archived_note
from sessrotate.archive.archived_note import CompressedFile, Note, Standing
from sessrotate.errors import DamagedError
from sessrotate.segments import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = st.text(st.characters())  # surrogates too: a file's name need not be UTF-8
DIGEST = st.none() | st.from_regex(r"xxh3_128:[0-9a-f]{32}", fullmatch=True)
COMPRESSED = st.builds(CompressedFile, TEXT, st.integers(0, 2**63 - 1), DIGEST)
FOLDER = st.tuples(TEXT, st.integers(-(2**61), 2**61))
NAME = st.from_regex(r"-[a-zA-Z0-9-]{0,40}", fullmatch=True)
NOTES = st.builds(
    Note,
    TEXT,
    st.sampled_from(get_args(Standing)),
    TEXT,
    NAME,
    st.lists(COMPRESSED).map(tuple),
    st.lists(FOLDER).map(tuple),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=8,
)


@given(NOTES)
def test_a_note_comes_back_as_it_was_written(note: Note) -> None:
    assert archived_note.parse(one_line.dump(note), note.session) == note


@given(NOTES)
def test_a_note_of_another_session_is_none(note: Note) -> None:
    with pytest.raises(DamagedError):
        archived_note.parse(one_line.dump(note), f"{note.session}x")


@given(
    NOTES, st.sampled_from(["compressed", "folders", "standing", "format", "at", "project"]), JSON
)
def test_whatever_a_field_holds_it_is_understood_or_damage(
    note: Note, field: str, value: object
) -> None:
    document: dict[str, Any] = json.loads(one_line.dump(note))
    document[field] = value
    try:
        found = archived_note.parse(json.dumps(document).encode() + b"\n", note.session)
    except DamagedError:
        return
    assert json.loads(one_line.dump(found)) == document


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_anything_else_is_damage(data: bytes) -> None:
    with pytest.raises(DamagedError):
        archived_note.parse(data, "session")


@pytest.mark.parametrize(
    "change",
    [
        lambda note: replace(note, compressed=(CompressedFile("a", -1),)),
        lambda note: replace(note, compressed=(CompressedFile("a", 1, "md5:0"),)),
        lambda note: replace(note, folders=(("a", 2**70),)),
        lambda note: replace(note, project=""),
        lambda note: replace(note, project="../-p"),
    ],
)
def test_numbers_out_of_range_are_damage(change: Callable[[Note], Note]) -> None:
    note = Note("session", "archived", "", "-p")
    assert archived_note.parse(one_line.dump(note), "session") == note
    with pytest.raises(DamagedError):
        archived_note.parse(one_line.dump(change(note)), "session")
