"""Whatever comes in the way of putting a trimmed session together, every byte is there.

What any change to a session has to stand, `test_deeds` has of this one, too.
Its client trimmed it three times and kept what was there, before or after it was rotated. The
oracle is what the client wrote.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count, pairwise
from typing import IO, TYPE_CHECKING, Any, Final

import pytest

from sessrotate.archive.place import that_wait
from sessrotate.errors import InUseError, SessrotateError
from sessrotate.in_place import operations, seal, second_names
from support import homes
from support.crash import deeds
from support.crash.changes import Before, Killed
from support.crash.disk import Image
from support.crash.judging import seen_of
from support.crash.scenes import OPENING, Session, compaction, laid_out
from support.lines import row
from support.tiers import in_gate
from support.trimming import keep
from support.trimming import trimmed as without

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES: Final = deeds.TRIMMED
HISTORY: Final = deeds.TRIMMED_HISTORY


LATER: Final = ("late lines", "late lines after restoring")
SWAPS: Final = (*NAMES, "first rotation", "second rotation", "restoration", *LATER)

EARLIER: Final = row(76) + b"\n"
LINE: Final = row(77) + b"\n"
SINCE: Final = row(78) + b"\n"


def before_a_swap(name: str) -> tuple[Image, Callable[[Session], None], bytes]:
    """Return a session, what is done to it and killed, and its history.

    With late lines, `EARLIER` came late when the session was rotated, or restored, and is brought
    over behind `SINCE`. The live file has the name that the hook gives it.
    """
    deed = Session.restore if name == "restoration" else rotate
    with laid_out(deeds.trimmed(name) if name in NAMES else Image(frozenset(), (), ())) as found:
        if name not in NAMES:
            found.begin(HISTORY if name == "first rotation" else OPENING)
        if name in {"second rotation", "restoration", *LATER}:
            found.rotate()
            found.append(HISTORY.removeprefix(OPENING))
        if name in {"restoration", LATER[1]}:
            found.rotate()
        second_names.give(found.where, found.where.live)
        if name not in LATER:
            return found.image(), deed, HISTORY
        leave_late(found, Session.restore if name == LATER[1] else rotate)
        found.append(SINCE)
        return found.image(), deed, HISTORY + SINCE + EARLIER


def leave_late(found: Session, deed: Callable[[Session], None]) -> None:
    """Do something to a session; behind its swap, a client writes `EARLIER` to the old file."""
    finish, client = seal.finish, list[IO[bytes]]()

    def opened(*given: Any) -> None:
        client.append(found.where.pack.open("ab", buffering=0))
        finish(*given)

    with pytest.MonkeyPatch.context() as patch, suppress(InUseError):
        patch.setattr(seal, "finish", opened)
        deed(found)
    client[0].write(EARLIER)
    client[0].close()


def without_late(history: bytes) -> list[bytes]:
    """Return the lines but for late ones, and for a row that was said again behind them.

    Late lines come behind what is there when they are brought over.
    """
    lines, found = [f"{line}\n".encode() for line in history.decode().splitlines()], list[bytes]()
    for before, line in pairwise([b"", *lines]):
        is_again = before in {LINE, EARLIER} and line in found
        if line not in {LINE, EARLIER} and not is_again:
            found.append(line)
    return found


@pytest.mark.parametrize("name", SWAPS)
@pytest.mark.parametrize("late", in_gate(["", "late", "torn"], ["late"], "scale"))
@pytest.mark.parametrize("trims", in_gate([0, 1, 2], [1], "scale"))
@pytest.mark.parametrize("is_tried", in_gate([False, True], [True], "scale"))
def test_what_comes_late_and_what_is_trimmed_after_a_kill_at_any_moment_is_put_together(
    name: str, late: str, trims: int, *, is_tried: bool
) -> None:
    """A client had the old file open, and another trims the new one, or only writes to it.

    In between, a run may have tried to finish what was killed (`is_tried`).
    """
    image, killed, expected = before_a_swap(name)
    more = [row(n) + b"\n" + compaction(n) + row(n * 10) + b"\n" for n in range(21, 22 + trims)]
    with laid_out(image) as found:
        states = seen_of(found, killed)
    number = 0
    for image in states:
        with laid_out(image) as found:
            pack, live = found.where.pack, found.where.live
            old = pack if pack.exists() else next(iter(that_wait(found.where)), live)
            is_late = bool(late) and not old.samefile(live)
            if is_late:
                with old.open("ab") as file:
                    if is_tried:
                        with suppress(InUseError):
                            rotate(found)
                    file.write(LINE.rstrip() if late == "torn" and trims else LINE)
                number += 1
            if not live.read_bytes().endswith(b"\n"):
                continue  # half of `EARLIER`: nobody can write behind that unharmed
            for each in more[:trims]:
                found.append(each)
                keep(live)
            found.append(more[-1])
            found.rotate()
            history, whole = found.stitched(), expected + b"".join(more)
            line = LINE.rstrip() if late == "torn" else LINE  # it stays where it waits, and is read
            assert history.count(line) == is_late
            assert history.count(EARLIER) == whole.count(EARLIER)
            assert without_late(history) == without_late(whole)
    assert not late or number


@pytest.mark.parametrize("is_rotated", [False, True], ids=["never rotated", "rotated"])
def test_a_trim_that_was_checked_before_and_done_at_any_call_of_a_rotation_loses_nothing(
    *, is_rotated: bool
) -> None:
    """The client compares the live file with what it read, and then puts its own there.

    That takes it less than the moment that it gets after the swap; when history is sealed by then,
    nothing is touched any more.
    """
    whole = dict[str, list[bool]]()
    for at in count(1):
        with laid_out(deeds.trimmed("not trimmed yet")) as found:
            if is_rotated:
                found.rotate()
                found.append(row(27) + b"\n" + compaction(27) + row(270) + b"\n")
            expected = found.stitched() + LATE
            client = Overtaking(found, at)
            with client.installed(), suppress(SessrotateError):
                rotate(found)
            if client.count < at:
                break
            with suppress(SessrotateError):
                rotate(found)
                rotate(found)
            before, history = "exchange" not in client.names, b""
            with suppress(SessrotateError):
                history = found.stitched()
            files = (path for path in found.root.rglob("*") if path.is_file())
            there = b"".join(map(homes.content, files))
            assert all(line in there for line in expected.splitlines(keepends=True))
            whole.setdefault("before" if before else "after", []).append(history == expected)
    assert all(whole["before"])
    assert whole["after"][:3] == [True] * 3, whole
    assert len(whole["before"]) > 10


LATE: Final = row(21) + b"\n"


class Overtaking(Before):
    """A client that has looked at the live file, and puts its own there before call `at`."""

    def __init__(self, found: Session, at: int) -> None:
        super().__init__(self._put)
        self._found, self._at = found, at
        self._draft = found.where.live.with_name("trimmed")
        self._draft.write_bytes(without(found.where.live.read_bytes()))
        self.names: list[str] = []

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._draft.exists():
            self.names.append(name)
        return super().call(name, real, *args, **kwargs)

    def _put(self) -> None:
        if self.count == self._at and self._draft.exists():
            self._draft.rename(self._found.where.live)
            self._found.append(LATE)


def test_a_kill_while_a_swap_is_taken_back_loses_nothing() -> None:
    with laid_out(deeds.trimmed("not trimmed yet")) as found:
        client = KilledThen(found, 0)
        with client.installed(), pytest.raises(Killed):
            rotate(found)
        states = seen_of(found, finish)
    assert len(states) > 5
    for image in states:
        with laid_out(image) as left:
            finish(left)
            assert left.stitched() == HISTORY + LATE


class KilledThen(Overtaking):
    """The same right behind the exchange of the names, and with it the rotator is killed."""

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        done = super().call(name, real, *args, **kwargs)
        if name == "exchange":
            self._at = self.count
            self._put()
            raise Killed
        return done


def finish(found: Session) -> None:
    """Rotate until there is nothing more to do: taking back, putting together, rotating."""
    for _ in range(3):
        with suppress(SessrotateError):
            rotate(found)


def rotate(found: Session) -> None:
    """Rotate, whatever is left for a later run."""
    done = operations.rotate_session(found.where, 0.2, homes.silent)
    if done.refusal is not None:
        raise done.refusal
