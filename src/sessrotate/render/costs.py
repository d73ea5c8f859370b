"""What answers cost in tokens, added up while they pass. Pure.

Rule: an answer counts once, however many records its client cut it into: these share a message's id
and stand together. Nothing is kept of it but the sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessrotate.render import common

if TYPE_CHECKING:
    from sessrotate.clients.view import Tokens, View


_MOST: Final = 10**15


def told(tokens_in: int, tokens_out: int) -> str:
    """Return how many tokens were sent and received, in words."""
    if max(tokens_in, tokens_out) >= _MOST:  # a file may hold any number
        return "very many tokens"
    return f"{common.count(tokens_in, 'token')} in, {tokens_out:,} out"


class Costs:
    """The answers since the last `take`."""

    def __init__(self) -> None:
        self._answers = self._in = self._out = 0
        self._now: tuple[str | None, int, int] | None = None

    def add(self, view: View) -> None:
        """Count a record's answer, if it is one whose cost is known."""
        if view.tokens is None:
            return
        sent, received = _sums(view.tokens)
        if self._now is not None and view.message is not None and self._now[0] == view.message:
            # The last record of an answer knows best; all of them repeat what was sent.
            self._now = view.message, max(sent, self._now[1]), max(received, self._now[2])
            return
        self._end()
        self._now = view.message, sent, received

    def take(self) -> str | None:
        """Return what the answers cost since the last time, None if that is not known."""
        self._end()
        answers, costs = self._answers, told(self._in, self._out)
        is_known = bool(self._in or self._out)
        self._answers = self._in = self._out = 0
        if not is_known:
            return None
        return f"{common.count(answers, 'answer')}: {costs}" if answers > 1 else costs

    def _end(self) -> None:
        if self._now is not None:
            _, sent, received = self._now
            self._answers, self._in, self._out = (
                self._answers + 1,
                self._in + sent,
                self._out + received,
            )
            self._now = None


def _sums(tokens: Tokens) -> tuple[int, int]:
    return tokens.sent + tokens.cached + tokens.stored, tokens.received
