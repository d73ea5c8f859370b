"""Rotating every large session of the machine, one after the other.

Rule: one session's failure is no other's. What became of each is told, and a session that a
client runs is passed over, not waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sessrotate import errors
from sessrotate.archive import place
from sessrotate.clients.claude import client as claude
from sessrotate.errors import InUseError, SessrotateError
from sessrotate.system import in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.archive.place import Place
    from sessrotate.in_place import operations

Result = Literal["rotated", "planned", "nothing to cut", "running", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one session; sizes are of its live file, in bytes."""

    where: Place
    result: Result
    before: int
    after: int
    error: SessrotateError | None = None

    @property
    def freed(self) -> int:
        """Bytes that the client's folder has less."""
        return self.before - self.after


def sessions(least: int) -> list[tuple[Place, int]]:
    """Return the sessions of at least so many bytes and their sizes, largest first."""
    found = []
    for path in claude.sessions():
        try:
            size = path.stat().st_size
        except OSError:
            continue  # it went away while we looked
        where = place.of(path)
        if where is not None and size >= least:
            found.append((where, size))
    return sorted(found, key=lambda entry: (-entry[1], entry[0].live))


def rotate(
    wanted: list[tuple[Place, int]], action: Callable[[Place], operations.Rotated], *, live: bool
) -> Iterator[Outcome]:
    """Rotate sessions by `action`, and yield what became of each.

    Those that a client says it runs are passed over, unless `live`. Interrupts go through.
    """
    for where, size in wanted:
        if not live and any(in_use.clients(where)):
            yield Outcome(where, "running", size, size)
            continue
        try:
            done = action(where)
        except SessrotateError as error:
            yield Outcome(where, _result(error), size, _size(where, size), error)
        else:
            if done.refusal is not None:
                yield Outcome(where, _result(done.refusal), size, size, done.refusal)
            elif done.plan.live is None:
                yield Outcome(where, "nothing to cut", size, size)
            elif done.seconds is None:
                yield Outcome(where, "planned", size, done.plan.bytes_after)
            else:
                yield Outcome(where, "rotated", size, _size(where, size))


def _result(error: SessrotateError) -> Result:
    return "running" if isinstance(error, InUseError) else "failed"


def _size(where: Place, otherwise: int) -> int:
    try:
        return where.live.stat().st_size
    except OSError:
        return otherwise


def exit_code(outcomes: list[Outcome], *, live: bool) -> int:
    """Return the worst exit code; a running session counts only where it was to be rotated too."""
    return errors.exit_code(
        outcome.error
        for outcome in outcomes
        if outcome.error is not None and (live or outcome.result == "failed")
    )
