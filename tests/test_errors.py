"""Every error has an exit code, and of several the one that should worry most decides."""

from __future__ import annotations

import errno
import os
from itertools import permutations
from pathlib import Path

import pytest

from sessrotate import errors
from sessrotate.errors import DamagedError, InUseError, RefusedError, SessrotateError, StorageError


def leaves(of: type[SessrotateError]) -> list[type[SessrotateError]]:
    below = of.__subclasses__()
    return [leaf for each in below for leaf in leaves(each)] if below else [of]


def test_the_worst_is_the_same_in_whatever_order_they_come() -> None:
    ranked = [DamagedError("d"), RefusedError("r"), InUseError("u")]
    for some in permutations(ranked):
        assert errors.worst(some) is ranked[0]
        assert errors.worst(each for each in some if each is not ranked[0]) is ranked[1]
        assert errors.exit_code(some) == 74
    same = [StorageError("first"), DamagedError("second")]
    assert errors.worst(same) is same[0]


def test_nothing_is_worst_where_nothing_failed() -> None:
    assert errors.worst([]) is None
    assert errors.exit_code([]) == 0


def test_whatever_is_raised_can_be_the_worst() -> None:
    for kind in leaves(SessrotateError):
        assert errors.exit_code([kind("")]) == kind.exit_code > 0


@pytest.mark.parametrize(
    ("number", "name", "bytes_free", "files", "files_free", "expected"),
    [
        (errno.ENOSPC, "new", 5000, 100, 0, True),
        (errno.ENOSPC, "new", 5000, 100, 31, True),  # what was begun is undone
        (errno.ENOSPC, "new", 5000, 100, 32, False),
        (errno.ENOSPC, "new", 3, 100, 0, False),  # neither is left
        (errno.ENOSPC, "new", 5000, 0, 0, False),  # btrfs counts no files
        (errno.ENOSPC, None, 5000, 100, 0, False),  # a write takes no more files
        (errno.ENOSPC, 5, 5000, 100, 0, False),  # of an extended attribute: a descriptor's number
        (errno.EDQUOT, "new", 5000, 100, 0, False),
    ],
)
def test_a_lack_of_files_is_told_from_one_of_bytes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    name: str | int | None,
    bytes_free: int,
    files: int,
    files_free: int,
    expected: bool,
) -> None:
    def usage(path: str) -> os.statvfs_result:
        assert path == str(tmp_path)
        free = (bytes_free, bytes_free)
        return os.statvfs_result((4096, 4096, 9999, *free, files, files_free, files_free, 0, 255))

    monkeypatch.setattr(os, "statvfs", usage)
    path = str(tmp_path / "missing" / name) if isinstance(name, str) else name
    error = OSError(number, os.strerror(number), path)
    assert errors.lacks_inodes(error) is expected
    with pytest.raises(StorageError) as raised, errors.storage("write it"):
        raise error
    assert ("inodes" in str(raised.value)) is expected
    assert ("Make room" in str(raised.value)) is not expected
    assert "(5)" not in str(raised.value)
