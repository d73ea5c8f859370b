"""What follows a swap: the archive counts, and the file that was replaced goes or waits.

Rule: a run that crashed anywhere in here can be repeated. The replaced file stays whole until it
goes, and it goes only if all of it is in the live file and the archive, and nobody can write to it:
otherwise it waits (`waiting`), and what came late to it goes to the live file from there. The
record goes when nothing is left to do. After a restoration the archive stays as it is.

A client's trim may come right behind the swap. Claude Code (2.1.287 to 2.1.332) compares the live
file with what it trims, and then puts its own in that place: if the swap comes between the two, the
client's file is made of the old one, not of the new. The old file has every byte up to there, and
the client's goes on from it. So the swap is taken back as if the trim had come first: the old file
gets the name that a client gives what it keeps, and only then what the swap made goes; the next run
puts both together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from sessrotate import fs, names, units
from sessrotate.archive import clock, found_files, live_tail, state
from sessrotate.archive.place import Place
from sessrotate.archive.record import Intent
from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, InUseError, SessrotateError, printable
from sessrotate.in_place import aside, second_names, swap, waiting
from sessrotate.model import FileIdentity, SealedSegment
from sessrotate.system import in_use, locks
from sessrotate.system.source import Source

MOMENT: Final = 0.05
"""Seconds in which a client that has compared the live file puts its own there: under 0.001."""


def was_taken_back(place: Place) -> bool:
    """Take back a swap that a trim came right behind; tell whether it did. The lock is held.

    A client that had compared the old file gets a moment to put its own there: how that goes on can
    be told as long as nothing is sealed. Where nothing is kept of a session, no client trims it.
    """
    trims = place.client.trims
    if not (os.path.lexists(place.pack) and trims.may_be_trimmed(place.live, place.session)):
        return False
    time.sleep(MOMENT)
    with state.opened(place) as found:
        if not is_overtaken(found):
            return False
        take_back(found)
        return True


def is_overtaken(found: State) -> bool:
    """Tell whether the live file was made of the one that a rotation has replaced.

    Nothing of the history is sealed then, so that the old file is whole. Reads both where the live
    file is not the new one. If that was kept, and has all of the old one, the live file goes on
    from it in any case. Another program may save a file like that, too: no client trims a session
    of which nothing is kept.
    """
    begun, pack, live = found.intent, found.pack, found.live
    if begun is None or pack is None or live is None:
        return False
    place = found.place
    if not place.client.trims.may_be_trimmed(place.live, place.session):
        return False
    if found.match not in {"old", "other", "kept"} or found.is_gone:
        return False
    if not found.is_pack_known or (found.match == "kept" and begun.moves_nothing):
        return False
    return live_tail.goes_on_at(pack, live) is not None


def take_back(found: State) -> None:
    """Leave the old file as what a client kept, and remove what a swap made. The lock is held.

    The new file goes if it has nothing that the old one has not.
    """
    place, pack, begun = found.place, found.pack, found.intent
    if pack is None or begun is None:
        raise ValueError
    second_names.give(place, place.pack, pack.identity().modified_ns)
    for path in place.client.trims.replaced(place.live, place.session):
        if _is_new(found, begun, path):
            fs.remove_files(path.parent, [path.name])
    swap.undo(place)


def _is_new(found: State, begun: Intent, path: Path) -> bool:
    """Tell whether a file that was kept is the new one of the swap, as that made it, and unused."""
    try:
        with Source.inside(path.parent, path.name) as source:
            # Somebody may have opened it under the live file's name, and write to it only now.
            is_free = locks.write_lease(source.fd) == "taken"
            return is_free and swap.is_new(found, begun, source)
    except (SessrotateError, OSError):
        return False


# ── the end of a swap ─────────────────────────────────────────────────────────────────────────────

_UNKNOWN: Final = (
    "This file system cannot tell whether a process still writes to the replaced file, so the file "
    "stays until nobody has written to it for a day."
)
_HELD: Final = (
    "A process still has the replaced file open. The first `sessrotate run` after the process has "
    "closed that file removes it."
)
_LOOKS: Final = 10
"""How often a replaced file is looked at that somebody writes to just then."""

_OVERTAKEN: Final = (
    "Claude Code trimmed the session at the moment when it was replaced. Nothing is lost: the next "
    "run puts it together."
)


class NotQuietError(InUseError):
    """The swap is done, or taken back, and a later run goes on."""


def finish(place: Place, wait: float) -> str | None:
    """Do what is left to do after a swap; return why the replaced file waits, None if it is gone.

    Or, if it is kept aside, what a person is told of it. The session's lock is held. `wait` is how
    many seconds to wait for a writer of the replaced file. Raises NotQuietError if a later run has
    to go on, DamagedError if the replaced file is not what was planned, OSError as the system
    reports. Nothing is lost by any of them.
    """
    if was_taken_back(place):
        raise NotQuietError(_OVERTAKEN)
    for seconds in (wait, *[0.0] * _LOOKS):
        with state.opened(place) as found:
            if found.intent is None:
                return None
            if found.intent.operation == "restore":
                _check_restored(found)  # before the pack goes, which may be all that is left
            # As it was before anybody is waited for, who may write to it then.
            was = None if found.pack is None else found.pack.identity()
            waits = None if found.pack is None else _judged(found, found.pack, seconds)
            if _close(found, found.intent, was, waits=waits is not None):
                break
    else:
        raise NotQuietError(_HELD)
    said = waiting.settle(place)  # what came late goes to the live file
    return " ".join(filter(None, (waits, *said))) or None


def _judged(found: State, pack: Source, wait: float) -> str | None:
    """Return why the pack has to wait, None if nobody can write to it any more.

    Raises DamagedError if nobody can tell what came late to it.
    """
    place = found.place
    if found.standing == "after":  # a client may trim only the new one
        second_names.forget(place, os.fstat(pack.fd))
    if found.match not in {"old", "other"}:  # else it is kept: no line goes to a file not of ours
        _check_known(found)
    try:
        answer = in_use.lease_from_writers(pack, wait)
    except InUseError:
        return _HELD
    if answer != "taken":
        return _UNKNOWN
    locks.release_lease(pack.fd)
    return None


def _check_known(found: State) -> None:
    """Raise DamagedError unless it is known what came late to the pack, and where that goes."""
    name = printable(str(found.place.pack))
    if not found.is_pack_known:
        raise DamagedError(f"{name} is not the file that was replaced: inspect it.")
    if found.successor is not found.live:
        return
    if found.residue.size and found.problem is not None:
        raise DamagedError(found.problem)
    if found.live is None or found.is_gone:
        raise DamagedError(
            f"{printable(str(found.place.live))} is gone, and its latest content is only in "
            f"{name}: put a copy of that in its place."
        )


def _check_restored(found: State) -> None:
    """Raise DamagedError, and put the archive aside, unless the live file holds all of it.

    If its client trimmed that since, what was kept of it does.
    """
    wanted = () if found.manifest is None else found.manifest.segments
    if wanted and not _is_held(found, wanted):
        name, folder = printable(str(found.place.live)), aside.put_aside(found.place)
        raise DamagedError(
            f"{name} does not match the history that was put there: its archive is kept in "
            f"{printable(str(folder))}."
        )


def _is_held(found: State, wanted: Sequence[SealedSegment]) -> bool:
    if found.live is not None and live_tail.holds(found.live, wanted):
        return True
    for path in found.kept:
        with suppress(SessrotateError, OSError), Source.inside(path.parent, path.name) as kept:
            if live_tail.holds(kept, wanted):
                return True
    return False


def _close(found: State, begun: Intent, was: FileIdentity | None, *, waits: bool) -> bool:
    """Remove what is not needed any more; tell whether the pack is as it `was` all the time.

    The pack goes; or it `waits`, as it does with lines that the live file has yet to get. The
    record says so last; after a restoration, that the live file is whole, and after a rotation,
    that it is not any more. Raises DamagedError if the pack was edited, or the live file is not the
    new one any more: then the pack is kept.
    """
    place, pack, new, edited = found.place, found.pack, found.successor, ""
    if pack is not None and was is not None:
        is_hurt = new is found.live and found.problem is not None
        is_new = found.match in {"new", "kept"} and not is_hurt
        if not is_new or not _is_archived(found, begun, pack):
            edited = aside.said(aside.keep(place, place.pack), place.live)
        else:
            is_same = pack.identity() == was and was.size == pack.size()
            is_whole = new is not None and found_files.has_tail(new, begun)
            if is_same and (waits or found.residue.size or not is_whole):
                is_same = waiting.keep(found, was)
            if not is_same:
                return False
    restored = found.record.restored
    partial = sorted(name for name in found.listing if name.endswith(names.PARTIAL))
    fs.remove_files(place.archive, [names.PACK, names.DRAFT, *partial])
    if begun.operation == "restore" and found.header is None:
        restored = units.written(clock.stamp())
    elif begun.operation == "rotate" and (begun.count or found.header is not None):
        restored = None
    swap.end(place, restored=restored)
    if edited:
        raise DamagedError(f"A program changed the session while it was replaced: {edited}")
    return True


def _is_archived(found: State, begun: Intent, pack: Source) -> bool:
    """Tell whether what was copied of the replaced file is listed, and still stands there."""
    listed, moved = found.manifest, begun.moved(found.manifest)
    shift = 0 if listed is None else begun.swap.cut - listed.source_bytes
    return len(moved) == begun.count and live_tail.holds(pack, moved, shift)
