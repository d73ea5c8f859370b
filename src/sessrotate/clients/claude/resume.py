"""What resuming a Claude Code session needs of what stands before a cut.

Promise: the questions of `in_place.Resume`, each answered where its rule stands: `carried_lines`
has what goes along, and `loading` what clients load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessrotate.clients.claude import carried_lines, loading, tail
from sessrotate.clients.claude.ancestry import NoPlanError, Room
from sessrotate.clients.claude.survey import Survey
from sessrotate.model import Span
from sessrotate.parsing import lines

if TYPE_CHECKING:
    from sessrotate.system.source import Source

plan: Final = carried_lines.plan

of_conversation: Final = loading.of_conversation

says_at: Final = loading.says_at


def last_row(source: Source, end: int) -> Span | None:
    """Return the last row of the conversation before an offset, no agent's, without its newline.

    Clients go on from the row that stands last, whatever follows it (2.1.112 and later).
    """
    for start, stop, row in Survey(source, lines.WINDOW).backward(end):
        if row is not None and row.uuid and not row.is_sidechain:
            return Span(start, stop)
    return None


def ends_in_a_row(source: Source) -> bool:
    """Tell whether a file's last line is a row of the conversation, whole."""
    last = next(Survey(source, lines.WINDOW).backward(source.size()), None)
    return last is not None and last[2] is not None and bool(last[2].uuid)


def dangles(source: Source, prefix: int, judged: int) -> bool:
    """Tell whether a row from offset `judged` on continues one that is nowhere in the file.

    A user went back, in a client that ran, to a message that a rotation had archived: the client
    knows it still, and what it writes from then on continues a row of the archive. Never wrong
    where it says no: whether the archive has the row, and what else a resume needs then, is for
    `carried_lines` to say.

    What stands before was there when the session was rotated, or carried along, in the first
    `prefix` bytes. The first row of those is the session's first prompt, mostly, and may be one
    that clients would not load of the whole. True as well if the rows are too many to tell.
    """
    survey, end = Survey(source, lines.WINDOW), source.size()
    try:
        parents = tail.read(survey, Span(min(judged, end), end), Room().take).parents
    except NoPlanError:
        return True
    first = None
    for start, _, row in survey.forward(Span(0, judged)) if parents else ():
        if row is not None and row.uuid is not None:
            if first is None and start < prefix and row.uuid in parents:
                return True
            first = row.uuid
            parents.discard(row.uuid)
    return bool(parents)
