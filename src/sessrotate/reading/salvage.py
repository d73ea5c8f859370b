"""An archive that was put aside, in whatever state → as much of its history as can be read.

Rule: nothing that the archive says of itself is needed. Segments are found by their names, and each
is compared with the digests in headers; an unfinished rotation's pack is read as the live file that
it was. What cannot be read is named, and nothing comes twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from sessrotate import clients, names
from sessrotate.archive import continued, place, record
from sessrotate.errors import NotASessionError, SessrotateError, printable, storage
from sessrotate.reading import open_segments
from sessrotate.reading.open_segments import OpenSegment, SegmentInfo
from sessrotate.reading.pieces import Holder
from sessrotate.segments import header_chain, live_header
from sessrotate.segments.compressed_session import CompressedSession
from sessrotate.segments.segment_set import Problem, SegmentFile, SegmentSet, body
from sessrotate.system.source import Source


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
            head = live_header.parse(continued.first_line(source))
            start = 0 if head is None else head.start
            index = 0 if head is None else head.index
            prefix = 0 if head is None else live_header.prefix(head)
            yield from open_segments.of_live(source, clients.in_place().files, prefix, index, start)
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
