"""`sessrotate hook`: what Claude Code calls when a session ends, and having it do so."""

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

group = typer.Typer(
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

MinSize = Annotated[
    str,
    typer.Option(
        "--min-size", metavar="N", help="Leave smaller sessions alone, in bytes or as 50M, 2G."
    ),
]


@group.callback(invoke_without_command=True)
def call(context: typer.Context, *, min_size: MinSize = hook.LEAST) -> None:
    """Rotate a session when it ends, called by Claude Code.

    `sessrotate hook install` has Claude Code call it. It reads what the client says of the session
    that ends, and if that has the size, has it rotated as by `split --in-place --live`, in the
    background. It never fails: what went wrong is told by `sessrotate doctor`.
    """
    if context.invoked_subcommand is None:
        streams.complain(hook.call(["--min-size", min_size]))


@group.command()
def install(*, min_size: MinSize = hook.LEAST, dry_run: DryRun = False) -> None:
    """Have Claude Code call the hook, by an entry in its settings.json.

    Nothing else in it is touched, and a copy of it from before is kept. Once more with another
    size changes that.
    """
    options.size(min_size)
    change = installation.plan_install(min_size)
    _carry_out(
        change, f"Installed: sessions of {min_size} and more are rotated as they end.", dry_run
    )


@group.command()
def remove(*, dry_run: DryRun = False) -> None:
    """Take that entry out again, and nothing else.

    What only held it goes with it, a settings.json that `install` made included.
    """
    _carry_out(installation.plan_remove(), "Removed.", dry_run)


def _carry_out(change: Change, done: str, dry_run: bool) -> None:
    path = printable(str(change.path))
    if change.is_nothing:
        streams.write(f"Nothing to change in {path}.\n")
        return
    if dry_run:
        streams.write(_difference(change))
        return
    installation.execute(change)
    streams.write(f"{done}\n{path} {'is gone' if change.after is None else 'was written'}.\n")
    if change.backup is not None:
        streams.write(f"As it was before: {printable(str(change.backup))}\n")


def _difference(change: Change) -> str:
    before, after = (
        (data or b"").decode(errors="replace").splitlines()
        for data in (change.before, change.after)
    )
    name = str(change.path)
    lines = difflib.unified_diff(before, after, name, name, lineterm="")
    return "".join(f"{printable(line)}\n" for line in lines)
