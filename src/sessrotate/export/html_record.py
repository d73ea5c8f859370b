"""A record → its part of the page: one `article`, addressed by segment and offset.

Rule: every tag, attribute name and class is a constant of this module. Text of a session is escaped
by `html_text`, and goes into no attribute but `datetime`, `alt`, `data-hint` and, once every
character is checked, the data of a picture.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import render
from sessrotate.clients.view import (
    Block,
    Image,
    Text,
    Thinking,
    Tokens,
    ToolCall,
    ToolResult,
    Unknown,
    View,
    is_of_client,
    is_prompt,
    is_typed,
)
from sessrotate.parsing import LONGEST, Record
from sessrotate.render import size
from sessrotate.render.html_text import escape, pre, prose, short, structure

if TYPE_CHECKING:
    from sessrotate.model import Boundary

LARGEST_PICTURE: Final = 5 * 1024 * 1024
"""Bytes of base64 that a picture may have to be shown; of a larger one, only its size is."""

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Media types that are shown: pixels only, nothing that could hold a program (no SVG, no PDF)."""

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_HINT: Final = 140
_EXCERPT: Final = 2000
_OPEN_CALLS: Final = 1024

_ROLES: Final[tuple[tuple[Callable[[View], bool], str, str], ...]] = (
    (lambda view: view.is_boundary, "boundary", "Compacted"),
    (lambda view: view.is_summary, "summary", "Summary of what came before"),
    (lambda view: view.kind == "attachment", "attachment", "Attachment"),
    (lambda view: view.kind == "system", "system", "System"),
    (lambda view: view.kind == "other", "other", ""),
    (lambda view: view.is_meta, "meta", "Said by the client"),
    (is_prompt, "prompt", "Prompt"),
    (lambda view: {type(block) for block in view.blocks} == {ToolCall}, "step", ""),
    (lambda view: ToolResult in {type(block) for block in view.blocks}, "step", ""),
    (is_of_client, "meta", "Said by the client"),
    (lambda view: view.kind == "assistant", "answer", "Answer"),
    (lambda view: view.is_sidechain, "task", "Task for an agent"),
    (is_typed, "typed", "Command"),
    (lambda _view: True, "other", ""),
)
"""How a record is shown: the first row that applies gives its class and its label."""

_FOLDED: Final = {"summary", "attachment", "meta"}
_MARKED_UP: Final = {"answer", "summary"}


def number(count: int) -> str:
    """Return a count for people; a session may hold any number."""
    return f"{count:,}" if abs(count) < 10**15 else "very many"


def moment(time: str | None, length: int = 19) -> str:
    """Return a time as an element, or nothing; its text is in UTC, to the second."""
    if not time:
        return ""
    shown = short(render.time(time)[:length], length)
    return f'<time datetime="{short(time, 40)}">{shown}</time>'


def compaction(boundary: Boundary | None) -> str:
    """Return when and why the session was compacted, and how many tokens it had, as elements."""
    if boundary is None:
        return ""
    tokens = boundary.pre_tokens
    return _spaced(
        moment(boundary.timestamp),
        _span(short(boundary.trigger or "", 40)),
        f"<span>{number(tokens)} tokens before</span>" if tokens is not None else "",
    )


class _Where(Struct, frozen=True):
    """Where a block stands: in a record of which role and address, and whether in a result."""

    role: str
    anchor: str
    is_result: bool = False


class Renderer:
    """Renders the records of one session, in their order.

    `prefix` is put before the address of each record, for pages with several transcripts. Memory is
    bounded: it holds the calls that have no result yet, and the id of the current answer.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._calls: OrderedDict[str, tuple[str, str, str]] = OrderedDict()
        self._message: str | None = None
        self.page = ""
        """The file of the page that records go to now, where there are several."""

    def article(
        self, record: Record, view: View, boundary: Boundary | None, *, is_rewound: bool = False
    ) -> str:
        """Return a record's article. `boundary` is the compaction that opens its segment.

        `is_rewound`: it is of a branch that was.
        """
        role, label = next((role, label) for holds, role, label in _ROLES if holds(view))
        is_more = view.message is not None and view.message == self._message
        self._message = view.message or self._message
        where = _Where(role, self._anchor(record))
        body = "".join(self._block(block, where) for block in view.blocks)
        if role in _FOLDED and body:
            body = _fold("raw", _hint(_first_text(view.blocks) or view.type), body)
        classes = role + " side" * view.is_sidechain + " more" * is_more + " rewound" * is_rewound
        if view.is_boundary:
            is_its = boundary is not None and boundary.uuid == view.uuid
            head = f"<b>{label}</b> {compaction(boundary) if is_its else moment(view.time)}"
        else:
            head = _head(view, role, "" if is_more else label, with_cost=not is_more)
        if is_rewound:
            head = _spaced("<span>rewound</span>", head)
        return _article(where.anchor, classes, head, body)

    def broken(self, record: Record) -> str:
        """Return the article of an unreadable line: where it is, and how it begins."""
        reason = "not a JSON object" if record.is_whole else f"longer than {size(LONGEST)}"
        text = escape(record.line[:_EXCERPT].decode("utf-8", "replace"))
        where = f"Segment {record.segment}, offset {record.offset}: {size(record.size)}, {reason}."
        begins = _fold("raw", "How it begins", pre(text)) if text else ""
        head = "<b>Unreadable line</b>"
        return _article(self._anchor(record), "broken", head, f"<p>{where}</p>{begins}")

    def _anchor(self, record: Record) -> str:
        return f"{self._prefix}{record.segment}-{record.offset}"

    def _block(self, block: Block, where: _Where) -> str:
        match block:
            case Text():
                return _said(block, where)
            case Thinking():
                return _thought(block)
            case ToolCall():
                return self._call(block, where)
            case ToolResult():
                return self._result(block, where)
            case Image():
                return _picture(block)
            case Unknown():
                return _unknown(block)

    def _call(self, call: ToolCall, where: _Where) -> str:
        if call.id:
            self._calls[call.id] = call.name, self.page, where.anchor
            if len(self._calls) > _OPEN_CALLS:
                self._calls.popitem(last=False)
        arguments = call.arguments if isinstance(call.arguments, dict) else {"": call.arguments}
        shown = "".join(_argument(name, value) for name, value in arguments.items())
        first = next((each for each in arguments.values() if isinstance(each, str)), "")
        hint = f"<b>{short(call.name, 80)}</b> {_hint(first)}"
        return _fold("tool", hint, shown)

    def _result(self, result: ToolResult, where: _Where) -> str:
        name, page, call = self._calls.pop(result.id, ("", "", ""))
        page = page if page != self.page else ""
        inner = [block for block in result.blocks if not isinstance(block, Image)]
        deeper = replace(where, is_result=True)
        body = "".join(self._block(block, deeper) for block in inner)
        pictures = "".join(_picture(block) for block in result.blocks if isinstance(block, Image))
        lines = sum(each.text.count("\n") + 1 for each in inner if isinstance(each, Text))
        hint = _spaced(
            f"<b>{'Error' if result.is_error else 'Result'}</b>",
            f'<a href="{page}#{call}">{short(name, 80)}</a>' if call else "",
            _hint(_first_text(inner)),
            f"<i>{number(lines)} lines</i>" if lines > 1 else "",
        )
        kind = "result error" if result.is_error else "result"
        shown = _fold(kind, hint, body) if body else f'<p class="{kind}">{hint}</p>'
        return shown + pictures


def _said(block: Text, where: _Where) -> str:
    if where.is_result:
        return pre(escape(block.text))
    if block.is_note and where.role not in _FOLDED:
        return _fold("raw", _hint(block.text), pre(escape(block.text)))
    return _text(block.text, is_marked=where.role in _MARKED_UP)


def _thought(block: Thinking) -> str:
    if not block.text:
        return '<p class="note">Thinking (its text was not kept)</p>'
    hint = f"<b>Thinking</b> {_hint(block.text)}"
    return _fold("thinking", hint, _text(block.text, is_marked=True))


def _unknown(block: Unknown) -> str:
    return _fold("raw", short(block.type, 60) or "Unknown", pre(escape(structure(block.value))))


def _head(view: View, role: str, label: str, *, with_cost: bool) -> str:
    """Return who speaks and when; `with_cost`, also the model and how many tokens it took."""
    said = short(view.type, 40) if role == "other" else label
    return _spaced(
        f"<b>{said}</b>" if said else "",
        _span(short(view.type, 40)) if role in {"system", "attachment"} else "",
        _span(short(view.model or "", 60)) if with_cost and role == "answer" else "",
        f"<span>agent {short(view.agent or '', 40)}</span>" if view.is_sidechain else "",
        moment(view.time),
        _tokens(view.tokens) if with_cost and view.tokens is not None else "",
    )


def _article(anchor: str, classes: str, head: str, body: str) -> str:
    link = f'<a href="#{anchor}">{anchor}</a>'
    head = f"<header>{head} {link}</header>"
    return f'<article class="{classes}" id="{anchor}">{head}{body}</article>\n'


def _fold(kind: str, hint: str, body: str) -> str:
    return f'<details class="{kind}"><summary>{hint}</summary>{body}</details>'


def _spaced(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _span(text: str) -> str:
    return f"<span>{text}</span>" if text else ""


def _text(text: str, *, is_marked: bool) -> str:
    return f'<div class="text">{prose(text) if is_marked else escape(text)}</div>'


def _first_text(blocks: Sequence[Block]) -> str:
    return next((each.text for each in blocks if isinstance(each, Text)), "")


def _hint(text: str) -> str:
    """Return the beginning of folded text, in an attribute: a search finds the text only once."""
    shown = short(text, _HINT)
    return f'<span data-hint="{shown}"></span>' if shown else ""


def _argument(name: str, value: Any) -> str:
    text = escape(value if isinstance(value, str) else structure(value))
    label = f"<h4>{short(name, 80)}</h4>" if name else ""
    return label + pre(text)


def _tokens(tokens: Tokens) -> str:
    sent = tokens.sent + tokens.cached + tokens.stored
    return f"<span>{number(sent)} tokens in, {number(tokens.received)} out</span>"


def _picture(image: Image) -> str:
    """Return a picture; or what it is, if it is of another type, too large, or elsewhere."""
    kind = short(image.media_type, 60) or "unknown type"
    if image.address:
        return f'<p class="note">{kind} at {short(image.address, 200)}</p>'
    told = f"{kind}, {size(len(image.data) * 3 // 4)}"
    if image.media_type not in PICTURES:
        return f'<p class="note">{told}: not shown</p>'
    if len(image.data) > LARGEST_PICTURE:
        return f'<p class="note">{told}: too large to be shown</p>'
    if _BASE64.fullmatch(image.data) is None:
        return f'<p class="note">{told}: damaged</p>'
    head = f'<img alt="{told}" loading="lazy" decoding="async" src="data:{image.media_type}'
    return f'{head};base64,{image.data}">'
