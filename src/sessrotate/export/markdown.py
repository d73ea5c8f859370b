"""A session as one Markdown document: a heading for each prompt, tools folded, compactions marked.

Rule: it reads well both as text and rendered, and nothing that a session says becomes markup. Code
stands in fences longer than any in it, and prose is escaped; both are read alike by CommonMark and
GitHub. What the client added itself (meta, attachments) is left out; JSONL has it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from sessrotate import render, safe_text
from sessrotate.clients.preview import Agent
from sessrotate.clients.view import Text, Thinking, View, is_heading
from sessrotate.errors import SessrotateError
from sessrotate.export import Branches, Exported, Scope, calls_noted, told_of
from sessrotate.parsing import Record
from sessrotate.reading import BranchEdge, Compaction, ToolUse, UnreadableLine, Utterance, paired
from sessrotate.reading.deduplicate import once
from sessrotate.reading.part import Within
from sessrotate.reading.select import Choice, chosen
from sessrotate.render import phrases
from sessrotate.render.conversation import Costs

if TYPE_CHECKING:
    from sessrotate.model import Boundary
    from sessrotate.reading import Item, Viewed
    from sessrotate.reading.session import Session


# ── text that obeys nothing ──────────────────────────────────────────────────────────────────


_MARKUP: Final = re.compile(r"[\\`*_\[\]<>&~|$#]|(?<=[A-Za-z]):(?=//)|(?<=[wW]{3})\.|@")
"""Characters that mean something anywhere in a line: emphasis, code, links, HTML, addresses."""

_OPENING: Final = re.compile(r"[-+=]")
"""Characters that mean something at the beginning of a line; `>`, `*` and fences are escaped."""

_NUMBERED: Final = re.compile(r"(\d+)([.)])")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})\s*([^`]*)")
_LANGUAGE: Final = re.compile(r"[A-Za-z0-9+#_.-]{1,20}")
_TICKS: Final = re.compile(r"`{3,}")


def inline(text: str) -> str:
    """Return text for within a line, escaped."""
    return _MARKUP.sub(r"\\\g<0>", text)


def in_html(text: str) -> str:
    """Return text on one line for within an HTML element, escaped."""
    return html.escape(safe_text.line(text))


def fenced(text: str, language: str = "") -> str:
    """Return a block that shows text as it is."""
    lines = safe_text.lines(text)
    longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=2)
    fence = "`" * (longest + 1)
    return "\n".join([fence + language, *lines, fence]) + "\n"


def prose(text: str) -> str:
    """Return text as paragraphs in which lines stay lines; code that it fences stays code."""
    return "\n".join(_blocks(safe_text.lines(text)))


def _blocks(lines: list[str]) -> Iterator[str]:
    paragraph: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        fence = _FENCE.fullmatch(line)
        if fence is None and line.strip():
            paragraph.append(_escaped(line))
            continue
        if paragraph:
            yield _joined(paragraph)
            paragraph = []
        if fence is not None:
            end = _end_of_code(lines, at, fence[1])
            word = fence[2].strip()
            yield fenced("\n".join(lines[at:end]), word if _LANGUAGE.fullmatch(word) else "")
            at = end + 1
    if paragraph:
        yield _joined(paragraph)


def _end_of_code(lines: list[str], start: int, fence: str) -> int:
    """Return the number of the line that closes a fence, or of the first after the text."""
    for number in range(start, len(lines)):
        line = lines[number].strip()
        if len(line) >= len(fence) and not line.strip(fence[0]):
            return number
    return len(lines)


def _escaped(line: str) -> str:
    text = line.strip()
    indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
    shown = inline(text)
    if _OPENING.match(shown):
        shown = "\\" + shown
    shown = _NUMBERED.sub(r"\1\\\2", shown, count=1) if _NUMBERED.match(shown) else shown
    return "&nbsp;" * indent + shown


def _joined(paragraph: list[str]) -> str:
    return "\\\n".join(paragraph) + "\n"


# ── the document ─────────────────────────────────────────────────────────────────────────────


_EXPORTED: Final = Choice(include=frozenset({"sidechains", "thinking", "tools"}))

_HEADING: Final = 72
"""How many characters of a prompt its heading shows; a longer prompt follows in full."""


def pieces(session: Session, scope: Scope | None = None) -> Iterator[bytes]:
    """Yield the history as Markdown, UTF-8, each record once, and its agents' transcripts.

    Of a part, those that were called in it. Raises as `history` does.
    """
    scope = scope or Scope()
    branches = Branches(session, all_branches=scope.all_branches, leave=scope.leave)
    within = scope.within(session, has_rewound=scope.all_branches, is_numbered=True)
    called = set[str | None]()
    items = within.of(branches.told(_selected(session, scope.records(session))))
    items = calls_noted(items, called)
    yield from document(session, items, str(session.title()) or session.id, within, scope.told())
    for agent in session.agents():
        is_there = agent.call in called or (scope.is_all and agent.call not in branches.left_calls)
        if not agent.is_warm_up and is_there:
            yield from _encoded([f"# Agent {inline(safe_text.clipped(agent.id, 60))}\n"])
            yield from _encoded(_transcript(session, agent))


def _transcript(session: Session, agent: Agent) -> Iterator[str]:
    try:
        records = once(session.records_of(agent), session.key)
        yield from _body(paired(_selected(session, records)), {})
    except SessrotateError as error:  # its file went away: the session itself is whole
        yield f"{inline(safe_text.line(str(error)))}\n"


def _selected(session: Session, records: Iterator[Record]) -> Iterator[Viewed]:
    return chosen(records, session.view, _EXPORTED, lambda _record: None)


def index(sessions: Sequence[Exported]) -> Iterator[bytes]:
    """Yield a document that leads to those of several sessions."""
    yield from _encoded([f"# {render.count(len(sessions), 'session')}\n"])
    for each in sessions:
        told = map(inline, (safe_text.line(each.title) or each.session, *told_of(each)))
        title, *rest = told
        yield from _encoded([f"- [{title}]({each.file}) · {' · '.join(rest)}"])


def document(
    session: Session,
    items: Iterable[Viewed | BranchEdge],
    title: str,
    within: Within,
    notes: Iterable[str] = (),
) -> Iterator[bytes]:
    """Yield a document of these records, which have been selected already.

    `within` knows which prompts are turns, and how many come before. `notes` are said first.
    """
    segments = session.segments
    boundaries = {info.index: info.boundary for info in segments if info.boundary is not None}
    yield from _encoded(_head(title, len(segments), len(boundaries)))
    yield from _encoded(f"{inline(note)}\n" for note in notes)
    yield from _encoded(_body(paired(items), boundaries, within))


def _encoded(blocks: Iterable[str]) -> Iterator[bytes]:
    for block in blocks:
        yield f"{block}\n".encode()


def _head(title: str, segments: int, compactions: int) -> Iterator[str]:
    yield f"# {inline(safe_text.line(title))}\n"
    count = f"{render.count(segments, 'segment')}, {render.count(compactions, 'compaction')}"
    yield f"A session of {count}.\n"


def _body(
    shown: Iterable[Item | BranchEdge],
    boundaries: Mapping[int, Boundary],
    within: Within | None = None,
) -> Iterator[str]:
    number = 0
    speaking: tuple[str, str | None] | None = None
    costs = Costs()
    for part in shown:
        is_new = _is_new(part, speaking)
        if is_new and (cost := costs.take()) is not None:
            yield f"*{cost}*\n"
        if isinstance(part, Utterance | ToolUse):
            costs.add(part.view)
        match part:
            case Compaction():
                speaking = None
                words = phrases.compaction(part, boundaries.get(part.record.segment))
                yield f"---\n\n**{inline(safe_text.line(words))}**\n"
            case UnreadableLine():
                speaking = None
                yield from _unread(part)
            case BranchEdge():
                speaking = None
                yield f"---\n\n**{inline(phrases.branch(part))}**\n"
            case Utterance() if _is_prompt(part):
                is_turn = within is None or within.is_turn(part.record)
                number += is_turn
                speaking = phrases.speaker(part.view), None
                before = 0 if within is None else within.before
                yield from _prompt(number + before if is_turn else None, part)
            case _:
                if is_new:
                    speaking = phrases.speaker(part.view), phrases.model(part.view)
                    yield _speaker(part.view)
                yield from _said(part) if isinstance(part, Utterance) else _exchange(part)
    if (cost := costs.take()) is not None:
        yield f"*{cost}*\n"


def _is_new(part: Item | BranchEdge, speaking: tuple[str, str | None] | None) -> bool:
    """Tell whether somebody else begins to speak; a result alone is of whoever speaks already."""
    if not isinstance(part, Utterance | ToolUse) or _is_prompt(part):
        return True
    is_told = isinstance(part, Utterance) or part.call is not None
    return is_told and (phrases.speaker(part.view), phrases.model(part.view)) != speaking


def _is_prompt(part: Item | BranchEdge) -> bool:
    return isinstance(part, Utterance) and is_heading(part.view, part.block)


def _prompt(number: int | None, part: Utterance) -> Iterator[str]:
    words = phrases.words(part.block)
    title = safe_text.clipped(words, _HEADING)
    yield f"## {'' if number is None else f'{number}. '}{inline(title)}\n"
    if part.view.time:
        yield " · ".join(["**You**", *map(inline, phrases.details(part.view))]) + "\n"
    if words.strip() != title:
        yield fenced(words)


def _speaker(view: View) -> str:
    who = f"**{inline(safe_text.clipped(phrases.speaker(view), 60))}**"
    return " · ".join([who, *map(inline, phrases.details(view))]) + "\n"


def _said(part: Utterance) -> Iterator[str]:
    words = phrases.words(part.block)
    if isinstance(part.block, Thinking):
        yield from _folded("Thinking", [prose(words)])
    elif part.view.is_summary:
        yield from _folded("Summary of what came before", [prose(words)])
    elif isinstance(part.block, Text) and part.view.kind == "assistant":
        yield prose(words)
    else:
        yield fenced(words)


def _exchange(part: ToolUse) -> Iterator[str]:
    call, result = part.call, part.result
    about = "" if call is None else phrases.about(call)[:400]
    words = f"{phrases.tool(part) or 'Result'} {about}"
    title = safe_text.clipped(words, 100)
    if result is not None:
        title += f" → {safe_text.clipped(phrases.outcome(result), 60)}"
    blocks = []
    for name, value in phrases.arguments(call) if call is not None else ():
        if label := safe_text.clipped(name, 60):
            blocks.append(prose(f"{label}:"))
        blocks.append(fenced(value))
    if result is not None:
        blocks += ["Result:\n", fenced(phrases.given(result))]
    yield from _folded(title, blocks)


def _unread(part: UnreadableLine) -> Iterator[str]:
    yield f"**✗ {inline(phrases.unread(part))}**\n"
    if part.record.is_whole:
        yield fenced(part.record.line.decode("utf-8", "replace"))


def _folded(title: str, blocks: Iterable[str]) -> Iterator[str]:
    yield f"<details><summary>{in_html(title)}</summary>\n"
    yield from blocks
    yield "</details>\n"
