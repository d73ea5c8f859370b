"""A replaced file that waits loses nothing to a kill or a power loss, wherever that comes.

It is noted, renamed, brought over by whole lines and removed: where there are no leases, which is
injected, so that every run has these tests.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from sessrotate.in_place.seal import NotQuietError
from support.crash.changes import Before, killed
from support.crash.power import NEXT, recorded
from support.crash.scenes import (
    ID,
    WAITING,
    Session,
    WaitingScene,
    laid_out,
    quiet,
    recovered,
    waiting_scenes,
)
from support.crash.simulator import Disk
from support.tiers import in_gate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.crash.disk import Image
    from support.crash.power import Recorded


@cache
def scene(name: str) -> WaitingScene:
    return next(found for found in waiting_scenes() if found.name == name)


def check_there(found: Session, of: WaitingScene, *, has_zeros: bool = False) -> bytes:
    """Check that nothing is lost: the history has the late lines, or the file that waits has them.

    Of the late lines the history may have a beginning, which an interrupted append leaves.
    """
    stitched = found.stitched()
    assert stitched.startswith(of.settled), stitched
    rest = stitched[len(of.settled) :]
    rest = rest.replace(b"\0", b"") if has_zeros else rest
    assert of.late.startswith(rest), rest
    assert rest == of.late or found.waiting().endswith(of.late)
    return stitched


def check_recovered(found: Session, of: WaitingScene, *, has_zeros: bool = False) -> None:
    """Check that the next run has all of it, once and whole, and that there is nothing more to do.

    Zeros that a power loss left in place of lines may stand among them. They are a line that nobody
    has finished, and lines come over behind a finished one: so the file waits for a client's next.
    """
    settled = of.settled
    try:
        found.recover()
    except NotQuietError:  # of one that does not wait yet it is said
        assert has_zeros
    whole = found.stitched()
    if has_zeros and not found.where.live.read_bytes().endswith(b"\n"):
        assert whole.endswith(of.late) or found.waiting().endswith(of.late)
        found.append(NEXT)
        settled += NEXT
        found.recover()
        whole = found.stitched()
    assert (whole.replace(b"\0", b"") if has_zeros else whole) == settled + of.late
    found.check_clean()
    image = found.image()
    found.recover()
    assert found.image() == image
    if of.is_day_over:
        assert found.waiting() == b""
    use = found.rotate if found.where.live.exists() else found.restore
    use()
    assert found.stitched() == whole
    found.check_clean()


def images(found: Session, run: Callable[[Session], None]) -> set[Image]:
    """Run; return what a kill would have left: before every change, and in mid-write."""
    seen: set[Image] = set()
    with Before(lambda: seen.add(found.image())).installed():
        run(found)
    return seen


@pytest.mark.parametrize("name", WAITING)
def test_any_call_may_be_the_last_while_a_file_waits(name: str) -> None:
    of, count = scene(name), 0
    with quiet(is_day_over=of.is_day_over):
        for found in killed(lambda: laid_out(of.before), of.run):
            count += 1
            check_there(found, of)
            check_recovered(found, of)
    assert count >= 4


@pytest.mark.parametrize("name", in_gate(WAITING, ["lines come over", "it goes"], "scale"))
def test_recoveries_may_crash_again_and_again_while_a_file_waits(name: str) -> None:
    of = scene(name)
    with quiet(is_day_over=of.is_day_over):
        with laid_out(of.before) as found:
            pending = images(found, of.run)
        seen = {*pending}
        while pending:
            image = pending.pop()
            with laid_out(image) as found:
                check_there(found, of)
                more = images(found, recovered) - seen
            seen |= more
            pending |= more
            with laid_out(image) as found:
                check_recovered(found, of)
    assert len(seen) >= 4


# ── power losses ─────────────────────────────────────────────────────────────────────────────


def run_of(of: WaitingScene) -> Recorded:
    return recorded(of.name, of.before, of.settled + of.late, of.run)


def states(run: Recorded) -> Iterator[tuple[Image, bool, str]]:
    """Yield what a power loss may leave, each state once, and the change before it."""
    disk = Disk.of(run.trace)
    seen: set[tuple[Image, bool]] = set()
    for event in (None, *run.trace.events):
        if event is not None:
            disk.apply(event)
        for state in disk.states():
            if state not in seen:
                seen.add(state)
                yield *state, disk.last


def judge(of: WaitingScene, run: Recorded) -> int:
    """Check every state that a power loss leaves; return how many there are."""
    count = 0
    for image, has_zeros, last in states(run):
        count += 1
        with laid_out(image) as found:
            try:
                check_there(found, of, has_zeros=has_zeros)
                check_recovered(found, of, has_zeros=has_zeros)
            except Exception as error:
                raise AssertionError(f"{of.name}, after {last}:\n{image.shown()}") from error
    return count


@pytest.mark.parametrize("name", WAITING)
def test_a_power_loss_at_any_moment_loses_nothing_of_a_file_that_waits(name: str) -> None:
    of = scene(name)
    with quiet(is_day_over=of.is_day_over):
        assert judge(of, run_of(of)) >= 4


# ── mutants ──────────────────────────────────────────────────────────────────────────────────


def test_a_file_that_goes_before_its_lines_are_on_the_disk_is_noticed() -> None:
    of = scene("lines come over, and it goes")
    with quiet(is_day_over=True):
        run = run_of(of)
        events = [event for event in run.trace.events if event.text != f"fsync {ID}.jsonl"]
        assert len(events) < len(run.trace.events)
        with pytest.raises(AssertionError, match="lines come over, and it goes, after"):
            judge(of, run.with_events(tuple(events)))
