"""`relocate` moves archives where they belong, and nothing that it cannot prove."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.in_place import relocate
from sessrotate.system import locks
from support import command_line, homes
from support.command_line import ID, called, write
from support.homes import PROJECT, Home, another, snapshot

if TYPE_CHECKING:
    from pathlib import Path

DATA: Final = command_line.session(boundaries=2)
OTHER: Final = "5e55107a-0000-4000-a000-000000000002"
NEW: Final = "-srv-moved"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Give a client's folder with a live session and one that was put away."""
    made = homes.home(tmp_path, monkeypatch, DATA)
    made.rotate()
    another(made, OTHER, DATA)
    assert called("archive", OTHER).code == 0
    return made


def moved(home: Home) -> Path:
    new = home.live.parent.with_name(NEW)
    home.live.parent.rename(new)
    return new


def folders(home: Home) -> tuple[Path, Path]:
    projects = home.config / "projects"
    return projects / PROJECT, projects / NEW


def archives(home: Home, config: Path | None = None) -> dict[str, set[str]]:
    """Return the names of sessions in each project's folder of archives."""
    found: dict[str, set[str]] = {}
    for path in ((config or home.config) / "sessrotate").glob("*/5e55107a*"):
        if path.is_dir():
            found.setdefault(path.parent.name, set()).add(path.name)
    return found


def forms(home: Home) -> list[tuple[str, str]]:
    """Return the ways to name the two projects."""
    projects = home.config / "projects"
    return [
        (str(projects / PROJECT), str(projects / NEW)),
        ("/home/somebody/project", "/srv/moved"),
    ]


@pytest.mark.parametrize("form", range(2))
def test_all_archives_follow_a_project(home: Home, form: int) -> None:
    moved(home)
    before = snapshot(home.config)
    named = forms(home)[form]
    planned = called("relocate", *named, "--dry-run", "--json")
    assert planned.code == 0, planned
    assert snapshot(home.config) == before
    done = called("relocate", *named, "--yes", "--json")
    assert done.code == 0
    would, was = planned.document(), done.document()
    assert (would["dry_run"], was["dry_run"]) == (True, False)
    assert [each["session"] for each in was["archives"]] == [ID, OTHER]
    assert {each["result"] for each in was["archives"]} == {"done"}
    for one, other in zip(would["archives"], was["archives"], strict=True):
        assert {**one, "result": "done"} == other
    assert archives(home) == {NEW: {ID, OTHER}}
    assert called("stitch", ID).out.encode() == DATA
    assert called("restore", "--keep-rotated", OTHER).code == 0
    assert (home.config / "projects" / NEW / f"{OTHER}.jsonl").exists()
    assert called("doctor").code == 0
    assert called("relocate", *named, "--yes").out.startswith("There are no archives in OLD")


def test_all_archives_follow_a_configuration(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "elsewhere"
    new.mkdir()
    (home.config / "projects").rename(new / "projects")
    (home.config / "projects").mkdir()
    files = {path.relative_to(new): path.read_bytes() for path in new.rglob("*.jsonl")}
    assert called("relocate", home.config, new, "--yes").code == 0
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(new))
    assert archives(home, new) == {PROJECT: {ID, OTHER}}
    assert called("stitch", ID).out.encode() == DATA
    assert called("doctor").code == 0
    for path, content in files.items():
        assert (new / path).read_bytes() == content


def test_what_the_dry_run_shows_is_what_is_done(home: Home) -> None:
    moved(home)
    planned = called("relocate", *folders(home), "--dry-run")
    done = called("relocate", *folders(home), "--yes")
    assert "Would move 2 of 2 archives." in planned.out
    assert done.out == planned.out + planned.out.replace("would move", "moved").replace(
        "Would move", "Moved"
    )


# ── what is refused ──────────────────────────────────────────────────────────────────────────


def still_there(_: Home) -> None:
    """Nothing was moved."""


def archive_in_the_way(home: Home) -> None:
    moved(home)
    write(home.config / "sessrotate" / NEW / ID / "manifest.json", b"{}")


def another_session_there(home: Home) -> None:
    moved(home)
    (home.config / "projects" / NEW / f"{ID}.jsonl").write_bytes(DATA)


def live_elsewhere(home: Home) -> None:
    moved(home).rename(home.config / "projects" / "-third")


def copied(home: Home) -> None:
    shutil.copytree(home.live.parent, home.live.parent.with_name(NEW))


def linked(home: Home) -> None:
    moved(home)
    away = home.config.parent / "away"
    away.mkdir()
    (home.config / "sessrotate" / NEW).symlink_to(away)


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (still_there, "is still there"),
        (archive_in_the_way, "exists: one session has one archive"),
        (another_session_there, "does not go on from"),
        (live_elsewhere, "name its project as NEW"),
        (copied, "is still there"),
        (linked, "is a symbolic link"),
    ],
)
def test_an_archive_that_does_not_belong_there_stays(home: Home, cause: object, words: str) -> None:
    assert callable(cause)
    shutil.rmtree(home.config / "sessrotate" / PROJECT / OTHER)
    cause(home)
    before = snapshot(home.config)
    for option in ("--dry-run", "--yes"):
        ended = called("relocate", *folders(home), option)
        assert ended.code == 77, ended
        assert words in ended.out
        assert snapshot(home.config) == before


def test_one_that_stays_does_not_keep_the_others(home: Home) -> None:
    archive_in_the_way(home)
    ended = called("relocate", *folders(home), "--yes")
    assert ended.code == 77
    assert "Moved 1 of 2 archives." in ended.out
    assert archives(home) == {PROJECT: {ID}, NEW: {ID, OTHER}}


def test_another_file_system_is_refused_with_what_to_do(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved(home)
    monkeypatch.setattr(relocate, "_device", lambda folder: NEW in folder.parts)
    before = snapshot(home.config)
    ended = called("relocate", *folders(home), "--yes")
    assert ended.code == 77
    assert "another file system" in ended.out
    assert "cp -a" in ended.out
    assert snapshot(home.config) == before


def test_whoever_works_on_a_session_is_waited_for(home: Home) -> None:
    old = home.where
    moved(home)
    with locks.alone(old, 0):
        ended = called("relocate", *folders(home), "--yes", "--wait", "0.1")
    assert ended.code == 75
    assert archives(home) == {PROJECT: {ID}, NEW: {OTHER}}


def test_what_makes_no_sense_is_wrong_usage(home: Home) -> None:
    old, new = folders(home)
    for pair in ((old, old), (home.config, new), (home.config, home.config)):
        assert called("relocate", *pair, "--yes").code == 2


def test_nobody_is_asked_without_a_terminal(home: Home) -> None:
    moved(home)
    before = snapshot(home.config)
    assert called("relocate", *folders(home)).code == 2
    assert snapshot(home.config) == before
    assert os.path.lexists(home.archive)
