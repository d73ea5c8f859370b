"""Whether what is told of a row without parsing it is what parsing it would have told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessrotate.clients.claude.identity import DOUBT, TYPE, UUID, Key, ends
from support.examples import examples

FIXTURES = sorted((Path(__file__).parents[3] / "fixtures" / "claude").glob("*/projects/**/*.jsonl"))

KEYS = {"uuid": UUID, "type": TYPE}
UUIDS = [f"{number:08x}-0000-4000-8000-00000000000{number}" for number in range(3)]

# ── lines ────────────────────────────────────────────────────────────────────────────────────

PARTS = st.sampled_from(
    [
        *(',"type":"user"', '},"type":"mode","uuid":"u"}', f',"uuid":"{UUIDS[0]}"', '{"uuid":"u"'),
        *('"', "\\", '\\"', "\\\\", '\\\\"', "{", "}", "[", "]", ",", ":", "\\u0075", "é", "🛶"),
        *("type", "uuid", "plain words", "x" * 200, "\t", "\x00", "\x1b", "true", "1"),
    ]
)
TEXTS = st.lists(PARTS, max_size=5).map("".join)
# A quotation of a quotation: what a tool printed of a session file.
QUOTED = st.recursive(TEXTS, lambda inner: inner.map(json.dumps), max_leaves=4)
SCALARS = st.one_of(
    QUOTED,
    st.sampled_from([*UUIDS, "user", "mode", "", "a b", "usér", "x" * 128, "x" * 129]),
    st.sampled_from([None, True, False, 0, -1, 1.5, -1e-7, 1e300, 10**30]),
)
NAMES = st.sampled_from(["type", "uuid", "uuids", "Uuid", "", "x", "u\\", 'a"b', "é", "message"])


def spelled(text: str, style: str) -> str:
    """Write a text as JSON; the odd style escapes what no client would."""
    if style != "odd":
        return json.dumps(text, ensure_ascii=style == "ascii")
    return '"' + "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in text) + '"'


@st.composite
def objects(draw: st.DrawFn, depth: int = 0) -> str:
    """Draw an object's JSON, in which a key may stand twice, or be spelled with escapes."""
    style = st.sampled_from(["plain"] * 6 + ["ascii", "odd"])
    members = []
    for _ in range(draw(st.integers(0, 5))):
        what = draw(st.integers(0, 5)) if depth < 4 else 0
        if what == 5:
            value = draw(objects(depth + 1))
        elif what == 4:
            value = "[" + ",".join(draw(st.lists(objects(depth + 1), max_size=2))) + "]"
        else:
            scalar = draw(SCALARS)
            value = spelled(scalar, draw(style)) if isinstance(scalar, str) else json.dumps(scalar)
        members.append(f"{spelled(draw(NAMES), draw(style))}:{value}")
    return "{" + ",".join(members) + "}"


ROWS = objects().map(str.encode)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw what a crash leaves of rows: torn, two in one line, zeros where data was."""
    line, other = draw(ROWS), draw(ROWS)
    at = draw(st.integers(0, len(line)))
    return draw(
        st.sampled_from(
            [
                *(line[:at], line[at:], line + other, line[:at] + other, line + other[at:]),
                *(line[:at] + b"\x00" + line[at:], line[:at] + b"\x00" * 9 + line[at + 9 :]),
                *(
                    line.replace(b"x", b"\xff"),
                    line + b"\r",
                    b" " + line,
                    b"\xef\xbb\xbf" + line,
                ),
                *(b"[" + line + b"]", line + b",", b"", b"{", b"}", b"{}", b'"x"', b"null", b"[]"),
            ]
        )
    )


def parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


# ── what is told ─────────────────────────────────────────────────────────────────────────────


@given(ROWS, st.sampled_from(sorted(KEYS)))
@examples(500)
@example(b'{"uuid":"a","uuid":"b"}', "uuid")
@example(b'{"uuid":"a","uuid":null}', "uuid")
@example(b'{"uuid":"a","x":1,"\\u0075uid":"b"}', "uuid")
@example(b'{"uuid":"a","x":{"y":"\\\\"},"uuid":"b","z":"\\""}', "uuid")
@example(b'{"uuid":"a","x":"\\\\","uuid":"b","y":"\\\\\\\\"}', "uuid")
@example(b'{"x":{"uuid":"b"}}', "uuid")
@example(b'{"x":"a\\\\\\",\\"uuid\\":\\"b","uuid":"c"}', "uuid")
def test_the_own_value_of_a_row_is_that_of_parsing_it(line: bytes, name: str) -> None:
    told, row = KEYS[name].own(line), parsed(line)
    assert row is not None
    if told is None:
        assert name not in row
    elif told is not DOUBT:
        assert told == str(row[name]).encode()


@given(damaged(), st.sampled_from(sorted(KEYS)))
@examples(500)
@example(b'{"type":"user","x":"ab{"type":"user","uuid":"a"}', "uuid")
@example(b'{"type":"user","x":["ab",{"type":"user","uuid":"a"}', "uuid")
@example(b'{"type":"user","x":{"type":"user","uuid":"a"}', "uuid")
@example(b'{"uuid":"a"}{"uuid":"b"}', "uuid")
@example(b'{"x":"a\x00b","uuid":"b"}', "uuid")
def test_of_what_a_crash_left_nothing_is_told(line: bytes, name: str) -> None:
    told, row = KEYS[name].own(line), parsed(line)
    if row is None:
        assert told is DOUBT
    elif told is not DOUBT:
        assert told == (None if name not in row else str(row[name]).encode())


@given(st.one_of(ROWS, ROWS, damaged()), st.sampled_from(["", "x", '{"type":"mode","uuid":"z"}']))
@examples(500)
@example(b'{"x":[1],"type":"user","uuid":"a","type":"mode"}', "")
@example(b'{"x":[1],"type":"user","uuid":"a","y":{"type":"mode","uuid":"b"}}', "")
@example(b'{"x":[1],"type":"user","uuid":"a","y":"\\\\","uuid":"b"}', "")
@example(b'{"x":{"y":1,"type":"user","uuid":"a"}}', "")
@example(b'{"x":"a,\\"type\\":\\"user\\"}","type":"mode"}', "x")
def test_what_the_ends_of_a_row_tell_is_what_parsing_it_would(line: bytes, around: str) -> None:
    """Whatever stands around it in the buffer."""
    buffer = bytearray(around.encode() + line + around.encode())
    at, to = len(around), len(around) + len(line)
    row = parsed(line)
    if row is None:
        return
    kind, uuid = ends(buffer, at, to)
    assert kind is None or kind == str(row["type"]).encode()
    assert uuid is None or uuid == str(row["uuid"]).encode()
    pairs: list[tuple[str, Any]] = json.loads(
        line.decode("utf-8", "replace"), object_pairs_hook=lambda pairs: pairs
    )
    for name, key in KEYS.items():
        first = next((value for own, value in pairs if own == name), None)
        told = key.first(buffer, at, to)
        assert told is None or told == str(first).encode()


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parts[-4]}-{path.stem[:8]}")
def test_of_what_clients_write_nothing_is_in_doubt(path: Path) -> None:
    for line in path.read_bytes().splitlines():
        row = json.loads(line)
        for name, key in KEYS.items():
            assert key.own(line) == (row[name].encode() if name in row else None)
        kind = TYPE.first(line, 0, len(line)) or ends(line, 0, len(line))[0]
        assert kind == row["type"].encode()


@pytest.mark.parametrize(
    "line",
    [
        b'{"x":%b,"uuid":"a"}' % (b"[" * 20 + b"]" * 20),
        b'{"x":"\\\\\\\\\\"","uuid":"a"}',
        b'{"uuid" :"a"}',
        b'{"uuid":"\xc3\xa9"}',
        b'{"uuid":"\\u0061"}',
        b'{"uuid":"%b"}' % (b"a" * 129),
        b'{"uuid":7}',
        b'{"uuid":["a"]}',
    ],
)
def test_what_only_a_parser_knows_is_in_doubt(line: bytes) -> None:
    assert parsed(line) is not None
    assert UUID.own(line) is DOUBT


@pytest.mark.parametrize("text", [b"", rb"\\", rb"\"", rb"\\\"", rb"a\"b\\", rb"{\"", rb"\n"])
def test_backslashes_before_a_quote_are_counted(text: bytes) -> None:
    line = b'{"x":"%b","uuid":"a","y":["%b"]}' % (text, text)
    assert parsed(line) is not None
    assert UUID.own(line) == b"a"


@pytest.mark.parametrize("piece", [b'"",', b"[],", b'"\\"",', b"{},", b'"a":"b",', b'"', b"["])
def test_a_hostile_line_of_megabytes_is_told_about_in_no_time(piece: bytes) -> None:
    """A pattern that went back would never end, or need a stack that there is not."""
    line = b'{"x":[' + piece * (4 * 1024 * 1024 // len(piece)) + b'1],"uuid":"a"}'
    told = Key(b"uuid").own(line)
    assert told == (DOUBT if len(piece) == 1 else b"a")
