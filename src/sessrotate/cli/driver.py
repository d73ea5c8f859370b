"""Plan, show, ask, do: the one way in which commands change sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

import typer
from msgspec import Struct
from msgspec.structs import replace

from sessrotate.cli import streams

if TYPE_CHECKING:
    from sessrotate.in_place.operations import Progress
    from sessrotate.render.outcomes import Shown


class Options(Struct, frozen=True):
    """The options that commands share which change sessions; `wait` is in seconds."""

    wait: float = 0.0
    dry_run: bool = False
    yes: bool = False
    as_json: bool = False
    quiet: bool = False


def carry_out(planned: Shown, do: Callable[[], Shown], options: Options) -> NoReturn:
    """Show a plan or, if its reader agrees, do it and show what was done; end the command.

    Raises WrongUsageError if nobody can be asked.
    """
    if options.dry_run or not planned.is_anything:
        end(planned, as_json=options.as_json)
    is_agreed = options.yes or _agreed(planned, as_json=options.as_json)
    end(do() if is_agreed else replace(planned, lines=()), as_json=options.as_json)


def _agreed(planned: Shown, *, as_json: bool) -> bool:
    """Ask a person, who may not see what goes to standard output: then in short."""
    if as_json or streams.terminal_width() is None:
        return streams.confirmed(planned.question)
    streams.write_lines(planned.lines)
    return streams.confirmed()


def end(shown: Shown, *, as_json: bool) -> NoReturn:
    """Show a plan, or what was done, and end the command with its exit code."""
    show(shown, as_json=as_json)
    raise typer.Exit(shown.code)


def show(shown: Shown, *, as_json: bool) -> None:
    """Show a plan, or what was done, to people or to programs."""
    if as_json:
        streams.write_all(shown.document)
    else:
        streams.write_lines(shown.lines)
    for each in shown.warnings:
        if each is not None:
            streams.warn(each)


def progress(*, quiet: bool, lead: str = "") -> Progress:
    """Return the function that the library calls to draw a progress bar; `lead` begins its text."""
    return lambda what, total: streams.progress(f"{lead}{what}", total, quiet=quiet)
