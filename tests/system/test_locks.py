"""One sessrotate at a time changes a session; where that cannot be had, none does."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import place
from sessrotate.errors import InUseError, StorageError
from sessrotate.system import locks
from support import command_line
from support.command_line import COMMAND, ENVIRONMENT, ID, called
from support.crash.changes import Faults, Killed
from support.homes import Home, refused, snapshot
from support.processes import needs_proc

if TYPE_CHECKING:
    pass

DATA: Final = command_line.session(boundaries=2)


def test_a_second_one_waits_and_then_gives_up(home: Home) -> None:
    with locks.alone(home.where, 0):
        begun = time.monotonic()
        refused(home, "Another sessrotate is working on", "wait for it", error=InUseError)
        assert time.monotonic() - begun >= 0.2
        with pytest.raises(InUseError):
            home.restore()


def test_a_second_one_goes_on_as_soon_as_the_first_is_done(home: Home) -> None:
    with locks.alone(home.where, 0):
        second = subprocess.Popen(
            [COMMAND, "split", "--in-place", "--wait", "60", home.live],
            env={**ENVIRONMENT, **home.env},
            stdout=subprocess.PIPE,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(0.5)
        assert home.archived() == set()
    out, _ = second.communicate(timeout=command_line.SECONDS)
    assert second.returncode == 0
    assert b"Moved 2 segments" in out
    assert home.stitched() == DATA


def test_sessions_do_not_wait_for_each_other(home: Home) -> None:
    other = Home(home.config)
    path = other.live.with_name("another.jsonl")
    command_line.write(path, DATA)
    with locks.alone(place.of_live(path), 0):
        home.rotate()
    assert home.stitched() == DATA


def test_many_at_once_rotate_it_once(home: Home) -> None:
    ran = [
        subprocess.Popen(
            [COMMAND, "split", "--in-place", "--wait", "60", home.live],
            env={**ENVIRONMENT, **home.env},
            stdout=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    told = sorted(
        process.communicate(timeout=command_line.SECONDS)[0].split()[0] for process in ran
    )
    assert [process.returncode for process in ran] == [0, 0, 0]
    assert told == [b"Moved", b"Nothing", b"Nothing"]
    assert home.stitched() == DATA


def test_the_file_of_a_lock_stays_for_ever(home: Home) -> None:
    home.rotate()
    lock = home.where.lock
    inode = lock.stat().st_ino
    assert lock.stat().st_mode & 0o7777 == 0o600
    home.restore()
    home.rotate()
    assert lock.stat().st_ino == inode
    assert lock.stat().st_size == 0


def test_the_lock_of_a_process_that_was_killed_is_free(home: Home) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", HOLDER, str(home.where.lock)], stdout=subprocess.PIPE
    )
    home.where.lock.parent.mkdir(parents=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    refused(home, "Another sessrotate", error=InUseError)
    holder.kill()
    holder.communicate()
    home.rotate()


HOLDER: Final = """
import fcntl, os, sys, time
while not os.path.isdir(os.path.dirname(sys.argv[1])):
    time.sleep(0.001)
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EIO])
def test_where_nothing_can_be_locked_nothing_is_changed(
    home: Home, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def unsupported(_fd: int, _kind: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    refused(home, "Cannot lock the session", error=StorageError)
    before = snapshot(home.config)
    with pytest.raises(StorageError, match="Cannot lock"):
        home.restore()
    assert snapshot(home.config) == before


def test_a_lock_is_let_go_of_after_a_failure(home: Home) -> None:
    with pytest.raises(ZeroDivisionError), locks.alone(home.where, 0):
        _ = 1 // 0
    with locks.alone(home.where, 0):
        pass


@needs_proc
def test_what_somebody_is_at_work_on_is_not_called_interrupted(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sessrotate.in_place.seal.finish", lambda *_: Faults(1).met())
        with pytest.raises(Killed):
            home.rotate()
    with locks.alone(home.where, 0):
        assert locks.is_held(home.where.lock)
        assert called("verify", ID).code == 0
        assert called("doctor").code == 0
    assert not locks.is_held(home.where.lock)
    ended = called("verify", ID)
    assert (ended.code, "was interrupted" in ended.out) == (1, True)
    assert called("doctor").code == 1
