"""`config`: the file is written once, and what is in force is shown with where it comes from."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

import pytest

from sessrotate.job.config import KEYS, commented
from support.command_line import assert_one_sentence, called, names_in, piped, write
from support.homes import Home, snapshot
from support.limits import limited

SOME: Final = '[prune]\nkeep_last = 3\n\n[rotate]\nmin_gain = "2G"\n'


@pytest.fixture
def file(home: Home) -> Path:
    return home.config.parent / "xdg-config" / "sessrotate" / "config.toml"


def test_the_file_is_written_commented_and_private(home: Home, file: Path) -> None:
    ended = piped("config", "init", env=home.env, umask=0)
    assert (ended.code, ended.out, ended.err) == (0, f"Wrote {file}.\n", "")
    assert file.read_text() == commented()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert names_in(file.parent) == ["config.toml"]
    assert str(file) in called("config", "show").out


@pytest.mark.parametrize("kind", ["file", "empty", "dangling", "folder"])
def test_what_is_there_is_never_written_over(file: Path, kind: str) -> None:
    file.parent.mkdir(parents=True)
    if kind == "dangling":
        file.symlink_to("nowhere")
    elif kind == "folder":
        file.mkdir()
    else:
        file.write_text("# mine\n" if kind == "file" else "")
    before = snapshot(file.parent)
    assert_one_sentence(called("config", "init"), 77)
    assert snapshot(file.parent) == before


def test_a_full_disk_is_an_error_and_leaves_no_half_of_it(home: Home, file: Path) -> None:
    ended = piped("config", "init", env=home.env, program=limited("RLIMIT_FSIZE", 100))
    assert_one_sentence(ended, 74)
    assert not file.exists()
    assert called("config", "init").code == 0


def test_what_is_in_force_is_shown_with_its_origin(file: Path) -> None:
    said = called("config", "show").out
    assert "no such file" in said
    assert {line.split()[-1] for line in said.splitlines()[2:]} == {"default"}
    write(file, SOME.encode())
    said = called("config", "show").out
    assert "no such file" not in said
    rows = {line.split()[0]: line.split()[1:] for line in said.splitlines()[2:]}
    assert set(rows) == {key.title for key in KEYS}
    assert rows["prune.keep_last"] == ["3", "line", "2"]
    assert rows["rotate.min_gain"] == ['"2G"', "line", "5"]
    assert rows["prune.max_age"] == ["-", "default"]


def test_programs_get_bytes_and_seconds(file: Path) -> None:
    write(file, SOME.encode())
    document = called("config", "show", "--json").document()
    assert document["file"] == str(file)
    assert document["is_there"] is True
    assert document["settings"]["rotate"]["min_gain"] == {
        "value": 2 << 30,
        "given": "2G",
        "from": "file",
        "line": 5,
    }
    grace = document["settings"]["trash"]["grace"]
    assert grace == {"value": 604800.0, "given": "7d", "from": "default", "line": None}
    assert document["settings"]["archive"]["older_than"]["value"] is None


def test_another_file_can_be_named(file: Path, tmp_path: Path) -> None:
    write(file, b"[rotate]\nlive = true\n")
    other = write(tmp_path / "with space" / "o.toml", b'[trash]\ngrace = "1h"\n')
    document = called("config", "show", "--json", "--config", other).document()
    assert document["file"] == str(other)
    assert document["settings"]["rotate"]["live"]["value"] is False
    assert document["settings"]["trash"]["grace"]["value"] == 3600


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            b"[prune]\nkeep-last = 3\n",
            "Unknown setting in [prune]: keep-last (did you mean",
        ),
        (b"\xff", "not UTF-8"),
        (b"[", "not TOML"),
        (b"#" * 70_000, "too large"),
    ],
)
@pytest.mark.parametrize("command", [["config", "show"], ["run"], ["run", "--dry-run"]])
def test_a_file_that_is_wrong_is_named_and_nothing_is_done(
    home: Home, file: Path, data: bytes, words: str, command: list[str]
) -> None:
    write(file, data)
    before = snapshot(home.config.parent)
    ended = called(*command)
    assert_one_sentence(ended, 2)
    assert str(file) in ended.err
    assert words in ended.err
    assert snapshot(home.config.parent) == before


def test_a_named_file_must_be_there(tmp_path: Path, home: Home) -> None:
    assert str(home.config)  # the user's own are not looked at
    assert_one_sentence(called("config", "show", "--config", tmp_path / "none"), 2)
    assert_one_sentence(called("config", "show", "--config", tmp_path), 2)


def test_a_byte_order_mark_of_an_editor_is_no_obstacle(file: Path) -> None:
    write(file, b"\xef\xbb\xbf[rotate]\r\nlive = true\r\n")
    (row,) = [line for line in called("config", "show").out.splitlines() if "rotate.live" in line]
    assert row.split() == ["rotate.live", "true", "line", "2"]
