"""Several sessions put away, one after the other.

Rule: one session's failure is no other's, and what became of each is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sessrotate import errors
from sessrotate.errors import InUseError, SessrotateError
from sessrotate.retention import archive as whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sessrotate.archive.place import Place

Result = Literal["archived", "planned", "running", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one session.

    `freed` is how many bytes left the client's folder, `stored` how many its files have now.
    """

    where: Place
    result: Result
    freed: int
    stored: int
    error: SessrotateError | None = None


def archive(wanted: Iterable[Place], action: Callable[[Place], int]) -> Iterator[Outcome]:
    """Put sessions away by `action`, and yield what became of each. Interrupts go through."""
    for where in wanted:
        try:
            yield Outcome(where, "archived", action(where), whole.stored(where))
        except SessrotateError as error:
            result: Result = "running" if isinstance(error, InUseError) else "failed"
            yield Outcome(where, result, 0, 0, error)


def planned(wanted: Iterable[Place]) -> Iterator[Outcome]:
    """Yield what would become of each; nothing is changed."""
    for outcome in archive(wanted, whole.plan):
        if outcome.error is None:
            yield Outcome(outcome.where, "planned", outcome.freed, outcome.stored)
        else:
            yield outcome


def exit_code(outcomes: list[Outcome], *, named: bool) -> int:
    """Return the worst exit code; a session in use counts only where it was `named`."""
    return errors.exit_code(
        outcome.error
        for outcome in outcomes
        if outcome.error is not None and (named or outcome.result == "failed")
    )
