"""`sessrotate report`: what is big, and what a rotation would free."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from sessrotate import find, render
from sessrotate.cli import results, streams
from sessrotate.cli.options import Json, ManySessions, Quiet, flag, new_file, one_of
from sessrotate.clients.common import is_file
from sessrotate.errors import SessrotateError, StorageError, printable
from sessrotate.export import file_name
from sessrotate.render import report as render_report
from sessrotate.render import report_json
from sessrotate.reports import (
    MachineReport,
    SessionReport,
    UnreadSession,
    machine_report,
    session_report,
)
from sessrotate.reports.counting import Counts


def command(
    sessions: ManySessions = None,
    *,
    every: Annotated[
        bool,
        flag("--all", "Report on all sessions of all clients, and say which are worth rotating."),
    ] = False,
    kinds: Annotated[
        bool,
        flag(
            "--kinds",
            "Read every line, to show bytes by kind of line and by tool, copies, and the largest "
            "lines.",
        ),
    ] = False,
    as_json: Json = False,
    html: Annotated[
        Path | None,
        typer.Option(
            parser=new_file,
            metavar="FILE",
            help="Instead of printing text, write a page for a browser to this new file.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Show what takes up space in a session, and what rotating it would free.

    Each line is counted once, under the kind that makes up most of it. `report` changes
    nothing, so you can use it while a client is running the session.
    """
    one_of(sessions, every)
    if html is not None:
        results.check_file(html, "--html")
    if every:
        _all(kinds=kinds, as_json=as_json, html=html, quiet=quiet)
        return
    reports = [_one(name, kinds=kinds, quiet=quiet) for name in sessions or ()]
    if html is not None:
        _page(reports, html, quiet=quiet)
    if as_json:
        streams.write(render.as_json(report_json.sessions(reports)))
    elif html is None:
        for number, report in enumerate(reports):
            lines = render_report.session(report, streams.canvas())
            streams.write_lines(("", "", *lines) if number else lines)


def _one(name: str, *, kinds: bool, quiet: bool) -> SessionReport:
    path = find.path_of(name)
    size = path.stat().st_size if path.is_file() else 0
    with streams.progress("Reading", size, quiet=quiet) as progress:
        report = session_report.of_session(path, progress, kinds=Counts() if kinds else None)
    try:
        find.path_of(report.id)
    except SessrotateError:
        return session_report.by_path(report)
    return report


def _all(*, kinds: bool, as_json: bool, html: Path | None, quiet: bool) -> None:
    errors = machine_report.Errors(_complain)
    listed = machine_report.found(errors)
    size = machine_report.size(listed, kinds=kinds)
    with streams.progress("Reading", size, quiet=quiet) as progress:
        report = machine_report.of_machine(listed, progress, errors, kinds=kinds)
    if html is not None:
        _page(report, html, quiet=quiet)
    if as_json:
        streams.write_all(render.json_parts(report_json.machine(report)))
    elif html is None:
        streams.write_lines(render_report.machine(report, streams.canvas()))
    if errors.is_any:  # whatever it is: of all sessions, some could not be read
        is_only_hidden = {each.path for each in errors.unread} <= find.hidden().keys()
        raise typer.Exit(1 if is_only_hidden else StorageError.exit_code)


def _page(report: MachineReport | list[SessionReport], path: Path, *, quiet: bool) -> None:
    pages = _pages(report, path.parent) if isinstance(report, MachineReport) else {}
    pieces = report_json.page(report, time.time(), pages)
    results.to_file(path, pieces, "Writing", 0, quiet=quiet, option="--html")


def _pages(report: MachineReport, folder: Path) -> dict[str, str]:
    """Return the pages of sessions that `export --all` wrote into a folder, by their ids."""
    found: dict[str, str] = {}
    for each in report.sessions:
        name = file_name(each.id)
        files = (page for page in (f"{name}.html", f"{name}/index.html") if is_file(folder / page))
        if (page := next(files, None)) is not None:
            found[each.id] = page
    return found


def _complain(unread: UnreadSession) -> None:
    said = render.located(printable(unread.path), printable(unread.reason, 1000))
    streams.warn(said)
