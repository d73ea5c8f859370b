"""Anything that clients, rotations and crashes do to a session, in any order: no byte is lost.

The model is what was appended, put together: bytes that are settled, then those that came to a new
file since it took the old one's place, then those that came late to the old one, which go last.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sessrotate.errors import InUseError
from sessrotate.in_place.seal import NotQuietError
from sessrotate.segments import compressed
from sessrotate.system import in_use
from support import command_line, oracle
from support.command_line import append
from support.crash.changes import Faults, Killed, Meanwhile
from support.crash.scenes import fast_folder
from support.examples import examples
from support.homes import home, tried_to_append, without_leases
from support.race.writers import take_back, written_anew

if TYPE_CHECKING:
    from collections.abc import Callable


MOST_OPERATIONS: Final = 60
"""Where most runs here are over; a crash that comes later does not happen."""

MODE: Final = b'{"type":"mode","sessionId":"%s","mode":"default"}\n' % command_line.ID.encode()
"""Metadata that clients write again and again, each time the same bytes."""

ROW: Final = b'{"type":"user"'
"""What a row of the conversation begins with here, and nothing that a client tears."""

crash_points = st.integers(1, MOST_OPERATIONS)


def once(data: bytes) -> bytes:
    """Return a history without the rows that are said again behind late ones, or half of one.

    Rows have a number of their own, so one that is there twice was said again. Half a row with
    which the history ends is one that was said again: what is torn here begins in another way.
    """
    seen, kept = set[bytes](), list[bytes]()
    for line in data.splitlines(keepends=True):
        is_half = line.startswith(ROW) and not line.endswith(b"\n")
        is_again = any(row.startswith(line) for row in seen) if is_half else line in seen
        if not is_again:
            kept.append(line)
        if b'"uuid"' in line and line.endswith(b"\n"):
            seen.add(line)
    return b"".join(kept)


def can_come_over(machine: SessionInPlace) -> bool:
    """Tell whether the model knows what comes over: not whose a half line is, of several files."""
    return not (machine.late and machine.is_torn and len(machine.replaced()) > 1)


class SessionInPlace(RuleBasedStateMachine):
    """One session, its client, and a machine that may lose power at any operation."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=fast_folder()))
        self.patch = pytest.MonkeyPatch()
        (self.folder / "proc").mkdir()
        # Who has the file open is told by /proc, at a cost; here nobody has.
        self.patch.setattr(in_use, "_PROC", self.folder / "proc")
        self.settled = command_line.session(boundaries=1, rows=2)
        self.late = b""
        self.since = b""
        self.said = 0  # how many rows may be said again, at most
        self.number = 1000
        self.uuids: list[str] = []
        self.home = home(self.folder, self.patch, self.settled)

    # ── the client ───────────────────────────────────────────────────────────────────────────

    def _row(self, pad: int = 0) -> bytes:
        self.number += 1
        return command_line.row(self.number, pad="é" * pad)

    def _append(self, data: bytes) -> None:
        self.home.append(data)
        if self._open_end() is None:
            self.settled += data
        else:
            self.since += data

    @property
    def whole(self) -> bytes:
        return self.settled + self.since + self.late

    @property
    def is_torn(self) -> bool:
        return not (self.since or self.settled).endswith(b"\n")

    @rule(count=st.integers(1, 3), pad=st.sampled_from([0, 0, 300, 5000]), again=st.booleans())
    def append_rows(self, count: int, pad: int, again: bool) -> None:
        for _ in range(count):
            is_whole = not self.is_torn
            self._append(self._row(pad))
            if is_whole:
                self.uuids.append(f"{self.number:08x}-0000-4000-a000-00000000000a")
        if again:
            self._append(MODE)

    @rule(share=st.floats(0.1, 0.9))
    def append_a_torn_line(self, share: float) -> None:
        # Not as a late line does: that is taken for a copy of it that a crash tore.
        line = b'{"torn":1,' + self._row()[1:]
        self._append(line[: max(3, int(len(line) * share))])

    @precondition(lambda self: self.is_torn)
    @rule(number=st.integers(0, 10**6))
    def complete_it(self, number: int) -> None:
        self._append(b'%d and the rest"}\n' % number)

    @precondition(lambda self: not self.is_torn)
    @rule(preserve=st.integers(0, 2), metadata=st.booleans())
    def compact(self, preserve: int, metadata: bool) -> None:
        self.number += 1
        facts: dict[str, Any] = {"trigger": "auto", "preTokens": self.number}
        if preserve and self.uuids:
            facts["preservedMessages"] = {"uuids": self.uuids[-preserve:], "allUuids": []}
        compaction = command_line.boundary(self.number, compactMetadata=facts)
        self.uuids = []
        self._append(compaction + self._row())
        if metadata:
            self._append(MODE)

    @precondition(lambda self: self.uuids and not self.is_torn and self._open_end() is None)
    @rule(back=st.integers(1, 3), anew=st.booleans())
    def take_a_row_back(self, back: int, anew: bool) -> None:
        """Edit in place, as clients do; docs/internals/guarantees.md says what late lines do."""
        uuid = self.uuids.pop(max(0, len(self.uuids) - back))
        if self.home.stitched().count(b'"uuid":"%s"' % uuid.encode()) > 1:
            return  # it was said again behind a late line
        if anew:
            self.home.live.write_bytes(written_anew(self.home.live.read_bytes(), uuid))
        else:
            assert take_back(self.home.live, b'"uuid":"%s"' % uuid.encode())
        self.settled = written_anew(self.settled, uuid)

    @precondition(lambda self: self._open_end() is not None)
    @rule()
    def write_to_the_file_that_was_replaced(self) -> None:
        self._write_late()

    def _write_late(self) -> None:
        line = self._row()
        append(self.replaced()[-1], line)
        self.late += line
        self.said += 1

    def replaced(self) -> list[Path]:
        """Return the replaced files that somebody may still write to, the last one at the end."""
        pack, waiting = self.home.pack, self.home.archive / "waiting"
        waits = [*waiting.iterdir()] if waiting.is_dir() else []
        paths = sorted(waits, key=lambda path: int(path.name))
        if pack.exists() and not pack.samefile(self.home.live) and self.home.record()["intent"]:
            paths.append(pack)
        return paths

    def _open_end(self) -> int | None:
        """Return which file was replaced last; None if nobody can write to any."""
        return next((path.stat().st_ino for path in reversed(self.replaced())), None)

    # ── what is done to it ───────────────────────────────────────────────────────────────────

    def _do(self, deed: Callable[[], object], *, leases: bool, crash: Faults | None = None) -> bool:
        """Do something, perhaps until a crash; return whether nothing is left to do."""
        window = self._open_end()
        is_done = False
        with pytest.MonkeyPatch.context() as patch:
            # One segment at a time, so that a crash comes at the same call each time.
            patch.setattr(compressed, "workers", lambda _: 1)
            if not leases:
                without_leases(patch)
            if crash is not None:
                crash.install(patch)
            with contextlib.suppress(Killed, *((InUseError,) if crash else ())):
                try:
                    deed()
                    is_done = leases and not (self.late and self.is_torn)
                except NotQuietError:
                    assert not leases or (self.late and self.is_torn)
                except InUseError:  # of so many files, somebody may still write to each
                    waiting = sum(path.stat().st_size for path in self.replaced())
                    assert crash or waiting > len(self.whole)
        self._see_what_came_over()
        if (after := self._open_end()) is None:  # what came late is in the live file by now
            self.settled, self.late, self.since = self.whole, b"", b""
        elif after != window:
            self.settled, self.since = self.settled + self.since, b""
        return is_done

    def _see_what_came_over(self) -> None:
        """Settle the late lines with which the live file ends, whole ones or half of one."""
        live, before = once(self.home.live.read_bytes()), self.settled + self.since
        end = before[oracle.boundaries(before)[-1] :]
        for size in range(len(self.late), 0, -1):
            if live.endswith(end + self.late[:size]):
                self.settled, self.since = before + self.late[:size], b""
                self.late = self.late[size:]
                return

    def _has_archive(self) -> bool:
        return not self.home.is_whole

    def _is_compacted(self) -> bool:
        """Tell whether the live file has a compaction that it does not begin with."""
        data = self.home.live.read_bytes()
        carries = data.startswith(b'{"type":"segment_header"')
        return len(oracle.boundaries(data)) > carries

    def _compact_if_need_be(self) -> None:
        if not self._is_compacted() and not self.is_torn:
            self.compact(0, metadata=False)

    @precondition(can_come_over)
    @rule(leases=st.sampled_from([True, True, False]))
    def rotate(self, leases: bool) -> None:
        if self._do(self.home.rotate, leases=leases):
            self._check_tidy()

    @precondition(can_come_over)
    @rule(count=st.integers(0, 2))
    def rotate_under_a_client_that_has_it_open(self, count: int) -> None:
        self._compact_if_need_be()
        self._do(self.home.rotate, leases=False)
        for _ in range(count):
            if self._open_end() is not None:
                self._write_late()

    @precondition(lambda self: self._has_archive() and not (self.late and self.is_torn))
    @rule()
    def restore(self) -> None:
        self._do(self.home.restore, leases=True)
        assert once(self.home.live.read_bytes()) == self.settled
        assert self.late == self.since == b""
        assert self.home.is_whole

    @precondition(can_come_over)
    @rule(at=crash_points, leases=st.booleans(), but_once=st.booleans())
    def crash_in_a_rotation(self, at: int, leases: bool, but_once: bool) -> None:
        self._compact_if_need_be()
        crash = Faults(at, lasting=not but_once)
        self._do(self.home.rotate, leases=leases, crash=crash)

    @precondition(lambda self: self._has_archive() and can_come_over(self))
    @rule(at=crash_points, leases=st.booleans(), but_once=st.booleans())
    def crash_in_a_restoration(self, at: int, leases: bool, but_once: bool) -> None:
        self._do(self.home.restore, leases=leases, crash=Faults(at, lasting=not but_once))

    @precondition(lambda self: not self.late)
    @rule(at=crash_points, leases=st.booleans(), back=st.booleans())
    def append_while_it_is_changed(self, at: int, leases: bool, back: bool) -> None:
        if not back:
            self._compact_if_need_be()
        line, done = self._row(), []
        self.said += 1

        def append() -> None:
            done.append(tried_to_append(self.home.live, line))

        deed = self.home.restore if back else self.home.rotate
        self._do(deed, leases=leases, crash=Meanwhile(at, append))
        if True in done:
            # Without leases the line may have come to the old file between two looks at it.
            is_open = self._open_end() is not None
            came_late = is_open and self.replaced()[-1].read_bytes().endswith(line)
            if not once(self.home.live.read_bytes()).endswith(line):
                assert not leases
                self.late += line
            elif is_open and not came_late:
                self.since += line
            else:
                self.settled += line

    @rule()
    def time_passes(self) -> None:
        self.home.age()

    def _check_tidy(self) -> None:
        found = self.home.archived()
        assert not self.home.is_busy()
        assert not [name for name in found if name.endswith(".partial")]
        assert len(found) in {0, len(oracle.boundaries(self._cut_off())) + 2}

    def _cut_off(self) -> bytes:
        """Return the bytes that are in the archive after a rotation."""
        return self.settled[: oracle.boundaries(self.settled)[-1]]

    # ── what always holds ────────────────────────────────────────────────────────────────────

    @invariant()
    def stitched_it_is_what_was_appended(self) -> None:
        found = self.home.stitched()
        assert once(found) == self.whole
        assert found.count(b"\n") - self.whole.count(b"\n") <= self.said

    @invariant()
    def there_is_nothing_wrong_with_it(self) -> None:
        assert not self.home.problems()

    @invariant()
    def the_live_file_ends_with_all_since_the_last_compaction(self) -> None:
        live = once(self.home.live.read_bytes())
        candidates = [self.whole, self.settled + self.since]
        assert any(live.endswith(data[oracle.boundaries(data)[-1] :]) for data in candidates)

    def teardown(self) -> None:
        try:
            if self.is_torn:
                self.complete_it(1)
            self.home.age()
            self.restore()
        finally:
            self.patch.undo()
            shutil.rmtree(self.folder)


QUICK: Final = examples(50, stateful_step_count=40)
LONG: Final = examples(300, stateful_step_count=60)


def test_no_byte_is_lost_whatever_happens_in_whatever_order() -> None:
    run(QUICK)


@pytest.mark.scale
def test_no_byte_is_lost_in_long_runs() -> None:
    run(LONG)


def run(profile: settings) -> None:
    run_state_machine_as_test(SessionInPlace, settings=profile)
