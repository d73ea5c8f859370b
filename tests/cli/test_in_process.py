"""Most tests run a command in their own process: it does there what the real program does."""

from __future__ import annotations

import errno
import os
import re
import select
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from support import homes
from support.command_line import ID, REAL, on_terminal, piped, session, write
from support.in_process import umask

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.command_line import Ended
    from support.homes import Home

DATA: Final = session(2, rows=4)

COMMANDS: Final[list[list[str | bytes]]] = [
    [],
    ["--version"],
    ["--help"],
    ["split", "--help"],
    ["splitt"],
    ["split", "--out"],
    ["split", "no such file"],
    ["split", b"no such \xff file"],
    ["split", "--", "-x"],
    ["split", ID, "--dry-run"],
    ["split", ID, "--out", "set", "--json"],
    ["split", "--in-place", ID],
    ["stitch", ID],
    ["stitch", ID, "-o", "whole"],
    ["read", ID[:8]],
    ["read", ID, "--history", "--format", "markdown"],
    ["export", ID],
    ["export", ID, "--format", "html", "-o", "page.html"],
    ["list"],
    ["list", "--json"],
    ["report", ID, "--json"],
    ["verify", ID],
    ["prune", ID, "--keep-last", "1"],
    ["config", "show"],
    ["doctor"],
    ["hook", "install", "--dry-run"],
]
SHOWN: Final[list[list[str | bytes]]] = [
    ["split", ID, "--dry-run"],
    ["split", "--in-place", ID],
    ["list"],
    ["report", ID],
    ["read", ID],
]


def outcome(run: Callable[..., Ended], home: Home, command: list[str | bytes], **how: Any) -> Any:
    """Run a command on a new session; return how it ended, and every file that is there then."""
    top = home.config.parent
    shutil.rmtree(top, ignore_errors=True)
    os.utime(write(home.live, DATA), (1_770_000_000, 1_770_000_000))
    ended = run(*command, cwd=top, env=home.env, **how)
    said = re.sub(r"[\d.]+ [KMGT]iB is free", "much is free", ended.out)
    files = {
        str(path.relative_to(top)): (path.stat().st_mode, path.stat().st_size)
        for path in top.rglob("*")
    }
    return ended.code, said, ended.err, files


def named(command: list[str | bytes]) -> str:
    return " ".join(os.fsdecode(word) for word in command).encode("ascii", "replace").decode()


@pytest.mark.parametrize("command", COMMANDS, ids=named)
def test_in_this_process_a_command_does_what_the_program_does(
    tmp_path: Path, command: list[str | bytes]
) -> None:
    home = homes.Home(tmp_path / "top" / "config")
    here = outcome(piped, home, command, umask=0o027)
    assert here == outcome(piped, home, command, umask=0o027, program=REAL)


@pytest.mark.parametrize("columns", [60, 120])
@pytest.mark.parametrize("command", SHOWN, ids=named)
def test_on_a_terminal_too(tmp_path: Path, command: list[str | bytes], columns: int) -> None:
    home = homes.Home(tmp_path / "top" / "config")
    here = outcome(on_terminal, home, command, columns=columns)
    assert here == outcome(on_terminal, home, command, columns=columns, program=REAL)


def what_a_process_has() -> tuple[object, ...]:
    mask = umask()
    return (
        dict(os.environ),
        Path.cwd(),
        mask,
        sys.argv,
        (sys.stdin, sys.stdout, sys.stderr),
        [os.fstat(number) for number in range(3)],
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        set(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else None,  # noqa: PTH208
        threading.active_count(),
    )


@pytest.mark.parametrize("command", [["read", ID], ["stitch"], ["read", "no such file"]], ids=named)
def test_nothing_of_this_process_is_changed(tmp_path: Path, command: list[str | bytes]) -> None:
    home = homes.Home(tmp_path / "top" / "config")
    before = what_a_process_has()
    outcome(piped, home, command, umask=0o077)
    outcome(on_terminal, home, command)
    assert what_a_process_has() == before


def test_what_a_terminal_got_just_before_its_writer_went_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Linux answers EIO where both happened after it had looked for lines (`next_piece`)."""
    looked: set[int] = set()
    read = os.read

    def looking_too_early(end: int, size: int) -> bytes:
        if end not in looked and os.isatty(end):
            looked.add(end)
            writer = select.poll()
            writer.register(end, 0)
            assert writer.poll(60_000) == [(end, select.POLLHUP)]
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(end, size)

    monkeypatch.setattr(os, "read", looking_too_early)
    ended = on_terminal("--version")
    assert len(looked) == 2
    assert ended.out.startswith("sessrotate ")
