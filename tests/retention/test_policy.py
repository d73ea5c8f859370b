"""What a policy keeps and why, held against another way of finding it and against its promises."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sessrotate.model import Segment, Span
from sessrotate.retention.policy import Candidate, Policy, in_words, last_written, plan
from sessrotate.units import DAY

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()


def at(days: float) -> float:
    """Return a time so many days ago."""
    return NOW - days * DAY


def segments(*days: float | None, session: str = "s", size: int = 100) -> list[Candidate]:
    return [
        Candidate(session, index, size, None if ago is None else at(ago))
        for index, ago in enumerate(days)
    ]


def kept(found: list[Candidate], policy: Policy, now: float = NOW) -> list[int]:
    return [entry.segment.index for entry in plan(found, policy, now) if entry.keep]


COUNTS = st.none() | st.integers(0, 4)
AGES = st.none() | st.integers(0, 60).map(lambda days: days * DAY)
RULES = {
    "keep_last": COUNTS,
    "keep_within": AGES,
    "keep_daily": COUNTS,
    "keep_weekly": COUNTS,
    "keep_monthly": COUNTS,
    "max_age": AGES,
    "max_size": st.none() | st.integers(0, 3000),
}
POLICIES = st.builds(Policy, **RULES)


@st.composite
def archives(draw: st.DrawFn) -> list[Candidate]:
    found = []
    for session in draw(st.lists(st.sampled_from("abc"), unique=True, max_size=3)):
        for index in range(draw(st.integers(1, 8))):
            ago = draw(st.none() | st.integers(-3, 80) | st.floats(-3, 80))
            held = draw(st.sampled_from([None, None, None, "pinned"]))
            size = draw(st.integers(0, 500))
            when = None if ago is None else at(ago)
            found.append(Candidate(session, index, size, when, held))
    return found


# ── another way of finding it: day by day, rule by rule, with calendars ──────────────────────


def day_of(time: float) -> date:
    return date(1970, 1, 1) + timedelta(seconds=time - time % DAY)


def whole_day(day: date) -> date:
    return day


def monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def first_of_month(day: date) -> date:
    return day.replace(day=1)


def expected(found: list[Candidate], policy: Policy) -> set[tuple[str, int]]:
    """Return the keys of what stays."""
    known: dict[tuple[str, int], float] = {}
    held = {entry.key for entry in found if entry.held}
    for session in {entry.session for entry in found}:
        mine = sorted((e for e in found if e.session == session), key=lambda e: e.index)
        held.add(mine[-1].key)
        for number, entry in enumerate(mine):
            later = [e.time for e in mine[number:] if e.time is not None]
            if not later or later[0] > NOW:
                held.add(entry.key)
            else:
                known[entry.key] = later[0]
        past = [entry for entry in mine if entry.key in known]
        count = policy.keep_last or 0
        held |= {e.key for e in mine[len(mine) - count if count < len(mine) else 0 :] if count}
        if policy.keep_within is not None and past:
            until = max(known[e.key] for e in past) - policy.keep_within
            held |= {e.key for e in past if known[e.key] >= until}
        for number_of, start in (
            (policy.keep_daily, whole_day),
            (policy.keep_weekly, monday),
            (policy.keep_monthly, first_of_month),
        ):
            starts = sorted({start(day_of(known[e.key])) for e in past}, reverse=True)
            for begin in starts[: number_of or 0]:
                inside = [e for e in past if start(day_of(known[e.key])) == begin]
                held.add(max(inside, key=lambda e: (known[e.key], e.index)).key)
    rest = sorted(
        (e for e in found if e.key not in held), key=lambda e: (known[e.key], e.session, e.index)
    )
    if policy.max_age is None and policy.max_size is None:
        return held
    stays = [e for e in rest if policy.max_age is None or known[e.key] >= NOW - policy.max_age]
    total = sum(e.bytes for e in found if e.key in held) + sum(e.bytes for e in stays)
    while policy.max_size is not None and stays and total > policy.max_size:
        total -= stays.pop(0).bytes
    return held | {e.key for e in stays}


@given(archives(), POLICIES)
def test_what_stays_is_what_the_rules_say(found: list[Candidate], policy: Policy) -> None:
    decided = plan(found, policy, NOW)
    assert {e.segment.key for e in decided if e.keep} == expected(found, policy)
    assert all(entry.reasons for entry in decided)
    assert [entry.segment for entry in decided] == sorted(found, key=lambda entry: entry.key)


@given(archives(), POLICIES, st.randoms(use_true_random=False))
def test_the_order_in_which_segments_are_told_does_not_matter(
    found: list[Candidate], policy: Policy, order: random.Random
) -> None:
    mixed = list(found)
    order.shuffle(mixed)
    assert plan(mixed, policy, NOW) == plan(found, policy, NOW)


@given(archives(), POLICIES)
def test_a_second_run_removes_nothing_more(found: list[Candidate], policy: Policy) -> None:
    left = [entry.segment for entry in plan(found, policy, NOW) if entry.keep]
    assert all(entry.keep for entry in plan(left, policy, NOW))


@given(archives(), POLICIES, st.sampled_from(["last", "daily", "weekly", "monthly"]))
def test_a_larger_number_never_keeps_less(
    found: list[Candidate], policy: Policy, rule: str
) -> None:
    policy = replace(policy, max_size=None)
    name = f"keep_{rule}"
    more = replace(policy, **{name: (getattr(policy, name) or 0) + 1})
    less = {entry.segment.key for entry in plan(found, policy, NOW) if entry.keep}
    assert less <= {entry.segment.key for entry in plan(found, more, NOW) if entry.keep}


@given(archives(), POLICIES, st.integers(0, 20))
def test_a_date_in_the_future_makes_nothing_deletable(
    found: list[Candidate], policy: Policy, which: int
) -> None:
    if not found:
        return
    policy = replace(policy, max_size=None)
    changed = found[which % len(found)]
    future = [replace(e, time=NOW + DAY) if e == changed else e for e in found]
    gone = {entry.segment.key for entry in plan(found, policy, NOW) if not entry.keep}
    later = {entry.segment.key for entry in plan(future, policy, NOW) if not entry.keep}
    assert changed.key not in later
    if changed.time is not None and changed.time <= NOW:
        # What it held by being the newest of its day may go to an older one, never to nothing.
        assert len(later) <= len(gone) + 1


# ── each rule, as a table ────────────────────────────────────────────────────────────────────

TABLE = [
    (Policy(keep_last=2), [5, 4, 3, 2, 1], [3, 4]),
    (Policy(keep_last=0), [5, 4, 3], [2]),
    (Policy(keep_within=2 * DAY), [90, 62, 61, 60], [1, 2, 3]),
    (Policy(keep_daily=2), [3.1, 3, 2.1, 2, 1.1, 1], [3, 5]),
    (Policy(keep_weekly=2), [16, 9, 8, 2, 1], [2, 4]),
    (Policy(keep_monthly=2), [70, 40, 35, 5], [2, 3]),
    (Policy(max_age=30 * DAY), [90, 31, 29, 1], [2, 3]),
    (Policy(max_age=30 * DAY), [90, 60], [1]),
    (Policy(max_age=30 * DAY), [30.001, 30, 1], [1, 2]),
    (Policy(keep_last=2, max_age=30 * DAY), [90, 60, 50, 40], [2, 3]),
    (Policy(max_size=250), [9, 8, 7, 6], [2, 3]),
    (Policy(max_size=0), [9, 8, 7, 6], [3]),
    (Policy(keep_last=3, max_size=100), [9, 8, 7, 6], [1, 2, 3]),
    (Policy(max_age=DAY), [None, 9, 8], [2]),
    (Policy(max_age=DAY), [9, None, None], [1, 2]),
    (Policy(max_age=DAY), [9, -1, 8], [1, 2]),
    (Policy(keep_last=1), [5, 5, 5], [2]),
]


@pytest.mark.parametrize(("policy", "days", "stay"), TABLE)
def test_each_rule_by_example(policy: Policy, days: list[float | None], stay: list[int]) -> None:
    assert kept(segments(*days), policy) == stay


def test_an_idle_session_is_not_emptied_by_the_clock() -> None:
    found = segments(3, 2, 1)
    policy = Policy(keep_within=2 * DAY)
    assert kept(found, policy) == kept(found, policy, NOW + 1000 * DAY) == [0, 1, 2]


def test_a_pinned_segment_stays_and_says_so() -> None:
    first, *others = segments(9, 8, 7)
    decided = plan([replace(first, held="pinned: the design"), *others], Policy(max_size=0), NOW)
    assert [entry.keep for entry in decided] == [True, False, True]
    assert decided[0].reasons == ("pinned: the design",)


def test_the_size_is_that_of_all_sessions_and_the_oldest_of_any_goes_first() -> None:
    found = [*segments(9, 3, 1, session="a"), *segments(5, 4, 2, session="b")]
    gone = [e.segment.key for e in plan(found, Policy(max_size=400), NOW) if not e.keep]
    assert gone == [("a", 0), ("b", 0)]


def test_a_policy_is_told_in_words() -> None:
    assert in_words(Policy(keep_last=3, keep_within=14 * DAY, max_age=90 * DAY)) == (
        "In each session, keep the last 3 segments and the segments within 2 weeks of the newest "
        "one. "
        "Of the rest, remove segments older than 90 days. "
        "Pinned segments and the newest sealed segment of each session always stay."
    )
    assert in_words(Policy(max_size=1000)).startswith(
        "Remove the oldest segments until all archives together"
    )
    assert in_words(Policy(keep_daily=7)).startswith(
        "In each session, keep the newest segment of each of the last 7 days that have one."
    )
    assert "keep the newest segment of the last week that has one." in in_words(
        Policy(keep_weekly=1)
    )


def test_every_rule_is_drawn_and_told() -> None:
    assert RULES.keys() == {*Policy.__struct_fields__}
    for rule in RULES:
        assert in_words(Policy(**{rule: 3})) != in_words(Policy()), rule


EARLY, LATE = "1970-01-01T00:01:00Z", "1970-01-01T00:02:00Z"


@pytest.mark.parametrize(
    ("first", "last", "written"),
    [(EARLY, LATE, 120), (EARLY, None, 60), (None, None, None), (EARLY, "yesterday", None)],
)
def test_a_segment_is_as_old_as_its_last_dated_record(
    first: str | None, last: str | None, written: float | None
) -> None:
    segment = Segment(1, Span(0, 9), None, first, last)
    assert last_written(segment) == written
