"""`sessrotate setup`: a few questions, and everything is done by itself from then on."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from sessrotate import automation, clients, render, units
from sessrotate.automation import Automation, Part, findings
from sessrotate.cli import streams
from sessrotate.cli.options import DryRun, Yes, flag
from sessrotate.cli.schedule import tell_of_crontab
from sessrotate.errors import WrongUsageError, exit_code, printable
from sessrotate.job import config
from sessrotate.job.schedule import installed
from sessrotate.render import setup as render_setup
from sessrotate.system import in_use


def command(
    *,
    remove: Annotated[bool, flag("--remove", "Undo everything that `setup` has done.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Have sessrotate do its work automatically.

    It asks a few questions and explains each in a line: rotate sessions when they are compacted and
    when they end; tidy once a night; save old sessions before Claude Code deletes them, or at an
    earlier age; compress Codex sessions. It asks only about the clients that you have. It changes
    nothing else on this machine, and `setup --remove` undoes it.
    """
    parts = () if remove else automation.parts()
    if not (remove or parts):
        streams.message(
            "Nothing to set up: sessrotate only reads the sessions of the clients that are here. "
            "Run `sessrotate setup` again if you install Claude Code or Codex."
        )
        return
    chosen = frozenset(part.name for part in _chosen(parts, yes=remove or yes or dry_run))
    asks = "saving" in chosen and not (yes or dry_run)
    age = streams.given(automation.AGE_QUESTION, units.age) if asks else ""
    planned = automation.plan_removal() if remove else automation.plan(chosen, age)
    if dry_run:
        streams.write_all(f"{line}\n" for line in _difference(planned))
        streams.write_lines(render_setup.summary(planned))
        for _, error in planned.problems:
            streams.warn(error)
        raise typer.Exit(exit_code(error for _, error in planned.problems))
    was_scheduled = planned.is_scheduled
    failed = dict(automation.execute(planned))
    # Where the system cannot be told, cron can start it; whatever else failed is said.
    is_untold, line = "crontab -e" in str(failed.get("schedule", "")), ""
    if (given := planned.schedule) is not None:
        by_hand = not given.files and (remove or installed.installed() is None)
        line = given.line if by_hand or is_untold else ""
    is_changed = not (was_scheduled or "schedule" in failed)
    streams.write_lines(render_setup.done(planned, failed, line, is_rescheduled=is_changed))
    if planned.is_wanted and not remove:
        here = automation.present()
        streams.write_lines(render_setup.afterwards(planned, _running(), failed, here))
    if remove:
        _tell_what_stays(planned, line)
    else:
        for finding in findings.not_running(installed.installed()):
            if finding.detail != planned.saving and not (line and finding.kind == "schedule"):
                streams.message(finding.detail)
    errors = [each for name, each in failed.items() if name != "schedule" or not is_untold]
    for each in errors:
        streams.warn(each)
    raise typer.Exit(exit_code(errors))


def _tell_what_stays(planned: Automation, line: str) -> None:
    """Say what still does something by itself after a removal."""
    if not line:
        tell_of_crontab()
    change = planned.settings
    if change is not None and change.is_nothing and (others := installed.others()):
        streams.message(
            f"{printable(str(change.path), 1000)} stays as it is: another folder of Claude Code "
            f"has a schedule that uses it ({printable(others[0], 1000)})."
        )


def _chosen(parts: Sequence[Part], *, yes: bool) -> Sequence[Part]:
    """Return the parts that somebody wants; all of them with `yes`."""
    if yes:
        return parts
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise WrongUsageError(
            "Cannot ask without a terminal: pass --yes for everything, or preview with --dry-run."
        )
    return [part for part in parts if _is_wanted(part)]


def _is_wanted(part: Part) -> bool:
    streams.ask(f"{part.question}\n  {part.explained}")
    return streams.answered("[Y/n]", otherwise=True)


def _difference(planned: Automation) -> Iterator[str]:
    """Yield the changes to files as `diff` shows them; a new file's from what it explains."""
    for change in planned.changes:
        is_new = change is planned.settings and change.before is None
        if is_new:
            name = printable(str(change.path), 1000)
            yield f"A new {name} with every setting explained, and:"
        before = config.commented().encode() if is_new else change.before
        yield from render.difference(change.path, before, change.after)
    if planned.schedule is not None and not planned.removes:
        for path, now, then in planned.schedule.changed:
            yield from render.difference(path, now, then)


def _running() -> int:
    """Return how many clients say that they run."""
    files = clients.in_place().files
    folders = files.registries(files.projects_folder().parent)
    return len({*in_use.running(folders)})
