"""Claude Code: one format, `projects/<slug>/<uuid>.jsonl`, and sessions that are rotated in place.

Rule: nothing is loaded before it is asked for.
"""

from __future__ import annotations

from typing import Final

from sessrotate.clients.in_place import InPlace

IN_PLACE: Final = InPlace(
    {
        "files": f"{__name__}.client",
        "edges": f"{__name__}.preview",
        "resume": f"{__name__}.carried_lines",
        "beside": f"{__name__}.agents",
        "trims": f"{__name__}.cleanup",
        "cleanup": f"{__name__}.cleanup",
        "calls": f"{__name__}.cleanup",
    }
)
