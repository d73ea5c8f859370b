"""What brings a session back, decided and not yet done: `retention.restore` makes it, and does it.

Rule: what it says of itself is said of the plan as of what was done by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import clients, units
from sessrotate.archive.place import Place
from sessrotate.errors import RefusedError, printable
from sessrotate.in_place.outcome import Outcome, Result
from sessrotate.in_place.room import Need
from sessrotate.retention import away_files

if TYPE_CHECKING:
    from sessrotate.in_place.restore import RestorePlan
    from sessrotate.retention.bring_back import Away


_PLAIN: Final = "plain again; nothing compresses it automatically for 30 days"


class WayBack(Struct, frozen=True):
    """What brings a session back, decided and not yet done.

    * `pruned`: the numbers of the segments that come back from the archive's trash; `lost` are
      those that were freed for good, because of which the session stays rotated; as it does where
      its client cut a part of the history out (`is_cut`).
    * `away`: what comes back from having been put away, None if nothing was.
    * `whole`: the plan for the live file, None if it stays as it is.
    * `touch`: what files are dated, in seconds since 1970, None if they keep their dates.
    * `unused`: for how many seconds the live file has not been used, if the client's clean-up
      deletes such a file, and it is dated; None otherwise.
    * `before`, `after`: bytes of the live file.
    * `finished`: what an interrupted run had begun, and is, or was, finished first.
    """

    where: Place
    pruned: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    is_cut: bool = False
    away: Away | None = None
    whole: RestorePlan | None = None
    touch: float | None = None
    unused: float | None = None
    before: int = 0
    after: int = 0
    finished: str = ""

    @property
    def is_anything(self) -> bool:
        """Whether anything is to be done."""
        return self.away is not None or any((self.pruned, self.whole))

    @property
    def is_rollout(self) -> bool:
        """Whether it is a session of Codex, which was only compressed."""
        return clients.cold().is_named_so(self.where.live.name)

    @property
    def is_back(self) -> bool:
        """Whether the session is one again that its client deletes, and rules apply to."""
        return not self.is_rollout and (self.away is not None or self.whole is not None)

    @property
    def need(self) -> Need:
        """What has to be free."""
        unpacked = 0 if self.away is None else self.away.unpacked
        if self.whole is None:
            return Need(unpacked, away_files.UNPACKED)
        if not unpacked:
            return self.whole.need
        what = f"{away_files.UNPACKED}, and the whole history (less with --keep-rotated)"
        return Need(self.whole.need.size + unpacked, what)

    @property
    def takes(self) -> int:
        """How many bytes the disk has less afterwards."""
        return self.need.size - (0 if self.away is None else self.away.packed)

    @property
    def parts(self) -> tuple[object, ...]:
        """What must be the same when it is done as when it was shown."""
        digests = self.whole and tuple(entry.digest for entry in self.whole.manifest.segments)
        return self.pruned, self.lost, self.away is not None, digests

    def words(self) -> str:
        """Return what that is in a few words, as the detail of an outcome."""
        parts = []
        if self.pruned:
            parts.append(f"{_segments(len(self.pruned))} back from the trash")
        if self.away is not None:
            parts.append(_PLAIN if self.is_rollout else "back where its client looks")
        if self.whole is not None:
            there = _segments(len(self.whole.manifest.segments))
            parts.append(f"whole, {there} back in the live file")
            if self.whole.tail is None:
                parts.append("everything after the last rotation is gone with the old live file")
            if self.unused is not None:
                parts.append("it counts as used now, or its client would delete it")
            if self.whole.pending is not None:
                parts.append(f"a later run does the rest: {self.whole.pending}")
        return "; ".join(filter(None, [*parts, self.missing]))

    @property
    def missing(self) -> str:
        """What keeps the session from being whole, in a few words; empty where nothing does."""
        said = []
        if self.lost:
            some = units.some([f"{number:,}" for number in self.lost], 5)
            named = f"segments {some} were" if self.lost[1:] else f"segment {some} was"
            said.append(f"{named} deleted for good")
        if self.is_cut:
            said.append("its client cut a part of the history out")
        return ", and ".join(said)

    @property
    def refusal(self) -> RefusedError | None:
        """Why nothing can come back although something is gone; None if it can, or is not."""
        if self.is_anything or not self.missing:
            return None
        name = printable(self.where.session)
        return RefusedError(
            f"{name} cannot be whole again: {self.missing}. `sessrotate export --allow-gaps "
            f"{name}` gives everything else."
        )

    def outcome(self, result: Result) -> Outcome:
        """Return what became of the session, or would."""
        if not self.is_anything:
            return Outcome(self.where, "nothing to do", size=self.after, detail=self.words())
        grown = self.before - self.after
        return Outcome(self.where, result, grown, self.after, detail=self.words())


def _segments(number: int) -> str:
    return f"{number:,} segment{'' if number == 1 else 's'}"
