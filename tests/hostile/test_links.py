"""Folders that are links, as with dotfiles or a larger disk: a session is found, and only its own
files are touched.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final

import pytest

from support import homes
from support.command_line import ID, names_in, piped, session, write

if TYPE_CHECKING:
    from pathlib import Path

    from support.homes import Home

DATA: Final = session(boundaries=3)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Give a client's folder that is not there yet."""
    return homes.Home(tmp_path / "claude")


def linked(path: Path, target: Path) -> None:
    target.mkdir(parents=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def check_rotated_and_restored(home: Home) -> None:
    assert piped("split", "--in-place", ID, env=home.env).code == 0
    assert home.live.stat().st_size < len(DATA)
    assert piped("stitch", ID, env=home.env).out.encode() == DATA
    assert piped("restore", ID, env=home.env).code == 0
    assert home.live.read_bytes() == DATA


@pytest.mark.parametrize("folder", ["client", "projects", "project", "archives"])
def test_a_session_is_rotated_and_restored_where_a_folder_is_a_link(
    home: Home, tmp_path: Path, folder: str
) -> None:
    links = {
        "client": home.config,
        "projects": home.config / "projects",
        "project": home.live.parent,
        "archives": home.config / "sessrotate",
    }
    linked(links[folder], tmp_path / "elsewhere")
    write(home.live, DATA)
    check_rotated_and_restored(home)


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_running_client_is_seen_through_a_link(
    home: Home, tmp_path: Path, is_linked: bool
) -> None:
    if is_linked:
        linked(home.config / "projects", tmp_path / "elsewhere")
    write(home.live, DATA)
    registered = {"pid": os.getpid(), "sessionId": ID, "cwd": "/"}
    write(home.config / "sessions" / f"{os.getpid()}.json", json.dumps(registered).encode())
    assert piped("split", "--in-place", ID, env=home.env).code == 75
    assert home.live.read_bytes() == DATA


def test_an_archive_that_is_a_link_to_a_folder_of_others_costs_none_of_their_files(
    home: Home, tmp_path: Path
) -> None:
    others = tmp_path / "downloads"
    linked(home.archive, others)
    write(others / "film.mp4.partial", b"theirs")
    write(others / "late", b"theirs too")
    write(home.live, DATA)
    piped("split", "--in-place", ID, env=home.env)
    assert {"film.mp4.partial", "late"} <= set(names_in(others))
    assert piped("stitch", ID, env=home.env).out.encode() in {DATA, b""}


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no owners here")
def test_a_folder_of_archives_that_leads_to_another_users_is_refused(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "elsewhere"
    linked(home.config / "sessrotate", store)
    write(home.live, DATA)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    ended = piped("split", "--in-place", ID, env=home.env)
    assert ended.code == 77
    assert "another user's" in ended.err
    assert home.live.read_bytes() == DATA
    assert [path for path in store.rglob("*") if path.suffix == ".jsonl"] == []


@pytest.mark.parametrize("level", ["project", "session"])
def test_a_link_below_the_folder_of_archives_is_refused_by_whatever_comes_by(
    home: Home, tmp_path: Path, level: str
) -> None:
    write(home.live, DATA)
    assert piped("split", "--in-place", ID, env=home.env).code == 0
    folder = home.archive if level == "session" else home.archive.parent
    folder.rename(tmp_path / "moved-away")
    folder.symlink_to(tmp_path / "moved-away")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "moved-away").rglob("*")}
    for command in (
        ("stitch", ID),
        ("verify", ID),
        ("restore", ID),
        ("archive", ID),
        ("compress", ID),
        ("pin", ID, "1"),
        ("prune", ID, "--keep-last", "1", "--yes"),
        ("split", "--in-place", ID),
    ):
        ended = piped(*command, env=home.env)
        assert ended.code == 77, (command, ended)
        assert "symbolic link" in ended.err + ended.out
    assert "symbolic link" in piped("doctor", env=home.env).out
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "moved-away").rglob("*")}
    assert after == before


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes here")
def test_a_rotation_keeps_extended_attributes(home: Home) -> None:
    write(home.live, DATA)
    try:
        os.setxattr(home.live, "user.tag", b"keep")
    except OSError as error:
        pytest.skip(f"the file system takes none: {error}")
    assert piped("split", "--in-place", ID, env=home.env).code == 0
    assert os.getxattr(home.live, "user.tag") == b"keep"
