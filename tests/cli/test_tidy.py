"""`tidy` says what the disk will gain, asks, and what it then says is what `du` says.

Rule: the disk is measured here by `du`, and not by the code.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec.structs import replace

from sessrotate import fs
from sessrotate.job import run, run_log
from sessrotate.render import size
from sessrotate.system import user_folders
from support import command_line, homes
from support.command_line import ID, called, write
from support.homes import Home, snapshot
from support.terminals import asked

if TYPE_CHECKING:
    pass

DATA: Final = command_line.session(boundaries=6, rows=20, padding=30_000)
SMALL: Final = command_line.session(boundaries=2, rows=3, padding=1000)
LARGE: Final = "5e55107a-0000-4000-a000-000000000200"


@pytest.fixture
def home(home: Home) -> Home:
    home.beside(LARGE, command_line.session(boundaries=9, rows=20, padding=40_000))
    return home


def taken(home: Home) -> int:
    folders = (home.config / "projects", home.config / "sessrotate")
    return sum(homes.on_disk(folder) for folder in folders if folder.exists())


def planned(*arguments: str) -> Any:
    return called("tidy", "--dry-run", "--json", *arguments).document()


def test_a_project_whose_folder_is_a_link_is_tidied_like_any_other(home: Home) -> None:
    """A place has the folder's own path, and the list has the link's."""
    there = home.config.parent / "elsewhere"
    home.live.parent.rename(there)
    home.live.parent.symlink_to(there)
    (there / "notes.txt").write_bytes(bytes(1 << 20))  # no client's
    (there / LARGE).mkdir()  # such a session, and one that was rotated, may be due to be healed
    sizes = [homes.on_disk(there) - homes.on_disk(there / "notes.txt") + taken(home)]
    for _ in range(2):
        done = called("tidy", "--yes", "--json")
        sizes.append(homes.on_disk(there) - homes.on_disk(there / "notes.txt") + taken(home))
        before, after = sizes[-2:]
        assert (done.code, done.err) == (0, "")
        assert done.document()["disk_bytes_before"] == pytest.approx(before, rel=0.01)
        assert done.document()["disk_bytes_gained"] == pytest.approx(before - after, rel=0.02)
    assert called("run", "--dry-run").code == 0
    assert home.stitched() == DATA


def test_what_is_needed_is_got_from_the_largest_session_and_no_more_is_done(home: Home) -> None:
    assert called("tidy", "--yes", "--need", "1M").code == 0
    assert not home.archived()
    assert (home.archive.parent / LARGE).exists()


def test_more_than_there_is_is_said_with_the_difference(home: Home) -> None:
    ended = called("tidy", "--yes", "--need", "1G")
    assert ended.code == 0
    assert "less than the 1.0 GiB you need" in ended.out
    assert home.archived()


def test_a_session_that_gains_little_is_left_unless_it_is_named_and_then_no_other_is_rotated(
    home: Home,
) -> None:
    path = home.beside("5e55107a-0000-4000-a000-000000000300", SMALL)
    assert planned()["disk_bytes_gained"] > 0
    assert called("tidy", "--yes", path.stem).code == 0
    assert (home.archive.parent / path.stem).exists()
    assert not home.archived()
    small = home.beside("5e55107a-0000-4000-a000-000000000301", SMALL)
    assert called("tidy", "--yes").code == 0
    assert home.archived()
    assert small.read_bytes() == SMALL.replace(ID.encode(), small.stem.encode())


def test_nobody_is_asked_without_a_terminal_and_nothing_is_done(home: Home) -> None:
    was = snapshot(home.config.parent)
    assert called("tidy").code == 2
    assert called("tidy", "--json").code == 2
    assert snapshot(home.config.parent) == was


def test_rules_are_applied_only_where_there_are_some(home: Home, tmp_path: Path) -> None:
    assert called("tidy", "--yes").code == 0
    assert not (home.config / "sessrotate" / ".trash").exists()
    archived = home.archived()
    rules = write(tmp_path / "rules.toml", b"[prune]\nkeep_last = 1\n")
    ended = called("tidy", "--yes", "--config", rules)
    assert ended.code == 0
    assert "Pruned" in ended.out
    assert len(home.archived()) < len(archived)


def test_what_a_person_pruned_stays_in_the_trash_unless_a_rule_says_otherwise(
    home: Home, tmp_path: Path
) -> None:
    assert called("rotate", ID).code == 0
    assert called("prune", "--keep-last", "1", "--yes", ID).code == 0
    manifest = home.archive / "manifest.json"  # that was two months ago
    dated = re.sub(
        rb'("pruned":\s*\{[^}]*"at":\s*")20\d\d-\d\d', rb"\g<1>2026-01", manifest.read_bytes()
    )
    assert dated != manifest.read_bytes()
    manifest.write_bytes(dated)
    trashed = command_line.names_in(home.archive / "trash")
    assert trashed
    shown = called("tidy", "--dry-run").out
    assert "delete for good" not in shown
    assert called("tidy", "--yes").code == 0
    assert command_line.names_in(home.archive / "trash") == trashed
    rules = write(tmp_path / "rules.toml", b'[trash]\ngrace = "30d"\n')
    shown = called("tidy", "--dry-run", "--config", rules).out
    assert "delete for good" in shown
    assert "Undo" not in shown
    assert called("tidy", "--yes", "--config", rules).code == 0
    assert not (home.archive / "trash").exists()


def test_a_session_in_use_is_passed_over_and_said(home: Home) -> None:
    home.run_by_a_client()
    ended = called("tidy", "--yes")
    assert ended.code == 0
    assert "1 session is in use" in ended.out
    for options in (("--yes",), ("--dry-run",), ("--yes", "--json")):
        named = called("tidy", ID, *options)  # it was asked for, and not done
        assert named.code == 75
        assert named.err == ""
    assert named.document()["code"] == 75
    assert home.live.read_bytes() == DATA


def test_the_plan_fits_on_a_screen_however_many_sessions_there_are(home: Home) -> None:
    for number in range(30):
        home.beside(f"5e55107a-0000-4000-a000-0000000004{number:02}", DATA)
    ended = called("tidy", "--dry-run")
    assert ended.code == 0
    assert len(ended.out.splitlines()) <= 24
    assert max(map(len, ended.out.splitlines())) <= 120
    assert "and 22 more" in ended.out


def test_a_session_that_two_steps_make_smaller_is_shown_once_with_what_both_free(
    home: Home,
) -> None:
    write(user_folders.config_file(), b'[archive]\nolder_than = "1d"\n')
    for path in home.live.parent.iterdir():
        os.utime(path, (0, 0))
    told = planned()
    assert [each["action"] for each in told["sessions"]] == [
        "rotate",
        "rotate",
        "archive",
        "archive",
    ]
    by_session = dict.fromkeys((ID, LARGE), 0)
    for each in told["sessions"]:
        by_session[each["session"]] += each["disk_bytes_before"] - each["disk_bytes_after"]
    shown = re.findall(
        r"^(5e55\S+) .* ([0-9.]+ .iB)\s*$", called("tidy", "--dry-run").out, re.MULTILINE
    )
    assert [frees for _, frees in shown] == [size(by_session[LARGE]), size(by_session[ID])]


@pytest.mark.parametrize(("answer", "is_done"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_person_is_shown_the_plan_and_asked(home: Home, answer: str, is_done: bool) -> None:
    code, said = asked(answer, "tidy", env=home.env)
    assert code == 0
    assert "Tidying frees about" in said
    assert said.count("Continue? [y/N]") == 1
    assert bool(home.archived()) == is_done
    assert ("Freed" in said) == is_done


def test_a_newcomer_with_sixty_sessions_gets_what_was_promised(home: Home) -> None:
    for number in range(58):  # most were never compacted, or are small
        kind = command_line.session(boundaries=number % 7 // 5 * 8, rows=10, padding=900 * number)
        home.beside(f"5e55107a-0000-4000-a000-0000000005{number:02}", kind)
    status = called().out
    told = planned()["disk_bytes_gained"]
    was = {path: path.read_bytes() for path in home.live.parent.iterdir()}
    before = taken(home)
    ended = called("tidy", "--yes")
    gained = before - taken(home)
    assert ended.code == 0
    assert f"about {size(told)}" in status
    assert told == pytest.approx(gained, rel=0.2)
    (freed,) = re.findall(r"Freed ([0-9.]+) MiB on disk", ended.out)
    assert float(freed) * 2**20 == pytest.approx(gained, rel=0.01)
    assert planned()["disk_bytes_gained"] == 0
    assert called("verify", "--all").code == 0
    assert called("restore", "--last-run", "--yes").code == 0
    assert {path: path.read_bytes() for path in was} == was


@pytest.mark.usefixtures("home")
def test_a_session_that_its_owner_restored_is_named_with_what_to_do() -> None:
    assert called("tidy", "--yes", ID).code == 0
    assert called("restore", ID).code == 0
    ended = called("tidy", "--dry-run", ID)
    assert f"{ID} stays as it is. You restored this session" in ended.out
    assert f"sessrotate rotate {ID}" in ended.out


@pytest.mark.usefixtures("home")
def test_of_a_session_that_was_named_it_is_said_why_it_stays_and_nothing_of_others() -> None:
    assert called("tidy", "--yes", ID).code == 0
    again = called("tidy", ID)
    assert f"{ID} stays as it is. It has not been compacted since the last rotation." in again.out
    assert "What else takes up space" not in again.out
    assert "What else takes up space" in called("tidy", "--yes").out


@pytest.mark.usefixtures("home")
def test_a_tidy_that_a_script_starts_is_no_run_of_a_timer() -> None:
    assert called("tidy", "--yes").code == 0
    assert run_log.last(by_itself=True) is None
    assert run_log.last() is not None
    assert called("run").code == 0
    assert run_log.last(by_itself=True) is not None


def test_a_narrow_terminal_gets_sentences_cut_at_words(home: Home) -> None:
    wide, narrow = (
        command_line.without_ansi(
            command_line.on_terminal("tidy", "-n", env=home.env, columns=columns).out
        )
        for columns in (1000, 60)
    )
    sentence = "each session resumes as before, and its history can be read and searched"
    assert sentence in wide
    assert sentence not in narrow
    assert sentence in " ".join(narrow.split())
    assert max(map(len, narrow.splitlines())) <= 60


@pytest.mark.usefixtures("home")
def test_what_the_log_does_not_have_is_not_said_to_be_undone() -> None:
    user_folders.log_file().mkdir(parents=True)
    ended = called("tidy", "--yes")
    assert "Rotated 2 sessions." in ended.out
    assert "--last-run" not in ended.out


def test_what_nobody_was_shown_is_neither_pruned_nor_deleted(home: Home) -> None:
    """What goes to an archive only now could be pruned by the rules, and deleted at once.

    Without a grace period, what is pruned is deleted in the same run, as the plan shows.
    """
    rules = b'rotate.min_gain = 0\nprune.keep_last = 1\ntrash.grace = "0"\n'
    write(user_folders.config_file(), rules)
    whole = home.live.read_bytes()
    for step in ("rotate", "prune", "nothing"):
        plan = called("tidy", "--dry-run").out
        assert ("Deleted for good: the trash of" in plan) == (step == "prune"), plan
        assert ("move history to the trash" in plan) == (step == "prune"), plan
        about, before = planned()["disk_bytes_gained"], taken(home)
        assert called("tidy", "--yes").code == 0
        assert before - taken(home) == pytest.approx(about, rel=0.2, abs=20_000)
        assert not (home.archive / "trash").exists()
        if step == "rotate":
            assert called("stitch", ID).out.encode() == whole
    assert "deleted for good since then" in called("verify", ID).out


def test_what_comes_to_an_archive_after_the_plan_was_shown_is_not_pruned(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(user_folders.config_file(), b'prune.keep_last = 1\ntrash.grace = "0"\n')
    assert called("rotate", "--all", "--yes", "--min-size", "1").code == 0
    real = run.execute

    def late(*words: Any, **more: Any) -> Any:
        with home.live.open("ab") as file:  # the client compacts, and the hook rotates
            file.write(command_line.boundary(900) + command_line.row(901))
        assert called("rotate", ID).code == 0
        return real(*words, **more)

    before = len(home.segments())
    monkeypatch.setattr(run, "execute", late)
    ended = called("tidy", "--yes")
    assert ended.code == 0, ended
    assert "1 session is in use" in ended.out
    assert len(home.segments()) == before + 1
    assert "deleted for good" in called("verify", LARGE).out


def test_nothing_is_pruned_of_what_the_plan_moves_to_an_archive(home: Home) -> None:
    rules = b'rotate.min_gain = 0\nprune.keep_last = 1\ntrash.grace = "0"\n'
    assert called("rotate", "--all", "--yes", "--min-size", "1").code == 0
    write(user_folders.config_file(), rules)
    home.append(command_line.boundary(900) + command_line.row(901))
    whole = called("stitch", ID).out

    def changed(told: Any) -> list[tuple[str, str]]:
        found = (each for each in told["sessions"] if each["result"] in {"planned", "done"})
        return [(each["session"], each["action"]) for each in found]

    steps = [(ID, "rotate"), (LARGE, "prune"), (LARGE, "trash")]
    assert changed(planned()) == steps
    assert changed(called("tidy", "--yes", "--json").document()) == steps
    assert called("stitch", ID).out == whole
    assert changed(planned()) == [(ID, "prune"), (ID, "trash")]


def test_what_the_plan_did_not_put_away_stays_in_sight(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = b'rotate.min_gain = 0\narchive.older_than = "1d"\n'
    write(user_folders.config_file(), rules)
    os.utime(home.live, (0, 0))
    real = run.plan

    def without_archiving(*words: Any, **more: Any) -> Any:
        report = real(*words, **more)  # as with --need, of which rotating seemed to be enough
        stages = [
            replace(stage, outcomes=() if stage.step.name == "archive" else stage.outcomes)
            for stage in report.stages
        ]
        return replace(report, stages=tuple(stages))

    monkeypatch.setattr(run, "plan", without_archiving)
    assert called("tidy", "--yes").code == 0
    assert home.live.exists()


@pytest.mark.usefixtures("home")
def test_a_plan_deletes_nothing_that_it_cannot_prune(monkeypatch: pytest.MonkeyPatch) -> None:
    assert called("rotate", "--all", "--yes", "--min-size", "1").code == 0
    write(user_folders.config_file(), b'prune.keep_last = 1\ntrash.grace = "0"\n')
    with monkeypatch.context() as patch:
        patch.setattr(fs, "free_bytes", lambda _path: 0)
        ended = called("tidy", "--dry-run")
    assert ended.code == 74
    assert "for good" not in ended.out
