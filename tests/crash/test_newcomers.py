"""Another program saves the session by rename in the middle of a swap, and then comes the crash.

The oracle looks for what was saved in all files by itself. The last save has the live file's name,
or if the crash came between the exchange and its undoing, it is aside.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.errors import DamagedError, InUseError
from support.crash.changes import Before
from support.crash.judging import seen_of
from support.crash.power import recorded
from support.crash.scenes import CHANGED, LATE, OPENING, Session, laid_out, scene
from support.crash.simulator import Disk
from support.newcomers import Newcomers, needs_exchange, saved
from support.portable import lack

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.crash.disk import Image

OTHER: Final = b'{"type":"user","uuid":"somebody began anew"}\n'
AGAIN: Final = OPENING + LATE
"""Begins as the session did before anything was rotated."""

SAVES: Final = pytest.mark.parametrize("data", [OTHER, AGAIN], ids=["another", "the session"])


def beside(saves: tuple[bytes, ...], run: Callable[[Session], None]) -> Callable[[Session], None]:
    """Return the run with another program that saves right before each exchange."""

    def both(found: Session) -> None:
        with Newcomers(found.where.live, [*saves]).coming(), suppress(InUseError):
            run(found)

    return both


@cache
def killed(name: str, *saves: bytes) -> tuple[Image, ...]:
    """Return what a kill leaves in which any of the saves is."""
    of = scene(name)
    with of.begun() as found:
        images = seen_of(found, beside(saves, of.run))
    return tuple(image for image in images if has_come(image, *saves))


def has_come(image: Image, *saves: bytes) -> bool:
    """Tell whether one of the saves is there, and none is on its way."""
    is_under_way = any(".saving" in path for path, _ in image.names)
    return not is_under_way and any(data in saves for data in image.contents)


def contents(found: Session) -> list[bytes]:
    return [path.read_bytes() for path in found.root.rglob("*") if path.is_file()]


def recovered(found: Session) -> None:
    """Recover; an archive that no live file goes on from is put aside, which is said once."""
    with suppress(DamagedError):
        found.recover()


def check(found: Session, *saves: bytes) -> None:
    """Recover, and see that all saves are there and nothing else is left to do."""
    recovered(found)
    found.recover()
    for data in saves:
        assert any(data in content for content in contents(found)), found.image().shown()
    left = found.where.archive
    assert not [*left.glob("*.partial"), *left.glob("pack")] if left.exists() else True
    assert found.recover() == "nothing"


def is_last(found: Session, data: bytes) -> bool:
    """Tell whether what was saved has the live file's name, or one where a person looks for it."""
    aside = (found.where.config / "sessrotate" / "aside").glob("*.jsonl")
    return any(path.read_bytes().startswith(data) for path in (found.where.live, *aside))


LESS: Final = OPENING[: OPENING.index(b"\n") + 1]
"""All of its lines are in the session."""

TORN: Final = b'{"type":"user","uuid":"half a line"'


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("data", [OTHER, AGAIN, LESS, TORN], ids=["another", "all", "less", "torn"])
def test_after_any_kill_what_was_saved_has_its_name_or_is_aside(name: str, data: bytes) -> None:
    needs_exchange()
    states = killed(name, data)
    assert len(states) > 4
    for image in states:
        with laid_out(image) as found:
            check(found, data)
            assert is_last(found, data), image.shown()


@pytest.mark.parametrize("name", CHANGED)
@SAVES
def test_a_kill_of_the_recovery_loses_nothing_either(name: str, data: bytes) -> None:
    for image in killed(name, data):
        with laid_out(image) as found:
            again = seen_of(found, recovered)
        for other in {each.names: each for each in again}.values():
            with laid_out(other) as found:
                check(found, data)
                assert is_last(found, data), other.shown()


@pytest.mark.parametrize("name", CHANGED)
@SAVES
def test_what_a_client_wrote_after_the_kill_is_there_too(name: str, data: bytes) -> None:
    line = b'{"type":"user","uuid":"after the kill"}\n'
    for image in killed(name, data):
        with laid_out(image) as found:
            found.append(line)
            check(found, data, line)


@pytest.mark.parametrize("name", CHANGED)
def test_of_two_saves_none_is_lost_by_a_kill(name: str) -> None:
    for image in killed(name, OTHER, AGAIN):
        came = [data for data in (OTHER, AGAIN) if data in image.contents]
        with laid_out(image) as found:
            check(found, *came)


@pytest.mark.parametrize("name", CHANGED)
@SAVES
def test_what_is_saved_between_two_kills_is_not_lost(name: str, data: bytes) -> None:
    """A program saves before any change of a recovery, whatever that finishes or undoes."""
    more = b'{"type":"user","uuid":"between two kills"}\n'
    for image in {each.names: each for each in killed(name, data)}.values():
        with laid_out(image) as found:
            states = seen_of(found, beside((more,), recovered))
        for other in {each.names: each for each in states if has_come(each, more)}.values():
            with laid_out(other) as found:
                check(found, more)


def saved_for_good(path: os.PathLike[str], data: bytes) -> None:
    """Save as a careful program does, by calls that are recorded."""
    folder, name = os.path.split(path)
    other = os.path.join(folder, f".{name}.saving")  # noqa: PTH118 - as its caller has it
    fd = os.open(other, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    os.rename(other, path)  # noqa: PTH104 - as above
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


@pytest.mark.parametrize("name", CHANGED)
@SAVES
def test_no_power_loss_loses_what_was_saved_and_synced(
    name: str, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_exchange()
    of = scene(name)
    monkeypatch.setattr("support.newcomers.saved", saved_for_good)
    run = recorded(name, of.before, of.history, beside((data,), of.run))
    disk, known, is_saved = Disk.of(run.trace), set(), False
    for event in run.trace.events:
        disk.apply(event)
        is_saved = is_saved or event.text.startswith("exchange")
        for image, _ in disk.states() if is_saved else ():
            if image not in known:
                known.add(image)
                try:
                    with laid_out(image) as found:
                        check(found, data)
                        assert is_last(found, data)
                except Exception as error:
                    raise AssertionError(f"after {disk.last}:\n{image.shown()}") from error
    assert len(known) > 4


def test_without_the_comparison_a_save_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above notice what they are there for."""
    lack(monkeypatch, "exact_renames")
    of = scene(CHANGED[0])
    with of.begun() as found:
        beside((OTHER,), of.run)(found)
        assert not any(OTHER in content for content in contents(found))


def test_before_every_change_of_a_rotation_a_program_may_save() -> None:
    """It saves once, at each moment in turn; there is no other lock between it and us."""
    needs_exchange()
    of = scene(CHANGED[0])
    for at in count(1):
        with of.begun() as found:
            left = [at]

            def come(found: Session = found, left: list[int] = left) -> None:
                left[0] -= 1
                if not left[0]:
                    saved(found.where.live, AGAIN)

            with Before(come).installed(), suppress(InUseError, DamagedError):
                of.run(found)
            if left[0] > 0:
                break
            if found.where.live.read_bytes() != AGAIN:  # it came so early that it was rotated
                assert found.stitched() == AGAIN, at
    assert at > 20
