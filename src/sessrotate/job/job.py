"""One run of `sessrotate run`: what somebody wants of it, and what its steps tell each other.

Rule: a plan counts what each step leaves to the next: less to move, and more of the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct, field

from sessrotate.archive import place, restored
from sessrotate.archive.place import Place
from sessrotate.in_place import obstacles
from sessrotate.in_place.fleet import Known
from sessrotate.in_place.outcome import Outcome

if TYPE_CHECKING:
    from sessrotate.clients.in_place import Near
    from sessrotate.in_place.gain import Forecast
    from sessrotate.in_place.operations import Progress
    from sessrotate.job.config import Settings
    from sessrotate.retention.prune import PrunePlan
    from sessrotate.retention.trash import Due

    Sized = list[tuple[Place, int]]
    """Sessions, and how many bytes their live files have."""
    Act = Callable[[Sized], Iterator[Outcome]]
    """Does something to sessions, or plans it, and yields what became of each."""


class Recall(Protocol):
    """Acts on sessions as `act` does, or knows what that came to."""

    def __call__(
        self, asked: str, wanted: Sized, act: Act, *, live: bool = True
    ) -> Iterator[Outcome]:
        """Yield an outcome for each session; `asked` tells what `act` does from what others do.

        Unless `live`, it passes over sessions that somebody uses.
        """


def anew(asked: str, wanted: Sized, act: Act, *, live: bool = True) -> Iterator[Outcome]:  # noqa: ARG001 - as `Recall` says
    """Act on all of these sessions: nothing is remembered."""
    return act(wanted)


class Agreed(Struct, frozen=True):
    """What somebody was shown, and agreed to: nothing else goes out of sight, or is deleted.

    `places` are the sessions that are put away, compressed where they are, or whose trash is
    emptied, by the step's name; `dues` are what goes of each trash.
    """

    places: Mapping[str, Collection[Place]]
    pruning: PrunePlan
    dues: Mapping[Place, Due]


class Scope(Struct, frozen=True):
    """What somebody wants of a run: `only` these sessions, None for all; `need` bytes of the disk.

    Once that much is gained nothing more is done. None is as much as can be had. If it `asks`, a
    plan is shown before: nothing is pruned of what it moves to an archive only then. `agreed` is
    what somebody agreed to, None if nobody is asked.
    """

    only: frozenset[Place] | None = None
    need: int | None = None
    asks: bool = False
    agreed: Agreed | None = None


EVERYTHING: Final = Scope()


CLOCKLESS: Final = 0.0
"""A time at which nothing is old, whatever a step compares with it."""


class Job(Struct):
    """What the steps of one run share; times are in seconds since 1970, `wait` is in seconds.

    `now` is what ages are told by: `CLOCKLESS` while the clock is not believed, when `doubt` says
    why. `swept_at` is the clock's time in any case: clients delete by that, and nothing else goes
    by it.
    The steps fill in `left`, the sessions that later steps leave alone, `rotating`, what a dry
    run would rotate, of which later steps find less, `moved`, what it would move to an archive,
    `planned`, the plan of the pruning, `pruned`, what that moves to each trash, `dues`, what would
    be deleted of each, and `gained`, how many bytes the disk has more, or will have; `copied` looks
    once for all of them.
    `recall` stands before what reads sessions: of what is only shown, it may be remembered. `known`
    and `near` are what a plan, which changes nothing, need not look at again.
    """

    settings: Settings
    now: float
    swept_at: float
    wait: float
    progress: Progress
    dry_run: bool
    doubt: str
    scope: Scope = EVERYTHING
    left: set[Place] = field(default_factory=set)
    rotating: dict[Place, Outcome] = field(default_factory=dict)
    moved: set[Place] = field(default_factory=set)
    planned: PrunePlan | None = None
    pruned: dict[Place, Due] = field(default_factory=dict)
    dues: dict[Place, Due] = field(default_factory=dict)
    gained: int = 0
    recall: Recall = anew
    known: Known | None = None
    near: Near | None = None
    copied: Callable[[], Collection[str]] = field(default_factory=lambda: cache(restored.copied))

    @property
    def has_enough(self) -> bool:
        """Whether the disk has gained what somebody needs."""
        return self.scope.need is not None and self.gained >= self.scope.need

    def wants(self, where: Place) -> bool:
        """Tell whether a session is one of those that are wanted and did not fail."""
        only = self.scope.only
        return where not in self.left and (only is None or where in only)

    def may(self, step: str, where: Place) -> bool:
        """Tell whether a step may do to a wanted session what has to be agreed to."""
        agreed = self.scope.agreed
        return self.wants(where) and (agreed is None or where in agreed.places[step])

    def archives(self) -> list[Place]:
        """Return the archives of sessions that are wanted and did not fail."""
        every = place.archives() if self.known is None else self.known.archives
        return [where for where in every if self.wants(where)]

    def would(self, where: Place, expected: Forecast, disk: int, detail: str = "") -> Outcome:
        """Return the outcome of a plan for a session that takes so many bytes of the `disk`.

        Raises NoRoomError if it needs more than is free by then.
        """
        obstacles.check_room(where.config, expected.need, self.gained)
        return Outcome(
            where, "planned", expected.moved, gained=expected.gained, detail=detail, disk=disk
        )
