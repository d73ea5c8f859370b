"""A rotation under clients that write loses, repeats, tears and reorders nothing."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from support import command_line, homes
from support.command_line import assert_one_sentence, piped
from support.homes import snapshot
from support.race.checking import faults
from support.race.racing import Race, Result, run
from support.race.writers import Wrote, compaction, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

linux: Final = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux has leases"
)

MEMORY: Final = Path("/dev/shm")


RACES: Final = 3
"""Races of which one must be a race: whether writers and rotators meet is up to the machine."""


def some(result: Result) -> bool:
    return result.rotations > 0 and result.rows > 100


def raced(race: Race, is_race: Callable[[Result], bool] = some) -> None:
    """Run a race that must find no fault; begin anew where too little was done to be one."""
    for _ in range(RACES):
        result = run(race)
        assert result.problems == []
        if is_race(result):
            return
    pytest.fail(f"Not raced, {RACES} times; the last time: {result}")


@linux
@pytest.mark.race
def test_a_race_of_a_fixed_length_loses_nothing(tmp_path: Path, seed: str) -> None:
    raced(Race(turns=30, appenders=4, slow=0.25, folder=tmp_path, seed=seed))


@linux
@pytest.mark.race
@pytest.mark.parametrize(
    "race",
    [
        Race(seconds=2, appenders=3, slow=0.34, rotators=1, kills=False),
        Race(seconds=2, appenders=3, slow=0.34),
        Race(seconds=2, appenders=2, slow=0, editors=1, kills=False),
        Race(seconds=2, appenders=2, slow=0.5, leases=False),
    ],
    ids=["slow ones too", "rotators are killed", "a client takes rows back", "no leases"],
)
def test_a_race_of_two_seconds_loses_nothing(tmp_path: Path, seed: str, race: Race) -> None:
    raced(replace(race, folder=tmp_path, seed=seed))


@linux
@pytest.mark.race
def test_thirty_seconds_of_the_long_race(tmp_path: Path, seed: str) -> None:
    raced(
        Race(seconds=30, folder=tmp_path, seed=seed),
        lambda result: result.rotations >= 10 and result.outcomes["killed"] >= 5,
    )


@linux
@pytest.mark.race
@pytest.mark.skipif(not MEMORY.is_dir(), reason="no file system in memory")
def test_ten_seconds_of_it_in_memory(seed: str) -> None:
    raced(Race(seconds=10, folder=MEMORY, seed=seed))


@linux
@pytest.mark.race
def test_fifteen_seconds_with_clients_that_take_rows_back(tmp_path: Path, seed: str) -> None:
    raced(
        Race(seconds=15, editors=2, kills=False, folder=tmp_path, seed=seed),
        lambda result: result.removed > 20,
    )


@linux
@pytest.mark.race
def test_fifteen_seconds_without_leases(tmp_path: Path, seed: str) -> None:
    # Whether a later run finds the pack quiet is up to the writers: one race in eight of ten
    # seconds has no such run.
    raced(
        Race(seconds=15, appenders=4, slow=0.5, leases=False, folder=tmp_path, seed=seed),
        lambda result: result.outcomes["recovered: finish"] > 0,
    )


# ── a writer that does not close ─────────────────────────────────────────────────────────────


@contextmanager
def held(path: Path) -> Iterator[int]:
    """Have another process hold the file open for writing, as Codex does; yield its number."""
    code = "import sys; file = open(sys.argv[1], 'ab'); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        yield holder.pid
        holder.kill()


@linux
@pytest.mark.parametrize("was_rotated", [False, True])
def test_a_writer_that_holds_the_file_is_named_and_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was_rotated: bool
) -> None:
    home = homes.home(tmp_path, monkeypatch, command_line.session(boundaries=2))
    if was_rotated:
        home.rotate()
        home.append(command_line.boundary(80) + command_line.row(81))
    before = snapshot(home.config)
    with held(home.live) as pid:
        for arguments in (["split", "--in-place", "--live", "--wait", "0.3"], ["restore"]):
            ended = piped(*arguments, home.live, env=home.env)
            if arguments[0] == "restore" and not was_rotated:
                assert ended.code == 0
                continue
            assert_one_sentence(ended, 75)
            assert f"process {pid} has it open for writing" in ended.err
    assert snapshot(home.config) == before


# ── the check itself ─────────────────────────────────────────────────────────────────────────

LINES: Final = [row(0, number) for number in range(8)]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        pytest.param(LINES, "", id="all"),
        pytest.param([*LINES[:2], *LINES[3:]], "lost 2", id="one lost"),
        pytest.param([*LINES[:3], *LINES[4:]], "of 2", id="one of those alike lost"),
        pytest.param([*LINES, LINES[2]], "repeated 2", id="one twice"),
        pytest.param([*LINES, LINES[3]], "of 2", id="one of those alike twice"),
        pytest.param([LINES[1], LINES[0], *LINES[2:]], "behind later", id="two turned"),
        pytest.param([*LINES[:2], LINES[3], LINES[2], *LINES[4:]], "elsewhere", id="one alike"),
        pytest.param([LINES[0][:-1], *LINES], "torn", id="fused"),
        pytest.param([*LINES[:2], LINES[2][:30] + b"\n", *LINES[3:]], "torn", id="torn"),
        pytest.param([*LINES, row(0, 9)], "never written 9", id="one too many"),
        pytest.param([*LINES, row(7, 1)], "torn", id="a stranger's"),
        pytest.param([*LINES[:6], b"\0" * 9 + b"\n", *LINES[6:]], "torn", id="zeros"),
    ],
)
def test_the_check_finds(lines: list[bytes], told: str) -> None:
    found = "; ".join(faults(b"".join(lines), {0: Wrote(8)}))
    assert told in found
    assert bool(told) == bool(found)


def test_the_check_allows_a_row_that_was_taken_back_once() -> None:
    did = {0: Wrote(8, frozenset({5}))}
    assert faults(b"".join(LINES), did) == []
    assert faults(b"".join([*LINES[:5], *LINES[6:]]), did) == []
    assert "repeated 5" in str(faults(b"".join([*LINES, LINES[5]]), did))
    assert "lost 4" in str(faults(b"".join([*LINES[:4], *LINES[6:]]), did))


def test_the_check_allows_a_late_line_for_each_swap_and_no_more() -> None:
    turned = [*LINES[1:], LINES[0]]
    assert faults(b"".join(turned), {0: Wrote(8)}, late=1) == []
    assert "2 lines behind" in str(
        faults(b"".join([*LINES[2:], *LINES[:2]]), {0: Wrote(8)}, late=1)
    )
    assert compaction(0, 1) != row(0, 1)
