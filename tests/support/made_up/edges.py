"""What the first and last bytes of the made-up client's sessions say."""

from __future__ import annotations

from typing import Any

from sessrotate.clients.preview import Sight, Title
from support.made_up.client import row_of


def of_live(_session: str, head: bytes, tail: bytes, older: bytes, *, is_whole: bool) -> Sight:
    """Return what is in sight of a session: its first row is its title."""
    first, last = _rows(older or head), _rows(head if is_whole else tail)
    title = next((row["text"] for row in first if row["is"] == "say"), "")
    times = [row["at"] for row in (*first[:1], *last[-1:])]
    return Sight(
        title=Title(title, "first prompt" if title else "none"),
        standing="session" if head else "empty",
        folder=None,
        branch=None,
        started=min(times, default=None),
        ended=max(times, default=None),
        first=str(first[0]["n"]) if first else None,
    )


brief = of_live


def uuids(head: bytes, tail: bytes) -> frozenset[str]:
    return frozenset(str(row["n"]) for row in (*_rows(head), *_rows(tail)))


def follows(_head: bytes) -> str | None:
    return None


def _rows(data: bytes) -> list[dict[str, Any]]:
    return [row for row in map(row_of, data.split(b"\n")) if row]
