"""A folder as a value: taken before any change, compared, and laid out again elsewhere.

Rule: two images are equal if a program that looks at names, contents and hard links cannot tell
them apart. Modes and times are left out: only where there are no leases anything is decided by
them. So are the locks: whether a lock's file is there decides nothing either.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

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
        while pending:
            folder = pending.pop()
            for entry in os.scandir(root / folder):
                path = f"{folder}/{entry.name}" if folder else entry.name
                if path == LOCKS:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.add(path)
                    pending.append(path)
                    continue
                inode = entry.inode()
                if inode not in seen:
                    seen[inode] = Path(entry.path).read_bytes()
                files[path] = (inode, seen[inode])
        return cls.made(frozenset(folders), files)

    def lay_out(self, root: Path) -> None:
        """Make an empty folder what the image shows."""
        for folder in sorted(self.folders):
            (root / folder).mkdir()
        first: dict[int, Path] = {}
        for path, number in self.names:
            if number in first:
                os.link(first[number], root / path)
            else:
                first[number] = root / path
                first[number].write_bytes(self.contents[number])

    def shown(self) -> str:
        """Return what there is, for a failure's message."""
        return "\n".join(
            f"  {path} → #{number}, {len(self.contents[number])} bytes"
            for path, number in self.names
        )
