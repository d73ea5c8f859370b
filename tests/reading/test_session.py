"""A session's records are those of the stitched bytes, whatever holds them and at any moment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sessrotate import open_session, sessions
from sessrotate.clients.claude import reader
from sessrotate.errors import DamagedError, WrongUsageError
from sessrotate.reading.session import Session
from support import command_line, oracle
from support.command_line import ID, boundary, piped, row, write
from support.homes import Home

DATA = command_line.session(boundaries=3)
MORE = row(90) + boundary(91) + row(92)


def joined(session: Session) -> bytes:
    return b"".join(record.line + b"\n" * record.is_ended for record in session.history())


def check(path: Path | str, data: bytes) -> None:
    """Check a session against its bytes: all of them, segment by segment, and its boundaries."""
    with open_session(path) as session:
        assert joined(session) == data
        bodies = oracle.bodies(data)
        assert [info.index for info in session.segments] == list(range(len(bodies)))
        assert [info.bytes for info in session.segments] == [len(body) for body in bodies]
        for index, body in enumerate(bodies):
            found = list(session.segment(index))
            assert b"".join(r.line + b"\n" * r.is_ended for r in found) == body
            for record in found:
                assert body[record.offset :].startswith(record.line)
                assert record.segment == index
        told = [opening.offset for opening in session.boundaries]
        assert told == oracle.boundaries(data)


def test_a_session_that_was_never_split_is_read_from_its_file(home: Home) -> None:
    check(home.live, DATA)
    check(ID, DATA)


def test_a_rotated_session_is_read_from_its_archive_and_its_live_file(home: Home) -> None:
    home.rotate()
    for path in (home.live, home.archive, ID[:8]):
        check(path, DATA)
    home.append(MORE)
    check(home.live, DATA + MORE)
    home.rotate()
    check(home.live, DATA + MORE)


def test_a_session_whose_live_file_is_gone_is_read_from_its_archive(home: Home) -> None:
    home.rotate()
    tail = oracle.bodies(DATA)[-1]
    home.live.unlink()
    check(ID, DATA[: -len(tail)])


@pytest.mark.parametrize("options", [[], ["--layout", "linked"], ["--compress"]])
@pytest.mark.parametrize("manifest", ["kept", "lost"])
def test_a_folder_of_segments_is_read_with_and_without_its_manifest(
    tmp_path: Path, options: list[str], manifest: str
) -> None:
    source = write(tmp_path / f"{ID}.jsonl", DATA)
    assert piped("split", source, "--out", tmp_path / "set", *options).code == 0
    if manifest == "lost":
        (tmp_path / "set" / "manifest.json").unlink()
    with open_session(tmp_path / "set") as session:
        assert joined(session) == DATA
        assert len(session.boundaries) == 3


def test_one_segment_is_read_without_the_others(home: Home) -> None:
    home.rotate()
    assert len(home.segments()) == 3
    for file in home.segments():
        if file != home.segment(1):
            file.write_bytes(b"")
    with open_session(home.live) as session:
        assert b"".join(r.line + b"\n" for r in session.segment(1)) == oracle.bodies(DATA)[1]
        with pytest.raises(DamagedError, match="Segment 0"):
            list(session.segment(0))
        with pytest.raises(WrongUsageError, match="no segment 9"):
            list(session.segment(9))


def test_a_record_is_found_by_its_uuid(home: Home) -> None:
    home.rotate()
    uuid = json.loads(row(1))["uuid"]
    with open_session(home.live) as session:
        found = session.find(uuid)
        assert found is not None
        assert found.line + b"\n" == DATA.splitlines(keepends=True)[1]
        assert session.find("nowhere") is None


# ── what a resume would load ─────────────────────────────────────────────────────────────────


def of(number: int) -> str:
    return f"{number:08x}-0000-4000-a000-00000000000a"


PRESERVING = boundary(
    4,
    compactMetadata={
        "trigger": "auto",
        "preservedMessages": {"uuids": [of(2)], "allUuids": [of(2), of(99)]},
    },
)
BEFORE = [row(0), row(1, parentUuid=of(0)), row(2, parentUuid=of(1)), row(3, parentUuid=of(2))]
REST = [PRESERVING, row(5, parentUuid=of(4)), row(6, parentUuid=of(1))]


@pytest.mark.parametrize("is_rotated", [False, True])
def test_live_is_what_a_compaction_preserved_and_what_the_tail_goes_back_to(
    home: Home, is_rotated: bool
) -> None:
    home.live.write_bytes(b"".join([*BEFORE, *REST]))
    if is_rotated:
        home.rotate()
    with open_session(home.live) as session:
        found = list(reader.loaded(session))
    assert [record.line + b"\n" for record in found] == [*BEFORE[1:3], *REST]
    assert [record.is_carried for record in found] == [is_rotated] * 2 + [False] * 3


@pytest.mark.parametrize("is_rotated", [False, True])
@pytest.mark.parametrize(
    "metadata",
    [
        {"preservedMessages": {"uuids": 5, "allUuids": {"a": 1}}},
        {"preservedMessages": {"uuids": [5, None, [], {}], "allUuids": True}},
        {"preservedSegment": {"headUuid": 5, "tailUuid": [of(2)]}},
    ],
)
def test_live_takes_no_row_by_a_list_of_another_shape(
    home: Home, is_rotated: bool, metadata: dict[str, object]
) -> None:
    rest = [boundary(4, compactMetadata={"trigger": "auto", **metadata}), row(5, parentUuid=of(4))]
    home.live.write_bytes(b"".join([*BEFORE, *rest]))
    if is_rotated:
        home.rotate()
    with open_session(home.live) as session:
        assert [record.line + b"\n" for record in reader.loaded(session)] == rest


def test_live_of_a_compressed_folder_finds_them_in_older_segments(tmp_path: Path) -> None:
    source = write(tmp_path / f"{ID}.jsonl", b"".join([*BEFORE, *REST]))
    assert piped("split", source, "--out", tmp_path / "set", "--compress").code == 0
    with open_session(tmp_path / "set") as session:
        assert [record.line + b"\n" for record in reader.loaded(session)] == [*BEFORE[1:3], *REST]


def test_the_library_is_read_without_what_only_the_command_needs() -> None:
    program = (
        "import sys, sessrotate; sessrotate.open_session;"
        "print({'typer', 'rich', 'click'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"set()"


# ── what it is called: as in a list ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_rotated", [False, True])
def test_a_rotated_session_is_called_as_it_was(home: Home, is_rotated: bool) -> None:
    titles = [{"type": "custom-title", "customTitle": name, "sessionId": ID} for name in "ab"]
    told = [json.dumps(each).encode() + b"\n" for each in titles]
    first, *rest = oracle.bodies(DATA)
    home.live.write_bytes(b"".join([first, told[0], rest[0], told[1], *rest[1:]]))
    if is_rotated:
        home.rotate()
    with open_session(home.live) as session:
        assert str(session.title()) == "b"
        assert [each.title for each in sessions()] == [session.title()]


def test_a_title_far_from_either_edge_of_a_file_is_not_looked_for(home: Home) -> None:
    titled = {"type": "custom-title", "customTitle": "far", "sessionId": ID}
    far = b"".join(row(number) for number in range(1000, 2000))
    home.live.write_bytes(DATA + far + json.dumps(titled).encode() + b"\n" + far)
    with open_session(home.live) as session:
        assert session.title().source == "first prompt"
        assert [each.title for each in sessions()] == [session.title()]


def test_a_file_is_called_the_same_whatever_its_name_is(tmp_path: Path) -> None:
    titles = []
    for name in (ID, "session", "other"):  # a word that rows have in the names of their members
        path = tmp_path / name / f"{name}.jsonl"
        path.parent.mkdir()
        path.write_bytes(DATA)
        with open_session(path) as session:
            titles.append(session.title())
    assert titles[0].text
    assert titles == [titles[0]] * 3


def test_a_session_with_gaps_is_called_by_what_is_left(home: Home) -> None:
    home.rotate()
    home.segments()[1].unlink()
    with open_session(home.live, on_gap=lambda _detail: None) as session:
        assert session.title().source == "first prompt"
        assert [each.title for each in sessions()] == [session.title()]


@pytest.mark.parametrize("is_rotated", [False, True])
def test_a_session_without_a_title_is_called_by_its_first_prompt(
    home: Home, is_rotated: bool
) -> None:
    if is_rotated:
        home.rotate()
    first = json.loads(DATA.splitlines()[0])["message"]["content"]
    with open_session(home.live) as session:
        assert session.title().source == "first prompt"
        assert str(session.title()) == first
