"""Pruned segments, and archives of restored sessions: in the trash, brought back, freed for good.

Promise: `begin` yields the manifest of an archive in which nothing is half-done, and
`replace_segments` puts a changed manifest in its place at once; `due` says what `empty` would free,
and `undelete` brings pruned segments back.

Rule: the manifest decides. A segment with a tombstone belongs in the trash and any other in the
archive, in the one form (plain or compressed) that the manifest names. Whatever a crash left
otherwise is settled before the next change, and nothing is lost by it.

Only what a tombstone in the manifest lists, or a note of ours says, is ever freed or brought back.
Other files in the trash stay, and are reported. An archive that a live file goes on from is never
freed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import fs, names, units
from sessrotate.archive import restored, state
from sessrotate.archive.found_files import Restored
from sessrotate.archive.place import Place
from sessrotate.archive.state import State
from sessrotate.clients import common
from sessrotate.errors import DamagedError, InUseError, RefusedError, printable, storage
from sessrotate.in_place import sealed_segments
from sessrotate.model import SealedSegment
from sessrotate.segments import body, load, manifest
from sessrotate.segments.manifest import Manifest
from sessrotate.system import disk_use, locks

# ── a change to the sealed segments of an archive, under the session's lock ──────────────────────


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


def folder(where: Place) -> Path:
    """Return the folder that pruned segments move to."""
    return where.archive / names.TRASH


def in_trash(where: Place) -> dict[str, int]:
    """Return the regular files in an archive's trash and their sizes in bytes.

    Raises DamagedError if the trash is not a folder.
    """
    path = folder(where)
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return {}
    if not stat.S_ISDIR(mode):
        raise DamagedError(f"{printable(str(path))} is not a folder: move it away.")
    found = {}
    for file in path.iterdir():
        with suppress(FileNotFoundError):  # another process brings it back, or deletes it
            there = file.lstat()
            if stat.S_ISREG(there.st_mode) and not names.is_hidden(file.name):
                found[file.name] = there.st_size
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
        return os.path.samestat((where.archive / file).lstat(), (folder(where) / file).lstat())
    return False


def settle(where: Place, listed: Manifest, listing: frozenset[str]) -> None:
    """Put right what an interrupted run left. The caller holds the session's lock."""
    left = unsettled(where, listed, listing, in_trash(where))
    if not left:
        return
    twice = there_twice(where, listed, left.buried)
    # After a power loss, too, the manifest must be the one that decides here.
    fs.sync_folder(where.archive)
    fs.remove_files(where.archive, left.drafts)
    if left.risen:
        fs.move_files(folder(where), left.risen, where.archive)
    if left.buried:
        bury(where, left.buried, twice)


def there_twice(where: Place, listed: Manifest, files: Iterable[str]) -> frozenset[str]:
    """Return which of these files the trash has as well, as a file of its own, and as whole.

    So it is where a backup was put over the present. Both are read. Raises DamagedError, before
    anything is changed, if one of the two is not what was archived.
    """
    there, found = in_trash(where), set[str]()
    for file in files:
        if file in there and not _has_both_names(where, file):
            paths = where.archive / file, folder(where) / file
            segments = load.of_manifest(where.archive, frozenset({file}), listed)
            part = next(part for part in segments.parts if part.name == file)
            for path in paths:
                name = str(path.relative_to(where.archive))
                try:
                    for _ in body(segments, replace(part, file=name)):
                        pass
                except DamagedError:
                    one, other = (printable(str(each)) for each in paths)
                    raise DamagedError(
                        f"{one} and {other} are the same segment, and {printable(str(path))} is "
                        "damaged: move that file away, then try again."
                    ) from None
            found.add(file)
    return frozenset(found)


def bury(where: Place, files: Iterable[str], twice: frozenset[str]) -> None:
    """Move segments to the trash; of those that are `there_twice`, the archived file goes."""
    wanted = [*files]
    fs.remove_files(where.archive, [file for file in wanted if file in twice])
    fs.move_files(where.archive, [file for file in wanted if file not in twice], folder(where))


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


# ── what goes when its grace period is over ──────────────────────────────────────────────────────


class Due(Struct, frozen=True):
    """What can be freed of a session's trash now: `bytes` of files, and `disk` blocks of the disk.

    `files` are pruned segments, `restored` what is left of the archive of a session that is whole
    again, and `kept` how many bytes of the two stay. `strangers` are files in the trash that were
    never pruned; `left` is what an interrupted run left to be settled. `is_owed`: the session was
    restored and is not whole any more, so none is freed before it is.
    """

    where: Place
    files: tuple[str, ...]
    bytes: int
    strangers: tuple[str, ...]
    left: Unsettled
    restored: Restored | None = None
    disk: int = 0
    kept: int = 0
    is_owed: bool = False

    @property
    def is_any(self) -> bool:
        """Whether anything can be freed."""
        return bool(self.files) or self.restored is not None


def together(found: Due, pruned: Due | None) -> Due:
    """Return what goes of a session's trash with what is moved there just before."""
    if pruned is None:
        return found
    return replace(
        found,
        files=(*found.files, *pruned.files),
        bytes=found.bytes + pruned.bytes,
        disk=found.disk + pruned.disk,
    )


def measured(wanted: Iterable[Place]) -> int:
    """Return how many bytes of the disk these sessions' archives take, their trash included."""
    return disk_use.of(*(where.archive for where in wanted))


def due(
    where: Place,
    grace: float,
    now: float,
    copied: Callable[[], Collection[str]] = restored.copied,
) -> Due:
    """Return what `empty` would free; change nothing.

    The archive of a restored session, of which the live file by now lacks something, is never due:
    it may be all that is left of it. `grace` is in seconds, `now` in seconds since 1970; whoever
    asks for many passes a `copied` that looks once. Raises DamagedError if the manifest or the
    trash cannot be read.
    """
    with state.opened(where) as found:
        return due_of(found, grace, now, copied)


def due_of(
    found: State,
    grace: float,
    now: float,
    copied: Callable[[], Collection[str]] = restored.copied,
) -> Due:
    """Return the same of a session that is open."""
    where = found.place
    with storage("look into the trash"):
        there = in_trash(where)
        if found.manifest is None:
            whole = _over(found, grace, now, copied)
            size, disk = (0, 0) if whole is None else (whole.bytes, whole.allocated)
            ours = () if found.restored is None else found.restored.files
            strangers = tuple(sorted(there.keys() - {path.name for path in ours}))
            kept = 0 if found.restored is None or whole is not None else found.restored.bytes
            return Due(where, (), size, strangers, Unsettled(), whole, disk=disk, kept=kept)
        known = found.manifest
        left = unsettled(where, known, found.listing, there)
    pruned, is_owed = _pruned(known), restored.is_owed(found)
    is_held = is_owed or found.problem is not None  # a repair may need them
    files = tuple(
        name
        for name, at in pruned.items()
        if name in there and _is_over(at, now, grace) and not is_held
    )
    strangers = tuple(sorted(there.keys() - pruned.keys() - set(left.risen)))
    freed = sum(there[name] for name in files)
    kept = sum(there[name] for name in pruned.keys() & there.keys()) - freed
    disk = disk_use.of(*_with_folder(folder(where), files))
    return Due(where, files, freed, strangers, left, None, disk, kept, is_owed=is_owed)


def _with_folder(top: Path, going: Collection[str]) -> Iterator[Path]:
    """Yield what is going of a folder, which goes with it if it is empty then."""
    if going and {path.name for path in common.listed(top)} == {*going}:
        yield top
    else:
        yield from (top / name for name in going)


def _over(
    found: State, grace: float, now: float, copied: Callable[[], Collection[str]]
) -> Restored | None:
    """Return what is left of the archive of a restored session, if it may go; None otherwise."""
    kept = found.restored
    if kept is None or not kept.files or found.intent is not None:
        return None
    if kept.others or not kept.at:  # `doctor` tells
        return None
    if not _is_over(kept.at, now, grace) or not restored.is_held(found):
        return None
    return None if restored.is_needed(found, copied) else kept


def empty(
    where: Place,
    grace: float,
    now: float,
    wait: float,
    copied: Callable[[], Collection[str]] = restored.copied,
    *,
    shown: Due | None = None,
) -> int:
    """Free what was pruned at least `grace` seconds before `now`; return how long its files were.

    Only what somebody was `shown` goes, everything with None. What the disk gains by that, whoever
    wants to know measures around it. `copied` is as in `due`.

    Raises as `begin` does.
    """
    before = due(where, grace, now, copied)
    if shown is not None:
        seen = frozenset(shown.files)
        going = tuple(name for name in before.files if name in seen)
        kept = None if shown.restored is None else before.restored
        before = replace(before, files=going, restored=kept)
    if before.restored is not None:
        with locks.alone(where, wait), storage("empty the trash"):
            return _empty_restored(where, due(where, grace, now, copied))
    if not before.files and not before.left:
        return 0
    with begin(where, wait) as listed:
        there, pruned = in_trash(where), _pruned(listed)
        # What `begin` has only now moved to the trash is not in `before`, and stays for this run.
        # So does what was brought back meanwhile, and pruned once more.
        over = {name for name, at in pruned.items() if _is_over(at, now, grace)}
        files = [name for name in before.files if name in there and name in over]
        fs.remove_files(folder(where), files)
        fs.remove_folder(folder(where))
    return sum(there[name] for name in files)


def _empty_restored(where: Place, found: Due) -> int:
    if found.restored is None:
        return 0
    # The manifest last: what is left by a crash is held against it once more. That its owner wants
    # the session whole stays.
    *segments, last = found.restored.files
    for top in (folder(where), where.archive):
        fs.remove_files(top, [path.name for path in segments if path.parent == top])
    fs.remove_files(where.archive, [last.name])
    fs.remove_folder(folder(where))  # a crash may have left it, empty
    return found.bytes


def undelete(where: Place, wait: float, indices: Collection[int]) -> None:
    """Bring these pruned segments back from the trash.

    `wait` is how many seconds to wait for the lock. Those that an interrupted call has begun to
    bring back are back already. Raises RefusedError if the trash has none of the others any more,
    and as `begin` does.
    """
    with begin(where, wait) as listed:
        there = in_trash(where)
        back = {
            listed.file_of(entry): entry
            for entry in listed.segments
            if entry.pruned is not None and entry.segment.index in indices
        }
        files = [name for name in back if name in there]
        if not files:
            if not back:
                return
            raise RefusedError(f"The trash of {printable(where.session)} has no such segment.")
        risen = {back[name].segment.index: replace(back[name], pruned=None) for name in files}
        # It says what is wanted, so it is first: a segment in the archive that still has its
        # tombstone goes to the trash, and the next run deletes it if it was pruned long ago.
        replace_segments(where, listed, risen)
        fs.move_files(folder(where), files, where.archive)
        fs.remove_folder(folder(where))


def _pruned(listed: Manifest) -> dict[str, str]:
    """Return the files of pruned segments, and when each was pruned (ISO 8601, UTC)."""
    return {
        listed.file_of(entry): entry.pruned.at
        for entry in listed.segments
        if entry.pruned is not None
    }


def _is_over(at: str, now: float, grace: float) -> bool:
    time = units.seconds(at)
    # No grace period goes by no clock: what was noted a moment ago, or under a clock that was
    # ahead, may be dated later than the start of the run that frees it.
    return time is not None and (not grace or time <= now - grace)
