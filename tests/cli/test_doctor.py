"""`doctor` finds what is not as it should be, says what to do, and touches nothing."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.system import user_folders
from support import command_line, homes
from support.command_line import ID, assert_one_sentence, boundary, called, row
from support.homes import Home, crashed, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATA: Final = command_line.session(boundaries=2)
FIRST: Final = command_line.segments_of(DATA)[0]


@pytest.fixture
def home(home: Home) -> Home:
    home.rotate()
    return home


def interrupted(home: Home, at: str) -> None:
    home.append(boundary(80) + row(81))
    crashed(home.rotate, at)


CAUSES: Final[dict[str, Callable[[Home], object]]] = {
    "interrupted before the swap": lambda home: interrupted(home, "sessrotate.fs.take_place"),
    "interrupted after it": lambda home: interrupted(home, "sessrotate.in_place.seal.finish"),
    "a restoration": lambda home: crashed(home.restore, "sessrotate.in_place.seal.finish"),
    "no live file": lambda home: home.live.unlink(),
    "a live file that lacks the archive": lambda home: home.live.write_bytes(FIRST),
    "no manifest": lambda home: (home.archive / "manifest.json").write_bytes(b"{"),
    "no record": lambda home: (home.archive / "record.json").write_bytes(b"{"),
    "the pack of another": lambda home: home.pack.write_bytes(b"mine"),
}
FINDINGS: Final = [
    ("interrupted before the swap", "interrupted", "the next run removes its leftovers", True),
    ("interrupted after it", "interrupted", "the next run finishes it", True),
    ("a restoration", "interrupted", "A restoration was interrupted", True),
    ("no live file", "orphan", f"bring the session back with `sessrotate restore {ID}`", False),
    ("a live file that lacks the archive", "damaged", "--unsafe-adopt", False),
    ("no manifest", "interrupted", "the next run rebuilds it", False),
    ("no record", "damaged", "record.json", False),
    ("the pack of another", "damaged", "move the file away", False),
]


@pytest.mark.parametrize(("cause", "kind", "words", "runs"), FINDINGS)
def test_each_finding_says_what_to_do(
    home: Home, cause: str, kind: str, words: str, runs: bool
) -> None:
    CAUSES[cause](home)
    before = snapshot(home.config)
    ended = called("doctor", "--json")
    assert ended.code == 1
    document = ended.document()
    assert document["ok"] is False
    (finding,) = document["findings"]
    assert (finding["kind"], finding["session"]) == (kind, ID)
    assert finding["path"] == str(home.archive)
    assert words in finding["detail"]
    ended = called("doctor")
    assert ended.code == 1
    assert words in ended.out
    assert "No problems" not in ended.out
    assert snapshot(home.config) == before
    if runs:  # what it says is true
        assert called("split", "--in-place", ID).code == 0
        assert called("doctor").code == 0


def test_all_is_well_with_a_rotated_session(home: Home) -> None:
    before = snapshot(home.config)
    ended = called("doctor")
    assert ended.code == 0
    assert ended.out.endswith("No problems found.\n")
    assert str(home.config / "projects") in ended.out
    document = called("doctor", "--json").document()
    assert document["ok"] is True
    assert document["findings"] == []
    assert document["settings"]["sessions"] == "1"
    assert document["settings"]["archives"] == "1"
    assert document["numbers"]["archives"] == 1
    assert snapshot(home.config) == before


def test_what_nobody_wrote_is_named_only_where_it_has_the_name_of_a_session(home: Home) -> None:
    live = home.live.parent
    garbage = command_line.write(live / "aaaaaaaa-1111-4000-a000-000000000001.jsonl", b"\x00%PDF\n")
    command_line.write(live / "empty.jsonl", b"")
    command_line.write(live / "notes.txt", b"mine")
    command_line.write(live / f"{'b' * 8}.jsonl", row(1) + b"torn")
    command_line.write(home.archive.with_name("folder") / "notes.txt", b"mine")
    command_line.write(home.archive / "notes.txt", b"mine")
    before = snapshot(home.config)
    ended = called("doctor", "--json")
    assert ended.code == 1
    found = [(each["kind"], each["path"]) for each in ended.document()["findings"]]
    assert found == [("stranger", str(garbage))]
    assert "No problems" not in called("doctor").out
    assert snapshot(home.config) == before


@pytest.mark.parametrize(
    "before", [b"garbage line\n" * 6000, b"\0" * 70_000 + b"\n", b"[" * 100_000 + b"\n"]
)
def test_a_row_behind_much_that_is_none_keeps_a_file_from_being_called_no_session(
    home: Home, before: bytes
) -> None:
    command_line.write(home.live.parent / f"{ID.replace('5', '6')}.jsonl", before + row(1))
    assert called("doctor", "--json").document()["findings"] == []


def test_nobody_is_told_to_remove_what_may_have_been_said(home: Home) -> None:
    path = home.live.parent / f"{ID.replace('5', '6')}.jsonl"
    command_line.write(path, row(1).decode().encode("utf-16"))
    (found,) = called("doctor", "--json").document()["findings"]
    assert found["path"] == str(path)
    assert "Look at its contents" in found["detail"]
    assert "emove" not in found["detail"].replace(str(path), "")


def test_a_session_that_begins_with_a_long_line_is_no_stranger(home: Home) -> None:
    long = row(1, pad="p" * 300_000)
    command_line.write(home.live.with_name(f"{'c' * 8}.jsonl"), long + row(2))
    assert called("doctor").code == 0


def test_all_is_well_where_there_is_nothing(home: Home) -> None:
    shutil.rmtree(home.config)
    home.config.mkdir()
    assert called("doctor").code == 0


def test_the_history_of_a_session_that_was_renamed_is_never_to_be_removed(home: Home) -> None:
    home.live.rename(home.live.with_name("0ther000-0000-4000-a000-000000000009.jsonl"))
    findings = called("doctor", "--json").document()["findings"]
    told = {finding["kind"]: finding["detail"] for finding in findings}
    assert "Keep this folder" in told["renamed"]
    assert not any("remove this folder" in detail for detail in told.values())


def copied(home: Home, *projects: str) -> list[Path]:
    """Copy the project's folder, as `cp -r` does; return the copies of the live file."""
    folders = [shutil.copytree(home.live.parent, home.live.parent.with_name(to)) for to in projects]
    return [folder / home.live.name for folder in folders]


def found(kind: str) -> str:
    """Return what doctor says, which has to be one finding of that kind."""
    (finding,) = called("doctor", "--json").document()["findings"]
    assert (finding["kind"], finding["session"]) == (kind, ID)
    detail: str = finding["detail"]
    return detail


def test_a_copied_project_is_named_once_beside_the_archives_own(home: Home) -> None:
    (copy,) = copied(home, "-copy")
    assert f"{copy} has the same id as {home.live}" in found("copy")
    shutil.rmtree(copy.parent)
    assert called("doctor").code == 0


@pytest.mark.parametrize("many", [2, 3])
def test_copies_of_which_none_is_the_sessions_own_are_named_together(home: Home, many: int) -> None:
    *others, mine = copied(home, *(f"-copy{number}" for number in range(many)))
    shutil.rmtree(home.live.parent)
    detail = found("copy")
    assert all(str(path) in detail for path in (*others, mine, home.archive))
    for path in others:
        path.unlink()
    assert called("doctor").code == 0  # what it says is true
    assert called("restore", ID).code == 0
    assert mine.read_bytes() == DATA


def test_copies_beside_a_lost_manifest_are_all_that_is_wrong(home: Home) -> None:
    (copy,) = copied(home, "-copy")
    (home.archive / "manifest.json").unlink()
    detail = found("copy")
    assert str(copy) in detail
    assert str(home.live) in detail
    shutil.rmtree(copy.parent)
    assert "the next run rebuilds it" in found("interrupted")
    assert called("rotate", ID).code == 0
    assert called("stitch", ID).out.encode() == DATA


def test_a_segment_that_is_missing_is_named_beside_the_copies(home: Home) -> None:
    copied(home, "-copy", "-second")
    shutil.rmtree(home.live.parent)
    home.segment(0).unlink()
    kinds = [each["kind"] for each in called("doctor", "--json").document()["findings"]]
    assert kinds == ["damaged", "copy"]


def test_an_archive_that_is_gone_is_named_once_with_every_live_tail_of_it(home: Home) -> None:
    (copy,) = copied(home, "-copy")
    whole = home.live.parent.with_name("-whole")
    whole.mkdir()
    (whole / home.live.name).write_bytes(DATA)  # has its id, and lacks nothing
    away = home.archive.rename(home.config.parent / "away")
    detail = found("damaged")
    assert str(copy) in detail
    assert str(home.live) in detail
    assert str(whole) not in detail
    away.rename(home.archive)
    assert str(copy) in {each["path"] for each in called("doctor", "--json").document()["findings"]}


def test_what_is_left_of_a_session_that_cannot_be_whole_is_exported(home: Home) -> None:
    assert called("prune", "--keep-last", "1", "--yes", ID).code == 0
    assert called("prune", "--empty-trash", "--grace", "0", "--yes", ID).code == 0
    home.live.unlink()
    (told,) = called("doctor", "--json").document()["findings"]
    assert told["kind"] == "orphan"
    assert "deleted for good" in told["detail"]
    assert called("restore", ID).code == 77
    file = home.config / "left.jsonl"
    assert f"sessrotate export --allow-gaps {ID}" in told["detail"]
    assert called("export", "--allow-gaps", ID, "-o", file).code == 0
    assert file.read_bytes()


def test_a_live_file_that_was_moved_and_emptied_is_said_to_be_empty(home: Home) -> None:
    elsewhere = home.live.parent.with_name("-moved")
    home.live.parent.rename(elsewhere)
    (elsewhere / home.live.name).write_bytes(b"")
    (found,) = called("doctor", "--json").document()["findings"]
    assert (found["kind"], "was emptied" in found["detail"]) == ("damaged", True)
    assert f"Remove the empty file, then `sessrotate restore {ID}`" in found["detail"]
    (elsewhere / home.live.name).unlink()
    assert called("restore", ID, "--project", home.live.parent).code == 0


def test_every_archive_is_looked_at(home: Home) -> None:
    other = home.archive.with_name("other")
    shutil.copytree(home.archive, other)
    (home.archive.parent / "notes.txt").write_bytes(b"")
    home.live.unlink()
    findings = called("doctor", "--json").document()["findings"]
    assert {finding["session"]: finding["kind"] for finding in findings} == {
        ID: "orphan",
        "other": "damaged",  # it is another session's
    }


def test_an_archive_of_an_earlier_form_is_named_and_left_alone(home: Home) -> None:
    earlier = home.config / "sessrotate" / homes.PROJECT
    shutil.copytree(home.archive, earlier / ID)
    (home.config / "sessrotate" / ".DS_Store").write_bytes(b"")
    before = homes.snapshot(earlier)
    (found,) = called("doctor", "--json").document()["findings"]
    assert (found["kind"], found["path"]) == ("stranger", str(earlier))
    assert "an earlier format" in found["detail"]
    shutil.rmtree(home.archive)
    for command in ("stitch", "rotate", "restore", "verify"):
        ended = called(command, ID)
        assert ended.code in {1, 74, 77}, ended
        assert str(earlier / ID) in ended.err + ended.out, ended
    assert homes.snapshot(earlier) == before


def test_what_was_put_aside_is_nobodys_orphan(home: Home) -> None:
    home.live.write_bytes(DATA + boundary(80) + row(81))
    home.rotate(adopt=True)
    assert called("doctor").code == 0


def told(name: str) -> str:
    found: str = called("doctor", "--json").document()["settings"][name]
    return found


def test_what_the_client_will_delete_this_week_is_named_and_whether_it_is_saved(home: Home) -> None:
    assert told("Claude Code deletes sessions") == "after 30 days without use (its default)"
    assert told("of those, within a week") == "0"
    homes.unused_for(home.live, 25)
    assert told("of those, within a week") == f"1: {ID}; `sessrotate archive SESSION` saves one"
    assert told("saved before that").startswith("no:")
    command_line.write(user_folders.config_file(), b'[archive]\nbefore_cleanup = "3d"\n')
    assert told("saved before that") == "by each run, once unused for 27 days"
    command_line.write(home.config / "settings.json", b'{"cleanupPeriodDays": 365}')
    assert told("Claude Code deletes sessions") == "after 365 days without use"
    assert told("of those, within a week") == "0"


def test_wrong_settings_are_a_finding(home: Home) -> None:
    command_line.write(user_folders.config_file(), b"[rotate]\nmin_gain = -1\n")
    assert home.live.exists()
    ended = called("doctor", "--json")
    assert ended.code == 1
    (finding,) = ended.document()["findings"]
    assert finding["kind"] == "settings"
    assert "rotate.min_gain must be a size" in finding["detail"]


def test_where_the_folder_of_all_archives_is_gone_that_is_one_finding(home: Home) -> None:
    others = [f"{number}0000000-0000-4000-a000-00000000000a" for number in range(4)]
    for other in others:
        homes.another(home, other, command_line.session(boundaries=2))
    home.rotate()
    shutil.rmtree(home.config / "sessrotate" / "archives")
    (finding,) = called("doctor", "--json").document()["findings"]
    assert finding["path"] == str(home.config / "sessrotate" / "archives")
    assert "5 sessions (" in finding["detail"]
    assert "and 2 more)" in finding["detail"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_session_that_nobody_may_read_is_a_finding(home: Home) -> None:
    home.live.chmod(0)
    (finding,) = called("doctor", "--json").document()["findings"]
    assert "Permission denied" in finding["detail"]


@pytest.mark.parametrize("name", ["manifest.json", "record.json"])
def test_a_disk_that_fails_is_no_damage_of_the_archive(
    home: Home, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """To put the archive aside would help nobody: it may be whole."""
    home.live.unlink()
    real = os.open

    def failing(path: str | Path, *given: int, **how: Any) -> int:
        if str(path).endswith(name):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return real(path, *given, **how)

    monkeypatch.setattr(os, "open", failing)
    ended = called("restore", ID)
    assert_one_sentence(ended, 74)
    assert f"{home.archive / name} cannot be read: Input/output error." in ended.err
    (told,) = called("doctor", "--json").document()["findings"]
    for said in (ended.err, told["detail"]):
        assert "damaged" not in said
        assert "aside" not in said


@pytest.mark.parametrize(
    ("number", "then"),
    [
        (errno.EACCES, "Permission denied"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_a_session_that_cannot_be_opened_is_a_finding_and_so_is_not_to_be_saved(
    home: Home, monkeypatch: pytest.MonkeyPatch, number: int, then: str
) -> None:
    command_line.write(user_folders.config_file(), b'[archive]\nbefore_cleanup = "3d"\n')
    homes.unused_for(home.live, 28)
    real = os.open

    def refused(path: Path, *given: int, **how: int) -> int:
        if str(path).endswith(home.live.name):
            raise OSError(number, os.strerror(number), str(path))
        return real(path, *given, **how)

    monkeypatch.setattr(os, "open", refused)
    details = [each["detail"] for each in called("doctor", "--json").document()["findings"]]
    (told,) = (each for each in details if f"cannot be read ({then})" in each)
    assert ("give yourself permission" in told) == (number == errno.EACCES)
    assert ("the disk may be failing" in told) == (number == errno.EIO)
    ended = called("run")
    assert ended.code == 74
    assert ID in ended.err


@pytest.mark.parametrize(
    "state", ['{"projects": {"/\\u0000x": {}}}', '{"projects": {"/\\ud800": {}}}']
)
def test_a_project_whose_name_no_folder_has_stops_nothing(home: Home, state: str) -> None:
    (home.config / ".claude.json").write_text(state)
    for words in (("doctor",), (), ("setup", "-n"), ("run", "-n")):
        assert called(*words).code in {0, 1}, words
