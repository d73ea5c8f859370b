"""Putting late lines where they belong in a live file that has grown since.

Rule: what a client wrote to the replaced file comes before everything that it wrote to the new
one. So late lines go into the middle of the live file, by a swap like any other. Until then they
have a file of their own, which the intent names and readers use.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from sessrotate import fs, names, units
from sessrotate.archive import clock, late_lines, owner, state
from sessrotate.archive.late_lines import Counted, Residue
from sessrotate.archive.place import Place
from sessrotate.archive.record import HEAD, NO_SWAP, Intent, Late, Mark, Swap
from sessrotate.archive.state import State
from sessrotate.errors import DamagedError, InUseError, RefusedError, printable
from sessrotate.in_place import rebuild_manifest, swap
from sessrotate.in_place.obstacles import obstacles
from sessrotate.model import Span
from sessrotate.system.source import Source


def keep(found: State, residue: Residue) -> None:
    """Give late lines a file of their own, which the intent announces.

    Once it is there, the pack is not needed for them. Raises DamagedError if another one is.
    """
    begun, pack, live = found.intent, found.pack, found.live
    if begun is None or pack is None or live is None:
        return
    place = found.place
    if os.path.lexists(place.late):
        if begun.late is None:
            raise DamagedError(late_lines.left(place.late, place.live))
        fs.remove_files(place.archive, [names.LATE])  # those that were put in just now
    mark, copied = Mark.of_pieces(pack.pieces(residue.span)), Counted(pack.pieces(residue.span))
    late = Late(residue.at, mark, _edge(live, residue.at), end=pack.size())
    swap.write_intent(place, replace(begun, late=late))
    fs.create_file_at_once(place.late, copied)
    if copied.mark != mark:
        fs.remove_files(place.archive, [names.LATE])
        raise InUseError(f"{printable(str(place.pack))} was changed while it was read: try again.")


def forget_outdated(found: State) -> Intent | None:
    """Let late lines go that were kept, if more came to the pack since; return the intent now.

    All of them are still in the pack and are looked at again. Whoever appends them to the live
    file, instead of keeping them anew, would otherwise see the kept ones inserted once more.
    """
    begun = found.intent
    if begun is None or begun.late is None or not begun.late.end or found.pending is not None:
        return begun
    late = None
    if begun.operation == "insert" and found.live is not None:
        late = Late(begun.swap.cut, begun.swap.new, _edge(found.live, begun.swap.cut))
    fs.remove_files(found.place.archive, [names.LATE])
    swap.write_intent(found.place, now := replace(begun, late=late))
    return now


def _edge(live: Source, at: int) -> Mark:
    size = min(HEAD, at)
    return Mark.of(live.read_at(at - size, size))


def close(found: State) -> None:
    """Remove what is not needed any more after a swap.

    The record says so last; or that late lines wait to be inserted. After a restoration, the
    archive says that the live file is whole; and after a rotation, it does not any more.
    """
    folder, begun, pending = found.place.archive, found.intent, found.pending
    partial = sorted(name for name in found.listing if name.endswith(names.PARTIAL))
    late = [names.LATE] if begun and begun.late and pending is None else []
    fs.remove_files(folder, [names.PACK, names.DRAFT, *late, *partial])
    if begun is None:
        return
    restored = found.record.restored
    if begun.operation == "restore" and found.header is None:
        restored = units.written(clock.stamp())
    elif begun.operation == "rotate" and found.header is not None:
        restored = None
    left = None if pending is None else _waiting(begun, pending)
    if left is None and begun.operation in {"late", "insert"} and found.restored is None:
        rebuild_manifest.from_intent(found, begun)
    swap.change_record(found.place, intent=left, restored=restored)


def _waiting(begun: Intent, late: Late) -> Intent:
    """Return the intent that says of nothing but late lines."""
    return Intent(
        "late",
        NO_SWAP,
        len(begun.manifest.segments),
        begun.manifest,
        replace(late, end=0),
    )


def take_back(found: State) -> None:
    """Remove what was made for an insertion that did not take place; the late lines stay.

    The pack goes first where another program replaced the live file: from then on the draft's name,
    which is still there, tells that nothing was exchanged.
    """
    place, begun = found.place, found.intent
    if begun is None or begun.late is None:
        return
    if found.is_gone and found.pack is not None:  # it is the live file that was there before
        owner.check_unmoved(place)
        fs.create_folder(place.live.parent)
        fs.add_name(place.pack, place.live)
    if begun.operation == "insert":
        if found.match != "pack" and names.DRAFT in found.listing:
            fs.remove_files(place.archive, [names.PACK])
        swap.write_intent(place, _waiting(begun, begun.late))
    files = {name for name in found.listing if name.endswith(names.PARTIAL)}
    fs.remove_files(place.archive, sorted(files | ({names.PACK} & found.listing)))


def execute(place: Place, wait: float) -> bool:
    """Put late lines in their place, if there are any; tell whether a swap was done for it.

    `wait` is how many seconds to wait for a moment without a writer. Raises as `swap.swap` does,
    RefusedError if the live file must not be replaced, DamagedError if there is none, or the
    late lines are not what they were.
    """
    with state.opened(place) as found:
        begun, source = found.intent, found.live
        if begun is None or begun.operation != "late" or begun.late is None:
            return False
        if source is None:
            raise DamagedError(
                f"{printable(str(place.live))} is gone, and lines that came to it last are only "
                f"in {printable(str(place.late))}: put a copy of that in its place."
            )
        reasons = [*obstacles(place, source, 0)]
        if reasons:
            raise RefusedError(" ".join(reasons))
        was = source.identity()

        def taking_back(_place: Place) -> None:
            if fs.same_as(os.fstat(source.fd))(place.live):
                fs.shorten(place.draft, 0)  # a full disk needs the room
            else:
                fs.remove_files(place.archive, [names.PACK])  # as in `take_back`
            swap.write_intent(place, begun)
            fs.remove_files(place.archive, [names.PACK, names.DRAFT])

        with swap.undone_unless_swapped(place, source, taking_back), fs.Draft(place.draft) as draft:
            doing = _write(found, begun, begun.late, source, draft)
            swap.begin(place, source, doing)
            swap.swap(place, source, draft, doing, was=was, wait=wait)
            return True


def _write(found: State, begun: Intent, late: Late, source: Source, draft: fs.Draft) -> Intent:
    """Write the new live file, on the disk when this returns; return what is going to happen."""
    at, end = found.late_at, source.size()
    tail = Counted(source.pieces(Span(at, end)))
    for pieces in (source.pieces(Span(0, at)), late_lines.kept(found), tail):
        for piece in pieces:
            draft.append(piece)
    draft.become_like(source.fd)
    draft.take_times(source.fd)
    draft.sync()
    return replace(
        begun,
        operation="insert",
        swap=Swap(
            old=Mark.of(source.read_at(0, min(HEAD, at))),
            new=late.mark,
            cut=at,
            prefix=at + late.mark.size,
            tail=tail.mark,
        ),
        late=replace(late, at=at, edge=_edge(source, at)),
    )
