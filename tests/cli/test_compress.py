"""Sessions of Codex: `tidy` and `run` compress them, `restore` makes them plain, all read both.

Rule: the disk is measured by `stat`, and what a client would take is decoded by the library alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from sessrotate import automation, fs
from sessrotate.archive.place import Place
from sessrotate.clients.codex import cold
from sessrotate.job import run_log
from sessrotate.render import size
from sessrotate.reports import next_steps
from sessrotate.retention import rollouts
from sessrotate.retention.rollout_swap import Second
from sessrotate.system import in_use, user_folders, zstd
from support.command_line import called, write
from support.homes import on_disk
from support.rollouts import Codex, home, packed, rollout, unpacked
from support.terminals import asked

if TYPE_CHECKING:
    from collections.abc import Mapping

OVER: Final = rollout(size=1 << 20)
"""A rollout that is worth it."""

IDE: Final = rollout(size=1 << 20, originator="codex_vscode")


@pytest.fixture
def codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Codex:
    made = home(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def compressed(codex: Codex) -> Codex:
    """Give that home with one session, which `tidy` has compressed."""
    codex.begin(OVER, 1)
    assert called("tidy", "--yes").code == 0
    assert codex.taken(1) == OVER
    return codex


@pytest.fixture
def wide(codex: Codex) -> str:
    """Give the session of that home whose window is larger than a client's."""
    frame = zstd.compressor(0, window=28)
    frame.set_pledged_input_size(None)
    path = codex.begin(frame.compress(OVER) + frame.flush(), 1)
    path.rename(f"{path}.zst")
    return codex.where(1).session


def plain(codex: Codex) -> Mapping[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in codex.day.iterdir()}


def figures(out: str) -> dict[str, int]:
    found: dict[str, int] = json.loads(out)
    return found


# ── tidy, and back ───────────────────────────────────────────────────────────────────────────


def test_tidy_compresses_what_nobody_uses_and_says_what_the_disk_says(codex: Codex) -> None:
    codex.begin(OVER, 1)
    codex.begin(OVER, 2)
    codex.begin(OVER, 3, days=2)
    before, was = on_disk(codex.root), plain(codex)
    shown = called("tidy", "--dry-run")
    assert "compress      2 sessions" in shown.out
    assert "Other programs that look for *.jsonl no longer see it." in shown.out
    assert plain(codex) == was
    told = figures(called("tidy", "--dry-run", "--json").out)["disk_bytes_gained"]
    done = figures(called("tidy", "--yes", "--json").out)
    gained = before - on_disk(codex.root)
    assert abs(done["disk_bytes_gained"] - gained) <= gained / 100
    assert abs(told - gained) <= gained / 5
    assert [path.suffix for path in sorted(codex.day.iterdir())] == [".zst", ".zst", ".jsonl"]
    assert all(codex.taken(number) == OVER for number in (1, 2, 3))
    assert ", 2.0 MiB of it compressed" in called().out
    assert called("restore", "--last-run", "--yes").code == 0
    assert plain(codex) == was
    assert "Nothing to tidy" in called("tidy", "--dry-run").out


def test_the_plan_of_a_single_session_fits_a_screen_and_is_asked(codex: Codex) -> None:
    codex.begin(OVER, 1, days=2)
    code, said = asked("y\n", "tidy", codex.where(1).session, env=os.environ)
    assert code == 0
    assert "Codex lists, reads and resumes a compressed session as before." in said
    assert cold.compressed(codex.path(1)).exists()
    back = called("restore", codex.where(1).session)
    assert (back.code, back.err) == (0, "")
    assert "plain again" in back.out
    assert "Nothing compresses it automatically for 30 days." in back.out
    assert codex.path(1).read_bytes() == OVER
    assert "Nothing to restore" in called("restore", codex.where(1).session).out


def test_a_session_that_was_made_plain_by_its_name_is_left_alone_by_the_next_run(
    compressed: Codex,
) -> None:
    session = compressed.where(1).session
    called("restore", session)
    assert "Nothing to tidy" in called("tidy", "--dry-run").out
    assert "compress       1 session" in called("tidy", session, "--dry-run").out


def test_what_a_run_did_is_undone_but_for_what_was_resumed_since(codex: Codex) -> None:
    codex.begin(OVER, 1)
    codex.begin(OVER, 2)
    called("tidy", "--yes")
    # As a resume does: the plain file comes back, and the compressed one goes.
    resumed = OVER + b'{"timestamp":"2026-11-21T13:00:00.000Z","type":"event_msg","payload":{}}\n'
    codex.path(1).write_bytes(resumed)
    cold.compressed(codex.path(1)).unlink()
    ended = called("restore", "--last-run", "--yes")
    assert "brought back since: left alone" in ended.out
    assert codex.path(1).read_bytes() == resumed
    assert codex.path(2).read_bytes() == OVER


def test_restore_refuses_where_the_disk_has_no_room_for_the_plain_file(
    compressed: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessrotate.fs.free_bytes", lambda _path: 1 << 20)
    ended = called("restore", compressed.where(1).session)
    assert ended.code == 74
    assert "4.1 MiB for what is unpacked" in ended.err
    assert "make room for" in ended.err.lower()
    assert compressed.taken(1) == OVER


def test_a_session_that_a_client_has_open_is_passed_over_and_said(codex: Codex) -> None:
    path = codex.begin(OVER, 1)
    with path.open("ab"):
        assert called("tidy", codex.where(1).session, "--yes").code == 75
        ended = called("tidy", "--yes")
    assert ended.code == 0
    assert "1 session is in use" in ended.out
    assert codex.names() == [path.name]


def test_a_session_that_a_client_has_open_is_in_no_plan(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = codex.begin(OVER, 1)
    codex.begin(rollout(size=1 << 18), 2)
    monkeypatch.setattr(in_use, "written", lambda files: {_file(path)} & files)
    ended = called("tidy", "--dry-run")
    assert ended.code == 0
    assert "compress       1 session " in ended.out
    assert "1 session is in use" in ended.out
    assert f"{codex.where(1).session}: A process has it open for writing" in ended.err
    assert re.search(r"without any loss: about .* from 1 session", called().out)


def _file(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def test_small_sessions_are_compressed_too_but_for_those_of_a_few_blocks(codex: Codex) -> None:
    assert next_steps.SMALL == rollouts.WORTH
    for number in range(1, 5):
        codex.begin(rollout(size=30_000), number)
    codex.begin(rollout(size=3_000), 5)
    assert re.search(r"without any loss: about .* from 4 sessions", called().out)
    assert "Compressed 4 sessions." in called("tidy", "--yes").out
    assert "all is tidy" in called().out


def test_what_somebody_needs_is_had_from_as_few_sessions_as_can_be(codex: Codex) -> None:
    for number, many in enumerate((40_000, 1 << 18, 1 << 17)):
        codex.begin(rollout(size=many), number)
    found = called("tidy", "--need", "200K", "--dry-run", "--json").document()["sessions"]
    assert [each["session"] for each in found] == [codex.where(1).session]


def test_what_it_would_gain_is_in_the_deep_list_and_remembered_for_the_status(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex.begin(OVER, 1)
    assert "3.0 MiB can be freed" in called("list", "--deep").out
    assert "Can free   without any loss: about 3.0 MiB from 1 session" in called().out
    monkeypatch.setattr("sessrotate.retention.sizes._Sampler._made", lambda *_: 0)
    assert "Can free   without any loss: about 3.0 MiB from 1 session" in called().out


# ── by itself ────────────────────────────────────────────────────────────────────────────────


def test_a_session_that_is_named_is_compressed_however_small_it_is(codex: Codex) -> None:
    codex.begin(rollout(size=3000), 1, days=0)
    assert called("tidy", codex.where(1).session, "--yes").code == 0
    assert cold.compressed(codex.path(1)).exists()


def test_a_link_that_is_named_is_refused_and_else_passed_over(codex: Codex) -> None:
    path = codex.begin(OVER, 1)
    path.symlink_to(path.rename(codex.root / "moved"))
    assert called("tidy", "--yes").code == 0
    ended = called("tidy", codex.where(1).session, "--yes")
    assert ended.code == 77
    assert "is a symbolic link" in ended.err
    assert path.is_symlink()


@pytest.mark.parametrize(
    ("rules", "is_run", "is_tidied"),
    [
        ("", False, True),
        ("[codex]\ncompress_after = false\n", False, False),
        ('[codex]\ncompress_after = "30d"\n', True, True),
        ('[codex]\ncompress_after = "60d"\n', False, False),
    ],
)
def test_the_settings_say_whether_and_when(
    codex: Codex, rules: str, *, is_run: bool, is_tidied: bool
) -> None:
    codex.begin(OVER, 1)
    write(user_folders.config_file(), rules.encode())
    assert ("compress 1 session" in called("run", "--dry-run").out) is is_run
    assert ("compress " in called("tidy", "--dry-run").out) is is_tidied
    off = "only by `tidy SESSION`, because of `compress_after = false` in "
    assert (f"{off}{user_folders.config_file()}" in called("doctor").out) is ("false" in rules)
    called("run")
    assert cold.compressed(codex.path(1)).exists() is is_run


def test_nothing_is_done_by_itself_where_another_client_may_not_find_it(codex: Codex) -> None:
    codex.begin(IDE, 1)
    codex.begin(OVER, 2)
    ended = called("tidy", "--yes")
    assert ended.code == 0
    assert "were written by codex_vscode 0.169.0, which may not find" in ended.out
    assert all(path.suffix == ".jsonl" for path in codex.day.iterdir())
    shown = called("tidy", codex.where(2).session, "--dry-run").out
    assert "were written by codex_vscode 0.169.0, which may not find" in shown
    assert "are compressed: only by `tidy SESSION`. Codex sessions of the" in called("doctor").out
    assert called("tidy", codex.where(2).session, "--yes").code == 0
    assert cold.compressed(codex.path(2)).exists()


def test_setup_asks_for_it_only_where_codex_has_sessions(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    (codex.root.parent / "claude").mkdir()
    _, said = asked("n\nn\nn\ny\n", "setup", env=os.environ)
    assert "Compress Codex sessions unused for 7 days?" in said
    assert 'compress_after = "7d"' in user_folders.config_file().read_text()
    assert "\nbefore_cleanup" not in user_folders.config_file().read_text()
    monkeypatch.setenv("CODEX_HOME", str(codex.root / "nobody"))
    assert "codex" not in {part.name for part in automation.parts()}


# ── what is left, and who reads ──────────────────────────────────────────────────────────────


def test_what_a_killed_resume_left_is_named_and_goes(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = codex.day / ".rollout-materialize-Ab12"
    left.write_bytes(b"x" * 100_000)
    assert left.name not in called("doctor").out
    monkeypatch.setattr(cold, "DAY", -1.0)
    assert f"{left.name} was left by a Codex resume" in called("doctor").out
    ended = called("tidy", "--yes")
    assert "Recovered 1 session." in ended.out
    assert not left.exists()


def test_a_form_that_goes_while_it_is_planned_for_is_no_fault(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = codex.begin(OVER, 1, days=0)
    other = cold.compressed(path)
    seconds = rollouts.seconds

    def found(where: Place) -> list[Second]:
        there = seconds(where)
        other.unlink()
        return there

    other.write_bytes(packed(OVER[:-500]))
    monkeypatch.setattr(rollouts, "seconds", found)
    ended = called("tidy", "--dry-run")
    assert (ended.code, ended.err) == (0, "")


def test_a_compressed_form_beside_the_plain_one_goes_and_the_plain_one_stays(codex: Codex) -> None:
    """As a resume leaves both that is killed right after it has unpacked one."""
    path = codex.begin(OVER, 1, days=0)
    other = cold.compressed(path)
    other.write_bytes(packed(OVER[:-500]))
    assert f"{other.name} is a second file" in called("doctor").out
    ended = called("tidy", "--yes")
    assert "Recovered 1 session." in ended.out
    assert codex.names() == [path.name]
    assert path.read_bytes() == OVER


def test_of_a_form_that_came_back_longer_the_figure_is_what_the_other_took(codex: Codex) -> None:
    """As a kill leaves it, and then a client writes that had waited for the lease."""
    path = codex.begin(packed(OVER), 1, days=0)
    other = path.rename(cold.compressed(path))
    aside = cold.aside(path)
    aside.write_bytes(OVER + b"{}\n")
    took, before = on_disk(other), on_disk(codex.day)
    told = called("tidy", "-n", "--json").document()["disk_bytes_gained"]
    done = called("tidy", "--yes", "--json").document()
    assert told == done["disk_bytes_gained"] == took == before - on_disk(codex.day)
    assert codex.names() == [path.name]
    assert path.read_bytes() == OVER + b"{}\n"


def test_every_reader_says_the_same_of_both_forms(codex: Codex) -> None:
    path = codex.begin(OVER, 1)
    session = codex.where(1).session
    commands = (
        ("read", session, "--history"),
        ("export", session, "--format", "markdown"),
        ("export", session, "--format", "jsonl"),
        ("stitch", session),
        ("search", "turn", "--json"),
    )
    before = [called(*each).out for each in commands]
    assert called("split", session, "--out", "one").code == 0
    called("tidy", "--yes")
    assert not path.exists()
    after = [called(*each).out.replace(".jsonl.zst", ".jsonl") for each in commands]
    assert after == before
    assert called("split", session, "--out", "other").code == 0
    for each in Path("one").glob("*.jsonl"):
        assert (Path("other") / each.name).read_bytes() == each.read_bytes()


def test_a_larger_window_than_the_clients_is_not_read(wide: str) -> None:
    for command, code in (("read", 74), ("verify", 1)):
        ended = called(command, wide)
        assert ended.code == code
        assert "or needs more than 128.0 MiB of memory to read" in ended.out + ended.err
    assert "with the 128 MiB of memory that Codex takes" in called("doctor").out


@pytest.mark.usefixtures("wide")
def test_one_with_a_larger_window_keeps_nothing_from_the_others(codex: Codex) -> None:
    other = codex.begin(OVER, 2)
    assert called("search", "turn").out
    shown = called("report", codex.where(2).session)
    assert (shown.code, shown.err) == (0, "")
    for words in ((), ("list",)):
        assert "128.0 MiB" not in called(*words).err
    assert called("tidy", "--yes").code == 0
    assert unpacked(cold.compressed(other).read_bytes()) == OVER


def test_one_that_the_client_compressed_is_counted_and_read(codex: Codex) -> None:
    path = codex.begin(packed(OVER), 1)
    path.rename(f"{path}.zst")
    assert "of it compressed" in called("list").out
    taken = size(len(packed(OVER)))
    assert f"compressed to {taken}, 2026" in called("report", codex.where(1).session).out
    heading = called("report", "--all").out.splitlines()[0]
    assert heading.startswith(f"1 session: {size(len(OVER))} in ")
    assert heading.endswith(" on disk")
    assert called("stitch", codex.where(1).session).out.encode() == OVER
    assert unpacked(cold.compressed(path).read_bytes()) == OVER


@pytest.mark.parametrize("originator", ["codex_exec", "codex_vscode"])
def test_one_of_which_a_second_form_goes_is_not_compressed_for_that(
    codex: Codex, originator: str
) -> None:
    data = rollout(size=1 << 20, originator=originator)
    path = codex.begin(data, 1)
    if originator == "codex_exec":
        called("tidy", codex.where(1).session, "--yes")
        called("restore", codex.where(1).session, "--yes")
    cold.compressed(path).write_bytes(packed(data[:-500]))
    ended = called("tidy", "--yes")
    assert "Recovered 1 session." in ended.out
    assert codex.names() == [path.name]


def test_what_is_said_besides_is_true_of_rollouts(codex: Codex) -> None:
    codex.begin(OVER, 1)
    codex.begin(b"{}\n", 2)
    lock = cold.maintenance_lock()
    lock.parent.mkdir()
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ended = called("tidy", codex.where(1).session, "--yes")
    assert ended.code == 75
    assert "try again." in ended.out
    assert "--live" not in ended.out
    called("tidy", "--yes")
    called("restore", "--last-run", "--yes")
    assert "of 1 session stored plain" in called("tidy", "--dry-run").out


def test_work_of_the_client_on_its_sessions_is_waited_for_once(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        codex.begin(OVER, number)
    slept: list[float] = []
    monkeypatch.setattr("sessrotate.retention.rollout_swap._PATIENCE", 0.01)
    monkeypatch.setattr("sessrotate.retention.rollout_swap.time.sleep", slept.append)
    monkeypatch.setattr("sessrotate.retention.rollout_swap.time.monotonic", lambda: len(slept))
    lock = cold.maintenance_lock()
    lock.parent.mkdir()
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ended = called("tidy", "--yes")
    assert ended.err.count("compresses sessions: try again when that has ended.") == 1
    assert len(slept) == 1


def test_what_cannot_be_replaced_is_not_promised(codex: Codex) -> None:
    codex.begin(OVER, 1)
    path = codex.begin(OVER, 2)
    os.link(path, codex.root / "other")
    shown = called("tidy", "--dry-run")
    assert "compress       1 session" in shown.out
    assert f"{path.name} has another name (a hard link)" in shown.err
    ended = called("tidy", "--yes")
    assert "Compressed 1 session." in ended.out
    assert (shown.code, ended.code) == (77, 77)


def test_the_free_space_is_that_of_the_disk_that_codex_is_on(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex.begin(OVER, 1)
    monkeypatch.setattr(
        fs, "free_bytes", lambda path: (50 if path.is_relative_to(codex.root) else 900) << 20
    )
    assert "50.0 MiB is free" in called("tidy", "--dry-run").out
    assert "Free space: 50.0 MiB before, 50.0 MiB now." in called("tidy", "--yes").out


@pytest.mark.parametrize("data", [packed(OVER)[:6] + b"garbage", bytes(4000)], ids=["cut", "zeros"])
def test_one_that_is_damaged_is_named_by_whoever_reads_it_and_by_doctor(
    codex: Codex, data: bytes
) -> None:
    path = codex.begin(data, 1)
    path = path.rename(f"{path}.zst")
    for words in (("read",), ("stitch",), ("restore", "--yes")):
        ended = called(*words, codex.where(1).session)
        assert ended.code == 74
        assert f"{path.name} cannot be read: its compressed data" in ended.err
    ended = called("doctor")
    assert ended.code == 1
    assert f"{path.name} cannot be decompressed" in ended.out


def test_a_compressed_session_is_verified_like_archives_are(codex: Codex) -> None:
    codex.begin(OVER, 1)
    codex.begin(rollout(size=1 << 18), 2)
    assert called("tidy", "--yes").code == 0
    ended = called("verify", "--all")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count(": compressed, and reads back whole\n") == 2
    damaged = cold.compressed(codex.path(2))
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    ended = called("verify", "--all", "--json")
    (problem,) = ended.document()["problems"]
    assert (ended.code, problem["kind"], problem["source"]) == (1, "unread", str(damaged))
    assert problem["detail"].endswith("`zstd -d --long=31` reads it): put it back from a backup")
    assert called("verify", codex.where(2).session).code == 1
    damaged.write_bytes(b"")
    assert "cannot be read: it is empty: put it back" in called("verify", "--all").out
    assert called("restore", codex.where(2).session, "--yes").code == 74
    damaged.unlink()
    cold.compressed(codex.path(1)).write_bytes(packed(OVER))  # as the client does it
    assert "whole, but has no checksum that proves" in called("verify", "--all").out


@pytest.mark.parametrize("given", ["false", '"30d"'])
def test_setup_says_nothing_of_compression_that_its_owner_has_set(codex: Codex, given: str) -> None:
    (codex.root.parent / "claude").mkdir()  # so that there is something else to set
    write(user_folders.config_file(), f"[codex]\ncompress_after = {given}\n".encode())
    assert "ompression of unused" not in called("setup", "--yes").out
    assert "ompression of unused" not in called("setup", "--remove").out
    assert given in user_folders.config_file().read_text()


def test_a_session_in_a_read_only_folder_is_neither_compressed_nor_made_plain(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex.begin(OVER, 1)
    real = os.access
    session = codex.where(1).session

    def refused(command: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(os, "access", lambda path, how: path != codex.day and real(path, how))
            ended = called(command, session, "--yes")
        assert ended.code == 77
        assert "is in a read-only folder: make that writable." in ended.out + ended.err

    refused("tidy")
    assert called("tidy", session, "--yes").code == 0
    refused("restore")
    assert called("restore", session).code == 0
    assert codex.taken(1) == OVER


def test_what_is_made_plain_by_its_name_is_taken_out_of_its_run(compressed: Codex) -> None:
    assert called("restore", compressed.where(1).session).code == 0
    assert "has been undone" in called("restore", "--last-run", "--yes").out


def test_sessions_that_were_made_plain_by_their_names_push_no_run_out_of_the_log(
    compressed: Codex,
) -> None:
    first = compressed.where(1)
    for number in range(30):
        where = replace(first, session=f"01a20069-3200-7812-9750-2eae4d4000{number:02}")
        assert run_log.undone(run_log.plain_again([where])[where], where) is None
    compressed.begin(OVER, 2)
    assert called("tidy", "--yes").code == 0  # the first of a run drops what is too old
    assert len(run_log.plain_since()) == 32
    assert called("restore", "--runs").out.count("tidy") == 2


def test_without_claude_code_nothing_is_asked_or_said_of_it(codex: Codex) -> None:
    codex.begin(OVER, 1)
    assert [part.name for part in automation.parts()] == ["schedule", "codex"]
    said = called("setup", "--yes").out
    assert "put this line in AGENTS.md:" in said
    assert not (codex.root.parent / "claude").exists()
    told = called("doctor")
    assert "Codex sessions are compressed: by `tidy`, and by each run once unused for 7" in told.out
    assert "Claude Code deletes" not in told.out
    assert "compress unused Codex sessions, but nothing starts `sessrotate run`" in told.out
    shown = called().out
    assert "Shrink    tidy\n" in shown
    assert "rotation" not in shown
    assert "No session is rotated: only those of Claude Code are." in called("report", "--all").out
