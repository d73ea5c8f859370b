"""Which sessions `restore --run` brings back, and which it leaves alone.

Promise: what the log says of a run, and how its sessions stand now → what is wanted of each.

Rule: only what that run did, and only where nothing was done since, by a later run or anybody. A
log may say anything: its ids are compared with those of sessions that are there, and never become a
path.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients
from sessrotate.archive import owner, place
from sessrotate.archive.place import Place
from sessrotate.errors import DamagedError, SessrotateError, printable
from sessrotate.in_place import fleet
from sessrotate.in_place.outcome import Outcome, failure
from sessrotate.job import run_log
from sessrotate.job.run_log import CAN_BE_UNDONE, UNDONE, Change, Measure, Run
from sessrotate.retention import rollouts
from sessrotate.retention.restore import WantedBack

STAYS: Final = {
    "heal": "the rows that came back stay; nothing is lost",
    "trash": "what was freed from the trash cannot come back",
}
"""What cannot, or need not, be undone, and what is said of it."""


class Undo(Struct, frozen=True):
    """What is wanted of one session, and what is said besides.

    `noted` is the line that says in the log that a run was undone, None if none is.
    """

    where: Place
    wanted: WantedBack
    said: str = ""
    noted: Change | None = None


def plan(run: Run, noted: Iterable[Change]) -> list[Undo | Outcome]:
    """Return what undoes a run, a row for each of its sessions in their order; change nothing.

    An outcome says why a session is left alone. `noted` is all that the log has of any run.
    """
    lines: dict[str, list[Change]] = {session: [] for session in run.sessions}
    for each in noted:
        if each.session in lines:
            lines[each.session].append(each)
    there = _places(lines.keys())
    return [_undo(run, there.get(session), each) for session, each in lines.items()]


def _places(sessions: Collection[str]) -> dict[str, Place]:
    """Return the places of those of these sessions that are there, by their ids."""
    files = clients.in_place().files
    lives = (owner.of(path) for path in files.sessions() if files.session_of(path.name) in sessions)
    found = (*place.archives(), *lives, *rollouts.every())
    return {where.session: where for where in found if where and where.session in sessions}


def _undo(run: Run, where: Place | None, lines: Sequence[Change]) -> Undo | Outcome:
    own = [each for each in lines if each.run == run.number]
    done = [each for each in own if each.action != UNDONE]
    noted = replace(done[-1], action=UNDONE, segments=(), then=lines[-1].then)
    if len(own) > len(done):
        return _left(where, "undone already")
    if where is None:
        return _left(None, f"{printable(noted.session)} no longer exists")
    try:
        return _judged(where, done, lines, noted)
    except SessrotateError as error:
        return failure(where, error)


def _judged(
    where: Place, done: Sequence[Change], lines: Sequence[Change], noted: Change
) -> Undo | Outcome:
    actions = {each.action for each in done}
    stays = [said for action, said in STAYS.items() if action in actions]
    if not actions - STAYS.keys():
        return _left(where, *stays)
    now = run_log.standing(where)
    changed = _changed(_expected(done[-1].then, noted.then), now)
    later = _later(done[-1], lines)
    if later is not None and changed != "restored":
        first = f"undo that first, `sessrotate restore --run {later.run}`"
        return _left(where, f"{CAN_BE_UNDONE[later.action]} since by run {later.run}: {first}")
    is_ours = not rollouts.is_one(where)
    if changed and is_ours and owner.without_archive(where.live) is not None:
        raise DamagedError(
            f"Its archive {printable(str(where.archive))} is missing: put it back, then try again."
        )
    if changed:
        by_name = f"; `sessrotate restore {printable(where.session)}` restores it"
        is_any = now.is_away or now.segments
        return _left(where, f"{changed} since: left alone{by_name if is_any else ''}")
    pruned = (each.segments for each in done if each.action == "prune")
    wanted = WantedBack(
        away=bool(actions & {"archive", "compress"}),
        pruned=frozenset(number for numbers in pruned for number in numbers),
        whole="rotate" in actions,
    )
    return Undo(where, wanted, "; ".join((*_earlier(done), *stays)), noted=noted)


def _later(done: Change, lines: Sequence[Change]) -> Change | None:
    """Return the last that another run did to a session since, and that can still be undone."""
    undone = {each.run for each in lines if each.action == UNDONE}
    since = lines[lines.index(done) + 1 :]
    found = (each for each in since if each.run not in {done.run, *undone})
    return next((each for each in reversed([*found]) if each.action in CAN_BE_UNDONE), None)


def _expected(then: Measure | None, newest: Measure | None) -> Measure | None:
    """Return how a session stands if nobody but runs changed it, and each later one was undone.

    The archive is as the run left it `then`; the live file, which each undoing writes anew, is as
    the `newest` line says. None if that could not be seen.
    """
    if then is None or newest is None:
        return None
    return replace(newest, segments=then.segments, pruned=then.pruned)


def _left(where: Place | None, *said: str) -> Outcome:
    size = 0 if where is None else fleet.live_size(where)
    return Outcome(where, "nothing to do", size=size, detail="; ".join(said))


def _earlier(done: Iterable[Change]) -> Iterator[str]:
    """Say how much of a session was archived before the run: that is undone with it."""
    first = next(
        (entry.segments[0] for entry in done if entry.action == "rotate" and entry.segments), 0
    )
    if first:
        yield f"{first:,} of them were archived before that run"


def _changed(then: Measure | None, now: Measure) -> str:
    """Say what became of a session since, empty if nothing did; a client may have gone on in it."""
    if then is None:
        return ""
    signs = (
        (now.is_away and not then.is_away, "archived"),
        (then.is_away and not now.is_away, "brought back"),
        (now.segments < then.segments, "restored"),
        (now.segments > then.segments, "rotated"),
        (now.pruned > then.pruned, "pruned"),
        (now.pruned < then.pruned, "brought back from the trash"),
        (then.inode and not now.inode, "deleted"),
        (then.inode != now.inode or now.size < then.size, "replaced"),
    )
    return next((became for is_it, became in signs if is_it), "")
