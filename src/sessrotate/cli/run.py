"""`sessrotate run`: the scheduled job."""

from __future__ import annotations

import time

from sessrotate.cli import archives, driver
from sessrotate.cli.options import Config, DryRun, Json, Quiet
from sessrotate.job import config as config_file
from sessrotate.job import run
from sessrotate.render import run as render_run


def command(
    *,
    config: Config = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Do everything that the settings say, for all sessions on this machine.

    Finish interrupted work, rotate large sessions, compress Codex sessions, prune archives, and
    empty the trash, as the settings say. `config init` writes a settings file; without one, `run`
    deletes only what has passed its grace period: segments that you pruned, and archives of
    sessions that you restored. `schedule install` makes the system start it.

    `run` skips sessions that are in use, for the next run to handle, and does not count them as
    failures. The exit code is that of the worst failure; 75 means that another run is in progress.
    Each run adds a line to a log.
    """
    loaded = config_file.read(config)
    do = run.plan if dry_run else run.execute
    report = do(loaded.settings, time.time(), driver.progress(quiet=quiet))
    pruning = report.planned if dry_run and not as_json else None
    seen = archives.seen(each.where for each in (pruning.holdings if pruning else ()))
    driver.end(render_run.shown(report, loaded, seen), as_json=as_json)
