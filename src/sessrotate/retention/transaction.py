"""One change to the sealed segments of an archive, under the session's lock.

Promise: `begin` yields the manifest of an archive in which nothing is half-done;
`replace_segments` puts a changed manifest in its place at once.

Rule: the manifest decides. A segment with a tombstone belongs in the trash and any other in the
archive, in the one form (plain or compressed) that the manifest names. Whatever a crash left
otherwise is settled before the next change, and nothing is lost by it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import fs, names
from sessrotate.archive import state
from sessrotate.archive.place import Place
from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, InUseError, RefusedError, printable, storage
from sessrotate.in_place import sealed_segments
from sessrotate.model import SealedSegment
from sessrotate.segments import manifest
from sessrotate.segments.manifest import Manifest
from sessrotate.system import locks

REBUILT: Final = "its pins were lost with its manifest (--accept-rebuilt allows pruning)"
"""Why nothing of an archive is pruned or freed before its owner agrees."""


class Unsettled(Struct, frozen=True):
    """Files that an interrupted run left in the wrong place, by name.

    `buried` have a tombstone and are in the archive; `risen` have none and are in the trash;
    `drafts` are unfinished files.
    """

    buried: tuple[str, ...] = ()
    risen: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != Unsettled()

    def __str__(self) -> str:
        """Say what happened, in sentences for a person."""
        sentences = []
        if self.buried:
            sentences.append(
                "Pruning was interrupted: some pruned segments are not in the trash yet."
            )
        if self.risen:
            sentences.append(
                "A restoration was interrupted: some segments that it brings back are in the trash."
            )
        if self.drafts:
            sentences.append(f"Writing the {names.MANIFEST} was interrupted.")
        return " ".join(sentences)


def trash(where: Place) -> Path:
    """Return the folder that pruned segments move to."""
    return where.archive / names.TRASH


def in_trash(where: Place) -> dict[str, int]:
    """Return the regular files in an archive's trash and their sizes in bytes.

    Raises DamagedError if the trash is not a folder.
    """
    folder = trash(where)
    try:
        mode = folder.lstat().st_mode
    except FileNotFoundError:
        return {}
    if not stat.S_ISDIR(mode):
        raise DamagedError(f"{printable(str(folder))} is not a folder: move it away.")
    found = {}
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another process brings it back, or deletes it
            there = path.lstat()
            if stat.S_ISREG(there.st_mode) and not names.is_hidden(path.name):
                found[path.name] = there.st_size
    return found


def check_finished(found: State) -> None:
    """Raise InUseError while a rotation or restoration of the session is not finished."""
    if found.intent is not None or names.PACK in found.listing:
        name, command = printable(found.place.session), found.finished_by
        what = "restoration" if command == "restore" else "rotation"
        raise InUseError(
            f"A {what} of {name} is unfinished: finish it with `sessrotate {command} {name}`, then "
            "try again."
        )


def check_listed(found: State) -> None:
    """Raise DamagedError if the archive has lost its manifest."""
    is_headless = found.manifest is None and found.live is None and found.problem is not None
    if is_headless or sealed_segments.is_manifest_lost(found):
        raise DamagedError(str(found.problem))


@contextmanager
def begin(where: Place, wait: float) -> Iterator[Manifest]:
    """Hold a session's lock in the block and yield the manifest of its archive, settled.

    `wait` is how many seconds to wait for the lock. Raises InUseError if it stays taken, or a
    rotation is unfinished; RefusedError if the session has no archive.
    """
    with locks.alone(where, wait), storage("change the archive"):
        with state.opened(where) as found:
            check_finished(found)
            check_listed(found)
            if found.restored is not None:
                name = printable(where.session)
                raise RefusedError(
                    f"{name} was restored, and is whole: `sessrotate rotate {name}` archives it "
                    "again."
                )
            if found.manifest is None:
                raise RefusedError(f"{printable(where.session)} has no archive.")
            listed, listing = found.manifest, found.listing
        settle(where, listed, listing)
        yield listed


def unsettled(
    where: Place, listed: Manifest, listing: Collection[str], trashed: Collection[str]
) -> Unsettled:
    """Return what is in the wrong place, by the names in an archive and in its trash.

    A power loss can leave a file that moved both names: then it is in the wrong place still.
    """
    buried, risen = [], []
    for entry in listed.segments:
        file = listed.file_of(entry)
        if entry.pruned is None:
            if file in trashed and (file not in listing or _has_both_names(where, file)):
                risen.append(file)
        elif file in listing:
            buried.append(file)
    drafts = tuple({f"{names.MANIFEST}{names.PARTIAL}"} & {*listing})
    return Unsettled(tuple(buried), tuple(risen), drafts)


def _has_both_names(where: Place, file: str) -> bool:
    with suppress(FileNotFoundError):  # another process moves it
        return os.path.samestat((where.archive / file).lstat(), (trash(where) / file).lstat())
    return False


def settle(where: Place, listed: Manifest, listing: frozenset[str]) -> None:
    """Put right what an interrupted run left. The caller holds the session's lock."""
    left = unsettled(where, listed, listing, in_trash(where))
    if not left:
        return
    # After a power loss, too, the manifest must be the one that decides here.
    fs.sync_folder(where.archive)
    fs.remove_files(where.archive, left.drafts)
    if left.risen:
        fs.move_files(trash(where), left.risen, where.archive)
    if left.buried:
        fs.move_files(where.archive, left.buried, trash(where))


def replace_segments(where: Place, listed: Manifest, changed: Mapping[int, SealedSegment]) -> None:
    """Replace the manifest by one with these segments changed.

    Raises RefusedError if it would be too large to be read again.
    """
    segments = tuple(changed.get(entry.segment.index, entry) for entry in listed.segments)
    data = manifest.dump(replace(listed, segments=segments))
    if len(data) > manifest.MAX_BYTES:
        raise RefusedError(
            f"The {names.MANIFEST} would be too large: unpin segments or shorten their notes first."
        )
    try:
        fs.create_file_at_once(where.archive / names.MANIFEST, data)
    except OSError:
        with suppress(OSError):  # a full disk needs the room
            fs.remove_files(where.archive, [f"{names.MANIFEST}{names.PARTIAL}"])
        raise
