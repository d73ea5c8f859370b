"""`sessrotate` alone: where things stand, and what to type next. No command itself."""

from __future__ import annotations

import time
from contextlib import suppress

import typer

from sessrotate import status
from sessrotate.cli import streams
from sessrotate.cli.in_place import progress
from sessrotate.errors import SessrotateError
from sessrotate.job.config import file as config_file
from sessrotate.job.config import parse
from sessrotate.render import common
from sessrotate.render import status as render_status


def show() -> None:
    """Print the status of this machine; settings that are wrong are one of its problems."""
    settings = parse.parsed("")
    with suppress(SessrotateError):
        settings = config_file.read(None).settings
    found = status.of_machine(settings, time.time(), progress(quiet=False))
    streams.write_lines(render_status.lines(found))
    for path, reason in found.hidden.items():
        streams.warn(common.unread(path, reason))
    if found.hidden:
        raise typer.Exit(1)
