"""A session as one page for a browser, which needs nothing else and lets nothing out.

Rule: no content of a session can run. It is escaped (`html_record`), and the page's own policy
allows no script and no style but the two files of `assets`, by their hashes, and no request.
"""

from __future__ import annotations

import base64
import hashlib
from collections import deque
from importlib import resources
from typing import TYPE_CHECKING, Final

from sessrotate import unique
from sessrotate.export import html_record
from sessrotate.export.html_text import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.bodies import SegmentInfo
    from sessrotate.session import Session


_TOGETHER: Final = 40
"""Records that a browser draws together, or not at all: it keeps a watch on each such group."""


def pieces(session: Session) -> Iterator[bytes]:
    """Yield the page, UTF-8. Raises as `Session.history` does.

    A segment's prompts are listed in the sidebar by the page's own script when it is opened, so
    nothing needs to be held or read twice here.
    """
    for part in _parts(session):
        yield part.encode()


def _parts(session: Session) -> Iterator[str]:
    segments = session.segments
    yield _opening(short(session.id, 200), session, segments)
    renderer = html_record.Renderer()
    coming = deque(segments)
    info = None
    shown = unreadable = 0
    for record in unique.once(session.history()):
        if shown and not shown % _TOGETHER:
            yield "</section>\n<section>\n"
        while info is None or info.index < record.segment:
            info = coming.popleft()
            yield _heading(info)
        view = session.view(record)
        shown += 1
        if view is None:
            unreadable += 1
            yield html_record.broken(record)
        else:
            yield renderer.article(record, view, info.boundary)
        del record, view  # before the next one is held too: each may have megabytes
    yield from map(_heading, coming)
    yield _closing(shown, unreadable)


def _opening(title: str, session: Session, segments: tuple[SegmentInfo, ...]) -> str:
    style, script = _asset("page.css"), _asset("page.js")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {_hash(script)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    listed = "".join(_entry(info) for info in segments)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
<script>{script}</script>
</head>
<body>
{_asset("bar.html").replace("TITLE", title)}
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


def _asset(name: str) -> str:
    found = resources.files("sessrotate.export").joinpath("assets", name)
    return found.read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
