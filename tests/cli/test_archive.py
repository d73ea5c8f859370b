"""`archive`, and `restore` of what was put away, as commands: every answer and every refusal."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import fs
from sessrotate.system import disk_use, in_use
from support import command_line, homes
from support.command_line import ID, called, row
from support.crash.changes import Faults, Killed

if TYPE_CHECKING:
    from pathlib import Path

    from support.homes import Home
from support.terminals import asked

DATA: Final = command_line.session(boundaries=3)
OTHER: Final = "0therid0-0000-4000-a000-000000000002"
DAY: Final = 86_400


@pytest.fixture(autouse=True)
def _nobody_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_use, "writers", lambda *_: iter(()))


def test_a_session_is_put_away_and_comes_back(home: Home) -> None:
    done = called("archive", ID)
    assert (done.code, done.err) == (0, "")
    assert re.search(r"^5e55107a  .*  3\.2 KiB  .*B\n", done.out, re.MULTILINE), done.out
    assert done.out.endswith(
        "1 session: moved 3.2 KiB out of the client's folder, which takes 12.0 KiB more of the "
        "disk.\n"
    ), done.out
    assert not home.live.exists()
    assert called("stitch", ID[:8], "-o", str(home.config / "out")).code == 0
    assert (home.config / "out").read_bytes() == DATA
    assert called("verify", ID).code == 0
    assert called("doctor").code == 0
    for arguments in (("archive", "-n", ID), ("archive", ID)):
        assert "nothing to do: it was put away already" in called(*arguments).out
    assert called("verify", ID).out.startswith(f"{home.archive}: ")
    back = called("restore", ID)
    assert (back.code, back.err) == (0, "")
    assert back.out == f"Put {ID} back: 3.2 KiB in {home.live}.\n"
    assert home.live.read_bytes() == DATA


def test_a_dry_run_shows_the_same_and_changes_nothing(home: Home) -> None:
    before = homes.snapshot(home.config)
    done = called("archive", "-n", ID)
    assert done.code == 0
    assert re.search(r"^5e55107a  .*  3\.2 KiB  .*B\n", done.out, re.MULTILINE), done.out
    assert done.out.endswith(
        "1 session: would move 3.2 KiB out of the client's folder, which would take about 12.0 KiB "
        "more of the disk.\n"
    )
    document = called("archive", "--dry-run", "--json", ID).document()
    assert document["dry_run"] is True
    assert homes.snapshot(home.config) == before


def test_several_are_shown_first_and_somebody_is_asked(home: Home) -> None:
    other = command_line.write(home.live.with_name(f"{OTHER}.jsonl"), DATA)
    both = ("archive", ID, OTHER)
    assert called(*both).code == 2
    assert called(*both, "--json").code == 2
    code, said = asked("n\n", *both, env=home.env)
    rows = re.findall(r"^(?:5e55107a|\w{8}) .*  3\.2 KiB  .*B\r?$", said, re.MULTILINE)
    assert (code, len(rows)) == (0, 2), said
    assert home.live.exists()
    assert other.exists()
    code, said = asked("y\n", *both, env=home.env)
    assert code == 0
    assert not home.live.exists()
    assert not other.exists()


def test_many_small_files_beside_a_session_take_a_block_each(home: Home) -> None:
    folder = home.live.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    for number in range(100):
        (folder / f"{number}.txt").write_text("a result")
    planned = called("archive", "-n", "--json", ID).document()["disk_bytes_gained"]
    done = called("archive", "--json", ID).document()["disk_bytes_gained"]
    assert abs(planned - done) <= 10 * 4096


def test_json_says_what_became_of_each(home: Home) -> None:
    before = disk_use.of(home.config)
    document = called("archive", "--json", ID).document()
    (entry,) = document["sessions"]
    assert entry["disk_bytes_gained"] == document["disk_bytes_gained"]
    gained = entry.pop("disk_bytes_gained")
    assert gained == pytest.approx(before - disk_use.of(home.config), abs=8 * 4096)
    stored = entry.pop("bytes_stored")
    assert 0 < stored < len(DATA)
    assert entry == {
        "session": ID,
        "path": str(home.live),
        "bytes_moved": len(DATA),
        "result": "done",
        "reason": None,
    }
    assert document["bytes_moved"] == len(DATA)
    assert document["dry_run"] is False


def test_what_is_older_is_put_away_and_what_is_in_use_stays(home: Home) -> None:
    undated = row(1).replace(b"timestamp", b"no")
    for name in ("older", "used"):
        homes.unused_for(command_line.write(home.live.with_name(f"{name}.jsonl"), undated), 9)
    command_line.write(home.live.with_name("newer.jsonl"), undated)
    home.live.unlink()
    with home.live.with_name("used.jsonl").open("ab"):
        done = called("archive", "--yes", "--older-than", "7d", "--wait", "0")
    assert done.code == 0
    assert "in use: The session is in use" in done.out
    assert sorted(path.name for path in home.live.parent.iterdir()) == [
        "newer.jsonl",
        "used.jsonl",
    ]
    assert "2 sessions" in done.out
    assert "1 of 2: older" in done.err
    assert called("archive", "--yes", "--older-than", "30d").out == (
        "Nothing to put away. Only sessions of Claude Code are put away; `sessrotate tidy` "
        "compresses those of Codex.\n"
    )


def test_a_session_in_a_folder_that_cannot_be_written_to_is_refused_before(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = home.config / "projects" / "-srv-other" / f"{OTHER}.jsonl"
    command_line.write(other, DATA.replace(ID.encode(), OTHER.encode()))
    real = os.access
    shut = [other.parent]
    monkeypatch.setattr(os, "access", lambda path, how: path not in shut and real(path, how))
    for command in ("archive", "rotate"):
        ended = called(command, "--dry-run", ID, OTHER)
        assert f"{other.parent} is read-only for you: make it writable first." in ended.out
    assert "1 of 2 sessions: would move" in called("archive", "--dry-run", ID, OTHER).out
    assert called("archive", "--yes", OTHER).code == 77
    shut.append(home.live.parent)
    assert "2 sessions: nothing to put away." in called("archive", "--dry-run", ID, OTHER).out


def test_what_is_away_asks_for_its_folder_only_to_come_back(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    shut, real = [home.live.parent], os.access
    compressing = "sessrotate.retention.away_files.compress"
    homes.crashed(lambda: called("archive", "--yes", ID), compressing)
    assert not home.live.exists()
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, how: path not in shut and real(path, how))
        before = home.record()
        for options in (("--dry-run",), ()):
            ended = called("restore", *options, ID)
            assert (ended.code, ended.err.count("is read-only for you")) == (77, 1)
        assert home.record() == before
        assert called("archive", "--yes", ID).code == 0
    assert called("restore", ID).code == 0
    assert home.live.read_bytes() == DATA


def test_whoever_died_behind_the_last_move_needs_its_folder_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in count(1):
        home = homes.home(tmp_path / str(at), monkeypatch, DATA)
        with Faults(at).installed(), suppress(Killed):
            called("archive", "--yes", ID)
        if not home.live.exists():
            break
    assert home.record()["away"]["standing"] == "archiving"
    shut, real = home.live.parent, os.access
    monkeypatch.setattr(os, "access", lambda path, how: path != shut and real(path, how))
    assert called("archive", "--yes", ID).code == 0
    assert home.record()["away"]["standing"] == "archived"


def test_one_failure_is_no_others(home: Home) -> None:
    other = command_line.write(home.live.with_name(f"{OTHER}.jsonl"), DATA)
    os.link(other, home.config / "second")
    done = called("archive", "--yes", ID, OTHER)
    assert done.code == 77
    assert "hard link" in done.out
    assert not home.live.exists()
    assert other.exists()
    alone = called("archive", OTHER)
    assert (alone.code, alone.out) == (77, "")
    assert "hard link" in alone.err


def test_a_session_that_is_named_and_in_use_is_a_failure(home: Home) -> None:
    command_line.write(home.live.with_name(f"{OTHER}.jsonl"), DATA)
    with home.live.open("ab"):
        done = called("archive", "--yes", ID, OTHER, "--wait", "0")
    assert done.code == 75
    assert home.live.exists()
    assert not home.live.with_name(f"{OTHER}.jsonl").exists()


@pytest.mark.usefixtures("home")
def test_a_session_that_is_not_away_has_nothing_to_be_restored() -> None:
    done = called("restore", ID)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"Nothing to restore: {ID} is whole.\n"


@pytest.mark.usefixtures("home")
def test_what_is_away_is_refused_by_what_needs_it_here() -> None:
    called("archive", ID)
    for arguments in (("split", "--in-place"), ("split", "--in-place", "--dry-run")):
        done = called(*arguments, ID)
        assert (done.code, done.out) == (77, ""), done
        assert f"bring it back with `sessrotate restore {ID}`" in done.err


def test_what_comes_back_counts_as_used_now(home: Home) -> None:
    homes.unused_for(home.live, 45)
    called("archive", ID)
    assert (called("restore", ID).code, home.live.read_bytes()) == (0, DATA)
    assert time.time() - home.live.stat().st_mtime < DAY


@pytest.mark.parametrize("is_rotated", [False, True])
def test_who_keeps_the_times_of_what_the_client_would_delete_is_told(
    home: Home, is_rotated: bool
) -> None:
    if is_rotated:
        home.rotate()
    then = homes.unused_for(home.live, 45)
    called("archive", ID)
    done = called("restore", ID, "--keep-times")
    assert done.code == 0
    assert "It was last changed 45 days ago" in done.err
    assert "`restore` without --keep-times" in done.err
    assert home.live.stat().st_mtime == pytest.approx(then)
    assert home.live.read_bytes() == DATA
    (home.config / "settings.json").write_text('{"cleanupPeriodDays": 60}')
    called("archive", ID)
    assert called("restore", ID, "--keep-times").err == ""


def test_a_rotated_session_that_was_put_away_is_whole_again_or_stays_short(home: Home) -> None:
    home.rotate()
    short = home.live.read_bytes()
    called("archive", ID)
    assert called("restore", "--keep-rotated", ID).code == 0
    assert home.live.read_bytes() == short
    called("archive", ID)
    done = called("restore", ID)
    assert done.code == 0
    first, second, third = done.out.splitlines()
    assert (" back: " in first, " back: " in second) == (True, True)
    assert third.startswith("On disk, the session takes ")
    assert home.live.read_bytes() == DATA


def test_by_age_a_restored_session_stays_and_that_is_said(home: Home) -> None:
    os.utime(home.live, (0, 0))
    assert called("rotate", ID).code == 0
    assert called("restore", ID).code == 0
    ended = called("archive", "--older-than", "1d", "--dry-run")
    assert ended.out.startswith("Nothing to put away.")
    assert "1 session that you restored stays, unless you name it.\n" in ended.out
    assert called("archive", ID).code == 0
    assert "restored" not in called("archive", "--older-than", "1d", "--dry-run").out


def test_without_room_to_compress_it_a_session_stays_where_its_client_looks(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = homes.snapshot(home.config / "projects")
    monkeypatch.setattr(fs, "free_bytes", lambda _path: 2_000)
    planned, ended = called("archive", "-n", ID), called("archive", ID)
    assert planned.err == ended.err
    assert "The disk is too full: this needs" in ended.err
    assert (planned.code, ended.code) == (74, 74)
    assert homes.snapshot(home.config / "projects") == before
