"""What people see is aligned, true, and harmless whatever the session holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessrotate import render
from sessrotate.errors import printable
from sessrotate.render import segment_table
from sessrotate.render.columns import Canvas
from support import sets
from support.lines import BOUNDARY_LINE, row, session


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2026-11-20T23:30:00.123Z", "2026-11-20 23:30:00"),
        ("2026-11-20T23:30:00-05:00", "2026-11-21 04:30:00"),
        ("2026-11-21T04:30:00+08:00", "2026-11-20 20:30:00"),
        ("2026-11-20T23:30:00", "2026-11-20 23:30:00"),  # no zone says otherwise
        ("2026-02-30T00:00:00+99:99", "2026-02-30 00:00:00"),  # no time
        ("0001-01-01T00:00:00+01:00", "0001-01-01 00:00:00"),  # in UTC, out of the calendar
        ("", ""),
        (None, "-"),
    ],
)
def test_times_are_shown_in_utc(written: str | None, shown: str) -> None:
    assert render.time(written) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (999 * 1024, "999.0 KiB"),
        (1000 * 1024, "1.0 MiB"),
        (1024**2 - 1, "1.0 MiB"),
        (1024**3, "1.0 GiB"),
        (5 * 1024**5, "5.0 PiB"),
        (5000 * 1024**5, "5000.0 PiB"),
    ],
)
def test_sizes_are_in_powers_of_1024(count: int, shown: str) -> None:
    assert render.size(count) == shown


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each) | st.tuples(each, each),
)


@given(_JSON)
def test_a_document_is_indented_by_two(document: object) -> None:
    expected = json.dumps(document, indent=2) + "\n"
    assert render.as_json(document) == expected


# daaain/claude-code-log #139: clients cut texts in the middle of a character.
@given(st.recursive(st.text(st.characters(codec=None)), st.lists))
@example("\ud83d\ude00 \\ud83d \udcb2 \ud83d \ud55c \\\udcb2")
def test_half_a_character_is_replaced_in_json(document: object) -> None:
    def whole(value: Any) -> object:
        if isinstance(value, list):
            return [*map(whole, value)]
        joined = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return str(joined)

    assert msgspec.json.decode(render.dumps(document)) == whole(document)
    assert msgspec.json.decode(render.as_json([document])) == [whole(document)]
    assert msgspec.json.decode("".join(render.json_parts({"a": [document]}))) == {
        "a": [whole(document)]
    }


@given(st.dictionaries(st.text(), _JSON, min_size=1))
def test_a_long_document_has_each_entry_of_its_lists_on_a_line(document: dict[str, object]) -> None:
    text = "".join(render.json_parts(document))
    assert json.loads(text) == json.loads(json.dumps(document))
    entries = [each for key in document if isinstance(told := document[key], list) for each in told]
    assert {f"    {json.dumps(each)}" for each in entries} <= {
        line.removesuffix(",") for line in text.splitlines()
    }


def test_the_rows_of_a_plain_table_are_aligned(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(session(12))
    lines = [*segment_table.table(sets.planned(path).segments, Canvas())]
    assert len(lines) == 13
    assert len({line.index("auto") for line in lines[2:]}) == 1
    assert all(line[:2].strip().isdigit() for line in lines[1:])
    assert "\x1b" not in "".join(lines)


def test_shares_add_up_to_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(session(3))
    _, *rows = segment_table.table(sets.planned(path).segments, Canvas())
    shares = re.findall(r" (\d+\.\d)%", "".join(rows))
    assert len(shares) == 3
    assert abs(sum(map(float, shares)) - 100) <= 0.2


def test_no_control_character_of_a_session_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[31m.jsonl"
    hostile = BOUNDARY_LINE.replace(b'"auto"', b'"\\u001b]0;x\\u0007[red]"')
    path.write_bytes(row() + b"\n" + hostile + b"\n")
    plan = sets.planned(path)
    text = "\n".join(
        [
            segment_table.heading(plan),
            *segment_table.table(plan.segments, Canvas(200)),
            *segment_table.would(plan, tmp_path / "\x07", None, 3),
            *segment_table.done(plan, tmp_path / "\x07"),
            *segment_table.split_json(plan, path, tmp_path, dry_run=True),
        ]
    )
    assert all(char.isprintable() or char == "\n" for char in text)


@given(st.text(), st.integers(1, 50))
def test_printable_text_is_one_short_line(text: str, limit: int) -> None:
    shown = printable(text, limit)
    assert shown.isprintable()
    assert len(shown) <= limit
    if text.isprintable() and len(text) <= limit:
        assert shown == text
