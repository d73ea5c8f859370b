"""What the new live file takes over from the old one, and what of the archive others may see."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.errors import SessrotateError
from support import command_line, homes
from support.command_line import boundary, row
from support.homes import Home, snapshot

if TYPE_CHECKING:
    pass

DATA: Final = command_line.session(boundaries=2)
MORE: Final = row(90) + boundary(91) + row(92)
LATER: Final = row(95) + boundary(96) + row(97)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return homes.home(tmp_path, monkeypatch, DATA)


# ── what stays of the old file ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640, 0o666])
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_live_file_keeps_its_mode_and_the_archive_is_private(
    home: Home, mode: int, umask: int
) -> None:
    home.live.chmod(mode)
    before = os.umask(umask)
    try:
        home.rotate()
        home.append(MORE)
        home.rotate()
    finally:
        os.umask(before)
    assert home.live.stat().st_mode & 0o7777 == mode
    found = dict(command_line.modes(home.config / "sessrotate"))
    assert len(found) > 6
    for name, kept in found.items():
        is_file = "." in name
        assert kept == (0o600 if is_file else 0o700), name
    home.restore()
    assert home.live.stat().st_mode & 0o7777 == mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may chown")
def test_the_live_file_keeps_its_group(home: Home) -> None:
    os.chown(home.live, -1, 4711)
    home.rotate()
    assert home.live.stat().st_gid == 4711
    home.restore()
    assert home.live.stat().st_gid == 4711


def test_the_live_file_keeps_its_time(home: Home) -> None:
    then = 1_700_000_000_123_456_789
    os.utime(home.live, ns=(then, then))
    inode = home.live.stat().st_ino
    home.rotate()
    assert home.live.stat().st_ino != inode
    assert home.live.stat().st_mtime_ns == then
    home.restore()
    assert home.live.stat().st_mtime_ns == then


def with_attribute(home: Home) -> None:
    if sys.platform != "linux":
        pytest.skip("Python knows extended attributes only on Linux")
    try:
        os.setxattr(home.live, "user.note", b"\x00kept\xff")
    except OSError as error:
        pytest.skip(f"this file system knows no extended attributes: {error}")


def test_the_live_file_keeps_its_extended_attributes(home: Home) -> None:
    with_attribute(home)
    home.rotate()
    assert os.getxattr(home.live, "user.note") == b"\x00kept\xff"
    home.restore()
    assert os.getxattr(home.live, "user.note") == b"\x00kept\xff"


@pytest.mark.parametrize("call", ["setxattr", "getxattr", "listxattr"])
@pytest.mark.parametrize("back", [False, True])
def test_attributes_that_cannot_be_kept_stop_everything(
    home: Home, monkeypatch: pytest.MonkeyPatch, call: str, back: bool
) -> None:
    with_attribute(home)
    if back:
        home.rotate()
    before = snapshot(home.config)

    def failing(*_: object, **__: object) -> object:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        with pytest.raises(SessrotateError) as caught:
            _ = home.restore() if back else home.rotate()
    assert caught.value.exit_code == 74
    assert "Operation not permitted" in str(caught.value)
    assert snapshot(home.config) == before


def test_a_file_system_without_attributes_is_no_reason_to_stop(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> object:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "listxattr", unknown, raising=False)
    home.rotate()
    assert home.stitched() == DATA
