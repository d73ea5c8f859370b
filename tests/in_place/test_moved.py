"""A project's folder was renamed, moved or copied: a session keeps its history, and only its own.

Rule: what is right is told by inodes and by the bytes that were written, never by a name.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.archive import place
from sessrotate.errors import InUseError, RefusedError
from sessrotate.hook import notes
from sessrotate.in_place import operations, recover
from sessrotate.system import in_use
from sessrotate.units import amount
from support import command_line, homes
from support.command_line import ID, append, boundary, called, row, write
from support.crash.changes import Faults, Killed
from support.examples import examples
from support.homes import Home, crashed, silent, snapshot
from support.tiers import in_gate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DATA: Final = command_line.session(boundaries=3)
MORE: Final = row(90) + boundary(91) + row(92)
NEW: Final = "-home-somebody-moved"


@pytest.fixture
def home(home: Home) -> Home:
    home.rotate()
    return home


def moved(home: Home, name: str = NEW) -> Path:
    """Rename the project's folder; return where the live file is now."""
    home.live.parent.rename(home.live.parent.with_name(name))
    return home.live.parent.with_name(name) / home.live.name


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
    append(live, MORE)
    assert called("split", "--in-place", ID).code == 0
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
    assert "rebuilds it from the segments" in called("stitch", ID).err
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


COMMANDS: Final = [
    "restore",
    "archive",
    "pin 1",
    "prune --keep-last 1 --yes",
    "split --in-place --dry-run",
    "restore --dry-run",
]


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_finds_the_archive_of_a_moved_session(home: Home, words: str) -> None:
    command, *options = words.split()
    moved(home)
    assert called(command, ID, *options).code == 0
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


@pytest.mark.parametrize("deed", [operations.rotate_session, operations.restore_session])
@pytest.mark.parametrize("is_locked", [False, True], ids=["before the lock", "behind the lock"])
def test_a_project_that_is_moved_as_its_session_is_changed_gets_no_second_live_file(
    home: Home, monkeypatch: pytest.MonkeyPatch, is_locked: bool, deed: Callable[..., object]
) -> None:
    where, real = home.where, recover.settled
    lives = [] if is_locked else [moved(home)]

    @contextmanager
    def then_moved(*arguments: object) -> Iterator[object]:
        with real(*arguments) as found:  # type: ignore[arg-type]  # whatever it is given
            lives.append(moved(home))
            yield found

    with monkeypatch.context() as patch:
        if is_locked:
            patch.setattr(recover, "settled", then_moved)
        with pytest.raises(InUseError, match="was moved just now"):
            deed(where, 1, silent)
    assert not home.live.exists()
    assert called("restore", ID).code == 0
    assert lives[0].read_bytes() == DATA


@pytest.mark.parametrize("deed", [Home.rotate, Home.restore])
def test_a_project_that_has_another_name_while_a_writer_is_waited_for_keeps_its_session(
    home: Home, monkeypatch: pytest.MonkeyPatch, deed: Callable[[Home], object]
) -> None:
    home.append(MORE)
    before, lives, real = home.live.read_bytes(), list[Path](), in_use.lease_from_writers

    def moved_and_in_use(*_: object) -> str:
        lives.append(moved(home))
        raise InUseError("Somebody has it open.")

    monkeypatch.setattr(in_use, "lease_from_writers", moved_and_in_use)
    with pytest.raises(InUseError, match="Somebody has it open"):
        deed(home)
    monkeypatch.setattr(in_use, "lease_from_writers", real)
    lives[0].parent.rename(home.live.parent)
    assert home.live.read_bytes() == before
    assert home.live.stat().st_nlink == 1
    deed(home)
    assert called("stitch", ID).out.encode() == DATA + MORE


def test_the_hooks_note_goes_along(home: Home) -> None:
    notes.write(home.where, "It failed.")
    live = moved(home)
    append(live, MORE)
    operations.rotate_session(place.of_live(live), 1, silent)
    assert place.of_live(live).note.exists()
    assert [*notes.notes()] == []  # what it was about is done


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
@pytest.mark.parametrize("words", ["split --in-place", *COMMANDS])
def test_a_copy_never_owns_the_history(home: Home, where: str, words: str) -> None:
    command, *options = words.split()
    path = copied(home, where)
    append(path, MORE)
    before = snapshot(home.config)
    ended = called(command, path, *options)
    assert ended.code == 77, ended
    assert "copy" in ended.err + ended.out
    assert snapshot(home.config) == before
    assert called("stitch", ID if where == COPIES[0] else str(home.live)).out.encode() == DATA


def test_what_works_on_all_sessions_passes_over_a_copy(home: Home) -> None:
    path = copied(home, "another name")
    append(path, MORE)
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
    append(path, MORE)
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
        with pytest.raises(RefusedError, match="have the same id"):
            operations.restore_session(place.of_live(path), 1, silent)
    assert called("doctor").code in {0, 1}
    assert "remove this folder" not in called("doctor").out
    told = called("restore", ID)
    assert (told.code, "matches 2 files" in told.err) == (2, True)  # not where it was before
    assert str(home.live) not in told.err
    other.unlink()
    assert called("restore", ID).code == 0
    assert live.read_bytes() == DATA


def test_a_list_says_of_a_live_tail_alone_how_much_is_missing(home: Home) -> None:
    shutil.rmtree(home.archive)
    missing = len(b"".join(command_line.segments_of(DATA)[:-1]))
    ended = called("list")
    assert ended.code == 1
    assert f"{amount(missing)} of history is missing here" in ended.err
    assert "sessrotate doctor" in ended.err


def test_a_list_says_how_much_an_older_archive_lacks(home: Home) -> None:
    older = home.config / "older"
    shutil.copytree(home.archive, older)
    more = row(800) + boundary(800) + row(801)
    home.append(more)
    home.rotate()
    shutil.rmtree(home.archive)
    older.rename(home.archive)
    lacks = len(command_line.segments_of(DATA + more)[-2])
    assert f"{amount(lacks)} of history is missing here" in called("list").err


@pytest.mark.parametrize("left", [None, b"{"])
@pytest.mark.parametrize("is_away", [False, True])
def test_a_list_says_of_a_lost_manifest_nothing_of_missing_history(
    home: Home, left: bytes | None, *, is_away: bool
) -> None:
    assert not is_away or called("archive", ID).code == 0
    path = home.archive / "manifest.json"
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    ended = called("list")
    assert "manifest.json" in ended.err
    assert "missing" not in ended.err


def test_a_fork_by_a_client_is_a_session_of_its_own(home: Home) -> None:
    """A client copies all rows, ours too, and writes its own id into each of them."""
    other = "22222222-0000-4000-a000-000000000007"
    head, *rows = home.live.read_bytes().splitlines(keepends=True)
    forked = head + b"".join(rows).replace(ID.encode(), other.encode())
    path = write(home.live.with_name(f"{other}.jsonl"), forked)
    assert called("stitch", path).out.encode() == forked
    append(path, MORE)
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


# ── strangers ────────────────────────────────────────────────────────────────────────────────

SWAPPED: Final = ("sessrotate.fs.take_place", "sessrotate.in_place.seal.finish")
"""Where a rotation is killed: right before its swap, and right behind it."""


OPTIONS: Final = ("--unsafe-adopt", "--dry-run")


def stranger(home: Home, data: bytes = DATA) -> Path:
    """Put a file of the session's id into another project."""
    return write(home.live.parent.with_name(NEW) / home.live.name, data)


@pytest.mark.parametrize("point", SWAPPED)
def test_another_file_of_that_id_is_no_evidence_of_what_an_interrupted_rotation_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """A copy of the file that was replaced looks as if the rotation had not begun."""
    home = homes.home(tmp_path, monkeypatch, DATA)
    crashed(home.rotate, point)
    path = stranger(home)
    before = snapshot(home.config)
    for words in ("rotate", "restore", "archive", "pin 0", *map("rotate {}".format, OPTIONS)):
        command, *options = words.split()
        ended = called(command, path, *options)
        assert ended.code == 77, ended
    assert called("rotate", "--all", "--yes", "--min-size", "1", "--dry-run").code == 0
    assert snapshot(home.config) == before
    assert called("stitch", path).out.encode() == DATA
    assert called("restore", ID).code == 0
    assert home.live.read_bytes() == DATA
    assert path.read_bytes() == DATA


@pytest.mark.parametrize("lines", [0, 1, 4, 9])
@pytest.mark.parametrize("point", SWAPPED)
@pytest.mark.parametrize("command", ["rotate", "restore", "archive", "rotate --unsafe-adopt"])
def test_a_copy_that_is_the_only_file_of_its_id_takes_nothing_of_the_history_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int, point: str, command: str
) -> None:
    """It is the session's own now, and older by some lines than the file that is gone."""
    home = homes.home(tmp_path, monkeypatch, DATA)
    crashed(home.rotate, point)
    rows = DATA.splitlines(keepends=True)
    stranger(home, b"".join(rows[: len(rows) - lines]))
    home.live.unlink()
    name, *options = command.split()
    assert called(name, ID, *options).code in {0, 74, 77}
    files = [each for each in home.config.rglob("*") if each.is_file()]
    held = b"".join(homes.content(each) for each in files)
    assert [each for each in rows if each not in held] == []


@pytest.mark.parametrize("deed", ["read", "stitch", "rotate", "restore", "archive"])
def test_an_id_means_the_sessions_own_file_whoever_else_has_it(home: Home, deed: str) -> None:
    home.append(MORE)
    path = stranger(home, command_line.session(boundaries=4, rows=7))
    assert called(deed, ID).code == 0
    if deed == "restore":  # the archive is gone, so that nothing says whose it was
        assert home.live.read_bytes() == DATA + MORE
    else:
        assert called("stitch", ID).out.encode() == DATA + MORE
    assert path.read_bytes() == command_line.session(boundaries=4, rows=7)


def test_a_stranger_is_read_alone_and_named_by_doctor(home: Home) -> None:
    data = command_line.session(boundaries=4, rows=7)
    path = stranger(home, data)
    assert called("stitch", path).out.encode() == data
    assert called("verify", path).code == 0
    assert called("report", path).code == 0
    (finding,) = called("doctor", "--json").document()["findings"]
    assert (finding["kind"], finding["path"]) == ("copy", str(path))
    assert "Move the one that you do not need" in finding["detail"]
    refused = called("rotate", path)
    assert (refused.code, finding["detail"] in refused.err) == (77, True)


@pytest.mark.parametrize("kind", ["copy", "stranger"])
def test_a_list_has_each_session_once_and_each_archive_with_its_own(home: Home, kind: str) -> None:
    path = copied(home, "another project") if kind == "copy" else stranger(home)
    ended = called("list", "--json")
    assert (ended.code, ended.err) == (0, "")
    listed = {each["path"]: each["archived_bytes"] for each in ended.document()}
    assert listed.pop(str(home.live)) > 0
    assert listed == ({} if kind == "copy" else {str(path): 0})
    (found,) = called("doctor", "--json").document()["findings"]
    assert (found["kind"], found["path"]) == ("copy", str(path))


def test_what_works_on_all_sessions_passes_over_a_stranger(home: Home) -> None:
    path = stranger(home)
    before = snapshot(home.config)
    assert called("rotate", "--all", "--yes", "--min-size", "1").code == 0
    assert called("archive", "--yes", "--older-than", "10000d").code == 0
    assert snapshot(home.config) == before
    assert path.read_bytes() == DATA


def test_once_the_owner_is_gone_another_file_is_rotated_if_its_archive_begins_anew(
    home: Home,
) -> None:
    data = command_line.session(boundaries=4, rows=7)
    path = stranger(home, data)
    home.live.unlink()
    told = called("rotate", path)
    assert told.code == 77
    assert f"sessrotate rotate --unsafe-adopt {ID}" in told.err
    assert called("rotate", path, "--unsafe-adopt").code == 0
    assert called("stitch", path).out.encode() == data
    (aside,) = (home.config / "sessrotate" / "aside").iterdir()
    before = b"".join(command_line.segments_of(DATA)[:-1])
    assert called("stitch", "--allow-gaps", aside).out.encode() == before


def test_a_file_of_the_id_of_a_session_that_was_put_away_is_a_stranger(home: Home) -> None:
    assert called("archive", ID).code == 0
    path = stranger(home)
    assert called("rotate", path).code == 77
    assert called("stitch", path).out.encode() == DATA
    assert called("restore", ID).code == 0
    assert home.live.read_bytes() == DATA
    assert path.read_bytes() == DATA


def test_a_strangers_path_frees_nothing_that_is_left_of_another_file(home: Home) -> None:
    home.restore()
    path = stranger(home, command_line.session(boundaries=4, rows=7))
    home.live.unlink()
    before = [each.read_bytes() for each in sorted(home.config.rglob("*.zst"))]
    called("prune", path, "--empty-trash", "--grace", "0", "--yes")
    assert [each.read_bytes() for each in sorted(home.config.rglob("*.zst"))] == before
    refused = called("restore", ID)
    assert refused.code == 77
    assert f"move the file away, then `sessrotate restore {ID}` brings it back" in refused.err
    assert refused.err.rstrip()[len("sessrotate: ") :] in called("doctor").out
    path.rename(path.with_suffix(".mine"))
    assert called("restore", ID).code == 0
    assert DATA.startswith(home.live.read_bytes())


def test_aside_by_a_strangers_path_leaves_the_archive_where_it_is(home: Home) -> None:
    path = stranger(home)
    before = snapshot(home.config)
    assert called("aside", path, "--yes").code == 77
    assert snapshot(home.config) == before


def test_while_the_trash_has_its_history_a_restored_session_is_told_from_a_stranger(
    home: Home,
) -> None:
    home.restore()
    path = stranger(home, command_line.session(boundaries=4, rows=7))
    assert called("stitch", ID).out.encode() == DATA
    assert called("rotate", path).code == 77
    ended = called("list", "--json")
    trashed = {each["path"]: each["archived_disk_bytes"] for each in ended.document()}
    assert trashed.pop(str(home.live)) > 0
    assert trashed == {str(path): 0}
    assert called("rotate", ID).code == 0
    assert called("stitch", ID).out.encode() == DATA


@pytest.mark.parametrize("deed", ["rotate", "restore", "stitch", "pin"])
def test_the_path_of_before_a_move_means_the_session(home: Home, deed: str) -> None:
    live = moved(home)
    append(live, MORE)
    arguments = ["1"] if deed == "pin" else []
    assert called(deed, home.live, *arguments).code == 0
    assert called("stitch", ID).out.encode() == DATA + MORE
    assert not home.live.exists()


# ── nobody knows whose ───────────────────────────────────────────────────────────────────────


def test_segments_without_a_manifest_and_a_live_file_are_said_to_be_damaged(home: Home) -> None:
    home.live.unlink()
    (home.archive / "manifest.json").unlink()
    before = snapshot(home.config)
    for command in (("restore",), ("stitch",), ("verify",), ("pin", "1")):
        ended = called(command[0], ID, *command[1:])
        assert ended.code in {1, 74, 77}, ended
        assert f"{home.archive} has neither" in ended.err + ended.out, ended
    (found,) = called("doctor", "--json").document()["findings"]
    assert (found["kind"], "has neither" in found["detail"]) == ("damaged", True)
    assert snapshot(home.config) == before
    assert called("aside", home.archive, "--yes").code == 0
    (aside,) = (home.config / "sessrotate" / "aside").iterdir()
    told = called("stitch", "--allow-gaps", aside).out.encode()
    assert told == b"".join(command_line.segments_of(DATA)[:-1])


@pytest.mark.parametrize("boundaries", [1, 4])
@pytest.mark.parametrize("is_alone", [False, True])
def test_nothing_is_added_to_segments_that_a_file_does_not_go_on_from(
    home: Home, boundaries: int, *, is_alone: bool
) -> None:
    data = command_line.session(boundaries=boundaries, rows=7)
    path = stranger(home, data)
    (home.archive / "manifest.json").unlink()
    home.segment(0).unlink()
    if is_alone:
        home.live.unlink()
    before = snapshot(home.config)
    told = called("rotate", path)
    assert (told.code, str(home.archive) in told.err) == (77, True)
    assert called("stitch", path).out.encode() == data
    assert snapshot(home.config) == before
    if is_alone:
        return
    assert called("rotate", path, "--unsafe-adopt").code == 77
    for each in (path, home.live):
        assert "have the same id" in called("rotate", each).err
    path.unlink()
    assert "segment 0" in called("rotate", ID).err


def test_a_damaged_note_of_a_session_that_was_put_away_makes_no_file_its_own(home: Home) -> None:
    home.restore()
    home.live.rename(home.live.with_name("5e55107a-0000-4000-a000-00000000000a.jsonl"))
    (live,) = home.live.parent.iterdir()
    assert called("archive", live).code == 0
    data = command_line.session(boundaries=4, rows=7)
    path = write(home.live.parent.with_name(NEW) / live.name, data)
    note = home.archive.with_name(live.stem) / "record.json"
    note.write_bytes(b"{")
    assert called("stitch", path).out.encode() == data
    assert "No record says in which project" in called("restore", live.stem).err
    assert called("restore", live.stem, "--project", live.parent).code == 0
    assert (path.read_bytes(), live.read_bytes()) == (data, DATA)


def test_a_hidden_file_is_not_rotated(home: Home) -> None:
    path = write(home.live.with_name(".hidden.jsonl"), DATA)
    ended = called("rotate", path)
    assert (ended.code, "begins with a dot" in ended.err) == (77, True)
    assert path.read_bytes() == DATA


# ── put away, and moved ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["put away", "put away, never rotated", "gone", "restored, gone"])
@pytest.mark.parametrize("named", ["sessions", "ran in"])
def test_a_session_whose_project_is_not_there_comes_back_to_the_one_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, named: str
) -> None:
    home = homes.home(tmp_path, monkeypatch, DATA)
    whole = DATA
    if how != "put away, never rotated":
        home.rotate()
    if how.startswith("put away"):
        assert called("archive", ID).code == 0
    else:
        if how == "restored, gone":
            home.restore()
        home.live.unlink()
        whole = b"".join(command_line.segments_of(DATA)[:-1])
    home.live.parent.rmdir()
    folder = home.config / "projects" / NEW
    if named == "sessions":
        folder.mkdir()
    before = snapshot(home.config)
    for options in ([], ["--dry-run"]):
        ended = called("restore", ID, *options)
        assert ended.code == 77, ended
        assert f"`sessrotate restore {ID} --project " in ended.err
    assert snapshot(home.config) == before
    told = str(folder) if named == "sessions" else NEW.replace("-", "/")
    assert called("restore", ID, "--project", told, "--dry-run").code == 0
    assert called("restore", ID, "--project", told).code == 0
    assert (folder / home.live.name).read_bytes() == whole
    assert called("doctor").code == 0
    assert called("stitch", ID).out.encode() == whole


def test_the_project_that_it_was_in_can_be_made_anew(home: Home) -> None:
    assert called("archive", ID).code == 0
    home.live.parent.rmdir()
    assert called("restore", ID).code == 77
    assert called("restore", ID, "--project", home.live.parent).code == 0
    assert home.live.read_bytes() == DATA


def test_a_project_where_another_file_has_the_id_is_not_taken(home: Home) -> None:
    assert called("archive", ID).code == 0
    path = stranger(home)
    ended = called("restore", ID, "--project", path.parent)
    assert (ended.code, f"{path} exists" in ended.err) == (77, True)
    assert path.read_bytes() == DATA
    assert called("restore", ID).code == 0


@pytest.mark.usefixtures("home")
def test_where_the_session_is_there_no_project_is_taken() -> None:
    ended = called("restore", ID, "--project", "/home/elsewhere")
    assert (ended.code, "exists: --project is for" in ended.err) == (77, True)
    assert called("restore", "--last-run", "--project", "/x").code == 2


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
                append(lives[0], more)
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
        # Either one of them is the session's own, or a path says which is meant.
        assert by_id.code in {0, 2}
        assert by_id.out.encode() == (history if by_id.code == 0 else b"")


@pytest.mark.parametrize("is_rotated", in_gate([False, True], [True], "scale"))
@pytest.mark.parametrize("begun", ["archive", "restore"])
@pytest.mark.parametrize("then", ["archive", "restore"])
def test_a_project_may_be_renamed_while_its_session_is_half_put_away(
    tmp_path: Path, begun: str, then: str, is_rotated: bool
) -> None:
    for at in range(1, 99):
        with pytest.MonkeyPatch.context() as patch:
            home = homes.home(tmp_path / str(at), patch, DATA)
            if is_rotated:
                home.rotate()
            if begun == "restore":
                called("archive", ID)
            dying = Faults(at)
            with dying.installed(), suppress(Killed):
                called(begun, ID)
            home.live.parent.rename(home.live.parent.with_name(NEW))
            live = home.live.parent.with_name(NEW) / home.live.name
            for command in (then, "restore"):
                ended = called(command, ID)
                if "--project" in ended.err:  # all of it is out of the project
                    ended = called("restore", ID, "--project", str(live.parent))
                is_said = "finish it with `sessrotate restore" in ended.err
                assert ended.code == 0 or is_said, (at, command, ended)
                assert called("stitch", ID).out.encode() == DATA, at
            assert live.read_bytes() == DATA
        if dying.count < at:
            return
