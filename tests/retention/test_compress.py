"""Compressed segments hold what the plain ones held, and nothing goes before that is proved."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import fs, open_session
from sessrotate.archive import state
from sessrotate.errors import InUseError, RefusedError, StorageError
from sessrotate.model import SealedSegment
from sessrotate.retention import compress, prune, transaction, trash
from sessrotate.retention.policy import Policy
from sessrotate.segments import compressed as compressed_segments
from sessrotate.system import zstd
from support import command_line, homes, oracle
from support.command_line import ID, boundary, row
from support.examples import examples
from support.homes import Home, snapshot

DATA = command_line.session(boundaries=4, padding=400)
BODIES = oracle.bodies(DATA)
ALL_PACKED = {f"{ID}.jsonl.zst", *(f"{ID}.{n}.jsonl.zst" for n in (1, 2, 3)), "manifest.json"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = homes.home(tmp_path, monkeypatch, DATA)
    made.rotate(codec="plain")
    return made


def compressed(home: Home, **options: Any) -> compress.Compressed:
    return compress.compress(home.where, 1, lambda _done: None, **options)


def test_every_segment_is_compressed_and_the_history_is_the_same(home: Home) -> None:
    before = sum(file.stat().st_size for file in home.archive.glob("*.jsonl"))
    done = compressed(home)
    assert home.archived() == ALL_PACKED
    after = sum(file.stat().st_size for file in home.archive.glob("*.zst"))
    assert (done.segments, done.before, done.after) == (4, before, after)
    assert home.stitched() == DATA
    assert home.problems() == []
    for file in home.archive.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_holds_header_and_body_in_one_frame_with_a_checksum(home: Home) -> None:
    plain = {file.name: file.read_bytes() for file in home.archive.glob("*.jsonl")}
    compressed(home)
    for name, content in plain.items():
        packed = (home.archive / f"{name}.zst").read_bytes()
        with (home.archive / f"{name}.zst").open("rb") as file:
            assert b"".join(zstd.decompressed(file.read, 1 << 16)) == content
        # RFC 8878, 3.1.1.1.1: bit 2 of the frame header's descriptor is the checksum's.
        assert packed[:4] == bytes.fromhex("28b52ffd")
        assert packed[4] & 0b100


def test_compressing_again_changes_nothing(home: Home) -> None:
    compressed(home)
    before = snapshot(home.config)
    assert compressed(home).segments == 0
    assert snapshot(home.config) == before


def test_what_is_compressed_is_rotated_again_and_restored(home: Home) -> None:
    compressed(home)
    more = row(90) + boundary(91) + row(92)
    home.append(more)
    home.rotate(codec="plain")
    assert home.archived() == {*ALL_PACKED, f"{ID}.4.jsonl"}
    assert home.stitched() == DATA + more
    with open_session(ID) as session:
        assert sum(1 for _ in session.history()) == len((DATA + more).splitlines())
    assert compressed(home).segments == 1
    home.restore()
    assert home.live.read_bytes() == DATA + more
    assert not home.archive.exists()


def test_what_is_compressed_is_pruned_and_comes_back(home: Home) -> None:
    compressed(home)
    plan = prune.prepare([home.where], Policy(keep_last=1), 1_800_000_000.0, lambda _done: None)
    assert [done.error for done in prune.execute(plan, 1)] == [None]
    assert (home.archive / "trash" / f"{ID}.1.jsonl.zst").exists()
    assert trash.undelete(home.where, 1) == [0, 1, 2]
    assert home.stitched() == DATA


def test_only_what_is_chosen_is_compressed_and_nothing_that_was_pruned(home: Home) -> None:
    plan = prune.prepare([home.where], Policy(keep_last=3), 1_800_000_000.0, lambda _done: None)
    list(prune.execute(plan, 1))

    def chosen(entry: SealedSegment) -> bool:
        return entry.segment.index < 2

    assert compressed(home, chosen=chosen).segments == 1
    assert home.archived() == {
        f"{ID}.1.jsonl.zst",
        f"{ID}.2.jsonl",
        f"{ID}.3.jsonl",
        "manifest.json",
        "trash",
    }


def test_a_segment_that_does_not_verify_stays_and_the_others_go_on(home: Home) -> None:
    longer, changed = home.archive / f"{ID}.1.jsonl", home.archive / f"{ID}.2.jsonl"
    longer.write_bytes(longer.read_bytes() + b"x")
    data = bytearray(changed.read_bytes())
    data[-5] ^= 1
    changed.write_bytes(data)
    (home.archive / f"{ID}.3.jsonl").unlink()
    done = compressed(home)
    assert done.segments == 1
    assert [told.split(" ")[1] for told in done.problems] == ["1", "2", "3"]
    assert changed.read_bytes() == data
    assert home.archived() == {
        f"{ID}.jsonl.zst",
        f"{ID}.1.jsonl",
        f"{ID}.2.jsonl",
        "manifest.json",
    }


def test_what_reads_back_otherwise_is_not_believed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fs.NewFile.sync

    def sync(file: fs.NewFile) -> None:
        os.pwrite(file.fd, b"\0", 20)  # a disk that returns other bytes than it was given
        real(file)

    before = snapshot(home.config)
    with monkeypatch.context() as patch:
        patch.setattr(fs.NewFile, "sync", sync)
        with pytest.raises(StorageError, match="the disk is failing"):
            compressed(home)
    assert snapshot(home.config) == before


def test_small_batches_come_to_the_same(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs, "free_bytes", lambda _path: 0)
    batches = []
    real = transaction.replace_segments

    def counted(*args: Any) -> Any:
        batches.append(len(args[2]))
        return real(*args)

    monkeypatch.setattr(transaction, "replace_segments", counted)
    told: list[int] = []
    done = compress.compress(home.where, 1, told.append)
    assert done.segments == 4
    assert batches == [1, 1, 1, 1]
    assert told == sorted(told)
    assert told[-1] == done.before
    assert home.stitched() == DATA


def test_a_large_segment_has_all_cores_and_gives_the_same(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed_segments, "_LARGE", 1)
    compressed(home)
    assert home.stitched() == DATA


def test_a_full_disk_leaves_what_there_was(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    before = snapshot(home.config)
    real = fs.NewFile.append

    def append(file: fs.NewFile, data: bytes) -> None:
        if threading.current_thread() is not threading.main_thread() and data:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file, data)

    with monkeypatch.context() as patch:
        patch.setattr(fs.NewFile, "append", append)
        patch.setattr(fs, "free_bytes", lambda _folder: 7)
        with pytest.raises(StorageError, match="No space left") as caught:
            compressed(home)
    told = re.search(
        r"about ([\d,]+) bytes for .*, and 7 are free: make room for", str(caught.value)
    )
    assert told is not None, caught.value
    assert 7 < int(told[1].replace(",", "")) < (home.archive / f"{ID}.jsonl").stat().st_size
    assert snapshot(home.config) == before


def test_a_session_without_an_archive_is_refused(home: Home) -> None:
    home.restore()
    with pytest.raises(RefusedError, match="has no archive"):
        compressed(home)


def test_an_unfinished_rotation_comes_first(home: Home) -> None:
    (home.archive / "pack").hardlink_to(home.live)
    with pytest.raises(InUseError, match="sessrotate rotate"):
        compressed(home)


def test_of_two_forms_the_one_that_counts_stays_if_it_is_whole(home: Home) -> None:
    plain = (home.archive / f"{ID}.1.jsonl").read_bytes()
    compressed(home)
    other = home.archive / f"{ID}.1.jsonl"
    other.write_bytes(plain)
    compressed(home)
    assert not other.exists()
    packed = home.archive / f"{ID}.1.jsonl.zst"
    packed.write_bytes(packed.read_bytes()[:-1])
    other.write_bytes(plain)  # by hand, from a backup: it is all there is now
    compressed(home)
    assert other.read_bytes() == plain


@examples(25)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=6), st.sampled_from([1, 3, 19]))
def test_any_session_stays_what_it_was(sizes: list[int], level: int) -> None:
    data = b"".join(
        (boundary(number) if number else b"") + row(number, pad="é" * size)
        for number, size in enumerate(sizes)
    )
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        home = homes.home(Path(folder), patch, data)
        home.rotate(codec="plain")
        if len(sizes) > 1:
            assert compressed(home, level=level).segments == len(sizes) - 1
            with state.opened(home.where) as found:
                assert found.manifest is not None
                assert {entry.codec for entry in found.manifest.segments} == {"zstd"}
        assert home.stitched() == data
