"""What a file has besides its bytes: owner, mode, extended attributes, ACL and flags.

Rule: that of the package. One that cannot be kept is an error before anything is replaced: it is
never dropped.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Final

from sessrotate import platforms
from sessrotate.platforms import fcntl

_NO_ATTRIBUTES: Final = {errno.ENOTSUP, errno.ENOSYS}
"""What a file system answers that knows no extended attributes."""

_NO_FLAGS: Final = {errno.ENOTTY, errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EPERM}
"""What a file system answers that knows no flags; EPERM in some sandboxes."""

_GET_FLAGS: Final = 0x80086601
_SET_FLAGS: Final = 0x40086602
"""`FS_IOC_GETFLAGS` and `FS_IOC_SETFLAGS` of Linux, where a long has 64 bits (linux/fs.h)."""

_FIXED: Final = 0x10 | 0x20
"""Immutable and append-only: such a file can have no other name, and none can take its place."""

_OURS: Final = 0x1 | 0x2 | 0x4 | 0x8 | _FIXED | 0x40 | 0x80 | 0x4000 | 0x8000 | 0x800000
"""The flags that a person sets (chattr(1)); the others are the file system's own."""

_COPYFILE: Final = 1 | 2 | 4
"""`COPYFILE_ACL`, `COPYFILE_STAT` (mode, owner, flags) and `COPYFILE_XATTR` (copyfile.h)."""


def take_over(source: int, fd: int) -> None:
    """Give the file open as `fd` the owner, mode, attributes, ACL and flags of another.

    Raises OSError if one of them cannot be had, rather than lose it. What the system itself
    decides about every file (`security.`) only has to be the same in the end.
    """
    there, here = os.fstat(source), os.fstat(fd)
    if (there.st_uid, there.st_gid) != (here.st_uid, here.st_gid):
        os.fchown(fd, there.st_uid, there.st_gid)
    if platforms.HERE.attributes == "fcopyfile":
        _copy_all(source, fd)
    for name, value in _attributes(source).items():
        if not name.startswith("security.") or _attributes(fd).get(name) != value:
            os.setxattr(fd, name, value)
    _take_flags(source, fd)
    os.fchmod(fd, stat.S_IMODE(there.st_mode))


def is_fixed(fd: int) -> bool:
    """Tell whether a file is immutable or append-only (`chattr +i`, `+a`; `chflags uchg`)."""
    told = getattr(os.fstat(fd), "st_flags", 0)  # macOS and the BSDs
    bsd = stat.UF_IMMUTABLE | stat.UF_APPEND | stat.SF_IMMUTABLE | stat.SF_APPEND
    return bool((_flags(fd) or 0) & _FIXED or told & bsd)


def _attributes(fd: int) -> dict[str, bytes]:
    """Return a file's extended attributes; none where the file system knows none."""
    if platforms.HERE.attributes != "xattr":
        return {}
    try:
        return {name: os.getxattr(fd, name) for name in os.listxattr(fd)}
    except OSError as error:
        if error.errno in _NO_ATTRIBUTES:
            return {}
        raise


def _flags(fd: int) -> int | None:
    """Return the flags that a person sets; None where there are none."""
    if not platforms.HERE.flags:
        return None
    flags = bytearray(8)
    try:
        fcntl.ioctl(fd, _GET_FLAGS, flags)
    except OSError as error:
        if error.errno in _NO_FLAGS:
            return None
        raise
    return int.from_bytes(flags[:4], sys.byteorder)


def _take_flags(source: int, fd: int) -> None:
    there, here = _flags(source), _flags(fd)
    if there is None or here is None or there & _OURS == here & _OURS:
        return
    wanted = (here & ~_OURS) | (there & _OURS)
    fcntl.ioctl(fd, _SET_FLAGS, wanted.to_bytes(8, sys.byteorder))
    if ((_flags(fd) or 0) ^ there) & _OURS:
        raise OSError(errno.ENOTSUP, "The file's flags (lsattr) cannot be kept")


def _copy_all(source: int, fd: int) -> None:
    """Have macOS copy what Python has no calls for."""
    import ctypes  # noqa: PLC0415 - 4 ms at start-up, wanted only here

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fcopyfile(source, fd, None, ctypes.c_uint32(_COPYFILE)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
