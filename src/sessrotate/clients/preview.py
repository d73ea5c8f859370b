"""What a session's first and last bytes say, in the same form for all clients. Pure.

Rule: values are as the client wrote them; a title is on one line. None means that these bytes do
not say.
"""

from __future__ import annotations

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
class Origin:
    """The session that this one continues, and from which of its rows (a number), if known."""

    session: str
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
    origin: Origin | None = None


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
