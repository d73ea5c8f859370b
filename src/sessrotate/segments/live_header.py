"""The first line of a rotated live file: how the file goes on from its archive. Pure.

Rule: one value, one line of bytes, and a client passes over it. Its type is unknown to every
client and it has no uuid; as a `system` row it would make 2.0.28 resume an empty conversation
and 2.0.76 crash. It says what follows it (the carried lines, then the boundary), so that a live
file that a client rewrote is noticed and never read wrongly.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from msgspec import Struct

from sessrotate import names
from sessrotate.model import Count, Digest
from sessrotate.segments.header import MAX_LINE

FORMAT: Final = 1

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


def line(header: LiveHeader) -> bytes:
    """Return the header as its line, newline included. All ASCII, so that any name fits in."""
    fields = {
        "type": TYPE,
        "parentFile": names.parent_name(header.root, "numbered", header.index),
        "rootSession": header.root,
        "segmentIndex": header.index,
        "timestamp": header.timestamp,
        "sessrotate": {
            "format": FORMAT,
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
    return len(line(header)) + header.carried_bytes


def parse(text: bytes, session: str | None = None) -> LiveHeader | None:
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
    return header if is_name and header.index and line(header) == text else None
