"""A session that goes on from an archived row gets that back, and what stood before it."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate import doctor, fs
from sessrotate.clients.claude import loading
from sessrotate.errors import StorageError
from sessrotate.in_place import fleet, operations
from sessrotate.retention import prune, trash
from sessrotate.retention.policy import Policy
from sessrotate.segments import compressed
from support import homes
from support.command_line import ID, boundary, called, row, uuid_of
from support.homes import Home, refused, silent, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def linked(number: int, after: int | None, **fields: Any) -> bytes:
    return row(number, parentUuid=None if after is None else uuid_of(after), **fields)


def answer(number: int, after: int, name: str) -> bytes:
    """Return a part of an answer of the model."""
    message = {"id": name, "role": "assistant", "content": [{"type": "text", "text": "x"}]}
    return linked(number, after, type="assistant", message=message)


def result(number: int, after: int) -> bytes:
    content = [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]
    return linked(number, after, type="user", message={"role": "user", "content": content})


FIRST: Final = (
    linked(0, None),
    answer(1, 0, "m"),
    answer(2, 1, "m"),
    result(3, 1),  # of the call in row 1: the chain does not pass through it
    result(4, 2),
    linked(5, 4),
)
SECOND: Final = (boundary(6), linked(7, 6), linked(8, 7))
THIRD: Final = (boundary(9), linked(10, 9))
HISTORY: Final = b"".join((*FIRST, *SECOND, *THIRD))
REWOUND: Final = linked(11, 5) + linked(12, 11)
"""What a client writes that still has row 5, which was archived, and goes on from there."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = homes.home(tmp_path, monkeypatch, HISTORY)
    made.rotate()
    return made


def lines(home: Home) -> list[bytes]:
    """Return the lines of the live file behind its header."""
    return home.live.read_bytes().splitlines(keepends=True)[1:]


def header(home: Home) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(home.live.read_bytes().partition(b"\n")[0])
    return found


HEALED: Final = [*FIRST, *THIRD, *REWOUND.splitlines(keepends=True)]


NOW: Final = 1_800_000_000.0


def findings(kind: str) -> list[doctor.Finding]:
    return [found for found in doctor.findings() if found.kind == kind]


# ── what comes back ──────────────────────────────────────────────────────────────────────────


def test_the_ancestors_come_back_with_the_other_calls_and_their_results(home: Home) -> None:
    home.append(REWOUND)
    before, archived = header(home), home.archived()
    done = home.rotate()
    assert lines(home) == HEALED
    assert (done.plan.heals, done.pending) == (True, None)
    assert done.plan.bytes_after == home.live.stat().st_size
    assert home.archived() == archived
    assert home.stitched() == HISTORY + REWOUND
    assert not home.problems()
    told = ("parentFile", "rootSession", "segmentIndex", "timestamp")
    assert [header(home)[name] for name in told] == [before[name] for name in told]


def test_what_came_back_once_is_there_and_nothing_more_is_to_be_done(home: Home) -> None:
    home.append(REWOUND)
    home.rotate()
    before = snapshot(home.config)
    assert home.rotate().plan.live is None
    assert snapshot(home.config) == before


def test_a_later_rotation_does_without_what_came_back(home: Home) -> None:
    home.append(REWOUND)
    home.rotate()
    more = boundary(13) + linked(14, 13)
    home.append(more)
    home.rotate()
    assert lines(home) == [FIRST[0], *more.splitlines(keepends=True)]
    assert home.stitched() == HISTORY + REWOUND + more
    assert not home.problems()


def test_rows_behind_the_compaction_bring_back_the_rest_of_their_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A compaction that came into an answer; the branch is what has the archive looked at.
    prompt, mine = linked(20, None), answer(11, 10, "m")
    home = homes.home(tmp_path, monkeypatch, prompt + HISTORY)
    home.rotate()
    home.append(mine + linked(12, 0))
    home.rotate()
    assert lines(home) == [prompt, *FIRST[:5], *THIRD, mine, linked(12, 0)]


def prune_oldest(home: Home, keep: int = 1) -> None:
    """Move the oldest segments to the trash, all but so many."""
    planned = prune.prepare([home.where], Policy(keep_last=keep), NOW, lambda _done: None)
    assert all(each.error is None for each in prune.execute(planned, 1))


def test_rows_in_the_trash_come_back(home: Home) -> None:
    prune_oldest(home)
    assert not home.segment(0).exists()
    home.append(REWOUND)
    home.rotate()
    assert lines(home) == HEALED


def free_oldest(home: Home, keep: int = 1) -> None:
    """Have the oldest segments be freed, all but so many."""
    prune_oldest(home, keep)
    trash.empty(home.where, 0, NOW + 1, 1)


def damage_oldest(home: Home) -> None:
    oldest = home.segment(0)
    homes.rewrite(oldest, homes.content(oldest).replace(b"row 0 ", b"raw 0 "))


def free_a_part(home: Home) -> None:
    """Leave row 11, and not row 5, from which it goes on."""
    home.append(linked(11, 5) + boundary(13) + linked(14, 13))
    home.rotate()
    free_oldest(home, keep=2)


def leave_all(home: Home) -> None:
    """Free nothing: what is missing was never there."""
    assert len(home.segments()) == 2


@pytest.mark.parametrize(
    ("change", "more", "lacks"),
    [
        pytest.param(free_oldest, REWOUND, 0, id="they were freed"),
        pytest.param(damage_oldest, REWOUND, 0, id="their segment is damaged"),
        pytest.param(free_a_part, linked(15, 11), 0, id="a part of them was freed"),
        pytest.param(leave_all, linked(11, 99), None, id="they are nowhere"),
    ],
)
def test_where_rows_do_not_come_back_the_session_stays_as_it_is(
    home: Home, change: Callable[[Home], None], more: bytes, lacks: int | None
) -> None:
    change(home)
    home.append(more)
    before = snapshot(home.config)
    assert fleet.may_be_rewound(home.live)
    done = home.rotate()
    assert (done.plan.live, done.plan.lacks, done.refusal) == (None, lacks, None)
    assert snapshot(home.config) == before
    assert not findings("rewound")


FREED: Final = (
    "Nothing to cut: {} has not been compacted since the last rotation. A row in it continues one "
    "that may have been in segment 0, which is gone or cannot be read: a resume lacks the rows "
    "before it."
)


@pytest.mark.parametrize("command", [("rotate",), ("rotate", "--dry-run"), ("split", "--in-place")])
def test_a_command_says_which_segment_was_freed_that_a_resume_would_need(
    home: Home, command: tuple[str, ...]
) -> None:
    session = home.live.stem
    free_oldest(home)
    assert "a resume lacks" not in called(*command, session).out
    home.append(REWOUND)
    before = snapshot(home.config)
    ended = called(*command, session)
    assert (ended.code, ended.err) == (0, "")
    assert FREED.format(session) in ended.out.splitlines()
    assert snapshot(home.config) == before


@pytest.mark.parametrize("command", [("run", "--json"), ("rotate", "--all", "--dry-run")])
def test_so_it_is_said_of_one_among_all(home: Home, command: tuple[str, ...]) -> None:
    free_oldest(home)
    home.append(REWOUND)
    before = snapshot(home.config / "projects")
    ended = called(*command)
    assert ended.code == 0
    assert "in segment 0, which is gone" in ended.out
    assert snapshot(home.config / "projects") == before


def test_what_cannot_be_replaced_is_refused(home: Home) -> None:
    home.append(REWOUND)
    (home.config.parent / "backup.jsonl").hardlink_to(home.live)
    refused(home, "another name")


# ── who heals ────────────────────────────────────────────────────────────────────────────────


def test_a_session_that_needs_nothing_is_passed_over_by_its_live_file_alone(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.append(linked(11, 10))
    monkeypatch.setattr(compressed, "sealed", None)
    assert not fleet.may_be_rewound(home.live)
    assert fleet.to_heal(fleet.not_plain()) == []
    assert home.rotate().plan.live is None


def test_a_session_that_was_never_rotated_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = homes.home(tmp_path, monkeypatch, HISTORY + linked(11, 99))
    assert not fleet.may_be_rewound(fresh.live)


def test_rotating_all_heals_what_is_too_small_to_be_rotated(home: Home) -> None:
    home.append(REWOUND)
    assert fleet.sessions(1 << 20) == []
    (found,) = fleet.sessions(1 << 20, or_rewound=True)
    assert found == (home.where, home.live.stat().st_size)
    assert fleet.to_heal(fleet.not_plain()) == [found]
    assert fleet.sessions(found[1], or_rewound=True) == [found]
    (became,) = fleet.rotate(
        [found], lambda where: operations.rotate_session(where, 1, silent), live=False
    )
    assert (became.result, became.size) == ("done", home.live.stat().st_size)
    assert became.freed == found[1] - became.size < 0
    assert lines(home) == HEALED


def test_doctor_names_a_session_that_needs_it_until_it_is_healed(home: Home) -> None:
    assert not findings("rewound")
    home.append(REWOUND)
    (found,) = findings("rewound")
    assert found.path == str(home.live)
    assert f"sessrotate rotate {home.live.stem}" in found.detail
    home.rotate()
    assert not findings("rewound")


def test_a_dry_run_shows_what_would_come_back_and_changes_nothing(home: Home) -> None:
    home.append(REWOUND)
    before = snapshot(home.config)
    planned = operations.plan_session(home.where, silent).plan
    assert snapshot(home.config) == before
    assert planned.live is not None
    assert {entry.segment for entry in planned.live.carried} == {0}
    done = home.rotate()
    assert done.plan.live == planned.live
    assert done.plan.bytes_after == planned.bytes_after


# ── whatever comes in between ────────────────────────────────────────────────────────────────


def test_a_full_disk_leaves_the_session_as_it_was(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.append(REWOUND)
    before = snapshot(home.config)
    with monkeypatch.context() as patch:
        patch.setattr(fs.Draft, "append", homes.failing(errno.ENOSPC))
        with pytest.raises(StorageError):
            home.rotate()
    assert snapshot(home.config) == before
    home.rotate()
    assert lines(home) == HEALED


# ── a branch that was there before ───────────────────────────────────────────────────────────


PLAIN: Final = boundary(20)
LARGE: Final = linked(19, 5, pad="x" * 6_000_000)
PRESERVING: Final = boundary(
    6, compactMetadata={"preservedSegment": {"headUuid": uuid_of(1), "anchorUuid": uuid_of(7)}}
)
CROSSING: Final = (
    *FIRST,
    *SECOND,
    LARGE,
    PLAIN,
    linked(21, 20),
    linked(22, 3),  # goes on from the first segment; of a file this large clients lose that
    linked(23, 22),
)


def test_a_branch_that_clients_had_lost_before_is_not_brought_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes.home(tmp_path, monkeypatch, b"".join(CROSSING))
    home.rotate()
    before = home.live.read_bytes()
    assert linked(3, 1) not in before
    assert not fleet.may_be_rewound(home.live)
    assert home.rotate().plan.live is None
    home.append(linked(24, 23))
    assert home.rotate().plan.live is None
    assert home.live.read_bytes() == before + linked(24, 23)
    assert not [*doctor.findings()]


@pytest.mark.parametrize(
    ("first", "compaction", "is_lost"),
    [
        pytest.param(FIRST, SECOND[0], False, id="small"),
        pytest.param((*FIRST, LARGE), SECOND[0], True, id="over 5 MiB, with what is archived"),
        pytest.param(FIRST, PRESERVING, True, id="plain behind one that preserved rows"),
    ],
)
def test_what_clients_would_not_load_of_the_whole_file_is_not_brought_back_either(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: tuple[bytes, ...],
    compaction: bytes,
    is_lost: bool,
) -> None:
    whole = b"".join((*first, compaction, *SECOND[1:], *THIRD))
    home = homes.home(tmp_path, monkeypatch, whole)
    home.rotate()
    home.append(REWOUND)
    assert fleet.may_be_rewound(home.live)
    assert bool(findings("rewound")) != is_lost
    before = home.live.read_bytes()
    assert (home.rotate().plan.live is None) == is_lost
    assert (home.live.read_bytes() == before) == is_lost
    assert home.stitched() == whole + REWOUND


@pytest.mark.parametrize("is_large", [False, True])
def test_a_later_rotation_knows_how_large_the_whole_file_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    large = (LARGE,) if is_large else ()
    home = homes.home(tmp_path, monkeypatch, b"".join((*FIRST, *large, *SECOND)))
    home.rotate()
    home.append(b"".join((*THIRD, linked(11, 8), linked(12, 11))))
    done = home.rotate()
    carried = {linked(8, 7), linked(7, 6)} & {*lines(home)}
    assert done.plan.segments
    assert bool(carried) != is_large


def test_what_an_old_client_goes_back_to_in_a_large_session_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = linked(5, 4, pad="x" * 6_000_000)
    rows = (*FIRST[:-1], large, *SECOND, boundary(9, version="2.0.28"), THIRD[1])
    old = b"".join(rows)
    home = homes.home(tmp_path, monkeypatch, old)
    home.rotate()
    home.append(REWOUND)
    refused(home, "clients from 2.1.80 on have lost that branch")
    (said,) = findings("rewound")
    assert "have lost that branch. Wait for the session's next compaction" in said.detail
    assert f"`sessrotate restore {ID}` gives the whole file" in said.detail


# ── what clients would not load of the whole ─────────────────────────────────────────────────


@pytest.fixture
def large(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Have a session count as one of which clients load nothing from before its compaction."""
    monkeypatch.setattr(loading, "SMALL_FILE", 100)
    assert lines(home)[0] == FIRST[0]
    home.append(linked(11, 0) + linked(12, 11))
    return home


def test_the_first_prompt_goes_where_a_resume_would_go_on_from_it(large: Home) -> None:
    (found,) = findings("rewound")
    assert "a resume has one prompt too many: `sessrotate rotate" in found.detail
    planned = called("rotate", "-n", ID)
    assert (planned.code, "Would take the first prompt of" in planned.out) == (0, True)
    history = large.stitched()
    ended = called("rotate", ID)
    assert ended.out.startswith(f"Took the first prompt of {ID} out of the live file, which went ")
    assert lines(large) == [*THIRD, linked(11, 0), linked(12, 11)]
    assert large.stitched() == history
    assert not large.problems()
    assert findings("rewound") == []
    assert "Nothing to cut" in called("rotate", ID).out


def test_a_run_takes_it_out_and_only_once(large: Home) -> None:
    ended = called("run")
    assert ended.out.startswith("Healed 1 session")
    assert FIRST[0] not in large.live.read_bytes()
    before = snapshot(large.archive)
    assert called("run").out.startswith("Nothing to do")
    assert snapshot(large.archive) == before
    called("restore", ID)
    assert large.live.read_bytes() == HISTORY + linked(11, 0) + linked(12, 11)
