"""Whether a Gemini CLI session went on in another file, so that its `.json` is only a copy.

0.39 and later resume a `.json` in a `.jsonl` of its name: they write each message as a line, just
as it was, and leave the `.json` as it is (0.39.1 to 0.61.0, `ChatRecordingService.initialize`). A
client that is killed meanwhile leaves the first messages only, and one of 0.38 goes on in the
`.json`.

Rule: proved, never guessed. Names and times say nothing here: every message is looked for.
"""

from __future__ import annotations

import json
from functools import lru_cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from sessrotate.parsing.json_stream import Cursor
from sessrotate.parsing.records import records

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

_PIECE: Final = 1 << 20


def is_copied(path: Path) -> bool:
    """Tell whether every message of a `.json` is a line of the `.jsonl` of the same name.

    False if there is no such file, no message, or what cannot be read. Both files are read whole,
    once while neither changes; memory grows with the number of messages, 16 bytes for each.
    """
    later = path.with_suffix(".jsonl")
    if path.suffix != ".json" or not later.is_file():
        return False
    try:
        return _has_all(later, _version(later.stat()), path, _version(path.stat()))
    except (OSError, ValueError, RecursionError):
        return False


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@lru_cache(maxsize=4096)
def _has_all(later: Path, _: tuple[int, ...], path: Path, __: tuple[int, ...]) -> bool:
    """Tell whether all messages are lines of the `later` file, both being of these versions."""
    with path.open("rb") as file:
        wanted = {*_messages(file)}
    if not wanted or None in wanted:
        return False
    with later.open("rb") as file:
        for line in records(iter(partial(file.read, _PIECE), b""), 0):
            wanted.discard(_digest(line.line))
            if not wanted:
                return True
    return False


def _messages(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield a digest of each message, or None: then no lines prove anything."""
    cursor = Cursor(iter(partial(file.read, _PIECE), b""))
    for name in cursor.members():
        opening = cursor.next()
        if name == "messages" and opening == b"[":
            cursor.skip()
            for value in cursor.elements():
                yield _digest(value.text)
        else:
            cursor.value()
    if cursor.next() or not cursor.is_closed:  # it is no object, goes on behind one, or is torn
        yield None


def _digest(message: bytes) -> bytes | None:
    """Return 16 bytes that only equal values share, however they are written; None of no JSON.

    Of what is too long to be held, there is the beginning only, which is none.
    """
    try:
        value = json.loads(message)
        written = json.dumps(value, sort_keys=True).encode()
    except (ValueError, RecursionError):
        return None
    return blake2b(written, digest_size=16).digest()
