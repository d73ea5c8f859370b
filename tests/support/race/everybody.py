"""A race with everybody in it: who holds the file, saves it by rename, moves its project.

Besides, manifests are lost, clocks jump, old segments go to the trash, and rotators are killed.
Rotators are the whole command, as a person or a timer starts it.

Rule: nobody takes turns with a rotator. A program that saves the whole file takes turns with those
who append, since what it would overwrite of theirs is its own doing; and nobody renames the project
while it is at that. Nobody saves by rename where two names cannot exchange their files: what is
saved in the microseconds before our rename is lost there, as the guide says.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec import structs

from sessrotate import names, platforms
from sessrotate.archive import record
from sessrotate.fs import exact
from support.command_line import ID, called
from support.homes import OWN_FOLDERS
from support.portable import have_quiet, lack
from support.race.checking import faults, lines_in, missing
from support.race.racing import Result, Shared, Told, is_over
from support.race.rotators import NO_SUMMARY, in_a_process
from support.race.writers import Turns, Wrote, compaction, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.race.racing import Race

PROJECTS: Final = ("-home-somebody-project", "-home-somebody-project-renamed")

SETTINGS: Final = """\
[rotate]
min_gain = "1"
live = true


[prune]
keep_last = 30

[trash]
grace = "7d"
"""

DAY: Final = 86_400.0

_REFUSED: Final = {75: "in use"}

_RUNS: Final = 8
_DAY: Final = 1.5
"""Seconds of quiet after which a replaced file is sealed, and let go, where there are no leases. A
writer that is stopped for the second, where nobody tells that it has the file, loses a line."""

_LOOK: Final = 0.05
_PATIENCE: Final = 30.0
"""Seconds that a writer looks for the live file before it gives up."""


@dataclass
class Folder:
    """The folder of a race: a client's, in which a project is renamed from time to time."""

    path: Path
    seed: str
    """Another one for each folder of a race."""

    @property
    def config(self) -> Path:
        return self.path / "config"

    @property
    def lives(self) -> list[Path]:
        return [self.config / "projects" / name / f"{ID}.jsonl" for name in PROJECTS]

    @property
    def live(self) -> Path:
        """Where the live file is just now."""
        return next((path for path in self.lives if path.exists()), self.lives[0])

    def opened(self, flags: int = os.O_WRONLY | os.O_APPEND) -> tuple[int, Path]:
        """Open the live file, wherever it is; return where that was, too."""
        begun = time.monotonic()
        while time.monotonic() - begun < _PATIENCE:
            for path in self.lives:
                with contextlib.suppress(FileNotFoundError):
                    return os.open(path, flags), path
        raise TimeoutError(f"there is no live file for {_PATIENCE:.0f} seconds")

    def files(self) -> Iterator[Path]:
        yield from (path for path in self.config.rglob("*") if path.is_file())


class Actor:
    """One who does something again and again, and knows what it wrote."""

    pause = 0.004

    def __init__(self, folder: Folder, number: int, turns: Turns) -> None:
        self.folder, self.number, self.turns = folder, number, turns
        self.chance = random.Random(f"{folder.seed} {number}")
        self.rows = 0
        self.problems: list[str] = []
        self.crossed = False

    def act(self) -> None:
        raise NotImplementedError

    def turn(self, shared: Shared) -> None:
        """Do it once, then wait, unless it is time to stop."""
        self.act()
        end = time.monotonic() + self.chance.random() * self.pause
        while not shared.stop.value and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK))

    def next(self) -> bytes:
        self.rows += 1
        return row(self.number, self.rows - 1)

    @property
    def wrote(self) -> Wrote:
        return Wrote(self.rows)


class Appender(Actor):
    """A client: it opens the path, writes, and closes."""

    def act(self) -> None:
        with self.turns.rows(alone=False):
            fd, _ = self.folder.opened()
            os.write(fd, self.next())
            os.close(fd)


class Holder(Actor):
    """A program that opens the file, writes for a while, and closes it at last."""

    pause = 3.0
    most = 20

    def act(self) -> None:
        with self.turns.rows(alone=False):
            fd, _ = self.folder.opened()
            for _ in range(self.chance.randint(1, self.most)):
                os.write(fd, self.next())
                time.sleep(self.chance.random() * 0.01)
            os.close(fd)

    @property
    def wrote(self) -> Wrote:
        return Wrote(self.rows, held=self.most)


class Saver(Actor):
    """An editor: it reads the whole file, and replaces it by one with a row more.

    `crossed` says that it replaced another file than it had read. So that this is known, and not
    guessed, it exchanges the two and then removes the old one: clients cannot tell. What we had
    appended after it had read, it appends again: overwriting that would be its own doing.
    """

    pause = 5.0

    def act(self) -> None:
        with self.turns.rows(alone=True), self.turns.compactions(alone=False):
            fd, live = self.folder.opened(os.O_RDONLY)
            draft = live.with_name("saved by rename")
            try:
                with open(fd, "rb", closefd=False) as file:
                    read = file.read()
                    draft.write_bytes(read + row(self.number, self.rows))
                    exact.FORM.exchange(draft, live)
                    rest = file.read()
                self.rows += 1
                self.crossed |= not os.path.samestat(os.fstat(fd), draft.stat())
                draft.unlink()
                if rest:
                    with live.open("ab") as file:
                        file.write(rest)
            finally:
                os.close(fd)


class Mover(Actor):
    """A person who renames the project, and renames it back."""

    pause = 5.0

    def act(self) -> None:
        projects = self.folder.config / "projects"
        with self.turns.compactions(alone=True):
            for old, new in (PROJECTS, PROJECTS[::-1]):
                if (projects / old).is_dir() and not (projects / new).exists():
                    (projects / old).rename(projects / new)
                    return


class Loser(Actor):
    """Whatever it is that manifests are lost by."""

    pause = 1.0

    def act(self) -> None:
        for path in self.folder.config.glob(f"sessrotate/*/{ID}/manifest.json"):
            path.unlink(missing_ok=True)


@dataclass
class Deeds:
    """What came of those who were started: outcomes, and the first refusals."""

    outcomes: dict[str, int] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)


class Driver(Actor):
    """Has the session compacted, and starts rotators; each third is killed."""

    pause = 0.0

    def __init__(self, folder: Folder, number: int, turns: Turns) -> None:
        super().__init__(folder, number, turns)
        self.deeds = Deeds()
        self._usual = 0.1

    def act(self) -> None:
        with self.turns.rows(alone=False):
            fd, _ = self.folder.opened()
            os.write(fd, compaction(self.number, self.rows))
            os.close(fd)
        self.rows += 1
        words = ["run", "--quiet"]
        if self.rows % 5:
            words = ["split", "--in-place", "--live", "--wait", "3", "--quiet"]
        if not self.rows % 11:
            words = ["restore", "--wait", "3", "--quiet"]
        if words[0] != "run":
            words.append(str(self.folder.live))
        is_killed = self.rows % 3 == 0
        delay = self.chance.random() * self._usual * 1.2
        deed = partial(_done, words, self.chance.choice([-30, 0, 0, 30]) * DAY)
        begun = time.perf_counter()
        told = in_a_process(deed, delay if is_killed else None)
        self._usual += (time.perf_counter() - begun - self._usual) / 8
        outcomes = self.deeds.outcomes
        outcomes[told["what"]] = outcomes.get(told["what"], 0) + 1
        if "problem" in told:
            self.problems.append(told["problem"])
        if "refusal" in told:
            said = told["refusal"].replace(str(self.folder.path), "")
            self.deeds.refusals[said] = self.deeds.refusals.get(said, 0) + 1

    @property
    def wrote(self) -> Wrote:
        return Wrote(self.rows, compacts=True)


def _done(words: list[str], offset: float) -> dict[str, Any]:
    """Run the command with a clock that is wrong; say what came of it."""
    real = time.time
    time.time = lambda: real() + offset
    ended = called(*words)
    if ended.code not in {0, 1, 74, 75, 77}:
        return {"what": "failed", "problem": f"{words}: {ended}"}
    if ended.code in {74, 75, 77} and words[0] != "run":
        return {"what": _REFUSED.get(ended.code, "refused"), "refusal": ended.err}
    if words[0] != "split" or ended.code:
        return {"what": f"{words[0]}: {ended.code}"}
    return {"what": "rotated" if "Moved" in ended.out else "nothing to cut"}


ROLES: Final[dict[type[Actor], int]] = {
    Appender: 8,
    Holder: 2,
    Saver: 1,
    Mover: 1,
    Loser: 1,
    Driver: 2,
}
"""Who takes part, and how many of each."""


def run(race: Race) -> Result:
    """Run a race with everybody in it, and check every session of it."""
    result, begun = Result(), time.monotonic()
    while not result.problems and not _is_over(race, result, begun):
        path = Path(tempfile.mkdtemp(prefix="sessrotate-race-", dir=race.folder)).resolve()
        folder = Folder(path, f"{race.seed} {result.sessions}")
        try:
            with pytest.MonkeyPatch.context() as patch:
                _prepare(race, folder, patch)
                _round(race, folder, result, begun)
        finally:
            if result.problems:
                result.problems.append(f"what is left of it: {folder.path}")
            else:
                shutil.rmtree(folder.path)
        result.seconds = time.monotonic() - begun
    return result


def _is_over(race: Race, result: Result, begun: float, rotations: int = 0, rows: int = 0) -> bool:
    is_enough = result.sessions - result.crossed >= race.uncrossed
    return is_enough and is_over(race, result, begun, rotations, rows)


def _prepare(race: Race, folder: Folder, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("CLAUDE_CONFIG_DIR", str(folder.config))
    patch.delenv("CLAUDE_PROJECTS_DIR", raising=False)
    for name, own in OWN_FOLDERS.items():
        patch.setenv(name, str(folder.path / own))
    settings = folder.path / OWN_FOLDERS["XDG_CONFIG_HOME"] / "sessrotate" / "config.toml"
    for path, text in ((settings, SETTINGS), (folder.lives[0], "")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    if not race.leases:
        lack(patch, "leases")
        have_quiet(patch, _DAY)
    Told(folder.path).install(patch)


def _act(shared: Shared, number: int, make: Callable[[], Actor], pause: float) -> None:
    """Be somebody until it is time to stop."""
    actor = make()
    if isinstance(actor, Appender):
        actor.pause = pause
    try:
        while not shared.stop.value and not actor.crossed:
            actor.turn(shared)
            shared.rows[number] = actor.rows
            if isinstance(actor, Driver):
                shared.rotations[number] = actor.deeds.outcomes.get("rotated", 0)
    except BaseException as error:  # noqa: BLE001 - it is told, and this process ends
        actor.problems.append(f"{type(actor).__name__}: {error!r}")
    deeds = actor.deeds if isinstance(actor, Driver) else Deeds()
    shared.results.put((number, actor.wrote, deeds, actor.problems, actor.crossed))


def _round(race: Race, folder: Folder, result: Result, begun: float) -> None:
    turns = Turns(folder.path)
    roles = [
        role
        for role, count in ROLES.items()
        for _ in range(count)
        if role is not Saver or (race.savers and platforms.HERE.exact_renames)
    ]
    shared = Shared(len(roles), len(roles))
    at_work = [
        shared.context.Process(
            target=_act,
            args=(shared, number, partial(role, folder, number, turns), race.habits.pause),
        )
        for number, role in enumerate(roles)
    ]
    for process in at_work:
        process.start()
    end = time.monotonic() + race.life
    while sum(shared.rotations) < race.each and all(one.is_alive() for one in at_work):
        late = time.monotonic() - end
        if late >= 0 and (sum(shared.rotations) or late > _PATIENCE):
            break
        if _is_over(race, result, begun, sum(shared.rotations), sum(shared.rows)):
            break
        time.sleep(_LOOK)
    shared.stop.value = 1
    wrote: dict[int, Wrote] = {}
    crossed = False
    for _ in at_work:
        number, did, deeds, problems, has_crossed = shared.results.get()
        wrote[number] = did
        result.outcomes.update(deeds.outcomes)
        result.refusals.update(deeds.refusals)
        result.problems += problems
        crossed |= has_crossed
    for process in at_work:
        process.join()
    result.rows += sum(did.rows for did in wrote.values())
    result.sessions += 1
    result.crossed += crossed
    late = Told(folder.path).late(leases=race.leases)
    result.problems += missing(lines_in(folder.files()), wrote, late)
    if not crossed:
        result.problems += _at_rest(race, folder, wrote, result)


def _at_rest(race: Race, folder: Folder, wrote: dict[int, Wrote], result: Result) -> list[str]:
    """Have everything finished and brought back; return what is wrong with the history then."""
    for _ in range(_RUNS):
        if not race.leases:
            time.sleep(_DAY)
        forget_wrong_clocks(folder.config)
        called("run", "--quiet")
        ended = called("split", "--in-place", "--live", "--quiet", str(folder.live))
        if (not ended.code and not race.leases) or NO_SUMMARY in ended.err:
            break
    if NO_SUMMARY in ended.err:  # a compaction came last: there is nothing more to do
        ended = replace(ended, code=0)
    if ended.code:
        return [f"after {_RUNS} runs: {ended}"]
    called("restore", "--keep-rotated", ID)
    ended = called("stitch", str(folder.live))
    if ended.code:
        return [f"stitch: {ended.err}"]
    swapped, leases = Told(folder.path), race.leases
    late, moved = swapped.late(leases=leases), swapped.moved(leases=leases)
    history = ended.out.encode()
    kept = _kept_aside(folder, history, wrote)
    result.kept += len(kept)
    return faults(history, wrote, late, b"".join(kept), swapped.said(), moved)


def forget_wrong_clocks(config: Path) -> None:
    """Have nothing wait for a time to come that a clock was set to, as if that had passed."""
    now = time.time_ns()
    for path in config.glob(f"sessrotate/*/{ID}/{names.RECORD}"):
        told = record.read(path.parent)
        past = tuple(structs.replace(each, since=min(each.since, now)) for each in told.waiting)
        if past != told.waiting:
            path.write_bytes(record.dump(structs.replace(told, waiting=past)))


def _kept_aside(folder: Folder, history: bytes, wrote: dict[int, Wrote]) -> list[bytes]:
    """Return the lines that the history lacks and that were kept aside.

    A client wrote to our new file while another program saved the live file: both are kept, and
    whoever rotated was told to compare them.
    """
    there = Counter(history.splitlines(keepends=True))
    written = Counter(
        (compaction if did.compacts else row)(writer, number)
        for writer, did in wrote.items()
        for number in range(did.rows)
    )
    lacks, kept = written - there, list[bytes]()
    for path in folder.config.glob("sessrotate/aside/*.jsonl"):
        for line in path.read_bytes().splitlines(keepends=True):
            if lacks[line] > 0:
                lacks[line] -= 1
                kept.append(line)
    return kept
