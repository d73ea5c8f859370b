"""What holds a session → the session's exact bytes, in order, verified while they pass.

Rule: what comes out is right or ends in an error. A set whose witnesses disagree gives no byte;
damage inside a segment is found at the latest behind its last byte. A set of another tool has no
digests, so that it comes out only where the caller accepts that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sessrotate.archive.history import HistorySpan
from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, printable
from sessrotate.model import Span
from sessrotate.reading import pieces, salvage
from sessrotate.reading.salvage import Salvaged
from sessrotate.segments.segment_set import HARMLESS, READABLE, Problem, SegmentSet, body
from sessrotate.system import locks
from sessrotate.system.digest import Fingerprint

if TYPE_CHECKING:
    from sessrotate.reading.holders import Holder

    OnGap = Callable[[str], None]
    """Is called with a sentence for each run of segments that is left out."""
    Progress = Callable[[int], None]
    """Is called with the number of bytes of the history that are done."""


_ALLOWABLE: Final = {
    "pruned": "Pass --allow-gaps to leave out what was pruned.",
    "unproven": "Pass --allow-gaps to stitch it all the same.",
    "cut": "Pass --allow-gaps to stitch what there is.",
}
"""Kinds of problems that a caller may accept, and how."""

_OTHER: Final = "The digest of the whole session is not the one in manifest.json."


# ── all bytes ────────────────────────────────────────────────────────────────────────────────


def size(holder: Holder) -> int:
    """Return how many bytes `stream` will yield; 0 where only reading tells."""
    match holder:
        case State():
            with suppress(DamagedError):
                return sum(piece.span.size for piece in holder.history())
            return 0
        case SegmentSet():
            return holder.source_bytes or 0
        case Salvaged():
            return 0
        case _:
            return holder.source.size()


def stream(holder: Holder, on_gap: OnGap | None = None) -> Iterator[memoryview]:
    """Yield the session's bytes in pieces, each valid until the next is asked for.

    A session in place may be in the middle of a rotation, by a process that still runs or that
    died. `on_gap` is called for segments that were pruned, which are then left out, and for a set
    without digests; if it is None, both are errors. Raises DamagedError, with a sentence that
    names the segment, if anything is missing or has changed: before the first byte where that is
    known beforehand.
    """
    match holder:
        case State():
            return _of_state(holder, holder.history(), on_gap)
        case SegmentSet():
            return _of_set(holder, on_gap)
        case Salvaged():
            return _of_salvaged(holder, on_gap)
        case _:
            whole = Span(0, holder.source.size())
            return (memoryview(data) for data in holder.source.pieces(whole))


def _of_state(
    found: State, history: tuple[HistorySpan, ...], on_gap: OnGap | None
) -> Iterator[memoryview]:
    segments = pieces.archived(found)
    # Before the first byte: what goes into a pipe cannot be taken back.
    _check(_known(found, segments, history), on_gap)
    for piece in history:
        if piece.where != "pruned":
            yield from pieces.read(found, piece, segments)


def _known(
    found: State, segments: SegmentSet | None, history: tuple[HistorySpan, ...]
) -> list[Problem]:
    """Return what is wrong with an archive without reading on; what is in the pack is not lost."""
    archived = () if segments is None else segments.problems
    problems = [*(each for each in archived if each.kind != "cut"), *found.cuts]
    packed = {piece.index for piece in history if piece.where == "pack"}
    return [each for each in problems if each.kind != "missing" or each.index not in packed]


def _of_set(segments: SegmentSet, on_gap: OnGap | None) -> Iterator[memoryview]:
    _check(segments.problems, on_gap)
    whole = Fingerprint()
    present = [part for part in segments.parts if part.pruned is None]
    for part in present:
        for piece in body(segments, part):
            whole.update(piece)
            yield piece
    if len(present) == len(segments.parts) and not _is_whole(segments, whole):
        raise DamagedError(_OTHER)


def _of_salvaged(found: Salvaged, on_gap: OnGap | None) -> Iterator[memoryview]:
    if on_gap is None:
        raise DamagedError(salvage.refusal(found))
    for segment in found.segments:
        if segment.problem is not None:
            on_gap(segment.problem)
        else:
            yield from (memoryview(piece) for piece in segment.pieces())


def _check(problems: Iterable[Problem], on_gap: OnGap | None) -> None:
    for problem in problems:
        if problem.kind in _ALLOWABLE:
            if on_gap is None:
                raise DamagedError(f"{problem.detail} {_ALLOWABLE[problem.kind]}")
            on_gap(problem.detail)
        elif problem.kind not in HARMLESS:
            raise DamagedError(problem.detail)


def _is_whole(segments: SegmentSet, whole: Fingerprint) -> bool:
    return segments.source_digest in (None, whole.digest)


# ── whether all is well ──────────────────────────────────────────────────────────────────────


def verify(holder: Holder, progress: Progress) -> list[Problem]:
    """Read every segment and return all that is wrong; an empty list if nothing is.

    A file that was never split has nothing to be compared with.
    """
    match holder:
        case State():
            return _verify_state(holder, progress)
        case SegmentSet():
            return _verify_set(holder, progress)
        case Salvaged():
            problems = [each.problem for each in holder.segments if each.problem is not None]
            return [Problem("unfinished", each) for each in (salvage.refusal(holder), *problems)]
        case _:
            return []


def _verify_state(found: State, progress: Progress) -> list[Problem]:
    reason = found.problem
    if reason is not None:
        return [Problem("live", reason)]
    segments, history, done, problems = pieces.archived(found), found.history(), 0, []
    is_begun = found.intent is not None or found.pack is not None
    if is_begun and not locks.is_held(found.place.lock):  # else it is at work just now
        command = "rotate" if found.intent is None else found.intent.finished_by
        finishes = f"`sessrotate {command} {printable(found.place.session)}` finishes it."
        problems.append(Problem("leftover", f"A run was interrupted: {finishes}"))
    problems += _known(found, segments, history)
    lost = {each.index for each in problems if each.kind == "missing"}
    for piece in history:
        if piece.where == "pruned" or piece.index in lost:
            continue
        try:
            for data in pieces.read(found, piece, segments):
                done += len(data)
                progress(done)
        except DamagedError as error:
            problems.append(Problem("changed", str(error), piece.index))
    return problems


def _verify_set(segments: SegmentSet, progress: Progress) -> list[Problem]:
    problems = list(segments.problems)
    known = {problem.index for problem in problems if problem.kind not in READABLE}
    known |= {part.index for part in segments.parts if part.pruned is not None}
    whole = Fingerprint()
    done = 0
    for part in segments.parts:
        if part.index not in known:
            try:
                for piece in body(segments, part):
                    whole.update(piece)
                    done += len(piece)
                    progress(done)
            except DamagedError as error:
                problems.append(Problem("changed", str(error), part.index))
    was_read = all(
        problem.kind in {"leftover", "cut"} for problem in problems
    )  # nothing was pruned either
    if was_read and not _is_whole(segments, whole):
        problems.append(Problem("manifest", _OTHER))
    return problems
