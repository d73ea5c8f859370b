"""What holds a session → its history, part by part, and the session's exact bytes from it.

Promise: whoever reads, stitches, verifies or searches walks over the same parts, whatever holds the
session. What comes out is right or ends in an error: damage inside of a segment is found at the
latest behind its last byte. A set of another tool has no digests, so that it comes out only where
the caller accepts that.

Rule: only reads. A segment's file is opened when its bytes are asked for, not before; the segments
of a live file are looked for when somebody asks for them, since it is read for that. What another
run moves away meanwhile is not damaged: who reads is told to try again. What came late to a
replaced file, and the live file has yet to get, is read from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from sessrotate.archive import live_tail, state
from sessrotate.archive.state import State
from sessrotate.clients.protocol import Client
from sessrotate.errors import DamagedError, InUseError, StorageError, printable, storage
from sessrotate.model import Boundary, Segment, Span
from sessrotate.segments import (
    HARMLESS,
    READABLE,
    Problem,
    SegmentFile,
    SegmentSet,
    body,
    client_of,
    load,
    scan,
    unreadable,
)
from sessrotate.system import locks
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source

if TYPE_CHECKING:
    OnGap = Callable[[str], None]
    """Is called with a sentence for each run of segments that is left out."""
    Progress = Callable[[int], None]
    """Is called with the number of bytes of the history that are done."""
    Pieces = Callable[[], Iterable[bytes | memoryview]]
    """Gives a segment's bytes from their beginning; each piece is valid until the next."""


# ── the parts ────────────────────────────────────────────────────────────────────────────────


SegmentState = Literal["live", "sealed"]


class SegmentInfo(Struct, frozen=True):
    """What is known about one segment of a session without reading it.

    A segment is everything between two compactions. `first_timestamp` and `last_timestamp` are the
    times of its first and last dated records, ISO 8601 as the client wrote them; None if there
    are none, or if the archive does not have them.
    """

    index: int
    """The segment's number; 0 is the oldest."""
    bytes: int | None
    """Size in the history, uncompressed and without a header; None where only reading tells."""
    boundary: Boundary | None
    """The compaction that opens the segment; None for segment 0."""
    first_timestamp: str | None
    last_timestamp: str | None
    standing: SegmentState
    """`live` if the segment is in the client's own file, `sealed` if it is in a file of its own."""
    lines: int | None = None
    """How many lines it has, None where no manifest has counted them."""


class OpenSegment(Struct, frozen=True):
    """A segment of an open session. `problem` says why it cannot be read, None if it can.

    One that was pruned has a problem, too, and is missing on purpose.
    """

    info: SegmentInfo
    pieces: Pieces
    problem: str | None = None
    is_pruned: bool = False


class Loose(Struct, frozen=True):
    """Lines of a history that are not in a sealed segment, and what reads a span of them.

    They stand in `span` of the live `file`; that is None where they are in another one.
    """

    span: Span
    read: Callable[[Span], Iterable[bytes | memoryview]]
    file: Source | None = None


def _sealed(segment: Segment, lines: int | None) -> SegmentInfo:
    """Return what is known of a sealed segment by its manifest."""
    return SegmentInfo(
        segment.index,
        segment.span.size,
        segment.boundary,
        segment.first_timestamp,
        segment.last_timestamp,
        "sealed",
        lines,
    )


def of_live(
    source: Source, client: Client, prefix: int, first: int, start: int, *, is_cut: bool = False
) -> Iterator[OpenSegment]:
    """Yield the segments of a live file from offset `prefix` on: `start` in the history.

    `first` is the number of the first one, and `is_cut` as in `plan.spans`. The file is read once
    to find them. Raises what `scan.scan` raises.
    """
    with storage("read the session"):
        scanned = scan.scan(source, client, lambda _done: None)
        segments = live_tail.segments(
            source, client, scanned, prefix, number=first, start=start, is_cut=is_cut
        )
    for segment in segments:
        known, span = replace(_sealed(segment, None), standing="live"), segment.span
        if segment.boundary is not None:
            known = replace(known, boundary=replace(segment.boundary, offset=span.start))
        here = Span(span.start - start + prefix, span.end - start + prefix)
        yield OpenSegment(known, partial(source.pieces, here))


# ── what came late to a replaced file ────────────────────────────────────────────────────────


def interrupted(found: State) -> Iterator[Problem]:
    """Yield a problem if a run was interrupted, unless one is at work just now."""
    is_begun = found.intent is not None or found.pack is not None
    if is_begun and not locks.is_held(found.place.lock):
        name = printable(found.place.session)
        finishes = f"`sessrotate {found.finished_by} {name}` finishes it."
        yield Problem("leftover", f"A run was interrupted: {finishes}")


def with_late(last: OpenSegment, loose: Iterable[Loose]) -> OpenSegment:
    """Return the last segment with these lines behind it."""
    parts = [partial(each.read, each.span) for each in loose]
    size = (last.info.bytes or 0) + sum(each.span.size for each in loose)
    known = replace(last.info, bytes=size, lines=None)
    return replace(last, info=known, pieces=partial(_chained, last.pieces, *parts))


def _chained(*parts: Pieces) -> Iterator[bytes | memoryview]:
    return chain.from_iterable(part() for part in parts)


# ── holders ──────────────────────────────────────────────────────────────────────────────────


_ALLOWABLE: Final = {
    "pruned": "Pass --allow-gaps to leave out what was pruned.",
    "unproven": "Pass --allow-gaps to stitch it anyway.",
    "cut": "Pass --allow-gaps to stitch the rest.",
}
"""Kinds of problems that a caller may accept, and how."""

_OTHER: Final = "The digest of the whole session does not match the one in manifest.json."


class Holder(Struct, frozen=True):
    """What holds a session, open for reading: a file, a folder of segments, or a live file's parts.

    * `session`: its id, None where only the file's name says it.
    * `sealed`: the segments that have a file of their own, or will, in order.
    * `loose`: the lines behind them, in order.
    * `problems`: what is wrong, as far as that is known without reading on.
    * `size`: how many bytes `stream` will yield, 0 where only reading tells.
    * `digest`: that of all bytes together, None where nothing says it.
    * `refusal`: why the bytes come out only where gaps are accepted, whatever is wrong.
    * `state`: what was found of a session in its client's folder, if an archive has a part of it.
    """

    session: str | None
    client: Client
    sealed: tuple[OpenSegment, ...] = ()
    loose: tuple[Loose, ...] = ()
    problems: tuple[Problem, ...] = ()
    size: int = 0
    digest: str | None = None
    refusal: str | None = None
    state: State | None = None

    @property
    def file(self) -> Source | None:
        """The file of a session that was never split, None of any other."""
        is_one = self.state is None and not self.sealed and self.loose
        return self.loose[0].file if is_one else None

    @property
    def pruned(self) -> int:
        """How many segments were pruned."""
        return sum(each.is_pruned for each in self.sealed)

    def check(self) -> None:
        """Raise DamagedError if no part of the session can be read."""
        for problem in self.problems:
            if problem.index is None and problem.kind not in READABLE:
                raise DamagedError(problem.detail)

    def segments(self) -> list[OpenSegment]:
        """Return all segments, the live ones last; a live file is read once to find them.

        Raises as `check` and `scan.scan` do.
        """
        self.check()
        if not self.loose:
            return [*self.sealed]
        live, *late = self.loose
        if live.file is None:
            return [*self.sealed[:-1], with_late(self.sealed[-1], self.loose)]
        place = sum(each.info.bytes or 0 for each in self.sealed)
        is_cut = self.state is not None and self.state.has_gap
        prefix, number = live.span.start, len(self.sealed)
        found = of_live(live.file, self.client, prefix, number, place, is_cut=is_cut)
        *before, last = [*self.sealed, *found]
        return [*before, with_late(last, late) if late else last]

    def stream(self, on_gap: OnGap | None = None) -> Iterator[memoryview]:
        """Yield the session's bytes in pieces, each valid until the next is asked for.

        A session in place may be in the middle of a rotation, by a process that still runs or that
        died. `on_gap` is called for segments that were pruned, which are then left out, and for a
        set without digests; if it is None, both are errors. Raises DamagedError, with a sentence
        that names the segment, if anything is missing or has changed: before the first byte where
        that is known beforehand.
        """
        self._accept(on_gap)  # before the first byte: what goes into a pipe cannot be taken back
        whole = Fingerprint()
        for _, problem, pieces in self._parts():
            for piece in pieces() if problem is None else ():
                if self.digest is not None:
                    whole.update(piece)
                yield memoryview(piece)
        if self.digest not in {None, whole.digest} and not self.pruned:
            raise DamagedError(_OTHER)

    def verify(self, progress: Progress) -> list[Problem]:
        """Read every segment and return all that is wrong; an empty list if nothing is.

        A file that was never split has nothing to be compared with.
        """
        refused = [] if self.refusal is None else [Problem("unfinished", self.refusal)]
        problems, whole, done = [*refused, *self.problems], Fingerprint(), 0
        for index, problem, pieces in self._parts() if self.file is None else ():
            try:
                for piece in pieces() if problem is None else ():
                    if self.digest is not None:
                        whole.update(piece)
                    done += len(piece)
                    progress(done)
            except DamagedError as error:
                problems.append(Problem("changed", str(error), index))
        was_read = all(each.kind in {"leftover", "cut"} for each in problems)  # nor pruned
        if was_read and self.digest not in {None, whole.digest}:
            problems.append(Problem("manifest", _OTHER))
        return problems

    def _parts(self) -> Iterator[tuple[int | None, str | None, Pieces]]:
        """Yield all parts: the segment's number, why it cannot be read, and what reads it."""
        for each in self.sealed:
            yield each.info.index, each.problem, each.pieces
        for rest in self.loose:
            yield None, None, partial(rest.read, rest.span)

    def _accept(self, on_gap: OnGap | None) -> None:
        if self.refusal is not None and on_gap is None:
            raise DamagedError(self.refusal)
        for problem in self.problems:
            if on_gap is not None and (self.refusal is not None or problem.kind in _ALLOWABLE):
                on_gap(problem.detail)
            elif problem.kind in _ALLOWABLE:
                raise DamagedError(f"{problem.detail} {_ALLOWABLE[problem.kind]}")
            elif problem.kind not in HARMLESS:
                raise DamagedError(problem.detail)


# ── the holders ──────────────────────────────────────────────────────────────────────────────


def of_file(source: Source, client: Client) -> Holder:
    """Return the holder of a session file that was never split."""
    size = source.size()
    return Holder(None, client, loose=(Loose(Span(0, size), source.pieces, source),), size=size)


def of_set(segments: SegmentSet) -> Holder:
    """Return the holder of a folder of segments, written by `split` or by another tool."""
    client = client_of(segments.folder, segments.parts, segments.client)
    problems = unreadable(segments)
    return Holder(
        segments.session,
        client,
        tuple(
            OpenSegment(
                _info(segments, client, part),
                partial(body, segments, part),
                problems.get(part.index),
                is_pruned=part.pruned is not None,
            )
            for part in segments.parts
        ),
        problems=segments.problems,
        size=segments.source_bytes or 0,
        digest=segments.source_digest,
    )


def of_state(found: State) -> Holder:
    """Return the holder of a session in its client's folder of which an archive has a part."""
    session, client = found.place.session, found.place.client.files
    if found.problem is not None:
        problems = (Problem("live", found.problem),)
        return Holder(session, client, problems=problems, state=found)
    sealed, loose, wrong = list[OpenSegment](), list[Loose](), list[Problem]()
    if found.listed is not None:
        segments = load.of_manifest(found.place.archive, found.listing, found.listed)
        wrong += (each for each in segments.problems if each.kind != "cut")
        lost = unreadable(segments)
        for part in segments.parts:
            info, problem = _info(segments, client, part), lost.get(part.index)
            read = partial(_of_one_moment, found, partial(body, segments, part))
            sealed.append(OpenSegment(info, read, problem, is_pruned=part.pruned is not None))
    if found.live is not None:
        read_live = partial(_of_one_moment, found, found.live.pieces)
        loose.append(Loose(Span(found.prefix, found.live.size()), read_live, found.live))
    loose += (Loose(span, source.pieces, None) for source, span in found.late)
    loose = [each for each in loose if each.span.size]
    return Holder(
        session,
        client,
        tuple(sealed),
        tuple(loose),
        problems=(*interrupted(found), *wrong, *found.cuts),  # the state knows of more cuts
        size=sum(each.info.bytes or 0 for each in sealed if not each.is_pruned)
        + sum(each.span.size for each in loose),
        state=found,
    )


def _info(segments: SegmentSet, client: Client, part: SegmentFile) -> SegmentInfo:
    """Return what a manifest says of a segment, or else its first line."""
    if part.segment is not None:
        return _sealed(part.segment, part.lines)
    opening: Boundary | None = None
    if part.index and part.file is not None:
        with suppress(DamagedError, StorageError):  # whoever reads it says so
            opening = scan.boundary(client, partial(body, segments, part))
    time = opening.timestamp if opening is not None else None
    return SegmentInfo(part.index, part.size, opening, time, None, "sealed")


def _of_one_moment(
    found: State, read: Callable[..., Iterable[bytes | memoryview]], *what: Span
) -> Iterator[bytes | memoryview]:
    """Yield what is read of a session; raise InUseError if another run moved it meanwhile."""
    try:
        yield from read(*what)
    except DamagedError:
        if state.is_replaced(found):
            raise InUseError("The session was replaced while it was read; try again.") from None
        raise
