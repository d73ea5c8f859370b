"""`restore`: the whole history is the live file again, or nothing has changed."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import restored
from support import command_line, homes
from support.command_line import ID, assert_one_sentence, called
from support.homes import Home, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATA: Final = command_line.session(boundaries=2)


@pytest.fixture
def home(home: Home) -> Home:
    home.rotate()
    return home


@pytest.mark.parametrize("named", ["id", "live file"])
def test_the_live_file_is_whole_again_and_its_archive_says_so(home: Home, named: str) -> None:
    ended = called("restore", ID[:5] if named == "id" else home.live)
    assert ended.code == 0, ended
    assert "Put 2 segments" in ended.out
    assert home.live.read_bytes() == DATA
    assert home.is_whole


def test_a_session_that_is_gone_comes_back_by_its_id(home: Home) -> None:
    home.live.unlink()
    last = json.loads(command_line.segments_of(DATA)[1].splitlines()[-1])["timestamp"]
    for options in (["--dry-run"], []):
        told = called("restore", *options, ID)
        assert told.code == 0
        assert f"and with it everything after {last[:19].replace('T', ' ')}" in told.out
    assert home.live.read_bytes() == b"".join(command_line.segments_of(DATA)[:2])
    assert home.live.stat().st_mode & 0o7777 == 0o600
    assert home.is_whole


def test_a_file_outside_the_clients_folder_cannot_be_restored(home: Home, tmp_path: Path) -> None:
    path = command_line.write(tmp_path / f"{ID}.jsonl", DATA)
    assert_one_sentence(called("restore", path), 77)
    assert home.archive.exists()


def test_a_live_file_that_does_not_go_on_is_refused_with_another_way(home: Home) -> None:
    home.live.write_bytes(command_line.segments_of(DATA)[0])
    before = snapshot(home.config)
    ended = called("restore", ID)
    assert_one_sentence(ended, 77)
    assert f"move it away, then `sessrotate restore {ID}`" in ended.err
    assert snapshot(home.config) == before


@pytest.mark.parametrize("damage", ["changed", "missing", "header"])
def test_a_damaged_archive_leaves_everything_as_it_is(home: Home, damage: str) -> None:
    segment = home.segment(1)
    data = homes.content(segment)
    if damage == "missing":
        segment.unlink()
    else:
        changed = data[:-5] + b"#" + data[-4:] if damage == "changed" else b"{" + data
        homes.rewrite(segment, changed)
    before = snapshot(home.config)
    ended = called("restore", ID)
    assert_one_sentence(ended, 74)
    assert "Segment 1" in ended.err
    assert snapshot(home.config) == before


# ── a session that its client would delete, or has deleted ───────────────────────────────────


def deleted_after_it_was_restored(home: Home) -> None:
    assert called("restore", ID).code == 0
    home.live.unlink()


def test_what_the_client_would_delete_at_its_next_start_counts_as_used_now(home: Home) -> None:
    """A restored session has no archive that would outlive it (claude-code #82084)."""
    homes.unused_for(home.live, 60)
    planned = called("restore", ID, "--dry-run")
    assert "would count as used now" in planned.out
    begun = time.time()
    ended = called("restore", ID)
    assert (ended.code, ended.err) == (0, "")
    assert (
        "It counts as used now: it was unused for 60 days, and its client would delete it"
        in ended.out
    )
    assert home.live.stat().st_mtime >= int(begun)


@pytest.mark.parametrize(("days", "settings"), [(20, "{}"), (60, '{"cleanupPeriodDays": 365}')])
def test_what_the_client_leaves_alone_keeps_its_time(home: Home, days: int, settings: str) -> None:
    (home.config / "settings.json").write_text(settings)
    then = homes.unused_for(home.live, days)
    ended = called("restore", ID)
    assert (ended.code, ended.err) == (0, "")
    assert "counts as used" not in ended.out
    assert home.live.stat().st_mtime == pytest.approx(then, abs=1)


def test_whoever_keeps_the_times_is_told_what_the_client_does(home: Home) -> None:
    then = homes.unused_for(home.live, 60)
    ended = called("restore", "--keep-times", ID)
    assert ended.code == 0
    assert "counts as used" not in ended.out
    assert "deletes sessions after 30 days" in ended.err
    assert home.live.stat().st_mtime == pytest.approx(then, abs=1)


@pytest.mark.parametrize(
    "command", [("read",), ("read", "--history"), ("stitch",), ("export", "--format", "jsonl")]
)
def test_what_is_archived_of_a_deleted_session_can_be_read(
    home: Home, command: tuple[str, ...]
) -> None:
    deleted_after_it_was_restored(home)
    ended = called(*command, ID)
    assert ended.code == 0
    if command == ("stitch",):
        assert "is gone. This is what its archive holds." in ended.err
        assert ended.out.encode() == b"".join(command_line.segments_of(DATA)[:2])


def test_what_a_file_manager_left_is_in_nobodys_way(home: Home) -> None:
    """It is in each folder that sessrotate leaves again, and stays there."""
    assert called("archive", ID).code == 0
    strange = [command_line.write(home.archive / "archived" / ".DS_Store", b"x")]
    assert called("restore", ID).code == 0
    strange.append(command_line.write(home.archive / ".DS_Store", b"x"))
    assert "restored sessions, rotated by name only: 1" in called("doctor").out
    for command in ("archive", "restore", "rotate", "restore"):
        ended = called(command, ID)
        assert (ended.code, ended.err) == (0, ""), ended
    assert home.live.read_bytes() == DATA
    assert called("doctor").code == 0
    assert called("prune", "--all", "--empty-trash", "--grace", "0", "--yes").code == 0
    assert called("doctor").code == 0
    assert strange[1].exists()


@pytest.mark.parametrize("is_both", [False, True])
def test_what_a_file_manager_left_where_a_session_comes_back_goes_with_it(
    home: Home, is_both: bool
) -> None:
    beside = home.live.with_suffix("")
    command_line.write(beside / "tool-results" / "1.txt", b"a result")
    if is_both:
        command_line.write(beside / ".DS_Store", b"before")
    os.utime(beside, (1_700_000_000, 1_700_000_000))
    assert called("archive", ID).code == 0
    for name in ("Thumbs.db", "desktop.ini"):
        command_line.write(home.archive / "archived" / name, b"x")
    left = {".DS_Store": b"now", "._1.txt": b"x", "Thumbs.db": b"x", "desktop.ini": b"x"}
    for name, data in left.items():
        command_line.write(beside / name, data)
    assert called("restore", ID, "--dry-run").code == 0
    assert called("restore", ID, "--keep-times").code == 0
    assert home.live.read_bytes() == DATA
    assert beside.stat().st_mtime == 1_700_000_000
    assert (beside / "tool-results" / "1.txt").read_bytes() == b"a result"
    if is_both:
        left |= {".DS_Store": b"before", ".DS_Store.1": b"now"}
    found = {path.name: path.read_bytes() for path in beside.iterdir() if path.is_file()}
    assert found == left
    assert "put away" not in called("list").out


@pytest.mark.parametrize("name", ["notes.txt", ".git/config"])
def test_what_a_person_left_where_a_session_comes_back_is_in_its_way(home: Home, name: str) -> None:
    beside = home.live.with_suffix("")
    command_line.write(beside / "tool-results" / "1.txt", b"a result")
    assert called("archive", ID).code == 0
    mine = command_line.write(beside / name, b"mine")
    for options in ((), ("--dry-run",)):
        refused = called("restore", ID, *options)
        assert_one_sentence(refused, 77)
        assert "already exists" in refused.err
    assert (mine.read_bytes(), home.live.exists()) == (b"mine", False)


def test_the_last_that_is_left_of_a_session_is_never_freed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted_after_it_was_restored(home)
    homes.later(monkeypatch, 60)
    for which in ("--all", ID):
        assert called("prune", which, "--empty-trash", "--grace", "0", "--yes").code == 0
    assert called("run").code == 0
    told = called("doctor", "--json").document()["findings"]
    assert [(each["session"], each["kind"]) for each in told] == [(ID, "orphan")]
    assert called("stitch", ID).out.encode() == b"".join(command_line.segments_of(DATA)[:2])


def emptied(home: Home) -> None:
    home.live.write_bytes(b"")


def older(home: Home) -> None:
    home.live.write_bytes(DATA[: len(DATA) // 3])


def elsewhere(home: Home) -> None:
    home.live.unlink()
    command_line.write(home.live.parent.parent / "-other" / home.live.name, b"{}\n")


@pytest.mark.parametrize("change", [emptied, older, elsewhere])
def test_what_the_live_file_lacks_is_not_freed_with_the_rest(
    home: Home, monkeypatch: pytest.MonkeyPatch, change: Callable[[Home], None]
) -> None:
    """A stub, an older copy or nothing stands where the whole session was."""
    assert called("restore", ID).code == 0
    change(home)
    homes.later(monkeypatch, 60)
    before = home.archived()
    for which in ("--all", ID):
        assert called("prune", which, "--empty-trash", "--grace", "0", "--yes").code == 0
    assert called("run").code == 0
    assert home.archived() == before
    told = called("doctor", "--json").document()["findings"]
    assert ID in {each["session"] for each in told}
    if change is not elsewhere:
        refused = called("restore", ID)
        assert_one_sentence(refused, 77)
        assert "move the file away" in refused.err
        home.live.rename(home.live.with_suffix(".away"))
        assert called("restore", ID).code == 0
        assert home.live.read_bytes() == b"".join(command_line.segments_of(DATA)[:2])


def gone(home: Home, _short: bytes) -> None:
    home.live.unlink()


def unreachable(home: Home, _short: bytes) -> None:
    home.live.parent.rename(home.config.parent / "unmounted")


def short_again(home: Home, short: bytes) -> None:
    """A client had read the short live file before, and saves it."""
    home.live.write_bytes(short)


@pytest.mark.parametrize("by", ["run", "tidy", "keep rule", "empty trash"])
@pytest.mark.parametrize("change", [gone, unreachable, short_again])
def test_no_rule_takes_what_was_restored_and_is_not_whole_any_more(
    home: Home, monkeypatch: pytest.MonkeyPatch, change: Callable[[Home, bytes], None], by: str
) -> None:
    short = home.live.read_bytes()
    assert called("restore", ID).code == 0
    change(home, short)
    rules = command_line.write(home.config.parent / "rules.toml", b'[prune]\nmax_age = "1d"\n')
    prune = ("prune", ID, "--keep-last", "1", "--yes")
    deeds = {
        "run": ("run", "--config", rules),
        "tidy": ("tidy", "--config", rules, "--yes"),
        "keep rule": prune,
        "empty trash": (*prune, "--empty-trash", "--grace", "0"),
    }
    before = home.archived()
    for days in (1, 9):  # the trash has a grace period of seven
        homes.later(monkeypatch, days)
        assert called(*deeds[by]).code == 0
        assert home.archived() == before
    if change is unreachable:
        (home.config.parent / "unmounted").rename(home.live.parent)
        assert home.live.read_bytes() == DATA
        return
    told = called(*prune)
    assert "it was restored, and is not whole any more" in told.out
    assert called("restore", ID).code == 0
    assert home.live.read_bytes().startswith(b"".join(command_line.segments_of(DATA)[:2]))


def test_what_was_pruned_of_it_before_it_was_gone_from_the_trash_comes_back(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older sessrotate pruned the archive of a restored session whose live file was gone."""
    deleted_after_it_was_restored(home)
    with monkeypatch.context() as older:
        older.setattr(restored, "is_owed", lambda _found: False)
        assert called("prune", ID, "--keep-last", "1", "--yes").code == 0
    assert home.trashed()
    homes.later(monkeypatch, 60)
    emptied = called("prune", ID, "--empty-trash", "--yes")
    assert "their session was restored and is not whole any more" in emptied.out
    assert called("run").code == 0
    assert called("restore", ID).code == 0
    assert home.live.read_bytes() == b"".join(command_line.segments_of(DATA)[:2])


def test_a_rule_takes_what_was_rotated_and_deleted_by_its_client(home: Home) -> None:
    home.live.unlink()
    assert called("prune", ID, "--keep-last", "1", "--yes").code == 0
    assert home.trashed()


@pytest.mark.parametrize("after", ["went on", "put away", "rotated"])
def test_what_a_session_still_has_is_freed_after_its_grace_time(
    home: Home, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    assert called("restore", ID).code == 0
    if after == "went on":
        home.append(command_line.row(500))
    else:
        assert called("archive" if after == "put away" else "rotate", ID).code == 0
    there = called("stitch", ID).out
    homes.later(monkeypatch, 9)
    assert called("prune", "--all", "--empty-trash", "--yes").code == 0
    assert ("manifest.json" in home.archived()) == (after == "rotated")
    assert called("stitch", ID).out == there
    assert called("doctor").code == 0


@pytest.mark.parametrize(
    "project", ["", ".", "..", "../../x", "/etc", "a\0b", "\ud800", "a" * 300, 7, None, "-other"]
)
@pytest.mark.parametrize("is_freed", [False, True])
def test_a_note_that_lies_about_its_project_harms_nothing(
    home: Home, project: object, *, is_freed: bool
) -> None:
    homes.another(home, "another-session", DATA)
    assert called("restore", ID).code == 0
    if is_freed:
        assert called("prune", ID, "--empty-trash", "--grace", "0", "--yes").code == 0
    note = home.archive / "record.json"
    note.write_text(json.dumps({**json.loads(note.read_text()), "project": project}) + "\n")
    assert called("stitch", ID).out.encode() == DATA
    assert called("read", "another-session").code == 0
    assert called("rotate", ID).code == 0
    assert called("stitch", ID).out.encode() == DATA
    assert called("restore", ID).code == 0
    assert home.live.read_bytes() == DATA
    assert called("doctor").code == 0


def test_our_own_trash_tells_the_clock_what_time_it_is(home: Home) -> None:
    """All that is left is from today, so a clock of today is not ahead."""
    homes.unused_for(home.live, 60)
    assert called("restore", "--keep-times", ID).code == 0
    home.live.unlink()
    kinds = [each["kind"] for each in called("doctor", "--json").document()["findings"]]
    assert kinds == ["orphan"]


def test_a_project_that_is_not_there_is_said_and_the_session_can_go_on_to_another(
    home: Home, tmp_path: Path
) -> None:
    assert called("archive", ID).code == 0
    moved = tmp_path / "moved"
    ended = called("restore", ID, "--project", moved / "typo")
    assert ended.code == 0
    assert f"There is no folder {moved / 'typo'}: a client finds" in ended.err
    moved.mkdir()
    refused = called("restore", ID, "--project", moved)
    assert refused.code == 77
    assert "`sessrotate archive` puts the session away first" in refused.err
    assert called("archive", ID).code == 0
    ended = called("restore", ID, "--project", moved)
    assert (ended.code, ended.err) == (0, "")
    assert not home.live.exists()
    assert called("stitch", ID).out.encode() == DATA
