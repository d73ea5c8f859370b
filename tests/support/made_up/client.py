"""The made-up client's format, and where its files are: `$MADE_UP_HOME/rooms/<room>/<id>.jsonl`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from sessrotate import names
from sessrotate.clients import common
from sessrotate.clients.in_place import FileKind
from sessrotate.model import Boundary, Span

NAME: Final = "made-up"

MARKER: Final = b'"is":"cut"'

NOT_IN_PLACE: Final[str | None] = None


def row_of(line: bytes) -> dict[str, Any]:
    """Return the row on a line, an empty one if there is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) and "is" in found else {}


def recognise(head: bytes, *, is_whole: bool) -> bool:
    return any(map(row_of, head.split(b"\n")[: None if is_whole else -1]))


def may_have_row(pieces: Iterable[bytes]) -> bool:
    return b'"is":"' in b"".join(pieces)


def boundary(line: Iterable[bytes], span: Span) -> Boundary | bool:
    row = row_of(b"".join(map(bytes, line)))
    if row.get("is") != "cut":
        return not row
    return Boundary(span.start, uuid=str(row["n"]), timestamp=row.get("at"))


def timestamp(line: Iterable[bytes], _size: int) -> str | None:
    return common.iso_time(row_of(b"".join(map(bytes, line))).get("at"))


session_of: Final = names.session_of


def config_folder() -> Path:
    return Path(os.environ["MADE_UP_HOME"])


usual_folder: Final = config_folder


def settings_file() -> Path:
    return config_folder() / "settings"


def projects_folder() -> Path:
    return config_folder() / "rooms"


sessions_folder: Final = projects_folder


def other_folders() -> list[Path]:
    return []


def registries(_beside: Path) -> tuple[Path, ...]:
    return ()


def project_name(folder: Path) -> str:
    return folder.name


def named(file_name: str) -> FileKind | None:
    return "session" if file_name.endswith(names.SUFFIX) else None


def sessions(prefix: str = "") -> Iterator[Path]:
    for room in common.listed(projects_folder()):
        for path in common.listed(room):
            if named(path.name) and common.begins(path.name, prefix):
                yield path


def copies(_prefix: str = "") -> Iterator[Path]:
    return iter(())


def obstacle(_live: Path) -> str | None:
    return "Its database is locked." if (config_folder() / "database.lock").exists() else None


def follow(live: Path) -> None:
    """Have the database say how large each live file was then."""
    path = config_folder() / "database"
    known = json.loads(path.read_text()) if path.exists() else {}
    known[live.stem] = live.stat().st_size if live.exists() else None
    path.write_text(json.dumps(known))
