"""Files of an archive that no record tells of, as where that is lost or damaged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.in_place import waiting
from support import command_line, homes
from support.command_line import ID, append, boundary, called, row
from support.homes import Home
from support.portable import lack

if TYPE_CHECKING:
    from pathlib import Path

DATA: Final = command_line.session(boundaries=2)
MORE: Final = boundary(80) + row(81)
IN_FLIGHT: Final = row(1)
MODE: Final = b'{"type":"mode","mode":"plan"}\n'
"""A row of settings: a client writes the very same again and again."""

SWAPPED: Final = "sessrotate.in_place.seal.finish"

LOST: Final = pytest.mark.parametrize("left", [None, b"{"], ids=["lost", "damaged"])

READERS: Final = {"stitch": 74, "read": 74, "verify": 1}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return homes.home(tmp_path, monkeypatch, DATA + MORE)


def named(path: Path, **codes: int) -> str:
    """Check that every command names a file; return what is said to do about it."""
    said = [(called(name, ID), code) for name, code in (READERS | codes).items()]
    for ended, code in said:
        assert ended.code == code, ended
        assert str(path) in ended.err + ended.out
    assert str(path) in called("doctor").out
    return called("rotate", ID).err


@LOST
def test_a_replaced_file_with_late_lines_is_named_to_readers_of_a_restored_session(
    home: Home, left: bytes | None
) -> None:
    home.rotate()
    homes.crashed(home.restore, SWAPPED)
    append(home.pack, IN_FLIGHT)
    assert home.stitched() == DATA + MORE + IN_FLIGHT
    home.lose_record(left)
    told = named(home.pack, rotate=74, restore=74)
    assert f"append to {home.live} the lines that neither it nor the archive has" in told
    home.append(IN_FLIGHT)
    called("rotate", ID)
    home.pack.unlink(missing_ok=True)  # without leases it stays, and is named
    home.rotate()
    assert home.stitched() == DATA + MORE + IN_FLIGHT


@pytest.mark.parametrize("back", [False, True], ids=["rotation", "restoration"])
def test_a_pack_is_all_that_is_left_where_no_record_was_written_and_the_live_file_went(
    home: Home, back: bool
) -> None:
    home.rotate()
    home.append(boundary(90) + row(91))
    homes.crashed(home.restore if back else home.rotate, "sessrotate.in_place.swap.write_intent")
    home.live.unlink()
    codes = {"rotate": 74, "restore": 74}
    assert "Put a copy of that file in its place" in named(home.pack, **codes)
    home.live.write_bytes(home.pack.read_bytes())
    home.rotate()
    assert home.stitched() == DATA + MORE + boundary(90) + row(91)
    assert not home.pack.exists()


def test_a_late_row_of_settings_in_a_file_that_waits_is_not_taken_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, path, writer = that_waits(tmp_path, monkeypatch)
    os.write(writer, MODE)
    os.close(writer)
    home.append(MODE)
    home.lose_record()
    assert "may hold lines the session lacks" in named(path, rotate=77)


def test_of_a_file_that_waits_the_end_may_have_been_archived_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, path, writer = that_waits(tmp_path, monkeypatch)
    os.close(writer)
    home.append(row(90) + boundary(91) + row(92))
    for _ in range(2):
        home.rotate()
        home.age()
    home.lose_record()
    assert home.stitched() == DATA + MORE + row(90) + boundary(91) + row(92)
    assert f"No record explains {path}, and the session has all" in called("doctor").out
    data = path.read_bytes()
    path.write_bytes(data[:-4] + b"9" + data[-3:])
    assert "may hold lines the session lacks" in named(path, rotate=77)


def test_whether_a_session_that_is_gone_has_what_waits_is_not_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, path, writer = that_waits(tmp_path, monkeypatch)
    os.write(writer, IN_FLIGHT)
    os.close(writer)
    home.lose_record()
    home.live.unlink()
    then = "restore the session, then run `sessrotate doctor` again"
    assert f"No record explains {path}: {then}." in called("doctor").out
    assert called("restore", ID).code == 0
    assert "may hold lines the session lacks" in named(path, rotate=77)


def that_waits(tmp_path: Path, patch: pytest.MonkeyPatch) -> tuple[Home, Path, int]:
    """Rotate without leases; return also the replaced file, and a descriptor to append to it."""
    homes.without_leases(patch)
    lack(patch, "open_files")
    home = homes.home(tmp_path, patch, DATA + MORE)
    writer = os.open(home.live, os.O_WRONLY | os.O_APPEND)
    home.rotate()
    home.age()
    home.rotate()
    (waits,) = waiting.packs(home.where)
    return home, waits.path, writer


@LOST
@pytest.mark.parametrize("is_late", [True, False])
def test_a_file_that_waits_untold_is_named_unless_the_session_has_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: bytes | None, is_late: bool
) -> None:
    home, path, writer = that_waits(tmp_path, monkeypatch)
    if is_late:
        os.write(writer, IN_FLIGHT)
    os.close(writer)
    home.lose_record(left)
    if is_late:
        assert "may hold lines the session lacks" in named(path, rotate=77, restore=77)
        home.append(IN_FLIGHT)
    assert home.stitched() == DATA + MORE + IN_FLIGHT * is_late
    assert f"No record explains {path}, and the session has all" in called("doctor").out
    home.rotate()
    held = path.read_bytes()
    path.write_bytes(b"!" + held[1:])
    assert "may hold lines the session lacks" in named(path, rotate=77)
    path.write_bytes(held)
    path.unlink()
    home.rotate()
    assert home.stitched() == DATA + MORE + IN_FLIGHT * is_late
    assert called("doctor").code == 0


def test_a_manifest_of_another_session_is_named_and_made_again(home: Home) -> None:
    home.rotate()
    path = home.archive / "manifest.json"
    path.write_bytes(path.read_bytes().replace(ID.encode(), ID[:-1].encode() + b"f"))
    ended = called("stitch", ID)
    assert ended.code == 74
    assert f"{path} does not belong to {ID}: move it away." in ended.err
    path.unlink()
    home.rotate()
    assert home.stitched() == DATA + MORE
