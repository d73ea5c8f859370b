"""Folders that are links, as with dotfiles or a larger disk: a session is found, and only its own
files are touched.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.hook import call
from support import homes, opens
from support.command_line import ID, called, names_in, piped, session, write
from support.homes import snapshot

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
    write(others / "pack", b"theirs too")
    write(home.live, DATA)
    piped("split", "--in-place", ID, env=home.env)
    assert {"film.mp4.partial", "pack"} <= set(names_in(others))
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
    assert "another user" in ended.err
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
        ("pin", ID, "1"),
        ("prune", ID, "--keep-last", "1", "--yes"),
        ("split", "--in-place", ID),
        *([("aside", "--yes", ID)] if level == "project" else []),  # a link itself may be moved
    ):
        ended = piped(*command, env=home.env)
        assert ended.code == 77, (command, ended)
        assert "symbolic link" in ended.err + ended.out
    assert "symbolic link" in piped("doctor", env=home.env).out
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "moved-away").rglob("*")}
    assert after == before


@pytest.mark.parametrize("level", ["all", "session"])
@pytest.mark.parametrize("live", ["there", "moved", "gone"])
@pytest.mark.parametrize("files", [(), ("record.json", "waiting/1")])
def test_nothing_behind_a_link_in_the_place_of_an_archive_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, live: str, files: tuple[str, ...]
) -> None:
    """Neither to find whose it is, when the live file is in another project or gone."""
    home = homes.home(tmp_path, monkeypatch, DATA)
    home.rotate()
    folder, outside = home.archive if level == "session" else home.archive.parent, tmp_path / "out"
    folder.rename(outside)
    for file in files:
        write((outside if level == "session" else outside / ID) / file, b"{}")
    folder.symlink_to(outside)
    if live == "moved":
        home.live.parent.rename(home.live.parent.with_name("-home-another"))
    elif live == "gone":
        home.live.unlink()
    with opens.watched() as seen:
        for command in (
            ("report", ID),
            ("read", "--history", "--allow-gaps", ID),
            ("list",),
            ("doctor",),
            ("run",),
            ("tidy", "--dry-run"),
            ("restore", ID),
            ("archive", "--older-than", "0s"),
            ("prune", "--all", "--keep-last", "1", "--yes"),
        ):
            called(*command)
            assert not seen.within(outside), command


WHERE: Final = ("locks", "aside", "hook")
"""What is beside the archives."""


@pytest.mark.parametrize("folder", WHERE)
def test_a_link_in_the_place_of_a_folder_of_ours_is_refused_and_nothing_is_made_behind_it(
    home: Home, tmp_path: Path, folder: str
) -> None:
    write(home.live, DATA)
    assert piped("split", "--in-place", ID, env=home.env).code == 0
    outside = tmp_path / "outside"
    outside.mkdir()
    link = home.config / "sessrotate" / folder
    if link.is_dir():
        shutil.rmtree(link)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    before = snapshot(home.config)
    for command in (
        ("pin", ID, "1"),
        ("unpin", ID, "1"),
        ("prune", ID, "--keep-last", "1", "--yes"),
        ("archive", ID),
        ("aside", "--yes", ID),
        ("split", "--in-place", ID),
        ("restore", ID),
    ):
        ended = piped(*command, env=home.env)
        assert ended.code == 77, (command, ended)
        assert f"{link} is a symbolic link: remove the link" in ended.err + ended.out, command
    assert names_in(outside) == []
    assert snapshot(home.config) == before
    told = piped("doctor", env=home.env)
    assert told.code == 1
    assert f"{link} is a symbolic link" in told.out
    link.unlink()
    assert piped("restore", ID, env=home.env).code == 0
    assert home.live.read_bytes() == DATA


def test_a_link_to_a_file_in_the_place_of_an_archive_is_no_file_of_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes.home(tmp_path, monkeypatch, DATA)
    home.rotate()
    shutil.rmtree(home.archive)
    secret = home.config.parent / "secret.jsonl"
    secret.write_bytes(DATA)
    home.archive.symlink_to(secret)
    for command in (("stitch", "--allow-gaps"), ("read",), ("verify",), ("export",), ("report",)):
        ended = called(*command, home.archive)
        assert ended.code == 77, (command, ended)
        assert "is a symbolic link" in ended.err


def test_a_run_writes_nothing_behind_a_link_in_the_place_of_the_locks(
    home: Home, tmp_path: Path
) -> None:
    write(home.live, DATA)
    linked(home.config / "sessrotate" / "locks", tmp_path / "outside")
    ended = piped("run", env=home.env)
    assert ended.code == 77
    assert "locks is a symbolic link: remove the link" in ended.err
    assert names_in(tmp_path / "outside") == []


def test_the_hook_writes_nothing_behind_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes.home(tmp_path, monkeypatch, DATA)
    linked(home.config / "sessrotate" / "hook", tmp_path / "outside")
    call.rotate(call.Call(home.where, home.live.stat(), awaits=False), 0)
    assert names_in(tmp_path / "outside") == []
    assert home.live.read_bytes() == DATA


@pytest.mark.parametrize("level", ["file", "folder"])
def test_a_small_file_of_ours_is_not_opened_by_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    home = homes.home(tmp_path, monkeypatch, DATA)
    home.rotate()
    path = home.config / "sessrotate" / "hook" / homes.PROJECT / f"{ID}.json"
    secret = write(tmp_path / "outside" / path.name, b'{"at": "TOPSECRET"}\n')
    if level == "folder":
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.parent.mkdir(exist_ok=True)
        path.parent.symlink_to(secret.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(secret)
    with opens.watched() as seen:
        for command in (("doctor",), ("run",), ("list",), ("restore", ID), ("prune", "--all")):
            called(*command)
    assert not seen.within(tmp_path / "outside")
    assert secret.read_bytes() == b'{"at": "TOPSECRET"}\n'
