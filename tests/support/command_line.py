"""Runs the command, piped or on a terminal, and makes the small sessions it works on.

Rule: nothing of the user's reaches a command: no settings, no sessions, no language.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support import in_process

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

COMMAND: Final = str(Path(sys.executable).with_name("sessrotate"))
REAL: Final = (COMMAND,)
"""The installed program, where how a process starts or ends is what is tested."""

ID: Final = "5e55107a-0000-4000-a000-000000000001"
SECONDS: Final = 300

ENVIRONMENT: Final = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "TERM": "xterm-256color",
}


_STARTING: Final = ("PYTHON", "LC_", "LANG")
"""Variables that the interpreter reads when it starts; those of `ENVIRONMENT` make it UTF-8."""


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
    program: Sequence[str] | None = None,
    umask: int = -1,
) -> Ended:
    """Run the command with pipes for its streams and nothing to read.

    It runs in this process, as if it were a new one, unless a `program` is named, or a thread
    calls it that cannot stand for a process: signals are the main thread's.
    """
    whole = {**ENVIRONMENT, **(env or {})}
    if program is None and threading.current_thread() is threading.main_thread():
        return _here(arguments, cwd=cwd, env=whole, umask=umask)
    program = program or REAL
    done = subprocess.run(
        [*program, *arguments],
        cwd=cwd,
        env=whole,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=SECONDS,
        umask=umask,
    )
    return _ended(done.returncode, done.stdout, done.stderr, is_terminal=False)


def called(*arguments: str | Path) -> Ended:
    """Run the command in this process, in the environment that the test has prepared."""
    return _here(arguments)


def on_terminal(
    *arguments: str | bytes | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    program: Sequence[str] | None = None,
    columns: int = 120,
) -> Ended:
    """Run the command on two terminals, one for each stream, so that they can be told apart.

    It runs in this process, as if it were a new one, unless a `program` is named.
    """
    whole = {**ENVIRONMENT, **(env or {})}
    if program is None:
        return _here(arguments, cwd=cwd, env=whole, columns=columns)
    with contextlib.ExitStack() as stack:
        out, err = (stack.enter_context(in_process.End(columns)) for _ in range(2))
        process = subprocess.Popen(
            [*program, *arguments],
            cwd=cwd,
            env=whole,
            stdin=out.there,
            stdout=out.there,
            stderr=err.there,
        )
        out.close()
        err.close()
        try:
            code = process.wait(SECONDS)
        finally:
            process.kill()
            process.wait()
        return _ended(code, out.received(), err.received(), is_terminal=True)


def _here(
    arguments: Sequence[str | bytes | Path],
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    umask: int = -1,
    columns: int | None = None,
) -> Ended:
    at_start = {
        name
        for name, value in (env or {}).items()
        if name.startswith(_STARTING) and value != ENVIRONMENT.get(name)
    }
    assert not at_start, "only a new process looks at these: name a program"
    command = [COMMAND, *(os.fsdecode(argument) for argument in arguments)]
    done = in_process.run(command, cwd=cwd, env=env, umask=umask, columns=columns)
    return _ended(*done, is_terminal=columns is not None)


def _ended(code: int, out: bytes, err: bytes, *, is_terminal: bool) -> Ended:
    if is_terminal:  # it ends its lines with two characters
        out, err = (data.replace(b"\r\n", b"\n") for data in (out, err))
    return Ended(code, decoded(out), decoded(err))


def patched(preparation: str) -> tuple[str, ...]:
    """Return a program that is the real command after some statements of preparation."""
    return (sys.executable, "-c", f"{preparation}\nfrom sessrotate.cli import main\nmain()")


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


def uuid_of(number: int) -> str:
    """Return the uuid of a row."""
    return f"{number:08x}-0000-4000-a000-00000000000a"


def row(number: int, **fields: object) -> bytes:
    """Return one dated row of a session."""
    record = {
        "type": "user",
        "uuid": uuid_of(number),
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


def append(path: Path, data: bytes) -> None:
    """Append to a file as a client does: open it, write, close it."""
    with path.open("ab") as file:
        file.write(data)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def modes(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the permissions of a folder and of all that is below it."""
    for path in (folder, *sorted(folder.rglob("*"))):
        yield path.name, path.lstat().st_mode & 0o7777
