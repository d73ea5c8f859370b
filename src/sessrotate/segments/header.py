"""The first line of every segment but segment 0: which part of which session follows. Pure.

Rule: one value, one line of bytes. The fields before `sessrotate` are those of the public
proposal for segmented sessions; ours are in one object behind them. A header chains its segment
to the one before (`parentDigest`) and to the whole (`segments`, `sourceBytes`), so that a folder
that lost its manifest still proves itself complete.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from sessrotate import names
from sessrotate.system.digest import is_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessrotate.model import Layout, Segment

MAX_LINE: Final = 16 * 1024
"""Bytes that a header line may have: two file names of 255 bytes, escaped, need far less."""

FORMAT: Final = 1

_PARENT_KEY: Final[dict[Layout, str]] = {"numbered": "parentFile", "linked": "parentSegment"}


@dataclass(frozen=True, slots=True)
class Header:
    """What a header line says.

    `parent` is the file name (numbered layout) or the id (linked) of the segment before, without
    a compression suffix; `start` and `source_bytes` are bytes of the source; digests are of
    bodies, of this segment and of the one before. In an archive, which goes on growing, nobody
    can say how many segments or bytes there will be: None.
    """

    layout: Layout
    parent: str
    root: str
    index: int
    timestamp: str | None
    start: int
    digest: str
    parent_digest: str
    segments: int | None
    source_bytes: int | None


def line(header: Header) -> bytes:
    """Return the header as its line, newline included. All ASCII, so that any name fits in."""
    fields = {
        "type": "system",
        "subtype": "segment_header",
        _PARENT_KEY[header.layout]: header.parent,
        "rootSession": header.root,
        "segmentIndex": header.index,
        "timestamp": header.timestamp,
        "sessrotate": {
            "format": FORMAT,
            "start": header.start,
            "digest": header.digest,
            "parentDigest": header.parent_digest,
            "segments": header.segments,
            "sourceBytes": header.source_bytes,
        },
    }
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def of(
    segment: Segment,
    *,
    session: str,
    layout: Layout,
    digest: str,
    parent_digest: str,
    segments: int | None,
    source_bytes: int | None,
) -> bytes:
    """Return the header line of a segment of a session; segment 0 has none, so nothing."""
    if segment.index == 0:
        return b""
    return line(
        Header(
            layout=layout,
            parent=names.parent_name(session, layout, segment.index),
            root=session,
            index=segment.index,
            timestamp=segment.boundary.timestamp if segment.boundary else None,
            start=segment.span.start,
            digest=digest,
            parent_digest=parent_digest,
            segments=segments,
            source_bytes=source_bytes,
        )
    )


def parse(text: bytes) -> Header | None:
    """Return what a first line says, or None if it is not a header that we wrote."""
    if len(text) > MAX_LINE:
        return None
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("sessrotate"), dict):
        return None
    ours = found["sessrotate"]
    layout: Layout = "linked" if _PARENT_KEY["linked"] in found else "numbered"
    values = (
        found.get(_PARENT_KEY[layout]),
        found.get("rootSession"),
        found.get("segmentIndex"),
        found.get("timestamp"),
        *(ours.get(key) for key in _OURS),
    )
    if not all(is_sound(value) for is_sound, value in zip(_SOUND, values, strict=True)):
        return None
    header = Header(layout, *values)
    return header if line(header) == text else None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def is_count(value: object) -> TypeGuard[int]:
    """Tell whether a value read from a file is a number of bytes, lines or segments."""
    return type(value) is int and 0 <= value < 1 << 63


def _is_count_or_none(value: object) -> bool:
    return value is None or is_count(value)


_OURS: Final = ("start", "digest", "parentDigest", "segments", "sourceBytes")

# One for each field of Header behind the layout.
_SOUND: Final[tuple[Callable[[object], bool], ...]] = (
    _is_text,
    _is_text,
    is_count,
    _is_text_or_none,
    is_count,
    is_digest,
    is_digest,
    _is_count_or_none,
    _is_count_or_none,
)
