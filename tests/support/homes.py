"""A client's folder of a test's own, and what is done to the session in it, in one line each.

Rule: what is right is computed from the bytes that were appended, never from what the code says.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.archive import place, state
from sessrotate.errors import RefusedError, SessrotateError
from sessrotate.in_place import operations, waiting
from sessrotate.system import locks
from support import sets
from support.command_line import ID, append, write
from support.crash.changes import Faults, Killed
from support.portable import lack

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.in_place.operations import Rotated
    from sessrotate.in_place.restore import RestorePlan
    from sessrotate.segments import Problem

PROJECT: Final = "-home-somebody-project"

OWN_FOLDERS: Final = {
    "XDG_CONFIG_HOME": "xdg-config",
    "XDG_STATE_HOME": "xdg-state",
    "XDG_CACHE_HOME": "xdg-cache",
    "XDG_DATA_HOME": "xdg-data",
}
"""Where the user's own settings and logs are looked for, beside the client's folder."""

LONG_AGO: Final = 100.0
"""Seconds after which a file counts as quiet where there are no leases."""


@contextlib.contextmanager
def silent(_what: str, _total: int) -> Iterator[Callable[[int], None]]:
    """Take progress and show none."""
    yield lambda _done: None


@dataclass(frozen=True, slots=True)
class Home:
    """A client's folder with one session."""

    config: Path

    @property
    def live(self) -> Path:
        return self.config / "projects" / PROJECT / f"{ID}.jsonl"

    @property
    def archive(self) -> Path:
        return self.config / "sessrotate" / "archives" / ID

    @property
    def pack(self) -> Path:
        return self.archive / "pack"

    @property
    def where(self) -> Place:
        return place.of_live(self.live)

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.config.parent),
            "CLAUDE_CONFIG_DIR": str(self.config),
            **{name: str(self.config.parent / folder) for name, folder in OWN_FOLDERS.items()},
        }

    def rotate(self, wait: float = 0.2, *, adopt: bool = False) -> Rotated:
        """Rotate the session, or raise what keeps that from being done."""
        done = operations.rotate_session(self.where, wait, silent, adopt=adopt)
        if done.refusal is not None:
            raise done.refusal
        return done

    def restore(self, wait: float = 0.2) -> RestorePlan | None:
        return operations.restore_session(self.where, wait, silent)

    def beside(self, session: str, data: bytes) -> Path:
        """Write a second session: these bytes, with an id of its own in them."""
        path = self.live.with_name(f"{session}.jsonl")
        return write(path, data.replace(ID.encode(), session.encode()))

    def run_by_a_client(self, session: str = ID) -> None:
        """Register this process as a client that runs the session."""
        told = {"pid": os.getpid(), "sessionId": session, "cwd": "/"}
        write(self.config / "sessions" / f"{os.getpid()}.json", json.dumps(told).encode())

    def append(self, data: bytes) -> None:
        append(self.live, data)

    def stitched(self) -> bytes:
        with state.opened(self.where) as found:
            return sets.whole(found)

    def problems(self) -> list[Problem]:
        """Return what is wrong but for what an interrupted run left."""
        with state.opened(self.where) as found:
            problems = sets.holder(found).verify(lambda _done: None)
        return [problem for problem in problems if problem.kind != "leftover"]

    def segment(self, number: int) -> Path:
        """Return the file of a sealed segment."""
        return sealed(self.archive, number)

    def segments(self) -> list[Path]:
        """Return the files of the sealed segments that are there, the oldest first."""
        return [path for path in map(self.segment, range(100)) if path.exists()]

    def archived(self) -> set[str]:
        """Return the names of what is in the archive, none if there is none."""
        return {file.name for file in self.archive.iterdir()} if self.archive.exists() else set()

    @property
    def is_whole(self) -> bool:
        """Whether the live file is all of the history, and nothing of a swap is in its archive."""
        busy = {"pack", "live.partial", "waiting"}
        is_marked = not self.archived() or self.record()["restored"] is not None
        is_headed = self.live.read_bytes().startswith(b'{"type":"segment_header"')
        return is_marked and not is_headed and not self.is_busy() and not busy & self.archived()

    def record(self) -> dict[str, Any]:
        """Return the first line of the record, read in another way than the code's; or of none."""
        found: dict[str, Any] = {"intent": None, "away": None, "restored": None, "waiting": []}
        if "record.json" in self.archived():
            found = json.loads((self.archive / "record.json").read_text().split("\n")[0])
        return found

    def lose_record(self, left: bytes | None = None) -> None:
        """Lose the record, or have these bytes in its place."""
        path = self.archive / "record.json"
        path.unlink(missing_ok=True)
        if left is not None and self.archive.is_dir():
            path.write_bytes(left)

    def trashed(self) -> set[str]:
        """Return the names of the segments that were pruned and can come back."""
        folder = self.archive / "trash"
        return {path.name for path in folder.iterdir()} if folder.exists() else set()

    def intent(self) -> dict[str, Any]:
        """Return what is under way."""
        found: dict[str, Any] = self.record()["intent"]
        return found

    def is_busy(self) -> bool:
        """Tell whether a rotation or restoration is under way."""
        return "pack" in self.archived() or self.record()["intent"] is not None

    def age(self, seconds: float = LONG_AGO) -> None:
        """Let time pass for whatever a rotation left behind."""
        passed = int(seconds * 1e9)
        told = self.record()
        for each in told["waiting"]:
            each |= {"since": each["since"] - passed, "modified": each["modified"] - passed}
        if told["waiting"]:
            path = self.archive / "record.json"
            was, rest = path.stat().st_mtime_ns, path.read_text().partition("\n")[2]
            path.write_text(f"{json.dumps(told)}\n{rest}")
            os.utime(path, ns=(was, was))
        packs = [each.path for each in waiting.packs(self.where)] if self.archive.exists() else []
        for path in (self.archive / "pack", self.archive / "record.json", *packs):
            if path.exists():
                then = path.stat().st_mtime_ns - passed
                os.utime(path, ns=(then, then))


def home(folder: Path, patch: pytest.MonkeyPatch, data: bytes | None = None) -> Home:
    """Make a client's folder, that of this process from now on, with a session of these bytes."""
    made = Home(folder / ".claude")
    made.config.mkdir(parents=True, exist_ok=True)
    for name, value in made.env.items():
        patch.setenv(name, value)
    patch.delenv("CLAUDE_PROJECTS_DIR", raising=False)
    if data is not None:
        write(made.live, data)
    return made


def unused_for(path: Path, days: float) -> float:
    """Have a file be as it is for so many days; return its time."""
    then = time.time() - days * 86_400
    os.utime(path, (then, then))
    return path.stat().st_mtime


def later(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """Let so many days pass."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + days * 86_400)


def sealed(folder: Path, number: int) -> Path:
    """Return the file of a sealed segment in a folder."""
    return folder / (f"{ID}.{number}.jsonl.zst" if number else f"{ID}.jsonl.zst")


def content(path: Path) -> bytes:
    """Return what a file holds, decompressed if it is compressed."""
    data = path.read_bytes()
    return unpacked(data) if path.suffix == ".zst" else data


def unpacked(data: bytes) -> bytes:
    """Return what was compressed, as any program does it."""
    return zstd.decompress(data)


def packed(data: bytes) -> bytes:
    """Return these bytes compressed, as any program does it."""
    return zstd.compress(data)


def rewrite(path: Path, data: bytes) -> None:
    """Have a sealed segment's file hold other bytes."""
    path.write_bytes(packed(data))


def another(home: Home, name: str, data: bytes) -> None:
    """Make a second session of the same client, with these bytes and its own id, and rotate it."""
    operations.rotate_session(place.of_live(home.beside(name, data)), 1, silent)


def without_leases(patch: pytest.MonkeyPatch) -> None:
    """Be on a system that knows no leases, where nobody needs to be waited for."""
    lack(patch, "leases")
    patch.setattr(locks, "SETTLE", 0)


# ── nothing changed ──────────────────────────────────────────────────────────────────────────


def on_disk(folder: Path) -> int:
    """Return what `du` says that a folder takes, in bytes."""
    told = subprocess.run(["du", "-s", "-k", folder], capture_output=True, check=True).stdout
    return 1024 * int(told.split()[0])


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return all that could have been changed below a folder.

    Left out are what a lock needs, folders that hold nothing else, and when a folder was changed:
    a name may come and go in it.
    """
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        kept = (status.st_ino, status.st_mode, status.st_uid, status.st_gid)
        if "locks" in path.parts:
            continue
        if path.is_symlink():
            found[str(path)] = (*kept, os.readlink(path))  # noqa: PTH115 - as it is written
        elif path.is_file():
            found[str(path)] = (*kept, status.st_nlink, status.st_mtime_ns, path.read_bytes())
        elif not path.is_dir() or not _is_of_locks(path):
            found[str(path)] = kept
    return found


def _is_of_locks(folder: Path) -> bool:
    """Tell whether a folder holds locks, or other such folders, and nothing else."""
    return all(
        path.name == "locks" or (path.is_dir() and _is_of_locks(path)) for path in folder.iterdir()
    )


def flagged(path: Path, flags: str) -> None:
    """Set flags of a file as `chattr` does, or skip the test where that is not possible."""
    if shutil.which("chattr") is None or shutil.which("lsattr") is None:
        pytest.skip("there is no chattr")
    if subprocess.run(["chattr", flags, path], capture_output=True, check=False).returncode:
        pytest.skip("the flags of a file cannot be set here")


def refused(home: Home, *told: str, error: type[SessrotateError] = RefusedError) -> None:
    """Check that a rotation is refused, for all these reasons, and leaves everything alone."""
    before = snapshot(home.config.parent)
    with pytest.raises(error) as caught:
        home.rotate()
    for words in told:
        assert words in str(caught.value)
    assert snapshot(home.config.parent) == before


# ── crashing ─────────────────────────────────────────────────────────────────────────────────


def crashed(deed: Callable[[], object], at: str) -> None:
    """Do something up to where a function of the library would be called."""
    crash = Faults(1)
    with pytest.MonkeyPatch.context() as patch:

        def stop(*_: object, **__: object) -> None:
            crash.install(patch)
            crash.met()

        patch.setattr(at, stop)
        with pytest.raises(Killed):
            deed()


def failing(number: int) -> Callable[..., Any]:
    """Return what can stand for any call, and fails with this error of the system."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def tried_to_append(path: Path, data: bytes) -> bool:
    """Append to a file if that need not wait for a lease to end; tell whether it was done."""
    try:
        fd = _open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
    except BlockingIOError:
        return False
    try:
        _write(fd, data)
    finally:
        os.close(fd)
    return True


# What a client calls is not counted.
_open, _write = os.open, os.write
