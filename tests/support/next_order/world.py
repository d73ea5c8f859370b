"""Everybody but us: clients, editors, synchronizing tools, clean-up, and the end of the process.

The world also keeps the account: which lines must be there (`required`). That is what the session's
file would have if nobody had ever rotated it. A line that a program took out by itself is not asked
for; neither is one that a client wrote to a file whose name another program had given away, or that
nobody had synced when the power went.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from support.next_order.disk import LIVE, Disk
from support.next_order.parts import (
    FIRST,
    Content,
    Segment,
    body_of,
    count_of,
    is_half,
    is_torn,
    last_boundary,
    lines_of,
    other_half,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Event(StrEnum):
    """What others do, each by one letter, so that a history is a short word."""

    APPEND = "A"
    """A client opens the live file, appends a row and closes it."""
    OPEN = "O"
    """A client opens the live file and keeps it open."""
    OPEN_UNSEEN = "o"
    """The same, and nothing but a lease shows that it has it open."""
    HALF = "H"
    """A client opens the live file, writes half a row and keeps it open."""
    CLOSE = "C"
    """Who has a file open writes: the other half, or a line without a uuid. Then it closes it."""
    FORCED = "F"
    """A client appends although we hold a lease: it was taken from us while we were stopped."""
    EDIT = "E"
    """A client takes back a row in place: `a2` becomes `a2x`, which is as long."""
    CUT_OUT = "D"
    """A client takes back a row in place: `a1` is gone, the file shorter."""
    EDITOR_SAVES = "R"
    """A program reads the live file, adds a line and saves it by rename, all in one moment."""
    EDITOR_READS = "G"
    """A program reads the live file ..."""
    EDITOR_SAVES_LATE = "P"
    """... and saves later what it read then, with a line of its own."""
    OLDEST_COPY = "S"
    """A synchronizing tool gives the live name to the session as it was at the beginning."""
    OLDER_COPY = "s"
    """... to a copy that is older still."""
    COPY_BEFORE = "Q"
    """... to the file that was there before the last rotation."""
    SHORT_COPY = "q"
    """... to the short file that was there before the last restoration."""
    TRIM_READS = "T"
    """The client's own trim reads the file ..."""
    TRIM = "U"
    """... and gives the live name to what follows the last compaction."""
    TRIM_KEEPS = "V"
    """... and the old file keeps another name (the client's own, or the hook's)."""
    CLEAN_UP = "X"
    """The client deletes the live file."""


class KilledError(Exception):
    """The process ends here."""


class BusyError(Exception):
    """Somebody uses the session: 75, and nothing was changed."""


class RefusedError(Exception):
    """Segments lack that were counted: 74. All bytes are in files that are named."""


class Holder(NamedTuple):
    """A client that has a file open for writing."""

    inode: int
    torn: str | None
    """The half of a line that it has written."""
    excused: bool
    """Whether what it writes would be lost without us, too."""
    seen: bool
    since: int
    """The day on which it opened it."""


class Opening(NamedTuple):
    """A client that waits until our lease is gone."""

    event: Event
    inode: int
    excused: bool


class World(Disk):
    """One session's files, and all who touch them by a plan: event by event, step by step."""

    def __init__(self, *, leases: bool, power: bool = False) -> None:
        super().__init__(power=power)
        self.leases = leases
        self.leased: set[int] = set()
        self.queue: list[Opening] = []
        self.holder: Holder | None = None
        self.read_by_trim: tuple[int, Content] | None = None
        self.read_by_editor: Content | None = None
        self.copy: Content = FIRST
        self.short: Content = ()
        self.day = 0
        self.numbered = 0
        """How many lines others have written."""
        self.events = 0
        self.excused = False
        """Whether whoever has the file open holds one whose name was given away."""
        self.required = set(FIRST)
        self.ever: set[str] = set()
        """Which of these were on the disk once, so that no power loss may take them."""
        self.pruned: set[str] = set()
        self.freed: set[str] = set()
        """Which of these are gone for good: what the trash still has of them does not count."""
        self.revived: set[str] = set()
        """Which lines came back only because a program put an older copy back."""
        self.saved: set[str] = set()
        """What the last program that saved the live file brought."""
        self.plain = True
        """Whether others have only appended so far: then no reader may ever be refused."""
        self.short_came = False
        """Whether a program saved a file with a header: what that counts may be freed by then."""
        self.unclear = False
        """Whether we were killed while two programs saved in one moment: which was the last?"""
        self.glued: set[str] = set()
        """Halves of lines whose other half somebody else has lost for good."""
        self.tail: set[str] = set()
        """What the live file must have at every moment of a command."""
        self.restart()
        self.name(LIVE, self.new(FIRST))
        self.all_is_durable()

    # -- a command begins, and its steps ------------------------------------------------------

    def restart(
        self,
        plan: Mapping[int, Sequence[Event]] | None = None,
        kill: int | None = None,
        cut: int | None = None,
        choice: int = 0,
        first: int = 1,
    ) -> None:
        """Say what happens at which step of the next command, and where it ends too early.

        `first`: the first step that no earlier run has judged.
        """
        self.time, self.plan, self.first = 0, dict(plan or {}), first
        self.kill, self.cut, self.choice, self.choices = kill, cut, choice, 1
        self.complaints: set[str] = set()
        self.remarks: set[str] = set()
        self._look_at_the_tail()

    def step(self, what: str) -> None:
        """Let others act, judge what a reader would see, and end the process if it is planned."""
        self.time += 1
        for event in self.plan.get(self.time, ()):
            self.event(event)
        if self.time >= self.first:
            self.judge()
        if self.time == self.cut:
            self.leased.clear()
            self.choices = self.lose_power(self.choice)
            self.judge()
            raise KilledError(what)
        if self.time == self.kill:
            self.unclear |= what == "exchange back"
            raise KilledError(what)

    def judge(self) -> None:
        """Look at the whole from outside: `judge.py` does."""
        raise NotImplementedError

    def _look_at_the_tail(self) -> None:
        live = self.read(LIVE)
        tail = live[last_boundary(live) :] if live else ()
        self.tail = {line for line in lines_of(tail) if not is_half(line)}  # a half may wait

    # -- power --------------------------------------------------------------------------------

    def noticed(self) -> None:
        """Remember which lines are safe from a power loss from now on."""
        if self.power:
            for path, inode in self.durable.items():
                safe = self._matter(path, self.synced[inode]) & self.required
                self.ever |= safe if path == LIVE else safe - self.revived

    def _matter(self, path: str, content: Content) -> set[str]:
        """Return the lines of a file that count: not what only a draft of ours has."""
        if path.startswith("new/"):
            return set()
        if path.startswith("seg/"):
            listed: tuple[Segment, ...] = self.read("manifest") or ()
            if not any(segment.counted and segment.lines == content[1:] for segment in listed):
                return set()
        return lines_of(content) - (self.freed if path.startswith("trash/") else set())

    def lose_power(self, choice: int) -> int:
        """Let the power fail; what nobody had synced is not asked for any more."""
        states = super().lose_power(choice)
        self.holder, self.queue = None, []
        self.read_by_trim = self.read_by_editor = None
        left = set[str]().union(
            *(self._matter(path, self.files[inode]) for path, inode in self.names.items())
        )
        left -= self.revived - lines_of(self.read(LIVE) or ())
        lost = {line for line in self.required if line not in left | self.ever}
        self.plain &= not lost  # what was copied of it before may be more than its client has
        self.require_no_more(lost)
        self.all_is_durable()
        self._look_at_the_tail()
        return states

    def require_no_more(self, lines: set[str]) -> None:
        """Take lines off the account: somebody else took them out."""
        self.required -= lines
        self.ever -= lines

    def free(self, lines: set[str]) -> None:
        """Take off the account what goes for good, unless a program has put it back."""
        self.freed |= lines
        self.revived |= lines & self.required
        self.ever -= lines
        self.required -= lines - lines_of(self.read(LIVE) or ())
        self.noticed()

    # -- leases -------------------------------------------------------------------------------

    def lease(self, path: str) -> bool:
        """Have a lease on a file if nobody has it open for writing; who opens it then waits."""
        inode = self.names.get(path)
        if not self.leases or inode is None or (self.holder and self.holder.inode == inode):
            return False
        self.leased.add(inode)
        return True

    def release(self, path: str | None = None) -> None:
        """Let go of one lease, or of all; who waited goes on."""
        if path is None:
            self.leased.clear()
        else:
            self.leased.discard(self.names.get(path, 0))
        waiting, self.queue = self.queue, []
        for opening in waiting:
            if opening.inode in self.leased:
                self.queue.append(opening)
            else:
                self._open(opening)

    def known_to_be_open(self, path: str) -> bool:
        """Return whether we can see, without a lease, that somebody has a file open."""
        held = self.holder is not None and self.holder.inode == self.names.get(path)
        return held and self.holder is not None and self.holder.seen

    # -- clients ------------------------------------------------------------------------------

    def event(self, event: Event) -> None:
        """Do what somebody does now, if it is possible now."""
        self.events += 1
        if event is Event.CLOSE:
            self._close()
        elif LIVE in self.names:
            _DOERS[event](self, event)

    def _next(self, letter: str) -> str:
        self.numbered += 1
        return f"{letter}{self.numbered}"

    def come(self, event: Event) -> None:
        """Open the live file; whoever finds it leased waits. One at a time keeps it open."""
        if event is not Event.APPEND and self.holder:
            return
        opening = Opening(event, self.names[LIVE], excused=False)
        if opening.inode in self.leased:
            self.queue.append(opening)
        else:
            self._open(opening)

    def _open(self, opening: Opening) -> None:
        event, inode, excused = opening
        if event is Event.APPEND:
            self._grow(inode, self._next("A"), excused=excused)
        elif not self.holder:
            torn = self._next("H") + "(" if event is Event.HALF else None
            if torn:
                self._grow(inode, torn, excused=excused)
            seen = event is not Event.OPEN_UNSEEN
            self.holder = Holder(inode, torn, excused, seen, self.day)

    def _close(self) -> None:
        if holder := self.holder:
            unseen = not holder.seen and not self.leases and self.day > holder.since
            excused = holder.excused or unseen  # promises.md: after a quiet day nothing shows it
            line = other_half(holder.torn) if holder.torn else self._next("L")
            self._grow(holder.inode, line, excused=excused, torn=holder.torn)
            self.holder = None

    def _grow(self, inode: int, line: str, *, excused: bool, torn: str | None = None) -> None:
        """Append as a client does; what it glues to a torn line it would have glued without us."""
        content = self.files[inode]
        if is_torn(content) and content[-1] != torn:
            self.glued.add(content[-1])
        self.write(inode, (*content, line))
        if not excused:
            self.required.add(line)
            if self.tail and self.leases and inode == self.names.get(LIVE) and not is_half(line):
                self.tail.add(line)  # without leases it may come in the very moment of the exchange

    def force(self, event: Event) -> None:
        """Append in spite of a lease."""
        self._grow(self.names[LIVE], self._next(event.value), excused=False)
        self.tail.clear()

    def edit(self, event: Event) -> None:
        """Take a row back in the file that is held open, or in the live file."""
        holder = self.holder
        inode = holder.inode if holder else self.names[LIVE]
        row = "a2" if event is Event.EDIT else "a1"
        content = self.files[inode]
        if inode in self.leased or row not in content or (holder and holder.excused):
            return
        if holder and inode not in self.names.values():
            return
        instead = ["a2x"] if event is Event.EDIT else []
        at = content.index(row)
        self.write(inode, (*content[:at], *instead, *content[at + 1 :]))
        self.plain = False
        self.require_no_more({row})
        self.required.update(instead)

    # -- programs that save by rename ---------------------------------------------------------

    def _late(self) -> set[str]:
        """Return what came to files that had the live name and has not come over yet."""
        here = [self.read(path) for path in self.paths("old/", "new/")]
        over = [self.read(path) for path in self.paths(LIVE, "seg/")]
        return set[str]().union(*map(lines_of, here)) - set[str]().union(*map(lines_of, over))

    def _counted_by(self, content: Content) -> set[str]:
        """Return what a file goes on from: without us its program would have read that as well."""
        listed: tuple[Segment, ...] = self.read("manifest") or ()
        before = listed[: count_of(content)]
        return set[str]().union(*(lines_of(segment.lines) for segment in before))

    def _replace(
        self,
        content: Content,
        *,
        seen: set[str] | None = None,
        keep: bool = False,
        brings: Content | None = None,
    ) -> None:
        """Give the live name to another program's file: what that lacks, the program took out.

        `seen`: what it would have read as well without us. `brings`: which lines of it are its
        own, if not all.
        """
        before = self.names[LIVE]
        self.plain = False
        if keep:
            path = f"kept/{len(self.paths('kept/'))}"
            self.name(path, before)
            self.durable[path] = before  # the client syncs that folder by itself
        else:
            lacks = (lines_of(self.files[before]) | self._late()) - lines_of(content)
            lacks -= self._counted_by(content)
            self.require_no_more(lacks - (seen or set()))
        for entry, after in zip(content, (*content[1:], None), strict=True):
            if is_half(entry) and after != other_half(entry):
                self.glued.add(entry)
        inode = self.new(content)
        self.synced[inode] = self.files[inode]
        self.name(LIVE, inode)
        brought = lines_of(content if brings is None else brings)
        self.saved = brought - lines_of(FIRST)
        self.short_came |= count_of(content) > 0
        self.revived |= brought - self.required
        self.required |= brought
        self.tail = set()
        self._forsake(excused=not keep)

    def _forsake(self, *, excused: bool) -> None:
        """Have what is written to the file that lost its name be its writers' own loss."""
        if self.holder and excused:
            self.holder = self.holder._replace(excused=True)
        self.queue = [one._replace(excused=one.excused or excused) for one in self.queue]

    def editor_saves(self, _: Event) -> None:
        """A program reads, adds a line and saves."""
        line = self._next("R")
        self._replace((*self.read(LIVE), line), seen=self._late(), brings=(line,))

    def editor_reads(self, _: Event) -> None:
        """A program reads what it saves later."""
        self.read_by_editor = self.read(LIVE)

    def editor_saves_late(self, _: Event) -> None:
        """It saves, whatever came meanwhile."""
        if self.read_by_editor:
            self._replace((*self.read_by_editor, self._next("P")))

    def copy_comes(self, event: Event) -> None:
        """A copy from before takes the live name."""
        copies = {
            Event.OLDEST_COPY: FIRST,
            Event.OLDER_COPY: FIRST[:4],
            Event.COPY_BEFORE: self.copy,
            Event.SHORT_COPY: self.short,
        }
        if copies[event]:
            self._replace(copies[event])

    def trim_reads(self, _: Event) -> None:
        """The client's trim reads the live file."""
        self.read_by_trim = self.names[LIVE], self.read(LIVE)

    def trim(self, event: Event) -> None:
        """The client's trim gives the live name to what follows the last boundary."""
        if not self.read_by_trim:
            return
        inode, content = self.read_by_trim
        if self.names[LIVE] == inode:
            content = self.read(LIVE)  # it copies what was appended meanwhile
        header = content[:1] if count_of(content) else ()
        at = last_boundary(content)
        self._replace(
            header + (content[at:] if at else body_of(content)), keep=event is Event.TRIM_KEEPS
        )
        self.read_by_trim = None

    def clean_up(self, _: Event) -> None:
        """The client deletes the live file."""
        self.plain = False
        self.require_no_more(lines_of(self.read(LIVE)) | self._late())
        self.name(LIVE, None)
        self.tail = set()
        self._forsake(excused=True)

    def compact(self) -> None:
        """Let the client compact: a boundary and a row come to the live file."""
        if LIVE in self.names:
            self.step("the client compacts")
        if LIVE in self.names:
            for line in (f"{self._next('B')}x", self._next("d")):
                self._grow(self.names[LIVE], line, excused=False)

    def pass_a_day(self) -> None:
        """Let nothing happen for a day."""
        self.day += 1

    def lose(self, path: str) -> None:
        """Let somebody delete the record or the manifest."""
        self.plain = False
        self.names.pop(path, None)
        self.durable.pop(path, None)
        self.pending = [one for one in self.pending if one[0] != path]


_DOERS: Final = {
    Event.APPEND: World.come,
    Event.OPEN: World.come,
    Event.OPEN_UNSEEN: World.come,
    Event.HALF: World.come,
    Event.FORCED: World.force,
    Event.EDIT: World.edit,
    Event.CUT_OUT: World.edit,
    Event.EDITOR_SAVES: World.editor_saves,
    Event.EDITOR_READS: World.editor_reads,
    Event.EDITOR_SAVES_LATE: World.editor_saves_late,
    Event.OLDEST_COPY: World.copy_comes,
    Event.OLDER_COPY: World.copy_comes,
    Event.COPY_BEFORE: World.copy_comes,
    Event.SHORT_COPY: World.copy_comes,
    Event.TRIM_READS: World.trim_reads,
    Event.TRIM: World.trim,
    Event.TRIM_KEEPS: World.trim,
    Event.CLEAN_UP: World.clean_up,
}
