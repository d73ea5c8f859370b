"""The protections of a live rotation, each of which can be taken out.

Rule: only tests and `scripts/race --mutant` do that; the checks must then find something wrong.
"""

from __future__ import annotations

import fcntl
import signal
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from sessrotate.archive import late_lines, state
from sessrotate.archive.late_lines import Residue
from sessrotate.in_place import swap
from sessrotate.model import Span
from sessrotate.system import lease

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from sessrotate.archive.record import Swap
    from sessrotate.system.source import Source


def without_second_lease(patch: pytest.MonkeyPatch) -> None:
    """Let clients write to the new file at once; a merge then puts late lines where they belong."""
    patch.setattr(lease, "write", lambda _fd: "taken")


def without_drain(patch: pytest.MonkeyPatch) -> None:
    """Leave all that comes late to sealing, which merges it."""

    def drain(self: Any) -> None:
        lease.release(self._old.fd)

    patch.setattr(swap._Swap, "_drain", drain)  # noqa: SLF001 - it is what is taken out


def _without_merge(patch: pytest.MonkeyPatch) -> None:
    """Put late lines behind all that came to the new file since."""

    def behind(begun: Swap, pack: Source, live: Source) -> Residue:
        return replace(late_lines.residue(begun, pack, live), at=live.size())

    patch.setattr(state, "residue", behind)


def _second_lease(patch: pytest.MonkeyPatch) -> None:
    without_second_lease(patch)
    _without_merge(patch)


def _drain(patch: pytest.MonkeyPatch) -> None:
    without_drain(patch)
    _without_merge(patch)


def _late_lines(patch: pytest.MonkeyPatch) -> None:
    """Believe that all that came late was brought over."""

    def nothing(_swap: Swap, pack: Source, live: Source) -> Residue:
        return Residue(Span(pack.size(), pack.size()), live.size())

    without_drain(patch)
    patch.setattr(state, "residue", nothing)


def _positional_compare(patch: pytest.MonkeyPatch) -> None:
    """Bring over what is not there yet, line by line, wherever it is."""

    def catch_up(self: Any) -> bool:
        cut, prefix = self._intent.swap.cut, self._intent.swap.prefix
        there = {*self._draft.read_at(prefix, self._tail).splitlines(keepends=True)}
        late = self._old.read_at(cut + self._tail, self._old.size() - cut - self._tail)
        for line in late.splitlines(keepends=True):
            if line not in there:
                self._draft.append(line)
        self._tail = self._draft.size - prefix
        return bool(late)

    def unlike(begun: Swap, pack: Source, live: Source) -> Residue:
        there = {*live.read_at(0, live.size()).splitlines(keepends=True)}
        at = min(begun.cut, pack.size())
        for line in pack.read_at(at, pack.size() - at).splitlines(keepends=True):
            if line not in there:
                break
            at += len(line)
        return Residue(Span(at, pack.size()), live.size())

    patch.setattr(swap._Swap, "_catch_up", catch_up)  # noqa: SLF001 - as above
    patch.setattr(state, "residue", unlike)


def _signal_once(patch: pytest.MonkeyPatch) -> None:
    """Say which signal a lease is to send the first time only."""
    told: set[int] = set()

    def take(fd: int, kind: int) -> lease.Answer:
        try:
            if fd not in told:
                fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
            told.add(fd)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)
        except OSError as error:
            return "busy" if isinstance(error, (BlockingIOError, PermissionError)) else "none"
        return "taken"

    patch.setattr(lease, "_take", take)


MUTANTS: Final[dict[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "second-lease": _second_lease,
    "drain": _drain,
    "late-lines": _late_lines,
    "positional-compare": _positional_compare,
    "signal": _signal_once,
}
"""What can be taken out, by the name that `scripts/race` knows it by.

Without the second lease or the drain, late lines are merged, and nothing of a history shows it: so
these two take the merge out as well.
"""
