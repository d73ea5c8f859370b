"""A session in place as it is now: its live file, its archive, and what was left half-way.

Rule: only reads, and the live file first. What a reader then finds in the archive is never older,
and if it is too new to fit, a rotation came between and the reader looks again.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from sessrotate import names
from sessrotate.archive import archived_file, history, intent
from sessrotate.archive.history import Piece
from sessrotate.archive.intent import Intent, Late, Mark
from sessrotate.archive.late_lines import Residue, end_of_lines, is_at, residue
from sessrotate.errors import DamagedError, InUseError, WrongUsageError, printable, storage
from sessrotate.model import Span
from sessrotate.segments import live_header, load, manifest
from sessrotate.segments.header import MAX_LINE
from sessrotate.system.digest import ZERO
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.archive.place import Place
    from sessrotate.segments.live_header import LiveHeader
    from sessrotate.segments.manifest import Manifest

Standing = Literal["before", "after", "unknown"]

_LOOKS: Final = 10


@dataclass(frozen=True, slots=True)
class State:
    """What was found. Files that are there are open; `listing` is the archive's folder.

    Where the live file is gone (`is_gone`) and the pack is there whole, `live` is the pack: it is
    the old live file.
    """

    place: Place
    live: Source | None
    header: LiveHeader | None
    pack: Source | None
    late: Source | None
    listing: frozenset[str]
    intent: Intent | None
    manifest: Manifest | None
    is_gone: bool

    @property
    def standing(self) -> Standing:
        """Whether the intent's swap is done, by the content of the live file."""
        begun = self.intent
        if begun is None or begun.operation == "late":
            return "before"
        return self._inserted(begun) if begun.operation == "insert" else self._swapped(begun)

    def _swapped(self, begun: Intent) -> Standing:
        swap = begun.swap
        if self.live is not None and is_at(self.live, 0, swap.new):
            return "after"
        is_rotation = begun.operation == "rotate"
        # Only after the swap anything is sealed, or the tail dropped from the pack.
        if self.sealed or (self.pack is not None and self.is_dropped):
            return "after"
        if self.live is None and not is_rotation:
            return "before"  # a session that was gone comes back by its archive alone
        if self.live is not None and is_at(self.live, 0, swap.old):
            return "before"
        return "unknown"

    def _inserted(self, begun: Intent) -> Standing:
        # Both files begin alike, and what is put in may stand in the old one as well.
        live, pack = self.live, self.pack
        if live is None or (pack is not None and pack.identity().is_same_file(live.identity())):
            return "before"
        # A client may take back what was put in, but not bring the draft back.
        if names.DRAFT not in self.listing or is_at(live, begun.swap.cut, begun.swap.new):
            return "after"
        return "before" if is_at(live, 0, begun.swap.old) else "unknown"

    @property
    def is_dropped(self) -> bool:
        """Whether the pack has its tail no more: nothing can come late to it, and all is kept."""
        begun = self.intent
        if begun is None or self.pack is None:
            return True
        return begun.operation == "rotate" and self.pack.size() <= begun.swap.cut

    @property
    def is_pack_known(self) -> bool:
        """Whether the pack begins like the file that was to be replaced."""
        begun, pack = self.intent, self.pack
        return begun is not None and pack is not None and is_at(pack, 0, begun.swap.old)

    @property
    def pending(self) -> Late | None:
        """The late lines that have a file of their own, and are not in the live file yet."""
        begun = self.intent
        if begun is None or begun.late is None or begun.operation == "late":
            return None if begun is None else begun.late
        if not begun.late.end:  # those that are put in just now
            return None if self.standing == "after" else begun.late
        is_all = self.is_dropped or (self.pack is not None and self.pack.size() == begun.late.end)
        return begun.late if is_all and self.standing == "after" else None

    @property
    def listed(self) -> Manifest | None:
        """The manifest that the live file goes on from, None if it is the whole history."""
        if self.intent is not None and self.standing == "after":
            if self.intent.operation == "rotate":
                return self.intent.manifest
            if self.intent.operation == "restore":
                return None
        return self.manifest

    @property
    def sealed(self) -> frozenset[int]:
        """The numbers of the intent's new segments whose files are there."""
        if self.intent is None or self.intent.operation == "restore":
            return frozenset()
        return frozenset(
            entry.segment.index
            for entry in self.intent.manifest.segments[self.intent.first :]
            if names.segment_file(self.place.session, "numbered", entry.segment.index)
            in self.listing
        )

    @property
    def is_rotated(self) -> bool:
        """Whether anything but the live file belongs to the history, or once did."""
        return self.is_archived or any((self.header, self.manifest, self.intent))

    @property
    def is_archived(self) -> bool:
        """Whether the session was put away, or is on its way there or back."""
        return names.ARCHIVED_NOTE in self.listing

    @property
    def prefix(self) -> int:
        """How many bytes of the live file are no part of the history."""
        return 0 if self.header is None else live_header.prefix(self.header)

    @property
    def residue(self) -> Residue:
        """What of the pack the live file has yet to get, and has no file of its own."""
        if self.intent is None or self.pack is None or self.live is None or self.pending:
            return Residue(Span(0, 0), 0)
        if self.standing != "after":
            return Residue(Span(0, 0), 0)
        return residue(self.intent.swap, self.pack, self.live)

    def place_of(self, late: Late) -> int:
        """Return where in the live file late lines belong.

        That is behind its last whole line if a client took back what led up to them.
        """
        if self.live is None:
            return 0
        is_kept = is_at(self.live, late.at - late.edge.size, late.edge)
        return late.at if is_kept else end_of_lines(self.live, self.prefix)

    def history(self) -> tuple[Piece, ...]:
        """Return where every byte of the history is.

        Raises DamagedError if the live file does not go on from the archive.
        """
        problem = self.problem()
        if problem is not None:
            raise DamagedError(problem)
        pending, residue = self.pending, self.residue
        if pending is not None:
            late, at = Piece("late", None, Span(0, pending.mark.size)), self.place_of(pending)
        else:
            late, at = Piece("pack", None, residue.span), residue.at
        return history.pieces(
            listed=self.listed,
            intent=self.intent,
            was_swapped=self.standing == "after",
            sealed=self.sealed,
            live=Span(self.prefix, self.live.size()) if self.live is not None else Span(0, 0),
            late=late,
            at=at,
        )

    def problem(self) -> str | None:
        """Return why the live file does not go on from its archive; None if it does.

        No live file at all goes on from anything: what is archived is all there is.
        """
        begun, reason = self.intent, self._misfit_of_late()
        if reason is not None or self.live is None:
            return reason
        name = printable(str(self.place.live))
        if self.is_archived and archived_file.is_doubled(self.place):
            return f"{name} appeared while its session was put away."
        if begun is not None and begun.operation == "restore" and self.standing == "after":
            is_whole = self.live.size() >= begun.swap.prefix
            return None if is_whole else f"{name} is shorter than the history that was put there."
        if self.standing == "unknown":
            return f"{name} is neither the file that was to be replaced nor the new one."
        reason = self._misfit(self.live)
        return None if reason is None else f"{name} does not go on from its archive: {reason}."

    def _misfit_of_late(self) -> str | None:
        pending = self.pending
        if pending is not None and (self.late is None or self.late.size() != pending.mark.size):
            return f"{printable(str(self.place.late))} is not what it was."
        if self.residue.span.size and not self.is_pack_known:
            return f"{printable(str(self.place.pack))} is not the file that was replaced."
        return None

    def _misfit(self, source: Source) -> str | None:
        header, listed = self.header, self.listed
        if header is None:
            return None if listed is None else "it does not begin with its header any more"
        if listed is None:
            what = f"{printable(str(self.place.archive))} is gone"
            again = f"its {names.MANIFEST} is gone; the next rotation or restoration makes it again"
            return again if self.listing else what
        last = listed.segments[-1].digest if listed.segments else ZERO
        told = (header.index, header.start, header.parent_digest)
        if told != (len(listed.segments), listed.source_bytes, last):
            return "its header is from another time"
        begin = len(live_header.line(header))
        if not is_at(source, begin, Mark(header.carried_bytes, header.carried_digest)):
            return "the lines carried along were changed"
        start = begin + header.carried_bytes
        line = Span(start, min(source.line_end(start, source.size()) + 1, source.size()))
        if not is_at(source, start, Mark(line.size, header.boundary_digest)):
            return "it does not go on with the compaction that it was cut at"
        return None


@contextmanager
def opened(place: Place) -> Iterator[State]:
    """Open what there is of a session, all of one moment, and close it in the end.

    Raises DamagedError if a manifest or intent is damaged, StorageError as the system reports,
    InUseError if the session is replaced again and again meanwhile.
    """
    for _ in range(_LOOKS):
        with ExitStack() as stack:
            listing: frozenset[str] = frozenset()
            try:
                with storage("read the session"):
                    source = _live(place, stack)
                    listing = _listing(place)
                    begun = _intent(place, listing)
                    found = _look(place, source, listing, begun, stack)
                    is_same = _intent(place, listing) == begun
            except (DamagedError, WrongUsageError):
                if _listing(place) == listing:
                    raise
                continue  # a file went away between being seen and being read
            if is_same and _is_of_one_moment(found):
                yield found
                return
    raise InUseError("The session was replaced while it was read; try again.")


def _listing(place: Place) -> frozenset[str]:
    with storage("look into the archive"):
        try:
            return frozenset(entry.name for entry in place.archive.iterdir())
        except FileNotFoundError:
            return frozenset()


def _live(place: Place, stack: ExitStack) -> Source | None:
    return stack.enter_context(Source(place.live)) if os.path.lexists(place.live) else None


def _intent(place: Place, listing: frozenset[str]) -> bytes | None:
    return _read(place, names.INTENT, intent.MAX_BYTES) if names.INTENT in listing else None


def _look(
    place: Place,
    source: Source | None,
    listing: frozenset[str],
    begun: bytes | None,
    stack: ExitStack,
) -> State:
    # The manifest after the intent, which stays until the manifest is the one that it announces.
    listed = _read(place, names.MANIFEST, manifest.MAX_BYTES) if names.MANIFEST in listing else None
    doing = None if begun is None else intent.parse(begun)
    pack = stack.enter_context(Source(place.pack)) if names.PACK in listing else None
    if source is None and names.ARCHIVED_NOTE in listing:
        source = archived_file.opened(place)
        source = None if source is None else stack.enter_context(source)
    late = None
    if names.LATE in listing and doing is not None and doing.late is not None:
        late = stack.enter_context(Source(place.late))
    is_gone = source is None
    if source is None and pack is not None and doing is not None:
        is_whole = doing.operation in {"late", "insert"} or pack.size() > doing.swap.cut
        source = pack if is_whole else None
    # All of one moment; the pack first, or what goes from it to the live file would be in neither.
    # What goes from it to a file of its own is in an intent first, and that is looked at again.
    for file in (pack, source):
        if file is not None:
            file.freeze()
    found = State(
        place=place,
        live=source,
        header=None if source is None else live_header.parse(first_line(source), place.session),
        pack=pack,
        late=late,
        listing=listing,
        intent=doing,
        manifest=None if listed is None else manifest.parse(listed),
        is_gone=is_gone,
    )
    for told in (found.manifest, found.intent.manifest if found.intent else None):
        if told is not None and (
            told.session != place.session or told.layout != "numbered" or told.source_digest
        ):
            folder = printable(str(place.archive))
            raise DamagedError(f"{folder} is not the archive of {printable(place.session)}.")
    return found


def _is_of_one_moment(found: State) -> bool:
    if found.live is None or found.is_gone:
        return not os.path.lexists(found.place.live)
    try:
        found.live.check_unreplaced()
    except InUseError:
        return False
    # Sealing and restoring take files away; new ones of a sealing do no harm.
    is_sealing = found.intent is not None and found.intent.operation in {"rotate", "restore"}
    return is_sealing or found.listing == _listing(found.place)


def first_line(source: Source) -> bytes:
    """Return the first line of a file, newline included, or what would be too much for a header."""
    end = min(MAX_LINE, source.size())
    return source.read_at(0, min(source.line_end(0, end) + 1, end))


def _read(place: Place, file: str, limit: int) -> bytes:
    return load.read_small(place.archive, file, limit)
