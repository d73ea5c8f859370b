"""One line → the few values of it that matter, as a client's `JSON.parse` would see them.

Rule: a line that is JSON, or that was torn, has one verdict at every size. A short line goes to
`json.loads`; of a long or deeply nested one only brackets and strings are followed: if they close
where the line ends it counts as the object that they enclose, whatever stands between them. So only
a long line of which the grammar is wrong inside of its brackets is told otherwise. No client writes
one, and a tear leaves a bracket or a string open, whole lines behind it or not. A property test
holds the two ways together. Both agree on this:

* invalid UTF-8 is read with replacement, as Node reads a file; a BOM makes a line unparsable, as in
  `JSON.parse`; of duplicate keys the last one counts;
* numbers of any length and nesting of any depth are fine;
* of the values, only short scalars are reported: strings up to `MAX_TEXT` characters and
  integers up to `MAX_DIGITS` digits; anything else that is asked for is reported as None.

Of a line of which only the beginning, or only the end, is in sight, members of its own object are
told, never those of an object in it; there may be more of them. Only scalars count, and only as far
as no object or list comes between them and the end that is in sight. Where the line is no JSON,
nothing is promised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sessrotate.parsing.json_stream import Cursor

    Shape = Mapping[str, "Shape | type[list[Any]] | None"]
    """Which keys to report: None for a scalar, a mapping for an object inside the object, `list`
    for whether it is an array."""
    Values = dict[str, "str | int | bool | Values | None"]
    """What was found: only keys that the line has, in the shape that was asked for."""

SMALL: Final = 256 * 1024
"""Lines up to this many bytes are parsed: `json.loads` needs up to 40 bytes a byte."""

MAX_TEXT: Final = 128
MAX_DIGITS: Final = 15

_LONGEST_VALUE: Final = 12 * MAX_TEXT + 2
"""Bytes of a text that may be as short as `MAX_TEXT`: each character may be two escapes."""

_CONTROLS: Final = bytes(set(range(0x20)) - {0x09, 0x0D})
"""Bytes that no JSON text may hold anywhere, such as the zeros that a power loss leaves.

A tab or a return may stand between tokens. A newline is among them: it ends the line.
"""


def is_small(size: int) -> bool:
    """Tell whether a line of `size` bytes is parsed rather than followed."""
    return size <= SMALL


def values(line: Iterable[bytes], size: int, shape: Shape) -> Values | None:
    """Return what `shape` asks for of the object on this line, or None if it is not an object.

    `line` yields its `size` bytes in pieces of any length, without the newline. It may be
    iterated twice: where `json.loads` gives up on the depth of nesting.
    """
    if is_small(size):
        try:
            return _picked(_parsed(b"".join(line)), shape)
        except ValueError:
            return None
        except RecursionError:
            pass
    return _followed(line, shape)


def scalar(text: bytes) -> str | int | bool | None:
    """Return the value that is a JSON text, if it is a short scalar; None if not."""
    try:
        return _scalar(_parsed(text))
    except (ValueError, RecursionError):
        return None


# ── parsed ───────────────────────────────────────────────────────────────────────────────────


def _parsed(text: bytes) -> Any:
    return _DECODER.decode(text.decode("utf-8", "replace"))


def _picked(found: Any, shape: Shape) -> Values | None:
    if not isinstance(found, dict):
        return None
    return {key: _value(found[key], inner) for key, inner in shape.items() if key in found}


def _value(value: Any, wanted: Shape | type[list[Any]] | None) -> Values | str | int | bool | None:
    if wanted is None:
        return _scalar(value)
    return isinstance(value, list) if isinstance(wanted, type) else _picked(value, wanted)


def _scalar(value: object) -> str | int | bool | None:
    """Return a short scalar, a text without lone surrogates (which no file can hold)."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if len(value) <= MAX_TEXT else None
    return value if isinstance(value, int) else None


def _short_integer(digits: str) -> int | None:
    return int(digits) if len(digits.removeprefix("-")) <= MAX_DIGITS else None


def _no_value(_text: str) -> None:
    return None


def _not_json(_text: str) -> None:
    raise ValueError


# Made once: `json.loads` makes one for each line, which takes as long as a short line does.
_DECODER: Final = json.JSONDecoder(
    parse_int=_short_integer, parse_float=_no_value, parse_constant=_not_json
)


# ── followed ─────────────────────────────────────────────────────────────────────────────────


def _followed(line: Iterable[bytes], shape: Shape) -> Values | None:
    from sessrotate.parsing.json_stream import Cursor  # noqa: PLC0415 - 10 ms; few lines need it

    try:
        cursor = Cursor(_without_controls(line))
        found = _members(cursor, shape)
        return found if cursor.is_closed and not cursor.next() else None
    except ValueError:
        return None


def _without_controls(line: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a line; raise ValueError for one that no JSON text may hold."""
    for piece in line:
        if len(piece.translate(None, _CONTROLS)) != len(piece):
            raise ValueError
        yield piece


def _members(cursor: Cursor, shape: Shape) -> Values:
    """Pass an object; return what the shape asks for of it."""
    found: Values = {}
    for name in cursor.members():
        opening = cursor.next()
        wanted = None if name is None else shape.get(name)
        if isinstance(wanted, Mapping) and opening == b"{":
            found[name or ""] = _members(cursor, wanted)
            if not cursor.is_closed:  # or the brace of the outer one would close it
                break
            continue
        value = cursor.value(_LONGEST_VALUE)
        if name is None or name not in shape:
            continue
        if isinstance(wanted, type):
            found[name] = opening == b"["
        else:
            is_short = wanted is None and value.size <= _LONGEST_VALUE
            found[name] = scalar(value.text) if is_short else None
    return found


# ── a line of which only one end is in sight ──────────────────────────────────────────────────────

_NEAR: Final = 4096
"""Bytes at a line's end that are looked at."""

_TEXT: Final = rb'"(?:(?>[^"\\\x00-\x1f]|\\.))*+"'
_SCALAR: Final = rb"(?:%b|true|false|null|-?[0-9][0-9.eE+-]{0,40})" % _TEXT
_SPACE: Final = rb"[ \t\r\n]*+"
_COLON: Final = rb"%b:%b" % (_SPACE, _SPACE)
_MEMBER: Final = re.compile(rb"%b(%b)%b(%b)%b," % (_SPACE, _TEXT, _COLON, _SCALAR, _SPACE))
_BEGIN: Final = re.compile(rb"%b\{" % _SPACE)
_MORE: Final = rb"(?:(?>%b,%b%b%b%b))*+" % (_SPACE, _SPACE, _TEXT, _COLON, _SCALAR)
_TO_THE_END: Final = re.compile(rb"%b(%b)%b%b\}%b\Z" % (_COLON, _SCALAR, _MORE, _SPACE, _SPACE))


def scalars_in_beginning(data: bytes) -> dict[str, Any]:
    """Return the members that a line begins with, as far as they are scalars."""
    opened = _BEGIN.match(data)
    found: dict[str, Any] = {}
    at = opened.end() if opened is not None else len(data)
    while (member := _MEMBER.match(data, at)) is not None:
        found |= _decoded(member[1], member[2])
        at = member.end()
    return found


def scalars_in_end(data: bytes, names: tuple[str, ...]) -> dict[str, Any]:
    """Return those of these members that stand in the scalars that a line ends with."""
    data, found = data[-_NEAR:], dict[str, Any]()
    for name in names:
        key = b'"%b"' % name.encode()
        at = data.rfind(key)
        while at >= 0 and (member := _TO_THE_END.match(data, at + len(key))) is None:
            at = data.rfind(key, 0, at)  # that one was a value
        if at >= 0 and member is not None:
            found |= _decoded(key, member[1])
    return found


def _decoded(key: bytes, value: bytes) -> dict[str, Any]:
    try:
        name, found = (json.loads(each.decode("utf-8", "replace")) for each in (key, value))
    except ValueError:
        return {}
    return {name: found}
