"""A path → what holds the session: a client's folder, a folder of segments, or a single file.

Rule: this is the one place that decides. Reading, stitching, verifying, reporting and exporting ask
here, so that a path means the same session to all of them. What has no record or manifest that says
what it is, is read as far as it can be:

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
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients, names
from sessrotate.archive import live_tail, owner, place, record, state
from sessrotate.archive.place import Place
from sessrotate.clients.common import is_file
from sessrotate.errors import (
    DamagedError,
    InputError,
    NotASessionError,
    RequestError,
    SessrotateError,
    WrongUsageError,
    printable,
    storage,
)
from sessrotate.reading import pieces
from sessrotate.reading.pieces import Holder, OpenSegment, SegmentInfo
from sessrotate.segments import (
    HARMLESS,
    Problem,
    SegmentFile,
    SegmentSet,
    body,
    compressed,
    describe,
    header_chain,
    headers,
    load,
)
from sessrotate.segments.compressed import CompressedSession
from sessrotate.segments.header_chain import NO_HEADER, Folder, codec_of
from sessrotate.segments.scan import MAX_BOUNDARIES
from sessrotate.system.source import Source


class Around:
    """What is around files that are opened one after the other: each folder is looked at once."""

    def __init__(self, archives: Iterable[Place] | None = None) -> None:
        """Begin with no folder; `archives` are all of this machine, if somebody knows them."""
        self.places: Final = owner.Places(archives)
        self._folders: dict[Path, Folder] = {}

    def folder(self, path: Path) -> Folder | None:
        """Return the folder that a file is in; None of what is no file."""
        if not is_file(path):
            return None
        if path.parent not in self._folders:
            self._folders[path.parent] = Folder(path.parent)
        return self._folders[path.parent]


@contextmanager
def opened(path: Path, around: Around | None = None) -> Iterator[Holder]:
    """Open whatever holds the session that `path` stands for.

    A path is that of a session file, of a folder of segments, of a segment in one, or of an
    archive. A copy of a rotated live file stands for its session, whose archive is looked for. A
    link outside of the folder of projects stands for what it leads to. Whoever opens many files
    hands on what is `around` them.
    Raises NotASessionError if it is none, WrongUsageError if a folder holds several sessions,
    DamagedError if a manifest or an archive cannot be read, InUseError if the session was replaced
    meanwhile, StorageError if the system reports an error.
    """
    around = Around() if around is None else around
    path = owner.meant(path)
    where = owner.read_with(path, around.places)
    with ExitStack() as stack:
        begins_so = live_tail.begins_so(path)
        is_archive = where is not None and path.name != where.live.name  # or it is in one
        if where is not None and (begins_so or is_archive or _may_be_parted(where)):
            found = stack.enter_context(state.opened(where))
            # Of a session that is whole again, its archive stands for the session, too.
            if found.is_rotated or (found.restored is not None and path.name != where.live.name):
                yield pieces.of_state(found)
                return
        if begins_so:
            if where is None:
                raise DamagedError(
                    f"{printable(str(path))} is a changed copy of a session's live tail: "
                    "put an unchanged copy in its place, or read the session itself."
                )
            # A client forked a rotated session, and copied the header: this is all of the fork.
            yield pieces.of_file(stack.enter_context(Source.itself(path)), clients.in_place().files)
            return
        if where is None and _is_aside(path):
            yield _aside(path, stack)
            return
        if is_compressed(path):
            yield pieces.of_file(stack.enter_context(transcript(path)), clients.in_place().files)
            return
        # Before our own sets: these take whatever has a header for a segment of theirs.
        folder = around.folder(path)
        segments = _foreign(path, folder) or load.find(path, folder)
        if segments is not None:
            yield pieces.of_set(segments)
            return
        source = stack.enter_context(compressed.opened_session(path))
        yield pieces.of_file(source, clients.client_of(source))


def is_compressed(path: Path) -> bool:
    """Tell whether a path is that of an agent's transcript in an archive, compressed there."""
    plain = names.uncompressed(path.parts)
    return plain != path.name and clients.in_place().beside.is_agent(plain)


def transcript(path: Path) -> Source:
    """Open an agent's transcript, compressed or not.

    Raises as `Source` does; DamagedError if it cannot be decompressed.
    """
    if is_compressed(path):
        return compressed.CompressedSession(path)
    return Source.itself(path)


def _may_be_parted(where: Place) -> bool:
    """Tell whether anything but a live file without a header may belong to the history.

    That is an archive, and what the client kept when it trimmed the file.
    """
    trims = where.client.trims
    return os.path.lexists(where.archive) or trims.may_be_trimmed(where.live, where.session)


def _aside(path: Path, stack: ExitStack) -> Holder:
    """Return an archive that was put aside: as the set that it is, if nothing is wrong with it."""
    with suppress(InputError, RequestError):
        segments = load.find(path)
        is_whole = segments is not None and all(
            problem.kind in HARMLESS for problem in segments.problems
        )
        if segments is not None and is_whole and not (path / names.PACK).exists():
            return pieces.of_set(segments)
    return _salvaged(path, stack)


# ── segments of another tool ─────────────────────────────────────────────────────────────────


class _ForeignHeader(Struct, frozen=True):
    """What the header line of a file says."""

    file: str
    line: bytes
    parent: Any
    index: Any


def _foreign(path: Path, folder: Folder | None) -> SegmentSet | None:
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


def _is_aside(path: Path) -> bool:
    """Tell whether a path is that of an archive that was put aside."""
    try:
        return path.resolve().parent == place.root().resolve() / place.ASIDE
    except OSError:
        return False


def _salvaged(folder: Path, stack: ExitStack) -> Holder:
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
            head = headers.parse_live(live_tail.first_line(source))
            start = 0 if head is None else head.start
            index = 0 if head is None else head.index
            prefix = 0 if head is None else headers.prefix(head)
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
