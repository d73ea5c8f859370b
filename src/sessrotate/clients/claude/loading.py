"""What still counts of the rows that stand before a session's last compaction.

Rule: what a client loads of them is in the code of 2.1.112 and 2.1.330, and real clients hold it.
What an older client does counts only where that client wrote the compaction.

| the last compaction | before it | loaded of what stands before |
|---|---|---|
| says what it preserved, and all of it is there | | that alone |
| says what it preserved, and some of it is nowhere | | everything |
| preserved nothing | no compaction that did | everything |
| preserved nothing | one that did | nothing |
| preserved nothing, in a file over 5 MiB | | nothing |

2.1.30 and older know nothing of preserved rows or of large files: they load everything.

Which rows outlive a compaction is told by their types. The classes are those of the clean-up that
2.1.330 itself contains. A row of a type in none of them is always kept, as that client keeps what
it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from sessrotate.clients import common
from sessrotate.parsing import json_line

if TYPE_CHECKING:
    from sessrotate.clients.claude.rows import Compaction, Name, Row
    from sessrotate.model import Boundary, Scan, Span
    from sessrotate.system.source import Source

Loaded = Literal["everything", "preserved", "nothing"]

SMALL_FILE: Final = 5 * 1024 * 1024
"""Bytes up to which 2.1.80 and later read a session from its beginning, branches and all."""

_FIRST: Final = (2, 1, 80)
"""The first version seen that knows preserved rows, and leaves out what large files begin with."""

_BY_PLACE: Final = (2, 1, 112)
"""The first version seen that goes on behind the last compaction, whatever the rows' times say."""


_SAYS: Final[json_line.Shape] = {
    "compactMetadata": {
        "preservedMessages": {"anchorUuid": None},
        "preservedSegment": {"anchorUuid": None},
    }
}


def loaded(*, says: bool, has_all: bool, said_before: bool, size: int) -> Loaded:
    """Return what 2.1.80 and later load of what stands before the last compaction.

    `says` and `said_before` tell whether it, or one before it, says what it preserved; `size` is
    the file's, in bytes.
    """
    if says:
        return "preserved" if has_all else "everything"
    return "nothing" if said_before or size > SMALL_FILE else "everything"


def of_conversation(scanned: Scan, start: int) -> Scan:
    """Leave out compactions of agents where the conversation has none to cut at behind `start`."""
    new = [boundary for boundary in scanned.boundaries if boundary.offset > start]
    if is_compacted(new, scanned.end):
        return scanned
    return replace(scanned, boundaries=scanned.boundaries[: len(scanned.boundaries) - len(new)])


def is_compacted(boundaries: Iterable[Boundary], size: int) -> bool:
    """Tell whether the conversation in a file of `size` bytes can be cut at one of these.

    Clients of 1.0 wrote their agents' rows into the session's own file (ccstatusline PR #425). A
    file of up to 5 MiB is loaded whole, so that all of the conversation would stay. In a larger one
    2.1.112 goes on behind any compaction, whosever it is.
    """
    return any(size > SMALL_FILE or not boundary.is_sidechain for boundary in boundaries)


def says(compaction: Compaction) -> bool:
    """Tell whether a compaction says what it preserved."""
    metadata = compaction.compact_metadata
    return metadata is not None and (
        metadata.preserved_messages is not None or metadata.preserved_segment is not None
    )


def says_at(source: Source, line: Span) -> bool:
    """Tell whether a compaction says what it preserved, however long its record is."""
    found = json_line.values(source.pieces(line), line.size, _SAYS) or {}
    metadata = found.get("compactMetadata")
    return isinstance(metadata, dict) and any(
        isinstance(value, dict) for value in metadata.values()
    )


def is_old(version: str | None) -> bool:
    """Tell whether a client loads everything, whatever a compaction says."""
    return _is_before(version, _FIRST)


def goes_by_time(version: str | None) -> bool:
    """Tell whether a client goes on from the newest row that it loaded, by its time."""
    return _is_before(version, _BY_PLACE)


def _is_before(version: str | None, first: tuple[int, int, int]) -> bool:
    found = common.version(version)
    return found is not None and found < first


# ── which rows outlive a compaction ───────────────────────────────────────────────────────────────

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

KeyPart = Callable[["Row"], "Name"]

_SESSION: Final[tuple[KeyPart, ...]] = (lambda row: row.session_id,)
LAST_WINS: Final[dict[str, tuple[KeyPart, ...]]] = {
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
