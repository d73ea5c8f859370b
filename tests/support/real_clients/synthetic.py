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

from sessrotate.parsing import json_line
from support.real_clients.editing import LARGE, Row, Session, enlarge, later, line

if TYPE_CHECKING:
    from collections.abc import Callable

NOWHERE: Final = "00000000-0000-4000-a000-00000000dead"
DEEP: Final = 2000
"""So deep in each other, values are more than Python's recursion takes."""


@dataclass(frozen=True)
class Case:
    """A way to change a session, and the clients with which it is not rotated then.

    Each refusal is needed: `test_synthetic` has it rotated all the same, and its client or a later
    one resumes another conversation.
    """

    change: Callable[[Session], None]
    refused: frozenset[str] = frozenset()
    because: str = ""
    """What the refusal says."""


CASES: Final[dict[str, Case]] = {}


def _case(change: Callable[[Session], None]) -> Callable[[Session], None]:
    CASES[change.__name__] = Case(change)
    return change


def _refused(
    *clients: str, because: str
) -> Callable[[Callable[[Session], None]], Callable[[Session], None]]:
    def mark(change: Callable[[Session], None]) -> Callable[[Session], None]:
        CASES[change.__name__] = Case(change, frozenset(clients), because)
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


@_case
def a_preserved_row_is_missing(session: Session) -> None:
    """A compaction that preserved a row which is in no file."""
    metadata = session.preserve([session.answer("Between, question 1.")])
    metadata["preservedMessages"]["uuids"].append(NOWHERE)


@_case
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


@_refused("2.0.28", because="clients from 2.1.80 on have lost that branch")
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


@_refused("2.0.28", because="clients from 2.1.80 on have lost that branch")
def gone_back_before_a_preserving_and_a_plain_compaction(session: Session) -> None:
    """The same, where the first one preserved rows, and the branch is from before it.

    Where any compaction of a file preserved rows these clients drop all others from before the
    last one, so that the branch is lost.
    """
    session.plain()
    session.preserve([session.answer("Before, question 1.")], session.boundaries[0])
    session.ask_again(session.answer("Before, question 0."))


@_case
def gone_back_between_a_preserving_and_a_plain_compaction(session: Session) -> None:
    """The same, where the branch is from between the two.

    It goes along with the first of the two, so that newer clients lose it all the same.
    """
    session.plain()
    session.preserve([session.answer("Before, question 1.")], session.boundaries[0])
    _branch(session)


@_refused("2.0.28", because="have lost that branch")
def gone_back_to_the_first_prompt_in_a_large_file(session: Session) -> None:
    """The first prompt cannot stay in the shorter file: clients would go on from it there."""
    session.plain()
    session.plain(session.boundaries[0])
    enlarge(session.answer("Before, question 0."))
    session.ask_again(session.question("Before, question 0."))


@_refused("2.0.28", "2.1.112", "2.1.330", because="from before a plain compaction")
def preserved_from_before_a_plain_compaction_in_a_large_file(session: Session) -> None:
    """Clients read what stands behind the plain one, and then drop all that was preserved."""
    session.plain(session.boundaries[0])
    enlarge(session.answer("Before, question 0."))
    older = session.answer("Before, question 1.")
    between = session.question("Between, question 1.")
    between["parentUuid"] = older["uuid"]
    session.preserve([older, between, session.answer("Between, question 1.")])


@_refused("2.0.28", because="have lost that branch")
def gone_back_before_a_plain_and_a_preserving_compaction_in_a_large_file(session: Session) -> None:
    """Clients read what stands behind the plain one, and what is gone back to is not there."""
    session.plain(session.boundaries[0])
    enlarge(session.answer("Before, question 0."))
    session.preserve(session.leading_to(session.answer("Between, question 1."), 2))
    session.ask_again(session.answer("Before, question 1."))


@_case
def the_last_prompt_names_the_first_one_in_a_large_file(session: Session) -> None:
    """2.1.330 goes on from the row that it names, unless that is not loaded."""
    session.plain()
    session.plain(session.boundaries[0])
    enlarge(session.answer("Before, question 1."))
    session.name_last_prompt(session.question("Before, question 0."))


@_refused("2.0.28", "2.1.112", "2.1.330", because="continues from a row from before")
def the_last_prompt_names_one_from_before_the_compaction(session: Session) -> None:
    """The same in a small file, of which all is loaded."""
    session.plain()
    session.plain(session.boundaries[0])
    session.name_last_prompt(session.answer("Between, question 0."))


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


@_case
def a_row_continues_one_that_is_nowhere(session: Session) -> None:
    """A row whose parent was lost, as by a crash of the client."""
    answer = session.answer("After, question 1.")
    answer["parentUuid"] = NOWHERE


def _nowhere_behind(row: Row, session: Session) -> Row:
    """Have a row follow another one by its time, and by nothing else."""
    session.plain()
    session.plain(session.boundaries[0])
    late = session.question("After, question 0.")
    late["parentUuid"] = NOWHERE
    late["timestamp"] = later(row["timestamp"], 1)
    return late


@_refused("2.0.28", "2.1.112", "2.1.330", because="continues one that is nowhere in the file")
def a_row_follows_one_from_before_the_compaction_by_its_time(session: Session) -> None:
    """The same where its time says that it followed a row from before the compaction."""
    _nowhere_behind(session.answer("Between, question 1."), session)


@_case
def a_row_follows_one_from_behind_the_compaction_by_its_time(session: Session) -> None:
    """The same where all that it may have followed is in the tail."""
    _nowhere_behind(session.after(session.boundary), session)


@_refused("2.0.28", "2.1.112", "2.1.330", because="continues one that is nowhere in the file")
def a_branch_from_before_the_compaction_begins_at_a_row_that_was_lost(session: Session) -> None:
    """A user went back, and of the rows that lead there one continues another that was lost."""
    session.plain()
    session.plain(session.boundaries[0])
    session.question("Between, question 0.")["parentUuid"] = NOWHERE
    _branch(session)


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
    session.plain(session.boundaries[0])
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


@_case
def rows_on_both_sides_of_the_compaction(session: Session) -> None:
    """The same, with the next compaction still to come."""
    rows = session.leading_to(session.answer("Between, question 1."), 3)
    session.rows += [copy.deepcopy(row) for row in rows]


@_case
def rows_again_right_behind_the_compaction(session: Session) -> None:
    """The same, with the copies directly behind the boundary."""
    rows = session.leading_to(session.answer("Between, question 1."), 3)
    session.insert(session.after(session.boundary), *copy.deepcopy(rows))


@_case
def rows_on_both_sides_and_a_turn_after_them(session: Session) -> None:
    """The same, and the session went on after them."""
    session.plain()
    rows = session.leading_to(session.answer("Between, question 1."), 3)
    session.insert(session.question("After, question 1."), *copy.deepcopy(rows))


@_case
def rows_on_both_sides_of_a_preserving_compaction_and_a_turn(session: Session) -> None:
    """The same, where the compaction preserved the last of them."""
    rows = session.leading_to(session.answer("Between, question 1."), 3)
    session.preserve(rows[-1:])
    session.insert(session.question("After, question 1."), *copy.deepcopy(rows))


@_refused("2.0.28", "2.1.112", because="both before and after the last compaction")
def rows_at_the_end_that_a_preserving_compaction_left_out(session: Session) -> None:
    """The same, with the copies as the last rows."""
    rows = session.leading_to(session.answer("Between, question 1."), 4)
    session.preserve(rows[-1:])
    session.rows += copy.deepcopy(rows[:3])


@_refused("2.0.28", "2.1.112", "2.1.330", because="both before and after the last compaction")
def rows_at_the_end_behind_a_turn_that_was_not_written_down_as_the_last(session: Session) -> None:
    """The same, in the middle of a compaction by 2.1.260: its pointer is to the turn before."""
    pointers = [row for row in session.records if row["type"] == "last-prompt"]
    after = session.at(session.question("After, question 1."))
    session.rows[:] = [
        row for at, row in enumerate(session.rows) if at < after or row not in pointers
    ]
    rows_at_the_end_that_a_preserving_compaction_left_out(session)


@_refused("2.0.28", "2.1.112", "2.1.330", because="is a copy of an earlier one")
def an_older_compaction_again_behind_the_last(session: Session) -> None:
    """2.1.112 writes old boundaries again; here behind the last one, which preserved rows."""
    session.preserve([session.answer("Between, question 1.")])
    session.plain(session.boundaries[0])
    session.insert(session.question("After, question 1."), copy.deepcopy(session.boundaries[0]))


@_refused("2.0.28", "2.1.112", "2.1.330", because="is a copy of an earlier one")
def an_older_compaction_that_preserved_rows_again_behind_a_plain_one(session: Session) -> None:
    """The same, where the older one preserved rows, and the last one took all into its summary."""
    session.plain()
    session.preserve([session.answer("Before, question 1.")], session.boundaries[0])
    session.insert(session.question("After, question 1."), copy.deepcopy(session.boundaries[0]))


@_case
def the_last_compaction_again_with_all_behind_it(session: Session) -> None:
    """2.1.112 in the middle of its next compaction, which preserved nothing as the one before."""
    session.plain()
    session.plain(session.boundaries[0])
    behind = session.rows[session.at(session.boundary) :]
    session.rows += copy.deepcopy([row for row in behind if "uuid" in row])


@_case
def rows_on_both_sides_in_a_large_file(session: Session) -> None:
    """The same in a file of which newer clients read only what follows the last compaction."""
    session.plain()
    enlarge(session.question("Before, question 0."))
    rows = session.leading_to(session.answer("Between, question 1."), 3)
    session.insert(session.question("After, question 1."), *copy.deepcopy(rows))


# ── calls side by side ───────────────────────────────────────────────────────────────────────


def _two_calls(session: Session) -> Row:
    """Have an answer from before the compaction make two calls at once; return what follows them.

    Each call is the parent of its own result, so that the way goes through one of them only.
    """
    session.plain()
    session.plain(session.boundaries[0])
    answer = session.answer("Between, question 0.")
    question = session.question("Between, question 0.")
    calls: list[Row] = []
    for number, letter in enumerate("ab"):
        call = session.another(answer, parentUuid=(calls or [question])[-1]["uuid"])
        call["uuid"] = f"{number:08d}-0000-4000-a000-0000000000ca"
        call["message"]["id"] = "msg_side_by_side"
        call["message"]["stop_reason"] = "tool_use"
        call["message"]["content"] = [
            {
                "type": "tool_use",
                "id": f"toolu_side_{letter}",
                "name": "Bash",
                "input": {"command": f"echo {letter}"},
            }
        ]
        calls.append(call)
    results = []
    for number, letter in enumerate("ab"):
        result = session.another(question, parentUuid=calls[number]["uuid"])
        result["uuid"] = f"{number:08d}-0000-4000-a000-0000000000c0"
        content = {"type": "tool_result", "tool_use_id": f"toolu_side_{letter}", "content": letter}
        result["message"] = {"role": "user", "content": [content]}
        results.append(result)
    session.insert(answer, *calls, *results)
    answer["parentUuid"] = results[1]["uuid"]
    return answer


@_case
def gone_back_to_calls_side_by_side(session: Session) -> None:
    """A user went back to an answer from before the compaction that used two tools at once."""
    session.ask_again(_two_calls(session))


@_case
def an_answer_on_both_sides_of_the_compaction(session: Session) -> None:
    """A compaction in the middle of an answer: a call stands before it, the other behind it."""
    _two_calls(session)
    call, result = session.rows_of("0000000000ca")[0], session.rows_of("0000000000c0")[0]
    late = session.answer("After, question 0.")
    late["message"]["id"] = "msg_side_by_side"
    session.kept += [call, result]


@_refused("2.0.28", "2.1.112", "2.1.330", because="both before and after the last compaction")
def a_part_of_a_preserved_answer_again_behind_the_compaction(session: Session) -> None:
    """2.1.260 in the middle of its next compaction: of an answer that stays, a part is a copy."""
    follows = _two_calls(session)
    first, second = session.rows_of("0000000000ca")
    session.preserve([second, *session.rows_of("0000000000c0"), follows])
    session.insert(session.question("After, question 1."), copy.deepcopy(first))


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


@_refused("2.0.28", "2.1.112", "2.1.330", because="The last compaction has no summary.")
def the_compaction_is_the_last_line(session: Session) -> None:
    """A client that crashed before it wrote the summary: it goes on from before the compaction."""
    session.plain(session.boundaries[0])
    session.plain()
    del session.rows[session.at(session.boundary) + 1 :]


@_refused("2.0.28", "2.1.112", "2.1.330", because="The last compaction has no summary.")
def a_plain_compaction_behind_a_preserving_one_is_the_last_line(session: Session) -> None:
    """The same, where no row from before the compaction is loaded: but the first prompt is then."""
    session.preserve([session.answer("Before, question 1.")], session.boundaries[0])
    session.plain()
    del session.rows[session.at(session.boundary) + 1 :]


@_case
def a_preserving_compaction_is_the_last_line(session: Session) -> None:
    """The same, where the compaction preserved rows: newer clients load these and nothing else."""
    session.preserve(session.leading_to(session.answer("Between, question 1."), 2))
    del session.rows[session.at(session.boundary) + 1 :]


@_refused("2.0.28", "2.1.112", "2.1.330", because="The last line is not complete.")
def the_compaction_is_the_last_line_without_its_newline(session: Session) -> None:
    """A client that crashed before it wrote the summary, and the boundary's newline too."""
    the_compaction_is_the_last_line(session)
    session.ending = b""


@_refused("2.0.28", "2.1.112", "2.1.330", because="record is too long to read")
def the_compactions_record_is_very_long(session: Session) -> None:
    """A newer client that writes much into a boundary, behind what it preserved."""
    rows = session.leading_to(session.answer("Between, question 1."), 2)
    session.preserve(rows)["preCompactDiscoveredTools"] = ["x" * json_line.SMALL]


@_refused("2.0.28", "2.1.112", "2.1.330", because="record cannot be read")
def the_compactions_record_is_deeply_nested(session: Session) -> None:
    """The same, with so many lists in each other that only clients read them."""
    rows = session.leading_to(session.answer("Between, question 1."), 2)
    session.preserve(rows)["preCompactDiscoveredTools"] = NOWHERE
    boundary = session.boundary
    deep = b"[" * DEEP + b"]" * DEEP
    nested = line(boundary).replace(b'"%b"' % NOWHERE.encode(), deep)
    session.rows[session.at(boundary)] = nested


@_case
def the_last_compaction_is_not_quite_json(session: Session) -> None:
    """A boundary that no client can read, so that it is none."""
    session.plain(session.boundaries[0])
    session.plain()["preCompactDiscoveredTools"] = float("nan")


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


@_refused("2.0.28", "2.1.80", because="newer than all rows after it")
def the_clock_was_set_back(session: Session) -> None:
    """A row from before the compaction that is newer than all behind it, by its time.

    2.0.28 and 2.1.80 go on from the newest row of a file; in a rotated one that is behind the cut.
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
