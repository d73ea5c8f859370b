"""A folder of segments that another tool wrote, as the public proposal has them: headers, no more.

Rule: names in headers are data. They are compared with the folder's listing and never opened as
paths. What they contradict is a problem of the set, and the rest can still be read. Nothing here
proves that a set is whole: there are no digests, and nobody can tell that the newest segment is
lost.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sessrotate import names
from sessrotate.errors import WrongUsageError, printable, storage
from sessrotate.segments.header_chain import NO_HEADER, Folder, codec_of
from sessrotate.segments.scan import MAX_BOUNDARIES
from sessrotate.segments.segment_set import Problem, SegmentFile, SegmentSet, describe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sessrotate.segments.header_chain import HeaderLine


class _ForeignHeader(Struct, frozen=True):
    """What a header line says: the session, the parent's name, the segment's number."""

    root: str
    parent: str | None
    index: int | None
    line: bytes
    is_ours: bool


def find(
    path: Path, folder: Folder | None = None, *, look_around: bool = True
) -> SegmentSet | None:
    """Return the set of another tool that a folder or a file in one stands for, None if it is none.

    Its segments have neither sizes nor digests. `folder` is the one that a file is in, if somebody
    has looked at that. A segment 0 of the linked layout can be told from any other session only by
    its neighbours; with `look_around` False they are not opened. Raises WrongUsageError if a folder
    holds several sessions, StorageError if the system reports an error.
    """
    with storage("look at the source"):
        is_folder = path.is_dir()
        if not is_folder and not path.parent.is_dir():
            return None
    if is_folder or folder is None:
        folder = Folder(path if is_folder else path.parent)
    if names.MANIFEST in folder.names or names.INTENT in folder.names:
        return None
    root = None
    if not is_folder:
        head = _header(folder.lines.get(path.name, NO_HEADER))
        session = names.session_of(path.name)
        if head is not None and not head.is_ours:
            root = head.root
        elif look_around or session in folder.numbered:
            root = session
        else:
            return None
    heads = _headers(folder)
    if root is None:
        root = _only(heads)
    mine = {file: head for file, head in heads.items() if head.root == root}
    return _set(folder, root, mine) if root is not None and mine else None


def _only(heads: Mapping[str, _ForeignHeader]) -> str | None:
    roots = sorted({head.root for head in heads.values()})
    if len(roots) > 1:
        told = ", ".join(printable(root, 60) for root in roots[:10])
        raise WrongUsageError(f"The folder holds several sessions ({told}): name a file of one.")
    return roots[0] if roots else None


def _headers(folder: Folder) -> dict[str, _ForeignHeader]:
    """Return the headers of a folder; none if one of them is ours, since then the set is ours."""
    found = {}
    for file, line in folder.lines.items():
        if (head := _header(line)) is not None:
            found[file] = head
            if head.is_ours:
                return {}
    return found


def _header(read: HeaderLine) -> _ForeignHeader | None:
    """Return what a file's header says, with its keys in any order; None if it has no header."""
    line = read.line
    try:
        found: Any = json.loads(line)
        root, kind = found["rootSession"], (found["type"], found["subtype"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if kind != ("system", "segment_header") or not isinstance(root, str):
        return None
    parent = found.get("parentFile", found.get("parentSegment"))
    index = found.get("segmentIndex")
    return _ForeignHeader(
        root=root,
        parent=_plain(parent) if isinstance(parent, str) else None,
        index=index if type(index) is int and 0 <= index <= MAX_BOUNDARIES else None,
        line=line,
        is_ours="sessrotate" in found,
    )


def _plain(name: str) -> str:
    """Return a segment's name without folders and suffixes, which tools write differently."""
    return names.session_of(re.split(r"[/\\]", name)[-1])


def _numbered(root: str) -> re.Pattern[str]:
    return re.compile(re.escape(root) + r"\.([1-9]\d{0,4})\.jsonl(?:\.zst)?")


def _set(folder: Folder, root: str, heads: Mapping[str, _ForeignHeader]) -> SegmentSet:
    places = _places(root, heads)
    by_index: dict[int, list[str]] = defaultdict(list)
    for file, index in places.items():
        by_index[index].append(file)
    for suffix in names.SUFFIXES:
        if root + suffix in folder.names and root + suffix not in heads:
            by_index[0].append(root + suffix)
    numbered = all(_numbered(root).fullmatch(file) for file in heads)
    parts = []
    for index in range(max(by_index, default=0) + 1):
        found = by_index[index][0] if index in by_index else None
        # In the linked layout nobody knows what a lost segment was called.
        name = names.segment_file(root, "numbered", index) if numbered or not index else ""
        head = heads.get(found or "")
        codec, line = codec_of(found or ""), head.line if head else b""
        parts.append(SegmentFile(index, found or name, found, codec, head=line))
    problems = [
        Problem("stray", f"Nothing says where {printable(file)} belongs.")
        for file in sorted(heads.keys() - places)
    ]
    problems += _wrong(parts, by_index, heads, numbered=numbered)
    if not problems:
        named = describe(next(part for part in parts if part.head))
        problems = [Problem("unproven", f"{named} has no digest: nothing proves the set whole.")]
    return SegmentSet(folder.path, root, tuple(parts), None, None, tuple(problems))


def _places(root: str, heads: Mapping[str, _ForeignHeader]) -> dict[str, int]:
    """Return each file's number: by its name, else by its header, else by its parent's number.

    Files whose parents form a circle, or lead to a file that is gone, have no number.
    """
    pattern = _numbered(root)
    places: dict[str, int] = {}
    children: dict[str, list[str]] = defaultdict(list)
    for file, head in heads.items():
        match = pattern.fullmatch(file)
        index = int(match[1]) if match else head.index
        if index is not None and index <= MAX_BOUNDARIES:
            places[file] = index
        elif head.parent is not None:
            children[head.parent].append(file)
    ready = [(_plain(file), index) for file, index in places.items()]
    if root not in map(_plain, heads):
        ready.append((root, 0))
    for parent, index in ready:  # grows while it is gone through
        if index < MAX_BOUNDARIES:
            for file in children.pop(parent, ()):
                places[file] = index + 1
                ready.append((_plain(file), index + 1))
    return places


def _wrong(
    parts: list[SegmentFile],
    by_index: Mapping[int, list[str]],
    heads: Mapping[str, _ForeignHeader],
    *,
    numbered: bool,
) -> Iterator[Problem]:
    """Yield what is missing, and what a header contradicts: one problem a segment."""
    for part in parts:
        index, files, head = part.index, by_index.get(part.index), heads.get(part.file or "")
        before = by_index.get(index - 1)
        if files is None:
            named = describe(part) if part.name else f"Segment {index}"
            yield Problem("missing", f"{named} is missing.", index)
        elif len(files) > 1:
            detail = f"is there twice: {printable(files[1])} is segment {index} too."
            yield Problem("header", f"{describe(part)} {detail}", index)
        elif head is None:
            continue
        elif numbered and head.index not in (None, index):
            detail = f"its header says that it is segment {head.index}."
            yield Problem("header", f"{describe(part)}: {detail}", index)
        elif before and head.parent is not None and head.parent not in map(_plain, before):
            detail = f"its header names the parent {printable(head.parent, 60)}."
            yield Problem("header", f"{describe(part)}: {detail}", index)
