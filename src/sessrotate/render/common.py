"""Sizes, times, counts and plain tables, as people read them; and JSON. Pure.

Rule: the same words everywhere. Text that came out of a session passes `printable` before it comes
here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sessrotate.render.columns import Canvas, Columns, Row, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from sessrotate.in_place.outcome import Outcome

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(number: int) -> str:
    """Return a number of bytes as people read it, in powers of 1024."""
    value, unit = float(number), 0
    while value >= 1023.95 and unit + 1 < len(_UNITS):  # noqa: PLR2004 - rounds up to 1024.0
        value, unit = value / 1024, unit + 1
    return f"{number} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def time(text: str | None) -> str:
    """Return a record's time to the second, as the client wrote it, or a dash."""
    return "-" if text is None else text[:19].replace("T", " ")


def as_json(document: object) -> str:
    """Return one JSON document, readable, all ASCII so that any terminal and pipe takes it."""
    return "".join(json_parts(document))


def json_parts(document: object) -> Iterator[str]:
    """Yield what `as_json` returns, piece by piece: ten thousand sessions have a long report."""
    yield from json.JSONEncoder(indent=2).iterencode(document)
    yield "\n"


def outcome(entry: Outcome, **figures: int) -> dict[str, Any]:
    """Return what JSON says of a session's outcome, with these figures."""
    return {
        "session": entry.session,
        "path": None if entry.where is None else str(entry.where.live),
        **figures,
        "result": entry.result,
        "reason": None if entry.error is None else str(entry.error),
    }


def count(number: int, what: str) -> str:
    """Return a number of things with the word for them."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def plain_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], left: AbstractSet[str]
) -> str:
    """Return a table as aligned text, for a pipe, a file, a mail; `left` are columns of text.

    Nothing if there are no rows.
    """
    shape = Columns(tuple(columns), frozenset(left))
    return "".join(
        f"{line}\n" for line in table(shape, [Row(tuple(row)) for row in rows], Canvas())
    )
