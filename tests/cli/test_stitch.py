"""`sessrotate stitch` as people and scripts meet it: a real process, piped and on a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import (
    COMMAND,
    ENVIRONMENT,
    ID,
    SECONDS,
    Ended,
    assert_one_sentence,
    contents,
    modes,
    names_in,
    on_terminal,
    patched,
    piped,
    session,
    write,
)
from support.limits import UNPRIVILEGED, limited

DATA = session()


def cut(folder: Path, *options: str) -> Path:
    """Return a set of segments, and nothing beside it."""
    source = write(folder / f"{ID}.jsonl", DATA)
    assert piped("split", source, "--out", folder / "set", *options).code == 0
    source.unlink()
    return folder / "set"


@pytest.mark.parametrize("command", ["verify", "stitch", "read", "export", "report"])
def test_the_folder_where_one_stands_is_a_set_like_any_other(tmp_path: Path, command: str) -> None:
    folder = cut(tmp_path)
    here, there = piped(command, ".", cwd=folder), piped(command, folder)
    assert (here.code, here.out) == (0, there.out.replace(str(folder), "."))
    assert command != "report" or "`sessrotate stitch . -o FILE` writes the session" in here.out


@pytest.fixture(params=[(), ("--layout", "linked"), ("--compress",)], ids=" ".join)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return cut(tmp_path, *request.param)


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    return cut(tmp_path)


def stitched(*arguments: str | Path) -> bytes:
    """Return what the command writes to a pipe, byte for byte."""
    done = subprocess.run(
        [COMMAND, "stitch", *arguments],
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=SECONDS,
    )
    assert done.stderr == b""
    return done.stdout


def test_the_bytes_go_to_a_pipe_or_into_a_file(folder: Path) -> None:
    assert stitched(folder) == DATA
    assert stitched(folder, "-o", "-") == DATA
    output = folder.parent / "whole"
    ended = piped("stitch", folder, "--output", output)
    assert ended == Ended(0, "", "")
    assert output.read_bytes() == DATA


def test_any_file_of_a_set_stands_for_the_set(folder: Path) -> None:
    for name in names_in(folder):
        if name != "manifest.json":
            assert stitched(folder / name) == DATA, name
    (folder / "manifest.json").unlink()
    for name in names_in(folder):
        assert stitched(folder / name) == DATA, name


def test_a_relative_name_in_the_working_folder_works(numbered: Path) -> None:
    assert piped("stitch", f"{ID}.2.jsonl", "-o", "whole", cwd=numbered) == Ended(0, "", "")
    assert (numbered / "whole").read_bytes() == DATA


def test_a_session_that_was_never_split_is_its_own_history(tmp_path: Path) -> None:
    source = write(tmp_path / f"{ID}.jsonl", DATA)
    assert stitched(source) == DATA
    projects = tmp_path / "projects"
    write(projects / "-srv" / f"{ID}.jsonl", DATA)
    ended = piped(
        *("stitch", ID[:9], "-o", tmp_path / "whole"), env={"CLAUDE_PROJECTS_DIR": str(projects)}
    )
    assert ended == Ended(0, "", "")
    assert (tmp_path / "whole").read_bytes() == DATA


def test_a_terminal_is_refused(numbered: Path) -> None:
    for options in ([], ["-o", "-"]):
        ended = on_terminal("stitch", numbered, *options)
        assert_one_sentence(ended, 2)
        assert "-o" in ended.err


def test_a_terminal_is_no_obstacle_when_there_is_a_file(numbered: Path) -> None:
    assert on_terminal("stitch", numbered, "-o", numbered / "whole") == Ended(0, "", "")


def test_a_device_may_be_written_to(folder: Path) -> None:
    assert piped("stitch", folder, "-o", "/dev/null") == Ended(0, "", "")
    assert Path("/dev/null").is_char_device()
    assert_one_sentence(piped("stitch", folder, "-o", "/dev/full"), 74)


def unread(status: os.stat_result) -> tuple[int, ...]:
    """Return what a status says without the time of the last reading, which looking changes."""
    return (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@pytest.mark.parametrize("kind", ["file", "folder", "symlink", "dangling symlink"])
def test_what_is_there_is_never_written_over(kind: str, numbered: Path) -> None:
    output, mine = numbered.parent / "whole", write(numbered.parent / "mine", b"mine")
    if kind == "file":
        output.write_bytes(b"mine")
    elif kind == "folder":
        output.mkdir()
    else:
        output.symlink_to(mine if kind == "symlink" else "nowhere")
    before = unread(output.lstat())
    assert_one_sentence(piped("stitch", numbered, "-o", output), 77)
    assert unread(output.lstat()) == before
    assert mine.read_bytes() == b"mine"
    assert names_in(numbered.parent) == ["mine", "set", "whole"]


def test_a_file_that_appears_meanwhile_is_not_written_over(numbered: Path) -> None:
    output = numbered.parent / "whole"
    program = patched(
        "import pathlib, sessrotate.fs as fs; publish = fs.OutputFile.publish\n"
        "def late(self):\n"
        f"    pathlib.Path({str(output)!r}).write_bytes(b'mine')\n"
        "    publish(self)\n"
        "fs.OutputFile.publish = late"
    )
    assert_one_sentence(piped("stitch", numbered, "-o", output, program=program), 77)
    assert output.read_bytes() == b"mine"
    assert names_in(numbered.parent) == ["set", "whole"]


def test_an_output_folder_that_is_missing_is_one_sentence(numbered: Path) -> None:
    assert_one_sentence(piped("stitch", numbered, "-o", numbered / "none" / "whole"), 74)


def test_an_output_folder_that_may_not_be_written_is_one_sentence(numbered: Path) -> None:
    place = numbered.parent / "place"
    place.mkdir(mode=0o555)
    ended = piped("stitch", numbered, "-o", place / "whole", program=UNPRIVILEGED)
    assert_one_sentence(ended, 74)


def test_an_unreadable_segment_is_one_sentence_that_names_it(folder: Path) -> None:
    name = min(set(names_in(folder)) - {"manifest.json"})
    (folder / name).chmod(0)
    output = folder.parent / "whole"
    ended = piped("stitch", folder, "-o", output, program=UNPRIVILEGED)
    assert_one_sentence(ended, 74)
    assert name in ended.err
    assert not output.exists()


def test_a_disk_that_gets_full_leaves_no_file(numbered: Path) -> None:
    ended = piped(
        *("stitch", numbered, "-o", numbered.parent / "whole"), program=limited("RLIMIT_FSIZE", 999)
    )
    assert_one_sentence(ended, 74)
    assert names_in(numbered.parent) == ["set"]


def test_a_reader_that_takes_its_time_gets_everything(tmp_path: Path) -> None:
    data = session(boundaries=2, rows=20, padding=64 * 1024)
    source = write(tmp_path / f"{ID}.jsonl", data)
    assert piped("split", source, "--out", tmp_path / "set", "--compress").code == 0
    slow = "import os, sys\nwhile p := os.read(0, 1000): os.write(1, p)"
    ended = piped(
        *("-c", '"$0" stitch "$1" | "$2" -c "$3"', COMMAND, tmp_path / "set", sys.executable, slow),
        program=("/bin/sh",),
    )
    assert ended == Ended(0, data.decode(), "")


@pytest.mark.parametrize("signal_name", ["SIGINT", "SIGTERM"])
def test_an_interrupted_stitch_leaves_no_file(signal_name: str, numbered: Path) -> None:
    before = contents(numbered)
    program = patched(
        "import os, signal, sessrotate.fs as fs; append = fs.OutputFile.append\n"
        "def interrupted(self, data):\n"
        f"    os.kill(os.getpid(), signal.{signal_name})\n"
        "    append(self, data)\n"
        "fs.OutputFile.append = interrupted"
    )
    ended = piped("stitch", numbered, "-o", numbered.parent / "whole", program=program)
    assert ended == Ended(130, "", "sessrotate: Interrupted.\n")
    assert names_in(numbered.parent) == ["set"]
    assert contents(numbered) == before


def test_the_file_is_for_its_owner_alone(numbered: Path) -> None:
    place = numbered.parent / "place"
    place.mkdir()
    assert piped("stitch", numbered, "-o", place / "one", umask=0).code == 0
    assert dict(modes(place))["one"] == 0o600


def test_a_folder_of_several_sessions_asks_for_one(numbered: Path) -> None:
    source = write(numbered.parent / "other.jsonl", session(2))
    other = numbered.parent / "other"
    assert piped("split", source, "--out", other).code == 0
    for folder in (numbered, other):
        (folder / "manifest.json").unlink()
    for path in other.iterdir():
        path.rename(numbered / path.name)
    ended = piped("stitch", numbered, "-o", numbered.parent / "whole")
    assert_one_sentence(ended, 2)
    assert ID in ended.err
    assert stitched(numbered / "other.2.jsonl") == source.read_bytes()
    assert stitched(numbered / f"{ID}.jsonl") == DATA
