"""The records of a session → the same, with branches that were rewound left out or marked.

Rule: what a client's reader knows to be rewound, and what agents said there. A line that belongs to
no conversation, or that nobody can read, stays wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from sessrotate.clients.view import ToolCall, View
from sessrotate.reading.pair_tools import BranchEdge

if TYPE_CHECKING:
    from sessrotate.parsing.records import Record
    from sessrotate.reading.pair_tools import Viewed
    from sessrotate.reading.session import Session


class Branches:
    """Tells the branches of one session apart, while its records come in the order of the history.

    Before the first record comes, the history is read once for it. `leave` is told what is left
    out.
    """

    def __init__(
        self, session: Session, *, all_branches: bool, leave: Callable[[Session, Record], None]
    ) -> None:
        self._session = session
        self._all = all_branches
        self._leave = leave
        self.is_in = False
        """Whether the last record that came is in a branch that was rewound."""
        self.left_out = 0
        """How many records were left out until now."""
        self.left_calls: set[str | None] = set()
        """The tool calls in them, by their ids."""

    def told(self, items: Iterable[Viewed]) -> Iterator[Viewed | BranchEdge]:
        """Yield what is to be shown, and the edges of branches, or the places of those left out."""
        is_rewound = self._session.reader.rewound(self._session)
        here = 0
        for record, view in items:
            # What waited in the client's queue has no place in the tree of the conversation.
            is_said = view is not None and view.kind != "other" and view.queue is None
            is_its_own = is_said and view is not None and not view.is_sidechain
            if is_its_own and is_rewound(record) != self.is_in:
                if self._all or self.is_in:
                    yield BranchEdge(is_end=self.is_in, left_out=self.left_out - here)
                self.is_in, here = not self.is_in, self.left_out
            if view is not None and is_said and self.is_in and not self._all:
                self.left_out += 1
                self._leave(self._session, record)
                self.left_calls |= _calls(view)
            else:
                yield record, view
            del record, view  # before the next one is read: each may have megabytes
        if self.is_in:
            yield BranchEdge(is_end=True, left_out=self.left_out - here)


def _calls(view: View) -> set[str | None]:
    return {block.id for block in view.blocks if isinstance(block, ToolCall)}


def calls_noted(
    items: Iterable[Viewed | BranchEdge], calls: set[str | None]
) -> Iterator[Viewed | BranchEdge]:
    """Yield the same, and note the tool calls in them, by their ids."""
    for item in items:
        if not isinstance(item, BranchEdge) and item[1] is not None:
            calls |= _calls(item[1])
        yield item
        del item
