"""Finishing or undoing what a crash left of a rotation or restoration.

Rule: the table in `archive.record` decides. `plan` says what is to be done, and `doctor` shows it;
`recover` does it. Every command that changes a session in place begins with this, while it holds
the session's lock.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import fs, names
from sessrotate.archive import late_lines, live_tail, owner, state
from sessrotate.archive.place import Place
from sessrotate.archive.record import Intent
from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, RefusedError, printable
from sessrotate.in_place import aside, gain, seal, sealed_segments, swap, waiting
from sessrotate.segments import compressed, content, headers, opened
from sessrotate.system import locks
from sessrotate.system.source import Source

Deed = Literal["nothing", "undo", "finish", "rebuild"]

_SEGMENT: Final = f"{names.CODEC_SUFFIX['zstd']}{names.PARTIAL}"

_WHAT: Final = {"rotate": "rotation", "restore": "restoration"}


class Recovery(Struct, frozen=True):
    """What is to be done, and how that is said before and after; empty where it is nothing.

    `keeps`: two programs wrote at one moment, so that this file is kept aside.
    `gained` is how many bytes the disk has more by it; `plan` leaves that to `gain.of_finishing`.
    """

    deed: Deed
    sentence: str = ""
    past: str = ""
    keeps: Path | None = None
    gained: int = 0


_OVERTAKEN: Final = Recovery(
    "undo",
    "Claude Code trimmed the session at the moment when it was replaced: the next run puts it "
    "together.",
    "Undid the replacement: Claude Code trimmed the session at the moment when it was replaced.",
)


def plan(found: State) -> Recovery:
    """Return what is to be done with what was found.

    Raises DamagedError if that cannot be told.
    """
    if sealed_segments.is_manifest_lost(found):
        return Recovery(
            "rebuild",
            f"The {names.MANIFEST} of the archive is gone or damaged: the next run rebuilds it.",
            f"Rebuilt the {names.MANIFEST} of the archive from its segments, and pinned them all: "
            f"`sessrotate unpin {printable(found.place.session)}` lets your rules apply again.",
        )
    if found.intent is not None:
        return _of_intent(found, found.intent)
    if not any(map(names.is_leftover, found.listing)):
        return Recovery("nothing")
    _check_superfluous(found)
    return _undo("run")


def _of_intent(found: State, begun: Intent) -> Recovery:
    """Return what is to be done with an interrupted rotation or restoration."""
    what = _WHAT[begun.operation]
    if found.deed == "refuse":
        raise _refused(found, what)
    is_saved = found.drafted == "other" and found.pack is not None
    if found.deed == "finish":
        # What came out of the exchange, and is not the old file, another program saved just then.
        return Recovery(
            "finish",
            f"A {what} was interrupted: the next run finishes it.",
            f"Finished a {what} that was interrupted.",
            found.place.draft if is_saved else None,
        )
    if is_saved and not _is_superfluous(found):
        # Another program gave the live file's name to its own file, which stays: the pack has the
        # last name of the old one.
        return replace(_undo(what), keeps=found.place.pack)
    _check_superfluous(found)
    return _undo(what)


def _refused(found: State, what: str) -> DamagedError:
    """Return the error where no row tells."""
    kept = found.place.client.trims.replaced(found.place.live, found.place.session)
    archive = printable(str(found.place.archive))
    trimmed = f"; what its client trimmed is in {printable(str(kept[0].parent))}" if kept else ""
    return DamagedError(
        f"A {what} was interrupted, and {printable(str(found.place.live))} is gone, so nothing was "
        f"changed. Its old content is in {archive}{trimmed}."
    )


def _undo(what: str) -> Recovery:
    return Recovery(
        "undo",
        f"A {what} was interrupted before it began: the next run removes its leftovers.",
        f"Removed the leftovers of a {what} that was interrupted before it began.",
    )


def _check_superfluous(found: State) -> None:
    """Raise DamagedError if the pack, or a copy, may hold a byte that the live file does not."""
    pack, live = found.place.pack, found.place.live
    if not _is_superfluous(found):
        is_held = found.intent is None and found.live is not None
        told = late_lines.held(pack) if is_held else late_lines.left(pack, live)
        raise DamagedError(found.problem or told)
    copies = state.uncounted(found)
    if copies and not state.are_held(found, copies):
        raise DamagedError(
            f"A program changed {printable(str(live))} after its history was copied, and before "
            f"its rotation was finished, so sessrotate changed nothing. The copied history is in "
            f"{printable(str(found.place.archive))}."
        )


def _is_superfluous(found: State) -> bool:
    if found.pack is None or swap.is_superfluous(found.live, found.pack, found.place.session):
        return True
    # A client trimmed it meanwhile: it is put together by the name that it has for that.
    place, status = found.place, os.fstat(found.pack.fd)
    return bool(place.client.trims.names_of(place.live, place.session, status))


# ── drafts that are the only copy ─────────────────────────────────────────────────────────────────


def _only_copies(found: State) -> Iterator[Path]:
    """Yield the drafts with a line that neither the live file nor the archive has.

    What was drafted was there then. Since that moment another program may have emptied, replaced or
    removed the live file, and a backup may have put back an older archive. Reads the drafts, so the
    session's lock is held: a rotation under way proves by a lease that nobody has its draft open.
    """
    place = found.place
    for path in sorted(place.archive / name for name in found.listing):
        if path.name == names.DRAFT:
            is_elsewhere = _is_held
        elif path.name.endswith(_SEGMENT):
            is_elsewhere = _is_copied
        else:
            continue
        status = path.lstat()
        # A link or a pipe holds nothing, and what has another name stays there.
        is_only_name = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        if is_only_name and not is_elsewhere(found, path.name):
            yield path


def _is_held(found: State, name: str) -> bool:
    """Tell whether the session has each line of the draft of a live file."""
    with suppress(DamagedError), Source.inside(found.place.archive, name) as draft:
        # After an exchange, a client may have found it under the live file's name, and write to it
        # only now.
        may_be_found = found.intent is not None and found.match != "pack"
        if may_be_found and locks.write_lease(draft.fd) == "busy":
            return False
        is_begun = draft.line_start(draft.size()) > 0  # else a crash tore the header
        return not is_begun or bool(state.has_lines_of(found, draft))
    return False


def _is_copied(found: State, name: str) -> bool:
    """Tell whether one file has all of a segment's draft, as far as that goes."""
    try:
        if next(_drafted(found.place.archive, name), None) is None:
            return True
        with ExitStack() as stack:
            return any(
                all(
                    0 <= at + shift <= source.size() - len(piece)
                    and source.read_at(at + shift, len(piece)) == piece
                    for at, piece in _drafted(found.place.archive, name)
                )
                for source, shift in _holders(found, name, stack)
            )
    except (DamagedError, RefusedError):  # nobody can read it
        return False


def _holders(found: State, name: str, stack: ExitStack) -> Iterator[tuple[Source, int]]:
    """Yield what may have a segment's draft, and where in that the history begins, in bytes."""
    place = found.place
    for source in filter(None, (found.live, found.pack)):
        header = headers.parse_live(live_tail.first_line(source), place.session)
        start, prefix = live_tail.body_of(header)
        yield source, prefix - start
    for entry in () if found.manifest is None else found.manifest.segments:
        if names.sealed_file(place.session, entry.segment.index) + names.PARTIAL == name:
            sealed = stack.enter_context(compressed.sealed(place.archive, place.session, entry))
            if sealed is not None:
                yield sealed, sealed.size() - entry.segment.span.end


def _drafted(archive: Path, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the pieces of a segment's draft, and where in the history each stands, in bytes.

    Up to where it was torn: a kill leaves it unfinished.
    """
    head, at = b"", -1
    with opened(archive, name) as stream, suppress(DamagedError):
        for data, size in content(stream, "zstd"):
            piece = bytes(memoryview(data)[:size])
            if at < 0:
                head += piece
                if not (end := head.find(b"\n") + 1) and len(head) < headers.MAX_LINE:
                    continue
                header = headers.parse(head[:end])
                at, piece = (0, head) if header is None else (header.start, head[end:])
            yield at, piece
            at += len(piece)


def recover(place: Place, wait: float) -> Recovery:
    """Do what is to be done; return what that was.

    Raises as `plan` and `seal.finish` do.
    """
    with settled(place, wait) as (done, _):
        return done


@contextmanager
def settled(place: Place, wait: float) -> Iterator[tuple[Recovery, State]]:
    """Do what is to be done, then hold the session open in the block; yield what that was, and it.

    Raises as `recover` does.
    """
    if seal.was_taken_back(place):
        with state.opened(place) as found:
            yield _OVERTAKEN, found
        return
    with ExitStack() as stack:
        found = stack.enter_context(state.opened(place))
        todo = plan(found)
        if (
            todo.deed == "nothing"
            and not found.record.waiting
            and names.WAITING not in found.listing
        ):
            if not found.listing:
                fs.remove_folder(place.archive)  # a crash left it, empty
            yield todo, found
            return
        done = _done(found, todo, stack, wait)
        yield done, stack.enter_context(state.opened(place))


def _done(found: State, todo: Recovery, stack: ExitStack, wait: float) -> Recovery:
    """Do what is to be done; `stack`, which holds the session open, is closed in between."""
    place = found.place
    before = gain.measured(place) if todo.sentence else 0
    is_gone = found.is_gone and found.pack is not None
    said = [todo.past]
    if todo.deed == "rebuild":
        sealed_segments.rebuild_manifest(found)
        stack.close()
        with settled(place, wait) as (then, _):  # what else is left can only now be judged
            return replace(
                todo, past=" ".join(filter(None, (*said, then.past))), gained=then.gained
            )
    kept = {*filter(None, [todo.keeps]), *_only_copies(found)}
    said += [aside.said(aside.keep(place, path), place.live) for path in sorted(kept)]
    if found.drafted in {"old", "live"}:  # it goes before the pack, by which it is known
        fs.remove_files(place.archive, [names.DRAFT])
    if todo.deed == "finish":
        sealed_segments.repair(found)  # before the pack goes, which has what they are copies of
    extra = state.uncounted(found) if todo.deed == "undo" else ()
    is_overtaken = todo.deed == "undo" and seal.is_overtaken(found)
    if is_overtaken:  # by a trim that came since `was_taken_back` looked
        seal.take_back(found)
    stack.close()
    if todo.deed == "undo" and not is_overtaken:
        if is_gone:  # the pack is the live file that was there before
            owner.check_unmoved(place)
            fs.create_folder(place.live.parent)
            fs.add_name(place.pack, place.live)
        if extra:
            swap.uncount(place, extra[0].segment.index, len(extra))
        swap.undo(place)
    elif todo.deed == "finish":
        said.append(seal.finish(place, wait) or "")
    said += waiting.settle(place)
    gained = before - gain.measured(place) if todo.sentence else 0
    return replace(todo, past=" ".join(filter(None, said)), gained=gained)
