"""The archive of a restored session stays where it is until its time is over."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import doctor
from sessrotate.archive import place, restored, state
from sessrotate.errors import DamagedError, RefusedError, SessrotateError
from sessrotate.hook import call
from sessrotate.in_place import fleet, gain, operations
from sessrotate.render import size as shown
from sessrotate.reports import listing
from sessrotate.retention import trash
from sessrotate.segments import manifest
from sessrotate.units import DAY, amount
from support import homes, trimming
from support.command_line import ID, append, assert_one_sentence, called, write
from support.crash.changes import Faults, Killed
from support.homes import Home, crashed, silent, snapshot
from support.lines import row, session

if TYPE_CHECKING:
    from collections.abc import Callable

DATA: Final = session(5, rows=60)


@pytest.fixture
def home(home: Home) -> Home:
    home.rotate()
    return home


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def archived_bytes(home: Home) -> int:
    return manifest.parse((home.archive / "manifest.json").read_bytes()).source_bytes


# ── where it is ──────────────────────────────────────────────────────────────────────────────


def test_the_archive_stays_as_it_was_and_says_since_when_the_live_file_is_whole(home: Home) -> None:
    before, began = contents(home.archive), datetime.now(UTC).timestamp()
    home.restore()
    assert home.live.read_bytes() == DATA
    after = contents(home.archive)
    note = json.loads(after.pop("record.json"))
    assert after == before
    at = note["restored"]
    assert note == {
        "format": 1,
        "session": ID,
        "project": homes.PROJECT,
        "intent": None,
        "away": None,
        "restored": at,
        "waiting": [],
    }
    assert abs(datetime.fromisoformat(at).timestamp() - began) < 60


def test_it_is_no_archive_for_anybody(home: Home) -> None:
    home.restore()
    assert list(doctor.findings()) == []
    assert [entry.segments for entry in listing.sessions()] == [0]
    assert called("verify", "--all").code == 0
    for path in (home.archive, home.live):
        assert called("stitch", str(path)).out.encode() == DATA
    assert called("prune", "--all", "--keep-last", "1", "--yes").out.count(ID) == 0
    refused = called("pin", ID, "1")
    assert_one_sentence(refused, 77)
    assert f"is whole: `sessrotate rotate {ID}` archives it again" in refused.err
    with state.opened(home.where) as found:
        assert (found.manifest, found.listed, found.is_rotated) == (None, None, False)


def test_its_bytes_count_on_the_disk(home: Home) -> None:
    home.restore()
    size = sum(homes.on_disk(path) for path in home.archive.iterdir())
    note = homes.on_disk(home.archive / "record.json")
    folder = homes.on_disk(home.archive) - size
    assert [entry.archived_disk_bytes for entry in listing.sessions()] == [size + folder]
    assert called("report", "--all", "--json").document()["trash_bytes"] == size - note
    assert (
        f" on disk, {shown(size - note)} of it until a grace period is over"
        in called("report", "--all").out
    )
    told = {setting.name: setting.number for setting in doctor.look()[0]}
    assert told["archives of restored sessions"] == 1


# ── rotated again by name ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("has_grown", [False, True])
def test_what_is_archived_already_is_not_archived_again(home: Home, has_grown: bool) -> None:
    kept = {path: (path.stat().st_ino, path.read_bytes()) for path in home.archive.glob("*.zst")}
    home.restore()
    more = session(6, rows=60)[len(DATA) :] if has_grown else b""
    home.append(more)
    home.rotate()
    assert {path: (path.stat().st_ino, path.read_bytes()) for path in kept} == kept
    assert len([*home.archive.glob("*.zst")]) == len(kept) + (1 if has_grown else 0)
    assert not restored.is_marked(home.where)
    assert home.stitched() == DATA + more
    assert home.problems() == []
    assert list(doctor.findings()) == []
    assert place.aside() == []


def test_pins_of_what_is_taken_over_stay(home: Home) -> None:
    assert called("pin", ID, "1", "--note", "this one").code == 0
    home.restore()
    home.rotate()
    pins = [
        entry.pin
        for entry in manifest.parse((home.archive / "manifest.json").read_bytes()).segments
    ]
    assert pins == [None, "this one", *[None] * (len(pins) - 2)]


@pytest.mark.parametrize("damage", ["segment", "manifest", "live", "missing", "moved on"])
def test_what_is_not_the_same_any_more_goes_aside_whole(home: Home, damage: str) -> None:
    home.restore()
    expected = DATA
    file = homes.sealed(home.archive, 2)
    if damage == "segment":
        file.write_bytes(file.read_bytes()[:-9])
    elif damage == "manifest":
        (home.archive / "manifest.json").write_bytes(b"{}")
    elif damage == "missing":
        file.unlink()
    else:
        line = DATA.splitlines(keepends=True)[3]
        changed = line.replace(b"a", b"b") if damage == "live" else row(7) + b"\n" + line
        expected = DATA.replace(line, changed, 1)
        home.live.write_bytes(expected)
    before = contents(home.archive)
    home.rotate()
    (folder,) = place.aside()
    assert contents(folder) == before
    assert home.stitched() == expected
    assert home.problems() == []
    assert not restored.is_marked(home.where)


def test_a_dry_run_says_what_a_rotation_by_name_gains(home: Home) -> None:
    home.restore()
    before = homes.on_disk(home.archive) + homes.on_disk(home.live)
    planned = operations.plan_session(home.where, silent)
    assert planned.disk is not None
    assert len(planned.plan.taken) == len(planned.plan.segments) == 4
    home.rotate()
    gained = before - homes.on_disk(home.archive) - homes.on_disk(home.live)
    assert abs(planned.disk.gain - gained) <= 2 * gain.BLOCK


def test_the_room_is_named_before_anything_is_written(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessrotate.fs.free_bytes", lambda _path: 10)
    before = snapshot(home.config)
    shown = called("restore", ID, "--dry-run")
    assert shown.code == 74
    assert "the archive would be kept" in shown.out
    assert (
        f"this needs {amount(len(DATA) + gain.ASIDE, up=True)} for the whole history" in shown.err
    )
    ended = called("restore", ID)
    assert_one_sentence(ended, 74)
    assert re.search(r"and 10 B is free\. Make room for [\d.]+ KiB more, then", ended.err)
    assert snapshot(home.config) == before


# ── the short file comes back ────────────────────────────────────────────────────────────────


@pytest.fixture
def overwritten(home: Home) -> Home:
    """Return a restored session whose client has written back what it had read before."""
    short = home.live.read_bytes()
    home.restore()
    home.live.write_bytes(short)
    return home


def test_it_goes_on_from_its_archive_as_before(overwritten: Home) -> None:
    added = row(999) + b"\n"
    overwritten.append(added)  # by the client that took it back
    assert overwritten.stitched() == DATA + added
    assert overwritten.problems() == []
    assert list(doctor.findings()) == []
    assert [entry.segments for entry in listing.sessions()] == [4]
    assert called("restore", ID, "--keep-rotated").out.startswith("Nothing to restore: ")


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
    assert list(doctor.findings()) == []


def test_it_is_found_where_the_project_was_renamed_since(overwritten: Home) -> None:
    overwritten.live.parent.rename(overwritten.live.parent.with_name("-renamed"))
    assert trash.empty(overwritten.where, 0, 4e9, 1) == 0
    assert called("stitch", ID).out.encode() == DATA
    assert called("restore", ID).code == 0
    assert (overwritten.live.parent.with_name("-renamed") / overwritten.live.name).exists()
    assert called("stitch", ID).out.encode() == DATA


def test_a_whole_session_has_nothing_to_be_brought_back(home: Home) -> None:
    home.restore()
    before = snapshot(home.config)
    for options in ((), ("--keep-rotated",)):
        ended = called("restore", *options, ID)
        assert ended.code == 0
        assert ended.out.startswith("Nothing to restore: ")
    assert snapshot(home.config) == before


def test_a_restored_session_that_is_gone_comes_back(home: Home) -> None:
    home.restore()
    archived = DATA[: archived_bytes(home)]
    home.live.unlink()
    (finding,) = doctor.findings()
    assert finding.kind == "orphan"
    assert trash.empty(home.where, 0, 4e9, 1) == 0
    assert called("restore", ID).code == 0
    assert home.live.read_bytes() == archived
    assert list(doctor.findings()) == []


def test_another_file_under_its_name_is_told_and_leaves_the_archive_alone(home: Home) -> None:
    home.restore()
    archived = DATA[: archived_bytes(home)]
    home.live.write_bytes(session(3, rows=8))
    (finding,) = doctor.findings()
    assert finding.kind == "lacking"
    assert "move the file away" in finding.detail
    ended = called("restore", ID)
    assert_one_sentence(ended, 77)
    assert empty(home, 700) == 0
    home.live.rename(home.live.with_suffix(".mine"))
    assert called("restore", ID).code == 0
    assert home.live.read_bytes() == archived


def test_a_client_that_writes_it_back_before_the_archive_went_keeps_it_in_its_place(
    home: Home,
) -> None:
    short = home.live.read_bytes()
    crashed(home.restore, "sessrotate.in_place.seal.finish")
    home.live.write_bytes(short)
    assert home.stitched() == DATA
    home.rotate()
    assert home.stitched() == DATA
    assert not restored.is_marked(home.where)


@pytest.mark.parametrize("is_brought", [False, True])
def test_a_client_that_writes_it_back_while_late_lines_wait_is_told_of_them(
    home: Home, is_brought: bool
) -> None:
    short = home.live.read_bytes()
    late, later = row(901) + b"\n", row(902) + b"\n"
    crashed(home.restore, "sessrotate.in_place.swap._Swap._drain")
    append(home.pack, late)
    home.append(later)
    if is_brought:
        crashed(home.restore, "sessrotate.in_place.seal._close")
    assert home.stitched().startswith(DATA + later + late)
    home.live.write_bytes(short)
    with pytest.raises(DamagedError, match="may hold lines the session lacks"):
        home.rotate()
    home.append(home.pack.read_bytes().removeprefix(short))
    home.pack.unlink()
    home.rotate()
    assert home.stitched() == DATA + late


# ── emptying ─────────────────────────────────────────────────────────────────────────────────


def empty(home: Home, days: float, grace: float = 7 * DAY) -> int:
    now = datetime.now(UTC).timestamp() + days * DAY
    return trash.empty(home.where, grace, now, 1)


def test_it_is_freed_after_the_grace_time_and_not_before(home: Home) -> None:
    home.restore()
    size = sum(path.stat().st_size for path in home.archive.iterdir() if path.name != "record.json")
    assert empty(home, 6.9) == 0
    assert empty(home, 7.1) == size
    assert [path.name for path in home.archive.iterdir()] == ["record.json"]
    assert home.stitched() == DATA
    assert list(place.archives()) == []
    assert list(doctor.findings()) == []
    assert empty(home, 8) == 0


def test_an_archive_that_the_live_file_goes_on_from_is_never_freed(overwritten: Home) -> None:
    assert empty(overwritten, 700, 0) == 0
    assert trash.empty(overwritten.where, 0, 4e9, 1) == 0
    assert overwritten.stitched() == DATA


def test_an_archive_that_a_live_file_elsewhere_goes_on_from_is_never_freed(home: Home) -> None:
    short = home.live.read_bytes()
    home.restore()
    write(home.live.parent.with_name("-other") / home.live.name, short)
    assert trash.empty(home.where, 0, 4e9, 1) == 0


@pytest.mark.parametrize(
    "note", [b"", b"{}", b'{"format": 1, "project": "p", "whole": 3}', b"[" * 900]
)
def test_of_which_nobody_knows_since_when_stays_and_is_told(home: Home, note: bytes) -> None:
    home.restore()
    home.lose_record(note)
    assert trash.empty(home.where, 0, 4e9, 1) == 0
    assert home.stitched() == DATA
    (finding,) = doctor.findings()
    assert (finding.kind, finding.path) == ("damaged", str(home.archive))
    assert f"`sessrotate rotate {ID}` uses the archive again" in finding.detail
    home.rotate()
    assert home.stitched() == DATA
    assert list(doctor.findings()) == []


def test_without_its_note_it_is_told_that_the_file_does_not_go_on_from_it(home: Home) -> None:
    home.restore()
    home.lose_record()
    assert trash.empty(home.where, 0, 4e9, 1) == 0
    (finding,) = doctor.findings()
    assert finding.kind == "damaged"
    home.live.rename(home.live.with_suffix(".mine"))
    home.restore()
    assert home.live.read_bytes() == DATA[: archived_bytes(home)]


def test_files_that_are_not_ours_stay_in_it(home: Home) -> None:
    home.restore()
    write(home.archive / "notes.txt", b"mine")
    empty(home, 8)
    assert {*contents(home.archive)} == {"notes.txt", "record.json"}


def test_prune_and_its_dry_run_name_what_they_free(home: Home) -> None:
    home.restore()
    before = snapshot(home.config)
    dry = called("prune", ID, "--empty-trash", "--grace", "0", "--dry-run").out
    assert "Would delete the old archives of 1 restored session, which frees " in dry
    assert "its old archive: the live file has all of it" in dry
    assert snapshot(home.config) == before
    ended = called("prune", "--all", "--empty-trash", "--grace", "0", "--yes")
    assert ended.code == 0
    assert [path.name for path in home.archive.iterdir()] == ["record.json"]


# ── its owner wants it whole ─────────────────────────────────────────────────────────────────


def rotated_by_all(_home: Home) -> str:
    (outcome,) = fleet.rotate(
        fleet.sessions(0),
        lambda where: operations.rotate_session(where, 1, silent, by_itself=True),
        live=False,
    )
    return outcome.detail


def by_hook(home: Home) -> str:
    call.rotate(call.Call(home.where, home.live.stat(), awaits=False), 0)
    assert not home.where.note.exists()
    return "You restored this session"


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
    assert "You restored this session" in rotated(home)
    assert home.live.read_bytes() == DATA


def test_its_owner_rotates_it_by_name_and_from_then_on_it_goes_by_itself(home: Home) -> None:
    home.restore()
    assert [entry.is_restored for entry in listing.sessions()] == [True]
    assert called("split", "--in-place", ID, "--dry-run").code == 0
    assert restored.is_marked(home.where)
    assert called("split", "--in-place", ID).code == 0
    assert [entry.is_restored for entry in listing.sessions()] == [False]
    home.append(session(2, rows=5))
    assert "You restored this session" not in rotated_by_all(home)


def test_the_mark_survives_the_archive(home: Home) -> None:
    home.restore()
    empty(home, 8)
    assert rotated_by_all(home).startswith("You restored this session")
    assert list(restored.marked()) == [ID]


def test_it_stays_whole_where_its_project_was_renamed(home: Home) -> None:
    home.restore()
    new = home.live.parent.with_name("-srv-moved")
    home.live.parent.rename(new)
    (listed,) = listing.sessions()
    assert listed.is_restored
    assert listed.archived_disk_bytes > 0
    assert rotated_by_all(home).startswith("You restored this session")
    live = new / home.live.name
    assert live.read_bytes() == DATA
    assert called("split", "--in-place", ID).code == 0
    assert live.stat().st_size < len(DATA)
    assert not any(restored.marked())


def test_a_restoration_that_fails_marks_nothing(home: Home) -> None:
    os.link(home.live, home.live.with_suffix(".backup"))
    with pytest.raises((RefusedError, SessrotateError)):
        home.restore()
    assert not restored.is_marked(home.where)


# ── what nobody can tell ─────────────────────────────────────────────────────────────────────

FREE: Final = ("prune", ID, "--empty-trash", "--grace", "0", "--yes")


def test_a_segment_that_no_manifest_lists_is_never_freed(home: Home) -> None:
    """A backup that was copied over a newer archive leaves such ones."""
    backup = {path: path.read_bytes() for path in (home.live, *home.archive.iterdir())}
    home.append(session(8, rows=60)[len(DATA) :])
    home.rotate()
    for path, data in backup.items():
        path.write_bytes(data)
    newer = [home.segment(number) for number in (4, 5, 6)]
    before = [path.read_bytes() for path in newer]
    assert {kind.kind for kind in doctor.findings()} == {"stranger"}
    assert called("restore", ID).code == 0
    assert [finding.kind for finding in doctor.findings()] == ["lacking"]
    kept = contents(home.archive)
    assert called(*FREE).code == 0
    assert contents(home.archive) == kept
    assert [path.read_bytes() for path in newer] == before
    assert [finding.kind for finding in doctor.findings()] == ["lacking"]
    assert home.stitched() == DATA


def test_where_one_stands_in_the_way_the_archive_goes_aside(home: Home) -> None:
    home.restore()
    home.append(session(8, rows=60)[len(DATA) :])
    expected = home.live.read_bytes()
    homes.sealed(home.archive, 5).write_bytes(home.segment(2).read_bytes())
    before = contents(home.archive)
    shown = called("rotate", ID, "--dry-run")
    assert "Would put the existing archive aside" in shown.out
    assert "Put the existing archive aside" in called("rotate", ID).out
    assert [contents(folder) for folder in place.aside()] == [before]
    assert home.stitched() == expected
    assert list(doctor.findings()) == []


@pytest.mark.parametrize("data", [b"", DATA[:2000]])
@pytest.mark.parametrize("at", range(1, 6))
def test_what_is_half_freed_is_held_against_the_live_file_once_more(
    home: Home, at: int, data: bytes
) -> None:
    home.restore()
    crash = Faults(at)
    with crash.installed(), suppress(Killed):
        trash.empty(home.where, 0, 4e9, 1)
    home.live.write_bytes(data)
    before = contents(home.archive)
    assert called(*FREE).code == 0
    assert contents(home.archive) == before
    if home.segments():
        assert [finding.kind for finding in doctor.findings()] == ["lacking"]
    home.live.write_bytes(DATA)
    assert called(*FREE).code == 0
    assert home.archived() == {"record.json"}


def test_when_only_the_manifest_is_left_to_free_it_goes_whatever_the_live_file_is(
    home: Home,
) -> None:
    home.restore()
    for path in home.segments():
        path.unlink()
    home.live.write_bytes(DATA[:2000])
    assert called("doctor").out.endswith("No problems found.\n")
    assert called(*FREE).code == 0
    assert home.archived() == {"record.json"}


def test_a_report_reads_nothing_of_what_is_archived_already(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.restore()
    monkeypatch.setattr(restored, "check", None)
    monkeypatch.setattr(restored, "is_held", None)
    assert called("report", "--all").code == called("list", "--deep").code == 0


def test_without_a_manifest_nobody_is_told_to_move_the_live_file_away(home: Home) -> None:
    home.restore()
    (home.archive / "manifest.json").unlink()
    (finding,) = doctor.findings()
    assert finding.kind == "lacking"
    assert f"`sessrotate aside {ID}`" in finding.detail
    assert "move the file away" not in finding.detail
    assert called(*FREE).code == 0
    assert home.segments()
    assert called("aside", home.archive, "--yes").code == 0
    assert list(doctor.findings()) == []
    assert home.live.read_bytes() == DATA


@pytest.mark.parametrize("is_before", [False, True])
def test_a_note_that_is_no_file_is_refused_before_anything_is_changed(
    home: Home, *, is_before: bool
) -> None:
    if not is_before:
        home.restore()
        home.lose_record()
    (home.archive / "record.json").mkdir()
    before = snapshot(home.config)
    for command in (("rotate", ID), ("restore", ID), FREE):
        if is_before and command[0] == "rotate":
            continue  # nothing to cut
        ended = called(*command)
        assert ended.code in {0, 74}
        assert ended.code == 0 or "record.json is not a file: move it away" in ended.err
        assert snapshot(home.config) == before
    assert [finding.kind for finding in doctor.findings()] == ["damaged"]


def test_a_copy_under_another_name_keeps_the_archive(home: Home) -> None:
    short = home.live.read_bytes()
    home.restore()
    copy = home.live.with_name("5e55107a-0000-4000-a000-00000000ffff.jsonl")
    write(copy, short)
    assert called("stitch", copy).out.encode() == DATA
    freed = called(*FREE)
    assert freed.code == 0
    assert "archives: something still needs them (see `doctor`).\n" in freed.out
    assert called("stitch", copy).out.encode() == DATA
    copy.unlink()
    assert called(*FREE).code == 0
    assert home.archived() == {"record.json"}


def test_all_sessions_are_looked_at_once_for_all_that_is_freed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes.another(home, "another-session", DATA)
    for session_id in (ID, "another-session"):
        called("rotate", session_id)
        assert called("restore", session_id).code == 0
    looks, real = [], restored.copied

    def counted() -> frozenset[str]:
        looks.append(1)
        return real()

    monkeypatch.setattr(restored, "copied", counted)
    assert called("prune", "--all", "--empty-trash", "--grace", "0", "--yes").code == 0
    assert len(looks) == 2  # for the plan, and anew once somebody has agreed
    assert not [*home.archive.parent.glob("*/manifest.json")]


def test_a_short_file_that_is_rotated_by_name_goes_by_itself_again(overwritten: Home) -> None:
    assert restored.is_marked(overwritten.where)
    assert called("rotate", ID).out.startswith("Nothing to cut")
    assert not restored.is_marked(overwritten.where)
    assert overwritten.stitched() == DATA
    assert called("prune", ID, "--keep-last", "1", "--yes").code == 0
    assert overwritten.trashed()


def test_what_goes_aside_is_not_said_to_be_freed(home: Home) -> None:
    home.restore()
    homes.sealed(home.archive, 2).unlink()
    before = homes.on_disk(home.config)
    done = operations.rotate_session(home.where, 1, silent)
    assert done.disk is not None
    assert abs(done.disk.gain - (before - homes.on_disk(home.config))) <= 3 * gain.BLOCK


def test_pruned_segments_go_with_the_rest(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program wrote the short file back, an older sessrotate pruned, and the whole is back."""
    short = home.live.read_bytes()
    home.restore()
    home.live.write_bytes(short)
    with monkeypatch.context() as older:
        older.setattr(restored, "is_owed", lambda _found: False)
        assert called("prune", ID, "--keep-last", "1", "--yes").code == 0
    assert [*(home.archive / "trash").iterdir()]
    home.live.write_bytes(DATA)
    assert list(doctor.findings()) == []
    assert called(*FREE).code == 0
    assert home.archived() == {"record.json"}
    for command in (("rotate", ID), ("prune", ID, "--keep-last", "1", "--yes"), FREE):
        assert called(*command).code == 0
    assert list(doctor.findings()) == []


# ── moved ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_before", [False, True])
@pytest.mark.parametrize("how", ["trimmed", "edited", "emptied"])
def test_a_restored_session_that_is_moved_is_the_sessions_own_whatever_it_holds(
    home: Home, how: str, *, is_before: bool
) -> None:
    new = home.live.parent.with_name("-renamed")
    if not is_before:
        home.restore()
    home.live.parent.rename(new)
    live = new / home.live.name
    if is_before:
        assert called("restore", ID).code == 0
    expected = DATA + row(901) + b"\n"
    if how == "trimmed":
        trimming.keep(live)
        append(live, row(901) + b"\n")
    else:
        lines = DATA.splitlines(keepends=True)
        expected = b"" if how == "emptied" else b"".join(lines[:3] + lines[4:])
        live.write_bytes(expected)
    (listed,) = listing.sessions(hidden=True)
    assert listed.path == live
    told = {finding.kind for finding in doctor.findings()}
    assert told == ({"cut"} if how == "trimmed" else {"lacking"})
    before = home.segments()
    assert called(*FREE).code == 0
    assert home.segments() == before
    if how == "emptied":
        assert called("restore", ID).code == 77
        live.rename(live.with_suffix(".mine"))
        assert called("restore", ID, "--project", new).code == 0
        assert live.read_bytes() == DATA[: archived_bytes(home)]
        return
    assert called("rotate", ID).code == 0
    assert called("stitch", ID).out.encode() == expected
    assert list(doctor.findings()) == []


# ── put away ─────────────────────────────────────────────────────────────────────────────────


def test_it_may_be_put_away_and_comes_back_whole(home: Home) -> None:
    home.restore()
    assert called("archive", ID).code == 0
    assert called("stitch", ID).out.encode() == DATA
    assert list(doctor.findings()) == []
    assert empty(home, 8) > 0
    assert called("stitch", ID).out.encode() == DATA
    assert list(doctor.findings()) == []
    assert called("restore", ID).code == 0
    assert home.live.read_bytes() == DATA
    assert restored.is_marked(home.where)
    assert list(doctor.findings()) == []


def test_what_is_put_away_and_lacks_something_is_told_as_well(home: Home) -> None:
    home.restore()
    home.live.write_bytes(row(7) + b"\n")
    assert called("archive", ID).code == 0
    (finding,) = doctor.findings()
    assert finding.kind == "lacking"
    assert f"`sessrotate restore {ID}` puts it back first" in finding.detail
    assert called(*FREE).code == 0
    assert home.segments()


def test_a_session_that_came_back_short_is_not_taken_for_whole(home: Home) -> None:
    assert called("archive", ID).code == 0
    assert called("restore", "--keep-rotated", ID).code == 0
    assert restored.is_marked(home.where)
    home.live.write_bytes(b"")
    ended = called("stitch", ID)
    assert_one_sentence(ended, 74)
    assert "was emptied" in ended.err


def test_the_time_since_when_it_is_whole_stays_when_it_is_put_away(home: Home) -> None:
    home.restore()
    before = (home.archive / "record.json").read_bytes()
    assert called("archive", ID).code == 0
    assert called("restore", ID).code == 0
    assert (home.archive / "record.json").read_bytes() == before


# ── links ────────────────────────────────────────────────────────────────────────────────────


def test_a_link_in_it_is_neither_followed_nor_removed(home: Home, tmp_path: Path) -> None:
    home.restore()
    outside = tmp_path / "outside"
    outside.mkdir()
    write(outside / f"{ID}.jsonl", b"mine")
    (home.archive / "trash").symlink_to(outside)
    with pytest.raises(DamagedError, match="is not a folder: move it away"):
        empty(home, 8)
    assert contents(outside) == {f"{ID}.jsonl": b"mine"}


def test_nothing_behind_a_link_is_freed(home: Home, tmp_path: Path) -> None:
    """Whoever can write there may have put a link to an archive of their own, or of others."""
    home.restore()
    elsewhere = tmp_path / "elsewhere"
    home.archive.rename(elsewhere)
    home.archive.symlink_to(elsewhere)
    before = snapshot(elsewhere)
    with pytest.raises(RefusedError, match="symbolic link"):
        empty(home, 700, 0)
    assert called("prune", "--all", "--empty-trash", "--grace", "0", "--yes").code == 0
    assert restored.of(home.where) is None
    assert snapshot(elsewhere) == before


@pytest.mark.parametrize("left", ["kept", "lost", "damaged"])
@pytest.mark.parametrize("is_restored", [False, True])
def test_a_whole_file_that_was_put_away_and_came_back_is_not_an_older_copy(
    home: Home, left: str, is_restored: bool
) -> None:
    if is_restored:
        home.restore()
        home.lose_record()
    else:
        home.live.write_bytes(DATA)  # a copy from before the rotation
    home.append(row(300))
    assert called("archive", ID).code == 0
    if left != "kept":
        home.lose_record(b"{" if left == "damaged" else None)
    assert called("restore", home.live).code == 0
    assert home.stitched() == home.live.read_bytes() == DATA + row(300)
    for command in (("verify", ID), ("rotate", ID), ("restore", ID), ("rotate", ID)):
        assert called(*command).code == 0
    assert [finding.kind for finding in doctor.findings()] == []
    assert home.stitched() == DATA + row(300)
