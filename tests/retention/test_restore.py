"""Whatever happened to a session, in whatever order, its history is complete and comes back."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.errors import InUseError, StorageError
from sessrotate.retention import restore
from sessrotate.system import in_use, zstd
from support import command_line, homes
from support.command_line import ID, called
from support.crash.scenes import fast_folder
from support.examples import examples
from support.homes import Home, silent, snapshot

DATA: Final = command_line.session(boundaries=3, rows=2)

DEEDS: Final = {
    "rotate": ("rotate", ID),
    "rotate all": ("rotate", "--all", "--yes", "--min-size", "1"),
    "prune": ("prune", ID, "--keep-last", "1", "--yes"),
    "prune all": ("prune", "--all", "--keep-last", "2", "--yes"),
    "archive": ("archive", ID),
    "restore": ("restore", ID),
    "restore shortly": ("restore", "--keep-rotated", "--keep-times", ID),
    "undo": ("restore", "--last-run", "--yes"),
}

REFUSALS: Final = ("was put away: bring it back", "has no archive", "was restored, and is whole")


def bytes_in(folder: Path) -> bytes:
    """Return what all files have, plain, as they are found: the judge looks for lines in it."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".zst":
            with path.open("rb") as file:
                found.append(b"".join(zstd.decompressed(file.read, 1 << 16)))
        elif path.is_file():
            found.append(path.read_bytes())
    return b"\n".join(found)


@given(st.lists(st.sampled_from(["goes on", "is compacted", *DEEDS]), max_size=9))
@examples(120)
def test_no_order_of_deeds_loses_a_line_and_restore_gives_all_back(deeds: list[str]) -> None:
    folder = Path(tempfile.mkdtemp(dir=fast_folder())).resolve()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_use, "writers", lambda *_: iter(()))
        patch.setattr("sessrotate.system.locks.SETTLE", 0)
        try:
            home, whole = homes.home(folder, patch, DATA), DATA
            for number, deed in enumerate(deeds, start=100):
                if deed in DEEDS:
                    ended = called(*DEEDS[deed])
                    is_refused = any(words in ended.err for words in REFUSALS)
                    assert ended.code == (77 if is_refused else 0), (deed, ended)
                elif home.live.exists():  # by a client, which sees nothing that was put away
                    new = command_line.row(2 * number)
                    if deed == "is compacted":
                        new = command_line.boundary(2 * number) + command_line.row(2 * number + 1)
                    home.append(new)
                    whole += new
                there = bytes_in(folder)
                assert not [line for line in whole.splitlines() if line not in there], deed
            assert called("restore", ID).code == 0
            assert home.live.read_bytes() == whole
            assert home.is_whole
        finally:
            shutil.rmtree(folder)


# ── what is decided ──────────────────────────────────────────────────────────────────────────


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(in_use, "writers", lambda *_: iter(()))
    made = homes.home(tmp_path, monkeypatch, DATA)
    made.rotate()
    called("prune", ID, "--keep-last", "1", "--yes")
    called("archive", ID)
    return made


@pytest.mark.parametrize(
    ("wanted", "parts"),
    [
        (restore.ALL, (True, (0, 1), True)),
        (restore.WantedBack(whole=False), (True, (0, 1), False)),
        (restore.WantedBack(pruned=frozenset({1, 7}), whole=False), (True, (1,), False)),
        (restore.WantedBack(pruned=frozenset(), whole=False), (True, (), False)),
        (restore.WantedBack(away=False, pruned=frozenset({0}), whole=False), (False, (0,), False)),
        (restore.WantedBack(pruned=frozenset(), whole=True), (True, (0, 1), True)),
    ],
)
def test_no_more_comes_back_than_is_wanted_and_a_plan_changes_nothing(
    home: Home, wanted: restore.WantedBack, parts: tuple[object, ...]
) -> None:
    before = snapshot(home.config)
    plan = restore.prepare(home.where, wanted)
    assert (plan.away is not None, plan.pruned, plan.whole is not None) == parts
    assert snapshot(home.config) == before
    done = restore.execute(plan, 1, silent)
    assert (done.away, done.after) == (plan.away, plan.after)
    live = home.live.read_bytes() if home.live.exists() else b""
    assert len(live) == plan.after
    assert (live == DATA) == (plan.whole is not None)


def test_the_room_for_all_parts_is_looked_for_before_the_first(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(home.config)
    size = restore.prepare(home.where).after
    monkeypatch.setattr("sessrotate.fs.free_bytes", lambda _path: size + 10)
    with pytest.raises(
        StorageError, match=r"history \(less with --keep-rotated\), and \S+ \S+ is free"
    ):
        restore.restore(home.where, restore.ALL, 1, silent)
    assert snapshot(home.config) == before


def test_a_plan_that_was_shown_is_carried_out_or_nothing_is(home: Home) -> None:
    shown = restore.prepare(home.where)
    called("restore", "--keep-rotated", ID)
    before = home.live.read_bytes()
    with pytest.raises(InUseError, match="changed after the plan was shown"):
        restore.restore(home.where, restore.ALL, 1, silent, shown=shown)
    assert home.live.read_bytes() == before


def test_what_a_crash_left_is_finished_first(home: Home) -> None:
    called("restore", ID)
    home.append(command_line.boundary(90) + command_line.row(91))
    homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
    done = restore.restore(home.where, restore.ALL, 1, silent)
    assert done.whole is not None
    assert home.live.read_bytes() == DATA + command_line.boundary(90) + command_line.row(91)
