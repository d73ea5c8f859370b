"""`sessrotate hook`: what Claude Code calls when a session ends, and installing that."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from sessrotate.cli import options, streams
from sessrotate.cli.options import DryRun
from sessrotate.errors import printable
from sessrotate.hook import call as hook
from sessrotate.hook import installation
from sessrotate.hook.installation import Change

group = typer.Typer()

MinSize = Annotated[
    str,
    typer.Option(
        "--min-size", metavar="N", help="Leave smaller sessions alone: bytes, or e.g. 50M, 2G."
    ),
]


@group.callback(invoke_without_command=True)
def call(context: typer.Context, *, min_size: MinSize = hook.LEAST) -> None:
    """Rotate a session when it ends. Claude Code calls this.

    `sessrotate hook install` has Claude Code call it. It reads from standard input which session
    has ended, and rotates it in the background if it is large enough, as `split --in-place --live`
    does. It never fails: `sessrotate doctor` reports what went wrong.
    """
    if context.invoked_subcommand is None:
        streams.complain(hook.call(["--min-size", min_size]))


@group.command()
def install(*, min_size: MinSize = hook.LEAST, dry_run: DryRun = False) -> None:
    """Add the hook to Claude Code's settings.json.

    Nothing else in the file is touched, and a backup is kept. To change the size, install again.
    """
    options.size(min_size)
    done = f"Installed: sessions of {min_size} or more are rotated when they end."
    _carry_out(installation.plan_install(min_size), done, dry_run)


@group.command()
def remove(*, dry_run: DryRun = False) -> None:
    """Remove the hook from Claude Code's settings.json, and nothing else.

    Lists and objects that only held the hook are removed too, and so is a settings.json that
    `install` created.
    """
    _carry_out(installation.plan_remove(), "Removed the hook.", dry_run)


def _carry_out(change: Change, done: str, dry_run: bool) -> None:
    path = printable(str(change.path))
    if change.is_nothing:
        streams.write(f"Nothing to change in {path}.\n")
        return
    if dry_run:
        streams.write(_difference(change))
        return
    installation.execute(change)
    if change.after is None:
        streams.write(f"Removed {path}, which held nothing else.\n")
    else:
        streams.write(f"{done}\nWrote {path}.\n")
    if change.backup is not None:
        streams.write(f"Backup: {printable(str(change.backup))}\n")


def _difference(change: Change) -> str:
    before, after = (
        (data or b"").decode(errors="replace").splitlines()
        for data in (change.before, change.after)
    )
    name = str(change.path)
    lines = difflib.unified_diff(before, after, name, name, lineterm="")
    return "".join(f"{printable(line)}\n" for line in lines)
