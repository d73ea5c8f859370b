"""What the new live file takes over from the old one, and what of the archive others may see."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from sessrotate.errors import SessrotateError
from support import command_line, homes
from support.command_line import boundary, row
from support.homes import Home, flagged, snapshot

DATA: Final = command_line.session(boundaries=2)
MORE: Final = row(90) + boundary(91) + row(92)


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
        is_file = "." in name or name == "README"
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
    with monkeypatch.context() as patch:
        patch.setattr(os, call, homes.failing(errno.EPERM))
        with pytest.raises(SessrotateError) as caught:
            _ = home.restore() if back else home.rotate()
    assert caught.value.exit_code == 74
    assert "Operation not permitted" in str(caught.value)
    assert snapshot(home.config) == before


def lsattr(path: Path) -> str:
    """Return the flags of a file as the system's own tool shows them."""
    told = subprocess.run(["lsattr", path], capture_output=True, text=True, check=False).stdout
    return told.split()[0].replace("e", "") if told else ""


def test_the_live_file_keeps_its_flags(home: Home) -> None:
    homes.flagged(home.live, "+dA")
    before = lsattr(home.live)
    assert {"d", "A"} <= set(before)
    home.rotate()
    assert lsattr(home.live) == before
    home.restore()
    assert lsattr(home.live) == before


@pytest.mark.parametrize("flag", ["i", "a"])
def test_a_file_that_must_not_be_changed_is_refused(home: Home, flag: str) -> None:
    homes.flagged(home.live, f"+{flag}")
    try:
        homes.refused(home, f"{home.live} is protected", "`chattr -i -a`")
    finally:
        homes.flagged(home.live, f"-{flag}")


@pytest.mark.parametrize("flag", ["i", "a"])
def test_a_folder_that_no_file_may_leave_is_named(home: Home, flag: str) -> None:
    flagged(home.live.parent, f"+{flag}")
    try:
        homes.refused(home, f"{home.live.parent} is protected", "`chattr -i -a`")
    finally:
        flagged(home.live.parent, f"-{flag}")


def test_flags_that_cannot_be_kept_stop_everything(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes.flagged(home.live, "+d")
    before = snapshot(home.config)
    real, setting = fcntl.ioctl, 0x40086602

    def ioctl(fd: int, request: int, flags: bytearray) -> object:
        return 0 if request == setting else real(fd, request, flags)

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    with pytest.raises(SessrotateError, match="flags"):
        home.rotate()
    assert snapshot(home.config) == before


def test_a_file_system_without_attributes_is_no_reason_to_stop(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "listxattr", homes.failing(errno.ENOTSUP), raising=False)
    home.rotate()
    assert home.stitched() == DATA
