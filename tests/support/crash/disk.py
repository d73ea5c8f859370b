"""A folder as a value: taken before any change, compared, and laid out again elsewhere.

Rule: two images are equal if a program that looks at names, contents and hard links cannot tell
them apart. Modes and times are left out: only where there are no leases anything is decided by
them. So are the locks: whether a lock's file is there decides nothing either.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from pathlib import Path

LOCKS: Final = "sessrotate/locks"


@dataclass(frozen=True, slots=True)
class Image:
    """Folders by path, files by path and number, and what the file of each number holds."""

    folders: frozenset[str]
    names: tuple[tuple[str, int], ...]
    contents: tuple[bytes, ...]

    @classmethod
    def made(cls, folders: frozenset[str], files: dict[str, tuple[int, bytes]]) -> Self:
        """Return the image of these files, each given by an inode of any kind and its content."""
        numbers: dict[int, int] = {}
        contents: list[bytes] = []
        names: list[tuple[str, int]] = []
        for path, (inode, content) in sorted(files.items()):
            if inode not in numbers:
                numbers[inode] = len(numbers)
                contents.append(content)
            names.append((path, numbers[inode]))
        return cls(folders, tuple(names), tuple(contents))

    @classmethod
    def taken(cls, root: Path) -> Self:
        """Return the image of a folder and all in it."""
        folders: set[str] = set()
        files: dict[str, tuple[int, bytes]] = {}
        seen: dict[int, bytes] = {}
        pending = [""]
        while pending:  # before every change of thousands of runs: no paths as objects
            folder = pending.pop()
            with os.scandir(f"{root}/{folder}") as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if path == LOCKS:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.add(path)
                        pending.append(path)
                        continue
                    inode = entry.inode()
                    if inode not in seen:
                        seen[inode] = _content(entry.path)
                    files[path] = (inode, seen[inode])
        return cls.made(frozenset(folders), files)

    def lay_out(self, root: Path) -> None:
        """Make an empty folder what the image shows."""
        for folder in sorted(self.folders):
            os.mkdir(f"{root}/{folder}")  # noqa: PTH102 - as in `taken`
        first: dict[int, str] = {}
        for path, number in self.names:
            if number in first:
                os.link(first[number], f"{root}/{path}")
            else:
                first[number] = f"{root}/{path}"
                with open(first[number], "xb", buffering=0) as file:  # noqa: PTH123 - as above
                    assert file.write(self.contents[number]) == len(self.contents[number])

    def shown(self) -> str:
        """Return what there is, for a failure's message."""
        return "\n".join(
            f"  {path} → #{number}, {len(self.contents[number])} bytes"
            for path, number in self.names
        )


def _content(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        data = more = os.read(fd, 65536)
        while more:
            more = os.read(fd, 65536)
            data += more
    finally:
        os.close(fd)
    return data
