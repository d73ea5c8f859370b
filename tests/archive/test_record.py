"""The record of a session: what is written is read, and nothing else is one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sessrotate.archive import record
from sessrotate.archive.record import (
    UNKNOWN,
    AwayStep,
    Batch,
    Intent,
    Mark,
    Operation,
    PutAway,
    Record,
    Swap,
    Waiting,
)
from sessrotate.errors import DamagedError
from sessrotate.model import Boundary, SealedSegment, Segment, Span
from sessrotate.segments.manifest import Manifest
from sessrotate.system.digest import ZERO
from support import homes

if TYPE_CHECKING:
    from pathlib import Path

counts: Final = st.integers(0, 2**40)
digests: Final = st.text("0123456789abcdef", min_size=32, max_size=32).map("xxh3_128:{}".format)
marks: Final = st.builds(Mark, counts, digests)
texts: Final = st.none() | st.text(st.characters(blacklist_categories=["Cs"]), max_size=10)


@st.composite
def intents(draw: st.DrawFn) -> Intent:
    """Draw an intent that could be one of ours."""
    batch = None
    if draw(st.booleans()):
        start = 2**41 + draw(counts)  # behind the cut
        batch = Batch(Span(start, start + draw(st.integers(1, 2**20))), draw(counts))
    new = Mark(draw(st.integers(1, 2**40)), draw(digests))
    swap = Swap(draw(marks), new, draw(counts), draw(counts), draw(marks), batch)
    operation = draw(st.sampled_from(get_args(Operation)))
    count = 0 if operation == "restore" else draw(st.integers(1, 9))
    return Intent(operation, swap, draw(st.integers(0, 9)), count)


anything: Final = st.text(st.characters())  # surrogates too: a file's name need not be UTF-8
away: Final = st.builds(
    PutAway,
    st.sampled_from(get_args(AwayStep)),
    anything,
    st.text(st.characters(), max_size=64),
    st.booleans(),
)
times: Final = st.datetimes().map(lambda at: f"{at:%Y-%m-%dT%H:%M:%SZ}".rjust(20, "0"))
records: Final = st.builds(
    Record,
    st.text(max_size=9),
    st.just("") | st.from_regex(r"-[a-zA-Z0-9-]{0,40}", fullmatch=True),
    st.none() | intents(),
    st.none() | away,
    st.none() | st.sampled_from(["", UNKNOWN]) | times,
)


def recorded(begun: Intent) -> bytes:
    return record.dump(Record("s", "-p", begun))


def parsed(data: bytes) -> Intent | None:
    return record.parse(data, "s").intent


@given(records)
def test_what_is_written_is_read(told: Record) -> None:
    data = record.dump(told)
    assert record.parse(data, told.session) == told
    with pytest.raises(DamagedError):
        record.parse(data, f"{told.session}x")


SEGMENTS: Final = tuple(
    SealedSegment(
        Segment(
            n,
            Span(n * 10, n * 10 + 10),
            Boundary(n * 10, None, None, None, None) if n else None,
            None,
            None,
        ),
        ZERO,
        1,
        "plain",
    )
    for n in range(3)
)
LISTED: Final = Manifest("s", "claude", "numbered", 30, None, SEGMENTS)
MARK: Final = Mark(5, ZERO)
ROTATION: Final = Intent("rotate", Swap(MARK, MARK, 50, 60, MARK), 1, 2)
HEALING: Final = Intent("rotate", Swap(MARK, Mark(6, ZERO), 50, 60, MARK), 3)
RESTORATION: Final = Intent("restore", Swap(MARK, MARK, 50, 30, MARK), 3)


def damaged(begun: Intent) -> None:
    with pytest.raises(DamagedError, match=r"record\.json of the archive is damaged"):
        parsed(recorded(begun))


def test_an_intent_that_makes_no_sense_is_damage() -> None:
    for sound in (ROTATION, RESTORATION, HEALING):
        assert parsed(recorded(sound)) == sound
    # One that moves nothing must be told from what was there before.
    damaged(replace(HEALING, swap=replace(HEALING.swap, cut=0)))
    damaged(replace(HEALING, swap=replace(HEALING.swap, new=MARK)))
    damaged(replace(ROTATION, count=10**6))
    damaged(replace(RESTORATION, count=1))
    late = replace(ROTATION, swap=replace(ROTATION.swap, batch=Batch(Span(50, 51), 1)))
    assert parsed(recorded(late)) == late
    for span in (Span(50, 50), Span(51, 50), Span(49, 51)):
        damaged(replace(late, swap=replace(late.swap, batch=Batch(span, 1))))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("format", 2),
        ("more", 1),
        ("project", "../-p"),
        ("restored", "soon"),
        ("intent.operation", "prune"),
        ("intent.first", -1),
        ("intent.swap", None),
        ("intent.swap.cut", True),
        ("intent.swap.old.size", 2**64),
        ("intent.swap.tail.digest", "../x"),
        ("intent.swap.batch", []),
        ("away.standing", "gone"),
        ("away.used", "x" * 65),
        ("away.is_plain", 1),
    ],
)
def test_a_record_of_another_form_is_damage(path: str, value: object) -> None:
    away, restored = PutAway("archived", ""), "2026-03-01T10:00:00Z"
    data = record.dump(Record("s", "-p", ROTATION, away, restored))
    assert record.parse(data, "s").restored == restored
    fields = inner = json.loads(data)
    *outer, last = path.split(".")
    for key in outer:
        inner = inner[key]
    assert last in inner or last == "more"
    inner[last] = value
    with pytest.raises(DamagedError):
        record.parse(json.dumps(fields).encode() + b"\n", "s")


# ── what is told where there is no record to read ────────────────────────────────────────────


def an_archive(folder: Path, said: bytes | None, *files: str) -> Path:
    archive = folder / "archives" / "s"
    archive.mkdir(parents=True)
    if said is not None:
        (archive / "record.json").write_bytes(said)
    for file in files:
        path = archive / "archived" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(homes.packed(b"four"))
    return archive


@pytest.mark.parametrize(
    ("said", "files", "standing", "restored"),
    [
        (None, [], None, None),
        (None, ["agent-a.jsonl"], None, None),
        (None, ["s.jsonl"], "archived", None),
        (None, ["s.jsonl.sessrotate.zst", "agent-a.jsonl"], "archived", None),
        (b"{", [], None, UNKNOWN),
        (b"{", ["agent-a.jsonl"], "unarchiving", UNKNOWN),
        (b"{", ["s.jsonl"], "archived", None),
        (b"{", ["other.jsonl"], "unarchiving", UNKNOWN),
    ],
)
def test_where_no_record_says_it_the_files_tell(
    tmp_path: Path, said: bytes | None, files: list[str], standing: AwayStep | None, restored: str
) -> None:
    archive = an_archive(tmp_path, said, *files)
    found = record.told(archive)
    assert (found.session, found.restored, found.intent) == ("s", restored, None)
    assert (None if found.away is None else found.away.standing) == standing
    if said is None:
        assert record.read(archive) == Record("s")
    else:
        with pytest.raises(DamagedError):
            record.read(archive)


def test_a_record_that_can_be_read_counts_whatever_the_files_are(tmp_path: Path) -> None:
    said = Record("s", "-p", restored="", waiting=(Waiting(1, MARK, 2, 3),))
    archive = an_archive(tmp_path, record.dump(said), "s.jsonl")
    assert record.told(archive) == record.read(archive) == said


@pytest.mark.parametrize("link", ["archive", "archives", "archived"])
def test_nothing_is_told_from_behind_a_link(tmp_path: Path, link: str) -> None:
    said = None if link == "archived" else record.dump(Record("s", "-p", restored=""))
    archive = an_archive(tmp_path, said, "s.jsonl")
    at = {"archive": archive, "archives": archive.parent, "archived": archive / "archived"}[link]
    at.rename(tmp_path / "elsewhere")
    at.symlink_to(tmp_path / "elsewhere")
    assert record.told(archive) == Record("s")
    if link == "archived":
        assert record.away(archive, "s") is None


# ── what an intent says ──────────────────────────────────────────────────────────────────────


def test_an_intent_says_what_it_moves() -> None:
    for begun, moves_nothing in ((ROTATION, False), (HEALING, True), (RESTORATION, False)):
        assert begun.moves_nothing == moves_nothing
    assert ROTATION.moved(LISTED) == SEGMENTS[1:3]
    assert ROTATION.moved(None) == HEALING.moved(LISTED) == ()
    assert ROTATION.files("s") == ("s.1.jsonl.zst", "s.2.jsonl.zst")


def test_a_mark_is_of_all_pieces_and_of_their_order() -> None:
    whole = Mark.of(b"one two")
    assert Mark.of_pieces([b"one", b" ", b"two"]) == whole
    assert whole.size == 7
    assert Mark.of(b"two one") != whole


def test_what_no_archive_can_have_is_damage() -> None:
    most = replace(ROTATION, first=1_000_000 - ROTATION.count)
    assert parsed(recorded(most)) == most
    damaged(replace(most, first=most.first + 1))
    waits = Waiting(1, MARK, 2, 3, Batch(Span(5, 5), 0))
    sound = Record("s", waiting=(waits, Waiting(2, MARK, 2, 3)))
    assert record.parse(record.dump(sound), "s") == sound
    bad = replace(sound, waiting=(replace(waits, batch=Batch(Span(5, 4), 0)),))
    with pytest.raises(DamagedError):
        record.parse(record.dump(bad), "s")
