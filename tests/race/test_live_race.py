"""A rotation under clients that write loses, repeats, tears and reorders nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.in_place.waiting import packs
from support import command_line, homes
from support.abilities import needs_leases
from support.command_line import assert_one_sentence, called, piped
from support.homes import snapshot
from support.portable import have_quiet, lack
from support.race import everybody, racing
from support.race.checking import faults, missing
from support.race.racing import Race, Result
from support.race.writers import SAME, Habits, Wrote, compaction, is_same, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.command_line import Ended

MEMORY: Final = Path("/dev/shm")


RACES: Final = 3
"""Races of which one must be a race: whether writers and rotators meet is up to the machine."""


def some(result: Result) -> bool:
    return result.rotations > 0 and result.rows > 100


def raced(
    race: Race,
    is_race: Callable[[Result], bool] = some,
    run: Callable[[Race], Result] = racing.run,
) -> None:
    """Run a race that must find no fault; begin anew where too little was done to be one."""
    for _ in range(RACES):
        result = run(race)
        assert result.problems == []
        if is_race(result):
            return
    pytest.fail(f"Not raced, {RACES} times; the last time: {result}")


@needs_leases
@pytest.mark.race
def test_a_race_of_a_fixed_length_loses_nothing(tmp_path: Path, seed: str) -> None:
    raced(Race(turns=30, appenders=4, slow=0.25, folder=tmp_path, seed=seed))


@needs_leases
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


@needs_leases
@pytest.mark.race
def test_thirty_seconds_of_the_long_race(tmp_path: Path, seed: str) -> None:
    raced(
        Race(seconds=30, folder=tmp_path, seed=seed),
        lambda result: result.rotations >= 10 and result.outcomes["killed"] >= 5,
    )


@needs_leases
@pytest.mark.race
@pytest.mark.skipif(not MEMORY.is_dir(), reason="no file system in memory")
def test_ten_seconds_of_it_in_memory(seed: str) -> None:
    raced(Race(seconds=10, folder=MEMORY, seed=seed))


@needs_leases
@pytest.mark.race
def test_fifteen_seconds_with_clients_that_take_rows_back(tmp_path: Path, seed: str) -> None:
    raced(
        Race(seconds=15, editors=2, kills=False, folder=tmp_path, seed=seed),
        lambda result: result.removed > 20,
    )


@pytest.mark.race
def test_fifteen_seconds_without_leases(tmp_path: Path, seed: str) -> None:
    # Whether a later run finds the pack quiet is up to the writers: one race in eight of ten
    # seconds has no such run.
    raced(
        Race(seconds=15, appenders=4, slow=0.5, leases=False, folder=tmp_path, seed=seed),
        lambda result: result.outcomes["recovered: finish"] > 0,
    )


EVERYBODY: Final = Race(seconds=20, each=6, life=4, uncrossed=2, habits=Habits(pause=0.02))


def all_met(result: Result) -> bool:
    """Say whether sessions were rotated, rotators killed, and the order of lines looked at."""
    uncrossed, killed = result.sessions - result.crossed, result.outcomes["killed"]
    return uncrossed >= 2 and result.rotations >= 4 and killed >= 2 and result.rows > 1000


@pytest.mark.race
@pytest.mark.parametrize("leases", [pytest.param(True, marks=needs_leases), False])
def test_a_race_with_everybody_in_it_loses_nothing(tmp_path: Path, seed: str, leases: bool) -> None:
    race = replace(EVERYBODY, leases=leases, folder=tmp_path, seed=seed)
    raced(race, all_met, everybody.run)


def test_what_waits_for_a_clock_that_was_wrong_goes_once_that_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes.home(tmp_path, monkeypatch, command_line.session(boundaries=2))
    lack(monkeypatch, "leases")
    with monkeypatch.context() as wrong:
        real = time.time
        wrong.setattr(time, "time", lambda: real() + 30 * everybody.DAY)
        home.rotate()
    have_quiet(monkeypatch, 0)
    assert len(packs(home.where)) == 1
    everybody.forget_wrong_clocks(home.config)
    assert called("run", "--quiet").code == 0
    assert packs(home.where) == []


def _turned(history: bytes) -> bytes:
    return b"".join(reversed(history.splitlines(keepends=True)))


def _thinned(history: bytes) -> bytes:
    """Leave out nine of ten rows that are the same."""
    lines = history.splitlines(keepends=True)
    alike = [at for at, line in enumerate(lines) if line == row(0, SAME - 1)]
    gone = {at for number, at in enumerate(alike) if number % 10}
    return b"".join(line for at, line in enumerate(lines) if at not in gone)


@pytest.mark.race
@pytest.mark.parametrize(
    ("mutant", "told"), [(_turned, "behind later ones"), (_thinned, "lines that are all the same")]
)
def test_the_judge_of_a_race_without_leases_sees_what_is_wrong_with_a_history(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: str,
    mutant: Callable[[bytes], bytes],
    told: str,
) -> None:
    def called(*words: str | Path) -> Ended:
        ended = command_line.called(*words)
        return (
            replace(ended, out=mutant(ended.out.encode()).decode())
            if words[0] == "stitch"
            else ended
        )

    monkeypatch.setattr(everybody, "called", called)
    race = replace(
        EVERYBODY,
        leases=False,
        savers=False,
        uncrossed=1,
        seconds=2,
        life=2,
        folder=tmp_path,
        seed=seed,
    )
    assert told in "; ".join(everybody.run(race).problems)


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


@needs_leases
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


def test_the_check_allows_a_row_that_was_said_again_as_often_as_it_was() -> None:
    again = b"".join([*LINES[:6], LINES[5], *LINES[6:]])
    assert faults(again, {0: Wrote(8)}, late=1, said=[LINES[5]]) == []
    assert faults(b"".join(LINES), {0: Wrote(8)}, said=[LINES[5]]) == []
    assert "repeated 5" in str(faults(again + LINES[5], {0: Wrote(8)}, late=1, said=[LINES[5]]))
    assert "repeated 5" in str(faults(again, {0: Wrote(8)}, late=1, said=[LINES[4]]))
    assert "lost 4" in str(faults(again.replace(LINES[4], b""), {0: Wrote(8)}, said=[LINES[4]]))


HISTORY: Final = [row(0, number) for number in range(80)]
SWAPS: Final = 6


def test_the_check_of_a_race_without_leases_finds_a_history_that_is_turned() -> None:
    turned = b"".join(reversed(HISTORY))
    assert "59 lines behind later ones" in str(faults(turned, {0: Wrote(80)}, SWAPS))
    assert "behind later ones" in str(faults(turned, {0: Wrote(80, held=9)}, SWAPS))
    block = b"".join([*HISTORY[30:], *HISTORY[:30]])
    assert "23 lines behind later ones" in str(faults(block, {0: Wrote(80)}, SWAPS))


def test_the_check_of_a_race_without_leases_allows_what_came_to_a_file_that_was_held() -> None:
    turned = b"".join([*HISTORY[9:], *HISTORY[:9]])
    assert faults(turned, {0: Wrote(80, held=9)}, late=1) == []
    assert "7 lines behind later ones" in str(faults(turned, {0: Wrote(80)}, late=1))


def test_the_check_says_nothing_of_where_lines_stand_that_were_moved() -> None:
    turned = b"".join([*HISTORY[9:], *HISTORY[:9]])
    assert faults(turned, {0: Wrote(80)}, late=1, moved=HISTORY[:9]) == []
    assert "6 lines behind" in str(faults(turned, {0: Wrote(80)}, late=1, moved=HISTORY[:1]))
    assert "lost 0, 1" in str(faults(b"".join(HISTORY[2:]), {0: Wrote(80)}, 1, moved=HISTORY[:9]))


def test_the_check_misses_one_row_of_those_alike_for_each_swap_and_no_more() -> None:
    alike = [at for at in range(80) if is_same(at)]
    assert len(alike) == 20
    for gone, told in (
        (SWAPS, ""),
        (SWAPS + 1, "13 lines that are all the same, of 20"),
        (18, "2 "),
    ):
        left = b"".join(line for at, line in enumerate(HISTORY) if at not in alike[:gone])
        found = "; ".join(faults(left, {0: Wrote(80)}, SWAPS))
        assert told in found
        assert bool(told) == bool(found)


def test_what_is_kept_aside_is_there_and_out_of_order() -> None:
    wrote = {0: Wrote(80)}
    history, kept = b"".join([*HISTORY[:20], *HISTORY[24:]]), b"".join(HISTORY[20:24])
    assert faults(history, wrote, 0, kept) == []
    assert "lost 21" in str(faults(history, wrote, 0, kept.replace(HISTORY[21], b"")))
    assert "19 lines that" in str(faults(history, wrote, 0, kept.replace(HISTORY[23], b"")))
    assert "repeated 5" in str(faults(history, wrote, 0, kept + HISTORY[5]))


def test_rows_that_are_alike_are_counted_in_all_files_and_not_only_found() -> None:
    wrote = {0: Wrote(80), 1: Wrote(3, compacts=True)}
    there = Counter([*HISTORY, *(compaction(1, number) for number in range(3))])
    assert missing(there, wrote) == []
    same = row(0, SAME - 1)
    assert missing(there - Counter({same: SWAPS}), wrote, SWAPS) == []
    assert "2 in all files, of 20" in str(missing(there - Counter({same: 18}), wrote, SWAPS))
    assert "0 in all files, of 1" in str(missing(there - Counter([row(0, 5)]), wrote, SWAPS))
    assert "0 in all files, of 1" in str(missing(there - Counter([compaction(1, 2)]), wrote, SWAPS))
