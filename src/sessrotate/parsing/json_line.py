"""One line → the few values of it that matter, exactly as a client's `JSON.parse` would see them.

Rule: the verdict does not depend on the line's size. A short line goes to `json.loads`; a long or
deeply nested one is streamed through `_Shrinker` into ijson. A property test holds the two
together. Both agree on this:

* invalid UTF-8 is read with replacement, as Node reads a file; a BOM, NaN and Infinity make a
  line unparsable, as in `JSON.parse`; of duplicate keys the last one counts;
* numbers of any length and nesting of any depth up to `MAX_DEPTH` are fine;
* of the values, only short scalars are reported: strings up to `MAX_TEXT` characters and
  integers up to `MAX_DIGITS` digits; anything else that is asked for is reported as None.

Why not ijson alone: version 3.6 crashes the interpreter on long integers, needs quadratic time
for long strings and holds them whole. The shrinker therefore checks strings itself and hands on
only short ones, cuts digits, and leaves the grammar to ijson.

Of a line of which only the beginning, or only the end, is in sight, members of its own object are
told, never those of an object in it; there may be more of them. Only scalars count, and only as far
as no object or list comes between them and the end that is in sight. Where the line is no JSON,
nothing is promised.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    Shape = Mapping[str, "Shape | type[list[Any]] | None"]
    """Which keys to report: None for a scalar, a mapping for an object inside the object, `list`
    for whether it is an array."""
    Values = dict[str, "str | int | bool | Values | None"]
    """What was found: only keys that the line has, in the shape that was asked for."""

SMALL: Final = 256 * 1024
"""Lines up to this many bytes are parsed at once: `json.loads` needs up to 40 bytes a byte."""

MAX_TEXT: Final = 128
MAX_DIGITS: Final = 15
MAX_DEPTH: Final = 4 * 1024 * 1024
"""Levels of nesting that a line may have; ijson keeps a byte for each."""

_CONTROLS: Final = bytes(set(range(0x20)) - {0x09, 0x0D})
"""Bytes that no JSON text may hold anywhere (a tab or a return may stand between tokens).

A newline is among them: it ends the line. ijson would take 0B and 0C for white space.
"""


class _NotJSONError(ValueError):
    """The line is not JSON; never leaves this module."""


def is_small(size: int) -> bool:
    """Tell whether a line of `size` bytes is parsed at once rather than streamed."""
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
    try:
        return _streamed(line, shape)
    except _NotJSONError:
        return None


def scalar(text: bytes) -> str | int | bool | None:
    """Return the value that is a JSON text, if it is a short scalar; None if not."""
    try:
        return _scalar(_parsed(text))
    except (ValueError, RecursionError):
        return None


# ── at once ──────────────────────────────────────────────────────────────────────────────────


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
    raise _NotJSONError


# Made once: `json.loads` makes one for each line, which takes as long as a short line does.
_DECODER: Final = json.JSONDecoder(
    parse_int=_short_integer, parse_float=_no_value, parse_constant=_not_json
)


# ── as a stream ──────────────────────────────────────────────────────────────────────────────


def _streamed(line: Iterable[bytes], shape: Shape) -> Values | None:
    import ijson  # noqa: PLC0415 - 15 ms at start-up, needed only for lines over SMALL

    events = ijson.sendable_list()
    picker = _Picker(shape)
    parser = ijson.basic_parse_coro(events)
    try:
        for piece in _Shrinker().feed(line):
            if piece:  # an empty one would tell ijson that the text ends here
                parser.send(piece)
                picker.take(events)
                events.clear()
        parser.close()
        picker.take(events)
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise _NotJSONError from error
    return picker.result()


class _Picker:
    """Follows ijson's events and keeps what the shape asks for; memory is the shape's, no more."""

    def __init__(self, shape: Shape) -> None:
        self._found: Values = {}
        # The shape is that of the only member of an object around the line. One entry for each
        # open object that the shape reaches into, outermost first.
        self._open: list[tuple[Shape, Values]] = [({"": shape}, self._found)]
        self._depth = 0
        self._key = ""

    def take(self, events: list[tuple[str, Any]]) -> None:
        """Take the next events, in order."""
        for event, value in events:
            if event == "map_key":
                self._key = value
            elif event in ("start_map", "start_array"):
                self._assign({} if event == "start_map" else [])
                self._depth += 1
                if self._depth > MAX_DEPTH:
                    raise _NotJSONError
            elif event in ("end_map", "end_array"):
                if len(self._open) > self._depth:
                    self._open.pop()
                self._depth -= 1
            else:
                self._assign(None if event == "number" and not _is_short(value) else value)

    def result(self) -> Values | None:
        """Return the values found, or None if the line was no object."""
        found = self._found[""]
        return found if isinstance(found, dict) else None

    def _assign(self, value: Any) -> None:
        """Note a scalar, or an object or array that begins here, if the shape asks for it."""
        if len(self._open) == self._depth + 1 and self._key in self._open[-1][0]:
            shape, found = self._open[-1]
            wanted = shape[self._key]
            if isinstance(value, dict) and isinstance(wanted, Mapping):
                found[self._key] = value
                self._open.append((wanted, value))
            else:
                found[self._key] = _value(value, wanted)


def _is_short(number: object) -> bool:
    return isinstance(number, int) and abs(number) < 10**MAX_DIGITS


class _Shrinker:
    """Passes a JSON text on with its long strings and numbers cut, in pieces of bounded size.

    What it emits is valid JSON if and only if what it read was: it checks the inside of strings
    itself and keeps everything outside them but digits beyond the `_KEPT_DIGITS`th of a run.
    """

    _LONG_STRING: Final = MAX_TEXT * len(r"\ud83d\ude00")
    _STAND_IN: Final = b"x" * (MAX_TEXT + 1)
    _KEPT_DIGITS: Final = MAX_DIGITS + 1
    # Possessive, so that it never goes back: one pass, no stack. An escape counts when whole.
    _INSIDE: Final = re.compile(rb'(?:(?>[^"\\]++|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})))*+')
    _PART_OF_ESCAPE: Final = re.compile(rb"\\(?:u[0-9A-Fa-f]{0,3})?\Z")
    _DIGITS: Final = re.compile(rb"[0-9]+")
    _SURROGATE: Final = re.compile(rb"\\u[dD][89A-Fa-f]")

    def __init__(self) -> None:
        self._digits = 0  # how long the run of digits is that the last piece ended with
        self._string: bytearray | None = None  # the open string so far; None outside strings
        self._cut = False  # whether the open string is already known to be long
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, line: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the shrunk text of `line`; raise `_NotJSONError` where it cannot be JSON."""
        rest = b""
        for piece in line:
            if len(piece.translate(None, _CONTROLS)) != len(piece):
                raise _NotJSONError
            out = bytearray()
            rest = self._shrink(rest + piece, out)
            yield self._utf8.decode(out).encode()
        if rest or self._string is not None:
            raise _NotJSONError
        yield self._utf8.decode(b"", final=True).encode()

    def _shrink(self, text: bytes, out: bytearray) -> bytes:
        """Append to `out` what is left of `text`; return the end that needs more to decide."""
        position = 0
        while position < len(text):
            if self._string is None:
                quote = text.find(b'"', position)
                end = len(text) if quote < 0 else quote
                out += self._without_long_numbers(text[position:end])
                position = end
                if quote >= 0:
                    self._string, self._cut, self._digits = bytearray(), False, 0
                    position += 1
                continue
            end = self._inside(text, position)
            self._collect(text, position, end)
            position = end
            if position == len(text):
                break
            if text[position] == ord('"'):
                out += self._closed_string()
                position += 1
            elif self._PART_OF_ESCAPE.match(text, position):
                return text[position:]
            else:
                raise _NotJSONError
        return b""

    def _inside(self, text: bytes, position: int) -> int:
        """Return where what is valid inside a string ends; mostly that is at its quote."""
        quote = text.find(b'"', position)
        end = len(text) if quote < 0 else quote
        escape = text.find(b"\\", position, end)
        if escape < 0:
            return end
        inside = self._INSIDE.match(text, escape)
        return inside.end() if inside else escape

    def _collect(self, text: bytes, start: int, end: int) -> None:
        # A tab or return is fine between tokens, so the check of all bytes let it through.
        is_broken = text.find(b"\t", start, end) >= 0 or text.find(b"\r", start, end) >= 0
        if self._string is None or is_broken:
            raise _NotJSONError
        if self._cut or len(self._string) + end - start > self._LONG_STRING:
            self._cut = True
        else:
            self._string += text[start:end]

    def _closed_string(self) -> bytes:
        string, self._string = bytes(self._string or b""), None
        token = b'"%b"' % (self._STAND_IN if self._cut else string)
        if not self._cut and self._SURROGATE.search(token):
            # ijson fails on a lone surrogate, which JSON.parse allows: write out what it means.
            text: str = json.loads(token.decode("utf-8", "replace"))
            token = json.dumps(text.encode("utf-8", "replace").decode()).encode()
        return token

    def _without_long_numbers(self, text: bytes) -> bytes:
        if not text:
            return text
        carried, self._digits = self._digits, 0

        def cut(run: re.Match[bytes]) -> bytes:
            before = carried if run.start() == 0 else 0
            if run.end() == len(text):
                self._digits = before + len(run[0])
            return run[0][: max(0, self._KEPT_DIGITS - before)]

        return self._DIGITS.sub(cut, text)


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
