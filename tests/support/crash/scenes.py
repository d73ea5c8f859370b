"""A session whose whole history is known, and the runs that are interrupted.

Rule: the model is the bytes that clients appended, in the order in which they did, and knows
nothing of archives. Nothing here waits: no writer is looked for among the processes of the
machine, and the moment of grace is none.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from sessrotate import names, platforms
from sessrotate.archive import clock, state
from sessrotate.archive.place import Place
from sessrotate.errors import storage
from sessrotate.in_place import operations, recover, waiting
from sessrotate.system import locks
from sessrotate.system.source import Source
from support import sets
from support.command_line import append
from support.crash.changes import Killed
from support.crash.disk import Image
from support.lines import BOUNDARY_LINE, row, session
from support.portable import lack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


ID: Final = "5e55107a-0000-4000-a000-000000000001"

TITLE: Final = b'{"type":"custom-title","customTitle":"t","sessionId":"s"}\n'
"""Is carried along, so that a rotated live file has more than a header before its boundary."""

REPEATED: Final = b'{"type":"mode","mode":"m","sessionId":"s"}\n'
"""Ends every live tail: the next line may be the same, and clients do write the same again."""

OPENING: Final = TITLE + session(3) + REPEATED


def compaction(number: int) -> bytes:
    """Return the line of a compaction."""
    return BOUNDARY_LINE.replace(b"000000000001", b"%012d" % number) + b"\n"


MORE: Final = b"".join(
    row(cut) + b"\n" + compaction(cut) + row(cut * 10) + b"\n" + REPEATED for cut in (7, 8)
)
"""Two more compactions: a second rotation seals two segments."""

REWOUND: Final = row(904, parentUuid="00000000-0000-4000-8000-000000000001") + b"\n" + REPEATED
"""What a client writes that goes back to a row of the first segment."""

LATE: Final = b"".join((REPEATED, row(901) + b"\n", REPEATED))
"""What comes to the old file after it was replaced; the first line stands there already."""

MEANWHILE: Final = b"".join((row(902) + b"\n", REPEATED, row(901) + b"\n"))
"""What comes to the new file meanwhile: the same lines in part, in another order."""


def unseen(_what: str, _total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Show no progress."""
    return contextlib.nullcontext(lambda _done: None)


@dataclass(frozen=True)
class Session:
    """A session in a client's folder of its own."""

    root: Path

    @property
    def where(self) -> Place:
        return Place(self.root, "p", ID, self.root / "projects" / "p" / f"{ID}.jsonl")

    def begin(self, data: bytes) -> None:
        self.where.live.parent.mkdir(parents=True)
        self.where.live.write_bytes(data)

    def append(self, data: bytes) -> None:
        append(self.where.live, data)

    def rotate(self) -> None:
        done = operations.rotate_session(self.where, 1, unseen)
        if done.refusal is not None:
            raise done.refusal
        assert done.pending is None or not platforms.HERE.leases

    def rotated_twice(self) -> None:
        """Begin, be rotated, go on and be rotated again: all of `OPENING` and `MORE`."""
        self.begin(OPENING)
        self.rotate()
        self.append(MORE)
        self.rotate()

    def restore(self) -> None:
        operations.restore_session(self.where, 1, unseen)

    def recover(self) -> str:
        with locks.alone(self.where, 1), storage("finish what an interrupted run began"):
            return recover.recover(self.where, 1).deed

    def stitched(self) -> bytes:
        with state.opened(self.where) as found:
            return sets.whole(found)

    def waiting(self) -> bytes:
        """Return what the replaced files that wait hold, one after the other."""
        files = sorted(self.where.waiting.glob("[0-9]")) if self.where.waiting.is_dir() else []
        return b"".join(file.read_bytes() for file in files)

    def check_clean(self) -> None:
        """Check that nothing is there that is only there while something is being done."""
        archive = self.where.archive
        found = {entry.name for entry in archive.iterdir()} if archive.exists() else set()
        found -= {names.WAITING}  # where there are no leases it is there for a day
        is_freed = found == {names.RECORD}
        found -= {names.RECORD}
        if archive.exists() and not is_freed:
            _check_segments(found - {names.MANIFEST}, len(found) - 1)
            assert names.MANIFEST in found
        beside = {entry.name for entry in self.where.live.parent.iterdir()}
        assert beside <= {self.where.live.name}
        for file in (*archive.rglob("*"), *self.where.live.parent.glob("*")):
            assert file.is_dir() or file.stat().st_nlink == 1, file

    def image(self) -> Image:
        return Image.taken(self.root)


def _check_segments(found: set[str], count: int) -> None:
    """Check that there are so many segments."""
    assert found == {names.sealed_file(ID, number) for number in range(count)}


def fast_folder() -> Path | None:
    """Return a folder in memory, where that is one."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and os.access(memory, os.W_OK) else None


@contextlib.contextmanager
def laid_out(image: Image) -> Iterator[Session]:
    """Yield the session that an image shows, in a folder of its own that goes in the end."""
    root = Path(tempfile.mkdtemp(prefix="sessrotate-", dir=fast_folder())).resolve()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_CONFIG_DIR", str(root))  # whoever looks for other archives finds these
        patch.delenv("CLAUDE_PROJECTS_DIR", raising=False)
        try:
            image.lay_out(root)
            yield Session(root)
        finally:
            shutil.rmtree(root)


@contextlib.contextmanager
def leases_granted() -> Iterator[None]:
    """Grant every lease without asking the system: who looks at a leased file would wait for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locks, "read_lease", lambda _fd: "taken")
        patch.setattr(locks, "write_lease", lambda _fd: "taken")
        patch.setattr(locks, "release_lease", lambda _fd: None)
        patch.setattr(locks, "is_lease_wanted", lambda _fd: False)
        yield


# ── what is interrupted ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Scene:
    """A session before a run, and the run. `history` is the model's; `after` what a run leaves."""

    name: str
    before: Image
    history: bytes
    run: Callable[[Session], None]

    @contextlib.contextmanager
    def begun(self) -> Iterator[Session]:
        with laid_out(self.before) as found:
            yield found

    def live_files(self) -> set[bytes | None]:
        """Return what the live file may hold: what it held before, or what a whole run leaves."""
        with self.begun() as found:
            before = found.where.live.read_bytes() if found.where.live.exists() else None
            self.run(found)
            return {before, found.where.live.read_bytes()}


def _made(prepare: Callable[[Session], None]) -> Image:
    with laid_out(Image(frozenset(), (), ())) as found:
        prepare(found)
        return found.image()


def _first(found: Session) -> None:
    found.begin(OPENING)


def _second(found: Session) -> None:
    found.begin(OPENING)
    found.rotate()
    found.append(MORE)


def _rewound(found: Session) -> None:
    found.begin(OPENING)
    found.rotate()
    found.append(REWOUND)


def _gone(found: Session) -> None:
    found.begin(OPENING)
    found.rotate()
    found.where.live.unlink()


def _unfinished(found: Session, run: Callable[[Session], None]) -> None:
    """End a run right after its swap; then lines come to either file."""

    def end(_self: object) -> None:
        raise Killed

    with leases_granted(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sessrotate.in_place.swap._Swap._drain", end)
        with contextlib.suppress(Killed):
            run(found)
    append(found.where.pack, LATE)
    found.append(MEANWHILE)


def _late(found: Session) -> None:
    _second(found)
    _unfinished(found, Session.rotate)


def _late_after_restoring(found: Session) -> None:
    _second(found)
    _unfinished(found, Session.restore)


def recovered(found: Session) -> None:
    found.recover()


def scenes() -> tuple[Scene, ...]:
    """Return the runs, each with what there is before it."""
    archived = OPENING[: OPENING.rindex(compaction(2))]
    late = OPENING + MORE + MEANWHILE + LATE
    return (
        Scene("first rotation", _made(_first), OPENING, Session.rotate),
        Scene("second rotation", _made(_second), OPENING + MORE, Session.rotate),
        Scene("restore", _made(_second), OPENING + MORE, Session.restore),
        Scene("late lines", _made(_late), late, recovered),
        Scene("late lines after restoring", _made(_late_after_restoring), late, recovered),
        Scene("healing", _made(_rewound), OPENING + REWOUND, Session.rotate),
        Scene("restore what is gone", _made(_gone), archived, Session.restore),
    )


CHANGED: Final = (
    "first rotation",
    "second rotation",
    "restore",
    "healing",
)
"""The runs that replace a live file."""

NAMES: Final = (
    *CHANGED,
    "late lines",
    "late lines after restoring",
    "restore what is gone",
)


def scene(name: str) -> Scene:
    """Return one of `scenes()`."""
    return next(found for found in scenes() if found.name == name)


# ── replaced files that wait ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class WaitingScene:
    """A run where there are no leases, about a replaced file that waits, or is to.

    The history is `settled` and then `late`: lines that came to the file while it waited, and that
    the run brings over. `is_day_over` says whether the file may go.
    """

    name: str
    before: Image
    settled: bytes
    late: bytes
    run: Callable[[Session], None]
    is_day_over: bool


@contextlib.contextmanager
def quiet(*, is_day_over: bool) -> Iterator[None]:
    """Have no leases in the block, and the quiet day over or not; one time, too."""
    with one_time() as patch:
        lack(patch, "leases")
        patch.setattr(locks, "SETTLE", 0)
        patch.setattr(waiting, "is_over", lambda *_, **__: is_day_over)
        yield


@contextlib.contextmanager
def one_time() -> Iterator[pytest.MonkeyPatch]:
    """Have it always be the same time in the block: images leave times out, but notes have them."""
    identity = Source.identity
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "stamp", lambda _now=1.0: 1.0)
        patch.setattr(Source, "identity", lambda self: replace(identity(self), modified_ns=1))
        yield patch


def _kept(found: Session) -> None:
    found.begin(OPENING)
    found.rotate()
    assert found.waiting() == OPENING


def _late_while_waiting(found: Session) -> None:
    _kept(found)
    append((found.where.waiting / "1"), LATE)
    found.append(MEANWHILE)


def waiting_scenes() -> tuple[WaitingScene, ...]:
    """Return the runs about a replaced file that waits."""
    with quiet(is_day_over=False):
        first, kept, late = _made(_first), _made(_kept), _made(_late_while_waiting)
        unfinished = _made(_late)
    both, more = OPENING + MEANWHILE, OPENING + MORE + MEANWHILE
    return (
        WaitingScene("it is kept", first, OPENING, b"", Session.rotate, is_day_over=False),
        WaitingScene("it is kept, late", unfinished, more, LATE, recovered, is_day_over=False),
        WaitingScene("lines come over", late, both, LATE, recovered, is_day_over=False),
        WaitingScene("lines come over, and it goes", late, both, LATE, recovered, is_day_over=True),
        WaitingScene("it goes", kept, OPENING, b"", recovered, is_day_over=True),
        WaitingScene("restore, and it goes", late, both, LATE, Session.restore, is_day_over=True),
    )


WAITING: Final = (
    "it is kept",
    "it is kept, late",
    "lines come over",
    "lines come over, and it goes",
    "it goes",
    "restore, and it goes",
)
"""The names of `waiting_scenes()`."""
