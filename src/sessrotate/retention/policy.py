"""Segments, a policy and the time → which segments are kept and which removed, and why. Pure.

Rule: when in doubt, keep. A segment that any keep rule holds stays; age and size rules remove only
segments that no keep rule holds. With keep rules alone, all others are removed. The newest sealed
segment of a session always stays, and so does a segment without a date or with one in the future:
a wrong clock must not delete anything.

Days, weeks (from Monday) and months are in UTC, so that a policy decides the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import units

if TYPE_CHECKING:
    from sessrotate.model import Segment

    Key = tuple[str, int]


class Policy(Struct, frozen=True):
    """What to keep and what to remove; None for a rule that is not given.

    Ages are in seconds: `keep_within` counts back from a session's newest sealed segment,
    `max_age` from now. `max_size` is in bytes, of all archives together.
    """

    keep_last: int | None = None
    keep_within: float | None = None
    keep_daily: int | None = None
    keep_weekly: int | None = None
    keep_monthly: int | None = None
    max_age: float | None = None
    max_size: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no rule is given."""
        return self == Policy()

    @property
    def removes(self) -> bool:
        """Whether age or size rules decide what is removed, rather than the keep rules alone."""
        return self.max_age is not None or self.max_size is not None


class Candidate(Struct, frozen=True):
    """One sealed segment. `time` is when its last record was written, in seconds since 1970.

    `bytes` is the size of its file, and `disk` what that takes of the disk. `held` is why it must
    stay whatever the policy says: it is pinned, it does not verify, or a client runs its session.
    """

    session: str
    index: int
    bytes: int
    time: float | None
    held: str | None = None
    disk: int = 0

    @property
    def key(self) -> Key:
        """The session and number, unique on this machine."""
        return self.session, self.index


class Decision(Struct, frozen=True):
    """Whether a segment is kept, and why."""

    segment: Candidate
    keep: bool
    reasons: tuple[str, ...]


def plan(segments: Iterable[Candidate], policy: Policy, now: float) -> tuple[Decision, ...]:
    """Return a decision for each segment, by session and number.

    `now` is in seconds since 1970. The order of `segments` does not matter.
    """
    ordered = sorted(segments, key=lambda entry: entry.key)
    kept: dict[Key, list[str]] = {entry.key: [] for entry in ordered}
    times: dict[Key, float] = {}
    for _, group in groupby(ordered, key=lambda entry: entry.session):
        of_session = list(group)
        times |= _times(of_session)
        for entry, reason in _held(of_session, times, policy, now):
            kept[entry.key].append(reason)
    free = [entry for entry in ordered if not kept[entry.key]]
    gone = dict(_removed(free, sum(entry.bytes for entry in ordered), times, policy, now))
    return tuple(
        Decision(entry, keep=False, reasons=(gone[entry.key],))
        if entry.key in gone
        else Decision(entry, keep=True, reasons=tuple(kept[entry.key]) or ("no rule removes it",))
        for entry in ordered
    )


def _times(of_session: list[Candidate]) -> dict[Key, float]:
    """Return when each segment ended; one without a date counts as old as the next with one."""
    found: dict[Key, float] = {}
    following: float | None = None
    for entry in reversed(of_session):
        following = entry.time if entry.time is not None else following
        if following is not None:
            found[entry.key] = following
    return found


def last_written(segment: Segment) -> float | None:
    """Return when the last dated record of a segment was written, in seconds since 1970."""
    return units.seconds(segment.last_timestamp or segment.first_timestamp)


# ── what is kept ────────────────────────────────────────────────────────────────────────────────


def _held(
    of_session: list[Candidate], times: dict[Key, float], policy: Policy, now: float
) -> Iterator[tuple[Candidate, str]]:
    """Yield the segments of one session that are kept, once for each reason."""
    yield of_session[-1], "the newest of its session"
    for entry in of_session:
        if entry.held is not None:
            yield entry, entry.held
        if entry.key not in times:
            yield entry, "no record has a date"
        elif times[entry.key] > now:
            yield entry, "dated in the future"
    last = policy.keep_last or 0
    for entry in of_session[max(0, len(of_session) - last) :]:
        yield entry, f"keep-last {last}"
    dated = [entry for entry in of_session if entry.key in times and times[entry.key] <= now]
    yield from _within(dated, times, policy.keep_within)
    for name, _, count, period in _PERIODS:
        if wanted := count(policy):
            yield from _newest_of_each(dated, times, wanted, name, period)


def _within(
    dated: list[Candidate], times: dict[Key, float], age: float | None
) -> Iterator[tuple[Candidate, str]]:
    if age is None:
        return
    newest = max((times[entry.key] for entry in dated), default=0.0)
    for entry in dated:
        if times[entry.key] >= newest - age:
            yield entry, f"keep-within {units.span(age)}"


def _newest_of_each(
    dated: list[Candidate],
    times: dict[Key, float],
    wanted: int,
    name: str,
    period: Callable[[datetime], str],
) -> Iterator[tuple[Candidate, str]]:
    """Yield the newest segment of each of the last `wanted` periods that have any."""
    seen: set[str] = set()
    for entry in sorted(dated, key=lambda entry: (times[entry.key], entry.index), reverse=True):
        when = period(datetime.fromtimestamp(times[entry.key], UTC))
        if when not in seen and len(seen) < wanted:
            seen.add(when)
            yield entry, f"{name} {wanted} ({when})"


_PERIODS: Final[
    tuple[tuple[str, str, Callable[[Policy], int | None], Callable[[datetime], str]], ...]
] = (
    ("keep-daily", "day", lambda policy: policy.keep_daily, lambda when: f"{when:%Y-%m-%d}"),
    ("keep-weekly", "week", lambda policy: policy.keep_weekly, lambda when: f"{when:%G-W%V}"),
    ("keep-monthly", "month", lambda policy: policy.keep_monthly, lambda when: f"{when:%Y-%m}"),
)
"""The rules that keep one segment of each period: the option, the period, how many, which one."""


# ── what is removed ─────────────────────────────────────────────────────────────────────────────


def _removed(
    free: list[Candidate], total: int, times: dict[Key, float], policy: Policy, now: float
) -> Iterator[tuple[Key, str]]:
    """Yield what is removed of the segments that nothing holds; `total` is the bytes of all."""
    oldest_first = sorted(free, key=lambda entry: (times[entry.key], entry.key))
    if not policy.removes:
        for entry in oldest_first:
            yield entry.key, "no keep rule applies"
        return
    for entry in oldest_first:
        if policy.max_age is not None and times[entry.key] < now - policy.max_age:
            total -= entry.bytes
            yield entry.key, f"older than {units.span(policy.max_age)}"
        elif policy.max_size is not None and total > policy.max_size:
            total -= entry.bytes
            yield entry.key, f"all archives together exceed {units.whole(policy.max_size)}"


# ── in words ─────────────────────────────────────────────────────────────────────────────────


def in_words(policy: Policy) -> str:
    """Return the policy in a few sentences for a person."""
    holds = [
        text.format(value)
        for value, text in (
            (
                policy.keep_last,
                "the last segment" if policy.keep_last == 1 else "the last {} segments",
            ),
            (
                None if policy.keep_within is None else units.span(policy.keep_within),
                "the segments within {} of the newest one",
            ),
        )
        if value
    ]
    holds += [_newest(period, many) for _, period, of, _ in _PERIODS if (many := of(policy))]
    goes = []
    if policy.max_age is not None:
        goes.append(f"segments older than {units.span(policy.max_age)}")
    if policy.max_size is not None:
        goes.append(
            f"the oldest segments until all archives together fit in {units.whole(policy.max_size)}"
        )
    kept = f"In each session, keep {_and(holds)}." if holds else ""
    removed = f"Of the rest, remove {' and '.join(goes)}." if goes else "Remove the rest."
    if goes and not holds:
        removed = f"Remove {' and '.join(goes)}."
    always = "Pinned segments and the newest sealed segment of each session always stay."
    return " ".join(part for part in (kept, removed, always) if part)


def _newest(period: str, many: int) -> str:
    """Return what is kept of so many periods."""
    if many == 1:
        return f"the newest segment of the last {period} that has one"
    return f"the newest segment of each of the last {many} {period}s that have one"


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
