"""What is among sessions and archives, and neither a client nor sessrotate has written.

Rule: it harms nobody and is never touched; it is named, because nothing else says that it is there.
Hidden files are somebody's (a file manager's), and not named. Only reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Final

from sessrotate import clients, find, names
from sessrotate.archive import owner, place
from sessrotate.archive.place import Place
from sessrotate.archive.state import State
from sessrotate.clients.claude import agents
from sessrotate.clients.claude import client as claude
from sessrotate.clients.codex import client as codex
from sessrotate.clients.codex import cold
from sessrotate.clients.common import is_file, is_folder, listed
from sessrotate.errors import DamagedError, printable
from sessrotate.in_place.fleet import ZEROS
from sessrotate.system import inside
from sessrotate.system.source import PIECE, is_zeros

_TOLD: Final = 3

_OURS: Final = {
    names.MANIFEST,
    names.RECORD,
    names.PACK,
    names.LATE,
    names.WAITING,
    names.TRASH,
    names.ARCHIVED,
}


def links() -> Iterator[tuple[Path, str]]:
    """Yield the links where sessrotate has folders of its own, each with what to do about it."""
    for path in owner.links():
        told = f"{printable(str(path))} is a symbolic link, and sessrotate writes nothing there:"
        yield path, f"{told} remove the link, or put the folder itself in its place."


def hidden() -> Iterator[tuple[str, str]]:
    """Yield what may hide sessions because it cannot be read, each with what to do about it."""
    said = {*owner.links()}
    for path, reason in find.hidden().items():
        if Path(path) not in said:
            told = f"{printable(path)} cannot be read ({reason}), so nobody sees what is in it:"
            yield path, f"{told} make it readable, or move it away."


def earlier() -> Iterator[tuple[Path, str]]:
    """Yield the archives that an earlier sessrotate made, each with what to do about it."""
    for path in listed(place.root()):
        if path.name in {*place.FOLDERS, place.README} or names.is_hidden(path.name):
            continue
        if not is_folder(path):
            continue
        told = (
            f"{printable(str(path))} has archives of an earlier form, or is none of sessrotate's:"
        )
        yield path, f"{told} the version that made them can `restore` their sessions."


def in_archive(found: State) -> str | None:
    """Return what to say of the names in an archive that are none of ours; None if all are."""
    strange = sorted(name for name in found.listing if not _is_ours(name, found.place.session))
    if not strange:
        return None
    folder = printable(str(found.place.archive))
    if not found.is_rotated and found.restored is None:
        return f"{folder} is no archive, and sessrotate did not make it: move or remove it."
    told = ", ".join(printable(name, 60) for name in strange[:_TOLD])
    more = f" and {len(strange) - _TOLD:,} more" if len(strange) > _TOLD else ""
    return f"{folder} has {told}{more}, which sessrotate did not write: move or remove what it is."


def unlisted(found: State) -> str | None:
    """Return what to say of segments in an archive that its manifest does not list."""
    if found.intent is not None or found.manifest is None:
        return None
    session = found.place.session
    ours = {names.sealed_file(session, each.segment.index) for each in found.manifest.segments}
    others = [each for each in names.segments_among(found.listing, session) if each not in ours]
    if not others:
        return None
    folder = printable(str(found.place.archive))
    return (
        f"{folder} has {printable(others[0], 60)}, which its {names.MANIFEST} does not list: "
        "another archive may have been copied over this one. Move it out, and compare the two."
    )


def _is_ours(name: str, session: str) -> bool:
    return (
        name in _OURS
        or names.is_hidden(name)
        or name.startswith((f"{names.MANIFEST}.damaged.", f"{names.ARCHIVED}."))
        or name.endswith(names.PARTIAL)
        or (name.endswith(names.SUFFIXES) and session in names.possible_sessions(name))
    )


def copies() -> Iterator[tuple[Path, str]]:
    """Yield the copies that clients do not go on with, each with what to do about it."""
    for path in (path for client in clients.clients() for path in client.copies()):
        name = printable(str(path))
        told = (
            f"{name} is a copy of a session, and no client goes on with it. It may have what the "
            f"session lacks: `sessrotate read {name}` shows all of it. Remove it only if you do "
            "not need that."
        )
        yield path, told


def agents_alone(archives: Iterable[Place]) -> Iterator[tuple[str, Path, str]]:
    """Yield sessions of which only transcripts of agents are there, each with one and a sentence.

    Not of those that have one of the `archives`.
    """
    known = {where.session for where in archives}
    found: dict[str, list[Path]] = {}
    for session, path in agents.alone():
        found.setdefault(session, []).append(path)
    for session, paths in found.items():
        if session not in known:
            more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
            told = (
                f"{printable(str(paths[0]))}{more}: this is what agents of {printable(session)} "
                "said, and the session itself was never written. `sessrotate search` finds it. "
                "The client's clean-up deletes it with old sessions: copy what you want to keep."
            )
            yield session, paths[0], told


def beside_rollouts(now: float) -> Iterator[tuple[Path, str]]:
    """Yield what lies beside sessions of Codex, and what takes it away; `now` is since 1970."""
    for path in cold.left_behind(now):
        told = (
            f"{printable(str(path))} was left by a resume of Codex, or a run, that was killed a "
            "day ago or earlier, and nothing goes on with it: `sessrotate tidy` removes it."
        )
        yield path, told
    for path in cold.seconds():
        name = printable(str(path))
        if os.path.lexists(cold.form(path)):
            told = (
                f"{name} is a second file of its session, beside the one that Codex takes: "
                "`sessrotate tidy` keeps the one that has all of it, or says why both stay."
            )
        else:
            told = (
                f"{name} was left by a run that was killed, and the session's own file has been "
                "moved or deleted since. Delete it, or take the dot from its name to get it back."
            )
        yield path, told


def damaged_rollouts() -> Iterator[tuple[Path, str]]:
    """Yield the sessions of Codex that are compressed and damaged, and what to do."""
    for path in codex.sessions():
        if path != cold.plain(path) and not cold.is_readable(path):
            name = printable(str(path))
            yield path, f"{name} cannot be decompressed: put back a copy of it, or move it away."


def no_session(path: Path) -> tuple[str, str] | None:
    """Return the kind of finding and its sentence of a file that is only called like a session.

    Or that cannot be read. None of others; clients leave empty files.
    """
    try:
        told = _no_session(path)
    except FileNotFoundError:
        return None
    except (DamagedError, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return "unread", (
            f"{printable(str(path))} cannot be read ({reason}), so it is neither shown nor saved "
            "from the client's clean-up: make it readable for you."
        )
    return None if told is None else ("stranger", told)


def _no_session(path: Path) -> str | None:
    if names.is_hidden(path.name) or not is_file(path):  # opening a pipe would wait
        return None
    if path.is_symlink():
        return (
            f"{printable(str(path))} is a symbolic link, and is not read: put the file itself "
            "in its place, or remove the link."
        )
    if is_zeros(path):
        return f"{printable(str(path))} is no session. {ZEROS}"
    with FileIO(inside.opened_at(path), "rb") as file:
        pieces = iter(partial(file.read, PIECE), b"")
        if not os.fstat(file.fileno()).st_size or claude.may_have_row(pieces):
            return None
    return (
        f"{printable(str(path))} is called like a session and has no row of one, so no client "
        "shows anything of it. Look at what it has, and move it away."
    )
