"""Putting a session together that its client trimmed, from the files that the client kept.

Claude Code 2.1.332, told to `keep`, gives the file a second name before it puts a smaller one in
its place. The history is the first such file, of each later one what the one before does not have,
and so of the live file. That takes the live file's place, and can be rotated like any other.

Rule: the swap is a rotation's that moves nothing to the archive, and only behind it the kept files
go. Where it cannot be told for certain how files follow one another, all of them stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from sessrotate import clients, fs
from sessrotate.archive import late_lines, live_tail, state
from sessrotate.archive.place import Place
from sessrotate.archive.record import Intent, Mark, Swap
from sessrotate.archive.state import State
from sessrotate.errors import RefusedError, SessrotateError, printable, storage
from sessrotate.in_place import obstacles, seal, second_names, swap, waiting
from sessrotate.in_place.obstacles import Need
from sessrotate.model import FileIdentity, Span
from sessrotate.system import in_use
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source


class Kept(Struct, frozen=True):
    """What was kept of a session, and how its live file goes on from it.

    `files` are the kept files, the oldest first, and `parts` which bytes of them are history that
    those before do not have. Those of the live file begin at `at`; None if it has the others, too.
    """

    files: tuple[Source, ...]
    parts: tuple[tuple[Source, Span], ...]
    live: Source
    at: int | None

    @property
    def size(self) -> int:
        """How many bytes of history the kept files have."""
        return sum(span.size for _, span in self.parts)


def is_due(live: Path, session: str) -> bool:
    """Tell whether a client kept anything of this session: cheap, and asked of every one."""
    return bool(clients.in_place().trims.replaced(live, session))


def look(found: State, stack: ExitStack) -> Kept | None:
    """Return what was kept of a session; None if nothing was.

    The files are open until `stack` is closed. Raises RefusedError if they do not follow one
    another, or the live file does not go on from the last.
    """
    place = found.place
    paths = place.client.trims.replaced(place.live, place.session)
    if not paths or found.live is None or found.is_away:
        return None
    files: list[Source] = []
    for path in paths:
        source = stack.enter_context(Source.inside(path.parent, path.name))
        source.freeze()
        known = (found.live, *files)
        if not any(source.identity().is_same_file(each.identity()) for each in known):
            files.append(source)
    parts: list[tuple[Source, Span]] = []
    for source in files:
        if parts and late_lines.begins_with(source, parts):
            parts = []  # put together before, then trimmed: what it was made of has yet to go
        start = _follows(parts[-1][0], source, found.place) if parts else 0
        parts.append((source, Span(start, source.size())))
    is_whole = late_lines.begins_with(found.live, parts)
    at = None if is_whole else _follows(files[-1], found.live, found.place)
    return Kept(tuple(files), tuple(parts), found.live, at)


def _follows(old: Source, new: Source, place: Place) -> int:
    at = live_tail.goes_on_at(old, new)
    if at is None:
        raise RefusedError(
            f"Claude Code trimmed the session, and it is uncertain whether "
            f"{printable(str(new.path))} continues {printable(str(old.path))}: both are whole, and "
            "nothing was changed. To continue without the lines of the latter, move it away, keep "
            f"it, and run `sessrotate rotate {printable(place.session)}`."
        )
    return at


def put_together(
    place: Place, wait: float, progress: Callable[[int], None], *, live: bool = False
) -> int:
    """Put what was kept of a session into its live file; return how many bytes that is.

    0 if nothing was kept. The session's lock is held, and nothing else is under way in it. `wait`
    and `live` are as in `rotate.check`; `progress` is told how many bytes are written. Raises
    RefusedError as `look` does, or if the live file must not be replaced; InUseError if somebody
    uses the session; NotQuietError if the rest has to wait; StorageError as the system reports.
    """
    if not is_due(place.live, place.session):
        return 0
    with storage("read the session"), ExitStack() as stack, state.opened(place) as found:
        kept = look(found, stack)
        if kept is None:
            return 0
        for source in kept.files:
            in_use.check_unwritten(source, wait)
        files = [(source.path, source.identity()) for source in kept.files]
        if kept.at is not None:
            _swap(found, kept, wait, progress, live=live)
    with storage("put the session together"):
        if kept.at is not None:
            seal.finish(place, wait)
            fs.remove_folder(place.archive)  # of a session that was never rotated
        # The newest first, each for good: those that are left are what the live file begins with.
        # One that somebody wrote to since stays, and all before it.
        for path, was in reversed(files):
            if not _is_unchanged(path, was):
                break
            # A client that keeps it gives a name to a file that had one from us.
            second_names.forget(place, path.lstat())  # their folder is the client's
        waiting.settle(place)  # before a rotation: what was kept may have had late lines already
    return kept.size


def _is_unchanged(path: Path, was: FileIdentity) -> bool:
    try:
        with Source.inside(path.parent, path.name) as source:
            return source.identity() == was
    except SessrotateError:
        return False


def _swap(
    found: State,
    kept: Kept,
    wait: float,
    progress: Callable[[int], None],
    *,
    live: bool,
) -> None:
    place, old = found.place, kept.live
    was = old.identity()
    if reasons := [*obstacles.of(place, old, 0)]:
        raise RefusedError(" ".join(reasons))
    if found.problem is not None:
        raise RefusedError(found.problem)
    if not live:
        in_use.check_unused(place, was, wait=wait)
    with (
        obstacles.told(
            "put the session together",
            place.archive,
            lambda: Need(kept.size + was.size - (kept.at or 0), "the whole live file"),
        ),
        storage("put the session together"),
        swap.undone_unless_swapped(place, old),
    ):
        fs.create_folder(place.archive)
        with fs.Draft(place.draft) as draft:
            begun = _write(found, kept, draft, progress)
            swap.begin(place, old, begun)
            swap.swap(place, old, draft, begun, was=was, wait=wait, keeps=True)


def _write(found: State, kept: Kept, draft: fs.Draft, progress: Callable[[int], None]) -> Intent:
    """Write the new live file, on the disk when this returns; return what is going to happen."""
    old, at = kept.live, kept.at or 0
    whole = Fingerprint()
    for source, span in kept.parts:
        for piece in source.pieces(span):
            whole.update(piece)
            draft.append(piece)
            progress(draft.size)
    tail = swap.append_tail(old, Span(at, old.size()), draft)
    draft.become_like(old.fd)
    draft.take_times(old.fd)
    draft.sync()
    return Intent(
        operation="rotate",
        swap=Swap(
            # Both may begin with the same header and rows: the new one is told by all of it.
            old=Mark.of_pieces(old.pieces(Span(0, at))),
            new=Mark(kept.size, whole.digest),
            cut=at,
            prefix=kept.size,
            tail=tail,
        ),
        first=len(found.listed.segments) if found.listed is not None else 0,
    )
