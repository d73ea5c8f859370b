"""`sessrotate verify`: whether the segments are what they were when they were written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sessrotate import clients, find
from sessrotate.archive import place, state
from sessrotate.cli import streams
from sessrotate.cli.options import Every, Json, ManySegments, Quiet
from sessrotate.errors import DamagedError, WrongUsageError, printable
from sessrotate.reading import stitch
from sessrotate.render import common
from sessrotate.segments import compressed, load
from sessrotate.segments.files import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessrotate.archive.state import State


def command(
    sources: ManySegments = None,
    *,
    every: Every = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check digests, chain, gaps and leftovers.

    The exit code is 0 if all is well and 1 if anything is not.
    """
    if bool(sources) == every:
        raise WrongUsageError("Name a SOURCE, or --all, and not both.")
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
            streams.write(_lines(path, found, summary))
    is_well = all(problem["kind"] == "pruned" for problem in problems)
    if as_json:
        streams.write(common.as_json({"ok": is_well, "problems": problems}))
    if not is_well:
        raise typer.Exit(1)


def _check(path: Path, *, quiet: bool) -> tuple[list[Problem], str]:
    where = place.of(path)
    try:
        if where is not None:
            with state.opened(where) as found:
                if found.is_rotated:
                    return _check_history(found, quiet=quiet)
        segments = load.find(path)
    except DamagedError as error:
        return [Problem("manifest", str(error))], ""
    if segments is None:
        with compressed.opened(path) as source:
            clients.client_of(source)
        return [], "one file that was never split: nothing to check"
    with streams.progress("Verifying", segments.source_bytes, quiet=quiet) as progress:
        problems = stitch.verify(segments, progress)
    many = common.count(len(segments.parts), "segment")
    return problems, f"{many}, {common.size(segments.source_bytes)}: whole"


def _check_history(found: State, *, quiet: bool) -> tuple[list[Problem], str]:
    try:
        size = sum(piece.span.size for piece in found.history())
    except DamagedError:
        size = 0
    with streams.progress("Verifying", size, quiet=quiet) as progress:
        problems = stitch.verify_history(found, progress)
    listed = found.listed.segments if found.listed else ()
    many = common.count(sum(entry.pruned is None for entry in listed), "archived segment")
    live = "the live file is gone" if found.is_gone else "the live file"
    return problems, f"{many} and {live}, {common.size(size)}: whole"


def _lines(path: Path, problems: Iterable[Problem], summary: str) -> str:
    name = printable(str(path))
    lines = [f"{name}: {problem.detail}" for problem in problems]
    if all(problem.kind == "pruned" for problem in problems):
        lines.append(f"{name}: {summary}")
    return "\n".join(lines) + "\n"
