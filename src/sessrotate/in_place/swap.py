"""Replacing a live file by another with the same tail, while its client may be running.

Rule: the client's path always names a file, and that file lacks no line. The old file first gets a
second name (the pack), so that a line that is still written to it is not lost. The exchange of the
two names is the one moment that counts, and is undone if it was another file that came out. A lease
on the old file proves that nobody has it open for writing, and makes new writers wait; a lease on
the new file keeps their lines behind those that came late.

While the two names exchange their files, a crash may leave any of three files under the draft's
name: the new live file, the one that was replaced, or one that another program saved at that very
moment. The last is the newest of all, and nothing else has it: `recover` keeps it aside.

The order of writes, each on the disk before the next, is in docs/internals/protocol.md.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from sessrotate import fs, names
from sessrotate.archive import away_file, record
from sessrotate.archive.late_lines import begins_with, common, is_at
from sessrotate.archive.live_tail import first_line, has_all_of, holds
from sessrotate.archive.place import Place
from sessrotate.archive.record import Batch, Intent, Mark, Record
from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, InUseError, RefusedError, SessrotateError, printable
from sessrotate.in_place import aside
from sessrotate.in_place.obstacles import elsewhere, without_links
from sessrotate.model import FileIdentity, Span
from sessrotate.segments import headers, load, manifest
from sessrotate.system import in_use, locks
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source

_PIECE: Final = 256 * 1024
_LATE: Final = 0.8
"""Seconds for writers to be done with the old file after the rename; then a later run goes on."""


def append_tail(source: Source, span: Span, draft: fs.Draft) -> Mark:
    """Append the tail of an old file to the new one; return how it is recognised."""
    tail = Fingerprint()
    for piece in source.pieces(span):
        tail.update(piece)
        draft.append(piece)
    return Mark(span.size, tail.digest)


def begin(place: Place, old: Source, intent: Intent) -> None:
    """Give the old file its second name and write down what is going to happen.

    Until here, and after, up to the rename, all there is to undo is our own files.
    """
    try:
        fs.add_name(place.live, place.pack)
    except FileNotFoundError:
        raise _changed() from None
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise RefusedError(elsewhere(place)) from None
        if error.errno in fs.NO_LINKS:  # that the file is ours, and no fixed one, was seen before
            raise RefusedError(without_links(place)) from None
        raise
    if not _is_file(place.pack, old):
        if _is_file(place.live, old):  # a file system that has another file under a second name
            fs.remove_files(place.archive, [names.PACK])
            raise RefusedError(without_links(place))
        raise _changed()
    write_intent(place, intent)


def write_intent(place: Place, intent: Intent) -> None:
    """Write down what is under way."""
    change_record(place, intent=intent)


def end(place: Place, **changes: Any) -> None:
    """Write down that nothing is under way any more, once the client's database has followed.

    Raises as that does: then a later run goes on.
    """
    place.client.database.follow(place.live)
    change_record(place, intent=None, **changes)


def change_record(place: Place, **changes: Any) -> None:
    """Change these fields of the record, which goes once it says nothing any more.

    The caller holds the session's lock.
    """
    told = away_file.told(place)
    now = replace(told, project=place.project or told.project, **changes)
    if now == Record(now.session, now.project):
        fs.remove_files(place.archive, [names.RECORD])
    else:
        fs.create_file_at_once(place.archive / names.RECORD, record.dump(now))


def swap(
    place: Place,
    old: Source,
    draft: fs.Draft,
    intent: Intent,
    *,
    was: FileIdentity,
    wait: float,
    keeps: bool = False,
) -> float:
    """Let the draft take the live file's place, with all that has been written meanwhile.

    With `keeps`, or if the old file has one, it gets a second name, for a client that may trim it:
    at once, before anybody can open it where there are leases. Returns for how many seconds a
    client may have had to wait. `was` is what the old file was when it was planned, `wait` how many
    seconds to wait for a moment without a writer. Raises InUseError if there is none or the file is
    not what was planned any more, OSError as the system reports.
    """
    return _Swap(place, old, draft, intent).run(was, wait, keeps=keeps)


class _Swap:
    def __init__(self, place: Place, old: Source, draft: fs.Draft, intent: Intent) -> None:
        self._place, self._old, self._draft, self._intent = place, old, draft, intent
        self._tail = intent.swap.tail.size
        self._batch: Batch | None = None
        old.thaw()

    def run(self, was: FileIdentity, wait: float, *, keeps: bool) -> float:
        self._catch_up()
        self._journal()
        answer = in_use.lease_from_writers(self._old, wait)
        begun = time.monotonic()
        self._catch_up()
        self._journal()
        if answer == "taken":
            # Its only descriptor is ours, and from now on nothing here opens a file of this name.
            answer = locks.write_lease(self._draft.fd)
            if answer == "busy":
                raise _changed()
        now = self._old.identity()
        is_edited = now.size == was.size and now.modified_ns != was.modified_ns
        if is_edited:
            raise _changed()
        is_it = fs.same_as(os.fstat(self._old.fd))
        try:
            fs.take_place(self._place.draft, self._place.live, is_it)
        except fs.ReplacedError as error:
            raise self._replaced(error) from None
        self._keep_name(keeps=keeps)
        with suppress(OSError, SessrotateError):  # the end of the swap calls again
            self._place.client.database.follow(self._place.live)
        if answer == "taken":
            with suppress(OSError):  # what is left to do is found again, and done, by sealing
                self._drain()
            locks.release_lease(self._draft.fd)
        else:
            locks.settled(self._old.fd, answer)
        return time.monotonic() - begun

    def _keep_name(self, *, keeps: bool) -> None:
        live, session = self._place.live, self._place.session
        if keeps or self._place.client.trims.names_of(live, session, os.fstat(self._old.fd)):
            with suppress(OSError):  # where the file system has no second names
                fs.add_name(live, self._place.client.trims.new_name(live, session))

    def _replaced(self, error: fs.ReplacedError) -> InUseError:
        """Return the error that another program has just saved the live file.

        Our file may have had its name for a moment. If a client found it there, it stays.
        """
        locks.release_lease(self._draft.fd)  # who waits for it gets it now
        time.sleep(locks.GRACE)
        is_unwritten = (
            self._draft.size == self._size() and locks.write_lease(self._draft.fd) != "busy"
        )
        if error.kept is None and is_unwritten:
            return _changed()
        kept = printable(str(aside.keep(self._place, self._place.draft)))
        return InUseError(
            f"Another program saved {printable(str(self._place.live))} at the moment when it was "
            f"to be replaced. The saved file stays, and another version is in {kept}: "
            "compare the two, then remove that version."
        )

    def _catch_up(self) -> bool:
        """Make the new file's tail the same as the old one's; tell whether it was not."""
        cut, prefix = self._intent.swap.cut, self._intent.swap.prefix
        same = self._common()
        size = self._old.size() - cut
        if same == self._tail == size:
            return False
        if not self._is_kept(same):
            raise _changed()
        if same < self._tail:  # the client took back what it had written last
            self._check_unwritten()
            self._draft.cut_to(prefix + same)
        self._batch = Batch(Span(cut + same, cut + size), prefix + same) if same < size else None
        while same < size:
            data = self._old.read_at(cut + same, min(_PIECE, size - same))
            self._draft.append(data)
            same += len(data)
        self._tail = same
        return True

    def _is_kept(self, same: int) -> bool:
        """Tell whether the old file still has what the tail goes on from: a compaction, mostly."""
        return b"\n" in self._draft.read_at(self._intent.swap.prefix, min(same, _PIECE + 1))

    def _common(self) -> int:
        cut, prefix = self._intent.swap.cut, self._intent.swap.prefix
        most = min(self._tail, max(0, self._old.size() - cut))
        done = 0
        while done < most:
            size = min(_PIECE, most - done)
            ours, theirs = (
                self._draft.read_at(prefix + done, size),
                self._old.read_at(cut + done, size),
            )
            if ours != theirs:
                return done + common(ours, theirs)
            done += size
        return done

    def _journal(self) -> None:
        """See to it that the tail, and what the intent says of it, are on the disk."""
        self._draft.take_times(self._old.fd)
        if self._tail == self._intent.swap.tail.size and self._mark() == self._intent.swap.tail:
            return
        self._draft.sync()
        self._intent = replace(self._intent, swap=replace(self._intent.swap, tail=self._mark()))
        write_intent(self._place, self._intent)

    def _size(self) -> int:
        return self._intent.swap.prefix + self._tail

    def _mark(self) -> Mark:
        prefix, found = self._intent.swap.prefix, Fingerprint()
        for start in range(0, self._tail, _PIECE):
            found.update(self._draft.read_at(prefix + start, min(_PIECE, self._tail - start)))
        return Mark(self._tail, found.digest)

    def _drain(self) -> None:
        """Bring over what comes late, until nobody can write to the old file any more.

        Who waits for the old file's lease still gets the old file, so it must be let go first.
        """
        locks.release_lease(self._old.fd)
        deadline = time.monotonic() + _LATE
        while time.monotonic() < deadline:
            if locks.read_lease(self._old.fd) == "taken":
                time.sleep(locks.GRACE)
                if not locks.is_lease_wanted(self._old.fd) and self._brought_over():
                    locks.release_lease(self._old.fd)
                    return
                locks.release_lease(self._old.fd)
            time.sleep(locks.PAUSE)

    def _brought_over(self) -> bool:
        self._batch = None
        try:
            self._check_unwritten()
            if self._catch_up():
                self._check_unwritten()
                # What a client takes back from the new file later must not make this late again.
                self._journal()
        except InUseError:
            # What we copied may stand among a client's lines, or somebody undid the compaction in
            # the old file: a later run will see.
            if self._batch is not None:
                self._intent = replace(
                    self._intent, swap=replace(self._intent.swap, batch=self._batch)
                )
                write_intent(self._place, self._intent)
            return False
        return not locks.is_lease_wanted(self._old.fd)

    def _check_unwritten(self) -> None:
        """Raise InUseError if clients wrote to the new file already.

        Whoever stops us for long (45 s, /proc/sys/fs/lease-break-time) has its lease taken away.
        """
        if self._draft.size != self._size():
            raise _changed()


def _changed() -> InUseError:
    return InUseError("The session was changed while it was read; try again.")


@contextmanager
def undone_unless_swapped(place: Place, old: Source) -> Iterator[None]:
    """Remove what the block made, if it fails before the live file was replaced.

    An InUseError says that it is as another program left it. After anything else, only what has
    the live file's name can tell: if that is not the old file, the next run finds out. Raises an
    InUseError that says where the old file is kept, if only the pack names it.
    """
    try:
        yield
    except BaseException as error:
        kept = None
        with suppress(OSError, SessrotateError):
            is_undone = isinstance(error, InUseError) and os.path.lexists(place.draft)
            if is_undone or _is_file(place.live, old):
                kept = _kept(place, old)
                undo(place)
        if kept is not None:
            raise InUseError(f"{error} {aside.said(kept, place.live)}") from error
        raise


def _kept(place: Place, old: Source) -> Path | None:
    """Keep the old file if another program gave its name to a file that has less; return where.

    What a client cut out of its session, or wrote anew, is then in the pack only.
    """
    if not _is_file(place.pack, old) or _is_file(place.live, old):
        return None
    if os.fstat(old.fd).st_nlink > 1 + _is_file(place.draft, old):
        # It has a name that is not ours: its project was renamed, and may be renamed back; or its
        # client trimmed it, and it is to be put together.
        return None
    with ExitStack() as stack:
        live = None
        with suppress(SessrotateError):  # gone, or a link
            live = stack.enter_context(Source.itself(place.live))
        is_there = is_superfluous(live, old, place.session)
        return None if is_there else aside.keep(place, place.pack)


def undo(place: Place) -> None:
    """Remove what was made for a swap that did not take place; then it is under way no more.

    Whoever calls this has seen that all of the pack is in the live file, or kept it. Copies go
    before it, and without a pack none does: nobody could tell then what they are copies of. They go
    before the manifest lists them no more, which may need the room that they took. The draft goes
    behind the pack: what then has its name is ours, since nothing was exchanged.
    """
    with suppress(FileNotFoundError):
        there = {each.name for each in place.archive.iterdir()}
        begun = record.told(place.archive).intent
        leftovers = {*filter(names.is_leftover, there)}
        if begun is not None and begun.count and names.PACK in there:
            first = max(begun.first, _counted(place))
            uncount(place, first, begun.first + begun.count - first)
        fs.remove_files(place.archive, sorted(leftovers & {names.PACK}))
        fs.remove_files(place.archive, sorted(leftovers - {names.PACK}))
        if begun is not None:
            end(place)
        fs.remove_folder(place.archive)


def _counted(place: Place) -> int:
    """Return how many segments the file that was to be replaced counts: those never go."""
    with Source.inside(place.archive, names.PACK) as pack:
        header = headers.parse_live(first_line(pack), place.session)
        return 0 if header is None else header.index


def uncount(place: Place, first: int, count: int) -> None:
    """Remove `count` segments from number `first` on, the last ones, which the live file has.

    Then the manifest lists them no more; one that is damaged stays as it is.
    """
    numbers = range(first, first + count)
    files = (names.sealed_file(place.session, number) for number in numbers)
    fs.remove_files(place.archive, [name for name in files if (place.archive / name).exists()])
    with suppress(DamagedError):
        listed = manifest.parse(load.read_small(place.archive, names.MANIFEST, manifest.MAX_BYTES))
        before = manifest.until(listed, first)
        if before is None:
            fs.remove_files(place.archive, [names.MANIFEST])
        elif before != listed:
            fs.create_file_at_once(place.archive / names.MANIFEST, manifest.dump(before))


def _is_file(path: Path, source: Source) -> bool:
    return fs.same_as(os.fstat(source.fd))(path)


# ── what a crash left ─────────────────────────────────────────────────────────────────────────────


def is_superfluous(live: Source | None, pack: Source, session: str) -> bool:
    """Tell whether the live file is the pack, or has all that is in it."""
    if live is None:
        return False
    whole = [(pack, Span(0, pack.identity().size))]
    # A backup makes two files of two names.
    if live.identity().is_same_file(pack.identity()) or begins_with(live, whole):
        return True
    # A session that was restored has all that came behind the header. Nobody may write to it now.
    answer = locks.read_lease(pack.fd)
    if answer == "taken":
        locks.release_lease(pack.fd)
    return answer == "taken" and has_all_of(live, None, None, pack, session)


def is_new(found: State, begun: Intent, draft: Source) -> bool:
    """Tell whether a file holds all that the new one of a swap did, and nothing else."""
    swap, size = begun.swap, draft.size()
    if size != swap.prefix + swap.tail.size or not is_at(draft, swap.prefix, swap.tail):
        return False
    if begun.operation == "restore":
        return found.manifest is not None and holds(draft, found.manifest.segments)
    if swap.new.size == swap.prefix:
        return is_at(draft, 0, swap.new)
    head = headers.parse_live(first_line(draft), found.place.session)
    carried = None if head is None else Mark(head.carried_bytes, head.carried_digest)
    return is_at(draft, 0, swap.new) and bool(carried and is_at(draft, swap.new.size, carried))
