"""The archive of a restored session goes whole to the trash, and comes back as long as it may."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import doctor
from sessrotate.archive import place, restored
from sessrotate.errors import DamagedError, RefusedError, SessrotateError
from sessrotate.hook import call
from sessrotate.in_place import fleet, gain, operations, retire, seal
from sessrotate.render.common import size as shown
from sessrotate.reports import listing
from sessrotate.retention import trash
from sessrotate.retention.policy import DAY
from support import homes
from support.command_line import ID, assert_one_sentence, called, write
from support.homes import Home, crashed, silent, snapshot
from support.lines import row, session

if TYPE_CHECKING:
    from collections.abc import Callable

DATA: Final = session(5, rows=60)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = homes.home(tmp_path, monkeypatch, DATA)
    made.rotate()
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def trashes(home: Home) -> list[Path]:
    return sorted(home.config.glob("sessrotate/trash/*/*"))


# ── to the trash ─────────────────────────────────────────────────────────────────────────────


def test_the_archive_is_in_the_trash_whole_and_says_whose_it_is(home: Home) -> None:
    before, began = contents(home.archive), datetime.now(UTC).timestamp()
    home.restore()
    assert home.live.read_bytes() == DATA
    assert not home.archive.exists()
    (kept,) = trashes(home)
    after = contents(kept)
    note = json.loads(after.pop("restored.json"))
    assert after == before
    assert kept.parent.name == ID
    assert (note["project"], note["session"]) == (homes.PROJECT, ID)
    assert abs(datetime.fromisoformat(note["at"]).timestamp() - began) < 60


def test_it_is_no_archive_for_anybody(home: Home) -> None:
    home.restore()
    assert list(place.archives()) == []
    assert list(doctor.findings()) == []
    assert [entry.segments for entry in listing.sessions()] == [0]
    assert called("verify", "--all").code == 0
    assert called("prune", "--all", "--keep-last", "1", "--yes").out.count(ID) == 0


def test_its_bytes_count_on_the_disk(home: Home) -> None:
    home.restore()
    (kept,) = trashes(home)
    size = homes.on_disk(kept)
    assert [entry.archived_disk_bytes for entry in listing.sessions()] == [size]
    assert called("report", "--all", "--json").document()["trash_bytes"] == size
    assert f" on disk, {shown(size)} of it in the trash" in called("report", "--all").out
    told = {setting.name: setting.value for setting in doctor.settings()}
    assert told["archives of restored sessions in the trash"] == f"1, {size:,} on disk"


def test_every_restoration_has_a_folder_of_its_own_in_the_order_of_time(home: Home) -> None:
    for _ in range(3):
        home.restore()
        home.append(row(999) + b"\n")
        home.rotate()
    names = [folder.name for folder in trashes(home)]
    assert len(names) == 3
    assert names == [entry.folder.name for entry in restored.of(home.where)]
    times = [entry.since or 0.0 for entry in restored.of(home.where)]
    assert times == sorted(times)


def test_the_room_is_named_before_anything_is_written(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessrotate.fs.free_bytes", lambda _path: 10)
    before = snapshot(home.config)
    shown = called("restore", ID, "--dry-run")
    assert shown.code == 74
    assert "keeps its own bytes" in shown.out
    assert f"no room for it: {len(DATA) + gain.ASIDE:,} bytes for the whole history" in shown.err
    assert_one_sentence(called("restore", ID), 74)
    assert snapshot(home.config) == before


# ── the short file comes back ────────────────────────────────────────────────────────────────


@pytest.fixture
def overwritten(home: Home) -> Home:
    """Return a restored session whose client has written back what it had read before."""
    short = home.live.read_bytes()
    home.restore()
    home.live.write_bytes(short)
    return home


COMMANDS: Final = (
    ("stitch", ID),
    ("split", ID, "--in-place"),
    ("split", ID, "--in-place", "--dry-run"),
    ("read", ID, "--history"),
    ("export", ID),
    ("verify", ID),
    ("doctor",),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_names_what_happened_and_what_helps(
    overwritten: Home, command: tuple[str, ...]
) -> None:
    before = snapshot(overwritten.config)
    ended = called(*command)
    assert ended.code in {1, 74, 77}
    said = ended.out + ended.err
    assert "has written the short file from before back" in said
    assert f"`sessrotate restore {ID}`" in said
    assert "--unsafe-adopt" not in said
    assert snapshot(overwritten.config) == before


def test_restore_puts_the_history_back_into_the_live_file_again(overwritten: Home) -> None:
    before = snapshot(overwritten.config)
    would = called("restore", ID, "--dry-run")
    assert would.code == 0
    assert "Would put 4 segments" in would.out
    assert snapshot(overwritten.config) == before
    added = row(999) + b"\n"
    overwritten.append(added)
    assert called("restore", ID).code == 0
    assert overwritten.live.read_bytes() == DATA + added
    assert len(trashes(overwritten)) == 1


def test_restore_makes_it_the_archive_again_if_it_is_to_stay_short(overwritten: Home) -> None:
    added = row(999) + b"\n"
    overwritten.append(added)  # by the client that took it back
    ended = called("restore", "--keep-rotated", ID)
    assert ended.code == 0, ended
    assert "its archive again" in ended.out
    assert trashes(overwritten) == []
    assert overwritten.stitched() == DATA + added
    assert overwritten.problems() == []
    assert list(doctor.findings()) == []
    overwritten.restore()
    assert overwritten.live.read_bytes() == DATA + added


def test_it_is_found_where_the_project_was_renamed_since(overwritten: Home) -> None:
    there = overwritten.where
    overwritten.live.parent.rename(overwritten.live.parent.with_name("-renamed"))
    assert trash.empty(there, 0, 4e9, 1) == 0
    ended = called("restore", "--keep-rotated", ID)
    assert ended.code == 0, ended
    assert trashes(overwritten) == []
    assert called("stitch", ID).out.encode() == DATA


def test_of_two_that_are_the_same_the_newest_comes_back(home: Home) -> None:
    short = home.live.read_bytes()
    home.restore()
    home.rotate()
    home.restore()
    assert len(trashes(home)) == 2
    home.live.write_bytes(short)
    kept = trashes(home)[0]
    assert retire.bring_back(home.where, 1) is not None
    assert trashes(home) == [kept]
    assert home.stitched() == DATA


def test_a_whole_session_has_nothing_to_be_brought_back(home: Home) -> None:
    home.restore()
    before = snapshot(home.config)
    for options in ((), ("--keep-rotated",)):
        ended = called("restore", *options, ID)
        assert ended.code == 0
        assert ended.out.startswith("Nothing to restore: ")
    assert snapshot(home.config) == before


def test_another_archive_is_not_taken_for_it(home: Home) -> None:
    home.restore()
    home.live.write_bytes(session(3, rows=8))
    home.rotate()
    short = home.live.read_bytes()
    for path in home.archive.iterdir():
        path.unlink()
    home.archive.rmdir()
    home.live.write_bytes(short)
    assert retire.bring_back(home.where, 1) is None
    with pytest.raises(DamagedError, match="is gone"):
        home.stitched()


def test_a_client_that_writes_it_back_before_the_archive_went_keeps_it_in_its_place(
    home: Home,
) -> None:
    short = home.live.read_bytes()
    crashed(home.restore, "sessrotate.in_place.seal.finish")
    home.live.write_bytes(short)
    assert home.stitched() == DATA
    home.rotate()
    assert home.stitched() == DATA
    assert trashes(home) == []


def test_a_client_that_writes_it_back_while_late_lines_wait_keeps_it_too(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Late lines of a restoration have a file of their own until they are merged."""
    short = home.live.read_bytes()
    late, later = row(901) + b"\n", row(902) + b"\n"
    crashed(home.restore, "sessrotate.in_place.swap._Swap._drain")
    with home.pack.open("ab") as file:
        file.write(late)
    home.append(later)
    with monkeypatch.context() as patch:
        patch.setattr("sessrotate.in_place.merge_late.execute", lambda *_: False)
        seal.finish(home.where, 1, lambda _done: None)
    assert home.intent()["restored"] is True
    assert home.stitched() == DATA + late + later
    home.live.write_bytes(short)
    assert home.stitched() == DATA + late
    home.rotate()
    assert home.stitched() == DATA + late
    assert trashes(home) == []


# ── emptying ─────────────────────────────────────────────────────────────────────────────────


def empty(home: Home, days: float, grace: float = 7 * DAY) -> int:
    now = datetime.now(UTC).timestamp() + days * DAY
    return trash.empty(home.where, grace, now, 1)


def test_it_is_freed_after_the_grace_time_and_not_before(home: Home) -> None:
    home.restore()
    size = sum(path.stat().st_size for path in trashes(home)[0].iterdir())
    assert empty(home, 6.9) == 0
    assert empty(home, 7.1) == size
    assert not (home.config / "sessrotate" / "trash" / ID).exists()
    assert home.stitched() == DATA


def test_an_archive_that_the_live_file_goes_on_from_is_never_freed(overwritten: Home) -> None:
    assert empty(overwritten, 700, 0) == 0
    assert retire.bring_back(overwritten.where, 1) is not None
    assert overwritten.stitched() == DATA


@pytest.mark.parametrize("note", [None, b"", b"{}", b'{"format": 1, "project": 3}', b"[" * 900])
def test_what_nobody_knows_whose_it_is_stays_and_is_told(home: Home, note: bytes | None) -> None:
    home.restore()
    (kept,) = trashes(home)
    if note is None:
        (kept / "restored.json").unlink()
    else:
        (kept / "restored.json").write_bytes(note)
    assert empty(home, 700, 0) == 0
    assert (kept / "manifest.json").exists()
    (finding,) = doctor.findings()
    assert (finding.kind, finding.path) == ("trash", str(kept))


def test_files_that_are_not_ours_stay_in_it(home: Home) -> None:
    home.restore()
    (kept,) = trashes(home)
    write(kept / "notes.txt", b"mine")
    empty(home, 8)
    assert contents(kept) == {"notes.txt": b"mine"}


def test_prune_and_its_dry_run_name_what_they_free(home: Home) -> None:
    home.restore()
    before = snapshot(home.config)
    assert "Would free" in called("prune", ID, "--empty-trash", "--grace", "0", "--dry-run").out
    assert snapshot(home.config) == before
    ended = called("prune", "--all", "--empty-trash", "--grace", "0", "--yes")
    assert ended.code == 0
    assert trashes(home) == []


# ── its owner wants it whole ─────────────────────────────────────────────────────────────────


def rotated_by_all(_home: Home) -> str:
    (outcome,) = fleet.rotate(
        fleet.sessions(0),
        lambda where: operations.rotate_session(where, 1, silent, by_itself=True),
        live=False,
    )
    return outcome.detail


def by_hook(home: Home) -> str:
    call.rotate(call.Job(home.where, home.live.stat(), awaits=False), 0)
    assert not home.where.note.exists()
    return "Its owner restored it"


def by_command(_home: Home) -> str:
    return called("split", "--in-place", "--all", "--min-size", "0").out


def by_run(_home: Home) -> str:
    shown = called("run", "--dry-run", "--config", "settings.toml").out
    assert called("run", "--config", "settings.toml").code == 0
    return shown


@pytest.mark.parametrize("rotated", [rotated_by_all, by_hook, by_command, by_run])
def test_a_restored_session_is_not_rotated_again_by_itself(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rotated: Callable[[Home], str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("settings.toml").write_text("[rotate]\nmin_gain = 0\n")
    home.restore()
    assert "Its owner restored it" in rotated(home)
    assert home.live.read_bytes() == DATA
    assert not home.archive.exists()


def test_its_owner_rotates_it_by_name_and_from_then_on_it_goes_by_itself(home: Home) -> None:
    home.restore()
    assert [entry.is_restored for entry in listing.sessions()] == [True]
    assert called("split", "--in-place", ID, "--dry-run").code == 0
    assert restored.is_marked(home.where)
    assert called("split", "--in-place", ID).code == 0
    assert [entry.is_restored for entry in listing.sessions()] == [False]
    home.append(session(2, rows=5))
    assert "Its owner restored it" not in rotated_by_all(home)


def test_the_mark_survives_the_trash(home: Home) -> None:
    home.restore()
    empty(home, 8)
    assert rotated_by_all(home).startswith("Its owner restored it")
    assert list(restored.marked()) == [home.where]


def test_it_stays_whole_where_its_project_was_renamed(home: Home) -> None:
    home.restore()
    new = home.live.parent.with_name("-srv-moved")
    home.live.parent.rename(new)
    (listed,) = listing.sessions()
    assert listed.is_restored
    assert listed.archived_disk_bytes > 0
    assert rotated_by_all(home).startswith("Its owner restored it")
    live = new / home.live.name
    assert live.read_bytes() == DATA
    assert called("split", "--in-place", ID).code == 0
    assert live.stat().st_size < len(DATA)
    assert not any(restored.marked())


def test_an_archive_that_is_back_lets_it_be_rotated_by_itself_again(overwritten: Home) -> None:
    assert retire.bring_back(overwritten.where, 1) is not None
    assert not restored.is_marked(overwritten.where)


def test_a_restoration_that_fails_marks_nothing(home: Home) -> None:
    os.link(home.live, home.live.with_suffix(".backup"))
    with pytest.raises((RefusedError, SessrotateError)):
        home.restore()
    assert not restored.is_marked(home.where)


# ── links ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("linked", ["trash", f"trash/{ID}"])
def test_a_trash_that_is_a_link_is_refused_before_anything_is_changed(
    home: Home, tmp_path: Path, linked: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = home.config / "sessrotate" / linked
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere)
    before = snapshot(tmp_path)
    with pytest.raises(RefusedError, match="symbolic link: remove the link"):
        home.restore()
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("linked", ["trash", f"trash/{ID}", f"trash/{ID}/20260101T000000.000000Z"])
def test_nothing_behind_a_link_is_freed_or_brought_back(
    overwritten: Home, tmp_path: Path, linked: str
) -> None:
    """Whoever can write there may have put a link to an archive of their own, or of others."""
    root, elsewhere = overwritten.config / "sessrotate", tmp_path / "elsewhere"
    there = {
        "trash": root / "trash",
        f"trash/{ID}": root / "trash" / ID,
    }.get(linked, trashes(overwritten)[0])
    there.rename(elsewhere)
    (root / linked).parent.mkdir(parents=True, exist_ok=True)
    (root / linked).symlink_to(elsewhere)
    before = snapshot(elsewhere)
    overwritten.live.write_bytes(DATA)
    assert empty(overwritten, 700, 0) == 0
    assert called("prune", "--all", "--empty-trash", "--grace", "0", "--yes").code == 0
    is_above = linked.count("/") <= 1  # else the archive itself is the link, and is not seen
    with pytest.raises(RefusedError, match="symbolic link") if is_above else nullcontext():
        assert retire.bring_back(overwritten.where, 1) is None
    assert snapshot(elsewhere) == before


def test_a_link_in_it_is_neither_followed_nor_removed(home: Home, tmp_path: Path) -> None:
    home.restore()
    (kept,) = trashes(home)
    outside = tmp_path / "outside"
    outside.mkdir()
    write(outside / f"{ID}.jsonl", b"mine")
    (kept / "trash").symlink_to(outside)
    homes.sealed(kept, 9).symlink_to(outside / f"{ID}.jsonl")
    empty(home, 8)
    assert contents(outside) == {f"{ID}.jsonl": b"mine"}
    assert [path.name for path in kept.iterdir()] == ["trash"]
