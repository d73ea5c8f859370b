"""What `sessrotate` alone prints: where things stand, a line a fact, and what to type next. Pure.

Rule: each line ends in something to do, where there is something to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from sessrotate import render, units
from sessrotate.errors import INTERRUPTED, printable
from sessrotate.render import CLIENTS, count, size, time

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.job.run_log import LastRun
    from sessrotate.reports.next_steps import OnDisk
    from sessrotate.status import Status

_MOST: Final = 3
"""Problems that are shown: the rest is for `doctor`."""

_MUCH: Final = 1 << 20
"""Bytes of the disk that belong to no session, and are worth being told."""

_NEXT: Final = """\
Look      list · report SESSION · read SESSION · search WORDS
Shrink    tidy{more}
Undo      restore SESSION
Automate  setup
`sessrotate --help` lists all commands."""


def lines(status: Status) -> Iterator[str]:
    """Yield the status, a line a fact, and the commands that are most useful."""
    missing = [session for each in status.clients for session in each.missing]
    found = [each for each in status.clients if each.bytes or each.aside or each.others >= _MUCH]
    on_disk = "; ".join(map(_on_disk, found)) or "no sessions found"
    yield f"On disk    {on_disk}{_others(status.others)}"
    yield from _to_gain(status, is_wrong=bool(missing))
    yield f"Automatic  {_by_itself(status)}"
    yield f"Last run   {_last(status.last)}"
    wrong = [*_wrong(status, missing)]
    yield from wrong[:_MOST]
    if len(wrong) > _MOST:
        yield f"           and {len(wrong) - _MOST:,} more: `sessrotate doctor` shows all"
    yield ""
    yield _NEXT.format(more=" · rotate SESSION · archive SESSION" if _is_rotated(status) else "")


def _is_rotated(status: Status) -> bool:
    """Tell whether this machine may have sessions that are rotated: others' are compressed."""
    having = [each.client for each in status.clients if each.infos]
    return not having or "claude" in having


def _to_gain(status: Status, *, is_wrong: bool) -> Iterator[str]:
    """Yield what would free how much, and the command: what loses nothing first."""
    usable = () if status.failing else status.steps  # what fails comes first
    first = next((step for step in usable if step.command), None)
    if status.gain:
        then = "" if first is None else f"; then {render.freed(first)}"
        gain = f"without any loss: about {size(status.gain)} from {count(status.worth, 'session')}"
        yield f"Can free   {gain}{then}"
        yield "Command    sessrotate tidy"
        return
    verb = "stays" if status.kept == 1 else "stay"
    kept = f"; {count(status.kept, 'session')} that you restored {verb} whole"
    if first is not None:
        yield f"Can free   {render.freed(first)}{kept if status.kept else ''}"
        yield f"Command    {first.command}"
        return
    if status.failing:
        yield f"Can free   nothing now{kept if status.kept else ''}"
        yield "Command    sessrotate tidy --dry-run   says why"
        return
    tidy = "" if is_wrong or status.steps else ": all is tidy"
    yield f"Can free   nothing{kept if status.kept else tidy}"
    yield "Command    sessrotate report --all   shows what is large"


def _wrong(status: Status, missing: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong, a line each, the worst first."""
    if missing:
        yield f"Missing    {_missing(missing)}"
    gone = [session for each in status.clients for session in each.gone]
    if gone:
        them = "it" if len(gone) == 1 else "each"
        what = f"only the archive of {_named(gone)} is left: `sessrotate restore SESSION` brings"
        yield f"Gone       {what} {them} back"
    if status.failing:
        yield f"Failing    {_named(status.failing)}: `sessrotate tidy --dry-run` says why"
    if status.doomed:
        sessions = count(status.doomed, "session")
        one = "`sessrotate archive SESSION` saves one now"
        saves = "" if status.wrong else f": `sessrotate setup` has them saved in time, {one}"
        yield f"Deleted    Claude Code deletes {sessions} within a week{saves}"
    yield from (f"Problem    {printable(each, 1000)}" for each in status.wrong)


def _others(folders: Sequence[Path]) -> str:
    """Return the folders of the client that are not counted."""
    named = units.some([printable(str(path)) for path in folders])
    return f"; not counted: {named} (see CLAUDE_CONFIG_DIR)" if folders else ""


def _on_disk(found: OnDisk) -> str:
    name = CLIENTS.get(found.client, found.client)
    what = "archives" if found.client == "claude" else "compressed"
    archived = f", {size(found.archived)} of it {what}" if found.archived else ""
    aside = f", {size(found.aside)} put aside" if found.aside else ""
    others = f", and {size(found.others)} of no session" if found.others >= _MUCH else ""
    sessions = count(found.sessions, "session")
    return f"{name} {size(found.bytes)} ({sessions}{archived}){aside}{others}"


def _missing(sessions: Sequence[str]) -> str:
    what = "archive" if len(sessions) == 1 else "archives"
    return f"the {what} of {_named(sessions)}: `sessrotate doctor` says what to do"


def _named(sessions: Sequence[str]) -> str:
    named = units.some([printable(each, 60) for each in sessions])
    return f"{count(len(sessions), 'session')} ({named})"


def _by_itself(status: Status) -> str:
    if not (status.has_hook or status.has_schedule):
        is_any = _is_rotated(status) or any(each.client == "codex" for each in status.clients)
        return f"nothing{' yet; `sessrotate setup` changes that' if is_any else ' to do'}"
    parts = {  # whether it is there, and of use
        "rotation at compactions and session ends": (status.has_hook, _is_rotated(status)),
        "the nightly run": (status.has_schedule, True),
    }
    missing = [name for name, (is_there, is_of_use) in parts.items() if is_of_use > is_there]
    there = ", ".join(name for name, (is_there, _) in parts.items() if is_there)
    return f"{there}{'; `sessrotate setup` adds ' + missing[0] if missing else ''}"


def _last(last: LastRun | None) -> str:
    if last is None:
        return "no `tidy` or `run` so far"
    return f"{printable(time(last.at))}, {_ended(last)}"


def _ended(last: LastRun) -> str:
    if last.code == 0:
        return "done"
    if last.code == INTERRUPTED:
        return "interrupted: `sessrotate tidy` continues it"
    failed = f", failed for {_named(last.failed)}" if last.failed else ""
    return f"ended with {last.code}{failed}"
