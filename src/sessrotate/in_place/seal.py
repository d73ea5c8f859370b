"""What follows a swap: late lines are brought over, the history is sealed, and nothing is left.

Rule: a run that crashed anywhere in here can be repeated. A segment is on the disk under its name
before the pack loses its bytes. The pack is cut from its end, so that what is still in it stays
where it was. The record goes when nothing is left to do. After a restoration, nothing is sealed and
the archive stays. Late lines go to the live file's end, by whole lines, once.
"""

from __future__ import annotations

import os
import shlex
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from msgspec.structs import replace

from sessrotate import fs, names, units
from sessrotate.archive import clock, state
from sessrotate.archive.late_lines import batch_end, said_again, whole
from sessrotate.archive.place import Place
from sessrotate.archive.record import Batch, Intent
from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, InUseError, printable
from sessrotate.in_place import (
    overtaken,
    restore,
    sealed_copies,
    second_names,
    waiting,
)
from sessrotate.in_place.sealed_copies import Sealing
from sessrotate.in_place.swap import change_record, write_intent
from sessrotate.model import FileIdentity, SealedSegment, Span
from sessrotate.segments import load, manifest
from sessrotate.segments.segment_set import check
from sessrotate.system import in_use, lease
from sessrotate.system.source import Source
from sessrotate.units import amount

_Quiet = Literal["proved", "over", "likely", "no"]
"""How sure it is that nobody can write to a pack any more: by a lease; after a day in which nobody
did, which is no proof; after a minute."""

_SURE: Final = {"proved", "over"}

_QUIET: Final = 60.0
"""Seconds without a change after which a pack is sealed, by copies, where there are no leases."""

_READERS: Final = 2.0
"""Seconds to wait for readers of the replaced file, before it is copied instead of cut."""

_UNKNOWN: Final = (
    "This file system cannot tell whether a process still writes to the replaced file."
)
_LATER: Final = "A run a minute or more from now does the rest."
_OVERTAKEN: Final = (
    "Claude Code trimmed the session at the moment when it was replaced. Nothing is lost: the next "
    "run puts it together."
)


class NotQuietError(InUseError):
    """The swap is done, and somebody may still write to the replaced file: a later run goes on."""


def finish(place: Place, wait: float, progress: Callable[[int], None]) -> None:
    """Do what is left to do after a swap. The session's lock is held.

    `wait` is how many seconds to wait for a writer of the replaced file; `progress` is told how
    many bytes are sealed. Raises NotQuietError if there still is one, DamagedError if the pack is
    not what was planned, OSError as the system reports. Nothing is lost by any of them.
    """
    if overtaken.was_taken_back(place):
        raise NotQuietError(_OVERTAKEN)
    while True:
        quiet = _bring_over(place, wait)
        with state.opened(place) as found:
            if found.intent is None:
                return
            if found.intent.operation == "restore":
                restore.check(found)  # before the pack goes, which may be all that is left
                is_done = _close(found, quiet)
            else:
                is_done = _seal(found, found.intent, quiet, wait, progress)
        if is_done:
            return


def _close(found: State, quiet: _Quiet, was: FileIdentity | None = None) -> bool:
    """Remove what is not needed any more; tell whether nothing came to the pack meanwhile.

    Unless it is proved that nobody can write to the pack, it waits for a day. `was` is what the
    pack was when it was looked at. The record says so last; after a restoration, that the live file
    is whole, and after a rotation, that it is not any more.
    """
    pack = found.pack
    if pack is not None and quiet not in _SURE:
        was = was or pack.identity()
        if waiting.quiet_for(was, 0) < _QUIET or not waiting.keep(found, was):
            return False
    begun, restored = found.intent, found.record.restored
    partial = sorted(name for name in found.listing if name.endswith(names.PARTIAL))
    fs.remove_files(found.place.archive, [names.PACK, names.DRAFT, *partial])
    if begun is not None and (begun.operation == "restore") == (found.header is None):
        restored = units.written(clock.stamp()) if begun.operation == "restore" else None
    change_record(found.place, intent=None, restored=restored)
    return True


def _bring_over(place: Place, wait: float) -> _Quiet:
    """See to what came late to the replaced file; then drop its tail if it is quiet.

    Returns how sure it is that nobody can write to it any more.

    It is appended to the live file; or, if its client trimmed that, to what was kept of it, as if
    it had come too late for the trim.
    """
    while True:
        with state.opened(place) as found:
            begun, pack = found.intent, found.pack
            if pack is not None and found.standing == "after":  # a client may trim only the new one
                second_names.forget(place, os.fstat(pack.fd))
            if begun is None or pack is None or found.is_dropped:
                return "proved"
            was, begun_ns = pack.identity(), (place.archive / names.RECORD).lstat().st_mtime_ns
            quiet = _quiet(pack, begun_ns, wait)
            if pack.identity() != was or not _is_as_it_was(found):
                continue  # who was waited for has written what it had to
            new = _checked(found)
            data, batch = _next(found, begun, pack, new, is_whole=quiet == "no")
            if not data:
                _drop_tail(found, begun, pack, quiet, wait)
                return quiet
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
        f"{name} ends with half a line, and lines that came late wait until that is whole. If no "
        f"client runs the session: `echo >> {quoted}`, then again."
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
            f"{printable(str(found.place.live))} is gone, and what it had last is only in {name}: "
            "put a copy of that in its place."
        )
    return found.live


def _drop_tail(found: State, begun: Intent, pack: Source, quiet: _Quiet, wait: float) -> None:
    if quiet == "no":
        raise NotQuietError(f"{_UNKNOWN} {_ahead(found) or _LATER}")
    if begun.operation == "rotate" and quiet == "proved" and _may_shorten(found, pack, wait):
        fs.shorten(found.place.pack, begun.swap.cut)


def _ahead(found: State) -> str | None:
    """Say what helps where a clock was ahead: by the dates of then, nobody could tell for long."""
    files = (found.place.pack, found.place.archive / names.RECORD)
    ahead = [path for path in files if path.lstat().st_mtime > time.time() + _QUIET]
    paths = " ".join(shlex.quote(str(path)) for path in ahead)
    told = f"Its date is yet to come. If the clock is right now: touch {printable(paths, 9999)}"
    return told if ahead else None


def _quiet(pack: Source, begun_ns: int, wait: float) -> _Quiet:
    """Tell whether nobody can write to the replaced file any more.

    Where there are no leases, it is never quiet in the run that replaced it, `begun_ns` nanoseconds
    after 1970, and is over after a day without a change. Raises NotQuietError if somebody has it
    open for writing.
    """
    try:
        answer = in_use.lease_from_writers(pack, wait)
    except InUseError as error:
        raise NotQuietError(str(error)) from None
    if answer == "taken":
        lease.release(pack.fd)
        return "proved"
    here = pack.identity()
    if waiting.is_over(here, begun_ns):
        return "over"
    return "likely" if waiting.quiet_for(here, begun_ns) >= _QUIET else "no"


def _may_shorten(found: State, pack: Source, wait: float) -> bool:
    """Tell whether the pack is ours alone; otherwise it is copied, and left as it is.

    Somebody may have linked it, as a backup. And a client that loads its session (2.0.28, 2.1.112)
    would take the end of a shortened file for that of the session, and go on from there: readers
    are waited for, some seconds at most.
    """
    if not _has_one_name(found):
        return False
    answer = lease.within(min(wait, _READERS), lease.write, pack.fd)
    if answer == "taken":
        lease.release(pack.fd)
    return answer != "busy"


def _has_one_name(found: State) -> bool:
    """Tell whether the pack is a file that has no other name, and is not the live file."""
    status = found.place.pack.lstat()
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_nlink == 1
        and (found.live is None or found.live.identity().inode != status.st_ino)
    )


def _seal(
    found: State, begun: Intent, quiet: _Quiet, wait: float, progress: Callable[[int], None]
) -> bool:
    """Write the segments; tell whether nothing came to the pack meanwhile.

    While a client may still write to the pack, it stays whole. After a quiet day it is cut all the
    same, if the disk has no room for copies beside it.
    """
    place, folder = found.place, found.place.archive
    was = None if found.pack is None else found.pack.identity()
    listed = begun.listed
    if listed is None:  # a session that was never rotated was put together
        return _close(found, quiet, was)
    new = listed.segments[begun.first :]
    pending = [entry for entry in new if entry.segment.index not in found.sealed]
    sealing = Sealing(found, begun, load.of_manifest(folder, found.listing, listed))
    for number in sorted(found.sealed):  # by an earlier run; the pack goes by what they hold
        check(sealing.segments, number)
    is_ours = found.pack is not None and quiet == "proved"
    if found.pack is not None and not is_ours:
        is_ours = not _has_room(folder, pending, quiet)
    may_shorten = is_ours and found.pack is not None and _may_shorten(found, found.pack, wait)
    done = 0
    for batch in sealed_copies.batches(pending, fs.free_bytes(folder)):
        spans = [begun.in_pack(entry.segment.span) for entry in batch]
        if found.pack is None or found.pack.size() < spans[0].end:
            raise DamagedError(f"{printable(str(place.pack))} has changed since it was written.")
        sealed_copies.copy(sealing, batch)
        may_shorten = may_shorten and _has_one_name(found)  # copying takes a while
        if may_shorten:
            fs.shorten(place.pack, spans[-1].start)
        done += sum(entry.segment.span.size for entry in batch)
        progress(done)
    fs.create_file_at_once(folder / names.MANIFEST, manifest.dump(listed))
    return _close(found, quiet, was)


def _has_room(folder: Path, pending: list[SealedSegment], quiet: _Quiet) -> bool:
    """Tell whether there is room for copies of all segments beside the pack.

    Raises NotQuietError if there is none and the day is not over.
    """
    room, needed = fs.free_bytes(folder), sum(entry.segment.span.size for entry in pending)
    if room is None or room >= needed:
        return True
    if quiet != "over":
        raise NotQuietError(
            f"{_UNKNOWN} So the history has to be copied, which needs room for "
            f"{amount(needed, up=True)}, and {amount(room)} are free. Free some space; or wait "
            "until it has been quiet for a day."
        )
    return False
