"""A restoration brings all of it back, and no archive goes before the live file has it."""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from pathlib import Path

import pytest

from sessrotate import fs
from sessrotate.archive import place, state
from sessrotate.errors import DamagedError, InUseError, RefusedError, SessrotateError
from sessrotate.in_place import recover, seal
from sessrotate.retention import trash
from sessrotate.system import in_use
from support import command_line, homes, sets
from support.command_line import write
from support.crash.changes import Faults, Killed
from support.lines import session

DATA = session(5, rows=60)


@pytest.fixture
def rotated(home: homes.Home) -> homes.Home:
    home.rotate()
    return home


def archived(home: homes.Home) -> bytes:
    """Return what the live file does not have."""
    whole = home.stitched()
    assert whole == DATA
    return whole[: whole.rindex(b'{"parentUuid":null,"type":"system"')]


# ── a session whose live file is gone ────────────────────────────────────────────────────────


def test_a_session_that_is_gone_comes_back(rotated: homes.Home) -> None:
    expected = archived(rotated)
    rotated.live.unlink()
    rotated.live.parent.rmdir()
    rotated.restore()
    assert rotated.live.read_bytes() == expected
    assert rotated.is_whole


def test_what_appears_under_its_name_meanwhile_is_left_alone_and_so_is_the_archive(
    rotated: homes.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    rotated.live.unlink()
    before = homes.snapshot(rotated.archive)
    real = fs.create_folder

    def appears(path: Path) -> None:
        real(path)
        if path == rotated.live.parent:
            rotated.live.write_bytes(session(1))

    monkeypatch.setattr(fs, "create_folder", appears)
    with pytest.raises(InUseError, match="appeared meanwhile"):
        rotated.restore()
    assert homes.snapshot(rotated.archive) == before
    assert rotated.live.read_bytes() == session(1)


def test_a_crash_before_it_has_its_name_leaves_the_archive_to_whatever_appears(
    rotated: homes.Home,
) -> None:
    kept = rotated.live.read_bytes()
    rotated.live.unlink()
    homes.crashed(rotated.restore, "sessrotate.fs.add_name")
    rotated.live.write_bytes(kept)
    assert rotated.rotate().plan.live is None
    assert rotated.stitched() == DATA


# ── the archive goes last ────────────────────────────────────────────────────────────────────


def interrupted(home: homes.Home) -> None:
    """Restore, and crash before the archive goes."""
    homes.crashed(home.restore, "sessrotate.in_place.seal.finish")
    assert home.live.read_bytes() == DATA


def test_a_live_file_that_is_not_whole_any_more_keeps_the_archive(rotated: homes.Home) -> None:
    interrupted(rotated)
    rotated.live.write_bytes(DATA[:5000])
    with pytest.raises(DamagedError, match="shorter than the history"):
        rotated.stitched()
    with pytest.raises(SessrotateError, match="its archive is kept in"):
        rotated.restore()
    aside = rotated.config / "sessrotate" / "aside"
    assert len(list(aside.iterdir())) == 1
    assert (next(aside.iterdir()) / "manifest.json").exists()


def test_a_live_file_that_goes_then_comes_back_from_the_pack(rotated: homes.Home) -> None:
    interrupted(rotated)
    rotated.live.unlink()
    assert rotated.stitched() == DATA
    with state.opened(rotated.where) as found:
        assert recover.plan(found).deed == "undo"
    rotated.restore()
    assert rotated.live.read_bytes() == DATA
    assert rotated.is_whole


@pytest.mark.parametrize("kind", ["symlink", "hard link"])
def test_a_live_file_with_another_name_is_refused(
    rotated: homes.Home, tmp_path: Path, kind: str
) -> None:
    other = tmp_path / "other"
    if kind == "hard link":
        other.hardlink_to(rotated.live)
    else:
        rotated.live.rename(other)
        rotated.live.symlink_to(other)
    before = homes.snapshot(tmp_path)
    with pytest.raises(RefusedError, match=r"link"):
        rotated.restore()
    assert homes.snapshot(tmp_path) == before


# ── adopting ─────────────────────────────────────────────────────────────────────────────────


def test_what_stands_where_a_segment_is_to_go_is_put_aside_and_never_sealed(
    home: homes.Home,
) -> None:
    stranger = write(home.segment(2), b"some notes\n")
    with pytest.raises(RefusedError, match="--unsafe-adopt puts that archive aside"):
        home.rotate()
    home.rotate(adopt=True)
    assert home.stitched() == DATA
    assert home.problems() == []
    kept = list((home.config / "sessrotate" / "aside").rglob(stranger.name))
    assert [file.read_bytes() for file in kept] == [b"some notes\n"]


def test_a_name_is_not_enough_for_a_segment_to_count_as_sealed(home: homes.Home) -> None:
    homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
    home.segment(2).write_bytes(b"some notes\n")
    home.rotate()
    assert home.segment(2).read_bytes() != b"some notes\n"
    assert home.stitched() == DATA
    assert home.problems() == []


def test_an_archive_that_was_put_aside_for_nothing_is_put_back(rotated: homes.Home) -> None:
    rotated.live.write_bytes(DATA)
    before = homes.snapshot(rotated.archive)
    with rotated.live.open("ab"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_use, "check_unused", lambda *_, **__: None)
        with pytest.raises(InUseError):
            rotated.rotate(0, adopt=True)
    assert homes.snapshot(rotated.archive) == before


# ── reading while it is changed ──────────────────────────────────────────────────────────────


def test_a_reader_that_a_rotation_overtakes_reads_all(home: homes.Home) -> None:
    with state.opened(home.where) as found:
        pieces = sets.holder(found).stream()
        home.rotate()
        # Whoever reads the replaced file keeps it as it was: what is archived are copies.
        assert b"".join(bytes(piece) for piece in pieces) == DATA
    assert home.stitched() == DATA


def test_sessions_without_a_name_are_none(home: homes.Home) -> None:
    for name in (".jsonl", "..jsonl", "...jsonl"):
        path = home.live.with_name(name)
        path.write_bytes(DATA)
        with pytest.raises(RefusedError):
            place.of_live(path)
    assert os.listdir(home.config) == ["projects"]  # noqa: PTH208 - names


def test_an_empty_trash_that_a_crash_left_goes_with_what_is_archived(rotated: homes.Home) -> None:
    (rotated.archive / "trash").mkdir()
    rotated.restore()
    assert rotated.is_whole
    assert trash.empty(rotated.where, 0, 4e9, 1) > 0
    assert rotated.archived() == {"record.json"}


# ── a client that edits meanwhile ────────────────────────────────────────────────────────────


def test_a_row_that_is_taken_back_once_the_old_file_is_gone_leaves_the_restoration_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal, "MOMENT", 0)
    seen = 0
    for at in itertools.count(1):
        home, crash = homes.home(tmp_path / str(at), monkeypatch, DATA), Faults(at)
        home.rotate()
        with crash.installed(), suppress(Killed):
            home.restore()
        is_done = home.live.read_bytes() == DATA and not home.pack.exists()
        if is_done and home.record()["intent"] is not None:
            seen += 1
            os.truncate(home.live, DATA.rstrip(b"\n").rindex(b"\n") + 1)
            assert "Finished a restoration" in command_line.called("restore", command_line.ID).out
            assert home.record()["restored"]
        if not crash.failed:
            break
    assert seen
