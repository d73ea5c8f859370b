"""Codex sessions in memory, as a reader sees them, and rows as the client writes them."""

from __future__ import annotations

import json
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessrotate.clients.codex import reader
from sessrotate.parsing import Record, records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.clients.protocol import Reading

ID = "01a20069-3200-7812-9750-2eae4d402117"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "codex"
BARE = next((FIXTURES / "0.29.0").iterdir())
"""A session of the time before rows had envelopes."""

FILES = sorted(path for path in FIXTURES.rglob("*.jsonl") if path != BARE)


class Rows:
    """Writes rows of one shape: `bare`, `legacy` or `paginated`."""

    def __init__(self, shape: str = "paginated") -> None:
        self.shape = shape
        self.lines: list[bytes] = []

    def add(self, kind: str, **payload: Any) -> bytes:
        """Add a row and return it."""
        number = len(self.lines)
        row: dict[str, Any] = {
            "timestamp": f"2026-11-21T12:{number // 60:02d}:{number % 60:02d}.000Z"
        }
        if self.shape == "paginated":
            row["ordinal"] = number
        row |= {"type": kind, "payload": payload}
        self.lines.append(as_line(payload if self.shape == "bare" else row))
        return self.lines[-1]

    def item(self, **payload: Any) -> bytes:
        return self.add("response_item", **payload)

    def event(self, kind: str, **payload: Any) -> bytes:
        return self.add("event_msg", type=kind, **payload)

    def asked(self, text: str) -> None:
        """Add a turn's beginning: a prompt, as it is sent and as an event."""
        if self.shape != "bare":
            self.event("task_started")
        self.item(**message("user", text))
        if self.shape == "legacy":
            self.event("user_message", message=text)
        elif self.shape == "paginated":
            said = {"type": "UserMessage", "content": [{"type": "text", "text": text}]}
            self.event("item_completed", item=said)

    def turn(self, text: str) -> None:
        """Add a turn: a prompt and its answer."""
        self.asked(text)
        self.item(**message("assistant", f"re: {text}"))

    def compacted(self, *items: Any, summary: str = "so far", carries: bool = True) -> None:
        """Add a compaction."""
        history = {"replacement_history": list(items)} if carries else {}
        self.add("compacted", message=summary, **history)


def message(role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {
        "type": "message",
        "role": role,
        "content": [{"type": kind, "text": text} for text in texts],
    }


def as_line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def record(line: bytes) -> Record:
    return Record(0, 0, line, len(line))


class Opened:
    """A session of these lines, cut before each that is a compacted record."""

    def __init__(self, lines: list[bytes], path: Path = Path("/nowhere/s.jsonl")) -> None:
        self.id, self.path, self.beside = ID, path, path
        self._segments: list[list[bytes]] = [[]]
        for line in lines:
            if b'"type":"compacted","payload":{' in line[:120]:
                self._segments.append([])
            self._segments[-1].append(line)

    @property
    def newest(self) -> int:
        return len(self._segments) - 1

    def segment(self, index: int) -> Iterator[Record]:
        data = b"".join(line + b"\n" for line in self._segments[index])
        return records([data], index)

    def history(self) -> Iterator[Record]:
        for index in range(len(self._segments)):
            yield from self.segment(index)

    def bytes_of(self, record: Record) -> Iterator[bytes]:
        """Yield all of a line, of a long one in pieces."""
        data = b"".join(line + b"\n" for line in self._segments[record.segment])
        line = data[record.offset : record.offset + record.size]
        for at in range(0, len(line), 65536):
            yield line[at : at + 65536]

    def older(self) -> Iterator[Callable[[], Iterator[Record]]]:
        raise NotImplementedError


def opened(path: Path) -> Opened:
    return Opened(path.read_bytes().splitlines(), path)


def live(session: Reading) -> list[bytes]:
    """Return the lines that a resume needs: the session's first, and all from its base on."""
    base = reader.base(session)
    first = islice(session.segment(0), 1 if base else 0)
    rest = (session.segment(index) for index in range(base, session.newest + 1))
    return [record.line for record in chain(first, *rest)]
