"""The full history as the live file again: of a rotated session, or of one that its client trimmed.

Rule: the same swap as a rotation's, with an intent of its own. Every byte is verified on its way
into the new file, and the archive stays where it is: a program that had read the short live file
may write it back at any time, and it goes on from the archive then. A note in the archive says that
the live file is whole, and since when; until its owner rotates it by name, nothing else does.

Claude Code 2.1.332, told to `keep`, gives a file a second name before it puts a smaller one in its
place. The history is the first such file, of each later one what the one before does not have, and
so of the live file. The swap of that moves nothing to the archive, and only behind it the kept
files go. Where it is uncertain how files follow one another, all of them stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec import Struct

from sessrotate import clients, fs
from sessrotate.archive import late_lines, live_tail, owner, state
from sessrotate.archive.place import Place
from sessrotate.archive.record import HEAD, Intent, Mark, Swap
from sessrotate.archive.state import State
from sessrotate.errors import (
    DamagedError,
    InUseError,
    RefusedError,
    SessrotateError,
    printable,
    storage,
)
from sessrotate.in_place import gain, obstacles, seal, second_names, swap, waiting
from sessrotate.in_place.obstacles import Need
from sessrotate.model import FileIdentity, Span
from sessrotate.segments import HARMLESS, body, load
from sessrotate.segments.manifest import Manifest
from sessrotate.system import in_use
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source


class RestorePlan(Struct, frozen=True):
    """A whole restoration, decided and not yet done.

    `place` is the session's. `tail` is what the live file has, in bytes, None if it is gone; `free`
    is what the disk has, None if nobody can tell. `pending`, when it was carried out, is why the
    replaced file is still there, None if it is not.
    """

    place: Place
    manifest: Manifest
    prefix: int
    tail: int | None
    free: int | None
    pending: str | None = None

    @property
    def size(self) -> int:
        """How large the live file will be, in bytes; so many must be free.

        The archive keeps its own until its grace period is over.
        """
        return self.manifest.source_bytes + (self.tail or 0)

    @property
    def need(self) -> Need:
        """What has to be free."""
        what = "the whole history, since the archive keeps its copy for now"
        return Need(self.size + gain.ASIDE, what)


def prepare(found: State) -> RestorePlan | None:
    """Return the plan of putting a session's history back; None if it has no archive.

    Raises RefusedError if the live file does not go on from its archive.
    """
    if found.problem is not None:
        raise RefusedError(found.problem)
    if found.listed is None:
        return None
    if any(entry.pruned for entry in found.listed.segments):
        raise RefusedError(
            "Some of the history was pruned: `restore` brings back first what is still in the "
            "trash."
        )
    if found.kept:
        raise RefusedError(found.cuts[-1].detail)
    if found.cuts:
        raise RefusedError(
            "Its client cut out a part of the history: the session cannot be whole again."
        )
    if found.live is not None and not found.is_away:  # or that was asked when it went
        reasons = [*obstacles.of(found.place, found.live, int(found.pack is not None))]
        if reasons:
            raise RefusedError(" ".join(reasons))
    tail = found.live.size() - found.prefix if found.live is not None else None
    free = fs.free_bytes(found.place.config)
    return RestorePlan(found.place, found.listed, found.prefix, tail, free)


def execute(
    planned: RestorePlan, found: State, wait: float, progress: Callable[[int], None]
) -> None:
    """Carry out a plan on the session that it was made for, whose lock is held.

    Raises as `rotate.execute` does, and DamagedError if the archive is not what it was.
    """
    place = found.place
    obstacles.check_room(place.config, planned.need)
    with storage("restore the session"):
        if found.live is None:
            _bring_back(planned, found, progress)
            return
        here = found.live.identity()
        in_use.check_unused(place, here, wait=wait, or_live=False)
        with swap.undone_unless_swapped(place, found.live), fs.Draft(place.draft) as draft:
            _write_history(planned, found, draft, progress)
            end = planned.prefix + (planned.tail or 0)
            tail = swap.append_tail(found.live, Span(planned.prefix, end), draft)
            draft.become_like(found.live.fd)
            draft.sync()
            begun = Intent(
                operation="restore",
                swap=Swap(
                    old=Mark.of(found.live.read_at(0, min(HEAD, planned.prefix))),
                    new=Mark.of(draft.read_at(0, min(HEAD, planned.manifest.source_bytes))),
                    cut=planned.prefix,
                    prefix=planned.manifest.source_bytes,
                    tail=tail,
                ),
                first=len(planned.manifest.segments),
            )
            swap.begin(place, found.live, begun)
            swap.swap(place, found.live, draft, begun, was=here, wait=wait)


def _write_history(
    planned: RestorePlan, found: State, draft: fs.Draft, progress: Callable[[int], None]
) -> Mark:
    segments = load.of_manifest(found.place.archive, found.listing, planned.manifest)
    for problem in segments.problems:
        if problem.kind not in HARMLESS:
            raise DamagedError(problem.detail)
    whole, done = Fingerprint(), 0
    for part in segments.parts:
        for piece in body(segments, part):
            draft.append(piece)
            whole.update(piece)
            done += len(piece)
            progress(done)
    return Mark(done, whole.digest)


def _bring_back(planned: RestorePlan, found: State, progress: Callable[[int], None]) -> None:
    """Make a live file where there is none any more, of what is archived."""
    place: Place = found.place
    try:
        with fs.Draft(place.draft) as draft:
            whole = _write_history(planned, found, draft, progress)
            draft.sync()
        owner.check_unmoved(place)  # writing it took a while
        # All of it is the mark: whatever appears under the name meanwhile must not pass for it.
        begun = Intent(
            operation="restore",
            swap=Swap(Mark.of(b""), whole, 0, whole.size, Mark.of(b"")),
            first=len(planned.manifest.segments),
        )
        swap.write_intent(place, begun)
        fs.create_folder(place.live.parent)
        fs.add_name(place.draft, place.live)
    except FileExistsError:
        swap.undo(place)
        name = printable(str(place.live))
        raise InUseError(f"{name} appeared meanwhile: nothing was changed.") from None
    except InUseError:
        swap.undo(place)
        raise
    except OSError:
        with suppress(OSError):
            if not os.path.lexists(place.live):
                swap.undo(place)
        raise


def mark(place: Place) -> None:
    """Note that its owner put a session back, as short as it was: nothing else rotates it."""
    fs.create_folder(place.archive)
    swap.change_record(place, restored="")


# ── what its client trimmed and kept ──────────────────────────────────────────────────────────────


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


def is_trimmed(live: Path, session: str) -> bool:
    """Tell whether a client kept anything of this session: cheap, and asked of every one."""
    return bool(clients.in_place().trims.replaced(live, session))


def kept_of(found: State, stack: ExitStack) -> Kept | None:
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


def put_together(place: Place, wait: float, progress: Callable[[int], None], *, live: bool) -> int:
    """Put what was kept of a session into its live file; return how many bytes that is.

    0 if nothing was kept. The session's lock is held, and nothing else is under way in it. `wait`
    and `live` are as in `rotate.check`; `progress` is told how many bytes are written. Raises
    RefusedError as `kept_of` does, or if the live file must not be replaced; InUseError if somebody
    uses the session; NotQuietError if the rest has to wait; StorageError as the system reports.
    """
    with storage("read the session"), ExitStack() as stack, state.opened(place) as found:
        kept = kept_of(found, stack)
        if kept is None:
            return 0
        for source in kept.files:
            in_use.check_unwritten(source, wait)
        files = [(source.path, source.identity()) for source in kept.files]
        if kept.at is not None:
            _take_its_place(found, kept, wait, progress, live=live)
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


def _take_its_place(
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
            begun = _put_into(found, kept, draft, progress)
            swap.begin(place, old, begun)
            swap.swap(place, old, draft, begun, was=was, wait=wait, keeps=True)


def _put_into(found: State, kept: Kept, draft: fs.Draft, progress: Callable[[int], None]) -> Intent:
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
