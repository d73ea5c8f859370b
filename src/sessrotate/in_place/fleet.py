"""Rotating every large session of the machine, one after the other, and those to be healed.

Rule: a session that a client runs is passed over; nobody waits for it. So is one whose owner
restored it, and a copy of another's live file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sessrotate.archive import copies, place
from sessrotate.clients.claude import client as claude
from sessrotate.in_place import rewound
from sessrotate.in_place.operations import RestoredError
from sessrotate.in_place.outcome import Outcome, each, failure
from sessrotate.system import in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.in_place import operations
    from sessrotate.in_place.outcome import Result
    from sessrotate.in_place.rotate import RotationPlan


TOO_LITTLE: Final = "it would free less of the disk than is worth it"
"""What is said of a session that is left as it is because of that."""

NOT_COMPACTED: Final = tuple(
    f"it was not compacted {since}"
    for since in ("yet", "since the last rotation", "since its client cut it")
)
"""What is said of one that was never rotated, or was, and that has nothing to move."""

_MIB: Final = 1 << 20


def sessions(least: int, *, or_rewound: bool = False) -> list[tuple[Place, int]]:
    """Return the sessions of at least `least` bytes and their sizes, largest first.

    With `or_rewound`, smaller ones too that may need rows of their archives.
    """
    return _found(lambda path, size: size >= least or (or_rewound and rewound.may_be(path)))


def rewound_sessions() -> list[tuple[Place, int]]:
    """Return those that may need rows of their archives, and their sizes, largest first."""
    return _found(lambda path, _size: rewound.may_be(path))


def _found(is_wanted: Callable[[Path, int], bool]) -> list[tuple[Place, int]]:
    found = []
    for path in claude.sessions():
        try:
            size = path.stat().st_size
        except OSError:
            continue  # it went away while we looked
        where = place.of(path)
        if where is not None and is_wanted(path, size) and copies.of_copy(path) is None:
            found.append((where, size))
    return sorted(found, key=lambda entry: (-entry[1], entry[0].live))


def leads(wanted: list[tuple[Place, int]]) -> dict[Place, str]:
    """Return for each session where in the batch it is: `3 of 8 · 580/875 MiB`.

    The bytes are of live files: those of the sessions before it, and of all.
    """
    found: dict[Place, str] = {}
    before, total = 0, sum(size for _, size in wanted)
    for number, (where, size) in enumerate(wanted, 1):
        found[where] = f"{number:,} of {len(wanted):,}"
        if total >= _MIB:
            found[where] += f" · {before // _MIB:,}/{total // _MIB:,} MiB"
        before += size
    return found


def rotate(
    wanted: list[tuple[Place, int]], action: Callable[[Place], operations.Rotated], *, live: bool
) -> Iterator[Outcome]:
    """Rotate sessions by `action`, and yield what became of each; sizes are of the live files.

    Sessions that a client says it runs are passed over, unless `live`.
    """
    sizes = dict(wanted)

    def act(where: Place) -> Outcome:
        before = sizes[where]
        if not live and any(in_use.clients(where)):
            return Outcome(where, "in use", size=before)
        try:
            done = action(where)
        except RestoredError as error:
            return Outcome(where, "nothing to do", size=before, detail=str(error))
        if done.refusal is not None:
            return failure(where, done.refusal)
        if done.plan.live is None:
            return Outcome(where, "nothing to do", size=before, detail=_nothing(done.plan))
        if done.gains_too_little:
            return Outcome(where, "nothing to do", size=before, detail=TOO_LITTLE)
        planned = done.seconds is None
        after = done.plan.bytes_after if planned else live_size(where, before)
        detail = "rows came back from its archive" if done.plan.heals else ""
        gained, disk = (done.disk.gain, done.disk.before) if done.disk is not None else (0, 0)
        result: Result = "planned" if planned else "done"
        numbers = tuple(segment.index for segment in done.plan.segments)
        return Outcome(
            where, result, before - after, after, gained, detail, disk=disk, segments=numbers
        )

    for outcome in each(sizes, act, "rotate the session"):
        if outcome.error is None or outcome.where is None:
            yield outcome
        else:  # the swap may be done all the same
            after = live_size(outcome.where, sizes[outcome.where])
            yield replace(outcome, freed=sizes[outcome.where] - after, size=after)


def _nothing(plan: RotationPlan) -> str:
    """Say why there is nothing to move, or which rows a resume lacks."""
    if plan.lacks is None:
        return f"it was not compacted {plan.since}"
    return f"A resume lacks rows that may have been in segment {plan.lacks:,}, which is gone."


def live_size(where: Place, otherwise: int = 0) -> int:
    """Return how many bytes the live file of a session has; `otherwise` if it is gone."""
    try:
        return where.live.stat().st_size
    except OSError:
        return otherwise
