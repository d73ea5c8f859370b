"""Asking a person before something is removed."""

from __future__ import annotations

import sys

from sessrotate.cli import streams
from sessrotate.errors import WrongUsageError


def confirmed(question: str, *, yes: bool) -> bool:
    """Ask a question on the terminal and return the answer; with `yes`, do not ask.

    Raises WrongUsageError if there is no terminal.
    """
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise WrongUsageError(
            "Cannot ask for confirmation without a terminal: pass --yes, or preview with --dry-run."
        )
    streams.message(f"{question} Continue? [y/N]")
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    streams.message("Nothing was changed.")
    return False
