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
from sessrotate.reading import deduplicate
from sessrotate.render.html_head import asset, head
from sessrotate.render.html_text import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.clients.view import View
    from sessrotate.reading.open_segments import SegmentInfo
    from sessrotate.reading.session import Session


_TOGETHER: Final = 40
"""How many records a browser draws together: it watches each such group, and skips hidden ones."""


def pieces(session: Session) -> Iterator[bytes]:
    """Yield the page, UTF-8. Raises as `Session.history` does.

    The page's own script lists a segment's prompts in the sidebar when it is opened, so nothing has
    to be kept or read twice here.
    """
    for part in _parts(session):
        yield part.encode()


def _parts(session: Session) -> Iterator[str]:
    segments = session.segments
    yield _opening(short(str(session.title()) or session.id, 200), session, segments)
    renderer, agents = html_record.Renderer(), _Agents(session)
    coming = deque(segments)
    info = None
    shown = unreadable = 0
    for record in deduplicate.once(session.said(session.history()), session.key):
        if shown and not shown % _TOGETHER:
            yield "</section>\n<section>\n"
        while info is None or info.index < record.segment:
            info = coming.popleft()
            yield _heading(info)
        view = session.view(record)
        shown += 1
        if view is None:
            unreadable += 1
            yield renderer.broken(record)
        else:
            yield renderer.article(record, view, info.boundary)
            yield from agents.behind(view)
        del record, view  # before the next one is read: each may have megabytes
    yield from map(_heading, coming)
    yield from agents.rest()
    yield _closing(shown, unreadable)


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

    def rest(self) -> Iterator[str]:
        """Yield the transcripts that belong to no call of the history."""
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


def _closing(shown: int, unreadable: int) -> str:
    told = f"{shown:,} records" + (f", {unreadable:,} of them unreadable" if unreadable else "")
    return f"</section>\n</main>\n<footer>{told}. Made by sessrotate.</footer>\n</body>\n</html>\n"
