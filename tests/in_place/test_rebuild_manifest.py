"""A manifest that is lost is made again from segments that prove themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from sessrotate.errors import DamagedError, RefusedError
from sessrotate.in_place import operations
from support import command_line, homes
from support.command_line import ID, called
from support.lines import BOUNDARY_LINE, row, session

if TYPE_CHECKING:
    from pathlib import Path


DATA: Final = session(5)


@pytest.fixture
def lost(home: homes.Home) -> bytes:
    """Have a rotated session lose its manifest; give what that was."""
    home.rotate()
    path = home.archive / "manifest.json"
    manifest = path.read_bytes()
    path.unlink()
    return manifest


def known(manifest: bytes) -> dict[str, object]:
    """Return what a manifest says, but for what only a scan tells, with every segment pinned."""
    document: dict[str, object] = json.loads(manifest)
    segments = document["segments"]
    assert isinstance(segments, list)
    for entry in segments:
        entry["firstTimestamp"] = entry["lastTimestamp"] = None
        entry["pin"] = "its manifest was lost"
    return document


def rebuilt(home: homes.Home) -> dict[str, object]:
    """Return what a manifest says that was made again; every segment is pinned."""
    data = (home.archive / "manifest.json").read_bytes()
    assert all(entry["pin"] == "its manifest was lost" for entry in json.loads(data)["segments"])
    return known(data)


@pytest.mark.usefixtures("lost")
def test_what_reads_says_who_makes_it_again(home: homes.Home) -> None:
    with pytest.raises(DamagedError, match="rebuilds it from the segments"):
        home.stitched()
    assert [problem.kind for problem in home.problems()] == ["live"]


def test_the_next_rotation_makes_it_again(home: homes.Home, lost: bytes) -> None:
    assert home.rotate().recovered.deed == "rebuild"
    assert rebuilt(home) == known(lost)
    assert home.stitched() == DATA
    assert home.problems() == []


@pytest.mark.usefixtures("lost")
def test_a_dry_run_shows_the_plan_of_the_run_that_makes_it_again(home: homes.Home) -> None:
    home.append(command_line.boundary(80) + command_line.row(81))
    before = homes.snapshot(home.config)
    would = operations.plan_session(home.where, homes.silent)
    assert homes.snapshot(home.config) == before
    assert would.refusal is None
    done = home.rotate()
    assert (would.recovered, would.plan) == (replace(done.recovered, gained=0), done.plan)


@pytest.mark.usefixtures("lost")
def test_a_restoration_does_so_too(home: homes.Home) -> None:
    assert home.restore() is not None
    assert home.live.read_bytes() == DATA


@pytest.mark.parametrize("number", [0, 1, 3])
@pytest.mark.usefixtures("lost")
def test_segments_that_do_not_prove_themselves_make_none(home: homes.Home, number: int) -> None:
    segment = home.segment(number)
    whole = homes.content(segment)
    for damage in (whole[:-1], whole.replace(b"message 1", b"message 2"), None):
        if damage is None:
            segment.unlink()
        elif damage == whole:
            continue
        else:
            homes.rewrite(segment, damage)
        before = homes.snapshot(home.config.parent)
        with pytest.raises((DamagedError, RefusedError)):
            home.rotate()
        assert homes.snapshot(home.config.parent) == before


# ── what a damaged one becomes ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("damage", ["half", "empty", "zeros", "other"])
def test_a_damaged_manifest_is_kept_beside_the_one_that_is_made_again(
    home: homes.Home, lost: bytes, damage: str
) -> None:
    wrong = {"half": lost[: len(lost) // 2], "empty": b"", "zeros": bytes(900), "other": b"{}"}
    (home.archive / "manifest.json").write_bytes(wrong[damage])
    with pytest.raises(DamagedError, match=r"is damaged\. `sessrotate rotate"):
        home.stitched()
    assert home.rotate().recovered.deed == "rebuild"
    assert rebuilt(home) == known(lost)
    assert (home.archive / "manifest.json.damaged.1").read_bytes() == wrong[damage]
    assert home.stitched() == DATA
    (home.archive / "manifest.json").write_bytes(b"again")
    home.rotate()
    assert (home.archive / "manifest.json.damaged.2").read_bytes() == b"again"
    assert home.restore() is not None
    assert home.live.read_bytes() == DATA


def test_a_damaged_manifest_that_no_live_file_can_replace_stays(
    home: homes.Home, lost: bytes
) -> None:
    (home.archive / "manifest.json").write_bytes(lost[:-9])
    home.live.unlink()
    before = homes.snapshot(home.config)
    with pytest.raises(DamagedError, match="damaged"):
        home.restore()
    assert homes.snapshot(home.config) == before


def test_a_rotation_that_is_interrupted_over_a_damaged_manifest_is_finished(
    home: homes.Home,
) -> None:
    homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
    (home.archive / "manifest.json").write_bytes(b"half")
    home.rotate()
    assert home.stitched() == DATA


# ── what decides about deletion is lost with it ──────────────────────────────────────────────


PRUNE = ("prune", ID, "--keep-last", "1", "--yes")


def lost_again(home: homes.Home) -> None:
    (home.archive / "manifest.json").unlink()
    ended = called("split", "--in-place", ID)
    assert ended.code == 0
    assert f"`sessrotate unpin {ID}` lets your rules apply again" in ended.out + ended.err


@pytest.fixture
def pinned(home: homes.Home) -> homes.Home:
    """Return a session with a pinned segment whose manifest was lost and made again."""
    home.rotate()
    assert called("pin", ID, "0", "--note", "the design").code == 0
    lost_again(home)
    return home


def test_nothing_is_pruned_by_a_manifest_that_was_made_again(
    pinned: homes.Home, tmp_path: Path
) -> None:
    ended = called(*PRUNE)
    assert ended.code == 0
    assert "pinned: its manifest was lost" in ended.out
    (tmp_path / "settings.toml").write_text("[prune]\nkeep_last = 1\n[trash]\ngrace = '0'\n")
    assert called("run", "--config", str(tmp_path / "settings.toml")).code == 0
    assert pinned.trashed() == set()


def test_it_stays_pinned_when_the_session_is_rotated_again(pinned: homes.Home) -> None:
    pinned.append(BOUNDARY_LINE.replace(b"000000000001", b"%012d" % 77) + b"\n" + row(780) + b"\n")
    assert pinned.rotate().plan.live is not None
    called(*PRUNE)
    assert pinned.trashed() == set()


def test_once_a_person_unpinned_all_it_is_pruned_but_for_what_was_pinned_again(
    pinned: homes.Home,
) -> None:
    ended = called("unpin", ID)
    assert (ended.code, ended.out) == (0, f"Unpinned all segments of {ID}.\n")
    assert called("pin", ID, "1").code == 0
    assert pinned.trashed() == set()
    assert called("doctor").code == 0
    assert called(*PRUNE).code == 0
    there = {homes.sealed(pinned.archive / "trash", number).name for number in (0, 2)}
    assert pinned.trashed() == there


def test_pruned_segments_in_the_trash_come_back_pinned(home: homes.Home) -> None:
    home.rotate()
    assert called(*PRUNE).code == 0
    there = home.trashed()
    assert there
    lost_again(home)
    assert not (home.archive / "trash").exists()
    assert home.stitched() == DATA
    assert called(*PRUNE).code == 0
    assert called("prune", ID, "--empty-trash", "--grace", "0", "--yes").code == 0
    assert home.stitched() == DATA
    assert called("unpin", ID).code == 0
    assert called(*PRUNE).code == 0
    assert home.trashed() == there


def test_segments_in_the_trash_that_do_not_prove_themselves_make_none(home: homes.Home) -> None:
    home.rotate()
    called(*PRUNE)
    path = home.archive / "manifest.json"
    manifest, whole = path.read_bytes(), homes.content(homes.sealed(home.archive / "trash", 1))
    homes.rewrite(homes.sealed(home.archive / "trash", 1), b"{}\n")
    path.unlink()
    before = home.live.read_bytes()
    for _ in range(2):
        with pytest.raises((DamagedError, RefusedError)):
            home.rotate()
    assert home.live.read_bytes() == before
    assert not path.exists()
    homes.rewrite(home.segment(1), whole)
    path.write_bytes(manifest)  # from a backup: what it says was pruned goes back to the trash
    assert called("restore", "--keep-rotated", ID).code == 0
    assert home.stitched() == DATA


@pytest.mark.parametrize("command", [("pin", ID, "1"), PRUNE])
@pytest.mark.usefixtures("lost")
def test_what_changes_an_archive_says_that_its_manifest_is_lost(
    home: homes.Home, command: tuple[str, ...]
) -> None:
    before = homes.snapshot(home.config)
    ended = called(*command)
    assert ended.code == 74
    assert "rebuilds it from the segments" in ended.err
    assert homes.snapshot(home.config) == before


def test_where_nothing_says_its_project_a_run_names_the_way_and_goes_on(home: homes.Home) -> None:
    home.rotate()
    whole = home.stitched()
    assert called("archive", ID).code == 0
    for name in ("manifest.json", "record.json"):
        (home.archive / name).unlink()
    before = homes.snapshot(home.archive)
    ended = called("run")
    assert (ended.code, f"sessrotate restore {ID} --project FOLDER" in ended.err) == (74, True)
    assert homes.snapshot(home.archive) == before
    assert called("restore", ID, "--project", home.live.parent).code == 0
    assert home.live.read_bytes() == whole


def test_a_newer_one_of_a_restored_session_is_left_alone_too(home: homes.Home) -> None:
    home.rotate()
    assert called("restore", ID).code == 0
    path = home.archive / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"format": 1', b'"format": 2'))
    for segment in [*home.archive.glob("*.zst")]:
        segment.rename(segment.with_suffix(".xz"))  # as it may call them
    before = homes.snapshot(home.config)
    for command in (("rotate", ID), ("prune", "--all", "--empty-trash", "--grace", "0", "--yes")):
        ended = called(*command)
        assert (ended.code, "by a newer sessrotate" in ended.err) == (77, True), ended
    assert (called("list").code, called("doctor").code) == (0, 1)
    assert homes.snapshot(home.config) == before


def test_one_that_a_newer_sessrotate_wrote_is_left_alone(home: homes.Home) -> None:
    """Two versions may share a home, and the older one does not know what is in it."""
    home.rotate()
    path = home.archive / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"format": 1', b'"format": 2'))
    home.append(row(900) + BOUNDARY_LINE + row(901))
    before = homes.snapshot(home.config)
    for command in ("rotate", "restore", "stitch", "archive", "pin", "prune", "verify"):
        more = {"pin": ["1"], "prune": ["--keep-last", "1", "--yes"]}.get(command, [])
        ended = called(command, ID, *more)
        assert (ended.code, "by a newer sessrotate" in ended.out + ended.err) == (77, True), ended
    assert called("run").code == 77
    assert "by a newer sessrotate" in called("doctor").out
    assert homes.snapshot(home.config) == before
