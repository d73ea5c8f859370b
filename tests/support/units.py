"""Reads unit files as systemd does, another way than the code that writes them.

After systemd.syntax(7) and what `extract_first_word` does with quotes and C escapes.
"""

from __future__ import annotations

from typing import Final

_SHORT: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "s": 32}
_ITSELF: Final = "\\\"'"
_LENGTHS: Final = {"x": 2, "u": 4, "U": 8}


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
    """Return the words of a value: quotes taken off, C escapes read."""
    found: list[str] = []
    word: list[str] | None = None
    quote = ""
    letters = iter(value)
    for letter in letters:
        if letter == "\\":
            word = [*(word or []), _escaped(letters)]
        elif quote:
            if letter == quote:
                quote = ""
            else:
                word = [*(word or []), letter]
        elif letter in "'\"":
            quote, word = letter, word or []
        elif letter in " \t\n\r":
            if word is not None:
                found.append("".join(word))
            word = None
        else:
            word = [*(word or []), letter]
    if quote:
        raise UnitError("unbalanced quotes")
    return found if word is None else [*found, "".join(word)]


def _escaped(letters: object) -> str:
    assert hasattr(letters, "__next__")
    kind = next(letters, "")
    if kind in _LENGTHS:
        number = int("".join(next(letters, "?") for _ in range(_LENGTHS[kind])), 16)
        if kind == "x" and number > 127:
            raise UnitError("a byte, not a character")
        return chr(number)
    if kind and kind in _ITSELF:
        return kind
    if kind in _SHORT:
        return chr(_SHORT[kind])
    raise UnitError(f"unknown escape {kind!r}")


def specified(text: str) -> str:
    """Return a text with its specifiers replaced, of which only `%%` may be there."""
    rest = text.replace("%%", "")
    if "%" in rest:
        raise UnitError("a specifier")
    return text.replace("%%", "%")


def argument(text: str) -> str:
    """Return an argument as the process gets it: no variables may be in it but `$$`."""
    text = specified(text)
    if "$" in text.replace("$$", ""):
        raise UnitError("a variable")
    return text.replace("$$", "$")


def executable(text: str) -> str:
    """Return the path that is executed: some characters may not be in it, whatever the quotes."""
    path = specified(text)
    if any(ord(letter) < 32 or letter in "\"'\\\x7f" for letter in path):
        raise UnitError("special characters in the executable's name")
    if not path.startswith("/"):
        raise UnitError("not absolute")
    return path
