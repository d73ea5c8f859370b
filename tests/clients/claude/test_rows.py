"""A row is what the client's own `JSON.parse` makes of its line, whichever way it is decoded."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct

from sessrotate.clients.claude.rows import compaction_of, row_of, shown_of, turn_of
from sessrotate.parsing.json_typed import Decoder, parsed
from support.examples import examples
from support.lines import any_lines

FIXTURES = sorted((Path(__file__).parents[3] / "fixtures" / "claude").glob("*/projects/**/*.jsonl"))
REAL = [line for path in FIXTURES for line in path.read_bytes().splitlines() if len(line) < 5000]

DEEP = 900  # levels that are surely followed

DECODERS: list[Decoder[Any]] = [row_of, turn_of, shown_of, compaction_of]

# ── lines ────────────────────────────────────────────────────────────────────────────────────

ODD = st.sampled_from(
    [
        *(b"", b"\xff", b"\xed\xa0\x80", b"\x00", b"\x0b", b"\t", b"\r", b" ", b"\xef\xbb\xbf"),
        *(b'"', b"\\", rb"\ud83d", rb"\udc00", rb"\u0075", rb"\u00", rb"\q", b"NaN", b"-0", b"01"),
        *(b"{", b"}", b"[", b"]", b",", b":", b"null", b"7", b"9" * 400, b"1e999", b"[" * 40),
        *(b'"type":"mode",', b'"uuid":7,', b'"message":[],', b'"isSidechain":null,', b"\xe2\x82"),
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Draw a real row with something odd put into it, or in the place of something."""
    line = draw(st.sampled_from(REAL))
    for _ in range(draw(st.integers(1, 3))):
        at, cut = draw(st.integers(0, len(line))), draw(st.sampled_from([0, 0, 0, 1, 2, 9]))
        line = line[:at] + draw(ODD) + line[at + cut :]
    return line


NAMES = st.sampled_from(
    [
        *("type", "uuid", "parentUuid", "sessionId", "messageId", "leafUuid", "subtype", "message"),
        *("timestamp", "isSidechain", "isMeta", "content", "id", "compactMetadata", "uuids", "x"),
        *("preservedMessages", "preservedSegment", "headUuid", "tailUuid", "name", "source", "é"),
    ]
)
SCALARS = st.sampled_from(
    [
        *('"user"', '"a"', '"\\ud800"', '"\\ud83d\\ude00"', '"é"', '""', '"\\u0061"', "null"),
        *("true", "false", "0", "-1.5", "1e999", "9" * 400, "[]", "{}", "-0", "1E400"),
        *("[" * 300 + "]" * 300, '"' + "x" * 300 + '"', "18446744073709551616"),
    ]
)


@st.composite
def objects(draw: st.DrawFn, depth: int = 0) -> str:
    """Draw an object in which keys may stand twice, and be spelled with escapes."""
    members = []
    for _ in range(draw(st.integers(0, 5))):
        name = draw(NAMES)
        if draw(st.integers(0, 9)) == 0:
            name = f"\\u{ord(name[0]):04x}{name[1:]}"
        nested = draw(st.integers(0, 3)) if depth < 3 else 0
        value = draw(SCALARS) if nested < 2 else draw(objects(depth + 1))
        members.append(f'"{name}":{f"[{value}]" if nested == 3 else value}')
    return "{" + ",".join(members) + "}"


AROUND = st.sampled_from([b"", b"", b"", b" ", b"\r", b"\t", b"\x0c", b"\xef\xbb\xbf", b"x", b"{}"])
LINES = st.one_of(
    mutated(),
    st.tuples(AROUND, objects().map(str.encode), AROUND).map(b"".join),
    any_lines(),
    st.binary(max_size=30),
)

EXAMPLES = (
    b'{"type":"user","type":7}',
    b'{"type":7,"type":"user"}',
    b'{"\\u0074ype":"user"}',
    b'{"message":{"content":"x"},"message":{}}',
    b'{"message":{"content":[{"type":"text"},7,"x",{"type":8}]}}',
    b'{"message":{"content":[{"type":"tool_result","content":"\\ud800"}]}}',
    b'{"uuid":"\xed\xa0\x80","x":"\xff"}',
    b'{"uuid":"\\ud800"}',
    b'{"compactMetadata":{"preservedMessages":{"uuids":["a",7,"\\udc00"]}}}',
    b'{"sessionId":' + b"9" * 5000 + b"}",
    b'{"x":' + b"[" * 700 + b"]" * 700 + b',"uuid":"a"}',
    b'\xef\xbb\xbf{"uuid":"a"}',
    b'{"uuid":"a"}\x00',
    b'{"uuid":"a"}\x0b',
    b'{"x":NaN}',
    b'{"x":01}',
    b"{}",
    b"",
)

# ── the two ways ─────────────────────────────────────────────────────────────────────────────


@given(LINES)
@examples(300)
def test_what_the_decoder_takes_is_what_the_guarded_way_reads(line: bytes) -> None:
    check_ways(line)


@pytest.mark.parametrize("line", EXAMPLES, ids=lambda line: repr(line[:40]))
def test_odd_lines_are_the_same_row_either_way(line: bytes) -> None:
    check_ways(line)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parts[-4]}-{path.stem[:8]}")
def test_rows_of_real_clients_need_no_guarded_way(path: Path) -> None:
    for line in path.read_bytes().splitlines():
        for decoder in DECODERS:
            decoder.fast(line)
        check_ways(line)


def check_ways(line: bytes) -> None:
    value = parsed(line)
    for decoder in DECODERS:
        guarded = decoder.fitted(value) if isinstance(value, dict) else None
        assert plain(decoder(line)) == plain(guarded)


def plain(value: Any) -> Any:
    """Return a row as text, which tells 1 from True; without what only the fast way gives."""
    if isinstance(value, Struct):
        return type(value).__name__, [
            plain(getattr(value, name)) for name in value.__struct_fields__
        ]
    if isinstance(value, list):
        return [plain(each) for each in value]
    return None if isinstance(value, Raw) else repr(value)


# ── the client's own parser ──────────────────────────────────────────────────────────────────

NODE = """
const data = require('fs').readFileSync(0), rows = [];
const text = (value) => typeof value === 'string' ? value : null;
const object = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const list = (value) => Array.isArray(value) ? value : [];
for (let at = 0; at < data.length; ) {
  const size = data.readUInt32LE(at), line = data.subarray(at + 4, at + 4 + size);
  at += 4 + size;
  let row;
  try { row = JSON.parse(line.toString('utf8')); } catch { rows.push(null); continue; }
  if (!object(row)) { rows.push(null); continue; }
  const message = object(row.message) ? row.message : {};
  const metadata = object(row.compactMetadata) ? row.compactMetadata : {};
  const preserved = object(metadata.preservedMessages) ? metadata.preservedMessages : {};
  rows.push([
    text(row.type), text(row.uuid), text(row.parentUuid), text(row.messageId),
    text(row.subtype), text(row.timestamp),
    row.isSidechain === true, row.isMeta === true, row.isCompactSummary === true,
    text(message.id), text(message.content),
    list(message.content).filter(object).map((block) => text(block.type)),
    list(preserved.uuids).filter((uuid) => text(uuid) !== null),
  ]);
}
console.log(JSON.stringify(rows));
"""


def node(lines: list[bytes]) -> list[list[Any] | None]:
    frames = b"".join(len(line).to_bytes(4, "little") + line for line in lines)
    said = subprocess.run(["node", "-e", NODE], input=frames, capture_output=True, check=True)
    found: list[list[Any] | None] = json.loads(said.stdout)
    return found


def ours(line: bytes) -> list[Any] | None:
    """Return what the rows say of what the script asks."""
    turn, shown, compaction = turn_of(line), shown_of(line), compaction_of(line)
    missing = [row is None for row in (turn, shown, compaction, row_of(line))]
    assert len(set(missing)) == 1
    if turn is None or shown is None or compaction is None:
        return None
    message = turn.message
    content = None if message is None else message.content
    metadata = compaction.compact_metadata
    preserved = None if metadata is None else metadata.preserved_messages
    uuids = None if preserved is None else preserved.uuids
    return [
        *(turn.type, turn.uuid, turn.parent_uuid, turn.message_id, turn.subtype, turn.timestamp),
        *(turn.is_sidechain, shown.is_meta, shown.is_compact_summary),
        None if message is None else message.id,
        content if isinstance(content, str) else None,
        [block.type for block in content] if isinstance(content, list) else [],
        [uuid for uuid in uuids or () if isinstance(uuid, str)],
    ]


@pytest.mark.skipif(shutil.which("node") is None, reason="node, the clients' runtime, is not here")
def test_a_row_is_what_node_makes_of_its_line() -> None:
    collected: list[bytes] = list(EXAMPLES)

    @given(LINES)
    @examples(600, database=None)
    def collect(line: bytes) -> None:
        collected.append(line)

    collect()
    for line, expected in zip(collected, node(collected), strict=True):
        found = ours(line)
        is_too_deep = found is None and max(map(line.count, (b"[", b"{"))) > DEEP
        assert found == expected or is_too_deep, line[:300]


# ── what is declined ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_line_of_some_thousand_levels_is_no_row(decoder: Decoder[Any]) -> None:
    assert decoder(b'{"uuid":"a","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}") is None
