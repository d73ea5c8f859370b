"""Rotating every large session of the machine, one after the other.

Rule: a session that a client runs is passed over; nobody waits for it. So is one whose owner
restored it, and a copy of another's live file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sessrotate.archive import copies, place
from sessrotate.clients.claude import client as claude
from sessrotate.in_place.operations import RestoredError
from sessrotate.in_place.outcome import Outcome, each, failure
from sessrotate.system import in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.archive.place import Place
    from sessrotate.in_place import operations


def sessions(least: int) -> list[tuple[Place, int]]:
    """Return the sessions of at least `least` bytes and their sizes, largest first."""
    found = []
    for path in claude.sessions():
        try:
            size = path.stat().st_size
        except OSError:
            continue  # it went away while we looked
        where = place.of(path)
        if where is not None and size >= least and copies.of_copy(path) is None:
            found.append((where, size))
    return sorted(found, key=lambda entry: (-entry[1], entry[0].live))


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
            return Outcome(where, "nothing to do", size=before)
        planned = done.seconds is None
        after = done.plan.bytes_after if planned else _size(where, before)
        return Outcome(where, "planned" if planned else "done", before - after, after)

    for outcome in each(sizes, act, "rotate the session"):
        if outcome.error is None or outcome.where is None:
            yield outcome
        else:  # the swap may be done all the same
            after = _size(outcome.where, sizes[outcome.where])
            yield replace(outcome, freed=sizes[outcome.where] - after, size=after)


def _size(where: Place, otherwise: int) -> int:
    try:
        return where.live.stat().st_size
    except OSError:
        return otherwise
