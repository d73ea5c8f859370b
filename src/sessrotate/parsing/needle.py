"""A search for a few bytes in many, at the speed of the machine's memory.

Rule: `Finder.find` gives the result of `bytes.find`, only faster. Where the C library has `memmem`
(glibc, musl, macOS) that is called: it is twice as fast and runs without the interpreter's lock, so
that two threads search twice as much; elsewhere `bytearray.find` does the same.
docs/internals/performance.md has the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    Memmem = Callable[[int, int, bytes, int], int | None]


class Finder:
    """A buffer of fixed size and a search in it; one thread at a time.

    `view` is for filling the buffer, which cannot be resized while the finder lives, so that the
    address handed to the C library stays valid.
    """

    def __init__(self, size: int, *, memmem: Memmem | None) -> None:
        self.buffer: Final = bytearray(size)
        self._memmem: Final = memmem
        self.view: Final = memoryview(self.buffer)
        self._address = 0
        if memmem is not None:
            from ctypes import addressof, c_char  # noqa: PLC0415 - 4 ms at start-up

            self._address = addressof(c_char.from_buffer(self.buffer))

    def find(self, needle: bytes, start: int, end: int) -> int:
        """Return where `needle` first lies within [start, end) of the buffer, or -1."""
        end = min(end, len(self.buffer))
        if self._memmem is None:
            return self.buffer.find(needle, start, end)
        if start >= end:
            return -1
        found = self._memmem(self._address + start, end - start, needle, len(needle))
        return -1 if found is None else found - self._address


@lru_cache(maxsize=1)
def memmem() -> Memmem | None:
    """Return the C library's `memmem`, or None where it has none (Windows)."""
    import ctypes  # noqa: PLC0415 - 4 ms at start-up, wanted only for large files

    try:
        function = ctypes.CDLL(None).memmem
    except (AttributeError, OSError, TypeError):  # no such symbol; no such library (Windows)
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    result: Memmem = function
    return result
