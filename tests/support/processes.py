"""Finds processes that nobody waits for, by what is in their environment; Linux only.

Rule: none is ended here, and none is waited for without a deadline.
"""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from support.command_line import ID, SECONDS, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from support.homes import Home

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


def began(pid: int) -> int:
    """Return when a process began, in milliseconds since 1970, as `ps` says; now if it is gone."""
    told = subprocess.run(
        ["ps", "-o", "etimes=", "-p", str(pid)], capture_output=True, check=False, text=True
    ).stdout
    return int((time.time() - int(told or 0)) * 1000)


def register(home: Home, pid: int | str, **fields: Any) -> Path:
    """Write what a client of 2.1.112 and later keeps in its folder while it runs."""
    started = began(pid) if isinstance(pid, int) else 0
    told = {"pid": pid, "sessionId": ID, "startedAt": started, **fields}
    return write(home.config / "sessions" / f"{pid}.json", json.dumps(told).encode())


def dead() -> int:
    """Return the number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])
    process.wait()
    return process.pid


_HOLDING: Final = """
import os, sys
for each in sys.argv[1:]:
    flags, path = each.split(":", 1)
    os.open(path, int(flags))
print("open", flush=True)
sys.stdin.readline()
"""


@contextmanager
def holding(*files: tuple[Path, int]) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that has files open, each with these flags; it ends with the block.

    Who calls `communicate` has it end before.
    """
    told = [f"{flags}:{path}" for path, flags in files]
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _HOLDING, *told],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"open\n"
    try:
        yield process
    finally:
        process.communicate()


def workers(config: Path) -> list[int]:
    """Return the processes for which a folder is that of the client."""
    mark = f"CLAUDE_CONFIG_DIR={config}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def opened(pid: int) -> dict[str, str]:
    """Return what a process has open, by number; it may close one while this looks."""
    found = {}
    with suppress(OSError):
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found[fd.name] = str(fd.readlink())
    return found


@contextmanager
def forked(work: Callable[[Connection], None]) -> Iterator[Connection]:
    """Yield what leads to a process that works until it is sent None, and is waited for then."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=work, args=(theirs,))
    process.start()
    try:
        yield ours
    finally:
        ours.send(None)
        process.join()


def until(condition: Callable[[], object]) -> None:
    """Wait for something to be so."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def hooks(config: Path) -> list[int]:
    """Return those of these processes that a call of our hook has started, and the calls."""
    found = []
    for pid in workers(config):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"hook" in words and any(word.endswith(b"sessrotate") for word in words):
                found.append(pid)
    return found


def hooked(config: Path) -> None:
    """Wait until no call of our hook is at work; the client may run on."""
    until(lambda: not hooks(config))


def idle(config: Path) -> None:
    """Wait until no process is left for which a folder is that of the client."""
    until(lambda: not workers(config))
