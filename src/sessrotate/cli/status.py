"""`sessrotate` alone: where things stand, and what to type next. No command itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice

import typer

from sessrotate import render, status
from sessrotate.cli import streams
from sessrotate.errors import SessrotateError
from sessrotate.job import config
from sessrotate.render import status as render_status


def show() -> None:
    """Print the status of this machine; settings that are wrong are one of its problems.

    On a terminal, what is known so far is shown when that takes a while.
    """
    begun, is_told = time.monotonic(), False
    settings = config.parsed("")
    with suppress(SessrotateError):
        settings = config.read(None).settings
    look = status.Look(settings, time.time())

    @contextmanager
    def shown(what: str, total: int) -> Iterator[Callable[[int], None]]:
        with streams.progress(what, total, quiet=False, since=begun) as drawn:

            def update(done: int) -> None:
                nonlocal is_told
                if not is_told and time.monotonic() - begun > streams.PATIENCE:
                    is_told = True
                    if streams.terminal_width() is not None:
                        streams.write_lines(render_status.so_far(look.so_far))
                drawn(done)

            yield update

    found = look.whole(shown)
    is_first = is_told and streams.terminal_width() is not None
    streams.write_lines(islice(render_status.lines(found), int(is_first), None))
    for path, reason in found.hidden.items():
        streams.warn(render.unread(path, reason))
    if found.hidden:
        raise typer.Exit(1)
