r"""The gist of a Claude Code row and its uuid, told without parsing the row.

Rule: what is told of a line that is JSON is what `kinds.of_view` says of its view and `json.loads`
of its uuid; else nothing is told, and somebody has to parse it. A line is taken for what it says
only where it has the shape that clients write (2.0.28 to 2.1.330): a message of one text or one
block, keys in their order. Everything odd is in doubt: several blocks, pictures in results, a key
twice or spelled with escapes, a torn line. There are two ways, both with what `claude_glance` says:

* A message is followed to the end of its content. Its usage, or what the client noted of a tool's
  result, is passed over, which are half of the bytes (`_passed_over`).
* Any other row, and a message of another shape, is followed as a whole.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from sessrotate.clients import kinds
from sessrotate.clients.claude.identity import COMMA, STRING, members
from sessrotate.clients.claude.view import KINDS
from sessrotate.clients.kinds import Gist

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessrotate.clients.kinds import Kind
    from sessrotate.clients.view import Kind as Speaker

_DEPTH: Final = 10
"""How many brackets deep values are followed."""

_OF_BLOCK: Final[dict[bytes, Kind]] = {
    b"tool_use": "tool calls",
    b"server_tool_use": "tool calls",
    b"tool_result": "tool results",
    b"thinking": "thinking",
    b"redacted_thinking": "thinking",
    b"image": "images",
    b"document": "images",
}
"""Kinds of blocks by their type; that of a text is the speaker's."""


_UUID: Final = 12
"""Which group of `_row` that is."""

_OWN: Final = (b"type", b"subtype", b"message", b"uuid", b"timestamp")
"""A row's keys that are asked for."""

_MODELS: Final = b',"type":"assistant","uuid":"'
_LAST: Final = b',"sessionId":"'
_TYPE: Final = b'"type":"'
_SAID: Final = b'"message":'
_PICTURE: Final = b'"type":"base64"'


def gist(data: bytes, begin: int, to: int, *, is_whole: bool) -> tuple[Gist, bytes | None] | None:
    """Return the gist of the row at [begin, to) and its uuid, if it has one; None if in doubt.

    Of a line that is too long to be held the beginning decides: its first block, or a picture
    that begins there.
    """
    if not is_whole:
        return Gist(_of_beginning(data[begin:to])), None
    if data.find(b"\0", begin, to) >= 0:  # what a crash of the system leaves in a file
        return None
    return _passed_over(data, begin, to) or _followed(data, begin, to)


def _passed_over(data: bytes, begin: int, to: int) -> tuple[Gist, bytes | None] | None:
    """Return what a message says; None if it has not the usual shape.

    What is passed over holds no other row, whatever a crash left: the model's rows, of which the
    end is taken here, have a message, and all have a type. The own members at the end prove that
    the row is whole. If a key came once more in what is passed over, that one would count; no
    client writes that.
    """
    begun = _message().match(data, begin, to)
    if begun is None:
        return None
    users, *content = begun.groups()
    at = begun.end()
    if users is not None:
        said = _users().match(data, at, to)
    else:
        behind = data.rfind(_MODELS, at, to)
        if behind < 0 or data.find(_SAID, at, behind) >= 0:
            return None
        said = _models().match(data, behind, to)
    if said is None:
        return None
    at = said.end()
    last = data.rfind(_LAST, at, to)
    if last < 0 or data.find(_TYPE, at, last) >= 0 or not _is_end(data[last:to]):
        return None
    uuid, time = said.groups()
    speaker: Speaker = "user" if users is not None else "assistant"
    return _of_message(speaker, time.decode(), content), uuid


def _followed(data: bytes, begin: int, to: int) -> tuple[Gist, bytes | None] | None:
    """Return what a row says of which all was followed; None if it is in doubt.

    It is if it has no type, or a key twice. An empty text is a value, too.
    """
    found = _row().fullmatch(data, begin, to)
    if found is None:
        return None
    before, subtype, message, *content, behind, early, uuid, late = found.groups()
    word = _only(before, behind)
    time = _only(early, late)
    if word is None or (time is None and early is not None):
        return None
    when = None if time is None else time.decode()
    speaker = KINDS.get(word.decode(), "other")
    if speaker not in kinds.SAID:
        return Gist(kinds.of_note(speaker, (subtype or word).decode()), when), uuid
    return None if message is None else (_of_message(speaker, when, content), uuid)


def _of_message(speaker: Speaker, when: str | None, content: Sequence[bytes | None]) -> Gist:
    """Return the gist of a message by what `_content` found in it."""
    of, of2, seen, call, name, block, image = content
    if (result := of if of is not None else of2) is not None:
        return Gist("tool results" if seen is None else "images", when, (), result.decode())
    if call is not None and name is not None:
        return Gist("tool calls", when, ((call.decode(), name.decode()),))
    return Gist(_OF_BLOCK.get(block or image or b"", kinds.SAID[speaker]), when)


def _only(one: bytes | None, other: bytes | None) -> bytes | None:
    """Return which of two there is, None if it is neither or both."""
    if one is None:
        return other
    return one if other is None else None


def _of_beginning(line: bytes) -> Kind:
    found = _begun().match(line)
    if found is None:
        return "unknown"
    word, message, block, attachment = found.groups()
    speaker = KINDS.get((word or b"").decode(), "other")
    if attachment is not None:
        return "attachments"
    if message is None:
        return kinds.of_note(speaker, (word or b"").decode())
    if _PICTURE in line:
        return "images"
    said = kinds.SAID.get("assistant" if word is None else speaker, "unknown")
    return said if block in {None, b"text"} else _OF_BLOCK.get(block, "unknown")


_VALUE: Final = rb'"([ !#-\[\]-~]{0,128}+)"'


def _member(name: bytes, value: bytes) -> bytes:
    return rb'%b"%b":%b' % (COMMA, name, value)


def _any(*parts: bytes) -> bytes:
    return b"(?:%b)" % b"|".join(parts)


def _content() -> bytes:
    """Return what matches a message's content of which the kind is certain."""
    plain = rb'\{"type":"(text|thinking|redacted_thinking)"%b\}' % members(2, b"type")
    image = rb'\{"type":"(image|document)","source":\{%b\}%b\}' % (
        members(1),
        members(2, b"type", b"source"),
    )
    call = rb'\{"type":"(?:server_)?tool_use","id":%b,"name":%b%b\}' % (
        _VALUE,
        _VALUE,
        members(_DEPTH, b"type", b"id", b"name"),
    )
    text = rb'\{"type":"text","text":%b\}' % STRING
    texts = rb"\[(?:%b(?:,|(?=\])))*+\]" % text
    picture = (
        rb'(\[)\{"type":"image","source":\{"type":"base64","media_type":"[^"\\]*+","data":"'
        rb'[^"\\]++"\}\}\]'
    )
    result = rb"\{%b(?:%b)?%b\}" % (
        _any(
            rb'"tool_use_id":%b,"type":"tool_result"' % _VALUE,
            rb'"type":"tool_result","tool_use_id":%b' % _VALUE,
        ),
        _member(b"content", _any(STRING, picture, texts)),
        members(2, b"type", b"tool_use_id", b"content"),
    )
    return _any(STRING, rb"\[%b\]" % _any(result, call, plain, image))


@lru_cache(maxsize=1)
def _message() -> re.Pattern[bytes]:
    """Return what matches a row to the end of its message's content, if its type is where it is."""
    others = members(1, *_OWN)
    return re.compile(
        rb'\{%b(?:%b"type":"(user)"%b)?%b"message":\{%b%b'
        % (
            others,
            COMMA,
            others,
            COMMA,
            members(1, b"content"),
            _member(b"content", _content()),
        )
    )


@lru_cache(maxsize=1)
def _users() -> re.Pattern[bytes]:
    """Return what matches from there to where the result begins that the client noted."""
    others = members(2, *_OWN)
    return re.compile(
        rb'%b\}%b,"uuid":%b%b,"timestamp":%b(?=,)(?:,"toolUseResult":\{"type":"text")?'
        % (members(2, b"content"), others, _VALUE, others, _VALUE)
    )


@lru_cache(maxsize=1)
def _models() -> re.Pattern[bytes]:
    """Return what matches the members that follow the model's message, from `_MODELS` on."""
    return re.compile(rb',"type":"assistant","uuid":%b,"timestamp":%b(?=,)' % (_VALUE, _VALUE))


@lru_cache(maxsize=256)
def _is_end(end: bytes) -> bool:
    """Tell whether a row may end so, from `_LAST` on: most rows of a session end alike."""
    return _end().fullmatch(end) is not None


@lru_cache(maxsize=1)
def _end() -> re.Pattern[bytes]:
    return re.compile(rb',"sessionId":%b%b\}' % (STRING, members(2, *_OWN)))


@lru_cache(maxsize=1)
def _row() -> re.Pattern[bytes]:
    """Return what matches rows of the usual shape; compiled when it is wanted."""
    others = members(_DEPTH, *_OWN)
    inner = members(3, b"content")
    message = _member(
        b"message", rb"\{%b(%b)%b\}" % (inner, _member(b"content", _content()), inner)
    )
    # The model's rows have their type behind the message, all others before it; clients (2.1.80)
    # write the time of a system row before its uuid.
    optional = [
        _member(b"type", _VALUE),
        _member(b"subtype", _VALUE),
        message,
        _member(b"type", _VALUE),
        _member(b"timestamp", _VALUE),
        _member(b"uuid", _VALUE),
        _member(b"timestamp", _VALUE),
    ]
    return re.compile(
        rb"\{%b%b\}" % (others, b"".join(b"(?:%b%b)?" % (each, others) for each in optional))
    )


@lru_cache(maxsize=1)
def _begun() -> re.Pattern[bytes]:
    """Return what matches the beginning of a row, up to where its first block says its type."""
    block = rb'\[\{(?:"tool_use_id":%b,)?"type":%b' % (_VALUE.replace(b"(", b"(?:"), _VALUE)
    message = rb'%b"message":(\{)%b%b"content":(?:"|%b)' % (
        COMMA,
        members(3, b"content"),
        COMMA,
        block,
    )
    return re.compile(
        rb'\{%b(?:%b%b)?(?:%b|%b"(attachment)":)?'
        % (
            members(_DEPTH, b"type", b"message", b"attachment"),
            _member(b"type", _VALUE),
            members(_DEPTH, b"type", b"message", b"attachment"),
            message,
            COMMA,
        )
    )
