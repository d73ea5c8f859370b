"""The note of a restored session is read back as it was written, and nothing else is one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import names
from sessrotate.archive import restored_note
from sessrotate.archive.restored_note import RestoredNote
from sessrotate.segments import one_line

AT = "2026-03-01T10:00:00Z"
NOTHING = RestoredNote()

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=3,
)


@given(st.text(max_size=20), st.none() | st.datetimes().map("{:%Y-%m-%dT%H:%M:%SZ}".format))
def test_it_is_read_back_as_it_was_written(project: str, at: str | None) -> None:
    at = at and at.rjust(20, "0")
    note = RestoredNote(project, at)
    found = restored_note.parse(one_line.dump(note))
    assert found == (note if not project or names.is_plain(project) else NOTHING)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("format", "project", "whole"), JSON)))
def test_what_says_anything_else_says_nothing(fields: dict[str, object]) -> None:
    told = {"format": 1, "project": "p", "whole": AT} | fields
    data = json.dumps(told).encode() + b"\n"
    found = restored_note.parse(data)
    assert found == NOTHING or one_line.dump(found) == data


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 3000, b"{}", b"7", b"\xff", b'{"whole": []}'])
def test_what_is_no_note_says_nothing(data: bytes) -> None:
    assert restored_note.parse(data) == NOTHING


@pytest.mark.parametrize("change", [{"format": 2}, {"more": 1}, {"whole": "soon"}])
def test_a_note_of_another_form_says_nothing(change: dict[str, object]) -> None:
    told = {"format": 1, "project": "p", "whole": AT}
    assert restored_note.parse(json.dumps(told).encode() + b"\n") == RestoredNote("p", AT)
    assert restored_note.parse(json.dumps(told | change).encode() + b"\n") == NOTHING
