"""What Codex's files are recognised by, where they are, and what is a boundary in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.codex import client as codex
from sessrotate.model import Boundary, Span
from sessrotate.parsing import json_line
from support.codex_sessions import as_line
from support.examples import examples
from support.lines import any_lines, broken, values

ID = "01a20069-3200-7812-9750-2eae4d402117"
FILE = f"rollout-2026-11-21T23-20-23-{ID}.jsonl"
TIME = "2026-11-21T23:21:36.687Z"
ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}


def line(kind: str = "compacted", ordinal: int | None = 84, **payload: Any) -> bytes:
    """Return a row as the client writes it, without the newline."""
    row: dict[str, Any] = {"timestamp": TIME}
    if ordinal is not None:
        row["ordinal"] = ordinal
    return as_line(row | {"type": kind, "payload": payload})


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def told(data: bytes, piece: int = 65536) -> Boundary | bool:
    return codex.boundary(cut(data, piece), Span(0, len(data)))


def oracle(data: bytes) -> Boundary | bool:
    """Say what a parser that reads all of a line says; True where it is no JSON object."""
    data = data.replace(b"[" * 2000, b"[").replace(b"]" * 2000, b"]")  # deeper than json goes
    try:
        row = json.loads(data.decode("utf-8", "replace"), parse_int=_integer, parse_constant=_fail)
    except ValueError:
        return True
    if not isinstance(row, dict):
        return True
    payload = row.get("payload")
    if row.get("type") != "compacted" or not isinstance(payload, dict):
        return False
    tokens: Any = payload
    for name in ("latest_token_usage_record", "usage", "input_tokens"):
        tokens = tokens.get(name) if isinstance(tokens, dict) else None
    time = row.get("timestamp")
    return Boundary(
        0,
        timestamp=time if time == TIME else None,
        trigger="with history" if "replacement_history" in payload else "without history",
        pre_tokens=tokens if type(tokens) is int and 0 <= tokens < 10**15 else None,
    )


def _integer(digits: str) -> int:
    return int(digits[:20])


def _fail(_name: str) -> None:
    raise ValueError


# ── boundaries ───────────────────────────────────────────────────────────────────────────────

TEXTS = st.text(st.sampled_from('ab"\\\n{}[]:,é🙂 '), max_size=60)
VALUES = values(st.none() | st.booleans() | st.integers(-(10**6), 10**6) | TEXTS, TEXTS, leaves=8)
USAGE = st.builds(
    lambda tokens: {"thread_id": ID, "usage": {"input_tokens": tokens, "output_tokens": 100}},
    st.integers(0, 10**9),
)


@st.composite
def compacted(draw: st.DrawFn) -> bytes:
    """Draw a compacted record of any version, its members mostly in the order of the client."""
    payload: dict[str, Any] = {"message": draw(TEXTS)}
    if draw(st.booleans()):
        payload["replacement_history"] = draw(st.lists(VALUES, max_size=4))
    if draw(st.booleans()):
        payload["window_number"] = draw(st.integers(0, 10**6))
        payload["latest_token_usage_record"] = draw(USAGE)
        payload["resume_metadata"] = {"turn": draw(TEXTS), "previous": draw(VALUES)}
    row: dict[str, Any] = {"timestamp": TIME}
    if draw(st.booleans()):
        row["ordinal"] = draw(st.integers(0, 10**9))
    kind = draw(st.sampled_from(["compacted"] * 4 + ["event_msg", "context_compacted"]))
    row |= {"type": kind, "payload": payload}
    if draw(st.integers(0, 3)) == 0:
        row = dict(draw(st.permutations(list(row.items()))))
        row["payload"] = dict(draw(st.permutations(list(payload.items()))))
    if draw(st.integers(0, 5)) == 0:
        row["more"] = draw(VALUES)
    separators = (",", ":") if draw(st.integers(0, 4)) else (", ", ": ")
    return json.dumps(row, separators=separators, ensure_ascii=draw(st.booleans())).encode()


@given(compacted(), st.integers(1, 400))
@examples(300)
def test_a_valid_line_is_told_by_its_ends_as_a_parser_tells_it(data: bytes, piece: int) -> None:
    assert told(data, piece) == oracle(data)


@given(any_lines() | broken(compacted()), st.integers(1, 100))
@examples(200)
def test_a_line_of_any_bytes_is_a_boundary_or_none_or_opaque(data: bytes, piece: int) -> None:
    found = told(data, piece)
    expected = oracle(data)
    # Only of what is no JSON nobody looks at the middle: it may be taken for what it was to be.
    if isinstance(found, Boundary):
        assert expected is not False
    else:
        assert found == expected


@pytest.mark.parametrize("size", [0, 1, 40, 70_000, 3_000_000])
@pytest.mark.parametrize("ordinal", [None, 84])
def test_a_compaction_of_any_size_is_a_boundary(size: int, ordinal: int | None) -> None:
    usage = {"thread_id": ID, "usage": {"input_tokens": 900, "output_tokens": 1}}
    long = {**ITEM, "content": [{"type": "input_text", "text": "x" * size}]}
    data = line(
        ordinal=ordinal,
        message="So far: …",
        replacement_history=[long],
        latest_token_usage_record=usage,
    )
    assert told(data) == Boundary(0, None, TIME, "with history", 900)
    assert told(line(ordinal=ordinal, message="s" * size)) == Boundary(
        0, None, TIME, "without history", None
    )


def test_the_middle_of_a_compaction_is_not_read() -> None:
    class Ends:
        """Pieces of which only the first two and the last two may be had."""

        def __iter__(self) -> Any:
            yield pieces[0]
            yield pieces[1]
            raise AssertionError

        def __reversed__(self) -> Any:
            yield pieces[-1]
            yield pieces[-2]
            raise AssertionError

    data = line(message="m" * 70_000, replacement_history=[ITEM] * 10_000)
    pieces = cut(data, 65536)
    found = codex.boundary(Ends(), Span(0, len(data)))
    assert found == Boundary(0, None, TIME, "with history", None)


@pytest.mark.parametrize(
    "data",
    [
        line("event_msg", type="context_compacted"),
        line("response_item", type="compacted"),
        line("response_item", type="message", quoted='{"type":"compacted","payload":{}}'),
        b'{"type":"compacted"}',
        b'{"type":"compacted","payload":[]}',
    ],
)
def test_what_only_names_a_compaction_is_none(data: bytes) -> None:
    assert told(data) is False


@pytest.mark.parametrize("end", [1, 2, 3, 30, 70_000], ids=lambda end: f"{end} bytes are missing")
def test_a_compaction_without_its_end_is_opaque(end: int) -> None:
    data = line(message="m", replacement_history=[{"type": "compaction", "x": "e" * 140_000}])
    assert told(data[:-end]) is True


def test_every_version_writes_the_marker_and_no_other_event_has_it() -> None:
    assert codex.MARKER in line()
    assert codex.MARKER not in line("event_msg", type="context_compacted")
    assert codex.MARKER not in as_line({"message": line().decode()})


# ── files ────────────────────────────────────────────────────────────────────────────────────

BARE = as_line({"id": ID, "timestamp": TIME, "instructions": None, "git": {"branch": "main"}})
META = line("session_meta", ordinal=0, id=ID, cwd="/srv/demo")


@pytest.mark.parametrize(
    ("head", "is_session"),
    [
        (META + b"\n", True),
        (line("session_meta", None, id=ID) + b"\n", True),
        (BARE + b"\n", True),
        (b'{"record_type":"state"}\n' + as_line(ITEM) + b"\n", True),
        (b"torn\x00\n" + META + b"\n", True),
        (META[:-1], False),
        (b"", False),
        (b"\n\n", False),
        (b'{"type":"user","sessionId":"s","uuid":"u","timestamp":"2026-11-21T23:21:36Z"}\n', False),
        (b'{"sessionId":"s","projectHash":"h","startTime":"t","kind":"main"}\n', False),
        (b'{"id":"u","timestamp":"t","type":"user","content":[]}\n', False),
        (b'[{"type":"session_meta","payload":{}}]\n', False),
        (as_line(ITEM) + b"\n", False),
        (b"\x28\xb5\x2f\xfd\x00", False),
    ],
)
def test_a_file_is_recognised_by_a_row(head: bytes, is_session: bool) -> None:
    assert codex.recognise(head, is_whole=True) == is_session


@pytest.mark.parametrize("first", [META, line("session_meta", None, id=ID), BARE])
def test_a_first_line_too_long_to_be_seen_is_taken_at_its_beginning(first: bytes) -> None:
    assert codex.recognise(first[:-1], is_whole=False)
    assert not codex.recognise(b'{"type":"user","message":"' + b"a" * 900, is_whole=False)


def test_a_sessions_id_is_the_uuid_in_its_files_name() -> None:
    assert codex.session_of(FILE) == ID
    assert codex.session_of(FILE + ".zst") == ID
    own = "01a20083-1801-7fb1-9750-2eae4d402117"
    both = FILE.replace(ID, f"{ID}_{own}")
    assert (codex.session_of(both), codex.root_of(both)) == (own, ID)
    assert codex.session_of(FILE.replace(".jsonl", " (2).jsonl")) == f"{ID} (2)"
    assert codex.session_of("fork-child.jsonl") == "fork-child"


def test_sessions_are_found_by_the_beginning_of_their_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CODEX_SESSIONS_DIR", raising=False)
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    days = tmp_path / "sessions" / "2026" / "11"
    other = FILE.replace("01a2", "02b2")
    wanted = [days / "20" / other, days / "21" / FILE, tmp_path / "archived_sessions" / FILE]
    for path in [
        *wanted,
        days / "21" / (FILE + ".zst"),
        days / "21" / "rollout-2026-11-21T23-20-23-x.jsonl",
        days / "21" / FILE.replace(".jsonl", ".0001.jsonl"),
        days / "segments" / FILE,
        tmp_path / "session_index.jsonl",
    ]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(META)
    (days / "22" / FILE).mkdir(parents=True)
    assert list(codex.sessions()) == wanted
    assert list(codex.sessions("02b2")) == wanted[:1]
    assert list(codex.sessions("ffff")) == []
    monkeypatch.setenv("CODEX_SESSIONS_DIR", str(days / "20"))
    assert list(codex.sessions()) == wanted[:1]
    (days / "20" / other).rename(days / "20" / (other + ".zst"))
    assert [path.name for path in codex.sessions()] == [other + ".zst"]


def test_a_time_is_the_rows_own() -> None:
    assert codex.timestamp([META], len(META)) == TIME
    item = as_line(ITEM | {"x": {"timestamp": TIME}})
    assert codex.timestamp([item], len(item)) is None
    assert json_line.values([item], len(item), {"type": None}) == {"type": "message"}
