"""What clients write rarely: sessions of the real client, changed in one respect each.

Every case begins with a session of two compactions ("Before", "Between" and "After" them are two
questions each, made by `making.compacted`), so that the client under test takes it for its own.

Rule: a case says in its first line what the client has done or met, and in `refused` whether a
rotation is refused. What else must hold of the live file stands in `kept` and `gone`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from support.real_clients.editing import LARGE, Session, enlarge, line

if TYPE_CHECKING:
    from collections.abc import Callable

NOWHERE: Final = "00000000-0000-4000-a000-00000000dead"


@dataclass(frozen=True)
class Case:
    """A way to change a session, and whether it can be rotated then.

    `differs` names clients that do not resume it the same, though the contract allows it: each is
    a flaw of the contract that is known and not mended yet.
    """

    change: Callable[[Session], None]
    refused: bool = False
    differs: frozenset[str] = frozenset()


CASES: Final[dict[str, Case]] = {}


def _case(change: Callable[[Session], None]) -> Callable[[Session], None]:
    CASES[change.__name__] = Case(change)
    return change


def _refused(change: Callable[[Session], None]) -> Callable[[Session], None]:
    CASES[change.__name__] = Case(change, refused=True)
    return change


def _differs(*clients: str) -> Callable[[Callable[[Session], None]], Callable[[Session], None]]:
    def mark(change: Callable[[Session], None]) -> Callable[[Session], None]:
        CASES[change.__name__] = Case(change, differs=frozenset(clients))
        return change

    return mark


# ── what a compaction preserves ──────────────────────────────────────────────────────────────


@_case
def nothing_preserved(session: Session) -> None:
    """A compaction that took all into its summary."""
    session.plain()


@_case
def one_preserved(session: Session) -> None:
    """A compaction that preserved the last row."""
    last = session.answer("Between, question 1.")
    session.preserve([last])
    session.kept.append(last)


@_case
def four_preserved(session: Session) -> None:
    """A compaction that preserved the last four rows."""
    rows = session.leading_to(session.answer("Between, question 1."), 4)
    session.preserve(rows)
    session.kept += rows


@_case
def one_preserved_by_its_ends_alone(session: Session) -> None:
    """An older way to say what was preserved: the first and the last row, here the same."""
    rows = session.leading_to(session.answer("Between, question 1."), 1)
    del session.preserve(rows)["preservedMessages"]
    session.kept += rows


@_case
def four_preserved_by_their_ends_alone(session: Session) -> None:
    """The same with four rows, of which those between are found by their parents."""
    rows = session.leading_to(session.answer("Between, question 1."), 4)
    del session.preserve(rows)["preservedMessages"]
    session.kept += rows


@_case
def a_row_that_was_never_written_among_all(session: Session) -> None:
    """A Stop hook's summary makes clients list a row that is in no file, in `allUuids` only."""
    metadata = session.preserve([session.answer("Between, question 1.")])
    metadata["preservedMessages"]["allUuids"].append(NOWHERE)


@_refused
def a_preserved_row_is_missing(session: Session) -> None:
    """A compaction that preserved a row which is in no file."""
    metadata = session.preserve([session.answer("Between, question 1.")])
    metadata["preservedMessages"]["uuids"].append(NOWHERE)


@_refused
def preserved_ends_without_a_chain(session: Session) -> None:
    """A compaction that names two ends which no chain of parents connects."""
    rows = session.leading_to(session.answer("Between, question 1."), 4)
    metadata = session.preserve(rows)
    del metadata["preservedMessages"]
    rows[1]["parentUuid"] = None


# ── rows that continue others across the compaction ──────────────────────────────────────────


def _branch(session: Session) -> None:
    session.ask_again(session.answer("Between, question 0."))


@_case
def gone_back_before_a_plain_compaction(session: Session) -> None:
    """A user went back to before the compaction, and asked something else there."""
    session.plain()
    session.plain(session.boundaries[0])
    _branch(session)


@_case
def gone_back_before_a_preserving_compaction(session: Session) -> None:
    """The same, where the compaction preserved rows."""
    session.preserve(session.leading_to(session.answer("Between, question 1."), 2))
    _branch(session)


@_refused
def gone_back_before_a_plain_compaction_in_a_large_file(session: Session) -> None:
    """The same in a file of which newer clients do not read the branch any more: they lost it."""
    session.plain()
    enlarge(session.question("Before, question 0."))
    _branch(session)


@_case
def gone_back_before_a_preserving_compaction_in_a_large_file(session: Session) -> None:
    """The same, where the compaction preserved rows."""
    session.preserve(session.leading_to(session.answer("Between, question 1."), 2))
    enlarge(session.question("Before, question 0."))
    _branch(session)


@_case
def gone_back_before_two_plain_compactions(session: Session) -> None:
    """A user went back to before the first of two compactions."""
    session.plain()
    session.plain(session.boundaries[0])
    session.ask_again(session.answer("Before, question 0."))


@_differs("2.1.112", "2.1.330")
def gone_back_before_a_preserving_and_a_plain_compaction(session: Session) -> None:
    """The same, where the first one preserved rows, and the branch is from before it.

    Where any compaction of a file preserved rows these clients drop all others from before the
    last one, so that the branch is lost; in the rotated file, without the first, it comes back.
    """
    session.plain()
    session.preserve([session.answer("Before, question 1.")], session.boundaries[0])
    session.ask_again(session.answer("Before, question 0."))


@_case
def gone_back_between_a_preserving_and_a_plain_compaction(session: Session) -> None:
    """The same, where the branch is from between the two."""
    session.plain()
    session.preserve([session.answer("Before, question 1.")], session.boundaries[0])
    _branch(session)


@_case
def gone_back_before_two_preserving_compactions(session: Session) -> None:
    """The same, where both preserved rows."""
    session.preserve([session.answer("Between, question 1.")])
    session.preserve([session.answer("Before, question 1.")], session.boundaries[0])
    session.ask_again(session.answer("Before, question 0."))


@_case
def gone_back_after_the_compaction(session: Session) -> None:
    """A user went back, but not so far: all of both branches is in the tail."""
    session.ask_again(session.answer("After, question 0."))


@_refused
def a_row_continues_one_that_is_nowhere(session: Session) -> None:
    """A row whose parent was lost, as by a crash of the client."""
    answer = session.answer("After, question 1.")
    answer["parentUuid"] = NOWHERE


@_case
def a_stop_hook_was_still_running(session: Session) -> None:
    """A Stop hook's summary behind the compaction, that continues a row from before it."""
    session.plain()
    hook = session.another(
        session.boundary,
        timestamp=session.after(session.boundary)["timestamp"],
        parentUuid=session.answer("Between, question 1.")["uuid"],
        subtype="stop_hook_summary",
        hookCount=1,
        hookInfos=[{"command": "true", "durationMs": 5}],
        hookErrors=[],
        hookAdditionalContext=[],
        preventedContinuation=False,
        stopReason="",
        hasOutput=False,
        level="suggestion",
        toolUseID=NOWHERE,
    )
    for name in ("logicalParentUuid", "content", "compactMetadata"):
        del hook[name]
    session.insert(session.after(session.after(session.boundary)), hook)


@_case
def a_subagents_rows_in_the_session(session: Session) -> None:
    """Clients before 2.0.28 wrote a subagent's rows among the others, on both sides here."""
    session.plain()
    sent = session.another(
        session.question("Between, question 0."), isSidechain=True, parentUuid=None
    )
    came = session.another(
        session.answer("Between, question 0."), isSidechain=True, parentUuid=sent["uuid"]
    )
    session.insert(session.boundary, sent, came)
    late = session.another(
        session.answer("After, question 0."), isSidechain=True, parentUuid=came["uuid"]
    )
    session.insert(session.question("After, question 1."), late)
    session.kept += [sent, came]


# ── rows that stand there twice ──────────────────────────────────────────────────────────────


@_case
def rows_twice_before_the_compaction(session: Session) -> None:
    """2.1.160 to 2.1.300 write rows again before a compaction; not always the same bytes."""
    rows = session.leading_to(session.answer("Between, question 1."), 3)
    session.insert(session.boundary, *({**row, "slug": "written-again"} for row in rows))


@_refused
def rows_on_both_sides_of_the_compaction(session: Session) -> None:
    """The same, with the next compaction still to come."""
    rows = session.leading_to(session.answer("Between, question 1."), 3)
    session.rows += [copy.deepcopy(row) for row in rows]


@_refused
def rows_again_right_behind_the_compaction(session: Session) -> None:
    """The same, with the copies directly behind the boundary."""
    rows = session.leading_to(session.answer("Between, question 1."), 3)
    session.insert(session.after(session.boundary), *copy.deepcopy(rows))


# ── sizes and edges ──────────────────────────────────────────────────────────────────────────


@_case
def a_large_history(session: Session) -> None:
    """A file of which newer clients read only what follows the last compaction."""
    enlarge(session.question("Before, question 0."))


@_case
def a_large_tail(session: Session) -> None:
    """A session that is as large after its rotation, too."""
    enlarge(session.question("After, question 0."))


@_case
def a_large_preserved_row(session: Session) -> None:
    """A rotated session that is large only by what is carried."""
    rows = session.leading_to(session.answer("Between, question 1."), 2)
    enlarge(rows[0])
    session.preserve(rows)
    session.kept += rows


@_differs("2.1.112")
def the_compaction_is_the_last_line(session: Session) -> None:
    """A client that crashed before it wrote the summary.

    2.1.112 goes on from before the compaction then, and in the rotated file finds no conversation.
    """
    del session.rows[session.at(session.boundary) + 1 :]
    session.plain()


@_case
def the_compaction_is_the_first_line(session: Session) -> None:
    """A fork by 2.0.28: there is nothing to move."""
    del session.rows[: session.at(session.boundary)]
    session.plain()


@_case
def the_first_of_two_compactions_is_the_first_line(session: Session) -> None:
    """The same after it was compacted again."""
    del session.rows[: session.at(session.boundaries[0])]


@_case
def two_compactions_with_nothing_in_between(session: Session) -> None:
    """A compaction directly after another one."""
    session.plain()
    first = session.another(session.boundary)
    session.insert(session.boundary, first)


@_differs("2.0.28")
def the_clock_was_set_back(session: Session) -> None:
    """A row from before the compaction that is newer than all behind it, by its time.

    2.0.28 goes on from the newest row of a file; from the rotated one it does so behind the cut.
    """
    session.answer("Between, question 1.")["timestamp"] = "2099-01-01T00:00:00.000Z"


@_case
def a_torn_last_line(session: Session) -> None:
    """A crash while the client wrote its last row."""
    answer = session.answer("After, question 1.")
    del session.rows[session.at(answer) + 1 :]
    session.rows[-1] = line(answer)[: len(line(answer)) // 2]
    session.ending = b""


@_case
def a_last_line_without_its_newline(session: Session) -> None:
    """A crash between a row and its newline."""
    session.ending = b""


# ── lines that are no rows of the conversation ───────────────────────────────────────────────


@_case
def lines_that_nobody_can_read(session: Session) -> None:
    """What crashes and other programs leave: half a row, two in one line, an empty line, NULs."""
    whole = line(session.answer("Before, question 1."))
    strange = [whole[:100], b"", b"\0" * 30, b"no JSON", b'{"type":', b"\xff\xfe{}"]
    session.insert(session.question("Between, question 1."), *strange)
    session.kept += [strange[0], *strange[2:]]


@_case
def records_of_unknown_types(session: Session) -> None:
    """What a newer client may write: kept, since an older one cannot know."""
    unknown: list[dict[str, object] | bytes] = [
        {"type": "a-kind-of-its-own", "sessionId": session.boundary["sessionId"], "value": 1},
        {"type": "content-replacement", "sessionId": NOWHERE, "replacements": []},
        {"kind": "without a type"},
        {"type": None},
    ]
    session.insert(session.question("Between, question 1."), *unknown)
    session.kept += unknown


@_case
def metadata_before_the_compaction(session: Session) -> None:
    """Titles, modes and the like, which clients look for in the whole file: the last one counts."""
    mine = {"sessionId": session.boundary["sessionId"]}
    leaf = session.answer("After, question 1.")["uuid"]
    old = [
        {"type": "custom-title", "customTitle": "Old", **mine},
        {"type": "summary", "summary": "Old", "leafUuid": leaf},
        {"type": "tag", "tag": "old", **mine},
    ]
    new = [
        {"type": "custom-title", "customTitle": "New", **mine},
        {"type": "custom-title", "customTitle": "Of another session", "sessionId": NOWHERE},
        {"type": "summary", "summary": "New", "leafUuid": leaf},
        {"type": "summary", "summary": "Of another leaf", "leafUuid": NOWHERE},
        {"type": "tag", "tag": "new", **mine},
        {"type": "agent-name", "agentName": "somebody", **mine},
        {"type": "agent-color", "agentColor": "blue", **mine},
        {"type": "agent-setting", "agentSetting": "general-purpose", **mine},
        {"type": "pr-link", "prNumber": 7, "prUrl": "https://example.com/7", **mine},
    ]
    session.insert(session.question("Before, question 1."), *old)
    session.insert(session.question("Between, question 1."), *new)
    session.kept += new
    session.gone += old


@_case
def file_history_before_the_compaction(session: Session) -> None:
    """`/rewind` restores files by snapshots: one of a message in the tail may stand before it."""
    snapshots = []
    for row in (session.question("After, question 0."), session.question("Before, question 0.")):
        snapshot = {"messageId": row["uuid"], "trackedFileBackups": {}}
        snapshot["timestamp"] = row["timestamp"]
        snapshots.append(
            {
                "type": "file-history-snapshot",
                "messageId": row["uuid"],
                "snapshot": snapshot,
                "isSnapshotUpdate": False,
            }
        )
    session.insert(session.boundary, *snapshots)
    session.kept.append(snapshots[0])
    session.gone.append(snapshots[1])


@_case
def a_boundary_told_of_in_a_row(session: Session) -> None:
    """A tool that printed a session file: what it printed is no compaction."""
    answer = session.answer("After, question 1.")
    answer["message"]["content"] = [{"type": "text", "text": line(session.boundary).decode()}]
    assert len(session.data) < LARGE
