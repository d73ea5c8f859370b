"""The first lines of segments and of rotated live files: what follows, of which session. Pure.

Rule: one value, one line of bytes. The fields of a segment's before `sessrotate` are those of the
public proposal for segmented sessions; ours are in one object behind them. A header chains its
segment to the one before (`parentDigest`) and to the whole (`segments`, `sourceBytes`), so that a
folder that lost its manifest still proves itself complete. Segment 0 has none.

A live file's says how the file goes on from its archive, and a client passes over it. Its type is
unknown to every client and it has no uuid; as a `system` row it would make 2.0.28 resume an empty
conversation and 2.0.76 crash. It says what follows it (the carried lines, then the boundary), so
that a live file that a client rewrote is noticed and never read wrongly.
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

# ── of a live file ────────────────────────────────────────────────────────────────────────────────

LIVE_FORMAT: Final = 1

TYPE: Final = "segment_header"


class LiveHeader(Struct, frozen=True):
    """What the header of a live file says.

    The live file is the newest segment, number `index` of session `root`, and its body begins at
    `start` bytes of the history. `parent_digest` is of the body before. Behind the header line
    stand `carried_bytes` bytes of lines that are in the archive too, then the boundary's line;
    both are told by their digests, the latter with its newline. Of the body, the rotation has
    judged `judged_bytes`: what rows there continue, and is not carried, clients do not load.
    """

    root: str
    index: Count
    timestamp: str | None
    start: Count
    parent_digest: Digest
    carried_bytes: Count
    carried_digest: Digest
    boundary_digest: Digest
    judged_bytes: Count


def live_line(header: LiveHeader) -> bytes:
    """Return the header as its line, newline included. All ASCII, so that any name fits in."""
    fields = {
        "type": TYPE,
        "parentFile": names.parent_name(header.root, "numbered", header.index),
        "rootSession": header.root,
        "segmentIndex": header.index,
        "timestamp": header.timestamp,
        "sessrotate": {
            "format": LIVE_FORMAT,
            "start": header.start,
            "parentDigest": header.parent_digest,
            "carriedBytes": header.carried_bytes,
            "carriedDigest": header.carried_digest,
            "boundaryDigest": header.boundary_digest,
            "judgedBytes": header.judged_bytes,
        },
    }
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def prefix(header: LiveHeader) -> int:
    """Return how many bytes stand before the boundary: they are no part of the history."""
    return len(live_line(header)) + header.carried_bytes


def parse_live(text: bytes, session: str | None = None) -> LiveHeader | None:
    """Return what a first line says, or None if it is no header of ours for `session`.

    A fork of a rotated session begins with a copy of the other's header: that is none. Without a
    `session`, the header of any one is returned, if that could be called so.
    """
    if len(text) > MAX_LINE or not text.startswith(names.ROTATED):
        return None
    try:
        found: Any = json.loads(text)
        ours = found["sessrotate"]
        fields = {
            "root": found["rootSession"] if session is None else session,
            "index": found["segmentIndex"],
            "timestamp": found["timestamp"],
            "start": ours["start"],
            "parent_digest": ours["parentDigest"],
            "carried_bytes": ours["carriedBytes"],
            "carried_digest": ours["carriedDigest"],
            "boundary_digest": ours["boundaryDigest"],
            "judged_bytes": ours["judgedBytes"],
        }
        header = msgspec.convert(fields, LiveHeader)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    is_name = not {"/", "\\", "\0"} & {*header.root} and header.root not in {"", ".", ".."}
    return header if is_name and header.index and live_line(header) == text else None


# ── of a segment ──────────────────────────────────────────────────────────────────────────────────

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
