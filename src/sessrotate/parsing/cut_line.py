"""The top-level members of a line of which only the beginning, or only the end, is in sight.

Promise: what is returned are members of the line's own object, never of an object in it; there may
be more of them. Pure.

Rule: only scalars count, and only as far as no object or list comes between them and the end that
is in sight. Where the line is no JSON, nothing is promised.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

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


def beginning(data: bytes) -> dict[str, Any]:
    """Return the members that a line begins with, as far as they are scalars."""
    opened = _BEGIN.match(data)
    found: dict[str, Any] = {}
    at = opened.end() if opened is not None else len(data)
    while (member := _MEMBER.match(data, at)) is not None:
        found |= _decoded(member[1], member[2])
        at = member.end()
    return found


def end(data: bytes, names: tuple[str, ...]) -> dict[str, Any]:
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
