"""What the files of segments and archives are called, and how a rotated one begins. Pure.

Rule: a name is computed from a session's id and a number, and compared with what a folder holds. A
name that was read from a file is never used to open one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sessrotate.model import Codec, Layout

MANIFEST: Final = "manifest.json"
"""The list of a set's segments. It is written last: if it is there, the set is complete."""

INTENT: Final = "intent.json"
"""Says that a set is being written. It is removed once the manifest is there."""

PACK: Final = "pack"
"""In an archive: the live file that was replaced, whole, until its segments are sealed."""

WAITING: Final = "waiting"
"""In an archive: the folder of replaced live files that a client may still write to."""

DRAFT: Final = "live.partial"
"""In an archive: the new live file, before it takes the old one's place."""

TRASH: Final = "trash"
"""In an archive: the folder of pruned segments, which can be brought back from there."""

ARCHIVED: Final = "archived"
"""In an archive: the folder of a session that was put away, and the start of its drafts."""

PACKED: Final = ".sessrotate.zst"
"""The end of the name of a file of a session put away that was compressed there, and of no other:
what a client or a person called `.zst` stays as it is."""

RECORD: Final = "record.json"
"""In an archive: where its session stands, unless it is simply rotated."""

KEPT: Final = "before-cleanup"
"""Beside a live file, in the folder of the session's name: where Claude Code keeps what it trimmed
(2.1.332, told to)."""

PARTIAL: Final = ".partial"
"""The end of the name of an unfinished file."""

SUFFIX: Final = ".jsonl"

ROTATED: Final = b'{"type":"segment_header",'
"""How the first line of a rotated live file begins, and no line of a client."""

CODEC_SUFFIX: Final[dict[Codec, str]] = {"plain": "", "zstd": ".zst"}

SUFFIXES: Final = tuple(SUFFIX + suffix for suffix in CODEC_SUFFIX.values())
"""All endings of a segment's file name."""

# The ids of linked segments follow from this constant: any will do, but it must never change.
_LINKED: Final = "b5b1f5a2-6f0e-5c53-9f5e-6d1a7c1e8d0b"

_OF_WINDOWS: Final = {"thumbs.db", "desktop.ini"}
"""What its file manager leaves, and hides."""

_LONGEST: Final = 255
"""Bytes that a file's name has at most, on most file systems."""


def key(session: str) -> str:
    """Return what the archive, the lock and the notes of a session are called.

    That is the session's id; what is none of `[a-z0-9._-]`, and a dot in front, is percent-encoded,
    so that it is one name on every file system.
    """
    if re.fullmatch(r"[a-z0-9_-][a-z0-9._-]*", session):
        return session
    return re.sub(rb"[^a-z0-9._-]|\A\.", _encoded, _encoded_name(session)).decode("ascii")


def _encoded_name(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")  # as `os.fsencode` does


def _encoded(found: re.Match[bytes]) -> bytes:
    return b"%%%02x" % found[0][0]


def session_of_key(name: str) -> str | None:
    """Return the id of the session that a key is of; None of a name that is no key."""
    try:
        told = re.sub(rb"%([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), name.encode())
        session = told.decode("utf-8", "surrogateescape")
        return session if is_plain(session) and key(session) == name else None
    except ValueError:  # what no file system can hold
        return None


def is_plain(name: str) -> bool:
    """Tell whether something that was read can be the name of a file or folder, and no path."""
    try:
        is_short = len(_encoded_name(name)) <= _LONGEST
    except ValueError:
        return False
    return is_short and name not in {"", ".", ".."} and not {"/", "\\", "\0"} & {*name}


def is_hidden(name: str) -> bool:
    """Tell whether a file is somebody's (a file manager's `.DS_Store`), and part of nothing."""
    return name.startswith(".") or name.casefold() in _OF_WINDOWS


def is_leftover(name: str) -> bool:
    """Tell whether a file of an archive is there only while something is being done."""
    return name == PACK or name.endswith(PARTIAL)


def segment_id(session: str, layout: Layout, index: int) -> str:
    """Return a segment's name without its suffixes.

    Segment 0 has the session's own name. The others are called `session.N` in the numbered layout;
    in the linked layout, a UUID that follows from the session and the number.
    """
    if index == 0:
        return session
    if layout == "numbered":
        return f"{session}.{index}"
    import uuid  # noqa: PLC0415 - 4 ms at start-up, wanted only for this layout

    name = f"{session}/{index}".encode("utf-8", "surrogatepass").hex()
    return str(uuid.uuid5(uuid.UUID(_LINKED), name))


def sealed_file(session: str, index: int) -> str:
    """Return the name of a segment's file in an archive, where all are compressed."""
    return segment_file(session, "numbered", index, "zstd")


def segment_file(session: str, layout: Layout, index: int, codec: Codec = "plain") -> str:
    """Return a segment's file name."""
    return segment_id(session, layout, index) + SUFFIX + CODEC_SUFFIX[codec]


def parent_name(session: str, layout: Layout, index: int) -> str:
    """Return the name by which the header of segment `index` refers to the segment before it."""
    name = segment_file if layout == "numbered" else segment_id
    return name(session, layout, index - 1)


def session_of(file_name: str) -> str:
    """Return the id of the session whose live file, or segment 0, has this name."""
    return file_name.removesuffix(CODEC_SUFFIX["zstd"]).removesuffix(SUFFIX)


def uncompressed(parts: Sequence[str]) -> str:
    """Return the last of a path's parts without `PACKED`, if it is below the folder `archived`.

    The path of the folder where we are has no parts.
    """
    name = parts[-1] if parts else ""
    return name.removesuffix(PACKED) if ARCHIVED in parts else name


def possible_sessions(file_name: str) -> tuple[str, ...]:
    """Return the ids of the sessions that a file may be a numbered segment of, or segment 0."""
    named = session_of(file_name)
    return (named, re.sub(r"\.[1-9]\d*\Z", "", named))


def segments_among(listing: Iterable[str], session: str) -> list[str]:
    """Return the names of a session's segments among these, in order."""
    return [
        name
        for name in sorted(listing)
        if name.endswith(SUFFIXES) and session in possible_sessions(name)
    ]
