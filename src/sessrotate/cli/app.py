"""The commands as one program, and the one place where errors become exit codes.

Rule: a command raises an error, and only this module turns it into a sentence on standard error and
an exit code.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from sessrotate import __version__
from sessrotate.cli import streams
from sessrotate.cli.help_page import COMPLETION
from sessrotate.errors import INTERRUPTED

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Look": ("list", "report", "search", "verify", "doctor"),
    "Shrink": ("tidy", "rotate", "archive", "prune"),
    "Read": ("read", "export", "stitch", "split"),
    "Undo": ("restore",),
    "Automate": ("setup", "run"),
    "More": ("pin", "unpin", "aside", "config", "schedule", "hook"),
}
"""What each command is for. Each is a module of this package with a function `command`, or a
`group` of commands. Of the last, the help has only the names."""

COMMANDS: Final = tuple(name for names in GROUPS.values() for name in names)

_HELP: Final = "logrotate for coding-agent sessions: keep them small, lose nothing."
_EPILOG: Final = (
    "SESSION is a path, a session id, or the beginning of an id (at least 4 characters). Exit "
    "codes: 0 done, 1 a problem or nothing found, 2 wrong usage, 65 not a session, 74 damaged or "
    "I/O error, 75 in use, 77 refused for safety, 130 interrupted."
)


_LONGEST: Final = 120
"""Characters of a command's first sentence: it is shown whole."""


class _Grouped(TyperGroup):
    """The program's help, with its commands by what they are for.

    typer's own copy of click has the types of what it is given, under no public name.
    """

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands that there are."""
        *shown, (more, rest) = GROUPS.items()
        for title, names in shown:
            found = [(name, self.get_command(ctx, name)) for name in names]
            rows = [
                (f"{name:<9}", each.get_short_help_str(_LONGEST)) for name, each in found if each
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        with formatter.section(more):
            formatter.write_text(", ".join(rest))


def build(commands: Sequence[str] = COMMANDS) -> typer.Typer:
    """Return the program with these commands; only their modules are loaded."""
    app = typer.Typer(
        name="sessrotate",
        cls=_Grouped,
        help=_HELP,
        epilog=_EPILOG,
        invoke_without_command=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_program)
    for name in commands:
        module = import_module(f"sessrotate.cli.{name}")
        if hasattr(module, "group"):
            app.add_typer(module.group, name=name)
        else:
            app.command(name)(module.command)
    return app


def _program(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)
    ] = False,
) -> None:
    if version:
        streams.write(f"sessrotate {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        from sessrotate.cli import status  # noqa: PLC0415 - loads what only it needs

        status.show()


_GOES_ON: Final = frozenset({"archive", "prune", "restore", "rotate", "run", "tidy"})
"""Commands that change sessions, and finish what they find half done."""


class _Interrupted(BaseException):
    """Someone pressed Ctrl-C, or the system asked the process to end."""


def run(arguments: Sequence[str]) -> int:
    """Run the command line; return its exit code (typer leaves by SystemExit itself)."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    words = [*arguments] or _words_to_complete()
    named: Sequence[str] = [name for name in COMMANDS if name in words[:1]]
    if not named and (arguments or COMPLETION in os.environ):
        named = COMMANDS
    try:
        return streams.guarded(lambda: build(named)(arguments))
    except _Interrupted:
        goes_on = words[:1] and words[0] in _GOES_ON
        rest = " Nothing is lost: run the same command to continue." if goes_on else ""
        return streams.failed(f"Interrupted.{rest}", INTERRUPTED)


def _words_to_complete() -> list[str]:
    """Return the words after the program's name, if a shell asks for their completion."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    words = line.split()[1:]
    # Alone, the beginning of a command's name may be all of another's.
    return words if len(words) > 1 or line[-1:].isspace() else []


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # While the first signal's clean-up goes on, a second one ends the process at once.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    raise _Interrupted
