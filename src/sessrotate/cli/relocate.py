"""`sessrotate relocate`: the archives of a project, or a configuration, that was moved."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sessrotate.cli import streams
from sessrotate.cli.options import DryRun, Json, Wait, Yes
from sessrotate.in_place import outcome, relocate
from sessrotate.render import relocate as render_relocate


def command(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Where it was.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Where it is now.")],
    *,
    wait: Wait = 10.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Let archives follow a project, or a whole configuration, that you moved.

    OLD and NEW are two projects (each the folder that the client ran in, or that of its sessions),
    or two configurations of the client (such as ~/.claude). Only archives are moved: move the
    client's own files first. An archive that does not belong to NEW stays.
    """
    moves = relocate.plan(old, new)
    found = [*relocate.execute(moves, wait, dry_run=True)]
    if not as_json:
        streams.write(render_relocate.text(moves, found, dry_run=True))
    many = sum(each.error is None for each in found)
    if many and not dry_run:
        if not yes and not streams.confirmed():
            return
        found = [*relocate.execute(moves, wait, dry_run=False)]
        if not as_json:
            streams.write(render_relocate.text(moves, found, dry_run=False))
    if as_json:
        streams.write(render_relocate.as_json(moves, found, dry_run=dry_run))
    if code := outcome.exit_code(found, in_use_counts=True):
        raise typer.Exit(code)
