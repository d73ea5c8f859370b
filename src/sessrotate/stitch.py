"""Segments → the source's bytes, in order, verified while they pass.

Rule: what comes out is right or ends in an error. A set whose witnesses disagree gives no byte;
damage inside a segment is found at the latest behind its last byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.digest import Fingerprint
from sessrotate.errors import DamagedError
from sessrotate.segments import Problem, SegmentSet, body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def stream(segments: SegmentSet) -> Iterator[memoryview]:
    """Yield the source's bytes in pieces, each valid until the next is asked for.

    Raises DamagedError, with a sentence that names the segment, if anything is missing or not
    as it was.
    """
    for problem in segments.problems:
        if problem.kind != "leftover":
            raise DamagedError(problem.detail)
    whole = Fingerprint()
    for part in segments.parts:
        for piece in body(segments, part):
            whole.update(piece)
            yield piece
    _check_whole(segments, whole)


def _check_whole(segments: SegmentSet, whole: Fingerprint) -> None:
    if segments.source_digest not in (None, whole.digest):
        raise DamagedError("The manifest.json gives another digest of the whole session.")


def verify(segments: SegmentSet, progress: Callable[[int], None]) -> list[Problem]:
    """Read every segment and return all that is wrong, nothing if the set is whole.

    `progress` is told how many bytes of the source are done.
    """
    problems = list(segments.problems)
    known = {problem.index for problem in problems}
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
    if all(problem.kind == "leftover" for problem in problems):
        try:
            _check_whole(segments, whole)
        except DamagedError as error:
            problems.append(Problem("manifest", str(error)))
    return problems
