"""What `tidy` shows: the plan on one screen, and what the disk has gained. Pure.

Rule: a figure is called freed only if the disk has it: blocks before and after, of everything of
the client's and of ours. What a plan says is "about".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import render, units
from sessrotate.errors import InUseError, printable
from sessrotate.in_place.outcome import Outcome
from sessrotate.job.run_log import CAN_BE_UNDONE
from sessrotate.render import count, size
from sessrotate.render import outcomes as shown_outcomes
from sessrotate.render.outcomes import CHANGED, Seen, Shown
from sessrotate.render.run import failures

if TYPE_CHECKING:
    from sessrotate.archive.place import Place
    from sessrotate.job.run import Report
    from sessrotate.reports import NextStep
    from sessrotate.reports.next_steps import OnDisk

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
    "compress": "compress idle Codex sessions (.jsonl.zst)",
    "prune": "move history to the trash, as your settings say",
    "trash": "delete for good what was in the trash for long enough",
}
"""What each step does, in the words of somebody who needs space."""

_STAYS: Final = {"recover": "what was recovered", "trash": "what was deleted for good"}
"""What `restore --last-run` does not undo."""

_NOTES: Final = {
    "archive": render.PUT_AWAY,
    "compress": "Codex lists, reads and resumes a compressed session as before. A resume "
    "decompresses it, and needs room for that. Other programs that look for *.jsonl no longer see "
    "it.",
}
"""What a plan says besides of a step."""


class Tidied(Struct, frozen=True):
    """A plan, or what was done, and the disk around it, in bytes.

    `before` is what sessions and archives took, by those of the clients whose sessions are made
    smaller, and `gained` how much the disk has more since, in a plan about how much it will have;
    `free` and `free_after` is what the disk has left, None if nobody knows. `need` is what somebody
    asked for; `is_named` says that the sessions were. `clients` are what each client's sessions
    take now, and `steps` say what else would free some.
    """

    report: Report
    before: Mapping[str, int]
    gained: int
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
    def giving(self) -> list[Outcome]:
        """The sessions that give the disk something, the most first, each once for all steps."""
        found: dict[Place | None, Outcome] = {}
        for _, each in self.report.outcomes:
            if each.gained > 0 and (before := found.get(each.where)):
                # A later step takes what an earlier one left: the most is what the session took.
                disk, gained = max(before.disk, each.disk), before.gained + each.gained
                found[each.where] = replace(before, disk=disk, gained=gained)
            elif each.gained > 0:
                found[each.where] = each
        return sorted(found.values(), key=lambda each: -each.gained)

    @property
    def passed_over(self) -> list[Outcome]:
        """The sessions of which it is said why they stay: of those that were named, each."""
        return self.report.passed_over(or_usual=self.is_named)

    @property
    def code(self) -> int:
        """The exit code: a session that somebody named, and that is in use, was not tidied."""
        used = self.is_named and self.report.count("in use")
        return self.report.code or (InUseError.exit_code if used else 0)


def shown(tidied: Tidied, seen: Seen) -> Shown:
    """Return what is shown of a plan, or of what was done."""
    return Shown(
        plan(tidied, seen) if tidied.report.dry_run else done(tidied),
        as_json(tidied),
        bool(tidied.report.changing),
        _frees(tidied),
        failures(tidied.report),
        tidied.code,
    )


def _frees(tidied: Tidied) -> str:
    return f"Tidying frees about {size(max(0, tidied.gained))} of disk space."


def plan(tidied: Tidied, seen: Seen) -> Iterator[str]:
    """Yield what would be done: what, how much the disk gains, what stays, how to undo it."""
    report, steps = tidied.report, tidied.report.changing
    if not steps:
        if report.count("failed"):
            yield f"Nothing can be tidied now: {_used(tidied)}."
        elif tidied.passed_over or report.count("in use"):
            yield f"Nothing to tidy now: {_used(tidied)}."
        else:
            yield f"Nothing to tidy: {_used(tidied)}, and no session would get much smaller."
        yield from _left(tidied)
        if not tidied.is_named:
            yield from render.further(tidied.steps)
        return
    yield _frees(tidied)
    yield _now(tidied)
    yield ""
    for stage in report.stages:
        if many := stage.count("planned"):
            name, about = stage.step.name, f"about {size(stage.gained)}" if stage.gained > 0 else ""
            yield f"  {name:<9} {count(many, 'session'):>14}  {about:>17}  {_MEANS[name]}"
    yield ""
    yield from _largest(tidied, seen)
    yield from (note for step, note in _NOTES.items() if step in steps)
    yield from dict.fromkeys(
        each.detail
        for step, each in report.outcomes
        if step == "compress" and each.result == "planned" and each.detail
    )
    what, rest, history = "Nothing is lost", "all of it", "its history"
    if "trash" in steps:
        deleted = [each.session for step, each in report.outcomes if step == "trash"]
        trash = units.some([printable(session) for session in deleted])
        yield f"Deleted for good: the trash of {trash}. No command brings that back."
        what, rest, history = "Nothing else is lost", "the rest", "the rest of its history"
    yield f"{what}: each session resumes as before, and {history} can be read and searched."
    if steps & CAN_BE_UNDONE.keys():
        yield f"Undo: `sessrotate restore SESSION`, or `sessrotate restore --last-run` for {rest}."
    yield from _short(tidied)
    yield from _left(tidied)


def done(tidied: Tidied) -> Iterator[str]:
    """Yield what was done."""
    gained = tidied.gained
    freed = (
        f"Freed {size(gained)} on disk" if gained >= 0 else f"Takes {size(-gained)} more on disk"
    )
    before = sum(tidied.before.values()) + sum(each.bytes for each in tidied.others)
    now = size(before - gained)
    yield f"{freed}: sessions and archives took up {size(before)}, and now take up {now}."
    if tidied.free is not None and tidied.free_after is not None:
        yield f"Free space: {size(tidied.free)} before, {size(tidied.free_after)} now."
    parts = [
        f"{stage.step.done} {count(many, 'session')}"
        for stage in tidied.report.stages
        if (many := stage.count("done"))
    ]
    if parts:
        text = ", ".join(parts)
        steps = tidied.report.changing
        is_undone = tidied.report.unlogged is None and steps & CAN_BE_UNDONE.keys()
        stays = " and ".join(said for step, said in _STAYS.items() if step in steps)
        but = f", except for {stays}" if stays else ""
        undo = f" `sessrotate restore --last-run` undoes that{but}." if is_undone else ""
        yield f"{text[0].upper()}{text[1:]}.{undo}"
    yield from _short(tidied)
    yield from _left(tidied)
    yield from render.further(tidied.steps)


def _used(tidied: Tidied) -> str:
    others = {each.client: each.bytes for each in tidied.others}
    taken = {name: each for name, each in {**tidied.before, **others}.items() if each}
    parts = (f"{render.CLIENTS.get(name, name)} {size(each)}" for name, each in taken.items())
    of_all = f" ({', '.join(parts)})" if [*taken] not in ([], ["claude"]) else ""
    return f"sessions and archives take up {size(sum(taken.values()))} of disk space{of_all}"


def _now(tidied: Tidied) -> str:
    free = "" if tidied.free is None else f", and {size(tidied.free)} is free"
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
        rules = ", and rules in the settings (`sessrotate config init`) can delete old history"
        yield (
            f"That is {size(tidied.need - tidied.gained)} less than the {size(tidied.need)} you "
            "need: `sessrotate report --all` shows what else is large"
            f"{rules if tidied.before.get('claude') else ''}."
        )


def _left(tidied: Tidied) -> Iterator[str]:
    """Yield what was passed over."""
    used = [step for step, each in tidied.report.outcomes if each.result == "in use"]
    if used:
        verb, them = ("is", "it") if len(used) == 1 else ("are", "them")
        live = " If a client is idle, `sessrotate rotate SESSION --live` rotates its session now."
        yield (
            f"{count(len(used), 'session')} {verb} in use: close what uses {them}, then try again."
            f"{live if {*used} != {'compress'} else ''}"
        )

    left = tidied.passed_over
    for each in left[:_KEPT]:
        of = f"{printable(each.session)} stays as it is. " if each.where else ""  # or a client's
        yield f"{of}{each.detail[:1].upper()}{each.detail[1:].removesuffix('.')}."
    if len(left) > _KEPT:
        more = count(len(left) - _KEPT, "more session")
        yield f"… and {more}: `sessrotate rotate --all --dry-run` names them."


def as_json(tidied: Tidied) -> Iterator[str]:
    """Yield the same for programs."""
    document: dict[str, Any] = {
        "dry_run": tidied.report.dry_run,
        "code": tidied.code,
        "sessions": [
            {
                "session": each.session,
                "client": "codex" if step == "compress" else "claude",
                "action": step,
                "result": each.result,
                "moved_bytes": each.freed if each.result in CHANGED else 0,
                "disk_bytes_before": each.disk,
                "disk_bytes_after": each.disk - each.gained,
                "refused": None if each.error is None else str(each.error),
            }
            for step, each in tidied.report.outcomes
        ],
        "disk_bytes_before": (taken := sum(tidied.before.values())),
        "disk_bytes_after": taken - tidied.gained,
        "disk_bytes_gained": tidied.gained,
        "free_bytes_before": tidied.free,
        "free_bytes_after": tidied.free_after,
    }
    yield render.as_json(document)
