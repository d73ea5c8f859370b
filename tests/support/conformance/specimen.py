"""What a client's tests bring to the conformance suite, and where the suite finds it.

Rule: one module `specimens/<format>.py` for each format of the clients, with a `SPECIMEN` in it.
A specimen says what is true of the client: it parses whole files and lines with `json`, and shares
nothing with the format that it judges.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sessrotate.clients.protocol import Client, Reader

FIXTURES: Final = Path(__file__).parents[3] / "fixtures"

_FOLDER: Final = Path(__file__).parent / "specimens"


@dataclass(frozen=True, slots=True)
class Specimen:
    """A format and what is true of it.

    `client` and `reader` are its modules, which mypy holds against their protocols here. `files`
    are real session files. `made(n)` gives a session with n compactions, 0 of a format that has
    none. `boundaries` gives the offsets of a file's boundary lines, `time` that of one line, `key`
    what makes a line's copies known. `place` is where its client looks for a session below a
    folder; `environment(folder)` is what has the client look there; `session` is that session's
    id, of six characters or more. `has_lines`: its records
    are lines; `repeats`: some of them have what others said in them, so that what is read of a
    session is not its lines (`Reader.said`).
    """

    client: Client
    reader: Reader
    files: tuple[Path, ...]
    made: Callable[[int], bytes]
    boundaries: Callable[[bytes], list[int]]
    time: Callable[[bytes], str | None]
    key: Callable[[bytes], bytes | None]
    environment: Callable[[Path], Mapping[str, str]]
    place: str
    session: str
    has_lines: bool = True
    repeats: bool = False

    def installed(self, folder: Path, data: bytes) -> Path:
        """Put a file's bytes where the client looks for sessions below a folder."""
        path = folder / self.place
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        return path

    @property
    def name(self) -> str:
        """What tests of it are called: the format's module."""
        return getattr(self.client, "__name__", self.client.NAME).removeprefix(
            "sessrotate.clients."
        )


def specimens() -> list[Specimen]:
    """Return all specimens, in the order of their modules' names."""
    names = sorted(path.stem for path in _FOLDER.glob("*.py") if path.stem != "__init__")
    found: list[Specimen] = [
        importlib.import_module(f"support.conformance.specimens.{name}").SPECIMEN for name in names
    ]
    return found
