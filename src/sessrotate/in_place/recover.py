"""Finishing or undoing what a crash left of a rotation or restoration.

Rule: the table in `archive.recovery_table` decides. `plan` says what is to be done, and `doctor`
shows it; `recover` does it. Every command that changes a session in place begins with this, while
it holds the session's lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from sessrotate import fs, names
from sessrotate.archive import state
from sessrotate.errors import DamagedError, printable
from sessrotate.in_place import rebuild_manifest, seal, swap
from sessrotate.model import Span
from sessrotate.segments import manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessrotate.archive.place import Place
    from sessrotate.archive.state import State

Deed = Literal["nothing", "undo", "finish", "rebuild"]

_MERGE: Final = "merge of late lines"

_WHAT: Final = {
    "rotate": "rotation",
    "restore": "restoration",
    "late": _MERGE,
    "insert": _MERGE,
}


@dataclass(frozen=True, slots=True)
class Recovery:
    """What is to be done, and how that is said before and after; empty where it is nothing."""

    deed: Deed
    sentence: str = ""
    past: str = ""


def plan(found: State) -> Recovery:
    """Return what is to be done with what was found.

    Raises DamagedError if that cannot be told.
    """
    if found.intent is not None:
        what = _WHAT[found.intent.operation]
        if found.deed == "refuse":
            raise DamagedError(
                f"A {what} was interrupted, and {printable(str(found.place.live))} is neither the "
                "file from before nor the new one: nothing is touched. "
                f"{printable(str(found.place.archive))} has both."
            )
        if found.standing != "after":
            _check_superfluous(found)
        if found.deed == "undo":
            return _undo(what)
        return Recovery(
            "finish",
            f"A {what} was interrupted: the next run finishes it.",
            f"Finished a {what} that was interrupted.",
        )
    leftovers = [name for name in found.listing if swap.is_leftover(name)]
    if not leftovers and rebuild_manifest.is_lost(found):
        return Recovery(
            "rebuild",
            f"The {names.MANIFEST} of the archive is gone: the next run makes it again.",
            f"Made the {names.MANIFEST} of the archive again, from its segments.",
        )
    if not leftovers:
        return Recovery("nothing")
    _check_superfluous(found)
    return _undo("run")


def _undo(what: str) -> Recovery:
    return Recovery(
        "undo",
        f"A {what} was interrupted before it began: the next run removes its leftovers.",
        f"Removed the leftovers of a {what} that was interrupted before it began.",
    )


def _check_superfluous(found: State) -> None:
    """Raise DamagedError if the pack may hold a byte that the live file does not."""
    live, pack = found.live, found.pack
    if pack is None:
        return
    if live is not None:
        here, there = live.identity(), pack.identity()
        if here.is_same_file(there):
            return
        # A backup may have made two files of the two names.
        size = there.size
        if here.size >= size and all(
            one == other
            for one, other in zip(
                live.pieces(Span(0, size)), pack.pieces(Span(0, size)), strict=True
            )
        ):
            return
    raise DamagedError(
        f"{printable(str(found.place.pack))} is there, and is not the live file: look at it, and "
        "move it away if it is not needed."
    )


def recover(place: Place, wait: float, progress: Callable[[int], None]) -> Recovery:
    """Do what is to be done; return what that was.

    Raises as `plan` and `seal.finish` do.
    """
    with state.opened(place) as found:
        todo = plan(found)
        is_gone = found.is_gone and found.pack is not None
        if todo.deed == "rebuild":
            data = manifest.dump(rebuild_manifest.manifest(found))
            fs.create_file_at_once(place.archive / names.MANIFEST, data)
    if todo.deed == "undo":
        if is_gone:  # the pack is the live file that was there before
            fs.create_folder(place.live.parent)
            fs.add_name(place.pack, place.live)
        swap.undo(place)
    elif todo.deed == "finish":
        seal.finish(place, wait, progress)
    elif not found.listing:
        fs.remove_folder(place.archive)  # empty: the last step of a restoration did not happen
    return todo
