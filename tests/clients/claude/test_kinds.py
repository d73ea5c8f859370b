"""Whether what is told of a row by the types of its blocks is what its view says."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import generate_session
from sessrotate.clients import view
from sessrotate.clients.claude import kinds as claude_kinds
from sessrotate.clients.claude import reader
from sessrotate.clients.view import Gist
from sessrotate.parsing import Record
from support.examples import examples

FIXTURES = sorted((Path(__file__).parents[3] / "fixtures" / "claude").glob("*/projects/**/*.jsonl"))


def record(line: bytes, size: int | None = None) -> Record:
    return Record(0, 0, line, len(line) if size is None else size)


def gist(of: Record) -> tuple[Gist, bytes | None] | None:
    """Return what the types of a row's blocks tell, None if a view is asked for."""
    line = (memoryview(of.line), of.offset, of.size, of.is_ended)
    with patch("sessrotate.clients.claude.view.view", side_effect=LookupError):
        try:
            ((found, key, *same),) = claude_kinds.gists([line])
        except LookupError:
            return None
    assert tuple(same) == line
    return found, key


def parsed(line: bytes) -> tuple[Gist, bytes | None]:
    return view.gist_of(reader.view(record(line))), reader.key(record(line))


def told(line: bytes) -> Gist:
    found = gist(record(line))
    assert found is not None
    return found[0]


def written(row: object) -> bytes:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()


# ── rows as clients write them, and as none does ─────────────────────────────────────────────

TEXTS = st.sampled_from(
    [
        *("", "words", 'a "quoted" word', "C:\\dir\\", "\\", '"', "é🛶\n", "x" * 300),
        *('{"type":"user"}', ',"type":"assistant","uuid":"u"}', "]}]}", '"content":[{'),
    ]
)
NAMES = st.sampled_from(
    ["type", "subtype", "message", "uuid", "timestamp", "content", "id", "x", "typed", "é", "u\\"]
)
VALUES = st.one_of(
    TEXTS,
    st.sampled_from([None, True, 0, -1.5, 10**20, "user", "assistant", "system", "progress", {}]),
    st.recursive(
        TEXTS,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
        max_leaves=5,
    ),
)
TYPES = st.sampled_from(
    [
        *("user", "assistant", "system", "attachment", "progress", "mode", "", "usér"),
        *("file-history-snapshot", "file-history-delta", "x" * 129, None, 3),
    ]
)
BLOCK_TYPES = st.sampled_from(
    [
        *("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "tool_result"),
        *("image", "document", "web_search_tool_result", "new", "", None),
    ]
)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}


class Raw:
    """JSON that is written already, so that it may say what no dict can."""

    def __init__(self, text: str) -> None:
        self.text = text


@st.composite
def objects(draw: st.DrawFn, /, **members: st.SearchStrategy[Any]) -> Raw:
    """Draw an object with most of these members in their order; seldom another, or one twice."""
    found = [(name, draw(value)) for name, value in members.items() if draw(st.integers(0, 9))]
    odd = draw(st.integers(0, 9))
    if odd == 0:
        found.insert(draw(st.integers(0, len(found))), (draw(NAMES), draw(VALUES)))
    elif odd == 1:
        found = draw(st.permutations(found))
    escapes = draw(st.integers(0, 30)) == 0
    parts = []
    for name, value in found:
        key = "".join(f"\\u{ord(c):04x}" for c in name) if escapes else json.dumps(name)[1:-1]
        text = value.text if isinstance(value, Raw) else written(value).decode()
        parts.append(f'"{key}":{text}')
    return Raw("{" + ",".join(parts) + "}")


def listed(each: st.SearchStrategy[Raw], most: int) -> st.SearchStrategy[Raw]:
    return st.lists(each, max_size=most).map(
        lambda found: Raw("[" + ",".join(item.text for item in found) + "]")
    )


def typed(kind: str, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[Raw]:
    return objects(type=st.just(kind), **members)


ANY = VALUES.map(lambda value: Raw(written(value).decode()))
SOURCES = st.one_of(
    st.just(Raw(written(IMAGE["source"]).decode())), typed("base64", data=TEXTS), ANY
)
INNER = st.one_of(
    typed("text", text=TEXTS),
    typed("image", source=SOURCES),
    objects(type=BLOCK_TYPES, text=TEXTS),
    st.just(Raw(written(IMAGE).decode())),
)
GIVEN = st.one_of(TEXTS, listed(INNER, 2), VALUES)
BLOCKS = st.one_of(
    typed("text", text=TEXTS, citations=VALUES),
    typed("thinking", thinking=TEXTS, signature=TEXTS),
    typed("tool_use", id=TEXTS, name=TEXTS, input=VALUES),
    objects(tool_use_id=TEXTS, type=st.just("tool_result"), content=GIVEN),
    typed("tool_result", tool_use_id=TEXTS, content=GIVEN, is_error=st.booleans()),
    objects(type=BLOCK_TYPES, source=SOURCES),
    ANY,
)
CONTENT = st.one_of(listed(BLOCKS, 1), listed(BLOCKS, 3), TEXTS, VALUES)
MESSAGES = st.one_of(objects(role=TEXTS, content=CONTENT, usage=VALUES), VALUES)
TIMES = st.sampled_from(["2026-03-01T12:00:00.000Z", "", "soon", "é", None, 5])
IDS = st.sampled_from(["5a3c0e1e-0000-4000-8000-000000000001", "", "ü", None, 7])
REAL = st.sampled_from(["5a3c0e1e-0000-4000-8000-000000000001", "u"])
WHEN = st.just("2026-03-01T12:00:00.000Z")
SESSION = {"userType": st.just("external"), "sessionId": REAL, "slug": TEXTS}
USUAL = st.one_of(
    objects(
        parentUuid=IDS,
        type=st.just("user"),
        message=MESSAGES,
        uuid=REAL,
        timestamp=WHEN,
        toolUseResult=st.one_of(VALUES, typed("text", file=VALUES)),
        **SESSION,
    ),
    objects(
        parentUuid=IDS,
        message=typed("message", role=TEXTS, content=CONTENT, usage=VALUES),
        requestId=TEXTS,
        type=st.just("assistant"),
        uuid=REAL,
        timestamp=WHEN,
        **SESSION,
    ),
)
"""As clients write them, so that the rest is passed over."""
QUEUED = objects(
    type=st.one_of(st.just("queued_command"), TYPES),
    prompt=CONTENT,
    commandMode=st.sampled_from(["prompt", "bash", None]),
    isMeta=st.sampled_from([False, True, 7]),
    origin=st.sampled_from([None, {"kind": "human"}, {"kind": "peer"}, "human"]),
)
DATED = {"uuid": IDS, "timestamp": TIMES}
ROWS = st.one_of(
    objects(
        parentUuid=IDS,
        type=TYPES,
        subtype=TEXTS,
        message=MESSAGES,
        uuid=IDS,
        timestamp=TIMES,
        toolUseResult=VALUES,
    ),
    USUAL,
    typed("user", message=MESSAGES, uuid=IDS),
    objects(parentUuid=IDS, message=MESSAGES, requestId=TEXTS, type=st.just("assistant"), **DATED),
    objects(x=VALUES, type=TYPES, data=VALUES, timestamp=TIMES, uuid=IDS),
    objects(attachment=st.one_of(QUEUED, VALUES), type=st.just("attachment"), **DATED),
).map(lambda row: row.text.encode())


@given(ROWS)
@examples(1500)
@example(b'{"type":"user","message":{"content":"x"},"type":"mode"}')
@example(b'{"type":"user","message":{"content":"x","content":[]}}')
@example(b'{"type":"user","message":{"content":[{"type":"text","type":"image"}]}}')
@example(b'{"type":"user","message":{"content":"x"},"message":7}')
@example(b'{"type":"user","message":{"content":"x"},"\\u006dessage":7}')
@example(b'{"timestamp":"a","uuid":"u","timestamp":"b","type":"mode"}')
@example(b'{"type":"mode","timestamp":"a","uuid":"u","timestamp":"b"}')
@example(b'{"type":"progress","subtype":"file-history-x"}')
@example(b'{"type":"","timestamp":""}')
@example(
    b'{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"","content":""}]}}'
)
@example(
    b'{"type":"user","message":{"content":[{"tool_use_id":"a","type":"tool_result","content":'
    b'[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ=="}}]}]}}'
)
@example(
    b'{"type":"user","message":{"content":[{"tool_use_id":"a","type":"tool_result","content":'
    b'[{"type":"text","text":"a","type":"image"}]}]}}'
)
def test_what_is_told_of_a_row_is_what_its_view_says(line: bytes) -> None:
    found = gist(record(line))
    if found is not None:
        assert found == parsed(line)


@given(ROWS)
@examples(300)
@example(b'{"type":"user","uuid":"u","message":7}')
@example(b'{"type":"user","uuid":"u","message":{"content":"\\ud800"}}')
@example(b'{"type":"user","uuid":"\\ud800","message":{"content":["x"]}}')
def test_of_a_row_whose_types_do_not_tell_the_view_does(line: bytes) -> None:
    ((found, key, *_),) = claude_kinds.gists([(line, 0, len(line), True)])
    assert (found, key) == parsed(line)


WHOLE = [
    (
        b'{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t","type":'
        b'"tool_result","content":"words"}]},"uuid":"u","timestamp":"2026-03-01T12:00:00.000Z",'
        b'"toolUseResult":{"type":"text","file":{"content":"words"}},"cwd":"/srv",'
        b'"sessionId":"s","version":"2.1.112"}'
    ),
    (
        b'{"parentUuid":"p","message":{"type":"message","role":"assistant","content":[{"type":'
        b'"text","text":"words"}],"usage":{"input_tokens":4}},"requestId":"r",'
        b'"type":"assistant","uuid":"u","timestamp":"2026-03-01T12:00:00.000Z","cwd":"/srv",'
        b'"sessionId":"s","version":"2.1.112"}'
    ),
]
"""What stands behind the message of these is passed over."""
NEXT = [
    b'{"type":"last-prompt","lastPrompt":"words","sessionId":"s"}',
    b'{"type":"summary","summary":"words","leafUuid":"u"}',
    (
        b'{"parentUuid":null,"attachment":{"type":"file"},"type":"attachment","uuid":"u",'
        b'"timestamp":"2026-03-01T12:00:00.000Z","sessionId":"s"}'
    ),
]


@given(st.one_of(ROWS, USUAL.map(lambda row: row.text.encode())), st.data())
@examples(600)
def test_of_a_row_that_a_crash_left_nothing_is_told(line: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(
        st.one_of(
            st.sampled_from([b"", b'{"type":"user","uuid":"u"}', b"\0", line]),
            st.just(b"\0" + line[at + 1 :]),
            st.sampled_from([*NEXT, *WHOLE]),
        )
    )
    torn = line[:at] + other
    try:
        json.loads(torn)
    except ValueError:
        assert gist(record(torn)) is None


@pytest.mark.parametrize("line", WHOLE, ids=["user", "assistant"])
@pytest.mark.parametrize("other", [b"", *NEXT, *WHOLE], ids=lambda other: other[:12] or b"end")
def test_wherever_a_crash_cut_a_row_nothing_is_told_of_what_is_left(
    line: bytes, other: bytes
) -> None:
    assert gist(record(line)) == parsed(line)
    for at in range(1, len(line)):
        assert gist(record(line[:at] + other)) is None, line[:at]


def test_of_a_row_with_zeros_in_it_nothing_is_told() -> None:
    line = b'{"type":"user","message":{"role":"user","content":"words"},"uuid":"u"}'
    assert gist(record(line)) is not None
    assert gist(record(line.replace(b"words", b"wo\0\0s"))) is None


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.parts[-4])
def test_all_rows_of_real_clients_are_told_as_parsed(path: Path) -> None:
    for line in path.read_bytes().splitlines():
        assert gist(record(line)) == parsed(line)


def test_of_a_generated_session_everything_is_told() -> None:
    session = BytesIO()
    generate_session.generate(
        session, generate_session.Options(size=2 << 20, boundaries=4, images=0)
    )
    for line in session.getvalue().split(b"\n")[:-1]:
        assert gist(record(line)) == parsed(line)


# ── lines that are too long to be held ───────────────────────────────────────────────────────


def message(kind: str, content: object) -> dict[str, Any]:
    inner = {"role": kind, "content": content}
    if kind == "user":
        return {"parentUuid": "p", "type": "user", "message": inner, "uuid": "u"}
    return {"parentUuid": "p", "message": inner, "type": "assistant", "uuid": "u"}


LONG = "x" * 4000
RESULT = {"tool_use_id": "t", "type": "tool_result", "content": LONG}
SEEN = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 999},
}


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (message("user", LONG), "user text"),
        (message("user", [{"type": "text", "text": LONG}]), "user text"),
        (message("user", [RESULT]), "tool results"),
        (message("user", [{"type": "text", "text": "see"}, SEEN]), "images"),
        (message("user", [{**RESULT, "content": [SEEN]}]), "images"),
        (message("assistant", [{"type": "text", "text": LONG}]), "assistant text"),
        (message("assistant", [{"type": "thinking", "thinking": LONG}]), "thinking"),
        (
            message(
                "assistant", [{"type": "tool_use", "id": "t", "name": "W", "input": {"a": LONG}}]
            ),
            "tool calls",
        ),
        ({"type": "file-history-snapshot", "snapshot": {"a": LONG}}, "file-history"),
        ({"parentUuid": "p", "type": "progress", "data": {"a": LONG}}, "progress"),
        ({"parentUuid": "p", "attachment": {"a": LONG}, "type": "attachment"}, "attachments"),
        ({"type": "mode", "mode": LONG}, "metadata"),
        ({"a": LONG}, "unknown"),
        ([LONG], "unknown"),
    ],
)
def test_of_a_line_that_is_too_long_the_beginning_tells(row: object, kind: str) -> None:
    line = written(row)
    assert gist(record(line[:3000], len(line))) == (Gist(kind), None)  # type: ignore[arg-type] # a str here
    assert parsed(line)[0].kind == kind


def test_of_a_row_of_too_many_objects_the_beginning_tells_and_its_uuid_is_known() -> None:
    line = written(message("user", [RESULT, *[{}] * claude_kinds.MOST_OBJECTS])).ljust(300_000)
    assert gist(record(line)) == (Gist("tool results"), b"u")
    said = {"type": "text", "text": "{" * 300_000}
    assert gist(record(written(message("user", [said])))) == (Gist("user text"), b"u")
    assert gist(record(written(message("user", [said]))[:-1])) == (Gist("unknown"), None)
