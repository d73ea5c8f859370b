"""Fingerprints of runs of bytes, named with their algorithm; how many lines; tables of digests.

Rule: a digest detects damage, not an attacker. xxh3-128 runs at the speed of memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import xxhash

_PREFIX: Final = "xxh3_128:"
ZERO: Final = _PREFIX + "0" * 32
"""A digest's length, for a place that is filled in later."""

_DENSE: Final = 1024
"""Bytes of a line on the average below which counting byte by byte is faster than jumping."""


class Fingerprint:
    """Takes bytes in order; knows their digest."""

    def __init__(self) -> None:
        self._hash = xxhash.xxh3_128()

    def update(self, data: bytes | memoryview) -> None:
        """Take these bytes."""
        self._hash.update(data)

    @property
    def digest(self) -> str:
        """The digest so far, with its algorithm's name."""
        return _PREFIX + self._hash.hexdigest()


class Tally:
    """Takes bytes in order; knows their digest, how many they are and how many lines."""

    def __init__(self) -> None:
        self._fingerprint = Fingerprint()
        self._newlines = 0
        self._ends_line = True
        self.size = 0

    def update(self, buffer: bytes | bytearray, end: int, start: int = 0) -> None:
        """Take the bytes from `start` up to `end` of `buffer`."""
        if start < end:
            with memoryview(buffer) as view:
                self._fingerprint.update(view[start:end])
            self._newlines += newlines(buffer, start, end)
            self._ends_line = buffer[end - 1] == ord("\n")
            self.size += end - start

    @property
    def digest(self) -> str:
        """The digest so far, with its algorithm's name."""
        return self._fingerprint.digest

    @property
    def lines(self) -> int:
        """How many lines there are, with a last one that has no newline."""
        return self._newlines + (not self._ends_line)


def newlines(buffer: bytes | bytearray, start: int, end: int) -> int:
    """Return how many newlines there are from `start` up to `end` of `buffer`."""
    # Lines are long, and `find` jumps from one to the next with memchr: five times as fast as
    # `count`, which looks at every byte. Where lines are short it is the other way round.
    at, jumps = start - 1, (end - start) // _DENSE
    for found in range(jumps):
        at = buffer.find(b"\n", at + 1, end)
        if at < 0:
            return found
    return jumps + buffer.count(b"\n", at + 1, end)


# ── tables ────────────────────────────────────────────────────────────────────────────────────────

_NUMBER: Final = 4
"""Bytes of a number in a table."""


class Numbering:
    """Digests → numbers from 0 on, in little memory: 2 bytes more than are kept of each digest.

    A dict takes 200. Of a digest the first `size` bytes count.
    """

    def __init__(self, size: int) -> None:
        # By the first two bytes of the digest: with millions of them some hundred in each bucket,
        # which are searched faster than a dict of that many would take memory.
        self.buckets = [b""] * 65536
        self.count = 0
        """The number of the next digest that is new."""
        self._size: Final = size
        self._rest: Final = size - 2
        self._entry: Final = size - 2 + _NUMBER

    def number(self, digest: bytes) -> int:
        """Return the number of this digest, the next one if it is new."""
        place, at = self._find(digest)
        if at >= 0:
            return self._number(self.buckets[place], at)
        self.buckets[place] += digest[2 : self._size] + self.count.to_bytes(_NUMBER, "big")
        self.count += 1
        return self.count - 1

    def find(self, digest: bytes) -> int | None:
        """Return the number of this digest, None if it has none."""
        place, at = self._find(digest)
        return None if at < 0 else self._number(self.buckets[place], at)

    def forget(self, digest: bytes) -> None:
        """Have this digest be new again, if it is there; its number is not given again."""
        place, at = self._find(digest)
        if at >= 0:
            bucket = self.buckets[place]
            self.buckets[place] = bucket[:at] + bucket[at + self._entry :]

    def copy(self) -> Numbering:
        """Return the same, which what comes to this one does not change."""
        found = Numbering(self._size)
        found.buckets, found.count = self.buckets.copy(), self.count
        return found

    def digests(self) -> Iterator[tuple[int, bytes]]:
        """Yield each number, and what is kept of its digest."""
        for place, bucket in enumerate(self.buckets):
            for at in range(0, len(bucket), self._entry):
                digest = place.to_bytes(2, "big") + bucket[at : at + self._rest]
                yield self._number(bucket, at), digest

    def _find(self, digest: bytes) -> tuple[int, int]:
        """Return the bucket of this digest, and where it stands there, -1 if nowhere."""
        place, rest = digest[0] << 8 | digest[1], digest[2 : self._size]
        bucket = self.buckets[place]
        at = bucket.find(rest)
        while at > 0 and at % self._entry:  # the end of one entry and the beginning of the next
            at = bucket.find(rest, at + 1)
        return place, at

    def _number(self, bucket: bytes, at: int) -> int:
        return int.from_bytes(bucket[at + self._rest : at + self._entry], "big")
