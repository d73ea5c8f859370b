"""Both trashes, of pruned segments and of restored sessions: what is due, and the ways back.

Rule: only what a tombstone in the manifest lists, or a note of ours says, is ever freed or brought
back. Other files in the trash stay, and are reported. An archive that a live file goes on from is
never freed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import fs, names, units
from sessrotate.archive import restored, state
from sessrotate.clients.common import listed
from sessrotate.errors import RefusedError, printable, storage
from sessrotate.retention import transaction
from sessrotate.retention.transaction import Unsettled
from sessrotate.system import disk_use, locks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.archive.restored import Trashed
    from sessrotate.segments.manifest import Manifest


_DRAFT: Final = names.RESTORED_NOTE + names.PARTIAL
"""What a crash or a full disk left of a note."""


class Due(Struct, frozen=True):
    """What can be freed of a session's trash now: `bytes` of files, and `disk` blocks of the disk.

    `files` are pruned segments, `restored` the archives of the session as it was before it was
    restored. `strangers` are files in the trash that were never pruned; `left` is what an
    interrupted run left to be settled. `is_rebuilt`: the manifest was lost, so no pruned segment
    is freed before its owner agrees.
    """

    where: Place
    files: tuple[str, ...]
    bytes: int
    strangers: tuple[str, ...]
    left: Unsettled
    restored: tuple[Trashed, ...] = ()
    is_rebuilt: bool = False
    disk: int = 0

    @property
    def is_any(self) -> bool:
        """Whether anything can be freed."""
        return bool(self.files or self.restored)


def measured(wanted: Iterable[Place]) -> int:
    """Return how many bytes of the disk these sessions' archives and trashes take."""
    return disk_use.of(*(path for where in wanted for path in (where.archive, where.trash)))


def due(where: Place, grace: float, now: float, *, by_name: bool = False) -> Due:
    """Return what `empty` would free; change nothing.

    The archive of a restored session, of which the live file by now lacks something or is gone, may
    be all that is left of it: it is due only `by_name`, when its owner has named the session.
    `grace` is in seconds, `now` in seconds since 1970. Raises DamagedError if the manifest or the
    trash cannot be read.
    """
    with state.opened(where) as found, storage("look into the trash"):
        there = transaction.in_trash(where)
        is_last = found.trashed is not None and not (by_name and found.is_gone)
        whole = () if is_last else tuple(_over(where, grace, now, by_name=by_name))
        freed = sum(entry.bytes for entry in whole)
        if found.manifest is None:
            strangers = tuple(sorted(there))
            return Due(
                where, (), freed, strangers, Unsettled(), whole, disk=_disk(where, (), whole)
            )
        known = found.manifest
        left = transaction.unsettled(known, found.listing, there)
    pruned = _pruned(known)
    files = tuple(
        name
        for name, at in pruned.items()
        if name in there and _is_over(at, now, grace) and not known.is_rebuilt
    )
    strangers = tuple(sorted(there.keys() - pruned.keys() - set(left.risen)))
    freed += sum(there[name] for name in files)
    disk = _disk(where, files, whole)
    return Due(where, files, freed, strangers, left, whole, known.is_rebuilt, disk)


def _disk(where: Place, files: tuple[str, ...], whole: tuple[Trashed, ...]) -> int:
    """Return what these files of the trash take of the disk, with folders that are empty then."""
    pruned = _with_folder(transaction.trash(where), files)
    return disk_use.of(*pruned, *_with_folder(where.trash, [each.folder.name for each in whole]))


def _with_folder(folder: Path, going: Collection[str]) -> Iterator[Path]:
    if going and {path.name for path in listed(folder)} == {*going}:
        yield folder
    else:
        yield from (folder / name for name in going)


def _over(where: Place, grace: float, now: float, *, by_name: bool) -> Iterator[Trashed]:
    for entry in restored.of(where):
        is_over = entry.at is not None and _is_over(entry.at, now, grace)
        if not is_over or restored.is_needed(where, entry):
            continue
        # Last, since it reads the live file: what nothing else has goes by its name only.
        is_named = by_name and entry.project == where.project
        if is_named or entry.is_going or restored.is_elsewhere(where, entry):
            yield entry


def empty(where: Place, grace: float, now: float, wait: float, *, by_name: bool = False) -> int:
    """Free what was pruned at least `grace` seconds before `now`; return how long its files were.

    What the disk gains by that, whoever wants to know measures around it. `by_name` is as in
    `due`.

    Raises as `transaction.begin` does.
    """
    before = due(where, grace, now, by_name=by_name)
    freed = _empty_restored(where, grace, now, wait, by_name=by_name) if before.restored else 0
    if not before.files and not before.left:
        return freed
    with transaction.begin(where, wait) as listed:
        there, pruned = transaction.in_trash(where), _pruned(listed)
        files = [name for name in before.files if name in there and name in pruned]
        fs.remove_files(transaction.trash(where), files)
        fs.remove_folder(transaction.trash(where))
    return freed + sum(there[name] for name in files)


def _empty_restored(where: Place, grace: float, now: float, wait: float, *, by_name: bool) -> int:
    with locks.alone(where, wait), storage("empty the trash"):
        found = due(where, grace, now, by_name=by_name)
        there, freed = found.restored, sum(entry.bytes for entry in found.restored)
        for entry in there:
            folder, session = entry.folder, where.session
            ours = [
                path.name
                for path in folder.iterdir()
                if path.name.endswith(names.SUFFIXES)
                and session in names.possible_sessions(path.name)
            ]
            # First that it goes, since half of one proves nothing any more; then what makes it an
            # archive, so that half of one is never brought back; last what says that it may go.
            going = restored.note(session, entry.project, entry.at, is_going=True)
            with suppress(OSError):  # a full disk is what this is to mend
                fs.create_file_at_once(folder / names.RESTORED_NOTE, going)
            for files in ([names.MANIFEST], [*ours, names.INTENT, _DRAFT], [names.RESTORED_NOTE]):
                fs.remove_files(folder, files)
            for emptied in (folder / names.TRASH, folder):
                if emptied.is_dir() and not emptied.is_symlink():
                    fs.remove_folder(emptied)
        fs.remove_folder(where.trash)
    return freed


def undelete(where: Place, wait: float, indices: Collection[int] | None = None) -> list[int]:
    """Bring pruned segments back from the trash, all or these; return their numbers.

    `wait` is how many seconds to wait for the lock. Raises RefusedError if the trash has none of
    them any more, and as `transaction.begin` does.
    """
    with transaction.begin(where, wait) as listed:
        there = transaction.in_trash(where)
        back = {
            transaction.file_of(listed, entry): entry
            for entry in listed.segments
            if entry.pruned is not None and (indices is None or entry.segment.index in indices)
        }
        files = [name for name in back if name in there]
        if not files:
            raise RefusedError(f"The trash of {printable(where.session)} has no such segment.")
        fs.move_files(transaction.trash(where), files, where.archive)
        risen = {back[name].segment.index: replace(back[name], pruned=None) for name in files}
        transaction.replace_segments(where, listed, risen)
        fs.remove_folder(transaction.trash(where))
    return sorted(risen)


def _pruned(listed: Manifest) -> dict[str, str]:
    """Return the files of pruned segments, and when each was pruned (ISO 8601, UTC)."""
    return {
        transaction.file_of(listed, entry): entry.pruned.at
        for entry in listed.segments
        if entry.pruned is not None
    }


def _is_over(at: str, now: float, grace: float) -> bool:
    time = units.seconds(at)
    return time is not None and time <= now - grace
