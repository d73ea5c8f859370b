"""A rotation in place: read and planned, then carried out.

Rule: what a resume needs stays where the client looks, everything else goes to the archive, and
until the swap nothing is touched but our own new files. `prepare()` says all that will be done, and
what speaks against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Final

from msgspec import Struct

from sessrotate import clients, fs, names
from sessrotate.archive import live_tail, restored
from sessrotate.archive.place import Place
from sessrotate.archive.record import HEAD, Intent, Mark, Swap
from sessrotate.archive.state import State
from sessrotate.clients.in_place import NEXT_COMPACTION, Archived, Carried, LivePlan
from sessrotate.errors import DamagedError, InUseError, RefusedError, printable, storage
from sessrotate.in_place import obstacles, sealed_segments, swap, waiting
from sessrotate.in_place.obstacles import strangers
from sessrotate.in_place.sealed_segments import Copying
from sessrotate.model import FileIdentity, SealedSegment, Segment, Span
from sessrotate.segments import compressed, headers, manifest, scan
from sessrotate.segments.headers import LiveHeader
from sessrotate.segments.manifest import Manifest
from sessrotate.system import in_use, locks
from sessrotate.system.digest import ZERO, Fingerprint, Tally
from sessrotate.system.source import Source
from sessrotate.units import amount

# ── rows of the archive ──────────────────────────────────────────────────────────────────────


def archived_rows(found: State, listed: Sequence[SealedSegment], *, is_cut: bool) -> Archived:
    """Return what of the archive would be in the live file if it had not been rotated.

    What its client cut out (`is_cut`: since the last rotation) and all before would not.
    """
    gap = max((at for at, each in enumerate(listed) if each.segment.is_cut), default=0)
    there = () if is_cut else listed[gap:]
    return Archived(
        sum(each.segment.span.size for each in there),
        partial(_older, found, listed),
        lambda: any(says for _, says in _said(found, there)),
        lambda: next((index for index, says in _said(found, there) if not says), 0),
    )


def _said(found: State, archived: Sequence[SealedSegment]) -> Iterator[tuple[int, bool]]:
    """Yield the numbers of segments, the newest first, and if their compactions say what they kept.

    Those that cannot be looked into are passed over.
    """
    for entry in reversed(archived):
        if entry.segment.boundary is None:
            continue
        with compressed.sealed(found.place.archive, found.place.session, entry) as source:
            if source is not None:
                start = source.size() - entry.segment.span.size
                line = Span(start, source.line_end(start, source.size()))
                yield entry.segment.index, found.place.client.resume.says_at(source, line)


def _older(found: State, archived: Sequence[SealedSegment]) -> Iterator[tuple[int, Source | None]]:
    """Yield the sealed segments, the newest first; None for one that cannot be looked into."""
    for entry in reversed(archived):
        with compressed.sealed(found.place.archive, found.place.session, entry) as source:
            yield entry.segment.index, source


def carried_lines(
    lines: Iterable[Carried],
    archived: Sequence[SealedSegment],
    place: Place,
    live_file: Source,
) -> Iterator[bytes]:
    """Yield lines, newlines included, from wherever they stand.

    Raises DamagedError if a segment cannot be read any more.
    """
    for index, group in groupby(lines, key=lambda entry: entry.segment):
        spans = [Span(entry.span.start, entry.span.end + 1) for entry in group]
        if index is None:
            for span in spans:
                yield from live_file.pieces(span)
            continue
        with compressed.sealed(place.archive, place.session, archived[index]) as segment:
            if segment is None:
                raise DamagedError(f"Segment {index} cannot be read any more.")
            for span in spans:
                yield from segment.pieces(span)


# ── the plan ─────────────────────────────────────────────────────────────────────────────────


BUFFER: Final = 256 * 1024

_WAITS: Final = (
    "A program may still write to a replaced live file in the archive: close that program, or try "
    "again in a day."
)
_TOO_MANY: Final = (
    "The archive has more segments than a manifest can list: `restore` joins them again."
)
_ADOPT: Final = "--unsafe-adopt puts that archive aside and starts a new one."


class RotationPlan(Struct, frozen=True):
    """A whole rotation, decided and not yet done.

    `prefix` is how many bytes of the live file are no part of the history. `archived` are the
    segments that are in the archive already, `segments` those that go there, in offsets of the
    whole history, and `newest` is the one that stays live. `taken` are the first of `segments`
    that the archive still has. `live` says where to cut and what to carry, in offsets of the live
    file; it is None if there is nothing to do. `puts_aside` says that the live file is taken for
    the whole history, whatever the archive holds. `lacks` is the number of the gone segment that
    may have had a row which a resume needs. Replaced files of `waiting` bytes are not free yet.
    """

    session: str
    client: str
    source: FileIdentity
    end: int
    prefix: int
    archived: tuple[SealedSegment, ...]
    segments: tuple[Segment, ...]
    newest: Segment
    live: LivePlan | None
    opaque_lines: int
    puts_aside: bool
    refusals: tuple[str, ...]
    lacks: int | None = None
    waiting: int = 0
    taken: tuple[SealedSegment, ...] = ()

    @property
    def heals(self) -> bool:
        """Whether rows come back from the archive, or the first prompt goes there."""
        return self.live is not None and not self.segments

    @property
    def to_seal(self) -> tuple[Segment, ...]:
        """The segments that the archive does not have yet."""
        return self.segments[len(self.taken) :]

    @property
    def since(self) -> str:
        """Since when a session with nothing to cut was not compacted, as a sentence ends."""
        if self.segments and self.segments[0].is_cut:
            return "since its client cut it"
        return "since the last rotation" if self.archived else "yet"

    @property
    def start(self) -> int:
        """Where in the history the live file's body begins, in bytes."""
        return self.archived[-1].segment.span.end if self.archived else 0

    def in_live(self, span: Span) -> Span:
        """Return where in the live file a part of the history stands that is not archived yet."""
        shift = self.prefix - self.start
        return Span(span.start + shift, span.end + shift)

    @property
    def first(self) -> int:
        """The number of the first segment that the archive does not have yet."""
        return len(self.archived) + len(self.taken)

    @property
    def moved(self) -> int:
        """How many bytes of the history go to the archive."""
        return sum(segment.span.size for segment in self.segments)

    @property
    def carried_bytes(self) -> int:
        """How many bytes are in the archive and stay live too."""
        return sum(entry.span.size + 1 for entry in self.live.carried) if self.live else 0

    @property
    def bytes_after(self) -> int:
        """How large the live file will be, in bytes."""
        if self.live is None:
            return self.end
        head = len(headers.live_line(_header(self, ZERO, ZERO, ZERO)))
        return head + self.carried_bytes + self.newest.span.size


def prepare(
    found: State,
    progress: Callable[[int], None],
    *,
    adopt: bool = False,
    heal: bool = True,
    proves: bool = True,
) -> RotationPlan:
    """Read a session once and return the plan of its rotation; nothing is written.

    `progress` is told how many bytes are done. With `adopt`, a live file that does not go on from
    its archive is taken for the whole history; with `heal`, and nothing to cut, rows come back that
    a resume lacks (`rewound`). Unless it `proves` them, archived segments are not read. Raises
    NotASessionError if no known client wrote it, InUseError if it shrinks or is replaced meanwhile.
    """
    source, problem, client = live_source(found), found.problem, found.place.client
    identity = source.identity()
    archived = found.listed.segments if found.listed is not None and problem is None else ()
    prefix = found.prefix if problem is None else found.own
    first, second = (partial(_halved, progress, size) for size in (0, identity.size))
    with storage("read the session"):
        scanned = client.resume.of_conversation(scan.scan(source, client.files, first), prefix)
        if not scanned.boundaries:
            clients.client_of(source)
        is_cut = problem is None and found.has_gap
        segments = live_tail.segments(
            source,
            client.files,
            scanned,
            prefix,
            number=len(archived),
            start=archived[-1].segment.span.end if archived else 0,
            is_cut=is_cut,
        )
        live_plan, lacks, refusals = None, None, list[str]()
        taken, is_left = tuple[SealedSegment, ...](), False
        last = scanned.boundaries[-1].offset if scanned.boundaries else 0
        if last > prefix or (heal and archived and last == prefix):
            live_plan = client.resume.plan(
                source,
                [boundary.offset for boundary in scanned.boundaries],
                scanned.end,
                archived_rows(found, archived, is_cut=is_cut),
                prefix=prefix,
                judged=found.judged if prefix else 0,
                progress=second,
            )
            live_tail.check_unshifted(source, client.files, scanned.boundaries[-1], scanned.end)
            heals = live_plan.reaches_back or live_plan.misleads
            if last == prefix and (live_plan.hidden is not None or not heals):
                lacks, live_plan = live_plan.hidden, None
    if live_plan is not None:
        refusals += obstacles.of(found.place, source, int(found.pack is not None))
        refusals += [*live_plan.refusals, *_copied(archived, segments)]
        taken = restored.taken_over(found, segments[:-1], len(archived), proves=proves)
        is_left = not taken and restored.is_left(found)
        problem = problem or (None if is_left else strangers(found, segments[len(taken) : -1]))
    if problem and not adopt:
        refusals.append(problem if "`sessrotate" in problem else f"{problem} {_ADOPT}")
    if is_left and any(waiting.packs(found.place)):
        refusals.append(_WAITS)
    return RotationPlan(
        session=found.place.session,
        client=client.files.NAME,
        source=identity,
        end=scanned.end,
        prefix=prefix,
        archived=archived,
        segments=segments[:-1],
        newest=segments[-1],
        live=live_plan,
        opaque_lines=scanned.opaque_lines,
        puts_aside=is_left or (problem is not None and adopt and bool(found.listing)),
        refusals=tuple(refusals),
        lacks=lacks,
        waiting=0 if live_plan is None else waiting.kept(found),
        taken=() if problem is not None and adopt else taken,
    )


def _halved(progress: Callable[[int], None], before: int, done: int) -> None:
    progress((before + done) // 2)  # it is read twice


def _copied(archived: tuple[SealedSegment, ...], segments: tuple[Segment, ...]) -> Iterator[str]:
    """Say if the last boundary is an older one, written again (2.1.112): the newest is before."""
    parts = [*(entry.segment for entry in archived), *segments]
    *earlier, last = (part.boundary and part.boundary.uuid for part in parts)
    if last is not None and last in earlier and last != earlier[-1]:  # the newest is as good
        yield f"The last compaction in the file is a copy of an earlier one. {NEXT_COMPACTION}"


def live_source(found: State) -> Source:
    """Return the open live file; raise RefusedError if there is none."""
    if found.live is None:
        name = printable(str(found.place.live))
        raise RefusedError(f"{name} is gone: `restore` brings it back from its archive.")
    return found.live


# ── carrying it out ──────────────────────────────────────────────────────────────────────────


def execute(
    planned: RotationPlan,
    found: State,
    wait: float,
    progress: Callable[[int], None],
    *,
    live: bool = False,
) -> float:
    """Carry out a plan on the session that it was made for, whose lock is held.

    Returns for how many seconds a client may have had to wait. `wait` is how many seconds to wait
    for a moment without a writer; `progress` is told how many bytes of the history are done.
    Raises RefusedError if the plan must not be carried out, InUseError if somebody uses the
    session, StorageError as the system reports. Until the swap everything is undone then; after
    it, the next run finishes.
    """
    source, place = live_source(found), found.place
    check(planned, place, wait, live=live)
    # The history is read twice: to know what is in it, then to copy it.
    first, second = (partial(_halved, progress, before) for before in (0, planned.moved))
    with storage("rotate the session"):
        # Before anything is written: whoever has it open for writing would stop the swap.
        if in_use.lease_from_writers(source, wait) == "taken":
            locks.release_lease(source.fd)
        sealed = _sealed(planned, source, first)
        with swap.undone_unless_swapped(place, source):
            fs.create_folder(place.archive)
            with fs.Draft(place.draft) as draft:
                listed = _manifest(planned, found, sealed)
                if len(data := manifest.dump(listed)) > manifest.MAX_BYTES:
                    raise RefusedError(_TOO_MANY)
                copying = Copying(
                    archive=place.archive,
                    source=source,
                    manifest=listed,
                    entries=listed.segments[planned.first :],
                    shift=planned.prefix - planned.start,
                    spare=planned.bytes_after,
                )
                sealed_segments.write(copying, second)
                begun = _write(planned, found, source, listed, draft)
                swap.begin(place, source, begun)
                if begun.count:  # before the swap: nothing behind it needs room
                    fs.create_file_at_once(place.archive / names.MANIFEST, data)
                sealed_segments.name(copying)
                return swap.swap(place, source, draft, begun, was=planned.source, wait=wait)


def check(planned: RotationPlan, place: Place, wait: float = 0, *, live: bool) -> None:
    """Raise what keeps a plan from being carried out now: RefusedError, or InUseError.

    `wait` is how many seconds to wait for those who have the live file open for writing. With
    `live`, a client may run: that nobody writes is then left to the lease to prove.
    """
    if planned.refusals:
        raise RefusedError(" ".join(planned.refusals))
    if planned.live is not None and not live:
        in_use.check_unused(place, planned.source, wait=wait)
    # Each rotation has another file wait: it would take room instead of freeing it.
    if planned.moved and planned.waiting > planned.start + planned.end:
        raise InUseError(
            "A program may still write to replaced live files, which hold "
            f"{amount(planned.waiting)}, more than the whole session. They are removed once "
            "nobody has written to them for a day: try again then."
        )


def _sealed(
    planned: RotationPlan, source: Source, progress: Callable[[int], None]
) -> tuple[SealedSegment, ...]:
    """Return the segments that go to the archive with their digests, read once more for it."""
    buffer, sealed, done = bytearray(BUFFER), [], 0
    with memoryview(buffer) as view:
        for segment in planned.segments:
            tally, span = Tally(), planned.in_live(segment.span)
            for start in range(span.start, span.end, BUFFER):
                size = min(BUFFER, span.end - start)
                source.fill(view[:size], start)
                tally.update(buffer, size)
                progress(done + start + size - span.start)
            done += span.size
            sealed.append(SealedSegment(segment, tally.digest, tally.lines, "zstd"))
    if any(one.digest != new.digest for one, new in zip(planned.taken, sealed, strict=False)):
        raise InUseError("The session was changed while it was read; try again.")
    return (*planned.taken, *sealed[len(planned.taken) :])


def _header(planned: RotationPlan, parent: str, carried: str, boundary: str) -> LiveHeader:
    opening = planned.newest.boundary
    oldest = (*(entry.segment for entry in planned.archived[:1]), *planned.segments)[0]
    return LiveHeader(
        root=planned.session,
        index=planned.newest.index,
        # By the first time in a file programs know when its session began.
        timestamp=oldest.first_timestamp or (opening.timestamp if opening else None),
        start=planned.newest.span.start,
        parent_digest=parent,
        carried_bytes=planned.carried_bytes,
        carried_digest=carried,
        boundary_digest=boundary,
        judged_bytes=planned.newest.span.size,
    )


def _write(
    planned: RotationPlan,
    found: State,
    source: Source,
    listed: Manifest,
    draft: fs.Draft,
) -> Intent:
    """Write the new live file, on the disk when this returns; return what is going to happen."""
    if (live_plan := planned.live) is None:
        raise DamagedError("There is nothing to cut.")
    carry = partial(carried_lines, live_plan.carried, planned.archived, found.place, source)
    carried = Fingerprint()
    for piece in carry():
        carried.update(piece)
    line = Span(live_plan.cut, source.line_end(live_plan.cut, planned.end) + 1)
    boundary = Mark.of(source.read_at(line.start, line.size))
    parent = listed.segments[-1].digest
    head = headers.live_line(_header(planned, parent, carried.digest, boundary.digest))
    draft.append(head)
    for piece in carry():
        draft.append(piece)
    tail = swap.append_tail(source, Span(live_plan.cut, planned.end), draft)
    draft.become_like(source.fd)
    draft.take_times(source.fd)
    draft.sync()
    fs.sync(source.fd)  # what others wrote to it
    live_tail.check_unshifted(
        source, found.place.client.files, planned.newest.boundary, planned.end
    )
    old = planned.prefix or min(HEAD, live_plan.cut)
    return Intent(
        operation="rotate",
        swap=Swap(
            old=Mark.of(source.read_at(0, min(HEAD, old))),
            new=Mark.of(head),
            cut=live_plan.cut,
            prefix=len(head) + planned.carried_bytes,
            tail=tail,
        ),
        first=planned.first,
        count=len(listed.segments) - planned.first,
    )


def _manifest(planned: RotationPlan, found: State, sealed: tuple[SealedSegment, ...]) -> Manifest:
    """Return what the archive's manifest will be."""
    return Manifest(
        session=planned.session,
        client=planned.client,
        layout="numbered",
        source_bytes=planned.newest.span.start,
        source_digest=None,
        segments=(*planned.archived, *sealed),
        project=found.place.project,
    )
