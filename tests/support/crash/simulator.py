"""What a power loss may leave of a run: every change is recorded, and the disk keeps any of them.

Rule: weaker than any file system that is in use. Of what was written to a file since its last
fsync there may be nothing, half, zeros or all, and a truncation may have happened or not. Of the
names that changed in a folder since its last fsync any are there, each by itself. Only three things
are relied on: a rename never loses the file (its new name is there, or its old one, or both; of a
folder never both), and an exchange of two names is there whole or not at all, which journals
promise; and what was synced stays.

Modes, owners and times are left out: nothing is decided by them where there are leases.
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from support.crash.changes import TWO_NAMES, Watch
from support.crash.disk import LOCKS, Image

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Kind = Literal["data", "cut", "sync", "add", "remove", "rename", "exchange"]

ROOT: Final = 0
"""The number of the folder that everything is in."""

ALL_SUBSETS: Final = 6
"""Up to so many changes of names, every subset of them is a state."""


@dataclass(frozen=True, slots=True)
class Event:
    """One change, by us or by a client. Files and folders have numbers, never used again."""

    kind: Kind
    node: int
    text: str
    """What it is called where it is shown."""
    name: str = ""
    other: int = 0
    other_name: str = ""
    offset: int = 0
    data: bytes = b""
    is_folder: bool = False
    is_ours: bool = True


@dataclass(frozen=True)
class Trace:
    """A whole run: what was on the disk before it, and every change in order."""

    folders: dict[int, dict[str, int]]
    files: dict[int, bytes]
    events: tuple[Event, ...]


# ── recording ────────────────────────────────────────────────────────────────────────────────


class Recorder(Watch):
    """Writes down every changing call that succeeds."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = root
        self._numbers: dict[int, int] = {}
        self._next = itertools.count()
        self.folders: dict[int, dict[str, int]] = {}
        self.files: dict[int, bytes] = {}
        self.events: list[Event] = []
        self.is_ours = True
        self._scan(root)

    def trace(self) -> Trace:
        return Trace(self.folders, self.files, tuple(self.events))

    def _scan(self, folder: Path) -> int:
        number = self._number(folder.stat().st_ino)
        self.folders[number] = {}
        for path in sorted(folder.iterdir()):
            if str(path.relative_to(self._root)) == LOCKS:
                continue
            if path.is_dir():
                self.folders[number][path.name] = self._scan(path)
            else:
                inode = self._number(path.stat().st_ino)
                self.files[inode] = path.read_bytes()
                self.folders[number][path.name] = inode
        return number

    def _number(self, inode: int) -> int:
        if inode not in self._numbers:
            self._numbers[inode] = next(self._next)
        return self._numbers[inode]

    def _named(self, path: Any) -> tuple[int, str]:
        full = Path(path)
        return self._numbers.get(full.parent.stat().st_ino, -1), full.name

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        if name in {"fchmod", "fchown", "utime", "setxattr"}:
            return real(*args, **kwargs)
        if isinstance(args[0], int):
            return self._of_descriptor(name, real, args)
        folder, entry = self._named(args[0])
        if folder < 0:  # a lock's
            return real(*args, **kwargs)
        target = self._named(args[1]) if name in {"link", "rename", *TWO_NAMES} else (0, "")
        is_new = name == "mkdir" or (name == "open" and not os.path.lexists(args[0]))
        result = real(*args, **kwargs)
        if result is False:  # the system cannot, and a portable way follows
            return result
        if is_new:
            made = os.stat(args[0]).st_ino  # noqa: PTH116 - as the others
            self._numbers.pop(made, None)
            self._add(
                "add",
                folder,
                f"create {entry}",
                name=entry,
                other=self._number(made),
                is_folder=name == "mkdir",
            )
        elif name == "link":
            node = self._number(os.stat(args[0]).st_ino)  # noqa: PTH116
            text = f"link {entry} to {target[1]}"
            self._add("add", target[0], text, name=target[1], other=node)
        elif name == "exchange":
            text = f"exchange {entry} and {target[1]}"
            self._add("exchange", folder, text, name=entry, other=target[0], other_name=target[1])
        elif name in {"rename", "move"}:
            text = f"rename {entry} to {target[1]}"
            self._add("rename", folder, text, name=entry, other=target[0], other_name=target[1])
        elif name in {"unlink", "rmdir"}:
            self._add("remove", folder, f"{name} {entry}", name=entry)
        else:
            assert name == "open", f"the simulator does not know {name}"
        return result

    def _of_descriptor(self, name: str, real: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        status = os.fstat(args[0])
        node, shown = self._numbers.get(status.st_ino, -1), self._shown(args[0])
        offset = os.lseek(args[0], 0, os.SEEK_CUR)
        if name == "write" and self._is_appending(args[0]):
            offset = status.st_size
        result = real(*args)
        if node < 0:
            return result
        if name == "write":
            data = bytes(args[1][:result])
            self._add("data", node, f"write {shown}", offset=offset, data=data)
        elif name == "ftruncate":
            self._add("cut", node, f"truncate {shown}", offset=args[1])
        else:
            assert name == "fsync", f"the simulator does not know {name}"
            self._add("sync", node, f"fsync {shown}")
        return result

    def _shown(self, fd: int) -> str:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        return path.name if path != self._root else "."

    @staticmethod
    def _is_appending(fd: int) -> bool:
        info = Path(f"/proc/self/fdinfo/{fd}").read_text()
        return bool(int(info.partition("flags:")[2].split()[0], 8) & os.O_APPEND)

    def _add(self, kind: Kind, node: int, text: str, **more: Any) -> None:
        self.events.append(Event(kind, node, text, is_ours=self.is_ours, **more))


# ── the disk ─────────────────────────────────────────────────────────────────────────────────


@dataclass
class _Change:
    """One name that appeared or went. `needs` is what has to be on the disk before it."""

    folder: int
    name: str
    node: int
    is_added: bool
    needs: _Change | None = field(default=None, repr=False)

    def apply(self, names: dict[int, dict[str, int]]) -> None:
        entries = names[self.folder]
        if self.is_added:
            entries[self.name] = self.node
        elif entries.get(self.name) == self.node:
            del entries[self.name]


@dataclass
class Disk:
    """What surely is on the disk, and what may be."""

    synced: dict[int, dict[str, int]]
    files: dict[int, bytes]
    now: dict[int, dict[str, int]] = field(init=False)
    names: list[_Change] = field(default_factory=list)
    data: dict[int, list[Event]] = field(default_factory=lambda: defaultdict(list))
    last: str = "nothing"

    def __post_init__(self) -> None:
        self.now = _copied(self.synced)

    @classmethod
    def of(cls, trace: Trace) -> Disk:
        return cls(_copied(trace.folders), dict(trace.files))

    def apply(self, event: Event) -> None:
        """Take in a change."""
        self.last = event.text
        if event.kind in {"data", "cut"}:
            self.data[event.node].append(event)
        elif event.kind == "sync":
            self._sync(event.node)
        elif event.kind == "add":
            if event.is_folder:
                for names in (self.now, self.synced):
                    names[event.other] = {}
            self._change(_Change(event.node, event.name, event.other, is_added=True))
        elif event.kind == "remove":
            node = self.now[event.node].get(event.name)
            if node is not None:  # else it is a mutant that removes what is not there yet
                self._change(_Change(event.node, event.name, node, is_added=False))
        elif event.kind == "exchange":
            self._exchange((event.node, event.name), (event.other, event.other_name))
        elif event.name in self.now[event.node]:
            node = self.now[event.node][event.name]
            added = _Change(event.other, event.other_name, node, is_added=True)
            self._change(added)
            self._change(_Change(event.node, event.name, node, is_added=False, needs=added))

    def _exchange(self, one: tuple[int, str], other: tuple[int, str]) -> None:
        here, there = (self.now[folder].get(name) for folder, name in (one, other))
        if here is not None and there is not None:  # else it is a mutant, as above
            first = _Change(*one, there, is_added=True)
            first.needs = _Change(*other, here, is_added=True, needs=first)
            self._change(first)
            self._change(first.needs)

    def _change(self, change: _Change) -> None:
        change.apply(self.now)
        self.names.append(change)

    def _sync(self, node: int) -> None:
        if node in self.synced or node in self.now:
            done = [change for change in self.names if change.folder == node]
            needed = [change.needs for change in done if change.needs]
            done = [
                change
                for change in self.names
                if change.folder == node or any(change is other for other in needed)
            ]
            for change in done:
                change.apply(self.synced)
            self.names = [
                change for change in self.names if not any(change is other for other in done)
            ]
        if node in self.data:
            self.files[node] = _written(self.files.get(node, b""), self.data.pop(node))

    def states(self) -> Iterator[tuple[Image, bool]]:
        """Yield every state, and whether zeros stand in it for what was written."""
        for chosen in self._selections():
            names = _copied(self.synced)
            for change in chosen:
                change.apply(names)
            held = [node for entries in names.values() for node in entries.values()]
            if any(held.count(folder) > 1 for folder in names):
                continue  # no file system gives a folder two names
            folders, files = _reached(names)
            dirty = sorted({node for node in files.values() if self.data.get(node)})
            for contents in self._contents(dirty):
                shown = {
                    path: (node, contents.get(node, (self.files.get(node, b""), False))[0])
                    for path, node in files.items()
                }
                has_zeros = any(is_zero for _, is_zero in contents.values())
                yield Image.made(folders, shown), has_zeros

    def _selections(self) -> Iterator[tuple[_Change, ...]]:
        names = self.names
        if len(names) <= ALL_SUBSETS:
            subsets: Iterable[tuple[_Change, ...]] = itertools.chain.from_iterable(
                itertools.combinations(names, size) for size in range(len(names) + 1)
            )
        else:
            subsets = itertools.chain(
                (tuple(names[:size]) for size in range(len(names) + 1)),
                (_without(names, each) for each in names),
            )
        for chosen in subsets:
            there = {id(change) for change in chosen}
            pending = {id(change) for change in names}
            if all(
                change.needs is None or id(change.needs) in there or id(change.needs) not in pending
                for change in chosen
            ):
                yield chosen

    def _contents(self, dirty: list[int]) -> Iterator[dict[int, tuple[bytes, bool]]]:
        variants = [sorted(_variants(self.files.get(node, b""), self.data[node])) for node in dirty]
        for combination in itertools.product(*variants):
            yield dict(zip(dirty, combination, strict=True))


def _without(names: list[_Change], left_out: _Change) -> tuple[_Change, ...]:
    """Return all changes but one, and those that need it."""
    return tuple(e for e in names if e is not left_out and e.needs is not left_out)


def _variants(before: bytes, events: list[Event]) -> set[tuple[bytes, bool]]:
    """Return what a file may hold, each with whether zeros stand in it for what was written."""
    after = _written(before, events)
    writes = [event for event in events if event.kind == "data"]
    cuts = [event for event in events if event.kind == "cut"]
    half = after[: (len(before) + len(after)) // 2] if len(after) > len(before) else after
    zeros = _written(before, events, zeros=True)
    found = {
        (before, False),
        (after, False),
        (half, False),
        (_written(before, writes), False),
        (_written(before, cuts), False),
    }
    return found if zeros == after else {*found, (zeros, True)}


def _written(content: bytes, events: Iterable[Event], *, zeros: bool = False) -> bytes:
    for event in events:
        if event.kind == "cut":
            content = content[: event.offset].ljust(event.offset, b"\0")
        else:
            data = bytes(len(event.data)) if zeros else event.data
            content = content.ljust(event.offset, b"\0")
            content = content[: event.offset] + data + content[event.offset + len(data) :]
    return content


def _reached(names: dict[int, dict[str, int]]) -> tuple[frozenset[str], dict[str, int]]:
    """Return the folders and files that have a path."""
    folders: set[str] = set()
    files: dict[str, int] = {}
    pending = [("", ROOT)]
    while pending:
        at, folder = pending.pop()
        for name, node in names[folder].items():
            path = f"{at}/{name}" if at else name
            if node in names:
                folders.add(path)
                pending.append((path, node))
            else:
                files[path] = node
    return frozenset(folders), files


def _copied(names: dict[int, dict[str, int]]) -> dict[int, dict[str, int]]:
    return {folder: dict(entries) for folder, entries in names.items()}
