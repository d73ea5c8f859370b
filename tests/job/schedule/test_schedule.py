"""What a scheduled run knows of the machine is what whoever installed it knew."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

import sessrotate
from sessrotate.errors import RefusedError
from sessrotate.job import schedule
from sessrotate.job.schedule.work import Work

READ: Final = re.compile(r'environ\.get\("([A-Z_]+)"\)')


def test_every_variable_that_names_a_folder_is_carried_and_documented() -> None:
    source = Path(sessrotate.__file__).parent
    found = {
        name
        for package in ("clients", "system")
        for path in (source / package).rglob("*.py")
        for name in READ.findall(path.read_text())
    }
    assert {"CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"} <= found
    assert found <= {*schedule.CARRIED}
    guide = Path(__file__).parents[3] / "docs" / "guide" / "scheduling.md"
    assert all(f"`{name}`" in guide.read_text() for name in schedule.CARRIED)


def test_a_variable_that_counts_for_nobody_does_not_count_for_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", "settings")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("CODEX_HOME", "codex")
    carried = schedule.plan("daily").work.environment
    assert "XDG_CONFIG_HOME" not in carried
    assert carried["XDG_STATE_HOME"] == str(tmp_path / "state")
    assert carried["CODEX_HOME"] == str(tmp_path / "codex")  # which the command itself follows


@pytest.mark.parametrize(
    "name", ['"', "'", "\\", "50%", "$HOME", "a\nb", "\x1b", "\u2028", "\udcff"]
)
def test_a_path_that_a_system_would_read_in_another_way_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RefusedError, match="cannot be written in a schedule"):
        Work(f"/{name}/sessrotate", {}, "daily")
    monkeypatch.setenv("CODEX_HOME", f"/{name}")
    with pytest.raises(RefusedError, match="cannot be written in a schedule"):
        schedule.plan("daily")
    assert schedule.plan_removal().is_absent  # a file that is there can be removed all the same
