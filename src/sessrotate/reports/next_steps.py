"""What else would give the disk its space back, by client, with the command that does it. Pure.

Promise: no figure is more than the disk has. In come what a list says of a client's sessions, and
the time; out come steps, the one that costs a user least first.

Rule: steps are rows of a table. A figure is an estimate: the command's own plan is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate.units import DAY

if TYPE_CHECKING:
    from sessrotate.in_place.outcome import Outcome
    from sessrotate.reports.on_disk import OnDisk
    from sessrotate.reports.session_info import SessionInfo

OLD: Final = 30
"""Days without use after which a session counts as old."""

_COMPRESSED: Final = 0.2
"""What a session takes once it is compressed, of what it took: 0.14 to 0.3 were measured."""

_BESIDE: Final = 4 * 4096
"""Bytes of the disk that an archive takes besides: a folder, a record, blocks that are not full."""

_WORTH: Final = 1 << 20
"""Bytes that are worth a line."""

SMALL: Final = 1 << 16
"""Bytes of a rollout that is never compressed by itself (`rollouts.WORTH`)."""


class NextStep(Struct, frozen=True):
    """A step: which client's sessions, how many and which, and about how many bytes it frees.

    `is_most`: it frees that much at most. `command` is empty where sessrotate can do nothing.
    """

    client: str
    what: str
    sessions: int
    bytes: int
    command: str
    is_most: bool = False


class Planned(Struct, frozen=True):
    """What is known of sessions by the plan of a rotation, by their ids.

    `after` are the bytes of live files that tidying makes smaller, `uncut` are the sessions that
    were never compacted, and `left` are those that no rule takes.
    """

    after: Mapping[str, int] = {}
    uncut: Collection[str] = ()
    left: Collection[str] = ()


class _Rule(Struct, frozen=True):
    """A row: which sessions a step is about, and how many bytes it frees of each."""

    takes: Callable[[SessionInfo, float, Planned], bool]
    frees: Callable[[SessionInfo, Planned], float]
    what: str
    command: str
    is_most: bool = False


def _is_old(each: SessionInfo, now: float, planned: Planned) -> bool:
    is_there = each.is_live and each.standing == "session" and each.id not in planned.left
    return is_there and each.last_used < now - OLD * DAY


def _is_uncut(each: SessionInfo, now: float, planned: Planned) -> bool:
    is_never = each.id in planned.uncut and not each.segments
    return is_never and each.bytes >= _WORTH and not _is_old(each, now, planned)


def _live(each: SessionInfo, planned: Planned) -> float:
    """Return what compressing a live file frees, as large as tidying leaves it."""
    taken = max(0, each.disk_bytes - each.archived_disk_bytes)
    left = min(taken, planned.after.get(each.id, taken))
    return max(0.0, left * (1 - _COMPRESSED) - _BESIDE)


_CLAUDE: Final = (
    _Rule(
        _is_old,
        _live,
        f"unused for {OLD} days (archiving takes them off the client's list)",
        f"sessrotate archive --older-than {OLD}d",
    ),
    _Rule(
        _is_uncut,
        _live,
        "that a resume needs in full, because they were never compacted",
        "/compact in the client, then: sessrotate tidy",
        is_most=True,
    ),
    _Rule(
        lambda each, _now, planned: (
            each.is_live and each.segments > 0 and each.id not in planned.left
        ),
        lambda each, _planned: each.archived_disk_bytes,
        "whose history is archived, if you let a prune rule delete old history for good",
        "sessrotate prune --all --max-age 90d --dry-run",
        is_most=True,
    ),
)
_CODEX: Final = (
    _Rule(
        lambda each, _now, planned: (
            each.disk_bytes > SMALL and not each.is_compressed and each.id not in planned.after
        ),
        lambda each, _planned: each.disk_bytes,
        "that are plain: `tidy` compresses them a week after their last use, or 30 days after a "
        "resume or `restore`, unless a Codex of the last 90 days may not find them then; `tidy "
        "SESSION` compresses one at once, if nobody uses it",
        "",
        is_most=True,
    ),
)
_OTHERS: Final = (
    _Rule(
        lambda _each, _now, _planned: True,
        lambda each, _planned: each.disk_bytes,
        "that sessrotate reads, and cannot make smaller",
        "",
        is_most=True,
    ),
)


_RULES: Final = {"claude": _CLAUDE, "codex": _CODEX}


def of(sessions: Iterable[SessionInfo], now: float, planned: Planned) -> tuple[NextStep, ...]:
    """Return the steps for these sessions, by client; `now` is in seconds since 1970."""
    clients: dict[str, list[SessionInfo]] = {}
    for each in sessions:
        clients.setdefault(each.client, []).append(each)
    steps = []
    for client, found in clients.items():
        for rule in _RULES.get(client, _OTHERS):
            taken = [each for each in found if rule.takes(each, now, planned)]
            freed = round(sum(rule.frees(each, planned) for each in taken))
            if freed >= _WORTH:
                step = NextStep(client, rule.what, len(taken), freed, rule.command, rule.is_most)
                steps.append(step)
    return tuple(steps)


def after(
    outcomes: Iterable[Outcome], clients: Iterable[OnDisk], now: float, left: Collection[str]
) -> tuple[NextStep, ...]:
    """Return the steps behind a run, or its plan, that came to these outcomes.

    `now` is in seconds since 1970, `left` as in `Planned`.
    """
    found = [*outcomes]
    planned = Planned(
        after={each.session: each.size for each in found if each.result == "planned"},
        uncut={each.session for each in found if each.usual == "not compacted"},
        left=left,
    )
    return of((info for each in clients for info in each.infos), now, planned)
