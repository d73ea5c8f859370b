"""`sessrotate search`: what all sessions of the machine say."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct, field

from sessrotate import find, render, units
from sessrotate.cli import streams
from sessrotate.cli.options import Client, Project, client_of, flag, paths_of, whole
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
from sessrotate.render import phrases
from sessrotate.render import search as render_search
from sessrotate.reports import SessionInfo, Wanted, machine_search
from sessrotate.reports.machine_search import Made, Told

_NOT_FOUND = 1


def command(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORD...",
            help="What to look for: words in one record, in any order. Each is a Python regular "
            "expression (`re`); one with spaces, in quotes, is a phrase.",
        ),
    ],
    *,
    session: Annotated[
        str | None, typer.Option(metavar="SESSION", help="Only this session, with its agents.")
    ] = None,
    project: Project = None,
    client: Client = None,
    who: Annotated[
        str | None,
        typer.Option(
            metavar="WHO",
            autocompletion=lambda: list(phrases.VOICES),
            help="Only what WHO said: you; agent (the models); tools (their input and output).",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help=f"Only what was written since then: {units.MOMENTS} (UTC unless a zone is given), "
            f"or an age ({units.AGES}).",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only what was written until then; a day means its end."),
    ] = None,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Ignore case.")] = False,
    fixed: Annotated[
        bool,
        typer.Option("--fixed-string", "-F", help="Treat each WORD as plain text."),
    ] = False,
    context: Annotated[
        int,
        typer.Option(
            "--context",
            "-C",
            min=0,
            metavar="N",
            help="Also show N lines before and after each match.",
        ),
    ] = 0,
    most: Annotated[
        int | None,
        typer.Option(
            "--max-count",
            "-m",
            parser=whole(1),
            metavar="N",
            help="Stop after N hits; with -l or -c, after N sessions.",
        ),
    ] = None,
    names: Annotated[
        bool, typer.Option("--names", "-l", help="Print only the names of the sessions.")
    ] = False,
    count: Annotated[
        bool, typer.Option("--count", "-c", help="Print how many hits each session has.")
    ] = False,
    raw: Annotated[
        bool, flag("--raw", "Search the lines of the files as they are, with JSON's escapes.")
    ] = False,
    as_json: Annotated[
        bool,
        flag(
            "--json",
            "Print one JSON object per line: for each hit, or with -l or -c for each session.",
        ),
    ] = False,
) -> None:
    """Search all sessions of all clients, the newest first.

    Searches what people see: what was said, and the input and output of tools, in live files,
    archives, and agents' transcripts, compressed or not. Does not search long tool results that a
    client keeps in separate files. ^ and $ match at the start and end of each line, and accents
    match however they are written. Each hit comes with the command that shows it. The exit code is
    0 if something is found, and 1 if not.
    """
    if names and count:
        raise WrongUsageError("-l prints names and -c counts: choose one of them.")
    if who is not None and who not in phrases.VOICES:
        raise WrongUsageError(f"--who is one of: {', '.join(phrases.VOICES)}.")
    now = datetime.now(UTC)
    begin = None if since is None else _moment(since, now).begin
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else re.NOFLAG)
    query = Query(
        words=tuple(_word(each, flags, is_fixed=fixed, is_raw=raw) for each in words),
        who=phrases.speaker,
        is_raw=raw,
        around=context,
        since=begin,
        until=None if until is None else _moment(until, now).end,
        is_by=None if who is None else partial(phrases.is_by, who),
        is_brief=names,
    )
    wanted = Wanted(client=client_of(client), project=project, paths=paths_of(project), hidden=True)
    path = None if session is None else find.path_of(session)
    told = _Outcome(most=most)
    machine = machine_search.Machine(told.unread)
    canvas = streams.canvas()
    results = render_search.Results(
        machine.opened, machine.unopened, canvas, around=context, is_raw=raw
    )
    show = render_search.as_json if as_json else results.hit

    def found() -> Generator[Told]:
        rounds = machine.rounds() if path is None else [[*chain.from_iterable(machine.rounds())]]
        for known in rounds:
            sessions = known if path is None else machine_search.of_session(known, path)
            taken = [each for each in sessions if wanted.takes(each) and _is_recent(each, begin)]
            told.begun(known, taken, machine.left)
            yield from machine_search.found(taken, query, show, told.searched, machine.around)

    lists = "names" if names else "counts" if count else "hits"
    with closing(found()) as results_of_all:
        told.show(results_of_all, _Printer(results, lists, as_json=as_json))
    told.sum_up(counts=not names, is_for_programs=names or as_json)
    told.end(is_limited=bool(project or client or path))


def _word(text: str, flags: re.RegexFlag, *, is_fixed: bool, is_raw: bool) -> re.Pattern[str]:
    text = text if is_raw else select.composed(text)
    return select.expression(re.escape(text) if is_fixed else text, flags)


def _moment(text: str, now: datetime) -> units.Moment:
    found = units.moment(text, now)
    if found is None:
        raise WrongUsageError(
            f"{printable(text)} is not a time ({units.MOMENTS}) or an age ({units.AGES})."
        )
    return found


def _is_recent(entry: SessionInfo, begin: datetime | None) -> bool:
    return begin is None or max(entry.last_used, entry.modified) >= begin.timestamp()


class _Printer(Struct, frozen=True):
    """What is written of a session in which something is found: `hits`, `names` or `counts`."""

    results: render_search.Results
    lists: str
    as_json: bool

    def hit(self, info: SessionInfo, text: str, number: int, sessions: int) -> str:
        """Return what is written for the hit of this number in its session, of so many by now."""
        if self.lists == "hits":
            is_headed = number == 1 and not self.as_json
            gap = "\n" if sessions > 1 else ""
            return f"{gap}{self.results.heading(info)}{text}" if is_headed else text
        if self.lists == "names" and number == 1:
            if self.as_json:
                return render_search.session_as_json(info, None)
            return f"{self.results.name(info)}\n"
        return ""

    def count(self, info: SessionInfo, number: int) -> str:
        """Return what is written at the end of a session with so many hits."""
        if self.lists != "counts" or not number:
            return ""
        if self.as_json:
            return render_search.session_as_json(info, number)
        return self.results.count(info, number)


class _Outcome(Struct):
    """What is found, and what there was besides, which is told on standard error.

    `parents` are the sessions that paths belong to, `there` all of these, and `paths` what is
    searched, `parts` of it by now; `left` sessions come later. It stops at the `most` things to
    write.
    """

    most: int | None = None
    parents: dict[Path, Path] = field(default_factory=dict)
    there: set[Path] = field(default_factory=set)
    paths: set[Path] = field(default_factory=set)
    parts: int = 0
    left: int = 0
    hits: int = 0
    found: set[Path] = field(default_factory=set)
    is_stopped: bool = False
    pruned: int = 0
    unsearched: int = 0
    errors: list[SessrotateError] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    line: streams.PassingLine = field(default_factory=streams.PassingLine)

    def unread(self, path: str, reason: str) -> None:
        """Note a file or folder that cannot be read."""
        self.unreadable[path] = reason

    def begun(self, known: list[SessionInfo], taken: list[SessionInfo], left: int) -> None:
        """Note the sessions that are known, those of them that are searched, and what is left."""
        parents = machine_search.parents(known)
        self.there |= {*parents.values()}
        self.parents |= machine_search.parents(taken) | parents
        self.paths |= {each.path for each in taken}
        self.left = left

    def searched(self, done: int, total: int) -> None:
        """Show how many of all parts are searched; `done` and `total` are of one round."""
        self.parts += 1
        total += self.parts - done + self.left
        self.line.show(render_search.progress(self.parts, total, self.hits))

    def show(self, found: Iterator[Told], printer: _Printer) -> None:
        """Write hits as they come, and name at once what cannot be searched."""
        last: SessionInfo | None = None
        sessions = here = written = 0
        try:
            for info, each in found:
                here = here if info is last else 0
                text = ""
                match each:
                    case Made(what):
                        here += 1
                        sessions += here == 1
                        self.hits += 1
                        self.found.add(self.parents[info.path])
                        text = printer.hit(info, what, here, sessions)
                    case Problem(error):
                        self._note(info, error)
                    case _:
                        text = printer.count(info, here)
                        self.pruned += each.pruned
                        self.unsearched += each.unsearched
                last = info
                if text:
                    self._write(text)
                    written += 1
                    if written == self.most:
                        self.is_stopped = True
                        return
        finally:
            self.line.erase()

    def _write(self, text: str) -> None:
        self.line.erase()
        streams.write_data(text.encode(sys.stdout.encoding or "utf-8", "replace"))

    def _note(self, info: SessionInfo, error: SessrotateError) -> None:
        self.line.erase()
        self.unreadable.pop(str(info.path), None)
        streams.warn(render.located(printable(str(info.path)), str(error)))
        is_foreign = isinstance(error, NotASessionError)
        self.errors.append(DamagedError(str(error)) if is_foreign else error)

    def sum_up(self, *, counts: bool, is_for_programs: bool) -> None:
        """Write how much was found: below what people read, otherwise only for a terminal."""
        searched, there = len({self.parents[each] for each in self.paths}), len(self.there)
        told = render_search.sums(
            self.hits if counts else None,
            len(self.found),
            searched,
            there,
            self.most if self.is_stopped else None,
        )
        if self.hits and not is_for_programs:
            self._write(f"\n{told}\n")
        elif sys.stderr.isatty() or (not self.hits and searched < there):
            streams.warn(told)

    def end(self, *, is_limited: bool) -> None:
        """Tell the rest, and end with the exit code that stands for all of it.

        Where the search is limited to some sessions, what cannot be read elsewhere is not told.
        """
        paths = {*map(str, self.paths)} if is_limited else None
        hidden = find.hidden() if self.unreadable else {}
        for path, reason in self.unreadable.items():
            if paths is None or path in paths or path in hidden:
                streams.warn(render.unread(path, reason))
                if path not in hidden:  # nobody knows whether anything is there
                    self.errors.append(DamagedError(reason))
        if self.pruned:
            streams.warn(render_search.pruned(self.pruned))
        if self.unsearched:
            streams.warn(render_search.unsearched(self.unsearched))
        code = exit_code(self.errors) or (0 if self.hits else _NOT_FOUND)
        if code:
            raise typer.Exit(code)
