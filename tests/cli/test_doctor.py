"""`doctor` finds what is not as it should be, says what to do, and touches nothing."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

import pytest

from support import command_line, homes
from support.command_line import ID, boundary, called, row
from support.homes import Home, crashed, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATA: Final = command_line.session(boundaries=2)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = homes.home(tmp_path, monkeypatch, DATA)
    made.rotate()
    return made


def interrupted_before(home: Home) -> None:
    home.append(boundary(80) + row(81))
    crashed(home.rotate, "sessrotate.fs.take_place")


def interrupted_after(home: Home) -> None:
    home.append(boundary(80) + row(81))
    crashed(home.rotate, "sessrotate.in_place.seal.finish")


def restoration_interrupted(home: Home) -> None:
    crashed(home.restore, "sessrotate.in_place.seal.finish")


def orphan(home: Home) -> None:
    home.live.unlink()


def damaged(home: Home) -> None:
    home.live.write_bytes(DATA)


def manifest_damaged(home: Home) -> None:
    (home.archive / "manifest.json").write_bytes(b"{")


def intent_damaged(home: Home) -> None:
    (home.archive / "intent.json").write_bytes(b"{")


def pack_of_another(home: Home) -> None:
    home.pack.write_bytes(b"mine")


FINDINGS: Final = [
    (interrupted_before, "interrupted", "the next run removes its leftovers", True),
    (interrupted_after, "interrupted", "the next run finishes it", True),
    (restoration_interrupted, "interrupted", "A restoration was interrupted", True),
    (orphan, "orphan", f"bring the session back with `sessrotate restore {ID}`", False),
    (damaged, "damaged", "--unsafe-adopt", False),
    (manifest_damaged, "interrupted", "the next run makes it again", False),
    (intent_damaged, "damaged", "intent.json", False),
    (pack_of_another, "damaged", "move it away", False),
]


@pytest.mark.parametrize(("cause", "kind", "words", "runs"), FINDINGS)
def test_each_finding_says_what_to_do(
    home: Home, cause: Callable[[Home], None], kind: str, words: str, runs: bool
) -> None:
    cause(home)
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
    assert snapshot(home.config) == before


def test_all_is_well_where_there_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes.home(tmp_path, monkeypatch)
    assert called("doctor").code == 0


def test_every_archive_is_looked_at(home: Home) -> None:
    other = home.archive.parent.with_name("-other") / "other"
    other.parent.mkdir()
    shutil.copytree(home.archive, other)
    (home.archive.parent / "notes.txt").write_bytes(b"")
    orphan(home)
    findings = called("doctor", "--json").document()["findings"]
    assert {finding["session"]: finding["kind"] for finding in findings} == {
        ID: "orphan",
        "other": "damaged",  # it is another session's
    }


def test_what_was_put_aside_is_nobodys_orphan(home: Home) -> None:
    home.live.write_bytes(DATA + boundary(80) + row(81))
    home.rotate(adopt=True)
    assert called("doctor").code == 0
