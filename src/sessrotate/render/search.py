"""What a search finds → lines for people, or an object a line for programs. Pure.

Rule: with each hit stands the command that shows it. All text of a session passes `safe_text`
first, and colours are added only here.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from sessrotate import render, safe_text
from sessrotate.reading.select import Group, Line
from sessrotate.render import conversation
from sessrotate.render.columns import Canvas
from sessrotate.reports import SessionInfo, short_names

if TYPE_CHECKING:
    from sessrotate.reading.search import Hit

_IN_PIPE: Final = 500
"""Characters of a line where there is no terminal: enough for a model, and no flood."""

_NARROWEST: Final = 40
_TITLE: Final = 80
_PROJECT: Final = 100
_MARGIN: Final = "    "


class Results:
    """How hits are shown; `known` are sessions, `others` the ids of all others that there are."""

    def __init__(
        self,
        known: Sequence[SessionInfo],
        others: Sequence[str],
        canvas: Canvas,
        *,
        around: int,
        is_raw: bool,
    ) -> None:
        sessions = [each for each in known if each.standing != "copy"]
        names = (name for each in sessions for name in {each.name, each.id})
        self._short: Final = short_names([*names, *others])
        self._ids: Final = Counter([*(each.id for each in known), *others])
        self._canvas: Final = canvas
        self._around: Final = around
        self._is_raw: Final = is_raw

    def heading(self, info: SessionInfo) -> str:
        """Return the line about a session that stands before its first hit."""
        return self._canvas.paint("rule", _heading(info, self.name(info))) + "\n"

    def count(self, info: SessionInfo, hits: int) -> str:
        """Return the line about a session that says how often something is found in it."""
        return f"{hits:>6,} · {self.heading(info)}"

    def hit(self, info: SessionInfo, hit: Hit) -> str:
        """Return the lines of a hit."""
        return "".join(f"{line}\n" for line in self._lines(info, hit))

    def _lines(self, info: SessionInfo, hit: Hit) -> Iterator[str]:
        paint = self._canvas.paint
        who = safe_text.clipped(hit.who or "not a record", 60)
        time = safe_text.clipped(render.time(hit.time), 40) if hit.time else ""
        words = " · ".join(word for word in (who, time) if word)
        yield f"  {paint('bold', words)} · {paint('dim', self.command(info, hit))}"
        for number, group in enumerate(hit.groups):
            if self._around and number:
                yield f"{_MARGIN}--"
            yield from (self._shown(line) for line in group)

    def name(self, info: SessionInfo) -> str:
        """Return the shortest beginning of a session's name that is enough, or its path.

        A copy is told apart by all of its name.
        """
        if self._ids[info.id] > 1 or _is_agents(info):
            return str(info.path)
        return info.id if info.standing == "copy" else self._short[info.name]

    def command(self, info: SessionInfo, hit: Hit) -> str:
        """Return the command that shows a hit."""
        place = f"{hit.segment}:{hit.offset}:{hit.character}"
        words = ["sessrotate", "read", self.name(info), "--at", place]
        words += ["--format", "jsonl"] if self._is_raw else []
        return safe_text.line(shlex.join(words))

    def _shown(self, line: Line) -> str:
        mark = "> " if self._around and line.spans is not None else "  " if self._around else ""
        width = self._canvas.width
        room = _IN_PIPE if width is None else max(_NARROWEST, width - len(_MARGIN) - len(mark))
        return f"{_MARGIN}{mark}{conversation.marked(line, room, self._canvas)}".rstrip()


def _is_agents(info: SessionInfo) -> bool:
    """Tell whether it is the transcript of an agent, which has no id."""
    return info.id == str(info.path)


def as_json(info: SessionInfo, hit: Hit) -> str:
    """Return a hit as a JSON object on one line, all ASCII."""
    return _object(
        info,
        segment=hit.segment,
        offset=hit.offset,
        character=hit.character,
        time=hit.time,
        who=hit.who,
        text=_text(hit.groups),
    )


def session_as_json(info: SessionInfo, hits: int | None) -> str:
    """Return a session in which something is found as `as_json` does, with the number if known."""
    return _object(info) if hits is None else _object(info, hits=hits)


def _object(info: SessionInfo, **told: object) -> str:
    about = {
        "session": info.id,
        "client": info.client,
        "project": info.project,
        "title": info.title.text,
    }
    return render.dumps({**about, **told}) + "\n"


def progress(done: int, total: int, hits: int) -> str:
    """Return the words about a search at work, of which so many parts are done."""
    return f"Searching: {done * 100 // max(total, 1)} %, {render.count(hits, 'hit')}"


def sums(hits: int | None, found: int, searched: int, there: int, most: int | None) -> str:
    """Return the sentence about all that is found: how many hits in how many sessions.

    `hits` is None where nobody counted, and `most` is what it stopped at. Of the sessions that are
    `there`, so many were `searched`.
    """
    if not found and searched < there:
        of_all = f"{searched:,} of {render.count(there, 'session')}"
        return f"Nothing found in {of_all}: the options leave the others out."
    if not found:
        return f"Nothing found in {render.count(searched, 'session')}."
    told = "" if hits is None else f"{render.count(hits, 'hit')} in "
    if most is not None:
        return f"{told}{render.count(found, 'session')}; stopped at {most:,}, there may be more."
    return f"{told}{found:,} of {render.count(searched, 'session')}."


def pruned(number: int) -> str:
    """Return the sentence about segments that were pruned."""
    return f"{render.count(number, 'pruned segment')} {_were(number)} not searched."


def unsearched(number: int) -> str:
    """Return the sentence about lines that are too long."""
    many = render.count(number, "line")
    return f"{many} longer than 8 MiB, which may match, {_were(number)} not searched."


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _heading(info: SessionInfo, name: str) -> str:
    ended = render.moment(info.last_used).isoformat() if info.ended is None else info.ended
    words = [
        safe_text.line(name),
        safe_text.clipped(info.title.text, _TITLE),
        safe_text.clipped(info.project, _PROJECT),
        safe_text.clipped(render.time(ended), 40),
    ]
    return " · ".join(word for word in words if word)


def _text(groups: Iterable[Group]) -> str:
    return "\n".join(
        f"{'…' * line.is_cut[0]}{line.text}{'…' * line.is_cut[1]}"
        for group in groups
        for line in group
    )
