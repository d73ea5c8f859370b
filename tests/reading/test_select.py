"""What is chosen is what a reader with the whole session in his hands would choose."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sessrotate.clients.claude import view as claude_view
from sessrotate.errors import WrongUsageError
from sessrotate.parsing import Record, records
from sessrotate.reading import part, select
from sessrotate.reading.part import Part
from sessrotate.reading.select import Choice
from sessrotate.units import Moment
from support.command_line import boundary, row
from support.examples import examples
from support.talks import answer, call, prompt, result, summary, thinking

if TYPE_CHECKING:
    from sessrotate.reading import Viewed

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def chosen(
    data: bytes, choice: Choice, hidden: Callable[[str], None] = lambda _word: None
) -> list[Viewed]:
    return [
        *select.chosen(
            records([data], 0), claude_view.view, choice, lambda _record: None, hidden=hidden
        )
    ]


def lines(data: bytes, choice: Choice) -> list[bytes]:
    return [record.line for record, _ in chosen(data, choice)]


# ── an oracle on plain rows ──────────────────────────────────────────────────────────────────


def rows_of(data: bytes) -> list[tuple[bytes, Any]]:
    found = []
    for line in data.split(b"\n")[:-1]:
        try:
            found.append((line, json.loads(line)))
        except ValueError:
            found.append((line, None))
    return found


def is_real_prompt(value: Any) -> bool:
    if value is None or value.get("type") != "user" or value.get("isSidechain"):
        return False
    if value.get("isMeta") or value.get("isCompactSummary"):
        return False
    content = value["message"]["content"]
    return isinstance(content, str) and not content.startswith("<local-command")


def hidden(value: Any) -> str | None:
    """Return the word that would show a row, None if it is shown anyway."""
    if value.get("isSidechain"):
        return "sidechains"
    if value["type"] == "attachment":
        return "attachments"
    content = (value.get("message") or {}).get("content")
    if value.get("isMeta") or (isinstance(content, str) and content.startswith("<local-command")):
        return "meta"
    if isinstance(content, list) and {block["type"] for block in content} == {"thinking"}:
        return "thinking"
    return None


KINDS: dict[str, Callable[[int], bytes]] = {
    "prompt": lambda n: prompt(n, f"ask {n}"),
    "answer": lambda n: answer(n, f"say {n}"),
    "thought": lambda n: answer(n, thinking(f"think {n}")),
    "call": lambda n: answer(n, call("Read", f"t{n}", path=f"p{n}")),
    "result": lambda n: result(n, f"t{n - 1}", f"gave {n}"),
    "meta": lambda n: prompt(n, f"meta {n}", isMeta=True),
    "stdout": lambda n: prompt(n, f"<local-command-stdout>{n}"),
    "agent": lambda n: answer(n, f"agent {n}", isSidechain=True),
    "task": lambda n: prompt(n, f"task {n}", isSidechain=True),
    "attachment": lambda n: row(n, type="attachment", message=None, attachment={"t": f"x {n}"}),
    "mode": lambda n: b'{"type":"mode","n":%d}\n' % n,
    "torn": lambda n: b'{"type":"user %d\n' % n,
    "summary": lambda n: summary(n, f"summary {n}"),
    "boundary": boundary,
}
SESSIONS = st.lists(st.sampled_from(sorted(KINDS)), max_size=14).map(
    lambda kinds: b"".join(KINDS[kind](n) for n, kind in enumerate(kinds))
)


@examples(150)
@given(data=SESSIONS, include=st.frozensets(st.sampled_from(sorted(select.EVERYTHING))))
def test_what_is_hidden_is_what_was_not_asked_for(data: bytes, include: frozenset[str]) -> None:
    expected = [
        line
        for line, value in rows_of(data)
        if value is None or (value["type"] != "mode" and hidden(value) in {None, *include})
    ]
    assert lines(data, Choice(include=include)) == expected


@examples(150)
@given(
    data=SESSIONS,
    include=st.frozensets(st.sampled_from(sorted(select.EVERYTHING))),
    grep=st.sampled_from([None, "a", "1", "out"]),
)
def test_what_is_hidden_is_counted_by_the_word_that_shows_it(
    data: bytes, include: frozenset[str], grep: str | None
) -> None:
    expected: Counter[str] = Counter()
    for line, value in rows_of(data):
        word = None if value is None or value["type"] == "mode" else hidden(value)
        if word is not None and word not in include:
            (item,) = chosen(line, Choice(include=select.EVERYTHING))
            expected[word] += grep is None or any(grep in text for text in select.texts(*item))
    told: list[str] = []
    pattern = None if grep is None else re.compile(grep)
    choice = Choice(include=include, grep=pattern)
    chosen(data, choice, told.append)
    assert Counter(told) == +expected


@examples(200)
@given(data=SESSIONS)
def test_a_turn_is_a_prompt_its_tools_and_what_was_said_last(data: bytes) -> None:
    expected: list[bytes] = []
    turn: list[tuple[str, bytes]] = []

    def close() -> None:
        tools = [n for n, (kind, _) in enumerate(turn) if kind == "tool"]
        last = tools[-1] if tools else -1
        expected.extend(line for n, (kind, line) in enumerate(turn) if kind != "text" or n > last)
        turn.clear()

    for line, value in rows_of(data):
        if value is None or is_real_prompt(value) or value.get("subtype") == "compact_boundary":
            close()
            expected.append(line)
        elif hidden(value) is None and value["type"] in {"user", "assistant"}:
            content = value["message"]["content"]
            kinds = {block["type"] for block in content} if isinstance(content, list) else set()
            if kinds & {"tool_use", "tool_result"}:
                turn.append(("tool", line))
            elif "text" in kinds:
                turn.append(("text", line))
    close()
    assert lines(data, Choice(brief=True)) == expected


def timed(seconds: list[int | None]) -> bytes:
    """Return rows written at these seconds of a minute; None for one without a time."""
    return b"".join(
        b'{"type":"mode","n":%d}\n' % n
        if second is None
        else prompt(n, str(n), timestamp=f"2026-03-01T10:00:{second:02}.000Z")
        for n, second in enumerate(seconds)
    )


SECOND = st.none() | st.integers(0, 59)


@examples(200)
@given(seconds=st.lists(SECOND, max_size=10), since=SECOND, until=SECOND)
def test_times_limit_what_was_written_between_them(
    seconds: list[int | None], since: int | None, until: int | None
) -> None:
    data = timed(seconds)

    def moment(second: int | None) -> Moment | str | None:
        return None if second is None else part.limit(f"2026-03-01T10:00:{second:02}", NOW)

    expected, last = [], None
    for (line, _), second in zip(rows_of(data), seconds, strict=True):
        last = second if second is not None else last
        is_timed = since is not None or until is not None
        if (last is not None or not is_timed) and (since or 0) <= (last or 0) <= (
            59 if until is None else until
        ):
            expected.append(line)
    found = lines(data, Choice(part=Part(since=moment(since), until=moment(until)), include=None))
    assert found == expected


@examples(100)
@given(count=st.integers(1, 8), choice=st.data())
def test_records_limit_what_stands_between_them(count: int, choice: st.DataObject) -> None:
    data = b"".join(prompt(n, f"say {n}") for n in range(count))
    first = choice.draw(st.integers(0, count - 1))
    last = choice.draw(st.integers(first, count - 1))
    uuids = [value["uuid"] for _, value in rows_of(data)]
    expected = [line for line, _ in rows_of(data)][first : last + 1]
    limits = Choice(Part(since=uuids[first], until=uuids[last]))
    assert lines(data, limits) == expected
    for word in (f"say {number}" for number in range(count)):
        matching = [line for line in expected if re.search(word, line.decode())]
        assert lines(data, replace(limits, grep=re.compile(word))) == matching


@examples(200)
@given(data=SESSIONS, word=st.sampled_from(["ask", "say", "gave", "user", "think 1"]))
def test_a_search_takes_away_and_adds_nothing(data: bytes, word: str) -> None:
    noon = part.limit("2026-03-01T10:00:05Z", NOW)
    grep = re.compile(word)
    for choice in (
        Choice(brief=True),
        Choice(Part(since=noon)),
        Choice(Part(until=noon), include=None),
    ):
        matching = [
            record.line
            for record, view in chosen(data, choice)
            if any(grep.search(text) for text in select.texts(record, view))
        ]
        assert lines(data, replace(choice, grep=grep)) == matching


def test_nothing_is_parsed_that_cannot_match() -> None:
    seen: list[Record] = []

    def view(record: Record) -> Any:
        seen.append(record)
        return claude_view.view(record)

    data = prompt(1, "hay") * 5 + prompt(2, "needle") + prompt(3, "hay") * 5
    found = select.chosen(
        records([data], 0), view, Choice(grep=re.compile("needle")), lambda _record: None
    )
    assert len(list(found)) == len(seen) == 1
    seen.clear()
    assert len(list(select.chosen(records([data], 0), view, Choice(include=None), print))) == 11
    assert seen == []


def test_a_record_that_is_not_there_is_an_error_at_the_end() -> None:
    data = prompt(1, "x")
    for choice in (Choice(Part(since="nowhere")), Choice(Part(until="nowhere"))):
        with pytest.raises(WrongUsageError, match="nowhere"):
            chosen(data, choice)


# ── what is typed ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "begin", "lasts"),
    [
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC), timedelta(days=1)),
        ("2026-03-01T10:02", datetime(2026, 3, 1, 10, 2, tzinfo=UTC), timedelta(minutes=1)),
        ("2026-03-01 10:02:03", datetime(2026, 3, 1, 10, 2, 3, tzinfo=UTC), timedelta(seconds=1)),
        ("2026-03-01T10:02Z", datetime(2026, 3, 1, 10, 2, tzinfo=UTC), timedelta(minutes=1)),
        ("2026-03-01T10:02+02:00", datetime(2026, 3, 1, 8, 2, tzinfo=UTC), timedelta(minutes=1)),
        (
            "2026-03-01T10:02:03.25Z",
            datetime(2026, 3, 1, 10, 2, 3, 250_000, tzinfo=UTC),
            timedelta(microseconds=1),
        ),
        ("30m", NOW - timedelta(minutes=30), timedelta()),
        ("12h", NOW - timedelta(hours=12), timedelta()),
        ("30d", NOW - timedelta(days=30), timedelta()),
        ("6w", NOW - timedelta(weeks=6), timedelta()),
    ],
)
def test_a_time_lasts_as_long_as_it_is_written(
    text: str, begin: datetime, lasts: timedelta
) -> None:
    assert part.limit(text, NOW) == Moment(begin, begin + lasts)


def test_a_uuid_is_a_record() -> None:
    uuid = "00000001-0000-4000-A000-00000000000A"
    assert part.limit(uuid, NOW) == uuid.lower()


@given(text=st.text(max_size=20) | st.from_regex(r"\d{1,7}[hdwm]|[\d:T-]{4,20}", fullmatch=True))
def test_whatever_is_typed_is_a_limit_or_an_error(text: str) -> None:
    try:
        found = part.limit(text, NOW)
    except WrongUsageError:
        return
    assert isinstance(found, str) or found.begin <= found.end


def test_words_to_include_may_come_together_or_apart() -> None:
    assert select.included(["tools,meta", "thinking "]) == {"tools", "meta", "thinking"}
    assert select.included([]) == frozenset()
    with pytest.raises(WrongUsageError, match="tool cannot"):
        select.included(["tool"])
