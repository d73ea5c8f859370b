"""Codex CLI: one format, `sessions/YYYY/MM/DD/rollout-<time>-<uuid>.jsonl`.

Rule: nothing is loaded before it is asked for; the block below has mypy hold each module against
its protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessrotate.clients.protocol import Format

if TYPE_CHECKING:
    from sessrotate.clients.codex import client, reader
    from sessrotate.clients.protocol import Client, Reader

    _1: tuple[Client, Reader] = client, reader

FORMATS: Final = (Format("codex", f"{__name__}.client", f"{__name__}.reader"),)
