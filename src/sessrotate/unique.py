"""The records of a session, each once.

Rule: a row is known by its uuid, and any other line by its bytes. What a resumed clone repeats of
its parent, and what a second compaction in one process appends anew (2.1.112 to 2.1.300, mostly
with other bytes: `slug`, `promptId`), is no record of its own; the first copy stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.digest import Fingerprint
from sessrotate.formats.claude_live import row_of, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sessrotate.records import Record


def once(records: Iterable[Record]) -> Iterator[Record]:
    """Yield each record the first time it comes."""
    seen: set[str] = set()
    for record in records:
        key = text(row_of(record) or {}, "uuid") or _of_bytes(record)
        if key not in seen:
            seen.add(key)
            yield record


def _of_bytes(record: Record) -> str:
    found = Fingerprint()
    found.update(record.line)
    return f"{found.digest} {record.size}"
