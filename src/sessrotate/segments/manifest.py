"""`manifest.json`: what a complete set of segments consists of; and the plan of one. Pure.

Rule: `parse(dump(manifest)) == manifest`, and anything else that is parsed is an error: a
manifest from outside is data like any other. It holds no path and nothing about the machine, and
but for tombstones no date of its own making, so that the same session always gives the same bytes.

A plan says everything that will be written, so that a dry run that shows it shows the run. No file
is touched and no clock is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sessrotate import names
from sessrotate.errors import DamagedError, RefusedError
from sessrotate.model import Boundary, Count, Digest, Layout, Scan, SealedSegment, Segment, Span

FORMAT: Final = 1

MAX_BYTES: Final = 8 * 1024 * 1024
"""A larger manifest is not read: 10,000 segments need half of this."""

MAX_NOTE: Final = 400
"""Characters of a pin's note or a tombstone's rule that its line has room for."""

MAX_LINE: Final = 8 * 1024
_REMEMBERED: Final = 1 << 20
"""Bytes of a manifest, some 2,000 segments, that a command may hold on to."""

_END: Final = b"\n]}\n"


class Manifest(Struct, frozen=True):
    """A complete set: its session, what it was cut from, and its segments in order.

    An archive goes on growing at its live file, so nothing says the digest of it all: None.
    `project` is what the folder of that live file is called among projects, None outside of an
    archive.
    """

    session: str
    client: str
    layout: Layout
    source_bytes: Count
    source_digest: Digest | None
    segments: tuple[SealedSegment, ...]
    project: str | None = None

    def file_of(self, entry: SealedSegment) -> str:
        """Return the name of a segment's file, in the folder of the set or in the trash."""
        return names.segment_file(self.session, self.layout, entry.segment.index, entry.codec)


def dump(manifest: Manifest) -> bytes:
    """Return the manifest as the bytes of its file: JSON, with each segment on its own line."""
    lines = (_segment_line(manifest, sealed) for sealed in manifest.segments)
    return _head_line(manifest) + b",\n".join(lines) + _END


def _head_line(manifest: Manifest) -> bytes:
    head = {
        "format": FORMAT,
        "session": manifest.session,
        "client": manifest.client,
        "layout": manifest.layout,
        "source": {"bytes": manifest.source_bytes, "digest": manifest.source_digest},
        **({} if manifest.project is None else {"project": manifest.project}),
    }
    return json.dumps(head)[:-1].encode() + b', "segments": [\n'


def _segment_line(manifest: Manifest, sealed: SealedSegment) -> bytes:
    segment, boundary = sealed.segment, sealed.segment.boundary
    entry = {
        "index": segment.index,
        "file": manifest.file_of(sealed),
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
        "pin": sealed.pin,
        "pruned": sealed.pruned and {"at": sealed.pruned.at, "rule": sealed.pruned.rule},
        **({"cut": True} if segment.is_cut else {}),
    }
    return json.dumps(entry).encode()


def until(listed: Manifest, count: int) -> Manifest | None:
    """Return the manifest of the first `count` segments of a session; None if there are none."""
    segments = listed.segments[:count]
    if not segments:
        return None
    return replace(listed, segments=segments, source_bytes=segments[-1].segment.span.end)


def parse(data: bytes) -> Manifest:
    """Return the manifest that these bytes are; raise DamagedError if they are none of ours.

    RefusedError says that a newer sessrotate wrote it.

    One without segments is none. It is read line by line, so that a hostile one costs no more
    memory than it has bytes.
    """
    return _parsed(data) if len(data) > _REMEMBERED else _remembered(data)


@lru_cache(maxsize=2)  # it is frozen, and one command looks at the same again and again
def _remembered(data: bytes) -> Manifest:
    return _parsed(data)


def _parsed(data: bytes) -> Manifest:
    lines = BytesIO(data)
    first = lines.readline(MAX_LINE)
    segments: list[SealedSegment] = []
    try:
        manifest = _head(first)
        # Whatever else it might say (an unknown key, a file name not ours) shows in a line that
        # is not the one that we would have written.
        is_ours, end = first == _head_line(manifest), b",\n"
        while is_ours and end == b",\n":
            line = lines.readline(MAX_LINE)
            end = b",\n" if line.endswith(b",\n") else b"\n"
            segments.append(_sealed(json.loads(line.removesuffix(end))))
            is_ours = line == _segment_line(manifest, segments[-1]) + end
        manifest = replace(manifest, segments=tuple(segments))
        if is_ours and segments and b"\n" + lines.read() == _END and _is_sound(manifest):
            return manifest
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    if _is_newer(first):
        raise RefusedError(
            f"The {names.MANIFEST} was written by a newer sessrotate: update this one, then try "
            "again."
        )
    raise _damaged()


def _is_newer(line: bytes) -> bool:
    """Tell whether a first line says that it is ours, of a format that is yet to come."""
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        head = json.loads(line + b"]}")
        return bool(head["format"] > FORMAT and head["session"] and head["client"])
    return False


def project_of(data: bytes) -> str:
    """Return which project a manifest that begins so names; raise DamagedError if it names none."""
    first = BytesIO(data).readline(MAX_LINE)
    with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
        manifest = _head(first)
        if first == _head_line(manifest) and manifest.project and names.is_plain(manifest.project):
            return manifest.project
    raise _damaged()


def _damaged() -> DamagedError:
    return DamagedError(
        f"The {names.MANIFEST} is damaged. The segments can be verified without it: "
        "move it away and try again."
    )


def _head(line: bytes) -> Manifest:
    """Return the manifest without segments that a first line is; raise as `_sealed` does."""
    head = json.loads(line + b"]}")
    source = {f"source_{key}": value for key, value in head["source"].items()}
    return msgspec.convert({**head, **source, "segments": ()}, Manifest)


def _sealed(entry: Any) -> SealedSegment:
    """Return the segment of a line; raise a ValueError, TypeError or KeyError if it is none."""
    start, boundary = entry["start"], entry["boundary"]
    segment = {
        "index": entry["index"],
        "span": {"start": start, "end": entry["end"]},
        "boundary": boundary and {**boundary, "offset": start, "pre_tokens": boundary["preTokens"]},
        "first_timestamp": entry["firstTimestamp"],
        "last_timestamp": entry["lastTimestamp"],
        "is_cut": entry.get("cut", False),
    }
    return msgspec.convert({**entry, "segment": segment}, SealedSegment)


def _is_sound(manifest: Manifest) -> bool:
    """Tell whether the segments adjoin and make up the whole, and the project is a plain name."""
    position = 0
    for number, sealed in enumerate(manifest.segments):
        span, boundary = sealed.segment.span, sealed.segment.boundary
        if sealed.segment.index != number or span.start != position or span.end < span.start:
            return False
        if (boundary is None) != (number == 0):
            return False
        position = span.end
    is_told = manifest.project is None or names.is_plain(manifest.project)
    return is_told and position == manifest.source_bytes


# ── the plan of a split ───────────────────────────────────────────────────────────────────────────


def spans(
    scan: Scan, start: int = 0, *, is_cut: bool = False
) -> list[tuple[Span, Boundary | None]]:
    """Return the parts of a session, from offset `start` on, and the boundary that opens each.

    Part 0 is what stands before the first boundary: it may be empty, and the only one. It is left
    out where a rotated live file begins with the boundary that it was cut at. If the client cut
    that out (`is_cut`), part 0 is what it kept of the segment that it had opened.
    """
    boundaries = [boundary for boundary in scan.boundaries if boundary.offset >= start]
    starts = [start, *(boundary.offset for boundary in boundaries)]
    openings: list[Boundary | None] = [None, *boundaries]
    if start and starts[1:2] == [start] and not is_cut:
        del starts[0], openings[0]
    ends = [*starts[1:], scan.end]
    return [
        (Span(start, end), boundary)
        for start, end, boundary in zip(starts, ends, openings, strict=True)
    ]


def planned(
    parts: Iterable[tuple[Span, Boundary | None]],
    times: Iterable[tuple[str | None, str | None]],
    *,
    number: int = 0,
    shift: int = 0,
    is_cut: bool = False,
) -> tuple[Segment, ...]:
    """Return the segments of these parts, given the first and the last time of each, in order.

    The first one has this `number`, and all stand `shift` bytes further on in the history than in
    the file. `is_cut` is as in `spans`.
    """
    return tuple(
        Segment(
            number + at,
            Span(span.start + shift, span.end + shift),
            boundary,
            first,
            last,
            is_cut=is_cut and not at,
        )
        for at, ((span, boundary), (first, last)) in enumerate(zip(parts, times, strict=True))
    )
