"""`sessrotate` alone: where things stand, and what to type next. No command itself."""

from __future__ import annotations

import time

import typer

from sessrotate import status
from sessrotate.cli import streams
from sessrotate.cli.in_place import progress
from sessrotate.job.config import file as config_file
from sessrotate.render import common
from sessrotate.render import status as render_status


def show() -> None:
    """Print the status of this machine."""
    found = status.of_machine(config_file.read(None).settings, time.time(), progress(quiet=False))
    streams.write_lines(render_status.lines(found))
    for path, reason in found.hidden.items():
        streams.warn(common.unread(path, reason))
    if found.hidden:
        raise typer.Exit(1)
