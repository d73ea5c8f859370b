"""Leases that are taken away, refused, or broken by descriptors that should not be there.

Rule: then somebody may have written, so nothing is written over, cut off or taken for granted.
"""

from __future__ import annotations

import contextlib
import os
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate import fs
from sessrotate.errors import InUseError
from sessrotate.in_place import swap
from sessrotate.system import locks
from support import homes
from support.abilities import needs_leases
from support.command_line import boundary, row, uuid_of
from support.homes import Home
from support.race.writers import append, coming_late, take_back

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark: Final = needs_leases

DATA: Final = row(1) + row(2) + boundary(3) + row(4)
LATE: Final = row(8)
NEW: Final = row(9, note="longer than the other")
MORE: Final = boundary(10) + row(11)

BREAK_TIME: Final = Path("/proc/sys/fs/lease-break-time")


# ── taken away ───────────────────────────────────────────────────────────────────────────────


def test_a_client_that_appends_while_late_lines_are_copied_is_not_written_over(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stops us for 45 seconds between two calls has the second lease taken away."""
    release, append_to_draft = locks.release_lease, fs.Draft.append
    came: list[bytes] = []

    def appending(draft: fs.Draft, data: bytes) -> None:
        if late and not came:
            release(draft.fd)
            came.append(NEW)
            append(home.live, NEW)
        append_to_draft(draft, data)

    monkeypatch.setattr(fs.Draft, "append", appending)
    with coming_late(home, lambda: append(home.pack, LATE)) as late:
        home.rotate()
    assert (len(late), came) == (1, [NEW])
    assert home.stitched() == DATA + NEW + LATE
    assert home.problems() == []
    assert not home.is_busy()


def test_a_client_that_appends_while_an_edit_is_followed_is_not_cut_off(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, common = locks.release_lease, swap._Swap._common  # noqa: SLF001 - the moment that counts
    came: list[bytes] = []

    def comparing(self: Any) -> int:
        same = common(self)
        if edits and not came:
            release(self._draft.fd)
            came.append(NEW)
            append(home.live, NEW)
        return same

    monkeypatch.setattr(swap._Swap, "_common", comparing)  # noqa: SLF001 - as above
    monkeypatch.setattr(swap, "_LATE", 0.05)
    mark = b'"uuid":"%s"' % uuid_of(4).encode()
    with coming_late(home, lambda: take_back(home.pack, mark)) as edits:
        home.rotate()
    assert (edits, came) == ([True], [NEW])
    assert home.stitched() == DATA + NEW
    assert home.problems() == []


@pytest.fixture
def short_breaks() -> Iterator[None]:
    """Have the system take leases away after a second."""
    before = BREAK_TIME.read_text()
    try:
        BREAK_TIME.write_text("1")
    except OSError as error:
        pytest.skip(f"the time after which leases are taken away cannot be set here: {error}")
    try:
        yield
    finally:
        BREAK_TIME.write_text(before)


@pytest.mark.race
@pytest.mark.usefixtures("short_breaks")
def test_a_rotator_that_is_stopped_holds_nobody_up_for_ever_and_loses_nothing(
    home: Home,
) -> None:
    pid = os.fork()
    if not pid:
        stop = partial(os.kill, os.getpid(), signal.SIGSTOP)
        with contextlib.suppress(BaseException), coming_late(home, stop):
            home.rotate(wait=5)
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
    append(home.pack, LATE)  # it had found the old file before
    waited = append(home.live, NEW)
    os.kill(pid, signal.SIGCONT)
    assert os.waitpid(pid, 0)[1] == 0
    assert waited > 0.5
    home.append(MORE)
    home.rotate(wait=5)
    assert home.stitched() == DATA + NEW + LATE + NEW + MORE
    assert home.problems() == []


# ── refused ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR])
def test_whoever_has_the_new_file_open_before_the_swap_keeps_it_from_being_done(
    home: Home, monkeypatch: pytest.MonkeyPatch, flags: int
) -> None:
    refused_by(home, monkeypatch, "draft", flags)


def test_a_descriptor_of_our_own_for_writing_keeps_it_from_being_done(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused_by(home, monkeypatch, "live", os.O_RDWR)


def refused_by(home: Home, monkeypatch: pytest.MonkeyPatch, file: str, flags: int) -> None:
    """Check that a descriptor opened during the swap, against the rules, changes nothing."""
    before = homes.snapshot(home.config)
    real, opened = fs.add_name, []

    def linking(path: Path, name: Path) -> None:
        real(path, name)
        opened.append(os.open(getattr(home.where, file), flags))

    monkeypatch.setattr(fs, "add_name", linking)
    try:
        with pytest.raises(InUseError):
            home.rotate()
    finally:
        os.close(opened[0])
    assert homes.snapshot(home.config) == before


def test_whoever_opens_the_session_for_reading_and_writing_in_the_swap_has_to_wait(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting is seen, not done: the lease that is in the way is asked for without it."""
    real = fs.take_place
    told: list[str] = []

    def tried(moment: str) -> None:
        try:
            os.close(os.open(home.live, os.O_RDWR | os.O_NONBLOCK))
        except BlockingIOError:
            told.append(f"{moment}: waits")
        else:
            told.append(f"{moment}: has it")

    def renaming(draft: Path, path: Path, is_it: Callable[[Path], bool]) -> None:
        if path == home.live:
            tried("before")
        real(draft, path, is_it)
        if path == home.live:
            tried("after")

    monkeypatch.setattr(fs, "take_place", renaming)
    home.rotate()
    tried("then")
    assert told == ["before: waits", "after: waits", "then: has it"]
    assert home.stitched() == DATA
