"""What follows a swap: late lines are brought over, the history is sealed, and the intent goes.

Rule: a run that crashed anywhere in here can be repeated. A segment is on the disk under its name
before the pack loses its bytes. The pack is cut from its end, so that what is still in it stays
where it was. The intent goes when nothing is left to do. After a restoration, nothing is sealed and
the archive goes to the trash. Late lines go where they belong: before all that came to the new
file since.
"""

from __future__ import annotations

import stat
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from sessrotate import fs, names
from sessrotate.archive import state
from sessrotate.archive.intent import Batch, Mark
from sessrotate.archive.late_lines import is_at
from sessrotate.errors import DamagedError, InUseError, printable
from sessrotate.fs import replacing
from sessrotate.fs.replacing import Replacement
from sessrotate.in_place import merge_late, retire
from sessrotate.in_place.swap import write_intent
from sessrotate.model import Span
from sessrotate.segments import header, load, manifest
from sessrotate.segments.segment_set import check
from sessrotate.system import in_use, lease
from sessrotate.system.digest import ZERO, Fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.archive.intent import Intent
    from sessrotate.archive.place import Place
    from sessrotate.archive.state import State
    from sessrotate.model import SealedSegment
    from sessrotate.system.source import Source

BUFFER: Final = 256 * 1024

_BATCH: Final = 256 * 1024 * 1024
"""Bytes of segments that are copied before the pack loses them: each time all must be on the disk,
and the disk has nothing to do until the next are copied."""

_PLENTY: Final = 8 * _BATCH
"""Free bytes from which on batches may be larger than the largest segment."""

_AT_ONCE: Final = 1024 * 1024
"""Most late bytes that are appended in one batch, unless a single line is longer."""

_Quiet = Literal["proved", "likely", "no"]

_QUIET: Final = 60.0
"""Seconds without a change after which a pack counts as done with where there are no leases."""

_READERS: Final = 2.0
"""Seconds to wait for readers of the replaced file, before it is copied instead of cut."""

_LATER: Final = (
    "This file system cannot tell whether a process still writes to the replaced file. A run a "
    "minute or more from now does the rest."
)


class NotQuietError(InUseError):
    """The swap is done, and somebody may still write to the replaced file: a later run goes on."""


def finish(place: Place, wait: float, progress: Callable[[int], None]) -> None:
    """Do what is left to do after a swap. The session's lock is held.

    `wait` is how many seconds to wait for a writer of the replaced file; `progress` is told how
    many bytes are sealed. Raises NotQuietError if there still is one, DamagedError if the pack is
    not what was planned, OSError as the system reports. Nothing is lost by any of them.
    """
    while True:
        _bring_over(place, wait)
        with state.opened(place) as found:
            if found.intent is None:
                return
            if found.intent.operation == "restore":
                retire.check(found)  # before the pack goes, which may be all that is left
                merge_late.close(found)
            elif found.intent.operation == "rotate":
                _seal(found, found.intent, wait, progress)
            elif found.standing == "after":
                merge_late.close(found)
            else:
                merge_late.take_back(found)
        try:
            if not merge_late.execute(place, wait):
                return
        except InUseError as error:
            raise NotQuietError(str(error)) from error


def _bring_over(place: Place, wait: float) -> None:
    """See to what came late to the replaced file; then drop its tail.

    It is appended to the live file where nothing came there since, and is kept for an insertion
    otherwise, or where nobody can write to either meanwhile.
    """
    while True:
        with state.opened(place) as found:
            pack = found.pack
            if pack is None or not _may_come_late(found):
                return
            begun_ns = (place.archive / names.INTENT).lstat().st_mtime_ns
            quiet = _quiet(pack, begun_ns, wait)
        with state.opened(place) as found:  # who was waited for has written what it had to
            begun, pack = found.intent, found.pack
            if begun is None or pack is None or not _may_come_late(found):
                return
            live = _checked(found)
            begun = merge_late.forget_outdated(found) or begun
            size, residue = live.size(), found.residue
            late, is_last = residue.span, residue.at == size
            if late.size and (quiet == "proved" or (quiet == "likely" and not is_last)):
                merge_late.keep(found, residue)
                late = Span(late.end, late.end)
            if quiet == "no":  # a line under way may still be gone on with
                late = Span(late.start, pack.line_start(late.end, late.start))
            if not late.size or not is_last:
                _drop_tail(found, begun, pack, quiet, wait)
                return
            end = min(late.end, late.start + _AT_ONCE)
            if end < late.end:
                end = pack.line_start(end, late.start)
                end = late.end if end == late.start else end
            data = pack.read_at(late.start, end - late.start)
        batch = Batch(Span(late.start, end), size)
        write_intent(place, replace(begun, swap=replace(begun.swap, batch=batch)))
        fs.append(place.live, data)


def _may_come_late(found: State) -> bool:
    """Tell whether the pack may have lines that the live file has yet to get."""
    begun = found.intent
    is_merge = begun is not None and begun.operation in {"late", "insert"}
    return not found.is_dropped and (not is_merge or found.standing == "after")


def _checked(found: State) -> Source:
    """Return the live file; raise DamagedError if that or the pack is not there."""
    name = printable(str(found.place.pack))
    if not found.is_pack_known:
        raise DamagedError(f"{name} is not the file that was replaced: look at it.")
    if found.residue.span.size and found.problem is not None:
        raise DamagedError(found.problem)
    if found.live is None or found.is_gone:
        raise DamagedError(
            f"{printable(str(found.place.live))} is gone, and what it had last is only in {name}: "
            "put a copy of that in its place."
        )
    return found.live


def _drop_tail(found: State, begun: Intent, pack: Source, quiet: _Quiet, wait: float) -> None:
    if quiet == "no":
        raise NotQuietError(_LATER)
    if begun.operation == "rotate" and _may_shorten(found, pack, wait):
        fs.shorten(found.place.pack, begun.swap.cut)


def _quiet(pack: Source, begun_ns: int, wait: float) -> _Quiet:
    """Tell whether nobody can write to the replaced file any more.

    Where there are no leases, it is never quiet in the run that replaced it, `begun_ns` nanoseconds
    after 1970, and never proved. Raises NotQuietError if somebody has it open for writing.
    """
    try:
        answer = in_use.lease_from_writers(pack, wait)
    except InUseError as error:
        raise NotQuietError(str(error)) from None
    if answer == "taken":
        lease.release(pack.fd)
        return "proved"
    age = time.time() - max(pack.identity().modified_ns, begun_ns) / 1e9
    return "likely" if age >= _QUIET else "no"


def _may_shorten(found: State, pack: Source, wait: float) -> bool:
    """Tell whether the pack is ours alone; otherwise it is copied, and left as it is.

    Somebody may have linked it, as a backup. And a client that loads its session (2.0.28, 2.1.112)
    would take the end of a shortened file for that of the session, and go on from there: readers
    are waited for, some seconds at most.
    """
    status = found.place.pack.lstat()
    if (
        not stat.S_ISREG(status.st_mode)
        or status.st_nlink != 1
        or (found.live is not None and found.live.identity().inode == status.st_ino)
    ):
        return False
    answer = lease.within(min(wait, _READERS), lease.write, pack.fd)
    if answer == "taken":
        lease.release(pack.fd)
    return answer != "busy"


def _seal(found: State, begun: Intent, wait: float, progress: Callable[[int], None]) -> None:
    place, folder = found.place, found.place.archive
    new = begun.manifest.segments[begun.first :]
    pending = [entry for entry in new if _name(found, entry) not in found.listing]
    _check_sealed(found, begun)
    may_shorten = found.pack is not None and _may_shorten(found, found.pack, wait)
    done = 0
    for batch in _batches(pending, fs.free_bytes(folder)):
        start, end = _in_pack(begun, batch[-1]).start, _in_pack(begun, batch[0]).end
        if found.pack is None or found.pack.size() < end:
            raise DamagedError(f"{printable(str(place.pack))} is not what it was.")
        if not batch[0].segment.index and may_shorten and len(batch) == 1:
            # The oldest segment is what is left of the pack: no copy, and no room, is needed.
            if not is_at(found.pack, start, Mark(end - start, batch[0].digest)):
                raise _changed(batch[0])
            fs.shorten(place.pack, end)
            fs.rename_files({place.pack: folder / _name(found, batch[0])})
        else:
            _copy(found, begun, batch)
            if may_shorten:
                fs.shorten(place.pack, start)
        done += sum(entry.segment.span.size for entry in batch)
        progress(done)
    fs.create_file_at_once(folder / names.MANIFEST, manifest.dump(begun.manifest))
    merge_late.close(found)


def _check_sealed(found: State, begun: Intent) -> None:
    """Raise DamagedError unless what is under the names of new segments is just that.

    An earlier run has sealed them; the pack goes by what they hold, so a name is not enough.
    """
    segments = load.of_manifest(found.place.archive, found.listing, begun.manifest)
    for number in sorted(found.sealed):
        check(segments, number)


def _changed(entry: SealedSegment) -> DamagedError:
    return DamagedError(f"Segment {entry.segment.index} has changed in the {names.PACK}.")


def _batches(pending: list[SealedSegment], room: int | None) -> Iterator[list[SealedSegment]]:
    """Yield the segments from the last to the first, as many at once as may be copied at once.

    The first segment of a session is alone, since it needs no copy. On a disk that is almost full
    a batch is no larger than the largest segment.
    """
    largest = max((entry.segment.span.size for entry in pending), default=0)
    limit = max(largest, _BATCH if room is not None and room > _PLENTY else 0)
    copied = [entry for entry in reversed(pending) if entry.segment.index]
    yield from replacing.batches(copied, lambda entry: entry.segment.span.size, limit)
    yield from ([entry] for entry in pending if not entry.segment.index)


def _in_pack(begun: Intent, entry: SealedSegment) -> Span:
    return begun.in_pack(entry.segment.span)


def _name(found: State, entry: SealedSegment) -> str:
    return names.segment_file(found.place.session, "numbered", entry.segment.index)


def _copy(found: State, begun: Intent, batch: list[SealedSegment]) -> None:
    """Write segments from the pack; they are on the disk under their names when this returns."""

    def file(entry: SealedSegment) -> Replacement[SealedSegment]:
        path = found.place.archive / _name(found, entry)
        draft = path.with_name(path.name + names.PARTIAL)
        return Replacement(draft, path, partial(_write, found, begun, entry))

    # What is under a segment's name counts: no other record has to say so.
    replacing.replace_files([file(entry) for entry in batch])


def _write(found: State, begun: Intent, entry: SealedSegment, draft: fs.Draft) -> SealedSegment:
    """Write a segment; raise DamagedError if the pack has not what was planned."""
    draft.append(_header(begun, entry))
    if _copied(found, _in_pack(begun, entry), draft) != entry.digest:
        raise _changed(entry)
    return entry


def _header(begun: Intent, entry: SealedSegment) -> bytes:
    index = entry.segment.index
    return header.of(
        entry.segment,
        session=begun.manifest.session,
        layout="numbered",
        digest=entry.digest,
        parent_digest=begun.manifest.segments[index - 1].digest if index else ZERO,
        segments=None,
        source_bytes=None,
    )


def _copied(found: State, span: Span, file: fs.NewFile) -> str:
    copied, buffer = Fingerprint(), bytearray(BUFFER)
    pack = found.pack
    with memoryview(buffer) as view:
        for start in range(span.start, span.end, BUFFER):
            size = min(BUFFER, span.end - start)
            if pack is not None:
                pack.fill(view[:size], start)
            copied.update(view[:size])
            file.append(view[:size])
    return copied.digest
