"""When a session is not rotated: every refusal names the way out, and nothing has changed."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.clients.claude import carried_lines
from sessrotate.errors import NotASessionError
from sessrotate.in_place import operations
from support import command_line, homes, oracle
from support.command_line import ID, append, boundary, called, row, uuid_of, write
from support.homes import Home, refused, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


DATA: Final = command_line.session(boundaries=2)
MORE: Final = row(90) + boundary(91) + row(92)


# ── what kind of file it is ──────────────────────────────────────────────────────────────────


def test_a_symlinked_live_file_is_refused(home: Home) -> None:
    real = home.config.parent / "real.jsonl"
    home.live.rename(real)
    home.live.symlink_to(real)
    refused(home, "symbolic link", "put the file itself in its place")


def test_a_hard_linked_live_file_is_refused_until_the_other_name_is_gone(home: Home) -> None:
    other = home.config.parent / "backup.jsonl"
    other.hardlink_to(home.live)
    refused(home, "another name", "hard link", "put a copy in its place")
    other.unlink()
    home.rotate()
    assert home.stitched() == DATA


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may chown")
def test_another_users_live_file_in_our_folder_is_refused_until_it_is_ours(home: Home) -> None:
    os.chown(home.live, 4711, -1)
    refused(home, f"another user, but its folder is yours: run `chown 0 {home.live}`, then try")
    os.chown(home.live, 0, -1)
    home.rotate()
    assert home.stitched() == DATA


def test_a_hard_linked_file_with_nothing_to_cut_is_no_trouble(home: Home) -> None:
    home.live.write_bytes(row(0) + row(1))
    (home.config.parent / "backup.jsonl").hardlink_to(home.live)
    before = snapshot(home.config)
    done = home.rotate()
    assert done.refusal is None
    assert done.plan.live is None
    assert snapshot(home.config) == before


SHARED_MEMORY: Final = Path("/dev/shm")


def other_file_system(folder: Path) -> Path:
    """Return a new folder on another file system than `folder`; skip where there is none."""
    if not SHARED_MEMORY.is_dir() or SHARED_MEMORY.stat().st_dev == folder.stat().st_dev:
        pytest.skip("there is no second file system here")
    made = SHARED_MEMORY / f"sessrotate-test-{os.getpid()}"
    made.mkdir()
    return made


def test_an_archive_on_another_file_system_is_refused(home: Home) -> None:
    elsewhere = other_file_system(home.config)
    try:
        # The locks are beside the archives, and are made before anything is looked at.
        (home.config / "sessrotate").symlink_to(elsewhere)
        refused(home, "a different file system", "make it a folder on the same one")
    finally:
        shutil.rmtree(elsewhere)


def test_all_reasons_are_told_at_once(home: Home) -> None:
    (home.config.parent / "backup.jsonl").hardlink_to(home.live)
    append(home.live, row(1, parentUuid="nowhere"))
    refused(home, "another name", "nowhere in the file")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_in_place_of_the_live_file_is_refused_and_not_waited_for(home: Home) -> None:
    home.live.unlink()
    os.mkfifo(home.live)
    refused(home, "a pipe", error=NotASessionError)


def test_a_folder_in_place_of_the_live_file_is_refused(home: Home) -> None:
    home.live.unlink()
    home.live.mkdir()
    refused(home, "a folder", error=NotASessionError)


def test_a_file_that_is_no_session_is_refused(home: Home) -> None:
    home.live.write_bytes(b"notes\n")
    refused(home, "not a session file", error=NotASessionError)


def test_a_live_file_that_is_gone_is_refused_with_the_way_to_bring_it_back(home: Home) -> None:
    home.rotate()
    home.live.unlink()
    refused(home, "is gone", "`restore` brings it back")


def test_what_no_manifest_lists_is_never_written_over(home: Home) -> None:
    home.rotate()
    number = len(home.segments())
    home.append(boundary(80) + row(81) + boundary(82) + row(83))
    stranger = write(home.segment(number), b"mine")
    refused(home, stranger.name, "which no manifest.json lists", "--unsafe-adopt")
    assert stranger.read_bytes() == b"mine"


# ── nothing to do ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "data", [b"", row(1) + row(2), row(1) + b"torn", boundary(1), boundary(1) + row(2)]
)
def test_there_is_nothing_to_cut_before_the_first_compaction(home: Home, data: bytes) -> None:
    home.live.write_bytes(data)
    before = snapshot(home.config)
    assert home.rotate().plan.live is None
    assert snapshot(home.config) == before


SIDE: Final = {"isSidechain": True, "agentId": "a1"}


# sirmalloc/ccstatusline PR #425: an agent's compaction in the session's own file.
def test_an_agents_compaction_is_none_of_the_conversations(home: Home) -> None:
    side = row(3, **SIDE) + boundary(4, **SIDE) + row(5, **SIDE)
    home.live.write_bytes(row(1) + row(2) + side + row(6))
    before = snapshot(home.config)
    assert home.rotate().plan.live is None
    assert snapshot(home.config) == before
    (entry,) = command_line.called("list", "--deep", "--json").document()
    assert (entry["boundaries"], entry["gain_bytes"]) == (0, 0)
    assert entry["live_tail_bytes"] == home.live.stat().st_size
    home.append(boundary(7) + row(8))
    assert home.rotate().plan.live is not None
    data = row(1) + row(2) + side + row(6) + boundary(7) + row(8)
    assert home.stitched() == data
    side = row(13, **SIDE) + boundary(14, **SIDE) + row(15, **SIDE)
    home.append(side)
    assert home.rotate().plan.live is None  # nothing of the conversation's since
    assert home.stitched() == data + side


def test_of_a_file_over_5_mib_clients_load_what_follows_any_compaction(home: Home) -> None:
    side = row(3, **SIDE) + boundary(4, **SIDE) + row(5, **SIDE)
    data = row(1, pad="p" * (5 << 20)) + row(2) + side + row(6)
    home.live.write_bytes(data)
    home.rotate()
    assert home.stitched() == data
    assert len(home.archived()) > 1


def test_there_is_nothing_to_cut_since_the_last_rotation(home: Home) -> None:
    home.rotate()
    home.append(row(70))
    before = snapshot(home.config)
    done = home.rotate()
    assert (done.plan.live, done.seconds, done.pending) == (None, None, None)
    assert snapshot(home.config) == before


def test_how_far_it_is_is_told_while_it_reads_and_while_it_plans(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carried_lines, "_TOLD", 100)
    told: list[int] = []

    @contextmanager
    def progress(_what: str, _total: int) -> Iterator[Callable[[int], None]]:
        yield told.append

    operations.plan_session(home.where, progress)
    planning = [done for done in told if done >= len(DATA) // 2]
    assert told == sorted(told)
    assert len(planning) > 5
    assert planning[-1] <= len(DATA)


# ── what a resume needs ──────────────────────────────────────────────────────────────────────


def test_a_compaction_that_is_not_complete_is_not_cut_at(home: Home) -> None:
    home.append(boundary(80)[:-1])
    refused(home, "not complete")


def test_a_torn_last_row_is_carried_as_it_is(home: Home) -> None:
    home.append(row(80)[:40])
    home.rotate()
    assert home.live.read_bytes().endswith(row(80)[:40])
    assert home.stitched() == DATA + row(80)[:40]


def test_a_row_that_continues_one_from_before_takes_it_along(home: Home) -> None:
    home.append(row(80, parentUuid=uuid_of(0)))
    home.rotate()
    lines = home.live.read_bytes().splitlines(keepends=True)
    assert lines[1] == row(0, pad="")
    assert oracle.is_boundary(lines[2].rstrip(b"\n"))
    assert home.stitched() == DATA + row(80, parentUuid=uuid_of(0))


def file_history(number: int) -> bytes:
    """Return what the client keeps of the files as they were at a row."""
    record = {"type": "file-history-snapshot", "messageId": uuid_of(number), "snapshot": {}}
    return json.dumps(record).encode() + b"\n"


ANCESTORS: Final = (
    (row(0), boundary(1), file_history(2), row(2, parentUuid=uuid_of(1))),
    (boundary(3), row(4, parentUuid=uuid_of(2)), file_history(5), row(5, parentUuid=uuid_of(4))),
)
"""Two segments; each row of the second goes back to one of the first."""

REWOUND: Final = (
    boundary(6) + row(16, parentUuid=uuid_of(6)),
    boundary(7),
    row(8, parentUuid=uuid_of(5)),
)
"""What a client writes whose user went back, behind the compactions, to what is archived."""


@pytest.fixture
def rewound(home: Home) -> Home:
    """Rotate a session; then its user goes back to what is archived."""
    home.live.write_bytes(b"".join(b"".join(part) for part in ANCESTORS) + REWOUND[0])
    home.rotate()
    home.append(b"".join(REWOUND[1:]))
    return home


def test_a_row_that_continues_an_archived_one_takes_it_along(rewound: Home) -> None:
    done = rewound.rotate()
    # Row 2 is in segment 1, the rows that go back to it are in segment 2, all sealed.
    live = rewound.live.read_bytes().splitlines(keepends=True)
    assert tuple(live[1:-2]) == (*ANCESTORS[0], *ANCESTORS[1][1:])
    assert tuple(live[-2:]) == REWOUND[1:]
    assert rewound.stitched() == b"".join(b"".join(part) for part in (*ANCESTORS, REWOUND))
    assert done.plan.bytes_after == len(b"".join(live))
    assert not rewound.problems()


@pytest.mark.parametrize("is_damaged", [False, True], ids=["gone", "damaged"])
def test_an_ancestor_in_a_segment_that_is_not_there_is_refused(
    rewound: Home, is_damaged: bool
) -> None:
    file = rewound.segment(1)
    away = file.rename(rewound.config.parent / "away")
    if is_damaged:
        file.write_bytes(away.read_bytes()[:-3])
    refused(rewound, "may be in segment 1", "Put it back from a backup")
    away.rename(file)
    assert rewound.rotate().plan.refusals == ()


def test_what_the_clean_up_would_spare_no_more_is_refused_and_can_be_put_away(home: Home) -> None:
    begun = row(0, pad="x" * 60_000).replace(b"{", b'{"entrypoint":"claude-desktop",', 1)
    home.live.write_bytes(begun + DATA)
    refused(home, "spares this session", "`archive` puts the whole session away")
    assert called("archive", ID).code == 0
    assert home.stitched() == begun + DATA


def test_an_archived_boundary_that_is_written_again_as_the_last_one_is_refused(home: Home) -> None:
    home.live.write_bytes(b"".join(b"".join(part) for part in ANCESTORS) + REWOUND[0])
    home.rotate()
    home.append(
        boundary(7) + row(8, parentUuid=uuid_of(7)) + boundary(3) + row(9, parentUuid=uuid_of(3))
    )
    refused(home, "copy of an earlier one. Wait for the session's next compaction")
    home.append(boundary(10) + row(11, parentUuid=uuid_of(10)))
    assert home.rotate().plan.refusals == ()


def test_the_archive_is_not_read_where_nothing_is_missing(home: Home) -> None:
    home.rotate()
    assert home.segments()
    for file in home.segments():
        file.write_bytes(b"")
    home.append(MORE)
    assert home.rotate().plan.refusals == ()


# ── what is written ──────────────────────────────────────────────────────────────────────────


def test_each_segment_is_in_a_file_of_its_own_and_the_newest_is_live(home: Home) -> None:
    home.rotate()
    home.append(MORE)
    home.rotate()
    bodies = oracle.bodies(DATA + MORE)
    for index, body in enumerate(bodies[:-1]):
        data = homes.content(home.segment(index))
        assert data.partition(b"\n")[2] == body if index else data == body
    first = DATA.splitlines(keepends=True)[0]  # by which lists know the session
    assert home.live.read_bytes().partition(b"\n")[2] == first + bodies[-1]
    assert home.archived() == {
        *(home.segment(index).name for index in range(len(bodies) - 1)),
        "manifest.json",
    }


def test_the_plan_says_beforehand_how_large_the_live_file_will_be(home: Home) -> None:
    done = home.rotate()
    assert done.plan.bytes_after == home.live.stat().st_size
    assert done.seconds is not None
    assert done.pending is None


@pytest.mark.parametrize("count", [1, 2, 5])
def test_rotating_at_every_compaction_is_the_same_as_once_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    parts = oracle.bodies(command_line.session(boundaries=count))
    often = homes.home(tmp_path / "often", monkeypatch, parts[0])
    for part in parts[1:]:
        often.append(part)
        often.rotate()
    archived = {name: (often.archive / name).read_bytes() for name in often.archived()}
    live = often.live.read_bytes()
    once = homes.home(tmp_path / "once", monkeypatch, b"".join(parts))
    once.rotate()
    assert {name: (once.archive / name).read_bytes() for name in once.archived()} == archived
    assert once.live.read_bytes() == live
