"""Whatever the file and the lines in it: at most 48 MiB, and the right verdict.

The largest are marked `scale`; the others run the same lines at 64 MiB or less.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Final

import pytest

import generate_session
from sessrotate.segments.scan import MAX_BOUNDARIES
from support.command_line import ID, boundary, patched, row
from support.homes import Home
from support.limits import MIB, MOST_MIB, weighed
from support.tiers import in_gate

GIB: Final = 1024 * MIB
MOST_SEALING_MIB: Final = 64
NEEDS_NO_MORE: Final = 512 * MIB  # of address space, with the interpreter and its libraries
HEAD: Final = b'{"type":"system","subtype":"compact_boundary","uuid":"u","x":'

Pieces = Iterator[bytes]


@pytest.fixture(autouse=True)
def _nothing_large_stays(tmp_path: Path) -> Iterator[None]:
    """Remove what a test wrote, also when it failed: pytest keeps it for three runs."""
    yield
    shutil.rmtree(tmp_path)


def write(path: Path, pieces: Pieces) -> str:
    """Write a session with one row before and two behind the pieces; return its digest."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for piece in chain([row(0), row(1)], pieces, [row(3), row(4)]):
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ── the lines ────────────────────────────────────────────────────────────────────────────────


def repeated(piece: bytes, size: int) -> Pieces:
    """Yield about `size` bytes of copies of a piece, some at once."""
    together = piece * max(1, MIB // len(piece))
    return repeat(together, max(1, size // len(together)))


def filled(opening: bytes, piece: bytes, end: bytes, size: int) -> Pieces:
    """Yield a line with about `size` bytes of copies of a piece in it."""
    yield opening
    yield from repeated(piece, size)
    yield end


plain_line: Final = partial(filled, b'{"type":"user","x":"', b"a", b'"}\n')
huge_string: Final = partial(filled, HEAD + b'"', b"a", b'"}\n')
huge_string_first: Final = partial(
    filled, b'{"x":"', b"a", b'","type":"system","subtype":"compact_boundary"}\n'
)
markers_quoted: Final = partial(
    filled, HEAD + b'"', rb"{\"subtype\":\"compact_boundary\"} ", b'"}\n'
)
markers_as_values: Final = partial(filled, HEAD + b"[", b'"compact_boundary",', b"0]}\n")
escapes: Final = partial(filled, HEAD + b'"', rb"\n\"\\\u00e9", b'"}\n')
surrogates: Final = partial(filled, HEAD + b'"', rb"\ud83d", b'"}\n')
invalid_bytes: Final = partial(filled, HEAD + b'"', b"\xff\xc3", b'"}\n')
numbers: Final = partial(filled, HEAD + b"[", b"-1234567.25e10,", b"0]}\n")
strings: Final = partial(filled, HEAD + b"[", b'"abcdefghijkl",', b"0]}\n")
keys: Final = partial(filled, HEAD + b"{", b'"abcdefghijkl":{},', b'"z":0}}\n')
spaces: Final = partial(filled, HEAD, b" \t\r ", b"0}\n")
never_closed: Final = partial(filled, HEAD + b'"', b"a", b"\n")


def nested_exactly(levels: int) -> Pieces:
    yield HEAD + b"[" * levels + b"]" * levels + b"}\n"


def nested_objects(levels: int) -> Pieces:
    yield HEAD + b'{"x":' * levels + b"0" + b"}" * levels + b"}\n"


def digits(count: int) -> Pieces:
    yield HEAD + b"9" * count + b"}\n"


def digits_of_a_float(count: int) -> Pieces:
    yield HEAD + b"0." + b"7" * count + b"e-" + b"8" * count + b"}\n"


def bare_markers(size: int) -> Pieces:
    return repeated(b'"compact_boundary"\n', size)


@dataclass(frozen=True, slots=True)
class Line:
    """A hostile line: how it is made, and what it is."""

    make: Callable[[], Pieces]
    boundary: bool
    opaque: int = 0

    @property
    def segments(self) -> int:
        return 2 if self.boundary else 1


SMALL: Final = {
    "a string of 64 MB": Line(partial(huge_string, 64 * MIB), boundary=True),
    "64 MB that name no boundary": Line(partial(plain_line, 64 * MIB), boundary=False),
    "a string of 64 MB before the words": Line(partial(huge_string_first, 64 * MIB), boundary=True),
    "quoted boundaries": Line(partial(markers_quoted, 32 * MIB), boundary=True),
    "the word as a value": Line(partial(markers_as_values, 4 * MIB), boundary=True),
    "escapes": Line(partial(escapes, 16 * MIB), boundary=True),
    "lone surrogates": Line(partial(surrogates, 16 * MIB), boundary=True),
    "invalid UTF-8": Line(partial(invalid_bytes, 32 * MIB), boundary=True),
    "numbers": Line(partial(numbers, 4 * MIB), boundary=True),
    "strings": Line(partial(strings, 4 * MIB), boundary=True),
    "keys": Line(partial(keys, 4 * MIB), boundary=True),
    "white space": Line(partial(spaces, 16 * MIB), boundary=True),
    "200,000 levels of lists": Line(partial(nested_exactly, 200_000), boundary=True),
    "200,000 levels of objects": Line(partial(nested_objects, 200_000), boundary=True),
    "100,000 levels in a short line": Line(partial(nested_exactly, 100_000), boundary=True),
    "a million levels": Line(partial(nested_exactly, 1_000_000), boundary=True),
    "5,000 digits": Line(partial(digits, 5_000), boundary=True),
    "4,300 and one digits": Line(partial(digits, 4_301), boundary=True),
    "a million digits": Line(partial(digits, 1_000_000), boundary=True),
    "a fraction of a million digits": Line(partial(digits_of_a_float, 1_000_000), boundary=True),
    "a string that is never closed": Line(
        partial(never_closed, 64 * MIB), boundary=False, opaque=1
    ),
}

HUGE: Final = {
    "a string": Line(partial(huge_string, GIB), boundary=True),
    "numbers": Line(partial(numbers, GIB // 32), boundary=True),
}
"""A gigabyte, and as many values as would not fit where the ones above might."""


def assert_light(*arguments: str | Path, address_space: int = 0) -> Any:
    """Check that a command works, within its memory; return what it prints."""
    ended = weighed(*arguments, address_space=address_space)
    assert ended.code == 0, ended.err or ended.code
    assert ended.peak_mib <= MOST_MIB, f"{arguments[0]}: {ended.peak_mib:.1f} MiB"
    return json.loads(ended.out) if "--json" in arguments else ended.out


def assert_right(path: Path, line: Line, *, address_space: int = 0) -> None:
    """Check a dry run, a split and a stitch of a session with this line in it."""
    made = write(path, line.make())
    limits = {"address_space": address_space}
    found = assert_light("split", path, "--dry-run", "--json", **limits)
    assert [entry["index"] for entry in found["segments"]] == list(range(line.segments))
    assert found["opaque_lines"] == line.opaque
    if line.boundary:
        assert found["segments"][1]["start"] == len(row(0) + row(1))
    folder, whole = path.parent / "set", path.parent / "whole.jsonl"
    assert_light("split", path, "--out", folder, "--quiet", **limits)
    path.unlink()
    assert_light("stitch", folder, "-o", whole, **limits)
    assert sha256(whole) == made
    whole.unlink()
    for file in folder.iterdir():
        file.unlink()


@pytest.mark.parametrize("name", in_gate(SMALL, 2, "hostile"))
def test_a_hostile_line_is_judged_in_little_memory_and_address_space(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / f"{ID}.jsonl"
    assert_right(path, SMALL[name], address_space=NEEDS_NO_MORE)


@pytest.mark.scale
@pytest.mark.parametrize("name", HUGE)
def test_a_huge_line_is_judged_in_little_memory(name: str, tmp_path: Path) -> None:
    assert_right(tmp_path / f"{ID}.jsonl", HUGE[name])


def test_nesting_of_millions_of_levels_hides_no_boundary(tmp_path: Path) -> None:
    path = tmp_path / f"{ID}.jsonl"
    write(path, nested_exactly(6_000_000))
    found = assert_light("split", path, "--dry-run", "--json")
    assert (len(found["segments"]), found["opaque_lines"]) == (2, 0)


def test_unbalanced_nesting_is_opaque(tmp_path: Path) -> None:
    path = tmp_path / f"{ID}.jsonl"
    write(path, iter([HEAD + b"[" * 300_000 + b"\n"]))
    found = assert_light("split", path, "--dry-run", "--json")
    assert (len(found["segments"]), found["opaque_lines"]) == (1, 1)


@pytest.mark.hostile
def test_lines_of_nothing_but_the_marker_are_opaque(tmp_path: Path) -> None:
    path = tmp_path / f"{ID}.jsonl"
    size = MIB  # a candidate in every 19 bytes is as slow as it gets
    write(path, bare_markers(size))
    found = assert_light("split", path, "--dry-run", "--json", address_space=NEEDS_NO_MORE)
    assert len(found["segments"]) == 1
    assert found["opaque_lines"] == b"".join(bare_markers(size)).count(b"\n")


# ── a report by kinds ────────────────────────────────────────────────────────────────────────

MOST_OF_A_REPORT: Final = 70  # MiB


def blocks(each: bytes, size: int) -> Pieces:
    """Yield a message of nothing but such blocks, of about `size` bytes in all."""
    yield b'{"type":"user","uuid":"u","message":{"role":"user","content":['
    yield (each + b",") * (size // (len(each) + 1))
    yield each + b"]}}\n"


@pytest.mark.parametrize("size", [200 * 1024, 8 * MIB - 1024], ids=["200 KiB", "8 MiB"])
@pytest.mark.parametrize("each", [b"{}", b'{"type":"text"}'])
def test_a_line_of_millions_of_blocks_is_counted_in_little_memory(
    tmp_path: Path, each: bytes, size: int
) -> None:
    path = tmp_path / f"{ID}.jsonl"
    write(path, blocks(each, size))
    ended = weighed("report", "--kinds", "--json", path)
    assert ended.code == 0, ended.err
    assert ended.peak_mib <= MOST_OF_A_REPORT


# ── many boundaries ──────────────────────────────────────────────────────────────────────────


def test_far_more_boundaries_than_any_session_has_are_allowed() -> None:
    assert MAX_BOUNDARIES >= 5_000  # a session of 2 GB has 730


@pytest.mark.hostile
def test_as_many_boundaries_as_are_allowed_are_reported(tmp_path: Path) -> None:
    path = tmp_path / f"{ID}.jsonl"
    write(path, repeat(boundary(2), MAX_BOUNDARIES))
    found = assert_light("split", path, "--dry-run", "--json", "--layout", "linked")
    assert len(found["segments"]) == MAX_BOUNDARIES + 1
    path.unlink()


@pytest.mark.hostile
def test_more_boundaries_than_any_session_has_are_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / f"{ID}.jsonl"
    write(path, repeat(boundary(2), MAX_BOUNDARIES + 1))
    ended = weighed("split", path, "--out", tmp_path / "set")
    assert (ended.code, ended.out) == (65, "")
    assert f"{MAX_BOUNDARIES:,}" in ended.err
    assert ended.err.count("\n") == 1
    assert ended.peak_mib <= MOST_MIB
    assert not (tmp_path / "set").exists()


@pytest.mark.scale
def test_a_set_of_many_segments_is_split_and_stitched(tmp_path: Path) -> None:
    path, folder, whole = tmp_path / f"{ID}.jsonl", tmp_path / "set", tmp_path / "whole"
    made = write(path, repeat(boundary(2), MAX_BOUNDARIES))
    assert_light("split", path, "--out", folder, "--quiet")
    assert_light("stitch", folder, "-o", whole)
    assert sha256(whole) == made
    (folder / "manifest.json").unlink()
    whole.unlink()
    assert_light("stitch", folder, "-o", whole)
    assert sha256(whole) == made


# ── whole sessions ───────────────────────────────────────────────────────────────────────────


def assert_whole_session(
    tmp_path: Path, size: int, boundaries: int, *, options: Sequence[str]
) -> None:
    """Check every command on a generated session, with each of the options in turn."""
    path, folder, whole = tmp_path / f"{ID}.jsonl", tmp_path / "set", tmp_path / "whole"
    with path.open("wb", buffering=MIB) as file:
        wanted = generate_session.Options(size=size, boundaries=boundaries)
        truth = generate_session.generate(file, wanted)
    starts = [0, *truth.boundaries]
    found = assert_light("split", path, "--dry-run", "--json")
    assert [entry["start"] for entry in found["segments"]] == starts
    assert found["opaque_lines"] == 0
    for option in options:
        assert_light("split", path, "--out", folder, option)
        assert_light("verify", folder)
        assert_light("stitch", folder, "-o", whole)
        assert sha256(whole) == truth.sha256
        whole.unlink()
        for file_of_set in folder.iterdir():
            file_of_set.unlink()
        folder.rmdir()
    path.unlink()


@pytest.mark.hostile
def test_a_session_of_60_megabytes_is_split_and_stitched_in_little_memory(tmp_path: Path) -> None:
    assert_whole_session(tmp_path, 60 * MIB, 21, options=["--quiet", "--compress"])


@pytest.mark.scale
def test_a_session_of_2_gigabytes_is_split_and_stitched_in_little_memory(tmp_path: Path) -> None:
    assert_whole_session(tmp_path, 2 * GIB, 730, options=["--quiet"])


@pytest.mark.parametrize(
    ("size", "boundaries"),
    [
        pytest.param(160 * MIB, 20, marks=pytest.mark.hostile),
        # Several batches, each with threads of its own.
        pytest.param(GIB, 365, marks=pytest.mark.scale),
    ],
    ids=["160 MiB", "1 GiB"],
)
def test_a_rotation_takes_little_memory_however_many_cores_compress(
    tmp_path: Path, size: int, boundaries: int
) -> None:
    home = Home(tmp_path / "config")
    home.live.parent.mkdir(parents=True)
    with home.live.open("wb", buffering=MIB) as file:
        made = generate_session.Options(size=size, boundaries=boundaries)
        generate_session.generate(file, made)
    cores = f"import os; os.cpu_count = lambda: 16; os.environ.update({home.env})"
    arguments = ("split", "--in-place", home.live, "--quiet")
    ended = weighed(*arguments, program=patched(cores))
    assert (ended.code, "freed" in ended.out) == (0, True), ended
    assert ended.peak_mib <= MOST_SEALING_MIB


@pytest.mark.hostile
def test_noise_as_large_as_a_session_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "noise.jsonl"
    noise = random.Random(1).randbytes(MIB)
    with path.open("wb") as file:
        for _ in range(40):
            file.write(noise)
    ended = weighed("split", path, "--dry-run", address_space=NEEDS_NO_MORE)
    assert ended.code == 65, ended.err
    assert ended.peak_mib <= MOST_MIB
