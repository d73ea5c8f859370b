"""What `run` and `config show` print. Pure.

Rule: a dry run and the run itself show the same report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from sessrotate import render
from sessrotate.errors import SessrotateError, printable
from sessrotate.in_place.outcome import Result
from sessrotate.job.config import KEYS, literal, written
from sessrotate.render import count, size
from sessrotate.render import prune as render_prune
from sessrotate.render.outcomes import Seen, Shown

if TYPE_CHECKING:
    from sessrotate.job.config import Loaded
    from sessrotate.job.run import Report, Stage

_ITEMS: Final = ("step", "session", "size", "result")
_SETTINGS: Final = ("setting", "value", "from")


def shown(report: Report, loaded: Loaded, seen: Seen) -> Shown:
    """Return what is shown of a run, or of its plan."""
    lines = plan(report, loaded, seen) if report.dry_run else [summary(report)]
    document = as_json(report, loaded)
    return Shown(lines, document, warnings=failures(report), code=report.code)


def plan(report: Report, loaded: Loaded, seen: Seen) -> Iterator[str]:
    """Yield what a run would do to each session, the plan of the pruning, and the sum."""
    rows = [
        (
            step,
            printable(each.session, 40),
            size(each.freed),
            printable(
                each.text if each.result == "nothing to do" else each.detail or each.result, 1000
            ),
        )
        for step, each in report.outcomes
    ]
    yield _source(loaded)
    yield from render.plain_table(_ITEMS, rows, left={*_ITEMS} - {"size"})
    if report.planned is not None:
        yield from render_prune.plan(render_prune.Going(report.planned), seen)
    if off := [stage.step.name for stage in report.stages if not stage.is_on]:
        yield f"Not configured: {', '.join(off)}."
    # Whoever looks for a session that was put away should not be surprised.
    if report.saving or "archive" in report.changing:
        yield report.saving or render.PUT_AWAY
    yield summary(report)


def summary(report: Report) -> str:
    """Return the line that sums up what a run did, or would do."""
    parts = [_part(stage, dry_run=report.dry_run) for stage in report.stages]
    text = ", ".join(part for part in parts if part)
    if report.dry_run:
        text = f"Would {text or 'change nothing'}"
        if report.planned is not None:
            text += " (not counting segments it would archive first and could then prune)"
    unusual: tuple[Result, ...] = ("in use", "failed")
    rest = [f"{many:,} {became}" for became in unusual if (many := report.count(became))]
    if many := len(report.passed_over()):
        why = "" if report.dry_run else " (`sessrotate run --dry-run` says why)"
        rest.append(f"{many:,} left {'as it is' if many == 1 else 'as they are'}{why}")
    line = "; ".join(filter(None, (text or "nothing to do", ", ".join(rest))))
    return f"{line[0].upper()}{line[1:]}."


def _part(stage: Stage, *, dry_run: bool) -> str:
    many = stage.count("done", "planned")
    if not many:
        return ""
    verb = stage.step.would if dry_run else stage.step.done
    about = "about " if dry_run else ""
    gained = f"{about}{size(stage.gained)} freed on disk" if stage.gained > 0 else ""
    figures = ", ".join(filter(None, (size(stage.bytes) if stage.bytes else "", gained)))
    return f"{verb} {count(many, 'session')}{f' ({figures})' if figures else ''}"


def failures(report: Report) -> list[str | SessrotateError | None]:
    """Return a sentence for each session that failed or was in use, and for a doubted clock.

    What may hide sessions is named too, and why the log lacks a line.
    """
    nothing = "Nothing was pruned, and nothing was deleted, archived or compressed for its age."
    doubt = [f"{nothing} {report.doubt}"] if report.doubt else []
    hidden = [render.unread(*each) for each in report.hidden.items()]
    failed = [
        f"{step} {printable(each.session)}: {each.error}".replace(" :", ":")
        for step, each in report.outcomes
        if each.error is not None
    ]
    return [*hidden, *doubt, *failed, report.unlogged]


def as_json(report: Report, loaded: Loaded) -> Iterator[str]:
    """Yield the same for programs."""
    document: dict[str, Any] = {
        "dry_run": report.dry_run,
        "code": report.code,
        "config": str(loaded.path) if loaded.is_there else None,
        "clock": report.doubt or None,
        "steps": [
            {
                "name": stage.step.name,
                "configured": stage.is_on,
                "bytes": stage.bytes,
                "disk_bytes_gained": stage.gained,
                "sessions": [
                    {
                        "session": each.session,
                        "result": each.result,
                        "bytes": each.freed,
                        "detail": each.detail,
                        "code": 0 if each.error is None else each.error.exit_code,
                    }
                    for each in stage.outcomes
                ],
            }
            for stage in report.stages
        ],
    }
    if report.planned is not None:
        document["prune"] = render_prune.decisions(report.planned)
    yield render.as_json(document)


def settings(loaded: Loaded) -> Iterator[str]:
    """Yield the settings in force, and where each value comes from."""
    found, rows = loaded.settings, []
    for key in KEYS:
        value, line = found.value(key), found.lines.get(key.title)
        said = "-" if value is None else literal(written(value))
        rows.append((key.title, said, "default" if line is None else f"line {line}"))
    yield _source(loaded)
    yield from render.plain_table(_SETTINGS, rows, left=set(_SETTINGS))


def _source(loaded: Loaded) -> str:
    name = printable(str(loaded.path), 1000)
    return f"Settings: {name}{'' if loaded.is_there else ' (no such file: the defaults apply)'}"


def settings_json(loaded: Loaded) -> Iterator[str]:
    """Yield the same for programs, in bytes and seconds; `given` is as written in the file."""
    tables: dict[str, dict[str, Any]] = {key.table: {} for key in KEYS}
    for key in KEYS:
        value, line = loaded.settings.value(key), loaded.settings.lines.get(key.title)
        origin = "default" if line is None else "file"
        tables[key.table][key.name] = {
            "value": value,
            "given": written(value),
            "from": origin,
            "line": line,
        }
    document = {"file": str(loaded.path), "is_there": loaded.is_there, "settings": tables}
    yield render.as_json(document)
