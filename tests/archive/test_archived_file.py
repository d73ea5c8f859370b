"""A compressed live file reads as what is in it, at any offset."""

from __future__ import annotations

import random
from threading import Thread
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.archive import archived_file
from sessrotate.archive.archived_file import Compressed
from sessrotate.archive.record import CompressedFile
from sessrotate.errors import DamagedError, InUseError
from sessrotate.model import Span
from sessrotate.system import zstd
from sessrotate.system.digest import Fingerprint

if TYPE_CHECKING:
    from pathlib import Path

DATA: Final = random.Random(6).randbytes(3 * archived_file.HEAD // 2) + b"\n" * 50_000


def compressed(folder: Path, data: bytes = DATA) -> Compressed:
    frame = zstd.compressor(len(data))
    path = folder / "live.jsonl.zst"
    path.write_bytes(frame.compress(data) + frame.flush())
    found = Fingerprint()
    found.update(data)
    told = CompressedFile("live.jsonl", len(data), found.digest)
    return Compressed(path, folder / "live.jsonl", told)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("away")


@given(st.data())
def test_any_span_is_what_the_plain_file_has_there(folder: Path, data: st.DataObject) -> None:
    edge = st.integers(0, len(DATA)) | st.integers(archived_file.HEAD - 2, archived_file.HEAD + 2)
    with compressed(folder) as source:
        assert source.size() == len(DATA)
        for _ in range(3):
            start, end = sorted((data.draw(edge), data.draw(edge)))
            assert source.read_at(start, end - start) == DATA[start:end]
        assert b"".join(source.pieces(Span(0, source.size()))) == DATA
    assert [path.name for path in folder.iterdir()] == ["live.jsonl.zst"]


def test_threads_may_read_at_once(folder: Path) -> None:
    found: dict[int, bytes] = {}
    with compressed(folder) as source:

        def read(number: int) -> None:
            found[number] = source.read_at(number * 1000, 100_000)

        threads = [Thread(target=read, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {n: DATA[n * 1000 : n * 1000 + 100_000] for n in range(8)}


@pytest.mark.parametrize("size", [len(DATA) - 1, len(DATA) + 1, 10**15])
def test_another_size_than_was_told_is_damage(folder: Path, size: int) -> None:
    with compressed(folder) as source:
        path, live = source.path, folder / "live.jsonl"
    with Compressed(path, live, CompressedFile("live.jsonl", size)) as source:
        assert source.read_at(0, 100) == DATA[:100]
        with pytest.raises(DamagedError, match="than it was"):
            source.read_at(0, len(DATA) - 1)


def test_who_comes_back_while_it_is_read_is_noticed(folder: Path) -> None:
    with compressed(folder) as source:
        source.check_unreplaced()
        (folder / "live.jsonl").touch()
        with pytest.raises(InUseError):
            source.check_unreplaced()
    (folder / "live.jsonl").unlink()
