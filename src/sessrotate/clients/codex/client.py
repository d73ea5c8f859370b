"""Codex CLI: what its session files (`sessions/YYYY/MM/DD/rollout-<time>-<uuid>.jsonl`) mean.

Rule: the client decides. Everything stated here was seen in files of versions 0.20 to 0.169, or
in the client's source (openai/codex, `codex-rs/rollout`). Versions are named where they matter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Reversible
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from sessrotate.clients import common
from sessrotate.clients.common import (
    count,
    has_row,
    ignored,
    is_file,
    is_folder,
    iso_time,
    names_in,
)
from sessrotate.model import Boundary, Span
from sessrotate.parsing import json_line
from sessrotate.system import user_folders

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread

NAME: Final = "codex"

MARKER: Final = b'"compacted"'
"""Bytes that every boundary line has. Where a text quotes them, backslashes are in between."""

NOT_IN_PLACE: Final = (
    "Codex keeps byte offsets into this file, in its database of turns (0.150 and later) and in "
    "sessions that were forked from this one, so sessrotate does not rotate it in place yet. "
    "`sessrotate tidy` compresses it whole, unless it is compressed already; `split` without "
    "--in-place copies it into a folder."
)

CARRIES: Final = "with history"
"""The trigger of a compaction whose record has the complete history to go on with."""

CARRIES_NOT: Final = "without history"

SUFFIXES: Final = (".jsonl", ".jsonl.zst")
"""What a rollout's name ends with; 0.169 compresses some that were not touched for a week."""

_UUID: Final = rf"(?i:{common.UUID.pattern})"
_NAME: Final = re.compile(
    rf"rollout-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-({_UUID})(?:_({_UUID}))?\.jsonl(?:\.zst)?"
)

_DATED_NAME: Final = re.compile(r"^rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-")
_COPY: Final = re.compile(
    rf"(?!\.)(?!{_NAME.pattern}$).*{_UUID}.*\.jsonl(?:\.zst|{common.CONFLICT})?"
)
"""A name that has a rollout's uuid, and is not a rollout's."""

_DEEPEST: Final = 3
"""Folders between `sessions` and a rollout: year, month, day."""

_BOUNDARY: Final[json_line.Shape] = {
    "type": None,
    "timestamp": None,
    "payload": {
        "replacement_history": None,
        "latest_token_usage_record": {"usage": {"input_tokens": None}},
    },
}

# Rows are envelopes from 0.36 on. Before that they were bare items, the first with the session's
# id, and notes of the client's state.
_ROW: Final[json_line.Shape] = dict.fromkeys(
    ("timestamp", "type", "payload", "record_type", "id", "instructions")
)
_LONG_FIRST: Final = re.compile(
    rb'\{"timestamp":"[^"\\]{1,64}",(?:"ordinal":\d{1,15},)?"type":"\w{1,64}","payload":'
    rb'|\{"id":"[^"\\]{1,64}","timestamp":"[^"\\]{1,64}","instructions":'
)

# ── boundaries ───────────────────────────────────────────────────────────────────────────────

_HEAD: Final = re.compile(
    rb'\{"timestamp":"([^"\\]{0,128})",(?:"ordinal":[0-9]{1,15},)?'
    rb'"type":"compacted","payload":\{'
)
"""How every version writes the beginning of a compacted record."""

# Possessive, so that it never goes back.
_MESSAGE: Final = re.compile(
    rb'"message":"[^"\\]*+(?:(?>\\.[^"\\]*+))*+"(,"replacement_history":|\})'
)

_MESSAGE_PIECES: Final = 16
"""Pieces of 64 KiB within which the summary that a compacted record begins with ends."""

_END: Final = 32 * 1024
"""Bytes of the end that are looked at; what 0.169 writes behind the history has 2 to 5 KB."""

_USED: Final = re.compile(
    rb'"latest_token_usage_record":\{(?:(?>"[a-z_]+":"[^"\\]*+",))*+'
    rb'"usage":\{"input_tokens":([0-9]{1,15})[,}]'
)
_SPACE: Final = b" \t\r"


def boundary(line: Reversible[bytes], span: Span) -> Boundary | bool:
    """Say whether a line that holds `MARKER` is a compaction: type `compacted` of its own.

    Such a record may have hundreds of megabytes, so it is recognised by its two ends: by the
    beginning that all versions write, and by the braces that close it. What is between them is not
    read. A line that was torn and then continued by the client therefore counts as the boundary
    that it was meant to be; a line that is torn at its end is opaque. A line that begins or ends in
    another way is parsed.

    `trigger` says whether the record carries the history that replaces the older one (0.105 and
    later), so that a resume can start there. `pre_tokens` is how many tokens the compaction was
    sent (0.155 and later).
    """
    told = _by_its_ends(line, span)
    if told is not None:
        return told
    found = json_line.values(line, span.size, _BOUNDARY)
    if found is None:
        return True
    payload = found.get("payload")
    if found.get("type") != "compacted" or not isinstance(payload, dict):
        return False
    tokens: object = payload
    for name in ("latest_token_usage_record", "usage", "input_tokens"):
        tokens = tokens.get(name) if isinstance(tokens, dict) else None
    return Boundary(
        offset=span.start,
        timestamp=iso_time(found.get("timestamp")),
        trigger=CARRIES if "replacement_history" in payload else CARRIES_NOT,
        pre_tokens=count(tokens),
    )


def _by_its_ends(line: Reversible[bytes], span: Span) -> Boundary | Literal[True] | None:
    """Return the boundary, True for one that is torn; None where only a parser knows."""
    head = b""
    for piece in islice(line, _MESSAGE_PIECES):
        head += piece
        begins = _HEAD.match(head)
        if begins is None:
            return None
        message = _MESSAGE.match(head, begins.end())
        if message is not None:
            break
    else:
        return None
    end = b""
    for piece in reversed(line):
        end = piece + end
        if len(end) >= _END:
            break
    end = end.rstrip(_SPACE)
    if not end.endswith(b"}"):
        return True if end else None
    if not end[:-1].rstrip(_SPACE).endswith(b"}"):
        return None
    at = end.rfind(b'"latest_token_usage_record":{')
    used = _USED.match(end, at) if at >= 0 else None
    return Boundary(
        offset=span.start,
        timestamp=iso_time(begins[1].decode("utf-8", "replace")),
        trigger=CARRIES_NOT if message[1] == b"}" else CARRIES,
        pre_tokens=int(used[1]) if used is not None else None,
    )


# ── rows and files ───────────────────────────────────────────────────────────────────────────


timestamp: Final = common.timestamp
"""Bare rows (0.20 to 0.29) have none, but for the first."""


def recognise(head: bytes, *, is_whole: bool) -> bool:
    """Tell by the first bytes of a file whether it is a session of this client."""
    return has_row(head, is_whole=is_whole, is_row=_is_row, may_begin_row=_LONG_FIRST.match)


def _is_row(line: bytes) -> bool:
    if line[:1] not in {b"{", b" ", b"\t"}:
        return False
    found = json_line.values([line], len(line), _ROW) or {}
    is_dated = isinstance(found.get("timestamp"), str)
    if isinstance(found.get("type"), str) and "payload" in found:
        return is_dated
    if isinstance(found.get("record_type"), str):
        return True
    return is_dated and isinstance(found.get("id"), str) and "instructions" in found


# ── where sessions live ──────────────────────────────────────────────────────────────────────


def config_folder() -> Path:
    """Return the client's own folder: `CODEX_HOME`, default `~/.codex`."""
    return Path(os.environ.get("CODEX_HOME") or user_folders.home() / ".codex")


def sessions_folder() -> Path:
    """Return the folder of sessions: `CODEX_SESSIONS_DIR`, or `sessions` in the client's own."""
    return Path(os.environ.get("CODEX_SESSIONS_DIR") or config_folder() / "sessions")


def archived_folder() -> Path:
    """Return where `codex archive` moves sessions to: it is beside the folder of sessions."""
    return sessions_folder().parent / "archived_sessions"


def folders() -> tuple[Path, Path]:
    """Return the folders in which, or below which, the client keeps its rollouts."""
    return sessions_folder(), archived_folder()


def is_rollout(file_name: str) -> bool:
    """Tell whether the client takes a file of this name for a session, plain or compressed."""
    return _NAME.fullmatch(file_name) is not None


def session_of(file_name: str) -> str:
    """Return the id of the session whose file has this name: the uuid in it.

    A revert writes a second file of the same session, `<uuid>_<uuid of its own>` (0.169): it is
    known by its own. Of a copy, the id has what follows the uuid too. Of any other name, it is
    what stands before the suffix.
    """
    named = _NAME.fullmatch(file_name)
    if named is not None:
        return named[2] or named[1]
    return _DATED_NAME.sub("", file_name.removesuffix(".zst").removesuffix(".jsonl"))


def root_of(file_name: str) -> str:
    """Return the id of the session that a file is of: the first uuid in its name."""
    named = _NAME.fullmatch(file_name)
    return session_of(file_name) if named is None else named[1]


def sessions(prefix: str = "") -> Iterator[Path]:
    """Yield the session files, archived ones last; of one that is compressed too, the plain one.

    Of two uuids in a name, either may begin so.
    """
    for path in files_named(_NAME):
        named = session_of(path.name), root_of(path.name)
        is_wanted = any(common.begins(each, prefix) for each in named)
        if is_wanted and not (path.suffix == ".zst" and is_file(path.with_suffix(""))):
            yield path


def copies(prefix: str = "") -> Iterator[Path]:
    """Yield the copies of session files that file managers made, which no client lists."""
    for path in files_named(_COPY):
        named = session_of(path.name), common.copied(path.name) or ""
        if any(common.begins(each, prefix) for each in named):
            yield path


def tell_unread(unread: Unread) -> None:
    """Tell `unread` of each folder and session file that is there and cannot be read."""
    for _ in files_named(_NAME, unread):
        pass


def files_named(name: re.Pattern[str], unread: Unread = ignored) -> Iterator[Path]:
    """Yield the files where rollouts are that are called so, in sorted order, archived ones last.

    `unread` is as in `tell_unread`.
    """
    for folder in folders():
        yield from _below(folder, name, _DEEPEST, unread)


def _below(folder: Path, name: re.Pattern[str], depth: int, unread: Unread) -> Iterator[Path]:
    for entry in names_in(folder, unread):
        if name.fullmatch(entry):
            if is_file(folder / entry, unread):
                yield folder / entry
        elif depth and entry.isdigit() and is_folder(folder / entry, unread):
            yield from _below(folder / entry, name, depth - 1, unread)
