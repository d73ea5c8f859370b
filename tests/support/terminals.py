"""A person at a terminal: the command asks there, and is answered or interrupted."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import subprocess
import termios
from typing import TYPE_CHECKING

from support import command_line, in_process

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@contextlib.contextmanager
def at_its_own(
    command: Sequence[str], env: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a command on a terminal that is its own; give its process, and the person's end."""
    master, slave = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        command,
        env={**command_line.ENVIRONMENT, **env},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509 - Ctrl-C needs it, and it takes no lock
    )
    os.close(slave)
    try:
        yield process, master
    finally:
        process.kill()
        process.wait()
        os.close(master)


def seen(master: int, seconds: float = command_line.SECONDS) -> bytes:
    """Return what comes next, nothing once the command has ended.

    Raises TimeoutError if nothing comes.
    """
    if not select.select([master], [], [], seconds)[0]:
        raise TimeoutError
    return in_process.next_piece(master)


def asked(
    answer: str,
    *arguments: str,
    env: Mapping[str, str],
    program: Sequence[str] = (command_line.COMMAND,),
) -> tuple[int, str]:
    """Run the command, answer its questions, a line each; return its exit code and what it said."""
    said, answers = b"", iter(answer.splitlines(keepends=True))
    with at_its_own([*program, *arguments], env) as (process, master):
        while piece := seen(master):
            said += piece
            if said.endswith((b"[y/N]\r\n", b"[Y/n]\r\n", b"[Enter: no]\r\n")):
                os.write(master, next(answers).encode())
        code = process.wait(command_line.SECONDS)
    return code, said.decode()
