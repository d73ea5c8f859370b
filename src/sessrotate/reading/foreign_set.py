"""A folder of segments that another tool wrote, as the public proposal has them: headers, no more.

Rule: names in headers are data. They are compared with the folder's listing and never opened as
paths; what they contradict is told, and where gaps are allowed the rest can still be read. Nothing
here proves that a set is whole: there are no digests, and who lost the newest segment cannot know.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sessrotate import clients, names
from sessrotate.errors import DamagedError, StorageError, WrongUsageError, printable, storage
from sessrotate.reading.open_segments import OpenSegment, SegmentInfo
from sessrotate.segments import first_line, header_chain
from sessrotate.segments.files import Problem, content, opened
from sessrotate.segments.scan import MAX_BOUNDARIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sessrotate.clients.protocol import Client
    from sessrotate.model import Codec


@dataclass(frozen=True, slots=True)
class ForeignSet:
    """A session in segments that another tool wrote, in order, and what its headers contradict.

    Problems without an `index` are about files that belong nowhere; the others are those of
    `segments`, which cannot be read.
    """

    session: str
    client: Client
    segments: tuple[OpenSegment, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Header:
    """What a header line says: the session, the parent's name, the number, the time; its bytes."""

    root: str
    parent: str | None
    index: int | None
    timestamp: str | None
    size: int
    is_ours: bool


def find(path: Path, *, look_around: bool = True) -> ForeignSet | None:
    """Return the foreign set that a folder or a file in one stands for; None if it is none.

    A segment 0 of the linked layout can be told from any other session only by its neighbours;
    with `look_around` False they are not opened. Raises WrongUsageError if a folder holds several
    sessions, StorageError as the system reports.
    """
    with storage("look at the source"):
        is_folder = path.is_dir()
        folder = path if is_folder else path.parent
        listing = frozenset(entry.name for entry in folder.iterdir()) if folder.is_dir() else ()
    if names.MANIFEST in listing or names.INTENT in listing:
        return None
    root = None
    if not is_folder:
        root = _root_of(folder, path.name)
        numbered = _numbered(names.session_of(path.name))
        if root is None:
            if not look_around and not any(map(numbered.fullmatch, listing)):
                return None
            root = names.session_of(path.name)
    heads = _headers(folder, listing)
    if root is None:
        root = _only(heads)
    mine = {file: head for file, head in heads.items() if head.root == root}
    return _set(folder, listing, root, mine) if root is not None and mine else None


def _root_of(folder: Path, file: str) -> str | None:
    with suppress(DamagedError):
        head = _header(folder, file)
        return head.root if head is not None and not head.is_ours else None
    return None


def _only(heads: Mapping[str, _Header]) -> str | None:
    roots = sorted({head.root for head in heads.values()})
    if len(roots) > 1:
        told = ", ".join(printable(root, 60) for root in roots[:10])
        raise WrongUsageError(f"The folder holds several sessions ({told}): name a file of one.")
    return roots[0] if roots else None


def _headers(folder: Path, listing: frozenset[str] | tuple[()]) -> dict[str, _Header]:
    """Return the headers of a folder; none if one of them is ours: what is there is our set."""
    found = {}
    for file in sorted(listing):
        if file.endswith(names.SUFFIXES):
            with suppress(DamagedError):
                head = _header(folder, file)
                if head is not None:
                    found[file] = head
                    if head.is_ours:
                        return {}
    return found


def _header(folder: Path, file: str) -> _Header | None:
    """Return what a file's first line says, in whatever order; None if it is no header.

    Raises DamagedError if the file cannot be read.
    """
    read = header_chain.read_header(folder, file)
    if read is None:
        return None
    try:
        found: Any = json.loads(read[0])
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    root = found.get("rootSession")
    is_header = (found.get("type"), found.get("subtype")) == ("system", "segment_header")
    if not is_header or not isinstance(root, str):
        return None
    parent = found.get("parentFile", found.get("parentSegment"))
    index, time = found.get("segmentIndex"), found.get("timestamp")
    return _Header(
        root=root,
        parent=_plain(parent) if isinstance(parent, str) else None,
        index=index if type(index) is int and 0 <= index <= MAX_BOUNDARIES else None,
        timestamp=time if isinstance(time, str) else None,
        size=len(read[0]),
        is_ours="sessrotate" in found,
    )


def _plain(name: str) -> str:
    """Return a segment's name without folders and suffixes: tools differ in what they write."""
    return names.session_of(re.split(r"[/\\]", name)[-1])


def _numbered(root: str) -> re.Pattern[str]:
    return re.compile(re.escape(root) + r"\.([1-9]\d{0,4})\.jsonl(?:\.zst)?")


def _set(
    folder: Path, listing: frozenset[str] | tuple[()], root: str, heads: Mapping[str, _Header]
) -> ForeignSet:
    places = _places(root, heads)
    problems = [
        Problem("header", f"Nothing says where {printable(file)} belongs.")
        for file in sorted(heads.keys() - places)
    ]
    by_index: dict[int, list[str]] = defaultdict(list)
    for file, index in places.items():
        by_index[index].append(file)
    for codec in ("", names.CODEC_SUFFIX["zstd"]):
        first = f"{root}{names.SUFFIX}{codec}"
        if first in listing and first not in heads:
            by_index[0].append(first)
    client = clients.of_set(None, lambda: _beginning(folder, by_index, heads))
    numbered = all(_numbered(root).fullmatch(file) for file in heads)
    found = []
    for index in range(max(by_index, default=0) + 1):
        files = by_index.get(index, [])
        if not files:
            name = names.segment_file(root, "numbered", index) if numbered or not index else ""
            found.append(_gap(index, name))
            problems.append(Problem("missing", str(found[-1].problem), index))
            continue
        problem = _contradiction(index, files, heads, by_index, numbered=numbered)
        if problem is not None:
            problems.append(Problem("header", problem, index))
        found.append(_segment(folder, client, index, files[0], heads.get(files[0]), problem))
    return ForeignSet(root, client, tuple(found), tuple(problems))


def _places(root: str, heads: Mapping[str, _Header]) -> dict[str, int]:
    """Return which segment each file is: by its name, else its header, else its parent.

    Files whose parents go in a circle, or lead to one that is gone, have no place.
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


def _contradiction(
    index: int,
    files: list[str],
    heads: Mapping[str, _Header],
    by_index: Mapping[int, list[str]],
    *,
    numbered: bool,
) -> str | None:
    """Return what is wrong with a segment, in a sentence."""
    where = f"Segment {index} ({printable(files[0])})"
    if len(files) > 1:
        return f"{where} is there twice: {printable(files[1])} is segment {index} too."
    head = heads.get(files[0])
    if head is None:
        return None
    if numbered and head.index is not None and head.index != index:
        return f"{where}: its header says that it is segment {head.index}."
    before = by_index.get(index - 1)
    if before and head.parent is not None and head.parent not in map(_plain, before):
        return f"{where}: its header names the parent {printable(head.parent, 60)}."
    return None


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def _gap(index: int, name: str) -> OpenSegment:
    told = f"Segment {index} ({printable(name)})" if name else f"Segment {index}"
    info = SegmentInfo(index, None, None, None, None, "sealed")
    return OpenSegment(info, lambda: iter(()), f"{told} is missing.")


def _beginning(
    folder: Path, by_index: Mapping[int, list[str]], heads: Mapping[str, _Header]
) -> bytes:
    """Return the first bytes of the first segment that can be read."""
    found = bytearray()
    for index, files in sorted(by_index.items()):
        head = heads.get(files[0])
        with suppress(DamagedError, StorageError):
            for piece in _pieces(folder, index, files[0], head.size if head is not None else 0):
                found += piece[: clients.HEAD - len(found)]
                if len(found) == clients.HEAD:
                    break
        if found:
            break
    return bytes(found)


def _segment(  # noqa: PLR0917 - all that is known of a segment
    folder: Path,
    client: Client,
    index: int,
    file: str,
    head: _Header | None,
    problem: str | None,
) -> OpenSegment:
    pieces = partial(_pieces, folder, index, file, head.size if head is not None else 0)
    boundary = None
    if index and problem is None:
        with suppress(DamagedError):
            boundary = first_line.boundary(client, pieces)
    time = boundary.timestamp if boundary is not None else None
    info = SegmentInfo(
        index, None, boundary, time or (head.timestamp if head else None), None, "sealed"
    )
    return OpenSegment(info, pieces, problem)


def _pieces(folder: Path, index: int, file: str, skip: int) -> Iterator[memoryview]:
    """Yield a segment's bytes behind its header; raise DamagedError if it cannot be read."""
    codec: Codec = "zstd" if file.endswith(names.CODEC_SUFFIX["zstd"]) else "plain"
    try:
        with opened(folder, file) as stream, storage(f"read segment {index}"):
            for buffer, size in content(stream, codec):
                with memoryview(buffer) as view:
                    yield view[min(skip, size) : size]
                skip -= min(skip, size)
    except DamagedError as error:
        name = printable(file)
        raise DamagedError(f"Segment {index} ({name}) is damaged: {error}.") from None
