"""`sessrotate export`: the history for people or programs, or a part, each record once."""

from __future__ import annotations

import codecs
import itertools
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final

import typer

from sessrotate import find, fs, render, safe_text
from sessrotate.cli import results, streams
from sessrotate.cli.options import (
    AllowGaps,
    At,
    ManySessions,
    Project,
    Quiet,
    Since,
    Turns,
    Until,
    choice,
    flag,
    one_of,
    paths_of,
)
from sessrotate.errors import SessrotateError, WrongUsageError, exit_code, printable, storage
from sessrotate.export import Exported, Scope, file_name
from sessrotate.reading import part
from sessrotate.reading.session import Session, open_session
from sessrotate.reports import Wanted, in_order, listing

FORMATS: Final = {"jsonl": ".jsonl", "markdown": ".md", "html": ".html"}
"""How files of each end; each is a module of `sessrotate.export` with a function `pieces`."""

_BY_ENDING: Final = {
    **{ending: to for to, ending in FORMATS.items()},
    ".markdown": "markdown",
    ".htm": "html",
}

_LARGE: Final = 200_000_000
"""Bytes of history of which a page has about 100 MB: more than browsers like."""

_TOO_LARGE: Final = (
    "A page of {size} of history will be about half that size, and a browser may not open it. "
    "--split makes a page for each segment; --turns, --since, --until or --at export a part."
)


def command(
    sessions: ManySessions = None,
    *,
    every: Annotated[
        bool,
        flag("--all", "Export every session that `list` shows, with an index, into a new folder."),
    ] = False,
    project: Project = None,
    to: Annotated[
        str | None,
        choice(
            "--format",
            FORMATS,
            "The original lines for programs (the default), or text for people. A name after -o "
            "that ends with .md or .html sets the format, too.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Write to this file. With several sessions, or if PATH is a folder or ends with "
            "/, write one file per session into it.",
        ),
    ] = None,
    turns: Turns = None,
    since: Since = None,
    until: Until = None,
    at: At = None,
    split: Annotated[
        bool,
        flag("--split", "With html, write a folder: a page for each segment, and an index."),
    ] = False,
    all_branches: Annotated[
        bool,
        flag(
            "--all-branches",
            "With markdown and html, also show rewound branches, and mark them.",
        ),
    ] = False,
    allow_gaps: AllowGaps = False,
    quiet: Quiet = False,
) -> None:
    """Write the history of sessions, or a part of it, each record once.

    Leaves out records that a compaction wrote again: `export` keeps the first record with each
    uuid, and the first of identical lines that have no uuid. Also leaves out what a fork repeats
    from its parent, if you name the parent before the fork. One session goes to standard output.
    Several go to the current folder, each to a file named after its session; existing files are
    never overwritten. If a segment is missing or changed, the command leaves no file for that
    session, writes the others, and exits with 74. If a client itself cut out a part, the command
    only reports that.

    --format markdown shows the number of each turn with its prompt. markdown and html leave out
    rewound branches, and say how many records they left out, and where. jsonl has all branches.
    """
    one_of(sessions, every or project is not None, "a SESSION or pass --all or --project")
    to = to or _BY_ENDING.get(Path(output or "").suffix.lower(), "jsonl")
    if all_branches and to == "jsonl":
        raise WrongUsageError("--format jsonl always has all branches: leave out --all-branches.")
    scope = Scope(part.of(turns, since, until), None if at is None else part.spot(at), all_branches)
    if split:
        _check_split(to, output)
    path = None if output is None else Path(output)
    if not sessions:
        _all(project, scope, to, path, split=split, allow_gaps=allow_gaps, quiet=quiet)
        return
    is_named_so = output is not None and output.endswith(tuple(filter(None, (os.sep, os.altsep))))
    is_folder = len(sessions) > 1 or is_named_so or (path is not None and path.is_dir())
    is_output = not (is_folder or split) and output in {None, "-"}
    if is_output and streams.terminal_width() is not None and to == "html":
        raise WrongUsageError(
            "This would print html on the terminal. Name a file with -o, or pipe the output into "
            "another command."
        )

    def export(named: Path, scope: Scope) -> Scope:
        on_gap = streams.gaps(with_turns=turns is not None) if allow_gaps else None
        with open_session(named, on_gap=on_gap) as session:
            for said in session.cuts:
                streams.warn(said)
            if is_output:
                _print(session, scope, to)
            else:
                target = path or Path()
                if is_folder or (split and path is None):
                    target /= file_name(session.id) + ("" if split else FORMATS[to])
                said = _write(session, scope, to, target, split=split, quiet=quiet)
                if not quiet:
                    streams.message(said)
            _tell_left_out(scope, session.id, to)
            return scope.after(session.id)

    # Each once, whatever it is called: the second would find the first one's file.
    _each([*{path.resolve(): path for path in map(find.path_of, sessions)}.values()], export, scope)


def _each(paths: list[Path], export: Callable[[Path, Scope], Scope], scope: Scope) -> None:
    """Export sessions, one after the other; what keeps one from it is named, and the rest done."""
    errors: list[SessrotateError] = []
    for path in paths:
        try:
            scope = export(path, scope.begun())
        except SessrotateError as error:
            if len(paths) == 1:
                raise
            streams.warn(f"{printable(str(path))}: {error}")
            errors.append(error)
    if errors:
        raise typer.Exit(exit_code(errors))


def _all(
    project: str | None,
    scope: Scope,
    to: str,
    folder: Path | None,
    *,
    split: bool,
    allow_gaps: bool,
    quiet: bool,
) -> None:
    """Export all sessions, of a project if one is named, each whole, and an index of them."""
    if folder is None or str(folder) == "-":
        raise WrongUsageError("All sessions go to a folder: name a new one with -o FOLDER.")
    if scope.at is not None:
        raise WrongUsageError("--at is a place in one session: name that session.")
    results.check_folder(folder)
    wanted = Wanted(project=project, paths=paths_of(project))
    found = in_order(filter(wanted.takes, listing.sessions(on_unread=_warn_unread)), "date")
    if not found:
        raise WrongUsageError("No session matches: `sessrotate list` shows the sessions.")
    written: list[Exported] = []
    taken = {"index"}
    errors: list[SessrotateError] = []
    on_gap = streams.gaps(with_turns=False) if allow_gaps else None
    for number, entry in enumerate(found, 1):
        name = next(each for each in _names(file_name(entry.id)) if each not in taken)
        taken.add(name)
        target, here = folder / (name if split else name + FORMATS[to]), scope.begun()
        lead = f"{number:,} of {len(found):,}"
        try:
            with open_session(entry.path, on_gap=on_gap) as session:
                _write(session, here, to, target, split=split, quiet=quiet, doing=lead)
        except SessrotateError as error:
            streams.warn(f"{printable(str(entry.path))}: {error}")
            errors.append(error)
            continue
        if here.is_empty and not split:
            fs.remove_files(folder, [target.name])
        else:
            file = f"{target.name}/index.html" if split else target.name
            used = render.moment(entry.last_used).isoformat()
            told = (entry.client, entry.title.text, entry.project, used)
            size = entry.bytes + (entry.archived_bytes or 0)
            written.append(Exported(file, entry.name, *told, size))
    index = folder / f"index{FORMATS[to]}"
    pieces = import_module(f"sessrotate.export.{to}").index(written)
    with storage("write the output"):
        fs.create_folder(folder)
    results.to_file(index, pieces, "Writing", 0, quiet=quiet)
    if not quiet:
        many = render.count(len(written), "session")
        streams.message(f"Wrote {many}; start at {printable(str(index), 1000)}.")
    if errors:
        raise typer.Exit(exit_code(errors))


def _names(name: str) -> Iterator[str]:
    """Yield a name, and others for the sessions after the first that are called so."""
    yield name
    yield from (f"{name}-{number}" for number in itertools.count(2))


def _warn_unread(path: str, reason: str) -> None:
    streams.warn(render.unread(path, reason))


def _print(session: Session, scope: Scope, to: str) -> None:
    pieces = import_module(f"sessrotate.export.{to}").pieces(session, scope)
    for piece in pieces if streams.terminal_width() is None else _harmless(pieces):
        streams.write_data(piece)


def _check_split(to: str, output: str | None) -> None:
    """Raise WrongUsageError if --split makes no sense with the other options."""
    if to != "html":
        raise WrongUsageError("--split needs --format html.")
    if output is None or Path(output).is_dir():
        return
    if output == "-" or os.path.lexists(output):
        name = "standard output" if output == "-" else printable(output, 1000)
        raise WrongUsageError(f"--split writes a folder, and {name} is not one: name one with -o.")


def _write(
    session: Session,
    scope: Scope,
    to: str,
    target: Path,
    *,
    split: bool,
    quiet: bool,
    doing: str = "Exporting",
) -> str:
    """Write a session to a file, or with `split` to a folder; return what was written."""
    export = import_module(f"sessrotate.export.{to}")
    size = sum(info.bytes or 0 for info in session.segments)
    if not split:
        if to == "html" and size > _LARGE and scope.is_all:
            streams.warn(_TOO_LARGE.format(size=render.size(size)))
        if not target.parent.is_dir():
            with storage("write the output"):
                fs.create_folder(target.parent)
        done = results.to_file(target, export.pieces(session, scope), doing, size, quiet=quiet)
        where = printable(str(target), 1000)
    else:
        results.check_folder(target)
        done = _write_pages(target, export.pages(session, scope), size, quiet=quiet)
        where = f"the pages that {printable(str(target / 'index.html'), 1000)} leads to"
    return f"Wrote {where} ({render.size(done)})."


def _write_pages(
    folder: Path, pages: Iterator[tuple[str, Iterator[bytes]]], size: int, *, quiet: bool
) -> int:
    """Write pages to a new or an empty folder, all or none; return how many bytes that is."""
    written, done, is_new = list[str](), 0, not folder.is_dir()
    try:
        with storage("write the output"):
            fs.create_folder(folder)
        for name, pieces in pages:
            done += results.to_file(folder / name, pieces, "Exporting", size, quiet=quiet)
            written.append(name)
    except BaseException:
        fs.remove_files(folder, written)
        if is_new:
            fs.remove_folder(folder)
        raise
    return done


def _tell_left_out(scope: Scope, session: str, to: str) -> None:
    """Report that nothing was in a part, and how many copies were left out."""
    copies = scope.copies
    if scope.is_empty:
        streams.warn(f"This part of {printable(session)} is empty.")
    if copies.left_out and (to == "jsonl" or scope.before):
        streams.warn(f"Left out {render.count(copies.left_out, 'repeated record')}.")


def _harmless(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the text without control characters, which a terminal might obey."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        yield safe_text.cleaned(decoder.decode(piece)).encode()
