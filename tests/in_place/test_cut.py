"""A live file that its client cut goes on behind a gap that is named, and nothing else is lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.archive import state
from sessrotate.reading.session import open_session
from support import command_line, homes, oracle, sets
from support.command_line import ID, Ended, assert_one_sentence, boundary, called, row
from support.homes import Home, snapshot
from support.trimming import trimmed

if TYPE_CHECKING:
    from pathlib import Path

DATA: Final = command_line.session(boundaries=2)
MODE: Final = b'{"type":"mode","sessionId":"s","mode":"default"}\n'
PRESERVED: Final = row(92)

MORE: Final = (
    row(90)
    + row(91)
    + PRESERVED
    + boundary(
        93,
        compactMetadata={
            "trigger": "auto",
            "preTokens": 1,
            "preservedMessages": {"uuids": [f"{92:08x}-0000-4000-a000-00000000000a"]},
        },
    )
    + row(94)
)
"""What is said behind a rotation: a compaction that preserves a row of those before it."""

AND_UNTIL: Final = "between 2026-03-01T10:00:06 and 2026-03-01T10:01:33"

GAP: Final = (
    f"The history {AND_UNTIL} (UTC) is incomplete: the client cut segment 2 out of its own file, "
    f"and kept the {len(PRESERVED)} B of it that a resume needs."
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Make a session that was rotated, went on, and was cut by its client."""
    made = homes.home(tmp_path, monkeypatch, MODE + DATA)
    made.rotate()
    made.append(MORE)
    cut(made)
    return made


def cut(home: Home) -> None:
    home.live.write_bytes(trimmed(home.live.read_bytes()))


def body(home: Home) -> bytes:
    """Return what stands behind the header."""
    return home.live.read_bytes().split(b"\n", 1)[1]


def allowed(home: Home) -> bytes:
    """Return what `stitch --allow-gaps` gives."""
    with state.opened(home.where) as found:
        return sets.whole(found, lambda _gap: None)


def conversation(home: Home) -> list[bytes]:
    with open_session(home.live) as session:
        return [record.line for record in session.conversation()]


ARCHIVED: Final = MODE + b"".join(oracle.bodies(DATA)[:-1])


def test_what_is_there_can_be_read_and_the_gap_is_named(home: Home) -> None:
    assert body(home).startswith(PRESERVED)
    before = snapshot(home.config)
    for words in (["read"], ["read", "--history"], ["export"], ["report"], ["list"]):
        ended = called(*words, *([] if words == ["list"] else [ID]))
        assert ended.code == 0, ended
        is_told = words in (["read", "--history"], ["export"])
        assert (GAP in ended.err) == is_told, ended
    whole = called("read", "--history", "--format", "jsonl", ID)
    assert whole.out.encode() == ARCHIVED + body(home)
    assert snapshot(home.config) == before


def test_stitching_it_has_to_be_allowed(home: Home) -> None:
    ended = called("stitch", ID)
    assert_one_sentence(ended, 74)
    assert ended.err.endswith("Pass --allow-gaps to stitch the rest.\n")
    ended = called("stitch", "--allow-gaps", ID)
    assert (ended.code, ended.out.encode()) == (0, ARCHIVED + body(home))
    assert GAP in ended.err


def test_doctor_and_verify_name_the_cause_and_what_prevents_it(home: Home) -> None:
    found = called("doctor", "--json").document()["findings"]
    assert [(one["kind"], one["session"]) for one in found] == [("cut", ID)]
    assert found[0]["detail"].startswith(GAP)
    assert "CLAUDE_CODE_TRANSCRIPT_LOCAL_GC=1 in the environment" in found[0]["detail"]
    assert "set the variable to `keep`" in found[0]["detail"]
    assert called("doctor").code == 1
    ended = called("verify", ID)
    assert ended.code == 1
    assert GAP in ended.out
    assert home.live.exists()
    assert "CLAUDE_CODE_TRANSCRIPT_LOCAL_GC=1" in ended.out
    assert "set the variable to `keep`" in ended.out


def test_it_is_rotated_behind_the_gap_and_resumed_the_same(home: Home) -> None:
    before, talk = allowed(home), conversation(home)
    home.rotate()
    assert allowed(home) == before
    assert conversation(home) == talk
    assert [problem.kind for problem in home.problems()] == ["cut"]
    assert GAP.replace(AND_UNTIL, "after 2026-03-01T10:00:06") in called("export", ID).err
    assert {*called("export", ID).out.splitlines()} == {*before.decode().splitlines()}
    assert [one["kind"] for one in called("doctor", "--json").document()["findings"]] == ["cut"]


def test_it_goes_on_and_is_rotated_and_cut_again(home: Home) -> None:
    history = ARCHIVED
    for number in range(3):
        history += body(home)[: body(home).rindex(boundary_line(body(home)))]
        home.rotate()
        assert allowed(home).startswith(history)
        home.append(MORE.replace(b"0-4000", b"%d-4001" % (number + 1)))
        cut(home)
        assert allowed(home) == history + body(home)
    assert [problem.kind for problem in home.problems()] == ["cut"] * 4


def boundary_line(data: bytes) -> bytes:
    return data[oracle.boundaries(data)[-1] :].split(b"\n", 1)[0]


def test_one_that_was_cut_twice_has_one_gap(home: Home) -> None:
    home.append(row(95) + boundary(96) + row(97))
    cut(home)
    assert len(home.problems()) == 1
    assert allowed(home) == ARCHIVED + body(home)
    home.rotate()
    assert len(home.problems()) == 1


def test_where_nothing_was_kept_the_gap_is_known_all_the_same(home: Home) -> None:
    home.append(row(95) + boundary(96) + row(97))
    home.live.write_bytes(
        home.live.read_bytes().split(b"\n", 1)[0] + b"\n" + boundary(96) + row(97)
    )
    assert home.problems()[0].detail.endswith("the client cut segment 2 out of its own file.")
    assert allowed(home) == ARCHIVED + boundary(96) + row(97)
    assert "has not been compacted since its client cut it." in called("rotate", ID).out
    assert "has not been compacted since its client cut it." in called("report", ID).out
    home.append(row(98) + boundary(99) + row(100))
    history = allowed(home)
    home.rotate()
    assert allowed(home) == history
    assert [problem.kind for problem in home.problems()] == ["cut"]


def test_its_manifest_is_made_again_with_the_gap_in_it(home: Home) -> None:
    home.rotate()
    (home.archive / "manifest.json").unlink()
    home.append(row(95) + boundary(96) + row(97))
    before = snapshot(home.archive)
    home.rotate()
    assert [problem.kind for problem in home.problems()] == ["cut"]
    assert before.items() <= snapshot(home.archive).items()


def refused(ended: Ended, why: str) -> None:
    assert_one_sentence(ended, 77)
    assert why in ended.err


def test_it_cannot_be_whole_again_and_says_why(home: Home) -> None:
    before = snapshot(home.config)
    why = "its client cut a part of the history out"
    refused(called("restore", ID), why)
    assert snapshot(home.config) == before
    home.rotate()
    refused(called("restore", ID), why)
    short = home.live.read_bytes()
    assert called("archive", ID).code == 0
    ended = called("restore", ID)
    assert (ended.code, why in ended.out) == (0, True)
    assert home.live.read_bytes() == short


def test_a_moved_session_finds_its_archive(home: Home) -> None:
    history = allowed(home)
    elsewhere = home.live.parent.with_name("-srv-elsewhere")
    elsewhere.mkdir()
    home.live.rename(elsewhere / home.live.name)
    ended = called("stitch", "--allow-gaps", ID)
    assert (ended.code, ended.out.encode()) == (0, history)


def test_a_fork_is_none_of_it(home: Home) -> None:
    other = ID.replace("5", "6")
    fork = home.live.with_name(f"{other}.jsonl")
    header = home.live.read_bytes().split(b"\n", 1)[0] + b"\n"
    fork.write_bytes(header + body(home).replace(ID.encode(), other.encode()))
    assert called("read", other).code == 0
    assert GAP not in called("read", "--history", other).err


def test_an_edited_compaction_is_no_cut(home: Home) -> None:
    home.rotate()
    data = home.live.read_bytes()
    at = data.index(b"compactMetadata")
    home.live.write_bytes(data[:at] + b"C" + data[at + 1 :])
    assert called("read", ID).code == 74


# ── at the compaction that it was rotated at ─────────────────────────────────────────────────


TITLE: Final = b'{"type":"custom-title","sessionId":"s","customTitle":"harbour"}\n'
FIRST: Final = row(555)


@pytest.fixture
def same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Make a rotated session that its client trimmed, which was not compacted since (2.1.287)."""
    made = homes.home(tmp_path, monkeypatch, TITLE + MODE + FIRST + DATA)
    made.rotate()
    made.append(row(90) + row(91))
    assert body(made).startswith(FIRST)  # the first prompt is carried, and goes with a trim
    cut(made)
    return made


def own(home: Home) -> bytes:
    """Return what stands in the live file from its last compaction on."""
    data = home.live.read_bytes()
    return data[oracle.boundaries(data)[-1] :]


EARLIER: Final = TITLE + MODE + FIRST + b"".join(oracle.bodies(DATA)[:-1])


def test_one_that_was_trimmed_at_the_same_compaction_is_whole(same: Home) -> None:
    assert MODE in own(same)  # the client's copies of settings stand behind the compaction now
    assert FIRST not in same.live.read_bytes()
    assert same.problems() == []
    assert same.stitched() == EARLIER + own(same)
    assert called("doctor", "--json").document()["findings"] == []
    for words in (["read"], ["read", "--history"], ["export"], ["report"], ["verify"], ["stitch"]):
        ended = called(*words, ID)
        assert (ended.code, "cut" in ended.err) == (0, False), words
    assert "has not been compacted since the last rotation." in called("report", ID).out


def test_it_goes_on_from_there_and_is_restored_whole(same: Home) -> None:
    same.append(row(95) + boundary(96) + row(97))
    history = EARLIER + own_from(same, 1)
    talk = conversation(same)
    same.rotate()
    assert same.stitched() == history
    assert conversation(same) == talk
    same.restore()
    assert same.live.read_bytes() == history


def own_from(home: Home, back: int) -> bytes:
    """Return what stands in the live file from one of its compactions on, the last being 0."""
    data = home.live.read_bytes()
    return data[oracle.boundaries(data)[-1 - back] :]


def test_it_is_put_away_and_comes_back(same: Home) -> None:
    history = EARLIER + own(same)
    assert called("archive", ID).code == 0
    assert called("restore", ID).code == 0
    assert same.stitched() == history


def test_it_can_be_restored_at_once(same: Home) -> None:
    history = EARLIER + own(same)
    assert called("restore", ID).code == 0
    assert same.live.read_bytes() == history


def test_a_line_that_is_not_archived_is_never_passed_over(same: Home) -> None:
    data = same.live.read_bytes()
    at = data.index(own(same))
    same.live.write_bytes(data[:at] + row(777) + data[at:])
    before = snapshot(same.config)
    for words in (["stitch"], ["read"], ["restore"], ["rotate"]):
        ended = called(*words, ID)
        assert ended.code in {74, 77}, words
        assert "the carried lines were changed" in ended.err
    assert snapshot(same.config) == before


def test_a_line_whose_segment_cannot_be_read_is_not_passed_over(same: Home) -> None:
    data = same.live.read_bytes()
    at = data.index(own(same))
    same.live.write_bytes(data[:at] + FIRST + data[at:])
    assert same.stitched() == EARLIER + own(same)
    same.segment(0).unlink()
    assert called("read", ID).code == 74


# ── any sequence ─────────────────────────────────────────────────────────────────────────────


@dataclass
class Life:
    """A session and what is known of its history, counted beside the code."""

    home: Home
    archived: bytes = b""
    number: int = 1000
    is_cut: bool = False
    opened: list[bytes] = field(default_factory=list)

    def say(self) -> None:
        self.number += 1
        self.home.append(row(self.number))

    def compact(self) -> None:
        self.number += 1
        self.home.append(boundary(self.number) + row(self.number + 1))
        self.number += 1

    def cut(self) -> None:
        data = self.home.live.read_bytes()
        if self.opened:
            self.is_cut = self.is_cut or boundary_line(data) != self.opened[-1]
            self.home.live.write_bytes(trimmed(data))

    def rotate(self) -> None:
        own = self.own()
        at = oracle.boundaries(own)
        if not at or (self.opened and boundary_line(own) == self.opened[-1]):
            return
        self.home.rotate()
        self.archived += own[: at[-1]]
        self.opened.append(boundary_line(own))
        self.is_cut = False

    def own(self) -> bytes:
        """Return what of the live file is history."""
        data = self.home.live.read_bytes()
        if not self.opened:
            return data
        return body(self.home) if self.is_cut else data[data.index(self.opened[-1]) :]


STEPS: Final = st.lists(st.sampled_from(["say", "compact", "cut", "rotate"]), max_size=16)


@given(steps=STEPS)
def test_whatever_happens_the_history_is_what_was_left_of_it(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        life = Life(homes.home(tmp_path_factory.mktemp("life"), patch, MODE + DATA))
        for step in steps:
            getattr(life, step)()
            assert allowed(life.home) == life.archived + life.own(), step
        kinds = {problem.kind for problem in life.home.problems()}
        assert kinds <= {"cut"}
