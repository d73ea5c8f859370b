"""A folder of segments that another tool wrote, as the public proposal has them: headers, no more.

The oldest is `ID.jsonl`, the others are `ID.1.jsonl`, `ID.2.jsonl` and so on, each with a header
that names the session. Names in headers are data: they are compared with the folder's listing and
never opened as paths. What they contradict is a problem of the set, and the rest can still be read.
Nothing here proves that a set is whole: there are no digests, and nobody can tell that the newest
segment is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from sessrotate import names
from sessrotate.errors import WrongUsageError, printable, storage
from sessrotate.segments.header_chain import NO_HEADER, Folder, codec_of
from sessrotate.segments.scan import MAX_BOUNDARIES
from sessrotate.segments.segment_set import Problem, SegmentFile, SegmentSet, describe


class _ForeignHeader(Struct, frozen=True):
    """What the header line of a file says."""

    file: str
    line: bytes
    parent: Any
    index: Any


def find(path: Path, folder: Folder | None = None) -> SegmentSet | None:
    """Return the set of another tool that a folder or a file in one stands for, None if it is none.

    Its segments have neither sizes nor digests. `folder` is the one that a file is in, if somebody
    has looked at that. Raises WrongUsageError if a folder holds several sessions, StorageError if
    the system reports an error.
    """
    with storage("look at the source"):
        is_folder = path.is_dir()
        if not is_folder and not path.parent.is_dir():
            return None
    if is_folder or folder is None:
        folder = Folder(path if is_folder else path.parent)
    if names.MANIFEST in folder.names or names.INTENT in folder.names:
        return None
    roots = folder.numbered
    if not is_folder:
        roots = roots.intersection(names.possible_sessions(path.name))
    found = [(root, heads) for root in sorted(roots) if (heads := _headers(folder, root))]
    if len(found) > 1:
        told = ", ".join(printable(root, 60) for root, _ in found[:10])
        raise WrongUsageError(f"The folder holds several sessions ({told}): name a file of one.")
    return _set(folder, *found[0]) if found else None


def _headers(folder: Folder, root: str) -> dict[int, _ForeignHeader]:
    """Return the headers of a session's segments; none if one is ours, since the set is ours then.

    Of two files for one segment, the plain one counts.
    """
    pattern = re.compile(re.escape(root) + r"\.([1-9]\d{0,4})\.jsonl(?:\.zst)?")
    found: dict[int, _ForeignHeader] = {}
    for match in filter(None, map(pattern.fullmatch, sorted(folder.names))):
        line = folder.lines.get(match[0], NO_HEADER).line
        try:
            head: Any = json.loads(line)
            is_header = (head["type"], head["subtype"]) == ("system", "segment_header")
            is_of_root = is_header and head["rootSession"] == root
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        if is_header and "sessrotate" in head:
            return {}
        index = int(match[1])
        if is_of_root and index <= MAX_BOUNDARIES:
            says = _ForeignHeader(match[0], line, head.get("parentFile"), head.get("segmentIndex"))
            found.setdefault(index, says)
    return found


def _set(folder: Folder, root: str, heads: Mapping[int, _ForeignHeader]) -> SegmentSet:
    first = [root + suffix for suffix in names.SUFFIXES if root + suffix in folder.names]
    parts = []
    for index in range(max(heads) + 1):
        head = heads.get(index)
        file = head.file if head else next(iter(first), None) if not index else None
        parts.append(
            SegmentFile(
                index=index,
                name=file or names.segment_file(root, "numbered", index),
                file=file,
                codec=codec_of(file or ""),
                head=head.line if head else b"",
            )
        )
    problems = [*_wrong(parts, heads)]
    if not problems:
        named = describe(parts[min(heads)])
        problems = [
            Problem("unproven", f"{named} has no digest: nothing proves that the set is whole.")
        ]
    return SegmentSet(folder.path, root, tuple(parts), None, None, tuple(problems))


def _wrong(parts: list[SegmentFile], heads: Mapping[int, _ForeignHeader]) -> Iterator[Problem]:
    """Yield what is missing, and what a header contradicts: one problem a segment."""
    for part in parts:
        head = heads.get(part.index)
        if part.file is None:
            yield Problem("missing", f"{describe(part)} is missing.", part.index)
        elif head is None:
            continue
        elif head.index not in (None, part.index):
            detail = f"its header says that it is segment {head.index}."
            yield Problem("header", f"{describe(part)}: {detail}", part.index)
        elif head.parent is not None and _plain(head.parent) != _plain(parts[part.index - 1].name):
            detail = f"its header names the parent {printable(str(head.parent), 60)}."
            yield Problem("header", f"{describe(part)}: {detail}", part.index)


def _plain(name: object) -> str:
    """Return a segment's name without folders and suffixes, which tools write differently."""
    return names.session_of(re.split(r"[/\\]", str(name))[-1])
