"""The real command, killed by the system itself at its calls: strace stands in the way.

Rule: seen from outside. In the process nothing is patched, and every fsync and lease is real. What
it leaves is stitched and finished in this one, which is quicker.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from support import command_line
from support.crash.judging import check_whole
from support.crash.scenes import NAMES, Scene, scene
from support.tracing import hindrance, strace

if TYPE_CHECKING:
    from support.crash.scenes import Session

FIRST, _, RESTORE, _, LATE, _, GONE = NAMES

ALWAYS: Final = ("rename", "linkat", "unlink", "mkdir")
"""Calls of which each is tried."""

SAMPLED: Final = ("write", "fsync")
"""Calls of which every few are tried."""

STEP: Final = 6

KILLED: Final = -9


@pytest.fixture(autouse=True)
def _strace() -> None:
    reason = hindrance()
    if reason is not None:
        pytest.skip(f"NO PROCESS WAS KILLED IN MID-CALL: {reason}")


def arguments(of: Scene, found: Session) -> list[str]:
    if of.name in {RESTORE, GONE}:
        return ["restore", str(found.where.live)]
    return ["split", "--in-place", str(found.where.live)]


def traced(of: Scene, found: Session, options: list[str], log: str = "/dev/null") -> int:
    """Run the command under strace; return its exit code, negative for a signal."""
    command = [command_line.COMMAND, *arguments(of, found)]
    done = subprocess.run(
        [*strace(), "-f", "-qq", "-o", log, *options, *command],
        # Or the interpreter's own files, once after each change of a module, would be counted too.
        env={
            **command_line.ENVIRONMENT,
            "CLAUDE_CONFIG_DIR": str(found.root),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=command_line.SECONDS,
    )
    assert b"Traceback" not in done.stderr
    return done.returncode


@cache
def counted(name: str) -> Counter[str]:
    """Return how often the first thread of a whole run makes each call.

    strace counts the calls of each thread for itself (`when=`), and others seal beside it.
    """
    of = scene(name)
    with of.begun() as found:
        log = found.root / "log"
        calls = ",".join((*ALWAYS, *SAMPLED))
        assert traced(of, found, ["-e", f"trace={calls}"], str(log)) == 0
        assert found.stitched() == of.history
        told = log.read_text()
        return Counter(re.findall(rf"^{told.split()[0]} +(\w+)\(", told, re.MULTILINE))


def tried(count: int, call: str) -> range:
    return range(1, count + 1, 1 if call in ALWAYS else STEP)


NOT_CALLED: Final = {(LATE, "linkat")}
"""Where a swap was done already there is no second name to give."""

RUNS: Final = [
    (name, call)
    for name in (FIRST, RESTORE, LATE)
    for call in (*ALWAYS, *SAMPLED)
    if (name, call) not in NOT_CALLED
]


@pytest.mark.parametrize(("name", "call"), RUNS)
def test_a_process_may_be_killed_at_any_call(name: str, call: str) -> None:
    of = scene(name)
    lives = of.live_files()
    calls = counted(name)[call]
    assert calls
    for at in tried(calls, call):
        with of.begun() as found:
            options = ["-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={at}"]
            assert traced(of, found, options) == KILLED
            check_whole(found, of, lives)
