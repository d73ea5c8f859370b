"""The inverse of a rotation: the full history is the live file again.

Rule: the same swap as a rotation's, with an intent of its own. Every byte is verified on its way
into the new file, and the archive stays where it is: a program that had read the short live file
may write it back at any time, and it goes on from the archive then. A note in the archive says that
the live file is whole, and since when; until its owner rotates it by name, nothing else does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from sessrotate import fs
from sessrotate.archive import owner
from sessrotate.archive.place import Place
from sessrotate.archive.record import HEAD, Intent, Mark, Swap
from sessrotate.archive.state import State
from sessrotate.errors import (
    DamagedError,
    InUseError,
    RefusedError,
    printable,
    storage,
)
from sessrotate.in_place import gain, obstacles, swap
from sessrotate.in_place.obstacles import Need
from sessrotate.model import Span
from sessrotate.segments import load
from sessrotate.segments.manifest import Manifest
from sessrotate.segments.segment_set import HARMLESS, body
from sessrotate.system import in_use
from sessrotate.system.digest import Fingerprint


class RestorePlan(Struct, frozen=True):
    """A whole restoration, decided and not yet done.

    `place` is the session's. `tail` is what the live file has, in bytes, None if it is gone; `free`
    is what the disk has, None if nobody can tell. `pending`, when it was carried out, is why the
    replaced file is still there, None if it is not.
    """

    place: Place
    manifest: Manifest
    prefix: int
    tail: int | None
    free: int | None
    pending: str | None = None

    @property
    def size(self) -> int:
        """How large the live file will be, in bytes; so many must be free.

        The archive keeps its own until its grace period is over.
        """
        return self.manifest.source_bytes + (self.tail or 0)

    @property
    def need(self) -> Need:
        """What has to be free."""
        what = "the whole history, since the archive keeps its own for now"
        return Need(self.size + gain.ASIDE, what)


def prepare(found: State) -> RestorePlan | None:
    """Return the plan of putting a session's history back; None if it has no archive.

    Raises RefusedError if the live file does not go on from its archive.
    """
    if found.problem is not None:
        raise RefusedError(found.problem)
    if found.listed is None:
        return None
    if any(entry.pruned for entry in found.listed.segments):
        raise RefusedError(
            "Some of the history was pruned: `restore` brings back first what is still in the "
            "trash."
        )
    if found.kept:
        raise RefusedError(found.cuts[-1].detail)
    if found.cuts:
        raise RefusedError(
            "Its client cut out a part of the history: the session cannot be whole again."
        )
    if found.live is not None and not found.is_away:  # or that was asked when it went
        reasons = [*obstacles.of(found.place, found.live, int(found.pack is not None))]
        if reasons:
            raise RefusedError(" ".join(reasons))
    tail = found.live.size() - found.prefix if found.live is not None else None
    free = fs.free_bytes(found.place.config)
    return RestorePlan(found.place, found.listed, found.prefix, tail, free)


def execute(
    planned: RestorePlan, found: State, wait: float, progress: Callable[[int], None]
) -> None:
    """Carry out a plan on the session that it was made for, whose lock is held.

    Raises as `rotate.execute` does, and DamagedError if the archive is not what it was.
    """
    place = found.place
    obstacles.check_room(place.config, planned.need)
    with storage("restore the session"):
        if found.live is None:
            _bring_back(planned, found, progress)
            return
        here = found.live.identity()
        in_use.check_unused(place, here, wait=wait, or_live=False)
        with swap.undone_unless_swapped(place, found.live), fs.Draft(place.draft) as draft:
            _write_history(planned, found, draft, progress)
            end = planned.prefix + (planned.tail or 0)
            tail = swap.append_tail(found.live, Span(planned.prefix, end), draft)
            draft.become_like(found.live.fd)
            draft.sync()
            begun = Intent(
                operation="restore",
                swap=Swap(
                    old=Mark.of(found.live.read_at(0, min(HEAD, planned.prefix))),
                    new=Mark.of(draft.read_at(0, min(HEAD, planned.manifest.source_bytes))),
                    cut=planned.prefix,
                    prefix=planned.manifest.source_bytes,
                    tail=tail,
                ),
                first=len(planned.manifest.segments),
            )
            swap.begin(place, found.live, begun)
            swap.swap(place, found.live, draft, begun, was=here, wait=wait)


def _write_history(
    planned: RestorePlan, found: State, draft: fs.Draft, progress: Callable[[int], None]
) -> Mark:
    segments = load.of_manifest(found.place.archive, found.listing, planned.manifest)
    for problem in segments.problems:
        if problem.kind not in HARMLESS:
            raise DamagedError(problem.detail)
    whole, done = Fingerprint(), 0
    for part in segments.parts:
        for piece in body(segments, part):
            draft.append(piece)
            whole.update(piece)
            done += len(piece)
            progress(done)
    return Mark(done, whole.digest)


def _bring_back(planned: RestorePlan, found: State, progress: Callable[[int], None]) -> None:
    """Make a live file where there is none any more, of what is archived."""
    place: Place = found.place
    try:
        with fs.Draft(place.draft) as draft:
            whole = _write_history(planned, found, draft, progress)
            draft.sync()
        owner.check_unmoved(place)  # writing it took a while
        # All of it is the mark: whatever appears under the name meanwhile must not pass for it.
        begun = Intent(
            operation="restore",
            swap=Swap(Mark.of(b""), whole, 0, whole.size, Mark.of(b"")),
            first=len(planned.manifest.segments),
        )
        swap.write_intent(place, begun)
        fs.create_folder(place.live.parent)
        fs.add_name(place.draft, place.live)
    except FileExistsError:
        swap.undo(place)
        name = printable(str(place.live))
        raise InUseError(f"{name} appeared meanwhile: nothing was changed.") from None
    except InUseError:
        swap.undo(place)
        raise
    except OSError:
        with suppress(OSError):
            if not os.path.lexists(place.live):
                swap.undo(place)
        raise


def mark(place: Place) -> None:
    """Note that its owner put a session back, as short as it was: nothing else rotates it."""
    fs.create_folder(place.archive)
    swap.change_record(place, restored="")
