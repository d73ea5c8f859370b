"""A project's folder was renamed, moved or copied: a session keeps its history, and only its own.

Rule: what is right is told by inodes and by the bytes that were written, never by a name.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import fs
from sessrotate.archive import place
from sessrotate.errors import InUseError, RefusedError
from sessrotate.hook import notes
from sessrotate.in_place import homecoming, operations, recover
from sessrotate.system import locks
from support import command_line, homes
from support.command_line import ID, boundary, called, row, write
from support.examples import examples
from support.homes import PROJECT, Crash, Home, Killed, crashed, silent, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATA: Final = command_line.session(boundaries=3)
MORE: Final = row(90) + boundary(91) + row(92)
NEW: Final = "-home-somebody-moved"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = homes.home(tmp_path, monkeypatch, DATA)
    made.rotate()
    return made


def moved(home: Home, name: str = NEW) -> Path:
    """Rename the project's folder; return where the live file is now."""
    home.live.parent.rename(home.live.parent.with_name(name))
    return home.live.parent.with_name(name) / home.live.name


def archive_in(home: Home, project: str) -> Path:
    return home.config / "sessrotate" / project / ID


# ── moved ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [ID, ID[:8], "path"])
def test_a_moved_session_is_read_without_being_changed(home: Home, name: str) -> None:
    live = moved(home)
    before = snapshot(home.config)
    named = str(live) if name == "path" else name
    assert called("stitch", named).out.encode() == DATA
    assert called("verify", named).code == 0
    assert called("export", named).code == 0
    assert called("doctor").code == 0
    (listed,) = called("list", "--json").document()
    assert listed["archived_bytes"] > 0
    assert listed["path"] == str(live)
    assert snapshot(home.config) == before


def test_a_moved_session_goes_on_in_its_new_project(home: Home) -> None:
    live = moved(home)
    with live.open("ab") as file:
        file.write(MORE)
    assert called("split", "--in-place", ID).code == 0
    assert not archive_in(home, PROJECT).parent.exists()
    assert len(command_line.segments_of(DATA + MORE)) == 5
    assert called("stitch", ID).out.encode() == DATA + MORE
    assert called("restore", ID).code == 0
    assert live.read_bytes() == DATA + MORE


@pytest.mark.parametrize("damage", [None, b"{"])
def test_a_moved_session_whose_manifest_is_lost_finds_its_archive(
    home: Home, damage: bytes | None
) -> None:
    path = home.archive / "manifest.json"
    path.unlink() if damage is None else path.write_bytes(damage)
    live = moved(home)
    assert "makes it again from the segments" in called("stitch", ID).err
    assert called("split", "--in-place", ID).code == 0
    assert called("stitch", ID).out.encode() == DATA
    assert called("restore", ID).code == 0
    assert live.read_bytes() == DATA


def test_an_archive_that_lost_a_segment_too_is_not_taken_for_the_moved_one(home: Home) -> None:
    (home.archive / "manifest.json").unlink()
    home.segment(1).unlink()
    before = snapshot(home.archive)
    assert called("split", "--in-place", str(moved(home))).code == 77
    assert snapshot(home.archive) == before


@pytest.mark.parametrize(
    "command",
    [
        ("restore",),
        ("archive",),
        ("pin", "1"),
        ("prune", "--keep-last", "1", "--yes"),
        ("split", "--in-place", "--dry-run"),
        ("restore", "--dry-run"),
    ],
)
def test_every_command_finds_the_archive_of_a_moved_session(
    home: Home, command: tuple[str, ...]
) -> None:
    moved(home)
    assert called(command[0], ID, *command[1:]).code == 0
    assert called("doctor").code == 0


def test_an_archived_session_comes_back_where_it_was_put_away(home: Home) -> None:
    live = moved(home)
    content = live.read_bytes()
    assert called("archive", ID).code == 0
    assert not live.exists()
    assert called("restore", "--keep-rotated", ID).code == 0
    assert live.read_bytes() == content
    assert called("stitch", ID).out.encode() == DATA


def test_what_was_interrupted_before_the_move_is_finished_after_it(home: Home) -> None:
    home.append(MORE)
    crashed(home.rotate, "sessrotate.in_place.seal.finish")
    live = moved(home)
    assert called("stitch", ID).out.encode() == DATA + MORE
    assert called("run").code == 0
    assert called("doctor").code == 0
    assert called("stitch", ID).out.encode() == DATA + MORE
    assert live.exists()
    assert not home.live.exists()


def test_a_pack_that_is_the_moved_live_file_makes_no_second_name(home: Home) -> None:
    home.restore()
    home.append(MORE)
    crashed(home.rotate, "sessrotate.fs.take_place")
    live = moved(home)
    assert called("run").code == 0
    assert not home.live.exists()
    assert live.read_bytes() == DATA + MORE
    assert live.stat().st_nlink == 1
    assert called("doctor").code == 0


def test_a_project_that_is_moved_before_the_lock_is_followed(home: Home) -> None:
    where = home.where
    live = moved(home)
    assert operations.restore_session(where, 1, silent)
    assert live.read_bytes() == DATA
    assert not home.live.exists()


@pytest.mark.parametrize("deed", [operations.rotate_session, operations.restore_session])
def test_a_project_that_is_moved_behind_the_lock_gets_no_second_live_file(
    home: Home, monkeypatch: pytest.MonkeyPatch, deed: Callable[..., object]
) -> None:
    lives, real = [], recover.recover

    def then_moved(*arguments: object) -> object:
        done = real(*arguments)  # type: ignore[arg-type]  # whatever it is given
        lives.append(moved(home))
        return done

    monkeypatch.setattr(recover, "recover", then_moved)
    with pytest.raises(InUseError, match="was moved just now"):
        deed(home.where, 1, silent)
    monkeypatch.setattr(recover, "recover", real)
    assert not home.live.exists()
    assert called("restore", ID).code == 0
    assert lives[0].read_bytes() == DATA


def test_the_hooks_note_goes_along(home: Home) -> None:
    notes.write(home.where, "It failed.")
    live = moved(home)
    with live.open("ab") as file:
        file.write(MORE)
    operations.rotate_session(place.of_live(live), 1, silent)
    assert place.of_live(live).note.exists()
    assert [*notes.notes()] == []  # what it was about is done


def test_a_crash_leaves_the_archive_in_the_one_project_or_the_other(home: Home) -> None:
    live = moved(home)
    with live.open("ab") as file:
        file.write(MORE)
    at = 0
    while True:
        at += 1
        copy = home.config.with_name(f"copy-{at}")
        shutil.copytree(home.config, copy, symlinks=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CLAUDE_CONFIG_DIR", str(copy))
            crash = Crash(at)
            there = copy / "projects" / NEW / live.name
            where = place.of_live(there)
            crash.install(patch)
            try:
                with homecoming.alone(where, 1):
                    pass
            except Killed:
                pass
            patch.undo()
            patch.setenv("CLAUDE_CONFIG_DIR", str(copy))
            found = [path for path in (copy / "sessrotate").glob(f"*/{ID}") if path.is_dir()]
            assert len(found) == 1
            assert called("stitch", ID).out.encode() == DATA + MORE
            assert called("split", "--in-place", ID).code == 0
            assert called("stitch", ID).out.encode() == DATA + MORE
        if not crash.happened:
            break
    assert at > 5


def test_whoever_works_on_the_archive_is_waited_for(home: Home) -> None:
    old = home.where
    live = moved(home)
    with locks.alone(old, 0), pytest.raises(InUseError, match="Another sessrotate"):
        operations.restore_session(place.of_live(live), 0.1, silent)
    assert archive_in(home, PROJECT).exists()


def test_two_that_bring_it_home_at_once_do_so_once(home: Home) -> None:
    live = moved(home)
    where = place.of_live(live)
    failures: list[BaseException] = []

    def bring() -> None:
        try:
            with homecoming.alone(where, 20):
                pass
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=bring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert archive_in(home, NEW).exists()
    assert called("stitch", ID).out.encode() == DATA


def test_only_one_rename_moves_the_archive(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    live = moved(home)
    where, inode = place.of_live(live), archive_in(home, PROJECT).stat().st_ino
    names: list[tuple[Path, Path]] = []
    real = fs.move_folder

    def move(old: Path, new: Path) -> None:
        names.append((old, new))
        real(old, new)

    monkeypatch.setattr(fs, "move_folder", move)
    with homecoming.alone(where, 1) as found:
        assert found.archive == archive_in(home, NEW)
    assert names == [(archive_in(home, PROJECT), archive_in(home, NEW))]
    assert archive_in(home, NEW).stat().st_ino == inode


# ── copied ───────────────────────────────────────────────────────────────────────────────────


def copied(home: Home, where: str) -> Path:
    """Copy the live file somewhere; return where."""
    paths = {
        "another name": home.live.with_name("11111111-0000-4000-a000-000000000007.jsonl"),
        "another project": home.live.parent.with_name(NEW) / home.live.name,
        "outside": home.config.parent / "backup.jsonl",
        "outside, its own name": home.config.parent / "backup" / home.live.name,
    }
    paths[where].parent.mkdir(exist_ok=True)
    shutil.copy(home.live, paths[where])
    return paths[where]


COPIES: Final = ("another name", "another project", "outside", "outside, its own name")


@pytest.mark.parametrize("where", COPIES)
def test_a_copy_is_read_with_the_whole_history(home: Home, where: str) -> None:
    path = copied(home, where)
    before = snapshot(home.config)
    assert called("stitch", path).out.encode() == DATA
    assert called("verify", path).code == 0
    assert called("read", path, "--history").code == 0
    assert called("export", path).out.encode() == called("export", home.live).out.encode()
    assert snapshot(home.config) == before


@pytest.mark.parametrize("where", COPIES[:2])
@pytest.mark.parametrize(
    "command",
    [
        ("split", "--in-place"),
        ("split", "--in-place", "--dry-run"),
        ("restore",),
        ("restore", "--dry-run"),
        ("archive",),
        ("prune", "--keep-last", "1", "--yes"),
        ("pin", "1"),
    ],
)
def test_a_copy_never_owns_the_history(home: Home, where: str, command: tuple[str, ...]) -> None:
    path = copied(home, where)
    with path.open("ab") as file:
        file.write(MORE)
    before = snapshot(home.config)
    ended = called(command[0], path, *command[1:])
    assert ended.code == 77, ended
    assert "copy" in ended.err + ended.out
    assert snapshot(home.config) == before
    assert called("stitch", ID if where == COPIES[0] else str(home.live)).out.encode() == DATA


def test_what_works_on_all_sessions_passes_over_a_copy(home: Home) -> None:
    path = copied(home, "another name")
    with path.open("ab") as file:
        file.write(MORE)
    before = path.read_bytes()
    assert called("split", "--in-place", "--all", "--min-size", "0").code == 0
    assert called("archive", "--yes", "--older-than", "1d").code == 0
    assert path.read_bytes() == before
    (finding,) = called("doctor", "--json").document()["findings"]
    assert (finding["kind"], finding["path"]) == ("copy", str(path))
    assert "stitch" in finding["detail"]


def test_a_copy_that_is_taken_for_a_session_of_its_own_leaves_the_history_alone(
    home: Home,
) -> None:
    path = copied(home, "another name")
    with path.open("ab") as file:
        file.write(MORE)
    content = path.read_bytes()
    assert called("split", "--in-place", "--unsafe-adopt", path).code == 0
    assert called("stitch", path).out.encode() == content
    assert called("stitch", ID).out.encode() == DATA


def test_of_two_copies_without_an_owner_neither_owns(home: Home) -> None:
    live = moved(home)
    other = live.parent.with_name("-third") / live.name
    other.parent.mkdir()
    shutil.copy(live, other)
    for path in (live, other):
        assert called("stitch", path).out.encode() == DATA
        with pytest.raises(RefusedError, match="one is a copy"):
            operations.restore_session(place.of_live(path), 1, silent)
    assert called("doctor").code in {0, 1}
    assert "remove this folder" not in called("doctor").out
    other.unlink()
    assert called("restore", ID).code == 0
    assert live.read_bytes() == DATA


def test_a_list_says_of_a_live_tail_alone_how_much_is_missing(home: Home) -> None:
    shutil.rmtree(home.archive)
    missing = len(b"".join(command_line.segments_of(DATA)[:-1]))
    ended = called("list")
    assert ended.code == 1
    assert f"{missing:,} bytes of history that are not here" in ended.err
    assert "sessrotate doctor" in ended.err


def test_a_fork_by_a_client_is_a_session_of_its_own(home: Home) -> None:
    """A client copies all rows, ours too, and writes its own id into each of them."""
    other = "22222222-0000-4000-a000-000000000007"
    head, *rows = home.live.read_bytes().splitlines(keepends=True)
    forked = head + b"".join(rows).replace(ID.encode(), other.encode())
    path = write(home.live.with_name(f"{other}.jsonl"), forked)
    assert called("stitch", path).out.encode() == forked
    with path.open("ab") as file:
        file.write(MORE)
    assert called("split", "--in-place", path).code == 0


@pytest.mark.parametrize("root", ["../../../x", "..", "", ".", "a/b", "a\0b"])
def test_a_forged_name_leads_nowhere(home: Home, root: str) -> None:
    head, *rows = home.live.read_bytes().splitlines(keepends=True)
    told = json.loads(head)
    told["rootSession"], told["parentFile"] = root, f"{root}.1.jsonl"
    line = json.dumps(told, separators=(",", ":")).encode() + b"\n"
    path = write(home.config.parent / "forged.jsonl", line + b"".join(rows))
    before = snapshot(home.config)
    command_line.assert_one_sentence(called("stitch", path), 74)
    assert snapshot(home.config) == before


# ── any layout ───────────────────────────────────────────────────────────────────────────────

FOLDERS: Final = ("-a", "-b", "-c")

MOVES: Final = st.lists(
    st.one_of(
        st.tuples(st.just("rename"), st.sampled_from(FOLDERS), st.sampled_from(FOLDERS)),
        st.tuples(st.just("link"), st.sampled_from(FOLDERS), st.sampled_from(FOLDERS)),
        st.tuples(st.just("out"), st.sampled_from(FOLDERS), st.just("")),
        st.tuples(st.just("copy"), st.sampled_from(FOLDERS), st.sampled_from(FOLDERS)),
        st.tuples(st.just("rotate"), st.just(""), st.just("")),
    ),
    max_size=6,
)


@given(moves=MOVES)
@examples(40)
def test_however_folders_are_moved_and_linked_the_history_is_one_and_whole(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[str, str, str]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        made = homes.home(tmp_path_factory.mktemp("layout"), patch)
        live = write(made.config / "projects" / "-a" / f"{ID}.jsonl", DATA)
        operations.rotate_session(place.of_live(live), 1, silent)
        history = DATA
        for number, (what, one, two) in enumerate(moves):
            changed(made, what, one, two, number)
            lives = live_files(made)
            first = 1000 + 3 * number
            if what == "rotate" and len(lives) == 1:
                more = b"".join((row(first), boundary(first + 1), row(first + 2)))
                with lives[0].open("ab") as file:
                    file.write(more)
                history += more
                assert called("split", "--in-place", ID).code == 0
            check_read(live_files(made), history)


def changed(home: Home, what: str, one: str, two: str, number: int) -> None:
    """Rename, link or copy the folders of projects, if that is possible."""
    here, there = home.config / "projects" / one, home.config / "projects" / two
    if what == "rename" and os.path.lexists(here) and not os.path.lexists(there):
        here.rename(there)
    elif what == "link" and not os.path.lexists(here) and there.is_dir():
        here.symlink_to(there)
    elif what == "out" and here.is_dir() and not here.is_symlink():
        outside = home.config.parent / f"outside-{number}"
        here.rename(outside)
        here.symlink_to(outside)
    elif what == "copy" and here.is_dir() and not os.path.lexists(there):
        shutil.copytree(here, there)


def live_files(home: Home) -> list[Path]:
    """Return a path of each file that is the session's live one, told by its inode."""
    found: dict[tuple[int, int], Path] = {}
    for path in sorted((home.config / "projects").glob(f"*/{ID}.jsonl")):
        status = path.stat()
        found.setdefault((status.st_dev, status.st_ino), path)
    return [*found.values()]


def check_read(lives: list[Path], history: bytes) -> None:
    for path in lives:
        assert called("stitch", path).out.encode() == history
    by_id = called("stitch", ID)
    if len(lives) == 1:
        assert by_id.out.encode() == history
        assert len(called("list", "--json").document()) == 1
        assert called("doctor").code == 0
    elif lives:
        assert by_id.code == 2  # several files have this id, and a path says which is meant
