"""What is said to be freed is what `du` says: each step of a newcomer with a full disk."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.archive import place
from sessrotate.in_place import operations
from sessrotate.system import user_folders
from support import command_line, homes
from support.command_line import called, write

if TYPE_CHECKING:
    from support.homes import Home

DAY: Final = 86_400

UNITS: Final = {"B": 1, "KiB": 2**10, "MiB": 2**20}

SHAPES: Final = [(8, 60_000), (3, 90_000), (0, 30_000), (5, 20_000), (1, 40_000), (2, 1_000)]
"""Compactions, and the bytes of a row, of each kind of session."""

EVERYTHING: Final = b"""
[rotate]
min_gain = "100K"
[archive]
older_than = "30d"
[prune]
max_size = "60K"
"""


@pytest.fixture
def home(home: Home) -> Home:
    """Make sessions of all shapes, last used 1 to 60 days ago, some with files beside them."""
    for number in range(12):
        boundaries, padding = SHAPES[number % 6]
        session = f"5e55107a-0000-4000-a000-{number:012}"
        data = command_line.session(boundaries=boundaries, rows=8, padding=padding)
        path = home.beside(session, data)
        if number % 5 == 0:
            noise = os.urandom(3_000_000 if number == 5 else 30_000)
            write(path.with_suffix("") / "tool-results" / "a.txt", noise)
        homes.unused_for(path, (1, 40, 60)[number % 3])
    return home


def du(home: Home) -> int:
    return homes.on_disk(home.config)


SAID: Final = re.compile(
    r"([\d.,]+) (B|KiB|MiB)(?: freed)? on disk"
    r"|[Ff]ree[ds]? (?:about )?([\d.,]+) (B|KiB|MiB) (?:for|of)"
)


def freed(said: str) -> int:
    """Return how many bytes of the disk the sum below a table says are, or will be, freed."""
    found = (match.groups() for match in SAID.finditer(said.strip().splitlines()[-1]))
    parts = ([part for part in groups if part is not None] for groups in found)
    return round(sum(float(number.replace(",", "")) * UNITS[unit] for number, unit in parts))


NAMED: Final = "5e55107a-0000-4000-a000-000000000"

Step = tuple[str, ...]

NEWCOMER: Final[list[Step]] = [
    ("rotate", f"{NAMED}000", f"{NAMED}003"),
    ("rotate", "--all"),
    ("archive", "--older-than", "30d"),
    ("prune", "--all", "--keep-last", "1"),
    ("prune", "--all", "--empty-trash", "--grace", "0"),
]

BY_ITSELF: Final[list[Step]] = [("run",), ("run",), ("tidy",)]


@pytest.mark.parametrize("steps", [NEWCOMER, BY_ITSELF], ids=["a newcomer", "by itself"])
def test_what_is_said_to_be_freed_is_what_du_says(home: Home, steps: list[Step]) -> None:
    write(user_folders.config_file(), EVERYTHING)
    gained = 0
    for step in steps:
        told, before = called(*step, "--dry-run"), du(home)
        assert du(home) == before
        asks = step[0] in {"rotate", "archive", "prune", "tidy"}
        said = called(*step, *(["--yes"] if asks else []))
        after = du(home)
        assert said.code == told.code == 0, (step, said, told)
        assert freed(said.out) == pytest.approx(max(0, before - after), rel=0.02, abs=30_000), step
        assert told.out, step
        assert freed(told.out) == pytest.approx(max(0, before - after), rel=0.2, abs=60_000), step
        gained += before - after
    assert gained > 3_000_000


@pytest.mark.usefixtures("home")
def test_a_report_of_what_was_put_away_does_not_speak_of_its_live_tail() -> None:
    session = f"{NAMED}000"
    assert "live tail" in called("report", session).out
    assert called("archive", session).code == 0
    said = called("report", session).out
    assert "The live tail" not in said
    assert said.endswith(f"`sessrotate restore {session}` puts it back.\n")


def told(pattern: str, text: str) -> int:
    """Return the bytes that the first group, a number, and the second, its unit, say."""
    match = re.search(pattern + r" ([\d.,]+) (B|KiB|MiB)", text)
    assert match is not None, text
    return round(float(match[1].replace(",", "")) * UNITS[match[2]])


def interrupt(home: Home, at: str) -> str:
    """Rotate the largest session, and stop there."""
    session = f"{NAMED}000"

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"sessrotate.in_place.{at}", stopped)
        with pytest.raises(KeyboardInterrupt):
            operations.rotate_session(
                place.of_live(home.live.with_name(f"{session}.jsonl")), 1, homes.silent
            )
    return session


@pytest.mark.parametrize("at", ["seal.finish", "seal._close"])
def test_what_an_interrupted_rotation_keeps_of_the_disk_is_told_everywhere(
    home: Home, at: str
) -> None:
    session = interrupt(home, at)
    before = du(home)
    dry = called("tidy", session, "--dry-run", "--json").document()["disk_bytes_gained"]
    report = called("report", session)
    assert "interrupted; the next run of sessrotate finishes that." in report.out
    assert f"`sessrotate rotate {session}` finishes it." in called("verify", session).out
    counted = {
        "tidy": dry,
        "rotate": told("that frees about", called("rotate", session, "--dry-run").out),
        "run": told("recover 1 session .about", called("run", "--dry-run").out),
    }
    done = called("rotate", session)
    gained = before - du(home)
    assert gained > 200_000
    for name, figure in counted.items():
        assert figure == pytest.approx(gained, rel=0.2, abs=60_000), name
    assert told("that freed", done.err) == pytest.approx(gained, rel=0.02, abs=30_000)


def before_the_swap(home: Home) -> str:
    """Stop a rotation of the largest session where its live file has another name already."""
    session = f"{NAMED}000"
    where = place.of_live(home.live.with_name(f"{session}.jsonl"))
    homes.crashed(
        lambda: operations.rotate_session(where, 1, homes.silent),
        "sessrotate.in_place.swap._Swap.run",
    )
    assert where.live.stat().st_nlink == 2
    return session


def test_a_live_file_with_another_name_before_the_swap_is_on_the_disk_once(home: Home) -> None:
    before_the_swap(home)
    listed = sum(each["disk_bytes"] for each in called("list", "--json").document())
    told_all = called("report", "--all", "--json").document()["disk_bytes"]
    assert listed == pytest.approx(du(home), abs=60_000)
    assert told_all == pytest.approx(du(home), abs=60_000)


def test_what_an_undone_rotation_leaves_is_told_before(home: Home) -> None:
    session = before_the_swap(home)
    before = du(home)
    dry = called("tidy", session, "--dry-run", "--json").document()["disk_bytes_gained"]
    assert told("that frees about", called("rotate", session, "-n").out) > 0
    assert called("tidy", session, "--yes").code == 0
    assert dry == pytest.approx(before - du(home), rel=0.2, abs=60_000)


@pytest.mark.parametrize("at", [None, "seal.finish", "seal._close"])
def test_putting_away_what_was_interrupted_does_what_its_plan_says(
    home: Home, at: str | None
) -> None:
    session = before_the_swap(home) if at is None else interrupt(home, at)
    before = du(home)
    planned = called("archive", session, "-n", "--json")
    assert planned.code == 0, planned
    (figure,) = planned.document()["sessions"]
    ended = called("archive", session)
    assert ended.code == 0, ended
    assert figure["disk_bytes_gained"] == pytest.approx(before - du(home), rel=0.2, abs=60_000)


def test_what_needs_a_pruned_segment_says_how_to_go_on_without_it(home: Home) -> None:
    session = f"{NAMED}000"
    assert called("rotate", session).code == 0
    assert called("prune", session, "--keep-last", "2", "--yes").code == 0
    for words in (["read", "--history"], ["export"], ["stitch"]):
        ended = called(*words, session)
        assert ended.code == 74
        assert "pruned" in ended.err
        assert "Pass --allow-gaps" in ended.err
        assert called(*words, session, "--allow-gaps").code == 0
    assert home.problems() == []


def test_a_session_that_is_whole_again_says_what_it_and_its_archive_take(home: Home) -> None:
    session = f"{NAMED}000"
    assert called("rotate", session).code == 0
    done = called("restore", session)
    trash = told("of which its archive takes", done.out)
    assert told("On disk, the session takes", done.out) == pytest.approx(
        homes.on_disk(home.live.with_name(f"{session}.jsonl")), rel=0.02
    )
    before = du(home)
    assert called("prune", session, "--empty-trash", "--grace", "0", "--yes").code == 0
    assert trash == pytest.approx(before - du(home), rel=0.1, abs=5_000)
