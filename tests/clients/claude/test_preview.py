"""What a file's edges say is what a parse of its rows says, and of the session's own rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.claude import preview
from sessrotate.clients.preview import EDGE
from support.examples import examples

OWN, OTHER = "0001aaaa-1111-4111-8111-000000000001", "0002aaaa-1111-4111-8111-000000000002"

FOLDERS = st.text(st.sampled_from('/abé"\\\n\t\x00\x7f\u2028\U0001f600'), max_size=9)
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=8)), timezone(-timedelta(hours=3.5))])
TIMES = st.builds(
    lambda second, zone: datetime.fromtimestamp(second, zone).isoformat(timespec="milliseconds"),
    st.integers(1_700_000_000, 1_700_000_100),
    ZONES,
)
NOISE = st.fixed_dictionaries(
    {}, optional={"cwd": FOLDERS, "timestamp": TIMES, "gitBranch": FOLDERS, "uuid": FOLDERS}
)
"""The same names in an object inside the row: they say nothing of it."""
ROWS = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "mode"])},
    optional={
        "message": NOISE,
        "sessionId": st.sampled_from([OWN, OTHER]),
        "cwd": FOLDERS | st.integers(),
        "timestamp": TIMES | st.just("yesterday") | st.integers(),
        "gitBranch": FOLDERS,
        "uuid": FOLDERS,
        "toolUseResult": NOISE,
    },
)


def in_utc(time: str) -> str:
    when = datetime.fromisoformat(time).astimezone(UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03}Z"


def first(rows: list[dict[str, Any]], name: str) -> str | None:
    """Return what is first said: by the session's own rows, and those that name none; or by any."""
    names = {row.get("sessionId") for row in rows}
    for row in rows:
        if OWN not in names or row.get("sessionId", OWN) == OWN:
            value = row.get(name)
            if isinstance(value, str) and value != "yesterday":
                return in_utc(value) if name == "timestamp" else value
    return None


@given(st.lists(ROWS, max_size=6), st.booleans(), st.booleans(), st.booleans())
@examples(300)
def test_what_is_first_and_last_in_a_file_is_what_a_parse_of_its_rows_finds(
    rows: list[dict[str, Any]], ascii_only: bool, spaced: bool, is_marked: bool
) -> None:
    separators = (", ", ": ") if spaced else (",", ":")
    data = b"".join(
        json.dumps(row, separators=separators, ensure_ascii=ascii_only).encode() + b"\n"
        for row in rows
    )
    data = b"\xef\xbb\xbf" * is_marked + data
    found = preview.look(data, data, is_whole=True, session=OWN)
    assert found.folder == first(rows, "cwd")
    assert found.started == first(rows, "timestamp")
    uuids = (row["uuid"] for row in rows if "uuid" in row)
    assert found.first == next(uuids, None)  # of a copy, it tells what that is a copy of
    assert found.ended == first(rows[::-1], "timestamp")
    assert found.branch == first(rows[::-1], "gitBranch")


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


def test_of_rows_longer_than_what_is_in_sight_the_beginning_and_the_end_tell() -> None:
    row = {
        "parentUuid": None,
        "cwd": "/srv/demo",
        "sessionId": OWN,
        "gitBranch": "ebb",
        "message": {"content": "x" * 2 * EDGE, "timestamp": "2020-01-01T00:00:00Z"},
        "uuid": "u",
        "timestamp": "2026-03-01T08:00:00.000Z",
    }
    data = json.dumps(row, separators=(",", ":")).encode()
    found = preview.look(data[:EDGE], data[-EDGE:], is_whole=False, session=OWN)
    assert (found.folder, found.ended) == ("/srv/demo", "2026-03-01T08:00:00.000Z")
    assert (found.started, found.first, found.branch) == (None, None, None)


# The rows of #30802 (anthropics/claude-code): another session's at the end of a file.
def test_rows_of_another_session_give_a_session_neither_its_title_nor_its_times() -> None:
    def row(session: str, minute: int, **members: object) -> dict[str, object]:
        return {"timestamp": f"2026-03-01T08:{minute:02}:00.000Z", "sessionId": session, **members}

    def said(session: str, minute: int, text: str) -> dict[str, object]:
        message = {"role": "user", "content": text}
        return row(session, minute, type="user", cwd=f"/srv/{session[:4]}", message=message)

    def titled(session: str, text: str) -> dict[str, object]:
        return {"type": "custom-title", "customTitle": text, "sessionId": session}

    def seen(*rows: dict[str, object]) -> tuple[str, str | None, str | None, str | None]:
        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        found = preview.look(data, data, is_whole=True, session=OWN)
        return found.title.text, found.folder, found.started, found.ended

    own = said(OWN, 10, "Mine"), said(OWN, 20, "Also mine")
    other = said(OTHER, 30, "Another's"), titled(OTHER, "Another's title")
    expected = ("/srv/0001", "2026-03-01T08:10:00.000Z", "2026-03-01T08:20:00.000Z")
    for rows in (own + other, other + own, (own[0], *other, own[1])):
        assert seen(*rows) == ("Mine", *expected)
        assert seen(*rows, titled(OWN, "My title")) == ("My title", *expected)
        assert seen(titled(OWN, "My title"), *rows) == ("My title", *expected)
    # A copy under another name has rows of the other one only.
    when = "2026-03-01T08:30:00.000Z"
    assert seen(*other) == ("Another's title", "/srv/0002", when, when)


def test_a_row_whose_date_is_out_of_sight_is_not_dated_by_another_sessions() -> None:
    """It may be from a minute ago: then the file's own date counts."""
    old, now = "2026-01-01T08:00:00.000Z", "2026-11-25T08:00:00.000Z"
    long = {"sessionId": OWN, "timestamp": now, "toolUseResult": {"text": "x" * 2 * EDGE}}
    foreign = {"sessionId": OTHER, "timestamp": old}
    data = b"".join(
        json.dumps(row).encode() + b"\n" for row in ({**foreign, "sessionId": OWN}, long, foreign)
    )
    assert preview.look(data[:EDGE], data[-EDGE:], is_whole=False, session=OWN).ended is None


def test_what_only_the_beginning_is_known_of_has_no_end() -> None:
    """Of a compressed file that was put away there is no tail."""
    row = {"sessionId": OWN, "timestamp": "2026-01-01T08:00:00.000Z", "gitBranch": "first"}
    head = (json.dumps(row).encode() + b"\n") * 2000
    found = preview.look(head[:EDGE], b"", is_whole=False, session=OWN)
    assert (found.started, found.ended, found.branch) == (row["timestamp"], None, None)
