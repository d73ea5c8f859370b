"""The command `sessrotate`: parse, call the library once, render.

Rule: everything ends in a documented exit code and at most one message; no traceback, whatever
happens. Nothing is loaded that the given command does not need.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    if sys.argv[1:] == ["--version"]:
        from sessrotate import __version__  # noqa: PLC0415 - the rest is not needed for this

        sys.stdout.write(f"sessrotate {__version__}\n")
        return
    from sessrotate.cli.app import run  # noqa: PLC0415 - 40 ms of typer

    sys.exit(run(sys.argv[1:]))
