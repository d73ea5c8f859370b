"""A made-up client whose sessions are rotated in place: what such a client answers, no more."""

from __future__ import annotations

from typing import Final

from sessrotate.clients import opaque
from sessrotate.clients.in_place import InPlace
from sessrotate.clients.protocol import Format

FORMATS: Final = (Format("made-up", f"{__name__}.client", opaque.__name__),)

IN_PLACE: Final = InPlace(
    {
        "files": f"{__name__}.client",
        "edges": f"{__name__}.edges",
        "resume": f"{__name__}.resume",
        "database": f"{__name__}.client",
    }
)
