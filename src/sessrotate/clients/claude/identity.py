r"""A row's own `uuid` and `type`, told without parsing the row.

Rule: what is told of a line that is JSON is what `json.loads` says of it; else it is in doubt. Of
a key that an object has twice the last one counts. It can be told because of what JSON is:

* Brackets and strings are followed without looking into them: that is three times as fast as
  parsing, and finds any row's own key (`Key.own`). Of a line that a crash left (torn, two in one,
  zeros in it) nothing is told: a string stays open, or a bracket. One that is no JSON for what is
  in a string, or for a comma too many, is taken for a row.
* Where a text quotes JSON, its quotes are escaped: the bytes `,"type":"` are a key, at some depth.
  If what follows reads as members, brackets balanced, up to the brace that ends the line, the key
  is the outermost object's (`ends`). This finds it behind a nested message without reading that,
  and before what a client rendered of an attachment. What the line is before that is not seen.
* A flat beginning of an object can be followed key by key (`Key.first`). If the object had the
  key once more, further on, that one would count; no client writes that.

A value that is told is plain ASCII and short; of any other, and of brackets more than a few deep,
nothing is told. Neither is of a line with spaces between its tokens, which no client writes.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cached_property, lru_cache
from typing import Final


class Doubt(Enum):
    """What cannot be told without parsing."""

    DOUBT = "in doubt"


DOUBT: Final = Doubt.DOUBT

_LONGEST: Final = 128
_DEPTH: Final = 12

# All repeats are possessive: they never go back, so they need no stack and one pass. No group is
# captured in one, which Python 3.11 could not do from the start.
#
# A quote with one backslash before it, or three, is inside the string, one with none or two ends
# it, and of more nothing is told: so the strings are run through by their quotes alone.
STRING: Final = rb'"[^"]*+(?:(?:(?<=[^\\]\\)|(?<=[^\\]\\\\\\))"[^"]*+)*+(?:(?<!\\)|(?<=[^\\]\\\\))"'
_NUMBER: Final = rb"-?+[0-9]++(?:\.[0-9]++)?+(?:[eE][-+]?+[0-9]++)?+"
_SCALAR: Final = rb"(?:%b|%b|true|false|null)" % (STRING, _NUMBER)
COMMA: Final = rb"(?:,|(?<=\{))"  # the first member follows a brace instead
_VALUE: Final = rb'"([ !#-\[\]-~]{0,%d}+)"' % _LONGEST


def _nested(depth: int) -> bytes:
    """Return what matches the inside of brackets, so many deep."""
    value = rb"(?:%b%b)" % (_SCALAR, rb"|[\[{]%b[\]}]" % _nested(depth - 1) if depth else b"")
    return rb"(?:%b(?:[,:]|(?=[\]}])))*+" % value


def _but(*names: bytes) -> bytes:
    """Return what matches where none of these names follows, however it is spelled."""
    # `"u` may be written `"\u0075`; no letter of a name here has a hexadecimal letter in that.
    spelled = (
        b"".join(rb"(?:%c|\\u00%02x)" % (letter, letter) for letter in name) for name in names
    )
    return rb'(?!"(?:%b)")' % b"|".join(spelled)


def members(depth: int, *names: bytes) -> bytes:
    """Return what matches members with other names, and brackets so many deep in them.

    Pieces of an expression that follows a row are made of it, `STRING` and `COMMA`.
    """
    # Mostly it is a text, and its name has no escapes: that is twice as fast.
    usual = rb',"(?!(?:%b)")[^"\\]*+":"[^"]*+(?<!\\)"' % b"|".join(names)
    value = rb"(?:%b|[\[{]%b[\]}])" % (_SCALAR, _nested(depth - 1))
    return rb"(?:%b|%b%b%b:%b)*+" % (usual, COMMA, _but(*names), STRING, value)


class Key:
    """A key of rows, and how to tell its value."""

    def __init__(self, name: bytes) -> None:
        self._name: Final = name
        self.quoted: Final = b'"%b"' % name
        self._member: Final = rb'"%b":%b' % (name, _VALUE)

    # Compiled when they are wanted: that takes milliseconds.

    @cached_property
    def _own(self) -> re.Pattern[bytes]:
        others = members(_DEPTH, self._name)
        member = rb"(?:%b%b%b)?" % (COMMA, self._member, others)
        return re.compile(rb"\{%b%b\}" % (others, member))

    @cached_property
    def _first(self) -> re.Pattern[bytes]:
        others = rb'(?:"(?!%b")[^"\\]*+":%b,)*+' % (self._name, _SCALAR)
        return re.compile(rb"\{%b%b" % (others, self._member))

    def own(self, line: bytes) -> bytes | Doubt | None:
        """Return the row's own value, None if it has no such key, DOUBT if only a parser knows."""
        found = self._own.fullmatch(line)
        if found is None or b"\0" in line:  # what a crash of the system leaves in a file
            return DOUBT
        return found[1]

    def first(self, buffer: bytes | bytearray, at: int, to: int) -> bytes | None:
        """Return the first own value of the object that begins at `at`, None if in doubt."""
        found = self._first.match(buffer, at, to)
        return found[1] if found is not None else None


UUID: Final = Key(b"uuid")
TYPE: Final = Key(b"type")


@lru_cache(maxsize=1)
def _ends() -> re.Pattern[bytes]:
    others = members(2, b"type", b"uuid")
    return re.compile(rb',"type":%b(?:,"uuid":%b)?%b\}' % (_VALUE, _VALUE, others))


def ends(buffer: bytes | bytearray, at: int, to: int) -> tuple[bytes | None, bytes | None]:
    """Return the own `type` of the row within [at, to) and the `uuid` next to it, by its end.

    Each is None if that is in doubt. Both stand together at the end of what the model said
    (2.0.28 to 2.1.330).
    """
    begins = buffer.rfind(b',"type":"', at, to)
    found = _ends().fullmatch(buffer, begins, to) if begins >= 0 else None
    if found is None:
        return None, None
    kind, uuid = found.groups()
    return kind, uuid
