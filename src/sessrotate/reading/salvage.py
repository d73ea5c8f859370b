"""What is read without a record or a manifest that says what it is: as much as can be.

An archive that was put aside, in whatever state: nothing that it says of itself is needed. Segments
are found by their names, and each is compared with the digests in headers; an unfinished rotation's
pack is read as the live file that it was. What cannot be read is named, and nothing comes twice.

A folder of segments that another tool wrote, as the public proposal has them: the oldest is
`ID.jsonl`, the others are `ID.1.jsonl`, `ID.2.jsonl` and so on, each with a header that names the
session. Names in headers are data: they are compared with the folder's listing and never opened as
paths. What they contradict is a problem of the set, and the rest can still be read. Nothing proves
that such a set is whole: there are no digests, and nobody can tell that the newest is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients, names
from sessrotate.archive import live_tail, place, record
from sessrotate.errors import NotASessionError, SessrotateError, WrongUsageError, printable, storage
from sessrotate.reading import pieces
from sessrotate.reading.pieces import Holder, OpenSegment, SegmentInfo
from sessrotate.segments import header_chain, live_header
from sessrotate.segments.compressed_session import CompressedSession
from sessrotate.segments.header_chain import NO_HEADER, Folder, codec_of
from sessrotate.segments.scan import MAX_BOUNDARIES
from sessrotate.segments.segment_set import Problem, SegmentFile, SegmentSet, body, describe
from sessrotate.system.source import Source

# ── segments of another tool ─────────────────────────────────────────────────────────────────


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


# ── an archive that was put aside ────────────────────────────────────────────────────────────


def is_aside(path: Path) -> bool:
    """Tell whether a path is that of an archive that was put aside."""
    try:
        return path.resolve().parent == place.root().resolve() / place.ASIDE
    except OSError:
        return False


def opened(folder: Path, stack: ExitStack) -> Holder:
    """Open what there is; `stack` closes it. Segments that cannot be read say why.

    Raises NotASessionError if nothing is there to be read, StorageError as the system reports.
    """
    folder = folder.resolve()
    key = re.sub(r"\.\d+$", "", folder.name)
    session = names.session_of_key(key) or key
    with storage("look into the archive"):
        listing = frozenset(entry.name for entry in folder.iterdir())
    sealed = _sealed(folder, session, listing)
    behind = max(sealed, default=-1) + 1
    whole = [*_whole(folder, session, listing, behind, stack)]
    doubled = {each.info.index for each in whole}
    kept = {index: each for index, each in sealed.items() if index not in doubled}
    kept |= {each.info.index: each for each in whole}
    found = tuple(_in_order(kept))
    if not found:
        raise NotASessionError(f"There is nothing to read in {printable(str(folder))}.")
    lacking = (each for each in found if each.problem is not None)
    return Holder(
        session,
        clients.in_place().files,
        found,
        problems=tuple(
            Problem("unfinished", each.problem or "", each.info.index) for each in lacking
        ),
        refusal=f"{printable(str(folder))} was put aside, and nothing proves that it is whole: "
        "pass --allow-gaps to get what can be read.",
    )


def _sealed(folder: Path, session: str, listing: frozenset[str]) -> dict[int, OpenSegment]:
    pattern = re.compile(re.escape(session) + r"(?:\.([1-9]\d{0,5}))?\.jsonl(?:\.zst)?")
    found: dict[int, SegmentFile] = {}
    parents: dict[int, str] = {}
    for file in sorted(listing, reverse=True):  # the plain form counts
        match = pattern.fullmatch(file)
        if match is None:
            continue
        index = int(match[1] or 0)
        head = header_chain.read_header(folder, file) if index else header_chain.HeaderLine()
        if head.says is not None:
            parents[index - 1] = head.says.parent_digest
        found[index] = SegmentFile(
            index=index,
            name=file,
            file=file,
            codec=header_chain.codec_of(file),
            head=head.line,
            digest=head.says.digest if head.says else None,
        )
    parts = (
        replace(part, digest=part.digest or parents.get(index)) for index, part in found.items()
    )
    whole = SegmentSet(folder, session, tuple(found.values()), None, None, ())
    return {part.index: _of_file(whole, part) for part in parts}


def _of_file(whole: SegmentSet, part: SegmentFile) -> OpenSegment:
    info = SegmentInfo(part.index, None, None, None, None, "sealed")
    problem = None
    try:
        for _ in body(whole, part):
            pass
    except SessrotateError as error:
        problem = str(error)
    return OpenSegment(info, partial(body, whole, part), problem)


def _whole(
    folder: Path, session: str, listing: frozenset[str], behind: int, stack: ExitStack
) -> Iterator[OpenSegment]:
    """Yield the segments of the file that was the live one, if that is in the archive.

    If it cannot be read, that is said as of a segment with the number `behind`.
    """
    for name in (names.PACK, names.ARCHIVED):
        if name not in listing:
            continue
        try:
            source = stack.enter_context(_opened(folder, name, session))
            head = live_header.parse(live_tail.first_line(source))
            start = 0 if head is None else head.start
            index = 0 if head is None else head.index
            prefix = 0 if head is None else live_header.prefix(head)
            yield from pieces.of_live(source, clients.in_place().files, prefix, index, start)
        except SessrotateError as error:
            yield _gap(behind, str(error))
        return


def _opened(folder: Path, name: str, session: str) -> Source:
    """Open the file that was the live one: the pack, or what was put away, compressed or not."""
    away = record.away(folder, session) if name == names.ARCHIVED else None
    is_link = away is not None and away.is_symlink()  # what it leads to is not ours to read
    if away is not None and away.suffix == names.CODEC_SUFFIX["zstd"] and not is_link:
        return CompressedSession(away)
    file = f"{names.ARCHIVED}/{session}{names.SUFFIX}" if name == names.ARCHIVED else name
    return Source.inside(folder, file)


def _in_order(kept: Mapping[int, OpenSegment]) -> Iterator[OpenSegment]:
    """Yield segments by their numbers, and say once of each run of them that it is missing."""
    expected = 0
    for index in sorted(kept):
        if index > expected:
            more = f"s {expected} to {index - 1} are" if index > expected + 1 else f" {expected} is"
            yield _gap(expected, f"Segment{more} not in this archive.")
        yield kept[index]
        expected = index + 1


def _gap(index: int, problem: str) -> OpenSegment:
    return OpenSegment(SegmentInfo(index, None, None, None, None, "sealed"), list, problem)
