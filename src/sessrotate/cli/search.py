"""`sessrotate search`: what all sessions of the machine say."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct, field

from sessrotate import find, units
from sessrotate.cli import streams
from sessrotate.cli.options import Client, Project, client_of, flag, paths_of
from sessrotate.errors import (
    DamagedError,
    NotASessionError,
    SessrotateError,
    WrongUsageError,
    exit_code,
    printable,
)
from sessrotate.reading import select
from sessrotate.reading.search import Problem, Query
from sessrotate.render import common, phrases
from sessrotate.render import search as render_search
from sessrotate.reports import machine_search
from sessrotate.reports.machine_search import Shown
from sessrotate.reports.session_info import SessionInfo, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.reports.machine_search import Told

_NOT_FOUND = 1


def command(
    regex: Annotated[
        str,
        typer.Argument(
            metavar="REGEX", help="What to look for: a regular expression of Python's `re`."
        ),
    ],
    *,
    project: Project = None,
    client: Client = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help=f"Only what was written since then: {units.MOMENTS} (UTC unless a zone is given), "
            f"or an age ({units.AGES}).",
        ),
    ] = None,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", "-i", help="Ignore the difference of case.")
    ] = False,
    fixed: Annotated[
        bool,
        typer.Option("--fixed-string", "-F", help="REGEX is no expression, but the text itself."),
    ] = False,
    context: Annotated[
        int,
        typer.Option(
            "--context",
            "-C",
            min=0,
            metavar="N",
            help="Also show N lines before and behind each that matches.",
        ),
    ] = 0,
    raw: Annotated[
        bool, flag("--raw", "Search the lines of the files as they are, escapes and all.")
    ] = False,
    as_json: Annotated[bool, flag("--json", "Print one JSON object a line for each hit.")] = False,
) -> None:
    """Search all sessions of all clients, the newest first.

    What people see is searched: what was said, and the texts that tools were given and gave, in
    live files, archives, and the transcripts of agents, compressed or not. Long results of tools
    that a client keeps in files of their own are not searched. ^ and $ match at each line. With
    each hit stands the command that shows it. The exit code is 0 if something is found, and 1 if
    not.
    """
    now = datetime.now(UTC)
    begin = None if since is None else _moment(since, now)
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else re.NOFLAG)
    query = Query(
        pattern=select.expression(re.escape(regex) if fixed else regex, flags),
        who=phrases.speaker,
        is_raw=raw,
        around=context,
        since=begin,
    )
    wanted = Wanted(client=client_of(client), project=project, paths=paths_of(project), hidden=True)
    told = _Outcome()
    known = machine_search.known(told.unread)
    sessions = [each for each in known if wanted.takes(each) and _is_recent(each, begin)]
    results = render_search.Results(known, streams.canvas(), around=context)
    show = render_search.as_json if as_json else results.hit
    with closing(machine_search.found(sessions, query, show)) as found:
        told.show(found, None if as_json else results.heading)
    if len(sessions) < len(known):
        told.left_out = f"{len(sessions):,} of {common.count(len(known), 'session')}"
    told.end({str(each.path) for each in sessions} if project or client else None)


def _moment(text: str, now: datetime) -> datetime:
    found = units.moment(text, now)
    if found is None:
        raise WrongUsageError(
            f"{printable(text)} is not a time ({units.MOMENTS}) or an age ({units.AGES})."
        )
    return found.begin


def _is_recent(entry: SessionInfo, begin: datetime | None) -> bool:
    return begin is None or max(entry.last_used, entry.modified) >= begin.timestamp()


class _Outcome(Struct):
    """What there was besides hits, which is told on standard error."""

    hits: int = 0
    pruned: int = 0
    unsearched: int = 0
    left_out: str = ""
    errors: list[SessrotateError] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)

    def unread(self, path: str, reason: str) -> None:
        """Note a file or folder that cannot be read."""
        self.unreadable[path] = reason

    def show(self, found: Iterator[Told], heading: Callable[[SessionInfo], str] | None) -> None:
        """Write hits as they come, and name at once what cannot be searched."""
        encoding = sys.stdout.encoding or "utf-8"
        last: SessionInfo | None = None
        for info, each in found:
            match each:
                case Shown(text):
                    if heading is not None and info is not last:
                        text = "\n" * (last is not None) + heading(info) + text
                    last = info
                    self.hits += 1
                    streams.write_data(text.encode(encoding, "replace"))
                case Problem(error):
                    self.unreadable.pop(str(info.path), None)
                    streams.warn(f"{printable(str(info.path))}: {error}")
                    is_foreign = isinstance(error, NotASessionError)
                    self.errors.append(DamagedError(str(error)) if is_foreign else error)
                case _:
                    self.pruned += each.pruned
                    self.unsearched += each.unsearched

    def end(self, paths: set[str] | None) -> None:
        """Tell the rest, and end with the exit code that stands for all of it."""
        hidden = find.hidden() if self.unreadable else {}
        for path, reason in self.unreadable.items():
            if paths is None or path in paths or path in hidden:
                streams.warn(common.unread(path, reason))
                if path not in hidden:  # nobody knows whether anything is there
                    self.errors.append(DamagedError(reason))
        if self.left_out and not self.hits:
            streams.warn(f"Nothing found in {self.left_out}: the options leave the others out.")
        if self.pruned:
            streams.warn(render_search.pruned(self.pruned))
        if self.unsearched:
            streams.warn(render_search.unsearched(self.unsearched))
        code = exit_code(self.errors) or (0 if self.hits else _NOT_FOUND)
        if code:
            raise typer.Exit(code)
