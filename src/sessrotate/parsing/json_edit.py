"""JSON text edited in place: a value put in or taken out, and every other character kept. Pure.

Rule: the text is checked by a parser and cut by a tokeniser; it is never written anew from its
values, because that would spell numbers and escapes in another way and lose what is there twice.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from msgspec import Struct

from sessrotate.errors import RefusedError, printable

_DEFAULT_INDENT: Final = "  "
"""Of what is put into a document that has no style of its own."""

_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


class Value(Struct, frozen=True):
    """A value of the document, where it stands: from its key, if it has one, to its end."""

    begin: int
    start: int
    end: int
    key: str | None = None


class Box(Struct, frozen=True):
    """An object or array, and what is in it."""

    start: int
    end: int
    values: tuple[Value, ...]


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def document(text: str) -> dict[str, Any]:
    """Return the object that the text is, its numbers as they are spelled.

    Raises RefusedError if it is none.
    """
    try:
        found = json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_constant)
    except RecursionError:
        raise RefusedError("It is nested too deeply.") from None
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        raise RefusedError(f"It is no JSON from {at} on: mend that first.") from None
    except ValueError as error:
        raise RefusedError(f"It is no JSON ({printable(str(error))}): mend that first.") from None
    if not isinstance(found, dict):
        raise RefusedError("It is JSON, but no object: the client takes nothing else.")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def outermost(text: str) -> Box:
    """Return the object that sound JSON text is."""
    return box(text, text.index("{"))


def box(text: str, start: int) -> Box:
    """Return the object or array that begins at `start` of sound JSON text, however deep it is."""
    spans: list[tuple[int, int]] = []
    depth, opened, end = 0, start, len(text)
    for token in _TOKEN.finditer(text, start):
        mark = token[0]
        if mark in {"{", "["}:
            opened = token.start() if depth == 1 else opened
            depth += 1
        elif mark in {"}", "]"}:
            depth -= 1
            if depth == 1:
                spans.append((opened, token.end()))
            elif depth == 0:
                end = token.end()
                break
        elif depth == 1 and mark not in {":", ","}:
            spans.append(token.span())
    if text[start] == "[":
        return Box(start, end, tuple(Value(begin, begin, last) for begin, last in spans))
    members = zip(spans[::2], spans[1::2], strict=True)
    values = (Value(key[0], *span, json.loads(text[slice(*key)])) for key, span in members)
    return Box(start, end, tuple(values))


def string(text: str, value: Value) -> str | None:
    """Return the string that a value is, None if it is something else."""
    found = json.loads(text[value.start : value.end]) if text[value.start] == '"' else None
    return found if isinstance(found, str) else None


# ── editing ──────────────────────────────────────────────────────────────────────────────────


def replaced(text: str, what: Box | Value, by: str) -> str:
    """Return the text with something else in the place of a value."""
    return text[: what.start] + by + text[what.end :]


def without(text: str, inside: Box, number: int) -> str:
    """Return the text without one value and one comma: exactly what `including` put in last."""
    values = inside.values
    if len(values) == 1:
        start, end = inside.start + 1, inside.end - 1
    elif number:
        start, end = values[number - 1].end, values[number].end
    else:
        start, end = values[0].begin, values[1].begin
    return text[:start] + text[end:]


def including(text: str, inside: Box, key: str | None, value: object) -> str:
    """Return the text with one value more, last: on lines of its own where others have such."""
    if inside.values:
        return _beside(text, inside, key, value)
    opening, closing, unit = text[inside.start], text[inside.end - 1], _unit(text)
    if unit is None:
        return replaced(text, inside, opening + _written(key, value, None, "") + closing)
    line = text[text.rfind("\n", 0, inside.start) + 1 : inside.start]
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    outer = ("\r\n" if "\r\n" in text else "\n") + indent
    written = _written(key, value, unit, outer + unit)
    return replaced(text, inside, f"{opening}{outer}{unit}{written}{outer}{closing}")


def _beside(text: str, inside: Box, key: str | None, value: object) -> str:
    """Put a value behind the last one, with the same white space before it."""
    last, is_only = inside.values[-1], len(inside.values) == 1
    before = inside.start + 1 if is_only else inside.values[-2].end
    space = text[before : last.begin].rpartition(",")[2]
    head, newline, indent = space.rpartition("\n")
    if newline:
        newline = ("\r" if head.endswith("\r") else "") + newline + indent
        written = newline + _written(key, value, _unit(text), newline)
    else:
        written = (" " if is_only else space) + _written(key, value, None, "")
    return f"{text[: last.end]},{written}{text[last.end :]}"


def _written(key: str | None, value: object, unit: str | None, newline: str) -> str:
    """Return a member or element as text, indented by `unit`, its lines parted by `newline`."""
    written = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline)
    return written if key is None else f"{json.dumps(key)}: {written}"


def _unit(text: str) -> str | None:
    """Return by what a level is indented; None where the document is all on one line."""
    top = outermost(text)
    if not top.values:
        return _DEFAULT_INDENT
    if "\n" not in text[top.start : top.end]:
        return None
    indent = text[top.start + 1 : top.values[0].begin].rpartition("\n")[2]
    return indent or _DEFAULT_INDENT
