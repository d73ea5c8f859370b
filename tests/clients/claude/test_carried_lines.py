"""What is carried across a cut and why, and what is refused; the client itself judges elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NoReturn

import pytest

from sessrotate.clients.claude import ancestry, carried_lines, loading
from sessrotate.clients.in_place import Archived, LivePlan
from sessrotate.system.source import Source
from support import oracle

Row = dict[str, Any]

NEXT_COMPACTION: Final = "Wait for the session's next compaction: it usually resolves this."
NEXT_ROWS: Final = "Wait for the session's next rows: they usually resolve this."
ON_BOTH_SIDES: Final = f"1 row occurs both before and after the last compaction. {NEXT_COMPACTION}"


def message(uuid: str, parent: str | None = None, **fields: Any) -> Row:
    return {"parentUuid": parent, "type": "user", "uuid": uuid, "sessionId": "s", **fields}


def compaction(**metadata: Any) -> Row:
    metadata = {"trigger": "auto", "preTokens": 1, **metadata}
    kind = {"type": "system", "subtype": "compact_boundary"}
    return {"parentUuid": None, **kind, "uuid": "boundary", "compactMetadata": metadata}


def listed(*uuids: str, more: tuple[str, ...] = ()) -> Row:
    return compaction(preservedMessages={"uuids": uuids, "allUuids": [*uuids, *more]})


def walked(head: str, tail: str) -> Row:
    return compaction(preservedSegment={"headUuid": head, "tailUuid": tail})


def lines(rows: Iterable[Row | bytes]) -> bytes:
    return b"".join(
        (row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows
    )


def planned(data: bytes, starts: list[int], small: int = loading.SMALL_FILE) -> LivePlan:
    """Return the plan for a file, which is a large one if it has more than `small` bytes."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "s.jsonl")
        path.write_bytes(data)
        patch.setattr(loading, "SMALL_FILE", small)
        with Source(path) as source:
            return carried_lines.plan(source, starts, len(data))


def told(*rows: Row | bytes, small: int = loading.SMALL_FILE) -> tuple[LivePlan, list[Any]]:
    """Return the plan for a session, and the carried lines, parsed where they can be."""
    data = lines(rows)
    starts = oracle.boundaries(data)
    made = planned(data, starts, small)
    assert made.cut == starts[-1]
    carried = [data[entry.span.start : entry.span.end] for entry in made.carried]
    return made, [json.loads(line) if line[-1:] == b"}" else line for line in carried]


def plan(*rows: Row | bytes, small: int = loading.SMALL_FILE) -> tuple[tuple[str, ...], list[Any]]:
    """Return why a session is refused, and what is carried."""
    made, carried = told(*rows, small=small)
    return made.refusals, carried


large: Final = partial(plan, small=100)
"""The same of a file that counts as a large one."""


def names(rows: list[Any]) -> list[str]:
    return [each["uuid"] for each in rows]


def test_of_a_plain_conversation_nothing_is_carried() -> None:
    rows = message("a"), message("b", "a"), compaction(), message("c", "boundary")
    assert plan(*rows) == ((), [])


def test_listed_rows_are_carried_in_file_order_and_alone() -> None:
    rows = [message("a"), message("b", "a"), message("c", "b"), message("d", "c")]
    made, carried = told(*rows, listed("d", "b", more=("nowhere",)), message("e", "d"))
    # d is continued by e, but what d continues is gone for whoever knows the list.
    assert (made.refusals, carried) == ((), [rows[1], rows[3]])
    assert {entry.reason for entry in made.carried} == {"preserved by the compaction"}


def test_where_a_listed_row_is_missing_everything_counts() -> None:
    """Clients take such a list for nothing, and rows from before it for what they are."""
    rows = [message("a"), message("b", "a"), message("c", "b")]
    assert plan(*rows, listed("c", "gone"), message("d", "b")) == ((), rows)
    assert plan(*rows, listed("c"), message("d", "b")) == ((), rows[1:])


def test_a_listed_row_that_stands_behind_its_boundary_is_fine() -> None:
    assert plan(message("x"), listed("a"), message("a"), message("c", "a")) == ((), [])


def test_a_segment_without_a_list_is_walked_from_its_tail_to_its_head() -> None:
    rows = [message("a"), message("b", "a"), message("c", "b"), message("d", "c")]
    assert plan(*rows, walked("b", "d"), message("e", "boundary")) == ((), rows[1:])
    # Where no chain leads to the head, everything counts.
    assert plan(*rows, walked("elsewhere", "d"), message("e", "c")) == ((), rows)


def test_a_row_that_is_continued_brings_all_that_it_continues() -> None:
    rows = [message("a"), message("side", "a"), message("b", "a"), message("c", "b")]
    made, carried = told(*rows, compaction(), message("d", "b"))
    assert (made.refusals, carried) == ((), [rows[0], rows[2]])
    assert {entry.reason for entry in made.carried} == {"continued by a row after the compaction"}


def test_of_copies_before_the_cut_the_last_is_carried() -> None:
    first, again = message("a", note=1), message("a", note=2)
    assert plan(first, message("x"), again, listed("a"), message("d", "a")) == ((), [again])
    # Also where the row that continues it stands between the two.
    between = message("b", "a")
    rows = first, between, again, listed("a"), message("d", "b")
    assert plan(*rows) == ((), [between, again])


def test_a_row_on_both_sides_of_the_cut_is_refused_where_its_place_counts() -> None:
    rows = [message("a"), message("b", "a")]
    again = [message("a"), message("c", "a")]
    # Behind a compaction that preserved nothing, the copy has all that it continues.
    assert plan(*rows, compaction(), *again)[0] == ()
    # Behind one that preserved rows, clients drop the copy, as it stood there before.
    assert plan(*rows, listed("b"), *again)[0] == (ON_BOTH_SIDES,)
    # So they do where an older compaction did.
    first = {**listed("x"), "uuid": "first"}
    assert plan(message("x"), first, *rows, compaction(), *again)[0] == (ON_BOTH_SIDES,)
    # But nobody continues this one.
    assert plan(*rows, listed("b"), message("a"), message("c", "boundary"))[0] == ()


def test_a_branch_that_clients_have_lost_is_not_brought_back() -> None:
    rows = [message("a"), compaction(), message("d", "a")]
    assert plan(*rows)[1] == rows[:1]
    # An older compaction preserved rows: clients load nothing from before the last one.
    assert plan(message("x"), {**listed("x"), "uuid": "first"}, *rows) == ((), [])
    assert large(*rows) == ((), [])
    # Where the compaction preserved the row itself, clients keep it at any size.
    assert large(message("a"), listed("a"), message("d", "a"))[1] == rows[:1]


def test_a_branch_is_refused_that_only_newer_clients_have_lost() -> None:
    (refusal,), _ = large(message("a"), OLD, message("d", "a"))
    assert "have lost that branch" in refusal
    # What a row continues that is nowhere, as after a crash, no client has to lose.
    assert large(message("a"), OLD, message("d", "x"))[0] == ()
    assert large(message("a"), OLD, message("d", "boundary"))[0] == ()


def test_a_branch_goes_along_with_a_compaction_for_which_newer_clients_lose_it_again() -> None:
    first = {**listed("x"), "uuid": "first"}
    # What the row continues goes back to the compaction that preserved rows.
    refusals, carried = plan(message("x"), first, message("a", "first"), OLD, message("d", "a"))
    assert (refusals, names(carried)) == ((), ["first", "a"])
    # Here it does not, and newer clients would load it from the shorter file.
    refusals, _ = plan(message("x"), first, message("a"), OLD, message("d", "a"))
    assert "have lost that branch" in refusals[0]


LATER: Final = "2026-01-02T00:00:00.000Z"
OLD: Final = {**compaction(), "version": "2.0.28"}


def first(**fields: Any) -> Row:
    """Return a session's first prompt, which goes along whatever is loaded."""
    said = {"role": "user", "content": "Hello"}
    return message("a", message=said, timestamp="2026-01-01T00:00:00.000Z", **fields)


@pytest.mark.parametrize(
    ("behind", "misleads"),
    [
        (message("d", "boundary"), False),
        (message("d", "a", timestamp=LATER), True),
        (message("d", "x", timestamp=LATER), False),
        # 2.1.112 and later have a row whose parent is nowhere follow one of five seconds before.
        (message("d", "x", timestamp="2026-01-01T00:00:04.000Z"), True),
    ],
)
def test_the_first_prompt_goes_where_clients_would_go_on_from_it_as_they_did_not(
    behind: Row, *, misleads: bool
) -> None:
    rows = [first(), message("b", "a"), compaction(), behind]
    made, carried = told(*rows, small=100)
    assert (made.misleads, made.refusals) == (misleads, ())
    assert carried == ([] if misleads else rows[:1])
    # The clean-up spares this one by its first row.
    line = json.dumps(BEGAN, separators=(",", ":")).encode()
    made, carried = told(line, *rows[1:], small=100)
    assert (made.misleads, carried) == (False, [BEGAN])
    assert any("may continue the first" in one for one in made.refusals) is misleads


def test_the_first_prompt_goes_where_2_1_80_would_take_it_for_the_newest_row() -> None:
    behind = message("d", "boundary", timestamp="2025-12-31T00:00:00.000Z")
    for version, misleads in (("2.1.80", True), ("2.1.112", False)):
        made, _ = told(first(), {**compaction(), "version": version}, behind, small=100)
        assert made.misleads is misleads


def test_a_copy_of_an_archived_row_from_which_nothing_goes_on_keeps_the_first_prompt() -> None:
    copied = message("c", "b", timestamp="2026-01-01T00:00:04.000Z")
    rows = [first(), message("b", "a"), copied, compaction(), message("d", "boundary"), copied]
    made, carried = told(*rows, message("e", "d"), small=100)
    assert (made.misleads, made.refusals, carried) == (False, (), rows[:1])
    made, carried = told(*rows, message("e", "c"), small=100)
    assert (made.misleads, carried) == (True, [])


PLAIN: Final = {**compaction(), "uuid": "plain"}


def test_a_row_from_before_a_plain_compaction_was_preserved_in_vain_in_a_large_file() -> None:
    rows = [message("a"), PLAIN, message("b"), listed("a", "b"), message("c", "boundary")]
    assert plan(*rows)[0] == ()
    assert "from before a plain compaction" in large(*rows)[0][0]
    rows[3] = listed("b")
    assert large(*rows)[0] == ()


@pytest.mark.parametrize("version", ["2.1.330", "2.0.28"])
def test_what_stands_before_a_plain_compaction_of_a_large_file_is_gone_back_to_in_vain(
    version: str,
) -> None:
    newest = {**listed("b"), "version": version}
    rows = [message("a"), PLAIN, message("b"), newest, message("c", "boundary")]
    back = message("d", "a", timestamp=LATER)
    assert names(plan(*rows, back)[1]) == ["a", "b"]
    refusals, carried = large(*rows, back)
    if version == "2.1.330":
        assert (names(carried), refusals) == (["b"], ())
    else:  # which loads it, and newer ones do not
        assert any("have lost that branch" in one for one in refusals)
    # What stands behind the plain one is read.
    _, carried = large(*rows[:3], message("e"), *rows[3:], message("d", "e"))
    assert names(carried) == ["b", "e"]


def test_the_archive_is_not_read_for_a_first_prompt_that_nothing_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> NoReturn:
        raise AssertionError

    monkeypatch.setattr(loading, "SMALL_FILE", 100)
    path = tmp_path / "s.jsonl"
    data = lines([first(), message("b", "a"), listed("b"), message("c", "boundary")])
    path.write_bytes(data)
    with Source(path) as source:
        archived = Archived(10_000, says=read, plain=read)
        made = carried_lines.plan(source, oracle.boundaries(data), len(data), archived, prefix=10)
    assert ([entry.span.start for entry in made.carried][:1], made.refusals) == ([0], ())


def test_a_row_that_a_last_prompt_names_from_before_the_cut_is_refused_where_it_is_loaded() -> None:
    def named(uuid: str) -> Row:
        return {"type": "last-prompt", "leafUuid": uuid}

    rows = [first(), message("b", "a"), compaction(), message("c", "boundary")]
    for leaf, is_refused in (("b", True), ("c", False), ("nowhere", False)):
        refusals, _ = plan(*rows, named(leaf))
        assert any("continues from a row from before" in one for one in refusals) is is_refused
    assert plan(*rows, named("b"), message("d", "c"))[0] == ()  # which goes on behind it
    for leaf, carried in (("b", rows[:1]), ("a", [])):
        assert large(*rows, named(leaf)) == ((), carried)


def test_what_is_small_as_a_whole_stays_small_with_our_header() -> None:
    rows = [message("a"), message("b", "a", pad="p" * 900), compaction(), message("c", "b")]
    size = len(lines(rows))
    for most, is_refused in ((size, True), (size + 1024, False)):
        refusals, _ = plan(*rows, small=most)
        assert any("would not load all" in one for one in refusals) is is_refused


def test_old_clients_go_on_from_the_newest_row_wherever_it_stands() -> None:
    row = message("a", timestamp=LATER)
    behind = message("d", "boundary", timestamp="2026-01-01T00:00:00.000Z")
    assert plan(row, compaction(), behind)[0] == ()
    for version, is_refused in (("2.0.28", True), ("2.1.80", True), ("2.1.112", False)):
        refusals, _ = plan(row, {**compaction(), "version": version}, behind)
        assert any("is newer than all rows after it" in one for one in refusals) is is_refused
    # Of one that says what it preserved, 2.1.80 loads that alone.
    assert plan(row, {**listed("a"), "version": "2.1.80"}, behind)[0] == ()


def test_a_compaction_without_its_summary_is_no_place_to_cut() -> None:
    refused = (f"The last compaction has no summary. {NEXT_ROWS}",)
    assert plan(message("a"), compaction(), {"type": "last-prompt"})[0] == refused
    # Of one that lists what it preserved, clients load that, whatever follows.
    assert plan(message("a"), listed("a"))[0] == ()
    assert plan(message("a"), listed("a", "nowhere"))[0] == refused


def test_a_copy_at_the_end_is_no_harm_where_a_pointer_says_what_to_go_on_from() -> None:
    rows = [message("a"), message("b", "a"), listed("b"), message("c", "boundary")]
    rows.append({"type": "last-prompt", "leafUuid": "c"})
    assert plan(*rows, message("a"))[0] == ()
    # What goes on behind it makes it void.
    assert plan(*rows, message("d", "c"), message("a"))[0] == (ON_BOTH_SIDES,)


def said(uuid: str, parent: str, answer: str) -> Row:
    return {**message(uuid, parent), "type": "assistant", "message": {"id": answer, "content": []}}


def result(uuid: str, parent: str) -> Row:
    return message(uuid, parent, message={"content": [{"type": "tool_result"}]})


def test_a_copy_of_a_part_of_an_answer_that_stays_is_refused() -> None:
    behind = message("c", "boundary")
    for answer, refused in (("one", (ON_BOTH_SIDES,)), ("other", ())):
        part = said("a", "x", answer)
        assert plan(part, said("b", "a", "one"), listed("b"), part, behind)[0] == refused


def test_calls_side_by_side_and_their_results_go_along_with_a_branch() -> None:
    rows = [message("q"), said("one", "q", "m"), said("two", "one", "m")]
    rows += [result("r1", "one"), message("no result", "one"), result("r2", "two")]
    made, carried = told(*rows, message("other"), compaction(), message("d", "r2"))
    assert (made.refusals, carried) == ((), [*rows[:4], rows[5]])
    assert [entry.reason for entry in made.carried][3] == ancestry.BESIDE


def test_an_answer_that_the_cut_divides_keeps_its_parts() -> None:
    rows = [message("q"), said("one", "q", "m"), result("r1", "one")]
    assert plan(*rows, compaction(), said("two", "boundary", "m")) == ((), rows)
    # Of what the compaction left out, nothing is fetched.
    assert plan(*rows, listed("q"), said("two", "boundary", "m")) == ((), rows[:1])


def test_a_row_without_a_parent_that_clients_put_behind_another_is_fine() -> None:
    def at(second: int, uuid: str, parent: str) -> Row:
        return message(uuid, parent, timestamp=f"2026-01-01T00:00:{second:02d}.000Z")

    before = [at(1, "a", "x"), compaction()]
    assert plan(*before, at(30, "d", "nowhere"))[0] == ()
    assert plan(*before, at(2, "c", "boundary"), at(3, "d", "nowhere"))[0] == ()
    # The nearest row before it by time is one that would be archived.
    assert "nowhere in the file" in plan(*before, at(3, "d", "nowhere"))[0][0]


def plan_beside(value: bytes) -> LivePlan:
    """Plan a session whose compaction has this value too, and lists a row."""
    record = json.dumps(listed("a") | {"note": "N"}).encode().replace(b'"N"', value)
    data = lines([message("a"), record, message("b", "boundary")])
    return planned(data, [data.index(b"\n") + 1])


def test_a_record_of_a_compaction_that_is_too_deep_for_a_parser_is_refused() -> None:
    made = plan_beside(b"[" * 100_000 + b"]" * 100_000)
    refusal = f"The last compaction's record cannot be read. {NEXT_COMPACTION}"
    assert (made.carried, made.refusals) == ((), (refusal,))


@pytest.mark.parametrize("value", [b"1" * 5000, b"1e999", rb'"\ud800"', b'"\xff"'])
def test_what_a_compaction_lists_is_carried_whatever_stands_beside_it(value: bytes) -> None:
    made = plan_beside(value)
    assert ([each.span.start for each in made.carried], made.refusals) == ([0], ())


@pytest.mark.parametrize("torn", [b'{"type":"user","uuid":"a","te', b'{"type":"user"}', b" ", b"}"])
def test_a_torn_last_line_belongs_to_the_tail(torn: bytes) -> None:
    rows = [message("a"), compaction(), message("b", "boundary")]
    whole, _ = told(*rows)
    assert whole.refusals == ()
    assert planned(lines(rows) + torn, [whole.cut]) == whole


def test_a_torn_last_line_is_read_like_any_other() -> None:
    data = lines([message("a"), compaction(), message("b", "a")])[:-1]
    made = planned(data, oracle.boundaries(data))
    assert [entry.span.start for entry in made.carried] == [0]


def test_a_compaction_record_that_is_not_complete_is_refused() -> None:
    data = lines([message("a"), compaction()])[:-1]
    cuts = oracle.boundaries(data)
    assert planned(data, cuts).refusals == (f"The last line is not complete. {NEXT_ROWS}",)
    # Behind a line break, which a client that is resumed may write first, it is one again.
    assert planned(data + b"\n" + lines([message("b", "boundary")]), cuts).refusals == ()


BEGAN: Final = first(entrypoint="claude-desktop")
GONE_ON: Final = message("e", "d", timestamp=LATER)
COMPACTED: Final = [{**compaction(), "uuid": "new", "version": "2.1.330"}, message("e", "new")]
POINTER: Final = {"type": "last-prompt", "leafUuid": "a"}

REFUSED: Final[list[tuple[str, int, list[Row]]]] = [
    ("nowhere in the file", loading.SMALL_FILE, [compaction(), message("d", "nowhere")]),
    (
        "both before and after",
        loading.SMALL_FILE,
        [message("b"), listed("b"), first(), message("d", "a")],
    ),
    ("have lost that branch", 100, [message("b"), OLD, message("d", "b", timestamp=LATER)]),
    ("from before a plain compaction", 100, [OLD, message("b"), listed("a", "b"), message("d")]),
    ("may continue the first", 100, [compaction(), message("d", "a", timestamp=LATER)]),
    ("too long", loading.SMALL_FILE, [compaction(note="x" * 300_000), message("d", "boundary")]),
    ("no summary", loading.SMALL_FILE, [compaction(), {"type": "last-prompt"}]),
    ("from a row from", loading.SMALL_FILE, [compaction(), message("d"), POINTER]),
    (
        "is newer than all rows",
        loading.SMALL_FILE,
        [OLD, message("d", "boundary", timestamp="2025")],
    ),
    ("would not load all", 500, [compaction(), message("d", "boundary")]),
]
"""What a refusal says, bytes that a small file has, and the rows behind the first prompt."""


@pytest.mark.parametrize(("words", "small", "rows"), REFUSED, ids=[words for words, *_ in REFUSED])
def test_what_a_refusal_says_to_wait_for_is_what_helps(
    words: str, small: int, rows: list[Row]
) -> None:
    began = json.dumps(BEGAN, separators=(",", ":")).encode()
    (refusal,), _ = plan(began, *rows, small=small)
    assert words in refusal
    is_for_rows = refusal.endswith((NEXT_ROWS, "2.1.112 or later."))
    assert is_for_rows or refusal.endswith(NEXT_COMPACTION), "say what to wait for, at the end"
    assert (plan(began, *rows, GONE_ON, small=small)[0] == ()) is is_for_rows
    assert plan(began, *rows, *COMPACTED, small=small)[0] == ()


def test_of_metadata_the_last_of_each_key_is_carried() -> None:
    title, newer = (
        {"type": "custom-title", "customTitle": name, "sessionId": "s"} for name in ("one", "two")
    )
    other = {"type": "custom-title", "customTitle": "three", "sessionId": "t"}
    summaries = [{"type": "summary", "summary": leaf, "leafUuid": leaf} for leaf in "xyx"]
    made, carried = told(title, other, *summaries, newer, compaction())
    assert carried == [other, summaries[1], summaries[2], newer]
    assert {entry.reason for entry in made.carried} == {
        "the latest value of each setting (title, mode, …)"
    }


def test_unknown_rows_and_torn_lines_are_kept_and_void_ones_are_not() -> None:
    new = {"type": "from-a-newer-client", "x": 1}
    void = [{"type": kind} for kind in sorted(loading.CLEARED)]
    _, carried = plan(new, b'{"torn":', b"\xff\x00", *void, compaction())
    assert carried == [new, b'{"torn":', b"\xff\x00"]


def test_file_history_goes_with_its_message() -> None:
    history = [
        {"type": kind, "messageId": uuid}
        for uuid in ("gone", "kept", "later")
        for kind in ("file-history-snapshot", "file-history-delta")
    ]
    rows = [message("gone"), message("kept", "gone"), *history]
    found = plan(*rows, listed("kept"), message("later", "boundary"))
    assert found == ((), [rows[1], *history[2:]])
