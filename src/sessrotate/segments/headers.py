"""The first lines of segments and of rotated live files: what follows, of which session. Pure.

Rule: one value, one line of bytes: a line that we would not have written so is no header, whatever
else it says. The fields of a segment's before `sessrotate` are those of the public proposal for
segmented sessions; ours are in one object behind them. A header chains its segment to the one
before (`parentDigest`) and to the whole (`segments`, `sourceBytes`), so that a folder that lost its
manifest still proves itself complete. Segment 0 has none.

A live file's says how the file goes on from its archive, and a client passes over it. Its type is
unknown to every client and it has no uuid; as a `system` row it would make 2.0.28 resume an empty
conversation and 2.0.76 crash. It says what follows it (the carried lines, then the boundary), so
that a live file that a client rewrote is noticed and never read wrongly.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field

from sessrotate import names
from sessrotate.model import Count, Digest, Layout, Segment

MAX_LINE: Final = 16 * 1024
"""Bytes that a header line may have: two file names of 255 bytes, escaped, need far less."""

FORMAT: Final = 1
"""Of what stands in `sessrotate`, in both."""

_PROPOSED: Final = ("rootSession", "segmentIndex", "timestamp")
"""The fields of both that the public proposal names."""

_PARENT_KEY: Final[dict[Layout, str]] = {"numbered": "parentFile", "linked": "parentSegment"}

Said = TypeVar("Said", bound=Struct)


def _dumped(begin: dict[str, Any], fields: dict[str, Any]) -> bytes:
    """Return a line that begins so; what the proposal does not name of the fields is ours."""
    proposed = {name: fields.pop(name) for name in _PROPOSED}
    document = {**begin, **proposed, "sessrotate": {"format": FORMAT, **fields}}
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def _parsed(text: bytes, kind: type[Said]) -> Said | None:
    """Return what a line says, not compared yet; None if it has not the fields of this kind."""
    if len(text) > MAX_LINE:
        return None
    try:
        found: Any = json.loads(text)
        fields = {**found, **found["sessrotate"]}
        for layout, key in _PARENT_KEY.items():
            if key in found:
                fields |= {"layout": layout, "parent": found[key]}
        return msgspec.convert(fields, kind)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


# ── of a live file ────────────────────────────────────────────────────────────────────────────────

TYPE: Final = "segment_header"


class LiveHeader(Struct, frozen=True, rename="camel"):
    """What the header of a live file says.

    The live file is the newest segment, number `index` of session `root`, and its body begins at
    `start` bytes of the history. `parent_digest` is of the body before. Behind the header line
    stand `carried_bytes` bytes of lines that are in the archive too, then the boundary's line;
    both are told by their digests, the latter with its newline. Of the body, the rotation has
    judged `judged_bytes`: what rows there continue, and is not carried, clients do not load.
    """

    root: str = field(name="rootSession")
    index: Count = field(name="segmentIndex")
    timestamp: str | None
    start: Count
    parent_digest: Digest
    carried_bytes: Count
    carried_digest: Digest
    boundary_digest: Digest
    judged_bytes: Count


def live_line(header: LiveHeader) -> bytes:
    """Return the header as its line, newline included. All ASCII, so that any name fits in."""
    parent = names.parent_name(header.root, "numbered", header.index)
    return _dumped({"type": TYPE, _PARENT_KEY["numbered"]: parent}, msgspec.to_builtins(header))


def prefix(header: LiveHeader) -> int:
    """Return how many bytes stand before the boundary: they are no part of the history."""
    return len(live_line(header)) + header.carried_bytes


def parse_live(text: bytes, session: str | None = None) -> LiveHeader | None:
    """Return what a first line says, or None if it is no header of ours for `session`.

    A fork of a rotated session begins with a copy of the other's header: that is none. Without a
    `session`, the header of any one is returned, if that could be called so.
    """
    header = _parsed(text, LiveHeader) if text.startswith(names.ROTATED) else None
    if header is None or session not in {None, header.root} or live_line(header) != text:
        return None
    is_name = not {"/", "\\", "\0"} & {*header.root} and header.root not in {"", ".", ".."}
    return header if is_name and header.index else None


# ── of a segment ──────────────────────────────────────────────────────────────────────────────────


class Header(Struct, frozen=True, rename="camel"):
    """What a header line says.

    `parent` is the file name (numbered layout) or the id (linked) of the segment before, without
    a compression suffix; `start` and `source_bytes` are bytes of the source; digests are of
    bodies, of this segment and of the one before. In an archive, which goes on growing, nobody
    can say how many segments or bytes there will be: None.
    """

    layout: Layout
    parent: str
    root: str = field(name="rootSession")
    index: Count = field(name="segmentIndex")
    timestamp: str | None
    start: Count
    digest: Digest
    parent_digest: Digest
    segments: Count | None
    source_bytes: Count | None


def line(header: Header) -> bytes:
    """Return the header as its line, newline included. All ASCII, so that any name fits in."""
    fields = msgspec.to_builtins(header)
    parent = {_PARENT_KEY[fields.pop("layout")]: fields.pop("parent")}
    return _dumped({"type": "system", "subtype": "segment_header", **parent}, fields)


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
    header = _parsed(text, Header)
    return header if header is not None and line(header) == text else None
