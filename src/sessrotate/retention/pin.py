"""Pinning a segment, so that no policy removes it, and agreeing that pins were lost.

Rule: a pin is an entry in the manifest; it moves and changes no segment.
"""

from __future__ import annotations

from msgspec.structs import replace

from sessrotate.archive.place import Place
from sessrotate.errors import WrongUsageError, printable
from sessrotate.retention import transaction
from sessrotate.segments.manifest import MAX_NOTE


def accept_rebuilt(where: Place, wait: float) -> bool:
    """Let an archive whose manifest was made again be pruned; tell whether it was such a one.

    `wait` is how many seconds to wait for the session's lock. The pins that it has by now count.
    """
    with transaction.begin(where, wait) as listed:
        if listed.is_rebuilt:
            transaction.replace_segments(where, replace(listed, is_rebuilt=False), {})
    return listed.is_rebuilt


def pin(where: Place, index: int, note: str | None, wait: float) -> None:
    """Pin a segment with a note, which may be empty; with None, unpin it.

    `wait` is how many seconds to wait for the session's lock. Raises WrongUsageError if there is
    no such segment, or the note is too long.
    """
    if note is not None and len(note) > MAX_NOTE:
        raise WrongUsageError(f"The note is too long: it can have {MAX_NOTE} characters.")
    with transaction.begin(where, wait) as listed:
        entry = next((each for each in listed.segments if each.segment.index == index), None)
        if entry is None or entry.pruned is not None:
            raise WrongUsageError(f"{printable(where.session)} has no sealed segment {index}.")
        transaction.replace_segments(where, listed, {index: replace(entry, pin=note)})
