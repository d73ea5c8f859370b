"""What was rewound is what no later state of the conversation goes on from, and nothing else.

The oracle reads a file into dictionaries and adds what is gone on from until nothing more comes.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessrotate import open_session
from sessrotate.clients.claude import reader, thread
from sessrotate.parsing import records
from support.examples import examples
from support.gemini_sessions import Held

if TYPE_CHECKING:
    Row = dict[str, Any]

SAMPLES = Path(__file__).parents[3] / "fixtures" / "claude"


def row(uuid: str, parent: str | None, kind: str = "user", **fields: Any) -> Row:
    return {"type": kind, "uuid": uuid, "parentUuid": parent, **fields}


def call(uuid: str, parent: str, answer: str = "msg") -> Row:
    return row(uuid, parent, "assistant", message={"id": answer, "content": []})


def result(uuid: str, parent: str) -> Row:
    content = [{"type": "tool_result", "tool_use_id": parent, "content": "done"}]
    return row(uuid, parent, message={"content": content})


def boundary(uuid: str, after: str | None, **metadata: Any) -> Row:
    more = {"logicalParentUuid": after, "compactMetadata": metadata}
    return row(uuid, None, "system", subtype="compact_boundary", **more)


def chain(names: str, parent: str | None = None) -> list[Row]:
    """Return rows with these names, each the child of the one before it."""
    made = []
    for name in names:
        made.append(row(name, parent))
        parent = name
    return made


def left(rows: list[Any]) -> str:
    """Return the names of the rows that were rewound, in the order of the file."""
    data = b"".join(json.dumps(each).encode() + b"\n" for each in rows)
    session = Held(data, reader=reader)
    is_left, found = reader.rewound(session), session.history()
    return " ".join(dict.fromkeys(json.loads(each.line)["uuid"] for each in found if is_left(each)))


def test_a_session_without_branches_has_none() -> None:
    assert left(chain("abc")) == ""
    assert left([*chain("ab"), boundary("B", "b"), *chain("cd", "B")]) == ""
    assert left([]) == ""


def test_what_the_user_went_back_from_is_a_branch() -> None:
    assert left([*chain("abcd"), *chain("xy", "b")]) == "c d"
    assert left([*chain("abcd"), *chain("xy", "b"), *chain("z", "x")]) == "c d y"


def test_what_went_before_the_first_prompt_of_a_new_beginning_is_a_branch() -> None:
    assert left([*chain("ab"), *chain("xy")]) == "a b"


def test_a_branch_that_was_summed_up_is_none_but_one_beside_it_is() -> None:
    rows = [*chain("abcd"), *chain("xy", "b"), boundary("B", "y"), *chain("mn", "B")]
    assert left(rows) == "c d"
    assert left([*rows, boundary("C", "n"), *chain("o", "C")]) == "c d"


def test_a_compaction_that_does_not_say_what_it_summed_up_had_the_row_before_it() -> None:
    for after in (None, "gone"):
        rows = [*chain("abcd"), *chain("xy", "b"), boundary("B", after), *chain("m", "B")]
        assert left(rows) == "c d"


def test_who_went_back_to_before_a_plain_compaction_left_it_and_all_behind_it() -> None:
    rows = [*chain("abc"), boundary("B", "c"), *chain("mn", "B"), *chain("xy", "a")]
    assert left(rows) == "b c B m n"
    assert left([*rows, boundary("C", "y"), *chain("o", "C")]) == "b c B m n"


PRESERVED = {"anchorUuid": "S", "uuids": ["b", "c"]}


def test_a_compaction_that_preserved_rows_stays_with_whoever_goes_back_to_before_it() -> None:
    rows = [*chain("abc"), boundary("B", "c", preservedMessages=PRESERVED), *chain("Sm", "B")]
    hook = chain("xy", "c")  # a Stop hook's rows follow what was there before
    assert left([*rows[:-1], *hook]) == ""
    assert left([*rows, *hook]) == "m"
    later = boundary("C", "y"), *chain("o", "C")
    assert left([*rows, *hook, *later]) == "m"


@pytest.mark.parametrize(
    "metadata",
    [
        {"preservedSegment": {"headUuid": "m", "tailUuid": "h", "anchorUuid": "T"}},
        {"preservedMessages": {"uuids": ["m", "h"], "anchorUuid": "T"}},
        {"preservedMessages": {"uuids": ["h"], "allUuids": ["m", "h"], "anchorUuid": "T"}},
    ],
)
def test_what_a_compaction_preserved_was_there(metadata: Row) -> None:
    """As of 2.1.260: its own last row follows a copy, not what was said last."""
    rows = [*chain("ab"), boundary("B", "b"), *chain("Slm", "B"), *chain("ab"), row("h", "b")]
    rows += [boundary("C", "h", **metadata), *chain("Tn", "C")]
    assert left(rows) == ""


def test_copies_that_follow_another_row_than_the_first_change_nothing() -> None:
    copies = [row("a", None), row("d", "a")]  # as 2.1.300 writes rows again
    rows = [*chain("abcd"), *copies, boundary("B", "d"), *chain("m", "B")]
    assert left(rows) == ""


def test_what_stands_beside_an_answer_is_no_branch() -> None:
    rows = [row("a", None), call("x", "a"), call("y", "x"), result("ry", "y"), result("rx", "x")]
    assert left([*rows, row("z", "rx", "assistant", message={"id": "other"})]) == ""
    assert left([*rows, *chain("z", "a")]) == "x y ry rx"


def test_a_dead_end_without_a_message_is_no_branch() -> None:
    note = row("n", "b", "attachment"), row("o", "n", "system")
    assert left([*chain("ab"), *note, *chain("c", "b")]) == ""
    assert left([*chain("ab"), *note, *chain("p", "o"), row("q", "p", "attachment"),
                 *chain("c", "b")]) == "n o p q"  # fmt: skip


def test_agents_rows_are_of_no_branch() -> None:
    side = [{**each, "isSidechain": True} for each in chain("st")]
    assert left([*chain("ab"), *side, *chain("c", "a")]) == "b"


def test_a_row_whose_parent_is_nowhere_goes_on_from_the_row_before_it() -> None:
    rows = [*chain("ab"), row("c", "gone"), row("d", "c")]
    assert left(rows) == ""
    assert left([*rows, *chain("x", "a")]) == "b c d"


def test_rows_that_name_no_parent_follow_one_another() -> None:
    rows = [{"type": "user", "uuid": name} for name in "abc"]
    assert left(rows) == ""


def test_what_the_client_wrote_down_as_the_end_counts() -> None:
    rows = [*chain("abc"), {"type": "last-prompt", "leafUuid": "b"}]
    data = b"".join(json.dumps(each).encode() + b"\n" for each in rows)
    session = Held(data, reader=reader)
    is_left = reader.rewound(session)
    assert [is_left(record) for record in session.history()] == [False, False, True, False]


# ── any session ──────────────────────────────────────────────────────────────────────────────


class Oracle:
    """The same by dictionaries, each question asked of all rows anew."""

    def __init__(self, rows: list[Row], sent: set[str]) -> None:
        self.main = [each for each in rows if not each.get("isSidechain")]
        self.copies: dict[str, list[Row]] = {}
        for each in self.main:
            self.copies.setdefault(each["uuid"], []).append(each)
        self.place = {
            uuid: next(n for n, each in enumerate(self.main) if each["uuid"] == uuid)
            for uuid in self.copies
        }
        self.kept = self.closed(sent & self.copies.keys())
        answers = {self.answer(uuid) for uuid in self.kept} - {None}
        parts = {uuid for uuid in self.copies if self.answer(uuid) in answers}
        self.kept = self.closed(self.kept | parts)
        results = {
            uuid
            for uuid, copies in self.copies.items()
            if any("tool_result" in json.dumps(each) for each in copies)
            and (parent := copies[0]["parentUuid"]) in self.kept
            and self.answer(parent) is not None
        }
        self.kept = self.closed(self.kept | results) | sent  # an agent's rows may be sent too

    def closed(self, uuids: set[str]) -> set[str]:
        while more := {each for uuid in uuids for each in self.gone_on_from(uuid)} - uuids:
            uuids = uuids | more
        return uuids

    def gone_on_from(self, uuid: str) -> set[str]:
        first, place = self.copies[uuid][0], self.place[uuid]
        before = {e["uuid"] for e in [e for e in self.main[:place] if e["type"] != "progress"][-1:]}
        found: set[str] = set()
        if (names := names_in(first)) is not None:
            found |= {*names, first["logicalParentUuid"]} & self.copies.keys() or before
        parents = {each["parentUuid"] for each in self.copies[uuid]} - {None}
        known = parents & self.copies.keys()
        found |= known or (before if first["parentUuid"] is not None else set())
        cuts = [e for n, e in enumerate(self.main[:place])
                if names_in(e) is not None and self.place[e["uuid"]] == n]  # fmt: skip
        if cuts and any(
            self.place.get(each, -1) < self.place[cuts[-1]["uuid"]] for each in parents
        ):
            anchor = anchor_of(cuts[-1])
            found |= {cuts[-1]["uuid"], anchor} & self.copies.keys() if anchor else set()
        return found

    def answer(self, uuid: str) -> str | None:
        told = [each.get("message", {}).get("id") for each in self.copies.get(uuid, ())
                if each["type"] == "assistant"]  # fmt: skip
        return next((each for each in reversed(told) if each), None)

    def left(self) -> set[str]:
        says = {e["uuid"] for e in self.main if e["type"] in {"user", "assistant"}} - self.kept
        grown: set[str] = set()
        while says != grown:  # what they follow
            grown = says
            says = says | ({self.copies[u][0]["parentUuid"] for u in says if u in self.copies}
                           - self.kept - {None})  # fmt: skip
        grown = set()
        while says != grown:  # and what follows that
            grown = says
            says = says | ({u for u in self.copies if self.copies[u][0]["parentUuid"] in says}
                           - self.kept)  # fmt: skip
        return {u for u in says & self.copies.keys()
                if any(e["type"] != "progress" for e in self.copies[u])}  # fmt: skip


def names_in(each: Row) -> set[str] | None:
    if each.get("subtype") != "compact_boundary":
        return None
    metadata = each["compactMetadata"]
    segment = metadata.get("preservedSegment", {})
    ends = {segment.get("headUuid"), segment.get("tailUuid")} - {None}
    return {*metadata.get("preservedMessages", {}).get("uuids", ()), *ends}


def anchor_of(each: Row) -> str | None:
    (found,) = each["compactMetadata"].values() or [{}]
    uuid: str | None = found.get("anchorUuid")
    return uuid


NAMES = st.sampled_from("abcdefgh")
METADATA: st.SearchStrategy[Row] = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {
            "preservedMessages": st.fixed_dictionaries(
                {"anchorUuid": NAMES, "uuids": st.lists(NAMES, max_size=3)}
            )
        }
    ),
    st.fixed_dictionaries(
        {
            "preservedSegment": st.fixed_dictionaries(
                {"anchorUuid": NAMES, "headUuid": NAMES, "tailUuid": NAMES}
            )
        }
    ),
)


@st.composite
def sessions(draw: st.DrawFn) -> list[Row]:
    """Draw rows that mostly follow the one before them, and sometimes any other, or none."""
    rows: list[Row] = []
    for number in range(draw(st.integers(1, 14))):
        uuid = draw(st.one_of(st.just("abcdefghijklmn"[number]), NAMES))
        last = rows[-1]["uuid"] if rows else None
        parent = draw(st.one_of(st.just(last), NAMES, st.sampled_from([None, "gone"])))
        kind = draw(st.sampled_from(["prompt", "prompt", "call", "result", "system", "attachment",
                                     "progress", "boundary", "agent"]))  # fmt: skip
        match kind:
            case "prompt":
                rows.append(row(uuid, parent))
            case "call":
                rows.append({**call(uuid, "", draw(st.sampled_from("12"))), "parentUuid": parent})
            case "result":
                rows.append({**result(uuid, ""), "parentUuid": parent})
            case "boundary":
                rows.append(boundary(uuid, draw(st.one_of(st.just(last), NAMES)), **draw(METADATA)))
            case "agent":
                rows.append(row(uuid, parent, isSidechain=True))
            case _:
                rows.append(row(uuid, parent, kind))
    return rows


FORKED_BY_AN_AGENT: Final = [
    *chain("ab"),
    row("c", "f", "system"),
    row("d", "c", isSidechain=True),
    row("e", "d"),
    row("f", "e", isSidechain=True),
    row("d", "f"),
    row("h", "f"),
    row("l", "d"),
]
"""A resume sends an agent's row here, and a note that follows that is no branch."""


@given(sessions())
@example(FORKED_BY_AN_AGENT)
@examples(600)
def test_of_any_session_what_was_rewound_is_what_nothing_goes_on_from(rows: list[Row]) -> None:
    data = b"".join(json.dumps(each).encode() + b"\n" for each in rows)
    sent = [
        json.loads(each.line)["uuid"] for each in thread.conversation(partial(records, [data], 0))
    ]
    found = set(left(rows).split())
    assert found.isdisjoint(sent)
    assert found == (Oracle(rows, set(sent)).left() if sent else set())


# ── samples ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*/projects/*/*.jsonl")),
                         ids=lambda path: path.parts[-4])  # fmt: skip
def test_of_a_sample_only_what_its_user_went_back_from_was_rewound(path: Path) -> None:
    with open_session(path) as session:
        is_left = session.reader.rewound(session)
        found = [json.loads(each.line) for each in session.history() if is_left(each)]
    said = [each["message"]["content"] for each in found
            if each["type"] == "user" and "prompt" in each["message"]["content"]]  # fmt: skip
    is_rewound = path.parts[-4] == "rewind-2.1.112"
    went = ["bravo second prompt", "charlie third prompt", "delta fourth prompt"]
    assert said == went * is_rewound
    assert len(found) == 11 * is_rewound
