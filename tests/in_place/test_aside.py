"""From any state of an archive, one command leads back to sessions that can be used."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final

import pytest

from support import homes
from support.command_line import ID, boundary, called, row, session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.homes import Home

DATA: Final = session(boundaries=3)
MORE: Final = boundary(80) + row(81)


@pytest.fixture
def home(home: Home) -> Home:
    home.rotate()
    home.append(MORE)
    return home


def interrupted(home: Home) -> None:
    """Stop a second rotation behind its swap."""
    homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
    assert home.is_busy()


def edited(home: Home) -> None:
    """Change a row of the archived part through a descriptor of the replaced file."""
    interrupted(home)
    data = home.pack.read_bytes()
    at = data.index(b'"row 14')
    with home.pack.open("r+b") as file:
        file.seek(at)
        file.write(b'"EDIT 1')


def no_manifest(home: Home) -> None:
    interrupted(home)
    (home.archive / "manifest.json").write_bytes(b"{")


def no_intent(home: Home) -> None:
    interrupted(home)
    (home.archive / "record.json").write_bytes(b"\0" * 100)


def strange_pack(home: Home) -> None:
    interrupted(home)
    home.pack.write_bytes(b"{}\n" * 9)


def links(home: Home) -> None:
    (home.archive / "manifest.json").unlink()
    (home.archive / "manifest.json").symlink_to("nowhere")
    (home.archive / "record.json").symlink_to("/etc/passwd")


def a_file(home: Home) -> None:
    target = home.archive.with_name("elsewhere")
    home.archive.rename(target)
    home.archive.write_bytes(b"what is this?")


def a_link(home: Home) -> None:
    target = home.config / "elsewhere"
    home.archive.rename(target)
    home.archive.symlink_to(target)


STATES: Final = (edited, no_manifest, no_intent, strange_pack, links, a_file, a_link)


def aside(home: Home) -> Path:
    (folder,) = (home.config / "sessrotate" / "aside").iterdir()
    return folder


@pytest.mark.parametrize("state", STATES)
def test_an_archive_is_put_aside_whole_from_any_state(
    home: Home, state: Callable[[Home], None]
) -> None:
    state(home)
    live, before = homes.snapshot(home.live.parent), _contents(home.archive)
    planned = called("aside", "--dry-run", ID)
    assert planned.code == 0, planned
    assert str(home.archive) in planned.out
    assert os.path.lexists(home.archive)
    assert called("aside", ID).code == 2  # nobody can be asked
    assert os.path.lexists(home.archive)
    done = called("aside", "--yes", ID)
    assert done.code == 0, done
    assert not os.path.lexists(home.archive)
    assert _contents(aside(home)) == before
    assert str(aside(home)) in done.out
    assert homes.snapshot(home.live.parent) == live
    assert called("split", "--in-place", "--unsafe-adopt", ID).code == 0
    assert called("stitch", ID).code == 0


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("is_away", [False, True])
def test_what_is_told_to_do_next_can_be_done(*, is_away: bool) -> None:
    if is_away:
        assert called("archive", ID).code == 0
    told = called("aside", "--yes", ID).out.splitlines()
    commands = [
        line.partition(": sessrotate ")[2].split() for line in told if ": sessrotate" in line
    ]
    assert [words[0] for words in commands] == ["export", "rotate"][: 1 if is_away else 2]
    assert [called(*words).code for words in commands] == [0] * len(commands)


def test_what_was_put_aside_and_is_missed_is_named_with_the_way_back(home: Home) -> None:
    whole = home.stitched()
    done = called("aside", "--yes", ID)
    command = f"mv {aside(home)} {home.archive}"
    assert f"To put it back: {command}\n" in done.out
    for words in (("read", "--history", ID), ("restore", ID), ("rotate", ID), ("doctor",)):
        ended = called(*words)
        assert ended.code != 0
        assert f"was put aside. Put it back with `{command}`." in ended.out + ended.err, words
    assert " put aside" in called().out.splitlines()[0]
    os.rename(*command.split()[1:])  # noqa: PTH104 - as it is told
    assert home.stitched() == whole
    assert called("doctor").code == 0


def _contents(path: Path) -> object:
    if path.is_symlink() or path.is_file():
        return path.readlink() if path.is_symlink() else path.read_bytes()
    return {
        file.name: file.readlink() if file.is_symlink() else file.read_bytes()
        for file in path.iterdir()
    }


@pytest.mark.parametrize("state", [edited, no_manifest, no_intent])
def test_what_was_put_aside_is_read_as_far_as_it_can_be(
    home: Home, state: Callable[[Home], None]
) -> None:
    state(home)
    whole = (DATA + MORE).replace(b'"row 14', b'"EDIT 1' if state is edited else b'"row 14')
    assert called("aside", "--yes", ID).code == 0
    folder = aside(home)
    assert called("stitch", folder).code == 74
    out = home.config / "out"
    stitched = called("stitch", "--allow-gaps", folder, "-o", out)
    assert stitched.code == 0, stitched
    assert out.read_bytes() == whole
    exported = called("export", "--allow-gaps", "--format", "jsonl", folder)
    assert exported.code == 0, exported
    assert "row 2 " in exported.out


def test_a_segment_that_is_lost_is_named_and_the_rest_is_read(home: Home) -> None:
    interrupted(home)
    home.segment(1).unlink()
    (home.archive / "record.json").write_bytes(b"")
    assert called("aside", "--yes", ID).code == 0
    done = called("stitch", "--allow-gaps", aside(home))
    assert done.code == 0
    assert "Segment 1 is not in this archive" in done.err
    assert done.out
    assert done.out.encode() in DATA + MORE or len(done.out) < len(DATA + MORE)


def test_before_the_swap_the_live_file_keeps_no_second_name(home: Home) -> None:
    homes.crashed(home.rotate, "sessrotate.in_place.swap._Swap.run")
    assert home.live.stat().st_nlink == 2
    assert called("aside", "--yes", ID).code == 0
    assert home.live.stat().st_nlink == 1


@pytest.mark.parametrize("state", [no_intent, strange_pack])
def test_the_commands_and_doctor_name_the_way_out(
    home: Home, state: Callable[[Home], None]
) -> None:
    state(home)
    ended = called("split", "--in-place", "--wait", "0", ID)
    assert ended.code == 74
    assert f"sessrotate aside {ID}" in ended.err
    told = json.loads(called("doctor", "--json").out)
    assert any(f"sessrotate aside {ID}" in each["detail"] for each in told["findings"])


def test_without_an_archive_there_is_nothing_to_put_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes.home(tmp_path, monkeypatch, DATA)
    assert called("aside", "--yes", ID).code == 77
