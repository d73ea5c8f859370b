"""The files of one session in place that are there, open, all of one moment.

Rule: what was read from them, whether it may be used, and what it tells of an interrupted swap; all
else that follows is `state`'s. Told by what files hold and by which file a name has, never by a
number or a time.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sessrotate import fs, names
from sessrotate.archive import away_file, live_tail, record
from sessrotate.archive.late_lines import is_at
from sessrotate.archive.place import Place, that_wait
from sessrotate.archive.record import Intent, Operation, Record, Waiting
from sessrotate.clients.common import is_folder, is_link, names_in
from sessrotate.errors import DamagedError, SessrotateError, StorageError, printable, storage
from sessrotate.model import Span
from sessrotate.segments import compressed, headers, load, manifest
from sessrotate.segments.headers import LiveHeader
from sessrotate.segments.manifest import Manifest
from sessrotate.system import disk_use
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from sessrotate.archive.record import Drafted, Match


class Restored(Struct, frozen=True):
    """What is left of the archive of a session that is whole again.

    `at` (ISO 8601, UTC) is since when, empty if nobody knows. `listed` is its manifest, None if
    there is none to read; `files` are what that lists and is there, and last the manifest itself.
    `others` are the names of segments that no manifest lists: nothing is known of them.
    """

    at: str
    listed: Manifest | None
    files: tuple[Path, ...]
    others: tuple[str, ...]

    @property
    def has_segments(self) -> bool:
        """Whether anything of the history is among its files."""
        return any(path.name != names.MANIFEST for path in self.files)

    @property
    def bytes(self) -> int:
        """How many bytes its files have."""
        found = 0
        for path in self.files:
            with suppress(OSError):
                found += path.lstat().st_size
        return found

    @property
    def allocated(self) -> int:
        """How many bytes of the disk its files take."""
        return disk_use.of(*self.files)


class FoundFiles(Struct, frozen=True, kw_only=True):
    """What was found. Files that are there are open; `listing` is the archive's folder.

    Where the live file is gone (`is_gone`) and the pack is there whole, `live` is the pack: it is
    the old live file.
    """

    place: Place
    live: Source | None
    header: LiveHeader | None
    pack: Source | None
    listing: frozenset[str]
    record: Record
    manifest: Manifest | None
    is_gone: bool
    kept: tuple[Path, ...]
    """Files that its client kept when it trimmed the session, and that are to be put together."""
    successor: Source | None
    """What took the old live file's place, if that is under way: the live file; or, if its client
    trimmed it since, what was kept of that."""
    restored: Restored | None
    """What is left of the archive of a session that is whole again. Then `manifest` is None."""
    written: tuple[tuple[Waiting, Source], ...]
    """The files that wait and that somebody wrote to, with what the record says of each."""

    @property
    def intent(self) -> Intent | None:
        """What is under way between the live file and the archive, None if nothing is."""
        return self.record.intent

    @property
    def finished_by(self) -> Operation:
        """The command that finishes what is under way, or undoes it."""
        return "rotate" if self.intent is None else self.intent.operation

    @property
    def is_pack(self) -> bool:
        """Whether the live file is the pack, too: no other has taken its place."""
        live, pack = self.live, self.pack
        return bool(live and pack and pack.identity().is_same_file(live.identity()))

    @property
    def is_away(self) -> bool:
        """Whether the session was put away, or is on its way there or back."""
        return self.record.away is not None

    @property
    def own(self) -> int:
        """How many bytes at the beginning of the live file are ours, in any case: its header."""
        return 0 if self.header is None else len(headers.live_line(self.header))


def with_way_out(place: Place, error: DamagedError) -> DamagedError:
    """Return an error that says, once, what helps where no other command does."""
    name = printable(place.session)
    hint = f"If nothing else helps, `sessrotate aside {name}` puts its archive aside, whole."
    return error if hint in str(error) else DamagedError(f"{error} {hint}")


def problem_of_late(found: FoundFiles, late: Span, *, is_pack_known: bool) -> str | None:
    """Return why late lines cannot be had, None if they can or there are none."""
    if found.pack is None:
        return None
    if not is_pack_known:
        return f"{printable(str(found.place.pack))} is not the file that was replaced."
    if not late.size:
        return None
    return other_name(found.place) if has_other_name(found.place, found.pack) else None


def has_other_name(place: Place, pack: Source) -> bool:
    """Tell whether a pack that is not the live file any more has a second name.

    A rotation refuses a live file that has one. So it is a backup's, or somebody put another file
    there, of which lines would get into the session. A kill in the middle of a swap leaves it the
    draft's name, and a power loss the one under which it waits, which are ours; as is one for a
    client that trims the file.
    """
    status = os.fstat(pack.fd)
    ours = len(place.client.trims.names_of(place.live, place.session, status))
    ours += sum(map(fs.same_as(status), (place.draft, *that_wait(place))))
    return status.st_nlink > 1 + ours


def other_name(place: Place) -> str:
    """Return the sentence that a pack has a second name."""
    return (
        f"{printable(str(place.pack))} has another name (a hard link), so it may be any file: "
        "remove the other name, and try again."
    )


# ── looking ──────────────────────────────────────────────────────────────────────────────────


def listing_of(place: Place) -> frozenset[str]:
    """Return the names in an archive's folder; none if there is none."""
    with storage("look into the archive"):
        try:
            found = os.listdir(place.archive)  # noqa: PTH208 - only the names
            return frozenset(name for name in found if not names.is_hidden(name))
        except FileNotFoundError:
            return frozenset()


def live_of(place: Place, stack: ExitStack) -> Source | None:
    """Open a live file; None if there is none."""
    if not os.path.lexists(place.live):
        return None
    return stack.enter_context(Source.itself(place.live))


def _inside(place: Place, file: str, stack: ExitStack) -> Source:
    return stack.enter_context(Source.inside(place.archive, file))


def record_of(place: Place, listing: frozenset[str]) -> bytes | None:
    """Return the bytes of a record; None if there is none."""
    if names.RECORD not in listing:
        return None
    _check_record(place.archive)
    return load.read_small(place.archive, names.RECORD, record.MAX_BYTES)


def _check_record(archive: Path) -> None:
    """Raise DamagedError if something else has the record's name: it could not be replaced."""
    path = archive / names.RECORD
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):
            raise DamagedError(f"{printable(str(path))} is not a file: move it away.")


def look(
    place: Place,
    source: Source | None,
    listing: frozenset[str],
    recorded: bytes | None,
    stack: ExitStack,
) -> FoundFiles:
    """Open the other files of a session whose live file, listing and record were looked at."""
    told = _told(place, source, listing, recorded)
    doing = told.intent
    pack = _inside(place, names.PACK, stack) if names.PACK in listing else None
    if source is None and told.away is not None:
        source = away_file.opened(place)
        source = None if source is None else stack.enter_context(source)
    is_gone = source is None
    if source is None and pack is not None and doing is not None:
        is_whole = pack.size() > doing.swap.cut
        if is_whole and has_other_name(place, pack):  # it is to be a live file again
            raise DamagedError(other_name(place))
        source = pack if is_whole else None
    # All of one moment; the pack first, or what goes from it to the live file would be in neither.
    for file in (pack, source):
        if file is not None:
            file.freeze()
    line = b"" if source is None else live_tail.first_line(source)
    header = headers.parse_live(line, place.session)
    is_pack = False
    if pack is not None and source is not None:  # to ask one that was put away takes long
        is_pack = _is(pack, os.fstat(source.fd))
    listed, whole = _listed(place, source, header, listing, told, is_pack=is_pack)
    kept = () if is_gone else tuple(_kept(place, None if doing is None else pack))
    found = FoundFiles(
        place=place,
        live=source,
        header=header,
        pack=pack,
        listing=listing,
        record=told,
        manifest=listed,
        is_gone=is_gone,
        kept=kept,
        successor=_successor(source, doing, kept, stack),
        restored=whole,
        written=tuple(_written(place, told, stack)),
    )
    if listed is not None and (
        listed.session != place.session or listed.layout != "numbered" or listed.source_digest
    ):
        shown = printable(str(place.archive / names.MANIFEST))
        raise DamagedError(f"{shown} does not belong to {printable(place.session)}: move it away.")
    return found


def _told(
    place: Place, live: Source | None, listing: frozenset[str], recorded: bytes | None
) -> Record:
    """Return what a record says, or where it is lost or damaged, what the files tell."""
    is_away = live is None and names.ARCHIVED in listing
    with suppress(DamagedError):
        if recorded is not None and not is_away:
            return record.parse(recorded, place.session)
    is_asked = recorded is not None or is_away
    return away_file.told(place) if is_asked else Record(place.session)


def _listed(
    place: Place,
    live: Source | None,
    header: LiveHeader | None,
    listing: frozenset[str],
    told: Record,
    *,
    is_pack: bool,
) -> tuple[Manifest | None, Restored | None]:
    """Return the manifest that is there, and what is left of an archive whose session is whole.

    Of a live file that is the pack, too (`is_pack`), a rotation died before its swap: unless the
    record says so, nobody had restored it.
    """
    is_unsure = is_pack and told.restored in {None, record.UNKNOWN}
    whole = None if header is not None or is_unsure or told.intent is not None else live
    if whole is not None and told.restored:
        left = of_restored(place.archive, listing)
        return None, restored_archive(place.archive, place.session, listing, told.restored, left)
    if names.MANIFEST not in listing:
        return None, None
    found = _parsed(load.read_small(place.archive, names.MANIFEST, manifest.MAX_BYTES), header)
    if whole is None:
        return found, None
    # A copy from before was put back, or the record is lost, if it has all that is archived; and
    # what was put away may have been whole.
    if found is not None and found.source_bytes and live_tail.holds(whole, found.segments):
        at = record.UNKNOWN
        return None, restored_archive(place.archive, place.session, listing, at, found)
    return found, None


def of_restored(archive: Path, listing: Collection[str]) -> Manifest | None:
    """Return the manifest of a session whose live file is whole, None if it is lost or damaged.

    Raises RefusedError if a newer sessrotate wrote it.
    """
    if names.MANIFEST in listing:
        with suppress(DamagedError, StorageError):
            return manifest.parse(load.read_small(archive, names.MANIFEST, manifest.MAX_BYTES))
    return None


def restored_archive(
    archive: Path, session: str, listing: Collection[str], at: str, found: Manifest | None
) -> Restored:
    """Return what an archive with these files is if its live file is whole since `at`.

    `found` is its manifest, if it can be read.
    """
    if found is not None and (found.session != session or found.source_digest):
        found = None
    there = {archive / name for name in names.segments_among(listing, session)}
    trash = archive / names.TRASH
    if not is_link(trash):
        there |= {trash / name for name in names.segments_among(names_in(trash), session)}
    entries = () if found is None else found.segments
    ours = [archive / compressed.file_of(session, entry) for entry in entries]
    files = [path for path in ours if path in there and not is_folder(path)]
    if names.MANIFEST in listing:
        files.append(archive / names.MANIFEST)
    others = tuple(sorted(path.name for path in there.difference(files)))
    return Restored("" if at == record.UNKNOWN else at, found, tuple(files), others)


def _kept(place: Place, pack: Source | None) -> Iterator[Path]:
    """Yield what a client kept, without a second name that the replaced file still has.

    Where nothing is under way, `pack` is None: what has that name is what the client trimmed.
    """
    status = None if pack is None else os.fstat(pack.fd)
    for path in place.client.trims.replaced(place.live, place.session):
        if status is None or not fs.same_as(status)(path):
            yield path


def _written(place: Place, told: Record, stack: ExitStack) -> Iterator[tuple[Waiting, Source]]:
    """Open the files that wait and are not as they were when the record was written.

    One that somebody edited, or that has a second name, may be any file: its lines belong nowhere.
    """
    for each in sorted(told.waiting, key=lambda each: each.number):
        with suppress(SessrotateError, OSError):  # it is gone
            source = _inside(place, f"{names.WAITING}/{each.number}", stack)
            now = source.identity()
            is_same = (now.size, now.modified_ns) == (each.mark.size, each.modified)
            if is_same and each.batch is None:
                continue
            source.freeze()
            if os.fstat(source.fd).st_nlink == 1 and is_at(source, 0, each.mark):
                yield each, source


def _successor(
    live: Source | None, begun: Intent | None, kept: tuple[Path, ...], stack: ExitStack
) -> Source | None:
    """Return what took the old live file's place, or would have."""
    if live is None or begun is None:
        return live
    if kept and not _has_taken(live, begun):
        for path in kept:
            with suppress(SessrotateError, OSError):
                source = stack.enter_context(Source.inside(path.parent, path.name))
                source.freeze()
                if _has_taken(source, begun):
                    return source
    return live


def _has_taken(source: Source, begun: Intent) -> bool:
    """Tell whether a file is the new one of a swap, with all of its tail."""
    return is_at(source, 0, begun.swap.new) and has_tail(source, begun)


def has_tail(source: Source, begun: Intent) -> bool:
    """Tell whether a file still has the tail with which the new one took its place.

    Since then its client may have taken rows back, and another program any part of it.
    """
    return is_at(source, begun.swap.prefix, begun.swap.tail)


def _parsed(listed: bytes, header: LiveHeader | None) -> Manifest | None:
    """Return a manifest; None for a damaged one that a live file's header can replace."""
    try:
        return manifest.parse(listed)
    except DamagedError:
        if header is None:
            raise
        return None


# ── what tells whether an interrupted swap was done: the columns of `record.ROWS` ─────────────


def match(found: FoundFiles, begun: Intent) -> Match:
    """Return what the live file is."""
    live = found.live
    if live is None:
        return "absent"
    if found.is_pack:
        return "pack"
    if is_at(live, 0, begun.swap.new) and (not _may_be_copy(found, begun) or has_tail(live, begun)):
        return "new"
    if _counts_all(found, begun):
        return "new"
    if found.successor is not live:
        return "kept"
    return "old" if is_at(live, 0, begun.swap.old) else "other"


def _may_be_copy(found: FoundFiles, begun: Intent) -> bool:
    """Tell whether a file that begins like the new one may be an older copy of the session.

    The new file of a restoration, and one that is put together, begins with the session itself, as
    a copy does; then the pack may be all that has the end. Without a pack nothing is at stake.
    """
    is_alike = begun.operation == "restore" or begun.moves_nothing
    return found.pack is not None and is_alike


def _counts_all(found: FoundFiles, begun: Intent) -> bool:
    """Tell by its header whether the live file is the one of a rotation, whatever a record says."""
    header, live, listed = found.header, found.live, found.manifest
    if not begun.count or header is None or live is None or listed is None:
        return False
    is_all = header.index == begun.first + begun.count
    return is_all and live_tail.ends_at(listed, header) and not live_tail.misfit(header, live)


def drafted(found: FoundFiles) -> Drafted:
    """Return what has the draft's name, without opening it."""
    # Not opened: a rotation under way proves by a lease that nobody has it open.
    if names.DRAFT not in found.listing:
        return "absent"
    try:
        status = found.place.draft.lstat()
    except FileNotFoundError:
        return "absent"
    if _is(found.pack, status):
        return "old"
    return "live" if _is(found.live, status) else "other"


def _is(source: Source | None, status: os.stat_result) -> bool:
    here = None if source is None else source.identity()
    return here is not None and (here.device, here.inode) == (status.st_dev, status.st_ino)
