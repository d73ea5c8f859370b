"""What of a rollout stands a second time in it: pictures, what a compaction wrote again, a parent.

Rule: what is not surely a copy is unique, and each byte counts once: for the parent, else as a
picture, else for the history. Nothing of a line is kept but digests, and a line of any length is
read in pieces. Pictures are taken out of it on the way, and their digests put in their place: what
is left of hundreds of megabytes is short, and an item is known by its text and by its pictures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import msgspec
import xxhash

from sessrotate.clients.codex.rows import EventMsg, Meta, Row, SessionMeta, TurnContext, row_of
from sessrotate.parsing import Record
from sessrotate.parsing.json_stream import BUFFER, Cursor, Value
from sessrotate.parsing.json_typed import DECLINED

if TYPE_CHECKING:
    from sessrotate.clients.view import Copied, Copy

    IsNew = Callable[[bytes], bool]
    """Notes a digest of 16 bytes, and tells whether it is the first of its kind."""

_ITEM: Final = 2
_PICTURE: Final = 3
"""Seeds of digests: an item is no copy of a line, nor of a picture, that has the same bytes."""


def copied(is_new: IsNew, bytes_of: Callable[[Record], Iterator[bytes]]) -> Copied:
    """Return what tells how much of a row is copied, as `protocol.Copying` says."""
    parent = _Parent()

    def told(record: Record) -> dict[Copy, int]:
        found: dict[Copy, int] = {}
        if not record.is_whole or not _is_noted(record.line, is_new):
            pictures = _Pictures(is_new)
            row = Cursor(pictures.taken_out(_pieces(record, bytes_of)))
            found["history"] = _in_row(row, is_new)
            row.rest()  # of what is no row, too, each picture is noted
            found["pictures"] = pictures.copied
        return {"parent": record.size + record.is_ended} if parent.wrote(record) else found

    return told


def _pieces(record: Record, bytes_of: Callable[[Record], Iterator[bytes]]) -> Iterator[bytes]:
    """Yield a row in pieces that are short: each is copied several times."""
    for piece in bytes_of(record):
        yield from (piece[at : at + BUFFER] for at in range(0, len(piece), BUFFER))


# ── lines of a parent ────────────────────────────────────────────────────────────────────────

_BY_TIME: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7")
"""How the ids of sessions and turns begin: they are in the order of time (UUID, version 7)."""


class _Parent:
    """Which rows are those of the session that this one was forked from, with new times.

    A fork up to 0.145, and an agent of any version that was given the conversation, begins with its
    own `session_meta`, the parent's, and the parent's rows (0.142.5, 0.169). How many there are is
    said by the client (0.169); before, they end at the first turn that is not older than the fork.
    """

    def __init__(self) -> None:
        self._meta = Meta()
        self._number = -1
        self._is_over = False

    def wrote(self, record: Record) -> bool:
        """Tell whether a row is the parent's; each is asked about once, in order."""
        self._number += 1
        if self._is_over:
            return False
        row = row_of(record)
        if not self._number:
            self._meta = row.payload if isinstance(row, SessionMeta) else self._meta
            self._is_over = self._meta.forked_from_id is None
            return False
        self._is_over = self._ends(row)
        return not self._is_over

    def _ends(self, row: Row | None) -> bool:
        """Tell whether a row is the first one behind the parent's."""
        start = self._meta.subagent_history_start_ordinal
        if self._number == 1:
            return not isinstance(row, SessionMeta) or row.payload.id != self._meta.forked_from_id
        if start is not None:
            return self._number >= start
        turn = row.payload.turn_id if isinstance(row, EventMsg | TurnContext) else None
        own = self._meta.id or ""
        return turn is not None and not (
            turn < own and all(_BY_TIME.match(each) for each in (turn, own))
        )


# ── items that a compaction wrote again ──────────────────────────────────────────────────────

_ITEM_MARK: Final = b'"response_item"'
_COMPACTED_MARK: Final = b'"compacted"'
_LONGEST_KIND: Final = 64


class _Row(msgspec.Struct):
    type: Any = None
    payload: msgspec.Raw = msgspec.Raw(b"")


_row: Final = msgspec.json.Decoder(_Row).decode


def _is_noted(line: bytes, is_new: IsNew) -> bool:
    """Note the item of a row that has no more to note, as most; tell whether it is such a row.

    This is `_in_row` at a tenth of the time.
    """
    if _COMPACTED_MARK in line or _URL in line or _PNG in line:
        return False
    if _ITEM_MARK not in line:
        return True
    try:
        row = _row(line)
    except DECLINED:
        return False
    if row.type == "response_item":
        _again(Value(0, bytes(row.payload), len(row.payload)), is_new)
    return True


def _in_row(row: Cursor, is_new: IsNew) -> int:
    """Note the items of a row; return how many bytes of them a compaction wrote again."""
    kind, found = b"", 0
    for name in row.members():
        if name == "payload" and kind == _COMPACTED_MARK:
            found += _in_compaction(row, is_new, depth=2)
        elif name == "payload" and kind == _ITEM_MARK:
            _again(row.value(), is_new)
        else:
            value = row.value(keep=_LONGEST_KIND)
            kind = value.text if name == "type" else kind
    return found


def _in_compaction(payload: Cursor, is_new: IsNew, depth: int) -> int:
    """Return how many bytes of the objects in a compaction's lists stood somewhere before.

    Such lists are `replacement_history` (0.105), `guardian_history`, and those in
    `retained_context` (0.155).
    """
    found = 0
    for _ in payload.members():
        opening = payload.next()
        if opening == b"[":
            payload.skip()
            found += sum(_again(each, is_new) for each in payload.elements())
        elif opening == b"{" and depth > 1:
            found += _in_compaction(payload, is_new, depth - 1)
        else:
            payload.value(keep=0)
    return found


def _again(item: Value, is_new: IsNew) -> int:
    """Note an item; return its bytes without pictures if it stood before, else 0.

    One of which more text than is held is left is known by its beginning and its size.
    """
    if not item.is_ended or not item.text.startswith(b"{"):
        return 0
    known = xxhash.xxh3_128(item.text, seed=_ITEM)
    if len(item.text) < item.size:
        known.update(b"%d" % item.size)
    if is_new(known.digest()):
        return 0
    return item.size - item.text.count(_MARK) * _STAND_IN


# ── pictures ─────────────────────────────────────────────────────────────────────────────────

_URL: Final = b";base64,"
_PNG: Final = b'"iVBORw0KGgo'
_BEGINNINGS: Final = ((_URL, len(_URL)), (_PNG, 1))
"""What stands at the beginning of a picture, and how many bytes of that are not yet the picture: a
`data:` URL, and the PNG of a tool or of an `image_generation_call`, which has no URL."""

_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]{64}")
_AHEAD: Final = 80
"""Bytes within which a picture is told from words about one: its beginning, and 64 of base64."""

_MARK: Final = b"\n"
_STAND_IN: Final = 33
"""Bytes that stand for a picture: a mark, which no line has in it, and the picture's digest."""


class _Pictures:
    """Takes the pictures out of a row, and counts the bytes of those that stood before."""

    def __init__(self, is_new: IsNew) -> None:
        self.copied = 0
        self._is_new = is_new

    def taken_out(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield a row with something short in the place of each picture. Memory is a piece's."""
        rest, picture, size = b"", None, 0
        for piece in chain(pieces, (None,)):
            text = rest if piece is None else rest + piece
            rest, at, left = b"", 0, bytearray()
            begins = _Beginnings(text, len(text) if piece is None else max(0, len(text) - _AHEAD))
            while at < len(text):
                if picture is None:
                    start = begins.next(at)
                    if start is None:
                        end = max(at, begins.end)
                        left += text[at:end]
                        rest = text[end:]
                        break
                    left += text[at:start]
                    at, picture, size = start, xxhash.xxh3_128(seed=_PICTURE), 0
                end = _end(text, at)
                picture.update(memoryview(text)[at:end])
                size, at = size + end - at, end
                if end < len(text):
                    self.copied += 0 if self._is_new(picture.digest()) else size
                    left += _MARK + picture.hexdigest().encode()
                    picture = None
            yield bytes(left)


class _Beginnings:
    """Where pictures begin in a text: at `end` of it or behind, nobody can tell yet."""

    def __init__(self, text: bytes, end: int) -> None:
        self.end = end
        self._text = text
        self._next = [-1] * len(_BEGINNINGS)  # each is looked for once, however many the other has

    def next(self, at: int) -> int | None:
        """Return where the first picture behind `at` begins, None if none does."""
        while True:
            for number, (words, _) in enumerate(_BEGINNINGS):
                if self._next[number] < at:
                    found = self._text.find(words, at)
                    self._next[number] = len(self._text) if found < 0 else found
            first = min(self._next)
            if first >= self.end:
                return None
            start = first + _BEGINNINGS[self._next.index(first)][1]
            if _BASE64.match(self._text, start):
                return start
            at = first + 1


def _end(text: bytes, at: int) -> int:
    """Return where a picture ends: at the quote, or at the backslash before it in JSON in JSON."""
    quote = text.find(b'"', at)
    quote = len(text) if quote < 0 else quote
    escape = text.find(b"\\", at, quote)
    return quote if escape < 0 else escape
