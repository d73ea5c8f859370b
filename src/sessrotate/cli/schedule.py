"""`sessrotate schedule`: having `run` started by systemd, launchd or cron."""

from __future__ import annotations

from typing import Annotated

import typer

from sessrotate.cli import streams
from sessrotate.errors import printable
from sessrotate.job import schedule
from sessrotate.job.schedule import Command, Plan
from sessrotate.job.schedule.work import Every

group = typer.Typer(
    help="Have `run` started by systemd, launchd or cron.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

HowOften = Annotated[Every, typer.Option("--every", help="How often it is started.")]


@group.command()
def show(*, every: HowOften = "daily") -> None:
    """Print the files that `install` would write, and the commands that it would run.

    Where there is neither systemd nor launchd: the line to add for cron.
    """
    planned = schedule.plan(every)
    if planned.line:
        streams.write(f"# Add this line by `crontab -e`:\n{planned.line}\n")
        return
    state = "as installed" if planned.is_installed else "not installed"
    for path, data in planned.files:
        streams.write(f"# {printable(str(path), 1000)} ({state})\n{data.decode()}\n")
    streams.write("".join(f"$ {line}\n" for line in map(_line, planned.enable)))


@group.command()
def install(*, every: HowOften = "daily") -> None:
    """Write the files and have the system start `run` from now on.

    systemd: a timer of the user's own, which makes up for what was missed while the machine was
    off. launchd: an agent. Once more, with another --every, changes that.
    """
    planned = schedule.plan(every)
    was_there = planned.is_installed
    left = schedule.install(planned)
    what = "Nothing to change" if was_there else f"`sessrotate run` is started {every}"
    streams.write(f"{what}: {_files(planned)}.\n")
    _tell(planned, left)


@group.command()
def remove() -> None:
    """Take the schedule away again, and all that it left."""
    planned = schedule.plan("daily")
    was_absent = planned.is_absent
    left = schedule.remove(planned)
    what = "Nothing to remove" if was_absent else f"Removed {_files(planned)}"
    streams.write(f"{what}.\n")
    _tell(planned, left)


def _files(planned: Plan) -> str:
    return " and ".join(printable(str(path), 1000) for path, _ in planned.files)


def _tell(planned: Plan, left: tuple[Command, ...]) -> None:
    """Say which commands are left to a person."""
    if left:
        lines = "".join(f"\n  {_line(command)}" for command in left)
        streams.message(
            f"{left[0].words[0]} is not here. For {planned.system} to know, run:{lines}"
        )


def _line(command: Command) -> str:
    return printable(str(command), 1000)
