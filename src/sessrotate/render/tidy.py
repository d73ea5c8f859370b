"""What `tidy` shows: the plan on one screen, and what the disk has gained. Pure.

Rule: a figure is called freed only if the disk has it: blocks before and after, of everything of
the client's and of ours. What a plan says is "about".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from sessrotate.errors import InUseError, printable
from sessrotate.in_place.outcome import Outcome
from sessrotate.render import common
from sessrotate.render import outcomes as shown_outcomes
from sessrotate.render.common import count, size
from sessrotate.render.outcomes import CHANGED, Seen, Shown
from sessrotate.render.run import failures, kept

if TYPE_CHECKING:
    from sessrotate.job.run import Report, Stage
    from sessrotate.reports.next_steps import NextStep
    from sessrotate.reports.on_disk import OnDisk

MOST: Final = 10
"""Sessions that a plan names: all of it fits on a screen."""

FIGURES: Final[Mapping[str, Callable[[Outcome], str]]] = {
    "takes": lambda entry: size(entry.disk),
    "frees": lambda entry: size(entry.gained),
}

_KEPT: Final = 5
"""Sessions of which it says why they stay as they are, at most."""

_MEANS: Final = {
    "recover": "finish what was interrupted",
    "heal": "put back rows that a resume lacks",
    "rotate": "move history to compressed archives",
    "archive": "put sessions away, compressed, as your settings say",
    "compress": "compress idle sessions of Codex (.jsonl.zst)",
    "prune": "move history to the trash, as your settings say",
    "trash": "delete for good what was in the trash for long enough",
}
"""What each step does, in the words of somebody who needs space."""

_UNDONE: Final = frozenset({"rotate", "archive", "compress", "prune"})
"""Steps that `restore --last-run` takes back."""

COMPRESSED: Final = (
    "Codex lists, reads and resumes a compressed session as before. A resume makes it plain again, "
    "and needs room for that. Other programs that look for *.jsonl no longer see it."
)
"""What a plan says that compresses sessions of Codex."""

_FOR_GOOD: Final = frozenset({"trash"})
"""Steps that nothing brings back."""


class Tidied(Struct, frozen=True):
    """A plan, or what was done, and the disk around it, in bytes.

    `before` and `after` are what sessions and archives take, by those of the clients whose sessions
    are made smaller; `free` and `free_after` is what
    the disk has left, None if nobody knows. `need` is what somebody asked for; `is_named` says that
    the sessions were. `clients` are what each client's sessions take now,
    and `steps` say what else would free some.
    """

    report: Report
    before: Mapping[str, int]
    after: Mapping[str, int]
    free: int | None
    need: int | None
    free_after: int | None = None
    is_named: bool = False
    clients: tuple[OnDisk, ...] = ()
    steps: tuple[NextStep, ...] = ()

    @property
    def others(self) -> list[OnDisk]:
        """What the clients take whose sessions are not made smaller."""
        return [each for each in self.clients if each.client not in self.before and each.bytes]

    @property
    def outcomes(self) -> list[tuple[Stage, Outcome]]:
        """What became of each session, with the step that it was in."""
        return [(stage, each) for stage in self.report.stages for each in stage.outcomes]

    @property
    def changes(self) -> list[tuple[Stage, Outcome]]:
        """Those that were, or are to be, changed."""
        return [(stage, each) for stage, each in self.outcomes if each.result in CHANGED]

    @property
    def giving(self) -> list[Outcome]:
        """Those that give the disk something, the most first."""
        found = (each for _, each in self.changes if each.gained > 0)
        return sorted(found, key=lambda each: -each.gained)

    @property
    def code(self) -> int:
        """The exit code: a session that somebody named, and that is in use, was not tidied."""
        is_used = any(each.result == "in use" for _, each in self.outcomes)
        used = InUseError.exit_code if is_used and self.is_named else 0
        return self.report.code or used

    @property
    def gained(self) -> int:
        """How many bytes the disk has more; in a plan, about how many it will have."""
        if self.report.dry_run:
            return sum(each.gained for _, each in self.changes)
        return sum(self.before.values()) - sum(self.after.values())


def shown(tidied: Tidied, seen: Seen) -> Shown:
    """Return what is shown of a plan, or of what was done."""
    return Shown(
        plan(tidied, seen) if tidied.report.dry_run else done(tidied),
        as_json(tidied),
        bool(tidied.changes),
        _frees(tidied),
        failures(tidied.report),
        tidied.code,
    )


def _frees(tidied: Tidied) -> str:
    return f"Tidying frees about {size(max(0, tidied.gained))} of the disk."


def plan(tidied: Tidied, seen: Seen) -> Iterator[str]:
    """Yield what would be done: what, how much the disk gains, what stays, how to undo it."""
    if not tidied.changes:
        if any(each.result == "failed" for _, each in tidied.outcomes):
            yield f"Nothing can be tidied now: {_used(tidied)}."
        elif kept(tidied.report) or any(each.result == "in use" for _, each in tidied.outcomes):
            yield f"Nothing to tidy now: {_used(tidied)}."
        else:
            used = _used(tidied)
            yield f"Nothing to tidy: {used}, and no rotation would be worth it."
        yield from _left(tidied)
        yield from common.further(tidied.steps)
        return
    yield _frees(tidied)
    yield _now(tidied)
    yield ""
    for stage in tidied.report.stages:
        if many := stage.count("planned", "done"):
            gain = sum(each.gained for each in stage.outcomes if each.result in CHANGED)
            yield (
                f"  {stage.step.name:<9} {count(many, 'session'):>14}  "
                f"{'about ' + size(gain) if gain > 0 else '':>17}  {_MEANS[stage.step.name]}"
            )
    yield ""
    yield from _largest(tidied, seen)
    steps = {stage.step.name for stage, _ in tidied.changes}
    if "archive" in steps:
        yield common.PUT_AWAY
    if "compress" in steps:
        yield COMPRESSED
        yield from {each.detail: None for stage, each in tidied.changes if _is_doubted(stage, each)}
    is_for_good = bool(steps & _FOR_GOOD)
    what = "Nothing else is lost" if is_for_good else "Nothing is lost"
    yield f"{what}: each session resumes as before, and its history can be read and searched."
    if steps & _UNDONE:
        rest = "the rest" if is_for_good else "all of it"
        yield f"Undo: `sessrotate restore SESSION`, or `sessrotate restore --last-run` for {rest}."
    yield from _short(tidied)
    yield from _left(tidied)


def _is_doubted(stage: Stage, each: Outcome) -> bool:
    return stage.step.name == "compress" and bool(each.detail)


def done(tidied: Tidied) -> Iterator[str]:
    """Yield what was done."""
    gained = tidied.gained
    freed = f"Freed {size(gained)} of the disk" if gained >= 0 else f"It takes {size(-gained)} more"
    others = sum(each.bytes for each in tidied.others)
    before, after = (size(sum(each.values()) + others) for each in (tidied.before, tidied.after))
    yield f"{freed}: sessions and archives took {before}, now {after}."
    if tidied.free is not None and tidied.free_after is not None:
        yield f"Free space: {size(tidied.free)} before, {size(tidied.free_after)} now."
    parts = [
        f"{stage.step.done} {count(many, 'session')}"
        for stage in tidied.report.stages
        if (many := stage.count("done"))
    ]
    if parts:
        text = ", ".join(parts)
        is_undone = tidied.report.unlogged is None and any(
            stage.step.name in _UNDONE and stage.count("done") for stage in tidied.report.stages
        )
        but = ", except for what was recovered" if _recovers(tidied) else ""
        undo = f" `sessrotate restore --last-run` undoes that{but}." if is_undone else ""
        yield f"{text[0].upper()}{text[1:]}.{undo}"
    yield from _short(tidied)
    yield from _left(tidied)
    yield from common.further(tidied.steps)


def _recovers(tidied: Tidied) -> bool:
    return any(stage.step.name == "recover" for stage, _ in tidied.changes)


def _used(tidied: Tidied) -> str:
    others = {each.client: each.bytes for each in tidied.others}
    taken = {name: each for name, each in {**tidied.before, **others}.items() if each}
    parts = (f"{common.CLIENTS.get(name, name)} {size(each)}" for name, each in taken.items())
    of_all = f" ({', '.join(parts)})" if [*taken] not in ([], ["claude"]) else ""
    return f"sessions and archives take {size(sum(taken.values()))} of the disk{of_all}"


def _now(tidied: Tidied) -> str:
    free = "" if tidied.free is None else f", and {size(tidied.free)} are free"
    used = _used(tidied)
    return f"{used[0].upper()}{used[1:]}{free}."


def _largest(tidied: Tidied, seen: Seen) -> Iterator[str]:
    """Yield the sessions that give the most."""
    giving = tidied.giving
    if not giving:
        return
    yield from shown_outcomes.table(giving[:MOST], FIGURES, seen)
    if len(giving) > MOST:
        rest = sum(each.gained for each in giving[MOST:])
        yield f"… and {len(giving) - MOST:,} more, which free about {size(rest)}"
    yield ""


def _short(tidied: Tidied) -> Iterator[str]:
    if tidied.need is not None and tidied.gained < tidied.need:
        yield (
            f"That is {size(tidied.need - tidied.gained)} less than the {size(tidied.need)} you "
            "need: `sessrotate report --all` shows what else is large, and rules in the settings "
            "(`sessrotate config init`) let old history go."
        )


def _left(tidied: Tidied) -> Iterator[str]:
    """Yield what was passed over."""
    used = [stage.step.name for stage, each in tidied.outcomes if each.result == "in use"]
    if used:
        verb, them = ("is", "it") if len(used) == 1 else ("are", "them")
        live = (
            " If a client runs but is not writing, `sessrotate rotate SESSION --live` rotates now."
        )
        yield (
            f"{count(len(used), 'session')} {verb} in use: end what uses {them} and run this again."
            f"{live if {*used} != {'compress'} else ''}"
        )

    left = kept(tidied.report)
    for each in left[:_KEPT]:
        yield _stays(each)
    if len(left) > _KEPT:
        more = count(len(left) - _KEPT, "more session")
        yield f"… and {more}: `sessrotate rotate --all --dry-run` names them."


def _stays(each: Outcome) -> str:
    """Say why a session stays as it is, or those of a client do."""
    return (
        f"{printable(each.session)} is left as it is. {each.detail}" if each.where else each.detail
    )


def as_json(tidied: Tidied) -> Iterator[str]:
    """Yield the same for programs."""
    document: dict[str, Any] = {
        "dry_run": tidied.report.dry_run,
        "code": tidied.code,
        "sessions": [
            {
                "session": each.session,
                "client": "codex" if stage.step.name == "compress" else "claude",
                "action": stage.step.name,
                "result": each.result,
                "moved_bytes": each.freed if each.result in CHANGED else 0,
                "disk_bytes_before": each.disk,
                "disk_bytes_after": each.disk - each.gained,
                "refused": None if each.error is None else str(each.error),
            }
            for stage, each in tidied.outcomes
        ],
        "disk_bytes_before": (taken := sum(tidied.before.values())),
        "disk_bytes_after": taken - tidied.gained,
        "disk_bytes_gained": tidied.gained,
        "free_bytes_before": tidied.free,
        "free_bytes_after": tidied.free_after,
    }
    yield common.as_json(document)
