"""What a Codex session is called, and what its first and last 64 KiB say.

Rule: the client decides. A session is called by the name that the user gave it (the last line with
its id in `session_index.jsonl`), or else by the first thing that the user asked, as in the
client's own list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from sessrotate import units
from sessrotate.clients.codex.client import config_folder
from sessrotate.clients.codex.rows import EventMsg, Meta, SessionMeta, Source, row_of
from sessrotate.clients.codex.view import prompt
from sessrotate.clients.common import iso_time
from sessrotate.clients.preview import EDGE, TITLE_LENGTH, Sight, Title, rows, rows_from_the_end
from sessrotate.errors import DamagedError
from sessrotate.parsing import Record, records
from sessrotate.parsing.json_typed import Decoder
from sessrotate.safe_text import clipped


class _Dated(Struct):
    """When a row was written."""

    timestamp: Any = None


class _Renamed(Struct):
    """A line of the index of names (0.105)."""

    id: str
    thread_name: str | None = None


_DATED: Final[Decoder[_Dated]] = Decoder(_Dated)
_RENAMED: Final[Decoder[_Renamed | dict[str, Any]]] = Decoder(_Renamed)
_INDEX: Final = "session_index.jsonl"
_LARGEST_INDEX: Final = 64 * 1024 * 1024

_MAY_ASK: Final = re.compile(rb'"(?:user_message|UserMessage)"|"role":\s*"user"')

_PATIENCE: Final = 8
"""Messages in the user's name after which we stop waiting for an event with what was typed."""

_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_CUT_PROMPT: Final = re.compile(
    rb'"role":"user","content":\[(\{"type":"input_text","text":"(?:[^"\\]|\\.)*")'
)
_TOLD_FOLDER: Final = re.compile(rb'<environment_context>\\n\s*<cwd>((?:[^<"\\]|\\.)+)</cwd>')
"""What 0.29 tells its model: no row of it names the folder."""

_CUT_FOLDER: Final = re.compile(rb'"cwd"\s*:\s*"((?:[^"\\]|\\.)*)"')
"""In a first row that is longer than what is in sight: with its instructions, say."""


def sight(head: bytes, tail: bytes, *, is_whole: bool) -> Sight:
    """Return what a file's first and last bytes say; `is_whole`: `head` is all of it.

    Only the beginning of a compressed rollout is in sight.
    """
    if head.startswith(_ZSTD):
        head, tail, is_whole = unpacked(head), b"", False
    whole = head if is_whole else head[: head.rfind(b"\n") + 1]
    first = next(records([whole], 0), None)
    row = row_of(first) if first is not None else None
    meta = row.payload if isinstance(row, SessionMeta) else Meta()
    title = _by_prompt(records([whole], 0))
    if not title.text and (cut := _CUT_PROMPT.search(head, len(whole))) is not None:
        # The text of a prompt stands before its pictures.
        line = b'{"type":"message","role":"user","content":[%b}]}' % cut[1]
        title = _by_prompt(records([line], 0))
    if name := named(config_folder()).get(meta.id or ""):
        title = Title(name, "custom")
    is_agent = isinstance(meta.source, Source) and bool(meta.source.subagent)
    last = tail or (head if is_whole else b"")
    return Sight(
        title=title,
        standing="agent" if is_agent else "empty" if is_whole and not title.text else "session",
        folder=meta.cwd or _told_folder(_TOLD_FOLDER if whole else _CUT_FOLDER, head),
        branch=meta.git.branch if meta.git is not None else None,
        started=_time(rows(_DATED, head, is_whole=is_whole)),
        ended=_time(rows_from_the_end(_DATED, last, is_whole=is_whole)),
        first=meta.id,
        origin=meta.origin,
    )


def _time(dated: Iterable[_Dated]) -> str | None:
    """Return the time of the first row that has one, in UTC."""
    times = (iso_time(row.timestamp) for row in dated)
    return next((units.in_utc(time) for time in times if time is not None), None)


def _told_folder(pattern: re.Pattern[bytes], head: bytes) -> str | None:
    """Return the folder that is told where no whole first row names it."""
    found = pattern.search(head)
    if found is None:
        return None
    try:
        return str(json.loads(b'"%b"' % found[1]))
    except ValueError:
        return None


def named(home: Path) -> dict[str, str]:
    """Return the names that users gave to sessions of this folder of the client, by id.

    The client writes a line each time (0.105 and later). Other lines are left out.
    """
    try:
        status = (home / _INDEX).stat()
    except OSError:
        return {}
    return _names(home / _INDEX, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _names(path: Path, _modified: int, size: int) -> dict[str, str]:
    if size > _LARGEST_INDEX or not path.is_file():
        return {}
    try:
        data = path.read_bytes()
    except OSError:
        return {}
    names = {}
    for line in data.split(b"\n"):
        if isinstance(renamed := _RENAMED(line), _Renamed):
            names[renamed.id] = clipped(renamed.thread_name or "", TITLE_LENGTH)
    return names


def _by_prompt(rows: Iterable[Record]) -> Title:
    """Return the title by the first prompt: as an event, which is the client's own choice."""
    said: list[str] = []
    for record in rows:
        if _MAY_ASK.search(record.line) is None or (row := row_of(record)) is None:
            continue
        asked = prompt(row)
        if asked is None:
            continue
        if isinstance(row, EventMsg):
            said = [asked]
            break
        said.append(asked)
        if len(said) >= _PATIENCE:
            break
    return Title(clipped(said[0], TITLE_LENGTH), "first prompt") if said else Title()


def unpacked(head: bytes) -> bytes:
    """Return the first `EDGE` bytes of what is compressed, as far as they are in sight.

    Empty where it cannot be read: a list of others goes on.
    """
    from sessrotate.system import zstd  # noqa: PLC0415 - few sessions are compressed

    data = b""
    with suppress(DamagedError):
        for piece in zstd.decompressed(BytesIO(head).read, EDGE):
            data += piece
            if len(data) >= EDGE:
                break
    return data[:EDGE]
