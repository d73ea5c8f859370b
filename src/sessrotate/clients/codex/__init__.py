"""Codex CLI: one format, `sessions/YYYY/MM/DD/rollout-<time>-<uuid>.jsonl`.

Rule: nothing is loaded before it is asked for.
"""

from __future__ import annotations

from typing import Final

from sessrotate.clients.protocol import Format

FORMATS: Final = (Format("codex", f"{__name__}.client", f"{__name__}.reader"),)
