"""`sudo sessrotate` in another user's folder is refused before anything is there that is root's."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.errors import RefusedError
from sessrotate.system import ownership
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
    return made


@pytest.mark.parametrize(
    "arguments",
    [
        ("split", "--in-place", ID),
        ("restore", ID),
        ("archive", ID),
        ("unarchive", ID),
        ("compress", ID),
        ("prune", ID, "--keep-last", "1", "--yes"),
        ("undelete", ID),
        ("pin", ID, "1"),
        ("unpin", ID, "1"),
        ("run",),
        ("hook", "install"),
        ("config", "init"),
        ("schedule", "install"),
    ],
)
def test_root_creates_nothing_in_the_folder_of_another(
    home: Home, arguments: tuple[str, ...]
) -> None:
    before = sorted(home.config.parent.rglob("*"))
    contents = snapshot(home.config)
    ended = called(*arguments)
    assert ended.code == 77, ended
    assert "without sudo" in ended.err + ended.out
    assert sorted(home.config.parent.rglob("*")) == before
    assert snapshot(home.config) == contents


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
        ownership.check(path)
        os.chown(tmp_path, SOMEBODY, -1)
        owner = f"user {SOMEBODY}"
    else:
        owner = f"the user {pwd.getpwuid(os.geteuid()).pw_name}"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(RefusedError, match=f"belongs to {owner}"):
        ownership.check(path)
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    ownership.check(path)
