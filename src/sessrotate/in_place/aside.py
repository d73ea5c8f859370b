"""Moving out of the way what no live file goes on from, whole and unchanged.

Rule: it is moved whole and never changed. If the operation fails, it is moved back. A single file
has, or may have, lines that nothing else of its session has: two programs wrote at the same moment,
or one took them from the live file. `doctor` names it until a person removes it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import fs, names
from sessrotate.archive import owner
from sessrotate.archive.place import ASIDE, FOLDER, Place
from sessrotate.errors import RefusedError, printable, quoted, storage
from sessrotate.system import locks

_PACKED: Final = names.CODEC_SUFFIX["zstd"]


def put_aside(place: Place) -> Path | None:
    """Move an archive to where it is in nobody's way; return where, None if there is none."""
    if not os.path.lexists(place.archive):
        return None
    number = 1
    while os.path.lexists(folder := _named(place, number)):
        number += 1
    with storage("put the archive aside"):
        fs.move_folder(place.archive, folder)
    return folder


class Plan(Struct, frozen=True):
    """An archive that is to be put aside: how many bytes it has, and whether the session is in it.

    `is_gone`: there is no live file, so that what the archive has of it is all there is. `waits`: a
    replaced live file goes with it that a client may still write to.
    """

    place: Place
    size: int
    is_gone: bool
    waits: bool


def plan(place: Place) -> Plan:
    """Look at an archive, in whatever state; raise RefusedError if there is none.

    Also if a folder above it is a link: what is behind that is somebody else's. The archive may be
    a link itself, which is then moved.
    """
    owner.check_folders(place)
    if not os.path.lexists(place.archive):
        raise RefusedError(f"{printable(place.session)} has no archive.")
    size, waits = 0, False
    with storage("look into the archive"):
        if not place.archive.is_symlink():
            for here, _, files in os.walk(place.archive):
                waits = waits or (here == str(place.waiting) and bool(files))
                size += sum(os.lstat(os.path.join(here, file)).st_size for file in files)  # noqa: PTH118 - as os.walk gives them
    return Plan(place, size, not os.path.lexists(place.live), waits)


def execute(planned: Plan, wait: float) -> Path:
    """Put an archive aside, whole, from any state; return where it is.

    Nothing of it has to be readable, and the live file is not touched. `wait` is how many seconds
    to wait for another sessrotate. Raises InUseError if that goes on, RefusedError if there is no
    archive any more.
    """
    place = planned.place
    with locks.alone(place, wait):
        plan(place)
        with storage("put the archive aside"):
            # Before the swap this is a second name of the live file, which must have but one.
            is_ours = place.archive.is_dir() and not place.archive.is_symlink()
            if (
                is_ours
                and os.path.lexists(place.live)
                and fs.same_as(place.live.lstat())(place.pack)
            ):
                fs.remove_files(place.archive, [names.PACK])
        folder = put_aside(place)
    if folder is None:
        raise RefusedError(f"{printable(place.session)} has no archive.")
    return folder


def put_back(place: Place, folder: Path) -> None:
    """Undo `put_aside`, unless a new archive has begun."""
    if not place.archive.exists():
        with storage("put the archive back"):
            fs.move_folder(folder, place.archive)


def keep(place: Place, path: Path) -> Path:
    """Give a file a name where it stays until a person removes it; return that name.

    A file that has one already, because a crash came right after, gets no other.
    """
    is_it, number = fs.same_as(path.lstat()), 1
    is_packed = path.name.removesuffix(names.PARTIAL).endswith(_PACKED)
    suffix = names.SUFFIX + _PACKED * is_packed
    fs.create_folder(_named(place, number).parent)
    while not is_it(kept := _named(place, number, suffix)):
        try:
            fs.add_name(path, kept)
        except FileExistsError:
            number += 1
    return kept


def said(kept: Path, live: Path) -> str:
    """Return what a person is told about a file that was kept."""
    if kept.name.endswith(_PACKED):
        return (
            f"{printable(str(kept))} holds lines that neither the live file nor the archive has: "
            f"`zstd -dc {quoted(kept)}` shows them. Remove that file once you do not need them."
        )
    if not os.path.lexists(live):
        return (
            f"{printable(str(live))} is gone, and {printable(str(kept))} holds its content: move "
            "it back, or remove it if you deleted the session."
        )
    return (
        f"{printable(str(kept))} holds another version of the session: compare the two, then "
        "remove that version."
    )


def _named(place: Place, number: int, suffix: str = "") -> Path:
    return place.config / FOLDER / ASIDE / f"{names.key(place.session)}.{number}{suffix}"
