"""`sessrotate read`: what a resume of a session sends, or its whole history."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from msgspec.structs import replace

from sessrotate import clients, render
from sessrotate.cli import results, streams
from sessrotate.cli.options import (
    AllowGaps,
    At,
    Quiet,
    Session,
    Since,
    Turns,
    Until,
    counted,
    flag,
)
from sessrotate.errors import WrongUsageError
from sessrotate.parsing import Record
from sessrotate.reading import paired, part, select
from sessrotate.reading.part import Part, Within
from sessrotate.reading.session import Session as Opened
from sessrotate.reading.session import open_session
from sessrotate.render import conversation

if TYPE_CHECKING:
    from sessrotate.reading import Viewed

BATCH: Final = 64 * 1024
"""Bytes to collect before writing; the first record, and what a search finds, go out at once."""

NARROWEST: Final = 40
"""Columns that a line is given at least, however narrow the terminal."""

_CALLED: Final = {
    "sidechains": ("record", " of agents"),
    "meta": ("record", " of the client"),
    "attachments": ("attachment", ""),
    "thinking": ("record", " with thinking"),
}
"""What one record is called that is hidden by default, by the words of --include."""

_TOLD: Final = 64
"""Records between two looks at the progress bar."""


Format = Literal["text", "jsonl", "markdown"]
"""What `read` prints."""


def command(
    session: Session,
    *,
    output: Annotated[
        Format,
        typer.Option(
            "--format", help="Text for people, the original lines byte for byte, or Markdown."
        ),
    ] = "text",
    history: Annotated[bool, flag("--history", "Show everything, across all segments.")] = False,
    segment: Annotated[
        list[int] | None, counted("Show only this segment. Can be repeated.", least=0)
    ] = None,
    at: At = None,
    since: Since = None,
    until: Until = None,
    grep: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help="Show only matches, each with its segment, byte offset and lines. Searches what "
            "people and models said, and the input and output of tools, but no hidden text.",
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORDS",
            help="Also show what is hidden: sidechains (agents), meta (what the client wrote "
            "itself), tools (in full, not one line each), thinking, attachments. Commas separate "
            "the words.",
        ),
    ] = None,
    turns: Turns = None,
    brief: Annotated[
        bool,
        flag(
            "--brief", "Show only the prompt of each turn, one line for each tool, and the answer."
        ),
    ] = False,
    allow_gaps: AllowGaps = False,
    quiet: Quiet = False,
) -> None:
    """Show what a client sends when it resumes a session, or all of its history.

    A client sends the conversation, in its order, without rewound branches. --include sidechains
    also shows what agents said in the session's own file, at the place where they said it; to show
    an agent's own transcript file, you need no --include. --history and --segment show all lines,
    and mark those that cannot be parsed; --format jsonl prints each line as it is.

    On a terminal, $PAGER (default: less) shows the text.
    """
    if history and segment:
        raise WrongUsageError("--history shows all segments: leave out --history or --segment.")
    place = None if at is None else part.spot(at)
    if place is not None and (history or segment):
        raise WrongUsageError(
            "--at shows everything that follows: leave out --history and --segment."
        )
    wanted = part.of(turns, since, until)
    choice = _choice(output, wanted, grep, include, brief=brief)
    if place is not None and place.character is not None:
        if choice.brief or choice.grep or choice.include or not wanted.is_all:
            raise WrongUsageError(
                "--at with a third number shows one record: leave that number out."
            )
        choice = replace(choice, include=None if choice.include is None else select.EVERYTHING)
    on_gap = streams.gaps(with_turns=turns is not None) if allow_gaps else None
    with open_session(session, on_gap=on_gap) as opened:
        is_agents = opened.client == clients.in_place().files.NAME
        is_agents = is_agents and clients.in_place().beside.is_agent(opened.path.name)
        if is_agents and choice.include is not None:  # all of it is a sidechain
            choice = replace(choice, include=choice.include | {"sidechains"})
        read = segment or [opened.segments[-1].index]
        read = read if place is None else [*range(place.segment, opened.newest + 1)]
        infos = (info for info in opened.segments if history or info.index in read)
        total = sum(info.bytes or 0 for info in infos)
        # Only where the result goes into a file: a pager or `| less` shares the terminal.
        hidden = quiet or not streams.is_file()
        with streams.progress("Reading", total, quiet=hidden) as progress:
            if place is not None:
                records = part.from_place(opened, place, are_lines=output == "jsonl")
            else:
                # With agents' records, which are counted where they are not shown.
                agents = is_agents or choice.include is not None
                records = _records(opened, segment, history=history, with_agents=agents)
                if output != "jsonl":
                    records = _opened(opened, opened.said(records))
            records = _watched(records, progress)
            for said in opened.cuts if history or segment or place else ():
                streams.warn(said)
            is_sent = not (history or segment or place)
            character = None if place is None else place.character
            _show(opened, records, choice, output, character, quiet=quiet, is_sent=is_sent)


def _choice(
    output: Format, wanted: Part, grep: str | None, include: list[str] | None, *, brief: bool
) -> select.Choice:
    if include and (brief or output == "jsonl"):
        why = "--brief shows a fixed selection" if brief else "--format jsonl hides nothing"
        raise WrongUsageError(f"{why}: leave out --include.")
    return select.Choice(
        part=wanted,
        include=None if output == "jsonl" else select.included(include or ()),
        brief=brief,
        grep=None if grep is None else select.expression(grep, re.MULTILINE),
    )


def _records(
    session: Opened, segments: list[int] | None, *, history: bool, with_agents: bool
) -> Iterator[Record]:
    if segments:
        return chain.from_iterable(session.segment(index) for index in sorted(set(segments)))
    if history:
        return session.history()
    return session.conversation(with_agents=with_agents)


def _opened(session: Opened, records: Iterator[Record]) -> Iterator[Record]:
    """Yield the records; where they begin inside of a compaction's line, that line before them."""
    first = next(records, None)
    if first is None:
        return
    if first.is_part:
        opening = next(session.segment(first.segment))
        view = session.view(opening)
        if view is not None and view.is_boundary:
            yield opening
    yield first
    yield from records


def _watched(records: Iterator[Record], progress: Callable[[int], None]) -> Iterator[Record]:
    done = 0
    for number, record in enumerate(records):
        yield record
        done += record.size + 1
        if number % _TOLD == 0:
            progress(done)


def _show(
    session: Opened,
    records: Iterator[Record],
    choice: select.Choice,
    output: Format,
    character: int | None,
    *,
    quiet: bool,
    is_sent: bool,
) -> None:
    """Print the records; `is_sent` is whether they are what a resume sends, and no more.

    Of a text, what stands around the `character` is shown if there is one.
    """
    shown = unsearched = 0
    hidden: Counter[str] = Counter()

    def not_searched(_record: Record) -> None:
        nonlocal unsearched
        unsearched += 1

    def hide(word: str) -> None:
        hidden[word] += 1

    within = Within(choice.part)
    if not is_sent and (choice.part.turns or output == "markdown"):
        within = Within(choice.part, part.turns_of(session))
    items = select.chosen(
        records,
        session.view,
        choice,
        not_searched,
        reader=session.reader,
        hidden=hide,
        within=within,
    )
    with results.paged() as write:
        pieces = _pieces(session, items, choice, output, within)
        if character is not None and output == "text":
            viewed = ((each, session.view(each)) for each in records)
            pieces = _encoded(conversation.excerpt(viewed, character, _style()))
        for piece in _batches(pieces, choice):
            write(piece)
            shown += 1
    if unsearched and not quiet:
        count = render.count(unsearched, "line")
        streams.warn(f"{count} longer than 8 MiB could not be searched.")
    left_out = _left_out(choice, hidden, is_empty=not shown, is_sent=is_sent)
    if left_out and not quiet:
        streams.warn(left_out)


def _left_out(choice: select.Choice, hidden: Counter[str], *, is_empty: bool, is_sent: bool) -> str:
    """Return what is not shown, and how to see it; empty if that is nothing."""
    nothing = "There is nothing to show."
    if choice.grep or not choice.part.is_all:
        within = " in what a resume sends: --history searches everything" if is_sent else ""
        nothing = f"Nothing matches{within}."
    told = [nothing] if is_empty else []
    if choice.brief:  # who asks for that knows what else there is, unless there is nothing
        return " ".join([*told, "Without --brief, there may be more."]) if is_empty else ""
    words = [word for word in _CALLED if hidden[word]]
    if words:
        counted = ", ".join(_counted(word, hidden[word]) for word in words)
        told.append(f"Hidden: {counted}. --include {','.join(words)} shows them.")
    return " ".join(told)


def _counted(word: str, number: int) -> str:
    one, which = _CALLED[word]
    return render.count(number, one) + which


def _batches(pieces: Iterator[bytes], choice: select.Choice) -> Iterator[bytes]:
    """Yield the pieces joined into larger ones, but the first one at once."""
    held: list[bytes] = []
    size, enough = 0, 1
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= enough:
            yield b"".join(held)
            held.clear()
            # A match must not wait until there are more.
            size, enough = 0, 1 if choice.grep is not None else BATCH
    if held:
        yield b"".join(held)


def _style(*, whole_tools: bool = False) -> conversation.Style:
    columns = streams.terminal_width()
    return conversation.Style(
        width=max(NARROWEST, columns or conversation.WIDEST),
        colour=streams.colours(),
        whole_tools=whole_tools,
        wraps=columns is not None,
    )


def _encoded(lines: Iterator[str]) -> Iterator[bytes]:
    encoding = sys.stdout.encoding or "utf-8"
    return (f"{line}\n".encode(encoding, "replace") for line in lines)


def _pieces(
    session: Opened, items: Iterator[Viewed], choice: select.Choice, output: Format, within: Within
) -> Iterator[bytes]:
    """Return the records as they are printed; what only one format needs is loaded for it."""
    if output == "jsonl":
        from sessrotate.export import jsonl  # noqa: PLC0415

        return jsonl.lines(session, (record for record, _ in items))
    if output == "markdown":
        from sessrotate.export import markdown  # noqa: PLC0415

        return markdown.document(session, items, session.id, within)
    style = _style(whole_tools="tools" in (choice.include or ()))
    if choice.grep is not None and not choice.brief:
        return _encoded(conversation.hits(items, choice.grep, style))
    boundaries = {info.index: info.boundary for info in session.segments if info.boundary}
    return _encoded(conversation.conversation(paired(items), boundaries, style))
