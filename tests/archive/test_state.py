"""A live file that does not go on from its archive is noticed, and can be adopted."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import state
from sessrotate.errors import SessrotateError
from sessrotate.reading import pieces
from support import command_line, oracle
from support.command_line import ID, boundary, row
from support.homes import Home, refused, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

DATA: Final = command_line.session(boundaries=2)
MODE: Final = b'{"type":"mode","sessionId":"s","mode":"default"}\n'
MORE: Final = row(90) + boundary(91) + row(92)
LATER: Final = row(95) + boundary(96) + row(97)


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
    home.live.write_bytes(home.live.read_bytes().replace(b"default", b"changed", 1))


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


def older_whole(home: Home) -> None:
    *before, _, _ = command_line.segments_of(DATA)
    home.live.write_bytes(MODE + b"".join(before))


def archive_older(home: Home) -> None:
    older = home.config / "older"
    shutil.copytree(home.archive, older)
    home.append(LATER)
    home.rotate()
    shutil.rmtree(home.archive)
    older.rename(home.archive)


def archive_of_another(home: Home) -> None:
    old = home.live.read_bytes()
    home.live.write_bytes(MODE + DATA.replace(b"row", b"Row"))
    shutil.rmtree(home.archive)
    home.rotate()
    home.live.write_bytes(old)


def archive_emptied(home: Home) -> None:
    for file in home.archive.iterdir():
        file.unlink()


def manifest_and_first_gone(home: Home) -> None:
    (home.archive / "manifest.json").unlink()
    home.segment(0).unlink()


def manifest_and_second_gone(home: Home) -> None:
    (home.archive / "manifest.json").unlink()
    home.segment(1).unlink()


RESTORE: Final = f"Move it away, then `sessrotate restore {ID}` brings back all that is archived."
PUT_BACK: Final = "Put the file back as the last rotation left it."

MISFITS: Final[dict[Callable[[Home], None], tuple[str, str]]] = {
    without_header: ("no longer begins with its header", PUT_BACK),
    older_whole: ("is a copy from before the rotation", RESTORE[1:]),
    header_of_another_time: ("it was made before the last rotation", RESTORE),
    archive_older: ("is an older copy: it ends after", "Put the newer archive back."),
    archive_of_another: ("it belongs to an archive other than", "that belongs to it."),
    carried_line_changed: ("the carried lines were changed", PUT_BACK),
    compaction_changed: ("no longer continues with the compaction", PUT_BACK),
    compaction_removed: ("no longer continues with the compaction", PUT_BACK),
    truncated: ("the carried lines were changed", PUT_BACK),
    emptied: ("was emptied", f"Remove the empty file, then `sessrotate restore {ID}`"),
    foreign: ("no longer begins with its header", PUT_BACK),
    manifest_and_first_gone: ("and so is segment 0", "Put segment 0 back from a backup"),
    manifest_and_second_gone: ("and so is segment 1", "Put segment 1 back from a backup"),
    archive_gone: ("is only the live tail", "Put that folder back"),
    archive_emptied: ("is only the live tail", "Put that folder back"),
}
"""What can happen to a live file or its archive, what that is called, and what helps first."""


@pytest.fixture
def rotated(home: Home) -> Home:
    home.live.write_bytes(MODE + DATA)
    home.rotate()
    assert MODE in lines_of(home)
    return home


def test_a_state_is_data_once_it_is_open(rotated: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    rotated.append(LATER)
    monkeypatch.setattr("sessrotate.in_place.seal._close", lambda *_, **__: True)  # interrupted
    rotated.rotate()
    with state.opened(rotated.where) as found:
        before = {name: getattr(found, name) for name in found.__struct_fields__}
    assert found.intent is not None
    shutil.rmtree(rotated.archive)
    rotated.live.unlink()
    assert {name: getattr(found, name) for name in found.__struct_fields__} == before


@pytest.mark.parametrize("misfit", MISFITS)
def test_a_live_file_that_does_not_go_on_from_its_archive_is_refused(
    rotated: Home, misfit: Callable[[Home], None]
) -> None:
    misfit(rotated)
    told, helps = MISFITS[misfit]
    refused(rotated, told, helps)
    with pytest.raises(SessrotateError) as caught, state.opened(rotated.where) as found:
        pieces.of_state(found).check()
    assert caught.value.exit_code == 74
    text = str(caught.value)
    assert text.index(told) < text.index(helps) < text.index(f"--unsafe-adopt {ID}")
    for command in ("stitch", "export", "verify", "restore"):
        ended = command_line.called(command, ID)
        assert ended.code in {1, 74, 77}
        assert text in ended.out + ended.err
    (finding,) = command_line.called("doctor", "--json").document()["findings"]
    assert finding["detail"] == text


@pytest.mark.parametrize("misfit", MISFITS)
def test_one_that_was_put_away_is_named_and_comes_back_as_it_was(
    rotated: Home, misfit: Callable[[Home], None]
) -> None:
    misfit(rotated)
    before = rotated.live.read_bytes()
    assert command_line.called("archive", ID).code == 0
    ended = command_line.called("doctor", "--json")
    (finding,) = ended.document()["findings"]
    helps = f"sessrotate restore --keep-rotated {ID}"
    assert helps in finding["detail"]
    assert str(rotated.live) not in finding["detail"]
    for command in ("rotate", "restore") if before else ("rotate",):
        refused = command_line.called(command, ID)  # an emptied one comes back with its archive
        assert (refused.code, helps in refused.err) == (77, True)
    assert command_line.called(*helps.split()[1:]).code == 0
    assert rotated.live.read_bytes() == before
    (finding,) = command_line.called("doctor", "--json").document()["findings"]
    assert MISFITS[misfit][0] in finding["detail"]


@pytest.mark.parametrize("misfit", [older_whole, header_of_another_time, archive_older, emptied])
def test_nothing_that_a_repair_may_need_is_pruned(
    rotated: Home, misfit: Callable[[Home], None]
) -> None:
    assert command_line.called("prune", ID, "--keep-last", "2", "--yes").code == 0
    misfit(rotated)
    archived = {path.name for path in rotated.archive.rglob("*")}
    ended = command_line.called(
        "prune", ID, "--keep-last", "1", "--empty-trash", "--grace", "0", "--yes"
    )
    assert "needs a repair first" in ended.out
    assert {path.name for path in rotated.archive.rglob("*")} == archived


@pytest.mark.parametrize("misfit", [older_whole, header_of_another_time, emptied])
def test_what_a_misfit_is_said_to_need_brings_the_archive_back(
    rotated: Home, misfit: Callable[[Home], None]
) -> None:
    misfit(rotated)
    assert len(rotated.segments()) >= 2
    rotated.live.rename(rotated.config / "away")
    assert command_line.called("restore", ID).code == 0
    restored = rotated.live.read_bytes()
    assert (MODE + DATA + LATER).startswith(restored)
    assert restored.count(b"\n") >= 7


def test_of_an_archive_in_part_the_missing_segments_are_named(rotated: Home) -> None:
    gone = rotated.segment(0)
    gone.unlink()
    (finding,) = command_line.called("doctor", "--json").document()["findings"]
    assert (finding["kind"], finding["session"]) == ("damaged", ID)
    assert f"{gone.name} of this archive are missing" in finding["detail"]
    assert "put them back from a backup" in finding["detail"]
    assert command_line.called("stitch", ID).code == 74


@pytest.mark.parametrize(
    "misfit",
    [
        misfit
        for misfit in MISFITS
        if misfit
        not in {
            truncated,  # it goes on, behind a gap
            archive_gone,
            archive_emptied,
            archive_of_another,
            manifest_and_first_gone,
            manifest_and_second_gone,
        }
    ],
)
def test_a_live_file_can_be_adopted_and_the_old_archive_is_kept(
    rotated: Home, misfit: Callable[[Home], None]
) -> None:
    misfit(rotated)
    rotated.append(b"\n" + MORE)
    adopted = rotated.live.read_bytes()
    before = {file.name: file.read_bytes() for file in rotated.archive.iterdir()}
    rotated.rotate(adopt=True)
    line, _, behind = adopted.partition(b"\n")  # our header is no part of any history
    assert rotated.stitched() == (behind if b"segment_header" in line else adopted)
    assert not rotated.problems()
    aside = rotated.config / "sessrotate" / "aside" / f"{ID}.1"
    assert {file.name: file.read_bytes() for file in aside.iterdir()} == before
    stitched = command_line.called("stitch", aside, "-o", rotated.config / "old")
    assert stitched.code == 0, stitched
    old = (rotated.config / "old").read_bytes()
    assert (MODE + DATA + LATER).startswith(old)
    assert old.count(b"\n") >= 7


def test_a_manifest_older_than_the_segments_is_moved_away_as_told_and_made_again(
    rotated: Home,
) -> None:
    path = rotated.archive / "manifest.json"
    older = path.read_bytes()
    rotated.append(LATER)
    rotated.rotate()
    path.write_bytes(older)
    ended = command_line.called("rotate", ID)
    assert (ended.code, "has all segments that" in ended.err) == (77, True)
    assert f"Move that manifest.json away, then `sessrotate rotate {ID}`" in ended.err
    assert "newer archive" not in ended.err
    path.rename(rotated.config / path.name)
    assert command_line.called("rotate", ID).code == 0
    assert rotated.stitched() == MODE + DATA + LATER
    assert not rotated.problems()


def test_an_adopted_live_tail_is_restored_and_rotated_like_any_other(rotated: Home) -> None:
    shutil.rmtree(rotated.archive)
    rotated.append(MORE)
    told = rotated.live.read_bytes().partition(b"\n")[2]
    ended = command_line.called("rotate", ID, "--unsafe-adopt")
    assert (ended.code, "aside" in ended.out) == (0, False)
    assert not (rotated.config / "sessrotate" / "aside").exists()
    for command in ("restore", "rotate", "restore"):
        assert command_line.called(command, ID).code == 0, command
        assert command_line.called("stitch", ID).out.encode() == told, command
    assert rotated.live.read_bytes() == told


def test_a_whole_copy_from_before_a_rotation_lacks_nothing_and_is_rotated_again(
    rotated: Home,
) -> None:
    rotated.live.write_bytes(MODE + DATA)
    assert rotated.stitched() == MODE + DATA
    (finding,) = command_line.called("doctor", "--json").document()["findings"]
    assert "the restore date is lost" in finding["detail"]
    assert command_line.called("restore", ID).out.startswith("Nothing to restore")
    rotated.append(MORE)
    inodes = [path.stat().st_ino for path in rotated.segments()]
    assert command_line.called("rotate", ID).code == 0
    assert [path.stat().st_ino for path in rotated.segments()][: len(inodes)] == inodes
    assert rotated.stitched() == MODE + DATA + MORE


def test_adopting_twice_keeps_both_archives(rotated: Home) -> None:
    for more in (MORE, LATER):
        without_header(rotated)
        rotated.append(more)
        rotated.rotate(adopt=True)
    aside = rotated.config / "sessrotate" / "aside"
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
