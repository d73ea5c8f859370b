"""Where every byte of a session's history is, at any moment of a rotation or restoration. Pure.

Rule: this is the one answer to that question. Reading, stitching, verifying and restoring take it
from here, so that a byte that is found here is found by all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sessrotate.model import Span

if TYPE_CHECKING:
    from collections.abc import Collection

    from sessrotate.intent import Intent
    from sessrotate.manifest import Manifest

Where = Literal["sealed", "pruned", "pack", "live"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the history: a sealed segment's body, or bytes of the pack or the live file.

    What was pruned has no bytes. `index` is the segment's, None for what is not one yet.
    """

    where: Where
    index: int | None
    span: Span


def pieces(
    *,
    manifest: Manifest | None,
    intent: Intent | None,
    was_swapped: bool,
    sealed: Collection[int],
    live: Span,
    residue: Span,
) -> tuple[Piece, ...]:
    """Return the history in order.

    `was_swapped` says whether the live file is the new one of the intent. `sealed` are the
    numbers of the segments whose files are there, `live` is the body of the live file, and
    `residue` what the pack has that the live file has yet to get, both in their own offsets.
    """
    if intent is not None and was_swapped and intent.operation == "restore":
        return _filled([Piece("live", None, live), Piece("pack", None, residue)])
    listed = intent.manifest if intent is not None and was_swapped else manifest
    found: list[Piece] = []
    for entry in listed.segments if listed is not None else ():
        index, span = entry.segment.index, entry.segment.span
        if entry.pruned is not None:
            found.append(Piece("pruned", index, Span(0, 0)))
        elif intent is None or not was_swapped or index < intent.first or index in sealed:
            found.append(Piece("sealed", index, Span(0, span.size)))
        else:
            found.append(Piece("pack", index, intent.in_pack(span)))
    return (*found, *_filled([Piece("live", None, live), Piece("pack", None, residue)]))


def _filled(parts: list[Piece]) -> tuple[Piece, ...]:
    return tuple(part for part in parts if part.span.size)
