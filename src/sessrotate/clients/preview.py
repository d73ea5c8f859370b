"""What a session's first and last bytes say, in the same form for all clients. Pure.

Rule: values are as the client wrote them; a title is on one line. None means that these bytes do
not say.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from pathlib import Path

EDGE: Final = 64 * 1024
"""Bytes that are read of a file's beginning, and of its end."""

TITLE_LENGTH: Final = 200
"""Characters of a title that are kept."""

TitleSource = Literal["custom", "ai", "last prompt", "summary", "first prompt", "command", "none"]

Standing = Literal["session", "empty", "warm-up", "agent"]


@dataclass(frozen=True, slots=True)
class Title:
    """What a client calls a session: `text` on one line, empty if nothing was said in it.

    `source` says where it comes from: `custom` if the user chose it, `none` if there is none.
    """

    text: str = ""
    source: TitleSource = "none"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Continues:
    """The session that another one continues, and how that is known.

    `session` is its id. `reason` is "says so" (the client recorded it), "same rows" (both files
    hold records with the same uuids, which is proof), or "same title" (a guess by git branch, title
    and time). `at` is the number of the record in the earlier session where the later one branched
    off, None where the client does not record it.
    """

    session: str
    reason: str
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Sight:
    """What a session's first and last bytes say.

    `folder` is where the client ran, `branch` the git branch at the end (empty outside of git),
    times are ISO 8601, `first` is the uuid of the first row, `id` the session's full id where the
    file's name has only a part of it, `origin` the session that it was forked from. None where it
    is not in sight.
    """

    title: Title
    standing: Standing
    folder: str | None
    branch: str | None
    started: str | None
    ended: str | None
    first: str | None
    id: str | None = None
    origin: Continues | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """The transcript of an agent: its `id`, its file's `path`, and the file's size in `bytes`.

    `call` is the id of the tool call that started it, None where nothing tells. `asked` is the
    beginning of what it was asked, None where the first 64 KiB do not tell. `is_warm_up` is True
    if the client started it only to warm its cache (Claude Code 2.0.x).
    """

    id: str
    path: Path
    bytes: int
    call: str | None = None
    asked: str | None = None
    is_warm_up: bool = False


TIME: Final = re.compile(rb'"timestamp":"(\d{4}-\d\d-\d\dT[0-9:.]+Z)"')
_PLAIN_FOLDER: Final = re.compile(rb'"cwd":"([^"\\\x00-\x1f]*)"')
_FOLDER: Final = re.compile(rb'"cwd":("(?:[^"\\]|\\.)*")')


def first_match(pattern: re.Pattern[bytes], data: bytes) -> str | None:
    """Return what the group of a pattern first matches in a file's bytes."""
    match = pattern.search(data)
    return match[1].decode("utf-8", "replace") if match is not None else None


def folder(head: bytes) -> str | None:
    """Return the first folder that rows name as the one in which the client ran."""
    at = head.find(b'"cwd":"')
    plain = _PLAIN_FOLDER.match(head, at) if at >= 0 else None
    if plain is not None:
        return plain[1].decode("utf-8", "replace")
    try:
        return str(json.loads(first_match(_FOLDER, head) or ""))
    except ValueError:
        return None
