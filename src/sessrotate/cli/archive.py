"""`sessrotate archive`: move whole sessions out of their client's folder."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from msgspec.structs import replace

from sessrotate import find
from sessrotate.archive import restored
from sessrotate.archive.place import Place
from sessrotate.cli import archives, driver, streams
from sessrotate.cli.options import DryRun, Json, ManySessions, Quiet, Wait, Yes, aged, one_of
from sessrotate.errors import printable
from sessrotate.in_place import obstacles
from sessrotate.in_place.obstacles import NoRoomError
from sessrotate.in_place.outcome import Outcome, each, failure
from sessrotate.job import run_log
from sessrotate.render import count, outcomes
from sessrotate.render.outcomes import Shown
from sessrotate.retention import put_away


def command(
    sessions: ManySessions = None,
    *,
    older_than: Annotated[
        float | None, aged("Archive every session unused for at least this long, e.g. 90d.")
    ] = None,
    wait: Wait = 10.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Move whole sessions to their archive: live file, agents' transcripts and tool results.

    Archived sessions are compressed, and out of reach of the client's lists and clean-up. `read`,
    `stitch`, `verify` and `export` still find them by id, and `restore` puts them back. A session
    that a client is running stays where it is.

    If you name one session, `archive` acts at once. For several, it shows the plan and asks first.
    """
    one_of(sessions, older_than is not None, "a SESSION or pass --older-than AGE")
    if older_than is None:
        wanted = [find.live_of(find.path_of(name)) for name in sessions or []]
    else:
        now = time.time()
        wanted = put_away.wanted(older_than, None, now, now)
    # What was put away says less of itself.
    seen = archives.seen(() if as_json else wanted)
    number = itertools.count(1)

    def act(where: Place) -> Outcome:
        if len(wanted) > 1 and not quiet and not as_json:
            streams.message(f"{next(number)} of {len(wanted)}: {printable(where.session)}")
        with streams.progress("Compressing", 0, quiet=quiet) as progress:
            return _archived(where, wait, progress)

    is_bulk = older_than is not None or len(wanted) > 1
    name = "archive" if older_than is None else "archive --older-than"
    kept = run_log.Journal(name, is_kept=is_bulk and not dry_run)

    def shown(found: Sequence[Outcome], *, dry_run: bool) -> Shown:
        told = outcomes.shown(
            outcomes.PUT_AWAY, found, seen, dry_run=dry_run, in_use_counts=bool(sessions)
        )
        error = found[0].error if sessions and len(wanted) == 1 else None
        lines = itertools.chain(told.lines, _restored(by_age=older_than is not None))
        return replace(told, lines=lines if error is None else (), warnings=[error or kept.failure])

    def do() -> Shown:
        found = kept.noting("archive", each(wanted, act, "put the session away"))
        return shown([*found], dry_run=False)

    is_seen = dry_run or (is_bulk and not yes)
    planned = _plans(wanted) if is_seen else (Outcome(where, "planned") for where in wanted)
    options = driver.Options(dry_run=dry_run, yes=not is_seen, as_json=as_json)
    driver.carry_out(shown([*planned], dry_run=dry_run or bool(wanted)), do, options)


def _restored(*, by_age: bool) -> Iterator[str]:
    """Say which sessions stay however old they are."""
    if stay := restored.whole(restored.marked()) if by_age else 0:
        stays, them = ("stays", "it") if stay == 1 else ("stay", "them")
        yield f"{count(stay, 'session')} that you restored {stays}, unless you name {them}."


def _archived(where: Place, wait: float, progress: Callable[[int], None]) -> Outcome:
    """Archive one session, and return what became of it."""
    before = put_away.measured(where)
    put_away.check_room(where, before)
    try:
        freed = put_away.put_away(where, wait, progress)
    except put_away.NotCompressedError as error:
        return replace(failure(where, error), freed=error.moved)
    gained = before - put_away.measured(where)
    if not (freed or gained):
        return _nothing(where)
    return Outcome(where, "done", freed, put_away.stored(where), gained, disk=before)


def _plans(wanted: Sequence[Place]) -> Iterator[Outcome]:
    """Yield what would become of each session; the room that those before it free counts."""
    to_come = 0
    near: dict[Path, list[str]] = {}

    def plan(where: Place) -> Outcome:
        nonlocal to_come
        expected, disk = put_away.expected(where, near), put_away.measured(where, near)
        if not (expected.moved or expected.gained):
            return _nothing(where)
        try:
            obstacles.check_room(where.config, expected.need, to_come)
        except NoRoomError as error:  # it is moved, and stays plain
            return replace(failure(where, error), freed=expected.moved)
        to_come += max(0, expected.gained)
        size = max(0, (expected.moved or put_away.stored(where)) - max(0, expected.gained))
        return Outcome(where, "planned", expected.moved, size, gained=expected.gained, disk=disk)

    return each(wanted, plan, "put the session away")


def _nothing(where: Place) -> Outcome:
    size = put_away.stored(where)
    return Outcome(where, "nothing to do", size=size, detail="it was put away already")
