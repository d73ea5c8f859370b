"""`sessrotate schedule`: have systemd, launchd or cron start `run`."""

from __future__ import annotations

from typing import Annotated

import typer

from sessrotate.automation import findings
from sessrotate.cli import streams
from sessrotate.errors import printable
from sessrotate.job import schedule
from sessrotate.job.schedule import Plan, installed
from sessrotate.job.schedule.work import Every

group = typer.Typer(help="Have systemd, launchd or cron start `run`.", no_args_is_help=True)

HowOften = Annotated[Every, typer.Option("--every", help="How often to start it.")]


@group.command()
def show(*, every: HowOften = "daily") -> None:
    """Show when `run` would start, and what `install` would do.

    Prints the files and the commands; without systemd and launchd, the line to add for cron.
    """
    planned = schedule.plan(every)
    streams.write(f"# `sessrotate run` starts {planned.starts}.\n")
    if not planned.files:
        streams.write(f"# Add this line with `crontab -e`:\n{planned.line}\n")
        return
    state = "as installed" if planned.is_installed else "not installed"
    for path, data in planned.files:
        streams.write(f"# {printable(str(path), 1000)} ({state})\n{data.decode()}\n")
    streams.write("".join(f"$ {printable(str(line), 1000)}\n" for line in planned.enable))


@group.command()
def install(*, every: HowOften = "daily") -> None:
    """Have the system start `run` from now on.

    On systemd this is a user timer, which catches up on starts that were missed while the machine
    was off; on macOS it is an agent of launchd. To change how often `run` starts, install again.
    """
    planned = schedule.plan(every)
    was_there = planned.is_installed
    schedule.install(planned)
    what = "Already installed: `sessrotate run`" if was_there else "`sessrotate run` now"
    streams.write(f"{what} starts {planned.starts} ({_files(planned)}).\n")
    for finding in findings.not_running(installed.installed()):
        streams.message(finding.detail)


@group.command()
def remove() -> None:
    """Remove the schedule, and everything that it left behind."""
    planned = schedule.plan_removal()
    was_absent = planned.is_absent
    schedule.remove(planned)
    streams.write("Nothing to remove.\n" if was_absent else f"Removed {_files(planned)}.\n")
    tell_of_crontab()


def tell_of_crontab() -> None:
    """Say which line of the user's crontab starts `run` all the same, if one does."""
    left = installed.in_crontab()
    if left is not None:
        streams.message(
            "Your crontab starts `sessrotate run` too: remove this line with `crontab -e`:\n"
            f"  {printable(left.line or '', 1000)}"
        )


def _files(planned: Plan) -> str:
    return " and ".join(printable(str(path), 1000) for path, _ in planned.files)
