"""Reasons not to replace a live file; what a full disk lacks, in bytes, with what frees some.

Rule: each reason says what to do about it. Only reads. Of errors, only what failed for want of room
is said anew; every other one goes through as it is.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import fs, names, platforms, units
from sessrotate.archive.place import Place, holds_something
from sessrotate.archive.state import State
from sessrotate.errors import (
    MORE_INODES,
    NO_INODES,
    RefusedError,
    SessrotateError,
    StorageError,
    is_full,
    lacks_inodes,
    printable,
)
from sessrotate.model import Segment
from sessrotate.segments.scan import MAX_BOUNDARIES
from sessrotate.system.source import Source
from sessrotate.units import amount

_LARGEST: Final = 4096


def of(place: Place, source: Source, given: int) -> Iterator[str]:
    """Yield the reasons; the live file is open as `source`, and we gave it `given` more names.

    One that is for a client that trims the file is none of them.
    """
    name = printable(str(place.live))
    status = os.fstat(source.fd)
    given += len(place.client.trims.names_of(place.live, place.session, status))
    if place.client.files.named(place.live.name) == "copy" and not holds_something(place.archive):
        yield f"{name} is named like a copy, so no client lists it: give it a name of its own."
    if place.live.is_symlink():
        yield f"{name} is a symbolic link: put the file itself in its place."
    if status.st_nlink - given > 1:
        yield f"{name} has another name (a hard link): remove that, or put a copy in its place."
    if reason := of_another(place.live, status.st_uid):
        yield reason
    if reason := fixed(source.fd, place.live):
        yield reason
    # A live file that has left its folder already needs no more of that.
    if os.path.lexists(place.live) and (reason := read_only(place.live.parent)):
        yield reason
    if _is_too_long(place):
        yield too_long(place)
    if (told := place.client.database.obstacle(place.live)) is not None:
        yield told
    folder = next(above for above in (place.archive, *place.archive.parents) if above.is_dir())
    if disk(folder) != disk_of(source.fd, place.live.parent):
        yield elsewhere(place)


def read_only(folder: Path) -> str:
    """Return why nothing can go into a folder, or leave it; empty if it can, or is not there."""
    if reason := protected(folder):  # `+a` lets files come, and none leave or be renamed
        return reason
    if folder.is_dir() and not os.access(folder, os.W_OK):
        return f"{printable(str(folder))} is read-only for you: make it writable first."
    return ""


def of_another(path: Path, owner: int) -> str:
    """Return what to do about a file or folder with this owner; empty if that is us."""
    if platforms.is_ours(owner):
        return ""
    said = f"{printable(str(path))} belongs to another user"
    if not platforms.is_ours(path.parent.stat().st_uid):
        return f"{said}: run this as that user."
    # Such as a client leaves that ran as root, in a container; root is told to be the folder's.
    sudo = [] if platforms.is_root() else ["sudo"]
    chown = [*sudo, "chown", *(["-R"] * path.is_dir()), str(os.geteuid()), str(path)]
    shown = printable(shlex.join(chown), 9999)
    return f"{said}, but its folder is yours: run `{shown}`, then try again."


def protected(path: Path) -> str:
    """Return why a file or folder cannot be changed or removed; empty if that cannot be told."""
    with suppress(OSError):  # a link, or nothing that we may read
        fd = os.open(path, os.O_RDONLY | platforms.NO_LINK | platforms.NO_WAIT)
        try:
            return fixed(fd, path)
        finally:
            os.close(fd)
    return ""


def fixed(fd: int, path: Path) -> str:
    """Return the same of a file or folder that is open."""
    if not fs.is_fixed(fd):
        return ""
    return (
        f"{printable(str(path))} is protected from changes (lsattr -d shows i or a): remove that "
        "with `chattr -i -a`."
    )


def check_name(place: Place) -> None:
    """Raise RefusedError if a session's name cannot be that of an archive's files."""
    if _is_too_long(place):
        raise RefusedError(too_long(place))
    if names.is_hidden(place.session):
        name = printable(str(place.live))
        raise RefusedError(f"{name} begins with a dot, and no client lists it: rename it.")


def too_long(place: Place) -> str:
    """Return the reason that a session's name is too long."""
    name = printable(str(place.live))
    return (
        f"{name} has too long a name: the names in its archive would be longer still. Shorten it."
    )


def _is_too_long(place: Place) -> bool:
    """Tell whether the longest name that anything of the session may get is too long."""
    segment = names.segment_file(place.session, "numbered", MAX_BOUNDARIES, "zstd")
    put_aside = f"{names.key(place.session)}.{MAX_BOUNDARIES}{names.SUFFIX}"
    longest = max(len(os.fsencode(f"{segment}{names.PARTIAL}")), len(put_aside))
    return longest > _longest_name(place.config)


def _longest_name(folder: Path) -> int:
    """Return how many bytes a name may have on a file system; 255 where it does not say."""
    try:
        return os.pathconf(folder, "PC_NAME_MAX")
    except (OSError, ValueError, AttributeError):
        return 255


def strangers(found: State, segments: Sequence[Segment]) -> str | None:
    """Return what stands where a segment is to go: nothing that we do not know is overwritten."""
    session, begun = found.place.session, found.intent
    wanted = {names.sealed_file(session, part.index) for part in segments}
    if found.manifest is None and found.restored is None:  # they may be of another file
        wanted |= {*names.segments_among(found.listing, session)}
    # What was interrupted is undone before, if this is a plan.
    ours = set() if begun is None else {*begun.files(session)}
    if found.listed is not None and found.manifest is not None:  # what is spare is in the live file
        ours |= {
            names.sealed_file(session, entry.segment.index)
            for entry in found.manifest.segments[len(found.listed.segments) :]
        }
    files = sorted(wanted & found.listing - ours)
    if not files:
        return None
    folder = printable(str(found.place.archive))
    some = units.some([printable(file) for file in files])
    return f"{folder} holds {some}, which no {names.MANIFEST} lists."


def without_links(place: Place) -> str:
    """Return why a file system that has no hard links keeps a session from being rotated."""
    return (
        f"{printable(str(place.live))} is on a file system without reliable hard links (such as "
        "exFAT or sshfs). Without them, a rotation could lose a line that is written meanwhile: "
        "move the client's folder to another file system. "
        f"`sessrotate archive {printable(place.session)}` puts the session away whole."
    )


def elsewhere(place: Place) -> str:
    """Return the reason that a session and its archive are on two file systems, or two mounts."""
    return (
        f"{printable(str(place.archive))} would be on a different file system from the session, or "
        "in another mount of it, and a file cannot be moved there in one step: make it a folder on "
        "the same one. Where folders are mounted one by one (a container's volumes), mount the "
        "client's whole folder."
    )


def disk(path: Path) -> tuple[int, str]:
    """Return the device and the mount that a path is on; a link is not followed."""
    fd = os.open(path, os.O_RDONLY | platforms.ONLY_LOOK)
    try:
        return disk_of(fd, path.parent)
    finally:
        os.close(fd)


def disk_of(fd: int, folder: Path) -> tuple[int, str]:
    """Return the same of an open file, which is in `folder`. Only Linux tells the mount.

    The device is that of the folder: in an overlay, a file of a lower layer may tell another one,
    and is moved all the same.
    """
    mount, status = "", os.fstat(fd)
    with suppress(OSError), open(f"/proc/self/fdinfo/{fd}", "rb", buffering=0) as told:  # noqa: PTH123 - asked for each of thousands
        mount = told.read(_LARGEST).partition(b"mnt_id:")[2].split()[0].decode()
    if not stat.S_ISDIR(status.st_mode):
        with suppress(OSError):  # it has left the folder, which is gone
            status = folder.stat()
    return status.st_dev, mount


# ── room ──────────────────────────────────────────────────────────────────────────────────────────

_FREES: Final = (
    "A smaller session needs less; `sessrotate prune --all --empty-trash --grace 0` empties the "
    "trash."
)


STEP: Final = 1024 * 1024
"""Bytes that a rotation copies before it looks at the free room again, and leaves free besides."""

_SHORT: Final = 5
"""One in so many bytes of what was needed is missing where it failed although it seemed to fit."""


class NoRoomError(StorageError):
    """The disk has no room for it now."""


def is_cramped(error: BaseException | None) -> bool:
    """Tell whether something failed only because the disk has no room for it now."""
    return any(isinstance(each, NoRoomError) for each in (error, error and error.__cause__))


class Need(Struct, frozen=True):
    """What a step takes of the disk before it frees any: about `size` bytes, for `what`."""

    size: int = 0
    what: str = ""


NOTHING: Final = Need()


@contextmanager
def told(doing: str, folder: Path, needed: Callable[[], Need]) -> Iterator[None]:
    """Say of a StorageError of a full disk how much room is missing.

    `doing` completes "Cannot …". `needed` returns what it takes on the disk of `folder`, and is
    asked only then; where that cannot be told either, the error stays.
    """
    try:
        yield
    except StorageError as error:
        cause = error.__cause__
        if not is_full(cause):
            raise
        if lacks_inodes(cause):
            raise NoRoomError(f"Cannot {doing}: {NO_INODES}. {MORE_INODES}") from cause
        need = NOTHING
        with suppress(SessrotateError, OSError):
            need = needed()
        if not need.size:
            raise
        size, free, missing = need.size, fs.free_bytes(folder), ""
        if cause.errno == errno.EDQUOT:
            missing = ": make room within your quota"
        elif free is not None:
            size = max(size, free + size // _SHORT) if free >= size else size
            lacks = amount(size - free, up=True)
            missing = f", and {amount(free)} is free: make room for {lacks} more"
        raise NoRoomError(
            f"Cannot {doing}: {cause.strerror}. It needs about {amount(size, up=True)} for "
            f"{need.what}{missing}, then try again. {_FREES}"
        ) from cause


def check_room(folder: Path, need: Need, to_come: int = 0) -> None:
    """Raise NoRoomError of a plan that needs more than the disk of `folder` has free.

    `to_come` is how many bytes that gains before, negative if it takes some.
    """
    missing = lacking(folder, need, to_come)
    if missing:
        needs, free = amount(need.size, up=True), amount(need.size - to_come - missing)
        before = f" (earlier sessions need {amount(-to_come)} of it)" if to_come < 0 else ""
        raise NoRoomError(
            f"The disk is too full: this needs {needs} for {need.what}, and {free} is free{before}."
            f" Make room for {amount(missing, up=True)} more, then try again. {_FREES}"
        )


def lacking(folder: Path, need: Need, to_come: int = 0) -> int:
    """Return how many bytes the disk of `folder` lacks; 0 if none, or nobody can tell."""
    free = fs.free_bytes(folder)
    return 0 if free is None else max(0, need.size - free - to_come)
