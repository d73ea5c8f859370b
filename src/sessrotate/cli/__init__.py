"""The command `sessrotate`: parse, call the library once, render.

Promise: one module a command, and each is parse → one call → render. In come arguments; out come
text and an exit code. May import all packages.

Rule: everything ends in a documented exit code and at most one message; no traceback, whatever
happens. Nothing is loaded that the given command does not need.
"""

from __future__ import annotations

import sys
from typing import Final

_PARTS_OF_HOOK: Final = (["install"], ["remove"], ["-h"], ["--help"])
"""What makes `hook` a command for people; anything else is a client's call, which never fails."""


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["help"]:  # as people know it from git and cargo
        arguments = [*arguments[1:], "--help"]
    try:
        sys.exit(_run(arguments))
    except KeyboardInterrupt:  # while the program was still being loaded
        sys.exit(_ended("Interrupted.", 130))
    except RuntimeError as error:
        if not isinstance(error.__cause__, KeyboardInterrupt):  # 3.11 wraps one in a class's making
            raise
        sys.exit(_ended("Interrupted.", 130))
    except ImportError as error:  # half installed, half removed, or no descriptor is left
        text = f"It cannot be loaded ({type(error).__name__}: {error.name}): install it again."
        sys.exit(_ended(text, 0 if _is_call(arguments) else 74))


def _ended(text: str, code: int) -> int:
    if sys.stderr is not None:  # closed
        sys.stderr.write(f"sessrotate: {text}\n")
    return code


def _is_call(arguments: list[str]) -> bool:
    return arguments[:1] == ["hook"] and arguments[1:2] not in _PARTS_OF_HOOK


def _run(arguments: list[str]) -> int:
    from sessrotate.cli import streams  # noqa: PLC0415 - inside the guard of `main`

    streams.prepare()
    if arguments == ["--version"]:
        from sessrotate import __version__  # noqa: PLC0415

        return streams.guarded(lambda: streams.write(f"sessrotate {__version__}\n"))
    if _is_call(arguments):
        from sessrotate.hook import call  # noqa: PLC0415 - without typer: a client waits for it

        streams.complain(call.call(arguments[1:]))
        return 0
    from sessrotate.cli import help_page  # noqa: PLC0415

    page = help_page.wanted(arguments)
    if page is not None:
        return streams.guarded(lambda: streams.write(page))
    from sessrotate.cli.app import run  # noqa: PLC0415 - 40 ms of typer

    return run(arguments)
