"""What the formats of several clients have in common: lines of JSON, times, folders of sessions.

Rule: nothing here knows a client, and nothing raises over what it is given.
"""

from __future__ import annotations

import os
import re
import stat
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sessrotate.parsing import json_line
from sessrotate.system.disk_use import allocated

if TYPE_CHECKING:
    from sessrotate.parsing import Record

    Unread = Callable[[str, str], None]
    """Is called with the path of what cannot be read, and the reason."""

ROOM: Final = 16 * 1024 * 1024
"""Bytes of records that are held until it is their turn; where that is too little, the records
are read once more."""

BOM: Final = b"\xef\xbb\xbf"
"""What an editor may have put before the first row, or one file's before another's.

Claude Code skips it there (read in the code of 2.1.112: `trim`), and 2.0.28 skips the row. So it is
read, and a rotation keeps its bytes but does not go by it.
"""

UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""What clients call a session, and most records."""

CONFLICT: Final = r"\.conflict\..+"
"""What claude-sync adds to the name of a session's file: `<uuid>.jsonl.conflict.<time>`."""

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)")


_DATED: Final[json_line.Shape] = {"timestamp": None}


def copied(stem: str) -> str | None:
    """Return the uuid in the name of a file that has more in it (`Copy of <uuid>`), None otherwise.

    Claude Code lists only files whose names are uuids (2.1.14 to 2.1.330).
    """
    named = UUID.search(stem)
    return None if named is None or named[0] == stem else named[0]


def begins(name: str, prefix: str) -> bool:
    """Tell whether a name begins so. Capitals make no difference: they make none to a uuid."""
    return name.casefold().startswith(prefix.casefold())


def version(text: str | None) -> tuple[int, int, int] | None:
    """Return the numbers of a version (`2.1.112`), whatever follows them; None if it has none."""
    found = re.match(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", text or "")
    if found is None:
        return None
    major, minor, patch = map(int, found.groups())
    return major, minor, patch


def iso_time(value: object) -> str | None:
    """Return a value that is a time as clients write them (ISO 8601), None of any other."""
    return value if isinstance(value, str) and _TIME.fullmatch(value) else None


def timestamp(line: Iterable[bytes], size: int) -> str | None:
    """Return the `timestamp` of one record, None if it has none."""
    return iso_time((json_line.values(line, size, _DATED) or {}).get("timestamp"))


def text(value: Any, name: str) -> str | None:
    """Return a member of a JSON object that is a text, None if there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def count(value: object) -> int | None:
    """Return a value that counts something, None of any other."""
    return value if type(value) is int and value >= 0 else None


def has_row(
    head: bytes,
    *,
    is_whole: bool,
    is_row: Callable[[bytes], bool],
    may_begin_row: Callable[[bytes], object],
) -> bool:
    """Tell whether a file that begins with `head` has one line at least that is a client's row.

    One is enough: the lines around it may be torn or foreign. A first line too long for `head`
    (which then is not the whole file) counts if its beginning `may_begin_row`.
    """
    begin = 0
    while (end := head.find(b"\n", begin)) >= 0:  # mostly the first line says it
        if is_row(head[begin:end]):
            return True
        begin = end + 1
    rest = head[begin:]
    return is_row(rest) if is_whole or begin else bool(may_begin_row(rest))


def ignored(_path: str, _reason: str) -> None:
    """Pass over what cannot be read."""


@contextmanager
def passing_over(path: str | Path, unread: Unread = ignored) -> Iterator[None]:
    """Pass over an entry that the system says nothing of; tell that to `unread` if it is there.

    The methods of `Path` and of `os.DirEntry` raise such an error, or a `RuntimeError` for a loop
    of links, each in other cases: one bad entry would end a look at all of them.
    """
    try:
        yield
    except FileNotFoundError:
        pass  # it went away, or is a link to what did
    except ValueError:
        pass  # a name that no file has: with a NUL, or half a character
    except OSError as error:
        unread(str(path), error.strerror or type(error).__name__)


def is_folder(path: Path, unread: Unread = ignored) -> bool:
    """Tell whether a path leads to a folder; not if the system does not say."""
    with passing_over(path, unread):
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116 - thousands: no objects
    return False


def is_file(path: str | Path, unread: Unread = ignored) -> bool:
    """Tell whether a path leads to a regular file; not if the system does not say."""
    with passing_over(path, unread):
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - as above
    return False


def is_link(path: Path) -> bool:
    """Tell whether a path is itself a symbolic link; not if the system does not say."""
    return os.path.islink(path)  # noqa: PTH114 - `Path.is_symlink` raises


def real(path: Path) -> Path:
    """Return a path with all links followed, as far as they lead anywhere."""
    return Path(os.path.realpath(path))  # `Path.resolve` raises RuntimeError of a loop


def listed(folder: Path, unread: Unread = ignored) -> list[Path]:
    """Return what a folder holds, in order of the names; nothing if it cannot be read."""
    return [folder / name for name in names_in(folder, unread)]


def names_in(folder: Path, unread: Unread = ignored) -> list[str]:
    """Return the names in a folder, in order; none if it cannot be read."""
    with passing_over(folder, unread):
        # ext4 may give a name twice that is renamed meanwhile.
        return sorted({*os.listdir(folder)})  # noqa: PTH208 - there may be ten thousand
    return []


def files_in(
    folder: Path, is_wanted: Callable[[str], bool], unread: Unread = ignored
) -> Iterator[Path]:
    """Yield the regular files in a folder whose names are wanted, in order, as `names_in`.

    The folder says of each what it is: the system is asked of links only, of a folder that may be
    listed and not entered, and wherever somebody wants to know what is `unread`.
    """
    found: dict[str, os.DirEntry[str]] = {}
    with passing_over(folder, unread), os.scandir(folder) as entries:
        found = {entry.name: entry for entry in entries if is_wanted(entry.name)}
    is_open = unread is ignored and bool(found) and os.access(folder, os.X_OK)
    for name, entry in sorted(found.items()):
        is_there = False
        with passing_over(entry.path, unread):
            is_plain = is_open and not entry.is_symlink()
            is_there = entry.is_file() if is_plain else is_file(entry.path, unread)
        if is_there:
            yield folder / name


def room_in(folder: Path, but: tuple[int, int] | None = None) -> tuple[int, int]:
    """Return how many bytes a folder and those in it hold, and what all of it takes of the disk.

    Links in it are not followed, and what cannot be read counts for nothing; nor does a second name
    of the file with the device and inode `but`.
    """
    sizes, taken, folders = 0, 0, [str(folder)]
    while folders:
        with suppress(OSError, ValueError):
            path = folders.pop()
            with os.scandir(path) as entries:
                taken += allocated(os.lstat(path))
                for entry in entries:
                    with suppress(OSError):
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        elif not entry.is_dir():
                            status = entry.stat(follow_symlinks=False)
                            if (status.st_dev, status.st_ino) != but:
                                sizes, taken = sizes + status.st_size, taken + allocated(status)
    return sizes, taken


def in_order(records: Callable[[], Iterable[Record]], order: Sequence[int]) -> Iterator[Record]:
    """Yield the records with these numbers in this order, in as few passes as `ROOM` allows."""
    ranks = array("q", [-1]) * (max(order, default=0) + 1)
    for rank, number in enumerate(order):
        ranks[number] = rank
    rank = 0
    while rank < len(order):
        held: dict[int, Record] = {}
        room, before = ROOM, rank
        for number, record in enumerate(records()):
            mine = ranks[number] if number < len(ranks) else -1
            if mine == rank:
                yield record
                rank += 1
                while (following := held.pop(rank, None)) is not None:
                    room += len(following.line)
                    yield following
                    rank += 1
                if rank == len(order):
                    return
            elif mine > rank and len(record.line) <= room:
                held[mine] = record
                room -= len(record.line)
        if rank == before:
            return  # there are fewer than there were: somebody else changed the session


def distinct(paths: Iterable[Path], unread: Unread = ignored) -> list[Path]:
    """Return the folders among paths in their order, each once however many links lead to it.

    The folder itself counts before any link to it.
    """
    found: dict[tuple[int, int], Path] = {}
    for path in paths:
        with passing_over(path, unread):
            status = path.stat()
            if stat.S_ISDIR(status.st_mode):
                here = status.st_dev, status.st_ino
                if here not in found or (is_link(found[here]) and not is_link(path)):
                    found.pop(here, None)
                    found[here] = path
    return [*found.values()]
