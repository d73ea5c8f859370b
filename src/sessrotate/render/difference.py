"""What a change does to a small text file, as `diff -u` shows it.

Promise: whoever reads it sees what will be changed, and nothing else. In come the bytes before and
after; out come lines.

Rule: what the file holds is data: it is printed as safe text, and long lines are cut.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from sessrotate.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LONGEST: Final = 1000
"""Characters of a line."""


def lines(path: Path, before: bytes | None, after: bytes | None) -> Iterator[str]:
    """Yield the lines of the difference, none if there is none; None stands for no file."""
    old, new = ((data or b"").decode(errors="replace").splitlines() for data in (before, after))
    name = str(path)
    for line in difflib.unified_diff(old, new, name, name, lineterm=""):
        yield printable(line.expandtabs(4), _LONGEST)
