"""What the client's clean-up deletes, and when, is told as its versions do it.

The cases are those of docs/internals/clients.md that were seen with 2.1.330.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.claude import cleanup
from sessrotate.clients.in_place import Cleanup
from support.command_line import write

if TYPE_CHECKING:
    from pathlib import Path

DAY: Final = 86_400.0
DESKTOP: Final = b'{"type":"user","entrypoint":"claude-desktop"}\n'
CLI: Final = b'{"type":"user","entrypoint":"cli"}\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr(cleanup, "MANAGED", {"linux": tmp_path / "managed"})
    return tmp_path


def user(folder: Path, **settings: Any) -> None:
    write(folder / "config" / "settings.json", json.dumps(settings).encode())


def managed(folder: Path, name: str = "managed-settings.json", **settings: Any) -> None:
    write(folder / "managed" / name, json.dumps(settings).encode())


def days(data: bytes, folder: Path) -> float | None:
    """Return after how many days a session with these bytes is deleted."""
    path = write(folder / "session.jsonl", data)
    found = cleanup.cleanup(cleanup.settings())
    at = found.deletes_at(path.stat(), is_desktop=cleanup.is_desktop(path))
    return None if at is None else (at - path.stat().st_mtime) / DAY


@pytest.mark.parametrize(
    ("settings", "cli", "desktop"),
    [
        ({}, 30, None),
        ({"desktopSessionCleanupPeriodDays": 60}, 30, 60),
        ({"desktopSessionCleanupPeriodDays": 0}, 30, None),
        ({"cleanupPeriodDays": 365}, 365, None),
        ({"cleanupPeriodDays": 5, "desktopSessionCleanupPeriodDays": 10}, 5, 10),
        ({"cleanupPeriodDays": 50, "desktopSessionCleanupPeriodDays": 10}, 50, 50),
    ],
)
def test_it_goes_by_the_users_settings(
    folder: Path, settings: dict[str, Any], cli: float, desktop: float | None
) -> None:
    user(folder, **settings)
    assert days(CLI, folder) == pytest.approx(cli)
    assert days(DESKTOP, folder) == (None if desktop is None else pytest.approx(desktop))


def test_an_administrators_period_comes_first_and_is_for_all(folder: Path) -> None:
    user(folder, cleanupPeriodDays=365)
    managed(folder, "managed-settings.d/one.json", cleanupPeriodDays=7)
    assert days(CLI, folder) == pytest.approx(7)
    assert days(DESKTOP, folder) == pytest.approx(7)


@pytest.mark.parametrize("value", ["30", -1, True, [], 1e300])
def test_what_is_no_number_of_days_pauses_it_but_old_versions_delete(
    folder: Path, value: object
) -> None:
    user(folder, cleanupPeriodDays=value)
    assert "not a number of days" in cleanup.cleanup(cleanup.settings()).paused
    assert days(CLI, folder) == pytest.approx(30)


def test_a_settings_file_that_cannot_be_understood_pauses_it(folder: Path) -> None:
    write(folder / "config" / "settings.json", b"{")
    assert "settings.json" in cleanup.cleanup(cleanup.settings()).paused


def test_none_at_all_is_said_to_be_something_else_before(folder: Path) -> None:
    user(folder, cleanupPeriodDays=0)
    found = cleanup.cleanup(cleanup.settings())
    assert found.period == 0
    assert "write no session" in found.paused


@pytest.mark.parametrize(
    ("data", "is_desktop"),
    [
        (CLI, False),
        (DESKTOP, True),
        (DESKTOP + CLI, True),
        (CLI + DESKTOP, True),
        (CLI + DESKTOP + CLI, False),
        (DESKTOP[:-2] + b" " * 70_000 + b"}\n" + CLI, False),
        (CLI + DESKTOP[:-2] + b" " * 70_000 + b"}\n", False),
        (b" " * 70_000 + b"\n" + CLI + DESKTOP, True),
        (b" " * 70_000 + b"\n" + DESKTOP + CLI, False),
        (b"", False),
    ],
)
def test_the_desktops_sessions_are_known_by_the_edges_of_their_files(
    folder: Path, data: bytes, is_desktop: bool
) -> None:
    assert cleanup.is_desktop(write(folder / "x.jsonl", data)) is is_desktop
    assert not cleanup.is_desktop(folder / "gone.jsonl")


@pytest.mark.parametrize(
    ("project", "users", "told"),
    [
        ({"settings.json": 2}, {}, 2),
        ({"settings.json": 2, "settings.local.json": 5}, {}, 5),
        ({"settings.json": 400}, {}, 30),
        ({"settings.json": 2}, {"cleanupPeriodDays": 90}, 2),
        ({"settings.json": "soon"}, {}, 30),
        ({"settings.json": 0}, {}, 30),
    ],
)
def test_a_client_that_is_started_in_a_project_goes_by_its_settings_too(
    folder: Path, project: dict[str, object], users: dict[str, Any], told: float
) -> None:
    work = folder / "work"
    for name, value in project.items():
        write(work / ".claude" / name, json.dumps({"cleanupPeriodDays": value}).encode())
    user(folder, **users)
    known: dict[str, Any] = {"projects": {str(work): {}, "relative": {}, str(folder / "gone"): {}}}
    write(folder / "config" / ".claude.json", json.dumps(known).encode())
    found = cleanup.cleanup(cleanup.with_projects(cleanup.settings()))
    assert found.period == told * DAY
    assert (found.project == work) == (told < 30)
    assert cleanup.cleanup(cleanup.settings()).project is None
    managed(folder, cleanupPeriodDays=365)
    found = cleanup.cleanup(cleanup.with_projects(cleanup.settings()))
    assert found.period == 365 * DAY


def test_a_session_that_the_desktop_app_has_released_is_not_spared(folder: Path) -> None:
    path = write(folder / "session.jsonl", DESKTOP)
    assert cleanup.is_desktop(path)
    write(folder / "session.desktop-released.json", b'{"reason":"delete"}')
    assert not cleanup.is_desktop(path)


@pytest.mark.parametrize("state", [b"", b"[1]", b'{"projects": 3}', b"[" * 100_000])
def test_what_the_client_notes_for_itself_may_be_anything(folder: Path, state: bytes) -> None:
    write(folder / "config" / ".claude.json", state)
    assert cleanup.with_projects(cleanup.settings()).projects == ()


def test_hooks_are_silenced_by_either_of_two_settings(folder: Path) -> None:
    def name() -> str | None:
        found = cleanup.silenced()
        return None if found is None else found[1]

    assert name() is None
    user(folder, disableAllHooks=True, allowManagedHooksOnly=True)
    assert name() == "disableAllHooks"
    user(folder, allowManagedHooksOnly=True)
    assert name() is None  # only an administrator's counts
    managed(folder, allowManagedHooksOnly=True)
    assert name() == "allowManagedHooksOnly"


def test_a_hostile_settings_file_is_no_failure(folder: Path) -> None:
    path = folder / "config" / "settings.json"
    write(path, b"[" * 100_000)
    assert cleanup.settings().broken == path
    path.unlink()
    os.mkfifo(path)
    assert cleanup.settings().user == {}


@pytest.mark.parametrize(
    ("versions", "is_deleted"),
    [
        (["2.1.330"], False),
        (["2.1.112"], False),
        (["2.1.111"], True),
        (["2.0.28"], True),
        (["2.1.330", "2.0.28"], True),
        (["2.0.28", "2.1.330"], False),
        ([], True),
        (["x"], True),
    ],
)
def test_a_period_of_0_is_what_the_version_that_wrote_last_makes_of_it(
    folder: Path, versions: list[str], is_deleted: bool
) -> None:
    user(folder, cleanupPeriodDays=0)
    path = folder / "config" / "projects" / "p" / "a.jsonl"
    for age, version in enumerate(reversed(versions)):
        rows = [{"type": "user", "version": version}, {"type": "mode", "text": '"version":"9.9.9"'}]
        data = b"".join(json.dumps(each).encode() + b"\n" for each in rows)
        path = write(path.with_name(f"{version}.jsonl"), data)
        os.utime(path, (1000 - age, 1000 - age))
    found = cleanup.cleanup(cleanup.settings())
    at = found.saved_at(folder.stat(), 3 * DAY, is_desktop=False)
    assert (at is not None) == is_deleted
    assert found.leaves_time(3 * DAY) != is_deleted
    assert "is 0" in found.paused
    assert at is None or at >= folder.stat().st_mtime + DAY


@given(period=st.floats(0, 400 * DAY), margin=st.floats(0, 400 * DAY), age=st.floats(0, 400 * DAY))
def test_nothing_is_put_away_within_a_day_nor_in_the_first_two_thirds_of_its_period(
    period: float, margin: float, age: float
) -> None:
    after = Cleanup(period).saved_after(margin)
    is_put_away = age >= after
    if is_put_away:
        assert age >= DAY
        assert age * 1.000001 >= period * 2 / 3
        assert age * 1.000001 + DAY >= period - margin or age >= period - margin
    if period >= 3 * DAY and margin >= DAY:  # a night in between, at least
        assert period - after >= DAY * 0.999999
