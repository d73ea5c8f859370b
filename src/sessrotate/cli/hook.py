"""`sessrotate hook`: what Claude Code calls at compactions and ends, and installing that."""

from __future__ import annotations

from typing import Annotated

import typer

from sessrotate import render
from sessrotate.automation import findings
from sessrotate.cli import options, streams
from sessrotate.cli.options import DryRun
from sessrotate.errors import printable
from sessrotate.hook import call as hook
from sessrotate.hook import installation
from sessrotate.hook.installation import Change

group = typer.Typer()

MinGain = Annotated[
    str,
    typer.Option(
        "--min-gain",
        metavar="N",
        help="Rotate a session if that frees at least this much disk space.",
    ),
]


@group.callback(invoke_without_command=True)
def call(context: typer.Context, *, min_gain: MinGain = hook.LEAST) -> None:
    """Rotate a session when it is compacted, and when it ends. Claude Code calls this.

    `sessrotate hook install` makes Claude Code call the hook. Standard input names the session. If
    rotating the session frees enough, the hook rotates it in the background, as `rotate --live`
    does; after a compaction, it first waits until the compaction is on the disk. The hook never
    makes the client fail. If something goes wrong, `sessrotate doctor` reports it.
    """
    if context.invoked_subcommand is None:
        streams.complain(hook.call(["--min-gain", min_gain]))


@group.command()
def install(*, min_gain: MinGain = hook.LEAST, dry_run: DryRun = False) -> None:
    """Add the hook to Claude Code's settings.json.

    Changes no other setting in this file, and keeps a backup. Install again to change
    --min-gain.
    """
    options.size(min_gain)
    done = (
        f"Installed: sessions are rotated when they are compacted and when they end, if that frees "
        f"{min_gain} or more."
    )
    _carry_out(installation.plan_install(min_gain), done, dry_run)


@group.command()
def remove(*, dry_run: DryRun = False) -> None:
    """Remove the hook, and nothing else, from Claude Code's settings.

    Also removes lists and objects that only held the hook, and a settings.json that `install`
    created.
    """
    _carry_out(installation.plan_remove(), "Removed the hook.", dry_run)


def _carry_out(change: Change, done: str, dry_run: bool) -> None:
    path = printable(str(change.path))
    if change.is_nothing:
        streams.write(f"Nothing to change in {path}.\n")
        return
    if dry_run:
        shown = render.difference(change.path, change.before, change.after)
        streams.write_all(f"{line}\n" for line in shown)
        return
    installation.execute(change)
    if change.after is None:
        streams.write(f"Removed {path}, which held nothing else.\n")
    else:
        streams.write(f"{done}\nWrote {path}.\n")
    if change.backup is not None:
        streams.write(f"Backup: {printable(str(change.backup))}\n")
    for problem in findings.unheard(installation.installed()):
        streams.message(problem)
