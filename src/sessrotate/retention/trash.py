"""Both trashes, of pruned segments and of restored sessions: what is due, and the ways back.

Rule: only what a tombstone in the manifest lists, or a note of ours says, is ever freed or brought
back. Other files in the trash stay, and are reported. An archive that a live file goes on from is
never freed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sessrotate import fs, names, units
from sessrotate.archive import restored, state
from sessrotate.errors import RefusedError, printable, storage
from sessrotate.retention import transaction
from sessrotate.retention.transaction import Unsettled
from sessrotate.system import locks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.archive.place import Place
    from sessrotate.archive.restored import Trashed
    from sessrotate.segments.manifest import Manifest

GRACE: Final = 7 * 86_400.0
"""Seconds that a pruned segment stays in the trash, unless another grace time is given."""


@dataclass(frozen=True, slots=True)
class Due:
    """What can be freed of a session's trash now, and how many bytes that is.

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


def due(where: Place, grace: float, now: float) -> Due:
    """Return what `empty` would free; change nothing.

    `grace` is in seconds, `now` in seconds since 1970. Raises DamagedError if the manifest or the
    trash cannot be read.
    """
    with state.opened(where) as found, storage("look into the trash"):
        there = transaction.in_trash(where)
        whole = () if found.trashed else tuple(_over(where, grace, now))
        freed = sum(entry.bytes for entry in whole)
        if found.manifest is None:
            return Due(where, (), freed, tuple(sorted(there)), Unsettled(), whole)
        listed = found.manifest
        left = transaction.unsettled(listed, found.listing, there)
    pruned = _pruned(listed)
    files = tuple(
        name
        for name, at in pruned.items()
        if name in there and _is_over(at, now, grace) and not listed.is_rebuilt
    )
    strangers = tuple(sorted(there.keys() - pruned.keys() - set(left.risen)))
    freed += sum(there[name] for name in files)
    return Due(where, files, freed, strangers, left, whole, listed.is_rebuilt)


def _over(where: Place, grace: float, now: float) -> Iterator[Trashed]:
    for entry in restored.of(where):
        is_over = entry.at is not None and _is_over(entry.at, now, grace)
        if is_over and not restored.is_needed(where, entry):
            yield entry


def empty(where: Place, grace: float, now: float, wait: float) -> int:
    """Free what was pruned at least `grace` seconds before `now`; return how many bytes that is.

    Raises as `transaction.begin` does.
    """
    before = due(where, grace, now)
    freed = _empty_restored(where, grace, now, wait) if before.restored else 0
    if not before.files and not before.left:
        return freed
    with transaction.begin(where, wait) as listed:
        there, pruned = transaction.in_trash(where), _pruned(listed)
        files = [name for name in before.files if name in there and name in pruned]
        fs.remove_files(transaction.trash(where), files)
        fs.remove_folder(transaction.trash(where))
    return freed + sum(there[name] for name in files)


def _empty_restored(where: Place, grace: float, now: float, wait: float) -> int:
    with locks.alone(where, wait), storage("empty the trash"):
        found = due(where, grace, now)
        there, freed = found.restored, sum(entry.bytes for entry in found.restored)
        for entry in there:
            folder, session = entry.folder, where.session
            ours = [
                path.name
                for path in folder.iterdir()
                if path.name.endswith(names.SUFFIXES)
                and session in names.possible_sessions(path.name)
            ]
            # First what makes it an archive, so that half of one is never brought back; last what
            # says that it may go.
            for files in ([names.MANIFEST], [*ours, names.INTENT], [names.RESTORED_NOTE]):
                fs.remove_files(folder, files)
            for emptied in (folder / names.TRASH, folder):
                if emptied.is_dir() and not emptied.is_symlink():
                    fs.remove_folder(emptied)
        fs.remove_folder(where.trash)
    return freed


def undelete(where: Place, index: int | None, wait: float) -> list[int]:
    """Bring one pruned segment back from the trash, or all of them; return their numbers.

    Raises RefusedError if the trash has none of them any more.
    """
    with transaction.begin(where, wait) as listed:
        there = transaction.in_trash(where)
        back = {
            transaction.file_of(listed, entry): entry
            for entry in listed.segments
            if entry.pruned is not None and index in {None, entry.segment.index}
        }
        files = [name for name in back if name in there]
        if not files:
            what = "has no pruned segment" if index is None else f"does not have segment {index}"
            raise RefusedError(f"The trash of {printable(where.session)} {what}.")
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
