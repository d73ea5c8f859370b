"""`sessrotate tidy`: plan, show, ask, do, and say what the disk has gained."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

from msgspec.structs import replace

from sessrotate import clients, find, fs
from sessrotate.archive import place, restored
from sessrotate.archive.place import Place
from sessrotate.cli import archives, driver
from sessrotate.cli.options import Config, DryRun, Json, ManySessions, Quiet, Yes, sized
from sessrotate.in_place import gain
from sessrotate.job import config as config_file
from sessrotate.job import run
from sessrotate.job.config import Settings
from sessrotate.job.job import Agreed, Scope
from sessrotate.job.run import Report
from sessrotate.render import tidy as render_tidy
from sessrotate.render.outcomes import Seen, Shown
from sessrotate.render.tidy import Tidied
from sessrotate.reports import next_steps
from sessrotate.retention import prune, rollouts


def command(
    sessions: ManySessions = None,
    *,
    need: Annotated[
        int | None,
        sized("Stop once this much disk space is freed, e.g. 5G. The largest sessions come first."),
    ] = None,
    config: Config = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Get disk space back, and lose nothing.

    Rotate each session whose rotation frees 1 MiB or more, compress Codex sessions unused for 7
    days, and apply the rules of your settings, if you have any. Without rules, `tidy` deletes only
    what has passed its grace period: segments that you pruned, and archives of sessions that you
    restored. `tidy` shows its plan and asks first; `sessrotate run` does what the settings say
    without asking.

    With SESSION, tidy only the sessions that you name, however little that frees. `tidy` leaves
    alone sessions that a client is running: close them, or use `rotate --live`.
    """
    loaded = config_file.read(config)
    named = _named(sessions or ())
    settings, scope = loaded.settings.for_tidying, Scope(named, need or None, asks=True)
    if named is not None:
        rotate = replace(settings.rotate, min_gain=0)
        settings = replace(settings, rotate=rotate, codex=replace(settings.codex, compress_after=0))
    shown = driver.progress(quiet=quiet)
    before = _measured()
    plan = run.plan(settings, time.time(), shown, scope)
    about = sum(stage.gained for stage in plan.stages)
    planned = Tidied(plan, before, about, _free(before), need, is_named=named is not None)
    if dry_run or not (yes and plan.changing):  # or nobody sees it
        planned = _with_the_rest(planned, plan)

    def do() -> Shown:
        done = _with_those_in_use(_done(settings, scope, plan, quiet=quiet), plan)
        gained = sum(before.values()) - sum(_measured().values())
        tidied = replace(planned, report=done, gained=gained, free_after=_free(before))
        return render_tidy.shown(_with_the_rest(tidied, plan), Seen(now=time.time()))

    largest = () if as_json else planned.giving[: render_tidy.MOST]
    options = driver.Options(dry_run=dry_run, yes=yes, as_json=as_json)
    driver.carry_out(render_tidy.shown(planned, archives.changed(largest)), do, options)


def _named(sessions: Sequence[str]) -> frozenset[Place] | None:
    """Return the sessions that are named, None if none is."""
    if not sessions:
        return None
    return frozenset(rollouts.meant(find.path_of(name)) for name in sessions)


def _done(settings: Settings, scope: Scope, planned: Report, *, quiet: bool) -> Report:
    """Carry out what was shown, and nothing for sessions that were not.

    What would fail is tried, too: the others may make room for it, and the log has it then.
    """
    pruning = (planned.planned or prune.NOTHING).of(_planned(planned, "prune", or_failed=True))
    places = {
        "archive": _planned(planned, "archive", or_failed=True),
        "compress": _planned(planned, "compress", or_failed=True),
        "trash": _planned(planned, "trash"),
    }
    agreed = Agreed(places, pruning, planned.dues)
    scope = replace(scope, only=_planned(planned, or_failed=True), agreed=agreed)
    return run.execute(settings, time.time(), driver.progress(quiet=quiet), scope, command="tidy")


def _planned(report: Report, *steps: str, or_failed: bool = False) -> frozenset[Place]:
    """Return the sessions for which a plan has something to do in these steps; none means in any.

    With `or_failed`, also those for which a step would fail.
    """
    results = {"planned", "failed"} if or_failed else {"planned"}
    found = (each for step, each in report.outcomes if not steps or step in steps)
    return frozenset(each.where for each in found if each.where and each.result in results)


def _with_those_in_use(done: Report, planned: Report) -> Report:
    """Return what was done, and with it the sessions that the plan had found in use."""
    stages = [
        replace(
            stage,
            outcomes=(*stage.outcomes, *(each for each in was.outcomes if each.result == "in use")),
        )
        for stage, was in zip(done.stages, planned.stages, strict=True)
    ]
    return replace(done, stages=tuple(stages), hidden=planned.hidden)


def _with_the_rest(tidied: Tidied, planned: Report) -> Tidied:
    """Return the same with what all clients' sessions take, and what else would free some."""
    clients = tuple(next_steps.of_clients(place.archives()))
    outcomes = (each for _, each in planned.outcomes)
    left = next_steps.left_alone(restored.marked())
    steps = next_steps.after(outcomes, clients, time.time(), left)
    return replace(tidied, clients=clients, steps=steps)


def _measured() -> dict[str, int]:
    """Return how many bytes of the disk the sessions that tidying makes smaller take, by client."""
    return {
        clients.in_place().files.NAME: gain.measured_all(),
        clients.cold().FORMAT.NAME: rollouts.measured_all(),
    }


def _free(taken: dict[str, int]) -> int | None:
    """Return how many bytes are free on the disk of the client whose sessions take most."""
    codex = clients.cold().FORMAT
    is_codex = taken[codex.NAME] > taken[clients.in_place().files.NAME]
    return fs.free_bytes(codex.sessions_folder() if is_codex else place.root().parent)
