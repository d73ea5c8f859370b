"""What became of each of many sessions, in the words that all commands and their JSON use.

Promise: sessions and something to do to each → one `Outcome` a session, in the same order.

Rule: the failure of one session never stops the others. Only an interrupt does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from sessrotate import errors
from sessrotate.errors import InUseError, SessrotateError, storage

if TYPE_CHECKING:
    from sessrotate.archive.place import Place

Usual = Literal["", "not compacted", "too little"]

Result = Literal["done", "planned", "nothing to do", "in use", "failed"]


class Outcome(Struct, frozen=True):
    """What became of one session, or in a dry run what would; `where` is None for none of them.

    `freed` is how many bytes left the place that the command clears (the client's folder, the
    archive, the trash), and `size` how many the session's files have afterwards. `gained` is how
    many bytes the disk has more afterwards, and `disk` how many the session took of it before,
    where that was measured. `detail` is for a person; where `usual` names it, it is the reason of
    most sessions, and not worth a line where many are shown. `segments` are the numbers of those
    that were archived or pruned, where a command does that.
    """

    where: Place | None
    result: Result
    freed: int = 0
    size: int = 0
    gained: int = 0
    detail: str = ""
    error: SessrotateError | None = None
    disk: int = 0
    segments: tuple[int, ...] = ()
    usual: Usual = ""

    @property
    def before(self) -> int:
        """How many bytes the session's files had."""
        return self.size + self.freed

    @property
    def session(self) -> str:
        """The session's id, empty if this is about no single session."""
        return "" if self.where is None else self.where.session

    @property
    def text(self) -> str:
        """The result with its reason or detail, for a person."""
        return f"{self.result}: {self.detail}" if self.detail else self.result


def failure(where: Place | None, error: SessrotateError) -> Outcome:
    """Return the outcome of an error: the session is in use, or it failed."""
    result: Result = "in use" if isinstance(error, InUseError) else "failed"
    return Outcome(where, result, detail=str(error), error=error)


def each(
    wanted: Iterable[Place], act: Callable[[Place], Outcome], doing: str = "change the archive"
) -> Iterator[Outcome]:
    """Yield what `act` returns for one session after the other, or how it failed.

    `doing` completes "Cannot …" where the system reports an error.
    """
    for where in wanted:
        try:
            with storage(doing):
                outcome = act(where)
        except SessrotateError as error:
            outcome = failure(where, error)
        yield outcome


def exit_code(outcomes: Iterable[Outcome], *, in_use_counts: bool) -> int:
    """Return the exit code of the worst failure, 0 if there is none."""
    return errors.exit_code(
        outcome.error
        for outcome in outcomes
        if outcome.error is not None and (in_use_counts or outcome.result == "failed")
    )
