"""Where every byte of a history is, at each moment of a rotation or restoration."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace

from sessrotate.archive import history
from sessrotate.archive.history import HistorySpan
from sessrotate.archive.record import Intent, Mark, Operation, Swap
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


def begun(operation: Operation, manifest: Manifest, first: int, cut: int) -> Intent:
    return Intent(operation, Swap(MARK, MARK, cut, 10, MARK), first, manifest)


OLD: Final = listed(100, 50)
NEW: Final = listed(100, 50, 70, 80)
# The old live file had a header and carried lines of 40 bytes before its own 150.
ROTATION: Final = begun("rotate", NEW, 2, 40 + 70 + 80)
RESTORATION: Final = begun("restore", OLD, 2, 30)

SEALED: Final = (HistorySpan("sealed", 0, Span(0, 100)), HistorySpan("sealed", 1, Span(0, 50)))
REST: Final = HistorySpan("live", None, LIVE)


def pieces(
    manifest: Manifest | None,
    intent: Intent | None,
    *,
    swapped: bool = False,
    sealed: frozenset[int] = frozenset(),
    live: Span = LIVE,
    late: Span = NONE,
    is_first: bool = False,
) -> tuple[HistorySpan, ...]:
    return history.spans(
        listed=manifest,
        intent=intent,
        was_swapped=swapped,
        sealed=sealed,
        live=live,
        late=late,
        is_first=is_first,
    )


def test_a_session_that_was_never_rotated_is_its_live_file() -> None:
    assert pieces(None, None) == (REST,)


def test_a_rotated_session_is_its_segments_and_then_the_live_files_body() -> None:
    assert pieces(OLD, None) == (*SEALED, REST)


def test_a_session_whose_live_file_is_gone_is_its_segments() -> None:
    assert pieces(OLD, None, live=Span(0, 0)) == SEALED


def test_before_the_swap_an_intent_changes_nothing() -> None:
    assert pieces(OLD, ROTATION) == (*SEALED, REST)
    assert pieces(None, begun("rotate", NEW, 0, 300)) == (REST,)
    assert pieces(OLD, RESTORATION) == (*SEALED, REST)


PACKED: Final = (HistorySpan("pack", 2, Span(40, 110)), HistorySpan("pack", 3, Span(110, 190)))


def test_after_the_swap_the_new_segments_are_in_the_pack() -> None:
    assert pieces(NEW, ROTATION, swapped=True) == (*SEALED, *PACKED, REST)


@pytest.mark.parametrize("sealed", [set(), {3}, {2, 3}])
def test_what_is_sealed_is_taken_from_its_file(sealed: set[int]) -> None:
    files = (HistorySpan("sealed", 2, Span(0, 70)), HistorySpan("sealed", 3, Span(0, 80)))
    expected = [files[n - 2] if n in sealed else PACKED[n - 2] for n in (2, 3)]
    found = pieces(NEW, ROTATION, swapped=True, sealed=frozenset(sealed))
    assert found == (*SEALED, *expected, REST)


def test_late_bytes_come_last() -> None:
    ends = (*SEALED, *PACKED, REST, CAME_LATE)
    assert pieces(NEW, ROTATION, swapped=True, late=LATE) == ends
    assert pieces(None, RESTORATION, swapped=True, late=LATE) == (REST, CAME_LATE)
    assert pieces(None, RESTORATION, swapped=True, live=NONE, late=LATE) == (CAME_LATE,)


def test_late_bytes_come_before_a_gap_that_their_client_made() -> None:
    found = pieces(NEW, ROTATION, swapped=True, late=LATE, is_first=True)
    assert found == (*SEALED, *PACKED, CAME_LATE, REST)


def test_after_a_restoration_the_live_file_is_all() -> None:
    assert pieces(None, RESTORATION, swapped=True) == (REST,)


def test_a_first_rotation_has_all_in_the_pack() -> None:
    first = begun("rotate", OLD, 0, 150)
    expected = (HistorySpan("pack", 0, Span(0, 100)), HistorySpan("pack", 1, Span(100, 150)), REST)
    assert pieces(OLD, first, swapped=True) == expected


def test_an_intent_knows_where_the_old_body_began() -> None:
    assert ROTATION.start == 150
    assert RESTORATION.start == 150
    assert replace(ROTATION, first=0).start == 0
