"""Tables with bars: as wide as there is room, and plain where there is no terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sessrotate.render.columns import Canvas, Columns, TableRow, bar, table
from support.command_line import without_ansi

COLUMNS = Columns(("name", "size", "lines"), frozenset({"name"}), ("lines",))
ROWS = [
    TableRow(("first", "10.0 MiB", "1,000"), 1.0),
    TableRow(("境界", "3 B", "2"), 0.001, "wrong"),
]


def drawn(width: int | None, *, colour: bool = False) -> list[str]:
    return [*table(COLUMNS, ROWS, Canvas(width, colour=colour))]


def test_a_pipe_gets_aligned_text_without_bars() -> None:
    assert drawn(None) == [
        "name       size  lines",
        "first  10.0 MiB  1,000",
        "境界        3 B      2",
    ]


def test_a_terminal_gets_bars_in_what_room_is_left() -> None:
    assert drawn(33)[1:] == [
        "first  10.0 MiB  1,000  █████████",
        "境界        3 B      2  ▏",
    ]


def test_what_is_expendable_goes_where_it_is_narrow() -> None:
    assert drawn(25)[1] == "first  10.0 MiB  ████████"
    assert drawn(10)[1] == "first  10.0 MiB"


def test_colours_change_no_character() -> None:
    assert [without_ansi(line) for line in drawn(40, colour=True)] == drawn(40)
    assert drawn(40, colour=True) != drawn(40)


def test_no_rows_are_no_table() -> None:
    assert [*table(COLUMNS, [], Canvas())] == []


@given(st.floats(0, 2), st.integers(1, 60))
def test_a_bar_is_as_long_as_its_share_to_an_eighth(share: float, width: int) -> None:
    found = bar(share, width)
    assert 1 <= len(found) <= width
    eighths = sum(dict(zip("▏▎▍▌▋▊▉█", range(1, 9), strict=True))[c] for c in found)
    assert abs(eighths - min(share, 1) * width * 8) <= 1
