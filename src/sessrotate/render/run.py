"""What `run` and `config show` say. Pure.

Rule: pure text out. A dry run and the run itself show the same report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sessrotate.errors import printable
from sessrotate.job.config import parse as config
from sessrotate.job.config.keys import literal
from sessrotate.render import common
from sessrotate.render import prune as render_prune
from sessrotate.render.common import count, size

if TYPE_CHECKING:
    from sessrotate.job.config.file import Loaded
    from sessrotate.job.run import Report, Stage

_ITEMS: Final = ("step", "session", "size", "what")
_SETTINGS: Final = ("setting", "value", "from")


def plan(report: Report, loaded: Loaded) -> str:
    """Return what a run would do: what each session would come to, the pruning, and the sum."""
    rows = [
        (stage.step.name, printable(item.session, 40), size(item.bytes), printable(item.said, 1000))
        for stage in report.stages
        for item in stage.items
    ]
    table = common.plain_table(_ITEMS, rows, left={*_ITEMS} - {"size"}) if rows else ""
    pruning = ""
    if report.planned is not None:
        shown = render_prune.Shown(report.planned, 0, is_due=False)
        pruning = render_prune.plan(shown, is_short=False)
    off = [stage.step.name for stage in report.stages if not stage.is_on]
    told = f"Not configured: {', '.join(off)}.\n" if off else ""
    return f"{_source(loaded)}\n{table}{pruning}{told}{summary(report)}\n"


def summary(report: Report) -> str:
    """Return the line that says what a run came to, or would."""
    parts = [_part(stage, dry_run=report.dry_run) for stage in report.stages]
    said = ", ".join(part for part in parts if part) or "nothing"
    if report.dry_run:
        said = f"Would {said}" if said != "nothing" else "Would change nothing"
        if report.planned is not None:
            said += " (what it rotates and then could prune not counted)"
    elif said == "nothing":
        said = "Nothing was to be done"
    rest = [
        f"{number:,} {became}"
        for became in ("in use", "failed")
        if (number := sum(stage.counts[became] for stage in report.stages))
    ]
    line = f"{said}{'; ' if rest else ''}{', '.join(rest)}."
    return line[0].upper() + line[1:]


def _part(stage: Stage, *, dry_run: bool) -> str:
    many = stage.counts["done"]
    if not many:
        return ""
    verb = stage.step.would if dry_run else stage.step.done
    return f"{verb} {count(many, 'session')}{f' ({size(stage.bytes)})' if stage.bytes else ''}"


def failures(report: Report) -> list[str]:
    """Return a sentence for each session that failed or was in use."""
    return [
        f"{stage.step.name} {printable(item.session)}: {item.error}".replace(" :", ":")
        for stage in report.stages
        for item in stage.items
        if item.error is not None
    ]


def as_json(report: Report, loaded: Loaded) -> str:
    """Return the same for programs."""
    document: dict[str, Any] = {
        "dry_run": report.dry_run,
        "code": report.code,
        "config": str(loaded.path) if loaded.is_there else None,
        "steps": [
            {
                "name": stage.step.name,
                "configured": stage.is_on,
                "bytes": stage.bytes,
                "sessions": [
                    {
                        "session": item.session,
                        "result": item.became,
                        "bytes": item.bytes,
                        "detail": item.said,
                        "code": 0 if item.error is None else item.error.exit_code,
                    }
                    for item in stage.items
                ],
            }
            for stage in report.stages
        ],
    }
    if report.planned is not None:
        document["prune"] = [
            {
                "session": entry.segment.session.rpartition("/")[2],
                "index": entry.segment.index,
                "bytes": entry.segment.bytes,
                "keep": entry.keep,
                "reasons": list(entry.reasons),
            }
            for entry in report.planned.decisions
        ]
    return common.as_json(document)


# ── settings ─────────────────────────────────────────────────────────────────────────────────


def settings(loaded: Loaded) -> str:
    """Return what is in force, and where each value comes from."""
    rows = [
        (
            entry.key.title,
            "-" if entry.value is None else literal(entry.given),
            config.origin(entry),
        )
        for entry in loaded.settings.entries
    ]
    return f"{_source(loaded)}\n{common.plain_table(_SETTINGS, rows, left=set(_SETTINGS))}"


def _source(loaded: Loaded) -> str:
    name = printable(str(loaded.path), 1000)
    return f"Settings: {name}{'' if loaded.is_there else ' (not there: the defaults are in force)'}"


def settings_json(loaded: Loaded) -> str:
    """Return the same for programs."""
    document = {
        "file": str(loaded.path),
        "is_there": loaded.is_there,
        "settings": config.as_document(loaded.settings),
    }
    return common.as_json(document)
