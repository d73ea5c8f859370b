"""Where Gemini CLI keeps its sessions, and what else is there of a project.

Rule: it only reads, it follows only the client's own names, and it skips what cannot be read.
Below `~/.gemini/tmp` is a folder for each project. Its name is the SHA-256 of the project's path
(0.11 to 0.28), or a word that `projects.json` has for the project (0.29 to 0.61). In it are:

    chats/session-<minute>-<8 characters of the id>.jsonl   0.39 and later; .json before
    chats/<session's id>/<agent's id>.jsonl                 transcripts of agents
    logs.json, checkpoint-<tag>.json                        all prompts; what `/chat save` wrote
    tool-outputs/session-<id>/, logs/session-<id>.jsonl, <session's id>/

0.39 and later resume a `.json` in a `.jsonl` of its name: they write each message as a line, just
as it was, and leave the `.json` as it is (0.39.1 to 0.61.0, `ChatRecordingService.initialize`). A
client that is killed meanwhile leaves the first messages only, and one of 0.38 goes on in the
`.json`. So either may lack what the other has: the one that was used last is the session, and the
other a copy, which stays listed as one.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate.clients.common import begins, ignored, is_file, is_folder, listed, room_in
from sessrotate.system import user_folders
from sessrotate.system.disk_use import allocated

if TYPE_CHECKING:
    from sessrotate.clients.common import Unread
    from sessrotate.clients.preview import Sight

PREFIX: Final = "session-"
_JSONL: Final = ".jsonl"
_JSON: Final = ".json"
SUFFIXES: Final = (_JSONL, _JSON)
CHATS: Final = "chats"

SHORT: Final = 8
"""Characters of a session's id that its file's name ends with; of a hash, that name a project."""

_HASH: Final = re.compile(r"[0-9a-f]{64}")
_HEAD: Final = 64 * 1024
_MAP_BYTES: Final = 16 * 1024 * 1024
_ROOT: Final = ".project_root"
_LONGEST_PATH: Final = 16 * 1024


def sessions_folder() -> Path:
    """Return the folder that holds one folder for each project.

    `GEMINI_SESSIONS_DIR` names it outright; else it is `.gemini/tmp` in `GEMINI_CLI_HOME`, which
    is the client's own variable, default the user's home.
    """
    if folder := os.environ.get("GEMINI_SESSIONS_DIR"):
        return Path(folder)
    return Path(os.environ.get("GEMINI_CLI_HOME") or user_folders.home()) / ".gemini" / "tmp"


def session_of(file_name: str) -> str:
    """Return the id of the session whose file has this name: the name without its suffix."""
    name = file_name.removesuffix(".zst")
    return next((name.removesuffix(end) for end in SUFFIXES if name.endswith(end)), name)


def sessions(prefix: str = "", *, suffix: str) -> Iterator[Path]:
    """Yield the session files of all projects whose id begins with `prefix`, in sorted order.

    A session's id is its file's name; the client's users know it by the uuid in the file, or by
    the eight characters of that which the name ends with, so the beginning of the uuid finds it
    too. Found so, a file in which nobody has said anything does not count: 0.61.0 leaves such a
    one, of the same uuid, at each resume. Of a session's `.json` and `.jsonl`, the one that was
    used last is the session, and the other a copy.
    """
    yield from (path for path in _files(prefix, suffix) if not _is_copy(path))


def copies(prefix: str = "", *, suffix: str) -> Iterator[Path]:
    """Yield the files of sessions whose other file, of the same name, was used last, in order."""
    yield from (path for path in _files(prefix, suffix) if _is_copy(path))


def tell_unread(unread: Unread) -> None:
    """Tell `unread` of each folder and session file that is there and cannot be read."""
    for suffix in SUFFIXES:
        for _ in _files("", suffix, unread):
            pass


def _files(prefix: str, suffix: str, unread: Unread = ignored) -> Iterator[Path]:
    for project in listed(sessions_folder(), unread):
        for path in listed(project / CHATS, unread) if is_folder(project, unread) else ():
            name = path.name
            if name.startswith(PREFIX) and name.endswith(suffix) and is_file(path, unread):
                stem = name.removesuffix(suffix)
                if begins(name, prefix) or _is_known_as(path, stem, prefix):
                    yield path


def _is_copy(path: Path) -> bool:
    """Tell whether the other file of this name is the same session, and was used after this one.

    Of two files with one uuid, the client lists the one that was used last. The times in the files
    count, since a backup may set those of files. Of two of one time, the client goes on in the
    `.jsonl`.
    """
    is_json = path.suffix == _JSON
    other = path.with_suffix(_JSONL if is_json else _JSON)
    if not other.is_file() or other.is_symlink():
        return False
    both = path, other
    here, there = map(_sight, both)
    if here.standing != "session" or there.standing != "session":
        return False
    if here.id is None or here.id != there.id:
        return False
    mine, others = (
        seen.last_used(file.stat().st_mtime) for seen, file in zip((here, there), both, strict=True)
    )
    return mine <= others if is_json else mine < others


def _is_known_as(path: Path, stem: str, prefix: str) -> bool:
    if not begins(stem[-SHORT:], prefix[:SHORT]):
        return False
    seen = _sight(path)
    return begins(seen.id or "", prefix) and seen.standing == "session"


def _sight(path: Path) -> Sight:
    """Return what a file's beginning and its end say."""
    from sessrotate.clients.gemini import preview  # noqa: PLC0415 - few look-ups come here

    head, tail = beginning(path, _HEAD), b""
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _HEAD))
        tail = file.read(_HEAD)
    return preview.sight(head, tail, is_whole=len(head) < _HEAD)


def beginning(path: Path, size: int) -> bytes:
    """Return a file's first `size` bytes; none of one that cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return b""


# ── which project ────────────────────────────────────────────────────────────────────────────


def short_name(project: Path) -> str:
    """Return what to call a project whose folder nothing tells: its word, or part of its hash."""
    return project.name[:SHORT] if _HASH.fullmatch(project.name) else project.name


@lru_cache(maxsize=65536)
def hash_of(folder: str) -> str:
    """Return the SHA-256 by which the client knows a project's folder."""
    from hashlib import sha256  # noqa: PLC0415 - 5 ms, and most lists have no session of Gemini's

    return sha256(folder.encode("utf-8", "surrogateescape")).hexdigest()


def folder_of(project: Path, digest: str | None, known: Iterable[str] = ()) -> str | None:
    """Return the folder that a project's sessions were run in, None where nothing tells.

    `project` is the project's folder below `sessions_folder`, and `digest` the hash that its
    sessions name, where one does. A path counts if it has this hash: the one in the folder
    itself (0.29 and later), those that the client lists, and those that are `known`, of other
    clients' sessions, say.
    """
    digest = digest or project.name
    for folder in (_marked(project), *_registered(project.parent.parent / "projects.json"), *known):
        if folder and hash_of(folder) == digest:
            return folder
    return None


def _marked(project: Path) -> str:
    """Return the path that the folder of a project names as its own; empty if none."""
    return beginning(project / _ROOT, _LONGEST_PATH).decode("utf-8", "surrogateescape").strip()


def _registered(path: Path) -> list[str]:
    """Return the folders that the client's list of projects names."""
    with suppress(ValueError, RecursionError):
        found = json.loads(beginning(path, _MAP_BYTES))
        projects = found.get("projects") if isinstance(found, dict) else None
        return [*projects] if isinstance(projects, dict) else []
    return []


# ── what is beside a session ─────────────────────────────────────────────────────────────────


def agents_of(live: Path, session: str) -> list[Path]:
    """Return the transcripts of a session's agents; `session` is the uuid in its file.

    They are in a folder of that name beside the session's file (0.39 and later).
    """
    if not _is_name(session):
        return []
    return [path for path in listed(live.parent / session) if path.suffix == SUFFIXES[0]]


def beside(paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Return how many bytes the client keeps beside sessions, and what that takes of the disk.

    It is by the file of the session; those beside which is nothing are left out. What is beside a
    session has its id as a name, of which the session's file has the first characters, so that none
    is opened. Of several files with these characters it counts with the first: the others are
    what a resume left. What belongs to the project and to no session alone (`logs.json`,
    checkpoints) counts with the project's first session, so that the sum over all is right.
    """
    wanted, found = {*paths}, dict[Path, tuple[int, int]]()
    for chats in {path.parent for path in wanted}:
        owners = _owners(chats)
        for path, session in _beside(chats):
            owner = owners.get(session[:SHORT])
            if owner in wanted:
                size, taken = found.get(owner, (0, 0))
                more, room = _room(path)
                found[owner] = size + more, taken + room
    return found


def _owners(chats: Path) -> dict[str, Path]:
    """Return the first session file for each short id; for the empty one, the first of all.

    Of two files with one name, the client goes on with the `.jsonl`.
    """
    files = [each for each in listed(chats) if each.suffix in SUFFIXES]
    ordered = sorted(files, key=lambda path: (path.stem, path.suffix == _JSON))
    return {key: path for path in reversed(ordered) for key in ("", path.stem[-SHORT:])}


def _beside(chats: Path) -> Iterator[tuple[Path, str]]:
    """Yield what may lie beside sessions, each with a session's id, empty for the project's own."""
    project = chats.parent
    for path in listed(project):
        yield path, "" if _is_shared(path.name) else path.name
    for folder in (chats, project / "tool-outputs", project / "logs"):
        for path in listed(folder):
            # A session's own file is `session-` and a minute: no id begins so.
            yield path, path.name.removeprefix(PREFIX)


def _is_shared(name: str) -> bool:
    return name == "logs.json" or (name.startswith("checkpoint-") and name.endswith(".json"))


def _is_name(text: str) -> bool:
    """Tell whether a text out of a file is harmless as the name of one."""
    return text not in {"", ".", "..", CHATS, "logs", "tool-outputs"} and not {"/", "\\", "\0"} & {
        *text
    }


def _room(path: Path) -> tuple[int, int]:
    """Return how many bytes a file, or all that is in a folder, holds, and takes of the disk."""
    with suppress(OSError):
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            return status.st_size, allocated(status)
    return room_in(path)
