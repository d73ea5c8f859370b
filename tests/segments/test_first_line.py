"""Whether a line opens a segment does not depend on its length, on a manifest, or on who asks."""

from __future__ import annotations

import json
import re
import tracemalloc
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sessrotate import open_session
from sessrotate.clients.codex import client as codex
from sessrotate.model import Boundary, Span
from sessrotate.segments import load, scan
from sessrotate.system.source import PIECE
from support import homes, sets
from support.conformance.specimen import Specimen, specimens
from support.lines import session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WITH_BOUNDARIES: Final = [each for each in specimens() if each.boundaries(each.made(1))]

MIB: Final = 1024 * 1024

SIZES: Final = (
    0,
    PIECE - 1,
    PIECE,
    256 * 1024 - 1,
    256 * 1024,
    256 * 1024 + 1,
    8 * MIB - 1,
    8 * MIB + 1,
    20 * MIB,
)
"""Bytes of the line: around the limits that there once were, and far above."""

_TEXT: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"')

every_client = pytest.mark.parametrize("of", WITH_BOUNDARIES, ids=lambda of: of.name)

any_size = pytest.mark.parametrize("size", SIZES)


def grown(line: bytes, size: int) -> bytes:
    """Return the line with its longest text so much longer that it has `size` bytes."""
    longest = max(_TEXT.finditer(line), key=lambda match: len(match[1]))
    middle = longest.end(1)
    return line[:middle] + b"x" * max(0, size - len(line)) + line[middle:]


def with_a_line_of(of: Specimen, size: int) -> bytes:
    """Return a session whose second compaction is a line of so many bytes."""
    data = of.made(3)
    start = of.boundaries(data)[1]
    end = data.index(b"\n", start)
    line = grown(data[start:end], size)
    assert not size or len(line) == max(size, end - start)
    return data[:start] + line + data[end:]


def opened(folder: Path) -> list[Boundary | None]:
    """Return the boundaries that a reader sees, without their places."""
    with open_session(folder) as session:
        found = [info.boundary for info in session.segments]
    return [boundary and replace(boundary, offset=0) for boundary in found]


@every_client
@any_size
def test_a_set_says_the_same_without_its_manifest(of: Specimen, size: int, tmp_path: Path) -> None:
    path, folder = tmp_path / "s.jsonl", tmp_path / "out"
    path.write_bytes(data := with_a_line_of(of, size))
    assert len(sets.made(path, folder).segments) == len(of.boundaries(data)) + 1
    told = opened(folder)
    assert None not in told[1:]
    (folder / "manifest.json").unlink()
    assert opened(folder) == told
    assert load.load(folder).problems == ()


@every_client
@any_size
def test_another_tools_set_says_the_same(of: Specimen, size: int, tmp_path: Path) -> None:
    path, folder, theirs = tmp_path / "s.jsonl", tmp_path / "out", tmp_path / "theirs"
    path.write_bytes(data := with_a_line_of(of, size))
    sets.made(path, folder)
    theirs.mkdir()
    for index, (start, end) in enumerate(pairwise([0, *of.boundaries(data), len(data)])):
        parent = "s.jsonl" if index == 1 else f"s.{index - 1}.jsonl"
        head = {
            "type": "system",
            "subtype": "segment_header",
            "parentFile": parent,
            "rootSession": "s",
            "segmentIndex": index,
        }
        body = json.dumps(head).encode() + b"\n" + data[start:end] if index else data[:end]
        (theirs / (f"s.{index}.jsonl" if index else "s.jsonl")).write_bytes(body)
    assert opened(theirs) == opened(folder)


@any_size
def test_a_lost_manifest_is_made_again_whatever_the_size_of_the_line(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = session(3)
    start = data.index(b'"compact_boundary"')
    start, end = data.rindex(b"\n", 0, start) + 1, data.index(b"\n", start)
    data = data[:start] + grown(data[start:end], size) + data[end:]
    home = homes.home(tmp_path, monkeypatch, data)
    home.rotate()
    told = json.loads((home.archive / "manifest.json").read_bytes())
    (home.archive / "manifest.json").unlink()
    home.rotate()
    again = json.loads((home.archive / "manifest.json").read_bytes())
    boundaries = [entry["boundary"] for entry in told["segments"]]
    assert [entry["boundary"] for entry in again["segments"]] == boundaries
    assert home.problems() == []
    assert home.stitched() == data


def test_a_line_of_290_mb_is_told_in_constant_memory() -> None:
    line = b'{"timestamp":"2026-02-10T08:00:00.000Z","type":"compacted","payload":{"message":"m",'
    line += b'"replacement_history":["'

    def body() -> Iterator[bytes]:
        yield line
        piece = b"x" * (4 * PIECE)
        for _ in range(290_000_000 // len(piece)):
            yield piece
        yield b'"]}}\n{}\n'

    tracemalloc.start()
    try:
        found = scan.boundary(codex, body, 7)
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()
    assert found == Boundary(7, timestamp="2026-02-10T08:00:00.000Z", trigger=codex.CARRIES)


@every_client
def test_only_what_the_scan_finds_opens_a_segment(of: Specimen) -> None:
    marked = of.client.MARKER
    escaped = b"".join(b"\\u%04x" % byte if byte in b"cm" else bytes([byte]) for byte in marked)
    data = of.made(1)
    start = of.boundaries(data)[0]
    line = data[start : data.index(b"\n", start)]
    assert scan.boundary(of.client, lambda: [line]) is not None
    assert scan.boundary(of.client, lambda: [line.replace(marked, escaped)]) is None


@every_client
@given(lengths=st.lists(st.integers(1, 200_000), max_size=20), size=st.sampled_from(SIZES[:6]))
def test_it_does_not_matter_in_what_pieces_the_line_comes(
    of: Specimen, lengths: list[int], size: int
) -> None:
    data = with_a_line_of(of, size)[of.boundaries(of.made(3))[1] :]
    line = data[: data.index(b"\n")]
    whole = of.client.boundary([line], Span(0, len(line)))

    def body() -> Iterator[bytes]:
        at = 0
        for length in lengths:
            yield data[at : at + length]
            at += length
        yield data[at:]

    assert isinstance(whole, Boundary)
    assert scan.boundary(of.client, body) == whole
    assert scan.time(of.client, body) == whole.timestamp
