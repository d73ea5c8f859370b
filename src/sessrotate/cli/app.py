"""The commands as one program, and the one place where errors become exit codes.

Rule: a command raises; here, and nowhere else, that becomes a sentence on standard error and a
number.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sessrotate import __version__
from sessrotate.cli import split, stitch, streams, verify
from sessrotate.errors import SessrotateError, StorageError, printable

if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED: Final = 130

app = typer.Typer(
    name="sessrotate",
    help="logrotate for coding-agent sessions: cut them at their compactions, lose nothing.",
    epilog=(
        "SESSION is a path, a session's id, or the beginning of one (4 characters or more). "
        "Exit codes: 0 done, 1 something is wrong, 2 wrong usage, 65 not a session, 74 damaged "
        "or I/O error, 75 in use, 77 refused for safety, 130 interrupted."
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def main(
    *,
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Logrotate for coding-agent sessions: cut them at their compactions, lose nothing."""
    if _version:
        streams.write(f"sessrotate {__version__}\n")
        raise typer.Exit


app.command("split")(split.command)
app.command("stitch")(stitch.command)
app.command("verify")(verify.command)


class _Interrupted(BaseException):
    """The person or the system asked the command to stop."""


def run() -> int:
    """Run the command line; return its exit code (codes of wrong usage leave by SystemExit)."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        app()
    except SessrotateError as error:
        streams.message(f"sessrotate: {error}")
        return error.exit_code
    except OSError as error:  # one that no operation has named
        streams.message(f"sessrotate: {printable(str(error))}")
        return StorageError.exit_code
    except _Interrupted:
        streams.message("sessrotate: Interrupted.")
        return INTERRUPTED
    except streams.ClosedPipe:
        streams.drop_output()
        return 0
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # A second signal, while the first one's cleaning up goes on, ends the process at once.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    raise _Interrupted


if __name__ == "__main__":
    sys.exit(run())
