"""A live file that does not go on from its archive is noticed, and can be adopted."""

from __future__ import annotations

import os
import shutil
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import state
from sessrotate.errors import SessrotateError
from support import command_line, homes, oracle
from support.command_line import ID, boundary, row
from support.homes import PROJECT, Home, refused, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

DATA: Final = command_line.session(boundaries=2)
MORE: Final = row(90) + boundary(91) + row(92)
LATER: Final = row(95) + boundary(96) + row(97)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return homes.home(tmp_path, monkeypatch, DATA)


# ── a live file that does not go on from its archive ─────────────────────────────────────────


def lines_of(home: Home) -> list[bytes]:
    return home.live.read_bytes().splitlines(keepends=True)


def without_header(home: Home) -> None:
    home.live.write_bytes(b"".join(lines_of(home)[1:]))


def header_of_another_time(home: Home) -> None:
    old = home.live.read_bytes()
    home.append(LATER)
    home.rotate()
    home.live.write_bytes(old)


def carried_line_changed(home: Home) -> None:
    lines = lines_of(home)
    home.live.write_bytes(
        b"".join([lines[0], lines[1].replace(b"default", b"changed"), *lines[2:]])
    )


def compaction_changed(home: Home) -> None:
    data = home.live.read_bytes()
    at = data.index(b"compactMetadata")
    home.live.write_bytes(data[:at] + b"C" + data[at + 1 :])


def compaction_removed(home: Home) -> None:
    home.live.write_bytes(
        b"".join(line for line in lines_of(home) if not oracle.is_boundary(line.rstrip(b"\n")))
    )


def truncated(home: Home) -> None:
    os.truncate(home.live, len(lines_of(home)[0]) + 10)


def emptied(home: Home) -> None:
    home.live.write_bytes(b"")


def foreign(home: Home) -> None:
    home.live.write_bytes(command_line.session(boundaries=1, rows=1, padding=3))


def archive_gone(home: Home) -> None:
    shutil.rmtree(home.archive)


MISFITS: Final[list[Callable[[Home], None]]] = [
    without_header,
    header_of_another_time,
    carried_line_changed,
    compaction_changed,
    compaction_removed,
    truncated,
    emptied,
    foreign,
    archive_gone,
]

MODE: Final = b'{"type":"mode","sessionId":"s","mode":"default"}\n'


@pytest.fixture
def rotated(home: Home) -> Home:
    home.live.write_bytes(MODE + DATA)
    home.rotate()
    assert MODE in lines_of(home)
    return home


def test_a_state_is_data_once_it_is_open(rotated: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    rotated.append(LATER)
    monkeypatch.setattr("sessrotate.in_place.seal._seal", lambda *_: None)  # interrupted
    monkeypatch.setattr("sessrotate.in_place.merge_late.execute", lambda *_: False)
    rotated.rotate()
    with state.opened(rotated.where) as found:
        before = {field.name: getattr(found, field.name) for field in fields(found)}
        pieces = found.history()
    assert found.intent is not None
    shutil.rmtree(rotated.archive)
    rotated.live.unlink()
    assert {field.name: getattr(found, field.name) for field in fields(found)} == before
    assert found.history() == pieces


@pytest.mark.parametrize("misfit", MISFITS)
def test_a_live_file_that_does_not_go_on_from_its_archive_is_refused(
    rotated: Home, misfit: Callable[[Home], None]
) -> None:
    misfit(rotated)
    refused(rotated, "does not go on from its archive", "--unsafe-adopt puts that archive aside")
    with pytest.raises(SessrotateError) as caught, state.opened(rotated.where) as found:
        found.history()
    assert caught.value.exit_code == 74


@pytest.mark.parametrize("misfit", [m for m in MISFITS if m is not archive_gone])
def test_a_live_file_can_be_adopted_and_the_old_archive_is_kept(
    rotated: Home, misfit: Callable[[Home], None]
) -> None:
    misfit(rotated)
    rotated.append(b"\n" + MORE)
    adopted = rotated.live.read_bytes()
    before = {file.name: file.read_bytes() for file in rotated.archive.iterdir()}
    rotated.rotate(adopt=True)
    assert rotated.stitched() == adopted
    assert not rotated.problems()
    aside = rotated.config / "sessrotate" / "aside" / PROJECT / f"{ID}.1"
    assert {file.name: file.read_bytes() for file in aside.iterdir()} == before
    stitched = command_line.called("stitch", aside, "-o", rotated.config / "old")
    assert stitched.code == 0, stitched
    old = (rotated.config / "old").read_bytes()
    assert (MODE + DATA + LATER).startswith(old)
    assert old.count(b"\n") >= 7


def test_adopting_twice_keeps_both_archives(rotated: Home) -> None:
    for more in (MORE, LATER):
        without_header(rotated)
        rotated.append(more)
        rotated.rotate(adopt=True)
    aside = rotated.config / "sessrotate" / "aside" / PROJECT
    assert {folder.name for folder in aside.iterdir()} == {f"{ID}.1", f"{ID}.2"}


def test_adopting_what_goes_on_from_its_archive_is_an_ordinary_rotation(rotated: Home) -> None:
    rotated.append(MORE)
    rotated.rotate(adopt=True)
    assert rotated.stitched() == MODE + DATA + MORE
    assert not (rotated.config / "sessrotate" / "aside").exists()


def test_adopting_a_file_with_nothing_to_cut_changes_nothing(rotated: Home) -> None:
    rotated.live.write_bytes(row(1))
    before = snapshot(rotated.config)
    assert rotated.rotate(adopt=True).plan.live is None
    assert snapshot(rotated.config) == before
