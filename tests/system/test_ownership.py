"""`sudo sessrotate` in another user's folder is refused before anything is there that is root's."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.errors import RefusedError
from sessrotate.job import schedule
from sessrotate.system import inside
from support import command_line, homes
from support.command_line import ID, called
from support.homes import Home, snapshot

if TYPE_CHECKING:
    from pathlib import Path

DATA: Final = command_line.session(boundaries=2)
SOMEBODY: Final = 4711

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there is no root here")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Give a home that is another user's, seen by root."""
    made = homes.home(tmp_path, monkeypatch, DATA)
    made.rotate()
    if os.geteuid() == 0:
        for path in (tmp_path, *tmp_path.rglob("*")):
            os.chown(path, SOMEBODY, SOMEBODY)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(schedule, "BOOTED", tmp_path)
    return made


CHANGES: Final = (
    ("split", "--in-place", ID),
    ("rotate", ID),
    ("restore", ID),
    ("archive", ID),
    ("prune", ID, "--keep-last", "1", "--yes"),
    ("restore", "--keep-rotated", ID),
    ("pin", ID, "1"),
    ("unpin", ID, "1"),
    ("aside", "--yes", ID),
    ("run",),
)


def hand_over(*paths: Path) -> None:
    """Make these folders, and all that is in them, root's, as an earlier `sudo` left them."""
    for path in (each for folder in paths for each in (folder, *folder.rglob("*"))):
        if path.stat().st_uid != SOMEBODY:
            pytest.skip("only root makes files of others")
        os.chown(path, 0, 0)


def is_refused(home: Home, arguments: tuple[str, ...]) -> None:
    """Check that a command is refused, and makes, changes and hands over nothing."""
    before = {path: path.lstat().st_uid for path in home.config.parent.rglob("*")}
    contents = snapshot(home.config)
    ended = called(*arguments)
    assert ended.code == 77, ended
    assert "without sudo" in ended.err + ended.out
    assert {path: path.lstat().st_uid for path in home.config.parent.rglob("*")} == before
    assert snapshot(home.config) == contents


@pytest.mark.parametrize(
    "arguments", [*CHANGES, ("hook", "install"), ("config", "init"), ("schedule", "install")]
)
def test_root_creates_nothing_in_the_folder_of_another(
    home: Home, arguments: tuple[str, ...]
) -> None:
    is_refused(home, arguments)


@pytest.mark.parametrize("arguments", CHANGES)
@pytest.mark.parametrize("left", ["locks", "archives", "all but the client's folder"])
def test_folders_that_an_earlier_root_left_do_not_let_root_go_on(
    home: Home, arguments: tuple[str, ...], left: str
) -> None:
    root = home.config / "sessrotate"
    if left == "locks":
        hand_over(root / "locks")
    elif left == "archives":
        hand_over(root)
    else:
        hand_over(root, home.config / "projects")
    is_refused(home, arguments)


@pytest.mark.parametrize("arguments", [("list",), ("stitch", ID), ("doctor",), ("report", ID)])
def test_root_may_read(home: Home, arguments: tuple[str, ...]) -> None:
    before = sorted(home.config.parent.rglob("*"))
    assert called(*arguments).code == 0
    assert sorted(home.config.parent.rglob("*")) == before


def test_what_is_not_there_yet_is_judged_by_the_folder_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a" / "b" / "c"
    if os.geteuid() == 0:
        inside.check_owner(path)
        os.chown(tmp_path, SOMEBODY, -1)
        owner = f"user {SOMEBODY}"
    else:
        owner = f"the user {pwd.getpwuid(os.geteuid()).pw_name}"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(RefusedError, match=f"belongs to {owner}"):
        inside.check_owner(path)
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    inside.check_owner(path)
