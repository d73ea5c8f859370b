"""What a crash left is undone before the swap, finished after it, and otherwise not touched."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import count
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import names
from sessrotate.archive import state
from sessrotate.errors import DamagedError, RefusedError
from sessrotate.in_place import recover
from sessrotate.in_place.recover import Deed
from sessrotate.platforms import HERE
from support import command_line, homes
from support.command_line import ID, boundary, called, row, write
from support.homes import Crash, Home, Killed, snapshot

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from pathlib import Path

DATA: Final = command_line.session(boundaries=2)
MORE: Final = boundary(80) + row(81)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = homes.home(tmp_path, monkeypatch, DATA)
    made.rotate()
    made.append(MORE)
    return made


def crashed(home: Home, at: int, *, back: bool = False) -> bool:
    """Rotate or restore up to an operation; tell whether it came so far."""
    crash = Crash(at)
    with pytest.MonkeyPatch.context() as patch:
        crash.install(patch)
        try:
            _ = home.restore() if back else home.rotate()
        except Killed:
            return True
    return False


def dying(
    folder: Path, patch: pytest.MonkeyPatch, *, back: bool
) -> Iterator[tuple[int, Home, os.stat_result]]:
    """Yield sessions whose rotation or restoration died at each of its operations.

    With the number of the operation, and what the live file was before.
    """
    for at in count(1):
        home = homes.home(folder / str(at), patch, DATA)
        home.rotate()
        home.append(MORE)
        old = home.live.stat()
        if not crashed(home, at, back=back):
            return
        yield at, home, old


def deed(home: Home) -> Deed:
    with state.opened(home.where) as found:
        return recover.plan(found).deed


@pytest.mark.parametrize("back", [False, True], ids=["rotation", "restoration"])
def test_there_is_one_moment_before_which_all_is_undone_and_after_it_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: bool
) -> None:
    deeds: list[Deed] = []
    for at, home, old in dying(tmp_path, monkeypatch, back=back):
        was_swapped = home.live.stat().st_ino != old.st_ino
        told = deed(home)
        deeds.append(told)
        assert told in ({"finish", "nothing"} if was_swapped else {"undo", "nothing"}), at
        before = snapshot(home.config)
        assert deed(home) == told
        assert snapshot(home.config) == before
        recover.recover(home.where, 0.2, lambda _done: None)
        assert deed(home) == "nothing"
        assert not home.is_busy()
        assert "live.partial" not in home.archived()
        assert home.stitched() == DATA + MORE
        assert (home.live.stat().st_ino != old.st_ino) == was_swapped
    assert deeds[0] == "nothing"
    assert {"undo", "finish"} <= set(deeds)
    assert len(deeds) > 25


def test_recovering_twice_is_the_same_as_once(home: Home) -> None:
    home.pack.hardlink_to(home.live)
    assert recover.recover(home.where, 0, lambda _done: None).deed == "undo"
    before = snapshot(home.config)
    assert recover.recover(home.where, 0, lambda _done: None) == recover.Recovery("nothing")
    assert snapshot(home.config) == before


def test_a_pack_that_may_hold_what_the_live_file_does_not_is_kept(home: Home) -> None:
    write(home.pack, home.live.read_bytes() + row(90))
    before = snapshot(home.config)
    with pytest.raises(
        DamagedError,
        match=r"may hold lines the session lacks.* append .* then move the file away",
    ):
        home.rotate()
    assert snapshot(home.config) == before


@pytest.mark.parametrize("more", [b"", row(90)])
def test_a_backup_made_two_files_of_the_pack_and_the_live_file(home: Home, more: bytes) -> None:
    write(home.pack, home.live.read_bytes())
    home.append(more)
    home.rotate()
    assert not home.pack.exists()
    assert home.stitched() == DATA + MORE + more


def test_unfinished_files_alone_are_removed(home: Home) -> None:
    for name in ("live.partial", "manifest.json.partial", "x.3.jsonl.partial"):
        write(home.archive / name, b"half")
    assert home.rotate().recovered.deed == "undo"
    assert not [name for name in home.archived() if name.endswith(".partial")]


def test_what_is_not_ours_stays_in_the_archive(home: Home) -> None:
    write(home.archive / "notes.txt", b"mine")
    home.rotate()
    home.restore()
    assert (home.archive / "notes.txt").read_bytes() == b"mine"


def test_an_empty_archive_that_a_crash_left_goes(home: Home) -> None:
    home.restore()
    shutil.rmtree(home.archive)
    home.archive.mkdir()
    assert home.restore() is None
    assert not home.archive.exists()


def test_once_something_is_sealed_a_rewritten_live_file_does_not_keep_the_rest_from_it(
    home: Home,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sessrotate.in_place.seal._seal", lambda *_: Crash(1).met())
        with pytest.raises(Killed):
            home.rotate()
    assert home.pack.stat().st_size == home.intent()["swap"]["cut"]
    lines = home.live.read_bytes().splitlines(keepends=True)
    home.live.write_bytes(b"".join(lines[1:]))
    assert deed(home) == "finish"
    with pytest.raises(RefusedError, match="does not begin with its header"):
        home.rotate()
    assert not home.is_busy()
    home.live.write_bytes(b"".join(lines))
    assert home.stitched() == DATA + MORE


def lose(home: Home, left: bytes | None) -> None:
    """Lose the record, or have these bytes in its place."""
    path = home.archive / "record.json"
    if left is None:
        path.unlink(missing_ok=True)
    elif home.archive.is_dir():
        path.write_bytes(left)


LOST: Final = pytest.mark.parametrize("left", [None, b"", b"{"], ids=["lost", "empty", "damaged"])


@LOST
@pytest.mark.parametrize("times", [1, 2])
def test_where_its_record_is_lost_what_has_the_history_is_named(
    home: Home, times: int, left: bytes | None
) -> None:
    for number in range(1, times):
        home.rotate()
        home.append(boundary(100 + number) + row(200 + number))
    before = home.stitched()
    homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
    home.append(row(300))
    lose(home, left)
    said = [called(command, ID) for command in ("stitch", "rotate", "restore", "verify")]
    said.append(called("doctor"))
    assert [ended.code for ended in said] == [74, 74, 74, 1, 1]
    for ended in said:
        assert f"is in {home.pack}, from a rotation that was interrupted" in ended.err + ended.out
        assert "away" not in ended.err + ended.out
    assert "not here" not in called("list").err
    as_is_said(said[0].err)
    assert home.live.stat().st_mode & 0o077 == 0
    home.rotate()
    assert home.stitched() == before + row(300)
    assert not home.is_busy()
    assert called("doctor").code == 0


def test_what_puts_it_together_is_said_where_a_segment_was_pruned(home: Home) -> None:
    home.append(boundary(100) + row(200))
    home.rotate()
    assert called("prune", ID, "--keep-last", "1", "--yes").code == 0
    home.append(boundary(101) + row(201))
    homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
    lose(home, None)
    write(home.archive / f"{ID}.9.jsonl.zst", b"")  # as if it had been sealed
    assert "between them" in called("rotate", ID).err
    (home.archive / f"{ID}.9.jsonl.zst").unlink()
    as_is_said(called("rotate", ID).err)
    home.rotate()
    assert called("doctor").code == 0
    assert called("restore", ID).code == 0
    assert home.stitched() == DATA + MORE + boundary(100) + row(200) + boundary(101) + row(201)


@pytest.mark.parametrize("start", [0, 5, 10**9])
def test_a_pack_that_does_not_fit_is_named_without_a_command(home: Home, start: int) -> None:
    homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
    lose(home, None)
    head, _, rest = home.pack.read_bytes().partition(b"\n")
    told = json.loads(head)
    told["sessrotate"]["start"] = start
    line = json.dumps(told, separators=(",", ":")).encode()
    home.pack.write_bytes(line + b"\n" + rest)
    ended = called("rotate", ID)
    assert ended.code == 74
    assert "between them" in ended.err


def as_is_said(text: str) -> None:
    """Do what a person is told to do."""
    (command,) = re.findall(r"`(\(umask .*?\))`", text)
    subprocess.run(["sh", "-c", command], check=True)


@LOST
@pytest.mark.parametrize("back", [False, True], ids=["rotation", "restoration"])
def test_wherever_it_dies_and_loses_its_record_all_is_there_or_what_has_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: bool, left: bytes | None
) -> None:
    at = 0
    for at, home, _ in dying(tmp_path, monkeypatch, back=back):
        lose(home, left)
        ended = called("restore" if back else "rotate", ID)
        if ended.code == 74:
            assert not back or not HERE.leases, at
            assert str(home.pack) in ended.err, at
            if "between them" in ended.err:  # a segment was sealed that no manifest lists
                assert len(names.segments_among(home.archived(), ID)) == 3, at
                continue
            if "move the file away" in ended.err:  # all of it is sealed, and listed
                home.pack.rename(home.config / "pack")
            else:
                as_is_said(ended.err)
            home.rotate()
        assert home.stitched() == DATA + MORE, at
        assert "pack" not in home.archived(), at
    assert at > 10
