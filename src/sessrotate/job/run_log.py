"""The log of `sessrotate run`: a line of JSON for each run, for monitors and for `doctor`.

Rule: numbers and ids, never the content of a session. Only its owner can read the file, and it
stays small: the newest lines are kept, up to `MOST_LINES` and `MOST_BYTES`.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from sessrotate import fs
from sessrotate.clients.claude import client as claude
from sessrotate.errors import StorageError, storage
from sessrotate.system import user_folders

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MOST_LINES: Final = 1000
MOST_BYTES: Final = 1 << 20


class LastRun(Struct, frozen=True):
    """When the newest run began (ISO 8601, UTC), its exit code, and the sessions that failed.

    `seconds` is how long it took; `by_hand`: a person started it.
    """

    at: str
    code: int
    failed: tuple[str, ...] = ()
    seconds: float = 0.0
    by_hand: bool = False


def add(record: Mapping[str, Any]) -> None:
    """Append a line; if the file gets too long, drop its oldest lines.

    Raises StorageError, and WrongUsageError if the user has no home for it.
    """
    path = user_folders.log_file()
    user_folders.check_home(path)
    line = json.dumps(record).encode() + b"\n"
    with storage("write the log of runs"):
        fs.create_folder(path.parent)
        before = _tail(path)
        if before is None:
            fs.create_file_at_once(path, line)
            return
        lines = [*before.splitlines(keepends=True), line]
        kept = _newest(lines)
        if len(kept) == len(lines) and path.stat().st_size == len(before):
            fs.append(path, line)
        else:
            fs.create_file_at_once(path, b"".join(kept))


def _newest(lines: list[bytes]) -> list[bytes]:
    """Return the last lines that fit; partial lines are left out."""
    kept: list[bytes] = []
    size = 0
    for line in reversed(lines):
        size += len(line)
        if len(kept) == MOST_LINES or size > MOST_BYTES:
            break
        if line.endswith(b"\n"):
            kept.append(line)
    return kept[::-1]


def _tail(path: Path) -> bytes | None:
    """Return the last `MOST_BYTES` of the file; None if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_BYTES))
            return file.read(MOST_BYTES)
    except FileNotFoundError:
        return None


def last_at() -> str | None:
    """Return when the newest run began (ISO 8601, UTC), None if there is none to be read."""
    try:
        found = last()
    except StorageError:
        return None
    return None if found is None else found.at


def last(*, by_itself: bool = False) -> LastRun | None:
    """Return the newest run in the client's folder, None if there is none. Raises StorageError.

    With `by_itself`, the newest that no person started.
    """
    here = str(claude.config_folder())
    with storage("read the log of runs"):
        lines = (_tail(user_folders.log_file()) or b"").splitlines()
    for line in reversed(lines):
        try:
            found: Any = json.loads(line)
            at, code, failures = found["at"], found["code"], found.get("failures", [])
            failed = dict.fromkeys(str(each["session"]) for each in failures)
            seconds, by_hand = float(found.get("seconds", 0.0)), found.get("by_hand") is True
            is_wanted = found.get("folder", here) == here and not (by_itself and by_hand)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
        if is_wanted and isinstance(at, str) and isinstance(code, int):
            return LastRun(at, code, tuple(filter(None, failed)), seconds, by_hand)
    return None
