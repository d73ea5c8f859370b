"""`prune`, `pin`, `unpin`, and `restore` of what was pruned: shown, asked for, done, and undone."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from sessrotate import fs
from sessrotate.job import config, run_log
from sessrotate.retention.policy import Policy
from sessrotate.system import locks, user_folders
from support import command_line, homes, oracle
from support.command_line import (
    COMMAND,
    ENVIRONMENT,
    ID,
    assert_one_sentence,
    called,
    raw_controls,
)
from support.homes import Home, another, snapshot
from support.terminals import asked

DATA: Final = command_line.session(boundaries=4)
BODIES: Final = oracle.bodies(DATA)
LAST_TWO: Final = ("--keep-last", "2")
ANSWERS: Final = {"y\n": 0, "YES\n": 0, "n\n": 0, "\n": 0, "\x04": 0, "\x03": 130}


@pytest.fixture
def home(home: Home) -> Home:
    home.rotate()
    return home


@pytest.fixture
def pruned(home: Home) -> Home:
    """Give that home with two segments of its session in the trash."""
    assert called("prune", ID, *LAST_TWO, "--yes").code == 0
    return home


def trashed(home: Home) -> list[str]:
    folder = home.archive / "trash"
    return command_line.names_in(folder) if folder.exists() else []


def in_trash(home: Home, number: int) -> Path:
    return homes.sealed(home.archive / "trash", number)


RULES: Final = {
    "keep_last": "2",
    "keep_within": "1d",
    "keep_daily": "2",
    "keep_weekly": "2",
    "keep_monthly": "2",
    "max_age": "1d",
    "max_size": "1M",
}


def test_every_rule_of_the_policy_is_an_option_and_a_setting(home: Home) -> None:
    assert RULES.keys() == {*Policy.__struct_fields__} == {*config.Prune.__struct_fields__}
    without = called("prune", ID, "--dry-run")
    assert without.code == 2, without
    for name, value in RULES.items():
        ended = called("prune", ID, f"--{name.replace('_', '-')}", value, "--dry-run")
        assert ended.code == 0, ended
        folder = home.config.parent / "xdg-config" / "sessrotate"
        folder.mkdir(parents=True, exist_ok=True)
        told = value if value.isdecimal() else f'"{value}"'
        (folder / "config.toml").write_text(f"[prune]\n{name} = {told}\n")
        assert called("run", "--dry-run").code == 0


# ── seen before it happens ───────────────────────────────────────────────────────────────────


def test_a_dry_run_shows_what_the_run_does_and_changes_nothing(home: Home) -> None:
    before = snapshot(home.config)
    shown = called("prune", ID, *LAST_TWO, "--dry-run")
    assert shown.code == 0
    assert snapshot(home.config) == before
    done = called("prune", ID, *LAST_TWO, "--yes")
    assert done.code == 0
    *plan, last = shown.out.splitlines()
    assert done.out.splitlines()[:-1] == plan
    assert plan[0].split()[-5:] == ["remove", "size", "last", "record", "why"]
    what = r".*  2 of 4  .*B  2026-03-01 10:00  no keep rule applies"
    assert re.fullmatch(rf"{ID[:8]}  {what}", plan[1])
    assert plan[2].startswith("In each session, keep the last 2 segments.")
    assert re.fullmatch(r"Would move 2 segments of 4 \(.*B\) to the trash\.", last)
    assert re.match(r"Moved .*B to the trash: `restore`", done.out.splitlines()[-1])
    assert trashed(home) == [in_trash(home, 1).name, in_trash(home, 0).name]


def test_json_has_the_keys_that_others_read(home: Home) -> None:
    sizes = [home.segment(number).stat().st_size for number in range(3)]
    dry = called("prune", ID, *LAST_TWO, "--dry-run", "--json").document()
    assert [(entry["session"], entry["index"], entry["keep"]) for entry in dry["segments"]] == [
        (ID, 0, False),
        (ID, 1, False),
        (ID, 2, True),
        (ID, 3, True),
    ]
    assert [entry["bytes"] for entry in dry["segments"]][:3] == sizes
    assert all(entry["reasons"] for entry in dry["segments"])
    assert (dry["bytes_trashed"], dry["bytes_freed"]) == (sum(sizes[:2]), 0)
    done = called("prune", ID, *LAST_TWO, "--yes", "--json").document()
    assert {**dry, "dry_run": False} == done
    grace = ("--empty-trash", "--grace", "0")
    both = called("prune", ID, "--keep-last", "1", *grace, "--json", "--dry-run").document()
    done = called("prune", ID, "--keep-last", "1", *grace, "--yes", "--json").document()
    blocks = sum(entry["disk_bytes"] for entry in dry["segments"][:3])
    assert (done["bytes_trashed"], both["bytes_trashed"]) == (sizes[2], sizes[2])
    assert sum(sizes) < blocks <= both["bytes_freed"] == done["bytes_freed"]


def test_a_script_must_say_yes(home: Home) -> None:
    before = snapshot(home.config)
    ended = called("prune", ID, *LAST_TWO)
    assert ended.code == 2
    assert "--yes" in ended.err
    assert snapshot(home.config) == before
    assert called("prune", ID, "--keep-last", "9").code == 0  # nothing to be asked


@pytest.mark.parametrize(("answer", "code"), ANSWERS.items(), ids=repr)
def test_a_person_is_asked(home: Home, answer: str, code: int) -> None:
    before = snapshot(home.config)
    ended, said = asked(answer, "prune", ID, *LAST_TWO, env=home.env)
    assert ended == code, said
    assert said.count("Continue? [y/N]") == 1
    assert re.search(r"Will move 2 segments of 4 \(.*B\) to the trash\.\s+Continue\?", said)
    assert "Traceback" not in said
    if answer in {"y\n", "YES\n"}:
        assert len(trashed(home)) == 2
    else:
        assert snapshot(home.config) == before
        assert code or "Nothing was changed." in said


def test_a_question_says_what_goes_for_good(pruned: Home) -> None:
    empty = ("prune", "--all", "--empty-trash", "--grace", "0")
    said = asked("n\n", *empty, env=pruned.env)[1]
    goes = r"delete 2 segments for good, which frees .*B of the disk\."
    assert re.search(rf"Will {goes}\s+Continue\? \[y/N\]", said)
    said = called(*empty, "--dry-run").out
    assert re.search(rf"{ID[:8]} .* 2 pruned segments: no command .*\nWould {goes}\n$", said)
    said = called(*empty, "--yes").out
    assert re.search(r"\nFreed .*B for good\.\n$", said)
    assert "were pruned" in (gone := called("verify", ID).out)
    assert "and deleted for good since then" in gone


def test_each_session_that_loses_something_is_a_line_and_each_segment_if_wanted(
    home: Home,
) -> None:
    another(home, "second-session", DATA)
    called("pin", "second-session", "0")
    options = ("prune", "--all", *LAST_TWO, "--dry-run")
    lines = called(*options).out.splitlines()
    told = [re.findall(r"^\S+|\d of \d", line) for line in lines[1:3]]
    assert told == [[ID[:8], "2 of 4"], ["second-s", "1 of 4"]]
    assert len(lines) == 5
    said = called(*options, "-v").out
    assert re.findall(r"  (keep|remove)  ", said) == [
        *("remove", "remove", "keep", "keep"),
        *("keep", "remove", "keep", "keep"),
    ]
    assert "the newest of its session" in said


def test_where_nothing_goes_it_is_said_once(home: Home) -> None:
    ended = called("prune", ID, "--keep-last", "9")
    _, row, policy, last = ended.out.splitlines()
    assert row.startswith(f"{ID[:8]}  ")
    assert "  0 of 4  " in row
    assert "keep-last 9" in row
    assert policy.startswith("In each session, keep the last 9 segments.")
    assert last == "Nothing to remove."
    assert home.stitched() == DATA


# ── several ──────────────────────────────────────────────────────────────────────────────────


def test_several_sessions_are_each_pruned_once(home: Home) -> None:
    another(home, "second-session", DATA)
    ended = called("prune", ID, "second-session", ID, *LAST_TWO, "--yes", "--json")
    assert ended.code == 0
    told = [(entry["session"], entry["index"]) for entry in ended.document()["segments"]]
    assert told == [(name, index) for name in (ID, "second-session") for index in range(4)]


def test_of_all_archives_one_that_is_damaged_is_no_others_failure(home: Home) -> None:
    another(home, "second-session", DATA)
    (home.archive / "manifest.json").write_bytes(b"{")
    ended = called("prune", "--all", *LAST_TWO, "--yes", "--json")
    assert ended.code == 74
    assert ended.err.count("manifest.json") == 1
    document = ended.document()
    assert {entry["session"] for entry in document["segments"]} == {"second-session"}
    assert document["bytes_trashed"] > 0


def test_what_another_keeps_busy_does_not_count_as_pruned(home: Home) -> None:
    another(home, "second-session", DATA)
    with locks.alone(home.where, 1):
        ended = called("prune", "--all", *LAST_TWO, "--yes", "--json", "--wait", "0")
    assert ended.code == 75
    assert trashed(home) == []
    other = home.archive.with_name("second-session") / "trash"
    gone = sum(file.stat().st_size for file in other.iterdir())
    assert ended.document()["bytes_trashed"] == gone


def test_a_session_that_a_client_runs_stays(home: Home) -> None:
    home.run_by_a_client()
    ended = called("prune", ID, *LAST_TWO, "--yes", "--verbose")
    assert ended.code == 0
    assert "a client is running its session" in ended.out
    assert trashed(home) == []


def test_two_prunes_at_once_do_it_once(home: Home) -> None:
    command = [COMMAND, "prune", ID, *LAST_TWO, "--yes", "--json"]
    both = [
        subprocess.Popen(
            command, env={**ENVIRONMENT, **home.env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=command_line.SECONDS) for process in both]
    codes = sorted(process.returncode for process in both)
    assert codes in ([0, 0], [0, 75]), said
    assert trashed(home) == [in_trash(home, 1).name, in_trash(home, 0).name]
    went = [json.loads(out)["bytes_trashed"] for out, _ in said]
    gone = sum(file.stat().st_size for file in (home.archive / "trash").iterdir())
    assert sorted(went) == [0, gone]


# ── the trash ────────────────────────────────────────────────────────────────────────────────


def test_the_trash_is_emptied_without_a_policy_and_only_when_it_is_time(pruned: Home) -> None:
    young = called("prune", ID, "--empty-trash")
    assert young.code == 0
    assert "and restored sessions' archives: either their grace period" in young.out
    size = homes.on_disk(pruned.archive / "trash")
    empty = ("prune", "--all", "--empty-trash", "--grace", "0")
    dry = called(*empty, "--dry-run", "--json").document()
    assert (dry["segments"], dry["policy"], dry["bytes_freed"]) == ([], None, size)
    assert called(*empty).code == 2  # for good, so somebody must say so
    assert len(trashed(pruned)) == 2
    done = called(*empty, "--yes", "--json").document()
    assert (done["bytes_trashed"], done["bytes_freed"]) == (0, size)
    assert not (pruned.archive / "trash").exists()
    for options in ((), ("--keep-rotated",)):
        gone = called("restore", *options, ID)
        assert_one_sentence(gone, 77)
        assert "segments 0, 1 were deleted for good" in gone.err


@pytest.mark.parametrize("command", [("prune", "--all", "--empty-trash", "--yes"), ("run",)])
@pytest.mark.parametrize("what", ["pruned", "restored"])
@pytest.mark.parametrize(("settings", "days"), [(b"", 7), (b'[trash]\ngrace = "30d"\n', 30)])
def test_the_grace_time_of_the_settings_is_that_of_everything_that_frees(
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    what: str,
    settings: bytes,
    days: int,
) -> None:
    command_line.write(user_folders.config_file(), settings)
    if what == "pruned":
        assert called("prune", ID, *LAST_TWO, "--yes").code == 0
        folder = home.archive / "trash"
    else:
        assert called("restore", ID).code == 0
        folder = home.archive / "manifest.json"
    homes.later(monkeypatch, days - 1)
    assert called(*command).code == 0
    assert folder.exists()
    homes.later(monkeypatch, 2)
    assert called(*command).code == 0
    assert not folder.exists()


def test_settings_that_keep_the_trash_for_ever_are_asked_what_is_meant(home: Home) -> None:
    command_line.write(user_folders.config_file(), b"[trash]\ngrace = false\n")
    called("prune", ID, *LAST_TWO, "--yes")
    ended = called("prune", ID, "--empty-trash", "--yes")
    assert_one_sentence(ended, 77)
    assert "--grace" in ended.err
    assert trashed(home)
    assert called("prune", ID, "--empty-trash", "--grace", "0", "--yes").code == 0
    assert trashed(home) == []


def test_what_is_freed_for_good_is_what_du_says_that_the_disk_gains(home: Home) -> None:
    another(home, "second-session", DATA)
    assert called("restore", "second-session").code == 0
    called("prune", ID, *LAST_TWO, "--yes")
    ours = home.config / "sessrotate"
    empty = ("prune", "--all", "--empty-trash", "--grace", "0")
    planned = called(*empty, "--dry-run", "--json").document()["bytes_freed"]
    before = homes.on_disk(ours)
    done = called(*empty, "--yes", "--json").document()["bytes_freed"]
    gained = before - homes.on_disk(ours)
    assert gained == pytest.approx(done, abs=4096)
    assert planned == done > 0


def test_a_run_says_what_the_disk_gains_by_the_archives_of_restored_sessions(home: Home) -> None:
    assert called("restore", ID).code == 0
    files = [path for path in home.archive.iterdir() if path.name != "record.json"]
    size = sum(map(homes.on_disk, files))
    command_line.write(user_folders.config_file(), b'[trash]\ngrace = "0d"\n')
    for options in (("--dry-run",), ()):
        steps = called("run", *options, "--json").document()["steps"]
        (step,) = [each for each in steps if each["name"] == "trash"]
        assert step["disk_bytes_gained"] == size


def test_what_nobody_pruned_stays_in_the_trash_and_is_told(pruned: Home) -> None:
    (pruned.archive / "trash" / "mine\x1b[2J").write_bytes(b"mine")
    ended = called("prune", ID, "--empty-trash", "--grace", "0", "--yes")
    assert ended.code == 0
    assert "that were never pruned: " in ended.err
    assert not raw_controls(ended.err)
    assert trashed(pruned) == ["mine\x1b[2J"]


def test_a_link_in_the_trashs_place_is_not_followed(home: Home, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (home.archive / "trash").symlink_to(outside)
    for options in (LAST_TWO, ("--empty-trash", "--grace", "0")):
        ended = called("prune", ID, *options, "--yes")
        assert ended.code == 74
        assert "is not a folder" in ended.err
    assert list(outside.iterdir()) == []
    assert home.stitched() == DATA


def test_a_session_that_stays_rotated_gets_its_pruned_segments_back(home: Home) -> None:
    before, live = command_line.contents(home.archive), home.live.read_bytes()
    called("prune", ID, *LAST_TWO, "--yes")
    back = called("restore", "--keep-rotated", ID)
    assert (back.code, back.out) == (0, f"Brought 2 segments of {ID} back from the trash.\n")
    assert command_line.contents(home.archive) == before
    assert home.live.read_bytes() == live
    again = called("restore", "--keep-rotated", ID)
    assert (again.code, again.out.startswith("Nothing to restore: ")) == (0, True)


@pytest.mark.usefixtures("home")
def test_what_is_left_comes_back_although_some_of_it_was_freed() -> None:
    called("prune", ID, "--keep-last", "3", "--yes")
    called("prune", ID, "--empty-trash", "--grace", "0", "--yes")
    called("prune", ID, *LAST_TWO, "--yes")
    back = called("restore", ID)
    assert back.code == 0
    assert "Brought 1 segment" in back.out
    assert "cannot be made whole: segment 0 was deleted for good." in back.out
    assert called("stitch", ID, "--allow-gaps").out.encode() == b"".join(BODIES[1:])
    assert_one_sentence(called("restore", ID), 77)


def test_a_file_in_the_way_of_what_comes_back_is_not_overwritten(pruned: Home) -> None:
    segment = in_trash(pruned, 1)
    data = segment.read_bytes()
    stranger = command_line.write(pruned.archive / segment.name, b"mine")
    assert_one_sentence(called("restore", "--keep-rotated", ID), 74)
    assert stranger.read_bytes() == b"mine"
    assert segment.read_bytes() == data


# ── pinning ──────────────────────────────────────────────────────────────────────────────────


def test_a_pinned_segment_stays_with_its_note_and_without_it_goes(home: Home) -> None:
    assert called("pin", ID, "1", "--note", "evil\x1b[31m\nnote").code == 0
    ended = called("prune", ID, *LAST_TWO, "--yes", "--verbose")
    assert not raw_controls(ended.out)
    assert "pinned: evil" in ended.out
    assert trashed(home) == [in_trash(home, 0).name]
    assert called("unpin", ID, "1").code == 0
    assert called("prune", ID, *LAST_TWO, "--yes").code == 0
    assert len(trashed(home)) == 2
    gone = called("pin", ID, "1")
    assert_one_sentence(gone, 2)
    assert "no sealed segment 1" in gone.err


def test_a_hostile_name_of_a_session_is_harmless_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes.home(tmp_path, monkeypatch)
    live = home.config / "projects" / homes.PROJECT / "evil\x1b[2Jname\n.jsonl"
    command_line.write(live, DATA)
    assert called("split", "--in-place", live).code == 0
    for options in (("--dry-run",), ("--yes",)):
        ended = called("prune", "--all", *LAST_TWO, *options)
        assert ended.code == 0
        assert not raw_controls(ended.out + ended.err)
        assert ended.out.count("  2 of 4  ") == 1


# ── a rotation in between ────────────────────────────────────────────────────────────────────


def test_an_unfinished_rotation_holds_everything_and_says_what_finishes_it(home: Home) -> None:
    home.pack.hardlink_to(home.live)
    ended = called("prune", ID, *LAST_TWO, "--yes")
    assert ended.code == 0
    assert "a rotation of its session is unfinished" in ended.out
    assert trashed(home) == []
    for command in (("pin", ID, "1"),):
        ended = called(*command)
        assert ended.code == 75
        assert "rotate" in ended.err


def test_a_rotation_after_the_plan_was_made_is_noticed(home: Home) -> None:
    real = fs.create_folder
    done: list[int] = []

    with pytest.MonkeyPatch.context() as patch:

        def meanwhile(path: Path) -> None:
            if not done and path == home.where.lock.parent:  # the lock is the next thing taken
                done.append(0)
                home.append(command_line.boundary(90) + command_line.row(91))
                home.rotate()
            real(path)

        patch.setattr(fs, "create_folder", meanwhile)
        ended = called("prune", ID, *LAST_TWO, "--yes")
    assert ended.code == 75
    assert "changed after the plan was shown" in ended.err
    assert trashed(home) == []


# ── what an interrupted prune left ───────────────────────────────────────────────────────────


def test_an_interrupted_prune_is_told_by_doctor_and_finished_by_any_run(pruned: Home) -> None:
    segment = in_trash(pruned, 0)
    segment.rename(pruned.archive / segment.name)
    before = snapshot(pruned.config)
    told = called("doctor", "--json")
    (finding,) = told.document()["findings"]
    assert finding["kind"] == "interrupted"
    assert finding["detail"].endswith("To finish: `sessrotate run`.")
    assert snapshot(pruned.config) == before
    assert called("verify", ID).code == 0
    # Not freed at once: it has not been in the trash for any time.
    assert called("prune", ID, "--empty-trash", "--grace", "0", "--yes").code == 0
    assert trashed(pruned) == [segment.name]
    assert called("doctor").code == 0


# ── reading what is pruned ───────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("pruned")
def test_a_pruned_session_is_read_with_a_sentence_about_what_is_gone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    refused = called("stitch", ID, "-o", out)
    assert refused.code == 74
    said = r"Segments 0 to 1 were pruned on \d{4}-\d\d-\d\d \(no keep rule applies\)\. "
    back = f"`sessrotate restore {ID}` brings them back from the trash."
    assert re.search(said + back, refused.err)
    assert "--allow-gaps" in refused.err
    assert not out.exists()
    gaps = called("stitch", ID, "-o", out, "--allow-gaps")
    assert gaps.code == 0
    assert "pruned on" in gaps.err
    assert out.read_bytes() == b"".join(BODIES[2:])
    verified = called("verify", ID)
    assert verified.code == 0
    assert "2 archived segments and the live file" in verified.out
    assert called("verify", "--all", "--json").document()["ok"] is True
    assert called("doctor").code == 0


def test_a_pruned_session_is_rotated_with_all_others(pruned: Home) -> None:
    pruned.append(command_line.boundary(90) + command_line.row(91))
    assert called("rotate", "--all", "--yes", "--min-size", "1").code == 0
    assert called("verify", ID).code == 0
    assert called("restore", ID).code == 0
    assert pruned.live.read_bytes() == DATA + command_line.boundary(90) + command_line.row(91)


def test_a_session_that_the_client_deleted_is_pruned_like_any_other(home: Home) -> None:
    home.live.unlink()
    assert called("prune", ID, *LAST_TWO, "--yes").code == 0
    assert len(trashed(home)) == 2
    ended = called("restore", ID)
    assert ended.code == 0
    assert "The live file was gone, and with it everything after" in ended.out
    assert home.live.read_bytes() == b"".join(BODIES[:-1])


# ── hostile manifests ────────────────────────────────────────────────────────────────────────


def with_tombstones(home: Home, which: list[int], at: str = "2020-01-01T00:00:00Z") -> None:
    path = home.archive / "manifest.json"
    head, *lines, tail = path.read_text().splitlines()
    for index in which:
        entry: dict[str, Any] = json.loads(lines[index].removesuffix(","))
        entry["pruned"] = {"at": at, "rule": "evil\x1b[2J"}
        comma = "," if lines[index].endswith(",") else ""
        lines[index] = json.dumps(entry) + comma
    path.write_text("\n".join([head, *lines, tail]) + "\n")


@pytest.mark.parametrize("which", [[1], [3], [0, 1, 2, 3]], ids=str)
@pytest.mark.parametrize("at", ["2020-01-01T00:00:00Z", "never", "9999-12-31T23:59:59-14:00"])
def test_tombstones_of_files_that_are_there_lose_nothing(
    home: Home, which: list[int], at: str
) -> None:
    with_tombstones(home, which, at)
    gone = b"".join(body for index, body in enumerate(BODIES) if index not in which)
    ended = called("verify", ID)
    assert ended.code == 0
    assert not raw_controls(ended.out)
    for options in ((*LAST_TWO, "--dry-run"), ("--empty-trash", "--grace", "0", "--yes")):
        assert called("prune", ID, *options).code == 0
    assert len(trashed(home)) == len(which)
    assert called("restore", "--keep-rotated", ID).code == 0
    assert home.stitched() == DATA
    assert gone != DATA
    home.append(command_line.boundary(90) + command_line.row(91))
    with_tombstones(home, which, at)
    home.rotate()
    assert called("doctor").code == 1  # pruned, and not in the trash


@pytest.mark.parametrize("time", [None, "yesterday", "0001-01-01T00:00:00+14:00", "9" * 300])
def test_dates_that_are_none_make_nothing_deletable(home: Home, time: str | None) -> None:
    path = home.archive / "manifest.json"
    head, *lines, tail = path.read_text().splitlines()
    for index, line in enumerate(lines):
        entry = json.loads(line.removesuffix(","))
        entry["firstTimestamp"] = entry["lastTimestamp"] = time
        lines[index] = json.dumps(entry) + ("," if line.endswith(",") else "")
    path.write_text("\n".join([head, *lines, tail]) + "\n")
    for options in (("--max-age", "0"), ("--max-size", "0"), ("--keep-daily", "1")):
        ended = called("prune", ID, *options, "--yes")
        assert ended.code == 0
        assert "no record has a date" in ended.out
    assert trashed(home) == []


def test_what_another_process_prunes_before_the_answer_is_not_deleted(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    another(home, "second-session", DATA)
    called("prune", ID, "--keep-last", "3", "--yes")
    real, in_between = run_log.Journal, [("prune", "second-session", *LAST_TWO, "--yes")]
    in_between.append(("prune", ID, *LAST_TWO, "--yes"))

    def begin(*words: Any, **more: Any) -> run_log.Journal:
        while in_between:
            assert called(*in_between.pop()).code == 0
        return real(*words, **more)

    monkeypatch.setattr(run_log, "Journal", begin)
    ended = called("prune", "--all", "--empty-trash", "--grace", "0", "--yes")
    assert ended.code == 0
    assert "1 pruned segment: no command brings" in ended.out
    assert trashed(home) == [in_trash(home, 1).name]
    assert len([*(home.archive.parent / "second-session" / "trash").iterdir()]) == 2


def test_with_rules_and_without_a_grace_period_all_that_goes_is_in_the_table(home: Home) -> None:
    called("prune", ID, "--keep-last", "3", "--yes")
    before = homes.on_disk(home.archive)
    ended = called("prune", ID, *LAST_TWO, "--empty-trash", "--grace", "0", "--json", "--yes")
    told = ended.document()
    assert [(each["session"], each["segments"]) for each in told["deleted"]] == [(ID, 2)]
    assert told["bytes_freed"] == pytest.approx(before - homes.on_disk(home.archive), abs=4096)
    assert not (home.archive / "trash").exists()


def test_what_was_pruned_of_an_archive_that_was_put_aside_is_not_said_to_come_back(
    pruned: Home,
) -> None:
    assert "brings them back from the trash" in called("verify", ID).out
    assert called("aside", ID, "--yes").code == 0
    (folder,) = (pruned.config / "sessrotate" / "aside").iterdir()
    said = called("verify", folder).out
    assert "; the trash still has them." in said
    assert "restore" not in said
