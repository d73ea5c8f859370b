"""Whether each line of a history is the row that parsing it gives, and a plan that of all rows."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import generate_session
from sessrotate import parsing
from sessrotate.clients.claude import ancestry, carried_lines, loading
from sessrotate.clients.claude.ancestry import Survey
from sessrotate.clients.claude.rows import Link, seconds
from sessrotate.clients.in_place import LivePlan
from sessrotate.model import Span
from sessrotate.parsing import LONG, Window
from sessrotate.system.source import Source
from support import oracle
from support.examples import examples
from support.limits import MIB, MOST_MIB, weighed
from support.tiers import in_gate

NEXT_COMPACTION: Final = "Wait for the session's next compaction: it usually resolves this."
NEXT_ROWS: Final = "Wait for the session's next rows: they usually resolve this."

FIXTURES = sorted((Path(__file__).parents[3] / "fixtures" / "claude").glob("*/projects/**/*.jsonl"))

SESSIONS = [path for path in FIXTURES if not path.name.startswith("agent-")]

Line = tuple[int, bytes, dict[str, Any] | None]
"""Where a line begins, what stands on it, and what it says if it is a record."""

SMALLEST = 160  # bytes of a window

UUIDS = [f"{number:08x}-0000-4000-8000-00000000000{number}" for number in range(6)]
ODD_UUIDS = ["", "a b", 'q"q', "b\\", "é", "🛶", "x" * 128, "x" * 129, None, 7, ["x"]]
TRANSCRIPT = ("user", "assistant", "system", "attachment")
TYPES = (
    *TRANSCRIPT,
    *("progress", "last-prompt", "segment_header"),
    *("file-history-snapshot", "file-history-delta"),
    *("mode", "custom-title", "summary", "queue-operation"),
    *("from-a-newer-client", "", 'user"', "us\\er", "usér"),
)

# ── rows ─────────────────────────────────────────────────────────────────────────────────────

PARTS = st.sampled_from(
    [
        *(
            '"type":"user"',
            ',"type":"user"',
            '},"type":"attachment","uuid":"u"}',
            ',"type":"mode"}',
        ),
        *(f'"uuid":"{UUIDS[0]}"', f',"uuid":"{UUIDS[1]}"', '{"type":"user","x":[', '"messageId":"'),
        *('{"type":"system","subtype":"compact_boundary"}', '{"parentUuid":null,"type":"user"'),
        *('"', "\\", '\\"', "{", "}", "[", "]", ",", ":", "type", "uuid", " ", "\t", "\r", "\x1b"),
        *("é", "🛶", "\u2028", "plain words", "x" * 40, "y" * 300),
    ]
)
TEXTS = st.lists(PARTS, max_size=5).map("".join)
# A quotation of a quotation: what a tool printed of a session file.
QUOTED = st.recursive(TEXTS, lambda inner: inner.map(json.dumps), max_leaves=3)
SCALARS = st.one_of(
    QUOTED,
    st.sampled_from(UUIDS),
    st.sampled_from(TYPES),
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.sampled_from([0.5, -1e-7, 1e300]),
)
LINKS = st.sampled_from([*UUIDS, *UUIDS, *UUIDS, *ODD_UUIDS])
# An object inside a row that has what a row has, which must never be taken for the row's own.
DECOYS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(TYPES),
        "uuid": LINKS,
        "messageId": LINKS,
        "x": SCALARS,
        'k"\\é': SCALARS,
        "content": st.lists(st.one_of(QUOTED, st.just({"type": "user"}), st.just({})), max_size=2),
    },
)
VALUES = st.one_of(
    DECOYS,
    DECOYS.map(lambda decoy: {"x": decoy, "type": "user"}),
    st.lists(st.one_of(DECOYS, SCALARS), max_size=3),
    SCALARS,
)
TIMES = st.integers(0, 12).map(lambda second: f"2026-01-01T00:00:{second:02d}.000Z")
BLOCKS = st.sampled_from([{"type": "tool_result", "tool_use_id": "t"}, {"type": "text"}, "x", 7])
MESSAGES = st.fixed_dictionaries(
    {"content": st.one_of(st.lists(BLOCKS, max_size=2), QUOTED)},
    optional={"id": st.one_of(st.sampled_from(["m", "n"]), SCALARS)},
)
MEMBERS = {
    "type": st.sampled_from([*TYPES, *TRANSCRIPT]),
    "uuid": LINKS,
    "parentUuid": LINKS,
    "messageId": LINKS,
    "leafUuid": LINKS,
    "sessionId": st.sampled_from(["s", "t", None, ["s"]]),
    "isSidechain": st.sampled_from([False, False, True, None]),
    "message": st.one_of(VALUES, MESSAGES),
    "timestamp": st.one_of(TIMES, SCALARS),
    "toolUseResult": VALUES,
    "attachment": VALUES,
    "rendered": st.lists(st.fixed_dictionaries({"content": QUOTED}), max_size=2),
    "x": VALUES,
}


@st.composite
def objects(draw: st.DrawFn, /, **fixed: Any) -> dict[str, Any]:
    """Draw a row: members of its own in any order, with anything in them."""
    names = draw(st.lists(st.sampled_from(list(MEMBERS)), unique=True))
    if draw(st.integers(0, 7)):
        names = [*(name for name in ("type", "uuid") if name not in names), *names]
    members = {name: draw(MEMBERS[name]) for name in names} | fixed
    return {name: members[name] for name in draw(st.permutations(list(members)))}


@st.composite
def spelled(draw: st.DrawFn, records: st.SearchStrategy[dict[str, Any]]) -> bytes:
    """Draw a record as `JSON.stringify` writes it, and now and then as others do."""
    style = draw(st.sampled_from(["compact", "compact", "compact", "ascii", "spaced", "mixed"]))
    text = json.dumps(
        draw(records),
        ensure_ascii=style == "ascii",
        separators=(", ", ": ") if style == "spaced" else (",", ":"),
    )
    if style == "mixed":
        text = text.replace('":', '" : ', draw(st.integers(1, 4)))
    return text.encode()


@st.composite
def damaged(draw: st.DrawFn, rows: st.SearchStrategy[bytes]) -> bytes:
    """Draw what is left of rows: torn, fused, torn and fused, with bytes around it or in it."""
    line, other = draw(rows), draw(rows)
    at = draw(st.integers(0, len(line)))
    return draw(
        st.sampled_from(
            [
                *(line[:at], line[at:], line + other, line[:at] + other, line + other[at:]),
                *(line + b"\r", b" " + line, line + b" ", b"\xef\xbb\xbf" + line, line + b","),
                *(line[:at] + b"\x00" + line[at:], line[:at] + b"\xff" + line[at:]),
                *(b"[" + line + b"]", b'"x"', b"null", b"NaN", b"", b"\r", b"}", b"{", b"{}"),
                b'{"type":"user","x":NaN}',
            ]
        )
    )


ROWS = spelled(objects())
LINES = st.one_of(ROWS, ROWS, ROWS, damaged(ROWS))
WINDOWS = st.one_of(st.integers(SMALLEST, 700), st.just(1 << 16))


def joined(rows: list[bytes], end: bytes = b"\n") -> bytes:
    return b"\n".join(rows) + end


def looks_whole(line: bytes) -> bool:
    return line[:1] == b"{" and line[-1:] == b"}"


def record(line: bytes) -> dict[str, Any] | None:
    """Return what every client makes of a line; None if it passes over it."""
    try:
        found = oracle.parse(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def spans(data: bytes) -> list[tuple[int, bytes]]:
    """Return the lines of a file that are not empty, and where they begin."""
    found, position = [], 0
    for line in data.split(b"\n"):
        found += [(position, line)] if line else []
        position += len(line) + 1
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("survey") / "s.jsonl"


# ── lines and windows ────────────────────────────────────────────────────────────────────────


@given(
    st.lists(st.binary(max_size=9).map(lambda row: row.replace(b"\n", b"")), max_size=9),
    st.sampled_from([b"\n", b"", b"\n\n"]),
    st.integers(1, 24),
)
@examples(200)
@example([b"abc", b"defg", b"hi"], b"", 4)
@example([b"", b"abcd", b"", b"abcde", b""], b"\n", 4)
def test_lines_pass_in_turn_whatever_the_windows_size(
    path: Path, rows: list[bytes], end: bytes, size: int
) -> None:
    data = joined(rows, end)
    path.write_bytes(data)
    expected = spans(data)
    with Source(path) as source:
        window = Window(source, size)

        def seen(passing: Iterator[tuple[int, int, int]]) -> Iterator[tuple[int, bytes]]:
            for start, stop, at in passing:
                line = data[start:stop]
                assert at == LONG or window.buffer[at : at + len(line)] == line
                assert at != LONG or len(line) >= size
                yield start, line

        assert list(seen(window.forward(Span(0, len(data))))) == expected
        assert list(seen(window.backward(len(data)))) == expected[::-1]


# ── rows ─────────────────────────────────────────────────────────────────────────────────────

TEXTS_ONLY = ("type", "uuid", "parentUuid", "messageId", "timestamp")
ANY_SCALAR = ("sessionId", "leafUuid", "organizationUuid")


def scalar(value: Any) -> Any:
    """Return a value as it can name anything: short, and without what no file can hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace") if len(value) <= 128 else None
    return value if isinstance(value, int) and abs(value) < 10**15 else None


def told(found: dict[str, Any] | None) -> list[Any] | None:
    """Return what a row says of what matters, by the whole parse of its line."""
    if found is None:
        return None
    texts = [found.get(name) for name in TEXTS_ONLY]
    message = found.get("message")
    message = message if isinstance(message, dict) else {}
    return [
        *(scalar(text) if isinstance(text, str) else None for text in texts),
        *(scalar(found.get(name)) for name in ANY_SCALAR),
        found.get("isSidechain") is True,
        scalar(name) if isinstance(name := message.get("id"), str) else None,
    ]


def said(row: Link | None) -> list[Any] | None:
    if row is None:
        return None
    links = (row.type, row.uuid, row.parent_uuid, row.message_id, row.timestamp)
    keys = (row.session_id, row.leaf_uuid, row.organization_uuid)
    answer = row.message and row.message.id
    return [*map(scalar, (*links, *keys)), row.is_sidechain, scalar(answer)]


@given(st.lists(LINES, max_size=8), WINDOWS)
@examples(200)
@example([b'{"message":{"x":1,"type":"user"}}'], SMALLEST)
@example([b'{"message":{"type":"user","x":1},"type":"mode"}'], SMALLEST)
@example([b'{"type":"mode","message":{"x":{},"type":"user"}}'], SMALLEST)
@example([b'{"type":"mode","x":{},"type":"user"}'], SMALLEST)
@example([b'{"type":"user","type":7}', b'{"type":7,"type":"user"}'], SMALLEST)
@example([b'{"\\u0074ype":"user","uuid":"\\ud800"}'], SMALLEST)
@example([b'{"x":"\\",\\"type\\":\\"user\\"}","type":"mode"}'], SMALLEST)
@example([b'{"x":"' + b"y" * 400 + b'","type":"user"}'], SMALLEST)
@example([b'{"type":"user","x":"y', b'"x":1,"type":"user"}', b'{"type":"user"}\r'], 1 << 16)
@example([b'{"type":"user","x":"ab{"type":"user","uuid":"a"}'], 1 << 16)
@example([b'{"type":"user","uuid":"\xff"}', b'{"type":"user","x":"\xff","uuid":"a"}'], SMALLEST)
@example([b'{"type":"user","sessionId":' + b"9" * 5000 + b"}"], 1 << 16)
@example([b'{"type":"user","x":' + b"[" * 2000 + b"]" * 2000 + b',"uuid":"a"}'], 1 << 16)
def test_a_line_is_the_row_that_parsing_all_of_it_gives(
    path: Path, rows: list[bytes], size: int
) -> None:
    data = joined(rows)
    path.write_bytes(data)
    expected = [(start, start + len(line), told(record(line))) for start, line in spans(data)]
    with Source(path) as source:
        passing = Survey(source, size)
        there = passing.forward(Span(0, len(data)))
        assert [(start, end, said(row)) for start, end, row in there] == expected
        back = passing.backward(len(data))
        assert [(start, end, said(row)) for start, end, row in back] == expected[::-1]


@given(st.lists(LINES, max_size=8))
@examples(200)
@example([b'{"type":"user","x":[{"type":"mode"}]}'])
@example([b'{"type":"user","x":{}', b'{"type":"user"} {', b'{"type" : "user"}'])
@example([b'{"x":"' + b"y" * 400 + b'","uuid":"' + b"\\u0061" * 128 + b'"}'])
def test_a_line_that_is_too_long_to_be_held_is_the_same_row(path: Path, rows: list[bytes]) -> None:
    """What is no JSON between its brackets is another matter."""
    data = joined(rows)
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch, Source(path) as source:
        patch.setattr(ancestry, "LONGEST", 0)
        found = list(Survey(source, 1).forward(Span(0, len(data))))
    for (start, line), (*ends, row) in zip(spans(data), found, strict=True):
        assert ends == [start, start + len(line)]
        if record(line) is not None:
            assert said(row) == told(record(line))
        elif not looks_whole(line.strip()):
            assert row is None


def test_looking_back_reads_no_more_than_is_asked_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(b'{"uuid":"a"}\n' * 1000)
    shown: list[Span] = []
    show = Window.show

    def note(window: Window, span: Span) -> int:
        shown.append(span)
        return show(window, span)

    monkeypatch.setattr(Window, "show", note)
    with Source(path) as source:
        assert next(Survey(source, SMALLEST).backward(source.size()))[2] == Link(uuid="a")
    assert len(shown) == 1


# ── the plan, the slow way ───────────────────────────────────────────────────────────────────


def text(found: dict[str, Any] | None, name: str) -> str | None:
    """Return a value that can name a row; longer texts are no names to the code under test."""
    value = (found or {}).get(name)
    return value if isinstance(value, str) and len(value) <= 128 else None


def texts(rows: list[Line], name: str) -> set[str]:
    return {name for name in (text(row, name) for _, _, row in rows) if name is not None}


def says(row: dict[str, Any] | None) -> bool:
    """Tell whether a compaction's record says what it preserved."""
    metadata = (row or {}).get("compactMetadata") or {}
    return bool({"preservedMessages", "preservedSegment"} & metadata.keys())


def is_spoken(row: dict[str, Any] | None, *kinds: str) -> bool:
    return (row or {}).get("type") in kinds and (row or {}).get("isSidechain") is not True


def answer(row: dict[str, Any] | None) -> str | None:
    message = (row or {}).get("message") if (row or {}).get("type") == "assistant" else None
    return text(message, "id") if isinstance(message, dict) else None


def moment(row: dict[str, Any]) -> float:
    """Return a row's time in seconds, 0 if it has none."""
    return seconds(text(row, "timestamp"))


def has_result(row: dict[str, Any]) -> bool:
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


class SlowPlan:
    """What a resume needs of the lines before a cut: every line parsed, rows in lists, in rounds.

    A row that is needed is the last copy above the row that continues it, or else the last.
    """

    def __init__(self, data: bytes, cut: int) -> None:
        rows = [(start, line, record(line)) for start, line in spans(data)]
        self.history = [row for row in rows if row[0] < cut]
        self.behind = [row for start, _, row in rows if start >= cut and row is not None]
        self.tail = {uuid for row in self.behind if (uuid := text(row, "uuid")) is not None}
        self.parents = self.outside(self.behind)
        boundary = self.behind[0]
        metadata = boundary.get("compactMetadata", {})
        messages = metadata.get("preservedMessages")
        segment = metadata.get("preservedSegment") if messages is None else None
        self.says, self.is_listing = says(boundary), messages is not None
        self.listed = set((messages or {}).get("uuids", []))
        self.preserved = self.listed | set((messages or {}).get("allUuids", []))
        self.head = (segment or {}).get("headUuid")
        self.walk = {segment["tailUuid"]} if segment else set()
        version = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", str(boundary.get("version")))
        number = [9] if version is None else [*map(int, version.groups())]
        self.is_old, self.is_by_time = number < [2, 1, 80], number < [2, 1, 112]
        starts = {start for start in oracle.boundaries(data) if start < cut}
        self.first = min({*starts, cut})
        self.saying = {start for start, _, row in self.history if start in starts and says(row)}
        self.said_before = bool(self.saying)
        self.plain = starts - self.saying
        self.data, self.cut = data, cut
        self.is_large = len(data) > loading.SMALL_FILE
        self.checkpoint = self.last_prompt()
        self.loaded = ""
        self.found = self.search(self.expected(has_all=True))
        if self.says and not self.has_all():
            self.found = self.search("everything")

    def last_prompt(self) -> str | None:
        """Return the row that a `last-prompt` behind all rows names, if it is not among them."""
        said = [n for n, row in enumerate(self.behind) if is_spoken(row, *TRANSCRIPT)]
        last = self.behind[(said or [-1])[-1] + 1 :]
        named = [text(row, "leafUuid") for row in last if row.get("type") == "last-prompt"]
        leaf = next(iter(named[-1:]), None)
        return None if leaf in self.tail or leaf == "00000000-0000-0000-0000-000000000000" else leaf

    def is_read(self, start: int) -> bool:
        """Tell whether clients read what stands there of the whole file."""
        return not self.is_large or start >= max(self.plain, default=0)

    def outside(self, rows: list[dict[str, Any]]) -> set[str]:
        parents = {text(row, "parentUuid") for row in rows} - {None}
        return {parent for parent in parents if parent is not None} - self.tail

    def expected(self, *, has_all: bool) -> str:
        if self.says:
            return "preserved" if has_all else "everything"
        return "nothing" if self.said_before or self.is_large else "everything"

    def has_all(self) -> bool:
        if self.is_listing:
            return self.listed <= self.found.keys() | self.tail
        return self.head in self.found

    def search(self, loaded: str) -> dict[str, tuple[int, str]]:
        """Return the needed rows by uuid, each with its number and the reason."""
        self.loaded = loaded
        self.chain = set() if loaded == "nothing" and not self.is_old else set(self.parents)
        self.walked = set(self.walk)
        self.answers = {answer(row) for row in self.behind} - {None}
        self.musts = self.listed | self.walked | self.chain
        self.missing = (self.preserved | self.musts) - self.tail
        found: dict[str, tuple[int, str]] = {}
        grows = True
        while grows:
            before = -1
            while before < len(found) and (before < 0 or self.missing & self.musts):
                before = len(found)
                self.look_back(found)
            grows = loaded == "everything" and self.look_beside(found)
        self.unread = set[str]()
        if loaded == "preserved":
            others = found.keys() - self.preserved - self.walked
            starts = {uuid: self.history[found[uuid][0]][0] for uuid in others}
            self.unread = {uuid for uuid, start in starts.items() if not self.is_read(start)}
        return {uuid: row for uuid, row in found.items() if self.is_old or uuid not in self.unread}

    def look_back(self, found: dict[str, tuple[int, str]]) -> None:
        for number in reversed(range(len(self.history))):
            row = self.history[number][2]
            uuid = text(row, "uuid")
            if uuid is None or uuid not in self.missing:
                continue
            self.missing.remove(uuid)
            is_listed, is_walked = uuid in self.preserved, uuid in self.walked
            found[uuid] = number, "list" if is_listed else "walk" if is_walked else "chain"
            self.answers |= {answer(row)} - {None}
            has_ancestors = self.loaded == "everything" or self.is_old
            links = [self.chain] if uuid in self.chain and has_ancestors else []
            links += [self.walked] if is_walked and uuid != self.head else []
            self.go_on(text(row, "parentUuid"), links, found)

    def look_beside(self, found: dict[str, tuple[int, str]]) -> bool:
        grows = False
        parts: set[Any] = set()
        for number, (_, _, row) in enumerate(self.history):
            uuid = text(row, "uuid")
            if row is None or uuid is None:
                continue
            is_part = answer(row) is not None and answer(row) in self.answers
            parts |= {uuid} if is_part else set()
            is_user = answer(row) is None and row.get("type") == "user"
            is_result = is_user and text(row, "parentUuid") in parts and has_result(row)
            is_taken = uuid in self.tail or found.get(uuid, (0, "beside"))[1] != "beside"
            if (is_part or is_result) and not is_taken:
                grows |= uuid not in found
                self.missing.discard(uuid)
                found[uuid] = number, "beside"
                self.chain.add(uuid)
                self.go_on(text(row, "parentUuid"), [self.chain], found)
        return grows

    def go_on(
        self, parent: str | None, links: list[set[str]], found: dict[str, tuple[int, str]]
    ) -> None:
        """Note that a parent is needed by what `links` are."""
        if parent is None or not links:
            return
        for each in links:
            each.add(parent)
        if parent not in found and parent not in self.tail:
            self.missing.add(parent)
            self.musts.add(parent)

    def copies(self) -> set[str]:
        rows = [row for _, _, row in self.history if (row or {}).get("type") in TRANSCRIPT]
        return {uuid for row in rows if (uuid := text(row, "uuid")) is not None} & self.tail

    def newest(self, rows: Iterable[dict[str, Any] | None]) -> str:
        times = [text(row, "timestamp") for row in rows if is_spoken(row, *TRANSCRIPT)]
        return max((time for time in times if time is not None), default="")

    def refusals(self) -> Iterator[str]:
        """Yield why the plan must not be carried out."""
        is_cut_short = not any(is_spoken(row, "user", "assistant") for row in self.behind)
        if is_cut_short and self.loaded != "preserved":
            yield f"The last compaction has no summary. {NEXT_ROWS}"
        copies = self.copies()
        crossing = self.outside([row for row in self.behind if text(row, "uuid") not in copies])
        before_it = [row for _, _, row in self.history if (row or {}).get("type") in TRANSCRIPT]
        is_there = not crossing.isdisjoint(text(row, "uuid") for row in before_it)
        along = {self.history[number][0] for number, _ in self.found.values()}
        is_lost_again = not along.isdisjoint(self.saying)
        is_lost = self.loaded == "nothing" and is_there and not is_lost_again
        if self.is_old and (is_lost or self.unread):
            yield (
                "A row after the last compaction continues one from before it, and clients from "
                f"2.1.80 on have lost that branch. {NEXT_COMPACTION}"
            )
        before = self.newest(row for _, _, row in self.history)
        is_loaded = self.is_old or self.loaded == "everything"
        if self.is_by_time and is_loaded and self.newest(self.behind) < before:
            yield (
                "A row from before the last compaction is newer than all rows after it. Wait for "
                "newer rows, or for a compaction by Claude Code 2.1.112 or later."
            )
        rows = [row for _, _, row in self.history if (row or {}).get("type") in TRANSCRIPT]
        is_named = self.checkpoint is not None and self.checkpoint in {
            text(row, "uuid") for row in rows
        }
        if self.loaded == "everything" and is_named:
            yield f"A resume continues from a row from before the last compaction. {NEXT_ROWS}"
        orphans = self.parents - self.found.keys()
        is_whole = self.chain <= self.found.keys() | self.tail | orphans
        is_asked = self.loaded == "everything" or (self.loaded == "preserved" and self.is_large)
        if is_asked and not (is_whole and self.is_near(orphans, before)):
            yield (
                "A row after the last compaction continues one that is nowhere in the file. "
                f"{NEXT_COMPACTION}"
            )
        unlisted = copies - self.preserved
        is_by_place = self.loaded == "preserved" or (self.loaded == "nothing" and self.said_before)
        is_apart = self.is_apart(unlisted) and not crossing - self.found.keys()
        if unlisted and is_by_place and not is_apart:
            many = f"{len(unlisted)} {'row occurs' if len(unlisted) == 1 else 'rows occur'}"
            yield (f"{many} both before and after the last compaction. {NEXT_COMPACTION}")
        yield from self.notices()

    def misleads(self) -> bool:
        """Tell whether clients would go on from the first prompt, and not in the whole file."""
        number = self.first_prompt()
        if number is None or self.loaded == "everything":
            return False
        if self.loaded == "preserved" and self.is_read(self.history[number][0]):
            return False
        copies = self.copies()
        others = [row for row in self.behind if text(row, "uuid") not in copies]
        parents = self.outside(others) if copies and self.is_apart(copies) else self.parents
        row = self.history[number][2]
        time, uuid = text(row, "timestamp") or "", text(row, "uuid")
        is_newer = self.is_by_time and self.newest(self.behind) < time
        is_named = uuid is not None and uuid == self.checkpoint
        is_apart = self.is_near(parents - self.found.keys(), time)
        return uuid in parents or is_named or is_newer or not is_apart

    def notices(self) -> Iterator[str]:
        """Yield what clients would load of the shorter file, and not of the whole."""
        if self.loaded == "preserved":
            ends = {*self.listed, *self.walk}
            starts = [self.history[self.found[uuid][0]][0] for uuid in ends & self.found.keys()]
            if not all(map(self.is_read, starts)):
                yield (
                    "The last compaction preserved a row from before a plain compaction. "
                    f"{NEXT_COMPACTION}"
                )
        carried = sum(len(line) + 1 for _, line, _ in self.carried())
        size = carried + 1024 + len(self.data) - self.cut
        if self.loaded == "everything" and not self.is_large and size > loading.SMALL_FILE:
            yield f"With the carried lines, clients would not load all of the file. {NEXT_ROWS}"

    def is_near(self, orphans: set[str], newest_before: str) -> bool:
        before = seconds(newest_before)
        for number, row in enumerate(self.behind):
            if text(row, "parentUuid") not in orphans:
                continue
            time = moment(row)
            times = [
                moment(other) for other in self.behind[:number] if is_spoken(other, *TRANSCRIPT)
            ]
            nearest = max((other for other in times if 0 < other <= time), default=0)
            if not time or before >= max(nearest, time - 5):
                return False
        return True

    def is_apart(self, unlisted: set[str]) -> bool:
        def is_copy(row: dict[str, Any]) -> bool:
            return text(row, "uuid") in unlisted

        mine = {answer(row) for row in self.behind if is_copy(row)} - {None}
        others = {answer(row) for row in self.behind if not is_copy(row)} - {None}
        others |= {answer(self.history[number][2]) for number, _ in self.found.values()} - {None}
        for row in self.behind:
            is_other = not is_copy(row) and text(row, "uuid") not in self.preserved
            if is_other and text(row, "parentUuid") in unlisted:
                return False
        said = [
            number
            for number, row in enumerate(self.behind)
            if is_spoken(row, *TRANSCRIPT) and isinstance(row.get("uuid"), str)
        ]
        spoken = [self.behind[number]["uuid"] for number in said]
        new = [number for number in said if not is_copy(self.behind[number])]
        named = [
            row["leafUuid"]
            for row in self.behind[(new or [0])[-1] :]
            if row.get("type") == "last-prompt" and isinstance(row.get("leafUuid"), str)
        ]
        leaf = next(filter(None, named[-1:]), None) or next(iter(spoken[-1:]), None)
        return leaf not in unlisted and not mine & others

    def opening(self) -> int | None:
        """Return the number of the line that stays to show how the session began."""
        return None if self.misleads() else self.beginning()

    def beginning(self) -> int | None:
        """Return the number of the line that shows how the session began: its row's last copy."""
        number = self.first_prompt()
        uuid = None if number is None else text(self.history[number][2], "uuid")
        return self.found[uuid][0] if uuid in self.found else number

    def first_prompt(self) -> int | None:
        """Return the number of the first prompt's line, if that is small."""
        for number, (start, line, row) in enumerate(self.history):
            end = start + len(line) + 1
            if end > min(self.first, 65_536):
                return None
            if row is not None and is_prompt(row):
                return number if len(line) <= 16_384 else None
        return None

    def carried(self) -> Iterator[tuple[int, bytes, str]]:
        """Yield the lines to carry, each with its reason."""
        opening = self.opening()
        needed = {number: REASONS[why] for number, why in self.found.values()}
        keys = [metadata_key(row) for _, _, row in self.history]
        if opening is not None:
            yield *self.history[opening][:2], needed.get(opening, BEGINS)
        for number, (start, line, row) in enumerate(self.history):
            reason = needed.get(number) or self.reason(
                row, is_replaced=keys[number] in keys[number + 1 :]
            )
            if reason is not None and number != opening:
                yield start, line, reason

    def reason(self, row: dict[str, Any] | None, *, is_replaced: bool) -> str | None:
        """Return why a line is carried of itself; `is_replaced`: a later one has the same key."""
        kind = (row or {}).get("type")
        if row is None:
            return "not a record, but clients keep it"
        if kind in loading.LAST_WINS:
            return None if is_replaced else "the latest value of each setting (title, mode, …)"
        if kind in loading.FILE_HISTORY:
            is_kept = text(row, "messageId") in self.tail | self.found.keys()
            return "file history of a message that stays" if is_kept else None
        is_void = kind in loading.CLEARED | loading.TRANSCRIPT
        return None if is_void else "of a type that clients keep"


REASONS = {
    "list": "preserved by the compaction",
    "walk": "preserved by the compaction",
    "chain": "continued by a row after the compaction",
    "beside": "part of an answer that stays, or a result of its tools",
}


BEGINS = (
    "a line from the beginning, which clients use to list the session and to decide whether to "
    "delete it"
)


def is_prompt(row: dict[str, Any]) -> bool:
    """Tell whether a row is a question of the user's, as far as these sessions have any."""
    odd = ("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
    if row.get("type") != "user" or any(row.get(name) is True for name in odd):
        return False
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) else message
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    said = [
        block["text"].strip()
        for block in (blocks if isinstance(blocks, list) else [])
        if isinstance(block, dict)
        and block.get("type") == "text"
        and isinstance(block["text"], str)
    ]
    return any(each and each[0] != "<" and not each.startswith("Caveat") for each in said)


def metadata_key(row: dict[str, Any] | None) -> list[str | int | None]:
    kind = (row or {}).get("type", "")
    others = {
        "summary": ["type", "leafUuid"],
        "hybrid-organization": ["type", "sessionId", "organizationUuid"],
    }
    names = others.get(kind, ["type", "sessionId"]) if kind in loading.LAST_WINS else []
    values = [(row or {}).get(name) for name in names]
    is_short = [isinstance(value, str | int) and len(str(value)) <= 128 for value in values]
    return [value if short else None for value, short in zip(values, is_short, strict=True)]


@st.composite
def compactions(draw: st.DrawFn) -> bytes:
    """Draw a compaction's record: plain, with a list, with a segment, with both."""
    some = st.lists(st.sampled_from([*UUIDS, 'q"q', "é"]), max_size=3)
    messages = {"uuids": draw(some)}
    messages["allUuids"] = messages["uuids"] + draw(some)
    segment = {name: draw(st.sampled_from(UUIDS)) for name in ("headUuid", "tailUuid")}
    metadata = draw(
        st.sampled_from(
            [
                {"trigger": "auto"},
                {"preservedMessages": messages},
                {"preservedSegment": segment},
                {"preservedSegment": segment, "preservedMessages": messages},
            ]
        )
    )
    fixed = {"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata}
    fixed["version"] = draw(st.sampled_from(["2.1.330", "2.1.80", "2.0.28", "2.1.9", "x"]))
    return draw(spelled(objects(**fixed)))


def check_plan(path: Path, data: bytes, cut: int) -> None:
    """Compare a plan with the slow one."""
    path.write_bytes(data)
    with Source(path) as source:
        starts = [start for start in oracle.boundaries(data) if start < cut]
        made = carried_lines.plan(source, [*starts, cut], len(data))
    if b"\n" not in data[cut:]:
        assert made == LivePlan(cut, (), (f"The last line is not complete. {NEXT_ROWS}",))
        return
    slow = SlowPlan(data, cut)
    expected, refusals = list(slow.carried()), list(slow.refusals())
    carried = [
        (entry.span.start, data[entry.span.start : entry.span.end], entry.reason)
        for entry in made.carried
    ]
    assert carried == expected
    assert (made.cut, list(made.refusals)) == (cut, refusals)


@given(
    st.lists(st.one_of(LINES, LINES, LINES, compactions()), max_size=14),
    compactions(),
    st.lists(LINES, max_size=4),
    st.sampled_from([b"\n", b"\n", b"", b'\n{"type":"user","uuid":"x', b"\n\n"]),
    WINDOWS,
    st.sampled_from([0, loading.SMALL_FILE]),
)
@examples(200)
def test_a_plan_is_that_of_parsing_every_line(
    path: Path,
    history: list[bytes],
    compaction: bytes,
    tail: list[bytes],
    end: bytes,
    size: int,
    small: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "WINDOW", size)
        patch.setattr(loading, "SMALL_FILE", small)
        cut = sum(len(line) + 1 for line in history)
        check_plan(path, joined([*history, compaction, *tail], end), cut)


@pytest.mark.parametrize("sample", SESSIONS, ids=lambda path: f"{path.parts[-4]}-{path.stem[:8]}")
@pytest.mark.parametrize("size", [SMALLEST, parsing.WINDOW])
def test_the_plan_of_a_real_session_is_that_of_parsing_every_line(
    path: Path, sample: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "WINDOW", size)
    data = sample.read_bytes()
    cuts = oracle.boundaries(data)
    for cut, end in zip(cuts, [*cuts[1:], len(data)], strict=True):
        check_plan(path, data[:end], cut)


@pytest.mark.parametrize("preserved", [0, 1, 3])
@pytest.mark.parametrize("size", [SMALLEST, 4096, parsing.WINDOW])
def test_the_plan_of_an_invented_session_is_that_of_parsing_every_line(
    path: Path, preserved: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "WINDOW", size)
    options = generate_session.Options(size=MIB, boundaries=4, preserved_every=preserved)
    with path.open("wb") as file:
        generate_session.generate(file, options)
    data = path.read_bytes()
    check_plan(path, data, oracle.boundaries(data)[-1])


# ── memory ───────────────────────────────────────────────────────────────────────────────────

PLAN = """
import sys
from pathlib import Path
from sessrotate.clients.claude import carried_lines
from sessrotate.system.source import Source
with Source(Path(sys.argv[1])) as source:
    size, cut = source.size(), int(sys.argv[2])
    plan = carried_lines.plan(source, [cut], size)
print(len(plan.carried), *plan.refusals)
"""

# One of the two listed rows is there, so that history is looked through backwards too, to its end.
NEEDED = b'{"type":"user","uuid":"a"}\n'
CUT = (
    b'{"type":"system","subtype":"compact_boundary","uuid":"b",'
    b'"compactMetadata":{"preservedMessages":{"uuids":["a"],"allUuids":["a","nowhere"]}}}\n'
)


LOADS_ALL = CUT.replace(b'"uuids":["a"]', b'"uuids":["a","nowhere"]')
"""A row of the list is missing, so that clients load everything, and whole chains count."""

SUMMARY = (b'{"type":"user"}\n',)


def row(number: int, parent: int | None = None) -> bytes:
    link = b"null" if parent is None else b'"%032d"' % parent
    return b'{"parentUuid":%b,"type":"user","uuid":"%032d"}\n' % (link, number)


def title(number: int) -> bytes:
    return b'{"type":"custom-title","sessionId":"%d"}\n' % number


def one_line(opening: bytes, piece: bytes, closing: bytes, size: int) -> Iterator[bytes]:
    yield opening
    together = piece * (MIB // len(piece))
    yield from repeat(together, size // len(together))
    yield closing + b"\n"


HOSTILE = {
    "type first": (b'{"type":"user","x":"', b"a", b'"}'),
    "type last": (b'{"x":["', b"a", b'"],"type":"user"}'),
    "type between": (b'{"x":[],"type":"user","y":["', b"a", b'"]}'),
    "quotes": (b'{"type":"user","x":["', b'","', b'"]}'),
    "quotes in a string": (b'{"type":"user","x":"', rb"\"", b'"}'),
    "objects": (b'{"type":"user","x":[{}', b",{}", b"]}"),
    "uuids": (b'{"type":"user","x":[{}', b',{"uuid":"a longer one"}', b"]}"),
}

NO_RECORDS = {
    "no quote closed": (b'{"type":"user","x":', b'"', b"}"),
    "no bracket closed": (b'{"type":"user","x":', b"[", b"}"),
}

SLOW = {
    "a user's row": (b'{"x":{},"type":"user","y":[[[[', b"[],", b"0]]]]}"),
    "quotes and no type": (b'{"x":["', b'","', b'"]}'),
    "types and none its own": (b'{"x":[{}', b',{"x":1,"type":"user"}', b"]}"),
}


def planned(
    path: Path,
    before: Iterable[bytes],
    behind: Iterable[bytes] = SUMMARY,
    compaction: bytes = CUT,
) -> str:
    """Plan a hostile session within the memory that there is; return what was planned."""
    with path.open("wb") as file:
        cut = file.write(NEEDED) + sum(file.write(piece) for piece in before)
        file.write(compaction)
        file.writelines(behind)
    ended = weighed(path, str(cut), program=(sys.executable, "-c", PLAN))
    path.unlink()
    assert ended.code == 0, ended.err
    assert ended.peak_mib <= MOST_MIB
    return ended.out.rstrip()


@pytest.mark.parametrize("name", in_gate(HOSTILE, 2, "hostile"))
@pytest.mark.parametrize("size", [7 * MIB, 32 * MIB], ids=["held", "too long to be held"])
def test_a_hostile_line_takes_little_memory(path: Path, name: str, size: int) -> None:
    assert planned(path, one_line(*HOSTILE[name], size)) == "1"


GIGABYTE = pytest.param(1024 * MIB, marks=pytest.mark.scale)


@pytest.mark.parametrize("name", NO_RECORDS)
@pytest.mark.parametrize("size", [*in_gate([2 * MIB, 32 * MIB], 1, "hostile"), GIGABYTE])
def test_a_hostile_line_that_is_no_record_is_carried_in_little_memory(
    path: Path, name: str, size: int
) -> None:
    assert planned(path, one_line(*NO_RECORDS[name], size)) == "2"


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("size", in_gate([2 * MIB, 7 * MIB], 1, "hostile"))
def test_a_hostile_line_that_is_held_whole_takes_little_memory(
    path: Path, name: str, size: int
) -> None:
    assert planned(path, one_line(*SLOW[name], size)) == ("1" if "user" in name else "2")


@pytest.mark.scale
@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_line_of_a_gigabyte_takes_little_memory(path: Path, name: str) -> None:
    assert planned(path, one_line(*HOSTILE[name], 1024 * MIB)) == "1"


@pytest.mark.scale
@pytest.mark.parametrize("count", [200_000, 2_000_000])
def test_many_lines_take_little_memory(path: Path, count: int) -> None:
    numbers = range(1, count)
    assert planned(path, map(row, numbers)) == "1"
    assert planned(path, repeat(b"\n", count)) == "1"
    too_many = (
        "0 A resume needs more of the session than can be kept in memory. Wait for the session's "
        "next compaction: it usually resolves this."
    )
    assert planned(path, repeat(b"{}\n", count)) == too_many
    assert planned(path, repeat(b'"\n', count)) == too_many
    assert planned(path, map(title, numbers)) == too_many
    assert planned(path, (), (row(number, number - 1) for number in numbers)) == too_many
    assert planned(path, (), (row(0, number) for number in numbers)) == too_many
    chain = (row(number, number - 1) for number in numbers)
    assert planned(path, chain, [row(0, count - 1)], LOADS_ALL) == too_many


@pytest.mark.scale
def test_far_more_than_any_session_has_is_carried_in_little_memory(path: Path) -> None:
    assert planned(path, repeat(b"{}\n", 50_000)) == "50001"
    assert planned(path, map(title, range(30_000))) == "30001"
    behind = [row(1), *(row(number, number - 1) for number in range(2, 120_000))]
    assert planned(path, (), behind) == "1"
