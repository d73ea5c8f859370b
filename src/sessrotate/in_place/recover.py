"""Finishing or undoing what a crash left of a rotation or restoration.

Rule: the table in `archive.record` decides. `plan` says what is to be done, and `doctor` shows it;
`recover` does it. Every command that changes a session in place begins with this, while it holds
the session's lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import fs, names, units
from sessrotate.archive import late_lines, owner, record, state
from sessrotate.archive.place import Place
from sessrotate.archive.record import Intent, Rule
from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, printable
from sessrotate.in_place import aside, gain, seal, sealed_segments, swap, waiting
from sessrotate.segments import body, load
from sessrotate.system.source import Source

Deed = Literal["nothing", "undo", "finish", "rebuild", "put back"]

_WHAT: Final = {"rotate": "rotation", "restore": "restoration"}


class Recovery(Struct, frozen=True):
    """What is to be done, and how that is said before and after; empty where it is nothing.

    `kept` are the files that stay until a person removes them: two programs wrote at one moment.
    `gained` is how many bytes the disk has more by it; `plan` leaves that to `gain.of_finishing`.
    """

    deed: Deed
    sentence: str = ""
    past: str = ""
    kept: tuple[Path, ...] = ()
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
            f"Rebuilt the {names.MANIFEST} of the archive from its segments.",
        )
    if found.intent is not None:
        return _of_intent(found, found.intent)
    leftovers = {*filter(names.is_leftover, found.listing)}
    if leftovers <= _spared(found):
        return Recovery("nothing")
    _check_superfluous(found)
    return replace(_undo("run"), kept=_only_copy(found))


def _of_intent(found: State, begun: Intent) -> Recovery:
    """Return what is to be done with an interrupted rotation or restoration."""
    what, name = _WHAT[begun.operation], printable(str(found.place.live))
    row, kept = _decided(found, begun)
    if row.deed == "put back":
        return Recovery(
            "put back",
            f"A {what} was interrupted while another program saved {name}: the next run puts "
            "the saved file back.",
            f"Put {name} back as another program had saved it.",
        )
    if row.deed == "refuse":
        return _refused(found, what)
    if row.standing != "after" and found.place.pack not in kept:
        _check_superfluous(found)
    if row.deed == "undo":
        return replace(_undo(what), kept=kept or _only_copy(found))
    return Recovery(
        "finish",
        f"A {what} was interrupted: the next run finishes it.",
        f"Finished a {what} that was interrupted.",
        kept,
    )


def _refused(found: State, what: str) -> Recovery:
    """Return what to do where no row tells; raise DamagedError if nobody can."""
    if seal.is_overtaken(found):
        return _OVERTAKEN
    kept = found.place.client.trims.replaced(found.place.live, found.place.session)
    archive = printable(str(found.place.archive))
    trimmed = f", and in {printable(str(kept[0].parent))} what its client trimmed" if kept else ""
    raise DamagedError(
        f"A {what} was interrupted, and {printable(str(found.place.live))} matches neither the old "
        f"nor the new file, so nothing was changed. The old content is in {archive}{trimmed}."
    )


def _decided(found: State, begun: Intent) -> tuple[Rule, tuple[Path, ...]]:
    """Return the row that counts, and which files are to be kept whatever it says."""
    what, has_pack = swap.judged(found, begun), found.pack is not None
    row = record.decided(begun.operation, found.match, what, has_pack=has_pack)
    if row.standing == "after" or what not in {"new", "stranger"}:
        return row, ()
    # Another program replaced the live file, so that the pack has its last name.
    kept = () if what == "new" else (found.place.draft,)
    return row, kept if _is_superfluous(found) else (*kept, found.place.pack)


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


# ── drafts in an archive of another moment than the live file ─────────────────────────────────────


def _spared(found: State) -> frozenset[str]:
    """Return the drafts that stay: those of an archive that the live file does not go on from.

    Both may be copies, and the archive from when what the live file counts was but drafts. Once an
    intent is written, the pack has what any draft has. But until the swap that is the live file,
    and who empties one empties both.
    """
    is_emptied = found.standing == "before" and found.is_pack and not found.is_pack_known
    if found.problem is None or (found.intent is not None and not is_emptied):
        return frozenset()
    return frozenset(name for name in found.listing if name.endswith(names.PARTIAL))


def _only_copy(found: State) -> tuple[Path, ...]:
    """Return the draft of a whole live file, if the session has neither that nor what is in it.

    Raises DamagedError of segments: they may be the end of a live file that is gone, and what is
    put in its place would not have them.
    """
    place = found.place
    if found.live is not None or found.problem is not None:
        return ()
    drafts = sorted(name for name in found.listing if name.endswith(f"zst{names.PARTIAL}"))
    if drafts:
        raise DamagedError(
            f"{printable(str(place.live))} is gone, and {printable(str(place.archive))} holds "
            f"{units.some([printable(name) for name in drafts], 3)}, which may be all that is left "
            "of its end: move them out of it, and keep them."
        )
    is_there = names.DRAFT in found.listing and not _is_archived(found)
    return (place.draft,) if is_there else ()


def _is_archived(found: State) -> bool:
    """Tell whether the draft of a live file is how the archived history begins. Reads both."""
    if found.manifest is None:
        return False
    place, at = found.place, 0
    segments = load.of_manifest(place.archive, found.listing, found.manifest)
    with suppress(DamagedError), Source.inside(place.archive, names.DRAFT) as draft:
        size = draft.size()
        for part in segments.parts:
            if at >= size:
                return True
            for piece in body(segments, part):
                if draft.read_at(at, min(len(piece), size - at)) != piece[: max(0, size - at)]:
                    return False
                at += len(piece)
        return at >= size
    return False


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
        if todo.deed == "put back" and found.live is not None:
            said = [*_put_back(found, todo)]
            stack.close()
            found = stack.enter_context(state.opened(place))
            todo = plan(found)
            todo = replace(todo, past=" ".join(filter(None, [*said, todo.past])))
        done = _done(found, todo, stack, wait)
        yield done, stack.enter_context(state.opened(place))


def _done(found: State, todo: Recovery, stack: ExitStack, wait: float) -> Recovery:
    """Do what is to be done; `stack`, which holds the session open, is closed in between."""
    place = found.place
    before = gain.measured(place) if todo.sentence else 0
    is_gone = found.is_gone and found.pack is not None
    said = [todo.past, *_kept(place, todo.kept)]
    if todo.deed == "rebuild":
        sealed_segments.rebuild_manifest(found)
        stack.close()
        with settled(place, wait) as (then, _):  # what else is left can only now be judged
            return replace(
                todo, past=" ".join(filter(None, (*said, then.past))), gained=then.gained
            )
    if found.drafted in {"old", "live"}:  # it goes before the pack, by which it is known
        fs.remove_files(place.archive, [names.DRAFT])
    if todo.deed == "finish":
        sealed_segments.repair(found)  # before the pack goes, which has what they are copies of
    extra = state.uncounted(found) if todo.deed == "undo" else ()
    is_overtaken = todo.deed == "undo" and seal.is_overtaken(found)
    if is_overtaken:  # by a trim that came since `was_taken_back` looked
        seal.take_back(found)
    spared = _spared(found)
    stack.close()
    if todo.deed == "undo" and not is_overtaken:
        if is_gone:  # the pack is the live file that was there before
            owner.check_unmoved(place)
            fs.create_folder(place.live.parent)
            fs.add_name(place.pack, place.live)
        if extra:
            swap.uncount(place, extra[0].segment.index, len(extra))
        swap.undo(place, spared)
    elif todo.deed == "finish":
        seal.finish(place, wait)
    if spared:
        with settled(place, wait):  # the intent may have been what was wrong
            pass
    said += waiting.settle(place)
    gained = before - gain.measured(place) if todo.sentence else 0
    return replace(todo, past=" ".join(filter(None, said)), gained=gained)


def _put_back(found: State, todo: Recovery) -> Iterator[str]:
    """Give the live file's name back to a file that another program saved; say so."""
    place = found.place
    if found.live is not None and swap.is_plain(found):
        fs.give_back(place.draft, place.live, os.fstat(found.live.fd))
    with state.opened(place) as now:
        if plan(now).deed != "put back":
            yield todo.past
            return
    # Two names cannot be exchanged here, or there are two such files; or it is a link.
    yield from _kept(place, (place.draft,))
    fs.remove_files(place.archive, [names.DRAFT])


def _kept(place: Place, files: tuple[Path, ...]) -> Iterator[str]:
    for path in files:
        yield aside.said(aside.keep(place, path), place.live)
