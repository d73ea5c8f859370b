"""A small disk: files, their names, and which of both a power loss leaves.

A file is a tuple of entries with a number of its own (its inode); names lead to numbers. A file's
content is on the disk once it was synced, a name once its folder was. There are two folders: the
client's (`live`, and what a trim kept) and ours (everything else).

A power loss takes or leaves each unsynced content and each unsynced change of a name by itself, an
exchange of names included: no file system does worse.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LIVE: Final = "live"
CLIENTS: Final = "the client's folder"
OURS: Final = "our folder"

MOST: Final = 48
"""Up to so many outcomes of a power loss are all tried; of more, those that differ in one thing."""


def folder_of(path: str) -> str:
    """Return the folder that a name is in."""
    return CLIENTS if path == LIVE or path.startswith("kept/") else OURS


class Disk:
    """Files and names; each change of a name is one call that happens whole or not at all."""

    def __init__(self, *, power: bool) -> None:
        self.power = power
        """Whether the power may fail: only then a sync is a step of its own."""
        self.files: dict[int, Any] = {}
        self.synced: dict[int, Any] = {}
        self.names: dict[str, int] = {}
        self.durable: dict[str, int] = {}
        self.pending: list[tuple[str, int | None]] = []
        self.inodes = 0

    def step(self, what: str) -> None:
        """Say that the next change is about to be made: others may come first, or the end."""
        raise NotImplementedError

    def noticed(self) -> None:
        """Be told that more of the disk has become durable."""
        raise NotImplementedError

    def paths(self, *beginnings: str) -> list[str]:
        """Return the names that begin so, sorted."""
        return sorted(path for path in self.names if path.startswith(beginnings))

    def read(self, path: str) -> Any:
        """Return what a file has, or None if it has no such name."""
        inode = self.names.get(path)
        return None if inode is None else self.files[inode]

    def new(self, content: Iterable[Any]) -> int:
        """Make a file that has no name yet."""
        self.inodes += 1
        self.files[self.inodes] = tuple(content)
        self.synced[self.inodes] = ()
        return self.inodes

    def write(self, inode: int, content: Iterable[Any]) -> None:
        """Give a file other content in place."""
        self.files[inode] = tuple(content)

    def name(self, path: str, inode: int | None) -> None:
        """Give a file a name, whatever had it before; None takes the name away."""
        if inode is None:
            self.names.pop(path, None)
        else:
            self.names[path] = inode
        self.pending.append((path, inode))

    def exchange(self, one: str, other: str) -> None:
        """Let two names change their files."""
        first, second = self.names[one], self.names[other]
        self.name(one, second)
        self.name(other, first)

    def sync(self, path: str) -> None:
        """Have the content of a file on the disk."""
        if self.power:
            self.step(f"sync {path}")
        inode = self.names[path]
        self.synced[inode] = self.files[inode]
        self.noticed()

    def sync_folder(self, folder: str) -> None:
        """Have the names of a folder on the disk."""
        if not any(folder_of(path) == folder for path, _ in self.pending):
            return
        if self.power:
            self.step(f"sync {folder}")
        for path, inode in self.pending:
            if folder_of(path) == folder:
                self._endure(path, inode)
        self.pending = [one for one in self.pending if folder_of(one[0]) != folder]
        self.noticed()

    def all_is_durable(self) -> None:
        """Take everything as it is for what the disk has."""
        self.synced, self.durable, self.pending = dict(self.files), dict(self.names), []
        self.noticed()

    def _endure(self, path: str, inode: int | None) -> None:
        if inode is None:
            self.durable.pop(path, None)
        else:
            self.durable[path] = inode

    def lose_power(self, choice: int) -> int:
        """Leave one of the states that a power loss may leave; return how many there are."""
        paths = sorted({path for path, _ in self.pending})
        reachable = {*self.names.values(), *self.durable.values()}
        dirty = sorted(inode for inode in reachable if self.files[inode] != self.synced[inode])
        options: list[list[Any]] = [
            [self.durable.get(path), *(inode for other, inode in self.pending if other == path)]
            for path in paths
        ]
        options += [_remains(self.synced[inode], self.files[inode]) for inode in dirty]
        states = [*outcomes(options)]
        state = states[choice]
        for path, inode in zip(paths, state, strict=False):
            if inode is None:
                self.names.pop(path, None)
            else:
                self.names[path] = inode
        for inode, content in zip(dirty, state[len(paths) :], strict=True):
            self.files[inode] = content
        return len(states)


def _remains(old: tuple[Any, ...], new: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return what an unsynced file may be afterwards: as before, all but the end, as it was."""
    partly = [new[:-1]] if new[: len(old)] == old and len(new) > len(old) + 1 else []
    return [old, *partly, new]


def outcomes(options: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield what may become of several things, each of which has its own options (oldest first).

    All of it where that is little. Else: everything old, everything new, and whatever differs from
    one of these in one thing.
    """
    if math.prod(map(len, options)) <= MOST:
        yield from itertools.product(*options)
        return
    oldest = tuple(some[0] for some in options)
    newest = tuple(some[-1] for some in options)
    yield oldest
    yield newest
    for at, some in enumerate(options):
        for one in some:
            for all_else in (oldest, newest):
                if one != all_else[at]:
                    yield (*all_else[:at], one, *all_else[at + 1 :])
