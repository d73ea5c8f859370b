"""Runs the real command and weighs it: its own peak of memory, under a limit where one is set.

A process starts with the peak memory of the one that it was forked from; pytest's is high. A
launcher of a few MiB therefore stands between, and can limit the command's address space too.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from support.command_line import COMMAND, ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MIB: Final = 1 << 20
MOST_MIB: Final = 48
HANGS: Final = 500
"""Seconds after which a command has no end: how fast it is, is measured by benchmarks."""

PEAK_UNIT: Final = 1 if sys.platform == "darwin" else 1 << 10  # bytes there, KiB elsewhere

_LAUNCHER: Final = """
import posix, resource, sys
limit = int(sys.argv[1])
if limit:
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
pid = posix.posix_spawn(sys.argv[2], sys.argv[2:], posix.environ)
_, status, usage = posix.wait4(pid, 0)
print(usage.ru_maxrss, posix.waitstatus_to_exitcode(status), file=sys.stderr)
"""


@dataclass(frozen=True, slots=True)
class Weighed:
    """What a command left, and the most memory that it held."""

    code: int
    out: str
    err: str
    peak_mib: float


def weighed(
    *arguments: str | Path,
    address_space: int = 0,
    program: Sequence[str] = (COMMAND,),
) -> Weighed:
    """Run the command, in at most so many bytes of address space, and return its peak."""
    launcher = (sys.executable, "-I", "-S", "-c", _LAUNCHER, str(address_space))
    done = subprocess.run(
        [*launcher, *program, *arguments],
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS,
    )
    *said, figures = done.stderr.splitlines(keepends=True)
    peak, code = figures.split()
    return Weighed(int(code), done.stdout, "".join(said), int(peak) * PEAK_UNIT / MIB)


def limited(limit: str, value: int) -> tuple[str, ...]:
    """Return a program that is the real command under one of the system's limits."""
    launcher = (
        "import os, resource, sys; "
        "os.environ['PYTHONDONTWRITEBYTECODE'] = '1'; "  # what is cut short would be believed
        f"resource.setrlimit(resource.{limit}, ({value}, {value})); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    return (sys.executable, "-I", "-S", "-c", launcher, COMMAND)


# Root reads any file, unless it is started without the two capabilities that let it.
UNPRIVILEGED: Final = (
    sys.executable,
    "-I",
    "-S",
    "-c",
    (
        "import ctypes, os, sys; drop = 24; prctl = ctypes.CDLL(None).prctl; "
        "prctl(drop, 1, 0, 0, 0); prctl(drop, 2, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
    ),
    COMMAND,
)
"""The real command, for which permissions count whoever runs the tests."""
