"""A source that changes while it is read: grown by whole lines it is as it was, else that is 75.

Changes happen at exact moments: when bytes are read for the nth time, or progress is told.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from sessrotate.errors import InUseError
from sessrotate.model import Codec, Layout
from sessrotate.segments import load, split
from sessrotate.system.source import Source
from support import sets
from support.command_line import (
    ID,
    append,
    assert_one_sentence,
    boundary,
    called,
    contents,
    patched,
    piped,
    row,
)
from support.command_line import session as rows_of

Change = Callable[[Path], None]
DATA: Final = rows_of(boundaries=3, rows=3)
LATE: Final = boundary(90) + row(91)


def grow(path: Path) -> None:
    append(path, LATE)


def shrink(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def replace(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    other.rename(path)


def remove(path: Path) -> None:
    path.unlink()


def edit(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(len(DATA) // 2)
        file.write(b"#")


def rewrite(path: Path) -> None:
    """Write the same number of other bytes through a truncation, as an editor does."""
    path.write_bytes(path.read_bytes().replace(b"row", b"ROW"))


BAD: Final[list[Change]] = [shrink, empty, replace, remove, edit, rewrite]


class Watched(Source):
    """A source that changes when it is read for the nth time."""

    def __init__(self, path: Path, change: Change, at: int) -> None:
        super().__init__(path)
        self.reads = 0
        self._change, self._at = change, at

    def read_into(self, buffer: memoryview, offset: int) -> int:
        self.reads += 1
        if self.reads == self._at:
            self._change(self.path)
        return super().read_into(buffer, offset)


def nothing(_path: Path) -> None:
    pass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / f"{ID}.jsonl"
    path.write_bytes(DATA)
    return path


def ignore(_done: int) -> None:
    pass


def run(source: Source, folder: Path, layout: Layout = "numbered", codec: Codec = "plain") -> None:
    plan = split.prepare(source, ignore, layout=layout, codec=codec)
    split.execute(plan, source, folder, ignore)


def reads_of(path: Path, folder: Path, codec: Codec) -> tuple[int, int]:
    """Return how often the source is read by the scan, and by all of a split."""
    with Watched(path, nothing, 0) as source:
        plan = split.prepare(source, ignore, layout="numbered", codec=codec)
        planned = source.reads
        split.execute(plan, source, folder, ignore)
        return planned, source.reads


def whole(folder: Path) -> bytes:
    return sets.whole(load.load(folder))


@pytest.mark.parametrize("codec", ["plain", "zstd"])
@pytest.mark.parametrize("change", BAD)
def test_any_other_change_at_any_moment_is_an_error_and_leaves_no_finished_set(
    change: Change, codec: Codec, path: Path, tmp_path: Path
) -> None:
    _, reads = reads_of(path, tmp_path / "sound", codec)
    unnoticed, said = [], []
    for at in range(1, reads):  # the last one comes behind the checks
        path.write_bytes(DATA)
        folder = tmp_path / str(at)
        try:
            with Watched(path, change, at) as source:
                run(source, folder, codec=codec)
        except InUseError as error:
            said.append(str(error))
        else:
            unnoticed.append(at)
        if folder.exists() and at not in unnoticed:
            assert "manifest.json" not in contents(folder)
            assert "intent.json" in contents(folder)
    assert unnoticed == []
    assert all(text and "\n" not in text for text in said)


@pytest.mark.parametrize("codec", ["plain", "zstd"])
def test_the_source_is_never_written_to(codec: Codec, path: Path, tmp_path: Path) -> None:
    _, reads = reads_of(path, tmp_path / "sound", codec)
    for at in range(1, reads):
        path.write_bytes(DATA)
        changed: list[bytes] = []

        def change(path: Path, seen: list[bytes] = changed) -> None:
            edit(path)
            seen.append(path.read_bytes())

        with Watched(path, change, at) as source, pytest.raises(InUseError):
            run(source, tmp_path / str(at), codec=codec)
        assert changed == [path.read_bytes()]


@pytest.mark.parametrize("codec", ["plain", "zstd"])
def test_a_source_that_grows_at_any_moment_is_split_as_it_was(
    codec: Codec, path: Path, tmp_path: Path
) -> None:
    _, reads = reads_of(path, tmp_path / "sound", codec)
    for at in range(1, reads + 1):
        path.write_bytes(DATA)
        with Watched(path, grow, at) as source:
            run(source, tmp_path / str(at), codec=codec)
        assert path.read_bytes() == DATA + LATE
        assert whole(tmp_path / str(at)) == DATA
        assert contents(tmp_path / str(at)) == contents(tmp_path / "sound")


TORN: Final = b'{"type":"user","uuid":"torn","sess'


@pytest.mark.parametrize("codec", ["plain", "zstd"])
def test_of_a_line_that_is_being_written_no_set_has_a_part(
    codec: Codec, path: Path, tmp_path: Path
) -> None:
    """Whenever it grows: the split ends at the last newline that there was, or is an error."""
    path.write_bytes(DATA + TORN)
    _, reads = reads_of(path, tmp_path / "sound", codec)
    wrong: list[int] = []
    for at in range(1, reads + 1):
        path.write_bytes(DATA + TORN)
        folder = tmp_path / str(at)
        try:
            with Watched(path, grow, at) as source:
                run(source, folder, codec=codec)
        except InUseError:
            wrong += [at] if (folder / "manifest.json").exists() else []
        else:
            wrong += [at] if whole(folder) != DATA else []
    assert wrong == []


def test_a_line_that_is_being_written_while_it_is_scanned_is_left_out(
    path: Path, tmp_path: Path
) -> None:
    torn = boundary(50).rstrip(b"\n")
    path.write_bytes(DATA + torn)
    with Watched(path, grow, 1) as source:
        run(source, tmp_path / "set")
    assert whole(tmp_path / "set") == DATA


def test_a_last_line_without_a_newline_belongs_to_it_when_nothing_is_written(
    path: Path, tmp_path: Path
) -> None:
    path.write_bytes(DATA + TORN)
    with Source(path) as source:
        run(source, tmp_path / "set")
    assert whole(tmp_path / "set") == DATA + TORN


@pytest.mark.parametrize("change", [shrink, replace, edit])
def test_a_change_between_the_plan_and_the_split_is_noticed(
    change: Change, path: Path, tmp_path: Path
) -> None:
    with Source(path) as source:
        plan = split.prepare(source, ignore, layout="numbered", codec="plain")
        change(path)
        with pytest.raises(InUseError):
            split.execute(plan, source, tmp_path / "set", ignore)
    assert "manifest.json" not in contents(tmp_path / "set")


def test_an_edit_that_hides_behind_growth_never_makes_a_set_of_wrong_cuts(
    path: Path, tmp_path: Path
) -> None:
    """A file that was edited and has grown looks grown; its cuts must still be boundaries."""

    def edit_and_grow(path: Path) -> None:
        moved = DATA.replace(b'"row 1 ', b'"row 1 longer, so that all moves ')
        path.write_bytes(moved + LATE)

    with Source(path) as source:
        plan = split.prepare(source, ignore, layout="numbered", codec="plain")
        edit_and_grow(path)
        try:
            split.execute(plan, source, tmp_path / "set", ignore)
        except InUseError:
            return
    bodies = [
        (tmp_path / "set" / f"{ID}{suffix}.jsonl").read_bytes().partition(b"\n")[2]
        for suffix in (".1", ".2", ".3")
    ]
    assert all(b'"compact_boundary"' in body.partition(b"\n")[0] for body in bodies)


@pytest.mark.parametrize("change", ["truncate", "rename"])
def test_the_command_says_it_in_one_sentence_and_the_next_run_works(
    change: str, path: Path, tmp_path: Path
) -> None:
    program = patched(
        "import os, sys, sessrotate.fs as fs; append, left = fs.NewFile.append, [4]\n"
        "path = sys.argv[2]\n"
        "def changing(self, data):\n"
        "    left[0] -= 1\n"
        "    if left[0] == 0 and "
        f"{change!r} == 'truncate':\n"
        "        os.truncate(path, 10)\n"
        "    elif left[0] == 0:\n"
        "        os.rename(path + '.new', path)\n"
        "    append(self, data)\n"
        "fs.NewFile.append = changing"
    )
    path.with_suffix(".jsonl.new").write_bytes(DATA)
    ended = piped("split", path, "--out", tmp_path / "set", program=program)
    assert_one_sentence(ended, 75)
    assert "intent.json" in contents(tmp_path / "set")
    assert_one_sentence(called("stitch", tmp_path / "set", "-o", tmp_path / "whole"), 74)
    path.write_bytes(DATA)
    again = called("split", path, "--out", tmp_path / "set")
    assert (again.code, "unfinished" in again.err) == (0, True)
    assert whole(tmp_path / "set") == DATA


def test_stitching_a_live_session_gives_what_it_was_at_the_opening(
    path: Path, tmp_path: Path
) -> None:
    program = patched(
        "import sys, sessrotate.fs as fs\n"
        "names = [name for name in dir(fs) if name.endswith('OutputFile')]\n"
        "append, path = fs.OutputFile.append, sys.argv[2]\n"
        "def growing(self, data):\n"
        "    open(path, 'ab').write(b'late\\n')\n"
        "    append(self, data)\n"
        "fs.OutputFile.append = growing"
    )
    ended = piped("stitch", path, "-o", tmp_path / "whole", program=program)
    assert ended.code == 0, ended.err
    assert (tmp_path / "whole").read_bytes() == DATA


def test_every_segment_that_was_written_before_a_change_is_sound(
    path: Path, tmp_path: Path
) -> None:
    planned, reads = reads_of(path, tmp_path / "sound", "plain")
    sound = contents(tmp_path / "sound")
    for at in range(planned + 1, reads + 1):
        path.write_bytes(DATA)
        folder = tmp_path / str(at)
        with Watched(path, shrink, at) as source, pytest.raises(InUseError):
            run(source, folder)
        found = contents(folder)
        assert json.loads(found.pop("intent.json"))["session"] == ID
        assert sum(data != sound[name] for name, data in found.items()) <= 1
