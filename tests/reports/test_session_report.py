"""Reports of sessions of every form against a count of the whole history, parsed."""

from __future__ import annotations

import json
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import generate_session
from sessrotate.reports import SessionReport, session_report
from sessrotate.reports.counting import CALLS, LARGEST, TOOLS, Counts
from sessrotate.retention import put_away
from support import report_oracle, sets
from support.command_line import ID, boundary, row, session, write
from support.homes import Home, content, home, on_disk, rewrite, snapshot
from support.lines import BOUNDARY_LINE

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures" / "claude").glob("*/projects/*/*.jsonl"))


def report(path: Path, *, kinds: bool = True) -> SessionReport:
    return session_report.of_session(path, lambda _done: None, kinds=Counts() if kinds else None)


def check(found: SessionReport, data: bytes) -> None:
    """Check all figures of a report with kinds against the history that it is of."""
    right = report_oracle.counted(data)
    contents = found.contents
    assert contents is not None
    assert {share.name: share.bytes for share in contents.kinds} == right.bytes
    assert {share.name: share.lines for share in contents.kinds} == right.lines
    assert {share.name: share.bytes for share in contents.tools} == right.tool_bytes
    assert {share.name: share.lines for share in contents.tools} == right.tool_lines
    copies = {share.name: (share.lines, share.bytes) for share in contents.copies}
    assert copies == ({"lines": (right.copies, right.copied)} if right.copies else {})
    assert (contents.copied_lines, contents.copied) == (right.copies, right.copied)
    largest = [(line.bytes, -line.offset) for line in contents.largest]
    assert largest == sorted(((size, -at) for size, at in right.sizes), reverse=True)[:LARGEST]
    for line in contents.largest:
        assert line.offset == found.segments[line.segment].start + line.within
    assert {day.day: day.bytes for day in found.growth} == right.days
    check_sums(found, data)
    assert sum(share.bytes for share in contents.kinds) == len(data)
    assert sum(share.lines for share in contents.kinds) == found.lines


def check_sums(found: SessionReport, data: bytes) -> None:
    assert (found.bytes, found.lines) == (len(data), len(data.splitlines()))
    assert [part.start for part in found.segments] == [
        sum(part.bytes for part in found.segments[:number]) for number in range(len(found.segments))
    ]
    for part in found.segments:
        assert part.lines == len(data[part.start : part.end].splitlines())
    assert sum(day.bytes for day in found.growth) == len(data)


def generated(images: int = 1) -> bytes:
    stream = BytesIO()
    made = generate_session.Options(size=1 << 20, boundaries=4, images=images)
    generate_session.generate(stream, made)
    return stream.getvalue()


# ── figures ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.parts[-4])
def test_the_figures_of_real_sessions_are_those_of_parsing_all(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    check(report(copy), path.read_bytes())
    check_sums(report(copy, kinds=False), path.read_bytes())


def test_the_figures_of_a_generated_session_are_those_of_parsing_all(tmp_path: Path) -> None:
    data = generated(images=2)
    check(report(write(tmp_path / "s.jsonl", data)), data)


def tool(identity: str, name: str, **fields: Any) -> bytes:
    call = {"type": "tool_use", "id": identity, "name": name, "input": {"a": "b"}}
    message = {"role": "assistant", "content": [call]}
    return row(1, **{"uuid": f"c{identity}", "type": "assistant", "message": message, **fields})


def result(identity: str, content: object = "x" * 50) -> bytes:
    block = {"tool_use_id": identity, "type": "tool_result", "content": content}
    return row(2, uuid=f"r{identity}", message={"role": "user", "content": [block]})


PICTURE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 400},
}

ODD = b"".join(
    [
        b'{"type":"mode","mode":"normal"}\n',
        *(b"\n", b"no JSON\n", b'{"torn":"\n', b"[1]\n", b'{"x":1}\n', b"\0\0\n", b"no JSON\n"),
        row(1),
        *(result("late"), tool("t1", "Bash"), result("t1"), result("never")),
        *(
            tool("t2", "Read"),
            result("t2", [PICTURE]),
            result("t2", [{"type": "text", "text": ""}]),
        ),
        row(1, message={"role": "user", "content": [{"type": "text", "text": "see"}, PICTURE]}),
        row(3, uuid="many", message={"role": "user", "content": []}),
        row(3, uuid="none", message=None),
        *(tool("late", "Grep"), result("late"), row(1, timestamp="2026-03-03T00:00:00.000Z")),
        boundary(9, uuid="cut", timestamp="2026-03-04T10:00:00.000Z"),
        *(
            row(1),
            tool("t1", "Edit", uuid="other"),
            result("t1"),
            b'{"type":"mode","mode":"normal"}\n',
        ),
        b'{"type":"user","message":{"role":"user","content":"an end without newline"}}',
    ]
)


def test_the_figures_of_an_odd_session_are_those_of_parsing_all(tmp_path: Path) -> None:
    check(report(write(tmp_path / "s.jsonl", ODD)), ODD)


def test_a_result_is_of_the_tool_that_was_called_before_it(tmp_path: Path) -> None:
    data = tool("a", "Bash") + result("a") + result("b") + tool("b", "Read")
    contents = report(write(tmp_path / "s.jsonl", data)).contents
    assert contents is not None
    assert {share.name for share in contents.tools} == {"Bash", "unknown tool"}


def test_only_so_many_calls_and_names_of_tools_are_kept(tmp_path: Path) -> None:
    many = [tool(f"t{number}", f"tool {number}") for number in range(CALLS)]
    many += [tool("t1", "tool 1"), tool("t", "tool 1")]  # the first is forgotten, a repeated not
    many += [tool("l", "n" * 9000), result("l")]
    seen = [result("t0"), result("t1"), result(f"t{TOOLS}")]
    contents = report(write(tmp_path / "s.jsonl", b"".join(many + seen))).contents
    assert contents is not None
    names = {share.name: share.lines for share in contents.tools}
    assert names == {"unknown tool": 1, "tool 1": 1, "other tools": 2}


def test_a_line_of_many_megabytes_is_counted_whole_and_under_one_kind(tmp_path: Path) -> None:
    big = {**PICTURE["source"], "data": "QUJD" * (3 << 20)}  # type: ignore[dict-item] # it is a dict
    seen = row(1, message={"role": "user", "content": [{**PICTURE, "source": big}]})
    given = result("t1", "word " * (2 << 20))
    data = tool("t1", "Bash") + seen + given + seen
    contents = report(write(tmp_path / "s.jsonl", data)).contents
    assert contents is not None
    assert {share.name: share.bytes for share in contents.kinds} == {
        "images": 2 * len(seen),
        "tool results": len(given),
        "tool calls": len(tool("t1", "Bash")),
    }
    assert contents.copied == len(seen)


def test_two_lines_that_differ_far_behind_their_beginning_are_no_copies(tmp_path: Path) -> None:
    long = "word " * (2 << 20)
    one, other = (f'{{"type":"mode","mode":"{long}{number}"}}\n' for number in (1, 2))
    contents = report(write(tmp_path / "s.jsonl", row(1) + one.encode() + other.encode())).contents
    assert contents is not None
    assert contents.copied_lines == 0


# ── every form of a session ──────────────────────────────────────────────────────────────────


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return home(tmp_path, monkeypatch, generated())


def test_a_rotated_session_has_the_figures_that_it_had(place: Home) -> None:
    data = place.live.read_bytes()
    place.rotate()
    place.append(row(77))
    data += row(77)
    before = snapshot(place.config)
    found = report(place.live)
    check(found, data)
    assert snapshot(place.config) == before
    assert found.live_bytes == place.live.stat().st_size
    assert [part.state for part in found.segments] == ["sealed"] * 4 + ["live"]
    check_sums(report(place.live, kinds=False), data)


def test_without_kinds_no_archived_segment_is_read(place: Home) -> None:
    place.rotate()
    whole = report(place.live, kinds=False)
    segment = place.segment(2)
    segment.write_bytes(b"x" * segment.stat().st_size)
    assert report(place.live, kinds=False) == whole


def test_a_damaged_segment_is_told_and_not_counted(place: Home) -> None:
    data = place.live.read_bytes()
    place.rotate()
    whole = report(place.live, kinds=False)
    segment = place.segment(2)
    rewrite(segment, content(segment)[:-2] + b"!\n")
    found = report(place.live)
    assert "Segment 2" in str(found.segments[2].problem)
    assert [part.state for part in found.segments].index("absent") == 2
    gone = whole.segments[2]
    left = data[: gone.start] + data[gone.end :]
    assert found.contents is not None
    assert sum(share.bytes for share in found.contents.kinds) == found.bytes == len(left)
    assert {share.name: share.bytes for share in found.contents.kinds} == report_oracle.counted(
        left
    ).bytes
    assert [part.start for part in found.segments] == [part.start for part in whole.segments]


def test_a_missing_segment_is_told_without_reading(place: Home) -> None:
    place.rotate()
    place.segment(1).unlink()
    whole, found = report(place.live), report(place.live, kinds=False)
    assert found.segments[1].state == whole.segments[1].state == "absent"
    assert "missing" in str(found.segments[1].problem)
    assert [part.start for part in found.segments] == [part.start for part in whole.segments]
    assert whole.contents is not None
    assert {line.segment for line in whole.contents.largest} > {2}
    assert sum(share.bytes for share in whole.contents.kinds) == whole.bytes == found.bytes


@pytest.mark.parametrize("codec", ["plain", "zstd"])
@pytest.mark.parametrize("has_manifest", [True, False])
def test_a_folder_of_segments_has_the_figures_of_its_session(
    tmp_path: Path, codec: Any, has_manifest: bool
) -> None:
    data = generated()
    sets.made(write(tmp_path / f"{ID}.jsonl", data), tmp_path / "set", codec=codec)
    if not has_manifest:
        (tmp_path / "set" / "manifest.json").unlink()
    found = report(tmp_path / "set")
    check(found, data)
    assert found.would_free == 0
    assert found.command is None
    without = report(tmp_path / "set", kinds=False)
    check_sums(without, data)
    assert (without.title, without.folder) == (found.title, found.folder)
    assert found.folder == "/srv/demo/project"


def test_an_archive_whose_live_file_is_gone_is_reported(place: Home) -> None:
    place.rotate()
    tail = report(place.live).segments[-1].bytes
    data = place.stitched()[:-tail]
    place.live.unlink()
    for path in (place.live, place.archive):
        found = report(path)
        check(found, data)
        assert (found.live_bytes, found.would_free, found.command) == (None, 0, None)


# ── what a rotation would free ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kinds", [True, False])
def test_what_a_rotation_would_free_is_what_it_frees(place: Home, kinds: bool) -> None:
    for _ in range(2):
        found = report(place.live, kinds=kinds)
        assert found.command == f"sessrotate rotate {ID}"
        before = on_disk(place.config)
        place.rotate()
        freed = before - on_disk(place.config)
        assert abs(found.would_free - max(0, freed)) <= freed / 5 + 4 * 4096
        found = report(place.live, kinds=kinds)
        assert (found.would_free, found.command) == (0, None)
        assert "since the last rotation" in str(found.kept)
        place.append(row(500, uuid="n1") + boundary(501, uuid="b2", parentUuid=None) + row(502))


def test_a_session_that_was_never_compacted_has_nothing_to_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = report(home(tmp_path, monkeypatch, row(1) + row(2)).live, kinds=False)
    assert (found.would_free, found.command, found.live_tail) == (0, None, found.bytes)
    assert found.kept == "It has not been compacted yet."


def test_a_refused_rotation_frees_nothing_and_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = home(tmp_path, monkeypatch, session() + boundary(3))
    place.live.chmod(0o400)
    (place.live.parent / "other").hardlink_to(place.live)
    found = report(place.live, kinds=False)
    assert found.would_free == 0
    assert found.command is None
    assert "link" in str(found.kept)


def test_a_file_outside_of_a_client_s_folder_is_split_instead(tmp_path: Path) -> None:
    path = write(tmp_path / "my session.jsonl", session(boundaries=2))
    found = report(path, kinds=False)
    assert found.would_free > 0
    assert found.would_free == found.bytes - found.live_tail
    assert found.command == f"sessrotate split '{path}'"


def test_a_session_that_is_put_away_is_reported(place: Home) -> None:
    data = place.live.read_bytes()
    put_away.put_away(place.where, 0.2)
    found = report(place.live)
    check(found, data)
    assert found.would_free == 0


def test_a_boundary_keeps_its_trigger_and_tokens(tmp_path: Path) -> None:
    found = report(write(tmp_path / "s.jsonl", row(1) + BOUNDARY_LINE + b"\n"), kinds=False)
    told = found.segments[1].boundary
    assert told is not None
    assert (told.trigger, told.pre_tokens) == ("auto", 155_000)
    assert json.loads(BOUNDARY_LINE)["timestamp"] == found.segments[1].first_timestamp
