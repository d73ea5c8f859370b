"""When bytes were written, by what records tell and by what segments do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessrotate.reports import Day, SegmentRow, counting
from sessrotate.reports.counting import Days

TIMES = st.one_of(
    st.none(),
    st.datetimes(datetime(1969, 1, 1), datetime(2031, 1, 1)).map(lambda at: f"{at.isoformat()}Z"),  # noqa: DTZ001 - hypothesis wants it
    st.sampled_from(
        [
            *("", "Z", "soon", "2026-13-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01"),
            *("2026-03-01T23:30:00-01:00", "2026-03-02", "2026-03-02T10:00:00.123456789Z"),
        ]
    ),
)


def day_of(text: str | None) -> str | None:
    """Return the day by the standard library alone."""
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return str(at.date()) if 1970 <= at.year < 9999 else None


FEW = st.sampled_from(["2026-03-01T10:00:00Z", "2026-03-02T10:00:00Z", None])


@given(
    st.lists(st.tuples(st.integers(0, 9), TIMES | FEW)),
    st.lists(st.integers(0, 20), max_size=3).map(sorted),
)
@example([(1, f"2026-03-0{day}T10:00:00Z") for day in (1, 2, 1)] + [(1, None)], [3])
def test_bytes_are_of_the_day_of_their_record_or_of_the_one_before(
    entries: list[tuple[int, str | None]], cuts: list[int]
) -> None:
    days = Days()
    for start, end in pairwise([0, *cuts, len(entries)]):
        part = Days()
        for size, time in entries[start : max(start, end)]:
            part.add(size, time)
        days.extend(part)
    told = [day_of(time) for _, time in entries]
    first = next((day for day in told if day), None)
    right: dict[str | None, int] = {}
    day = first
    for (size, _), own in zip(entries, told, strict=True):
        day = own or day
        right[day] = right.get(day, 0) + size
    found = {each.day: each.bytes for each in days.all()}
    assert {key: size for key, size in found.items() if size} == {
        key: size for key, size in right.items() if size
    }
    assert [each.day or "" for each in days.all()] == sorted(each.day or "" for each in days.all())


def test_a_session_cannot_name_more_days_than_there_is_memory_for() -> None:
    days = Days()
    for number in range(counting.MOST + 10):
        days.add(1, f"{1970 + number // 336}-{1 + number % 336 // 28:02}-{1 + number % 28:02}T00Z")
    assert len(days.all()) == counting.MOST
    assert sum(day.bytes for day in days.all()) == counting.MOST + 10


def part(size: int, first: str | None, last: str | None) -> SegmentRow:
    return SegmentRow(0, 0, size, None, None, first, last, "live")


@given(st.lists(st.tuples(st.integers(0, 10**12), TIMES, TIMES), max_size=5))
def test_all_bytes_of_segments_are_spread(
    entries: list[tuple[int, str | None, str | None]],
) -> None:
    days = counting.spread(part(*entry) for entry in entries)
    assert sum(day.bytes for day in days) == sum(size for size, *_ in entries)
    assert all(day.bytes >= 0 for day in days)


def test_a_segment_is_spread_evenly_over_its_time() -> None:
    found = counting.spread([part(4800, "2026-02-27T12:00:00Z", "2026-03-01T12:00:00Z")])
    assert found == (
        Day("2026-02-27", 1200),
        Day("2026-02-28", 2400),
        Day("2026-03-01", 1200),
    )


def test_a_segment_whose_clock_ran_backwards_is_spread_all_the_same() -> None:
    found = counting.spread([part(10, "2026-03-02T12:00:00Z", "2026-03-01T12:00:00Z")])
    assert found == (Day("2026-03-01", 5), Day("2026-03-02", 5))


def test_growths_are_added_day_by_day() -> None:
    one, other = (Day(None, 1), Day("2026-03-01", 2)), (Day("2026-03-01", 3), Day("2026-03-02", 4))
    assert counting.together([one, other]) == (
        Day(None, 1),
        Day("2026-03-01", 5),
        Day("2026-03-02", 4),
    )


@pytest.mark.parametrize(
    ("span", "first", "rows"),
    [
        (0, "2026-02-28", 1),
        (9, "2026-02-28", 10),
        (40, "2026-02-23", 7),
        (100, "2026-02", 5),
        (4000, "2026", 12),
    ],
)
def test_days_are_shown_as_the_finest_periods_that_are_few_enough(
    span: int, first: str, rows: int
) -> None:
    begin = datetime(2026, 2, 28, tzinfo=UTC).date()
    days = [Day(str(begin), 7), Day(str(begin + timedelta(days=span)), 5), Day(None, 3)]
    found = counting.by_period(days, 12)
    assert (next(iter(found)), len(found)) == (first, rows)
    assert sum(found.values()) == 12


def test_no_days_are_no_periods() -> None:
    assert counting.by_period([], 12) == {}
