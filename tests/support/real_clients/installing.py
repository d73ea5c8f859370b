"""Clients from npm: installed once, run in groups of their own, and ended when it is time.

Rule: the folder of a version appears whole or not at all, and only processes are ended that were
started here.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

REPOSITORY: Final = Path(__file__).resolve().parents[3]
FOLDER: Final = Path(os.environ.get("SESSROTATE_CLIENTS") or REPOSITORY / ".clients")
"""Where clients are installed; ignored by git. A variable lets several checkouts share it."""

INSTALL_LIMIT: Final = 600.0

_NODE: Final = "22.23.3"
"""Of a line of Node.js that keeps what it compiled: 2.1.112 starts in half the time with it."""

KEEPS_COMPILED: Final = {"NODE_COMPILE_CACHE": str(FOLDER / "compiled")}
"""What has Node.js keep what it compiled, for the next process; older ones take no notice."""


class UnavailableError(Exception):
    """A client cannot be had here; the message says why."""


# No scripts: what they would link into place is used where it is. One retry: offline is offline.
_NPM: Final = (
    *("install", "--ignore-scripts", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"),
    *("--fetch-retries=1", "--fetch-retry-mintimeout=1000"),
)


def installed(package: str, number: str, name: str, *options: str) -> Path:
    """Install a version of a package unless it is there, and return its folder in `FOLDER`.

    Processes that do this at once wait for each other; `options` are more of npm's. Raises
    UnavailableError, at once when it failed before in this process.
    """
    problem = _problem(package, number, name, *options)
    if problem is not None:
        raise UnavailableError(problem)
    return FOLDER / name


@functools.cache
def quick_tools() -> str:
    """Return a folder of programs that stand in for slow ones of which only a word matters.

    2.0.28 asks `npm` for its prefix at each start, to tell how it was installed: a sixth of it.
    """
    folder = FOLDER / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
        file.write("#!/bin/sh\necho /usr\n")
    path = Path(file.name)
    path.chmod(0o755)
    path.replace(folder / "npm")
    return str(folder)


def by_quick_node(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command with a Node.js that starts large scripts quickly, where npm has one."""
    package = f"node-{sys.platform}-{_MACHINES.get(platform.machine(), '')}"
    is_script = Path(command[0]).name == "node"
    if not is_script or _problem(package, _NODE, f"node-{_NODE}") is not None:
        return command
    quick = FOLDER / f"node-{_NODE}" / "node_modules" / package / "bin" / "node"
    return (str(quick), *command[1:])


_MACHINES: Final = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}


@functools.cache
def _problem(package: str, number: str, name: str, *options: str) -> str | None:
    """Do the work of `installed`; return why it failed. (An exception would not be cached.)"""
    if not re.fullmatch(r"\d+\.\d+\.\d+", number):
        return f"{number!r} is no version number"
    folder = FOLDER / name
    if folder.is_dir():
        return None
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return "Node.js with npm is not installed"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return None
        with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=FOLDER) as unfinished:
            command = [npm, *_NPM, *options, "--prefix", unfinished, f"{package}@{number}"]
            with tempfile.TemporaryFile() as output:
                status = _run(command, output, limit=INSTALL_LIMIT)
                output.seek(0)
                said = " ".join(output.read().decode(errors="replace").split())
            if status != 0:
                return f"npm cannot install {package}@{number}: {said[:300] or status}"
            Path(unfinished, "whole").mkdir()
            Path(unfinished, "node_modules").rename(Path(unfinished, "whole", "node_modules"))
            Path(unfinished, "whole").rename(folder)
    return None


def _run(command: Sequence[str], output: IO[bytes], limit: float) -> int | None:
    """Run a program in a process group of its own; None when it took too long."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
    )
    return status_of(process, time.monotonic() + limit)


def status_of(process: subprocess.Popen[bytes], deadline: float) -> int | None:
    """Wait for a process that leads its group, end what is left of the group, return its status.

    None when it was still running at the deadline. The signal goes out before the leader is
    waited for: afterwards its number may be somebody else's.
    """
    in_time = True
    while not _has_ended(process):
        if time.monotonic() > deadline:
            in_time = False
            break
        time.sleep(0.01)
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: only zombies left
            os.killpg(process.pid, signal.SIGKILL)
    status = process.wait()
    return status if in_time else None


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Say whether a process has ended, without waiting for it where the system can tell."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13: nothing is left to signal then
        return process.poll() is not None
    if process.returncode is not None:
        return True
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None
