"""The trash of an archive: what is due to be freed, freeing it, and bringing segments back.

Rule: only what a tombstone in the manifest lists is ever freed or brought back. Other files in the
trash stay, and are reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sessrotate import fs, units
from sessrotate.archive import state
from sessrotate.errors import RefusedError, printable, storage
from sessrotate.retention import transaction
from sessrotate.retention.transaction import Unsettled

if TYPE_CHECKING:
    from sessrotate.archive.place import Place
    from sessrotate.segments.manifest import Manifest

GRACE: Final = 7 * 86_400.0
"""Seconds that a pruned segment stays in the trash, unless another grace time is given."""


@dataclass(frozen=True, slots=True)
class Due:
    """What can be freed of an archive's trash now, and how many bytes that is.

    `strangers` are files in the trash that were never pruned; `left` is what an interrupted run
    left to be settled.
    """

    where: Place
    files: tuple[str, ...]
    bytes: int
    strangers: tuple[str, ...]
    left: Unsettled


def due(where: Place, grace: float, now: float) -> Due:
    """Return what `empty` would free; change nothing.

    `grace` is in seconds, `now` in seconds since 1970. Raises DamagedError if the manifest or the
    trash cannot be read.
    """
    with state.opened(where) as found, storage("look into the trash"):
        there = transaction.in_trash(where)
        if found.manifest is None:
            return Due(where, (), 0, tuple(sorted(there)), Unsettled())
        listed = found.manifest
        left = transaction.unsettled(listed, found.listing, there)
    pruned = _pruned(listed)
    files = tuple(name for name, at in pruned.items() if name in there and _is_over(at, now, grace))
    strangers = tuple(sorted(there.keys() - pruned.keys() - set(left.risen)))
    return Due(where, files, sum(there[name] for name in files), strangers, left)


def empty(where: Place, grace: float, now: float, wait: float) -> int:
    """Free what was pruned at least `grace` seconds before `now`; return how many bytes that is.

    Raises as `transaction.begin` does.
    """
    before = due(where, grace, now)
    if not before.files and not before.left:
        return 0
    with transaction.begin(where, wait) as listed:
        there, pruned = transaction.in_trash(where), _pruned(listed)
        files = [name for name in before.files if name in there and name in pruned]
        fs.remove_files(transaction.trash(where), files)
        fs.remove_folder(transaction.trash(where))
    return sum(there[name] for name in files)


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
