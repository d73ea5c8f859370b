"""Segments → the source's bytes, in order, verified while they pass.

Rule: what comes out is right or ends in an error. A set whose witnesses disagree gives no byte;
damage inside a segment is found at the latest behind its last byte.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sessrotate import names
from sessrotate.archive import late_file
from sessrotate.errors import DamagedError, InUseError, printable
from sessrotate.segments import load
from sessrotate.segments.files import HARMLESS, Problem, SegmentSet, body, describe
from sessrotate.system.digest import Fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.archive.history import Piece
    from sessrotate.archive.state import State
    from sessrotate.model import Span
    from sessrotate.segments.files import Part
    from sessrotate.system.source import Source

    OnGap = Callable[[str], None]
    """Is told, in a sentence, what is left out."""


def stream(segments: SegmentSet, on_gap: OnGap | None = None) -> Iterator[memoryview]:
    """Yield the source's bytes in pieces, each valid until the next is asked for.

    `on_gap` is told of segments that were pruned, which are then passed over; without it they are
    an error. Raises DamagedError, with a sentence that names the segment, if anything is missing
    or not as it was.
    """
    _check_problems(segments, on_gap)
    whole, is_whole = Fingerprint(), True
    for part in segments.parts:
        if part.pruned is not None:
            is_whole = False
            continue
        for piece in body(segments, part):
            whole.update(piece)
            yield piece
    if is_whole:
        _check_whole(segments, whole)


def _check_problems(segments: SegmentSet, on_gap: OnGap | None) -> None:
    for problem in segments.problems:
        if problem.kind == "pruned" and on_gap is not None:
            on_gap(problem.detail)
        elif problem.kind == "pruned":
            raise DamagedError(f"{problem.detail} --allow-gaps leaves them out.")
        elif problem.kind not in HARMLESS:
            raise DamagedError(problem.detail)


def _check_whole(segments: SegmentSet, whole: Fingerprint) -> None:
    if segments.source_digest not in (None, whole.digest):
        raise DamagedError("The manifest.json gives another digest of the whole session.")


def verify(segments: SegmentSet, progress: Callable[[int], None]) -> list[Problem]:
    """Read every segment and return all that is wrong, nothing if the set is whole.

    `progress` is told how many bytes of the source are done.
    """
    problems = list(segments.problems)
    known = {problem.index for problem in problems}
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
    if all(problem.kind == "leftover" for problem in problems):  # nothing was pruned either
        try:
            _check_whole(segments, whole)
        except DamagedError as error:
            problems.append(Problem("manifest", str(error)))
    return problems


# ── sessions in place ────────────────────────────────────────────────────────────────────────


def history(found: State, on_gap: OnGap | None = None) -> Iterator[memoryview]:
    """Yield a session's whole history in pieces, each valid until the next is asked for.

    It may be in the middle of a rotation, by a process that still runs or one that died. `on_gap`
    is as in `stream`. Raises as `stream` does.
    """
    return _checked(found, found.history(), parts(found), on_gap)


def _checked(
    found: State,
    pieces: tuple[Piece, ...],
    segments: SegmentSet | None,
    on_gap: OnGap | None,
) -> Iterator[memoryview]:
    # Before the first byte: what goes into a pipe cannot be taken back.
    if segments is not None:
        gaps = [problem for problem in segments.problems if problem.kind == "pruned"]
        _check_problems(replace(segments, problems=tuple(gaps)), on_gap)
    for piece in pieces:
        if segments is not None and piece.where == "sealed" and piece.index is not None:
            part = segments.parts[piece.index]
            if part.file is None:
                raise DamagedError(f"{describe(part)} is missing.")
    for piece in pieces:
        if piece.where != "pruned":
            yield from read(found, piece, segments)


def verify_history(found: State, progress: Callable[[int], None]) -> list[Problem]:
    """Read all of a session and return what is wrong with it, nothing if it is whole.

    `progress` is told how many bytes of the history are done.
    """
    reason = found.problem()
    if reason is not None:
        return [Problem("live", reason)]
    segments, done = parts(found), 0
    problems = [*_unfinished(found, segments)]
    for piece in found.history():
        if piece.where == "pruned":
            continue
        try:
            for data in read(found, piece, segments):
                done += len(data)
                progress(done)
        except DamagedError as error:
            problems.append(Problem("changed", str(error), piece.index))
    return problems


def _unfinished(found: State, segments: SegmentSet | None) -> Iterator[Problem]:
    if found.intent is not None or found.pack is not None:
        yield Problem("leftover", "A run was interrupted; the next one deals with that.")
    for problem in segments.problems if segments is not None else ():
        if problem.kind in HARMLESS:
            yield problem


def parts(found: State) -> SegmentSet | None:
    """Return the archive's segments, None if nothing is archived."""
    if found.listed is None:
        return None
    return load.of_manifest(found.place.archive, found.listing, found.listed)


def read(found: State, piece: Piece, segments: SegmentSet | None) -> Iterator[memoryview]:
    """Yield the bytes of one piece of a session's history; `segments` are its `parts`.

    Each view is valid until the next is asked for. Raises as `stream` does.
    """
    if piece.where == "live" and found.live is not None:
        yield from _bytes(found.live, piece.span)
    elif piece.where == "late":
        yield from late_file.kept(found)
    elif segments is None or piece.index is None:
        if found.pack is None:
            raise DamagedError(f"{printable(str(found.place.pack))} is gone.")
        yield from _bytes(found.pack, piece.span)
    elif piece.where == "sealed":
        yield from body(segments, segments.parts[piece.index])
    else:
        yield from _from_pack(found, segments, segments.parts[piece.index], piece.span)


def _bytes(source: Source, span: Span) -> Iterator[memoryview]:
    for data in source.pieces(span):
        yield memoryview(data)


def _from_pack(found: State, segments: SegmentSet, part: Part, span: Span) -> Iterator[memoryview]:
    """Yield a segment that is not sealed yet, or was while it was read: then from its file."""
    if found.pack is None:
        raise DamagedError(f"{printable(str(found.place.pack))} is gone.")
    done, read = 0, Fingerprint()
    try:
        for data in found.pack.pieces(span):
            read.update(data)
            yield memoryview(data)
            done += len(data)
    except InUseError:
        for view in body(segments, replace(part, file=part.name)):
            known = min(done, len(view))
            done -= known
            yield view[known:]
        return
    if read.digest != part.digest:
        raise DamagedError(f"Segment {part.index} has changed in the {names.PACK}.")
