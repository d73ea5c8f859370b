"""Whether `jsonl` has every record once, and of a session without copies every byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.claude import client as claude
from sessrotate.export import Scope, jsonl
from sessrotate.parsing import LONGEST
from sessrotate.reading.deduplicate import Copies, once
from sessrotate.reading.pieces import Holder, OpenSegment, SegmentInfo
from sessrotate.reading.session import Session, open_session
from support.command_line import ID, boundary, row, session, write
from support.examples import examples
from support.homes import Home
from support.homes import home as made_home

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures" / "claude").glob("*/projects/**/*.jsonl"))


def exported(path: Path) -> tuple[bytes, Copies]:
    with open_session(path) as opened:
        scope = Scope()
        return b"".join(jsonl.pieces(opened, scope)), scope.copies


def plain(data: bytes) -> bytes:
    """Return the lines of a whole session, each once: by a dictionary of what was parsed."""
    seen: dict[object, bytes] = {}
    for line in data.splitlines(keepends=True):
        seen.setdefault(json.loads(line).get("uuid") or line, line)
    return b"".join(seen.values())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return made_home(tmp_path, monkeypatch, session())


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parts[-4]}-{path.stem[:8]}")
def test_a_real_session_has_each_record_once(path: Path) -> None:
    data = path.read_bytes()
    out, copies = exported(path)
    assert out == plain(data)
    count = len(data.splitlines()) - len(out.splitlines())
    assert copies.left_out == count


def test_a_session_rotated_three_times_is_what_it_would_have_been(home: Home) -> None:
    whole = session()
    for number in range(3):
        home.rotate()
        more = boundary(900 + number) + row(950 + number)
        home.append(more)
        whole += more
    assert len(home.archived()) > 4
    assert exported(home.live) == (whole, Copies())
    assert home.stitched() == whole


def test_what_a_clone_repeats_of_its_parent_comes_once(home: Home) -> None:
    parent = session()
    again = [json.loads(line) | {"slug": "other-bytes"} for line in parent.splitlines()]
    copy = b"".join(json.dumps(each).encode() + b"\n" for each in again)
    end = boundary(990) + row(999)
    home.live.write_bytes(parent + copy + end)
    home.rotate()
    count = len(again)
    assert exported(home.live) == (parent + end, Copies(count))


@pytest.mark.parametrize(
    "data",
    [
        row(0) + row(1)[:-1],
        row(0) + row(1)[:-20],
        row(0) + b"no json\n\n\x00\x00\n" + row(1),
        row(0)[:-9] + row(1) + row(1),
        row(0) + b'{"type":"user","x":"' + b"x" * LONGEST + b'"}\n' + row(1),
    ],
    ids=["no newline", "torn", "no json", "fused", "long"],
)
def test_whatever_is_no_copy_comes_out_as_it_went_in(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path / f"{ID}.jsonl", data)
    assert exported(path) == (data, Copies())


def test_a_line_that_is_longer_than_can_be_held_comes_once(tmp_path: Path) -> None:
    lines = [b'"%b%d"\n' % (b"x" * LONGEST, number) for number in (1, 2, 1)]
    path = write(tmp_path / f"{ID}.jsonl", row(0) + b"".join(lines))
    assert exported(path) == (row(0) + b"".join(lines[:2]), Copies(1))


def test_a_line_that_a_gap_cut_off_gets_a_newline() -> None:
    """As the last one of a segment may be that another tool wrote."""
    opened = in_memory(body(0, row(0)[:-1]), body(1, row(1)[:-1]))
    assert b"".join(jsonl.pieces(opened)) == row(0) + row(1)[:-1]


def in_memory(*segments: OpenSegment) -> Session:
    return Session(Path(), Holder(ID, claude, segments))


def body(index: int, *pieces: bytes) -> OpenSegment:
    info = SegmentInfo(index, sum(map(len, pieces)), None, None, None, "sealed")
    return OpenSegment(info, lambda: iter(pieces))


# ── lines that somebody damaged ──────────────────────────────────────────────────────────────


def first_copies(lines: list[bytes]) -> list[bytes]:
    """Return the first line with each uuid, and of all that is no row with one, of equal bytes."""
    seen: dict[object, bytes] = {}
    for line in lines:
        seen.setdefault(uuid_of(line) or line, line)
    return list(seen.values())


def uuid_of(line: bytes) -> str | None:
    text = line.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        found = json.loads(text, parse_constant=int)  # NaN: ValueError
    except ValueError:
        return None
    uuid = found.get("uuid") if isinstance(found, dict) else None
    return uuid if isinstance(uuid, str) else None


ROWS: Final = [
    b'{"type":"user","message":{"content":"a \\u00e9 \\" \xc3\xa9"},"uuid":"u1","parentUuid":null}',
    b'{"uuid":"u1","n":[1.5e3,-2,0,true],"sessionId":5,"x":{"uuid":"u2"}}',
    b'{"type":"mode","uuid":"u2","toolUseResult":{"uuid":"u1"},"timestamp":"2026-01-01T00:00:00Z"}',
    b'{"type":"mode","value":"no uuid"}',
]
DAMAGE: Final = [
    *(b'"', b"\\", b"\\x", b"\\u12", b"\\ud800", b"\\u0075", b"{", b"}", b"[", b"]", b",", b":"),
    *(b"\x00", b"\x1f", b"\t", b"\r", b"\n", b" ", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf"),
    *(b"0", b"-", b".", b"e", b"1e999", b"NaN", b"null", b'"uuid":"u2",', b',"uuid":7', b""),
]


@st.composite
def damaged_rows(draw: st.DrawFn) -> bytes:
    line = draw(st.sampled_from(ROWS))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(line)))
        line = line[:at] + draw(st.sampled_from(DAMAGE)) + line[at + draw(st.integers(0, 2)) :]
    return line


@given(st.lists(damaged_rows(), min_size=1, max_size=10), st.integers(0, 400), st.integers(0, 10))
@examples(1000)
def test_of_damaged_rows_the_first_copy_by_what_json_says_is_kept(
    some: list[bytes], cut: int, first: int
) -> None:
    older, newer = (
        b"".join(line + b"\n" for line in part) for part in (some[:first], some[first:])
    )
    opened = in_memory(body(0, older[:cut], older[cut:]), body(1, newer))
    kept = first_copies((older + newer).split(b"\n")[:-1])
    assert b"".join(jsonl.pieces(opened)) == b"".join(line + b"\n" for line in kept)
    assert [record.line for record in once(opened.history(), opened.key)] == kept
