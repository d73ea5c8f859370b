"""Sizes, times, counts and plain tables, as people read them; and JSON. Pure.

Rule: the same words everywhere. Text that came out of a session passes `printable` before it comes
here.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

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
    """Yield what `as_json` returns: of a report of ten thousand sessions, a session at a time."""
    yield from _indented(document, "\n")
    yield "\n"


def _indented(value: object, line: str) -> Iterator[str]:
    """Yield what `json.dumps` with an indent of 2 gives, of objects whose keys are texts.

    `line` begins a line of this depth. An object or array of scalars goes to the fast encoder,
    which knows no indent: a newline and an indent are what it puts between two members.
    """
    if not value or not isinstance(value, _NESTS):
        yield json.dumps(value)
        return
    inner = line + "  "
    members = value.values() if isinstance(value, dict) else value
    if not any(isinstance(each, _NESTS) for each in members):
        text = _flat(inner).encode(value)
        yield text[0] + inner + text[1:-1] + line + text[-1]
        return
    keys = [json.dumps(key) + ": " for key in value] if isinstance(value, dict) else repeat("")
    lead, end = "{}" if isinstance(value, dict) else "[]"
    for key, each in zip(keys, members, strict=False):
        yield lead + inner + key
        yield from _indented(each, inner)
        lead = ","
    yield line + end


_NESTS: Final = (dict, list, tuple)


@cache
def _flat(line: str) -> json.JSONEncoder:
    return json.JSONEncoder(separators=("," + line, ": "))


def count(number: int, what: str) -> str:
    """Return a number of things with the word for them."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def plain_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], left: AbstractSet[str]
) -> str:
    """Return a table as aligned text, for a pipe, a file, a mail; `left` are columns of text."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    lines = []
    for row in (columns, *rows):
        cells = [
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"
