"""What `setup` says of what it would do, has done, and leaves to a person. Pure.

Rule: a thing is called on or off only if it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from sessrotate.errors import printable
from sessrotate.render import count

if TYPE_CHECKING:
    from sessrotate.automation import Automation

FOR_AGENTS: Final = (
    "For details from before a compaction, never open a session's .jsonl: run `sessrotate "
    "search WORDS --project .`. Above each match it prints a `sessrotate read` command: run the "
    "command above the match that you need, and append `| head -n 100`."
)
"""The line for the file that an agent always reads, as the guide has it."""

_ALWAYS_READ: Final = {"claude": "CLAUDE.md", "codex": "AGENTS.md", "gemini": "GEMINI.md"}


def summary(planned: Automation) -> Iterator[str]:
    """Yield what would be done besides the changes to files that are shown already."""
    if planned.is_nothing:
        yield "Nothing to change."
    if planned.schedule is not None and not planned.is_scheduled:
        verb = "remove" if planned.removes else "write"
        told = "" if planned.removes else f", and notify {planned.schedule.system}"
        for path, _ in planned.schedule.files:
            yield f"Would {verb} {printable(str(path), 1000)}{told}."
        if not planned.removes:
            yield "If that cannot be reached, you get a line for cron instead, and no file."
    if planned.schedule is not None and not planned.schedule.files and not planned.removes:
        yield "No supported scheduler was found: you would get a line for cron."

    if planned.saving:
        yield planned.saving


def done(
    planned: Automation, failed: Collection[str], line: str, *, is_rescheduled: bool
) -> Iterator[str]:
    """Yield what was done; `failed` are the names of the parts that were not.

    `line` is for cron, where the nightly run is wanted and could not be had in another way.
    """
    if not (planned.changes or failed or line or is_rescheduled):
        if planned.removes or not planned.is_wanted:
            yield "Nothing to change."
        else:
            yield "Everything you chose is set up already."
        return
    for name, change, what in (
        ("hook", planned.hook, "rotation when sessions are compacted and when they end"),
        ("settings", planned.settings, planned.does),
    ):
        if change is not None and not change.is_nothing and name not in failed and what:
            state = "off" if planned.removes else "on"
            yield f"{what[0].upper()}{what[1:]}: {state} ({printable(str(change.path), 1000)})."
    if planned.schedule is not None and is_rescheduled:
        state = "off" if planned.removes else f"on ({planned.schedule.system})"
        yield f"The nightly run: {state}."
    if line and planned.removes:
        yield "If you added a line for sessrotate with `crontab -e`, remove it there."
    elif line:
        yield "No scheduler can be reached. For the nightly run, add this line with `crontab -e`:"
        yield f"  {printable(line, 2000)}"
        if planned.saving and "settings" not in failed:
            yield "Until that line is there, nothing is saved from the client's clean-up."


def afterwards(
    planned: Automation, running: int, failed: Collection[str], here: Iterable[str]
) -> Iterator[str]:
    """Yield what is left to a person; `running` is how many clients run now, `here` those there."""
    if planned.hook is not None and not planned.hook.is_nothing and running:
        verb = "runs" if running == 1 else "run"
        yield (
            f"{count(running, 'client')} {verb} now. Those older than 2.1.200 see the hook only "
            "after a restart."
        )
    if planned.saving and "settings" not in failed:
        yield planned.saving
    files = " and ".join(file for name, file in _ALWAYS_READ.items() if name in here)
    yield f"To tell the agent where its history is, put this line in {files}:"
    yield f"  {FOR_AGENTS}"
    yield "`sessrotate` shows how things stand; `sessrotate setup --remove` undoes this."
