"""Sizes, ages and points in time as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import units

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WORDS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@given(count=st.integers(0, 9999), letter=st.sampled_from(sorted(WORDS)))
def test_an_age_is_the_same_length_wherever_it_is_given(count: int, letter: str) -> None:
    length = timedelta(**{WORDS[letter]: count})
    assert units.age(f" {count}{letter}") == length.total_seconds()
    assert units.moment(f"{count}{letter}", NOW) == units.Moment(NOW - length, NOW - length)


@given(st.integers(0, 253_402_300_799), st.floats(0, 0.99))
def test_a_time_that_is_written_is_read_to_the_second(at: int, part: float) -> None:
    assert units.seconds(units.written(at + part)) == at


@pytest.mark.parametrize("text", ["", "m", "30", "30s", "1.5h", "-1d", "30 d", "1234567d"])
def test_what_is_not_an_age_is_not_taken_for_one(text: str) -> None:
    assert units.age(text) is None


@pytest.mark.parametrize("text", ["", "999999w", "0001-01-01T00:00:00+14:00x", "yesterday"])
def test_what_is_no_point_in_time_is_not_taken_for_one(text: str) -> None:
    assert units.moment(text, NOW) is None


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("7", 7), ("500K", 512_000), ("1.5 ", 1), ("1.5k", 1536), ("2GiB", 2 << 30)],
)
def test_a_size_is_in_powers_of_1024(text: str, size: int) -> None:
    assert units.size(text) == size


@given(st.integers(0, 10**12), st.sampled_from([1, 1 << 10, 1 << 20, 1 << 40]))
def test_bytes_in_words_are_as_many(count: int, unit: int) -> None:
    words = units.whole(count * unit)
    assert (
        units.size(words.removesuffix(" bytes").replace(",", "").replace(" ", "")) == count * unit
    )


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 bytes"), (2 << 20, "2 MiB"), (2_000_000, "2,000,000 bytes")]
)
def test_bytes_are_in_the_largest_unit_that_is_whole(count: int, words: str) -> None:
    assert units.whole(count) == words


@pytest.mark.parametrize("text", ["", "K", "1 K", "-1", "1e3", "1P", "1_000"])
def test_what_is_not_a_size_is_not_taken_for_one(text: str) -> None:
    assert units.size(text) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (7 * 86400, "1 week"),
        (10 * 86400, "10 days"),
        (3600, "1 hour"),
        (90, "90 seconds"),
        (0.5, "0.5 seconds"),
    ],
)
def test_a_length_of_time_is_told_in_the_unit_that_fits(seconds: float, words: str) -> None:
    assert units.span(seconds) == words


@given(st.integers(0, 1 << 49))
def test_room_that_is_needed_is_never_said_to_be_less(number: int) -> None:
    told = units.size(units.amount(number, up=True).replace(" ", ""))
    assert told is not None
    assert number <= told <= max(number * 1.1, number + 1)
