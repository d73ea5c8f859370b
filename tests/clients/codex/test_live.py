"""What a resume of a Codex session loads and sends, by what the client itself would do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.codex.reader import conversation, rewound, view
from sessrotate.parsing import LONGEST
from support.codex_sessions import FILES, Opened, Rows, live, message, opened
from support.examples import examples


def said(session: Opened) -> list[str]:
    """Return the first text of each record that is sent."""
    found = []
    for record in conversation(session):
        shown = view(record)
        assert shown is not None
        found.append(getattr(shown.blocks[0], "text", "") if shown.blocks else shown.type)
    return found


def begun(shape: str = "paginated") -> Rows:
    rows = Rows(shape)
    rows.add("session_meta", id="s", cwd="/srv")
    return rows


def test_without_a_compaction_everything_is_loaded_and_its_items_are_sent() -> None:
    rows = begun()
    rows.turn("one")
    rows.turn("two")
    session = Opened(rows.lines)
    assert live(session) == rows.lines
    assert said(session) == ["one", "re: one", "two", "re: two"]


def test_what_the_client_keeps_for_itself_is_not_sent() -> None:
    rows = begun()
    rows.turn("one")
    rows.item(type="ghost_snapshot", ghost_commit={"id": "c"})
    rows.add("turn_context", model="m")
    assert said(Opened(rows.lines)) == ["one", "re: one"]


def test_a_compaction_that_carries_its_history_is_the_base() -> None:
    rows = begun()
    rows.turn("one")
    rows.compacted(message("user", "kept"), message("user", "summary"))
    rows.turn("two")
    rows.compacted(message("user", "kept"), message("user", "newer"))
    compaction = len(rows.lines) - 1
    rows.turn("three")
    session = Opened(rows.lines)
    assert live(session) == [rows.lines[0], *rows.lines[compaction:]]
    assert said(session) == ["kept", "newer", "three", "re: three"]


def test_the_items_of_a_history_stand_where_they_are_in_the_segment() -> None:
    rows = begun()
    rows.turn("one")
    rows.compacted(message("user", "kept"), {"type": "compaction", "encrypted_content": "x"})
    session = Opened(rows.lines)
    for record in conversation(session):
        assert (record.segment, record.is_whole, record.is_part) == (1, True, True)
        assert rows.lines[-1][record.offset : record.offset + record.size] == record.line
        assert b"".join(session.bytes_of(record)) == record.line


def test_a_history_longer_than_any_line_that_is_held_is_sent_item_by_item() -> None:
    rows = begun()
    rows.compacted(
        message("user", "first"), message("user", "x" * LONGEST), message("user", "last")
    )
    rows.turn("two")
    records = list(conversation(Opened(rows.lines)))
    assert [record.is_whole for record in records] == [True, False, True, True, True]
    shown = [view(records[number]) for number in (0, 2)]
    assert [getattr(each.blocks[0], "text", "") for each in shown if each] == ["first", "last"]


def test_a_compaction_without_history_leaves_what_was_asked_and_its_summary() -> None:
    rows = begun("legacy")
    rows.item(**message("user", "<environment_context>"))
    rows.turn("one")
    rows.compacted(summary="first", carries=False)
    rows.turn("two")
    rows.compacted(summary="second", carries=False)
    rows.turn("three")
    session = Opened(rows.lines)
    assert live(session) == rows.lines
    assert said(session) == ["one", "two", "second", "three", "re: three"]


def test_a_torn_compaction_is_no_base() -> None:
    rows = begun()
    rows.turn("one")
    rows.compacted(message("user", "kept"))
    rows.turn("two")
    rows.compacted(message("user", "lost"))
    torn = [*rows.lines[:-1], rows.lines[-1][:-30]]
    assert said(Opened(torn)) == ["kept", "two", "re: two"]


STEPS = st.lists(
    st.one_of(st.just("turn"), st.just("turn"), st.just("compact"), st.integers(1, 4)), max_size=14
)


@given(STEPS)
@examples(200)
def test_turns_that_were_taken_back_are_undone_with_their_compactions(
    steps: list[str | int],
) -> None:
    rows = begun("legacy")
    now: list[str] = []
    before: list[list[str]] = []
    for number, step in enumerate(steps):
        if step == "turn":
            before.append(now[:])
            rows.turn(f"t{number}")
            now += [f"t{number}", f"re: t{number}"]
        elif step == "compact" and before:
            # As clients do it: at the beginning of a turn, whose prompt comes then.
            before.append(now[:])
            rows.event("task_started")
            now = [*now[::2][-3:], f"summary {number}"]
            rows.compacted(*(message("user", text) for text in now))
            rows.item(**message("user", f"t{number}"))
            now.append(f"t{number}")
        elif isinstance(step, int):
            rows.event("thread_rolled_back", num_turns=step)
            if before:
                now = before[-min(step, len(before))]
                del before[-step:]
    assert said(Opened(rows.lines)) == now


@given(STEPS)
@examples(200)
def test_what_was_rewound_are_the_turns_that_were_taken_back(steps: list[str | int]) -> None:
    rows = begun("legacy")
    turns: list[str] = []
    undone: list[str] = []
    for number, step in enumerate(steps):
        if step == "turn":
            rows.turn(f"t{number}")
            turns.append(f"t{number}")
        elif step == "compact":
            rows.compacted(message("user", "kept"))
        elif isinstance(step, int):
            rows.event("thread_rolled_back", num_turns=step)
            undone += turns[-step:]
            del turns[-step:]
    session = Opened(rows.lines)
    asked = rewound(session)
    for record in session.history():
        found = re.search(rb'"text":"(?:re: )?(t\d+)"', record.line)
        if found is not None:
            assert asked(record) == (found[1].decode() in undone)
    assert not any(asked(record) for record in conversation(session))


def test_what_was_taken_back_since_a_compaction_needs_all_before_it() -> None:
    rows = begun("legacy")
    rows.turn("one")
    rows.compacted(message("user", "one"))
    rows.turn("two")
    rows.turn("three")
    rows.compacted(message("user", "one"), message("user", "two"), message("user", "three"))
    rows.turn("four")
    rows.event("thread_rolled_back", num_turns=1)
    assert said(Opened(rows.lines)) == ["one", "two", "three"]
    rows.lines.pop()
    rows.event("thread_rolled_back", num_turns=2)
    session = Opened(rows.lines)
    assert live(session) == rows.lines
    assert said(session) == ["one", "two", "re: two"]


# 0.101 rebuilds the history; the test with the real client checks that.
CARRYING = [path for path in FILES if path.parent.name != "0.101.0"]


@pytest.mark.parametrize("path", CARRYING, ids=lambda path: f"{path.parent.name}-{path.stem[:20]}")
def test_a_real_session_sends_its_last_history_and_what_came_after(path: Path) -> None:
    rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_bytes().splitlines()]
    history: list[Any] = []
    for row in rows:
        if row["type"] == "compacted":
            history = list(row["payload"]["replacement_history"])
        elif row["type"] == "response_item":
            history.append(row["payload"])
    found = [json.loads(record.line) for record in conversation(opened(path))]
    assert [row.get("payload", row) for row in found] == history
    loaded = live(opened(path))
    assert loaded[0] == path.read_bytes().splitlines()[0]
    assert loaded[1:] == path.read_bytes().splitlines()[1 - len(loaded) :]
