"""Having replaced files wait that may still get lines, and bringing those to the live file.

They wait whole, in the folder `waiting` of the archive, each with a number for its name. One that
the record does not know is listed, and is never changed or removed.

Rule: a replaced file is kept whole until a lease proves that nobody can write to it; where there
are none, until it has been quiet for a day and nobody is known to have it open. It is removed only
while the session has each of its lines. What came to it is appended to the live file, by whole
lines, once: the record says which bytes, and how long the live file was, before they are appended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import fs, names
from sessrotate.archive import clock, late_lines, place, record, state
from sessrotate.archive.late_lines import batch_end, of_waiting, said_again
from sessrotate.archive.place import Place
from sessrotate.archive.record import Batch, Mark, Waiting
from sessrotate.archive.state import State
from sessrotate.errors import printable, quoted, storage
from sessrotate.in_place import aside
from sessrotate.in_place.swap import change_record
from sessrotate.model import FileIdentity, Span
from sessrotate.system import in_use, locks
from sessrotate.system.source import Source
from sessrotate.units import DAY

QUIET: Final = DAY
"""Seconds without a change after which a replaced file is let go where there are no leases."""


_IF_NONE: Final = "If no client is running the session:"


class Pack(Struct, frozen=True):
    """A file that waits; `told` is what the record says of it, None if that is nothing."""

    path: Path
    told: Waiting | None

    @property
    def size(self) -> int:
        """How many bytes it has now."""
        return self.path.lstat().st_size


def packs(where: Place) -> list[Pack]:
    """Return the files of a session that wait, the oldest first.

    Raises DamagedError if the folder is a link, StorageError as the system reports.
    """
    with storage("look into the archive"):
        told = {str(each.number): each for each in record.told(where.archive).waiting}
        return [Pack(path, told.get(path.name)) for path in place.that_wait(where)]


def free_name(where: Place) -> Path:
    """Return the name of the next file that is to wait."""
    number = 1 + max((int(path.name) for path in place.that_wait(where)), default=0)
    while os.path.lexists(where.waiting / str(number)):  # something else has the name
        number += 1
    return where.waiting / str(number)


def is_over(file: FileIdentity, since_ns: int) -> bool:
    """Tell whether a file has been quiet for a day, and nobody is known to write to it.

    `since_ns`, nanoseconds since 1970, is when it was replaced. A clock that cannot be believed
    says no.
    """
    quiet_for = time.time() - max(file.modified_ns, since_ns) / 1e9
    return quiet_for >= QUIET and not any(in_use.writers(file)) and not clock.doubt(time.time())


def keep(found: State, was: FileIdentity) -> bool:
    """Have the pack wait, whole; tell whether that was done.

    `was` is what it was when it was opened. Not done if it has changed since then. What the live
    file has yet to get of it comes over like all that comes to it later.
    """
    pack, live, begun = found.pack, found.live, found.intent
    if pack is None or live is None or begun is None:
        return False
    known, batch = found.residue.start if found.residue.size else pack.size(), begun.swap.batch
    if batch is not None and known > batch.span.start:  # half a line of ours is not known yet
        known = pack.line_start(known)
    mark = Mark.of_pieces(pack.pieces(Span(0, known)))
    if pack.identity() != was or was.size != pack.size():
        return False
    if _has_name(found.place, was):  # a power loss may leave both names of a rename
        fs.remove_files(found.place.archive, [names.PACK])
        return True
    path = free_name(found.place)
    fs.create_folder(path.parent)
    # The record first: without it nothing would ever be done about the file.
    since = int(clock.stamp() * 1e9)
    _write(found.place, Waiting(int(path.name), mark, since, was.modified_ns, batch))
    # By a rename: a crash must not leave it two names, one of which may be anybody's.
    fs.rename_files({found.place.pack: path})
    return True


def _has_name(place: Place, pack: FileIdentity) -> bool:
    """Tell whether the pack is one of the files that wait, and the record says so."""
    with ExitStack() as stack:
        opened = [
            stack.enter_context(_opened(place, each.path))
            for each in packs(place)
            if each.told is not None
        ]
        return any(pack.is_same_file(each.identity()) for each in opened)


def settle(place: Place) -> list[str]:
    """Bring over what came to the files that wait, and remove those whose time is over.

    Where the live file is gone, or lacks lines, one of them may be all that is left of its end: it
    is kept aside, since nothing tells that of it any more when the session is back; a program that
    has it open writes there. What a person is told of it is returned. The session's lock is held,
    and nothing is left of a rotation or restoration. Raises OSError as the system reports.
    """
    said = list[str]()
    for each in packs(place):
        if each.told is None:
            continue
        with _opened(place, each.path) as pack:
            fate = _fate(place, pack, each.told)
        if fate == "stays":
            continue
        if fate != "goes":
            kept = printable(str(aside.keep(place, each.path)))
            said.append(
                f"{printable(str(place.live))} {fate}, and {kept} holds what it had when it was "
                "last replaced: compare that with the session, then remove it."
            )
        fs.remove_files(place.waiting, [each.path.name])
    _clean(place)
    return said


_Fate = Literal["stays", "goes", "is gone", "lacks lines that it had"]
"""What becomes of a file that waits; or what the live file is, so that it is kept aside."""


def _fate(place: Place, pack: Source, told: Waiting) -> _Fate:
    """Bring over what came to a file that waits, then return what becomes of it.

    It stays also where nobody can tell whether the session has all of it: a segment is damaged, the
    live file does not go on from its archive, the client trimmed it, or the session was put away.
    """
    if _is_gone(place):
        return "is gone"
    is_free, now, here = _is_free(pack, told), _brought_over(place, told), pack.identity()
    if not is_free or (here.size, here.modified_ns) != (now.mark.size, now.modified):
        return "stays"
    with state.opened(place) as found:
        has_all = None
        if found.problem is None and not found.kept and not found.is_away:
            has_all = state.has_lines_of(found, pack)
    if has_all is None:
        return "stays"
    return "goes" if has_all else "lacks lines that it had"


def _is_gone(place: Place) -> bool:
    """Tell whether another program removed the live file."""
    return not os.path.lexists(place.live) and record.told(place.archive).away is None


def free(found: State) -> list[Path]:
    """Return the files that wait and can go: nobody writes to them, and they have no half line."""
    paths = list[Path]()
    for each in packs(found.place):
        if each.told is not None and not _is_torn(_written(found, each.told)):
            with _opened(found.place, each.path) as pack:
                paths += [each.path] * _is_free(pack, each.told)
    return paths


def kept(found: State) -> int:
    """Return how many bytes those of the files that wait have that cannot go yet."""
    gone = {*free(found)}
    waits = (each for each in packs(found.place) if each.told is not None)
    return sum(each.size for each in waits if each.path not in gone)


def _is_free(pack: Source, told: Waiting) -> bool:
    answer = locks.read_lease(pack.fd)  # by now there may be leases, or the last writer is gone
    if answer == "taken":
        locks.release_lease(pack.fd)
    return answer == "taken" or (answer == "none" and is_over(pack.identity(), told.since))


def problems(found: State) -> Iterator[tuple[Path, str]]:
    """Yield the files that wait for a person, and what that person does about each.

    What such a file may have and the session lacks is the session's own problem.
    """
    place = found.place
    for each in packs(place):
        shown, then = printable(str(each.path)), "compare it with the session, then move it away"
        if each.told is None:
            if found.is_gone:
                then = "restore the session, then run `sessrotate doctor` again"
                yield each.path, f"No record explains {shown}: {then}."
            elif found.problem is None:
                yield each.path, late_lines.held(each.path)
            continue
        now, source = each.path.lstat(), _written(found, each.told)
        if now.st_nlink != 1:
            yield each.path, f"{shown} has another name, a hard link: {then}."
        elif source is None and now.st_mtime_ns != each.told.modified:
            edited = f"A program edited {shown}, a live file that was replaced"
            yield each.path, f"{edited}: {then}."
        elif source is not None and source.size() > each.told.mark.size:
            yield from ((each.path, why) for why in _torn(found, source, shown, then))


def _torn(found: State, source: Source, shown: str, then: str) -> Iterator[str]:
    """Say why what came to a file that waits does not come over: half a line is in the way."""
    live = found.place.live
    if _is_torn(found.live):
        end = f"`echo >> {quoted(live)}`, then `sessrotate run`"
        torn = f"{printable(str(live))} ends with half a line"
        yield f"{torn}, so late lines in {shown} wait. {_IF_NONE} {end}."
    elif _is_torn(source):
        torn = f"{shown}, a live file that was replaced, ends with half a line"
        yield f"{torn}. {_IF_NONE} {then}."


def _written(found: State, told: Waiting) -> Source | None:
    """Return a file that waits and got lines; None if it is as the record says, or was edited."""
    return next((source for each, source in found.written if each == told), None)


def _goes_behind(live: Source, path: Path, size: int, *, is_rest: bool) -> bool:
    """Tell whether a live file of so many bytes still ends where a line, or its rest, may go."""
    now = os.fstat(live.fd)
    is_same = now.st_size == size
    if now.st_size > size and not is_rest:
        is_same = os.pread(live.fd, 1, now.st_size - 1) == b"\n"
    return is_same and fs.same_as(now)(path)


def _is_torn(source: Source | None) -> bool:
    """Tell whether a file ends with half a line."""
    size = 0 if source is None else source.size()
    return source is not None and size > 0 and source.read_at(size - 1, 1) != b"\n"


def _opened(place: Place, path: Path) -> Source:
    return Source.inside(place.archive, f"{names.WAITING}/{path.name}")


def _brought_over(place: Place, told: Waiting) -> Waiting:
    """Append what came to a file that waits; return what is told then, which may be the same.

    Half a line waits for its other half: a client would write its next line behind it.
    """
    while True:
        with state.opened(place) as found:
            pack, live = _written(found, told), found.live
            # What was trimmed may have them: it is put together first.
            is_its_own = found.problem is None and not found.is_gone and not found.kept
            if live is None or not is_its_own or found.is_away or found.intent is not None:
                return told
            if pack is None:  # nothing came, or it is none of ours any more
                return told
            here = pack.identity()
            if told.batch is not None and (again := said_again(told.batch, pack, 0, live)):
                fs.append(place.live, again)
                continue
            (late, is_rest), size = of_waiting(told, pack, live), live.size()
            start = late.start
            end = batch_end(pack, start, pack.line_start(late.end, start))
            if end <= start or (_is_torn(live) and not is_rest):  # a client is writing a line
                # A batch says where in this live file it is: the next one may have less before it.
                mark = Mark.of_pieces(pack.pieces(Span(0, start)))
                now = replace(told, mark=mark, modified=here.modified_ns, batch=None)
                if now != told:
                    _write(place, now)
                return now
            data = pack.read_at(start, end - start)
            told = replace(told, batch=Batch(Span(start, end), size))
            _write(place, told)
            if _goes_behind(live, place.live, size, is_rest=is_rest):  # to write that took a while
                fs.append(place.live, data)


def _write(place: Place, now: Waiting) -> None:
    """Have the record say this of a file that waits."""
    others = [each for each in record.told(place.archive).waiting if each.number != now.number]
    change_record(place, waiting=(*others, now))


def _clean(place: Place) -> None:
    """Forget the files that have gone, and remove the folder if it is empty."""
    told = record.told(place.archive).waiting
    there = {each.path.name for each in packs(place)}
    left = tuple(each for each in told if str(each.number) in there)
    if left != told:
        change_record(place, waiting=left)
    if place.waiting.is_dir() and not place.waiting.is_symlink():
        fs.remove_folder(place.waiting)
