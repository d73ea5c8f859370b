"""Whatever becomes of a change to sealed segments, no byte of them is lost and the next run tidies.

The oracle knows the bodies that were archived and looks for them in all files by itself; of the
code under test it asks only what it would tell a user: the history, and its gaps.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.archive import state
from sessrotate.errors import SessrotateError
from sessrotate.retention import prune, restore, transaction, trash
from sessrotate.retention.policy import Policy
from sessrotate.system import zstd
from sessrotate.units import DAY
from support import oracle, sets
from support.crash.changes import Faults, Killed, Watch
from support.crash.disk import Image
from support.crash.judging import seen_of
from support.crash.power import recorded
from support.crash.scenes import ID, MORE, OPENING, Session, laid_out, unseen
from support.crash.simulator import Disk

if TYPE_CHECKING:
    from collections.abc import Callable

HISTORY: Final = OPENING + MORE
BODIES: Final = oracle.bodies(HISTORY)
ARCHIVED: Final = range(len(BODIES) - 1)
KEPT: Final = 2
GOES: Final = frozenset(ARCHIVED[:-KEPT])
NOW: Final = 1_900_000_000.0


# ── what is done ─────────────────────────────────────────────────────────────────────────────


def run_prune(found: Session) -> None:
    plan = prune.prepare([found.where], Policy(keep_last=KEPT), NOW, lambda _done: None)
    for outcome in (*plan.failures, *prune.execute(plan, 1)):
        if outcome.error is not None:
            raise outcome.error


def run_restore(found: Session) -> None:
    restore.restore(found.where, restore.Wanted(whole=False), 1, unseen)


def run_empty(found: Session) -> None:
    trash.empty(found.where, 7 * DAY, NOW + 7 * DAY, 1)


def run_pin(found: Session) -> None:
    prune.pin(found.where, ARCHIVED[-1], "the design", 1)


@dataclass(frozen=True)
class Deed:
    """A change, the runs before it, and which segments are gone before and after."""

    name: str
    run: Callable[[Session], None]
    earlier: tuple[Callable[[Session], None], ...]
    before: frozenset[int]
    after: frozenset[int]

    @property
    def freed(self) -> frozenset[int]:
        """Return the segments whose bytes are to be freed."""
        return self.after if self.run is run_empty else frozenset()


NONE: Final[frozenset[int]] = frozenset()
DEEDS: Final = (
    Deed("prune", run_prune, (), NONE, GOES),
    Deed("restore", run_restore, (run_prune,), GOES, NONE),
    Deed("empty", run_empty, (run_prune,), GOES, GOES),
    Deed("pin", run_pin, (), NONE, NONE),
)
every_deed: Final = pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.name)


@cache
def before(deed: Deed) -> Image:
    with laid_out(_rotated()) as found:
        for earlier in deed.earlier:
            earlier(found)
        return found.image()


@cache
def _rotated() -> Image:
    with laid_out(Image(frozenset(), (), ())) as found:
        found.rotated_twice()
        return found.image()


@cache
def after(deed: Deed) -> frozenset[str]:
    """Return the names of what a whole run leaves."""
    with laid_out(before(deed)) as found:
        deed.run(found)
        return names_of(found)


def names_of(found: Session) -> frozenset[str]:
    root = found.where.archive
    return frozenset(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file())


# ── what is checked ──────────────────────────────────────────────────────────────────────────


def check_nothing_lost(found: Session, deed: Deed) -> None:
    """Look for every body, in files of any name that it could have."""
    for index in set(ARCHIVED) - deed.freed:
        name = f"{ID}.{index}.jsonl" if index else f"{ID}.jsonl"
        contents = []
        for folder in (found.where.archive, transaction.trash(found.where)):
            if (plain := folder / name).is_file():
                contents.append(plain.read_bytes())
            if (packed := folder / f"{name}.zst").is_file():
                with packed.open("rb") as file:
                    contents.append(b"".join(zstd.decompressed(file.read, 1 << 16)))
        assert any(data.endswith(BODIES[index]) for data in contents), f"segment {index} is lost"


def check_told(found: Session, deed: Deed) -> None:
    """See that a reader gets a history from before the change or after it, and its gaps."""
    gaps: list[str] = []
    with state.opened(found.where) as opened:
        told = sets.whole(opened, gaps.append)
    expected = [
        b"".join(body for index, body in enumerate(BODIES) if index not in gone)
        for gone in (deed.before, deed.after)
    ]
    assert told in expected
    assert bool(gaps) == (told != HISTORY)


def check_tidied(found: Session, deed: Deed) -> None:
    """See that the next run of the same leaves what a whole run leaves, and nothing else."""
    deed.run(found)
    assert names_of(found) == after(deed)
    for file in found.where.archive.rglob("*"):
        assert file.is_dir() or file.stat().st_nlink == 1
    check_nothing_lost(found, deed)
    gone = deed.after
    gaps: list[str] = []
    with state.opened(found.where) as opened:
        told = sets.whole(opened, gaps.append)
    assert told == b"".join(body for index, body in enumerate(BODIES) if index not in gone)


def check(image: Image, deed: Deed) -> None:
    with laid_out(image) as found:
        check_nothing_lost(found, deed)
        check_told(found, deed)
        check_tidied(found, deed)
    with laid_out(image) as found:  # nor may another command be the next
        run_pin(found)
        check_nothing_lost(found, deed)
        check_told(found, deed)
        assert not [name for name in names_of(found) if name.endswith(".partial")]


# ── crashes ──────────────────────────────────────────────────────────────────────────────────


@every_deed
def test_a_kill_at_any_moment_loses_nothing(deed: Deed) -> None:
    with laid_out(before(deed)) as found:
        states = seen_of(found, deed.run)
    assert len(states) > 3
    for image in states:
        check(image, deed)


@every_deed
def test_a_power_loss_at_any_moment_loses_nothing(deed: Deed) -> None:
    run = recorded(deed.name, before(deed), HISTORY, deed.run)
    disk, known = Disk.of(run.trace), set()
    for event in run.trace.events:
        disk.apply(event)
        for image, _ in disk.states():
            if image not in known:
                known.add(image)
                try:
                    check(image, deed)
                except Exception as error:
                    raise AssertionError(f"after {disk.last}:\n{image.shown()}") from error
    assert len(known) > 3


@every_deed
def test_a_kill_of_the_run_that_tidies_loses_nothing(deed: Deed) -> None:
    with laid_out(before(deed)) as found:
        states = {image.names: image for image in seen_of(found, deed.run)}
    for image in states.values():
        with laid_out(image) as found:
            again = seen_of(found, deed.run)
        for later in {entry.names: entry for entry in again}.values():
            check(later, deed)


class KilledAfter(Watch):
    """Is killed before the call that follows the rename number `at`."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._left = at
        self.is_dead = False

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._left == 0:
            self.is_dead = True
            raise Killed
        self._left -= name == "rename"
        return real(*args, **kwargs)


@every_deed
def test_a_power_loss_after_a_kill_and_during_the_next_run_loses_nothing(deed: Deed) -> None:
    """The kill comes when a name is new and not on the disk, which the next run must see to."""
    renames = 0
    while True:
        renames += 1
        killed = KilledAfter(renames)

        def both(found: Session, killed: KilledAfter = killed) -> None:
            with killed.installed(), suppress(Killed):
                deed.run(found)
            deed.run(found)

        run = recorded(deed.name, before(deed), HISTORY, both)
        if not killed.is_dead:
            return
        disk, known = Disk.of(run.trace), set()
        for event in run.trace.events:
            disk.apply(event)
            for image, _ in disk.states():
                if image not in known:
                    known.add(image)
                    check(image, deed)


# ── errors ───────────────────────────────────────────────────────────────────────────────────


@every_deed
@pytest.mark.parametrize(
    "number",
    [errno.EIO, errno.ENOSPC, errno.EROFS],
    ids=errno.errorcode.get,
)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_any_call_on_sealed_segments_may_fail(deed: Deed, number: int, lasting: bool) -> None:
    at, fault = 0, partial(OSError, number, os.strerror(number))
    while True:
        at += 1
        with laid_out(before(deed)) as found:
            faults = Faults(at, fault, lasting=lasting)
            failure: SessrotateError | None = None
            with faults.installed():
                try:
                    deed.run(found)
                except SessrotateError as error:
                    failure = error
            if not faults.failed:
                assert failure is None
                break
            assert failure is not None, f"call {at}, {faults.failed}, failed and nobody said so"
            assert failure.exit_code == 74
            assert os.strerror(number) in str(failure)
            image = found.image()
        check(image, deed)
    assert at > 5


class FullDisk(Faults):
    """Has no room for anything new from a call on; what removes or renames goes on."""

    def call(self, name: str, real: Callable[..., object], *args: object, **more: object) -> object:
        if name in {"write", "mkdir", "open"}:
            return super().call(name, real, *args, **more)
        return real(*args, **more)


@every_deed
def test_a_full_disk_leaves_everything_as_it_was(deed: Deed) -> None:
    at = 0
    while True:
        at += 1
        with laid_out(before(deed)) as found:
            with transaction.begin(found.where, 1):  # the lock's folders are there
                pass
            was = found.image()
            fault = partial(OSError, errno.ENOSPC, os.strerror(errno.ENOSPC))
            faults = FullDisk(at, fault, lasting=True)
            with faults.installed(), suppress(SessrotateError):
                deed.run(found)
            if not faults.failed:
                break
            now = found.image()
            if deed.run is not run_restore:  # which has moved the files: the next run moves on
                assert (now.names, now.contents) == (was.names, was.contents)
        check(now, deed)
