"""Whether a rotated session goes on from a row that its live file does not have.

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


def dangles(source: Source, judged: int) -> bool:
    """Tell whether a row from offset `judged` on continues one that is nowhere in the file.

    What stands before was carried along, or there when the session was rotated. True as well if the
    rows are too many to tell.
    """
    survey, end = Survey(source, lines.WINDOW), source.size()
    try:
        parents = tail.read(survey, Span(min(judged, end), end), Room().take).parents
    except RefusedError:
        return True
    if parents:
        parents -= {row.uuid for _, _, row in survey.forward(Span(0, judged)) if row is not None}
    return bool(parents)
