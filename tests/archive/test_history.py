"""Where every byte of a history is, at each moment of a rotation or restoration."""

from __future__ import annotations

from typing import Final

from sessrotate.archive import history
from sessrotate.archive.history import HistorySpan
from sessrotate.archive.record import Mark
from sessrotate.model import Boundary, SealedSegment, Segment, Span
from sessrotate.segments.manifest import Manifest
from sessrotate.system.digest import ZERO

LIVE: Final = Span(30, 90)
LATE: Final = Span(500, 520)
CAME_LATE: Final = HistorySpan("pack", None, LATE)
NONE: Final = Span(7, 7)
MARK: Final = Mark(0, ZERO)


def listed(*sizes: int) -> Manifest:
    """Return a manifest of segments of these sizes."""
    segments, start = [], 0
    for index, size in enumerate(sizes):
        boundary = Boundary(start, None, None, None, None) if index else None
        part = Segment(index, Span(start, start + size), boundary, None, None)
        segments.append(SealedSegment(part, ZERO, 1, "plain"))
        start += size
    return Manifest("s", "claude", "numbered", start, None, tuple(segments))


OLD: Final = listed(100, 50)

SEALED: Final = (HistorySpan("sealed", 0, Span(0, 100)), HistorySpan("sealed", 1, Span(0, 50)))
REST: Final = HistorySpan("live", None, LIVE)


def pieces(
    manifest: Manifest | None, *, live: Span = LIVE, late: Span = NONE, is_first: bool = False
) -> tuple[HistorySpan, ...]:
    return history.spans(listed=manifest, live=live, late=late, is_first=is_first)


def test_a_session_that_was_never_rotated_is_its_live_file() -> None:
    assert pieces(None) == (REST,)


def test_a_rotated_session_is_its_segments_and_then_the_live_files_body() -> None:
    assert pieces(OLD) == (*SEALED, REST)


def test_a_session_whose_live_file_is_gone_is_its_segments() -> None:
    assert pieces(OLD, live=Span(0, 0)) == SEALED


def test_late_bytes_come_last() -> None:
    assert pieces(OLD, late=LATE) == (*SEALED, REST, CAME_LATE)
    assert pieces(None, late=LATE) == (REST, CAME_LATE)
    assert pieces(None, live=NONE, late=LATE) == (CAME_LATE,)


def test_late_bytes_come_before_a_gap_that_their_client_made() -> None:
    assert pieces(OLD, late=LATE, is_first=True) == (*SEALED, CAME_LATE, REST)
