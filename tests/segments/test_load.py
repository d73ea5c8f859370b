"""Which set a folder, or a file in it, stands for; what damage is called."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from sessrotate.errors import DamagedError, NotASessionError, WrongUsageError
from sessrotate.model import CODECS, LAYOUTS, Codec, Layout
from sessrotate.segments import load
from sessrotate.segments.header_chain import Folder
from support import sets
from support.lines import session


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "s.jsonl"
    path.write_bytes(session(4))
    return path


def a_set(source: Path, folder: Path, layout: Layout, codec: Codec, keep: bool) -> list[Path]:
    """Split into a folder; return the segments' files in order."""
    sets.made(source, folder, layout, codec)
    listed = json.loads((folder / "manifest.json").read_bytes())["segments"]
    if not keep:
        (folder / "manifest.json").unlink()
    return [folder / entry["file"] for entry in listed]


@pytest.fixture(
    params=product(LAYOUTS, CODECS, (True, False)),
    ids=lambda of: "-".join([*of[:2], "manifest" if of[2] else "headers"]),
)
def files(request: pytest.FixtureRequest, source: Path, tmp_path: Path) -> list[Path]:
    """Give the segments' files of a session of four, in every form that a set has."""
    return a_set(source, tmp_path / "out", *request.param)


def test_a_set_is_found_by_its_folder_and_by_any_of_its_files(
    source: Path, tmp_path: Path, files: list[Path]
) -> None:
    assert sets.stitched(tmp_path / "out") == source.read_bytes()
    for file in files:
        assert load.is_segment(Folder(file.parent), file.name)
        assert sets.stitched(file.parent, file.name) == source.read_bytes()


def test_the_first_segment_alone_is_not_taken_for_a_whole_session(
    source: Path, tmp_path: Path
) -> None:
    files = a_set(source, tmp_path / "out", "numbered", "plain", keep=False)
    for file in files[1:]:
        file.unlink()
    with pytest.raises(DamagedError, match="no record says how many"):
        sets.stitched(tmp_path / "out")


def test_two_sets_in_one_folder_are_told_apart_by_a_file(source: Path, tmp_path: Path) -> None:
    other = tmp_path / "t.jsonl"
    other.write_bytes(session(3, rows=2))
    folder = tmp_path / "out"
    sets.made(source, folder)
    sets.made(other, tmp_path / "more")
    (folder / "manifest.json").unlink()
    for file in (tmp_path / "more").glob("*.jsonl"):
        file.rename(folder / file.name)
    with pytest.raises(WrongUsageError, match="several sessions"):
        load.load(folder)
    assert sets.stitched(folder, "t.2.jsonl") == other.read_bytes()
    assert sets.stitched(folder, "s.jsonl") == source.read_bytes()


def test_a_session_whose_name_ends_like_a_segments_is_split_and_found(tmp_path: Path) -> None:
    path = tmp_path / "s.3.jsonl"
    path.write_bytes(session(3))
    sets.made(path, tmp_path / "out")
    (tmp_path / "out" / "manifest.json").unlink()
    assert sets.stitched(tmp_path / "out") == path.read_bytes()


def test_a_session_that_begins_with_a_header_of_ours_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(session(3))
    sets.made(path, tmp_path / "out")
    segment = tmp_path / "s.1.jsonl"
    segment.write_bytes((tmp_path / "out" / "s.1.jsonl").read_bytes() + session(2))
    for layout in LAYOUTS:
        folder = tmp_path / layout
        sets.made(segment, folder, layout)
        (folder / "manifest.json").unlink()
        assert sets.stitched(folder) == segment.read_bytes()


def test_a_plain_session_is_no_segment(source: Path) -> None:
    assert not load.is_segment(Folder(source.parent), source.name)


def test_a_folder_without_segments_is_no_set(tmp_path: Path) -> None:
    with pytest.raises(NotASessionError):
        load.load(tmp_path)


def test_a_manifest_that_gives_another_digest_of_the_whole_is_noticed(
    source: Path, tmp_path: Path
) -> None:
    a_set(source, tmp_path / "out", "numbered", "plain", keep=True)
    path = tmp_path / "out" / "manifest.json"
    told = json.loads(path.read_bytes())["source"]["digest"].encode()
    path.write_bytes(path.read_bytes().replace(told, b"xxh3_128:" + b"0" * 32))
    with pytest.raises(DamagedError, match="digest of the whole"):
        sets.stitched(tmp_path / "out")
    (problem,) = sets.holder(load.load(tmp_path / "out")).verify(sets.nothing)
    assert problem.kind == "manifest"


@pytest.mark.parametrize(
    "damage",
    [lambda _data: b"", lambda data: data.replace(b"segment_header", b"segment_headex", 1)],
)
def test_a_damaged_segment_is_never_taken_for_a_session(
    source: Path, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    files = a_set(source, tmp_path / "out", "numbered", "plain", keep=False)
    files[2].write_bytes(damage(files[2].read_bytes()))
    found = load.find(files[2])
    assert found is not None
    with pytest.raises(DamagedError, match="Segment 2 "):
        sets.whole(found)


def test_a_compressed_segment_alone_is_never_taken_for_a_session(
    source: Path, tmp_path: Path
) -> None:
    files = a_set(source, tmp_path / "out", "numbered", "zstd", keep=False)
    alone = tmp_path / "alone" / files[0].name
    alone.parent.mkdir()
    files[0].rename(alone)
    found = load.find(alone)
    assert found is not None
    assert found.problems


def test_a_manifest_of_another_program_says_nothing(source: Path) -> None:
    (source.parent / "manifest.json").write_text('{"name": "an extension"}')
    assert load.find(source) is None


def test_a_leftover_beside_a_set_is_named_and_does_no_harm(source: Path, tmp_path: Path) -> None:
    a_set(source, tmp_path / "out", "numbered", "plain", keep=True)
    (tmp_path / "out" / "s.9.jsonl").write_bytes(b"stray")
    (problem,) = sets.holder(load.load(tmp_path / "out")).verify(sets.nothing)
    assert problem.kind == "leftover"
    assert sets.stitched(tmp_path / "out") == source.read_bytes()
