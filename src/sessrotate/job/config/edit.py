"""A settings file with one setting added or taken back: text → text. Pure.

Rule: everything else stays as it is, comments too, and the result is parsed before anybody gets it:
if it does not say what was wanted, nothing is changed. A line of ours is known by its mark.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sessrotate.errors import RefusedError, WrongUsageError
from sessrotate.job.config import keys, parse

if TYPE_CHECKING:
    from sessrotate.job.config.keys import Given, Key

MARK: Final = "# by `sessrotate setup`"
"""The end of a line that `setup` has written."""


def is_set(text: str, key: Key) -> bool:
    """Tell whether a file sets this key, to whatever value.

    Raises WrongUsageError if the text is no settings file.
    """
    return any(entry.key == key and entry.line is not None for entry in parse.parsed(text).entries)


def with_setting(text: str, key: Key, given: Given) -> str:
    """Return the text with a setting that is not in it yet.

    Raises RefusedError if it cannot be added safely, WrongUsageError as `is_set` does.
    """
    end_of_line = "\r" if "\r\n" in text else ""
    line = f"{key.name} = {keys.literal(given)}  {MARK}{end_of_line}"
    lines = text.split("\n")
    heading, commented = f"[{key.table}]", re.compile(rf"#\s*{key.name}\s*=")
    at = next((number for number, each in enumerate(lines) if each.strip() == heading), None)
    if at is None:
        start = text if not text or text.endswith("\n") else f"{text}\n"
        made = f"{start}{heading}  {MARK}{end_of_line}\n{line}\n"
    else:
        rest = range(at + 1, len(lines))
        end = next((n for n in rest if lines[n].lstrip().startswith("[")), len(lines))
        known = next((n for n in range(at + 1, end) if commented.match(lines[n])), None)
        lines.insert(at + 1 if known is None else known + 1, line)
        made = "\n".join(lines)
    _check(text, made, key, given)
    return made


def without(text: str, key: Key) -> str:
    """Return the text without the line for this key that `setup` has written, if it has."""
    begun = re.compile(rf"\s*{key.name}\s*=")
    lines = text.split("\n")
    return "\n".join(line for line in lines if not (_is_ours(line) and begun.match(line)))


def without_ours(text: str) -> str:
    """Return the text without the lines that `setup` has written.

    A table of ours stays where somebody has added to it: that would become another table's.
    """
    lines = [line for line in text.split("\n") if not _is_ours(line) or _is_heading(line)]
    return "\n".join(
        line
        for number, line in enumerate(lines)
        if not (_is_ours(line) and _is_empty(lines[number + 1 :]))
    )


def _is_ours(line: str) -> bool:
    return line.rstrip().endswith(MARK)


def _is_heading(line: str) -> bool:
    return line.lstrip().startswith("[")


def _is_empty(lines: list[str]) -> bool:
    """Tell whether a table has nothing in it; these lines stand behind its heading."""
    first = next((line for line in lines if line.strip() and line.lstrip()[0] != "#"), "[")
    return _is_heading(first)


def _check(before: str, after: str, key: Key, given: Given) -> None:
    """Raise RefusedError unless the setting is all that the two differ in."""
    old = {entry.key: entry.given for entry in parse.parsed(before).entries}
    try:
        new = {entry.key: entry.given for entry in parse.parsed(after).entries}
    except WrongUsageError:
        new = {}
    if new != {**old, key: given}:
        raise RefusedError(
            f"It is written in a way that cannot be extended safely: add `{key.name} = "
            f"{keys.literal(given)}` to [{key.table}] by hand."
        )
