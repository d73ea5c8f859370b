"""Runs that are recorded, and what is demanded of every state that a power loss leaves of them.

Rule: what was on the disk before a run stays, and so does what a client has synced. Of what a
client wrote and did not sync there may be a beginning, or zeros, behind all that.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import pytest

from sessrotate.errors import SessrotateError
from sessrotate.in_place.seal import NotQuietError
from sessrotate.system import locks
from support.crash.late import Client
from support.crash.scenes import LATE, Session, laid_out
from support.crash.simulator import Disk, Event, Recorder, Trace
from support.lines import row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.crash.disk import Image

NEXT: Final = row(903) + b"\n"
"""What a client writes after a power loss."""

_TORN: Final = re.compile(rb"[^\n]*\0+")

Coming = Literal["nothing", "unsynced", "synced"]
"""What comes late to the replaced file: nothing, or lines that their client syncs or does not."""


@dataclass(frozen=True)
class Recorded:
    """A run and what is known of its session: all of it before, and the late lines.

    `judged_from` is the change from which on a state is looked at, None for all.
    """

    title: str
    trace: Trace
    history: bytes
    late: Coming = "nothing"
    judged_from: Event | None = None

    def with_events(self, events: tuple[Event, ...]) -> Recorded:
        return replace(self, trace=replace(self.trace, events=events))


@dataclass(frozen=True)
class Demand:
    """What a state's history must be: this, and of the late lines all, some or none."""

    history: bytes
    late: Coming

    def is_met(self, found: bytes, *, has_zeros: bool) -> bool:
        if not found.startswith(self.history):
            return False
        rest = found[len(self.history) :]
        if has_zeros and self.late == "synced":  # a line that zeros tore stands behind them, whole
            return LATE in {rest.replace(b"\0", b""), _TORN.sub(b"", rest)}
        if has_zeros and self.late != "nothing":
            rest = rest.replace(b"\0", b"")
        if self.late == "synced":
            return rest == LATE
        return LATE.startswith(rest) if self.late == "unsynced" else not rest


def recorded(
    title: str,
    before: Image,
    history: bytes,
    run: Callable[[Session], None],
    coming: Coming = "nothing",
) -> Recorded:
    """Run, and return what it changed; late lines come as soon as they can, after the swap.

    A run that fails (a mutant's) is recorded up to there.
    """
    with laid_out(before) as found, pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        with locks.alone(found.where, 1):  # its folders are made by the first run of all
            pass
        recorder = Recorder(found.root)
        if coming != "nothing":
            client = stack.enter_context(Client(found))
            patch.setattr(locks, "release_lease", _writing_late(client, recorder, coming))
        with recorder.installed(), suppress(SessrotateError):
            run(found)
        return Recorded(title, recorder.trace(), history)


def _writing_late(client: Client, recorder: Recorder, coming: Coming) -> Callable[[int], None]:
    release, is_done = locks.release_lease, False

    def call(fd: int) -> None:
        nonlocal is_done
        release(fd)
        if is_done or not client.is_replaced():
            return
        is_done = True  # the old file's lease goes first: it is the earliest that anyone can come
        recorder.is_ours = False
        with client.opened() as late:
            os.write(late, LATE)
            if coming == "synced":
                os.fsync(late)
        recorder.is_ours = True

    return call


def demands(run: Recorded) -> Iterator[tuple[Disk, Demand]]:
    """Yield the disk before the first change, after it, after the second …; the same object."""
    disk, late, is_judged = Disk.of(run.trace), run.late, run.judged_from is None
    if is_judged:
        yield disk, Demand(run.history, late)
    for event in run.trace.events:
        disk.apply(event)
        is_judged = is_judged or event is run.judged_from
        if not event.is_ours:
            late = "synced" if event.kind == "sync" else "unsynced"
        if is_judged:
            yield disk, Demand(run.history, late)


# ── judging ──────────────────────────────────────────────────────────────────────────────────


class Judge:
    """Has every state looked at, stitched, recovered and used again by the real code, once."""

    def __init__(self) -> None:
        self.known: dict[tuple[Image, Demand, bool], str | None] = {}
        self.used: dict[Image, str | None] = {}

    def first_fault(self, run: Recorded) -> str | None:
        """Return what is wrong with the first state that is not as demanded, None if all are."""
        for disk, demand in demands(run):
            for image, has_zeros in disk.states():
                fault = self.fault(image, demand, has_zeros=has_zeros)
                if fault is not None:
                    return f"{run.title}, after {disk.last}: {fault}\n{image.shown()}"
        return None

    def fault(self, image: Image, demand: Demand, *, has_zeros: bool) -> str | None:
        """Return what is wrong with a state, None if nothing is."""
        key = (image, demand, has_zeros)
        if key not in self.known:
            try:
                self.known[key] = self._judged(image, demand, has_zeros=has_zeros)
            except Exception as error:  # noqa: BLE001 - whatever the code under test raises
                self.known[key] = f"{type(error).__name__}: {error}"
        return self.known[key]

    def _judged(self, image: Image, demand: Demand, *, has_zeros: bool) -> str | None:
        with laid_out(image) as found:
            stitched = found.stitched()
            if not demand.is_met(stitched, has_zeros=has_zeros):
                return f"the history is not what it was: {stitched[len(demand.history) :]!r}"
            try:
                found.recover()
                is_kept = found.stitched() == stitched
            except NotQuietError:
                if not has_zeros:
                    raise
                is_kept = came_behind_zeros(found, stitched)
            if not is_kept:
                return "the recovery changes the history"
            stitched = found.stitched()
            found.check_clean()
            recovered = found.image()
            if recovered not in self.used:
                self.used[recovered] = None
                found.recover()
                if found.image() != recovered:
                    self.used[recovered] = "a second recovery changes something"
                use = found.rotate if found.where.live.exists() else found.restore
                use()
                if found.stitched() != stitched:
                    self.used[recovered] = "the next rotation changes the history"
                found.check_clean()
            return self.used[recovered]


def came_behind_zeros(found: Session, before: bytes) -> bool:
    """Let a client go on behind zeros, for which late lines wait; tell whether they come then.

    A line of which only half had come over comes whole.
    """
    found.append(NEXT)
    found.recover()
    head, _, late = found.stitched().partition(NEXT)
    is_late = late.replace(b"\0", b"") in LATE
    return is_late and before.startswith(head) and late.endswith(before[len(head) :])


JUDGE: Final = Judge()
