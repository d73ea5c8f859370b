"""A path → what holds the session: a client's folder, a folder of segments, or a single file.

Rule: this is the one place that decides. Reading, stitching, verifying, reporting and exporting ask
here, so that a path means the same session to all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from sessrotate import clients, names
from sessrotate.archive import live_tail, owner, state
from sessrotate.archive.place import Place
from sessrotate.clients.common import is_file
from sessrotate.errors import DamagedError, InputError, RequestError, printable
from sessrotate.reading import pieces, salvage
from sessrotate.reading.pieces import Holder
from sessrotate.segments import compressed_session, load
from sessrotate.segments.header_chain import Folder
from sessrotate.segments.segment_set import HARMLESS
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
                    f"{printable(str(path))} is a copy of a session's live tail that was changed: "
                    "put an unchanged copy in its place, or read the session itself."
                )
            # A client forked a rotated session, and copied the header: this is all of the fork.
            yield pieces.of_file(stack.enter_context(Source.itself(path)), clients.in_place().files)
            return
        if where is None and salvage.is_aside(path):
            yield _aside(path, stack)
            return
        if is_compressed(path):
            yield pieces.of_file(stack.enter_context(transcript(path)), clients.in_place().files)
            return
        # Before our own sets: these take whatever has a header for a segment of theirs.
        folder = around.folder(path)
        segments = salvage.find(path, folder) or load.find(path, folder)
        if segments is not None:
            yield pieces.of_set(segments)
            return
        source = stack.enter_context(compressed_session.opened(path))
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
        return compressed_session.CompressedSession(path)
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
    return salvage.opened(path, stack)
