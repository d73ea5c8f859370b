"""What is carried across a cut and why, and what is refused; the client itself judges elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessrotate.clients.claude import carried_rows, contract
from sessrotate.clients.claude.contract import LivePlan
from sessrotate.model import Span
from sessrotate.system.source import Source
from support import oracle

Row = dict[str, Any]


def message(uuid: str, parent: str | None = None, **fields: Any) -> Row:
    return {"parentUuid": parent, "type": "user", "uuid": uuid, "sessionId": "s", **fields}


def compaction(**metadata: Any) -> Row:
    return {
        "parentUuid": None,
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "boundary",
        "compactMetadata": {"trigger": "auto", "preTokens": 1, **metadata},
    }


def listed(*uuids: str, more: tuple[str, ...] = ()) -> Row:
    return compaction(preservedMessages={"uuids": uuids, "allUuids": [*uuids, *more]})


def walked(head: str, tail: str) -> Row:
    return compaction(preservedSegment={"headUuid": head, "tailUuid": tail})


def written(path: Path, rows: list[Row | bytes]) -> bytes:
    data = b"".join(
        (row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows
    )
    path.write_bytes(data)
    return data


def planned(path: Path, boundary: Span, end: int) -> LivePlan:
    with Source(path) as source:
        return contract.plan(source, boundary, end)


def plan(tmp_path: Path, *rows: Row | bytes) -> tuple[LivePlan, list[Any]]:
    """Return the plan for a session, and the carried lines, parsed where they can be."""
    path = tmp_path / "s.jsonl"
    data = written(path, list(rows))
    cut = oracle.boundaries(data)[-1]
    made = planned(path, Span(cut, data.index(b"\n", cut)), len(data))
    assert made.cut == cut
    lines = [data[entry.span.start : entry.span.end] for entry in made.carried]
    return made, [json.loads(line) if line[-1:] == b"}" else line for line in lines]


def test_of_a_plain_conversation_nothing_is_carried(tmp_path: Path) -> None:
    made, carried = plan(
        tmp_path, message("a"), message("b", "a"), compaction(), message("c", "boundary")
    )
    assert carried == []
    assert made.refusals == ()


def test_listed_rows_are_carried_in_file_order_and_alone(tmp_path: Path) -> None:
    rows = [message("a"), message("b", "a"), message("c", "b"), message("d", "c")]
    made, carried = plan(tmp_path, *rows, listed("d", "b", more=("nowhere",)), message("e", "d"))
    assert made.refusals == ()
    # d is continued by e, so that what d continues goes along too.
    assert carried == rows
    made, carried = plan(tmp_path, *rows, listed("d", "b"), message("e", "boundary"))
    assert carried == [rows[1], rows[3]]
    assert {entry.reason for entry in made.carried} == {"preserved by the compaction"}


def test_a_listed_row_that_is_missing_is_refused(tmp_path: Path) -> None:
    made, _ = plan(tmp_path, message("a"), listed("a", "gone"), message("c", "boundary"))
    assert "preserved is missing" in made.refusals[0]


def test_a_listed_row_that_stands_behind_its_boundary_is_fine(tmp_path: Path) -> None:
    made, carried = plan(tmp_path, message("x"), listed("a"), message("a"), message("c", "a"))
    assert (made.refusals, carried) == ((), [])


def test_a_segment_without_a_list_is_walked_from_its_tail_to_its_head(tmp_path: Path) -> None:
    rows = [message("a"), message("b", "a"), message("c", "b"), message("d", "c")]
    made, carried = plan(tmp_path, *rows, walked("b", "d"), message("e", "boundary"))
    assert (made.refusals, carried) == ((), rows[1:])
    made, _ = plan(tmp_path, *rows[1:], walked("a", "d"), message("e", "boundary"))
    assert "do not form a chain" in made.refusals[0]


def test_a_row_that_is_continued_brings_all_that_it_continues(tmp_path: Path) -> None:
    rows = [message("a"), message("side", "a"), message("b", "a"), message("c", "b")]
    made, carried = plan(tmp_path, *rows, compaction(), message("d", "b"))
    assert (made.refusals, carried) == ((), [rows[0], rows[2]])
    assert {entry.reason for entry in made.carried} == {"continued by a row after the compaction"}


def test_of_copies_before_the_cut_the_last_is_carried(tmp_path: Path) -> None:
    first, again = message("a", note=1), message("a", note=2)
    made, carried = plan(tmp_path, first, message("x"), again, listed("a"), message("d", "a"))
    assert (made.refusals, carried) == ((), [again])
    # Also where the row that continues it stands between the two.
    between = message("b", "a")
    made, carried = plan(tmp_path, first, between, again, listed("a"), message("d", "b"))
    assert (made.refusals, carried) == ((), [between, again])


def test_a_row_that_continues_nothing_known_is_refused(tmp_path: Path) -> None:
    made, _ = plan(tmp_path, message("a"), compaction(), message("d", "nowhere"))
    assert "nowhere in the file" in made.refusals[0]


def test_a_row_on_both_sides_of_the_cut_is_refused(tmp_path: Path) -> None:
    made, _ = plan(tmp_path, message("a"), message("b"), compaction(), message("a", "boundary"))
    assert made.refusals == ("1 rows stand both before and after the last compaction.",)


def test_a_branch_of_a_large_file_with_a_plain_boundary_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [message("a"), compaction(), message("d", "a")]
    assert plan(tmp_path, *rows)[0].refusals == ()
    monkeypatch.setattr(contract, "SMALL_FILE", 100)
    assert "already lost" in plan(tmp_path, *rows)[0].refusals[0]
    # Where the compaction preserved the row itself, clients keep it at any size.
    assert plan(tmp_path, message("a"), listed("a"), message("d", "a"))[0].refusals == ()


def test_a_record_of_a_compaction_that_is_too_long_is_refused(tmp_path: Path) -> None:
    made, _ = plan(tmp_path, message("a"), compaction(note="x" * 300_000), message("b", "boundary"))
    assert "too long" in made.refusals[0]


def plan_beside(tmp_path: Path, value: bytes) -> LivePlan:
    """Plan a session whose compaction has this value too, and lists a row."""
    path = tmp_path / "s.jsonl"
    record = json.dumps(listed("a") | {"note": "N"}).encode().replace(b'"N"', value)
    data = written(path, [message("a"), record, message("b", "boundary")])
    cut = data.index(b"\n") + 1
    return planned(path, Span(cut, cut + len(record)), len(data))


def test_a_record_of_a_compaction_that_is_too_deep_for_a_parser_is_refused(tmp_path: Path) -> None:
    made = plan_beside(tmp_path, b"[" * 100_000 + b"]" * 100_000)
    assert (made.carried, made.refusals) == ((), ("The last compaction's record cannot be read.",))


@pytest.mark.parametrize("value", [b"1" * 5000, b"1e999", rb'"\ud800"', b'"\xff"'])
def test_what_a_compaction_lists_is_carried_whatever_stands_beside_it(
    tmp_path: Path, value: bytes
) -> None:
    made = plan_beside(tmp_path, value)
    assert made.refusals == ()
    assert [each.span.start for each in made.carried] == [0]


@pytest.mark.parametrize("torn", [b'{"type":"user","uuid":"a","te', b'{"type":"user"}', b" ", b"}"])
def test_a_torn_last_line_belongs_to_the_tail(tmp_path: Path, torn: bytes) -> None:
    rows: list[Row | bytes] = [message("a"), compaction(), message("b", "boundary")]
    whole, _ = plan(tmp_path, *rows)
    path = tmp_path / "s.jsonl"
    data = written(path, rows)
    path.write_bytes(data + torn)
    made = planned(path, Span(whole.cut, data.index(b"\n", whole.cut)), len(data + torn))
    assert made == whole
    assert made.refusals == ()


def test_a_torn_last_line_is_read_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    data = written(path, [message("a"), compaction(), message("b", "a")])[:-1]
    path.write_bytes(data)
    cut = oracle.boundaries(data)[0]
    made = planned(path, Span(cut, data.index(b"\n", cut)), len(data))
    assert [entry.span.start for entry in made.carried] == [0]


def test_a_compaction_record_that_is_not_complete_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    data = written(path, [message("a"), compaction()])[:-1]
    path.write_bytes(data)
    made = planned(path, Span(oracle.boundaries(data)[0], len(data)), len(data))
    assert made.refusals == ("The last line is not complete.",)


def test_of_metadata_the_last_of_each_key_is_carried(tmp_path: Path) -> None:
    title, newer = (
        {"type": "custom-title", "customTitle": name, "sessionId": "s"} for name in ("one", "two")
    )
    other = {"type": "custom-title", "customTitle": "three", "sessionId": "t"}
    summaries = [{"type": "summary", "summary": leaf, "leafUuid": leaf} for leaf in "xyx"]
    made, carried = plan(tmp_path, title, other, *summaries, newer, compaction())
    assert carried == [other, summaries[1], summaries[2], newer]
    assert {entry.reason for entry in made.carried} == {
        "the current setting of its kind (title, mode, …)"
    }


def test_unknown_rows_and_torn_lines_are_kept_and_void_ones_are_not(tmp_path: Path) -> None:
    new = {"type": "from-a-newer-client", "x": 1}
    void = [{"type": kind} for kind in sorted(carried_rows.CLEARED)]
    _, carried = plan(tmp_path, new, b'{"torn":', b"\xff\x00", *void, compaction())
    assert carried == [new, b'{"torn":', b"\xff\x00"]


def test_file_history_goes_with_its_message(tmp_path: Path) -> None:
    history = [
        {"type": kind, "messageId": uuid}
        for uuid in ("gone", "kept", "later")
        for kind in ("file-history-snapshot", "file-history-delta")
    ]
    rows = [message("gone"), message("kept", "gone"), *history]
    made, carried = plan(tmp_path, *rows, listed("kept"), message("later", "boundary"))
    assert made.refusals == ()
    assert carried == [rows[1], *history[2:]]
