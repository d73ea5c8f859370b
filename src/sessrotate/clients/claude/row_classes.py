"""Which rows of a Claude Code session outlive a compaction.

Rule: the classes of types are those of the clean-up that 2.1.330 itself contains. A row of a type
in none of them is always kept, as that client keeps what it does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

if TYPE_CHECKING:
    from sessrotate.clients.claude.rows import Compaction, Name, Row

HEADER_TYPE: Final = "segment_header"

TRANSCRIPT: Final = frozenset({"user", "assistant", "system", "attachment"})
"""Rows of the conversation: those before the cut matter only if a row after it needs them."""

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
"""Void too, except for those of a message that stays: `/rewind` restores code from them."""

Part = Callable[["Row"], "Name"]

_SESSION: Final[tuple[Part, ...]] = (lambda row: row.session_id,)
LAST_WINS: Final[dict[str, tuple[Part, ...]]] = {
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
        _SESSION,
    ),
    "summary": (lambda row: row.leaf_uuid,),
    "hybrid-organization": (*_SESSION, lambda row: row.organization_uuid),
}
"""Metadata of which the client takes the last of each key (2.1.330): what is in the key, beside
the type."""


class Needed(Struct):
    """The rows from before a compaction that a resume needs, by uuid, as far as they are known yet.

    Of what the compaction preserved, `required` are needed (2.1.330 relinks all of them or none);
    of `listed`, which has those too, one may be in no file. Where there is no list, `walked` has
    the last row of what is to be walked, backwards by the rows' parents, and the row that the walk
    ends with. `chained` are the rows that others continue; with `has_ancestors`, what those
    continue is needed too.
    """

    listed: set[str] = field(default_factory=set)
    required: set[str] = field(default_factory=set)
    walked: dict[str, str] = field(default_factory=dict)
    chained: set[str] = field(default_factory=set)
    has_ancestors: bool = True

    def wanted(self) -> set[str]:
        """Return the uuids to look for, found ones among them."""
        return self.listed | self.chained | self.walked.keys()

    def wanted_by_compaction(self) -> set[str]:
        """Return the uuids of what the compaction preserved."""
        return self.listed | self.required | self.walked.keys()

    def follow(self, uuid: str, parent: str | None) -> str | None:
        """Note what a row that was found needs in its turn: its parent, or nothing. Return that."""
        end = self.walked.get(uuid, uuid)
        is_chained = self.has_ancestors and uuid in self.chained
        if parent is None or (not is_chained and end == uuid):
            return None
        if is_chained:
            self.chained.add(parent)
        if end != uuid:
            self.walked[parent] = end
        return parent


def preserved(compaction: Compaction) -> Needed:
    """Return what a compaction's record says it preserved, if anything."""
    metadata = compaction.compact_metadata
    if metadata is None:
        return Needed()
    messages, segment = metadata.preserved_messages, metadata.preserved_segment
    if messages is not None:
        required = _texts(messages.uuids)
        return Needed(required | _texts(messages.all_uuids), required)
    if segment is None or segment.head_uuid is None or segment.tail_uuid is None:
        return Needed()
    return Needed(walked={segment.tail_uuid: segment.head_uuid})


def _texts(values: list[Any] | None) -> set[str]:
    return {text for text in values or () if isinstance(text, str)}
