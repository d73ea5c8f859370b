"""The scheduled job: in order, one at a time, to its end whatever fails, and told in one line."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec.structs import replace

from sessrotate.archive import clock, place
from sessrotate.errors import DamagedError, StorageError
from sessrotate.in_place import fleet
from sessrotate.job import config, run, run_log, steps
from sessrotate.retention import prune
from sessrotate.system import locks, user_folders
from sessrotate.units import DAY
from support import command_line, homes
from support.command_line import ID, boundary, row, write
from support.homes import Home, crashed, silent, snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.in_place.outcome import Outcome
    from sessrotate.job.config import Settings
    from sessrotate.job.job import Job
    from sessrotate.job.run import Report
    from sessrotate.job.steps import Step

DATA: Final = command_line.session(boundaries=4)
NOW: Final = 1_800_000_000.0
OTHERS: Final = tuple(f"5e55107a-0000-4000-a000-00000000010{n}" for n in range(3))

ALL: Final = """
[rotate]
min_gain = 0
[prune]
keep_last = 2
[trash]
grace = "7d"
"""

NOTHING: Final = """
rotate.min_gain = false
trash.grace = false
"""


@pytest.fixture(autouse=True)
def home(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(clock, "_written", dict)  # what is written is from today, not from `NOW`
    return home


def settings(text: str = ALL) -> Settings:
    return config.parsed(text)


def done(text: str = ALL, now: float = NOW) -> Report:
    return run.execute(settings(text), now, silent)


def became(report: Report) -> dict[str, list[tuple[str, str]]]:
    """Return what became of which session, by step; steps that did nothing left out."""
    return {
        stage.step.name: [(each.session, each.result) for each in stage.outcomes]
        for stage in report.stages
        if stage.outcomes
    }


def foreseen(report: Report) -> dict[str, list[tuple[str, str]]]:
    """Return what a dry run says would become of which session, as if it was done."""
    assert report.dry_run
    assert "done" not in {result for found in became(report).values() for _, result in found}
    return {
        step: [(session, "done" if result == "planned" else result) for session, result in found]
        for step, found in became(report).items()
    }


def logged() -> list[Any]:
    lines = map(json.loads, user_folders.log_file().read_text().splitlines())
    return [line for line in lines if "session" not in line]


# ── what is done ─────────────────────────────────────────────────────────────────────────────


def test_a_session_is_rotated_pruned_and_after_the_grace_time_gone(home: Home) -> None:
    report = done()
    assert became(report) == {"rotate": [(ID, "done")], "prune": [(ID, "done")]}
    assert (home.archive / "trash").is_dir()
    report = done(now=NOW + 7 * DAY - 1)
    assert became(report) == {"rotate": [(ID, "nothing to do")]}
    report = done(now=NOW + 7 * DAY)
    assert became(report) == {"rotate": [(ID, "nothing to do")], "trash": [(ID, "done")]}
    assert not (home.archive / "trash").exists()
    assert [entry["code"] for entry in logged()] == [0, 0, 0]


def test_without_a_file_of_settings_nothing_is_removed(home: Home) -> None:
    home.beside(OTHERS[0], command_line.session(boundaries=2, rows=100, padding=600_000))
    report = done("")
    assert became(report)["rotate"] == [(OTHERS[0], "done")]
    off = {stage.step.name for stage in report.stages if not stage.is_on}
    assert off == {"archive", "compress", "prune"}
    before = snapshot(home.config)
    done("", NOW + 10_000 * DAY)
    assert snapshot(home.config) == before


def test_a_session_that_has_been_cold_for_long_is_put_away(home: Home) -> None:
    rules = f'{NOTHING}archive.older_than = "30d"\n'
    data = home.live.read_bytes()
    planned = run.plan(settings(rules), NOW, silent)
    assert home.live.exists()
    report = done(rules)
    assert became(report) == foreseen(planned) == {"archive": [(ID, "done")]}
    assert not home.live.exists()
    assert home.stitched() == data
    assert became(done(rules)) == {}


def test_they_are_done_in_the_order_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def noting(step: Step) -> Step:
        def deed(job: Job) -> Iterator[Outcome]:
            seen.append(step.name)
            return step.deed(job)

        return replace(step, deed=deed)

    monkeypatch.setattr(run, "STEPS", tuple(noting(step) for step in steps.STEPS))
    rules = ALL.replace("older_than = false", 'older_than = "7d"')
    done(rules)
    assert seen == [step.name for step in steps.STEPS if step.is_on(settings(rules))]


def test_what_a_crash_left_of_a_rotation_is_finished_first(home: Home) -> None:
    crashed(home.rotate, "sessrotate.in_place.seal.finish")
    assert (home.archive / "pack").exists()
    report = done(NOTHING)
    assert became(report) == {"recover": [(ID, "done")]}
    assert not (home.archive / "pack").exists()
    assert home.problems() == []
    assert became(done(NOTHING)) == {}


def test_a_session_that_goes_on_from_an_archived_row_is_healed(home: Home) -> None:
    archived = DATA.splitlines(keepends=True)[1]
    home.rotate()
    assert became(done(NOTHING)) == {}
    home.append(command_line.row(900, parentUuid=json.loads(archived)["uuid"]))
    before, size = snapshot(home.config), home.live.stat().st_size
    planned = run.plan(settings(NOTHING), NOW, silent)
    assert snapshot(home.config) == before
    report = done(NOTHING)
    assert became(report) == foreseen(planned) == {"heal": [(ID, "done")]}
    assert archived in home.live.read_bytes()
    # What came back is told as that, and not as bytes that were freed.
    healed = [next(each.bytes for each in it.stages if each.bytes) for it in (planned, report)]
    assert healed == [home.live.stat().st_size - size] * 2
    assert home.problems() == []
    assert became(done(NOTHING)) == {}


def test_what_a_crash_left_of_a_pruning_is_finished_first(home: Home) -> None:
    home.rotate()
    planned = prune.prepare([home.where], settings().prune, NOW, lambda _done: None)
    crashed(lambda: list(prune.execute(planned, 1)), "sessrotate.fs.move_files")
    assert not list((home.archive / "trash").glob("*"))
    assert became(done(NOTHING)) == {"recover": [(ID, "done")]}
    there = {homes.sealed(home.archive / "trash", number).name for number in (0, 1)}
    assert command_line.names_in(home.archive / "trash") == sorted(there)
    assert became(done(NOTHING)) == {}


def test_where_no_client_ever_ran_nothing_is_made(home: Home) -> None:
    shutil.rmtree(home.config)
    assert became(done()) == {}
    assert not home.config.exists()
    assert [entry["code"] for entry in logged()] == [0]


# ── to its end ───────────────────────────────────────────────────────────────────────────────


def test_a_session_that_fails_stops_no_other(home: Home) -> None:
    for session in OTHERS:
        home.beside(session, DATA)
    done("[rotate]\nmin_gain = 0")
    manifest = home.archive / "manifest.json"
    manifest.write_bytes(b"{")
    homes.rewrite(home.segment(1), b"{")  # else it would be made again
    linked = home.live.with_name(f"{OTHERS[1]}.jsonl")
    with linked.open("ab") as file:
        file.write(boundary(90) + row(91))
    linked.with_suffix(".copy").hardlink_to(linked)
    report = done()
    found = became(report)
    assert found["recover"] == [(ID, "failed")]
    assert found["prune"] == [(session, "done") for session in OTHERS]
    assert dict(found["rotate"]) == {
        OTHERS[0]: "nothing to do",
        OTHERS[1]: "failed",
        OTHERS[2]: "nothing to do",
    }
    assert report.code == DamagedError.exit_code
    assert manifest.read_bytes() == b"{"


def test_a_step_that_fails_stops_no_other(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(fleet, "sessions", broken)
    home.rotate()
    report = done()
    assert became(report) == {"rotate": [("", "failed")], "prune": [(ID, "done")]}
    assert report.code == StorageError.exit_code


def test_what_is_in_use_is_no_failure(home: Home) -> None:
    home.run_by_a_client()
    report = done()
    assert became(report) == {"rotate": [(ID, "in use")]}
    assert report.code == 0
    (entry,) = logged()
    assert entry["steps"]["rotate"] == {"done": 0, "in_use": 1, "failed": 0, "bytes": 0}
    report = done(ALL.replace("min_gain = 0", "min_gain = 0\nlive = true"))
    assert became(report)["rotate"] == [(ID, "done")]


def test_what_another_sessrotate_works_on_is_in_use(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "WAIT", 0.01)
    home.rotate()
    done(now=NOW - 8 * DAY)
    with locks.alone(home.where, 1):
        report = done(ALL.replace("keep_last = 2", "keep_last = 1"))
    found = became(report)
    assert found["prune"] == found["trash"] == [(ID, "in use")]
    assert report.code == 0


# ── one at a time ────────────────────────────────────────────────────────────────────────────


def test_a_run_that_was_killed_holds_nobody_up(home: Home) -> None:
    write(place.run_lock(), b"")
    assert done().code == 0
    assert home.archived()


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


# ── a dry run ────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_says_what_the_run_does_and_changes_nothing(home: Home) -> None:
    for session in OTHERS:
        home.beside(session, DATA)
    done("[rotate]\nmin_gain = 0")
    home.append(boundary(90) + row(91))
    where = place.of_live(home.live.with_name(f"{OTHERS[0]}.jsonl"))
    pruned = prune.prepare([where], settings().prune, NOW - 8 * DAY, lambda _done: None)
    assert [done.error for done in prune.execute(pruned, 1)] == [None]
    crashed(home.rotate, "sessrotate.in_place.seal.finish")
    home.beside("5e55107a-0000-4000-a000-000000000200", DATA)
    before = snapshot(home.config.parent)
    planned = run.plan(settings(), NOW, silent)
    assert snapshot(home.config.parent) == before
    would = foreseen(planned)
    assert would["recover"] == [(ID, "done")]
    assert would["trash"] == [(OTHERS[0], "done")]
    assert ("5e55107a-0000-4000-a000-000000000200", "done") in would["rotate"]
    report = done()
    for step in ("recover", "rotate", "trash"):
        assert became(report)[step] == would[step]
    sizes = [{stage.step.name: stage.bytes for stage in each.stages} for each in (planned, report)]
    assert sizes[0]["rotate"] == sizes[1]["rotate"] > 0
    assert sizes[0]["trash"] == sizes[1]["trash"] > 0
    assert set(would["prune"]) <= set(became(report)["prune"])


@pytest.mark.parametrize(("early", "would"), [(0, [(ID, "done")]), (1, [])])
def test_a_dry_run_knows_when_the_grace_time_is_over(
    early: float, would: list[tuple[str, str]]
) -> None:
    done()
    report = run.plan(settings(), NOW + 7 * DAY - early, silent)
    assert foreseen(report).get("trash", []) == would


def test_a_dry_run_waits_for_nobody(home: Home) -> None:
    with locks.only_run(place.run_lock()), locks.alone(home.where, 1):
        report = run.plan(settings(), NOW, silent)
    assert foreseen(report) == {"rotate": [(ID, "done")]}
    assert not user_folders.log_file().exists()


# ── the log ──────────────────────────────────────────────────────────────────────────────────


def test_the_log_keeps_the_last_thousand_lines() -> None:
    for number in range(1, 1011):
        run_log.add({"at": str(number), "code": number})
    assert [entry["code"] for entry in logged()] == list(range(11, 1011))
    assert run_log.last() == run_log.LastRun("1010", 1010)
    assert command_line.names_in(user_folders.log_file().parent) == ["runs.jsonl", "runs.lock"]


def test_the_log_keeps_a_mebibyte() -> None:
    for number in range(12):
        run_log.add({"at": str(number), "code": 0, "x": "x" * 200_000})
        assert user_folders.log_file().stat().st_size <= 1 << 20
    assert [entry["at"] for entry in logged()] == ["7", "8", "9", "10", "11"]


def test_a_log_that_others_wrote_into_is_cut_and_used() -> None:
    write(user_folders.log_file(), b"x" * (3 << 20) + b"\n" + b'{"at": 1}\n{"torn"')
    assert run_log.last() is None
    run_log.add({"at": "2", "code": 3})
    assert user_folders.log_file().read_bytes() == b'{"at": 1}\n{"torn"\n{"at": "2", "code": 3}\n'
    assert run_log.last() == run_log.LastRun("2", 3)
