"""What a client's rows look like: one row of each kind, taken from a session that it wrote.

Rule: nothing here is made up. What a client did not write is not in its kit, and no row made of one
has a key that the client did not give it.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from support.real_clients.editing import Row

SMALL = 16 * 1024
"""Bytes up to which a row is taken: a prompt of 57 KB says nothing about how rows hang together."""


@dataclass(frozen=True)
class Kit:
    """A version of the client, and its rows by kind.

    `opening` follows the first prompt of a process, `restored` a compaction, and `resumed` is what
    a process says of itself that resumes one. `around` is metadata, which stands anywhere.
    """

    version: str
    prompt: Row
    speech: Row
    call: Row
    result: Row
    boundary: Row
    summary: Row
    command: tuple[Row, ...]
    opening: tuple[Row, ...] = ()
    restored: tuple[Row, ...] = ()
    resumed: tuple[Row, ...] = ()
    around: tuple[Row, ...] = ()
    pointer: Row | None = None
    progress: Row | None = None
    key: tuple[int, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", tuple(int(part) for part in self.version.split(".")))

    @property
    def preserves(self) -> bool:
        """Whether its compactions preserve rows."""
        return "preservedMessages" in self.boundary["compactMetadata"]

    @property
    def has_calls_side_by_side(self) -> bool:
        """Whether each of its calls is the parent of its own result."""
        return self.key >= (2, 1, 30)


def kit_of(version: str, rows: Iterable[Row]) -> Kit:
    """Return the kit of the client that wrote these rows: `making.with_tools`, one compaction."""
    rows = [row for row in copy.deepcopy([*rows]) if len(json.dumps(row)) <= SMALL]
    spoken = [row for row in rows if row.get("uuid")]
    boundary = _first(rows, lambda row: row.get("subtype") == "compact_boundary")
    after = spoken[spoken.index(boundary) + 1 :]
    summary = _first(after, lambda row: bool(row.get("isCompactSummary")))
    command = after[after.index(summary) + 1 :][:3]
    later = after[after.index(command[-1]) + 1 :]
    restored = [*_until(later, lambda row: row["type"] != "attachment")]
    resumed = [*_until(later[len(restored) :], _is_prompt)]
    prompt = _first(spoken, _is_prompt)
    result = _first(spoken, lambda row: "tool_result" in _blocks(row))
    opening = _until(spoken[1:], lambda row: row["type"] != "attachment")
    pointers = [row for row in rows if row["type"] == "last-prompt"]
    names = {row["type"] for row in rows if "uuid" not in row}
    around = [
        _first(rows, lambda row, name=name: row["type"] == name)
        for name in sorted(names - {"last-prompt"})
        if not name.startswith("api-request")
    ]
    return Kit(
        version=version,
        prompt=prompt,
        speech=_first(spoken[spoken.index(result) :], lambda row: row["type"] == "assistant"),
        call=_first(spoken, lambda row: "tool_use" in _blocks(row)),
        result=result,
        boundary=boundary,
        summary=summary,
        command=tuple(command),
        opening=tuple(opening),
        restored=tuple(restored),
        resumed=tuple(resumed),
        around=tuple(around),
        pointer=pointers[-1] if pointers else None,
        progress=next((row for row in spoken if row["type"] == "progress"), None),
    )


def _first(rows: Iterable[Row], wanted: Any) -> Row:
    return next(row for row in rows if wanted(row))


def _until(rows: Iterable[Row], ends: Any) -> Iterator[Row]:
    for row in rows:
        if ends(row):
            return
        yield row


def _blocks(row: Row) -> list[str]:
    content = (row.get("message") or {}).get("content")
    return [block["type"] for block in content] if isinstance(content, list) else []


def _is_prompt(row: Row) -> bool:
    is_asked = row["type"] == "user" and "tool_result" not in _blocks(row)
    return is_asked and not row.get("isMeta") and not row.get("isCompactSummary")
