"""Names of segments follow from the session and the number, and from nothing else."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import names
from sessrotate.model import LAYOUTS, Layout


def test_numbered_names_are_the_sessions_with_a_number() -> None:
    assert names.segment_file("ID", "numbered", 0) == "ID.jsonl"
    assert names.segment_file("ID", "numbered", 10) == "ID.10.jsonl"
    assert names.segment_file("ID", "numbered", 10, "zstd") == "ID.10.jsonl.zst"


def test_linked_names_are_uuids_that_stay_the_same() -> None:
    assert names.segment_file("ID", "linked", 0) == "ID.jsonl"
    first, second = (names.segment_id("ID", "linked", index) for index in (1, 2))
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", first)
    assert first != second
    assert first == names.segment_id("ID", "linked", 1)
    assert first != names.segment_id("other", "linked", 1)


@given(st.text(min_size=1), st.sampled_from(LAYOUTS))
def test_segment_0_is_called_like_the_session(session: str, layout: Layout) -> None:
    assert names.session_of(names.segment_file(session, layout, 0)) == session
    assert names.session_of(names.segment_file(session, layout, 0, "zstd")) == session
    assert names.segment_id(session, layout, 0) == session


# ── keys ─────────────────────────────────────────────────────────────────────────────────────


@given(
    st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=60)
    | st.binary(min_size=1).map(os.fsdecode)
)
def test_a_key_is_one_name_on_every_file_system_and_says_whose_it_is(session: str) -> None:
    try:
        os.fsencode(session)
    except UnicodeEncodeError:
        return
    key = names.key(session)
    assert re.fullmatch(r"(?!\.)[a-z0-9._%-]+", key)
    if names.is_plain(session):
        assert names.session_of_key(key) == session
    else:
        assert names.session_of_key(key) is None


@pytest.mark.parametrize(
    ("session", "key"),
    [
        ("5e55107a-0000-4000-a000-000000000001", "5e55107a-0000-4000-a000-000000000001"),
        ("Copy of x", "%43opy%20of%20x"),
        (".hidden", "%2ehidden"),
        ("a.b_c", "a.b_c"),
        ("100%", "100%25"),
        ("ü", "%c3%bc"),
    ],
)
def test_a_key_is_the_id_but_for_what_not_every_file_system_tells_apart(
    session: str, key: str
) -> None:
    assert (names.key(session), names.session_of_key(key)) == (key, session)


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".x", "X", "a b", "%4", "%zz", "%2F", "%2f", "a%00b", "%61", "ü"]
)
def test_what_nobody_would_have_written_is_no_key(name: str) -> None:
    assert names.session_of_key(name) is None
