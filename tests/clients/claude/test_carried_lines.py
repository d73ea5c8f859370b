"""What is carried across a cut and why, and what is refused; the client itself judges elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from sessrotate.clients.claude import ancestry, carried_lines, loading, row_classes
from sessrotate.clients.in_place import Archived, LivePlan
from sessrotate.system.source import Source
from support import oracle

Row = dict[str, Any]

NEXT_COMPACTION: Final = "Wait for the session's next compaction: it usually resolves this."
NEXT_ROWS: Final = "Wait for the session's next rows: they usually resolve this."


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


def planned(path: Path, starts: list[int], end: int) -> LivePlan:
    with Source(path) as source:
        return carried_lines.plan(source, starts, end)


def plan(tmp_path: Path, *rows: Row | bytes) -> tuple[LivePlan, list[Any]]:
    """Return the plan for a session, and the carried lines, parsed where they can be."""
    path = tmp_path / "s.jsonl"
    data = written(path, list(rows))
    starts = oracle.boundaries(data)
    made = planned(path, starts, len(data))
    assert made.cut == starts[-1]
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
    # d is continued by e, but what d continues is gone for whoever knows the list.
    assert carried == [rows[1], rows[3]]
    assert {entry.reason for entry in made.carried} == {"preserved by the compaction"}


def test_where_a_listed_row_is_missing_everything_counts(tmp_path: Path) -> None:
    """Clients take such a list for nothing, and rows from before it for what they are."""
    rows = [message("a"), message("b", "a"), message("c", "b")]
    made, carried = plan(tmp_path, *rows, listed("c", "gone"), message("d", "b"))
    assert (made.refusals, carried) == ((), rows)
    made, carried = plan(tmp_path, *rows, listed("c"), message("d", "b"))
    assert (made.refusals, carried) == ((), rows[1:])


def test_a_listed_row_that_stands_behind_its_boundary_is_fine(tmp_path: Path) -> None:
    made, carried = plan(tmp_path, message("x"), listed("a"), message("a"), message("c", "a"))
    assert (made.refusals, carried) == ((), [])


def test_a_segment_without_a_list_is_walked_from_its_tail_to_its_head(tmp_path: Path) -> None:
    rows = [message("a"), message("b", "a"), message("c", "b"), message("d", "c")]
    made, carried = plan(tmp_path, *rows, walked("b", "d"), message("e", "boundary"))
    assert (made.refusals, carried) == ((), rows[1:])
    # Where no chain leads to the head, everything counts.
    made, carried = plan(tmp_path, *rows, walked("elsewhere", "d"), message("e", "c"))
    assert (made.refusals, carried) == ((), rows)


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


def test_a_row_on_both_sides_of_the_cut_is_refused_where_its_place_counts(tmp_path: Path) -> None:
    rows = [message("a"), message("b", "a")]
    again = [message("a"), message("c", "a")]
    # Behind a compaction that preserved nothing, the copy has all that it continues.
    assert plan(tmp_path, *rows, compaction(), *again)[0].refusals == ()
    # Behind one that preserved rows, clients drop the copy, as it stood there before.
    made, _ = plan(tmp_path, *rows, listed("b"), *again)
    assert made.refusals == (
        f"1 row occurs both before and after the last compaction. {NEXT_COMPACTION}",
    )
    # So they do where an older compaction did.
    first = {**listed("x"), "uuid": "first"}
    made, _ = plan(tmp_path, message("x"), first, *rows, compaction(), *again)
    assert made.refusals == (
        f"1 row occurs both before and after the last compaction. {NEXT_COMPACTION}",
    )
    # But nobody continues this one.
    made, _ = plan(tmp_path, *rows, listed("b"), message("a"), message("c", "boundary"))
    assert made.refusals == ()


def test_a_branch_that_clients_have_lost_is_not_brought_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [message("a"), compaction(), message("d", "a")]
    assert plan(tmp_path, *rows) == (plan(tmp_path, *rows)[0], rows[:1])
    # An older compaction preserved rows: clients load nothing from before the last one.
    made, carried = plan(tmp_path, message("x"), {**listed("x"), "uuid": "first"}, *rows)
    assert (made.refusals, carried) == ((), [])
    monkeypatch.setattr(loading, "SMALL_FILE", 100)
    made, carried = plan(tmp_path, *rows)
    assert (made.refusals, carried) == ((), [])
    # Where the compaction preserved the row itself, clients keep it at any size.
    assert plan(tmp_path, message("a"), listed("a"), message("d", "a"))[1] == rows[:1]


def test_a_branch_is_refused_that_only_newer_clients_have_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SMALL_FILE", 100)
    old = {**compaction(), "version": "2.0.28"}
    made, _ = plan(tmp_path, message("a"), old, message("d", "a"))
    assert "have lost that branch" in made.refusals[0]
    # What a row continues that is nowhere, as after a crash, no client has to lose.
    assert plan(tmp_path, message("a"), old, message("d", "x"))[0].refusals == ()
    assert plan(tmp_path, message("a"), old, message("d", "boundary"))[0].refusals == ()


def test_a_branch_goes_along_with_a_compaction_for_which_newer_clients_lose_it_again(
    tmp_path: Path,
) -> None:
    first = {**listed("x"), "uuid": "first"}
    old = {**compaction(), "version": "2.0.28"}
    # What the row continues goes back to the compaction that preserved rows.
    rows = [message("x"), first, message("a", "first"), old, message("d", "a")]
    made, carried = plan(tmp_path, *rows)
    assert (made.refusals, [each["uuid"] for each in carried]) == ((), ["first", "a"])
    # Here it does not, and newer clients would load it from the shorter file.
    made, _ = plan(tmp_path, message("x"), first, message("a"), old, message("d", "a"))
    assert "have lost that branch" in made.refusals[0]


def first(**fields: Any) -> Row:
    """Return a session's first prompt, which goes along whatever is loaded."""
    said = {"role": "user", "content": "Hello"}
    return message("a", message=said, timestamp="2026-01-01T00:00:00.000Z", **fields)


@pytest.mark.parametrize(
    ("behind", "misleads"),
    [
        (message("d", "boundary"), False),
        (message("d", "a", timestamp="2026-01-02T00:00:00.000Z"), True),
        (message("d", "x", timestamp="2026-01-02T00:00:00.000Z"), False),
        # 2.1.112 and later have a row whose parent is nowhere follow one of five seconds before.
        (message("d", "x", timestamp="2026-01-01T00:00:04.000Z"), True),
    ],
)
def test_the_first_prompt_goes_where_clients_would_go_on_from_it_as_they_did_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: Row, *, misleads: bool
) -> None:
    monkeypatch.setattr(loading, "SMALL_FILE", 100)
    rows = [first(), message("b", "a"), compaction(), behind]
    made, carried = plan(tmp_path, *rows)
    assert (made.misleads, made.refusals) == (misleads, ())
    assert carried == ([] if misleads else rows[:1])
    # The clean-up spares this one by its first row.
    began = first(entrypoint="claude-desktop")
    line = json.dumps(began, separators=(",", ":")).encode()
    made, carried = plan(tmp_path, line, *rows[1:])
    assert (made.misleads, carried) == (False, [began])
    assert any("may continue the first" in one for one in made.refusals) is misleads


def test_the_first_prompt_goes_where_2_1_80_would_take_it_for_the_newest_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SMALL_FILE", 100)
    behind = message("d", "boundary", timestamp="2025-12-31T00:00:00.000Z")
    for version, misleads in (("2.1.80", True), ("2.1.112", False)):
        made, _ = plan(tmp_path, first(), {**compaction(), "version": version}, behind)
        assert made.misleads is misleads


def test_a_copy_of_an_archived_row_from_which_nothing_goes_on_keeps_the_first_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SMALL_FILE", 100)
    copied = message("c", "b", timestamp="2026-01-01T00:00:04.000Z")
    rows = [first(), message("b", "a"), copied, compaction()]
    made, carried = plan(tmp_path, *rows, message("d", "boundary"), copied, message("e", "d"))
    assert (made.misleads, made.refusals, carried) == (False, (), rows[:1])
    made, carried = plan(tmp_path, *rows, message("d", "boundary"), copied, message("e", "c"))
    assert (made.misleads, carried) == (True, [])


def test_a_row_from_before_a_plain_compaction_was_preserved_in_vain_in_a_large_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = {**compaction(), "uuid": "plain"}
    rows = [message("a"), plain, message("b"), listed("a", "b"), message("c", "boundary")]
    assert plan(tmp_path, *rows)[0].refusals == ()
    monkeypatch.setattr(loading, "SMALL_FILE", 100)
    assert "from before a plain compaction" in plan(tmp_path, *rows)[0].refusals[0]
    rows[3] = listed("b")
    assert plan(tmp_path, *rows)[0].refusals == ()


@pytest.mark.parametrize("version", ["2.1.330", "2.0.28"])
def test_what_stands_before_a_plain_compaction_of_a_large_file_is_gone_back_to_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    plain = {**compaction(), "uuid": "plain"}
    newest = {**listed("b"), "version": version}
    rows = [message("a"), plain, message("b"), newest, message("c", "boundary")]
    back = message("d", "a", timestamp="2026-01-02T00:00:00.000Z")
    _, carried = plan(tmp_path, *rows, back)
    assert [each["uuid"] for each in carried] == ["a", "b"]
    monkeypatch.setattr(loading, "SMALL_FILE", 100)
    made, carried = plan(tmp_path, *rows, back)
    if version == "2.1.330":
        assert ([each["uuid"] for each in carried], made.refusals) == (["b"], ())
    else:  # which loads it, and newer ones do not
        assert any("have lost that branch" in one for one in made.refusals)
    # What stands behind the plain one is read.
    _, carried = plan(tmp_path, *rows[:3], message("e"), *rows[3:], message("d", "e"))
    assert [each["uuid"] for each in carried] == ["b", "e"]


def test_the_archive_is_not_read_for_a_first_prompt_that_nothing_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> NoReturn:
        raise AssertionError

    monkeypatch.setattr(loading, "SMALL_FILE", 100)
    path = tmp_path / "s.jsonl"
    rows: list[Row | bytes] = [first(), message("b", "a"), listed("b"), message("c", "boundary")]
    data = written(path, rows)
    with Source(path) as source:
        archived = Archived(10_000, says=read, plain=read)
        made = carried_lines.plan(source, oracle.boundaries(data), len(data), archived, prefix=10)
    assert ([entry.span.start for entry in made.carried][:1], made.refusals) == ([0], ())


def test_a_row_that_a_last_prompt_names_from_before_the_cut_is_refused_where_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(uuid: str) -> Row:
        return {"type": "last-prompt", "leafUuid": uuid}

    rows = [first(), message("b", "a"), compaction(), message("c", "boundary")]
    for leaf, is_refused in (("b", True), ("c", False), ("nowhere", False)):
        made, _ = plan(tmp_path, *rows, named(leaf))
        assert any("continues from a row from before" in one for one in made.refusals) is is_refused
    made, _ = plan(tmp_path, *rows, named("b"), message("d", "c"))  # which goes on behind it
    assert made.refusals == ()
    monkeypatch.setattr(loading, "SMALL_FILE", 100)
    for leaf, carried in (("b", rows[:1]), ("a", [])):
        made, found = plan(tmp_path, *rows, named(leaf))
        assert (found, made.refusals) == (carried, ())


def test_what_is_small_as_a_whole_stays_small_with_our_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [message("a"), message("b", "a", pad="p" * 900), compaction(), message("c", "b")]
    size = len(written(tmp_path / "s.jsonl", list(rows)))
    for most, is_refused in ((size, True), (size + 1024, False)):
        monkeypatch.setattr(loading, "SMALL_FILE", most)
        made, _ = plan(tmp_path, *rows)
        assert any("would not load all" in one for one in made.refusals) is is_refused


def test_old_clients_go_on_from_the_newest_row_wherever_it_stands(tmp_path: Path) -> None:
    rows = [message("a", timestamp="2026-01-02T00:00:00.000Z"), compaction()]
    behind = message("d", "boundary", timestamp="2026-01-01T00:00:00.000Z")
    assert plan(tmp_path, *rows, behind)[0].refusals == ()
    for version, is_refused in (("2.0.28", True), ("2.1.80", True), ("2.1.112", False)):
        made, _ = plan(tmp_path, rows[0], {**rows[1], "version": version}, behind)
        assert any("is newer than all rows after it" in one for one in made.refusals) is is_refused
    # Of one that says what it preserved, 2.1.80 loads that alone.
    made, _ = plan(tmp_path, rows[0], {**listed("a"), "version": "2.1.80"}, behind)
    assert made.refusals == ()


def test_a_compaction_without_its_summary_is_no_place_to_cut(tmp_path: Path) -> None:
    made, _ = plan(tmp_path, message("a"), compaction(), {"type": "last-prompt"})
    assert made.refusals == (f"The last compaction has no summary. {NEXT_ROWS}",)
    # Of one that lists what it preserved, clients load that, whatever follows.
    assert plan(tmp_path, message("a"), listed("a"))[0].refusals == ()
    made, _ = plan(tmp_path, message("a"), listed("a", "nowhere"))
    assert made.refusals == (f"The last compaction has no summary. {NEXT_ROWS}",)


def test_a_copy_at_the_end_is_no_harm_where_a_pointer_says_what_to_go_on_from(
    tmp_path: Path,
) -> None:
    rows = [message("a"), message("b", "a"), listed("b"), message("c", "boundary")]
    pointer = {"type": "last-prompt", "leafUuid": "c"}
    assert plan(tmp_path, *rows, pointer, message("a"))[0].refusals == ()
    # What goes on behind it makes it void.
    made, _ = plan(tmp_path, *rows, pointer, message("d", "c"), message("a"))
    assert made.refusals == (
        f"1 row occurs both before and after the last compaction. {NEXT_COMPACTION}",
    )


def test_a_copy_of_a_part_of_an_answer_that_stays_is_refused(tmp_path: Path) -> None:
    before = [said("a", "x", "one"), said("b", "a", "one"), listed("b")]
    behind = message("c", "boundary")
    made, _ = plan(tmp_path, *before, said("a", "x", "one"), behind)
    assert made.refusals == (
        f"1 row occurs both before and after the last compaction. {NEXT_COMPACTION}",
    )
    before[0] = said("a", "x", "other")
    assert plan(tmp_path, *before, said("a", "x", "other"), behind)[0].refusals == ()


def said(uuid: str, parent: str, answer: str) -> Row:
    return {**message(uuid, parent), "type": "assistant", "message": {"id": answer, "content": []}}


def result(uuid: str, parent: str) -> Row:
    return message(uuid, parent, message={"content": [{"type": "tool_result"}]})


def test_calls_side_by_side_and_their_results_go_along_with_a_branch(tmp_path: Path) -> None:
    rows = [message("q"), said("one", "q", "m"), said("two", "one", "m")]
    rows += [result("r1", "one"), message("no result", "one"), result("r2", "two")]
    made, carried = plan(tmp_path, *rows, message("other"), compaction(), message("d", "r2"))
    assert made.refusals == ()
    assert carried == [*rows[:4], rows[5]]
    assert [entry.reason for entry in made.carried][3] == ancestry.BESIDE


def test_an_answer_that_the_cut_divides_keeps_its_parts(tmp_path: Path) -> None:
    rows = [message("q"), said("one", "q", "m"), result("r1", "one")]
    made, carried = plan(tmp_path, *rows, compaction(), said("two", "boundary", "m"))
    assert (made.refusals, carried) == ((), rows)
    # Of what the compaction left out, nothing is fetched.
    made, carried = plan(tmp_path, *rows, listed("q"), said("two", "boundary", "m"))
    assert (made.refusals, carried) == ((), rows[:1])


def test_a_row_without_a_parent_that_clients_put_behind_another_is_fine(tmp_path: Path) -> None:
    def at(second: int, uuid: str, parent: str) -> Row:
        return message(uuid, parent, timestamp=f"2026-01-01T00:00:{second:02d}.000Z")

    before = [at(1, "a", "x"), compaction()]
    assert plan(tmp_path, *before, at(30, "d", "nowhere"))[0].refusals == ()
    assert plan(tmp_path, *before, at(2, "c", "boundary"), at(3, "d", "nowhere"))[0].refusals == ()
    # The nearest row before it by time is one that would be archived.
    made, _ = plan(tmp_path, *before, at(3, "d", "nowhere"))
    assert "nowhere in the file" in made.refusals[0]


def test_a_record_of_a_compaction_that_is_too_long_is_refused(tmp_path: Path) -> None:
    made, _ = plan(tmp_path, message("a"), compaction(note="x" * 300_000), message("b", "boundary"))
    assert "too long" in made.refusals[0]


def plan_beside(tmp_path: Path, value: bytes) -> LivePlan:
    """Plan a session whose compaction has this value too, and lists a row."""
    path = tmp_path / "s.jsonl"
    record = json.dumps(listed("a") | {"note": "N"}).encode().replace(b'"N"', value)
    data = written(path, [message("a"), record, message("b", "boundary")])
    cut = data.index(b"\n") + 1
    return planned(path, [cut], len(data))


def test_a_record_of_a_compaction_that_is_too_deep_for_a_parser_is_refused(tmp_path: Path) -> None:
    made = plan_beside(tmp_path, b"[" * 100_000 + b"]" * 100_000)
    refusal = f"The last compaction's record cannot be read. {NEXT_COMPACTION}"
    assert (made.carried, made.refusals) == ((), (refusal,))


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
    made = planned(path, [whole.cut], len(data + torn))
    assert made == whole
    assert made.refusals == ()


def test_a_torn_last_line_is_read_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    data = written(path, [message("a"), compaction(), message("b", "a")])[:-1]
    path.write_bytes(data)
    made = planned(path, oracle.boundaries(data), len(data))
    assert [entry.span.start for entry in made.carried] == [0]


def test_a_compaction_record_that_is_not_complete_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    data = written(path, [message("a"), compaction()])[:-1]
    path.write_bytes(data)
    made = planned(path, oracle.boundaries(data), len(data))
    assert made.refusals == (f"The last line is not complete. {NEXT_ROWS}",)
    # Behind a line break, which a client that is resumed may write first, it is one again.
    data += b"\n" + json.dumps(message("b", "boundary")).encode() + b"\n"
    path.write_bytes(data)
    assert planned(path, oracle.boundaries(data), len(data)).refusals == ()


LATER: Final = "2026-01-02T00:00:00.000Z"
OLD: Final = {**compaction(), "version": "2.0.28"}
BEGAN: Final = first(entrypoint="claude-desktop")
GONE_ON: Final = message("e", "d", timestamp=LATER)
COMPACTED: Final = [{**compaction(), "uuid": "new", "version": "2.1.330"}, message("e", "new")]

REFUSED: Final[list[tuple[str, int | None, list[Row]]]] = [
    ("nowhere in the file", None, [compaction(), message("d", "nowhere")]),
    ("both before and after", None, [message("b"), listed("b"), first(), message("d", "a")]),
    ("have lost that branch", 100, [message("b"), OLD, message("d", "b", timestamp=LATER)]),
    ("from before a plain compaction", 100, [OLD, message("b"), listed("a", "b"), message("d")]),
    ("may continue the first", 100, [compaction(), message("d", "a", timestamp=LATER)]),
    ("too long", None, [compaction(note="x" * 300_000), message("d", "boundary")]),
    ("no summary", None, [compaction(), {"type": "last-prompt"}]),
    (
        "from a row from",
        None,
        [compaction(), message("d"), {"type": "last-prompt", "leafUuid": "a"}],
    ),
    ("is newer than all rows", None, [OLD, message("d", "boundary", timestamp="2025")]),
    ("would not load all", 500, [compaction(), message("d", "boundary")]),
]
"""What a refusal says, bytes that a small file has, and the rows behind the first prompt."""


@pytest.mark.parametrize(("words", "small", "rows"), REFUSED, ids=[words for words, *_ in REFUSED])
def test_what_a_refusal_says_to_wait_for_is_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, small: int | None, rows: list[Row]
) -> None:
    if small is not None:
        monkeypatch.setattr(loading, "SMALL_FILE", small)
    began = json.dumps(BEGAN, separators=(",", ":")).encode()
    (refusal,) = plan(tmp_path, began, *rows)[0].refusals
    assert words in refusal
    is_for_rows = refusal.endswith((NEXT_ROWS, "2.1.112 or later."))
    assert is_for_rows or refusal.endswith(NEXT_COMPACTION)
    assert (plan(tmp_path, began, *rows, GONE_ON)[0].refusals == ()) is is_for_rows
    assert plan(tmp_path, began, *rows, *COMPACTED)[0].refusals == ()


def test_of_metadata_the_last_of_each_key_is_carried(tmp_path: Path) -> None:
    title, newer = (
        {"type": "custom-title", "customTitle": name, "sessionId": "s"} for name in ("one", "two")
    )
    other = {"type": "custom-title", "customTitle": "three", "sessionId": "t"}
    summaries = [{"type": "summary", "summary": leaf, "leafUuid": leaf} for leaf in "xyx"]
    made, carried = plan(tmp_path, title, other, *summaries, newer, compaction())
    assert carried == [other, summaries[1], summaries[2], newer]
    assert {entry.reason for entry in made.carried} == {
        "the latest value of each setting (title, mode, …)"
    }


def test_unknown_rows_and_torn_lines_are_kept_and_void_ones_are_not(tmp_path: Path) -> None:
    new = {"type": "from-a-newer-client", "x": 1}
    void = [{"type": kind} for kind in sorted(row_classes.CLEARED)]
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
