"""Rotations and restorations → what people and programs read.

Rule: as in `render`: pure text out, and what came out of a session is made printable first.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from sessrotate import names
from sessrotate.errors import printable
from sessrotate.in_place.gain import BLOCK
from sessrotate.render import common, segment_table
from sessrotate.render import outcomes as shown_outcomes
from sessrotate.render.common import count, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sessrotate.in_place.operations import Rotated
    from sessrotate.in_place.outcome import Outcome
    from sessrotate.in_place.recover import Recovery
    from sessrotate.in_place.restore import RestorePlan
    from sessrotate.in_place.rotate import RotationPlan
    from sessrotate.render.outcomes import Seen

_COPIED_PER_SECOND: Final = 300e6
"""Bytes that a usual disk takes in a second, for the estimate of how long a rotation takes."""


def as_json(done: Rotated, path: Path, *, dry_run: bool) -> Iterator[str]:
    """Yield what `rotate --json` prints, a segment at a time.

    `segments` are those that the live file held, the last of which stays in it.
    """
    plan = done.plan
    document: dict[str, Any] = {
        "session": plan.session,
        "client": plan.client,
        "source": {"path": str(path), "bytes": plan.end},
        "dry_run": dry_run,
        "opaque_lines": plan.opaque_lines,
        "archived_segments": len(plan.archived),
        "live": _live(plan),
        "put_together_bytes": done.together,
    }
    if done.disk is not None:
        document["disk"] = {
            "bytes_before": done.disk.before,
            "bytes_after": done.disk.after,
            "bytes_gained": done.disk.gain,
            "is_estimated": done.disk.is_estimated,
        }
    if not dry_run:
        document |= {"swap_seconds": done.seconds, "pending": done.pending}
    if done.refusal is not None:
        document["refused"] = [*plan.refusals] or [str(done.refusal)]
    segments = [
        (segment, names.sealed_file(plan.session, segment.index)) for segment in plan.segments
    ]
    return segment_table.as_json(document, [*segments, (plan.newest, path.name)])


def _live(plan: RotationPlan) -> dict[str, Any] | None:
    if plan.live is None:
        return None
    return {
        "index": plan.newest.index,
        "cut": plan.live.cut,
        "bytes_before": plan.end,
        "bytes_after": plan.bytes_after,
        "carried_bytes": plan.carried_bytes,
        "carried_lines": len(plan.live.carried),
        "carried": [
            {
                "segment": entry.segment,
                "offset": entry.span.start,
                "bytes": entry.span.size,
                "reason": entry.reason,
            }
            for entry in plan.live.carried
        ],
    }


def to_recover(recovery: Recovery) -> str:
    """Return the sentence about what an interrupted run left, and what the disk gains by it."""
    gain = f" On disk, that frees about {size(recovery.gained)}." if recovery.gained > 0 else ""
    return f"{recovery.sentence}{gain}"


def recovered(recovery: Recovery) -> str:
    """Return the same for what was done."""
    gain = f" On disk, that freed {size(recovery.gained)}." if recovery.gained > 0 else ""
    return f"{recovery.past}{gain}"


def heading(plan: RotationPlan) -> str:
    """Return the line above the table: which session, how large, what is archived already."""
    line = f"{printable(plan.session)}: {size(plan.end)}"
    if plan.archived:
        line += f", {count(len(plan.archived), 'segment')} ({size(plan.start)}) archived before"
    return line


def would(planned: Rotated, seconds: float, room: int | None) -> list[str]:
    """Return the sentences of a dry run; `seconds` is how long the reading took."""
    plan = planned.plan
    if planned.together:
        kept = f"Claude Code trimmed this session, and kept {size(planned.together)} of it: that"
        return [f"{kept} is put together first, and moved to the archive.", *_on_disk(planned)]
    if plan.live is None:
        return [nothing(plan)]
    change = f"from {size(plan.end)} to {size(plan.bytes_after)}"
    if plan.heals:
        return [f"Would {_healed(plan, 'put', 'take')}, which goes {change}. {_why(plan)}"]
    cut = f"Would cut at byte {plan.live.cut:,}: {_moved(plan)} {_to_archive(plan, 'still has')}"
    copied = sum(part.span.size for part in plan.segments if part.index or plan.prefix)
    takes = 2 * seconds + (copied + plan.bytes_after) / _COPIED_PER_SECOND
    needs = f"Takes about {_duration(takes)} and up to {size(plan.room)} of free space meanwhile"
    free = "" if room is None else f"; {size(room)} are free"
    return [
        f"{cut}, and the live file goes {change}.",
        *_put_aside(plan, "Would put"),
        *_on_disk(planned),
        *_carried(plan),
        f"{needs}{free}.",
    ]


def _on_disk(rotated: Rotated) -> Iterator[str]:
    """Say what the disk gains: what was moved to another folder of it takes space there."""
    disk = rotated.disk
    if disk is None or rotated.plan.heals:
        return
    if rotated.pending is not None:
        yield f"On disk, nothing is freed yet: the session takes {size(disk.after)}."
    elif disk.is_estimated:
        would = f"free about {size(disk.gain)}" if disk.gain > 0 else "free nothing"
        if disk.gain <= -BLOCK:
            would = f"take about {size(-disk.gain)} more"
        yield f"On disk, that would {would}: the session takes {size(disk.before)}."
    elif disk.gain > 0:
        yield (
            f"On disk, that freed {size(disk.gain)}: the session takes {size(disk.after)} instead "
            f"of {size(disk.before)}."
        )
    else:
        did = f"takes {size(-disk.gain)} more" if disk.gain else "freed nothing"
        yield f"On disk, that {did}: the session takes {size(disk.after)}."


_REWOUND: Final = (
    "Somebody went back, in a client that ran, to a message that was archived: a resume needs what "
    "came before it."
)


_MISLED: Final = (
    "Somebody went back, in a client that ran, to where a resume would go on from it: of a session "
    "as large as this one was, clients do not load it any more."
)


def _healed(plan: RotationPlan, put: str, take: str) -> str:
    """Return what a healing does, beginning with one of these verbs."""
    name, lines = printable(plan.session), plan.live.carried if plan.live else ()
    if plan.live is not None and plan.live.misleads:
        return f"{take} the first prompt of {name} out of the live file"
    back = [entry for entry in lines if entry.segment is not None]
    many = f"{count(len(back), 'line')} ({size(sum(entry.span.size + 1 for entry in back))})"
    return f"{put} {many} of {name} back from the archive into the live file"


def _why(plan: RotationPlan) -> str:
    return _MISLED if plan.live is not None and plan.live.misleads else _REWOUND


def _moved(plan: RotationPlan) -> str:
    moved = sum(segment.span.size for segment in plan.segments)
    return f"{count(len(plan.segments), 'segment')} ({size(moved)})"


def _to_archive(plan: RotationPlan, has: str) -> str:
    there = f", which {has} {len(plan.taken):,} of them" if plan.taken else ""
    return f"to the archive{there}"


def _carried(plan: RotationPlan) -> Iterator[str]:
    if plan.live is None or not plan.live.carried:
        return
    lines = count(len(plan.live.carried), "line")
    stay = "stays" if len(plan.live.carried) == 1 else "stay"
    yield f"Of what is archived, {lines} ({size(plan.carried_bytes)}) {stay} in the live file too:"
    reasons = Counter(entry.reason for entry in plan.live.carried)
    for reason, number in reasons.most_common():
        yield f"  {number:,}: {reason}"


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"  # noqa: PLR2004 - 3 digits


def nothing(plan: RotationPlan) -> str:
    """Return the sentence for a session that has no history to move."""
    sentence = f"Nothing to cut: {printable(plan.session)} was not compacted {plan.since}."
    if plan.lacks is None:
        return sentence
    return (
        f"{sentence} A row in it continues one that may have been in segment {plan.lacks}, which "
        "is gone or cannot be read: a resume lacks what came before it."
    )


def done(rotated: Rotated) -> list[str]:
    """Return the sentences that follow a rotation."""
    plan, together = rotated.plan, _together(rotated)
    if plan.live is None:
        return [*together, nothing(plan)]
    change = f"from {size(plan.end)} to {size(plan.bytes_after)}"
    pending = [] if rotated.pending is None else [f"Not sealed yet: {rotated.pending}"]
    if plan.heals:
        return [f"{_healed(plan, 'Put', 'Took')}, which went {change}. {_why(plan)}", *pending]
    moved = f"Moved {_moved(plan)} of {printable(plan.session)} {_to_archive(plan, 'still had')}"
    return [
        *together,
        f"{moved}; the live file went {change}.",
        *_put_aside(plan, "Put"),
        *_on_disk(rotated),
        *_carried(plan),
        *pending,
    ]


def _put_aside(plan: RotationPlan, put: str) -> Iterator[str]:
    if plan.puts_aside:
        yield (
            f"{put} the archive that is there aside, whole: it is not what the live file begins "
            "with, or cannot be read. It goes to sessrotate/aside, beside the folder of projects."
        )


def _together(rotated: Rotated) -> Iterator[str]:
    if rotated.together:
        yield f"Put {size(rotated.together)} together that Claude Code had trimmed, and kept."


FIGURES: Final[Mapping[str, Callable[[Outcome], str]]] = {
    "live file": lambda entry: size(entry.before),
    "freed": lambda entry: size(max(0, entry.gained)),
    "then": lambda entry: size(entry.size),
}


def outcomes(found: Sequence[Outcome], seen: Seen) -> Iterator[str]:
    """Yield the table of what became of all sessions, and the sums below it."""
    yield from shown_outcomes.table(found, FIGURES, seen)
    results = Counter(entry.result for entry in found)
    parts = ", ".join(f"{number:,} {result}" for result, number in results.most_common())
    sums = moved_and_gained(found)
    yield f"{count(len(found), 'session')}{': ' if parts else ''}{parts}; {sums}."


def moved_and_gained(found: Sequence[Outcome]) -> str:
    """Return what left the live files, and what of that the disk gained or will gain."""
    moved, gained = sum(entry.freed for entry in found), sum(entry.gained for entry in found)
    about = "about " if any(entry.result == "planned" for entry in found) else ""
    return f"{size(moved)} out of the live files, {about}{size(max(0, gained))} freed on disk"


def outcomes_json(found: Sequence[Outcome]) -> str:
    """Return the same for programs."""
    return shown_outcomes.as_json(
        found, {"bytes_before": lambda entry: entry.before, "bytes_after": lambda entry: entry.size}
    )


def restored(session: str, plan: RestorePlan | None, *, dry_run: bool) -> str:
    """Return the sentence about a restoration, done or to be done."""
    name = printable(session)
    if plan is None:
        return f"Nothing to restore: {name} is whole."
    what = f"{count(len(plan.manifest.segments), 'segment')} ({size(plan.manifest.source_bytes)})"
    if dry_run:
        free = "" if plan.free is None else f"; {size(plan.free)} are free"
        return (
            f"Would put {what} of {name} back: the live file would have {size(plan.size)}, and "
            "its archive would stay until its grace time is over. Needs "
            f"{size(plan.size)} of free space{free}.{_missing(plan)}"
        )
    done = f"Put {what} of {name} back: the live file has {size(plan.size)}"
    later = f" Not finished yet: {plan.pending}" if plan.pending else ""
    return f"{done}, and its archive stays until its grace time is over.{later}{_missing(plan)}"


def _missing(plan: RestorePlan) -> str:
    """Return what a session that was deleted will lack."""
    if plan.tail is not None:
        return ""
    last = plan.manifest.segments[-1].segment.last_timestamp
    after = "the last rotation" if last is None else printable(common.time(last))
    return f" The live file was gone, and what came after {after} with it: only a backup has that."
