"""Gemini CLI: a whole JSON file (0.11 to 0.38), and lines (0.39 and later).

Rule: nothing is loaded before it is asked for.
"""

from __future__ import annotations

from typing import Final

from sessrotate.clients.protocol import Format

FORMATS: Final = (
    # First, because an object on one line is metadata to the format of lines, unless it is a
    # session of its own.
    Format("gemini", f"{__name__}.json_client", f"{__name__}.json_reader"),
    Format("gemini", f"{__name__}.client", f"{__name__}.reader"),
)
