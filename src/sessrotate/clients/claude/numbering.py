"""Names → numbers from 0 on, in little memory: some 12 bytes a name, where a dict takes 200. Pure.

Rule: a name is known by 64 bits of its digest. To take one of two million for another is less
likely than 1 in a million.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from xxhash import xxh3_64_digest

_REST: Final = 7
_SIZE: Final = _REST + 4
"""Bytes kept of a name: its digest without the first byte, and its number."""


def digest(name: str) -> bytes:
    """Return what a name is known by."""
    return xxh3_64_digest(name.encode("utf-8", "surrogatepass"))


class Numbering:
    """Numbers for names."""

    def __init__(self) -> None:
        # By twelve bits of the digest; the rest has four of them again, as entries are whole bytes.
        self._buckets: Final = [b""] * 4096
        self._count = 0

    def number(self, known_by: bytes) -> int:
        """Return the number of the name with this digest, the next one if it is new."""
        found = self.find(known_by)
        if found is None:
            place = known_by[0] << 4 | known_by[1] >> 4
            self._buckets[place] += known_by[1:] + self._count.to_bytes(4, "big")
            found = self._count
            self._count += 1
        return found

    def find(self, known_by: bytes) -> int | None:
        """Return the number of the name with this digest, None if it has none."""
        bucket, rest = self._buckets[known_by[0] << 4 | known_by[1] >> 4], known_by[1:]
        at = bucket.find(rest)
        while at >= 0:
            if at % _SIZE == 0:
                return int.from_bytes(bucket[at + _REST : at + _SIZE], "big")
            at = bucket.find(rest, at + 1)
        return None

    def digests(self) -> Iterator[tuple[int, bytes]]:
        """Yield each number, and the digest of its name."""
        for place, bucket in enumerate(self._buckets):
            first = (place >> 4).to_bytes(1, "big")
            for at in range(0, len(bucket), _SIZE):
                number = int.from_bytes(bucket[at + _REST : at + _SIZE], "big")
                yield number, first + bucket[at : at + _REST]
