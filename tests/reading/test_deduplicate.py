"""Whether each record comes once, as a plain dictionary of what was parsed would have it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.claude.reader import key
from sessrotate.parsing import LONGEST, Record, records
from sessrotate.reading.deduplicate import Copies, once, waiting
from support.examples import examples
from support.tiers import in_gate

if TYPE_CHECKING:
    from sessrotate.reading.deduplicate import Asks


def plain(lines: list[bytes]) -> tuple[list[bytes], int]:
    """Return the lines, each once, and how many were left out."""
    seen: dict[object, bytes] = {}
    left_out = 0
    for line in lines:
        try:
            row = json.loads(line.decode("utf-8", "replace"))
        except ValueError:
            row = None
        uuid = row.get("uuid") if isinstance(row, dict) else None
        key: object = ("uuid", uuid) if uuid and isinstance(uuid, str) else line
        if key in seen:
            left_out += 1
        else:
            seen[key] = line
    return list(seen.values()), left_out


UUIDS = st.sampled_from([*(f"{n:08x}-0000-4000-8000-000000000000" for n in range(4)), "é", "", "u"])
TEXTS = st.text(st.sampled_from('ab"\\{}[],:é\U0001f6f6'), max_size=6)
MEMBERS: dict[str, st.SearchStrategy[object]] = {
    "type": st.sampled_from(["user", "mode"]),
    "uuid": st.one_of(UUIDS, UUIDS, st.none(), st.just(7)),
    "message": st.one_of(TEXTS, st.fixed_dictionaries({"uuid": UUIDS, "x": TEXTS})),
}


@st.composite
def rows(draw: st.DrawFn) -> bytes:
    names = draw(st.lists(st.sampled_from(sorted(MEMBERS)), unique=True, min_size=1))
    row = {name: draw(MEMBERS[name]) for name in names}
    separators = draw(st.sampled_from([(",", ":"), (",", ":"), (", ", ": ")]))
    return json.dumps(row, separators=separators, ensure_ascii=draw(st.booleans())).encode()


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """Draw a row or, now and then, what a crash leaves of two."""
    line, other = draw(rows()), draw(rows())
    at = draw(st.integers(0, len(line) - 1))
    return draw(st.sampled_from([line, line, line, line[:at], line[:at] + other, line + other]))


@given(st.lists(lines(), max_size=12).flatmap(lambda some: st.permutations(some * 2)))
@examples(600)
def test_each_record_comes_once_as_a_dictionary_of_parsed_rows_has_it(some: list[bytes]) -> None:
    found = list(records([b"".join(line + b"\n" for line in some)], 0))
    copies = Copies()
    unique = [record.line for record in once(found, key, copies=copies)]
    assert (unique, copies.left_out) == plain([r.line for r in found])


def test_a_torn_row_with_a_whole_one_behind_it_does_not_stand_for_that() -> None:
    whole = b'{"type":"user","uuid":"a"}'
    fused = b'{"type":"user","message":"x' + whole
    found = list(records([fused + b"\n" + whole + b"\n"], 0))
    assert [record.line for record in once(found, key)] == [fused, whole]


def long(number: int, end: bytes) -> Record:
    return Record(0, number, b"x" * LONGEST, LONGEST + len(end))


@pytest.mark.parametrize("reads", [True, False])
def test_a_line_too_long_to_be_held_is_known_by_all_of_its_bytes(reads: bool) -> None:
    ends = [b"one", b"two", b"one", b"four"]

    def bytes_of(record: Record) -> Iterator[bytes]:
        yield record.line
        yield ends[record.offset]

    some = [long(number, end) for number, end in enumerate(ends)]
    found = [record.offset for record in once(some, key, bytes_of if reads else None)]
    assert found == ([0, 1, 3] if reads else [0, 3])


@pytest.mark.parametrize("count", in_gate([20_000, 300_000], 1, "scale"))
def test_many_records_are_told_apart(count: int) -> None:
    """So many that keys share their buckets, in which one must be found at its place only."""
    some = [Record(0, n, b'{"uuid":"%d"}' % (n % count), 0) for n in range(2 * count)]
    some = [Record(0, r.offset, r.line, len(r.line)) for r in some]
    copies = Copies()
    assert [r.offset for r in once(some, key, copies=copies)] == list(range(count))
    assert copies.left_out == count


def test_a_line_that_is_just_a_uuid_is_not_taken_for_its_row() -> None:
    uuid = b"00000001-0000-4000-8000-000000000000"
    lines = [b'{"type":"user","uuid":"%b"}' % uuid, uuid]
    found = records([b"".join(line + b"\n" for line in lines)], 0)
    assert [record.line for record in once(found, key)] == lines


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["queued", "queued", "said", "said", "taken back", None]),
        st.sampled_from(["a", "b", "a\nb", "ab", "!a"]),
    ),
    max_size=9,
)


@examples(300)
@given(EVENTS)
def test_what_waits_is_over_once_it_is_said_as_whole_lines_or_all_is_taken_back(
    events: list[tuple[Asks, str]],
) -> None:
    def is_over(at: int) -> bool | None:
        becomes, words = events[at]
        if becomes != "queued":
            return None
        wanted = words.split("\n")
        said = [text.removeprefix("!").split("\n") for b, text in events[at + 1 :] if b == "said"]
        return any(b == "taken back" for b, _ in events[at + 1 :]) or any(
            lines[n : n + len(wanted)] == wanted for lines in said for n in range(len(lines))
        )

    expected = [(each, is_over(at)) for at, each in enumerate(events)]
    assert [*waiting(events, lambda each: each, lambda _: 1)] == expected
