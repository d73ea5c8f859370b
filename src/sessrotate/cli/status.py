"""`sessrotate` alone: where things stand, and what to type next. No command itself."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial

import typer

from sessrotate import render, status
from sessrotate.cli import streams
from sessrotate.errors import SessrotateError
from sessrotate.job import config
from sessrotate.render import status as render_status


def show() -> None:
    """Print the status of this machine; settings that are wrong are one of its problems."""
    begun, settings = time.monotonic(), config.parsed("")
    with suppress(SessrotateError):
        settings = config.read(None).settings
    found = status.look(settings, time.time(), partial(streams.progress, quiet=False, since=begun))
    streams.write_lines(render_status.lines(found))
    for path, reason in found.hidden.items():
        streams.warn(render.unread(path, reason))
    if found.hidden:
        raise typer.Exit(1)
