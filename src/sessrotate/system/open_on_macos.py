"""Which processes of macOS have a file open for writing, asked of libproc. Only reads.

Rule: what cannot be known is left out: other users' processes, and all of them where there is no
libproc. So an answer proves nothing, as in `in_use`.

Sizes and offsets are those of sys/proc_info.h, the same since macOS 10.5.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Container, Iterator
from typing import Any, Final

_ALL_PIDS: Final = 1
_LIST_DESCRIPTORS: Final = 1
_VNODE: Final = 1
_VNODE_OF_DESCRIPTOR: Final = 1
"""`PROC_ALL_PIDS`, `PROC_PIDLISTFDS`, `PROX_FDTYPE_VNODE` and `PROC_PIDFDVNODEINFO`."""

_FOR_WRITING: Final = 2
"""`FWRITE` of sys/fcntl.h."""

_DESCRIPTOR: Final = struct.Struct("=iI")
"""`proc_fdinfo`: the descriptor, and what kind it is."""

_INFO: Final = struct.Struct("=I20xIHHQ136x")
"""`vnode_fdinfo`: how it was opened; then the file's device, mode, links and number."""

_MORE: Final = 64
"""Entries of a list that may come between being counted and being read."""


def writing(
    files: Container[tuple[int, int]], libproc: Any = None
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the other processes that have one of these files open for writing, and which.

    A file is its device and inode.
    """
    library = libproc or _libproc()
    if library is None:
        return
    for (pid,) in struct.iter_unpack("=i", _list(library.proc_listpids, (_ALL_PIDS, 0), 4)):
        if pid in {0, os.getpid()}:
            continue
        seen = set()
        listed = _list(library.proc_pidinfo, (pid, _LIST_DESCRIPTORS, _u64(0)), _DESCRIPTOR.size)
        for descriptor, kind in _DESCRIPTOR.iter_unpack(listed):
            file = _written(library, pid, descriptor) if kind == _VNODE else None
            if file is not None and file in files and file not in seen:
                seen.add(file)
                yield pid, file


def _written(library: Any, pid: int, descriptor: int) -> tuple[int, int] | None:
    """Return which file a process has open for writing by this descriptor, None if none."""
    import ctypes  # noqa: PLC0415 - 4 ms at start-up, wanted only here

    data = ctypes.create_string_buffer(_INFO.size)
    got = library.proc_pidfdinfo(pid, descriptor, _VNODE_OF_DESCRIPTOR, data, _INFO.size)
    if got != _INFO.size:
        return None
    flags, device, _, _, number = _INFO.unpack(data.raw)
    return (device, number) if flags & _FOR_WRITING else None


def _list(call: Any, arguments: tuple[Any, ...], size: int) -> bytes:
    """Return what a call lists: whole entries of this size, none if it fails."""
    import ctypes  # noqa: PLC0415 - as above

    needed = call(*arguments, None, 0)
    if needed <= 0:
        return b""
    data = ctypes.create_string_buffer(needed + _MORE * size)
    got = max(0, call(*arguments, data, len(data)))
    return data.raw[: got - got % size]


def _u64(value: int) -> Any:
    import ctypes  # noqa: PLC0415 - as above

    return ctypes.c_uint64(value)


def _libproc() -> Any:
    import ctypes  # noqa: PLC0415 - as above

    try:
        return ctypes.CDLL("/usr/lib/libproc.dylib")
    except OSError:
        return None
