"""`sessrotate split`: cut a session at its compactions into a folder of segments."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sessrotate import find
from sessrotate.cli import in_place as rotation
from sessrotate.cli import to_folder
from sessrotate.cli.options import DryRun, Json, Quiet, SessionOrNone, Wait, size
from sessrotate.errors import WrongUsageError


class Layout(StrEnum):
    """How the segments are named; the values are `model.Layout`'s."""

    numbered = "numbered"
    linked = "linked"


def command(
    session: SessionOrNone = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="With --in-place: every session of the machine.")
    ] = False,
    min_size: Annotated[
        int | None,
        typer.Option(metavar="SIZE", parser=size, help="With --all: only from this size on."),
    ] = None,
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
    dry_run: DryRun = False,
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
    _check(
        (
            "--in-place does not go with --out, --layout or --compress.",
            in_place and (out is not None or layout is not None or compress),
        ),
        (
            "--all, --live and --unsafe-adopt go with --in-place.",
            (every or live or unsafe_adopt) and not in_place,
        ),
        (
            "--all does not go with a SESSION or --unsafe-adopt.",
            every and (session is not None or unsafe_adopt),
        ),
        ("--min-size goes with --all.", min_size is not None and not every),
    )
    options = rotation.Options(wait, live, unsafe_adopt, dry_run, as_json, quiet)
    if every:
        rotation.run_all(min_size or 0, options)
        return
    if session is None:
        raise WrongUsageError("Name a SESSION, or --all with --in-place.")
    path = find.path_of(session)
    if in_place:
        rotation.run(path, options)
        return
    to_folder.run(
        path,
        to_folder.Options(
            out=out,
            layout=(layout or Layout.numbered).value,
            codec="zstd" if compress else "plain",
            dry_run=dry_run,
            as_json=as_json,
            quiet=quiet,
        ),
    )


def _check(*rules: tuple[str, bool]) -> None:
    """Raise WrongUsageError for the first rule that is broken."""
    for sentence, is_broken in rules:
        if is_broken:
            raise WrongUsageError(sentence)
