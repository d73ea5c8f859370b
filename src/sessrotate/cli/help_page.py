"""The help of every command, as typer lays it out on 80 columns: read from a file, not made.

Rule: `scripts/docs.py` writes `help.txt` from the commands, and a test holds the two equal. A
terminal narrower than that gets typer's own layout. Loading typer and all commands to show a page
takes ten times as long as reading it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("help.txt")
COLUMNS: Final = 80
COMPLETION: Final = "_SESSROTATE_COMPLETE"
"""The variable by which a shell asks for completions, with no arguments at all."""

_ASKS: Final = (["-h"], ["--help"])
_HEADING: Final = "# sessrotate"


def wanted(arguments: Sequence[str]) -> str | None:
    """Return the page that a command line asks for, None if it asks for none that is stored."""
    words = [*arguments]
    if words[-1:] not in _ASKS or COMPLETION in os.environ:
        return None
    words.pop()
    if shutil.get_terminal_size().columns < COLUMNS:
        return None
    try:
        text = FILE.read_text(encoding="utf-8")
    except OSError:  # an installation without the file still has its help, only later
        return None
    return parsed(text).get(" ".join(words))


def parsed(text: str) -> dict[str, str]:
    """Return the pages of the file by their commands' words; the first one has none."""
    pages = (page.partition("\n") for page in text.split(_HEADING)[1:])
    return {words.strip(): page for words, _, page in pages}


def stored(pages: Mapping[str, str]) -> str:
    """Return what the file holds: the inverse of `parsed`."""
    return "".join(f"{f'{_HEADING} {words}'.rstrip()}\n{page}" for words, page in pages.items())
