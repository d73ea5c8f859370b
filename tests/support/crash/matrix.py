"""A run is killed, something happens to the live file, a command follows: as a table.

Rule: the judge asks no reader of ours. Each row that was there before a step is afterwards, as
bytes, in some file whose name lasts, unless the program in between put other bytes over it, or the
owner had it pruned so long ago that it was to go.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from itertools import permutations
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import names
from sessrotate.archive import clock
from support import command_line, homes
from support.command_line import ID, Ended, called
from support.crash import deeds
from support.crash.changes import Before
from support.crash.deeds import DEEDS, HISTORY, TRIMMED_HISTORY
from support.crash.disk import Image
from support.crash.judging import seen_of
from support.crash.scenes import (
    LATE,
    OPENING,
    REPEATED,
    WAITING,
    Session,
    compaction,
    laid_out,
    quiet,
    scenes,
    waiting_scenes,
)
from support.lines import row
from support.trimming import keep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Added = tuple[bytes, ...]

# ── the commands ─────────────────────────────────────────────────────────────────────────────

COMMANDS: Final = {
    "rotate": ("rotate", ID, "--wait", "0.1"),
    "restore": ("restore", ID, "--wait", "0.1"),
    "archive": ("archive", ID, "--wait", "0.1"),
    "prune": ("prune", ID, "--keep-last", "1", "--yes"),
    "empty": ("prune", "--all", "--empty-trash", "--yes"),
    "run": ("run",),
    "tidy": ("tidy", "--yes"),
}
SETTINGS: Final = "[rotate]\nmin_gain = false\n[prune]\nkeep_last = 2\n"
WEEK: Final = 7 * 86_400
LATER: Final = deeds.NOW + WEEK + 86_400
"""When the command runs: the week of grace is over for all that the killed run had pruned."""

CODES: Final = {0, 1, 74, 75, 77}
"""Done; something is wrong; not possible; in use; refused. Never a wrong call, or a traceback."""


def done(name: str) -> Ended:
    ended = called(*COMMANDS[name])
    assert ended.code in CODES or "There is no file or session" in ended.err, ended
    assert "Traceback" not in ended.err, ended
    return ended


# ── what is killed ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Case:
    """A session, what is done to it and killed, the commands that may follow, and the last ones.

    `history` is what clients wrote, in order; of what came `late`, the place is not known.
    """

    name: str
    before: Callable[[], Image]
    run: Callable[[Session], None]
    thens: str
    history: bytes = HISTORY
    late: Added = ()
    leases: bool = True
    is_day_over: bool = True
    last: tuple[str, ...] = ("restore",)

    def killed(self) -> tuple[Image, ...]:
        """Return what a kill may leave, and the end; see that nothing is lost by it."""
        before, images = self.before(), dict[Image, None]()
        with laid_out(before) as found:
            if self.leases:
                images |= dict.fromkeys(seen_of(found, self.run))
            else:
                look = Before(lambda: images.update({found.image(): None}))
                with quiet(is_day_over=self.is_day_over), look.installed():
                    self.run(found)
            images[found.image()] = None
        for image in images:
            lost = there(before) - there(image) - due(before, self.history)
            assert not lost, f"{sorted(lost)}\n{image.shown()}"
        return tuple(images)

    @contextmanager
    def later(self, *, is_day_over: bool) -> Iterator[None]:
        """Have it be later, when the owner runs commands; `is_day_over` is of files that wait."""
        kind = nullcontext() if self.leases else quiet(is_day_over=is_day_over)
        with kind, pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "time", lambda: LATER)
            patch.setattr(clock, "stamp", lambda now=LATER: now)
            patch.setattr(clock, "_written", dict)  # folders are as old as this test
            yield


TOGETHER: Final = ("rotate", "restore")
_DEEDS: Final = {
    "prune": "restore run archive",
    "restore pruned": "restore run archive prune",
    "empty the trash": "restore run",
    "restore all": "restore rotate run archive empty",
    "put away": "restore run rotate",
    "bring back": "restore run archive",
    "free what was restored": "restore rotate run archive",
    "rotate what was restored": "restore run tidy",
    "rebuild the manifest, gone": "restore run empty",
    "rebuild the manifest, half": "restore rotate archive",
    "put together, never rotated": "rotate run archive",
    "put together, rotated": "rotate restore prune",
    "put together, not trimmed yet": "rotate run restore",
}
_SCENES: Final = {
    "first rotation": "restore run archive",
    "second rotation": "restore run archive prune",
    "restore": "rotate run archive empty tidy",
    "late lines": "rotate restore",
    "late lines after restoring": "run restore",
    "healing": "restore run",
    "restore what is gone": "restore rotate run archive",
}


NAMES: Final = (*_DEEDS, *_SCENES, *WAITING, "put together, restored")


def _whole_and_trimmed() -> Image:
    """Return a session that was restored, went on, and was trimmed by its client."""
    with laid_out(deeds.whole_again()) as found:
        _trim(found)
        return found.image()


@cache
def cases() -> dict[str, Case]:
    """Return the rows of the table: what has tables of its own already, and one more."""
    found = list[Case]()
    for deed in DEEDS:
        if deed.name in _DEEDS:
            is_cut = deed.name.startswith("put together")
            whole = TRIMMED_HISTORY if is_cut else HISTORY
            found.append(
                Case(
                    deed.name,
                    deed.before,
                    deed.run,
                    _DEEDS[deed.name],
                    OPENING if deed.name in {"put away", "bring back"} else whole,
                    last=TOGETHER if is_cut else ("restore",),
                )
            )
    for of in scenes():
        late = (LATE,) if of.history.endswith(LATE) else ()
        history = of.history.removesuffix(b"".join(late))
        before = partial(lambda image: image, of.before)
        found.append(Case(of.name, before, of.run, _SCENES[of.name], history, late))
    for each in waiting_scenes():
        before = partial(lambda image: image, each.before)
        late = (each.late,) if each.late else ()
        found.append(
            Case(
                each.name,
                before,
                each.run,
                "restore rotate run archive",
                each.settled,
                late,
                leases=False,
                is_day_over=each.is_day_over,
            )
        )
    restored = Case(
        "put together, restored",
        _whole_and_trimmed,
        Session.rotate,
        "rotate run tidy",
        HISTORY + TRIM,
        last=TOGETHER,
    )
    return {case.name: case for case in (*found, restored)}


# ── what happens meanwhile ───────────────────────────────────────────────────────────────────

WRITTEN: Final = row(911) + b"\n" + REPEATED
TRIM: Final = row(921) + b"\n" + compaction(922) + row(923) + b"\n"
HELD: Final = REPEATED + row(931) + b"\n" + REPEATED


@dataclass(frozen=True)
class Event:
    """What another program does to the live file.

    `do` gets the history, and returns what comes to it; None where it cannot be done. `is_kept`
    says that the history is as it was, but for that; `is_edit` that it takes its own rows back.
    """

    name: str
    do: Callable[[Session, bytes], Added | None]
    is_kept: bool = False
    is_edit: bool = False


def _saved(found: Session, data: bytes) -> None:
    """Put a file in the place of the live file, as programs save and backups come back."""
    command_line.write(found.where.live.with_name("x.tmp"), data).replace(found.where.live)


def _lines(found: Session) -> list[bytes] | None:
    """Return the lines of the live file; None if it is gone, or ends with half a line."""
    live = found.where.live
    data = live.read_bytes() if live.exists() else b""
    return data.splitlines(keepends=True) if data.endswith(b"\n") else None


def _append(found: Session, _history: bytes = b"") -> Added | None:
    if _lines(found) is None:
        return None
    found.append(WRITTEN)
    return (WRITTEN,)


def _append_to_both(found: Session, _history: bytes = b"") -> Added | None:
    """Write to the new file, and to the one that it replaced, which a client has open."""
    pack, live = found.where.pack, found.where.live
    if _lines(found) is None or not pack.exists() or pack.samefile(live):
        return None
    if not pack.read_bytes().endswith(b"\n"):
        return None
    command_line.append(pack, HELD)
    found.append(WRITTEN)
    return WRITTEN, HELD


def _save(found: Session, _history: bytes = b"") -> Added | None:
    lines = _lines(found)
    if lines is None:
        return None
    _saved(found, b"".join(lines) + WRITTEN)
    return (WRITTEN,)


def _trim(found: Session, _history: bytes = b"") -> Added | None:
    """Go on, and have the client trim the session and keep what was there.

    Not where a kill left a session half put away: `rotate` and `restore` each say that the other
    comes first then. No row is lost by that, but it ends only by hand.
    """
    if _lines(found) is None or _is_away(found):
        return None
    found.append(TRIM)
    keep(found.where.live)
    return (TRIM,)


def _is_away(found: Session) -> bool:
    record = found.where.archive / names.RECORD
    return record.exists() and b'"away": {' in record.read_bytes().partition(b"\n")[0]


def _put_older(found: Session, _history: bytes = b"") -> Added | None:
    """Put back a copy of the live file from before its last rows, also if that was replaced."""
    pack, live = found.where.pack, found.where.live
    newest = pack if pack.exists() else live
    if not newest.exists():
        return None
    _saved(found, b"".join(newest.read_bytes().splitlines(keepends=True)[:-3]))
    return ()


def _cut(found: Session, _history: bytes = b"") -> Added | None:
    """Save the live file without its last rows, also if it is the new one."""
    if (lines := _lines(found)) is None:
        return None
    _saved(found, b"".join(lines[:-2]))
    return ()


def _put_first(found: Session, _history: bytes) -> Added:
    _saved(found, OPENING)
    return ()


def _put_most(found: Session, history: bytes) -> Added:
    """Put back a copy of the whole session from before its last row."""
    _saved(found, history[: history.rindex(b'{"type":"user"')])
    return ()


def _put_whole(found: Session, history: bytes) -> Added:
    _saved(found, history)
    return ()


def _delete(found: Session, _history: bytes = b"") -> Added | None:
    if not found.where.live.exists():
        return None
    found.where.live.unlink()
    return ()


def _take_back(found: Session, _history: bytes = b"") -> Added | None:
    """Truncate the last row, as a client takes one back."""
    lines = _lines(found)
    if lines is None:
        return None
    os.truncate(found.where.live, len(b"".join(lines[:-1])))
    return ()


EVENTS: Final = {
    event.name: event
    for event in (
        Event("nothing", lambda *_: (), is_kept=True),
        Event("append", _append, is_kept=True),
        Event("append to both", _append_to_both, is_kept=True),
        Event("save", _save, is_kept=True),
        Event("trim", _trim, is_kept=True),
        Event("the first copy", _put_first),
        Event("an older copy", _put_older),
        Event("fewer rows", _cut),
        Event("most of the history", _put_most),
        Event("the whole history", _put_whole),
        Event("delete", _delete),
        Event("take back", _take_back, is_edit=True),
    )
}


# ── the judge ────────────────────────────────────────────────────────────────────────────────


def named(image: Image) -> dict[str, bytes]:
    """Return the files whose names last, decompressed: no drafts."""
    paths = [each for each in image.names if not each[0].endswith(names.PARTIAL)]
    return {path: _plain(image.contents[number]) for path, number in paths}


@cache
def _plain(data: bytes) -> bytes:
    return homes.unpacked(data) if data.startswith(b"\x28\xb5\x2f\xfd") else data


@cache
def rows(data: bytes) -> frozenset[bytes]:
    lines = data.splitlines(keepends=True)
    return frozenset(line for line in lines if b'"uuid":"' in line and line.endswith(b"\n"))


def there(image: Image, but: str = "//") -> frozenset[bytes]:
    """Return all rows that there are, but for the files of a folder."""
    files = (data for path, data in named(image).items() if f"/{but}/" not in path)
    return frozenset[bytes]().union(*map(rows, files))


def due(image: Image, history: bytes) -> frozenset[bytes]:
    """Return the rows that may go: of segments that were pruned a week before `LATER`.

    Of those that have gone for good, any other copy may go, too.
    """
    parts, found = command_line.segments_of(history), frozenset[bytes]()
    files = {path.rpartition("/")[2]: data for path, data in named(image).items()}
    with suppress(ValueError):  # it is half a manifest
        for each in json.loads(files.get(names.MANIFEST, b"{}")).get("segments", ()):
            gone = each["pruned"]
            is_old = gone and datetime.fromisoformat(gone["at"]).timestamp() <= LATER - WEEK
            if gone and (is_old or each["file"] not in files):
                found |= rows(parts[each["index"]])
    return found


@dataclass(frozen=True)
class State:
    """What there is after an event, and what came to the history by it.

    `over` are the rows of the live file that the event put other bytes over.
    """

    image: Image
    added: Added
    over: frozenset[bytes]


def after(case: Case, event: Event, images: Iterable[Image]) -> list[State]:
    """Return what there is after the event, each once."""
    left: dict[Image, State] = {}
    for image in images:
        with laid_out(image) as found:
            live = found.where.live
            was = rows(live.read_bytes()) if live.exists() else frozenset()
            added = event.do(found, case.history)
            if added is not None:
                now = found.image()
                over = was - rows(live.read_bytes()) if live.exists() else frozenset()
                other = left.get(now, State(now, added, over))
                left[now] = State(now, other.added, over & other.over)
    return [*left.values()]


@dataclass(frozen=True)
class Cell:
    """One field of the table: what was killed, and what happened then.

    `known` are the images after a command on which the last ones were tried already.
    """

    case: Case
    event: Event
    known: set[Image]

    def play(self, state: State, then: str) -> None:
        """Run the command, and then the last ones; judge each step."""
        with laid_out(state.image) as found:
            try:
                with self.case.later(is_day_over=False):
                    self._step(found, then, state.over)
                if found.image() not in self.known:
                    self.known.add(found.image())
                    with self.case.later(is_day_over=True):
                        self._end(found, state)
            except AssertionError as error:
                raise AssertionError(f"{then}: {error}\n{state.image.shown()}") from error

    def _end(self, found: Session, state: State) -> None:
        last = TOGETHER if self.event.name == "trim" else self.case.last
        ended = [self._step(found, name, state.over) for name in last][-1]
        self._check_end(found, ended, state.added)

    def _step(self, found: Session, name: str, over: frozenset[bytes]) -> Ended:
        """Run a command; see that no row is lost by it.

        What an event put other bytes over may be in a file that waits, whose day is over, too.
        """
        before = found.image()
        ended = done(name)
        may_go = over if self.event.is_edit else over - there(before, names.WAITING)
        lost = there(before) - there(found.image()) - due(before, self.case.history) - may_go
        assert not lost, f"{name} lost {sorted(lost)}"
        return ended

    def _check_end(self, found: Session, ended: Ended, added: Added) -> None:
        """See that the session is whole, or of one that lost rows that these are in order."""
        live, came = found.where.live, (*self.case.late, *added)
        history = self.case.history + b"".join(came)
        if self.event.is_kept and rows(history) <= there(found.image()):
            assert ended.code == 0, ended
            orders = {self.case.history + b"".join(order) for order in permutations(came)}
            told = _without_again(live.read_bytes())
            assert told in orders, f"it ends {told[-900:]!r}"
            assert not found.where.pack.exists()
        elif ended.code == 0 and live.exists():
            known = self.case.history.splitlines(keepends=True)
            at = {line: n for n, line in enumerate(known) if line in rows(self.case.history)}
            told = _without_again(live.read_bytes())
            order = [at[line] for line in told.splitlines(keepends=True) if line in at]
            # A row may be said again behind what came late.
            assert order == sorted(order if self.case.late else {*order}), order


def _without_again(live: bytes) -> bytes:
    """Return a history without the row that is said again behind what came late."""
    for late in (LATE, HELD):
        before, there_is, rest = live.partition(late)
        first = rest[: rest.find(b"\n") + 1]
        if there_is and first in rows(before):
            live = before + late + rest[len(first) :]
    return live
