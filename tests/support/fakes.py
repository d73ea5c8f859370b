"""A client that does not exist, for what must hold for any client: its lines say what they are.

Rule: as small as the protocols allow. `FAKE session` opens a file, a line `CUT TIME` is a
boundary, and any line may end with `@TIME`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

from sessrotate import clients
from sessrotate.clients import opaque
from sessrotate.clients.protocol import Format
from sessrotate.model import Boundary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pytest

    from sessrotate.clients.protocol import Client, Reader
    from sessrotate.model import Span

SESSION = b"FAKE session\none @2026-01-01\nCUT @2026-01-02\ntwo @2026-01-03\nCUT\nthree\n"
CUTS = [29, 61]


@dataclass(frozen=True, slots=True)
class Fake:
    """Sessions are files `fake-ID.txt.jsonl` below `folder`."""

    folder: Path
    NAME: str = "fake"
    MARKER: bytes = b"CUT"
    NOT_IN_PLACE: str | None = "Its client holds the file open."

    def recognise(self, head: bytes, *, is_whole: bool) -> bool:  # noqa: ARG002 - the protocol's
        return head.startswith((b"FAKE", b"CUT"))

    def boundary(self, line: Iterable[bytes], span: Span) -> Boundary | bool:
        data = b"".join(line)
        return data.startswith(b"CUT") and Boundary(span.start, timestamp=_time(data))

    def timestamp(self, line: Iterable[bytes], size: int) -> str | None:  # noqa: ARG002
        return _time(b"".join(line))

    def session_of(self, file_name: str) -> str:
        return file_name.removeprefix("fake-").removesuffix(".jsonl").removesuffix(".txt")

    def sessions_folder(self) -> Path:
        return self.folder

    def copies(self, _prefix: str = "") -> Iterator[Path]:
        yield from ()

    def sessions(self, prefix: str = "") -> Iterator[Path]:
        yield from sorted(self.folder.glob(f"fake-{prefix}*.txt.jsonl"))


def _time(line: bytes) -> str | None:
    found = re.search(rb"@(\S+)$", line)
    return found[1].decode() if found else None


class Registered(Format, frozen=True):
    """A format whose objects are at hand."""

    at_hand: tuple[Client, Reader]

    def client(self) -> Client:
        return self.at_hand[0]

    def reader(self) -> Reader:
        return self.at_hand[1]


def registered(patch: pytest.MonkeyPatch, client: Client) -> None:
    """Have a client known, behind all others: a module of its own, and its name in `CLIENTS`."""
    module = f"{clients.__name__}.{client.NAME}"
    others = clients.formats() if client.NAME in clients.CLIENTS else ()
    formats = (
        *(each for each in others if each.name == client.NAME),
        Registered(client.NAME, "", "", (client, opaque)),
    )
    patch.setitem(sys.modules, module, SimpleNamespace(FORMATS=formats))
    patch.setattr(clients, "CLIENTS", tuple(dict.fromkeys((*clients.CLIENTS, client.NAME))))
