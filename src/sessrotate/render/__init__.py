"""Results → text, tables, JSON and pages.

Promise: what people and programs read, safe on any terminal and in any browser. In come results
of all packages below, as values; out comes text. May import the packages whose results it shows.

Rule: pure: no file, no clock, no decision. Sizes, times, counts and plain tables are said here, in
the same words everywhere. Text that came out of a session passes `printable` before it comes here.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sessrotate import units
from sessrotate.errors import printable
from sessrotate.render.columns import Canvas, Columns, TableRow, table

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.reports import NextStep


_LONGEST: Final = 1000
"""Characters of a line of somebody's file."""

_ESCAPE: Final = re.compile(r"\\(?:[^u]|ud[89ab]..\\ud[c-f]..|u(d[89a-f]..))")
"""An escape in JSON that is all ASCII; the group is half of a character."""

_WRITABLE: Final = (-62_135_596_800.0, 253_402_300_799.0)
"""The times that can be written, in seconds since 1970: the years 1 to 9999."""

CLIENTS: Final = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini"}
"""What the clients are called."""

PUT_AWAY: Final = (
    "A session that is put away leaves the client's list, and `sessrotate restore SESSION` brings "
    "it back."
)
"""What a plan says that puts sessions away: nobody should look for one in vain."""


size: Final = units.amount


def moment(seconds: float) -> datetime:
    """Return a time in seconds since 1970 as a date that can be written, the nearest to it."""
    return datetime.fromtimestamp(min(max(seconds, _WRITABLE[0]), _WRITABLE[1]), UTC)


def time(text: str | None) -> str:
    """Return a record's time to the second, in UTC, or a dash; what is no time, as it stands."""
    if text is None:
        return "-"
    if text[-1:] != "Z" and (at := units.seconds(text)) is not None:  # clients write it in UTC
        with suppress(ValueError, OverflowError, OSError):  # out of the calendar
            text = datetime.fromtimestamp(at, UTC).isoformat()
    return text[:19].replace("T", " ")


def as_json(document: object) -> str:
    """Return one JSON document, readable, all ASCII so that any terminal and pipe takes it."""
    return dumps(document, indent=2) + "\n"


def dumps(value: object, **options: Any) -> str:
    """Return JSON that strict parsers take: half characters become U+FFFD.

    Clients write them where they cut a text, and names that are no UTF-8 have them in Python.
    """
    text = json.dumps(value, **options)
    return _ESCAPE.sub(_whole, text) if "\\ud" in text else text


def _whole(escape: re.Match[str]) -> str:
    return escape[0] if escape[1] is None else "\\ufffd"


def json_parts(document: dict[str, Any]) -> Iterator[str]:
    """Yield a document piece by piece, an entry of its lists and generators a line."""
    lead = "{"
    for key, value in document.items():
        yield f"{lead}\n  {dumps(key)}: "
        if isinstance(value, Iterable) and not isinstance(value, str | dict):
            yield from json_rows(value, "\n    ", "\n  ")
        else:
            yield dumps(value, indent=2).replace("\n", "\n  ")
        lead = ","
    yield "\n}\n"


def json_rows(entries: Iterable[object], before: str, after: str) -> Iterator[str]:
    """Yield a list with `before` in front of each entry, and `after` behind the last."""
    lead = "["
    for entry in entries:
        yield f"{lead}{before}{dumps(entry)}"
        lead = ","
    yield "[]" if lead == "[" else f"{after}]"


def unread(path: str, reason: str) -> str:
    """Return the sentence about a file or folder that cannot be read."""
    return f"Cannot read {printable(path)} ({reason.rstrip('.')})."


def located(path: str, sentence: str) -> str:
    """Return a sentence behind the path that it is about, which is said once."""
    return sentence if path in sentence else f"{path}: {sentence}"


def count(number: int, what: str) -> str:
    """Return a number of things with the word for them."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def plain_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], left: AbstractSet[str]
) -> Iterator[str]:
    """Yield the lines of a table for a pipe, a file, a mail; `left` are columns of text.

    Nothing if there are no rows.
    """
    shape = Columns(tuple(columns), frozenset(left))
    return table(shape, [TableRow(tuple(row)) for row in rows], Canvas())


def freed(step: NextStep) -> str:
    """Return about how much a step frees, and of which sessions."""
    about = ("up to" if step.is_most else "about") if step.command else "all"
    of = "from" if step.command else "of"
    return f"{about} {size(step.bytes)} {of} {count(step.sessions, 'session')} {step.what}"


def further(steps: Iterable[NextStep]) -> Iterator[str]:
    """Yield what else would free something, each with its command; nothing if nothing would."""
    for number, step in enumerate(steps):
        if not number:
            yield "What else takes up space, and how to free it:"
        yield f"  {CLIENTS.get(step.client, step.client)}: {freed(step)}."
        if step.command:
            yield f"      {step.command}"


def difference(path: Path, before: bytes | None, after: bytes | None) -> Iterator[str]:
    """Yield what a change does to a small text file, as `diff -u` shows it.

    None stands for no file. What the file holds is data: it is printed as safe text, and long lines
    are cut.
    """
    old, new = ((data or b"").decode(errors="replace").splitlines() for data in (before, after))
    name = str(path)
    for line in difflib.unified_diff(old, new, name, name, lineterm=""):
        yield printable(line.expandtabs(4), _LONGEST)
