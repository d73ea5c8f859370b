"""Whether `jsonl` has every record once, and of a session without copies every byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sessrotate.clients.claude import client as claude
from sessrotate.export import jsonl
from sessrotate.parsing.records import LONGEST
from sessrotate.reading.deduplicate import Copies
from sessrotate.reading.open_segments import OpenSegment, SegmentInfo
from sessrotate.reading.session import Session, open_session
from support.command_line import ID, boundary, row, session, write
from support.homes import Home
from support.homes import home as made_home

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures" / "claude").glob("*/projects/**/*.jsonl"))


def exported(path: Path) -> tuple[bytes, Copies]:
    with open_session(path) as opened:
        pieces = jsonl.pieces(opened)
        out = []
        while True:
            try:
                out.append(next(pieces))
            except StopIteration as ended:
                return b"".join(out), ended.value


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
    if "dup-2.1.300" in path.parts and not path.name.startswith("agent-"):
        assert 0 < copies.differing <= copies.left_out


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
    assert exported(home.live) == (parent + end, Copies(count, count))


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
    assert exported(path) == (row(0) + b"".join(lines[:2]), Copies(1, 0))


def test_a_line_that_a_gap_cut_off_gets_a_newline() -> None:
    """As the last one of a segment may be that another tool wrote."""

    def body(index: int, data: bytes) -> OpenSegment:
        info = SegmentInfo(index, len(data), None, None, None, "sealed")
        return OpenSegment(info, lambda: iter([data]))

    opened = Session(claude, ID, Path(), [body(0, row(0)[:-1]), body(1, row(1)[:-1])])
    assert b"".join(jsonl.pieces(opened)) == row(0) + row(1)[:-1]
