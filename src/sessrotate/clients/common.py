"""What the formats of several clients have in common: lines of JSON, times, folders of sessions.

Rule: nothing here knows a client, and nothing raises over what it is given.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)")


def iso_time(value: object) -> str | None:
    """Return a value that is a time as clients write them (ISO 8601), None of any other."""
    return value if isinstance(value, str) and _TIME.fullmatch(value) else None


def has_row(
    head: bytes,
    *,
    is_whole: bool,
    is_row: Callable[[bytes], bool],
    may_begin_row: Callable[[bytes], object],
) -> bool:
    """Tell whether a file that begins with `head` has one line at least that is a client's row.

    One is enough: the lines around it may be torn or foreign. A first line too long for `head`
    (which then is not the whole file) counts if its beginning `may_begin_row`.
    """
    *lines, rest = head.split(b"\n")
    if any(is_row(line) for line in lines):
        return True
    return is_row(rest) if is_whole or lines else bool(may_begin_row(rest))


def listed(folder: Path) -> list[Path]:
    """Return what a folder holds, in order of the names; nothing if it cannot be read.

    Looking for a session is not the place to complain of a folder.
    """
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
