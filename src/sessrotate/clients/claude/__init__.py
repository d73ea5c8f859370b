"""Claude Code: one format, `projects/<slug>/<uuid>.jsonl`.

Rule: nothing is loaded before it is asked for.
"""

from __future__ import annotations

from typing import Final

from sessrotate.clients.protocol import Format

FORMATS: Final = (Format("claude", f"{__name__}.client", f"{__name__}.reader"),)
