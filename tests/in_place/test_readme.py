"""Whoever looks for space finds what the folder of archives is; nothing depends on that text."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from sessrotate import fs
from sessrotate.archive import place
from sessrotate.in_place import operations
from sessrotate.retention import trash
from support import homes
from support.command_line import ID, boundary, called, row, session
from support.crash.changes import Faults, Killed
from support.homes import Home

DATA: Final = session(boundaries=2)


def text(home: Home) -> Path:
    return home.config / "sessrotate" / "README"


def test_the_folder_of_archives_says_what_it_is_and_what_to_do_instead(home: Home) -> None:
    home.rotate()
    said = text(home).read_text()
    assert "history of your" in said
    assert "Do not delete" in said
    assert max(map(len, said.splitlines())) <= 100
    for command in ("list", "prune --all", "restore SESSION", "verify --all"):
        assert f"sessrotate {command}" in said
    assert text(home).stat().st_mode & 0o7777 == 0o600
    assert said.encode() == operations.README


@pytest.mark.parametrize("told", re.findall(r"sessrotate (\w.*)", operations.README.decode()[200:]))
def test_every_command_that_it_names_does_what_it_says(home: Home, told: str) -> None:
    home.rotate()
    assert called(*told.replace("SESSION", ID).split()).code == 0
    assert home.stitched() == DATA


def test_a_session_that_was_put_away_whole_leaves_it_too(home: Home) -> None:
    assert called("archive", ID).code == 0
    assert text(home).exists()


def test_what_somebody_put_there_stays(home: Home) -> None:
    text(home).parent.mkdir()
    text(home).write_bytes(b"mine")
    home.rotate()
    assert text(home).read_bytes() == b"mine"


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_no_command_takes_what_has_its_name_for_anything(home: Home, kind: str) -> None:
    outside = home.config.parent / "outside"
    outside.mkdir()
    home.rotate()
    text(home).unlink()
    if kind == "folder":
        (text(home) / ID).mkdir(parents=True)
    else:
        text(home).symlink_to(outside)
    home.append(boundary(80) + row(81))
    home.rotate()
    assert [where.project for where in place.archives()] == [homes.PROJECT]
    assert list(outside.iterdir()) == []


def test_it_is_no_archive_no_leftover_and_no_stranger(home: Home) -> None:
    home.rotate()
    assert [where.session for where in place.archives()] == [ID]
    assert called("doctor", "--json").document()["findings"] == []
    ended = called("verify", "--all", "--json")
    assert (ended.code, ended.document()["problems"]) == (0, [])
    (listed,) = called("list", "--json").document()
    assert listed["archived_disk_bytes"] == homes.on_disk(home.archive)


def test_a_full_disk_keeps_it_from_being_written_and_nothing_else(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fs.create_file_at_once

    def full(path: Path, data: bytes) -> None:
        if path == text(home):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(fs, "create_file_at_once", full)
        assert home.rotate().seconds is not None
        assert not text(home).exists()
    home.append(boundary(80) + row(81))
    home.rotate()
    assert text(home).read_bytes() == operations.README


def test_a_kill_while_it_is_written_leaves_none_or_all_of_it(home: Home) -> None:
    home.rotate()
    for at in range(1, 20):
        text(home).unlink(missing_ok=True)
        crash = Faults(at)
        with crash.installed(), suppress(Killed):
            operations.leave_readme(home.where)
        assert not text(home).exists() or text(home).read_bytes() == operations.README
        assert called("doctor").code == 0
        if not crash.failed:
            break
    else:
        pytest.fail("it never ended")
    assert [path.name for path in text(home).parent.iterdir() if path.is_file()] == ["README"]


def test_what_a_kill_left_of_it_goes_though_nothing_is_archived_any_more(home: Home) -> None:
    home.rotate()
    home.restore()
    assert trash.empty(home.where, 0, 4e9, 1) > 0
    text(home).rename(text(home).with_name("README.partial"))
    home.restore()
    assert not [path for path in text(home).parent.iterdir() if path.is_file()]


@pytest.mark.parametrize(("of", "fails"), [(os, "fsync"), (Path, "rename")])
def test_a_failure_while_it_is_written_leaves_nothing_of_it(
    home: Home, monkeypatch: pytest.MonkeyPatch, of: object, fails: str
) -> None:
    home.rotate()
    text(home).unlink()
    monkeypatch.setattr(of, fails, homes.failing(errno.ENOSPC))
    operations.leave_readme(home.where)
    assert not [path for path in text(home).parent.iterdir() if path.is_file()]


def test_where_nothing_is_archived_there_is_none(home: Home) -> None:
    home.live.write_bytes(row(1))
    home.rotate()
    assert not text(home).exists()
