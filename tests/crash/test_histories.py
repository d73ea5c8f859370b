"""A life of a session with everybody in it: no line is lost, whoever writes and whatever happens.

Clients append and compact, programs hold the file open for hours, save it by rename and put older
backups back, people rename the project and lose manifests, the clock jumps, rotators die. All of it
goes through the command line.

The model knows which lines were written, by whom and in which order. A line may be gone only by
the program that put other bytes in its place. It is looked for as bytes in every file there is, so
that no reader of ours has a say.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import platforms
from sessrotate.archive import late_lines
from sessrotate.in_place import waiting
from support import command_line
from support.abilities import needs_leases
from support.command_line import ID, Ended, called
from support.crash.changes import Faults, Killed, Meanwhile
from support.crash.scenes import fast_folder
from support.homes import PROJECT, home
from support.race.checking import lines_in
from support.tiers import in_gate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark: Final = pytest.mark.skipif(
    platforms.HERE is platforms.PORTABLE,
    reason="the whole suites of the portable form have nobody wait; this has a form that waits",
)

DAY: Final = 86_400.0

CODES: Final = {0, 1, 74, 75, 77}
"""Done; something is wrong; not possible; in use; refused. Never a wrong call, or a traceback."""

MOST_OPERATIONS: Final = 60

ON_DISK: Final = 4
"""One life of so many is on a disk."""

MOVED: Final = f"{PROJECT}-renamed"


@dataclass
class Held:
    """A descriptor that a program keeps open, and the lines that it wrote through it."""

    fd: int
    lines: list[bytes] = field(default_factory=list)


def _is_for_a_while(path: Path) -> bool:
    """Tell whether a file is a live file that was replaced, or a new one."""
    return path.name in {"pack", "live.partial"} or path.parent.name == "waiting"


class Life:
    """One session, all who write to it, and all that is done to it."""

    platform = platforms.HERE
    may_save_in_the_middle = True
    """What is saved in the one moment of a swap is lost where names cannot exchange their files."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.events: list[str] = []
        # In memory a sync takes no time; on a disk it is what most of a life's time goes into.
        memory = fast_folder() if seed % ON_DISK else None
        self.folder = Path(tempfile.mkdtemp(dir=memory)).resolve()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(platforms, "HERE", self.platform)
        if not self.platform.leases:
            self.patch.setattr("sessrotate.system.locks.SETTLE", 0)
        self.said: set[bytes] = set()  # rows that stand again behind late lines
        self.patch.setattr(waiting, "said_again", self._noting(late_lines.said_again))
        self.patch.setattr("sessrotate.job.run.WAIT", 0.02)  # as for the other commands
        self.offset, self.real = 0.0, time.time
        self.patch.setattr(time, "time", lambda: self.real() + self.offset)
        data = command_line.session(boundaries=2, rows=2)
        self.config = home(self.folder, self.patch, data).config
        self.project = PROJECT
        self.number = 1000
        self.writers: list[list[bytes]] = [data.splitlines(keepends=True)]
        self.gone: set[bytes] = set()
        self.held: list[Held] = []
        self.nameless: set[int] = set()  # descriptors of what another program replaced
        self.backups: list[bytes] = []
        self.is_straight = True  # no program has put other bytes in the place of the live file

    def _noting(self, real: Callable[..., bytes]) -> Callable[..., bytes]:
        def said_again(*late: object) -> bytes:
            line = real(*late)
            self.said.add(line)
            return line

        return said_again

    # ── what there is ────────────────────────────────────────────────────────────────────────

    @property
    def live(self) -> Path:
        return self.config / "projects" / self.project / f"{ID}.jsonl"

    @property
    def archive(self) -> Path:
        return self.config / "sessrotate" / "archives" / ID

    def _files(self) -> Iterator[Path]:
        yield from (path for path in self.config.rglob("*") if path.is_file())

    def _lines(self, *, is_settled: bool = False) -> set[bytes]:
        """Return every line of every file; or only of those that are no replaced live file."""
        return {
            *lines_in(path for path in self._files() if not (is_settled and _is_for_a_while(path)))
        }

    def _with_names(self) -> set[int]:
        """Return the descriptors that are held of files that have a name."""
        return {held.fd for held in self.held if os.fstat(held.fd).st_nlink}

    def _written(self) -> set[bytes]:
        return {line for lines in self.writers for line in lines} - self.gone

    @contextlib.contextmanager
    def _by_another_program(self) -> Iterator[None]:
        """What a program overwrites is gone by that program, and by nobody else.

        It is also in a replaced file for a while, perhaps, which goes when its time is over.
        """
        before, replaced = {*self.live.read_bytes().splitlines(keepends=True)}, self.live.stat()
        yield
        self.gone |= (before - self._lines(is_settled=True)) & self._written()
        held = (each.fd for each in self.held)
        self.nameless |= {fd for fd in held if os.path.samestat(os.fstat(fd), replaced)}

    # ── who writes ───────────────────────────────────────────────────────────────────────────

    def _new(self, line: Callable[[int], bytes] = command_line.row) -> bytes:
        self.number += 1
        return line(self.number)

    def _append(self, line: bytes) -> None:
        try:
            fd = os.open(self.live, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        except (FileNotFoundError, BlockingIOError):  # archived; or a client that has to wait
            return
        with os.fdopen(fd, "ab") as file:
            file.write(line)
        self.writers[0].append(line)

    def a_client_appends(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self._append(self._new())

    def a_client_compacts(self) -> None:
        self._append(self._new(command_line.boundary))
        self._append(self._new())

    def a_user_goes_back(self) -> None:
        """Go on from a row that may be archived by now."""
        old = self.chance.choice(self.writers[0])
        self._append(
            self._new(lambda number: command_line.row(number, parentUuid=json.loads(old)["uuid"]))
        )

    def a_program_opens_it_and_holds_it(self) -> None:
        if not self.live.exists() or len(self.held) == 3:
            return
        self.held.append(Held(os.open(self.live, os.O_WRONLY | os.O_APPEND)))
        self.writers.append(self.held[-1].lines)

    def it_writes_through_what_it_holds(self) -> None:
        if not self.held:
            return
        held = self.chance.choice(self.held)
        line = self._new()
        if held.fd in self._with_names() - self.nameless:
            os.write(held.fd, line)
            held.lines.append(line)
        if self.chance.random() < 0.4:
            os.close(held.fd)
            self.held.remove(held)
            self.nameless.discard(held.fd)

    def _save(self, data: bytes) -> None:
        draft = self.live.with_name("draft of another program")
        with self._by_another_program():
            draft.write_bytes(data)
            draft.replace(self.live)

    def _save_with_a_line(self) -> None:
        try:
            fd = os.open(self.live, os.O_RDONLY | os.O_NONBLOCK)
        except (FileNotFoundError, BlockingIOError):  # archived; or it has to wait, and would here
            return
        with os.fdopen(fd, "rb") as file:
            line = self._new()
            data = file.read() + line
        self._save(data)
        self.writers.append([line])

    def a_program_saves_by_rename(self) -> None:
        self._save_with_a_line()

    def somebody_makes_a_backup(self) -> None:
        if self.live.exists():
            self.backups.append(self.live.read_bytes())

    def an_older_backup_is_put_back(self) -> None:
        if not self.backups or not self.live.exists():
            return
        backup = self.chance.choice(self.backups)
        if backup != self.live.read_bytes():
            self._save(backup)
            self.is_straight = False

    # ── what happens ─────────────────────────────────────────────────────────────────────────

    def the_project_is_renamed(self) -> None:
        old = self.live.parent
        self.project = PROJECT if self.project == MOVED else MOVED
        if old.is_dir() and not self.live.parent.exists():
            old.rename(self.live.parent)

    def the_manifest_is_lost(self) -> None:
        (self.archive / "manifest.json").unlink(missing_ok=True)

    def the_clock_is_set(self) -> None:
        self.offset = self.chance.choice([-30, 0, 400]) * DAY

    def time_passes(self) -> None:
        self._becomes_older(self.chance.choice([0.01, 1.1, 8.0]))

    def _becomes_older(self, days: float) -> None:
        """Have all times that are known be so many days earlier."""
        passed = days * DAY
        for path in self._files():
            status = path.lstat()
            is_note = path.parent.name in {"waiting", "locks"} or path.name in _NOTES
            if is_note and path.stat().st_size < 4096:
                path.write_text(_older(path.read_text(), passed))
            then = status.st_mtime_ns - int(passed * 1e9)
            os.utime(path, ns=(then, then))

    # ── what is done to it ───────────────────────────────────────────────────────────────────

    def _called(self, *arguments: str) -> Ended:
        before = self._with_names()
        ended = called(*arguments)
        assert ended.code in CODES or "Give the path of one" in ended.err, ended
        assert "Traceback" not in ended.err, ended
        if self.platform.leases:
            # Nothing that a program still has open goes; without leases, it may after a quiet day.
            assert before - self.nameless <= self._with_names(), arguments
        return ended

    def _named(self) -> str:
        return str(self.live) if self.live.exists() else ID

    def _do(self, deed: str, meanwhile: Faults | None = None) -> str:
        """Do it; return what was said of failures."""
        words = _DEEDS[deed]
        if deed != "run":
            words = (*words, self._named() if deed in {"rotate", "restore"} else ID)
        with pytest.MonkeyPatch.context() as patch:
            if meanwhile is not None:
                meanwhile.install(patch)
            with contextlib.suppress(Killed):
                return self._called(*words).err
        return ""

    def _deed(self) -> str:
        return self.chance.choice(_CHOSEN)

    def _moment(self) -> int:
        return self.chance.randint(1, MOST_OPERATIONS)

    def something_is_done(self) -> None:
        self._do(self._deed())

    def it_dies_in_the_middle(self) -> None:
        self._do(self._deed(), Faults(self._moment(), lasting=self.chance.random() >= 0.5))

    def a_program_saves_in_the_middle(self) -> None:
        if self.may_save_in_the_middle:
            self._do(self._deed(), Meanwhile(self._moment(), self._save_with_a_line))

    def a_client_appends_in_the_middle(self) -> None:
        self._do(self._deed(), Meanwhile(self._moment(), lambda: self._append(self._new())))

    # ── what always holds ────────────────────────────────────────────────────────────────────

    def no_line_is_lost(self) -> None:
        assert not self._written() - self._lines()

    def nobody_is_locked_out(self) -> None:
        assert self._called("list").code in {0, 1, 74}

    def check_order(self, told: bytes) -> None:
        """Check that each line is there once, and that each writer's are in its order.

        But for what was said again: that is there behind itself.
        """
        lines = [line for line in told.splitlines(keepends=True) if b"segment_header" not in line]
        again = {line for line, count in Counter(lines).items() if count > 1}
        assert again <= self.said
        lines = [*dict.fromkeys(lines)]
        for writer in self.writers:
            theirs = [line for line in writer if line not in self.gone]
            assert [line for line in lines if line in {*theirs}] == theirs

    # ── a whole life ─────────────────────────────────────────────────────────────────────────

    def is_lived(self, steps: int) -> None:
        """Have so many things happen, then let everything come to rest."""
        try:
            for event in self.chance.choices([*_EVENTS], [*_EVENTS.values()], k=steps):
                self.events.append(event.__name__)
                event(self)
                self.no_line_is_lost()
                self.nobody_is_locked_out()
            self._come_to_rest()
        finally:
            while self.held:
                os.close(self.held.pop().fd)
            self.patch.undo()
            shutil.rmtree(self.folder)

    def _come_to_rest(self) -> None:
        while self.held:
            os.close(self.held.pop().fd)
        self.offset = 0.0
        for _ in range(3):
            self._becomes_older(1.1)
            told = self._do("run")
            for path in re.findall(r"\S+/archives/\S+", told.partition("right now: touch ")[2]):
                os.utime(path)
            self.no_line_is_lost()
        told = self._do("rotate")  # a lost manifest is made again by this
        if not self.live.exists() or "was put away: bring it back with" in told:
            told = self._do("back" if self.live.exists() else "restore")
            if "--project" in told:  # its project was renamed
                self.live.parent.mkdir(exist_ok=True)
                self._called("restore", "--project", str(self.live.parent), ID)
        ended = self._called("stitch", self._named())
        if self.is_straight:
            assert ended.code == 0, ended
        if ended.code == 0 and self.is_straight:
            self.check_order(ended.out.encode())
        if ended.code != 0:
            self._take_the_way_out(ended)

    def _take_the_way_out(self, ended: Ended) -> None:
        """Do what is said where nothing else helps: put the archive aside, or begin a new one."""
        named = str(self.archive) if self.archive.is_dir() else self._named()
        told = self._called("aside", named, "--yes")
        self.no_line_is_lost()
        if self.live.exists() and (alone := self._called("stitch", str(self.live))).code != 0:
            assert "--unsafe-adopt" in ended.err + told.out + alone.err, (ended, told)
            self._do("rotate")
            self._called(*_DEEDS["rotate"], "--unsafe-adopt", str(self.live))
            assert self._called("stitch", str(self.live)).code == 0, (ended, told)
        self.no_line_is_lost()
        for folder in self.config.glob(f"sessrotate/aside/{ID}*"):
            assert self._called("stitch", "--allow-gaps", str(folder)).code in {0, 1}, ended


class WithoutLeases(Life):
    """The same where nothing proves that nobody writes to a replaced file."""

    platform = replace(platforms.HERE, leases=False, open_files=None)


class Portable(Life):
    """The same on a system that has nothing of its own."""

    platform = platforms.PORTABLE
    may_save_in_the_middle = False


_EVENTS: Final = {
    Life.a_client_appends: 1,
    Life.a_client_compacts: 1,
    Life.a_user_goes_back: 1,
    Life.a_program_opens_it_and_holds_it: 1,
    Life.it_writes_through_what_it_holds: 2,
    Life.a_program_saves_by_rename: 1,
    Life.somebody_makes_a_backup: 1,
    Life.an_older_backup_is_put_back: 0.3,
    Life.the_project_is_renamed: 1,
    Life.the_manifest_is_lost: 1,
    Life.the_clock_is_set: 1,
    Life.time_passes: 1,
    Life.something_is_done: 3,
    Life.it_dies_in_the_middle: 2,
    Life.a_program_saves_in_the_middle: 1,
    Life.a_client_appends_in_the_middle: 1,
}
"""What happens, and how often."""

_NOTES: Final = {"record.json"}

_DEEDS: Final = {
    "rotate": ("split", "--in-place", "--live", "--wait", "0.02", "--quiet"),
    "restore": ("restore", "--wait", "0.02", "--quiet"),
    "archive": ("archive", "--wait", "0.02", "--quiet"),
    "back": ("restore", "--keep-rotated", "--wait", "0.02", "--quiet"),
    "run": ("run", "--quiet"),
}

_CHOSEN: Final = [*_DEEDS, "rotate", "rotate", "run"]


def _older(text: str, passed: float) -> str:
    """Return a note with all its times so many seconds earlier."""

    def nanoseconds(found: re.Match[str]) -> str:
        return str(int(found[0]) - int(passed * 1e9))

    def seconds(found: re.Match[str]) -> str:
        return json.dumps(float(found[0]) - passed)

    def written(found: re.Match[str]) -> str:
        then = datetime.fromisoformat(found[0]) - timedelta(seconds=passed)
        return then.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    text = re.sub(r"\b1\d{18}\b", nanoseconds, text)
    text = re.sub(r"\b1\d{9}\.\d+\b", seconds, text)
    return re.sub(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", written, text)


FORMS: Final = [pytest.param(Life, marks=needs_leases), WithoutLeases, Portable]


def lived(form: type[Life], seeds: range, steps: int) -> None:
    """Have so many sessions live; raise as the first that fails does, and name its seed."""
    for seed in seeds:
        life = form(seed)
        try:
            life.is_lived(steps)
        except BaseException as error:
            error.add_note(f"seed {seed}, {steps} steps: {', '.join(life.events)}")
            raise


@pytest.mark.parametrize("form", FORMS)
def test_no_line_is_lost_whoever_writes_and_whatever_happens(form: type[Life]) -> None:
    lived(form, range(12), 20)


@pytest.mark.parametrize("first", in_gate(range(0, 400, 10), [0], "race"))
@pytest.mark.parametrize("form", FORMS)
def test_no_line_is_lost_in_long_lives(form: type[Life], first: int) -> None:
    lived(form, range(1000 + first, 1010 + first), 40)
