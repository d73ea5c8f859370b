"""Gemini CLI: a whole JSON file (0.11 to 0.38), and lines (0.39 and later).

Rule: nothing is loaded before it is asked for; the block below has mypy hold each module against
its protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessrotate.clients.protocol import Format

if TYPE_CHECKING:
    from sessrotate.clients.gemini import client, json_client, json_reader, reader
    from sessrotate.clients.protocol import Client, Reader

    _1: tuple[Client, Reader] = json_client, json_reader
    _2: tuple[Client, Reader] = client, reader

FORMATS: Final = (
    # First, because an object on one line is metadata to the format of lines, unless it is a
    # session of its own.
    Format("gemini", f"{__name__}.json_client", f"{__name__}.json_reader"),
    Format("gemini", f"{__name__}.client", f"{__name__}.reader"),
)
