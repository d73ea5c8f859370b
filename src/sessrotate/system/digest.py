"""The fingerprint of a run of bytes, named with its algorithm, and the count of its lines.

Rule: a digest detects damage, not an attacker. xxh3-128 runs at the speed of memory.
"""

from __future__ import annotations

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
