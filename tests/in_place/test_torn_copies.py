"""A home that was copied while sessrotate worked loses nothing: its parts are of two moments.

What a file holds is compared line by line, over all files that are there, unfinished ones too.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final, NoReturn

import pytest

from sessrotate.errors import DamagedError
from sessrotate.in_place import recover
from support import command_line, homes
from support.command_line import ID, boundary, called, row, write
from support.homes import Home

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATA: Final = command_line.session(boundaries=2)
MORE: Final = boundary(80) + row(81)

COMMANDS: Final = (
    ("run",),
    ("rotate", ID),
    ("restore", ID),
    ("prune", "--all", "--keep-last", "1", "--yes"),
    ("archive", ID, "--yes"),
    ("restore", ID, "--keep-rotated"),
)


@pytest.fixture
def rotated(home: Home) -> Home:
    home.rotate()
    home.append(MORE)
    return home


def lines(home: Home) -> set[bytes]:
    """Return the lines of all files, whatever they are called; headers are ours."""
    found = set[bytes]()
    for path in home.config.rglob("*"):
        if path.is_file() and "locks" not in path.parts:
            data = path.read_bytes()
            is_packed = data.startswith(b"\x28\xb5\x2f\xfd")
            found |= {*(homes.unpacked(data) if is_packed else data).splitlines()}
    return {line for line in found if line.startswith(b'{"type"') and b"segment_header" not in line}


def copied(home: Home, deed: Callable[[], object], at: str) -> Path:
    """Do something; return a copy of the archive, made when it had come so far."""
    copy, other = home.config.parent / "copy", home.config.parent / "other"
    shutil.copytree(home.config, other, copy_function=shutil.copy2)
    homes.crashed(deed, at)
    shutil.copytree(home.archive, copy)
    shutil.rmtree(home.config)
    other.rename(home.config)
    deed()
    return copy


def put(home: Home, copy: Path) -> None:
    shutil.rmtree(home.archive, ignore_errors=True)
    copy.rename(home.archive)


def drafts(home: Home) -> set[str]:
    return {name for name in home.archived() if name.endswith(".jsonl.zst.partial")}


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("first", COMMANDS, ids=" ".join)
def test_segments_that_have_no_name_yet_are_kept_where_the_live_file_lacks_their_lines(
    home: Home, times: int, first: tuple[str, ...]
) -> None:
    if times > 1:
        home.rotate()
        home.append(MORE)
    put(home, copied(home, home.rotate, "sessrotate.in_place.swap.begin"))
    before, unfinished = lines(home), drafts(home)
    assert unfinished
    for command in (first, *COMMANDS):
        called(*command)
        assert lines(home) == before, command
    assert called("doctor").code == 1
    assert called("rotate", ID, "--unsafe-adopt").code == 0
    assert lines(home) == before


def test_what_the_live_file_holds_is_not_kept_twice(rotated: Home) -> None:
    older = rotated.live.read_bytes()
    put(rotated, copied(rotated, rotated.rotate, "sessrotate.in_place.swap.begin"))
    rotated.live.write_bytes(older)
    assert called("run").code == 0
    assert not [name for name in rotated.archived() if name.endswith(".partial")]
    assert rotated.stitched() == DATA + MORE


@pytest.mark.parametrize("command", ["restore", "rotate", "run"])
def test_segments_that_have_no_name_yet_are_kept_aside_where_the_live_file_is_gone(
    rotated: Home, command: str
) -> None:
    put(rotated, copied(rotated, rotated.rotate, "sessrotate.in_place.swap.begin"))
    rotated.live.unlink()
    before = lines(rotated)
    ended = called(command, *[ID] * (command != "run"))
    kept = rotated.config / "sessrotate" / "aside" / f"{ID}.1.jsonl.zst"
    assert command != "restore" or f"{kept} holds lines" in ended.out + ended.err
    assert f"`zstd -dc {kept}` shows them" in called("doctor").out
    called("restore", ID)
    assert rotated.live.read_bytes() == b"".join(command_line.segments_of(DATA)[:-1])
    assert lines(rotated) == before


@pytest.mark.parametrize("command", ["restore", "rotate", "run"])
@pytest.mark.parametrize("at", ["begin", "swap"])
def test_a_whole_session_that_has_no_name_yet_is_kept_aside_where_the_live_file_is_gone(
    rotated: Home, command: str, at: str
) -> None:
    whole = rotated.stitched()
    put(rotated, copied(rotated, rotated.restore, f"sessrotate.in_place.swap.{at}"))
    (rotated.archive / "pack").unlink(missing_ok=True)
    rotated.live.unlink()
    before = lines(rotated)
    ended = called(command, *[ID] * (command != "run"))
    kept = rotated.config / "sessrotate" / "aside" / f"{ID}.1.jsonl"
    assert kept.read_bytes() == whole
    assert command != "restore" or str(kept) in ended.out + ended.err
    called("restore", ID)
    assert lines(rotated) == before
    assert str(kept) in called("doctor").out
    kept.replace(rotated.live)
    assert rotated.stitched() == whole


@pytest.mark.parametrize("at", ["fs.add_name", "in_place.swap.write_intent"])
def test_what_is_archived_is_not_kept_aside(rotated: Home, at: str) -> None:
    rotated.rotate()
    rotated.live.unlink()
    homes.crashed(rotated.restore, f"sessrotate.{at}")
    assert "live.partial" in rotated.archived()
    assert called("restore", ID).code == 0
    assert not (rotated.config / "sessrotate" / "aside").exists()
    assert rotated.live.read_bytes() == DATA


def test_half_of_what_is_archived_is_not_kept_aside(rotated: Home) -> None:
    rotated.live.unlink()
    write(rotated.archive / "live.partial", DATA[:1000])
    assert called("run").code == 0
    assert "live.partial" not in rotated.archived()
    assert not (rotated.config / "sessrotate" / "aside").exists()


@pytest.mark.parametrize("command", ["run", "rotate", "restore"])
@pytest.mark.parametrize("hurt", ["emptied", "halved", "older", "last rows"])
@pytest.mark.parametrize("at", ["swap.append_tail", "swap.begin", "swap.swap", "seal.finish"])
@pytest.mark.parametrize("deed", ["first rotation", "rotation", "restoration"])
def test_what_only_a_draft_or_the_replaced_file_still_has_is_kept(
    home: Home, deed: str, at: str, hurt: str, command: str
) -> None:
    """Until the swap, the pack is a second name of the live file: who empties one empties both."""
    older = home.live.read_bytes()[: len(DATA) * 2 // 3]
    if deed != "first rotation":
        home.rotate()
        home.append(MORE + row(82) + boundary(83) + row(84))
    done = home.restore if deed == "restoration" else home.rotate
    homes.crashed(done, f"sessrotate.in_place.{at}")
    data = home.live.read_bytes()
    if hurt in {"older", "last rows"}:  # saved by rename
        home.live.unlink()
    left = {
        "emptied": b"",
        "halved": data[: len(data) // 2],
        "older": older,
        "last rows": b"".join(data.splitlines(keepends=True)[:-2]),
    }
    write(home.live, left[hurt])
    before = lines(home)
    for each in (command, "run", "restore"):
        called(each, *[ID] * (each != "run"))
        assert before <= lines(home), each


def test_a_draft_that_nobody_can_read_is_kept(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    homes.crashed(home.rotate, "sessrotate.in_place.swap.begin")
    home.live.write_bytes(b"")
    before = lines(home)

    def opened(_: Path, file: str) -> NoReturn:
        raise DamagedError(file)

    monkeypatch.setattr(recover, "opened", opened)
    called("run")
    assert lines(home) == before != set()


def test_a_draft_that_a_backup_has_open_is_removed_like_any_other(home: Home) -> None:
    homes.crashed(home.rotate, "sessrotate.in_place.swap.swap")
    with (home.archive / "live.partial").open("rb"):
        assert called("run").code == 0
    assert not (home.config / "sessrotate" / "aside").exists()


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("name", ["live.partial", f"{ID}.1.jsonl.zst.partial"])
@pytest.mark.parametrize("data", [b"", b"\0" * 900, b'{"type":"segment_header","rootSes'])
def test_a_draft_without_a_whole_line_is_removed(
    rotated: Home, data: bytes, name: str, is_there: bool
) -> None:
    if not is_there:
        rotated.live.unlink()
    write(rotated.archive / name, data)
    assert called("run").code == 0
    assert name not in rotated.archived()
    assert not (rotated.config / "sessrotate" / "aside").exists()


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_what_only_seems_to_be_archived_is_kept_aside(rotated: Home, damage: str) -> None:
    rotated.live.unlink()
    write(rotated.archive / "live.partial", DATA[:1000])
    if damage == "gone":
        rotated.segment(0).unlink()
    else:
        homes.rewrite(rotated.segment(0), DATA[:999] + b"?" + DATA[1000:])
    called("run")
    kept = rotated.config / "sessrotate" / "aside" / f"{ID}.1.jsonl"
    assert kept.read_bytes() == DATA[:1000]


# ── a live file from before a rotation, of which it holds all that was archived ───────────────────

LATER: Final = boundary(90) + row(91)


@pytest.fixture
def behind(rotated: Home) -> Home:
    """Rotate once more, then have the live file from before that, with more rows, back."""
    rotated.append(LATER)
    older = rotated.live.read_bytes()
    rotated.rotate()
    rotated.live.replace(rotated.config / "newer")
    write(rotated.live, older + row(95))
    return rotated


WHOLE: Final = DATA + MORE + LATER + row(95)


def test_what_it_holds_and_does_not_count_is_spare(behind: Home) -> None:
    assert behind.stitched() == WHOLE
    assert not behind.problems()
    assert called("doctor").code == 0
    assert called("restore", ID).code == 0
    assert behind.live.read_bytes() == WHOLE


def test_the_next_rotation_takes_over_what_is_spare(behind: Home) -> None:
    assert called("pin", ID, "2", "--note", "the design").code == 0
    before = [path.stat() for path in behind.segments()]
    assert behind.rotate().seconds is not None
    assert [path.stat() for path in behind.segments()] == before
    assert behind.stitched() == WHOLE
    assert "the design" in (behind.archive / "manifest.json").read_text()
    assert not behind.is_busy()
    assert called("doctor").code == 0


def test_the_next_rotation_archives_what_follows_as_well(behind: Home) -> None:
    more = boundary(96) + row(97)
    behind.append(more)
    before = behind.segments()
    behind.rotate()
    assert behind.segments()[:-1] == before
    assert behind.stitched() == WHOLE + more
    assert not behind.problems()


def test_what_is_spare_stays_for_the_newer_live_file(behind: Home) -> None:
    for command in ("run", "rotate"):
        called(command, *[ID] * (command != "run"))
        newer = (behind.config / "newer").read_bytes()
        shutil.copy2(behind.live, behind.config / "kept")
        behind.live.write_bytes(newer)
        assert behind.stitched() == DATA + MORE + LATER, command
        (behind.config / "kept").replace(behind.live)


@pytest.mark.parametrize("at", ["begin", "swap"])
def test_a_rotation_that_dies_takes_nothing_of_what_was_spare(behind: Home, at: str) -> None:
    behind.append(boundary(96) + row(97))
    before = [path.read_bytes() for path in behind.segments()]
    homes.crashed(behind.rotate, f"sessrotate.in_place.swap.{at}")
    assert behind.stitched() == WHOLE + boundary(96) + row(97)
    assert called("run").code == 0
    assert [path.read_bytes() for path in behind.segments()][: len(before)] == before
    assert behind.stitched() == WHOLE + boundary(96) + row(97)
    assert not behind.is_busy()


@pytest.mark.parametrize("state", ["pruned", "damaged", "gone"])
def test_what_is_spare_and_cannot_be_taken_over_is_archived_again(behind: Home, state: str) -> None:
    spare = behind.segments()[-1]
    if state == "pruned":
        assert called("prune", ID, "--keep-last", "1", "--yes").code == 0
    elif state == "damaged":
        spare.write_bytes(b"x")
    else:
        spare.unlink()
    behind.rotate()
    if state == "pruned":
        assert called("restore", ID, "--keep-rotated").code == 0
    assert behind.stitched() == WHOLE
    assert not behind.problems()


def test_what_goes_on_elsewhere_is_an_older_copy_and_its_rows_are_not_called_archived(
    rotated: Home,
) -> None:
    older = rotated.live.read_bytes()
    rotated.append(LATER)
    rotated.rotate()
    rotated.live.write_bytes(older + row(95))
    before = lines(rotated)
    ended = called("rotate", ID)
    assert ended.code == 77
    assert "holds more" not in ended.err
    assert "may hold lines that were never archived" in ended.err
    called("run")
    assert lines(rotated) == before
