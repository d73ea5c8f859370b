"""What is checked after whatever went wrong with a run, and the states that a kill leaves."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from sessrotate.platforms import HERE
from support.crash import scenes
from support.crash.changes import Before
from support.crash.disk import Image
from support.crash.scenes import scene

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.crash.scenes import Scene, Session


@cache
def crashes(name: str) -> tuple[Image, ...]:
    """Return what a kill may leave of a run: before every change, and in mid-write."""
    of = scene(name)
    with of.begun() as found:
        return seen_of(found, of.run)


def seen_of(found: Session, run: Callable[[Session], None]) -> tuple[Image, ...]:
    """Run, and return what a kill would have left: looked at, rather than killed each time."""
    images: dict[Image, None] = {}

    def look() -> None:
        images[found.image()] = None

    with scenes.leases_granted(), Before(look).installed():
        run(found)
    return tuple(images)


_CHECKED: Final[set[tuple[str, str, Image]]] = set()


def is_new(found: Session, of: Scene, check: str) -> bool:
    """Tell whether a check is to be made: many failures of different calls leave the same state.

    Without leases times decide something, which are not in an image: there each state is new.
    """
    key = check, of.name, found.image()
    is_known = HERE.leases and key in _CHECKED
    _CHECKED.add(key)
    return not is_known


def check_whole(found: Session, of: Scene, lives: set[bytes | None]) -> None:
    """Check that all is there at once, and that the next run finishes."""
    if not is_new(found, of, "whole"):
        return
    live = found.where.live
    assert (live.read_bytes() if live.exists() else None) in lives
    assert found.stitched() == of.history
    of.run(found)
    assert found.stitched() == of.history
    found.check_clean()


def check_recovered(found: Session, of: Scene) -> None:
    assert found.stitched() == of.history
    found.check_clean()
    assert found.recover() == "nothing"
