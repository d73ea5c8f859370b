"""What a session says → lines for people, on a terminal or in a pipe. Pure.

Rule: a line of text stays one line, so that it can be searched and copied; on a terminal it is
wrapped between words. All text of a session passes through `safe_text` first, and colours are added
only here. What answers cost in tokens is added up while they pass: an answer counts once, however
many records its client cut it into; these share a message's id and stand together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from sessrotate import render, safe_text
from sessrotate.clients.view import Thinking, View, is_heading, is_note, is_typed
from sessrotate.reading import Compaction, ToolUse, UnreadableLine, Utterance
from sessrotate.reading.select import Line, from_match, matching_lines, text_of, texts
from sessrotate.render import phrases
from sessrotate.render.columns import Canvas

if TYPE_CHECKING:
    from sessrotate.clients.view import Tokens, View
    from sessrotate.model import Boundary
    from sessrotate.parsing import Record
    from sessrotate.reading import Item, Viewed


# ── what answers cost ────────────────────────────────────────────────────────────────────────


_MOST: Final = 10**15


def told(tokens_in: int, tokens_out: int) -> str:
    """Return how many tokens were sent and received, in words."""
    if max(tokens_in, tokens_out) >= _MOST:  # a file may hold any number
        return "very many tokens"
    return f"{render.count(tokens_in, 'token')} in, {tokens_out:,} out"


class Costs:
    """The answers since the last `take`."""

    def __init__(self) -> None:
        self._answers = self._in = self._out = 0
        self._now: tuple[str | None, int, int] | None = None

    def add(self, view: View) -> None:
        """Count a record's answer, if it is one whose cost is known."""
        if view.tokens is None:
            return
        sent, received = _sums(view.tokens)
        if self._now is not None and view.message is not None and self._now[0] == view.message:
            # The last record of an answer knows best; all of them repeat what was sent.
            self._now = view.message, max(sent, self._now[1]), max(received, self._now[2])
            return
        self._end()
        self._now = view.message, sent, received

    def take(self) -> str | None:
        """Return what the answers cost since the last time, None if that is not known."""
        self._end()
        answers, costs = self._answers, told(self._in, self._out)
        is_known = bool(self._in or self._out)
        self._answers = self._in = self._out = 0
        if not is_known:
            return None
        return f"{render.count(answers, 'answer')}: {costs}" if answers > 1 else costs

    def _end(self) -> None:
        if self._now is not None:
            _, sent, received = self._now
            self._answers, self._in, self._out = (
                self._answers + 1,
                self._in + sent,
                self._out + received,
            )
            self._now = None


def _sums(tokens: Tokens) -> tuple[int, int]:
    return tokens.sent + tokens.cached + tokens.stored, tokens.received


# ── lines for people ─────────────────────────────────────────────────────────────────────────


WIDEST: Final = 100
"""The most columns that rules and summaries take: longer lines are hard to read."""

_BEFORE: Final = 3
"""Lines that are shown before the one that a search found."""

_SPEAKING: Final = frozenset({"You", "Assistant", "Summary"})


class Style(Canvas, frozen=True):
    """How lines are drawn.

    `width` is how many columns a line that may be cut takes at most (40 or more). `whole_tools`
    shows all that tools were given and returned, `wraps` wraps what was said.
    """

    width: int = WIDEST
    whole_tools: bool = False
    wraps: bool = False


def conversation(
    parts: Iterable[Item], boundaries: Mapping[int, Boundary], style: Style
) -> Iterator[str]:
    """Yield what was said, line by line; `boundaries` are those that open segments, by number."""
    speaking: tuple[str, str | None] | None = None
    before: type[Item] | None = None
    costs = Costs()
    for part in parts:
        if isinstance(part, Compaction | UnreadableLine):
            speaking = None
            heading: list[str] = []
        else:
            by = phrases.speaker(part.view), phrases.model(part.view)
            # A tool belongs to whoever called it; a result alone, to the one who speaks already.
            is_new = by != speaking and (isinstance(part, Utterance) or part.call is not None)
            heading = [_heading(part.view, style)] if is_new or _is_prompt(part) else []
            speaking = by if is_new else speaking
        if (heading or speaking is None) and (cost := costs.take()) is not None:
            yield style.paint("dim", f"({cost})")
        if before is not None and (heading or not (before is type(part) is ToolUse)):
            yield ""
        before = type(part)
        yield from heading
        match part:
            case Compaction():
                words = phrases.compaction(part, boundaries.get(part.record.segment))
                yield _rule(words, style)
            case UnreadableLine():
                yield from _unread(part, style)
            case Utterance():
                costs.add(part.view)
                yield from _said(part, style)
            case ToolUse():
                costs.add(part.view)
                yield from (_whole if style.whole_tools else _exchange)(part, style)
    if (cost := costs.take()) is not None:
        yield style.paint("dim", f"({cost})")


def hits(items: Iterable[Viewed], grep: re.Pattern[str], style: Style) -> Iterator[str]:
    """Yield, for each record that matches, where it is, then the lines that match."""
    for record, view in items:
        yield _where(record, view, style)
        for text in texts(record, view):
            for line in matching_lines(text, grep):
                yield f"  {marked(line, style.width - 2, style)}".rstrip()


def excerpt(items: Iterable[Viewed], character: int, style: Style) -> Iterator[str]:
    """Yield who speaks, then what a record says: from some lines before a character to its end.

    The character's line is marked. Lines are cut as those that a search finds.
    """
    for record, view in items:
        if view is None and not record.is_whole:
            yield from _unread(UnreadableLine(record), style)
            continue
        yield _where(record, None, style) if view is None else _heading(view, style)
        room, is_met = style.width - 2, False
        for line in from_match(text_of(record, view), character, _BEFORE):
            is_it = line.spans is not None
            is_met = is_met or is_it
            text = safe_text.cleaned(line.text.removesuffix("\r")).replace("\t", " ")
            is_cut = line.is_cut[1] or not (is_met or len(text) <= room)
            text = f"{'…' * line.is_cut[0]}{text if is_met else text[:room]}{'…' * is_cut}"
            mark = style.paint("hit", ">") if is_it else " "
            for shown in _wrapped(text, room) if style.wraps and is_met else (text,):
                yield f"{mark} {shown}".rstrip()


def marked(line: Line, room: int, canvas: Canvas) -> str:
    """Return what fits of a line around its first match, with what matches marked."""
    return "".join(
        canvas.paint("hit", clean) if is_hit else clean
        for clean, is_hit in _pieces(*_fitting(line, room))
    )


def _heading(view: View, style: Style) -> str:
    who = phrases.speaker(view)
    rest = "".join(f" · {word}" for word in phrases.details(view))
    shown = style.paint("you" if who == "You" else "bold", safe_text.clipped(who, 60))
    return shown + style.paint("dim", rest)


def _rule(words: str, style: Style) -> str:
    width = min(style.width, WIDEST)
    shown = safe_text.clipped(words, width - 6)
    return style.paint("rule", f"── {shown} ".ljust(width, "─"))


def _unread(part: UnreadableLine, style: Style) -> Iterator[str]:
    yield style.paint("wrong", safe_text.clipped(f"✗ {phrases.unread(part)}", style.width))
    if part.record.is_whole:
        text = part.record.line[: 8 * style.width].decode("utf-8", "replace")
        yield "  " + safe_text.clipped(text, style.width - 2)


def _is_prompt(part: Utterance | ToolUse) -> bool:
    """Tell whether a person begins to speak: each prompt has its own heading, with its time."""
    return isinstance(part, Utterance) and is_heading(part.view, part.block)


def _said(part: Utterance, style: Style) -> Iterator[str]:
    words = phrases.words(part.block)
    prompt = is_typed(part.view) and not is_note(part.block)
    if isinstance(part.block, Thinking):
        yield style.paint("dim", "(thinking)")
    faint = isinstance(part.block, Thinking) or is_note(part.block)
    faint = faint or phrases.speaker(part.view) not in _SPEAKING
    mark = style.paint("you", ">") + " " if prompt else ""
    room = style.width - 2 * prompt
    for line in safe_text.lines(words):
        for shown in _wrapped(line, room) if style.wraps else (line,):
            yield (mark + (style.paint("dim", shown) if faint else shown)).rstrip(" ")


def _wrapped(line: str, width: int) -> Iterator[str]:
    """Yield a line in pieces that fit, cut at spaces; without spaces it stays whole."""
    begin = 0
    while len(line) - begin > width:
        space = line.rfind(" ", begin + 1, begin + width + 1)
        if space < 0:
            break
        yield line[begin:space]
        begin = space + 1
    yield line[begin:]


def _exchange(part: ToolUse, style: Style) -> Iterator[str]:
    call, result = part.call, part.result
    words = []
    room = style.width - len("  •")
    tool = phrases.tool(part)
    if tool:
        name = safe_text.clipped(tool, room // 3)
        words.append(style.paint("bold", name))
        room -= len(name) + 1
    after = ""
    if result is not None:
        outcome = phrases.outcome(result)
        after = "→ " + safe_text.clipped(outcome, room // 2 - 3 if tool else room - 3)
        room -= len(after) + 1
    if call is not None and (about := safe_text.clipped(phrases.about(call), room - 1)):
        words.append(about)
    if result is not None:
        words.append(style.paint("wrong" if result.is_error else "dim", after))
    yield " ".join(["  •", *words])
    if result is not None and result.typed:
        mark = "    " + style.paint("you", ">") + " "
        for line in safe_text.lines(result.typed):
            for shown in _wrapped(line, style.width - 6) if style.wraps else (line,):
                yield (mark + shown).rstrip(" ")


def _whole(part: ToolUse, style: Style) -> Iterator[str]:
    call, result = part.call, part.result
    if call is not None:
        yield "  • " + style.paint("bold", safe_text.line(call.name))
        for name, value in phrases.arguments(call):
            lines = safe_text.lines(value)
            label = style.paint("dim", f"{safe_text.line(name)}:" if name else "")
            if len(lines) == 1:
                yield f"    {label} {lines[0]}"
            else:
                yield f"    {label}"
                yield from (f"      {line}".rstrip() for line in lines)
    if result is not None:
        words = ("wrong", "→ error") if result.is_error else ("dim", "→")
        yield "  " + style.paint(*words)
        yield from (f"    {line}".rstrip() for line in safe_text.lines(phrases.given(result)))


def _where(record: Record, view: View | None, style: Style) -> str:
    file = "live file" if record.is_carried else f"segment {record.segment}"
    words = [f"{file}, offset {record.offset}"]
    words.append("not a record" if view is None else phrases.speaker(view))
    if view is not None and view.time:
        words.append(render.time(view.time))
    return style.paint("rule", safe_text.clipped(" · ".join(words), 2 * WIDEST))


def _fitting(line: Line, room: int) -> tuple[Line, bool, bool]:
    """Return what fits of a line around its first match, and whether more is on each side."""
    before, behind = line.is_cut
    if len(line.text) + before + behind <= room:
        return line, before, behind
    kept = room - 2
    first = line.spans[0][0] if line.spans else 0
    begin = max(0, min(first - kept // 4, len(line.text) - kept))
    end = begin + kept
    spans = None
    if line.spans is not None:
        spans = tuple((a - begin, min(b, end) - begin) for a, b in line.spans if a < end)
    is_cut = (before or begin > 0, behind or end < len(line.text))
    return Line(line.text[begin:end], spans), *is_cut


def _pieces(line: Line, before: bool, behind: bool) -> Iterator[tuple[str, bool]]:  # noqa: FBT001 - two sides
    """Yield a line piece by piece, harmless, and whether each matches."""
    at = 0
    yield "…" * before, False
    for begin, end in line.spans or ():
        yield _clean(line.text[at:begin]), False
        yield _clean(line.text[begin:end]), True
        at = end
    rest = line.text[at:]
    yield _clean(rest if behind else rest.removesuffix("\r")), False
    yield "…" * behind, False


def _clean(text: str) -> str:
    return text if text.isprintable() else safe_text.cleaned(text).replace("\t", " ")
