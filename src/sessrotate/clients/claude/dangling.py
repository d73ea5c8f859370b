"""Whether a rotated session goes on from a row that its live file does not have, or should not.

A user went back, in a client that ran, to a message that a rotation had archived. The client knows
it still, and what it writes from then on continues a row of the archive.

Rule: cheap, and never wrong where it says no. Whether the archive has the row, and what else a
resume needs then, is for `contract` to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.clients.claude import tail
from sessrotate.clients.claude.ancestry import RefusedError, Room
from sessrotate.clients.claude.survey import Survey
from sessrotate.model import Span
from sessrotate.parsing import lines

if TYPE_CHECKING:
    from sessrotate.system.source import Source


def dangles(source: Source, prefix: int, judged: int) -> bool:
    """Tell whether a row from offset `judged` on continues one that is nowhere in the file.

    What stands before was there when the session was rotated, or carried along, in the first
    `prefix` bytes. The first row of those is the session's first prompt, mostly, and may be one
    that clients would not load of the whole. True as well if the rows are too many to tell.
    """
    survey, end = Survey(source, lines.WINDOW), source.size()
    try:
        parents = tail.read(survey, Span(min(judged, end), end), Room().take).parents
    except RefusedError:
        return True
    first = None
    for start, _, row in survey.forward(Span(0, judged)) if parents else ():
        if row is not None and row.uuid is not None:
            if first is None and start < prefix and row.uuid in parents:
                return True
            first = row.uuid
            parents.discard(row.uuid)
    return bool(parents)
