"""`sessrotate split`: cut a session at its compactions into a folder of segments."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessrotate import find, fs, render, split
from sessrotate.cli import in_place as rotation
from sessrotate.cli import streams
from sessrotate.cli.options import Json, Quiet, Session, Wait
from sessrotate.errors import RequestError, WrongUsageError, printable
from sessrotate.source import Source

if TYPE_CHECKING:
    from sessrotate.model import SplitPlan


class Layout(StrEnum):
    """How the segments are named; the values are `model.Layout`'s."""

    numbered = "numbered"
    linked = "linked"


def command(
    session: Session,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Folder for the segments (default: ./ID.segments)."
        ),
    ] = None,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place", help="Move history to the session's archive; keep what a resume needs."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Show what would be done; change nothing.")
    ] = False,
    layout: Annotated[
        Layout | None,
        typer.Option(
            help="numbered (default): ID.1.jsonl, ID.2.jsonl …; linked: a new UUID for each."
        ),
    ] = None,
    compress: Annotated[
        bool, typer.Option("--compress", help="Write .jsonl.zst segments.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="With --in-place: while a client runs the session.")
    ] = False,
    wait: Wait = 10.0,
    unsafe_adopt: Annotated[
        bool,
        typer.Option(
            "--unsafe-adopt",
            help="With --in-place: start a new archive for a live file that does not go on from "
            "the one it has, which is put aside.",
        ),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cut a session at its compactions into numbered segments.

    The session itself is only read. The folder must be absent or empty; `stitch` gives the
    session's exact bytes back.

    With --in-place the session's own file becomes small: its history goes to an archive beside
    the client's folder of projects, and a resume is the same as before. `restore` is the inverse.
    """
    path = find.path_of(session)
    if in_place:
        if out is not None or layout is not None or compress:
            raise WrongUsageError("--in-place does not go with --out, --layout or --compress.")
        rotation.run(path, rotation.Options(wait, live, unsafe_adopt, dry_run, as_json, quiet))
        return
    if unsafe_adopt or live:
        raise WrongUsageError("--live and --unsafe-adopt go with --in-place.")
    with Source(path) as source:
        with streams.progress("Reading", source.size(), quiet=quiet) as progress:
            planned = split.prepare(
                source,
                progress,
                layout=(layout or Layout.numbered).value,
                codec="zstd" if compress else "plain",
            )
        folder = out or Path(f"{planned.session}.segments")
        if ".." in folder.parts:  # what it leads through need not exist
            folder = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() follows links
        if dry_run:
            _dry_run(planned, path, folder, as_json=as_json)
            return
        leftovers = split.check_folder(planned, folder)
        if leftovers.files:
            streams.message(
                f"sessrotate: {printable(str(folder))} holds an unfinished split of this "
                "session; starting over."
            )
        with streams.progress("Writing", planned.source_bytes, quiet=quiet) as progress:
            split.execute(planned, source, folder, progress)
        if as_json:
            streams.write_all(render.split_json(planned, path, folder, dry_run=False))
        else:
            streams.write("\n".join(render.split_done(planned, folder)) + "\n")


def _dry_run(planned: SplitPlan, path: Path, folder: Path, *, as_json: bool) -> None:
    """Show the plan; end with the refusal that the run would end with."""
    refusal: RequestError | None = None
    leftovers = split.Leftovers(())
    try:
        leftovers = split.check_folder(planned, folder)
    except RequestError as error:
        refusal = error
    if as_json:
        reasons = [str(refusal)] if refusal is not None else []
        streams.write_all(render.split_json(planned, path, folder, dry_run=True, refused=reasons))
    else:
        streams.write(render.split_heading(planned) + "\n")
        shares = [segment.span.size / (planned.source_bytes or 1) for segment in planned.segments]
        streams.show_table(render.split_rows(planned), shares)
        if refusal is None:
            would = render.split_would(planned, folder, fs.free_bytes(folder), len(leftovers.files))
            streams.write("\n".join(would) + "\n")
    if refusal is not None:
        raise refusal
