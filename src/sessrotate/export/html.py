"""A session as one self-contained page for a browser.

Rule: nothing in a session can run or send a request. It is escaped (`html_record`), and the page's
own security policy allows only the script and the style of `assets`, by their hashes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sessrotate.clients.view import ToolCall
from sessrotate.errors import SessrotateError
from sessrotate.export import html_record
from sessrotate.export.branches import Branches
from sessrotate.reading import deduplicate
from sessrotate.reading.pair_tools import BranchEdge
from sessrotate.render import html_text, phrases
from sessrotate.render.html_head import asset, head
from sessrotate.render.html_text import short

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from sessrotate.clients.view import View
    from sessrotate.parsing.records import Record
    from sessrotate.reading.open_segments import SegmentInfo
    from sessrotate.reading.pair_tools import Viewed
    from sessrotate.reading.session import Session


_TOGETHER: Final = 40
"""How many records a browser draws together: it watches each such group, and skips hidden ones."""


def pieces(session: Session, *, all_branches: bool = False) -> Iterator[bytes]:
    """Yield the page, UTF-8, without branches that were rewound, unless `all_branches`.

    Raises as `Session.history` does.

    The page's own script lists a segment's prompts in the sidebar when it is opened, so nothing has
    to be kept or read twice here.
    """
    for part in _parts(session, Branches(session, all_branches=all_branches)):
        yield part.encode()


def _parts(session: Session, branches: Branches) -> Iterator[str]:
    segments = session.segments
    yield _opening(short(str(session.title()) or session.id, 200), session, segments)
    renderer, agents = html_record.Renderer(), _Agents(session)
    coming = deque(segments)
    info = None
    shown = unreadable = 0
    records = deduplicate.once(session.said(session.history()), session.key)
    for item in branches.told(_viewed(session, records)):
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
            yield renderer.broken(record)
        else:
            yield renderer.article(
                record, view, info.boundary, is_rewound=branches.is_in and view.kind != "other"
            )
            yield from agents.behind(view)
        del item, record, view  # before the next one is read: each may have megabytes
    yield from map(_heading, coming)
    yield from agents.rest(branches.left_calls)
    yield _closing(shown, unreadable, branches.left_out)


def _viewed(session: Session, records: Iterator[Record]) -> Iterator[Viewed]:
    for record in records:
        yield record, session.view(record)
        del record


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


def _opening(title: str, session: Session, segments: tuple[SegmentInfo, ...]) -> str:
    listed = "".join(_entry(info) for info in segments)
    style, script, bar = (asset("export", name) for name in ("page.css", "page.js", "bar.html"))
    return f"""{head(title, style, script, pictures=True)}<body>
{bar.replace("TITLE", title)}
<nav id="sidebar"><h2>{short(session.client, 40)} session</h2><ol>
{listed}</ol></nav>
<main>
<section>
"""


def _entry(info: SegmentInfo) -> str:
    time = info.first_timestamp or (info.boundary.timestamp if info.boundary else None)
    return (
        f'<li><details><summary><a href="#s{info.index}">Segment {info.index}</a> '
        f"{html_record.moment(time, 16)}</summary><ol></ol></details></li>\n"
    )


def _heading(info: SegmentInfo) -> str:
    return f'<h2 id="s{info.index}">Segment {info.index}</h2>\n'


def _closing(shown: int, unreadable: int, left_out: int) -> str:
    told = f"{shown:,} records" + (f", {unreadable:,} of them unreadable" if unreadable else "")
    if left_out:
        told += f"; left out: {left_out:,} of rewound branches"
    return f"</section>\n</main>\n<footer>{told}. Made by sessrotate.</footer>\n</body>\n</html>\n"
