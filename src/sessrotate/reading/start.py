"""A place in a session, as a search names it → the records from there on.

Rule: a place is a segment's number and an offset in bytes of its body, whatever file has it by now.
An offset inside of a record stands for that record. Segments before the place are not opened,
unless the client's records repeat earlier ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate.clients import opaque
from sessrotate.errors import WrongUsageError, printable
from sessrotate.parsing.records import Record

if TYPE_CHECKING:
    from sessrotate.reading.session import Session

_PLACE: Final = re.compile(r"(\d{1,9}):(\d{1,15})(?::(\d{1,15}))?", re.ASCII)


class Place(Struct, frozen=True):
    """The byte at `offset` of the body of a segment.

    With a `character`, it is that one of what the record there says (`select.text_of`), and only
    that record.
    """

    segment: int
    offset: int
    character: int | None = None

    def is_in(self, record: Record) -> bool:
        """Tell whether a record has this byte, its newline included."""
        begins = record.offset <= self.offset <= record.offset + record.size
        return record.segment == self.segment and begins


def place(text: str) -> Place:
    """Return the place that people name. Raises WrongUsageError if the text is none."""
    found = _PLACE.fullmatch(text.strip())
    if found is None:
        raise WrongUsageError(
            f"{printable(text)} is not a place such as 3:120394, a segment and an offset: take it "
            "from what `search` prints."
        )
    return Place(int(found[1]), int(found[2]), None if found[3] is None else int(found[3]))


def records(session: Session, place: Place, *, are_lines: bool = False) -> Iterator[Record]:
    """Yield the records of the history from the one at a place on, or only that one.

    They come as people read them (`Session.said`), or with `are_lines` as they are in the file.
    Raises WrongUsageError if no record is there.
    """
    is_plain = are_lines or session.reader.said is opaque.said
    session.segment(place.segment)
    numbers = [
        info.index for info in session.segments if not is_plain or info.index >= place.segment
    ]
    every = chain.from_iterable(map(session.segment, numbers))
    found = every if are_lines else session.said(every)
    is_begun = False
    for record in found:
        if not is_begun:
            if is_plain and record.segment > place.segment:
                break
            is_begun = place.is_in(record) and not record.is_carried
        if is_begun:
            yield record
            if place.character is not None:
                return
    if not is_begun:
        raise WrongUsageError(
            f"There is no record at {place.segment}:{place.offset}: take the place from what "
            "`search` prints."
        )
