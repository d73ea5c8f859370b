"""A full disk, or files that must not become larger: nothing is changed or lost."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import errors, fs, names, units
from sessrotate.errors import StorageError
from sessrotate.in_place import gain, obstacles, operations
from sessrotate.segments import compressed
from sessrotate.units import amount
from support import command_line, homes
from support.command_line import ID, assert_one_sentence, boundary, piped, row
from support.homes import Home, snapshot
from support.limits import limited

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KIB: Final = 1024

DATA: Final = command_line.session(boundaries=3, padding=40 * KIB) + boundary(90) + row(91)
"""Four segments of 120 KiB, and a tail of one row."""

LARGEST: Final = max(map(len, command_line.segments_of(DATA)))


def noise(size: int) -> str:
    """Return text of which a compressor leaves half."""
    return random.Random(size).randbytes(size // 2).hex()


def noisy(number: int) -> bytes:
    """Return a segment of three large rows."""
    rows = (row(10 * number + n, pad=noise(40 * KIB + n)) for n in (1, 2, 3))
    return boundary(10 * number) + b"".join(rows)


NOISY: Final = b"".join(map(noisy, range(1, 5))) + boundary(90) + row(91)
"""The same, of which each takes 60 KiB compressed."""

NAMES: Final = [names.sealed_file(ID, number) for number in range(4)]

ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""How a frame begins."""


# ── files that must not become larger ────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("deed", "data", "most"),
    [
        pytest.param("rotate", NOISY, 40 * KIB, id="the tail only"),
        pytest.param("rotate", DATA, 100, id="not even the tail"),
        pytest.param("restore", DATA, 200 * KIB, id="not the whole file"),
    ],
)
def test_with_room_for_too_little_nothing_is_changed(
    home: Home, deed: str, data: bytes, most: int
) -> None:
    home.live.write_bytes(data)
    if deed == "restore":
        home.rotate()
    before = snapshot(home.config)
    program = limited("RLIMIT_FSIZE", most)
    assert_one_sentence(piped(deed, ID, env=home.env, program=program), 74)
    assert snapshot(home.config) == before
    assert piped(deed, ID, env=home.env).code == 0
    assert home.stitched() == data


# ── a disk that is full ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Home]:
    """Make a client's folder on a disk of its own, of 1 MiB."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    made = (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", mounted],
            capture_output=True,
            text=True,
            check=False,
        )
        if sys.platform == "linux" and os.geteuid() == 0 and shutil.which("mount")
        else None
    )
    if made is None or made.returncode:
        pytest.skip("no disk of one's own can be mounted here: RLIMIT_FSIZE alone is tested")
    try:
        yield homes.home(mounted, monkeypatch, DATA)
    finally:
        subprocess.run(["umount", mounted], check=True)


def filled(folder: Path, left: int) -> Path:
    """Leave only so many bytes of a disk."""
    usage = os.statvfs(folder)
    path = folder / "fill"
    with path.open("wb") as file:
        file.write(b"x" * (usage.f_bavail * usage.f_frsize - left))
    return path


def test_a_disk_without_room_for_the_live_file_is_said_with_what_is_missing(small: Home) -> None:
    fill = filled(small.config, 0)
    before = snapshot(small.config)
    ended = piped("rotate", ID, env=small.env)
    assert ended.code == 74
    found = re.fullmatch(
        r"sessrotate: Cannot rotate the session: No space left on device\. It needs about (.*?) "
        r"for the segments, compressed, and the new live file, and (\S+ \S+) is free: make "
        r"room for (\S+ \S+) more, then try again\. A smaller session needs less; "
        r"`sessrotate prune --all --empty-trash --grace 0` empties the trash\.\n",
        ended.err,
    )
    assert found is not None, ended.err
    needs, free, missing = (units.size(each.replace(" ", "")) or 0 for each in found.groups())
    assert needs <= free + missing
    assert snapshot(small.config) == before
    os.truncate(fill, fill.stat().st_size - missing)  # so much is enough
    assert piped("rotate", ID, env=small.env).code == 0
    assert needs < small.live.stat().st_size + 80 * KIB
    assert small.stitched() == DATA
    fill.unlink()


@pytest.mark.parametrize(
    "data",
    [
        DATA,
        command_line.session(boundaries=3),
        command_line.session(boundaries=12, rows=10, padding=2000),
        command_line.session(boundaries=2, rows=3, padding=20 * KIB),
    ],
    ids=["large parts", "tiny", "many parts", "a large tail"],
)
def test_tidy_asks_for_no_more_room_than_a_rotation(small: Home, data: bytes) -> None:
    def done(command: tuple[str, ...], left: int) -> bool:
        shutil.rmtree(small.config)
        small.live.parent.mkdir(parents=True)
        small.live.write_bytes(data)
        fill = filled(small.config.parent, left)
        ended = piped(*command, env=small.env)
        fill.unlink()
        return ended.code == 0

    least = next(left for left in range(0, 200 * KIB, 4 * KIB) if done(("rotate", ID), left))
    assert done(("rotate", "--dry-run", ID), least)
    assert done(("tidy", "--yes", ID), least)
    assert not done(("tidy", "--yes", ID), least - 4 * KIB)


@pytest.mark.parametrize(
    "data", [NOISY, command_line.session(boundaries=60, rows=1)], ids=["large parts", "many parts"]
)
def test_a_full_disk_leaves_it_as_it_was(small: Home, data: bytes) -> None:
    small.live.write_bytes(data)
    before = snapshot(small.config)
    for left in range(0, 600 * KIB, 4 * KIB):
        fill = filled(small.config, left)
        ended = piped("rotate", ID, env=small.env)
        fill.unlink()
        if ended.code == 0:
            break
        assert_one_sentence(ended, 74)
        assert "No space left on device" in ended.err
        assert snapshot(small.config) == before
    assert "manifest.json" in small.archived()
    assert small.stitched() == data
    assert not small.problems()


def test_as_much_room_as_a_plan_asks_for_is_enough(
    small: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obstacles, "STEP", 64 * KIB)  # the segments have more
    small.live.write_bytes(NOISY)
    filled(small.config.parent, 0)
    needed = operations.plan_session(small.where, homes.silent).need.size
    (small.config.parent / "fill").unlink()
    filled(small.config.parent, needed)
    assert not small.rotate().refusal
    assert small.stitched() == NOISY


def test_while_segments_are_written_room_for_what_a_client_appends_stays(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obstacles, "STEP", 256 * KIB)
    home.live.write_bytes(row(1, pad=noise(900 * KIB)) + boundary(2) + row(3))
    before, free = snapshot(home.config), [2**40, 200 * KIB]
    monkeypatch.setattr(fs, "free_bytes", lambda _path: free.pop(0) if len(free) > 1 else free[0])
    with pytest.raises(StorageError, match="No space left on device"):
        home.rotate()
    assert snapshot(home.config) == before


def test_a_restoration_says_how_much_room_it_needs(small: Home) -> None:
    assert piped("split", "--in-place", small.live, env=small.env).code == 0
    filled(small.config, 100 * KIB)
    before = snapshot(small.config)
    ended = piped("restore", small.live, env=small.env)
    assert_one_sentence(ended, 74)
    assert amount(len(DATA) + gain.ASIDE, up=True) in ended.err
    assert snapshot(small.config) == before


# ── compressed ───────────────────────────────────────────────────────────────────────────────


def test_compressed_it_needs_little_room(small: Home) -> None:
    filled(small.config, 40 * KIB)
    ended = piped("split", "--in-place", small.live, env=small.env)
    assert ended.code == 0, ended
    assert small.archived() == {"manifest.json", *NAMES}
    assert small.stitched() == DATA
    assert not small.problems()


@pytest.mark.parametrize(
    ("number", "need", "told"),
    [
        (errno.ENOSPC, obstacles.Need(4096, "the tail"), "and 1.0 MiB is free: make room for"),
        (errno.EDQUOT, obstacles.Need(4096, "the tail"), "the tail: make room within your quota,"),
        (errno.ENOSPC, obstacles.NOTHING, "Cannot write: No space left on device. Make room, then"),
    ],
)
def test_what_is_missing_is_said_only_where_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, need: obstacles.Need, told: str
) -> None:
    monkeypatch.setattr(fs, "free_bytes", lambda _: 1 << 20)
    with (
        pytest.raises(StorageError) as caught,
        obstacles.told("write", tmp_path, lambda: need),
        errors.storage("write"),
    ):
        raise OSError(number, os.strerror(number))
    assert told in str(caught.value)


def test_what_does_not_read_back_leaves_all_as_it_was(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(number, pad=noise(20 * KIB + number)) + boundary(10 + number) for number in (1, 2)]
    data = b"".join(rows) + row(20)
    home.live.write_bytes(data)
    before, real = snapshot(home.config), fs.Draft.append

    def broken(draft: fs.Draft, piece: bytes | memoryview) -> None:
        written = bytearray(piece)
        if written[:4] == ZSTD:
            written[-KIB] ^= 1
        real(draft, bytes(written))

    with monkeypatch.context() as patch:
        patch.setattr(fs.Draft, "append", broken)
        with pytest.raises(StorageError, match="the disk is failing"):
            home.rotate()
    assert snapshot(home.config) == before
    home.rotate()
    assert home.stitched() == data
    assert not home.pack.exists()


def test_large_and_small_segments_are_the_same_read_back(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed, "_LARGE", LARGEST - 4 * KIB)
    home.rotate()
    parts = command_line.segments_of(DATA)[:-1]
    for name, part in zip(NAMES, parts, strict=True):
        told = subprocess.run(["zstd", "-dc", home.archive / name], capture_output=True, check=True)
        head = b"" if name == NAMES[0] else told.stdout[: told.stdout.index(b"\n") + 1]
        assert told.stdout == head + part
    assert home.stitched() == DATA
