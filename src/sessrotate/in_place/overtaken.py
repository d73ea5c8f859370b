"""A swap that a client's trim came right behind: its file was made of the old one, not of the new.

Claude Code (2.1.287 to 2.1.332) compares the live file with what it trims, and then puts its own in
that place: the swap may come between the two. The old file has every byte up to there, and the
client's goes on from it.

Rule: the swap is taken back as if the trim had come first. The old file gets the name that a client
gives what it keeps, and only then what the swap made goes; the next run puts both together.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from sessrotate import fs
from sessrotate.archive import state, trimmed
from sessrotate.archive.place import Place
from sessrotate.archive.record import Intent
from sessrotate.archive.state import State
from sessrotate.errors import SessrotateError
from sessrotate.in_place import drafted, second_names, swap
from sessrotate.system import lease
from sessrotate.system.source import Source

MOMENT: Final = 0.05
"""Seconds in which a client that has compared the live file puts its own there: under 0.001."""


def was_taken_back(place: Place) -> bool:
    """Take back a swap that a trim came right behind; tell whether it did. The lock is held.

    A client that had compared the old file gets a moment to put its own there: how that goes on can
    be told as long as nothing is sealed. Where nothing is kept of a session, no client trims it.
    """
    trims = place.client.trims
    if not (os.path.lexists(place.pack) and trims.may_be_trimmed(place.live, place.session)):
        return False
    time.sleep(MOMENT)
    with state.opened(place) as found:
        if not is_overtaken(found):
            return False
        take_back(found)
        return True


def is_overtaken(found: State) -> bool:
    """Tell whether the live file was made of the one that a rotation has replaced.

    Nothing of the history is sealed then, so that the old file is whole. Reads both where the live
    file is not the new one. If that was kept, and has all of the old one, the live file goes on
    from it in any case. Another program may save a file like that, too: no client trims a session
    of which nothing is kept.
    """
    begun, pack, live = found.intent, found.pack, found.live
    if begun is None or pack is None or live is None:
        return False
    place = found.place
    if not place.client.trims.may_be_trimmed(place.live, place.session):
        return False
    if found.match not in {"old", "other", "kept"} or found.is_gone:
        return False
    if not found.is_pack_known or (found.match == "kept" and begun.moves_nothing):
        return False
    return trimmed.goes_on_at(pack, live) is not None


def take_back(found: State) -> None:
    """Leave the old file as what a client kept, and remove what a swap made. The lock is held.

    The new file goes if it has nothing that the old one has not.
    """
    place, pack, begun = found.place, found.pack, found.intent
    if pack is None or begun is None:
        raise ValueError
    second_names.give(place, place.pack, pack.identity().modified_ns)
    for path in place.client.trims.replaced(place.live, place.session):
        if _is_new(found, begun, path):
            fs.remove_files(path.parent, [path.name])
    swap.undo(place)


def _is_new(found: State, begun: Intent, path: Path) -> bool:
    """Tell whether a file that was kept is the new one of the swap, as that made it, and unused."""
    try:
        with Source.inside(path.parent, path.name) as source:
            # Somebody may have opened it under the live file's name, and write to it only now.
            is_free = lease.write(source.fd) == "taken"
            return is_free and drafted.is_new(found, begun, source)
    except (SessrotateError, OSError):
        return False
