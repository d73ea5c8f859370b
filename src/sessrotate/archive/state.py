"""A session in place as it is now: its live file, its archive, and what was left half-way.

Promise: plain data. All that has to be read to know where the session stands is read once, when it
is opened. In comes a `Place`; out comes a `State`, of one moment.

Rule: only reads, and the live file first. What a reader then finds in the archive is never older,
and if it is too new to fit, a rotation came between and the reader looks again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final

from msgspec.structs import asdict

from sessrotate.archive import found_files, live_tail, misfits, record
from sessrotate.archive.found_files import FoundFiles
from sessrotate.archive.late_lines import is_at, of_waiting, residue
from sessrotate.archive.live_tail import Cut
from sessrotate.archive.owner import check_own
from sessrotate.archive.place import Place
from sessrotate.archive.record import Decision, Drafted, Match, Moment
from sessrotate.errors import DamagedError, InUseError, WrongUsageError, storage
from sessrotate.model import SealedSegment, Span
from sessrotate.segments import Problem, check, cut_out, cuts, headers, load, manifest, scan
from sessrotate.segments.manifest import Manifest
from sessrotate.system.source import Source

_LOOKS: Final = 10

_NONE: Final = Span(0, 0)


class State(FoundFiles, frozen=True, kw_only=True):
    """What was found, and what follows from it.

    * `match`, `drafted`: what the table in `record` decides by.
    * `standing`: whether the intent's swap was done; `deed`: what the next run does about it. Both
      are from that table; without an intent, "before" and None.
    * `listed`: the manifest of the segments that the live file goes on from, None if it is the
      whole history.
    * `is_pack_known`: the pack begins like the file that was to be replaced, and has its history.
    * `residue`: what came late to the pack, and the `successor` has yet to get.
    * `late`: all that came late to replaced files and the live file has yet to get, in order.
    * `cut`: where the client cut the live file since the last rotation, None if it did not. Unless
      that is the same compaction, what was in between is gone but for what a resume needs.
    * `problem`: why the live file does not go on from its archive, None if it does. No live file
      at all goes on from anything: what is archived is all there is.
    """

    match: Match
    drafted: Drafted
    standing: Moment
    deed: Decision | None
    listed: Manifest | None
    is_pack_known: bool
    residue: Span
    late: tuple[tuple[Source, Span], ...]
    cut: Cut | None
    problem: str | None

    @property
    def is_rotated(self) -> bool:
        """Whether anything but the live file belongs to the history, or once did."""
        is_parted = any((self.header, self.manifest, self.intent, self.kept, self.problem))
        return self.is_away or is_parted

    @property
    def prefix(self) -> int:
        """How many bytes of the live file are no part of the history.

        Of what is behind the header of one that was cut, nobody can tell whether it is archived.
        """
        if self.header is None:
            return 0
        if self.cut is not None and self.cut.is_same:
            return self.cut.boundary.offset
        return self.own if self.has_gap else headers.prefix(self.header)

    @property
    def has_gap(self) -> bool:
        """Whether the client cut out what comes between the archive and the live file."""
        return self.cut is not None and not self.cut.is_same

    @property
    def judged(self) -> int:
        """Up to where a rotation, or its client, has judged which archived rows a resume needs."""
        if self.header is None or self.live is None:
            return 0
        return self.live.size() if self.has_gap else self.prefix + self.header.judged_bytes

    @property
    def cuts(self) -> tuple[Problem, ...]:
        """A problem for each segment that the client cut: the archived ones, then a live one."""
        segments = [entry.segment for entry in self.listed.segments] if self.listed else []
        archived = tuple(cuts(segments))
        if self.kept:
            return (*archived, live_tail.trimmed(self.kept, self.place.session))
        if self.cut is None or self.cut.is_same or not segments:
            return archived
        kept, before = self.cut.boundary.offset - self.prefix, segments[-1]
        until = self.cut.boundary.timestamp
        live = cut_out(before.index + 1, kept, before.last_timestamp, until)
        return (*archived, live)


# ── what follows from what was found ─────────────────────────────────────────────────────────


def _judged(found: FoundFiles) -> State:
    begun, drafted = found.intent, found_files.drafted(found)
    match: Match = "other"
    row = None
    if begun is not None:
        match, has_pack = found_files.match(found, begun), found.pack is not None
        row = record.decided(begun.operation, match, drafted, has_pack=has_pack)
    was_swapped = row is not None and row.standing == "after"
    listed = _listed(found, match)
    rest = _residue(found) if was_swapped else _NONE
    reason = None
    if found.header is not None and found.live is not None:
        reason = live_tail.misfit(found.header, found.live)
    cut = None if reason is None else _cut(found, listed)
    is_pack_known = (
        begun is not None
        and found.pack is not None
        and found.pack.size() >= begun.swap.cut >= _size(begun.moved(found.manifest))
        and is_at(found.pack, 0, begun.swap.old)
    )
    in_pack = None
    if was_swapped:
        in_pack = found_files.problem_of_late(found, rest, is_pack_known=is_pack_known)
    return State(
        **asdict(found),
        match=match,
        drafted=drafted,
        standing="before" if row is None else row.standing,
        deed=None if row is None else row.deed,
        listed=listed,
        is_pack_known=is_pack_known,
        residue=rest,
        late=tuple(_late(found, rest)),
        cut=cut if begun is None or begun.moves_nothing else None,
        problem=in_pack
        or misfits.problem(
            found,
            listed,
            "before" if row is None else row.standing,
            reason,
            is_cut=cut is not None,
        ),
    )


def _cut(found: FoundFiles, listed: Manifest | None) -> Cut | None:
    header, live = found.header, found.live
    if header is None or live is None or listed is None or not live_tail.ends_at(listed, header):
        return None
    cut = live_tail.cut(header, live)
    if cut is None or not cut.is_same or found.kept:
        return cut
    # Somebody else may have changed what stands there, and it goes with the next swap.
    before = Span(len(headers.live_line(header)), cut.boundary.offset)
    return cut if live_tail.are_in(live, before, found.place, listed.segments) else None


def _listed(found: FoundFiles, match: Match) -> Manifest | None:
    """Return the manifest of the segments that count: as many as the live file's header says.

    What a rotation brings to the archive is listed before that header is there. A live file that
    is none of the two of a swap goes on from all that is listed, or from nothing.
    """
    listed = None if found.restored is not None else found.manifest
    if listed is None or found.live is None:
        return listed
    begun, is_known = found.intent, match in {"old", "new", "kept"}
    if begun is not None and match == "pack":  # somebody may have changed it in place
        is_known = is_at(found.live, 0, begun.swap.old)
    if is_known or (begun is None and (uncounted(found) or _are_spare(found))):
        return manifest.until(listed, 0 if found.header is None else found.header.index)
    return listed


def uncounted(found: FoundFiles) -> tuple[SealedSegment, ...]:
    """Return the segments that a rotation listed before it died, and that do not count yet.

    It died before its swap, for the live file is the pack: no other took its place. An older copy
    counts fewer segments, too, but the newer one may come back, and needs them then. One that
    brings none to the archive listed none: what is there is left of a restored session's.
    """
    listed, begun = found.manifest, found.intent
    if listed is None or not found.is_pack or (begun is not None and not begun.count):
        return ()
    first = 0 if begun is None else begun.first  # it may have taken over what was spare
    return listed.segments[max(first, 0 if found.header is None else found.header.index) :]


def _are_spare(found: FoundFiles) -> bool:
    """Tell whether a live file of before a rotation has all that this archived, as it cut it.

    Such a one comes back from a backup or another machine, and may have more than the one that it
    replaced. What is archived stays: that one may come back, too.
    """
    header, live, listed = found.header, found.live, found.manifest
    if header is None or live is None or listed is None:
        return False
    before, entries = manifest.until(listed, header.index), listed.segments[header.index :]
    if not entries or before is None or not live_tail.ends_at(before, header):
        return False
    if not are_held(found, entries):
        return False
    end = headers.prefix(header) + entries[-1].segment.span.end - header.start
    rest = Span(end, live.size())
    return scan.boundary(found.place.client.files, partial(live.pieces, rest)) is not None


def are_held(found: FoundFiles, entries: Sequence[SealedSegment]) -> bool:
    """Tell whether the live file has these segments, as it had when they were copied. Reads it."""
    shift = 0 if found.header is None else headers.prefix(found.header) - found.header.start
    return found.live is not None and live_tail.holds(found.live, entries, shift)


def has_lines_of(found: FoundFiles, source: Source) -> bool | None:
    """Tell whether the session has each line of a file, in its place or behind. Reads all of it.

    No record is asked: it says what was there once, and since then a backup or an editor may have
    put back less. None where a segment that should have a line is damaged.
    """
    place, listed = found.place, found.manifest
    start, _ = live_tail.body_of(headers.parse_live(live_tail.first_line(source), place.session))
    parts, entries = None, () if listed is None else listed.segments
    if listed is not None:
        parts = load.of_manifest(place.archive, found.listing, listed)
        try:
            for entry in entries:
                if entry.pruned is None and entry.segment.span.end > start:
                    check(parts, entry.segment.index)
        except DamagedError:
            return None
    end = live_tail.held(found.live, found.header, parts, source, place.session)
    if end >= source.size():
        return True
    rest = Span(source.line_start(end), source.size())  # such as what came late, by now behind
    return live_tail.are_in(source, rest, place, entries, found.live)


def _size(entries: Iterable[SealedSegment]) -> int:
    return sum(entry.segment.span.size for entry in entries)


def _residue(found: FoundFiles) -> Span:
    if found.intent is None or found.pack is None or found.successor is None:
        return _NONE
    return residue(found.intent.swap, found.pack, found.successor)


def _late(found: FoundFiles, rest: Span) -> Iterator[tuple[Source, Span]]:
    """Yield what came late: to the files that wait, the oldest first, and last to the pack."""
    late = [(found.pack, rest)] if found.pack is not None else []
    if found.live is not None and not found.is_gone:
        live = found.live
        late[:0] = ((source, of_waiting(told, source, live)[0]) for told, source in found.written)
    ends = [source.line_start(span.end, span.start) for source, span in late]
    for (source, span), end in zip(late, ends, strict=True):
        yield source, Span(span.start, end)
    for (source, span), end in zip(late, ends, strict=True):  # no line begins inside another
        yield source, Span(end, span.end)


# ── opening ──────────────────────────────────────────────────────────────────────────────────


@contextmanager
def opened(place: Place) -> Iterator[State]:
    """Open what there is of a session, all of one moment, and close it in the end.

    Raises DamagedError if the manifest or record is damaged, StorageError as the system reports,
    InUseError if the session is replaced or shortened again and again meanwhile, RefusedError if
    the archive is a link.
    """
    check_own(place)
    for _ in range(_LOOKS):
        with ExitStack() as stack:
            listing: frozenset[str] = frozenset()
            try:
                with storage("read the session"):
                    source = found_files.live_of(place, stack)
                    listing = found_files.listing_of(place)
                    recorded = found_files.record_of(place, listing)
                    found = _judged(found_files.look(place, source, listing, recorded, stack))
                    is_same = found_files.record_of(place, listing) == recorded
            except (DamagedError, WrongUsageError) as error:
                if found_files.listing_of(place) == listing:
                    if isinstance(error, DamagedError):
                        raise found_files.with_way_out(place, error) from error
                    raise
                continue  # a file went away between being seen and being read
            except InUseError:
                continue  # a client took a row back while it was looked at
            if is_same and _is_of_one_moment(found):
                yield found
                return
    raise InUseError("The session was replaced while it was read; try again.")


def is_replaced(found: State) -> bool:
    """Return whether a file came to the archive or left it since it was opened."""
    return found_files.listing_of(found.place) != found.listing


def _is_of_one_moment(found: State) -> bool:
    if found.live is None or found.is_gone:
        return not os.path.lexists(found.place.live)
    try:
        found.live.check_unreplaced()
    except InUseError:
        return False
    # What is under way takes files away when it ends, and its new ones do no harm.
    return found.intent is not None or found.listing == found_files.listing_of(found.place)
