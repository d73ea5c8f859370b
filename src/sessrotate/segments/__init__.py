"""Cutting a session file at its boundaries, and proving that the pieces are the whole.

Promise: segments + headers + manifest give back the source byte for byte, or say which piece is
wrong. In comes a session file or a folder of segments; out comes a `SplitPlan`, a `Manifest`, a
`SegmentSet`: what each segment of one session in one folder must be, and its bytes, verified.
May import `clients`, `parsing`, `system`, `fs`.

Rule: the manifest and the chain of headers each prove a set alone; neither is trusted as a path. A
set is only read, and no name is opened that did not come from listing its folder. A link or a pipe
in place of a segment is damage.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from io import FileIO
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import clients, names
from sessrotate.clients.protocol import Client
from sessrotate.errors import DamagedError, StorageError, printable, storage
from sessrotate.system import inside
from sessrotate.system.digest import Tally
from sessrotate.units import amount

if TYPE_CHECKING:
    from sessrotate.model import Codec, Pruned, Segment
    from sessrotate.segments.manifest import Manifest

READ: Final = 256 * 1024
"""Bytes handed on at once."""


class SegmentFile(Struct, frozen=True):
    """One segment as it must be. `file` is its name in the folder, None if it is missing there.

    `head` is its header line, byte for byte (empty for segment 0); `size` (bytes), `digest` and
    `lines` are its body's, None where nothing here says them. `segment` is what its manifest says;
    with `pruned`, it is not there on purpose.
    """

    index: int
    name: str
    file: str | None
    codec: Codec
    size: int | None = None
    head: bytes = b""
    digest: str | None = None
    lines: int | None = None
    segment: Segment | None = None
    pruned: Pruned | None = None


HARMLESS: Final = frozenset({"leftover", "pruned"})
"""Kinds of problems that say something about a set, while nothing is wrong with it."""


READABLE: Final = frozenset({"leftover", "unproven", "cut"})
"""Kinds of problems that keep no segment from being read."""


class Problem(Struct, frozen=True):
    """Something wrong with a set: its kind in one word, and a sentence for a person.

    Kinds: unfinished, manifest, missing, header, changed, and the `READABLE` ones, which keep no
    segment from being read: leftover, unproven (a set without digests) and cut (most of a segment
    is gone: its client did that). `HARMLESS` ones are no damage. `index` is the segment's, if it is
    one.
    """

    kind: str
    detail: str
    index: int | None = None


class SegmentSet(Struct, frozen=True):
    """The segments of one session in one folder, in order, and what is wrong without reading on.

    `source_bytes` is the size of all bodies together, None for a set that another tool wrote.
    `source_digest` is of all bodies together, `client` the name of whose session it is: only a
    manifest says either.
    """

    folder: Path
    session: str
    parts: tuple[SegmentFile, ...]
    source_bytes: int | None
    source_digest: str | None
    problems: tuple[Problem, ...]
    client: str | None = None


def unreadable(segments: SegmentSet) -> dict[int | None, str]:
    """Return what keeps segments from being read, by number; None stands for all of them."""
    found: dict[int | None, str] = {}
    for problem in segments.problems:
        if problem.kind not in READABLE:
            found.setdefault(problem.index, problem.detail)
    # A sentence about several that were pruned stands at the first of them.
    for part, following in pairwise(segments.parts):
        if following.pruned is not None and following.pruned == part.pruned:
            found[following.index] = found[part.index]
    return found


def body(segments: SegmentSet, part: SegmentFile) -> Iterator[memoryview]:
    """Yield a segment's body in pieces, each valid until the next is asked for.

    Raises DamagedError with a sentence that names the segment as soon as something differs from
    what the set says, at the latest behind the last piece; also of one that says it needs much
    memory, which a changed bit may say.
    """
    found = Tally()
    most = segments.source_bytes if part.size is None else part.size
    try:
        with storage(f"read segment {part.index}"):
            for buffer, start, end in body_pieces(segments.folder, part):
                found.update(buffer, end, start)
                if most is not None and found.size > most:
                    raise DamagedError("it is longer than it was")
                with memoryview(buffer) as view:
                    yield view[start:end]
        if part.size is not None and found.size < part.size:
            raise DamagedError("it is shorter than it was")
        if part.digest is not None and found.digest != part.digest:
            raise DamagedError("its bytes have changed")
        if part.lines is not None and found.lines != part.lines:
            raise DamagedError("its lines differ from those that its manifest lists")
    except DamagedError as error:
        raise DamagedError(f"{describe(part)} is damaged: {error}.") from None


def beginning(folder: Path, part: SegmentFile, size: int) -> bytes:
    """Return the first bytes of a segment's body; nothing of one that cannot be read."""
    found = bytearray()
    with (
        suppress(DamagedError, StorageError),
        storage(f"read segment {part.index}"),
    ):
        for buffer, start, end in body_pieces(folder, part):
            found += buffer[start : min(end, start + size - len(found))]
            if len(found) == size:
                break
    return bytes(found)


def beginning_of(folder: Path, session: str, listed: Manifest, size: int) -> bytes:
    """Return the first bytes of the oldest segment in an archive, without our header."""
    kept = next((each for each in listed.segments if each.pruned is None), None)
    if kept is None:
        return b""
    index, codec = kept.segment.index, kept.codec
    name = names.segment_file(session, "numbered", index, codec)
    found = beginning(folder, SegmentFile(index, name, name, codec), size)
    return found.partition(b"\n")[2] if index else found


def client_of(folder: Path, parts: Iterable[SegmentFile], name: str | None = None) -> Client:
    """Return the client that wrote a set: the one its manifest names, else by the first segment."""

    def head() -> bytes:
        present = (part for part in parts if part.file is not None)
        return next((beginning(folder, part, clients.HEAD) for part in present), b"")

    return clients.of_set(name, head)


def check(segments: SegmentSet, index: int) -> None:
    """Read a segment and raise, as `body` does, unless it is what the set says."""
    for _ in body(segments, segments.parts[index]):
        pass


def describe(part: SegmentFile) -> str:
    """Return how a person finds the segment: its number and its file's name."""
    return f"Segment {part.index} ({printable(part.file or part.name)})"


def body_pieces(folder: Path, part: SegmentFile) -> Iterator[tuple[bytes | bytearray, int, int]]:
    """Yield buffers and where in each the body's bytes begin and end, the header checked."""
    if part.file is None:
        raise DamagedError("it is missing")
    head = bytearray()
    with opened(folder, part.file) as stream:
        for buffer, size in content(stream, part.codec):
            start = min(len(part.head) - len(head), size)
            head += buffer[:start]
            if not part.head.startswith(head):
                raise DamagedError("its header has changed")
            yield buffer, start, size
    if len(head) < len(part.head):
        raise DamagedError("it is shorter than its header")


def content(stream: FileIO, codec: Codec) -> Iterator[tuple[bytes | bytearray, int]]:
    """Yield what a segment's file holds, decompressed: a buffer and how much of it is filled.

    A buffer's content is valid until the next is asked for.
    """
    if codec == "zstd":
        from sessrotate.system import zstd  # noqa: PLC0415 - not needed by plain sets

        for piece in zstd.decompressed(stream.read, READ):
            yield piece, len(piece)
        return
    buffer = bytearray(READ)
    while size := stream.readinto(buffer):
        yield buffer, size


def opened(folder: Path, file: str) -> FileIO:
    """Open a file of the folder for reading; raise DamagedError as `inside.opened` does."""
    try:
        return FileIO(inside.opened(folder, file), "rb")
    except OSError as error:
        raise DamagedError(f"it cannot be opened ({error.strerror})") from error


def missing(parts: Iterable[SegmentFile]) -> Iterator[Problem]:
    """Yield a problem for each segment that has no file."""
    for part in parts:
        if part.file is None and part.pruned is None:
            yield Problem("missing", f"{describe(part)} is missing.", part.index)


def cut_out(index: int, kept: int, since: str | None, until: str | None) -> Problem:
    """Return the problem that a client cut most of a segment out, but for `kept` bytes.

    `since` is the time of the last record before it, and `until` that of the next compaction, as
    far as that is known.
    """
    between = "" if since is None else f" after {printable(since[:19])} (UTC)"
    if since is not None and until is not None:
        between = f" between {printable(since[:19])} and {printable(until[:19])} (UTC)"
    rest = f", and kept the {amount(kept)} of it that a resume needs" if kept else ""
    return Problem(
        "cut",
        f"The history{between} is incomplete: the client cut segment {index} out of its own "
        f"file{rest}.",
        index,
    )


def cuts(segments: Sequence[Segment]) -> Iterator[Problem]:
    """Yield a problem for each segment that its client cut."""
    for before, segment, following in zip(
        segments, segments[1:], [*segments[2:], None], strict=False
    ):
        if segment.is_cut:
            opening = following.boundary if following is not None else None
            until = opening.timestamp if opening is not None else None
            yield cut_out(segment.index, segment.span.size, before.last_timestamp, until)


def pruned(folder: Path, session: str, parts: Iterable[SegmentFile]) -> Iterator[Problem]:
    """Yield a problem for each run of segments that were pruned at one time by one rule.

    It says whether the trash of the `folder` still has them; `restore` knows only the session's
    own archive, which has its name.
    """

    def fate(part: SegmentFile) -> tuple[Pruned | None, bool]:
        if part.pruned is None:
            return None, False
        # One whose pruning was interrupted is in the folder still.
        there = (folder / names.TRASH / part.name, folder / part.name)
        return part.pruned, any(map(os.path.lexists, there))

    for (stone, is_in_trash), run in groupby(parts, key=fate):
        if stone is not None:
            first, *more = (part.index for part in run)
            named = f"Segments {first} to {more[-1]} were" if more else f"Segment {first} was"
            gone, them = ", and deleted for good since then.", "them" if more else "it"
            back = f"; the trash still has {them}."
            if names.session_of_key(folder.name) == session:
                command = f"`sessrotate restore {printable(session)}`"
                back = f". {command} brings {them} back from the trash."
            detail = f"{named} pruned on {printable(stone.at[:10])} ({printable(stone.rule)})"
            yield Problem("pruned", f"{detail}{back if is_in_trash else gone}", first)
