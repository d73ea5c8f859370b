"""What of a Codex session stands a second time, against a count over parsed rows."""

from __future__ import annotations

import base64
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessrotate import parsing
from sessrotate.clients.codex import reader
from sessrotate.parsing import json_stream
from sessrotate.reports import Contents, session_report
from sessrotate.reports.counting import Counts, Tally
from support.codex_sessions import FILES, ID, Rows, as_line, message
from support.command_line import write
from support.examples import examples

PARENT = "01a20000-0000-7000-8000-00000000000a"
OLDER, NEWER = "01a10000-0000-7000-8000-00000000000b", "01a30000-0000-7000-8000-00000000000c"


def picture(number: int, size: int = 300) -> str:
    """Return the base64 of a picture; every third is a PNG."""
    noise = random.Random(number).randbytes(size)
    return base64.b64encode(
        (b"\x89PNG\r\n\x1a\n\0\0\0\r" if number % 3 == 0 else b"") + noise
    ).decode()


def seen(*pictures: str) -> dict[str, Any]:
    blocks = [{"type": "input_image", "image_url": f"data:image/png;base64,{p}"} for p in pictures]
    return {"type": "message", "role": "user", "content": blocks}


# ── counted over parsed rows ─────────────────────────────────────────────────────────────────


def strings(value: Any) -> list[str]:
    """Return all texts in a JSON value, and those in a text that is JSON itself."""
    if isinstance(value, str):
        return strings(json.loads(value)) if value.startswith("[{") else [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in strings(each)]


def pictures_in(value: Any) -> list[str]:
    found = [text.partition(";base64,")[2] or text for text in strings(value)]
    return [text for text in found if text in DRAWN]


DRAWN = {picture(number) for number in range(40)}


def right(lines: list[bytes], inherited: int = 0) -> Counter[str]:
    """Return the bytes of copies; so many rows behind the first one are a parent's."""
    pictures: set[str] = set()
    items: set[str] = set()
    found: Counter[str] = Counter()
    for number, line in enumerate(lines):
        row = json.loads(line)
        inside: Counter[str] = Counter()
        for each in pictures_in(row):
            inside["pictures"] += len(each) if each in pictures else 0
            pictures.add(each)
        payload = row["payload"]
        told = [payload] if row["type"] == "response_item" else []
        if row["type"] == "compacted":
            inner = [each for each in payload.values() if isinstance(each, dict)]
            lists = [*payload.values(), *(value for each in inner for value in each.values())]
            told = [item for each in lists if isinstance(each, list) for item in each]
        for item in told:
            text = as_line(item).decode()
            if text in items and row["type"] == "compacted":
                inside["history"] += len(text.encode()) - sum(map(len, pictures_in(item)))
            items.add(text)
        found.update({"parent": len(line) + 1} if 0 < number <= inherited else inside)
    return +found


def counted(data: bytes, size: int = 1 << 20, longest: int = 1 << 23) -> Contents:
    """Count a session in pieces of `size`; of lines over `longest`, the beginning only is held."""

    def bytes_of(record: parsing.Record) -> Any:
        line = data[record.offset : record.offset + record.size]
        return (line[at : at + size] for at in range(0, len(line), size))

    tally = Tally("s", reader, bytes_of)
    with mock.patch.object(parsing, "LONGEST", longest):
        tally.segment((data[at : at + size] for at in range(0, len(data), size)), 0, 0)
    return tally.counts.contents()


def check(rows: list[bytes], inherited: int = 0, **how: int) -> None:
    data = b"".join(line + b"\n" for line in rows)
    found = counted(data, **how)
    copied = {share.name: share.bytes for share in found.copies}
    assert copied == right(rows, inherited)
    assert found.copied == sum(copied.values())
    assert sum(share.bytes for share in found.kinds) == len(data)
    assert found.copied_lines <= sum(share.lines for share in found.copies) <= 3 * len(rows)


# ── sessions ─────────────────────────────────────────────────────────────────────────────────


def session(chance: random.Random, shape: str, compactions: int) -> Rows:
    """Return a session of turns with pictures; each compaction has all items again."""
    rows, history = Rows(shape), []
    rows.add("session_meta", id=ID, cwd="/srv/demo/project")

    def item(**payload: Any) -> None:
        history.append(payload)
        rows.item(**payload)

    for number in range(compactions + 1):
        for turn in range(chance.randrange(4)):
            rows.event("task_started", turn_id=NEWER)
            shown = [picture(chance.randrange(9)) for _ in range(chance.randrange(3))]
            item(**seen(*shown))
            rows.event("user_message", message="look", images=[f"data:x;base64,{p}" for p in shown])
            again = json.dumps([{"type": "input_image", "image_url": f"data:;base64,{p}"}
                                for p in shown])  # fmt: skip
            item(type="function_call_output", call_id=f"{number}.{turn}", output=again)
            made = picture(3 * chance.randrange(5))
            item(type="image_generation_call", id="ig", result=made)
            item(**message("assistant", 'words about ";base64, and "iVBORw0KGgo, and ümläut \\ "'))
        if number < compactions:
            kept = chance.sample(history, chance.randrange(len(history) + 1))
            told = [{"message_id": str(each), "text": "é"} for each in range(number + 2)]
            summary = message("user", f"so far, {number}")
            rows.add(
                "compacted",
                message="so far",
                replacement_history=[*kept, summary],
                guardian_history=[{**each, "guardian_metadata": {}} for each in history],
                retained_context={"user_messages": told, "incomplete": False},
                window_number=number,
            )
            history.append(summary)
    return rows


def forked(parent: list[bytes], own: list[bytes], **meta: Any) -> list[bytes]:
    """Return the rows of a copying fork: one of its own, its parent's with new times, its own."""
    taken = [json.loads(line) for line in parent]
    first = {"id": ID, "forked_from_id": PARENT, **meta}
    taken[0]["payload"]["id"] = PARENT
    time = {"timestamp": "2026-11-28T04:45:16.802Z"}
    rows = [
        {**time, "type": "session_meta", "payload": first},
        *({**each, **time} for each in taken),
    ]
    return [*map(as_line, rows), *own]


CHANCE = st.randoms(use_true_random=False)
HOW = st.fixed_dictionaries(
    {"size": st.integers(20, 5000), "longest": st.sampled_from([700, 3000, 1 << 23])}
)


@given(CHANCE, st.sampled_from(["legacy", "paginated"]), st.integers(0, 3), HOW)
@examples(30)
def test_copies_are_those_of_parsed_rows_however_a_session_is_read(
    chance: random.Random, shape: str, compactions: int, how: dict[str, int]
) -> None:
    check(session(chance, shape, compactions).lines, **how)


@given(CHANCE, st.booleans(), HOW)
@examples(20)
def test_a_fork_has_the_rows_of_its_parent_and_then_its_own(
    chance: random.Random, is_told: bool, how: dict[str, int]
) -> None:
    parent, own = session(chance, "legacy", 2).lines, session(chance, "legacy", 3).lines[1:]
    parent = [line.replace(NEWER.encode(), OLDER.encode()) for line in parent]
    if not is_told:  # a fork of 0.142.5 goes on with a turn
        own = [Rows("legacy").event("task_started", turn_id=NEWER), *own]
    meta = {"subagent_history_start_ordinal": 1 + len(parent)} if is_told else {}
    check(forked(parent, own, **meta), len(parent), **how)


def test_a_picture_counts_once_for_each_time_that_it_stands_again() -> None:
    rows, items = Rows(), [seen(picture(number)) for number in range(5)]
    for each in items:
        rows.item(**each)
    for _ in range(3):
        rows.compacted(*items)
    data = b"".join(line + b"\n" for line in rows.lines)
    found = {share.name: (share.lines, share.bytes) for share in counted(data).copies}
    pictures = sum(len(picture(number)) for number in range(5))
    around = sum(len(as_line(each)) for each in items) - pictures
    assert found == {"pictures": (3, 3 * pictures), "history": (3, 3 * around)}
    assert counted(data).copied_lines == 3


@pytest.mark.parametrize(
    "second",
    [
        {"id": NEWER},  # the parent of another
        {},
    ],
)
def test_a_session_that_does_not_begin_as_a_copying_fork_has_no_rows_of_a_parent(
    second: dict[str, str],
) -> None:
    rows = Rows()
    rows.add("session_meta", id=ID, forked_from_id=PARENT, history_base={"thread_id": PARENT})
    rows.add("session_meta", **second)
    rows.turn("go on")
    check(rows.lines)


def test_turns_of_ids_that_tell_no_time_are_a_fork_s_own() -> None:
    parent = Rows("legacy")
    parent.add("session_meta", id=PARENT)
    parent.item(**message("user", "hello"))
    parent.event("task_started", turn_id="1")
    check(forked(parent.lines, []), 2)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name + path.name[:5])
def test_copies_in_real_sessions_are_those_of_parsed_rows(path: Path) -> None:
    check(path.read_bytes().splitlines())


def test_an_item_with_more_text_than_is_held_is_a_copy_too() -> None:
    rows, long = Rows(), message("user", "some words " * 200)
    rows.item(**long)
    rows.compacted(long, message("user", "some words " * 201))
    with mock.patch.object(json_stream, "LONGEST", 1000):
        check(rows.lines, size=500, longest=1000)


BITS = st.sampled_from(
    [
        *(b";base64,", b'"iVBORw0KGgo', b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"A" * 70),
        *(b'{"type":"compacted","payload":{"a":[', b'{"type":"response_item","payload":{"a":1}}'),
        *(b'"' + picture(0).encode() + b'"', b'"data:;base64,' + picture(1).encode()),
    ]
)


@given(st.lists(st.lists(BITS | st.binary(max_size=3), max_size=12).map(b"".join)), HOW)
@example([b'";base64,' + b"A" * 64 + b'"'] * 2, {"size": 80, "longest": 70})
@examples(100)
def test_of_anything_no_more_is_copied_than_there_is_and_pieces_make_no_difference(
    lines: list[bytes], how: dict[str, int]
) -> None:
    data = b"\n".join(lines)
    found = counted(data, **how)
    assert found.copies == counted(data).copies
    assert 0 <= found.copied <= len(data)


def test_a_report_of_a_file_has_them(tmp_path: Path) -> None:
    rows = session(random.Random(5), "paginated", 3).lines
    path = write(tmp_path / "s.jsonl", b"".join(line + b"\n" for line in rows))
    contents = session_report.of_session(path, lambda _done: None, kinds=Counts()).contents
    assert contents is not None
    assert {share.name: share.bytes for share in contents.copies} == right(rows)
    assert "compactions" in {share.name for share in contents.kinds}
