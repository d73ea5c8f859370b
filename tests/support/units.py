"""Reads unit files as systemd does, another way than the code that writes them.

After systemd.syntax(7), without the escapes that are in no schedule.
"""

from __future__ import annotations

import re
from typing import Final

from hypothesis import strategies as st

TEXT: Final = st.text(
    st.characters(codec="utf-8", exclude_characters="\"'\\%$").filter(str.isprintable)
)
"""What a path in a schedule may have."""


class UnitError(Exception):
    """systemd would not take it."""


def assignments(text: str) -> dict[str, dict[str, list[str]]]:
    """Return the values by section and name, as they stand behind the equals sign."""
    found: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for line in text.split("\n"):
        if line.startswith(("#", ";")) or not line.strip():
            continue
        if line.startswith("["):
            section = found.setdefault(line.strip()[1:-1], {})
            continue
        if line.endswith("\\"):
            raise UnitError("the line goes on")
        name, equals, value = line.partition("=")
        if not equals:
            raise UnitError(line)
        section.setdefault(name.strip(), []).append(value.strip(" \t\r"))
    return found


def words(value: str) -> list[str]:
    """Return the words of a value, their double quotes taken off: no escape may be in it."""
    if any(letter in "\\'%$" or not letter.isprintable() for letter in value):
        raise UnitError("an escape, a specifier or a variable")
    if re.fullmatch(r'(?:(?:"[^"]*"|[^" ]+)(?: +|$))*', value) is None:
        raise UnitError("quotes in a word")
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|([^" ]+)', value)]
