"""Whoever uses a session is named, and it is left alone; whoever only did, or reads, is not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.errors import InUseError
from sessrotate.system import in_use, locks
from support import command_line, homes, processes
from support.abilities import needs_open_files
from support.command_line import ID, called, row, write
from support.homes import Home, refused
from support.processes import dead, register
from support.trimming import keep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DATA: Final = command_line.session(boundaries=2)


def rotates(home: Home) -> None:
    home.rotate()
    assert home.stitched() == DATA
    assert len(home.archived()) == 3


# ── all at once ──────────────────────────────────────────────────────────────────────────────


def test_only_clients_that_still_run_are_in_a_session(home: Home) -> None:
    register(home, os.getpid(), sessionId="one")
    register(home, dead(), sessionId="two")
    register(home, "none", sessionId="three")
    register(home, 1, sessionId=4)
    assert in_use.running(home.where.registries) == {"one"}


@needs_open_files
def test_of_many_files_those_are_told_that_somebody_writes(home: Home) -> None:
    others = [write(home.live.with_name(f"{number}.jsonl"), b"") for number in range(3)]
    known = {(path.stat().st_dev, path.stat().st_ino): path for path in (home.live, *others)}
    written = [home.live, others[1]]
    with processes.holding(*((path, os.O_WRONLY | os.O_APPEND) for path in written)):
        found = [known[each] for each in in_use.written(known)]
    assert sorted(found) == sorted(written)
    assert in_use.written(known) == set()


# ── clients that say so ──────────────────────────────────────────────────────────────────────


def test_a_running_client_is_named(home: Home) -> None:
    register(home, os.getpid())
    refused(home, f"process {os.getpid()} runs the session", "end the client", error=InUseError)
    assert InUseError.exit_code == 75


def test_who_cannot_go_on_under_a_client_is_not_told_to(home: Home) -> None:
    home.rotate()
    home.append(command_line.boundary(80) + command_line.row(81))
    register(home, os.getpid())
    refused(home, "or rotate it anyway with --live", error=InUseError)
    with pytest.raises(InUseError, match=r"end the client, then try again\.$"):
        home.restore()


def test_a_client_that_does_not_say_since_when_counts(home: Home) -> None:
    register(home, os.getpid(), startedAt=None)
    refused(home, str(os.getpid()), error=InUseError)


def test_a_client_in_another_session_is_none_of_ours(home: Home) -> None:
    register(home, os.getpid(), sessionId=ID.replace("1", "2"))
    rotates(home)


def test_a_client_that_is_dead_does_not_count(home: Home) -> None:
    register(home, dead())
    rotates(home)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{}",
        b'{"sessionId":null}',
        b'{"sessionId":"%s"}' % ID.encode() + b"x" * 100,
        b"[" * 100_000,
        b'{"sessionId":"%s","startedAt":"' % ID.encode() + b"x" * 100_000,
    ],
)
def test_what_is_no_registration_says_nothing(home: Home, data: bytes) -> None:
    write(home.config / "sessions" / f"{os.getpid()}.json", data)
    rotates(home)


@pytest.mark.parametrize("name", ["x", "-1.5", "99999999999999999999", "é", "1e3"])
def test_what_is_no_number_of_a_process_says_nothing(home: Home, name: str) -> None:
    register(home, name)
    rotates(home)


@pytest.mark.parametrize("started", ["yesterday", [], {}, True, -1, 10**30, 1e300])
def test_a_time_that_makes_no_sense_does_not_hide_a_client(home: Home, started: object) -> None:
    register(home, os.getpid(), startedAt=started)
    assert [user.pid for user in in_use.clients(home.where)] == [os.getpid()]


def test_a_registration_that_is_a_folder_or_a_pipe_is_passed_over(home: Home) -> None:
    (home.config / "sessions" / "1.json").mkdir(parents=True)
    rotates(home)


# ── processes that have it open ──────────────────────────────────────────────────────────────


@pytest.fixture
def holding() -> Iterator[Callable[[Path, int], subprocess.Popen[bytes]]]:
    """Start processes that hold a file open, and end them."""
    with ExitStack() as stack:
        yield lambda *file: stack.enter_context(processes.holding(file))


@needs_open_files
@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND])
def test_a_process_that_has_it_open_for_writing_is_named(
    home: Home, holding: Any, flags: int
) -> None:
    process = holding(home.live, flags)
    told = f"process {process.pid} has it open for writing"
    refused(home, told, "end the client, then try again", error=InUseError)
    process.communicate()
    rotates(home)


@needs_open_files
def test_a_writer_that_only_a_lease_finds_is_waited_for_and_then_named(
    home: Home, holding: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = holding(home.live, os.O_WRONLY)
    monkeypatch.setattr(in_use, "check_unused", lambda *_, **__: None)
    begun = time.monotonic()
    refused(home, str(process.pid), error=InUseError)
    assert time.monotonic() - begun >= 0.2


@needs_open_files
@pytest.mark.parametrize("how", ["rotate", "restore", "archive", "put together"])
def test_whoever_has_it_open_for_writing_is_waited_for(
    home: Home, holding: Any, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "restore":
        home.rotate()
    path = home.live
    if how == "put together":
        homes.without_leases(monkeypatch)
        path, how = keep(home.live), "rotate"
    process = holding(path, os.O_WRONLY)
    looked: list[float] = []

    def sleep(seconds: float) -> None:
        looked.append(seconds)
        if len(looked) == 3:
            process.communicate()

    monkeypatch.setattr(time, "sleep", sleep)
    ended = called(how, ID, "--wait", "30")
    assert ended.code == 0
    assert looked[:3] == [0.1] * 3
    assert home.problems() == []


@needs_open_files
def test_nobody_waits_for_a_client_that_runs_the_session(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(home, os.getpid())
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waited"))
    assert called("rotate", ID, "--wait", "30").code == 75


@needs_open_files
def test_a_writer_that_ends_in_time_is_no_hindrance(
    home: Home, holding: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = holding(home.live, os.O_WRONLY)
    monkeypatch.setattr(in_use, "check_unused", lambda *_, **__: None)
    real = locks.read_lease

    def read(fd: int) -> object:
        answer = real(fd)
        if answer == "busy":
            process.communicate()
        return answer

    monkeypatch.setattr(locks, "read_lease", read)
    home.rotate(wait=30)
    assert home.stitched() == DATA


@needs_open_files
def test_whoever_only_reads_does_not_disturb(home: Home, holding: Any) -> None:
    holding(home.live, os.O_RDONLY)
    rotates(home)


@needs_open_files
def test_a_restoration_is_refused_while_somebody_writes(home: Home, holding: Any) -> None:
    home.rotate()
    process = holding(home.live, os.O_WRONLY)
    before = homes.snapshot(home.config)
    with pytest.raises(InUseError, match=str(process.pid)):
        home.restore()
    assert homes.snapshot(home.config) == before


@pytest.mark.race
def test_a_client_that_appends_and_closes_again_and_again_loses_nothing(home: Home) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", WRITER, str(home.live)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"writing\n"
    rotated = 0
    for number in range(200):
        compaction = command_line.boundary(900 + number)
        home.append(compaction + row(800 + number))
        try:
            home.rotate(wait=2)
        except InUseError:
            continue  # it had it open at the moment when /proc was looked at
        rotated += 1
        if rotated == 5:
            break
    out, _ = writer.communicate()
    lines = home.stitched().splitlines(keepends=True)
    rows = [line for line in lines if b"by the writer" in line]
    assert rows == [row(1000 + n, note="by the writer") for n in range(int(out))]
    assert int(out) > 0
    assert compaction in lines
    assert rotated, "not raced: the writer had it open in each of 200 rotations"


WRITER: Final = f"""
import os, select, sys, time
sys.path[:0] = {sys.path!r}
from support.command_line import row
number = 0
print("writing", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
    os.write(fd, row(1000 + number, note="by the writer"))
    os.close(fd)
    number += 1
    time.sleep(0.0005)
print(number, flush=True)
"""
