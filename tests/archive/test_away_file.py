"""A compressed live file reads as what is in it, at any offset."""

from __future__ import annotations

import random
from threading import Thread
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.archive import away_file
from sessrotate.archive.away_file import Compressed
from sessrotate.errors import DamagedError, InUseError
from sessrotate.model import Span
from sessrotate.system import zstd
from support import homes

if TYPE_CHECKING:
    from pathlib import Path

DATA: Final = random.Random(6).randbytes(3 * away_file.HEAD // 2) + b"\n" * 50_000


def compressed(folder: Path, data: bytes = DATA) -> Compressed:
    frame = zstd.compressor(len(data))
    path = folder / "live.jsonl.zst"
    path.write_bytes(frame.compress(data) + frame.flush())
    return Compressed(path, folder / "live.jsonl")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("away")


@given(st.data())
def test_any_span_is_what_the_plain_file_has_there(folder: Path, data: st.DataObject) -> None:
    edge = st.integers(0, len(DATA)) | st.integers(away_file.HEAD - 2, away_file.HEAD + 2)
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


@pytest.mark.parametrize(
    "damage", ["another frame behind it", "a byte", "its end", "its beginning"]
)
def test_a_file_that_was_changed_is_damage(folder: Path, damage: str) -> None:
    with compressed(folder) as source:
        path, live = source.path, folder / "live.jsonl"
    data = path.read_bytes()
    changed = {
        "another frame behind it": data + homes.packed(b"more"),
        "a byte": data[:70_000] + bytes([data[70_000] ^ 1]) + data[70_001:],
        "its end": data[:-1],
        "its beginning": b"x" + data[1:],
    }
    path.write_bytes(changed[damage])
    with (
        pytest.raises(DamagedError, match="is damaged"),
        Compressed(path, live) as it,
    ):
        it.read_at(0, len(DATA) - 1)


def test_who_comes_back_while_it_is_read_is_noticed(folder: Path) -> None:
    with compressed(folder) as source:
        source.check_unreplaced()
        (folder / "live.jsonl").touch()
        with pytest.raises(InUseError):
            source.check_unreplaced()
    (folder / "live.jsonl").unlink()
