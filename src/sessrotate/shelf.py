"""What is done to sealed segments: one archive, under its lock, with nothing half-way in it.

Rule: the manifest decides which file of a segment counts, and is replaced at once. A segment with
a tombstone belongs into the trash and any other into the archive; whatever a crash left on the
wrong side is moved over (`settle`) before anything else is done, so nothing is ever lost by one.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from sessrotate import fs, locks, manifest, names, recover, state
from sessrotate.errors import InUseError, RefusedError, printable, storage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from sessrotate.manifest import Manifest
    from sessrotate.model import SealedSegment
    from sessrotate.place import Place
    from sessrotate.state import State


def trash(where: Place) -> Path:
    """Return the folder that pruned segments go to."""
    return where.archive / names.TRASH


def file_of(listed: Manifest, entry: SealedSegment) -> str:
    """Return the name of a segment's file, wherever it is."""
    return names.segment_file(listed.session, listed.layout, entry.segment.index, entry.codec)


def check_finished(found: State) -> None:
    """Raise InUseError while a rotation or restoration of the session is not finished."""
    if found.intent is not None or any(map(recover.is_leftover, found.listing)):
        name = printable(found.place.session)
        raise InUseError(
            f"A run on {name} was interrupted or goes on: `sessrotate split --in-place {name}` "
            "finishes it; then try again."
        )


@contextmanager
def changing(where: Place, wait: float) -> Iterator[Manifest]:
    """Hold a session's lock in the block and yield the manifest of its archive, settled.

    `wait` is how many seconds to wait for the lock. Raises InUseError if it is not free, or
    something is unfinished; RefusedError if nothing is archived.
    """
    with locks.alone(where, wait), storage("change the archive"):
        with state.opened(where) as found:
            check_finished(found)
            if found.manifest is None:
                raise RefusedError(f"{printable(where.session)} has no archive.")
            listed, listing = found.manifest, found.listing
        settle(where, listed, listing)
        yield listed


def settle(where: Place, listed: Manifest, listing: Iterable[str]) -> None:
    """Move segments with a tombstone that are still in the archive to its trash."""
    here = set(listing)
    left = [file_of(listed, entry) for entry in listed.segments if entry.pruned is not None]
    left = [name for name in left if name in here]
    if left:
        fs.move_files(where.archive, left, trash(where))


def replace_segments(
    where: Place, listed: Manifest, changed: Mapping[int, SealedSegment]
) -> Manifest:
    """Put a manifest with these segments changed in the place of the one before; return it."""
    segments = tuple(changed.get(entry.segment.index, entry) for entry in listed.segments)
    changed_manifest = replace(listed, segments=segments)
    fs.create_file_at_once(where.archive / names.MANIFEST, manifest.dump(changed_manifest))
    return changed_manifest
