"""A session in place as it is now: its live file, its archive, and what was left half-way.

Rule: only reads, and the live file first. What a reader then finds in the archive is never older,
and if it is too new to fit, a rotation came between and the reader looks again.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from sessrotate import archive, cold_file, history, intent, live, manifest, names
from sessrotate.digest import ZERO
from sessrotate.errors import DamagedError, InUseError, WrongUsageError, printable, storage
from sessrotate.header import MAX_LINE
from sessrotate.intent import Intent, Mark
from sessrotate.model import Span
from sessrotate.residue import is_at, residue
from sessrotate.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.history import Piece
    from sessrotate.live import LiveHeader
    from sessrotate.manifest import Manifest
    from sessrotate.place import Place

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
    listing: frozenset[str]
    intent: Intent | None
    manifest: Manifest | None
    is_gone: bool

    @property
    def standing(self) -> Standing:
        """Whether the intent's swap is done, by the content of the live file."""
        if self.intent is None:
            return "before"
        swap = self.intent.swap
        if self.live is not None and is_at(self.live, 0, swap.new):
            return "after"
        is_rotation = self.intent.operation == "rotate"
        is_dropped = self.pack is not None and self.pack.size() <= swap.cut
        # Only after the swap anything is sealed, or the tail dropped from the pack.
        if self.sealed or (is_rotation and is_dropped):
            return "after"
        if self.live is None and not is_rotation:
            return "before"  # a session that was gone comes back by its archive alone
        if self.live is not None and is_at(self.live, 0, swap.old):
            return "before"
        return "unknown"

    @property
    def listed(self) -> Manifest | None:
        """The manifest that the live file goes on from, None if it is the whole history."""
        if self.intent is not None and self.standing == "after":
            return None if self.intent.operation == "restore" else self.intent.manifest
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
        return self.is_cold or any((self.header, self.manifest, self.intent))

    @property
    def is_cold(self) -> bool:
        """Whether the session was put away, or is on its way there or back."""
        return names.COLD_NOTE in self.listing

    @property
    def prefix(self) -> int:
        """How many bytes of the live file are no part of the history."""
        return 0 if self.header is None else live.prefix(self.header)

    @property
    def residue(self) -> Span:
        """What of the pack the live file has yet to get."""
        if self.intent is None or self.pack is None or self.live is None:
            return Span(0, 0)
        if self.standing != "after":
            return Span(0, 0)
        return residue(self.intent.swap, self.pack, self.live)

    def history(self) -> tuple[Piece, ...]:
        """Return where every byte of the history is.

        Raises DamagedError if the live file does not go on from the archive.
        """
        problem = self.problem()
        if problem is not None:
            raise DamagedError(problem)
        return history.pieces(
            manifest=self.manifest,
            intent=self.intent,
            was_swapped=self.standing == "after",
            sealed=self.sealed,
            live=Span(self.prefix, self.live.size()) if self.live is not None else Span(0, 0),
            residue=self.residue,
        )

    def problem(self) -> str | None:
        """Return why the live file does not go on from its archive; None if it does.

        No live file at all goes on from anything: what is archived is all there is.
        """
        if self.live is None:
            return None
        name = printable(str(self.place.live))
        if self.is_cold and cold_file.is_doubled(self.place):
            return f"{name} appeared while its session was put away."
        begun = self.intent
        if begun is not None and begun.operation == "restore" and self.standing == "after":
            is_whole = self.live.size() >= begun.swap.prefix
            return None if is_whole else f"{name} is shorter than the history that was put there."
        if self.standing == "unknown":
            return f"{name} is neither the file that was to be replaced nor the new one."
        reason = self._misfit(self.live)
        return None if reason is None else f"{name} does not go on from its archive: {reason}."

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
        begin = len(live.line(header))
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
                    found = _look(place, source, listing, stack)
            except (DamagedError, WrongUsageError):
                if _listing(place) == listing:
                    raise
                continue  # a file went away between being seen and being read
            if _is_of_one_moment(found):
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


def _look(place: Place, source: Source | None, listing: frozenset[str], stack: ExitStack) -> State:
    # The intent before the manifest: it stays until the manifest is the one that it announces.
    begun = _read(place, names.INTENT, intent.MAX_BYTES) if names.INTENT in listing else None
    listed = _read(place, names.MANIFEST, manifest.MAX_BYTES) if names.MANIFEST in listing else None
    doing = None if begun is None else intent.parse(begun)
    pack = stack.enter_context(Source(place.pack)) if names.PACK in listing else None
    if source is None and names.COLD_NOTE in listing:
        source = cold_file.opened(place)
        source = None if source is None else stack.enter_context(source)
    is_gone = source is None
    if source is None and pack is not None and doing is not None and pack.size() > doing.swap.cut:
        source = pack
    # All of one moment; the pack first, or what goes from it to the live file would be in neither.
    for file in (pack, source):
        if file is not None:
            file.freeze()
    found = State(
        place=place,
        live=source,
        header=None if source is None else live.parse(first_line(source), place.session),
        pack=pack,
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
    return found.listing == _listing(found.place) or found.intent is not None


def first_line(source: Source) -> bytes:
    """Return the first line of a file, newline included, or what would be too much for a header."""
    end = min(MAX_LINE, source.size())
    return source.read_at(0, min(source.line_end(0, end) + 1, end))


def _read(place: Place, file: str, limit: int) -> bytes:
    return archive.read_small(place.archive, file, limit)
