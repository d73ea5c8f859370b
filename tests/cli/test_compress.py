"""`compress` as a command: what it says, what it leaves, how it ends."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import place
from sessrotate.in_place import operations
from sessrotate.system import locks
from support import command_line, homes
from support.command_line import ID, assert_one_sentence, called, on_terminal, piped, raw_controls
from support.homes import Home, snapshot

if TYPE_CHECKING:
    from pathlib import Path

DATA: Final = command_line.session(boundaries=3, padding=2000)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = homes.home(tmp_path, monkeypatch, DATA)
    made.rotate(codec="plain")
    return made


def another(home: Home, name: str, data: bytes) -> None:
    """Make a second session with plain segments."""
    data = data.replace(ID.encode(), name.encode())
    path = command_line.write(home.live.with_name(f"{name}.jsonl"), data)
    operations.rotate_session(place.of_live(path), 1, homes.silent, codec="plain")


def test_it_says_how_much_became_how_much(home: Home) -> None:
    ended = piped("compress", ID, env=home.env)
    assert (ended.code, ended.err) == (0, "")
    assert re.fullmatch(
        rf"{ID}: 3 segments, [\d.]+ KiB became [\d.]+ (KiB|B), 12.0 KiB freed on disk\.\n",
        ended.out,
    )
    assert not list(home.archive.glob("*.jsonl"))
    again = piped("compress", ID, env=home.env)
    assert (again.code, again.out) == (0, f"{ID}: nothing to compress.\n")
    assert called("verify", ID).code == 0
    assert called("stitch", ID, "-o", home.config / "out").code == 0
    assert (home.config / "out").read_bytes() == DATA
    assert called("doctor").code == 0


def test_json_has_the_figures_of_the_files(home: Home) -> None:
    another(home, "second-session", DATA)
    before = sum(file.stat().st_size for file in home.archive.glob("*.jsonl"))
    planned = called("compress", ID, "--dry-run", "--json").document()
    assert planned["bytes_before"] == before
    document = called("compress", "--all", "--json", "--level", "19").document()
    after = sum(file.stat().st_size for file in home.archive.glob("*.zst"))
    entries = {entry["session"]: entry for entry in document["sessions"]}
    assert entries[ID] == {
        "session": ID,
        "segments": 3,
        "bytes_before": before,
        "bytes_after": after,
        "disk_bytes_gained": 3 * 4096,
    }
    other = entries["second-session"]
    assert document["bytes_before"] == before + other["bytes_before"]
    assert document["bytes_after"] == after + other["bytes_after"]
    assert after < before / 10


def test_of_all_archives_those_that_need_nothing_are_only_counted(home: Home) -> None:
    another(home, "second-session", DATA)
    assert called("compress", "second-session").code == 0
    ended = called("compress", "--all")
    one, total = ended.out.splitlines()
    assert one.startswith(f"{ID}: 3 segments, ")
    assert re.fullmatch(r"1 of 2 archives: 3 segments, .*B became .*B, .* freed on disk\.", total)
    assert called("compress", "--all").out == "Nothing to compress in 2 archives.\n"


def test_a_dry_run_says_what_would_be_compressed_and_changes_nothing(home: Home) -> None:
    another(home, "second-session", DATA)
    before = snapshot(home.config)
    size = sum(file.stat().st_size for file in home.archive.glob("*.jsonl"))
    ended = called("compress", ID, "--dry-run")
    assert re.fullmatch(rf"{ID}: would compress 3 segments \(.*B\), which frees .*\.\n", ended.out)
    document = called("compress", "--all", "-n", "--json").document()
    assert [entry["segments"] for entry in document["sessions"]] == [3, 3]
    assert document["bytes_after"] is None
    assert document["dry_run"] is True
    headers = size - document["sessions"][0]["bytes_before"]
    assert 0 <= headers < 3 * 500  # a header is no part of the history
    assert "2 of 2 archives: would compress 6 segments" in called("compress", "--all", "-n").out
    assert snapshot(home.config) == before
    assert called("compress", "--all").code == 0
    assert called("compress", ID, "-n").out == f"{ID}: nothing to compress.\n"


def test_on_a_terminal_it_says_the_same(home: Home) -> None:
    ended = on_terminal("compress", ID, env=home.env)
    assert ended.code == 0
    assert "3 segments" in ended.out


@pytest.mark.parametrize(
    "options", [(), (ID, "--all"), (ID, "--level", "0"), (ID, "--level", "20"), (ID, "--levl", "3")]
)
def test_what_makes_no_sense_changes_nothing(home: Home, options: tuple[str, ...]) -> None:
    before = snapshot(home.config)
    assert called("compress", *options).code == 2
    assert snapshot(home.config) == before


def test_damage_is_told_and_stops_no_other_segment_or_session(home: Home) -> None:
    another(home, "second-session", DATA)
    damaged = home.archive / f"{ID}.1.jsonl"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    ended = called("compress", "--all", "--json")
    assert ended.code == 74
    assert f"Segment 1 ({ID}.1.jsonl) is damaged" in ended.err
    assert [entry["segments"] for entry in ended.document()["sessions"]] == [2, 3]
    assert damaged.exists()


def test_what_is_busy_is_75_and_the_others_are_done(home: Home) -> None:
    another(home, "second-session", DATA)
    with locks.alone(home.where, 1):
        ended = called("compress", "--all", "--json", "--wait", "0")
    assert ended.code == 75
    assert [entry["session"] for entry in ended.document()["sessions"]] == ["second-session"]


@pytest.mark.usefixtures("home")
def test_a_session_without_an_archive_is_refused() -> None:
    assert called("restore", ID).code == 0
    assert_one_sentence(called("compress", ID), 77)


def test_a_hostile_name_is_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = homes.home(tmp_path, monkeypatch)
    live = home.config / "projects" / homes.PROJECT / "evil\x1b[2Jname\n.jsonl"
    command_line.write(live, DATA)
    assert called("split", "--in-place", live).code == 0
    ended = called("compress", "--all")
    assert ended.code == 0
    assert not raw_controls(ended.out + ended.err)
    assert json.loads(called("compress", "--all", "--json").out)["bytes_before"] == 0
