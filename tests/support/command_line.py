"""Runs the real command, piped or on a terminal, and makes the small sessions it works on.

Rule: nothing of the user's reaches a command: no settings, no sessions, no language.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sessrotate.cli.app import run as run_command_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

COMMAND: Final = str(Path(sys.executable).with_name("sessrotate"))
ID: Final = "5e55107a-0000-4000-a000-000000000001"
SECONDS: Final = 60

ENVIRONMENT: Final = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "TERM": "xterm-256color",
}


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left: its exit code and its two streams."""

    code: int
    out: str
    err: str

    def document(self) -> Any:
        """Return standard output as the one JSON document that it must be."""
        return json.loads(self.out)


# ── running ──────────────────────────────────────────────────────────────────────────────────


def decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def piped(
    *arguments: str | bytes | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    program: Sequence[str] = (COMMAND,),
    umask: int = -1,
) -> Ended:
    """Run the command with pipes for its streams and nothing to read."""
    done = subprocess.run(
        [*program, *arguments],
        cwd=cwd,
        env={**ENVIRONMENT, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=SECONDS,
        umask=umask,
    )
    return Ended(done.returncode, decoded(done.stdout), decoded(done.stderr))


def on_terminal(
    *arguments: str | bytes | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    program: Sequence[str] = (COMMAND,),
    columns: int = 120,
) -> Ended:
    """Run the command on two terminals, one for each stream, so that they can be told apart."""
    with contextlib.ExitStack() as stack:
        ends: list[tuple[int, list[bytes], threading.Thread]] = []
        for _ in ("out", "err"):
            master, slave = pty.openpty()
            stack.callback(os.close, master)
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            pieces: list[bytes] = []
            reader = threading.Thread(target=_drain, args=(master, pieces), daemon=True)
            ends.append((slave, pieces, reader))
        process = subprocess.Popen(
            [*program, *arguments],
            cwd=cwd,
            env={**ENVIRONMENT, **(env or {})},
            stdin=ends[0][0],
            stdout=ends[0][0],
            stderr=ends[1][0],
        )
        for slave, _, reader in ends:
            os.close(slave)
            reader.start()
        try:
            code = process.wait(SECONDS)
        finally:
            process.kill()
            process.wait()
        for _, _, reader in ends:
            reader.join(SECONDS)
        out, err = (decoded(b"".join(pieces)).replace("\r\n", "\n") for _, pieces, _ in ends)
    return Ended(code, out, err)


def _drain(master: int, pieces: list[bytes]) -> None:
    with contextlib.suppress(OSError):  # EIO: the last writer has gone
        while piece := os.read(master, 65536):
            pieces.append(piece)


def patched(preparation: str) -> tuple[str, ...]:
    """Return a program that is the real command after some statements of preparation."""
    return (sys.executable, "-c", f"{preparation}\nfrom sessrotate.cli import main\nmain()")


def called(*arguments: str | Path, seconds: float = 30) -> Ended:
    """Run the command line in this process: a hundred times cheaper, and as short of patience."""
    out, err = io.StringIO(), io.StringIO()
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    signal.signal(signal.SIGALRM, _hung)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = run_command_line([str(argument) for argument in arguments])
            except SystemExit as leaving:
                code = leaving.code if isinstance(leaving.code, int) else bool(leaving.code)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
    return Ended(code, out.getvalue(), err.getvalue())


def _hung(_number: int, _frame: object) -> None:
    raise AssertionError("the command hangs")


# ── checking ─────────────────────────────────────────────────────────────────────────────────

_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|9[0-7]|10[0-7]|[34]8;)[0-9;]*m")


def raw_controls(text: str) -> set[str]:
    """Return the control characters of `text`, but for newlines."""
    return {
        character
        for character in text
        if character != "\n" and (ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0)
    }


def without_ansi(text: str) -> str:
    return _ANSI.sub("", text)


def has_colour(text: str) -> bool:
    return _COLOUR.search(text) is not None


def assert_one_sentence(ended: Ended, code: int) -> None:
    """Check that a command failed as all do: a code, nothing on stdout, one line on stderr."""
    assert (ended.code, ended.out) == (code, ""), ended
    assert ended.err.startswith("sessrotate: "), ended.err
    assert ended.err.endswith("\n"), ended.err
    assert ended.err.count("\n") == 1, ended.err
    assert "Traceback" not in ended.err
    assert not raw_controls(ended.err), ended.err


# ── sessions ─────────────────────────────────────────────────────────────────────────────────


def row(number: int, **fields: object) -> bytes:
    """Return one dated row of a session."""
    record = {
        "type": "user",
        "uuid": f"{number:08x}-0000-4000-a000-00000000000a",
        "sessionId": ID,
        "timestamp": f"2026-03-01T10:{number // 60 % 60:02}:{number % 60:02}.000Z",
        "message": {"role": "user", "content": f"row {number} …"},
        **fields,
    }
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def boundary(number: int, **fields: object) -> bytes:
    """Return one compaction record."""
    return row(
        number,
        **{
            "type": "system",
            "subtype": "compact_boundary",
            "message": None,
            "compactMetadata": {"trigger": "auto", "preTokens": 100_000 + number},
            **fields,
        },
    )


def session(boundaries: int = 3, rows: int = 3, padding: int = 0) -> bytes:
    """Return a session with `rows` rows in each of its segments, each `padding` bytes longer."""
    lines: list[bytes] = []
    for segment in range(boundaries + 1):
        if segment:
            lines.append(boundary(len(lines)))
        lines += [row(len(lines) + n, pad="p" * padding) for n in range(rows)]
    return b"".join(lines)


def segments_of(data: bytes) -> list[bytes]:
    """Return where this module's own sessions are to be cut: another way than the scanner's."""
    parts = [b""]
    for line in data.splitlines(keepends=True):
        if json.loads(line).get("subtype") == "compact_boundary":
            parts.append(b"")
        parts[-1] += line
    return parts


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def modes(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the permissions of a folder and of all that is below it."""
    for path in (folder, *sorted(folder.rglob("*"))):
        yield path.name, path.lstat().st_mode & 0o7777
