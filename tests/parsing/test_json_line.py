"""Whether a line's verdict is JSON.parse's, and the same parsed and followed by its brackets."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessrotate.parsing import json_line
from support import oracle
from support.examples import examples
from support.lines import BOUNDARY_LINE, any_lines, broken, candidate_lines

SHAPE: json_line.Shape = {
    "type": None,
    "subtype": None,
    "uuid": None,
    "timestamp": None,
    "compactMetadata": {"trigger": None, "preTokens": None},
    "x": list,
}


def followed(line: bytes, piece: int, monkeypatch: pytest.MonkeyPatch) -> json_line.Values | None:
    """Read a line as if it were a long one, in pieces of this many bytes."""
    with monkeypatch.context() as patch:
        patch.setattr(json_line, "SMALL", -1)
        pieces = [line[at : at + piece] for at in range(0, len(line), piece)]
        return json_line.values(pieces, len(line), SHAPE)


def parsed(line: bytes) -> json_line.Values | None:
    return json_line.values([line], len(line), SHAPE)


@pytest.fixture(scope="module")
def patching() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@given(any_lines(), st.integers(1, 64))
@examples(400)
@example(b'{"type":"\\ud83d\\ude00"}', 3)
@example(b'{"type":"\\ud83d"}', 1)
@example(b'{"type":"\\udc00x"}', 4)
@example(b'{"uuid":"' + b"\\u0061" * 128 + b'"}', 7)
@example(b'{"uuid":"' + b"\\u0061" * 129 + b'"}', 7)
@example(b'{"uuid":"' + b"\xf0\x9f\x99\x82" * 128 + b'"}', 5)
@example(b'{"uuid":999999999999999}', 2)
@example(b'{"uuid":-9999999999999999}', 2)
@example(b'{"uuid":-0}', 2)
@example(b'{"uuid":1E400,"type":-1e-999999999999999999999}', 6)
@example(b'{"compactMetadata":{"trigger":1},"compactMetadata":[{"trigger":2}]}', 6)
@example(b'{"type":{"type":"system"},"uuid":[{"uuid":"x"}]}', 6)
@example(b'{"x":{"x":[]}}', 6)
@example(b'{"x":[{"x":1}],"y":[]}', 6)
@example(b'{"x":' + b"[" * 900 + b"]" * 900 + b"}", 64)
@example(b"[]", 1)
def test_a_line_of_json_gives_the_same_values_parsed_and_followed(
    patching: pytest.MonkeyPatch, line: bytes, piece: int
) -> None:
    try:
        oracle.parse(line)
    except ValueError:
        return
    assert followed(line, piece, patching) == parsed(line)


_BEHIND = st.sampled_from([b"", b"\0" * 9, BOUNDARY_LINE, b"\0" * 9 + BOUNDARY_LINE])


@given(candidate_lines(), st.floats(0, 1, exclude_max=True), _BEHIND, st.integers(1, 64))
@examples(400)
@example(b'{"a":"\\n"}', 0.7, BOUNDARY_LINE, 3)
@example(b'{"a":"\\u1234"}', 0.7, BOUNDARY_LINE, 3)
@example(b"{}", 0.0, b"", 1)
def test_a_torn_line_is_no_record_whatever_stands_behind_it(
    patching: pytest.MonkeyPatch, line: bytes, share: float, behind: bytes, piece: int
) -> None:
    cut = int(len(line) * share)
    torn = line[:cut] + (behind if cut else b"")
    assert parsed(torn) is None
    assert followed(torn, piece, patching) is None


@pytest.mark.parametrize("text", [b"[1,]", b"NaN", b"tru", b'"\\u12G4"', b"00"])
def test_only_the_grammar_inside_of_brackets_is_not_looked_at_in_a_long_line(
    monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    line = BOUNDARY_LINE[:-1] + b',"y":%b}' % text
    assert parsed(line) is None
    assert followed(line, 9, monkeypatch) == parsed(BOUNDARY_LINE)


@given(any_lines())
@examples(400)
def test_the_verdict_on_a_line_is_that_of_a_whole_parse(line: bytes) -> None:
    try:
        found = oracle.parse(line)
    except ValueError:
        found = None
    values = parsed(line)
    assert (values is not None) == isinstance(found, dict)
    for key in ("type", "subtype", "uuid"):
        if values is not None and isinstance(found.get(key), str) and len(found[key]) <= 100:
            assert values[key] == found[key].encode("utf-8", "replace").decode()


@pytest.mark.parametrize(
    "line",
    [
        BOUNDARY_LINE.replace(b"155000", b"7" * 5_000),
        BOUNDARY_LINE.replace(b'"auto"', b"[" * 200_000 + b"]" * 200_000),
        BOUNDARY_LINE.replace(b'"auto"', b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        BOUNDARY_LINE.replace(b"auto", b"\xff" * 300_000),
        BOUNDARY_LINE.replace(b"auto", b"\\n" * 300_000),
        BOUNDARY_LINE[:-1] + b" " * 300_000 + b"}",
        BOUNDARY_LINE[:-1] + b',"n":[' + b"1," * 200_000 + b"1]}",
        BOUNDARY_LINE.replace(b"155000", b"1." + b"3" * 300_000 + b"e" + b"5" * 300_000),
    ],
    ids=["digits", "arrays", "objects", "bytes", "escapes", "space", "numbers", "fraction"],
)
def test_no_length_and_no_depth_of_a_value_hides_what_stands_beside_it(line: bytes) -> None:
    values = json_line.values([line], len(line), SHAPE)
    assert values is not None
    assert (values["type"], values["subtype"]) == ("system", "compact_boundary")
    assert values["uuid"] == "5a3c0e1e-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    "ending", [b"", b"]", b"}x", b'}"', b"},", b"}}", b'"}', b"\x0c}", b"}\0", b"}{}"], ids=repr
)
def test_a_long_line_that_does_not_end_as_json_is_no_record(ending: bytes) -> None:
    line = BOUNDARY_LINE[:-1] + b',"x":"' + b"a" * 400_000 + b'"' + ending
    assert json_line.values([line], len(line), SHAPE) is None


@pytest.mark.parametrize("text", [b"\0" * 4096, b"\x0c", b"a\x01"])
def test_a_long_line_with_a_hole_of_a_power_loss_is_no_record(text: bytes) -> None:
    line = BOUNDARY_LINE[:-1] + b',"x":"' + b"a" * 300_000 + text + b'"}'
    assert json_line.values([line], len(line), SHAPE) is None


def test_a_line_with_a_brace_too_few_is_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    line = b'{"type":"system","subtype":"compact_boundary","compactMetadata":{"trigger"}'
    assert followed(line, 9, monkeypatch) is parsed(line) is None


def test_a_short_text_of_escapes_is_told_in_a_long_line(monkeypatch: pytest.MonkeyPatch) -> None:
    line = BOUNDARY_LINE.replace(b"auto", b"\\ud83d\\ude00" * 100)
    assert followed(line, 9, monkeypatch) == parsed(line)
    assert "\U0001f600" * 100 in str(parsed(line))


# ── the client's own parser ──────────────────────────────────────────────────────────────────

NODE = """
const data = require('fs').readFileSync(0), verdicts = [];
for (let at = 0; at < data.length; ) {
  const size = data.readUInt32LE(at), line = data.subarray(at + 4, at + 4 + size);
  at += 4 + size;
  let found;
  try { found = JSON.parse(line.toString('utf8')); } catch { verdicts.push(null); continue; }
  const isObject = typeof found === 'object' && found !== null && !Array.isArray(found);
  verdicts.push(isObject && found.type === 'system' && found.subtype === 'compact_boundary');
}
console.log(JSON.stringify(verdicts));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node, the clients' runtime, is not here")
def test_the_verdict_on_a_line_is_that_of_node() -> None:
    collected: list[bytes] = [
        BOUNDARY_LINE.replace(b'"auto"', b"[" * 50_000 + b"]" * 50_000),
        BOUNDARY_LINE.replace(b"155000", b"7" * 5_000),
        BOUNDARY_LINE.replace(b"auto", b"x" * 500_000),
        BOUNDARY_LINE.replace(b"auto", b"\xed\xa0\x80" * 100_000),
        BOUNDARY_LINE.replace(b"auto", b"x" * 500_000) + b"\x0b",
    ]

    @given(st.one_of(candidate_lines(), broken(candidate_lines()), any_lines()))
    @examples(500, database=None)
    def collect(line: bytes) -> None:
        collected.append(line)

    collect()
    frames = b"".join(len(line).to_bytes(4, "little") + line for line in collected)
    said = subprocess.run(["node", "-e", NODE], input=frames, capture_output=True, check=True)
    for line, verdict in zip(collected, json.loads(said.stdout), strict=True):
        values = json_line.values([line], len(line), SHAPE) or {}
        ours = values.get("type") == "system" and values.get("subtype") == "compact_boundary"
        assert ours == bool(verdict), line[:300]


@pytest.mark.parametrize(
    ("value", "is_array"),
    [(b"[]", True), (b'[{"x":1},[]]', True), (b"{}", False), (b'"[]"', False), (b"null", False)],
)
@pytest.mark.parametrize("size", [0, 300_000])
def test_a_value_may_be_asked_whether_it_is_an_array(
    value: bytes, is_array: bool, size: int
) -> None:
    line = b'{"y":"%b","x":%b}' % (b"y" * size, value)
    assert json_line.values([line], len(line), {"x": list}) == {"x": is_array}
