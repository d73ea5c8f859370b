"""`manifest.json`: what a complete set of segments consists of. Pure.

Rule: `parse(dump(manifest)) == manifest`, and anything else that is parsed is an error: a
manifest from outside is data like any other. It holds no path, no date of its own making and
nothing about the machine, so that the same session always gives the same bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from sessrotate import names
from sessrotate.digest import is_digest
from sessrotate.errors import DamagedError
from sessrotate.model import Boundary, Layout, SealedSegment, Segment, Span

FORMAT: Final = 1

MAX_BYTES: Final = 16 * 1024 * 1024
"""A larger manifest is not read: 20,000 segments need half of this."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A complete set: its session, what it was cut from, and its segments in order."""

    session: str
    client: str
    layout: Layout
    source_bytes: int
    source_digest: str
    segments: tuple[SealedSegment, ...]


def dump(manifest: Manifest) -> bytes:
    """Return the manifest as the bytes of its file."""
    document = {
        "format": FORMAT,
        "session": manifest.session,
        "client": manifest.client,
        "layout": manifest.layout,
        "source": {"bytes": manifest.source_bytes, "digest": manifest.source_digest},
        "segments": [_segment(manifest, sealed) for sealed in manifest.segments],
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def _segment(manifest: Manifest, sealed: SealedSegment) -> dict[str, object]:
    segment, boundary = sealed.segment, sealed.segment.boundary
    return {
        "index": segment.index,
        "file": names.segment_file(manifest.session, manifest.layout, segment.index, sealed.codec),
        "start": segment.span.start,
        "end": segment.span.end,
        "lines": sealed.lines,
        "digest": sealed.digest,
        "codec": sealed.codec,
        "boundary": boundary
        and {
            "uuid": boundary.uuid,
            "timestamp": boundary.timestamp,
            "trigger": boundary.trigger,
            "preTokens": boundary.pre_tokens,
        },
        "firstTimestamp": segment.first_timestamp,
        "lastTimestamp": segment.last_timestamp,
        "pinned": False,
        "pruned": None,
    }


def parse(data: bytes) -> Manifest:
    """Return the manifest that these bytes are; raise DamagedError if they are none of ours."""
    try:
        found = json.loads(data)
        manifest = Manifest(
            session=_text(found["session"]),
            client=_text(found["client"]),
            layout=_one_of(found["layout"], ("numbered", "linked")),
            source_bytes=_number(found["source"]["bytes"]),
            source_digest=_text(found["source"]["digest"]),
            segments=tuple(_sealed(entry) for entry in found["segments"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _damaged() from None
    # Whatever else it might say (a gap, an unknown key, a file name not ours) shows here.
    if not manifest.segments or not _continuous(manifest) or dump(manifest) != data:
        raise _damaged()
    return manifest


def _damaged() -> DamagedError:
    return DamagedError(
        f"The {names.MANIFEST} is damaged. The segments prove themselves without it: "
        "move it away and try again."
    )


def _continuous(manifest: Manifest) -> bool:
    position = 0
    for number, sealed in enumerate(manifest.segments):
        span = sealed.segment.span
        if sealed.segment.index != number or span.start != position or span.end < span.start:
            return False
        position = span.end
    return position == manifest.source_bytes


def _sealed(entry: Any) -> SealedSegment:
    start, boundary = _number(entry["start"]), entry["boundary"]
    return SealedSegment(
        segment=Segment(
            index=_number(entry["index"]),
            span=Span(start, _number(entry["end"])),
            boundary=boundary
            and Boundary(
                offset=start,
                uuid=_text_or_none(boundary["uuid"]),
                timestamp=_text_or_none(boundary["timestamp"]),
                trigger=_text_or_none(boundary["trigger"]),
                pre_tokens=_integer_or_none(boundary["preTokens"]),
            ),
            first_timestamp=_text_or_none(entry["firstTimestamp"]),
            last_timestamp=_text_or_none(entry["lastTimestamp"]),
        ),
        digest=_digest(entry["digest"]),
        lines=_number(entry["lines"]),
        codec=_one_of(entry["codec"], ("plain", "zstd")),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _integer_or_none(value: object) -> int | None:
    if value is not None and type(value) is not int:
        raise TypeError
    return value


def _number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value


def _digest(value: object) -> str:
    if not is_digest(value):
        raise TypeError
    return _text(value)


def _one_of(value: object, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        raise ValueError
    return value
