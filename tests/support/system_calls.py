"""Every system call of a command that opens, reads or changes a file, told by `strace`.

Rule: it knows nothing of the code, but that it names files by whole paths. A name is followed
through the links as they were before the command and as they are after it, so that no link that
came or went in between hides one.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING, Final

from support import command_line, tracing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

READS: Final = "openat,open,read,pread64,preadv,sendfile,copy_file_range,mmap"
_CHANGING: Final = "rename|unlink|link|symlink|f?chmod|f?chown|lchown|f?truncate|mkdir|rmdir|utime|mknod|fallocate|f?setxattr|lsetxattr|lremovexattr|futime"  # fmt: skip  # noqa: E501
CHANGES: Final = f"/^({_CHANGING})"
"""All whose names begin so: `renameat2`, `unlinkat`, `fchmodat`, `mkdirat` …"""

_CALL: Final = re.compile(rf"^\d+ +((?:{_CHANGING})\w*)\((.*)")
_NAMES: Final = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"|\d+<([^>]*)>')
"""A name in an open folder, a name, or an open file."""

_FOLLOWING: Final = ("chmod", "chown", "truncate", "utime", "fchmodat", "fchownat", "setxattr")
"""What changes the file that a link leads to."""


def links(top: Path) -> dict[str, str]:
    """Return where each link below a folder leads."""
    found = (path for path in top.rglob("*") if path.is_symlink())
    return {str(path): os.path.realpath(path) for path in found}


def traced(
    arguments: Sequence[str], env: Mapping[str, str], told: Path, given: bytes = b""
) -> tuple[int, list[str]]:
    """Run a command and all processes that it starts; return its exit code, and their calls."""
    code = run([command_line.COMMAND, *arguments], env, told, given)
    return code, told.read_text(errors="replace").splitlines()


def run(program: Sequence[str], env: Mapping[str, str], told: Path, given: bytes = b"") -> int:
    """Run a program and write its calls to a file; return its exit code."""
    trace = [*tracing.strace(), "-f", "-y", "-qq", "-s", "4096", "-o", str(told)]
    trace += ["-e", f"trace={READS},{CHANGES}", "-e", "signal=none"]
    done = subprocess.run(
        [*trace, *program],
        env={**command_line.ENVIRONMENT, **env},
        input=given,
        capture_output=True,
        check=False,
        timeout=command_line.SECONDS,
    )
    return done.returncode


def within(calls: list[str], folder: Path, before: Mapping[str, str]) -> list[str]:
    """Return the calls that read a file of a folder, or change anything there.

    `before` are the links as they were before the command.
    """
    top = str(folder)
    found = []
    for line in calls:
        # With -y, an open ends with the path of what was opened, and a read names what it reads.
        # A folder may be listed by a link that leads to it; no file of it may be opened.
        is_opened = f"<{top}/" in line or (f"<{top}>" in line and "O_DIRECTORY" not in line)
        if is_opened or any(_is_in(name, top) for name in _changed(line, before)):
            found.append(line)
    return found


def _is_in(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def _changed(line: str, before: Mapping[str, str]) -> Iterator[str]:
    """Yield what a call that changes something names, links followed."""
    call = _CALL.match(line)
    if call is None:
        return
    follows = call[1].startswith(_FOLLOWING)
    for folder, name, file in _NAMES.findall(call[2]):
        if file:
            yield file
            continue
        path = os.path.normpath(os.path.join(folder or "/", name))  # noqa: PTH118 - text
        above, last = os.path.split(path)
        yield path
        yield f"{os.path.realpath(above)}/{last}"
        then = _through(above, before)
        yield f"{then}/{last}"
        if follows:
            yield os.path.realpath(path)
            yield _through(path, before)


def _through(path: str, before: Mapping[str, str]) -> str:
    """Return a path with the first of the links in it followed, as it was then."""
    for link in sorted(before, key=len):
        if _is_in(path, link):
            return before[link] + path.removeprefix(link)
    return path
