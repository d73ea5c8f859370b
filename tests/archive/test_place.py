"""Where a session's files are, and what is not in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from sessrotate import names
from sessrotate.archive import owner, place
from sessrotate.clients.claude import client as claude
from sessrotate.errors import RefusedError
from sessrotate.segments import manifest
from support import command_line, homes
from support.command_line import ID, boundary, row, write
from support.homes import Home

DATA: Final = command_line.session(boundaries=2)
MORE: Final = row(90) + boundary(91) + row(92)
LATER: Final = row(95) + boundary(96) + row(97)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return homes.home(tmp_path, monkeypatch, DATA)


def test_a_file_outside_the_clients_folder_is_refused(home: Home) -> None:
    path = write(home.config / f"{ID}.jsonl", DATA)
    with pytest.raises(RefusedError, match=r"CLAUDE_CONFIG_DIR.*without --in-place"):
        place.of_live(path)


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
