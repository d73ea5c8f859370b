"""The conversation is the way from the newest leaf back, with what belongs beside it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients import common
from sessrotate.clients.claude import thread
from sessrotate.parsing import records
from support.lines import values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.parsing import Record

    Row = dict[str, Any]


def row(uuid: str, parent: str | None, kind: str = "user", **fields: Any) -> Row:
    """Return a row; `at` are milliseconds."""
    time = f"2026-03-01T12:00:00.{fields.pop('at', 0):03d}Z"
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": time, **fields}


def call(uuid: str, parent: str, answer: str = "msg") -> Row:
    return row(uuid, parent, "assistant", message={"id": answer, "content": []})


def result(uuid: str, parent: str) -> Row:
    content = [{"type": "tool_result", "tool_use_id": parent, "content": "done"}]
    return row(uuid, parent, message={"content": content})


def conversation(rows: list[Any]) -> list[str]:
    """Return the uuids of the conversation in these rows."""
    data = b"".join(json.dumps(each).encode() + b"\n" for each in rows)
    found = thread.conversation(partial(records, [data], 0))
    return [json.loads(record.line)["uuid"] for record in found]


def test_a_branch_that_the_user_left_is_no_part_of_it() -> None:
    rows = [row("a", None), row("b", "a", at=1), row("c", "b", at=2), row("d", "a", at=3)]
    assert conversation(rows) == ["a", "d"]


def test_agents_rows_are_no_part_of_it() -> None:
    side = [row("s", "a", isSidechain=True, at=5), row("t", "s", isSidechain=True, at=6)]
    assert conversation([row("a", None), *side, row("b", "a", at=1)]) == ["a", "b"]


def test_agents_rows_at_the_end_are_no_leaf() -> None:
    side = [row("s", "b", isSidechain=True, at=5), row("t", "s", isSidechain=True, at=6)]
    assert conversation([row("a", None), row("b", "a", at=1), *side]) == ["a", "b"]


def test_a_row_that_another_continues_is_no_leaf_wherever_it_stands() -> None:
    assert conversation([row("a", None), row("c", "b"), row("b", "a")]) == ["a", "b", "c"]


def test_the_leaf_that_the_client_wrote_down_last_counts_more_than_the_rows_before() -> None:
    rows = [row("a", None), row("b", "a", at=1), row("c", "a", at=2)]
    told = [{"type": "last-prompt", "leafUuid": "c"}, {"type": "last-prompt", "leafUuid": "b"}]
    late = row("d", "c", at=3)
    assert conversation([*rows, *told, late]) == ["a", "c", "d"]
    assert conversation([*rows, *told]) == ["a", "b"]
    assert conversation([*rows, *told, {"type": "last-prompt"}]) == ["a", "b"]
    assert conversation([*rows, {"type": "last-prompt", "leafUuid": "gone"}]) == ["a", "c"]


def test_the_last_row_counts_and_not_the_newest() -> None:
    output = row("o", "c", at=9)  # 2.1.112 dates the output of /compact behind the next turn
    rows = [row("a", None), row("c", "a", at=1), output, row("d", "o", at=2), row("e", "d", at=3)]
    assert conversation(rows) == ["a", "c", "o", "d", "e"]


def test_tools_used_side_by_side_stay_with_their_answer() -> None:
    rows = [row("a", None), call("x", "a"), call("y", "x"), result("ry", "y"), result("rx", "x")]
    rows.append(row("z", "rx", "assistant", message={"id": "other"}, at=9))
    assert conversation(rows) == ["a", "x", "y", "ry", "rx", "z"]


def test_what_is_no_result_beside_an_answer_is_a_branch() -> None:
    rows = [row("a", None), call("x", "a"), row("left", "x"), row("on", "x", at=1)]
    assert conversation(rows) == ["a", "x", "on"]


def test_progress_links_rows_and_says_nothing() -> None:
    rows = [row("a", None), row("p", "a", "progress"), row("b", "p", at=1)]
    assert conversation(rows) == ["a", "b"]
    assert conversation([row("x", None), row("p", None, "progress"), row("b", "p", at=1)]) == ["b"]


def test_a_row_whose_parent_is_nowhere_follows_the_row_before_it_by_time() -> None:
    rows = [row("a", None), row("c", "a", at=2), row("b", "a", at=1), row("z", "gone", at=2)]
    assert conversation(rows) == ["a", "c", "z"]
    assert conversation([row("a", None), row("b", "gone", at=1)]) == ["a", "b"]
    assert conversation([row("b", "gone")]) == ["b"]
    same = [row("a", None), row("first", "a", at=1), row("then", "a", at=1)]
    assert conversation([*same, row("b", "gone", at=1)]) == ["a", "first", "b"]


def test_a_row_whose_parent_is_nowhere_follows_none_that_is_over_five_seconds_older() -> None:
    near = row("b", "gone", timestamp="2026-03-01T12:00:05.000Z")
    far = row("b", "gone", timestamp="2026-03-01T12:00:05.001Z")
    assert conversation([row("a", None), near]) == ["a", "b"]
    assert conversation([row("a", None), far]) == ["b"]


def test_a_row_whose_parent_is_nowhere_does_not_follow_what_already_follows_it() -> None:
    rows = [row("a", None), row("b", "gone", at=2), row("c", "b", at=1)]
    assert conversation(rows) == ["a", "b", "c"]


# ── what a compaction preserved ──────────────────────────────────────────────────────────────


def boundary(**metadata: Any) -> Row:
    return row("B", None, "system", subtype="compact_boundary", at=3, compactMetadata=metadata)


OLD = [row("o1", None), row("k1", "o1", at=1), row("k2", "k1", at=2)]
REST = [row("S", "B", at=4), row("n", "S", at=5)]


@pytest.mark.parametrize(
    "metadata",
    [
        {"preservedMessages": {"anchorUuid": "S", "uuids": ["k1", "k2"]}},
        {"preservedSegment": {"anchorUuid": "S", "headUuid": "k1", "tailUuid": "k2"}},
    ],
)
def test_what_a_compaction_preserved_stands_behind_its_summary(metadata: Row) -> None:
    assert conversation([*OLD, boundary(**metadata), *REST]) == ["B", "S", "k1", "k2", "n"]
    back = row("back", "o1", at=9)  # the user went back to before the compaction
    assert conversation([*OLD, boundary(**metadata), *REST, back])[-2:] == ["k2", "back"]
    late = [boundary(**metadata), *OLD[1:], *REST]  # as a fork of 2.1.330 has them
    assert conversation(late) == ["B", "S", "k1", "k2", "n"]


def test_a_row_that_says_nothing_in_the_end_and_follows_what_is_nowhere_is_no_error() -> None:
    assert conversation([row("b", None), row("b", "gone", "progress")]) == []
    beside = call("y", "x"), row("y", "x", "progress")
    assert conversation([call("x", "a"), *beside, row("z", "x")]) == ["x", "z"]


def test_a_chain_over_a_row_that_says_nothing_is_no_list_of_preserved_rows() -> None:
    old = [row("k1", None), row("p", "k1", "progress"), row("k2", "p")]
    ends = {"anchorUuid": "S", "headUuid": "k1", "tailUuid": "k2"}
    assert conversation([*old, boundary(preservedSegment=ends), *REST]) == ["B", "S", "n"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"preservedMessages": {"anchorUuid": "S", "uuids": ["k1", "gone"]}},
        {"preservedMessages": {"anchorUuid": "gone", "uuids": ["k1", "k2"]}},
        {"preservedSegment": {"anchorUuid": "S", "headUuid": "k2", "tailUuid": "k1"}},
        {"preservedMessages": {"anchorUuid": "S", "uuids": [1, None, {}]}},
        {"preservedMessages": 1, "preservedSegment": []},
    ],
)
def test_a_list_of_preserved_rows_that_breaks_moves_none(metadata: Row) -> None:
    assert conversation([*OLD, boundary(**metadata), *REST]) == ["B", "S", "n"]


def test_records_that_need_not_be_held_are_the_same_as_held_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metadata = {"preservedMessages": {"anchorUuid": "S", "uuids": ["k2", "k1"]}}
    rows = [*OLD, boundary(**metadata), *REST]
    held = conversation(rows)
    assert held == ["B", "S", "k2", "k1", "n"]
    monkeypatch.setattr(common, "ROOM", 0)
    assert conversation(rows) == held


def test_a_session_that_shrinks_while_it_is_read_ends() -> None:
    data = [json.dumps(each).encode() + b"\n" for each in [row("a", None), row("b", "a", at=1)]]
    times = iter([data, data[:1], []])

    def read() -> Iterator[Record]:
        return records(next(times), 0)

    assert [record.offset for record in thread.conversation(read)] == [0]


# ── any rows at all ──────────────────────────────────────────────────────────────────────────

NAMES = "abcdefgh"


@st.composite
def trees(draw: st.DrawFn) -> list[Row]:
    """Draw rows that each continue an earlier one, or none."""
    uuids = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=8, unique=True))
    parents = [draw(st.sampled_from([None, *uuids[:number]])) for number in range(len(uuids))]
    return [row(uuid, parent) for uuid, parent in zip(uuids, parents, strict=True)]


def way_back(rows: list[Row]) -> list[str]:
    parents = {each["uuid"]: each["parentUuid"] for each in rows}
    way: list[str] = []
    here = rows[-1]["uuid"]
    while here is not None:
        way.insert(0, here)
        here = parents[here]
    return way


@given(trees())
def test_it_is_the_way_back_from_the_last_row(rows: list[Row]) -> None:
    assert conversation(rows) == way_back(rows)


def test_rows_that_continue_each_other_in_a_circle_come_once() -> None:
    assert sorted(conversation([row("a", "c"), row("b", "a"), row("c", "b")])) == ["a", "b", "c"]


ANYTHING = values(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(NAMES),
    st.sampled_from(["id", "content", "type", "uuids", "anchorUuid"]),
    leaves=8,
)
KEYS = ("uuid", "parentUuid", "message", "timestamp", "isSidechain", "compactMetadata", "leafUuid")


@given(
    st.lists(
        st.one_of(
            ANYTHING,
            st.fixed_dictionaries(
                {"type": st.sampled_from(["user", "assistant", "system", "last-prompt", "x"])},
                optional={
                    **dict.fromkeys(KEYS, ANYTHING),
                    "subtype": st.just("compact_boundary"),
                },
            ),
        ),
        max_size=8,
    )
)
def test_no_row_is_an_error_and_none_comes_twice(rows: list[Any]) -> None:
    data = b"".join(json.dumps(each).encode() + b"\n" for each in rows)
    found = list(thread.conversation(partial(records, [data], 0)))
    assert len({record.offset for record in found}) == len(found)
    assert set(found) <= set(records([data], 0))


# ── samples ──────────────────────────────────────────────────────────────────────────────────

SAMPLES = Path(__file__).parents[3] / "fixtures" / "claude"


def test_a_user_who_went_back_to_before_the_compaction_goes_on_from_there() -> None:
    (path,) = (SAMPLES / "rewind-2.1.112").rglob("*.jsonl")
    data = path.read_bytes()
    found = thread.conversation(partial(records, [data], 0))
    rows = [json.loads(record.line) for record in found]
    said = [each["message"]["content"] for each in rows if each["type"] == "user"]
    assert said == ["alpha first prompt", "echo rewound prompt", "foxtrot after rewind"]
