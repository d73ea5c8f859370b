"""Every history of a short life: others, kills and power losses come at any step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from support.next_order.judge import JudgedWorld, judged
from support.next_order.parts import Record
from support.next_order.reading import MANIFEST, RECORD
from support.next_order.rules import Rule
from support.next_order.tool import Tool
from support.next_order.world import BusyError, Event, KilledError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

COMMANDS: Final[Mapping[str, Callable[[Tool], None]]] = {
    "r": Tool.rotate,
    "R": Tool.restore,
    "p": Tool.prune,
    "e": Tool.empty_trash,
    "g": Tool.free_spare,
    "_": Tool.recover,
    "c": lambda tool: tool.world.compact(),
    "d": lambda tool: tool.world.pass_a_day(),
    "l": lambda tool: tool.world.lose(RECORD),
    "m": lambda tool: tool.world.lose(MANIFEST),
}
"""A life is a word of these. Two recoveries and a calm end are behind each."""


class Job(NamedTuple):
    """Which histories are tried."""

    life: str
    events: str = ""
    """What others do, in this order, at any steps of the life."""
    kills: int = 0
    cuts: int = 0
    """How often the power fails."""
    leases: bool = True
    without: Rule | None = None

    def __str__(self) -> str:
        words = [self.life, self.events or "-", f"{self.kills} kills", f"{self.cuts} cuts"]
        return " ".join([*words, "leases" if self.leases else "no leases"])


class Run(NamedTuple):
    """A command of a history, and what happened at which of its steps."""

    command: str
    plan: tuple[tuple[int, str], ...] = ()
    kill: int | None = None
    cut: int | None = None
    choice: int = 0

    def __str__(self) -> str:
        words = [self.command, *(f"{events}@{step}" for step, events in self.plan)]
        words += [f"kill@{self.kill}"] if self.kill else []
        words += [f"cut@{self.cut}:{self.choice}"] if self.cut else []
        return " ".join(words)


@dataclass
class Found:
    """What a job found: each complaint, how often, and the first history that has it."""

    complaints: dict[str, tuple[int, str]] = field(default_factory=dict)
    remarks: dict[str, tuple[int, str]] = field(default_factory=dict)
    runs: int = 0
    states: int = 0

    def note(self, world: JudgedWorld, history: tuple[Run, ...], rest: str = "") -> None:
        told = " | ".join([*map(str, history), *([f"then {rest}"] if rest else [])])
        for names, into in ((world.complaints, self.complaints), (world.remarks, self.remarks)):
            for name in names:
                often, first = into.get(name, (0, told))
                into[name] = (often + 1, min(first, told, key=lambda one: (len(one), one)))


class _State(NamedTuple):
    world: JudgedWorld
    rest: str
    kills: int
    cuts: int
    history: tuple[Run, ...]


def explore(job: Job) -> Found:
    """Try every history of a job."""
    found = Found()
    world = made(job)
    states = [_State(world, job.events, job.kills, job.cuts, ())]
    for command in job.life + "__":
        after: dict[Any, _State] = {}
        for state in states:
            _Command(command, state, after, found, job.without).try_all()
        states = [*after.values()]
    found.states = len(states)
    for state in states:
        end(state.world, state.rest)
        found.note(state.world, state.history, state.rest)
    return found


def made(job: Job) -> JudgedWorld:
    """Return the world in which a job begins."""
    world = JudgedWorld.__new__(JudgedWorld)
    world.tool = Tool(world, job.without)
    JudgedWorld.__init__(world, leases=job.leases, power=bool(job.cuts))
    return world


class _Command:
    """Every way through one command from one state."""

    def __init__(
        self,
        command: str,
        state: _State,
        after: dict[Any, _State],
        found: Found,
        without: Rule | None,
    ) -> None:
        self.command, self.state, self.after = command, state, after
        self.found, self.without = found, without

    def try_all(self) -> None:
        """Run it with nothing in between, then with everything."""
        self._deeper({}, 1)

    def _deeper(self, plan: dict[int, str], first: int) -> None:
        done = "".join(plan.values())
        last = self._run(plan).time
        for step in range(first, last + 1):
            if self.state.kills:
                self._run(plan, kill=step)
            if self.state.cuts:
                for choice in range(1, self._run(plan, cut=step).choices):
                    self._run(plan, cut=step, choice=choice)
            if len(done) < len(self.state.rest):
                event = self.state.rest[len(done)]
                self._deeper({**plan, step: plan.get(step, "") + event}, step)

    def _run(
        self, plan: dict[int, str], kill: int | None = None, cut: int | None = None, choice: int = 0
    ) -> JudgedWorld:
        state = self.state
        self.found.runs += 1
        world = cloned(state.world)
        events = {step: [Event(letter) for letter in word] for step, word in plan.items()}
        world.restart(events, kill, cut, choice, first=kill or cut or max(plan, default=1))
        before = {*world.paths("seg/")}
        ended = perform(world, self.command)
        if isinstance(ended, BusyError) and not plan and not before >= {*world.paths("seg/")}:
            world.complaints.add("busy, but something was written")
        run = Run(self.command, tuple(sorted(plan.items())), kill, cut, choice)
        history = (*state.history, run)
        self.found.note(world, history)
        rest = state.rest[len("".join(plan.values())) :]
        kills, cuts = state.kills - bool(kill), state.cuts - bool(cut)
        new = _State(world, rest, kills, cuts, history)
        self.after.setdefault((key(world), rest, kills, cuts), new)
        return world


def perform(world: JudgedWorld, command: str) -> Exception | None:
    """Run a command to its end, whatever that is; return what it raised."""
    ended: Exception | None = None
    try:
        COMMANDS[command](world.tool)
    except (KilledError, BusyError, RefusedError) as error:
        ended = error
    world.release()
    return ended


def end(world: JudgedWorld, rest: str) -> None:
    """Let what is left happen, then days pass; a rotation must be possible, and all be there."""
    world.restart()
    for letter in rest:
        world.event(Event(letter))
    world.event(Event.CLOSE)
    busy = False
    for command in "_r_":
        world.day += 1
        busy = isinstance(perform(world, command), BusyError)
    for command in "r__":
        busy |= isinstance(perform(world, command), BusyError)
        world.day += 1
    perform(world, "_")
    judged(world, calm=True)
    if busy:
        world.complaints.add("busy for ever")


def cloned(world: JudgedWorld) -> JudgedWorld:
    """Return a world that is the same."""
    other = JudgedWorld.__new__(JudgedWorld)
    for name, value in vars(world).items():
        other.__dict__[name] = value.copy() if isinstance(value, (dict, list, set)) else value
    other.tool = Tool(other, world.tool.without)
    return other


def key(world: JudgedWorld) -> Any:
    """Return what tells a world from others: not which numbers its files have."""
    order: dict[int, int] = {}

    def number(inode: int) -> int:
        return order.setdefault(inode, len(order))

    def content(inode: int) -> Any:
        value = world.files[inode]
        if isinstance(value, Record) and value.exchange:
            known = number(value.exchange.draft) if value.exchange.draft in world.files else -1
            value = value._replace(exchange=value.exchange._replace(draft=known))
        return value

    names = tuple((path, number(inode)) for path, inode in sorted(world.names.items()))
    durable = tuple((path, number(inode)) for path, inode in sorted(world.durable.items()))
    holder, reading = world.holder, world.read_by_trim
    others = (
        holder and holder._replace(inode=number(holder.inode)),
        reading and (number(reading[0]), reading[1]),
        world.read_by_editor,
        world.copy,
        world.short,
        world.day,
        world.numbered,
        min(world.events, 3),
        world.unclear,
        world.plain,
        world.short_came,
    )
    sets = [world.required, world.pruned, world.glued, world.ever, world.freed, world.revived]
    sets.append(world.saved)
    account = tuple(map(frozenset, sets))
    pending = tuple((path, inode and number(inode)) for path, inode in world.pending)
    files = tuple(content(inode) for inode in [*order])
    for inode in [*world.files]:
        if inode not in order:
            del world.files[inode], world.synced[inode]
    if not world.power:
        return names, others, account, files
    unsynced = tuple(world.synced[inode] for inode in [*order])
    return names, durable, pending, others, account, files, unsynced
