"""Lines as they stand in session files, and as they should not: strategies for property tests."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

BOUNDARY = {
    "parentUuid": None,
    "type": "system",
    "subtype": "compact_boundary",
    "uuid": "5a3c0e1e-0000-4000-8000-000000000001",
    "timestamp": "2026-03-01T12:00:00.000Z",
    "compactMetadata": {"trigger": "auto", "preTokens": 155_000},
}

BOUNDARY_LINE = json.dumps(BOUNDARY, separators=(",", ":")).encode()


def as_lines(*rows: Any) -> bytes:
    """Return rows as a client writes them."""
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)


def row(number: int = 1, **fields: Any) -> bytes:
    """Return an ordinary record of a session as one line, without the newline."""
    record = {
        "type": "user",
        "sessionId": "s",
        "uuid": f"00000000-0000-4000-8000-{number:012d}",
        "timestamp": f"2026-03-01T12:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
        "message": {"role": "user", "content": f"message {number}"},
        **fields,
    }
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


def session(segments: int = 3, rows: int = 4) -> bytes:
    """Return a small session with so many segments."""
    lines = [row(number) for number in range(rows)]
    for cut in range(1, segments):
        lines.append(BOUNDARY_LINE.replace(b"000000000001", b"%012d" % cut))
        lines += [row(cut * 100 + number) for number in range(rows)]
    return b"\n".join(lines) + b"\n"


_KEYS = st.sampled_from(
    ["type", "subtype", "uuid", "timestamp", "compactMetadata", "trigger", "preTokens", "x", ""]
)
_TEXTS = st.one_of(
    st.sampled_from(["system", "compact_boundary", "auto", "microcompact_boundary", "2026"]),
    st.text(max_size=5),
    st.text(st.sampled_from('ab\\"\n\x7f\ud800é🙂'), max_size=200),
)
_SCALARS = st.one_of(
    _TEXTS,
    st.none(),
    st.booleans(),
    st.integers(-(10**17), 10**17),
    st.floats(allow_nan=False, allow_infinity=False),
)


def values(
    scalars: st.SearchStrategy[Any], keys: st.SearchStrategy[str], leaves: int, most: int = 3
) -> st.SearchStrategy[Any]:
    """Draw what JSON can say: these, lists of them, objects of at most so many by these keys."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=most),
        max_leaves=leaves,
    )


def _spaced(text: str) -> st.SearchStrategy[str]:
    space = st.text(st.sampled_from(" \t\r"), max_size=2)
    return st.builds(lambda before, after: before + text + after, space, space)


@st.composite
def json_texts(draw: st.DrawFn, depth: int = 3) -> str:
    """Draw a JSON text: any spacing, escapes, key order and duplicate keys."""
    kind = draw(st.sampled_from(["object", "object", "array", "scalar"])) if depth else "scalar"
    if kind == "scalar":
        text = json.dumps(draw(_SCALARS), ensure_ascii=draw(st.booleans()))
        return draw(_spaced(text))
    inner = [draw(json_texts(depth=depth - 1)) for _ in range(draw(st.integers(0, 3)))]
    if kind == "array":
        return draw(_spaced("[" + ",".join(inner) + "]"))
    keys = [json.dumps(draw(_KEYS), ensure_ascii=draw(st.booleans())) for _ in inner]
    members = ",".join(f"{key}:{value}" for key, value in zip(keys, inner, strict=True))
    return draw(_spaced("{" + members + "}"))


@st.composite
def candidate_lines(draw: st.DrawFn) -> bytes:
    """Draw an object that is a boundary, or nearly one, with other members around its own."""
    members = [
        draw(st.sampled_from(['"type":"system"', '"type" : "system"', '"type":"\\u0073ystem"'])),
        draw(st.sampled_from(['"subtype":"compact_boundary"', '"subtype" :\t"compact_boundary"'])),
    ]
    for _ in range(draw(st.integers(0, 4))):
        key = json.dumps(draw(_KEYS))
        members.append(f"{key}:{draw(json_texts(depth=2))}")
    members = draw(st.permutations(members))
    return ("{" + ",".join(members) + "}").encode("utf-8", "surrogatepass")


@st.composite
def broken(draw: st.DrawFn, lines: st.SearchStrategy[bytes]) -> bytes:
    """Draw a line that a few bytes were changed in, put into or taken out of."""
    line = bytearray(draw(lines))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(line)))
        change = draw(st.sampled_from(["insert", "delete", "replace"]))
        byte = draw(
            st.one_of(
                st.sampled_from(
                    b'"\\{}[]:,0123456789.eE+-tfn \t\r\x00\x0b\x0c\x1f\x7f\xff\xc3\xed'
                ),
                st.integers(0, 255),
            )
        )
        if change == "insert":
            line.insert(at, byte)
        elif at < len(line):
            if change == "delete":
                del line[at]
            else:
                line[at] = byte
    return bytes(line).replace(b"\n", b"")


def any_lines() -> st.SearchStrategy[bytes]:
    """Draw a line of any kind: records, near-boundaries, broken ones, plain bytes."""
    valid = st.one_of(
        candidate_lines(), json_texts().map(lambda text: text.encode("utf-8", "surrogatepass"))
    )
    return st.one_of(
        valid,
        broken(valid),
        st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")),
        st.sampled_from(
            [
                b"",
                b"\r",
                b"\xef\xbb\xbf" + BOUNDARY_LINE,
                BOUNDARY_LINE,
                BOUNDARY_LINE + b"\r",
                BOUNDARY_LINE + BOUNDARY_LINE,
                BOUNDARY_LINE[:-1],
                b" " + BOUNDARY_LINE,
                row(1, message=BOUNDARY_LINE.decode()),
                row(1, toolUseResult=BOUNDARY),
                BOUNDARY_LINE.replace(b"compact_b", b"microcompact_b"),
                BOUNDARY_LINE[:-1] + b',"type":"user"}',
                b'{"type":"user",' + BOUNDARY_LINE[1:],
                BOUNDARY_LINE.replace(b"auto", b"\xff\xfe\xed\xa0\x80"),
                BOUNDARY_LINE.replace(b"155000", b"NaN"),
                BOUNDARY_LINE.replace(b"155000", b"1" * 5000),
                BOUNDARY_LINE.replace(b'"auto"', b"[" * 2000 + b"]" * 2000),
            ]
        ),
    )


def sessions() -> st.SearchStrategy[bytes]:
    """Draw a whole file of such lines, mostly with a newline at its end."""
    return st.builds(
        lambda lines, end: b"\n".join(lines) + end,
        st.lists(any_lines(), max_size=12),
        st.sampled_from([b"\n", b"\n", b"", b"\r\n"]),
    )
