"""`record.json` of an archive: where its session stands, unless it is simply rotated.

Rule: only reads. What is under way is in the record before the live file is replaced, or the first
file is moved, and until nothing is left to do. That is enough to decide, by content and position
alone, whether the live file was replaced, and to go on from wherever a crash came. The names in it
are compared with what is there, and never opened. No record means that nothing is under way.

Whoever changes it: `in_place.swap.change_record` is the one writer, under the session's lock. A
field that is added has a default, or older records are damaged; what it may hold, `_is_sound`
checks. A record can be lost, damaged or put back at any time: `told` says what counts then.

Whether an interrupted swap took place, and what the next run does about it, is a table. It is
decided by what the files hold, never by a number or a time. The first row that fits counts.
`scripts/docs.py` writes the table into docs/internals/protocol.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from sessrotate import names, units
from sessrotate.errors import DamagedError, SessrotateError
from sessrotate.model import Count, Digest, SealedSegment, Span
from sessrotate.parsing import json_typed
from sessrotate.segments import load
from sessrotate.segments.manifest import Manifest
from sessrotate.system.digest import Fingerprint

Operation = Literal["rotate", "restore"]

HEAD: Final = 4096
"""Most bytes of a file's beginning by which it is recognised."""

MAX_BYTES: Final = 4 * 1024 * 1024

_MOST_SEGMENTS: Final = 1_000_000
"""No manifest can list as many: a record that says so is none of ours."""

UNKNOWN: Final = "unknown"
"""Since when a live file is whole whose record is damaged."""

AwayStep = Literal["archiving", "archived", "unarchiving"]
"""How far a session was put away, or brought back."""


class Mark(Struct, frozen=True):
    """A run of bytes, told by its length and digest."""

    size: Count
    digest: Digest

    @classmethod
    def of(cls, data: bytes) -> Mark:
        """Return the mark of these bytes."""
        return cls.of_pieces([data])

    @classmethod
    def of_pieces(cls, pieces: Iterable[bytes | memoryview]) -> Mark:
        """Return the mark of bytes that come in pieces, each valid until the next."""
        fingerprint, size = Fingerprint(), 0
        for piece in pieces:
            fingerprint.update(piece)
            size += len(piece)
        return cls(size, fingerprint.digest)


class Batch(Struct, frozen=True):
    """Late bytes of the pack that are being appended to a live file of at least `floor` bytes."""

    span: Span
    floor: Count


class Swap(Struct, frozen=True):
    """The replacement of a live file by another with the same tail.

    `old` and `new` are how either file begins, which is how they are told apart. The tail begins at
    `cut` in the old file and at `prefix` in the new one; `tail` is what of it the new file had when
    it took the old one's place. `batch` is the last of the bytes that came late.
    """

    old: Mark
    new: Mark
    cut: Count
    prefix: Count
    tail: Mark
    batch: Batch | None = None


NO_SWAP: Final = Swap(Mark.of(b""), Mark.of(b""), 0, 0, Mark.of(b""))
"""Of an intent that no swap belongs to."""


class Intent(Struct, frozen=True):
    """One rotation or restoration.

    A rotation brings `count` segments to the archive, from number `first` on: none if it only
    brings rows back, or what its client trimmed. The manifest lists them before the swap, and the
    header of the live file says how many of them count. A restoration brings none.
    """

    operation: Operation
    swap: Swap
    first: Count
    count: Count = 0

    @property
    def moves_nothing(self) -> bool:
        """Whether nothing of the history goes to the archive, or comes from it."""
        return self.operation != "restore" and not self.count

    def moved(self, listed: Manifest | None) -> tuple[SealedSegment, ...]:
        """Return the segments that it brings to the archive with this manifest."""
        return () if listed is None else listed.segments[self.first : self.first + self.count]

    def files(self, session: str) -> tuple[str, ...]:
        """Return the names of their files, which the archive has before the swap."""
        numbers = range(self.first, self.first + self.count)
        return tuple(names.sealed_file(session, number) for number in numbers)


class PutAway(Struct, frozen=True):
    """A session that was put away, or is on its way there or back, since when (ISO 8601, UTC).

    `used` is when its last record was written, empty where none says. `is_plain` says that one of
    its files may have yet to be compressed.
    """

    standing: AwayStep
    at: str
    used: Annotated[str, Meta(max_length=64)] = ""
    is_plain: bool = True


class Waiting(Struct, frozen=True):
    """What of a replaced file that waits the live file has: the bytes of `mark`, at its beginning.

    The file is called `number` in the folder `waiting`. `since` is when it began to wait, and
    `modified` when it was last changed by then, in nanoseconds since 1970. `batch` are the bytes
    that are just being brought over, if any.
    """

    number: Count
    mark: Mark
    since: Count
    modified: Count
    batch: Batch | None = None


class Record(Struct, frozen=True):
    """Where a session stands: under way, put away, restored; and which replaced files wait.

    `project` is what the folder of its live file is called among projects, empty where nobody
    knows. `restored` is since when the live file is whole, as its owner wants it (ISO 8601, UTC):
    empty if it was put back as short as it had been put away, None if nobody restored it.
    """

    session: str
    project: str = ""
    intent: Intent | None = None
    away: PutAway | None = None
    restored: str | None = None
    waiting: tuple[Waiting, ...] = ()


def dump(record: Record) -> bytes:
    """Return the record as the bytes of its file."""
    return json_typed.dump_line(record)


def parse(data: bytes, session: str) -> Record:
    """Return the record of a session that these bytes are; raise DamagedError if they are none."""
    record = json_typed.parse_line(data, Record)
    if record is not None and record.session == session and _is_sound(record):
        return record
    raise DamagedError(f"The {names.RECORD} of the archive is damaged: restore it from a backup.")


def read(archive: Path) -> Record:
    """Return the record of an archive, one that says nothing if there is none.

    Raises DamagedError if it is damaged, or not to be read; StorageError if the disk fails.
    """
    session = names.session_of_key(archive.name) or ""
    if not os.path.lexists(archive / names.RECORD):
        return Record(session)
    return parse(load.read_small(archive, names.RECORD, MAX_BYTES), session)


def told(archive: Path) -> Record:
    """Return the record of an archive; where it is lost or damaged, what the files there tell.

    No link is followed.
    """
    session = names.session_of_key(archive.name) or ""
    folder = archive / names.ARCHIVED
    is_there, is_any = os.path.lexists(archive / names.RECORD), os.path.lexists(folder)
    if not (is_there or is_any):  # as of most: nothing is to be opened
        return Record(session)
    if is_behind_link(archive):
        return Record(session)
    if is_there:
        with suppress(SessrotateError, OSError):
            return read(archive)
    if away(archive, session) is not None:
        return Record(session, away=PutAway("archived", ""))
    if is_there:  # it may be that of a restored session, which nothing but its owner rotates
        coming = PutAway("unarchiving", "") if is_any else None
        return Record(session, away=coming, restored=UNKNOWN)
    return Record(session)


def is_behind_link(archive: Path) -> bool:
    """Tell whether an archive is reached by a link: nothing there is opened (`owner`)."""
    return os.path.islink(archive) or os.path.islink(archive.parent)  # noqa: PTH114 - never raises


def away(archive: Path, session: str) -> Path | None:
    """Return the live file of a session that was put away, plain or compressed, if it is there."""
    if os.path.islink(folder := archive / names.ARCHIVED):  # noqa: PTH114 - as above
        return None
    plain = folder / f"{session}{names.SUFFIX}"
    files = (plain, plain.with_name(plain.name + names.PACKED))
    return next(filter(os.path.lexists, files), None)


def _is_sound(told: Record) -> bool:
    is_named = not told.project or names.is_plain(told.project)
    is_dated = told.restored in {None, "", UNKNOWN} or units.seconds(told.restored) is not None
    is_batch = all(each.batch is None or each.batch.span.size >= 0 for each in told.waiting)
    return is_named and is_dated and is_batch and (told.intent is None or _makes_sense(told.intent))


def _makes_sense(intent: Intent) -> bool:
    swap = intent.swap
    late = None if swap.batch is None else swap.batch.span
    if late is not None and not (late.size > 0 and late.start >= swap.cut):
        return False
    if intent.operation == "restore":
        return not intent.count
    # One that moves nothing gives the tail another prefix, and that must be told apart.
    return intent.first + intent.count <= _MOST_SEGMENTS and (
        bool(intent.count) or (swap.cut > 0 and swap.old != swap.new)
    )


# ── whether an interrupted swap took place ────────────────────────────────────────────────────────

Moment = Literal["before", "after", "unknown"]

Match = Literal["new", "kept", "old", "pack", "other", "absent"]
"""What the live file is: it begins like the new file; its client trimmed the new file, and kept it;
it begins like the old one; it is the file that the pack names, too; any other; or there is none."""

Drafted = Literal["absent", "old", "live", "other"]
"""What has the draft's name: nothing; the file that the pack names, too; the live file; or another
file: the new one, before the exchange, or what a program saved at that very moment."""

Decision = Literal["undo", "finish", "refuse"]
"""What the next run does: remove what was made for the swap; do the rest; or touch nothing."""

MATCHES: Final[dict[Match, str]] = {
    "new": "the new file",
    "kept": "trimmed from the new file, which was kept",
    "old": "the old file",
    "pack": "the pack itself",
    "other": "neither",
    "absent": "gone",
}

DRAFTED: Final[dict[Drafted, str]] = {
    "absent": "gone",
    "old": "the pack itself",
    "live": "the live file itself",
    "other": "another file",
}


class Rule(Struct, frozen=True):
    """What is decided where a rotation or restoration was interrupted; None stands for anything."""

    live: Match | None
    drafted: Drafted | None
    standing: Moment
    deed: Decision
    why: str
    only: Operation | None = None
    has_pack: bool | None = None

    def fits(self, operation: Operation, live: Match, drafted: Drafted, *, has_pack: bool) -> bool:
        """Tell whether this row is about such a case."""
        return (
            self.only in {None, operation}
            and self.live in {None, live}
            and self.drafted in {None, drafted}
            and self.has_pack in {None, has_pack}
        )


ROWS: Final = (
    Rule("pack", None, "before", "undo", "The names were not exchanged."),
    Rule(None, "old", "after", "finish", "The old file came out of the exchange."),
    Rule(None, "live", "after", "finish", "The draft has its new name as well."),
    Rule("new", None, "after", "finish", "The names were exchanged."),
    Rule("old", "absent", "after", "finish", "A copy was put back.", only="rotate", has_pack=True),
    Rule("old", None, "before", "undo", "The exchange did not last."),
    Rule("absent", None, "before", "undo", "There was no old file.", only="restore"),
    Rule("other", "absent", "after", "finish", "Its name went after the exchange.", has_pack=True),
    Rule(None, "other", "before", "undo", "The pack has everything.", has_pack=True),
    Rule("kept", None, "after", "finish", "The new file had the live file's name."),
    Rule(None, None, "unknown", "undo", "Without a pack nothing follows.", has_pack=False),
    Rule(None, None, "unknown", "refuse", "The pack has everything."),
)


def decided(operation: Operation, live: Match, drafted: Drafted, *, has_pack: bool) -> Rule:
    """Return what counts for an interrupted operation."""
    return next(row for row in ROWS if row.fits(operation, live, drafted, has_pack=has_pack))


def table() -> str:
    """Return the rows as a table of Markdown."""
    heads = ("the live file is", "`live.partial` is", "the pack is")
    lines = [f"| {' | '.join(heads)} | so the swap | the next run | because |"]
    lines.append("|---|---|---|---|---|---|")
    for row in ROWS:
        live = "anything" if row.live is None else MATCHES[row.live]
        drafted = "" if row.drafted is None else DRAFTED[row.drafted]
        pack = "" if row.has_pack is None else "there" if row.has_pack else "gone"
        done = {"before": "was not done", "after": "was done", "unknown": "is in doubt"}
        deeds = {
            "undo": "undoes",
            "finish": "finishes",
            "refuse": "touches nothing: exit 74",
        }
        live += "" if row.only is None else f" (`{row.only}`)"
        cells = (live, drafted, pack, done[row.standing], deeds[row.deed], row.why)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
