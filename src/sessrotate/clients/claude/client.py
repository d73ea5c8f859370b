"""Claude Code: what its session files (`projects/<slug>/<uuid>.jsonl`) mean.

Rule: the client decides. Every statement here was seen in a real file or in the client's own
code; the versions are named where they matter. Verified with 2.0.28 to 2.1.330.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate import names
from sessrotate.clients import common
from sessrotate.clients.claude.rows import dated_of
from sessrotate.clients.common import (
    BOM,
    count,
    distinct,
    files_in,
    has_row,
    ignored,
    is_folder,
    iso_time,
    listed,
    names_in,
    real,
    text,
)
from sessrotate.clients.in_place import FileKind
from sessrotate.errors import WrongUsageError
from sessrotate.model import Boundary, Span
from sessrotate.parsing import json_line, records
from sessrotate.parsing.json_typed import DECLINED
from sessrotate.system import user_folders

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread

NAME: Final = "claude"

MARKER: Final = b'compact_boundary"'
"""Bytes that every boundary line has. The closing quote keeps most quoted copies out.

Spelling the word with `\\u` escapes would be JSON too; no client writes it, and it is not found.
"""

NOT_IN_PLACE: Final[str | None] = None

SUFFIX: Final = ".jsonl"

_PROJECTS: Final = "projects"

AGENT: Final = "agent-"
"""What agents' transcripts begin with, which 2.0.x keeps beside the sessions."""

CLEANUP_DAYS: Final = 30
"""After how many days without a change the client deletes a session, unless it is told."""

_BOUNDARY: Final[json_line.Shape] = {
    "type": None,
    "subtype": None,
    "uuid": None,
    "timestamp": None,
    "isSidechain": None,
    "compactMetadata": {"trigger": None, "preTokens": None},
}

# A row of any version names its kind in `type` and belongs to a session, a message or a leaf.
_ROW: Final[json_line.Shape] = dict.fromkeys(
    ("type", "sessionId", "uuid", "messageId", "leafUuid", "payload", "sessrotate")
)
_BELONGS_TO: Final = {"sessionId", "uuid", "messageId", "leafUuid", "sessrotate"}

_CONFLICT: Final = re.compile(rf"{common.UUID.pattern}{SUFFIX}{common.CONFLICT}", re.IGNORECASE)

_FOREIGN: Final = (b'"payload":', b'"projectHash":')
"""Keys at the beginning of a long line of Codex, or of a session of Gemini in one line."""
_NEAR: Final = 1024


def boundary(line: Iterable[bytes], span: Span) -> Boundary | bool:
    """Say whether a line that holds `MARKER` is a compaction record.

    That is an object with type `system` and subtype `compact_boundary` of its own (all versions;
    `microcompact_boundary`, 2.1.30 and later, resets nothing). A line that is no JSON object is
    opaque: no client takes it for a boundary either.
    """
    found = json_line.values(line, span.size, _BOUNDARY)
    if found is None:
        return True
    if found.get("type") != "system" or found.get("subtype") != "compact_boundary":
        return False
    metadata = found.get("compactMetadata")
    return Boundary(
        offset=span.start,
        uuid=text(found, "uuid"),
        timestamp=iso_time(found.get("timestamp")),
        trigger=text(metadata, "trigger"),
        pre_tokens=count(metadata.get("preTokens")) if isinstance(metadata, dict) else None,
        is_sidechain=found.get("isSidechain") is True,
    )


def timestamp(line: Iterable[bytes], size: int) -> str | None:
    """Return the time of one record, None if it has none.

    Metadata rows (titles, modes, file-history snapshots) have no time of their own.
    """
    if json_line.is_small(size):
        data = b"".join(line)
        try:
            return iso_time(dated_of.fast(data).timestamp)
        except DECLINED:
            line = [data]
    return common.timestamp(line, size)


def recognise(head: bytes, *, is_whole: bool) -> bool:
    """Tell by the first bytes of a file whether it is a session of this client."""
    head = head.removeprefix(BOM)
    return has_row(head, is_whole=is_whole, is_row=_is_row, may_begin_row=_may_begin_row)


def may_have_row(pieces: Iterable[bytes]) -> bool:
    """Tell whether a row is anywhere in a file, or may be in a line over 8 MiB."""
    return any(recognise(each.line, is_whole=each.is_whole) for each in records(pieces, 0))


def _may_begin_row(head: bytes) -> bool:
    is_object = re.match(rb'\s*\{\s*"\w+"\s*:', head) is not None
    return is_object and not any(key in head[:_NEAR] for key in _FOREIGN)


def _is_row(line: bytes) -> bool:
    found = json_line.values([line], len(line), _ROW) or {}
    # `payload` marks the rows of Codex, which have a type and a time too.
    return (
        isinstance(found.get("type"), str)
        and "payload" not in found
        and not _BELONGS_TO.isdisjoint(found)
    )


# ── where sessions live ──────────────────────────────────────────────────────────────────────


def projects_folder() -> Path:
    """Return the folder that holds one folder for each project.

    `CLAUDE_PROJECTS_DIR` names it outright; else it is `projects` in `CLAUDE_CONFIG_DIR`, which
    is the client's own variable, default `~/.claude`.
    """
    return Path(os.environ.get("CLAUDE_PROJECTS_DIR") or config_folder() / _PROJECTS)


sessions_folder: Final = projects_folder

session_of: Final = names.session_of
"""A session's id is its file's name (all versions)."""


def settings_file() -> Path:
    """Return where the client keeps its user's settings, its hooks among them."""
    return config_folder() / "settings.json"


def state_file() -> Path:
    """Return where the client notes for itself, among other things, which projects it knows."""
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    return (config_folder() if named else user_folders.home()) / ".claude.json"


def config_folder() -> Path:
    """Return the client's own folder, absolute.

    A `~` that no shell has expanded is the user's home, where there is no folder of that name.
    """
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    if not named:
        return usual_folder()
    path = Path(named).absolute()
    is_home = named == "~" or named.startswith("~/")
    return user_folders.home() / named[2:] if is_home and not is_folder(path) else path


def usual_folder() -> Path:
    """Return the client's own folder where nobody names another."""
    return user_folders.home() / ".claude"


def other_folders() -> list[Path]:
    """Return the folders of the home that a client seems to have as well, in order.

    People keep several accounts apart by `CLAUDE_CONFIG_DIR`. None where there is no home.
    """
    with suppress(WrongUsageError):
        home, here = usual_folder().parent, real(config_folder())
        near = (home / name for name in names_in(home) if name.startswith(usual_folder().name))
        folders = distinct(path for path in near if is_folder(path / _PROJECTS))
        return [path for path in folders if real(path) != here]
    return []


def project_name(folder: Path) -> str:
    """Return what the client calls the project of a folder that it runs in (2.0.28 and later).

    Of a very long path, newer clients keep only the beginning and a digest: that is not told here.
    """
    return re.sub(r"[^a-zA-Z0-9]", "-", str(folder))


def registries(beside: Path) -> tuple[Path, ...]:
    """Return the folders in which a running client may have registered; `beside` holds projects.

    2.1.112 and later register in `sessions` of the folder that they were given. By links, projects
    may be reached from several, so each is looked into: a client too many is better than one
    too few.
    """
    configs = (beside, projects_folder().parent, config_folder())
    return tuple(dict.fromkeys(real(config / "sessions") for config in configs))


def sessions(prefix: str = "") -> Iterator[Path]:
    """Yield the session files of all projects; agents' transcripts are no sessions."""
    return _named(prefix, "session")


def tell_unread(unread: Unread) -> None:
    """Tell `unread` of each folder and session file that is there and cannot be read."""
    for _ in _named("", "session", unread):
        pass


def copies(prefix: str = "") -> Iterator[Path]:
    """Yield the copies of session files that file managers made, which no client lists."""
    return _named(prefix, "copy")


def _named(prefix: str, wanted: FileKind, unread: Unread = ignored) -> Iterator[Path]:
    def is_wanted(name: str) -> bool:
        if named(name) != wanted:
            return False
        is_copy = wanted == "copy"
        return common.begins(name, prefix) or (
            is_copy and common.begins(common.copied(name) or "", prefix)
        )

    for project in distinct(listed(projects_folder(), unread), unread):
        yield from files_in(project, is_wanted, unread)


def named(file_name: str) -> FileKind | None:
    """Tell by its name what a file in a project's folder is; None of what is no session file.

    Hidden files are somebody's (a file manager's: `._<uuid>.jsonl`), and no client's.
    """
    if names.is_hidden(file_name):
        return None
    if not file_name.endswith(SUFFIX):
        return "copy" if _CONFLICT.fullmatch(file_name) else None
    if file_name.startswith(AGENT):
        return "agent"
    return "session" if common.copied(session_of(file_name)) is None else "copy"
