"""`sessrotate schedule`: have systemd, launchd or cron start `run`."""

from __future__ import annotations

from typing import Annotated

import typer

from sessrotate.cli import streams
from sessrotate.errors import printable
from sessrotate.job import schedule
from sessrotate.job.schedule import Command, Plan
from sessrotate.job.schedule.work import Every

group = typer.Typer(help="Have systemd, launchd or cron start `run`.", no_args_is_help=True)

HowOften = Annotated[Every, typer.Option("--every", help="How often to start it.")]


@group.command()
def show(*, every: HowOften = "daily") -> None:
    """Print the files that `install` would write, and the commands that it would run.

    Without systemd and launchd, print the line to add for cron.
    """
    planned = schedule.plan(every)
    if planned.line:
        streams.write(f"# Add this line with `crontab -e`:\n{planned.line}\n")
        return
    state = "as installed" if planned.is_installed else "not installed"
    for path, data in planned.files:
        streams.write(f"# {printable(str(path), 1000)} ({state})\n{data.decode()}\n")
    streams.write("".join(f"$ {line}\n" for line in map(_line, planned.enable)))


@group.command()
def install(*, every: HowOften = "daily") -> None:
    """Have the system start `run` from now on.

    On systemd this is a user timer, which catches up on starts that were missed while the machine
    was off; on macOS it is an agent of launchd. To change how often, install again.
    """
    planned = schedule.plan(every)
    was_there = planned.is_installed
    left = schedule.install(planned)
    what = "Already installed" if was_there else f"`sessrotate run` now starts {every}"
    streams.write(f"{what}: {_files(planned)}.\n")
    _tell(planned, left)


@group.command()
def remove() -> None:
    """Remove the schedule, and everything that it left."""
    planned = schedule.plan("daily")
    was_absent = planned.is_absent
    left = schedule.remove(planned)
    what = "Nothing to remove" if was_absent else f"Removed {_files(planned)}"
    streams.write(f"{what}.\n")
    _tell(planned, left)


def _files(planned: Plan) -> str:
    return " and ".join(printable(str(path), 1000) for path, _ in planned.files)


def _tell(planned: Plan, left: tuple[Command, ...]) -> None:
    """Print the commands that are left to a person."""
    if left:
        lines = "".join(f"\n  {_line(command)}" for command in left)
        streams.message(
            f"{left[0].words[0]} was not found: for {planned.system} to notice, run:{lines}"
        )


def _line(command: Command) -> str:
    return printable(str(command), 1000)
