"""A session that begins with a compaction, as a fork by 2.0.28 does, is sealed like any other."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import homes
from support_cli import ID, boundary, row

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FORKED: Final = boundary(0) + row(1) + row(2) + boundary(3) + row(4)


def test_a_session_that_begins_with_a_compaction_is_rotated_again_and_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes.home(tmp_path, monkeypatch, FORKED)
    grown = FORKED
    for number in (10, 20):
        home.rotate()
        assert home.stitched() == grown
        assert home.problems() == []
        more = boundary(number) + row(number + 1)
        home.append(more)
        grown += more
    assert home.archived() == {f"{ID}.jsonl", f"{ID}.1.jsonl", f"{ID}.2.jsonl", "manifest.json"}
    home.restore()
    assert home.live.read_bytes() == grown


def test_such_a_rotation_is_finished_or_undone_wherever_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, happened = 0, True
    while happened:
        number += 1
        home = homes.home(tmp_path / str(number), monkeypatch, FORKED)
        with monkeypatch.context() as patch:
            crash = homes.Crash(number)
            crash.install(patch)
            with suppress(homes.Killed):
                home.rotate()
            happened = crash.happened
        home.rotate()
        assert home.stitched() == FORKED
        assert home.problems() == []
        assert home.archived() == {f"{ID}.jsonl", f"{ID}.1.jsonl", "manifest.json"}
    assert number > 10
