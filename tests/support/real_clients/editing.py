"""A session that a real client wrote, as rows that can be changed, and written again as lines.

It promises that what is not touched stays byte for byte, and that a changed row is spelled as the
client spells its rows: the same keys in the same order, no spaces.

Rule: new rows are copies of the client's own, so that it takes them for its own.
"""

from __future__ import annotations

import copy
import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Row = dict[str, Any]

LARGE: Final = 5 * 1024 * 1024 + 4096
"""Bytes that make a file one of which 2.1.80 and later do not read all."""


@dataclass
class Session:
    """The rows of a session; `kept` and `gone` are lines that a rotated live file has, or not."""

    rows: list[Row | bytes]
    ending: bytes = b"\n"
    kept: list[Row | bytes] = field(default_factory=list)
    gone: list[Row | bytes] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Session:
        """Return the session in a file."""
        return cls([json.loads(line) for line in path.read_bytes().splitlines()])

    @property
    def data(self) -> bytes:
        """The bytes of the session's file."""
        return b"\n".join(map(line, self.rows)) + self.ending

    # ── finding ──────────────────────────────────────────────────────────────────────────────

    @property
    def records(self) -> list[Row]:
        """The rows that are objects."""
        return [row for row in self.rows if isinstance(row, dict)]

    @property
    def boundaries(self) -> list[Row]:
        """The compactions, in order."""
        return [row for row in self.records if row.get("subtype") == "compact_boundary"]

    @property
    def boundary(self) -> Row:
        """The last compaction."""
        return self.boundaries[-1]

    def at(self, row: Row | bytes) -> int:
        """Return where a row is."""
        return next(number for number, other in enumerate(self.rows) if other is row)

    def after(self, row: Row) -> Row:
        """Return the row of the conversation that continues this one."""
        return next(other for other in self.records if other.get("parentUuid") == row["uuid"])

    def question(self, text: str) -> Row:
        """Return the row of a prompt."""
        return next(
            row for row in self.records if row["type"] == "user" and text in json.dumps(row)
        )

    def answer(self, text: str) -> Row:
        """Return the row of the answer to a prompt."""
        start = self.at(self.question(text))
        return next(
            row for row in self.rows[start:] if isinstance(row, dict) and row["type"] == "assistant"
        )

    def rows_of(self, ending: str) -> list[Row]:
        """Return the rows whose uuids end so."""
        return [row for row in self.records if row.get("uuid", "").endswith(ending)]

    def leading_to(self, row: Row, count: int) -> list[Row]:
        """Return so many rows of the conversation, each continued by the next, the last `row`."""
        chain = [row]
        while len(chain) < count:
            parent = chain[0]["parentUuid"]
            chain.insert(0, next(one for one in self.records if one.get("uuid") == parent))
        return chain

    # ── changing ─────────────────────────────────────────────────────────────────────────────

    def another(self, row: Row, **changes: Any) -> Row:
        """Return a copy of a row that is a row of its own, of the same time."""
        made = copy.deepcopy(row)
        made["uuid"] = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{len(self.rows)} {row['uuid']}"))
        if made["type"] == "assistant":
            made["message"]["id"] = f"msg_{made['uuid']}"
        return {**made, **changes}

    def insert(self, before: Row | bytes, *rows: Row | bytes) -> None:
        """Put rows before another one."""
        at = self.at(before)
        self.rows[at:at] = rows

    def name_last_prompt(self, leaf: Row) -> None:
        """Append a row that names another one as what to go on from."""
        session = self.boundary["sessionId"]
        self.rows.append(
            {
                "type": "last-prompt",
                "lastPrompt": "Named.",
                "leafUuid": leaf["uuid"],
                "sessionId": session,
            }
        )

    def ask_again(self, parent: Row) -> Row:
        """Append a question that continues `parent`, and its answer; return the question.

        They are the newest rows of all, by which older clients tell what to go on from.
        """
        last = max(row["timestamp"] for row in self.records if "timestamp" in row)
        times = [later(last, milliseconds) for milliseconds in (10, 20)]
        question = self.another(
            self.question("After, question 1."), parentUuid=parent["uuid"], timestamp=times[0]
        )
        question["message"] = {
            "role": "user",
            "content": [{"type": "text", "text": "Another way, question."}],
        }
        self.rows.append(question)
        answer = self.another(
            self.answer("After, question 1."), parentUuid=question["uuid"], timestamp=times[1]
        )
        answer["message"]["content"] = [{"type": "text", "text": "Another way."}]
        self.rows.append(answer)
        pointers = [row for row in self.records if row["type"] == "last-prompt"]
        if pointers and "leafUuid" in pointers[-1]:
            self.rows.append({**pointers[-1], "leafUuid": answer["uuid"]})
        return question

    def preserve(self, rows: Sequence[Row], boundary: Row | None = None) -> Row:
        """Have a compaction, the last one, preserve rows as 2.1.330 does; return its metadata."""
        metadata = self.plain(boundary)
        uuids = [row["uuid"] for row in rows]
        anchor = self.after(boundary or self.boundary)["uuid"]
        metadata["preservedSegment"] = {
            "headUuid": uuids[0],
            "anchorUuid": anchor,
            "tailUuid": uuids[-1],
        }
        metadata["preservedMessages"] = {
            "anchorUuid": anchor,
            "uuids": uuids,
            "allUuids": [*uuids],
        }
        return metadata

    def plain(self, boundary: Row | None = None) -> Row:
        """Have a compaction, the last one, preserve nothing; return its metadata."""
        metadata: Row = (boundary or self.boundary)["compactMetadata"]
        metadata.pop("preservedSegment", None)
        metadata.pop("preservedMessages", None)
        return metadata


def later(time: str, milliseconds: int) -> str:
    """Return a time so much later; clients tell no less than a millisecond apart."""
    then = datetime.fromisoformat(time) + timedelta(milliseconds=milliseconds)
    return then.strftime("%Y-%m-%dT%H:%M:%S.") + f"{then.microsecond // 1000:03d}Z"


def enlarge(row: Row, size: int = LARGE) -> None:
    """Make a row large, by what a client stores with it and never sends."""
    row["toolUseResult"] = "x" * size


def line(row: Row | bytes) -> bytes:
    """Return a row as its line, without the newline."""
    if isinstance(row, bytes):
        return row
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()
