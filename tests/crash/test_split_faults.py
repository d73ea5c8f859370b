"""Whatever operation fails, or is the last before a crash, a split loses nothing and says so."""

from __future__ import annotations

import errno
import os
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.errors import DamagedError, StorageError
from sessrotate.model import CODECS
from sessrotate.segments import load
from support import sets
from support.crash.changes import Faults, Killed
from support.lines import session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def every_operation(
    source: Path, folder: Path, fault: Callable[[], BaseException], *, lasting: bool, codec: Any
) -> Iterator[BaseException]:
    """Split with the 1st operation failing, then the 2nd …, until one split needs no more."""
    for at in count(1):
        for file in [*folder.iterdir()] if folder.exists() else []:
            file.unlink()
        faults = Faults(at, fault, lasting=lasting)
        failure: BaseException | None = None
        with faults.installed():
            try:
                sets.made(source, folder, codec=codec)
            except (StorageError, Killed) as error:
                failure = error
        if failure is None:
            assert at > faults.count > 15
            return
        yield failure


def check_recognisable(folder: Path, data: bytes) -> None:
    """Check that what is there is nothing, the whole set, or a set that says it is unfinished."""
    found = {file.name for file in folder.iterdir()} if folder.exists() else set()
    if not found:
        return
    if "intent.json" not in found:
        assert sets.stitched(folder) == data
        return
    problems = sets.holder(load.load(folder)).verify(sets.nothing)
    assert problems[0].kind == "unfinished"
    with pytest.raises(DamagedError, match="unfinished"):
        sets.stitched(folder)


FAULTS: Final = [
    *(
        pytest.param(
            partial(OSError, number, os.strerror(number)),
            lasting,
            id=f"{errno.errorcode[number]} {'from then on' if lasting else 'once'}",
        )
        for number in (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS)
        for lasting in (False, True)
    ),
    pytest.param(Killed, True, id="killed"),
]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("fault", "lasting"), FAULTS)
def test_any_operation_may_fail_or_be_the_last_before_a_crash(
    tmp_path: Path, fault: Callable[[], BaseException], lasting: bool, codec: Any
) -> None:
    source, folder = tmp_path / "s.jsonl", tmp_path / "out"
    data = session(4)
    source.write_bytes(data)
    failures = 0
    for error in every_operation(source, folder, fault, lasting=lasting, codec=codec):
        failures += 1
        assert isinstance(error, Killed if fault is Killed else StorageError)
        assert getattr(fault(), "strerror", "") in str(error)
        assert source.read_bytes() == data
        check_recognisable(folder, data)
        if (folder / "intent.json").exists():
            sets.made(source, folder, codec=codec)
            assert not (folder / "intent.json").exists()
        if folder.exists() and any(folder.iterdir()):
            assert sets.stitched(folder) == data
    assert failures > 15


def test_every_file_is_on_the_disk_before_the_set_counts_as_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder = tmp_path / "s.jsonl", tmp_path / "out"
    source.write_bytes(session(4))
    synced: list[tuple[str, frozenset[str]]] = []

    def record(fd: int) -> None:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))  # noqa: PTH115, PTH119
        synced.append((name, frozenset(os.listdir(folder))))  # noqa: PTH208

    monkeypatch.setattr(os, "fsync", record)
    sets.made(source, folder)
    names = [name for name, _ in synced]
    manifest = names.index("manifest.json.partial")
    segments = {"s.jsonl", "s.1.jsonl", "s.2.jsonl", "s.3.jsonl"}
    assert {file.name for file in folder.iterdir()} == {*segments, "manifest.json"}
    # The intent, and the folder that names it, come before any segment …
    assert names.index("intent.json") < min(names.index(name) for name in segments)
    first_folder = next(index for index, name in enumerate(names) if name == "out")
    assert synced[first_folder][1] == {"intent.json"}
    # … all segments and their names before the manifest …
    assert segments <= set(names[:manifest])
    assert names[manifest - 1] == "out"
    # … and the manifest's name before the intent goes, which is the last that is synced.
    with_both = [index for index, (_, there) in enumerate(synced) if "manifest.json" in there]
    assert "intent.json" in synced[with_both[0]][1]
    assert names[-1] == "out"
    assert "intent.json" not in synced[-1][1]
