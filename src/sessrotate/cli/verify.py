"""`sessrotate verify`: whether segments are still what was written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sessrotate import find
from sessrotate.archive import place
from sessrotate.archive.state import State
from sessrotate.cli import streams
from sessrotate.cli.options import Every, Json, ManySegments, Quiet, one_of
from sessrotate.errors import DamagedError, printable
from sessrotate.reading import holders, stitch
from sessrotate.render import common
from sessrotate.segments.segment_set import Problem, SegmentSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sessrotate.reading.holders import Holder


def command(
    sources: ManySegments = None,
    *,
    every: Every = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check that archived segments are complete and unchanged.

    Checks digests, the chain of segments, gaps and leftover files. The exit code is 0 if all is
    well, and 1 if there is a problem.
    """
    one_of(sources, every, "a SOURCE or pass --all")
    problems: list[dict[str, Any]] = []
    named = [str(where.archive) for where in place.archives()] if every else sources or []
    for source in named:
        path = find.path_of(source)
        found, summary = _check(path, quiet=quiet)
        problems += [
            {"source": str(path), "kind": problem.kind, "detail": problem.detail}
            for problem in found
        ]
        if not as_json:
            streams.write_lines(_lines(path, found, summary))
    is_well = all(problem["kind"] == "pruned" for problem in problems)
    if as_json:
        streams.write(common.as_json({"ok": is_well, "problems": problems}))
    if not is_well:
        raise typer.Exit(1)


def _check(path: Path, *, quiet: bool) -> tuple[list[Problem], str]:
    try:
        with holders.opened(path) as holder:
            size = stitch.size(holder)
            with streams.progress("Verifying", size, quiet=quiet) as progress:
                problems = stitch.verify(holder, progress)
            return problems, _summary(holder, size)
    except DamagedError as error:
        return [Problem("manifest", str(error))], ""


def _summary(holder: Holder, size: int) -> str:
    """Return the sentence for a source without problems."""
    match holder:
        case State():
            listed = holder.listed.segments if holder.listed else ()
            many = common.count(sum(each.pruned is None for each in listed), "archived segment")
            live = "the live file is gone" if holder.is_gone else "the live file"
            return f"{many} and {live}, {common.size(size)}: whole"
        case SegmentSet():
            return f"{common.count(len(holder.parts), 'segment')}, {common.size(size)}: whole"
        case _:
            return "one file that was never split: nothing to check"


def _lines(path: Path, problems: Sequence[Problem], summary: str) -> Iterator[str]:
    name = printable(str(path))
    for problem in problems:
        yield f"{name}: {problem.detail}"
    if all(problem.kind == "pruned" for problem in problems):
        yield f"{name}: {summary}"
