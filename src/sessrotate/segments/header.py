"""The first line of every segment but segment 0: which part of which session follows. Pure.

Rule: one value, one line of bytes. The fields before `sessrotate` are those of the public
proposal for segmented sessions; ours are in one object behind them. A header chains its segment
to the one before (`parentDigest`) and to the whole (`segments`, `sourceBytes`), so that a folder
that lost its manifest still proves itself complete.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from msgspec import Struct

from sessrotate import names
from sessrotate.model import Count, Digest, Layout, Segment

MAX_LINE: Final = 16 * 1024
"""Bytes that a header line may have: two file names of 255 bytes, escaped, need far less."""

FORMAT: Final = 1

_PARENT_KEY: Final[dict[Layout, str]] = {"numbered": "parentFile", "linked": "parentSegment"}


class Header(Struct, frozen=True):
    """What a header line says.

    `parent` is the file name (numbered layout) or the id (linked) of the segment before, without
    a compression suffix; `start` and `source_bytes` are bytes of the source; digests are of
    bodies, of this segment and of the one before. In an archive, which goes on growing, nobody
    can say how many segments or bytes there will be: None.
    """

    layout: Layout
    parent: str
    root: str
    index: Count
    timestamp: str | None
    start: Count
    digest: Digest
    parent_digest: Digest
    segments: Count | None
    source_bytes: Count | None


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
        ours = found["sessrotate"]
        layout: Layout = "linked" if _PARENT_KEY["linked"] in found else "numbered"
        fields = {
            "layout": layout,
            "parent": found[_PARENT_KEY[layout]],
            "root": found["rootSession"],
            "index": found["segmentIndex"],
            "timestamp": found["timestamp"],
            "start": ours["start"],
            "digest": ours["digest"],
            "parent_digest": ours["parentDigest"],
            "segments": ours["segments"],
            "source_bytes": ours["sourceBytes"],
        }
        header = msgspec.convert(fields, Header)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return header if line(header) == text else None
