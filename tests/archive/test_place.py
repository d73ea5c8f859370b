"""Where a session's files are, and what is not in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from sessrotate import names
from sessrotate.archive import owner, place, record
from sessrotate.archive.record import NO_SWAP, Intent, PutAway, Record
from sessrotate.clients.claude import client as claude
from sessrotate.errors import DamagedError, RefusedError, WrongUsageError
from sessrotate.segments import manifest
from support import command_line
from support.command_line import ID, write
from support.homes import Home

DATA: Final = command_line.session(boundaries=2)
RESTORATION: Final = Intent("restore", NO_SWAP, 1)


def test_a_file_outside_the_clients_folder_is_refused(home: Home) -> None:
    path = write(home.config / f"{ID}.jsonl", DATA)
    with pytest.raises(RefusedError, match=r"CLAUDE_CONFIG_DIR.*without --in-place"):
        place.of_live(path)


def test_of_a_file_that_does_not_exist_only_that_is_said(home: Home, tmp_path: Path) -> None:
    for finds in (place.of_live, place.of_archived):
        with pytest.raises(WrongUsageError, match="There is no file"):
            finds(tmp_path / "nowhere.jsonl")
        gone = home.live.with_name("11111111-0000-4000-a000-000000000001.jsonl")
        assert finds(gone).live == gone  # its archive may be there


@pytest.mark.parametrize("deeper", ["subagents", "x/y"])
def test_a_file_further_down_in_a_project_is_no_live_file(home: Home, deeper: str) -> None:
    path = write(home.live.parent / deeper / f"{ID}.jsonl", DATA)
    with pytest.raises(RefusedError, match="can be changed in place only there"):
        place.of_live(path)


def test_an_agents_transcript_is_refused(home: Home) -> None:
    path = write(home.live.parent / "agent-1234.jsonl", DATA)
    with pytest.raises(RefusedError, match="belongs to its session"):
        place.of_live(path)


def test_a_file_in_an_archive_is_no_live_file(home: Home) -> None:
    home.rotate()
    with pytest.raises(RefusedError):
        place.of_live(home.archive / f"{ID}.1.jsonl")


@pytest.mark.parametrize("session", ["", ".", ".."])
def test_what_would_be_another_folder_is_no_place(tmp_path: Path, session: str) -> None:
    assert place.named(tmp_path, "p", session) is None


def test_the_places_of_many_files_are_those_of_each(home: Home, tmp_path: Path) -> None:
    home.rotate()
    projects, other = home.live.parent.parent, "77777777-0000-4000-a000-000000000007"
    (projects / "-linked").symlink_to(home.live.parent)
    write(tmp_path / "elsewhere" / f"{ID}.jsonl", DATA)
    (projects / "-outside").symlink_to(tmp_path / "elsewhere")
    folders = [home.live.parent, projects / "-linked", projects / "-outside", projects]
    folders += [tmp_path / "elsewhere", home.archive, home.archive.parent, home.config]
    names = [f"{ID}.jsonl", f"{other}.jsonl", ".jsonl", "..jsonl", "...jsonl", "agent-1.jsonl", ID]
    names += [f"{ID}.1.jsonl.zst", f"{ID}.jsonl.conflict.1", f"._{ID}.jsonl", f"{ID} (1).jsonl"]
    paths = [folder / name for folder in folders for name in names]
    for order in (paths, paths[::-1]):
        places = owner.Places()
        assert {path: places.of(path) for path in order} == {path: place.of(path) for path in order}


@pytest.mark.parametrize("told", ["its own", "the copy's", "gone", "linked", "outside", "."])
def test_the_archives_that_were_looked_for_tell_owners_as_each_file_does(
    home: Home, tmp_path: Path, told: str
) -> None:
    home.rotate()
    projects = home.live.parent.parent
    (projects / "linked").symlink_to(home.live.parent)
    for folder in (projects / "the copy's", tmp_path / "elsewhere"):
        write(folder / home.live.name, home.live.read_bytes())
    (projects / "outside").symlink_to(tmp_path / "elsewhere")
    write(projects / "the copy's" / "77777777-0000-4000-a000-000000000007.jsonl", DATA)
    path = home.archive / names.MANIFEST
    listed = manifest.parse(path.read_bytes())
    path.write_bytes(
        manifest.dump(replace(listed, project=listed.project if told == "its own" else told))
    )
    places = owner.Places([*place.archives()])
    paths = [*claude.sessions()]
    assert len(paths) == 4
    for each in paths:
        assert owner.of(each, places) == owner.of(each)


# ── whose an archive is: three rules ─────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("told", "there", "expected"),
    [
        ("a", ["a"], "a"),
        ("a", ["a", "b"], "a"),
        ("a", ["b"], "b"),
        ("a", ["b", "c"], "a"),
        ("a", [], "a"),
        ("", ["b"], "b"),
        ("", ["b", "c"], ""),
        ("", [], ""),
        ("to b", ["b", "c"], "to b"),
        ("../a", ["b"], "b"),
    ],
)
@pytest.mark.parametrize("is_away", [False, True])
def test_an_archive_belongs_to_the_project_that_it_names_or_to_the_only_file(
    home: Home, told: str, there: list[str], expected: str, *, is_away: bool
) -> None:
    home.rotate()
    live, projects = home.live.read_bytes(), home.live.parent.parent
    home.live.unlink()
    for name in there:
        write(projects / name / home.live.name, live)
    (projects / "to b").symlink_to(projects / "b")
    path = home.archive / names.MANIFEST
    listed = manifest.parse(path.read_bytes())
    path.write_bytes(manifest.dump(replace(listed, project=told or "x")))
    if not told:
        path.unlink()
    if is_away:
        write(home.archive / names.ARCHIVED / home.live.name, live)
        expected = told if names.is_plain(told) else ""
    found = place.of_session(ID)
    assert found.archive == home.archive
    if expected == "to b":
        assert (found.project, found.live) == ("to b", projects / "b" / home.live.name)
    else:
        assert (found.project, found.live) == (expected, projects / expected / home.live.name)


def test_whose_a_live_file_is_a_link_never_says(home: Home) -> None:
    home.rotate()
    other = home.live.parent.with_name("b") / home.live.name
    other.parent.mkdir()
    other.symlink_to(home.live)
    assert [each.live for each in place.live_files(ID)] == [home.live]
    home.archive.rename(home.config / "elsewhere")
    home.archive.symlink_to(home.config / "elsewhere")
    assert place.project_named(home.archive) == ""


# ── archives, and what is in them ────────────────────────────────────────────────────────────


def test_an_archive_and_any_file_in_it_are_of_its_session_links_or_not(home: Home) -> None:
    home.rotate()
    for path in (home.archive, home.segment(0), home.archive / "gone"):
        assert place.of(path) == home.where
    assert place.of(home.archive.parent) is None
    assert place.of(home.config / "projects") is None
    home.archive.rename(home.config / "elsewhere")
    home.archive.symlink_to(home.config / "elsewhere")
    assert place.of(home.archive) == home.where  # it is refused by others, as that session's
    home.archive.unlink()
    home.archive.parent.rename(home.config / "all")
    home.archive.parent.symlink_to(home.config / "all")
    assert place.of(home.archive) == home.where
    assert place.of(home.archive / "manifest.json") == home.where


@pytest.mark.parametrize(
    ("files", "is_any"),
    [
        ([], False),
        ([".DS_Store"], False),
        (["trash/.DS_Store", "archived/", "waiting/"], False),
        (["x"], True),
        (["trash/x"], True),
        (["archived/x"], True),
        (["waiting"], True),
        (["other/"], True),
    ],
)
def test_an_archive_holds_something_unless_only_a_file_manager_left_that(
    tmp_path: Path, files: list[str], *, is_any: bool
) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    for file in files:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).mkdir() if file.endswith("/") else write(folder / file, b"")
    assert place.holds_something(folder) == is_any
    (tmp_path / "link").symlink_to(folder)
    assert place.holds_something(tmp_path / "link")


def test_that_its_owner_restored_a_session_is_nothing_that_its_archive_holds(home: Home) -> None:
    home.restore()
    home.rotate()
    home.restore()
    for path in (*home.segments(), home.archive / names.MANIFEST):
        path.unlink()
    assert [path.name for path in home.archive.iterdir()] == [names.RECORD]
    assert not place.holds_something(home.archive)
    whole = Record(ID, restored="")
    for told in (replace(whole, away=PutAway("archived", "")), replace(whole, intent=RESTORATION)):
        (home.archive / names.RECORD).write_bytes(record.dump(told))
        assert place.holds_something(home.archive)


def test_archives_are_the_folders_of_sessions_that_are_ours(home: Home) -> None:
    home.rotate()
    top, told = home.archive.parent, dict[str, str]()
    for name, file in (("empty", ""), ("manager's", ".DS_Store"), ("%zz", "x"), ("other", "x")):
        (top / name).mkdir()
        if file:
            (top / name / file).touch()
    (top / "file").touch()
    (top / "link").symlink_to(home.archive)
    assert [each.session for each in place.archives(unread=told.__setitem__)] == [
        ID,
        "empty",
        "other",
    ]
    assert [each.session for each in place.archives("oth")] == ["other"]
    assert told == {}
    top.rename(home.config / "all")
    top.symlink_to(home.config / "all")
    assert [*place.archives(unread=told.__setitem__)] == []
    assert told.keys() == {str(top)}


def test_files_that_wait_are_called_by_numbers_and_come_in_their_order(home: Home) -> None:
    where = home.where
    assert place.that_wait(where) == []
    for name in ("10", "2", "1", "x", "\N{ARABIC-INDIC DIGIT THREE}", "1.partial"):
        write(where.waiting / name, b"")
    (where.waiting / "3").mkdir()
    (where.waiting / "4").symlink_to("1")
    assert [path.name for path in place.that_wait(where)] == ["1", "2", "10"]
    where.waiting.rename(home.config / "elsewhere")
    where.waiting.symlink_to(home.config / "elsewhere")
    with pytest.raises(DamagedError, match="is not a folder"):
        place.that_wait(where)


def test_what_can_have_no_archive_is_refused(home: Home, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="not in a client's folder"):
        place.of_archived(write(tmp_path / "elsewhere.jsonl", DATA))
    assert place.of_archived(home.live) == home.where
    with pytest.raises(RefusedError, match="named like a copy"):
        place.of_live(write(home.live.with_name(f"{ID}.jsonl.conflict.1"), DATA))
    home.rotate()
    with pytest.raises(RefusedError, match=f"restore {ID}` brings it back"):
        place.of_live(home.archive)
