"""The protections of a live rotation, each of which can be taken out.

Rule: only tests and `scripts/race --mutant` do that; the checks must then find something wrong.
"""

from __future__ import annotations

import fcntl
import signal
from typing import TYPE_CHECKING, Any, Final

from sessrotate.archive import state
from sessrotate.in_place import swap
from sessrotate.model import Span
from sessrotate.system import locks

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from sessrotate.archive.record import Swap
    from sessrotate.system.source import Source


def without_second_lease(patch: pytest.MonkeyPatch) -> None:
    """Let clients write to the new file at once, before late lines are brought over."""
    patch.setattr(locks, "write_lease", lambda _fd: "taken")


def without_drain(patch: pytest.MonkeyPatch) -> None:
    """Leave all that comes late to sealing, which puts it last."""

    def drain(self: Any) -> None:
        locks.release_lease(self._old.fd)

    patch.setattr(swap._Swap, "_drain", drain)  # noqa: SLF001 - it is what is taken out


def _late_lines(patch: pytest.MonkeyPatch) -> None:
    """Believe that all that came late was brought over."""

    def nothing(_swap: Swap, pack: Source, _live: Source) -> Span:
        return Span(pack.size(), pack.size())

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

    def unlike(begun: Swap, pack: Source, live: Source) -> Span:
        there = {*live.read_at(0, live.size()).splitlines(keepends=True)}
        at = min(begun.cut, pack.size())
        for line in pack.read_at(at, pack.size() - at).splitlines(keepends=True):
            if line not in there:
                break
            at += len(line)
        return Span(at, pack.size())

    patch.setattr(swap._Swap, "_catch_up", catch_up)  # noqa: SLF001 - as above
    patch.setattr(state, "residue", unlike)


def _signal_once(patch: pytest.MonkeyPatch) -> None:
    """Say which signal a lease is to send the first time only."""
    told: set[int] = set()

    def take(fd: int, kind: int) -> locks.Answer:
        try:
            if fd not in told:
                fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
            told.add(fd)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)
        except OSError as error:
            return "busy" if isinstance(error, (BlockingIOError, PermissionError)) else "none"
        return "taken"

    patch.setattr(locks, "_take", take)


MUTANTS: Final[dict[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "second-lease": without_second_lease,
    "drain": without_drain,
    "late-lines": _late_lines,
    "positional-compare": _positional_compare,
    "signal": _signal_once,
}
"""What can be taken out, by the name that `scripts/race` knows it by."""
