"""Whether strace can be used here, and how it takes the least time.

Rule: what cannot be traced is skipped, and the reason says what is missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache


@cache
def hindrance(*options: str) -> str | None:
    """Return why nothing can be traced here with these options, None if it can."""
    if shutil.which("strace") is None:
        return "there is no strace"
    done = subprocess.run(
        ["strace", "-f", "-qq", *options, "-o", "/dev/null", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    # A tracer that is nobody's child (-D) has no exit code of its own, but it says what is wrong.
    if done.returncode == 0 and not done.stderr:
        return None
    return f"strace may not trace: {done.stderr.strip()}"


@cache
def strace() -> tuple[str, ...]:
    """Return what strace is called by here: on one processor, where that can be said.

    It stops a process at each call. What it traces is three times as fast if neither of the two
    has to wake another processor for that; each worker of pytest takes another one.
    """
    processors = sorted(os.sched_getaffinity(0)) if shutil.which("taskset") is not None else []
    if not processors:
        return ("strace",)
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return ("taskset", "-c", str(processors[worker % len(processors)]), "strace")
