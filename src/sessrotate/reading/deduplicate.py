"""The records of a session, each once, and each prompt that waited in its client's queue.

Rule: a row is identified by the key that its client's reader gives (a uuid), and any other line by
its bytes. The first copy stays. Copies are rows that a resumed clone repeats from its parent, and
rows that a second compaction in one process appends again (Claude Code 2.1.112 to 2.1.300, mostly
with other bytes: `slug`, `promptId`). A line that is not a row is left out only if an equal line
came before, so a torn row never replaces a whole one.

Memory grows by about 20 bytes a record: 7 MiB for the 180,000 rows of an ordinary gigabyte, 44 for
two million, some 100 for five. That is less than the file takes. To mistake one of so many for
another is less likely than 1 in 10**15.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import xxhash
from msgspec import Struct
from msgspec.structs import replace

from sessrotate.clients.view import Text, View, asked
from sessrotate.system.digest import Numbering

if TYPE_CHECKING:
    from sessrotate.parsing import Record
    from sessrotate.reading import Viewed

MOST_HELD: Final = 4 * 1024 * 1024
"""Bytes of records that are held to know whether a prompt that waited is said by one of them.
Clients look into their queue behind the results of tools, and at the end of a turn."""

T = TypeVar("T")

_KEPT: Final = 12
"""Bytes of a digest that tell records apart: 96 bits."""


Seen = Numbering
"""The records that came, each by its digest."""


class Copies(Struct):
    """How many copies of records were left out."""

    left_out: int = 0


def once(
    records: Iterable[Record],
    key: Callable[[Record], bytes | None],
    bytes_of: Callable[[Record], Iterator[bytes]] | None = None,
    copies: Copies | None = None,
    seen: Seen | None = None,
) -> Iterator[Record]:
    """Yield each record the first time it comes; count the others in `copies`.

    `key` is that of the client's reader: what makes two records copies of one, if not their bytes.
    `bytes_of` gives all bytes of a record that is too long to be held; without it, such a record
    is known by its beginning and its size. `seen` are the records of other sessions.
    """
    known = Known(bytes_of, copies, seen)
    return (record for record in records if known.is_new(record, key(record)))


def nothing_seen() -> Seen:
    """Return what records are known by, of one session or of several that share it: none yet."""
    return Seen(_KEPT)


class Known:
    """The records that there were; `bytes_of` and `copies` are as for `once`.

    With `seen`, those of other sessions too.
    """

    def __init__(
        self,
        bytes_of: Callable[[Record], Iterator[bytes]] | None = None,
        copies: Copies | None = None,
        seen: Seen | None = None,
    ) -> None:
        self._seen: Final = nothing_seen() if seen is None else seen
        self._bytes_of: Final = bytes_of
        self._copies: Final = Copies() if copies is None else copies

    def is_new(self, record: Record, key: bytes | None) -> bool:
        """Note a record, and tell whether it is the first of its kind; `key` is its own."""
        return self.is_new_line(self.digest(record), key)

    def digest(self, record: Record) -> bytes:
        """Return the digest of a record's line: XXH3, 128 bits."""
        return digest(record, self._bytes_of)

    def is_new_line(self, line: bytes, key: bytes | None) -> bool:
        """Do as `is_new` does, with the digest of the line, which one with a key does not need."""
        next_one = self._seen.count
        is_new = self._seen.number(known_by(line, key)) == next_one
        self._copies.left_out += not is_new
        return is_new


def digest(record: Record, bytes_of: Callable[[Record], Iterator[bytes]] | None = None) -> bytes:
    """Return the digest of a record's line: XXH3, 128 bits. `bytes_of` is as for `once`."""
    if record.is_whole:
        return xxhash.xxh3_128_digest(record.line)
    found = xxhash.xxh3_128(b"" if bytes_of else b"%d " % record.size)
    for piece in bytes_of(record) if bytes_of else (record.line,):
        found.update(piece)
    return found.digest()


def known_by(line: bytes, key: bytes | None) -> bytes:
    """Return what a record is known by: its key, or the digest of its line."""
    # Another seed, or a line that is just some row's key would pass for that row.
    return xxhash.xxh3_128_digest(key, 1) if key else line


# ── prompts that waited ──────────────────────────────────────────────────────────────────────


Asks = Literal["queued", "said", "taken back"] | None
"""What becomes of a prompt by a record: it waits in the client's queue, or is said, or all that
waited is taken back."""


def asks(view: View | None) -> Asks:
    """Return what becomes of a prompt by a record."""
    if view is None or view.queue is None:
        return None if view is None or asked(view) is None else "said"
    return "queued" if view.queue == "in" else "taken back"


def delivered_once(items: Iterable[Viewed]) -> Iterator[Viewed]:
    """Yield the same; what waited in the client's queue and was never delivered, as a prompt.

    No other record says it. What was delivered, or taken back, stands there without its words.
    """

    def told(item: Viewed) -> tuple[Asks, str]:
        view = item[1]
        if view is None or (becomes := asks(view)) is None:
            return None, ""
        return becomes, asked(view) or _words(view)

    for (record, view), is_over in waiting(items, told, lambda item: len(item[0].line)):
        if view is not None and is_over is not None:
            view = replace(view, blocks=()) if is_over else replace(view, kind="user")  # noqa: PLW2901
        yield record, view
        del record, view  # before the next one is read: each may have megabytes


def waiting(
    items: Iterable[T], told: Callable[[T], tuple[Asks, str]], size: Callable[[T], int]
) -> Iterator[tuple[T, bool | None]]:
    """Yield each item, and of one that is queued, whether its words are said or taken back later.

    `told` returns what becomes of a prompt by an item, and the words. To know, the items behind it
    are held, but of their `size` no more than `MOST_HELD`: then it is as if nothing came.
    """
    held = deque[T]()
    queued: dict[int, str] = {}  # the words that wait, by the number of the item
    over = set[int]()
    first = taken = 0  # the number of the first that is held, and the size of all
    for number, item in enumerate(items):
        becomes, words = told(item)
        if becomes == "queued":
            queued[number] = words
        elif becomes is not None and queued:
            lines = f"\n{words.removeprefix('!')}\n"
            over |= {n for n, each in queued.items() if f"\n{each}\n" in lines}
            over |= queued.keys() if becomes == "taken back" else set()
            queued = {n: each for n, each in queued.items() if n not in over}
        held.append(item)
        taken += size(item)
        del item  # before the next one is read
        while held and (first not in queued or taken > MOST_HELD):
            taken -= size(held[0])
            waited = first in over or first in queued
            yield held.popleft(), first in over if waited else None
            queued.pop(first, None)
            over.discard(first)
            first += 1
    for number, item in enumerate(held, first):
        yield item, number in over if number in over or number in queued else None


def _words(view: View) -> str:
    return "\n".join(block.text for block in view.blocks if isinstance(block, Text)).strip()
