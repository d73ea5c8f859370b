"""The headers of a folder's segments → the set they prove, where the manifest is lost.

Rule: no header is trusted by itself. Each must agree with its file's name, with its neighbours, and
with the count and size that the others give. One forged line is found, and cannot make a set pass.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import names
from sessrotate.clients.protocol import Client
from sessrotate.errors import DamagedError, NotASessionError, WrongUsageError, printable, storage
from sessrotate.model import CODECS, Codec, Layout
from sessrotate.segments import (
    Problem,
    SegmentFile,
    SegmentSet,
    body_pieces,
    client_of,
    content,
    describe,
    headers,
    missing,
    opened,
    scan,
)
from sessrotate.segments.headers import Header
from sessrotate.segments.scan import MAX_BOUNDARIES

if TYPE_CHECKING:
    from sessrotate.segments.headers import LiveHeader


class HeaderLine(Struct, frozen=True):
    """A file's first line if it looks like a header, and what it says if it is one of ours.

    `damage` is what keeps the file from being read.
    """

    line: bytes = b""
    says: Header | None = None
    damage: str | None = None


NO_HEADER: Final = HeaderLine()
_NUMBERED: Final = re.compile(r"(.+)\.[1-9]\d*\.jsonl(?:\.zst)?", re.DOTALL)


def read_header(folder: Path, file: str) -> HeaderLine:
    """Return the header line of a file. Raises StorageError as the system reports."""
    start = bytearray()
    try:
        with opened(folder, file) as stream, storage("read a segment"):
            if codec_of(file) == "plain":  # of thousands of files, a buffer would take longest
                start += stream.read(headers.MAX_LINE)
            else:
                for buffer, size in content(stream, "zstd"):
                    start += buffer[:size]
                    if b"\n" in start or len(start) > headers.MAX_LINE:
                        break
    except DamagedError as error:
        return HeaderLine(damage=str(error))
    line = bytes(start[: start.find(b"\n") + 1])
    return HeaderLine(line, headers.parse(line)) if b'"segment_header"' in line else NO_HEADER


class Folder:
    """What a folder holds, looked at once: the `names` in it, and how its files begin.

    Raises StorageError as the system reports, when it is made and when its files are read.
    """

    def __init__(self, path: Path, listing: frozenset[str] | None = None) -> None:
        """Look at the names, unless a `listing` has them; files are read when asked for."""
        self.path: Final = path
        with storage("look into the folder of segments"):
            found = os.listdir(path) if listing is None else listing  # noqa: PTH208 - thousands
        self.names: Final = frozenset(found)

    @cached_property
    def is_unfinished(self) -> bool:
        """Whether nothing here is sure to be whole."""
        return names.INTENT in self.names or {names.RECORD, names.PACK} <= self.names

    @cached_property
    def lines(self) -> dict[str, HeaderLine]:
        """The header line of each file that a segment may be in, but for those without one."""
        files = (file for file in sorted(self.names) if file.endswith(names.SUFFIXES))
        read = ((file, read_header(self.path, file)) for file in files)
        return {file: line for file, line in read if line is not NO_HEADER}

    @cached_property
    def numbered(self) -> frozenset[str]:
        """The sessions of which a file here is called like a numbered segment."""
        return frozenset(match[1] for match in map(_NUMBERED.fullmatch, self.names) if match)

    @cached_property
    def roots(self) -> frozenset[str]:
        """The sessions that headers of ours name."""
        return frozenset(head.root for _, head in with_headers(self.lines))


def codec_of(file: str) -> Codec:
    """Return the codec of a segment's file, by its name."""
    return "zstd" if file.endswith(names.CODEC_SUFFIX["zstd"]) else "plain"


def with_headers(lines: Mapping[str, HeaderLine]) -> list[tuple[str, Header]]:
    """Return every file of a folder that has one of our headers, with it.

    A segment 0 is left out: if it begins with a header, that is part of the session.
    """
    found = [(file, line.says) for file, line in lines.items() if line.says is not None]
    roots = {
        head.root for file, head in found if _is_name_of(file, head.root, head.layout, head.index)
    }
    return [
        (file, head)
        for file, head in found
        if names.session_of(file) not in roots or head.root == names.session_of(file)
    ]


def from_headers(folder: Folder, file: str | None, live: LiveHeader | None = None) -> SegmentSet:
    """Return the set that the headers in a folder prove, or the one that `file` belongs to.

    Headers in an archive do not say how many there are; there the header of the `live` file
    does, which goes on from the last. Raises as `load.load` does.
    """
    found = with_headers(folder.lines)
    session, layout = _which_session(folder, found, file)
    mine = [head for _, head in found if head.root == session and head.layout == layout]
    files = _files(folder.names, session, layout, mine)
    # A forged header must not decide how many segments there are: the most common word counts.
    told = Counter(
        head.segments for head in mine if head.segments and head.segments <= MAX_BOUNDARIES + 1
    )
    sizes = Counter(head.source_bytes for head in mine if head.source_bytes is not None)
    count = told.most_common(1)[0][0] if told else min(max(files, default=0), MAX_BOUNDARIES) + 1
    claim = _Claim(
        folder=folder.path,
        session=session,
        layout=layout,
        count=live.index if live else count,
        source_bytes=live.start if live else sizes.most_common(1)[0][0] if sizes else 0,
        live=live,
        files=files,
        lines={index: folder.lines.get(name, NO_HEADER) for index, name in files.items() if index},
    )
    parts = _parts(claim)
    return SegmentSet(
        folder=folder.path,
        session=session,
        parts=tuple(parts),
        source_bytes=claim.source_bytes,
        source_digest=None,
        problems=(*missing(parts), *_contradictions(claim, parts)),
    )


class _Claim(Struct, frozen=True):
    """What the headers of one set say together, and the file of each segment that is there."""

    folder: Path
    session: str
    layout: Layout
    count: int
    source_bytes: int
    live: LiveHeader | None
    files: Mapping[int, str]
    lines: Mapping[int, HeaderLine]

    def head(self, index: int) -> Header | None:
        """Return a segment's header, None where it is missing or none of ours."""
        return self.lines.get(index, HeaderLine()).says

    def following(self, index: int) -> Header | LiveHeader | None:
        """Return the header that goes on from a segment."""
        return self.head(index + 1) or self.live


def _which_session(
    folder: Folder, found: list[tuple[str, Header]], file: str | None
) -> tuple[str, Layout]:
    """Return the session, and the layout, that the headers (or the file asked for) name."""
    own = dict(found).get(file) if file is not None else None
    if own is not None:
        return own.root, own.layout
    candidates = dict.fromkeys((head.root, head.layout) for _, head in found)
    if file is not None:
        # A segment whose header is unreadable is still known by its number.
        named, unnumbered = names.possible_sessions(file)
        for root, layout in candidates:
            if root in (named, unnumbered):
                return root, layout
        return unnumbered, "numbered"
    # The name in a header proves nothing as long as no file here fits it.
    fitting = [
        (root, layout)
        for (root, layout) in candidates
        if any(
            head.root == root and _is_name_of(name, root, layout, head.index)
            for name, head in found
        )
    ]
    if len(fitting) == 1:
        return fitting[0]
    if len(fitting) > 1:
        listed = ", ".join(sorted(printable(root) for root, _ in fitting))
        raise WrongUsageError(f"The folder holds several sessions ({listed}): name a file of one.")
    return _by_names_alone(folder)


def _by_names_alone(folder: Folder) -> tuple[str, Layout]:
    """Return the session whose segments a folder's names are, where no header can be read."""
    pattern = re.compile(r"(.+?)(\.[1-9]\d*)?\.jsonl(?:\.zst)?", re.DOTALL)
    matches = [match for name in folder.names if (match := pattern.fullmatch(name))]
    if not matches:
        raise NotASessionError(f"There are no segments in {printable(str(folder.path))}.")
    for match in matches:
        linked = (names.segment_file(match[1], "linked", 1, codec) for codec in CODECS)
        if not folder.names.isdisjoint(linked):
            return match[1], "linked"
    roots = {match[1] for match in matches}
    if len(roots) == 1:
        return roots.pop(), "numbered"
    raise WrongUsageError("The folder holds several sessions: name a file of one.")


def _is_name_of(file: str, session: str, layout: Layout, index: int) -> bool:
    return any(names.segment_file(session, layout, index, codec) == file for codec in CODECS)


def _files(
    listing: frozenset[str], session: str, layout: Layout, headers: Iterable[Header]
) -> dict[int, str]:
    """Return which file of the listing is which segment, by the names that the set would use."""
    if layout == "numbered":
        pattern = re.compile(re.escape(session) + r"\.([1-9]\d{0,5})\.jsonl(?:\.zst)?")
        matches = (pattern.fullmatch(name) for name in listing)
        indices = [int(match[1]) for match in matches if match]
    else:
        told = {index for head in headers for index in (head.index, (head.segments or 1) - 1)}
        most = max((index for index in told if index <= MAX_BOUNDARIES), default=1)
        indices = list(range(1, most + 1))
    result: dict[int, str] = {}
    for index in {0, *indices}:
        for codec in CODECS:
            name = names.segment_file(session, layout, index, codec)
            if name in listing:
                result.setdefault(index, name)
    return result


def _parts(claim: _Claim) -> list[SegmentFile]:
    """Return the segments as the headers have them; where one is missing, as its neighbours do."""
    heads = [claim.head(index) for index in range(claim.count)]
    starts = [0, *(head.start if head else None for head in heads[1:]), claim.source_bytes]
    parts: list[SegmentFile] = []
    for index, (start, end) in enumerate(pairwise(starts)):
        file, head, following = claim.files.get(index), claim.head(index), claim.following(index)
        digest = following.parent_digest if following else None
        parts.append(
            SegmentFile(
                index=index,
                name=names.segment_file(claim.session, claim.layout, index),
                file=file,
                codec=codec_of(file or ""),
                size=None if start is None or end is None else max(0, end - start),
                head=claim.lines[index].line if index in claim.lines else b"",
                digest=head.digest if head else digest,
            )
        )
    return parts


def _contradictions(claim: _Claim, parts: list[SegmentFile]) -> Iterator[Problem]:
    """Yield where a header differs from what its place in the set demands."""
    if claim.count == 1 and claim.live is None:
        # Nothing here tells a whole session from the first segment of a set that lost the rest.
        yield Problem(
            "missing",
            f"Only segment 0 of {printable(claim.session)} is here, and no record says how many "
            f"followed: put the other segments, or the {names.MANIFEST}, back beside it.",
        )
    for index, file in sorted(claim.files.items()):
        if index >= claim.count:
            name = printable(file)
            yield Problem("header", f"The session never had a segment {index} ({name}).", index)
    # Of whom the session is, its beginning tells; a later segment's first line may be torn.
    client = client_of(claim.folder, parts)
    for part in parts[1:]:
        if part.file is None:
            continue
        head, damage = claim.head(part.index), claim.lines[part.index].damage
        if damage is not None:
            yield Problem("changed", f"{describe(part)} is damaged: {damage}.", part.index)
        elif head is None:
            yield Problem("header", f"{describe(part)} has no sessrotate header.", part.index)
        else:
            for reason in _wrong(claim, client, head, part):
                yield Problem("header", f"{describe(part)}: {reason}.", part.index)


def _wrong(claim: _Claim, client: Client, head: Header, part: SegmentFile) -> Iterator[str]:
    index, following = part.index, claim.following(part.index)
    parent = names.parent_name(claim.session, claim.layout, index)
    if head.root != claim.session:
        yield f"its header names the session {printable(head.root, 60)}"
    if head.index != index:
        yield f"its header says that it is segment {head.index}"
    if head.parent != parent:
        yield f"its header names the parent {printable(head.parent, 60)}, not {printable(parent)}"
    if claim.live is not None and (head.segments, head.source_bytes) != (None, None):
        yield "its header is not that of a segment in an archive"
    elif claim.live is None and head.segments != claim.count:
        yield f"its header counts {head.segments or 0:,} segments, not {claim.count:,}"
    elif claim.live is None and head.source_bytes != claim.source_bytes:
        yield "its header gives a different size for the whole session than the others"
    if following is not None and following.parent_digest != head.digest:
        yield "its digest is not the one that the next segment's header gives"
    if head.start > (following.start if following is not None else claim.source_bytes):
        yield "its header says that it begins after its end"
    if not _is_time_of_first_line(client, claim.folder, part, head.timestamp):
        yield "its header gives a different time than its first line"


def _is_time_of_first_line(
    client: Client, folder: Path, part: SegmentFile, time: str | None
) -> bool:
    """Tell whether a header's time is its boundary's; what cannot be read is judged elsewhere."""

    def body() -> Iterator[memoryview]:
        for buffer, start, end in body_pieces(folder, part):
            yield memoryview(buffer)[start:end]

    try:
        return scan.time(client, body) == time
    except DamagedError:
        return True
