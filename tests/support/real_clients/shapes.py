"""Sessions that went through anything: drawn from a seed, as the clients would have written them.

Rule: only what was seen of clients is drawn. A rewind goes to a prompt that the running process
knows, a compaction preserves the last rows, a process ends in the middle of a row or behind a
boundary, and the next one may be of a later version. The same seed and kits give the same session.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Final

from support.real_clients.editing import enlarge, line
from support.real_clients.synthetic import NOWHERE
from support.real_clients.writer import Writer, is_boundary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.real_clients.editing import Row
    from support.real_clients.kits import Kit

STEPS: Final = {
    "ask": 30,
    "use_tools": 14,
    "compact": 16,
    "overflow": 6,
    "go_back": 14,
    "leave": 12,
    "set": 5,
    "send_agent": 2,
    "fork": 1,
    "crash": 1,
}
"""What may happen next, and how often."""


@dataclass(frozen=True)
class Rotation:
    """After how many lines a session is rotated, and which version wrote its newest compaction."""

    lines: int
    version: str


@dataclass
class Shape:
    """A session as it grew, and when it is rotated."""

    seed: int
    session: str
    story: list[str] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    is_torn: bool = False
    """Whether the last line is not complete."""
    rotations: list[Rotation] = field(default_factory=list)

    def data(self, end: int) -> bytes:
        """Return the session when it had so many lines."""
        ending = b"" if self.is_torn and end == len(self.lines) else b"\n"
        return b"\n".join(self.lines[:end]) + ending

    def __str__(self) -> str:
        return f"seed {self.seed}: {', '.join(self.story)}"


def draw(seed: int, kits: Sequence[Kit]) -> Shape:
    """Return the session of a seed; `kits` are of the versions that may have written it."""
    return _Life(seed, kits).lived()


class _Life(Writer):
    """A session, and what happens to it."""

    def __init__(self, seed: int, kits: Sequence[Kit]) -> None:
        dice = Random(seed)
        self.kits: Final = sorted(kits, key=lambda kit: kit.key)
        self.shape: Final = Shape(seed, str(uuid.uuid5(uuid.NAMESPACE_OID, f"shape {seed}")))
        super().__init__(dice, self.shape.session, dice.choice(self.kits))

    def begin(self) -> None:
        """Begin a process, and tell which."""
        super().begin()
        self._tell(self.kit.version)

    def copied(self) -> None:
        """Have the session rotated, at times, between copies and the boundary that follows."""
        if self.version and not self.shape.rotations and self.dice.random() < 0.05:
            self._rotate()

    def _tell(self, step: str) -> None:
        self.shape.story.append(step)

    # ── a life ───────────────────────────────────────────────────────────────────────────────

    def lived(self) -> Shape:
        """Live it and return the shape."""
        dice, wanted = self.dice, self.dice.randint(6, 16)
        for _ in range(wanted):
            (step,) = dice.choices([*STEPS], [*STEPS.values()])
            getattr(self, step)()
            if dice.random() < 0.06:
                self._rotate_early()
        if not self.version:
            self.compact()
        for _ in range(dice.choice((0, 1, 1, 2))):
            dice.choice((self.ask, self.use_tools))()
        if dice.random() < 0.06:
            rows = [row for row in self.rows if isinstance(row, dict)]
            enlarge(dice.choice([row for row in rows if _is_result_or_prompt(row)]))
            self.shape.story.append("large")
        if dice.random() < 0.03:
            self._end_torn()
        self._rotate()
        self.shape.lines = [line(row) for row in self.rows]
        return self.shape

    def _rotate_early(self) -> None:
        """Have it rotated before its end, once, and mostly go on from what is archived."""
        if not self.version or self.shape.rotations or self.half:
            return
        self._rotate()
        if self.prompts and self.dice.random() < 0.4:
            self.go_back()

    def _rotate(self) -> None:
        self.shape.story.append("rotate")
        self.shape.rotations.append(Rotation(len(self.rows), self.version))

    def _end_torn(self) -> None:
        last = line(self.rows[-1])
        self.rows[-1], self.shape.is_torn = last[: len(last) // 2], True
        self.shape.story.append("torn")

    # ── steps ────────────────────────────────────────────────────────────────────────────────

    def ask(self) -> None:
        """Ask something."""
        self._tell("ask")
        self.prompt()
        self.answer()

    def use_tools(self) -> None:
        """Ask something that takes one to three tools, used side by side."""
        self._tell("use tools")
        self.prompt()
        self.calls(self.dice.choice((1, 2, 2, 3)))
        self.answer()

    def compact(self) -> None:
        """Have the session compacted by its user."""
        if not any(row["type"] == "assistant" for row in self.way):
            self.ask()  # with less newer clients do not compact
        is_plain = not self.kit.preserves or (
            self.kit.key >= (2, 1, 330) and self.dice.random() < 0.3
        )
        self._tell("compact" + (" plain" if is_plain else ""))
        self.compaction(is_plain=is_plain, is_auto=False)
        # Versions with copies continue the last preserved row here, others the summary.
        parents = [self.way[-1]]
        if not is_plain and self.dice.random() < 0.5 and self.copies_earlier():
            parents.append(self.kept[-1])
        before = self.row(self.kit.command[0], parents[-1], -90)
        self.write(before)
        for template, milliseconds in zip(self.kit.command[1:], (-90, 100), strict=True):
            self.write(self.row(template, self.way[-1], milliseconds))
        if self.kit.key < (2, 0, 76) and not self.is_new and self.dice.random() < 0.5:
            del self.way[-3:]  # in one process 2.0.28 goes on from the summary
        self.attach(self.kit.restored)

    def overflow(self) -> None:
        """Have the client compact by itself, before it answers a prompt or behind a tool."""
        if len(self.way) < 2:
            self.ask()
        self._tell("overflow")
        self.prompt()
        if self.dice.random() < 0.4:
            self.calls(self.dice.choice((1, 2)))
        self.compaction(is_plain=not self.kit.preserves, is_auto=True)
        self.attach(self.kit.restored)
        if self.dice.random() < 0.4:
            self.calls(1)
        self.answer()

    def go_back(self) -> None:
        """Go back to an earlier prompt of this process, and ask something else there."""
        if not self.prompts:
            self.ask()
        number = self.dice.randrange(len(self.prompts))
        self._tell(f"go back {len(self.prompts) - number}")
        self.way = [*self.prompts[number]]
        del self.prompts[number:]
        self.ask() if self.dice.random() < 0.7 else self.use_tools()

    def leave(self, *, is_dead: bool = False) -> None:
        """End the process, and resume the session in another, perhaps of a later version."""
        if not is_dead and self.dice.random() < 0.25:
            self._rotate_early()
        if self.dice.random() < 0.4:
            at = self.kits.index(self.kit)
            self.kit = self.dice.choice(self.kits[at:])
        # Now and then the clock is set back.
        self.clock += timedelta(minutes=self.dice.choice([0.01, 0.1, 60] * 15 + [-90]))
        self.begin()
        if self.way and self.way[-1].get("type") != "assistant":
            for template in self.kit.resumed:
                self.write(self.row(template, self.way[-1]))

    def set(self) -> None:
        """Have metadata written: titles, modes, what nobody knows yet."""
        self._tell("set")
        mine: Row = {"sessionId": self.session}
        leaf = self.way[-1]["uuid"] if self.way else NOWHERE
        kinds: list[Row] = [
            {"type": "custom-title", "customTitle": f"Title {self.count}", **mine},
            {"type": "summary", "summary": f"Summary {self.count}", "leafUuid": leaf},
            {"type": "tag", "tag": f"tag-{self.count}", **mine},
            {"type": "a-kind-of-its-own", "value": self.count, **mine},
        ]
        self.append(*self.dice.sample(kinds, self.dice.randint(1, 3)))

    def send_agent(self) -> None:
        """Have a subagent's rows among the others, as clients before 2.0.28 did."""
        if self.kit.key > (2, 0, 28):
            return
        self._tell("agent")
        sent = self.row(self.kit.prompt, None, isSidechain=True)
        self.append(sent, self.row(self.kit.speech, sent, isSidechain=True))

    def fork(self) -> None:
        """Go on in a fork: it has the rows from the last compaction on, what that preserved too."""
        found = [(at, row) for at, row in enumerate(self.rows) if isinstance(row, dict)]
        starts = [(at, row) for at, row in found if is_boundary(row)]
        if not starts or self.shape.rotations:
            return
        self._tell("fork")
        start, boundary = starts[-1]
        listed = boundary["compactMetadata"].get("preservedMessages", {}).get("uuids", ())
        kept = {row["uuid"]: row for at, row in found if at < start and row.get("uuid") in listed}
        self.rows[:start] = []
        self.rows[1:1] = kept.values()
        self.leave(is_dead=True)

    def crash(self) -> None:
        """Have the client die while it writes: in a row, or between a boundary and its summary."""
        if len(self.way) < 2:
            self.ask()
        way = [*self.way]
        if self.dice.random() < 0.5 and not (2, 1, 80) <= self.kit.key <= (2, 1, 112):
            self._tell("crash behind a boundary")
            self.compaction(is_plain=not self.kit.preserves, is_auto=False, is_cut_short=True)
            # An old client goes on from the boundary, a later one from before it, and those in
            # between find no conversation any more.
            self.way = [self.boundary] if self.kit.key < (2, 1, 80) else way
        else:
            self._tell("crash in a row")
            self.prompt()
            torn = line(self.way[-1])
            # The next process appends to what is there: half a row and a whole one, in one line.
            at = next(at for at, row in enumerate(self.rows) if row is self.way[-1])
            del self.rows[at:]
            self.half = torn[: len(torn) // 2]
            self.way = way
        self.leave(is_dead=True)


def _is_result_or_prompt(row: Row) -> bool:
    return row["type"] == "user" and not row.get("isMeta")
