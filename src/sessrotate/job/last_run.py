"""Which sessions `restore --last-run` brings back, and which it leaves alone.

Promise: what the journal says of a run, and how its sessions stand now → what is wanted of each.

Rule: only what that run did, and only where nothing was done since. A journal may say anything:
its ids are compared with those of sessions that are there, and never become a path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate.archive import owner, place
from sessrotate.clients.claude import client as claude
from sessrotate.errors import DamagedError, SessrotateError, printable
from sessrotate.in_place import fleet
from sessrotate.in_place.outcome import Outcome, failure
from sessrotate.job import journal
from sessrotate.retention.restore import Wanted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from sessrotate.archive.place import Place
    from sessrotate.job.journal import Entry, Run, Standing

STAYS: Final = {
    "heal": "the rows that came back stay, nothing is lost by that",
    "trash": "what was freed from the trash cannot come back",
}
"""What cannot, or need not, be undone, and what is said of it."""


class Undo(Struct, frozen=True):
    """What is wanted of one session, and what is said besides; or that it is `left` alone."""

    where: Place | None
    wanted: Wanted | None = None
    said: str = ""
    left: Outcome | None = None


def plan(run: Run) -> list[Undo]:
    """Return what undoes a run, a row for each of its sessions in their order; change nothing."""
    done: dict[str, list[Entry]] = {}
    for entry in run.entries:
        done.setdefault(entry.session, []).append(entry)
    there = _places(done.keys())
    return [_undo(there.get(session), each) for session, each in done.items()]


def _places(sessions: Collection[str]) -> dict[str, Place]:
    """Return the places of those of these sessions that are there, by their ids."""
    lives = (
        owner.of(path) for path in claude.sessions() if claude.session_of(path.name) in sessions
    )
    found = (*place.archives(), *lives)
    return {where.session: where for where in found if where and where.session in sessions}


def _undo(where: Place | None, done: Sequence[Entry]) -> Undo:
    actions = {entry.action for entry in done}
    stays = [said for action, said in STAYS.items() if action in actions]
    name = printable(done[0].session)
    if where is None:
        said = f"{name} is not there any more"
        return Undo(None, left=Outcome(None, "nothing to do", detail=said))
    if not actions - STAYS.keys():
        return _left(where, *stays)
    try:
        now = journal.standing(where)
        changed = _changed(done[-1].then, now)
    except SessrotateError as error:
        return Undo(where, left=failure(where, error))
    if changed and owner.without_archive(where.live) is not None:
        lost = (
            f"Its archive {printable(str(where.archive))} is missing: put it back, then try again."
        )
        return Undo(where, left=failure(where, DamagedError(lost)))
    if changed:
        by_name = f", `sessrotate restore {name}` by its name"
        is_any = now.is_away or now.segments
        return _left(where, f"{changed} since: left alone{by_name if is_any else ''}")
    pruned = (entry.segments for entry in done if entry.action == "prune")
    wanted = Wanted(
        away="archive" in actions,
        pruned=frozenset(number for numbers in pruned for number in numbers),
        whole="rotate" in actions,
    )
    return Undo(where, wanted, "; ".join((*_earlier(done), *stays)))


def _left(where: Place, *said: str) -> Undo:
    size, detail = fleet.live_size(where), "; ".join(said)
    return Undo(where, left=Outcome(where, "nothing to do", size=size, detail=detail))


def _earlier(done: Iterable[Entry]) -> Iterator[str]:
    """Say how much of a session was archived before the run: that is undone with it."""
    first = next(
        (entry.segments[0] for entry in done if entry.action == "rotate" and entry.segments), 0
    )
    if first:
        yield f"{first:,} of them were archived before that run"


def _changed(then: Standing | None, now: Standing) -> str:
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
        (then.archive != now.archive, "replaced"),
    )
    return next((became for is_it, became in signs if is_it), "")
