"""Codex CLI: one format, `sessions/YYYY/MM/DD/rollout-<time>-<uuid>.jsonl`.

Rule: nothing is loaded before it is asked for.
"""

from __future__ import annotations

from typing import Final

COLD: Final = f"{__name__}.cold"
"""The module that answers as `protocol.Cold`."""
