"""Which rows of a Claude Code session outlive a compaction, by their type.

Rule: the classes are those of the clean-up that 2.1.330 itself contains. A type in none of them
is always kept, as that client does with what it does not know.
"""

from __future__ import annotations

from typing import Final

HEADER_TYPE: Final = "segment_header"

TRANSCRIPT: Final = frozenset({"user", "assistant", "system", "attachment"})
"""Rows of the conversation: before the cut they matter only if a row behind it needs them."""

CLEARED: Final = frozenset(
    {
        "api-request",
        "api-request-blob",
        "api-request-resumed",
        "api-request-shape",
        "continued-in",
        "host-row",
        "last-prompt",
        "progress",
        "resume-head-vouch",
        HEADER_TYPE,
    }
)
"""Rows that a compaction makes void (2.1.330), and our own header."""

FILE_HISTORY: Final = frozenset({"file-history-delta", "file-history-snapshot"})
"""Void too, but for those of a message that stays: `/rewind` restores code by them."""

_LAST: Final = ("type", "sessionId")
LAST_WINS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            "agent-color",
            "agent-name",
            "agent-setting",
            "ai-title",
            "artifact-autoreact-ledger",
            "atis-latch",
            "attribution-snapshot",
            "bridge-session",
            "cost-state",
            "custom-title",
            "derived-from",
            "dev-mods",
            "ended-by-model",
            "history-suppression",
            "isolation-latch",
            "mode",
            "observer-ref",
            "permission-mode",
            "pr-link",
            "queue-operation",
            "relocated",
            "repl-mode",
            "session-owner",
            "tag",
            "tools-used",
            "worktree-state",
        ),
        _LAST,
    ),
    "summary": ("type", "leafUuid"),
    "hybrid-organization": (*_LAST, "organizationUuid"),
}
"""Metadata of which the client takes the last of each key (2.1.330); the key's fields."""
