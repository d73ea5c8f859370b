"""Whether of a Gemini CLI session's two files, `.json` and `.jsonl`, one has all of the other.

0.39 and later resume a `.json` in a `.jsonl` of its name: they write each message as a line, just
as it was, and leave the `.json` as it is (0.39.1 to 0.61.0, `ChatRecordingService.initialize`). A
client that is killed meanwhile leaves the first messages only, and one of 0.38 goes on in the
`.json`.

Rule: proved, never guessed. Names and times say nothing here: every message is looked for, and
whatever else a file says that the other does not say anew, such as a summary.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache, partial
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Final

from sessrotate.parsing.json_stream import Cursor
from sessrotate.parsing.records import records

_PIECE: Final = 1 << 20

_ID: Final = re.compile(rb'\s*\{\s*"id"')
"""How a message begins, as all clients write it."""

_ANEW: Final = {"sessionId", "projectHash", "startTime", "lastUpdated", "kind", "directories"}
"""What the client says anew at the beginning of the `.jsonl`."""


def is_copied(path: Path) -> bool:
    """Tell whether every message of a `.json` is a line of the `.jsonl` of the same name.

    False if there is no such file of its own, no message, or what cannot be read. Both files are
    read whole, once while neither changes; memory grows with the number of messages, 16 bytes for
    each.
    """
    return _is_so(_has_all, path)


def is_begun(path: Path) -> bool:
    """Tell whether every message of the `.jsonl` of the same name is one of a `.json` already.

    A client that was killed while it copied leaves such a one. False as of `is_copied`.
    """
    return _is_so(_adds_nothing, path)


def _is_so(
    proved: Callable[[Path, tuple[int, ...], Path, tuple[int, ...]], bool], path: Path
) -> bool:
    later = path.with_suffix(".jsonl")
    try:
        if path.suffix != ".json" or not stat.S_ISREG(later.lstat().st_mode):
            return False
        return proved(later, _version(later.stat()), path, _version(path.stat()))
    except (OSError, ValueError, RecursionError):
        return False


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@lru_cache(maxsize=4096)
def _has_all(later: Path, _: tuple[int, ...], path: Path, __: tuple[int, ...]) -> bool:
    """Tell whether the `later` file has all that is said, both being of these versions."""
    with path.open("rb") as file:
        wanted, has_message = _said(file)
    if not has_message or None in wanted:
        return False
    with later.open("rb") as file:
        for line in records(iter(partial(file.read, _PIECE), b""), 0):
            wanted.discard(_digest(line.line))
            if wanted and not _ID.match(line.line):
                wanted -= _members(line.line)
            if not wanted:
                return True
    return False


@lru_cache(maxsize=4096)
def _adds_nothing(later: Path, _: tuple[int, ...], path: Path, __: tuple[int, ...]) -> bool:
    """Tell whether the `later` file says nothing new, both being of these versions."""
    with path.open("rb") as file:
        known, has_message = _said(file)
    if not has_message or None in known:
        return False
    with later.open("rb") as file:
        for line in records(iter(partial(file.read, _PIECE), b""), 0):
            if not line.is_whole:
                return False
            said = {_digest(line.line)} if _ID.match(line.line) else _members(line.line, anew=False)
            if not said - {None} <= known:  # what is torn says nothing to the client either
                return False
    return True


def _said(file: BinaryIO) -> tuple[set[bytes | None], bool]:
    """Return digests of all that a `.json` says, and whether a message is among it.

    None is among them where no lines prove anything.
    """
    found: set[bytes | None] = set()
    has_message = False
    cursor = Cursor(iter(partial(file.read, _PIECE), b""))
    for name in cursor.members():
        opening = cursor.next()
        if name == "messages":
            if opening != b"[":
                found.add(None)
                break
            cursor.skip()
            for value in cursor.elements():
                has_message = True
                found.add(_digest(value.text))
        else:
            text = cursor.value().text
            if name not in _ANEW:
                found.add(_digest(b"{%b:%b}" % (json.dumps(name).encode(), text)))
    if cursor.next() or not cursor.is_closed:  # it is no object, goes on behind one, or is torn
        found.add(None)
    return found, has_message


def _members(line: bytes, *, anew: bool = True) -> set[bytes | None]:
    """Return digests of what a line of metadata, or an update, says: `{name: value}` for each.

    That it is an update is nothing said; nor, without `anew`, is what the client always says anew.
    """
    try:
        row = _parsed(line)
        if not isinstance(row, dict):
            return set()
        changed = row.get("$set")
        both = [*row.items(), *(changed.items() if isinstance(changed, dict) else ())]
        left_out = {"$set"} if anew else {"$set", *_ANEW}
        return {_hash({name: value}) for name, value in both if name not in left_out}
    except (ValueError, RecursionError):
        return set()


def _digest(text: bytes) -> bytes | None:
    """Return 16 bytes that only equal values share, however they are written; None of no JSON.

    Of what is too long to be held, there is the beginning only, which is none.
    """
    try:
        return _hash(_parsed(text))
    except (ValueError, RecursionError):
        return None


def _parsed(text: bytes) -> Any:
    """Return a value whose `repr` no other value has. Raises ValueError, RecursionError."""
    return json.loads(text, object_pairs_hook=_object, parse_float=Decimal, parse_constant=_none)


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(sorted(members, key=itemgetter(0)))
    if len(found) < len(members):  # a reader sees one of the two values only
        raise ValueError
    return found


def _none(_name: str) -> None:
    raise ValueError


def _hash(value: Any) -> bytes:
    return blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=16).digest()
