"""A split into a folder: what is accepted, what is refused, and what a changing source does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sessrotate import fs
from sessrotate.errors import InUseError, RefusedError, StorageError
from sessrotate.segments import split
from sessrotate.system.source import Source
from support import sets
from support.lines import BOUNDARY_LINE, row, session

if TYPE_CHECKING:
    pass


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "s.jsonl"
    path.write_bytes(session(4))
    return path


def test_an_unfinished_split_with_something_else_in_it_is_refused(
    source: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for name in ("intent.json", "s.1.jsonl", "notes.txt"):
        (folder / name).write_bytes(b'{"session": "s"}')
    with pytest.raises(RefusedError, match="not only of this session"):
        sets.made(source, folder)
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("named", ["directly", "by a linked folder", "by a hard link"])
def test_a_session_inside_the_folder_is_never_taken_for_a_leftover(
    source: Path, tmp_path: Path, named: str
) -> None:
    data = source.read_bytes()
    folder = tmp_path / "out"
    folder.mkdir()
    inside = folder / source.name
    if named == "by a hard link":
        inside.hardlink_to(source)
    else:
        source.rename(inside)
    (tmp_path / "link").symlink_to(folder)
    path = {"directly": inside, "by a linked folder": tmp_path / "link" / source.name}.get(
        named, source
    )
    (folder / "intent.json").write_text('{"session": "s"}')
    with pytest.raises(RefusedError):
        sets.made(path, folder)
    assert inside.read_bytes() == data


@pytest.mark.parametrize("intent", [b"", b"{}", b"[]", b'{"session": "other"}', b"\xff"])
def test_a_foreign_intent_gives_no_right_to_remove_anything(
    source: Path, tmp_path: Path, intent: bytes
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "intent.json").write_bytes(intent)
    (folder / "s.1.jsonl").write_bytes(b"mine")
    with pytest.raises(RefusedError):
        sets.made(source, folder)
    assert (folder / "s.1.jsonl").read_bytes() == b"mine"


def test_a_torn_intent_alone_is_what_a_crash_leaves(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "intent.json").touch()
    sets.made(source, folder)
    assert sets.stitched(folder) == source.read_bytes()


def test_a_boundary_alone_makes_a_session_of_anything(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\xff\x00\n" + BOUNDARY_LINE)
    assert len(sets.planned(path).segments) == 2


def test_a_full_disk_is_seen_before_anything_is_written(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fs, "free_bytes", lambda _path: 10)
    with pytest.raises(StorageError, match="nothing was written"):
        sets.made(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_another_split_writes_to_is_left_alone(source: Path, tmp_path: Path) -> None:
    refusals: list[str] = []

    def meanwhile(_done: int) -> None:
        with pytest.raises(InUseError) as caught:
            sets.made(source, tmp_path / "out")
        refusals.append(str(caught.value))

    with Source(source) as opened:
        plan = split.prepare(opened, sets.nothing, layout="numbered", codec="plain")
        split.execute(plan, opened, tmp_path / "out", meanwhile)
    assert refusals
    assert "Another split" in refusals[0]
    assert sets.stitched(tmp_path / "out") == source.read_bytes()


# ── a source that changes between the plan and the end of the writing ────────────────────────


@pytest.mark.parametrize("end", [row(8), BOUNDARY_LINE])
def test_a_last_line_that_somebody_goes_on_with_meanwhile_is_an_error_once(
    tmp_path: Path, end: bytes
) -> None:
    path, folder = tmp_path / "s.jsonl", tmp_path / "out"
    path.write_bytes(session(2) + end[:-1])
    with Source(path) as opened:
        plan = split.prepare(opened, sets.nothing, layout="numbered", codec="plain")
        with path.open("ab") as file:
            file.write(end[-1:] + b"\n")
        with pytest.raises(InUseError, match="try again"):
            split.execute(plan, opened, folder, sets.nothing)
    assert not (folder / "manifest.json").exists()
    sets.made(path, folder)
    assert sets.stitched(folder) == path.read_bytes()


def test_the_manifest_says_what_was_planned(source: Path, tmp_path: Path) -> None:
    manifest = sets.made(source, tmp_path / "out")
    plan = sets.planned(source)
    assert tuple(entry.segment for entry in manifest.segments) == plan.segments
    listed = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert listed["session"] == "s"
    assert [entry["boundary"] is None for entry in listed["segments"]] == [True] + [False] * 3
    assert listed["segments"][1]["boundary"]["preTokens"] == 155_000
