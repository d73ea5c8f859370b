"""Sessions of Gemini CLI for tests: rows as the client writes them, and bytes as a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessrotate.clients.gemini import client as gemini
from sessrotate.clients.gemini import reader as gemini_reader
from sessrotate.model import Boundary, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessrotate.clients.protocol import Reader
    from sessrotate.parsing import Record

FIXTURES = Path(__file__).parents[2] / "fixtures" / "gemini"
APPENDED = sorted(FIXTURES.rglob("*.jsonl"))
WHOLE = sorted(FIXTURES.rglob("*.json"))
UUID = "aa6eaa51-445d-49b9-9bb9-56414e731c81"
TIME = "2026-11-21T23:37:14.223Z"


def line(value: Any) -> bytes:
    """Return a value as the client writes a line, without the newline."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def metadata(**more: Any) -> dict[str, Any]:
    """Return the row that a session begins with."""
    times = {"startTime": TIME, "lastUpdated": TIME}
    return {"sessionId": UUID, "projectHash": "0" * 64, **times, "kind": "main", **more}


def message(name: str, kind: str = "user", content: Any = None, **more: Any) -> dict[str, Any]:
    """Return a message; a text by default that its id is in."""
    content = [{"text": f"text of {name}"}] if content is None else content
    return {"id": name, "timestamp": TIME, "type": kind, "content": content, **more}


def update(*messages: Any, **more: Any) -> dict[str, Any]:
    """Return an update that replaces all messages."""
    return {"$set": {"messages": [*messages], "lastUpdated": TIME, **more}}


def context() -> dict[str, Any]:
    """Return what the client says before anything else."""
    return message("context", content=[{"text": "<session_context>\nThis is the Gemini CLI."}])


def file(*rows: Any) -> bytes:
    """Return a session's bytes; what is bytes already stands as it is."""
    lines = (row if isinstance(row, bytes) else line(row) for row in rows)
    return b"".join(each + b"\n" for each in lines)


class Held:
    """An open session in memory, cut at its boundaries; a `Reading`."""

    def __init__(
        self,
        data: bytes,
        path: Path = Path(f"session-{UUID[:8]}.jsonl"),
        reader: Any = None,
        piece: int = 64 * 1024,
    ) -> None:
        self.piece = piece
        self.path = self.beside = path
        self.id, self.data = path.stem, data
        self.reader: Reader = reader or gemini_reader
        cuts, at = [0], 0
        for each in data.split(b"\n") if reader is None else ():
            if gemini.MARKER in each:
                found = gemini.boundary([each], Span(at, at + len(each)))
                cuts += [at] if isinstance(found, Boundary) and at else []
            at += len(each) + 1
        self.cuts = [*cuts, len(data)]
        self.newest = len(cuts) - 1

    def segment(self, index: int) -> Iterator[Record]:
        """Yield the records of one segment."""
        body = self.data[self.cuts[index] : self.cuts[index + 1]]
        yield from self.reader.records(self._pieces(body), index)

    def history(self) -> Iterator[Record]:
        """Yield all records."""
        for index in range(self.newest + 1):
            yield from self.segment(index)

    def bytes_of(self, record: Record) -> Iterator[bytes]:
        """Yield a record's bytes."""
        start = self.cuts[record.segment] + record.offset
        yield from self._pieces(self.data[start : start + record.size])

    def older(self) -> Iterator[Callable[[], Iterator[Record]]]:
        """Yield nothing: this format does not ask."""
        return iter(())

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        return (data[at : at + self.piece] for at in range(0, len(data), self.piece))
