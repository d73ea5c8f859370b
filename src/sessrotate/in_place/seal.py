"""What follows a swap: late lines are brought over, the archive counts, and nothing is left.

Rule: a run that crashed anywhere in here can be repeated. The replaced file stays whole until it
goes, and it goes only if all of it is in the live file and the archive, and nobody can write to it:
otherwise it waits. The record goes when nothing is left to do. After a restoration the archive
stays as it is. Late lines go to the live file's end, by whole lines, once.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from sessrotate import fs, names, units
from sessrotate.archive import clock, continued, state
from sessrotate.archive.late_lines import batch_end, said_again, whole
from sessrotate.archive.place import Place
from sessrotate.archive.record import Batch, Intent
from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, InUseError, SessrotateError, printable
from sessrotate.in_place import aside, overtaken, second_names, waiting
from sessrotate.in_place.swap import change_record, write_intent
from sessrotate.model import SealedSegment, Span
from sessrotate.system import in_use, lease
from sessrotate.system.source import Source

_UNKNOWN: Final = (
    "This file system cannot tell whether a process still writes to the replaced file, which waits "
    "until nobody has written to it for a day."
)
_OVERTAKEN: Final = (
    "Claude Code trimmed the session at the moment when it was replaced. Nothing is lost: the next "
    "run puts it together."
)


class NotQuietError(InUseError):
    """The swap is done, or taken back, and a later run goes on."""


def finish(place: Place, wait: float) -> str | None:
    """Do what is left to do after a swap; return why the replaced file waits, None if it is gone.

    The session's lock is held. `wait` is how many seconds to wait for a writer of the replaced
    file. Raises NotQuietError if a later run has to go on, DamagedError if the replaced file is not
    what was planned, OSError as the system reports. Nothing is lost by any of them.
    """
    if overtaken.was_taken_back(place):
        raise NotQuietError(_OVERTAKEN)
    while True:
        waits = _bring_over(place, wait)
        with state.opened(place) as found:
            begun = found.intent
            if begun is None:
                return None
            if begun.operation == "restore":
                _check_restored(found)  # before the pack goes, which may be all that is left
            if _close(found, begun, waits=waits is not None):
                return waits


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
    if found.live is not None and continued.holds(found.live, wanted):
        return True
    for path in found.kept:
        with suppress(SessrotateError, OSError), Source.inside(path.parent, path.name) as kept:
            if continued.holds(kept, wanted):
                return True
    return False


def _close(found: State, begun: Intent, *, waits: bool) -> bool:
    """Remove what is not needed any more; tell whether nothing came to the pack meanwhile.

    The pack goes, or `waits`. The record says so last; after a restoration, that the live file is
    whole, and after a rotation, that it is not any more. Raises DamagedError if the pack was
    edited, or the live file is not the new one any more: then the pack is kept.
    """
    place, pack, edited = found.place, found.pack, ""
    if pack is not None:
        was = pack.identity()
        if found.match not in {"new", "kept"} or not _is_archived(found, begun, pack):
            edited = aside.said(aside.keep(place, place.pack), place.live)
        elif was.size != pack.size() or (waits and not waiting.keep(found, was)):
            return False
    restored = found.record.restored
    partial = sorted(name for name in found.listing if name.endswith(names.PARTIAL))
    fs.remove_files(place.archive, [names.PACK, names.DRAFT, *partial])
    if begun.operation == "restore" and found.header is None:
        restored = units.written(clock.stamp())
    elif begun.operation == "rotate" and (begun.count or found.header is not None):
        restored = None
    change_record(place, intent=None, restored=restored)
    if edited:
        raise DamagedError(f"A program changed the session while it was replaced: {edited}")
    return True


def _is_archived(found: State, begun: Intent, pack: Source) -> bool:
    """Tell whether what was copied of the replaced file is listed, and still stands there."""
    listed, moved = found.manifest, begun.moved(found.manifest)
    shift = 0 if listed is None else begun.swap.cut - listed.source_bytes
    return len(moved) == begun.count and continued.holds(pack, moved, shift)


def _bring_over(place: Place, wait: float) -> str | None:
    """See to what came late to the replaced file; return why it has to wait, None if it has not.

    It is appended to the live file; or, if its client trimmed that, to what was kept of it, as if
    it had come too late for the trim.
    """
    while True:
        with state.opened(place) as found:
            begun, pack = found.intent, found.pack
            if pack is not None and found.standing == "after":  # a client may trim only the new one
                second_names.forget(place, os.fstat(pack.fd))
            if begun is None or pack is None:
                return None
            was = pack.identity()
            waits = _waits(pack, wait)
            if pack.identity() != was or not _is_as_it_was(found):
                continue  # who was waited for has written what it had to
            if found.match in {"old", "other"}:  # no line of ours goes to a file that is not ours
                return waits
            new = _checked(found)
            data, batch = _next(found, begun, pack, new, is_whole=waits is not None)
            if not data:
                return waits
        if batch is not None:
            write_intent(place, replace(begun, swap=replace(begun.swap, batch=batch)))
        fs.append(new.path, data)


def _next(
    found: State, begun: Intent, pack: Source, new: Source, *, is_whole: bool
) -> tuple[bytes, Batch | None]:
    """Return what is to be appended next, and what has to be noted before; nothing if all is over.

    With `is_whole`, a line under way may still be gone on with. A row that is said again stands
    behind the batch that is noted.
    """
    late, batch, is_live = found.residue, begun.swap.batch, new is found.live
    if batch is not None and is_live:
        again = said_again(batch, pack, begun.swap.cut, new)
        if again:
            return again, None
    start, is_rest = late.start, False
    if late.size:
        start, is_rest = whole(pack, start, new, is_ours=batch is not None)
    most = pack.line_start(late.end, start) if is_whole else late.end
    if start >= most:
        return b"", None
    end = batch_end(pack, start, most)
    data, size = pack.read_at(start, end - start), new.size()
    torn = not is_rest and new.line_start(size) < size
    if not is_live:  # only whole lines are put together
        data = b"\n" * torn + data + b"\n" * (not data.endswith(b"\n"))
    elif torn:
        raise NotQuietError(_torn(new.path))
    return data, Batch(Span(start, end), size)


def _torn(path: Path) -> str:
    name, quoted = printable(str(path)), printable(shlex.quote(str(path)), 4096)
    return (
        f"{name} ends with half a line, and late lines wait until that is complete. If no client "
        f"runs the session: `echo >> {quoted}`, then try again."
    )


def _is_as_it_was(found: State) -> bool:
    """Tell whether nothing came to the pack and the live file since they were opened."""
    for source in (found.pack, found.live):
        if source is not None and source.identity().size != source.size():
            return False
    try:
        if found.live is not None:
            found.live.check_unreplaced()
    except InUseError:
        return False
    return True


def _checked(found: State) -> Source:
    """Return what late lines go to: the live file, or what was kept of it when it was trimmed.

    Raises DamagedError if that or the pack is not there.
    """
    name = printable(str(found.place.pack))
    if not found.is_pack_known:
        raise DamagedError(f"{name} is not the file that was replaced: look at it.")
    new = found.successor
    if new is not None and new is not found.live:
        return new
    # In doubt nobody knows what came late: the draft's name may have told it, and that went first.
    if (found.residue.size or found.standing == "unknown") and found.problem is not None:
        raise DamagedError(found.problem)
    if found.live is None or found.is_gone:
        raise DamagedError(
            f"{printable(str(found.place.live))} is gone, and its latest content is only in "
            f"{name}: put a copy of that in its place."
        )
    return found.live


def _waits(pack: Source, wait: float) -> str | None:
    """Return why a replaced file waits, None if a lease proves that nobody can write to it.

    Raises NotQuietError if somebody has it open for writing.
    """
    try:
        answer = in_use.lease_from_writers(pack, wait)
    except InUseError as error:
        raise NotQuietError(str(error)) from None
    if answer != "taken":
        return _UNKNOWN
    lease.release(pack.fd)
    return None
