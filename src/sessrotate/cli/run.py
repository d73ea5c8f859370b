"""`sessrotate run`: the scheduled job."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from sessrotate.cli import archives, streams
from sessrotate.cli.in_place import progress
from sessrotate.cli.options import Config, DryRun, Json, Quiet
from sessrotate.job import run
from sessrotate.job.config import file as config_file
from sessrotate.render import run as render_run

if TYPE_CHECKING:
    from sessrotate.job.config.file import Loaded
    from sessrotate.job.run import Report


def command(
    *,
    config: Config = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Do everything that is configured, for all sessions of this machine.

    Finish what was interrupted, rotate large sessions, compress those of Codex, prune archives, and
    empty the trash, as the settings say. `config init` writes a settings file; without one, nothing
    is removed but what was pruned before. `schedule install` has the system start it.

    A session that is in use is left for the next run, and is not a failure. The exit code is that
    of the worst failure; 75 means that another run is in progress. Each run adds a line to a log.
    """
    loaded = config_file.read(config)
    do = run.plan if dry_run else run.execute
    report = do(loaded.settings, time.time(), progress(quiet=quiet))
    if as_json:
        streams.write(render_run.as_json(report, loaded))
    else:
        streams.write(_plan(report, loaded) if dry_run else f"{render_run.summary(report)}\n")
    for sentence in render_run.failures(report):
        streams.warn(sentence)
    if report.unlogged is not None:
        streams.warn(report.unlogged)
    raise typer.Exit(report.code)


def _plan(report: Report, loaded: Loaded) -> str:
    holdings = report.planned.holdings if report.planned is not None else ()
    return render_run.plan(report, loaded, archives.seen(each.where for each in holdings))
