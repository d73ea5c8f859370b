"""`sessrotate verify`: whether segments are still what was written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from sessrotate import clients, find, names, render
from sessrotate.archive import live_tail, owner, place, restored, state
from sessrotate.archive.place import Place
from sessrotate.cli import streams
from sessrotate.cli.options import Every, Json, ManySegments, Quiet, one_of
from sessrotate.errors import DamagedError, SessrotateError, StorageError, printable
from sessrotate.reading import holders, pieces
from sessrotate.reading.pieces import Holder
from sessrotate.retention import rollouts
from sessrotate.segments import Problem, compressed, load


def command(
    sources: ManySegments = None,
    *,
    every: Every = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check that archived segments, and compressed sessions, are complete and unchanged.

    Checks digests and the chain of segments, and looks for gaps and leftover files. --all also
    finds rotated sessions whose archive is missing. The exit code is 0 if all is well, 1 if there
    is a problem, and 74 if the system cannot read something.
    """
    one_of(sources, every, "a SOURCE or pass --all")
    problems: list[dict[str, Any]] = []
    failures: list[StorageError] = []
    paths = [*_everything()] if every else [_named(source) for source in sources or ()]
    for path in paths:
        found, summary = _check(path, failures if every else None, quiet=quiet)
        problems += [
            {"source": str(path), "kind": problem.kind, "detail": problem.detail}
            for problem in found
        ]
        if not as_json:
            streams.write_lines(_lines(path, found, summary))
    for hidden, reason in (find.hidden() if every else {}).items():
        detail = render.unread(hidden, reason)
        streams.warn(detail)
        problems.append({"source": hidden, "kind": "unread", "detail": detail})
    if not (paths or as_json):
        streams.write("Nothing to verify: no session is rotated, put away or compressed.\n")
    is_well = all(problem["kind"] == "pruned" for problem in problems)
    if as_json:
        streams.write(render.as_json({"ok": is_well, "problems": problems}))
    if failures:
        raise typer.Exit(StorageError.exit_code)
    if not is_well:
        raise typer.Exit(1)


def _named(source: str) -> Path:
    """Return where what somebody named is: its archive, if nothing of it is anywhere else."""
    path = find.path_of(source)
    where = None if path.exists() else place.of(path)
    return path if where is None or not where.archive.is_dir() else where.archive


def _everything() -> Iterator[Path]:
    """Yield every archive, every live file that has lost its own, and what is compressed."""
    for where in place.archives():
        left = restored.of(where)
        if left is not None and not left.has_segments:
            continue  # all of it was freed
        # Of what a restored session keeps until its grace period is over, its live file is asked.
        yield where.live if left is not None or _is_only_begun(where) else where.archive
    yield from (where.live for where in owner.every_without_archive())
    yield from (clients.cold().form(where.live) for where in rollouts.compressed_ones())


def _is_only_begun(where: Place) -> bool:
    """Tell whether a kill left an archive's folder before anything of the session was in it."""
    if not where.live.exists() or live_tail.begins_so(where.live):
        return False
    try:
        return all(path.name.endswith(names.PARTIAL) for path in where.archive.iterdir())
    except OSError:
        return False  # whoever opens it says why


def _check(
    path: Path, failures: list[StorageError] | None, *, quiet: bool
) -> tuple[list[Problem], str]:
    """Return what is wrong with what a path names, and what to say if nothing is.

    With `failures`, which get those of the system, an error is told as a problem: the others are
    checked all the same.
    """
    is_compressed = compressed.is_session(path.name) and clients.cold().is_session(path)
    try:
        if is_compressed:
            with streams.progress("Verifying", 0, quiet=quiet) as progress:
                is_proved = rollouts.verify(path, progress)
            proved = "" if is_proved else ", but has no checksum that proves it unchanged"
            return [], f"compressed, and reads back whole{proved}"
        with holders.opened(path) as holder:
            kept = None if holder.file is None else _kept(path)
            read = holder if kept is None else kept
            with streams.progress("Verifying", read.size, quiet=quiet) as progress:
                problems = read.verify(progress)
            if kept is None:
                return problems, _summary(holder)
            problems += [Problem("missing", each) for each in _lacking(path)]
            return problems, (
                "the whole session is in this file; its old archive, kept until its grace period "
                f"is over: {_summary(kept)}"
            )
    except DamagedError as error:
        return [Problem("unread" if is_compressed else "manifest", str(error))], ""
    except SessrotateError as error:
        if failures is None:
            raise
        if isinstance(error, StorageError):
            failures.append(error)
        return [Problem("unread", str(error))], ""


def _lacking(path: Path) -> Iterator[str]:
    """Say what a restored session's live file lacks of its old archive; nothing if it has all."""
    if (where := place.of(path)) is not None:
        with state.opened(where) as found:
            yield from filter(None, [restored.lacking(found)])


def _kept(path: Path) -> Holder | None:
    """Return the archive of a session that was restored, as long as it is there."""
    where = place.of(path)
    found = None if where is None else restored.of(where)
    if where is None or found is None or not found.has_segments:
        return None
    segments = load.find(where.archive)
    return None if segments is None else pieces.of_set(segments)


def _summary(holder: Holder) -> str:
    """Return the sentence for a source without problems."""
    if holder.file is not None:
        return "the whole session is in this file: nothing to check"
    pruned, found = holder.pruned, holder.state
    kept = len(holder.sealed) - pruned
    if found is None:
        many = render.count(kept, "segment")
    else:
        live = "the live file is gone" if found.is_gone else "the live file"
        live = "the rest, put away" if found.is_away else live
        many = f"{render.count(kept, 'archived segment')} and {live}"
    return f"{many}, {render.size(holder.size)}: {_whole(pruned)}"


def _whole(pruned: int) -> str:
    return f"whole except for {render.count(pruned, 'pruned segment')}" if pruned else "whole"


def _lines(path: Path, problems: Sequence[Problem], summary: str) -> Iterator[str]:
    name = printable(str(path))
    for problem in problems:
        yield render.located(name, problem.detail)
    if any(problem.kind == "cut" and problem.index is not None for problem in problems):
        yield render.located(name, live_tail.KEEPS_TRIMMED)
    if all(problem.kind == "pruned" for problem in problems):
        yield f"{name}: {summary}"
