"""Which records are shown: when, what kind, whose turn, and what they match. Pure.

Rule: a `Choice` is made once, before anything is read. Records keep their order, and a line that
cannot match is not parsed.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate.clients.prompts import is_note, is_of_client, is_prompt, typed_first
from sessrotate.clients.protocol import Reader, Wording
from sessrotate.clients.view import Block, Text, Thinking, ToolCall, ToolResult, Unknown, View
from sessrotate.errors import WrongUsageError, printable
from sessrotate.parsing.literals import Sieve, sieve
from sessrotate.reading.deduplicate import delivered_once
from sessrotate.reading.part import ALL, Part, Within

if TYPE_CHECKING:
    from sessrotate.parsing.records import Record
    from sessrotate.reading.pair_tools import Viewed

INCLUDABLE: Final = ("sidechains", "meta", "tools", "thinking", "attachments")
"""What --include names: hidden by default. Of tools, one line each is always shown."""

EVERYTHING: Final = frozenset(INCLUDABLE)

_HIDDEN: Final[Mapping[str, Callable[[View], bool]]] = {
    "sidechains": lambda view: view.is_sidechain,
    "attachments": lambda view: view.kind == "attachment",
    "meta": is_of_client,
}
"""Which records a word of `INCLUDABLE` stands for."""

_HIDDEN_BLOCKS: Final[Mapping[str, Callable[[Block], bool]]] = {
    "meta": is_note,
    "thinking": lambda block: isinstance(block, Thinking),
}
"""Which blocks of other records it stands for."""


class Choice(Struct, frozen=True):
    """What is to be shown.

    `part` is where it stands. `include` says which of `INCLUDABLE` to show; None shows every
    record, even those that belong to no conversation. `brief` keeps only the prompt, the tool uses
    and the answer of each turn.
    """

    part: Part = ALL
    include: frozenset[str] | None = frozenset()
    brief: bool = False
    grep: re.Pattern[str] | None = None

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out, so that no record has to be parsed."""
        return self == Choice(include=None)


# ── what is typed ────────────────────────────────────────────────────────────────────────────


def expression(text: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return what people typed as a regular expression. Raises WrongUsageError if it is none."""
    try:
        with warnings.catch_warnings():  # of what may once mean something else
            warnings.simplefilter("ignore")
            return re.compile(text, flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise WrongUsageError(
            f"{printable(text)} is not a valid regular expression: {printable(str(error))}."
        ) from None


def composed(text: str) -> str:
    """Return a text in which accents are one character with their letters (NFC), to be compared."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def uncomposed(text: str, told: str, at: int) -> int:
    """Return where a character of a text that was `composed` stands in the text."""
    number = told.count("\n", 0, at)
    begin = sum(len(line) + 1 for line in text.split("\n", number)[:number])
    end = text.find("\n", begin)
    line = text[begin:] if end < 0 else text[begin:end]
    within = at - (told.rfind("\n", 0, at) + 1)
    return begin + bisect_left(
        range(len(line)), within, key=lambda size: len(composed(line[:size]))
    )


def included(words: Iterable[str]) -> frozenset[str]:
    """Return the words that --include gives, each time one or several with commas between.

    Raises WrongUsageError for a word that is not in `INCLUDABLE`.
    """
    found = {word.strip() for several in words for word in several.split(",")} - {""}
    for word in sorted(found - EVERYTHING):
        raise WrongUsageError(
            f"{printable(word)} cannot be included; choose from {', '.join(INCLUDABLE)}."
        )
    return frozenset(found)


# ── choosing ─────────────────────────────────────────────────────────────────────────────────


def chosen(
    records: Iterable[Record],
    view: Callable[[Record], View | None],
    choice: Choice,
    unsearched: Callable[[Record], None],
    *,
    reader: Reader | None = None,
    hidden: Callable[[str], None] = lambda _word: None,
    within: Within | None = None,
) -> Iterator[Viewed]:
    """Yield the records to show, each with as much of its view as is to be shown.

    `reader` is what the views are from, if it is a client's own. `unsearched` is called with each
    record that is too long to be searched, and `hidden`, with the word of `INCLUDABLE`, for each
    of which something would be shown if `choice.include` had that word. `within` is what tells
    which are in the part, where somebody wants to know more of that. Raises WrongUsageError, at the
    end, if no record has the uuid that a limit of the part gives.
    """
    if choice.is_everything:
        return ((record, None) for record in records)
    grep = choice.grep
    times = {choice.part.since, choice.part.until} - {None}
    uuids = {time for time in times if isinstance(time, str)}
    if grep is not None and not choice.brief and not choice.part.turns and times == uuids:
        # Without times and turns, what is shown does not depend on the lines before it.
        records = _sieved(records, sieve_for(grep, reader), uuids)
    viewed = delivered_once((record, view(record)) for record in records)
    items = (within or Within(choice.part)).of(viewed)
    if choice.include is not None:
        items = _shown(items, choice, hidden)
    if choice.brief:
        items = _briefly(items)
    return items if grep is None else _matching(items, grep, unsearched)


def sieve_for(pattern: re.Pattern[str], reader: Reader | None) -> Sieve:
    """Return what lets the lines through whose views may match, as a client writes lines."""
    found = sieve(pattern)
    if found.wanted and isinstance(reader, Wording):
        return replace(found, also=reader.worded(found.wanted))
    return found


def _sieved(
    records: Iterable[Record], may_match: Callable[[bytes], bool], uuids: set[str]
) -> Iterator[Record]:
    named = [uuid.encode() for uuid in uuids]
    for record in records:
        line = record.line
        if may_match(line) or not record.is_whole or any(uuid in line for uuid in named):
            yield record


def _shown(
    items: Iterable[Viewed], choice: Choice, hidden: Callable[[str], None]
) -> Iterator[Viewed]:
    include, grep = choice.include or frozenset(), choice.grep
    hides = {word: is_it for word, is_it in _HIDDEN.items() if word not in include}
    blocks = {word: is_it for word, is_it in _HIDDEN_BLOCKS.items() if word not in include}

    def is_wanted(record: Record, view: View) -> bool:
        return grep is None or any(grep.search(text) for text in texts(record, view))

    for record, view in items:
        if view is None:
            yield record, view
            continue
        if view.kind == "other":
            continue
        word = next((word for word, is_it in hides.items() if is_it(view)), None)
        if word is not None:
            if is_wanted(record, view):
                hidden(word)
            continue
        kept = view
        for each, is_it in blocks.items():
            kept, left = _parted(kept, is_it)
            if left is not None and is_wanted(record, left):
                hidden(each)
        if kept.blocks or not view.blocks:
            yield record, typed_first(kept)


def _briefly(items: Iterable[Viewed]) -> Iterator[Viewed]:
    """Yield the prompt of each turn, its tool uses, and what was said after the last of them.

    A turn begins with a prompt and ends before the next one. Compactions and unreadable lines stay.
    """
    answer: list[Viewed] = []
    for record, view in items:
        if view is not None and (view.is_sidechain or view.is_summary):
            continue
        if view is None or view.is_boundary or is_prompt(view):
            yield from answer
            answer = []
            yield record, view
            continue
        tools = _only(view, ToolCall, ToolResult)
        if tools.blocks:
            answer = []
            yield record, tools
        if view.kind == "assistant":
            texts = _only(_after_tools(view), Text)
            if texts.blocks:
                answer.append((record, texts))
    yield from answer


def _only(view: View, *types: type[Block]) -> View:
    return replace(view, blocks=tuple(block for block in view.blocks if isinstance(block, types)))


def _parted(view: View, is_it: Callable[[Block], bool]) -> tuple[View, View | None]:
    """Return a view without some of its blocks, and one with nothing else if it has such."""
    if not any(map(is_it, view.blocks)):
        return view, None
    kept = tuple(block for block in view.blocks if not is_it(block))
    return replace(view, blocks=kept), replace(view, blocks=tuple(filter(is_it, view.blocks)))


def _after_tools(view: View) -> View:
    calls = [n for n, block in enumerate(view.blocks) if isinstance(block, ToolCall)]
    return replace(view, blocks=view.blocks[calls[-1] + 1 :] if calls else view.blocks)


def _matching(
    items: Iterable[Viewed], grep: re.Pattern[str], unsearched: Callable[[Record], None]
) -> Iterator[Viewed]:
    for record, view in items:
        if not record.is_whole:
            unsearched(record)
        elif any(grep.search(text) for text in texts(record, view)):
            yield record, view


# ── what is searched ─────────────────────────────────────────────────────────────────────────


def texts(record: Record, view: View | None) -> Iterator[str]:
    """Yield each decoded text of a record; for a line that is not a record, the line itself."""
    if view is None:
        yield record.line.decode("utf-8", "replace")
        return
    for block in view.blocks:
        yield from texts_of(block)


def text_of(record: Record, view: View | None) -> str:
    """Return all texts of a record, each from a new line on."""
    return "\n".join(texts(record, view))


def only_at(view: View, character: int) -> View:
    """Return a view with only the block that has this character of `text_of`.

    Its other blocks may be somebody else's: beside a prompt stand results, and what an editor says.
    """
    end = 0
    for block in view.blocks:
        end += sum(len(text) + 1 for text in texts_of(block))
        if character < end:
            return replace(view, blocks=(block,))
    return view


def texts_of(block: Block) -> Iterator[str]:
    """Yield each decoded text of a block."""
    match block:
        case Text(text) | Thinking(text):
            yield text
        case ToolCall(_, name, arguments):
            yield name
            yield from _strings(arguments)
        case ToolResult(_, blocks):
            for inner in blocks:
                yield from texts_of(inner)
        case Unknown(_, value):
            yield from _strings(value)
        case _:
            pass  # pictures have nothing to read


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings of a JSON value, but not its keys, which are the tool's words.

    Without recursion, since the value may be deep.
    """
    left = [value]
    while left:
        match left.pop():
            case str(text):
                yield text
            case dict() as members:
                left += reversed(members.values())
            case list() as elements:
                left += reversed(elements)
            case _:
                pass
