"""Whether a live file goes on from its archive, and if not, what happened and what helps.

Rule: told by what the header of the live file says of the archive, and by what stands behind it.
What can happen is a table, `MISFITS`: all commands say the same about the same case, and name the
way that loses least first.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from sessrotate import names
from sessrotate.archive import away_file, live_tail, place
from sessrotate.archive.found_files import FoundFiles
from sessrotate.archive.late_lines import left
from sessrotate.archive.place import Place, that_wait
from sessrotate.archive.record import Moment
from sessrotate.clients.common import listed as listed_in
from sessrotate.errors import SessrotateError, printable, quoted
from sessrotate.segments import load
from sessrotate.segments.manifest import Manifest
from sessrotate.system.source import Source
from sessrotate.units import amount, some

Case = Literal[
    "no archive",
    "earlier form",
    "put aside",
    "no manifest",
    "gaps",
    "emptied",
    "older",
    "newer",
    "older manifest",
    "other",
    "headless",
    "changed",
    "cut",
]


class Misfit(Struct, frozen=True):
    """What to say where a live file does not go on from its archive: what it is, and what helps.

    `{name}` is the live file and `{size}` its bytes, `{start}` the bytes of history before it;
    `{archive}` is the archive's folder (`{folder}` for a shell, and `{aside}` where it was put) and
    `{end}` the bytes of history in it; `{id}` the session;
    `{missing}` names segments that are not there.
    """

    what: str
    help: str


_RESTORE: Final = (
    "`sessrotate restore {id}` brings back all that is archived. Keep that file until you have "
    "compared the two: it may hold lines that were never archived."
)

MISFITS: Final[dict[Case, Misfit]] = {
    "no archive": Misfit(
        "{name} is only the live tail of {id}, {size}: the archive with the {start} of history "
        "before it, {archive}, is gone.",
        "Put that folder back, from the trash, a backup, or where the session was rotated.",
    ),
    "earlier form": Misfit(
        "{name} is only the live tail of {id}, {size}: the archive with the {start} of history "
        "before it, {earlier}, is in the format of an earlier sessrotate.",
        "The version that made it can `restore` the session.",
    ),
    "put aside": Misfit(
        "{name} is only the live tail of {id}, {size}: the archive with the {start} of "
        "history before it was put aside.",
        "Put it back with `mv {aside} {folder}`.",
    ),
    "no manifest": Misfit(
        f"The {names.MANIFEST} of {{archive}} {{lost}}.",
        "`sessrotate rotate {id}` rebuilds it from the segments.",
    ),
    "gaps": Misfit(
        f"The {names.MANIFEST} of {{archive}} {{lost}}, and so is {{missing}}.",
        "Put {missing} back from a backup, then `sessrotate rotate {id}` rebuilds the "
        f"{names.MANIFEST}. `sessrotate stitch --allow-gaps {{id}} -o FILE` writes what is left.",
    ),
    "emptied": Misfit(
        "{name} was emptied, but the archived {end} are not lost.",
        "Remove the empty file, then `sessrotate restore {id}` brings them back.",
    ),
    "older": Misfit(
        "{name} is an older copy: it was made before the last rotation, and {archive} after that.",
        f"Move it away, then {_RESTORE}",
    ),
    "newer": Misfit(
        "{archive} is an older copy: it ends after {end} of history, and {name} begins after "
        "{start}.",
        "Put the newer archive back.",
    ),
    "older manifest": Misfit(
        f"{{archive}} has all segments that {{name}} continues, but an older {names.MANIFEST}, "
        "which ends after {end} of history instead of {start}.",
        f"Move that {names.MANIFEST} away, then `sessrotate rotate {{id}}` rebuilds it from the "
        "segments.",
    ),
    "other": Misfit(
        "{name} does not continue its archive: it belongs to an archive other than {archive}.",
        "Put back the live file or the archive that belongs to it.",
    ),
    "headless": Misfit(
        "{name} does not continue its archive: it no longer begins with its header. It was "
        "rewritten, or is a copy from before the rotation.",
        "Put the file back as the last rotation left it. Without such a copy, move it away, then "
        f"{_RESTORE}",
    ),
    "changed": Misfit(
        "{name} does not continue its archive: {reason}.",
        "Put the file back as the last rotation left it.",
    ),
    "cut": Misfit(
        "Its client cut {name} before an operation on it was finished.",
        "`sessrotate rotate {id}` finishes the operation, and continues from there.",
    ),
}

_ENOUGH: Final = 1000

_LAST: Final = (
    "If that cannot be done, `sessrotate rotate --unsafe-adopt {id}` begins a new archive with "
    "what the file holds, and puts the old one aside. If the file has not been compacted yet, use "
    "`sessrotate aside {id}` instead."
)

_AWAY: Final = (
    "It was put away: `sessrotate restore --keep-rotated {id}` brings it back as it was, and then "
    "`sessrotate doctor` says what helps."
)
"""Of a session put away: its live file is in the archive, so that is the first to do."""


def problem(
    found: FoundFiles,
    listed: Manifest | None,
    standing: Moment,
    reason: str | None,
    *,
    is_cut: bool,
) -> str | None:
    """Return why the live file does not go on from `listed`, and what helps; None if it does.

    `reason` is what of it is not what its header says. No live file at all goes on from anything:
    what is archived is all there is. One that its client cut (`is_cut`) goes on once nothing else
    is under way.
    """
    if found.live is None:
        return _headless_archive(found) or _left(found, listed)
    begun, name = found.intent, printable(str(found.place.live))
    if found.is_away and away_file.is_doubled(found.place):
        return str(away_file.doubled(found.place))
    if begun is not None and begun.operation == "restore" and standing == "after":
        is_whole = found.successor is not None and found.successor.size() >= begun.swap.prefix
        return None if is_whole else f"{name} is shorter than the history that was put there."
    if standing == "unknown":
        return f"{name} matches neither the file to be replaced nor the new one."
    header = found.header
    kind = _kind(found, found.live, listed, reason)
    if kind == "changed" and is_cut:
        kind = None if begun is None or begun.moves_nothing else "cut"
    if kind is None:
        return _left(found, listed)
    row = MISFITS[kind]
    helps = row.help if kind in {"no manifest", "older manifest", "cut"} else f"{row.help} {_LAST}"
    if found.is_away:
        helps, name = _AWAY, printable(str(found.live.path))
    return f"{row.what} {helps}".format(
        name=name,
        size=amount(found.live.size()),
        start=amount(header.start if header is not None else 0),
        archive=printable(str(found.place.archive)),
        folder=quoted(found.place.archive),
        aside=" ".join(map(quoted, _aside(found.place)[-1:])),
        earlier=" ".join(map(quoted, _earlier(found.place)[-1:])),
        end=amount(listed.source_bytes if listed is not None else 0),
        id=printable(found.place.session),
        lost=_lost(found),
        reason=reason,
        missing=_named(missing(found)),
    )


def _left(found: FoundFiles, listed: Manifest | None) -> str | None:
    """Say what to do about a replaced file that no record tells of, and that the session lacks."""
    place, live, told = found.place, found.live, {str(each.number) for each in found.record.waiting}
    files = [place.pack] if found.intent is None and found.pack is not None else []
    if live is not None and names.WAITING in found.listing:
        files += [path for path in that_wait(place) if path.name not in told]
    for path in files:
        if not _is_held(found, listed, path):
            return left(path, place.live) if live is not None else _gone(place)
    return None


def _is_held(found: FoundFiles, listed: Manifest | None, path: Path) -> bool:
    """Tell whether the session has all of a replaced file; None of what cannot be read."""
    place, live = found.place, found.live
    with suppress(SessrotateError, OSError):
        parts = load.of_manifest(place.archive, found.listing, listed) if listed else None
        with Source.inside(place.archive, str(path.relative_to(place.archive))) as old:
            if live is not None and live.identity().is_same_file(old.identity()):
                return True
            # A client trimmed it meanwhile: it is put together by the name that it has for that.
            if place.client.trims.names_of(place.live, place.session, os.fstat(old.fd)):
                return True
            # A row of settings that came late may be equal to one that stands there.
            is_told = path == place.pack or place.client.resume.ends_in_a_row(old)
            return is_told and live_tail.has_all_of(live, found.header, parts, old, place.session)
    return False


def _gone(where: Place) -> str:
    name, pack = printable(str(where.live)), printable(str(where.pack))
    is_left = f"no record explains {pack}, which may hold all that is left of its latest state."
    if where.project:
        return f"{name} is gone, and {is_left} Put a copy of that file in its place."
    name = printable(where.live.name)
    return f"{name} is gone, and {is_left} Put a copy of it into the project's folder, as {name}."


def _headless_archive(found: FoundFiles) -> str | None:
    """Return what to say of segments that neither a manifest nor a live file speaks of."""
    is_told = found.manifest is not None or found.intent is not None
    if is_told or not names.segments_among(found.listing, found.place.session):
        return None
    archive, session = printable(str(found.place.archive)), printable(found.place.session)
    return (
        f"{archive} has neither its {names.MANIFEST} nor a live file that continues it, so the "
        "number of segments is unknown. Put one of the two back from a backup. Otherwise "
        f"`sessrotate aside {session}` puts it aside, where `sessrotate stitch --allow-gaps` reads "
        "what is left."
    )


def missing(found: FoundFiles) -> list[int]:
    """Return which segments the live file goes on from that are neither archived nor in the trash.

    None where a manifest says where they are.
    """
    return _missing(found) if found.manifest is None else []


def _missing(found: FoundFiles) -> list[int]:
    if found.header is None:
        return []
    trash = (path.name for path in listed_in(found.place.archive / names.TRASH))
    there, session = {*found.listing, *trash}, found.place.session
    # A header may say any number: of more than are there by far, the first ones tell enough.
    return [
        index
        for index in range(min(found.header.index, len(there) + _ENOUGH))
        if names.sealed_file(session, index) not in there
    ]


def _lost(found: FoundFiles) -> str:
    return "is damaged" if names.MANIFEST in found.listing else "is gone"


def _named(numbers: list[int]) -> str:
    shown = some([f"{number:,}" for number in numbers], 5)
    return f"segment{'' if len(numbers) == 1 else 's'} {shown}"


def _kind(
    found: FoundFiles, live: Source, listed: Manifest | None, reason: str | None
) -> Case | None:
    header = found.header
    if listed is None:
        return None if header is None else _without_manifest(found)
    if header is None:
        return "headless" if live.size() else "emptied"
    if live_tail.ends_at(listed, header):
        return None if reason is None else "changed"
    if header.start > listed.source_bytes:
        return "newer" if _missing(found) else "older manifest"
    parents = {entry.digest for entry in listed.segments[:-1]}
    return "older" if header.parent_digest in parents else "other"


def _without_manifest(found: FoundFiles) -> Case:
    lost = missing(found)
    if not lost:
        return "no manifest"
    if names.segments_among(found.listing, found.place.session):
        return "gaps"
    if _earlier(found.place):
        return "earlier form"
    return "put aside" if _aside(found.place) else "no archive"


def _earlier(where: Place) -> list[Path]:
    """Return the archives of a session that an earlier sessrotate made, by its projects' names."""
    found = (folder / where.session for folder in listed_in(place.root()))
    return [each for each in found if each.parent.name not in place.FOLDERS and each.is_dir()]


def _aside(where: Place) -> list[Path]:
    """Return the archives of a session that were put aside, the last one last."""
    key = names.key(where.session)
    ours = [each for each in place.aside() if each.stem == key and each.is_dir()]
    return sorted(ours, key=lambda each: (len(each.name), each.name))
