"""Who has a file open on macOS, by a libproc that answers as sys/proc_info.h says."""

from __future__ import annotations

import os
import struct
from typing import Any, Final

from sessrotate.system import in_use

FILE: Final = (16_777_220, 1 << 40)
READS, WRITES, APPENDS = 1, 3, 2 | 8


class Libproc:
    """Processes, each with its descriptors: how it was opened, device and inode; None: a socket."""

    def __init__(self, processes: dict[int, list[tuple[int, int, int] | None]]) -> None:
        self._processes = processes

    def proc_listpids(self, kind: int, _of: int, data: Any, size: int) -> int:
        assert kind == 1
        return put(struct.pack(f"={len(self._processes)}i", *self._processes), data, size)

    def proc_pidinfo(self, pid: int, kind: int, _of: object, data: Any, size: int) -> int:
        assert kind == 1
        found = self._processes[pid]
        entries = [
            struct.pack("=iI", fd, 2 if told is None else 1) for fd, told in enumerate(found)
        ]
        return put(b"".join(entries), data, size)

    def proc_pidfdinfo(self, pid: int, fd: int, kind: int, data: Any, size: int) -> int:
        told = self._processes[pid][fd]
        assert (kind, told is None) == (1, False)
        flags, device, inode = told or (0, 0, 0)
        info = struct.pack("=IIqiI", flags, 0, 0, 0, 0) + struct.pack("=IHHQ", device, 0, 1, inode)
        return put(info.ljust(176, b"\0"), data, size)


def put(told: bytes, data: Any, size: int) -> int:
    if data is None:
        return len(told)
    data[: min(size, len(told))] = told[:size]
    return min(size, len(told))


def test_those_that_have_it_open_for_writing_are_named_once_and_no_others() -> None:
    libproc = Libproc(
        {
            0: [(WRITES, *FILE)],
            7: [None, (READS, *FILE), (WRITES, *FILE), (APPENDS, *FILE)],
            8: [(READS, *FILE)],
            9: [(WRITES, FILE[0], 5), (WRITES, 5, FILE[1])],
            10: [],
            11: [(APPENDS, *FILE)],
            os.getpid(): [(WRITES, *FILE)],
        }
    )
    assert [*in_use.writers_on_macos({FILE}, libproc)] == [(7, FILE), (11, FILE)]


def test_what_libproc_does_not_say_is_left_out() -> None:
    class Silent:
        def __getattr__(self, _name: str) -> object:
            return lambda *_: -1

    assert not [*in_use.writers_on_macos({FILE}, Silent())]
