"""What a file's first bytes say of its folder is what a parse of the row says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.claude import preview

FOLDERS = st.text(st.sampled_from('/abé"\\\n\t\x00\x7f\u2028\U0001f600'), max_size=9)


@given(st.lists(FOLDERS, min_size=1, max_size=3), st.booleans())
def test_the_folder_is_that_of_the_first_row_that_names_one(
    folders: list[str], ascii_only: bool
) -> None:
    rows = [{"type": "user", "cwd": folder} for folder in folders]
    text = "".join(
        json.dumps(row, separators=(",", ":"), ensure_ascii=ascii_only) + "\n" for row in rows
    )
    found = preview.look(text.encode(), b"", is_whole=True)
    assert found.folder == folders[0]


@pytest.mark.parametrize(
    ("data", "folder"),
    [
        (b'{"cwd":"/a\xff"}', "/a\ufffd"),
        (b'{"cwd":"/a\x01"}', None),
        (b'{"cwd":"/a', None),
        (b'{"cwd":"/cut\\', None),
        (b'{"cwd":"/\\x"}', None),
        (b'{"cwd":7,"cwd":"/a"}', "/a"),
        (b"{}", None),
    ],
)
def test_a_folder_that_no_parse_would_tell_is_none(data: bytes, folder: str | None) -> None:
    assert preview.look(data, b"", is_whole=True).folder == folder
