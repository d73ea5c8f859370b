"""A session as one self-contained page for a browser.

Rule: nothing in a session can run or send a request. It is escaped (`html_record`), and the page's
own security policy allows only the script and the style of `assets`, by their hashes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import render
from sessrotate.clients.view import ToolCall, View, asked, is_prompt, typed_first
from sessrotate.errors import SessrotateError
from sessrotate.export import Branches, Exported, Scope, html_record, told_of
from sessrotate.parsing import Record
from sessrotate.reading import BranchEdge, deduplicate
from sessrotate.reading.deduplicate import Copies, nothing_seen
from sessrotate.render import html_text, phrases
from sessrotate.render.html_text import asset, head, short

if TYPE_CHECKING:
    from sessrotate.reading import Viewed
    from sessrotate.reading.pieces import SegmentInfo
    from sessrotate.reading.session import Session


_TOGETHER: Final = 40
"""How many records a browser draws together: it watches each such group, and skips hidden ones."""


def pieces(session: Session, scope: Scope | None = None) -> Iterator[bytes]:
    """Yield the page, UTF-8. Raises as `Session.history` does.

    The page's own script lists a segment's prompts in the sidebar when it is opened, so nothing has
    to be kept or read twice here; only of a part, its segments are found first.
    """
    scope = scope or Scope()
    document = _Document(session, scope)
    for part in document.page(document.segments, document.items()):
        yield part.encode()


def pages(session: Session, scope: Scope | None = None) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the name of each of several pages, one for each segment, and its pieces; then an index.

    The pieces of one have to be taken before the next is asked for. Raises as `pieces` does.
    """
    document = _Document(session, scope or Scope())
    written = [_Written(info) for info in document.segments]
    groups = groupby(document.items(), lambda item: item[0])
    number, items = next(groups, _NO_MORE)
    for page in written:
        here: Iterable[tuple[int, Viewed | BranchEdge]] = ()
        if number == page.info.index:
            here = items
        yield page.name, (part.encode() for part in document.page([page.info], here, page))
        if number == page.info.index:
            number, items = next(groups, _NO_MORE)
    yield "index.html", (part.encode() for part in document.index(written))


def index(sessions: Sequence[Exported]) -> Iterator[bytes]:
    """Yield the page that leads to those of several sessions."""
    many = render.count(len(sessions), "session")
    yield f"{head(many, asset('export', 'page.css'), '')}<body>\n<main>\n<h1>{many}</h1>\n".encode()
    for each in sessions:
        title = short(each.title or each.session, 200)
        told = " · ".join(short(part, 200) for part in told_of(each))
        yield f'<h2><a href="{each.file}">{title}</a></h2>\n<p class="note">{told}</p>\n'.encode()
    yield b"</main>\n<footer>Made by sessrotate.</footer>\n</body>\n</html>\n"


_NO_MORE: Final = (-1, iter(()))


class _Written(Struct):
    """What the index says of a page: its segment, and what is on it."""

    info: SegmentInfo
    records: int = 0
    prompts: int = 0
    asked: str = ""

    @property
    def name(self) -> str:
        return f"{self.info.index}.html"

    def note(self, view: View) -> None:
        if is_prompt(view):
            self.prompts += 1
            self.asked = self.asked or asked(view) or ""


class _Document:
    """The records of one document, and what was told of them until now."""

    def __init__(self, session: Session, scope: Scope) -> None:
        self._session, self._scope = session, scope
        self.branches = Branches(session, all_branches=scope.all_branches, leave=scope.leave)
        self.agents = _Agents(session)
        self._renderer = html_record.Renderer()

    @cached_property
    def segments(self) -> tuple[SegmentInfo, ...]:
        """The segments that it has something of; to find those of a part, that is read once."""
        every = self._session.segments
        if self._scope.is_all:
            return every
        scope = replace(self._scope, seen=nothing_seen(), copies=Copies(), left=[])
        there = {number for number, _ in _Document(self._session, scope).items()}
        return tuple(info for info in every if info.index in there)

    @cached_property
    def _title(self) -> str:
        """Once for all pages: the newest segment may be read for it."""
        return short(str(self._session.title()) or self._session.id, 200)

    def items(self) -> Iterator[tuple[int, Viewed | BranchEdge]]:
        """Yield what is on it, with the number of the segment that it stands in."""
        records = self._scope.records(self._session)
        number = 0
        told = self.branches.told(_viewed(self._session, records))
        within = self._scope.within(self._session, has_rewound=self._scope.all_branches)
        for item in within.of(told):
            number = number if isinstance(item, BranchEdge) else item[0].segment
            yield number, item
            del item

    def page(
        self,
        listed: Sequence[SegmentInfo],
        items: Iterable[tuple[int, Viewed | BranchEdge]],
        written: _Written | None = None,
    ) -> Iterator[str]:
        """Yield a page of these items, which stand in the segments that are `listed`.

        With `written`, it is one of several, and that is filled in.
        """
        scope = self._scope
        self._renderer.page = "" if written is None else written.name
        yield self._opening(None if written is None else written.info.index)
        yield from (f'<p class="note">{short(note, 1000)}</p>\n' for note in scope.told())
        coming = deque(listed)
        info = None
        shown = unreadable = 0
        for _, item in items:
            if isinstance(item, BranchEdge):
                yield f'<p class="branch">{html_text.escape(phrases.branch(item))}</p>\n'
                continue
            record, view = item
            if shown and not shown % _TOGETHER:
                yield "</section>\n<section>\n"
            while info is None or info.index < record.segment:
                info = coming.popleft()
                yield _heading(info)
            shown += 1
            if view is None:
                unreadable += 1
                yield self._renderer.broken(record)
            else:
                is_rewound = self.branches.is_in and view.kind != "other"
                yield self._renderer.article(record, view, info.boundary, is_rewound=is_rewound)
                yield from self.agents.behind(view)
                if written is not None:
                    written.note(view)
            del item, record, view  # before the next one is read: each may have megabytes
        yield from map(_heading, coming)
        if scope.is_all and written is None:
            yield from self.agents.rest(self.branches.left_calls)
        if written is not None:
            written.records = shown
        yield _closing(shown, unreadable, self.branches.left_out)

    def index(self, written: Sequence[_Written]) -> Iterator[str]:
        """Yield the page that leads to the others, with the agents that belong to no call."""
        scope = self._scope
        yield self._opening(-1)
        yield from (f'<p class="note">{short(note, 1000)}</p>\n' for note in scope.told())
        for page in written:
            prompts, records = (page.prompts, "prompt"), (page.records, "record")
            many = ", ".join(render.count(*each) for each in (prompts, records))
            yield (
                f'<h2><a href="{page.name}">Segment {page.info.index}</a></h2>\n'
                f'<p class="note">{many}. {short(page.asked, 200)}</p>\n'
            )
        if scope.is_all:
            yield from self.agents.rest(self.branches.left_calls)
        yield _closing(sum(page.records for page in written), 0, self.branches.left_out)

    def _opening(self, here: int | None) -> str:
        """Return what comes before the records: of all segments, or of one that is on a page."""
        session, title = self._session, self._title
        style, script, bar = (asset("export", name) for name in ("page.css", "page.js", "bar.html"))
        listed = [_entry(info, is_here=here in {None, info.index}) for info in self.segments]
        if here is not None:
            listed = ['<li><a href="index.html">Index</a></li>\n', *listed]
        return f"""{head(title, style, script, pictures=True)}<body>
{bar.replace("TITLE", title)}
<nav id="sidebar"><h2>{short(session.client, 40)} session</h2><ol>
{"".join(listed)}</ol></nav>
<main>
<section>
"""


def _viewed(session: Session, records: Iterator[Record]) -> Iterator[Viewed]:
    viewed = ((record, session.view(record)) for record in records)
    for record, view in deduplicate.delivered_once(viewed):
        yield record, None if view is None else typed_first(view)
        del record, view


class _Agents:
    """The transcripts of a session's agents, each folded below the call that started it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting = {
            number: agent for number, agent in enumerate(session.agents()) if not agent.is_warm_up
        }

    def behind(self, view: View) -> Iterator[str]:
        """Yield the transcripts of the agents that this record's calls started."""
        calls = {block.id for block in view.blocks if isinstance(block, ToolCall)}
        for number in [n for n, agent in self._waiting.items() if agent.call in calls]:
            yield from self._transcript(number)

    def rest(self, left_calls: Container[str | None]) -> Iterator[str]:
        """Yield the transcripts that belong to no call of the history, none of `left_calls`."""
        waiting = self._waiting.items()
        self._waiting = {n: agent for n, agent in waiting if agent.call not in left_calls}
        if self._waiting:
            yield '<h2 id="agents">Agents</h2>\n'
        while self._waiting:
            yield from self._transcript(min(self._waiting))

    def _transcript(self, number: int) -> Iterator[str]:
        agent = self._waiting.pop(number)
        renderer = html_record.Renderer(f"a{number}-")
        asked = f'<span data-hint="{short(agent.asked or "", 140)}"></span>'
        hint = f"<b>Agent</b> {short(agent.id, 60)} {asked}"
        yield f'<details class="agent"><summary>{hint}</summary>'
        try:
            for record in deduplicate.once(self._session.records_of(agent), self._session.key):
                view = self._session.view(record)
                if view is None:
                    yield renderer.broken(record)
                else:
                    yield renderer.article(record, replace(view, is_sidechain=True), None)
                    yield from self.behind(view)
        except SessrotateError as error:
            yield f'<p class="note">{short(str(error), 300)}</p>'
        yield "</details>\n"


def _entry(info: SegmentInfo, *, is_here: bool) -> str:
    time = info.first_timestamp or (info.boundary.timestamp if info.boundary else None)
    page = "" if is_here else f"{info.index}.html"
    link = f'<a href="{page}#s{info.index}">Segment {info.index}</a> {html_record.moment(time, 16)}'
    if page:
        return f"<li>{link}</li>\n"
    return f"<li><details><summary>{link}</summary><ol></ol></details></li>\n"


def _heading(info: SegmentInfo) -> str:
    return f'<h2 id="s{info.index}">Segment {info.index}</h2>\n'


def _closing(shown: int, unreadable: int, left_out: int) -> str:
    told = f"{shown:,} records" + (f", {unreadable:,} of them unreadable" if unreadable else "")
    if left_out:
        told += f"; left out: {left_out:,} of rewound branches"
    return f"</section>\n</main>\n<footer>{told}. Made by sessrotate.</footer>\n</body>\n</html>\n"
