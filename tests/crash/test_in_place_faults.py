"""Whatever call fails, a session stays whole, and the failure is said in one sentence."""

from __future__ import annotations

import ast
import errno
import os
import sys
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate import fs
from sessrotate.errors import SessrotateError
from support.crash.changes import CHANGING, TWO_NAMES, Faults, ShortWrites, Watch
from support.crash.disk import Image
from support.crash.judging import check_recovered, check_whole, crashes, is_new
from support.crash.scenes import NAMES, Session, laid_out, recovered, scene
from support.tiers import in_gate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RESTARTED: Final = {"open", "write", "fsync", "ftruncate", "fchmod", "fchown"}
"""Calls that Python itself repeats when a signal interrupts them (PEP 475)."""

NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT}

NUMBERS: Final = (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EDQUOT)
"""What fails: the disk, and its room; the last two are a kind of these."""

LASTING: Final = pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])


# ── errors ───────────────────────────────────────────────────────────────────────────────────


def check_every_fault(
    before: Image,
    run: Callable[[Session], None],
    fault: Callable[[], OSError],
    check: Callable[[Session], None],
    *,
    lasting: bool,
    unpacks: bool = False,
) -> int:
    """Run with the 1st call failing, then the 2nd …; return how many there were.

    A run that unpacks a segment does so where temporary files go if the archive has no room for it.
    """
    at = 0
    while True:
        at += 1
        with laid_out(before) as found:
            faults = Faults(at, fault, lasting=lasting)
            failure: SessrotateError | None = None
            with faults.installed(), noted_readme(faults) as at_readme:
                try:
                    run(found)
                except SessrotateError as error:
                    failure = error
            if faults.failed and at_readme and at > at_readme[0]:
                assert failure is None  # a text that nothing needs
                check(found)
                continue
            if not faults.failed:
                assert failure is None
                return at - 1
            number = fault().errno
            is_elsewhere = unpacks and faults.failed == "write" and number in NO_ROOM
            if failure is None and is_elsewhere and not lasting:
                check(found)
                continue
            assert failure is not None, f"call {at}, {faults.failed}, failed and nobody said so"
            assert failure.exit_code == 74
            assert os.strerror(number or 0) in str(failure)
            check(found)


@contextmanager
def noted_readme(faults: Faults) -> Iterator[list[int]]:
    """Yield how many calls there were when the text beside the archives was begun, if it was."""
    noted: list[int] = []
    real = fs.create_file_at_once

    def call(path: Path, data: bytes) -> None:
        if path.name == "README":
            noted.append(faults.count)
        real(path, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fs, "create_file_at_once", call)
        yield noted


def raised(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def check_errors(name: str, number: int, *, lasting: bool) -> int:
    of = scene(name)
    lives = of.live_files()
    return check_every_fault(
        of.before,
        of.run,
        partial(raised, number),
        lambda found: check_whole(found, of, lives),
        lasting=lasting,
        unpacks=name == "healing",
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", in_gate(NUMBERS, 2, "scale"), ids=errno.errorcode.get)
@LASTING
def test_any_call_may_fail(name: str, number: int, lasting: bool) -> None:
    assert check_errors(name, number, lasting=lasting) > 15


class Interrupted(Faults):
    """Fails one call as a signal would, unless Python calls again by itself."""

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if name in RESTARTED:
            return real(*args, **kwargs)
        return super().call(name, real, *args, **kwargs)


@pytest.mark.parametrize("name", NAMES)
def test_any_call_may_be_interrupted_by_a_signal(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "Faults", Interrupted)
    assert check_errors(name, errno.EINTR, lasting=False) > 5


@pytest.mark.parametrize("name", NAMES)
@LASTING
def test_any_call_of_a_recovery_may_fail(name: str, lasting: bool) -> None:
    """After every kind of crash. What is recovered is the same as without a fault."""
    of = scene(name)
    calls = 0

    def check(found: Session) -> None:
        if is_new(found, of, "recovered"):
            assert found.stitched() == of.history
            found.recover()
            check_recovered(found, of)

    states = {image.names: image for image in crashes(name)}  # one of each set of names will do
    for image in states.values():
        calls += check_every_fault(
            image, recovered, partial(raised, errno.ENOSPC), check, lasting=lasting
        )
    assert calls > 35


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "taken", [lambda _size: 1, lambda size: size // 2], ids=["one byte", "half"]
)
def test_any_write_may_take_less_than_it_is_given(name: str, taken: Callable[[int], int]) -> None:
    of = scene(name)
    with of.begun() as found:
        of.run(found)
        whole = found.image()
    with of.begun() as found:
        with ShortWrites(taken).installed():
            of.run(found)
        assert found.image() == whole


# ── nothing gets past the faults ─────────────────────────────────────────────────────────────

READING: Final = {
    "close",
    "dup",
    "exists",
    "fsencode",
    "fspath",
    "fstat",
    "getpid",
    "getxattr",
    "is_dir",
    "is_symlink",
    "listxattr",
    "lseek",
    "lstat",
    "pread",
    "read",
    "read_bytes",
    "stat",
    "statvfs",
    "strerror",
}
"""What else `sessrotate.fs` calls of `os` or of a path."""

PASSIVE: Final = {"__init__", "absolute", "posix_fadvise", "sync", "with_name"}
"""What changes no file itself: `NewFile.sync` calls `fsync`; an advice is only that."""

AUDITED: Final = {
    "os.mkdir": "mkdir",
    "os.rmdir": "rmdir",
    "os.rename": "rename",
    "os.link": "link",
    "os.remove": "unlink",
    "os.truncate": "ftruncate",
    "os.chmod": "fchmod",
    "os.chown": "fchown",
    "os.utime": "utime",
    "os.setxattr": "setxattr",
    "os.symlink": "symlink",
    "os.removexattr": "removexattr",
}
"""What the interpreter calls each verb before it carries it out."""


def test_the_faults_stand_in_the_way_of_every_verb_that_the_package_has() -> None:
    called = set()
    for path in Path(fs.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = ast.unparse(node.func.value)
                verb = node.func.attr
                if owner == "os" or hasattr(os, verb) or hasattr(Path, verb):
                    called.add(verb)
    unknown = called - set(CHANGING) - READING - PASSIVE
    assert not unknown


class Tally(Watch):
    """Counts every changing call by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.calls[name] += 1
        return real(*args, **kwargs)


@contextmanager
def audited() -> Iterator[Counter[str]]:
    """Yield the changing calls that the interpreter itself reports in the block."""
    calls: Counter[str] = Counter()
    is_on = True

    def hear(event: str, args: tuple[Any, ...]) -> None:
        if not is_on:
            return
        if event in AUDITED:
            calls[AUDITED[event]] += 1
        elif event == "open":
            flags = args[2] if isinstance(args[2], int) else 0
            is_named = not os.path.isdir(args[0])  # noqa: PTH112 - or a descriptor; see `fs.scratch`
            calls["open"] += is_named and bool(flags & (os.O_CREAT | os.O_TRUNC))

    sys.addaudithook(hear)  # it can never be taken away again
    try:
        yield calls
    finally:
        is_on = False


@pytest.mark.parametrize("name", NAMES)
def test_no_call_that_changes_the_disk_gets_past_the_faults(name: str) -> None:
    of = scene(name)
    tally = Tally()
    with of.begun() as found, tally.installed(), audited() as calls:
        of.run(found)
    # The interpreter does not report these.
    for verb in ("write", "fsync", *TWO_NAMES):
        del tally.calls[verb]
    # A mkdir that finds its folder changes nothing.
    assert tally.calls["mkdir"] <= calls.pop("mkdir", 0)
    del tally.calls["mkdir"]
    assert calls == tally.calls
    assert calls["rename"] + calls["link"] >= 1
