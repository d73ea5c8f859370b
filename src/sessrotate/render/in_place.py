"""Rotations, restorations and archives that are put aside → what people and programs read.

Rule: as in `render`: pure text out, and what came out of a session is made printable first. Of an
archive that is put aside, every place is named, and the commands that read what is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from sessrotate import names, render
from sessrotate.errors import printable, quoted
from sessrotate.in_place.gain import BLOCK
from sessrotate.render import count, segment_table, size

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.in_place.aside import Plan
    from sessrotate.in_place.operations import Rotated
    from sessrotate.in_place.recover import Recovery
    from sessrotate.in_place.rotate import RotationPlan

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


def recovered(recovery: Recovery, *, dry_run: bool) -> str:
    """Return the sentence about what an interrupted run left, and what the disk gains by it."""
    said = recovery.sentence if dry_run else recovery.past
    verb = "frees about" if dry_run else "freed"
    gain = f" On disk, that {verb} {size(recovery.gained)}." if recovery.gained > 0 else ""
    return f"{said}{gain}"


def heading(plan: RotationPlan) -> str:
    """Return the line above the table: which session, how large, what is archived already."""
    line = f"{printable(plan.session)}: {size(plan.end)}"
    if plan.archived:
        line += f", {count(len(plan.archived), 'segment')} ({size(plan.start)}) archived before"
    return line


def would(planned: Rotated, seconds: float, room: int | None) -> Iterator[str]:
    """Yield the sentences of a dry run; `seconds` is how long the reading took."""
    plan, together = planned.plan, planned.together
    if together:
        kept = f"Claude Code trimmed this session, and kept {size(together)} of it: rotating"
        yield f"{kept} puts that back together first, and moves it to the archive."
        yield from _on_disk(planned)
        return
    yield from _changed(planned, dry_run=True)
    if plan.segments and plan.live is not None:
        copied = sum(part.span.size for part in plan.to_seal)
        takes = 2 * seconds + (copied + plan.bytes_after) / _COPIED_PER_SECOND
        needs = f"This takes about {_duration(takes)} and needs up to {size(planned.need.size)}"
        yield f"{needs} of free space{'' if room is None else f'; {size(room)} is free'}."


def done(rotated: Rotated) -> Iterator[str]:
    """Yield the sentences that follow a rotation."""
    if rotated.together:
        yield f"Put back together {size(rotated.together)} that Claude Code had trimmed and kept."
    yield from _changed(rotated, dry_run=False)
    if rotated.pending is not None:
        yield f"Not freed yet: {rotated.pending}"


def _changed(rotated: Rotated, *, dry_run: bool) -> Iterator[str]:
    """Say what a rotation, or a healing, does or did to the live file."""
    plan, name = rotated.plan, printable(rotated.plan.session)
    if plan.live is None:
        yield nothing(plan)
        return
    change = (
        f"{'would go' if dry_run else 'went'} from {size(plan.end)} to {size(plan.bytes_after)}"
    )
    put, take = ("Would put", "Would take") if dry_run else ("Put", "Took")
    if plan.heals and plan.live.misleads:
        out = f"{take} the first prompt of {name} out of the live file"
        yield f"{out}, which {change}. {_MISLED}"
    elif plan.heals:
        back = [entry for entry in plan.live.carried if entry.segment is not None]
        many = f"{count(len(back), 'line')} ({size(sum(entry.span.size + 1 for entry in back))})"
        rows = f"{put} {many} of {name} back from the archive into the live file"
        yield f"{rows}, which {change}. {_REWOUND}"
    else:
        moved = size(sum(segment.span.size for segment in plan.segments))
        many = f"{count(len(plan.segments), 'segment')} ({moved})"
        moves = f"Moved {many} of {name} to the archive; the live file {change}."
        if dry_run:
            cut = f"Would cut at byte {plan.live.cut:,}"
            moves = f"{cut}: {many} would move to the archive, and the live file {change}."
        has = f"The archive still {'has' if dry_run else 'had'} {len(plan.taken):,} of them."
        yield f"{moves} {has}" if plan.taken else moves
        if plan.puts_aside:
            yield (
                f"{put} the existing archive aside, whole, into sessrotate/aside beside the folder "
                "of projects: it cannot be read, or the live file does not continue it."
            )
        yield from _on_disk(rotated)
        yield from _carried(plan)


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
    "Someone rewound, in a running client, to an archived message: a resume needs the rows before "
    "it."
)


_MISLED: Final = (
    "Someone rewound to the first prompt in a running client. Clients no longer load that prompt "
    "from a session as large as this one was."
)


def _carried(plan: RotationPlan) -> Iterator[str]:
    if plan.live is None or not plan.live.carried:
        return
    lines = count(len(plan.live.carried), "archived line")
    copies = "a copy" if len(plan.live.carried) == 1 else "copies"
    yield f"The live file keeps {copies} of {lines} ({size(plan.carried_bytes)}):"
    reasons = Counter(entry.reason for entry in plan.live.carried)
    for reason, number in reasons.most_common():
        yield f"  {number:,}: {reason}"


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"  # noqa: PLR2004 - 3 digits


def nothing(plan: RotationPlan) -> str:
    """Return the sentence for a session that has no history to move."""
    sentence = f"Nothing to cut: {printable(plan.session)} has not been compacted {plan.since}."
    if plan.lacks is None:
        return sentence
    return (
        f"{sentence} A row in it continues one that may have been in segment {plan.lacks}, which "
        "is gone or cannot be read: a resume lacks the rows before it."
    )


def aside_plan(planned: Plan) -> Iterator[str]:
    """Yield what is going to happen."""
    where = planned.place
    yield (
        f"The archive of {printable(where.session)} ({render.size(planned.size)}) would be put "
        f"aside, whole: {_shown(where.archive)}"
    )
    if planned.is_gone:
        yield (
            "There is no live file: the archive holds all that is left of the session, perhaps as "
            f"{names.PACK} or in {names.ARCHIVED}/."
        )
        return
    yield f"The live file stays as it is: {_shown(where.live)}"
    if planned.waits:
        yield (
            f"{_shown(where.waiting)} moves with it: lines written to a replaced live file there "
            "since the last run, or later, will not reach the live file. `sessrotate run` moves "
            "them there first, if it can."
        )


def put_aside(planned: Plan, folder: Path) -> Iterator[str]:
    """Yield where everything is now, and how to go on."""
    where, path = planned.place, quoted(folder)
    yield f"It is now in {_shown(folder)}"
    yield f"To put it back: mv {path} {quoted(where.archive)}"
    yield f"To read it: sessrotate export --allow-gaps {path}"
    if not planned.is_gone:
        name = printable(where.session)
        yield f"To rotate the session again: sessrotate rotate --unsafe-adopt {name}"


def _shown(path: Path) -> str:
    return printable(str(path), 4096)
