"""Names of segments follow from the session and the number, and from nothing else."""

from __future__ import annotations

import re

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
