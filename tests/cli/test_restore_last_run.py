"""`restore --last-run`, `--run`, `--all`, of several: shown, asked for, and no more than that."""

from __future__ import annotations

import os
import random
import re
import shutil
import time
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from sessrotate.archive import restored
from sessrotate.in_place import operations
from sessrotate.system import in_use, user_folders
from support import command_line, homes
from support.command_line import ID, called, write
from support.crash.changes import Killed
from support.homes import Home, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATA: Final = command_line.session(boundaries=3)
OTHER: Final = "0therid0-0000-4000-a000-000000000002"
THEIRS: Final = DATA.replace(ID.encode(), OTHER.encode())
LARGE: Final = command_line.session(boundaries=3, padding=20_000)
"""A session whose rotation gains blocks of the disk."""

MORE: Final = command_line.boundary(90) + command_line.row(91)
ALL: Final = ("rotate", "--all", "--yes", "--min-size", "1")
UNDO: Final = ("restore", "--last-run", "--yes")
DAY: Final = 86_400
SETTINGS: Final = b"""
rotate.min_gain = 0
archive.older_than = "30d"
prune.keep_last = 2
trash.grace = "7d"
"""


@pytest.fixture
def home(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(in_use, "writers", lambda *_: iter(()))
    home.beside(OTHER, DATA)
    return home


@pytest.fixture
def rotated(home: Home) -> Home:
    """Give that home after a run that has rotated both."""
    assert called(*ALL).code == 0
    return home


def other(home: Home) -> Path:
    return home.live.with_name(f"{OTHER}.jsonl")


def results(ended: command_line.Ended) -> dict[str, str]:
    return {entry["session"]: entry["result"] for entry in ended.document()["sessions"]}


def is_whole(home: Home) -> bool:
    return home.live.read_bytes() == DATA and other(home).read_bytes() == THEIRS


# ── several ──────────────────────────────────────────────────────────────────────────────────


def test_several_are_shown_first_and_restored_when_that_is_agreed(rotated: Home) -> None:
    before = snapshot(rotated.config)
    ended = called("restore", ID, OTHER)
    assert ended.code == 2
    assert "--yes" in ended.err
    dry = called("restore", ID, OTHER, "--dry-run")
    assert dry.code == 0
    assert dry.out.count("planned: whole, 3 segments back in the live file") == 2
    assert snapshot(rotated.config) == before
    done = called("restore", ID, OTHER, "--yes")
    assert done.code == 0
    assert done.out.count("done: whole, 3 segments") == 2
    assert "1 of 2: " in done.err
    assert is_whole(rotated)


def test_programs_get_one_document_of_one_and_of_several(rotated: Home) -> None:
    short = rotated.live.stat().st_size
    one = called("restore", ID, "--json").document()
    assert one == {
        "dry_run": False,
        "run": None,
        "sessions": [
            {
                "session": ID,
                "path": str(rotated.live),
                "bytes_before": short,
                "bytes_after": len(DATA),
                "result": "done",
                "reason": None,
                "detail": "whole, 3 segments back in the live file",
                "from_trash": [],
                "was_put_away": False,
                "segments_put_back": 3,
                "lost": [],
                "pending": None,
            }
        ],
    }
    both = called("restore", ID, OTHER, "--json", "--yes")
    assert results(both) == {ID: "nothing to do", OTHER: "done"}


def test_the_failure_of_one_is_no_others(rotated: Home) -> None:
    segment = rotated.segment(1)
    segment.write_bytes(segment.read_bytes()[:-3])
    ended = called("restore", ID, OTHER, "--yes", "--json")
    assert ended.code == 74
    assert results(ended) == {ID: "failed", OTHER: "done"}
    assert other(rotated).read_bytes() == THEIRS


def test_of_one_that_failed_no_sizes_are_shown(rotated: Home) -> None:
    segment = rotated.segment(1)
    segment.write_bytes(segment.read_bytes()[:-3])
    (row,) = (each for each in called("restore", ID, OTHER, "--yes").out.splitlines() if ID in each)
    assert row.startswith(f"{ID}: failed: Segment 1 ")


def test_one_that_a_client_runs_is_left_and_named(rotated: Home) -> None:
    rotated.run_by_a_client()
    shown = called("restore", "--last-run", "--dry-run", "--json")
    assert results(shown) == {ID: "in use", OTHER: "planned"}
    ended = called(*UNDO, "--json")
    assert ended.code == 75
    assert results(ended) == {ID: "in use", OTHER: "done"}


def test_what_changed_after_the_plan_was_shown_is_left_alone(
    rotated: Home, monkeypatch: pytest.MonkeyPatch
) -> None:

    def meanwhile(_total: str = "") -> bool:
        rotated.append(MORE)
        rotated.rotate()
        return True

    monkeypatch.setattr("sessrotate.cli.streams.confirmed", meanwhile)
    ended = called("restore", ID, OTHER, "--json")
    assert ended.code == 75
    assert results(ended) == {ID: "in use", OTHER: "done"}
    assert rotated.stitched() == DATA + MORE


# ── the last run ─────────────────────────────────────────────────────────────────────────────


def test_a_rotation_of_all_is_undone_and_asks_first(rotated: Home) -> None:
    before = snapshot(rotated.config)
    assert called("restore", "--last-run").code == 2
    dry = called("restore", "--last-run", "--dry-run")
    assert dry.out.startswith("Undoing run 1, `rotate --all` of 20")
    assert snapshot(rotated.config) == before
    ended = called(*UNDO)
    assert ended.code == 0, ended
    assert is_whole(rotated)
    again = called(*UNDO)
    assert (again.code, again.out) == (
        0,
        "Nothing to restore: every run on record has been undone, or cannot be.\n",
    )
    again = called("restore", "--run", "1", "--json")
    assert again.code == 0
    assert results(again) == {ID: "nothing to do", OTHER: "nothing to do"}
    assert "undone already" in again.out


def test_a_whole_run_is_undone(home: Home, tmp_path: Path) -> None:
    write(tmp_path / "xdg-config" / "sessrotate" / "config.toml", SETTINGS)
    undated = b"".join(line.replace(b"timestamp", b"no") for line in THEIRS.splitlines(True))
    other(home).write_bytes(undated)
    homes.unused_for(other(home), 45)
    ran = called("run")
    assert ran.code == 0, ran
    assert not other(home).exists()
    shown = called("restore", "--last-run", "--dry-run")
    ended = called(*UNDO)
    assert ended.code == 0, ended
    assert "done: 1 segment back from the trash; back where its client looks; whole" in ended.out
    assert "done: back where its client looks; whole, 3 segments" in ended.out
    did = shown.out.replace("planned", "done").replace(" would come ", " came ")
    assert ended.out.startswith(did)
    # Their archives are there until their time is over, which is said with what ends that.
    taken = ended.out.removeprefix(did)
    assert re.fullmatch(r"Archives of restored sessions .* up [\d.]+ KiB until .* them\.\n", taken)
    assert called("prune", "--all", "--empty-trash", "--grace", "0", "--yes").code == 0
    assert home.archived() == {"record.json"}
    assert home.live.read_bytes() == DATA
    assert other(home).read_bytes() == undated
    assert time.time() - other(home).stat().st_mtime < DAY


@pytest.mark.parametrize("named", [(ID,), (ID, OTHER)])
def test_what_was_tidied_is_undone(home: Home, named: tuple[str, ...]) -> None:
    for session in (ID, OTHER):
        home.beside(session, LARGE)
    assert called("tidy", *named, "--dry-run").code == 0
    assert called(*UNDO).out.startswith("Nothing to restore")
    done = called("tidy", *named, "--yes")
    assert home.live.stat().st_size < len(LARGE), done
    ended = called(*UNDO)
    assert ended.code == 0
    assert ended.out.startswith("Undoing run 1, `tidy` of ")
    assert ended.out.count("done: whole") == len(named)
    assert home.live.read_bytes() == LARGE
    assert other(home).read_bytes() == LARGE.replace(ID.encode(), OTHER.encode())


def test_what_was_rotated_before_that_run_is_made_whole_too_and_that_is_said(home: Home) -> None:
    home.rotate()
    home.append(MORE)
    called(*ALL)
    ended = called(*UNDO)
    assert "3 of them were archived before that run" in ended.out
    assert ended.out.count("were archived before") == 1
    assert home.live.read_bytes() == DATA + MORE


def test_only_what_that_run_pruned_comes_back_and_the_session_stays_rotated(home: Home) -> None:
    home.rotate()
    short = home.live.read_bytes()
    assert called("prune", ID, "--keep-last", "2", "--yes").code == 0
    assert called("prune", "--all", "--keep-last", "1", "--yes").code == 0
    ended = called(*UNDO, "--json")
    assert ended.code == 0
    (entry,) = ended.document()["sessions"]
    assert (entry["from_trash"], entry["segments_put_back"]) == ([1], 0)
    assert home.live.read_bytes() == short
    trash = home.archive / "trash"
    assert [*trash.iterdir()] == [homes.sealed(trash, 0)]


def test_only_what_that_run_put_away_comes_back_and_stays_rotated(home: Home) -> None:
    home.rotate()
    short = home.live.read_bytes()
    other(home).unlink()
    assert called("archive", "--yes", "--older-than", "1m").code == 0
    assert not home.live.exists()
    assert called(*UNDO).code == 0
    assert home.live.read_bytes() == short


def test_of_many_that_are_back_no_sentence_names_each(home: Home) -> None:
    for number in range(5):
        home.beside(f"5e55107a-0000-4000-a000-0000000009{number:02}", DATA)
    assert called(*ALL).code == 0
    ended = called(*UNDO)
    assert "until you run `sessrotate rotate SESSION …`.\n" in ended.out
    assert is_whole(home)


@pytest.mark.usefixtures("home")
def test_what_need_not_or_cannot_be_undone_is_named() -> None:
    called("rotate", ID, OTHER, "--yes")
    called("prune", "--all", "--keep-last", "1", "--yes")
    called("prune", "--all", "--empty-trash", "--grace", "0", "--yes")
    ended = called("restore", "--run", "3", "--yes")
    assert ended.code == 0
    assert ended.out.count("what was freed from the trash cannot come back") == 2
    ended = called("restore", "--run", "2", "--yes")
    assert ended.out.count("segments 0, 1 were deleted for good") == 2
    assert open_runs() == [1, 2, 3]  # nobody undid that, and nobody can
    assert "2  nothing of it can be undone\n" in called("restore", "--runs").out
    assert called(*UNDO, "--dry-run").out.startswith(("Undoing run 1,", "Undoing run 2,"))


def test_what_that_run_freed_keeps_the_session_rotated_and_is_named(
    home: Home, tmp_path: Path
) -> None:
    other(home).unlink()
    settings = b'rotate.min_gain = 0\nprune.keep_last = 2\ntrash.grace = "0"\n'
    write(tmp_path / "xdg-config" / "sessrotate" / "config.toml", settings)
    assert called("run").code == 0
    short = home.live.read_bytes()
    ended = called(*UNDO)
    assert ended.code == 0
    assert "nothing to do: segment 0 was deleted for good; what was freed" in ended.out
    assert home.live.read_bytes() == short
    assert called("restore", ID, OTHER[:4]).code == 2
    assert called("restore", ID).code == 77


def rotated_again(home: Home) -> None:
    home.append(MORE)
    home.rotate()


def saved(home: Home) -> None:
    """Save it as another program does, with nothing changed."""
    draft = write(home.config / "draft", home.live.read_bytes())
    draft.rename(home.live)


CHANGES: Final[tuple[tuple[str, Callable[[Home], object]], ...]] = (
    ("rotated", rotated_again),
    ("restored", lambda home: home.restore()),
    ("pruned", lambda _: called("prune", ID, "--keep-last", "1", "--yes")),
    ("archived", lambda _: called("archive", ID)),
    ("deleted", lambda home: home.live.unlink()),
    ("replaced", saved),
)


@pytest.mark.parametrize(("changed", "change"), CHANGES)
def test_what_was_changed_since_is_left_alone_and_named(
    rotated: Home, changed: str, change: Callable[[Home], object]
) -> None:
    change(rotated)
    before = snapshot(rotated.config / "projects" / homes.PROJECT)
    ended = called(*UNDO)
    assert ended.code == 0
    by_name = "" if changed == "restored" else f"; `sessrotate restore {ID}` restores it"
    assert f"{changed} since: left alone{by_name}\n" in ended.out
    assert other(rotated).read_bytes() == THEIRS
    after = snapshot(rotated.config / "projects" / homes.PROJECT)
    assert after.get(str(rotated.live)) == before.get(str(rotated.live))


def test_a_client_that_went_on_is_no_change(rotated: Home) -> None:
    rotated.append(command_line.row(91))
    assert called(*UNDO).code == 0
    assert rotated.live.read_bytes() == DATA + command_line.row(91)


def test_a_project_that_was_renamed_since_is_found(rotated: Home) -> None:
    rotated.live.parent.rename(rotated.live.parent.with_name("-renamed"))
    assert called(*UNDO).code == 0
    renamed = rotated.config / "projects" / "-renamed"
    assert (renamed / f"{ID}.jsonl").read_bytes() == DATA


def test_a_run_that_was_killed_half_way_is_undone_as_far_as_it_came(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = operations.rotate_session, iter([1])

    def dies(*args: object, **more: object) -> object:
        if next(calls, None) is None:
            raise Killed
        return real(*args, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(operations, "rotate_session", dies)
        with pytest.raises(Killed):
            called(*ALL)
    ended = called(*UNDO, "--json")
    assert ended.code == 0
    assert [*results(ended).values()] == ["done"]
    assert is_whole(home)


def test_without_any_run_there_is_nothing_to_restore(home: Home) -> None:
    ended = called(*UNDO)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "Nothing to restore: there is no record of a run over many sessions.\n"
    assert called(*UNDO, "--json").document() == {"dry_run": False, "run": None, "sessions": []}
    assert is_whole(home)


def test_a_session_whose_archive_is_missing_is_a_failure_and_not_restored_since(
    home: Home,
) -> None:
    assert called("rotate", "--all", "--min-size", "1", "--yes").code == 0
    (home.config / "sessrotate").rename(home.config / "gone")
    ended = called(*UNDO)
    assert ended.code == 74
    assert "is missing: put it back" in ended.out
    assert "restored since" not in ended.out


@pytest.mark.parametrize("command", ["restore", "rotate"])
def test_several_sessions_are_taken_up_where_an_interrupted_one_left_off(
    home: Home, command: str
) -> None:
    whole = home.live.read_bytes()
    home.rotate()
    homes.crashed(home.restore, "sessrotate.in_place.seal.finish")
    assert called("doctor").code == 1
    ended = called(command, ID, OTHER, "--yes")
    assert ended.code == 0, ended
    assert "unsafe-adopt" not in ended.out
    assert home.stitched() == whole
    assert called("doctor").code == 0


# ── any run ──────────────────────────────────────────────────────────────────────────────────

THIRD: Final = "71ird000-0000-4000-a000-000000000003"
KINDS: Final[tuple[tuple[str, ...], ...]] = (
    ("tidy", "--yes"),
    ("rotate", "--all", "--min-size", "1", "--yes"),
    ("archive", "--older-than", "1m", "--yes"),
    ("prune", "--all", "--keep-last", "1", "--yes"),
    ("run",),
)


def listed() -> list[dict[str, Any]]:
    document = called("restore", "--runs", "--json").document()
    return cast("list[dict[str, Any]]", document["runs"])


def open_runs() -> list[int]:
    return [each["number"] for each in listed() if not each["undone"]]


class Drawn:
    """Three sessions that grow and age, while runs and persons change them in a drawn order."""

    def __init__(self, home: Home, seed: int) -> None:
        self.random = random.Random(seed)
        self.lives = {each: home.beside(each, DATA) for each in (ID, OTHER, THIRD)}
        self.whole = {each: path.read_bytes() for each, path in self.lives.items()}
        self.by_name: set[str] = set()
        self.said = ""

    def go_on(self, number: int) -> None:
        for session, path in self.lives.items():
            if path.exists():
                more = command_line.boundary(200 + number) + command_line.row(300 + number)
                self.whole[session] += more
                with path.open("ab") as file:
                    file.write(more)
                if self.random.random() < 0.3:
                    os.utime(path, (time.time() - 300, time.time() - 300))

    def meddle(self) -> None:
        if self.random.random() < 0.2:
            self.undo(self.random.choice(open_runs() or [1]))
        if self.random.random() < 0.2:
            session = self.random.choice([*self.whole])
            self.by_name.add(session)
            called("rotate", session)

    def undo(self, number: int) -> None:
        self.said += called("restore", "--run", str(number), "--yes").out

    def check_nothing_is_lost(self) -> None:
        for session, data in self.whole.items():
            assert called("stitch", session).out.encode() in {data, b""}  # or some of it is pruned

    def check_whole(self) -> None:
        assert self.by_name or "left alone; `" not in self.said
        for session, data in self.whole.items():
            is_left = f"left alone; `sessrotate restore {session}`" in self.said
            if is_left or session in self.by_name:
                called("restore", session)
            assert self.lives[session].read_bytes() == data


@pytest.mark.parametrize("seed", range(6))
def test_ten_runs_of_five_kinds_undone_in_any_order_give_every_byte_back(
    home: Home, seed: int
) -> None:
    settings = SETTINGS.replace(b'archive.older_than = "30d"', b"")
    write(home.config.parent / "xdg-config" / "sessrotate" / "config.toml", settings)
    drawn = Drawn(home, seed)
    for number, kind in enumerate(drawn.random.sample(KINDS * 2, 10)):
        drawn.go_on(number)
        assert called(*kind).code == 0
        drawn.meddle()
        drawn.check_nothing_is_lost()
    left: list[int] = []
    while len(still := open_runs()) != len(left):  # what is left alone stays on record
        left = still
        for number in drawn.random.sample(left, len(left)):
            drawn.undo(number)
    drawn.check_whole()


def test_what_a_later_run_changed_again_waits_until_that_is_undone(rotated: Home) -> None:
    assert called("archive", ID, OTHER, "--yes").code == 0
    first = called("restore", "--run", "1", "--yes")
    assert first.code == 0
    told = "archived since by run 2: undo that first, `sessrotate restore --run 2`\n"
    assert first.out.count(told) == 2
    assert open_runs() == [1, 2]
    assert called(*UNDO).out.startswith("Undoing run 2, `archive`")
    assert called(*UNDO).out.startswith("Undoing run 1, `rotate --all`")
    assert is_whole(rotated)


def test_a_run_that_was_undone_says_nothing_of_what_came_later(rotated: Home) -> None:
    called(*UNDO)
    assert called("rotate", ID, OTHER, "--yes").code == 0
    again = called("restore", "--run", "1", "--yes")
    assert again.out.count("nothing to do: undone already") == 2
    assert not is_whole(rotated)
    assert called(*UNDO).out.startswith("Undoing run 2, `rotate`")
    assert is_whole(rotated)


def test_what_anybody_changed_between_two_runs_is_left_when_both_are_undone(rotated: Home) -> None:
    rotated_again(rotated)
    assert called("archive", ID, OTHER, "--yes").code == 0
    called(*UNDO)
    ended = called(*UNDO)
    assert f"rotated since: left alone; `sessrotate restore {ID}` restores it\n" in ended.out
    assert other(rotated).read_bytes() == THEIRS


def test_the_runs_are_listed_with_what_undoing_each_gives(home: Home) -> None:
    assert called("restore", "--runs").out == (
        "Nothing to restore: there is no record of a run over many sessions.\n"
    )
    called(*ALL)
    before = snapshot(home.config)
    (line,) = (
        each for each in called("restore", "--runs").out.splitlines() if "rotate --all" in each
    )
    gain = 2 * len(DATA) - home.live.stat().st_size - other(home).stat().st_size
    assert line.split()[0] == "1"
    assert "2 of 2 sessions would come back: " in line
    (told,) = listed()
    assert told.pop("at").startswith("20")
    assert told == {
        "number": 1, "command": "rotate --all", "sessions": 2, "undone": False,
        "come_back": 2, "bytes": gain,
    }  # fmt: skip
    assert snapshot(home.config) == before
    called(*UNDO)
    assert called("restore", "--runs").out.splitlines()[1].endswith("undone")


def test_everything_comes_back_at_once_and_goes_back_under_the_rules_at_once(home: Home) -> None:
    nothing = called("restore", "--all")
    assert nothing.out == "Nothing to restore: no session is rotated, pruned or put away.\n"
    home.rotate()
    short = home.live.stat().st_size
    assert called("prune", ID, "--keep-last", "1", "--yes").code == 0
    assert called("archive", OTHER).code == 0
    assert called("restore", "--all").code == 2
    dry = called("restore", "--all", "--dry-run")
    assert "2 of 2 sessions would come back" in dry.out
    ended = called("restore", "--all", "--yes")
    assert ended.code == 0
    assert is_whole(home)
    (again,) = re.findall(r"until you run `sessrotate (rotate .*)`", ended.out)
    assert f"`sessrotate {again}`" in dry.out
    called(*ALL)
    assert is_whole(home)
    assert called(*again.split(), "--yes").code == 0
    assert home.live.stat().st_size == short
    assert list(restored.marked()) == []
    called(*UNDO)
    assert is_whole(home)


@pytest.mark.parametrize("data", [DATA, command_line.row(1)])
def test_one_that_is_as_short_as_can_be_goes_back_under_the_rules_too(
    home: Home, data: bytes
) -> None:
    home.beside(OTHER, data)
    called(*ALL)
    assert called("archive", "--older-than", "0d", "--yes").code == 0
    called(*UNDO)
    assert set(restored.marked()) == {ID, OTHER}
    assert called("rotate", ID, OTHER, "--yes").code == 0
    assert list(restored.marked()) == []


@pytest.mark.parametrize("arguments", [("--run", "9"), ("--run", "1", "--all"), ("--runs", ID)])
def test_a_run_that_is_not_there_is_wrong_usage(rotated: Home, arguments: tuple[str, ...]) -> None:
    command_line.assert_one_sentence(called("restore", *arguments, "--yes"), 2)
    assert not is_whole(rotated)


@pytest.mark.parametrize("how", ["kept short", "replaced", "away for a while"])
def test_only_what_came_back_is_said_to_be_undone(rotated: Home, how: str) -> None:
    whole = ["--keep-rotated"] if how == "kept short" else []
    moved = rotated.live.with_name("moved")
    if how == "replaced":
        for path in (rotated.live, other(rotated)):
            shutil.copy(path, moved)
            moved.rename(path)
    elif how == "away for a while":
        rotated.live.rename(moved)
    assert called(*UNDO, *whole).code == 0
    if how == "away for a while":
        moved.rename(rotated.live)
    assert open_runs() == [1]
    if how == "replaced":
        assert "replaced since: left alone" in called(*UNDO).out
    else:
        assert called(*UNDO).code == 0
        assert open_runs() == []
        assert is_whole(rotated)


def test_a_number_that_is_none_of_ours_keeps_no_later_run_from_being_undone(home: Home) -> None:
    called("rotate", OTHER, ID, "--yes")
    called("restore", ID)
    path = user_folders.log_file()
    path.write_bytes(path.read_bytes().replace(b'"run": 1,', b'"run": %d,' % (2**63 - 1)))
    assert called("rotate", ID, OTHER, "--yes").code == 0
    assert called(*UNDO).code == 0
    assert home.live.read_bytes() == DATA


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_log_that_is_no_file_is_a_finding_and_waits_for_nobody(
    home: Home, make: Callable[[Path], None]
) -> None:
    path = user_folders.log_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)
    assert called("restore", "--runs").code == 74
    assert called().code == 0
    assert called("tidy", "--yes").code == 0
    (finding,) = called("doctor", "--json").document()["findings"]
    assert str(path) in finding["detail"]
    assert home.live.exists()
