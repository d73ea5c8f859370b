"""Which paths this process opens and changes, told by Python's own audit hook.

Rule: it knows nothing of the code. A name in an open folder is resolved by that folder where the
system tells its path, and is else left to the other judges.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CHANGES: Final = {
    "os.rename", "os.remove", "os.link", "os.truncate", "os.chmod", "os.mkdir", "os.rmdir",
    "os.symlink", "os.utime", "os.chown", "shutil.move",
}  # fmt: skip


class Seen:
    """What was opened or changed, each once: event, path, and whether it follows a link, with the
    file that the path led to at that moment.

    `opened` has what was opened as it was named, also in an open folder.
    """

    def __init__(self) -> None:
        self.events: dict[tuple[str, str, bool], str] = {}
        self.opened: set[str] = set()

    def within(self, folder: Path) -> list[tuple[str, str]]:
        """Return what was opened or changed in a folder, by whichever links."""
        top = os.path.realpath(folder)
        return [
            (event, path) for (event, path, _), real in self.events.items() if _is_in(real, top)
        ]

    def of(self, file: Path) -> list[tuple[str, str]]:
        """Return what was done to one file."""
        there = os.path.realpath(file)
        return [(event, path) for (event, path, _), real in self.events.items() if real == there]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


_watching: Seen | None = None
_busy = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    global _busy  # noqa: PLW0603 - what the hook itself looks at is no event
    if _watching is None or _busy or (event != "open" and event not in _CHANGES):
        return
    _busy = True
    try:
        is_followed = event == "open" and not (arguments[2] or 0) & os.O_NOFOLLOW
        for each in arguments[:2] if event in {"os.rename", "os.link"} else arguments[:1]:
            if isinstance(each, (str, bytes, os.PathLike)):
                path = os.fsdecode(each)
                if event == "open":
                    _watching.opened.add(path)
                seen = event, path, is_followed
                if path.startswith("/") and seen not in _watching.events:
                    _watching.events[seen] = _real(path, is_followed=is_followed)
    finally:
        _busy = False


def _real(path: str, *, is_followed: bool) -> str:
    if is_followed:
        return os.path.realpath(path)
    folder, name = os.path.split(path)
    return f"{os.path.realpath(folder)}/{name}"


@cache
def _install() -> None:
    sys.addaudithook(_hook)


@contextmanager
def watched() -> Iterator[Seen]:
    """Yield what is seen in the block, from now on."""
    global _watching  # noqa: PLW0603 - a hook stays for ever
    _install()
    _watching = seen = Seen()
    try:
        yield seen
    finally:
        _watching = None
