"""A session that is put away comes back as it was, whatever happens in between."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import threading
import time
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest

import generate_session
from sessrotate import doctor, find, fs, names
from sessrotate.archive import away_file, place, record, state
from sessrotate.archive.record import PutAway, Record
from sessrotate.errors import DamagedError, InUseError, RefusedError, SessrotateError, StorageError
from sessrotate.in_place import operations
from sessrotate.model import Span
from sessrotate.reading import session
from sessrotate.retention import away_files, bring_back, prune, put_away, trash
from sessrotate.retention.policy import Policy
from sessrotate.system import in_use, locks
from sessrotate.units import DAY
from support import command_line, homes
from support.command_line import ID, append, called, row
from support.crash.changes import Faults, Killed
from support.homes import Home
from support.tiers import in_gate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATA: Final = command_line.session(boundaries=3)
OTHER: Final = "0therid0-0000-4000-a000-000000000002"
LONG: Final = b"".join(row(number) for number in range(100, 1200))
"""Rows of an agent, more than what is left plain."""

SMALL: Final = "b0000000-0000-4000-a000-00000000000b.jsonl"
"""The name of another session's file."""

THEN: Final = 1_700_000_000


def filled(home: Home) -> Home:
    """Give a session all that clients keep beside one, and what a person may put there."""
    side = home.live.parent / ID
    (side / "subagents").mkdir(parents=True)
    (side / "tool-results").mkdir()
    (side / "subagents" / "agent-a1.jsonl").write_bytes(LONG)
    (side / "subagents" / "agent-a1.meta.json").write_text("{}")
    (side / "subagents" / "agent-a2.jsonl").write_bytes(row(5))
    (side / "subagents" / "both.jsonl").write_bytes(LONG)
    (side / "subagents" / "both.jsonl.zst").write_bytes(b"a person's own")
    (side / "tool-results" / "r.txt").write_bytes(b"x" * 100_000)
    (side / "empty").mkdir()
    (side / "link.jsonl").symlink_to("/nonexistent")
    (side / "pointer").symlink_to("subagents")
    mine = home.live.parent / "agent-0a.jsonl"
    mine.write_bytes(b'{"sessionId":"%s","type":"user","uuid":"1"}\n' % ID.encode() + LONG)
    other = home.live.parent / "agent-0b.jsonl"
    other.write_bytes(b'{"sessionId":"%s","type":"user"}\n' % OTHER.encode())
    (home.live.parent / f"{OTHER}.jsonl").write_bytes(row(1))
    (side / "subagents" / "agent-a1.jsonl").chmod(0o640)
    home.live.chmod(0o644)
    for path in sorted(home.live.parent.rglob("*"), reverse=True):
        if not path.is_symlink():
            os.utime(path, ns=(THEN * 10**9 + 1, THEN * 10**9 + len(path.name)))
    with suppress(OSError):  # not every file system has them
        os.setxattr(home.live, "user.note", b"live")
        os.setxattr(side / "subagents" / "agent-a1.jsonl", "user.note", b"agent")
    return home


@pytest.fixture(autouse=True)
def _nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for no writers among the processes of this machine: that takes longer than all else."""
    monkeypatch.setattr(in_use, "writers", lambda *_: iter(()))


@pytest.fixture(params=["never rotated", "rotated"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = homes.home(tmp_path, monkeypatch, DATA)
    if request.param == "rotated":
        made.rotate()
    return filled(made)


def put_it_away(home: Home) -> int:
    return put_away.put_away(home.where, 1)


def bring_it_back(home: Home) -> int:
    return bring_back.bring_back(home.where, 1)


def whole(home: Home, *, folders_too: bool = True) -> dict[str, tuple[object, ...]]:
    """Return all that there is of a home's sessions but inodes, and times of what only holds them.

    The folder of the project is changed by whatever leaves it or comes to it. With `folders_too`,
    those of a session are as old as before, too: unless a crash came in between, they are.
    """
    found: dict[str, tuple[object, ...]] = {}
    for top in (home.config / "projects", home.config / "sessrotate"):
        for path in sorted(top.rglob("*")):
            status = path.lstat()
            kept: tuple[object, ...] = (status.st_mode, status.st_uid, status.st_gid)
            if "locks" in path.parts or path.name in {"README", "README.partial"}:
                continue
            if path.is_symlink():
                kept = (*kept, path.readlink())
            elif path.is_file():
                names = os.listxattr(path)
                extra = {name: os.getxattr(path, name) for name in names}
                kept = (*kept, status.st_nlink, status.st_mtime_ns, extra, path.read_bytes())
            elif ID in path.parts and "projects" in path.parts:
                if folders_too:
                    kept = (*kept, status.st_mtime_ns)
            elif not any(path.rglob("*.json*")):
                continue  # an archive's folder without an archive
            found[str(path.relative_to(home.config))] = kept
    return found


def away(home: Home) -> set[str]:
    folder = home.archive / "archived"
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


def left(home: Home) -> set[str]:
    """Return what the client finds in its project."""
    return {path.name for path in home.live.parent.iterdir()}


# ── there and back ───────────────────────────────────────────────────────────────────────────


def test_a_session_put_away_is_out_of_its_clients_folder_and_comes_back_as_it_was(
    home: Home,
) -> None:
    before = whole(home)
    size = sum(
        len(kept[-1])
        for path, kept in before.items()
        if path.startswith("projects") and OTHER not in path and "0b" not in path
        if isinstance(kept[-1], bytes)
    )
    size += len("/nonexistent")  # a link is as long as what it says
    assert put_away.put_away(home.where, 1) == size
    assert left(home) == {f"{OTHER}.jsonl", "agent-0b.jsonl"}
    assert away(home) == {
        f"{ID}.jsonl.sessrotate.zst",
        "agent-0a.jsonl.sessrotate.zst",
        f"{ID}/subagents/agent-a1.jsonl.sessrotate.zst",
        f"{ID}/subagents/agent-a1.meta.json",
        f"{ID}/subagents/agent-a2.jsonl",
        f"{ID}/subagents/both.jsonl.sessrotate.zst",
        f"{ID}/subagents/both.jsonl.zst",
        f"{ID}/tool-results/r.txt.sessrotate.zst",
        f"{ID}/link.jsonl",
        f"{ID}/pointer",
    }
    assert bring_back.bring_back(home.where, 1) == size
    assert whole(home) == before
    assert not (home.archive / "archived").exists()


def test_a_compressed_file_has_what_the_plain_one_had(home: Home) -> None:
    live, agent = home.live, home.live.parent / ID / "subagents" / "agent-a1.jsonl"
    then = {path.name: (path.stat().st_mode, path.stat().st_mtime_ns) for path in (live, agent)}
    put_it_away(home)
    for path in (live, agent):
        (compressed,) = (home.archive / "archived").rglob(f"{path.name}.sessrotate.zst")
        status = compressed.stat()
        assert (status.st_mode, status.st_mtime_ns) == then[path.name]
        assert os.getxattr(compressed, "user.note") in {b"live", b"agent"}
    for name in ("archived", "record.json"):
        assert not (home.archive / name).stat().st_mode & 0o077


def test_a_generated_session_takes_a_quarter_of_its_size_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes.home(tmp_path, monkeypatch, b"")
    with home.live.open("wb") as file:
        generate_session.generate(file, generate_session.Options(size=8 << 20, boundaries=3))
    size = put_it_away(home)
    assert size >= 8 << 20
    assert 0 < put_away.stored(home.where) <= size / 4


def test_touched_files_count_as_changed_now_and_nothing_else_differs(home: Home) -> None:
    before = whole(home)
    put_it_away(home)
    bring_back.bring_back(home.where, 1, touch=1_900_000_000)
    after = whole(home)
    assert before.keys() == after.keys()
    for path, kept in after.items():
        differs = [one for one, other in zip(before[path], kept, strict=True) if one != other]
        touched = path.startswith("projects") and OTHER not in path and "0b" not in path
        is_file = touched and isinstance(kept[-1], bytes)
        assert len(differs) == is_file, path
        assert not is_file or kept[4] == 1_900_000_000 * 10**9


# ── reading what is away ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("compressed", [True, False], ids=["compressed", "plain"])
def test_a_session_that_is_away_is_read_and_verified_by_its_id(
    home: Home, monkeypatch: pytest.MonkeyPatch, compressed: bool
) -> None:
    if not compressed:
        monkeypatch.setattr(away_files, "compress", lambda *_: None)
    put_it_away(home)
    before = homes.snapshot(home.config)
    assert home.stitched() == DATA
    assert home.problems() == []
    assert find.path_of(ID[:6]) == home.live
    with session.open_session(ID) as found:
        lines = [b"".join(found.bytes_of(record)) + b"\n" for record in found.history()]
        assert b"".join(lines) == DATA
        assert len(found.segments) == 4
        assert [*found.conversation()][-1].line in DATA
    told = [finding.kind for finding in doctor.findings()]
    assert told == ([] if compressed else ["interrupted"])
    assert homes.snapshot(home.config) == before


def test_a_prefix_that_fits_a_session_and_one_that_is_away_is_no_ones(
    home: Home,
) -> None:
    twin = home.live.with_name(f"{ID[:8]}-twin.jsonl")
    command_line.write(twin, DATA)
    put_it_away(home)
    with pytest.raises(SessrotateError, match="matches 2 sessions"):
        find.path_of(ID[:8])


def test_looking_at_a_session_that_is_away_does_not_decompress_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_it_away(home)
    monkeypatch.setattr(away_file.Compressed, "_whole", lambda _self: pytest.fail("decompressed"))
    with state.opened(home.where) as found:
        assert found.live is not None
        assert found.live.size() >= len(row(1))
    assert [*doctor.findings()] == []


def test_a_session_that_comes_back_while_it_is_opened_is_read_from_where_it_is(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_it_away(home)
    real, calls = away_file.opened, iter([1])

    def opened(where: place.Place) -> object:
        found = real(where)
        if next(calls, None):
            bring_back.bring_back(where, 1)
        return found

    monkeypatch.setattr(away_file, "opened", opened)
    assert home.stitched() == DATA


def test_a_session_that_is_away_is_neither_rotated_nor_restored(home: Home) -> None:
    put_it_away(home)
    before = homes.snapshot(home.config)
    plan = partial(operations.plan_session, home.where, homes.silent)
    for deed in (home.rotate, home.restore, plan):
        with pytest.raises(RefusedError, match="sessrotate restore"):
            deed()
    assert homes.snapshot(home.config) == before


def test_sealed_segments_of_a_session_that_is_away_are_pruned_as_always(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes.home(tmp_path, monkeypatch, DATA)
    home.rotate()
    put_it_away(home)
    plan = prune.prepare([home.where], Policy(keep_last=1), THEN * 2, lambda _done: None)
    assert [done.error for done in prune.execute(plan, 1)] == [None]
    bring_it_back(home)
    trash.undelete(home.where, 1, [0, 1])
    assert home.stitched() == DATA


# ── refused ──────────────────────────────────────────────────────────────────────────────────


def unchanged(home: Home, error: type[SessrotateError], words: str, away: bool = False) -> None:
    """Check that a session is neither put away nor back, with these words."""
    before = homes.snapshot(home.config)
    with pytest.raises(error, match=words):
        bring_back.bring_back(home.where, 0.05) if away else put_away.put_away(home.where, 0.05)
    assert homes.snapshot(home.config) == before
    if not away:
        with pytest.raises(error, match=words):
            put_away.plan(home.where)


def run_by_a_client(home: Home) -> None:
    path = home.config / "sessions" / f"{os.getpid()}.json"
    command_line.write(path, json.dumps({"sessionId": ID}).encode())


def test_what_a_client_runs_is_not_put_away(home: Home) -> None:
    run_by_a_client(home)
    unchanged(home, InUseError, r"runs the session\): end the client, then try again\.$")


def test_what_a_process_has_open_for_writing_is_not_put_away(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_use, "writers", lambda *_: iter([in_use.User(1, "has it open")]))
    with home.live.open("ab"):
        unchanged(home, InUseError, "process 1 has it open")


def test_a_writer_that_only_the_lease_finds_keeps_it_where_it_is(home: Home) -> None:
    before = homes.snapshot(home.config)
    with home.live.open("ab"), pytest.raises(InUseError, match="in use"):
        put_away.put_away(home.where, 0.05)
    assert homes.snapshot(home.config) == before


def test_a_client_that_opens_it_as_it_leaves_brings_it_back(home: Home) -> None:
    """It waits for the lease inside `open`, and gets the file wherever that is by then."""
    before = whole(home)
    more, threads = row(77), []

    def write() -> None:
        with home.live.open("ab") as file:
            begun.set()
            file.write(more)

    begun = threading.Event()
    real = in_use.lease_from_writers

    def leased(source: Any, wait: float) -> locks.Answer:
        answer = real(source, wait)
        threads.append(threading.Thread(target=write))
        threads[0].start()
        while not locks.is_lease_wanted(source.fd):
            pass
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_use, "lease_from_writers", leased)
        with pytest.raises(InUseError, match="A client is writing"):
            put_it_away(home)
    threads[0].join(10)
    assert begun.is_set()
    after = whole(home)
    name = f"projects/{homes.PROJECT}/{ID}.jsonl"
    assert after[name][-1] == before[name][-1] + more  # type: ignore[operator]  # both bytes
    assert {path for path in after if after[path] != before.get(path)} == {name}


def test_without_leases_whoever_still_writes_brings_it_back(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes.without_leases(monkeypatch)
    before, more = whole(home), row(77)

    def write(_seconds: float) -> None:
        append((home.archive / "archived" / f"{ID}.jsonl"), more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", write)
        with pytest.raises(InUseError, match="A client is writing"):
            put_it_away(home)
    assert home.live.read_bytes()[-len(more) :] == more
    assert whole(home).keys() == before.keys()
    monkeypatch.setattr(locks, "SETTLE", 0)
    put_it_away(home)
    assert home.stitched() == DATA + more


@pytest.mark.parametrize(
    ("name", "flag"), [("subagents/agent-a2.jsonl", "+i"), ("tool-results", "+a"), ("", "+i")]
)
def test_nothing_is_put_away_that_could_not_be_compressed(home: Home, name: str, flag: str) -> None:
    before, path = whole(home), home.live.parent / ID / name
    homes.flagged(path, flag)
    try:
        with pytest.raises(RefusedError, match=rf"^{re.escape(str(path))} is .*`chattr -i -a`\.$"):
            put_it_away(home)
        with pytest.raises(RefusedError, match="is protected from changes"):
            put_away.plan(home.where)
    finally:
        away = home.where.archive / names.ARCHIVED / ID / name
        homes.flagged(path if path.exists() else away, flag.replace("+", "-"))
    assert whole(home) == before


def test_links_are_not_put_away(home: Home) -> None:
    side = home.live.parent / ID
    side.rename(home.config / "elsewhere")
    side.symlink_to(home.config / "elsewhere")
    unchanged(home, RefusedError, "symbolic link")


def test_a_session_that_is_gone_is_not_put_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes.home(tmp_path, monkeypatch, DATA)
    home.rotate()
    home.live.unlink()
    unchanged(home, RefusedError, "is gone")


def test_what_nobody_put_there_is_not_mixed_up_with_what_is_put_away(home: Home) -> None:
    command_line.write(home.archive / "archived" / "mine", b"mine")
    unchanged(home, RefusedError, "mine, which does not belong to a session that was put away")


@pytest.mark.parametrize("name", [f"{ID}.jsonl", ID, "agent-0a.jsonl"])
def test_nothing_that_appeared_meanwhile_is_written_over(home: Home, name: str) -> None:
    put_it_away(home)
    command_line.write(home.live.parent / name, row(3))
    unchanged(home, RefusedError, "appeared|there already", away=True)
    (home.live.parent / name).rename(home.config / "moved")
    bring_it_back(home)
    assert home.stitched() == DATA


def test_a_live_file_begun_anew_is_noticed_by_everybody(home: Home) -> None:
    put_it_away(home)
    command_line.write(home.live, row(3))
    (finding,) = doctor.findings()
    assert finding.kind == "doubled"
    assert [problem.kind for problem in home.problems()] == ["live"]
    with pytest.raises(DamagedError, match="appeared while"):
        home.stitched()
    with pytest.raises(RefusedError, match="appeared while"):
        put_it_away(home)
    with pytest.raises(RefusedError, match=r"rename it, and `restore` .* append only the lines"):
        home.rotate(adopt=True)
    assert "appeared while" in command_line.called("tidy", "-n", ID).err
    assert put_away.wanted(0, None, THEN * 2, THEN) == [
        place.of_live(home.live.parent / f"{OTHER}.jsonl")
    ]


def test_what_comes_between_the_look_and_the_move_is_not_written_over(home: Home) -> None:
    put_it_away(home)
    real = away_files.write_standing

    def told(*arguments: Any) -> Any:
        command_line.write(home.live, row(3))
        return real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(away_files, "write_standing", told)
        with pytest.raises(InUseError, match="has just appeared"):
            bring_it_back(home)
    assert home.live.read_bytes() == row(3)
    home.live.unlink()
    bring_it_back(home)
    assert home.stitched() == DATA


def test_what_is_not_away_does_not_come_back(home: Home) -> None:
    unchanged(home, InUseError, "is not put away any more", away=True)


def test_another_agents_transcript_stays_where_it_is(home: Home) -> None:
    """Both sessions are named in it, and both are there: whose it is nobody can tell."""
    shared = home.live.parent / "agent-0c.jsonl"
    names = f'{{"sessionId":"{ID}"}}\n{{"sessionId":"{OTHER}"}}\n'
    shared.write_text(names)
    put_it_away(home)
    assert "agent-0c.jsonl" in left(home)
    bring_it_back(home)
    # A stub that 2.0.x left is no session.
    (home.live.parent / f"{OTHER}.jsonl").write_bytes(b"")
    put_it_away(home)
    assert "agent-0c.jsonl" not in left(home)


# ── which ────────────────────────────────────────────────────────────────────────────────────


def test_sessions_are_wanted_by_their_last_record_or_by_when_they_would_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = b'{"type":"user","message":{"content":"Mend it"},"timestamp":"2026-01-01T00:00:00Z"}\n'
    home = homes.home(tmp_path, monkeypatch, said)
    undated = home.live.with_name("undated.jsonl")
    command_line.write(undated, said.replace(b"timestamp", b"no"))
    command_line.write(home.live.with_name("stub.jsonl"), b"")
    newyear = 1_767_225_600.0
    os.utime(undated, (newyear - 5 * DAY, newyear - 5 * DAY))
    os.utime(home.live, (newyear + 20 * DAY, newyear + 20 * DAY))

    def wanted(older: float | None, before: float | None, now: float) -> set[str]:
        return {where.session for where in put_away.wanted(older, before, now, now)}

    assert wanted(10 * DAY, None, newyear + 5 * DAY - 1) == set()
    assert wanted(10 * DAY, None, newyear + 5 * DAY + 1) == {"undated"}
    assert wanted(10 * DAY, None, newyear + 10 * DAY) == {"undated"}
    assert wanted(10 * DAY, None, newyear + 10 * DAY + 1) == {"undated", ID}
    assert wanted(None, 2 * DAY, newyear + 23 * DAY - 1) == set()
    assert wanted(None, 2 * DAY, newyear + 23 * DAY) == {"undated"}
    assert wanted(None, 2 * DAY, newyear + 48 * DAY) == {"undated", ID}
    settings = home.config / "settings.json"
    settings.write_text('{"cleanupPeriodDays": 60}')
    assert wanted(None, 2 * DAY, newyear + 48 * DAY) == set()
    for unusable in ('{"cleanupPeriodDays": "x"}', "{", "[]", '{"cleanupPeriodDays": true}'):
        settings.write_text(unusable)
        assert wanted(None, 2 * DAY, newyear + 48 * DAY) == {"undated", ID}
    assert wanted(None, None, newyear + 900 * DAY) == set()
    run_by_a_client(home)
    assert wanted(1, None, newyear + 900 * DAY) == {"undated"}


def test_what_an_interrupted_run_began_is_wanted_first(home: Home) -> None:
    homes.crashed(partial(put_it_away, home), "sessrotate.system.locks.settled")
    assert put_away.wanted(None, None, THEN, THEN) == [home.where]
    assert [finding.kind for finding in doctor.findings()] == ["interrupted"]


# ── crashes and errors ───────────────────────────────────────────────────────────────────────


STEPS: Final = [
    pytest.param(7, id="some calls"),
    pytest.param(1, id="every call", marks=pytest.mark.scale),
]


def made(folder: Path, patch: pytest.MonkeyPatch, rotated: bool) -> Home:
    """Make a small session with something of each kind beside it."""
    home = homes.home(folder, patch, DATA)
    if rotated:
        home.rotate()
    side = home.live.parent / ID / "subagents"
    side.mkdir(parents=True)
    (side / "agent-a1.jsonl").write_bytes(LONG)
    (side / "note").write_bytes(b"note")
    mine = home.live.parent / "agent-0a.jsonl"
    mine.write_bytes(b'{"sessionId":"%s","type":"user","uuid":"1"}\n' % ID.encode() + LONG)
    for path in sorted(home.live.parent.rglob("*"), reverse=True):
        os.utime(path, ns=(THEN * 10**9 + 1, THEN * 10**9 + len(path.name)))
    return home


def is_back(home: Home) -> None:
    """Bring a session back, unless it never went."""
    try:
        bring_it_back(home)
    except InUseError as error:
        assert "is not put away any more" in str(error)  # noqa: PT017 - any other is a failure


def failing(
    tmp_path: Path,
    patch: pytest.MonkeyPatch,
    at: int,
    do: Callable[[Home], object],
    rotated: bool,
    crash: Faults,
) -> tuple[Home, dict[str, tuple[object, ...]], BaseException | None]:
    """Do something to a new session whose call number `at` fails; return what that left."""
    home = made(tmp_path / str(at), patch, rotated)
    before = whole(home, folders_too=False)
    if do is bring_it_back:
        put_it_away(home)
    failure: BaseException | None = None
    with crash.installed():
        try:
            do(home)
        except (Killed, SessrotateError) as error:
            failure = error
    return home, before, failure


@pytest.mark.parametrize("do", [put_it_away, bring_it_back])
@pytest.mark.parametrize("rotated", [False, True], ids=["never rotated", "rotated"])
@pytest.mark.parametrize("then", ["on", "back"])
@pytest.mark.parametrize("step", STEPS)
def test_any_call_may_be_the_last_before_a_crash(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    do: Callable[[Home], object],
    rotated: bool,
    then: str,
    step: int,
) -> None:
    for at in count(step, step):
        crash = Faults(at)
        home, before, _ = failing(tmp_path, monkeypatch, at, do, rotated, crash)
        # A client deletes what belongs to no live file sooner than it would otherwise.
        assert home.live.exists() or left(home) == set()
        assert home.stitched() == DATA
        assert home.problems() == []
        if then == "on":
            put_it_away(home)
            assert left(home) == set()
            assert home.stitched() == DATA
            assert [*doctor.findings()] == []
        is_back(home)
        assert whole(home, folders_too=False) == before
        assert [*doctor.findings()] == []
        if not crash.failed:
            break
    assert at > 40


@pytest.mark.scale
@pytest.mark.parametrize("do", [put_it_away, bring_it_back])
@pytest.mark.parametrize("on", [put_it_away, is_back])
def test_what_goes_on_after_a_crash_may_crash_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    do: Callable[[Home], object],
    on: Callable[[Home], object],
) -> None:
    at, happened = 0, True
    while happened:
        at += 2
        again, went_on = 0, True
        while went_on:
            again += 3
            crash, second = Faults(at), Faults(again)
            home, before, _ = failing(
                tmp_path / str(again), monkeypatch, at, do, rotated=True, crash=crash
            )
            with second.installed(), suppress(Killed):
                on(home)
            assert home.stitched() == DATA
            is_back(home)
            assert whole(home, folders_too=False) == before
            went_on, happened = bool(second.failed), bool(crash.failed)


@pytest.mark.parametrize("do", [put_it_away, bring_it_back])
@pytest.mark.parametrize(
    ("number", "once"),
    [
        pytest.param(errno.EIO, True, id="EIO once"),
        pytest.param(errno.EIO, False, id="EIO from then on", marks=pytest.mark.scale),
        pytest.param(errno.ENOSPC, True, id="ENOSPC once", marks=pytest.mark.scale),
        pytest.param(errno.ENOSPC, False, id="ENOSPC from then on"),
    ],
)
@pytest.mark.parametrize("step", STEPS)
def test_any_call_may_fail(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    do: Callable[[Home], object],
    once: bool,
    number: int,
    step: int,
) -> None:
    for at in count(step, step):
        crash = Faults(at, lambda: OSError(number, os.strerror(number)), lasting=not once)
        home, before, failure = failing(tmp_path, monkeypatch, at, do, True, crash)
        assert failure is None or isinstance(failure, StorageError)
        assert home.stitched() == DATA
        if failure is not None and do is put_it_away and once:
            is_away = "is put away and nothing is lost" in str(failure)
            assert is_away == (not home.live.exists()), at
            # What was undone is undone, but for what the next run removes.
            is_back(home)
            assert whole(home, folders_too=False) == before
        do(home) if do is put_it_away else is_back(home)
        is_back(home)
        assert whole(home, folders_too=False) == before
        if not crash.failed:
            break
    assert at > 40


def test_what_a_full_disk_left_plain_is_seen_and_compressed_by_the_next_run(home: Home) -> None:
    home.append(row(95, pad="p" * 300_000))
    data = home.stitched()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fs.Draft, "append", homes.failing(errno.ENOSPC))
        with pytest.raises(StorageError):
            put_it_away(home)
    assert "put away, and not compressed yet" in command_line.called("run", "--dry-run").out
    (finding,) = doctor.findings()
    assert finding.kind == "interrupted"
    assert f"has not been compressed yet: `sessrotate archive {ID}` compresses it" in finding.detail
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fs, "free_bytes", lambda _folder: 7)
        for words in (("archive", "-n", ID), ("tidy", "-n"), ("run", "-n")):
            planned = command_line.called(*words)
            assert planned.code == 74
            assert re.search(r"for the compressed session, and 7 B is free", planned.err)
    assert f"{ID}.jsonl" in away(home)
    assert re.search(r", [\d.]+ [KM]iB freed on disk", command_line.called("run").out)
    assert f"{ID}.jsonl.sessrotate.zst" in away(home)
    assert home.stitched() == data
    assert "Nothing to do." in command_line.called("run").out


def test_a_plan_of_archiving_counts_the_room_that_those_before_it_free(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = random.Random(1).randbytes(150_000).hex()
    home.append(row(95, pad=noise))
    command_line.write(small := home.live.with_name(SMALL), row(96, pad="p" * 900_000))
    need = 200_000  # the noise needs more, and the other frees it

    def sizes(words: list[str]) -> list[str]:
        found = command_line.called("archive", "-n", "--json", *words).document()
        return [each["result"] for each in found["sessions"]]

    monkeypatch.setattr(fs, "free_bytes", lambda _folder: need // 2)
    assert sizes([ID, small.stem]) == ["failed", "planned"]
    assert sizes([small.stem, ID]) == ["planned", "planned"]


def test_of_sessions_to_be_unpacked_only_those_are_planned_for_which_there_is_room(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.append(row(95, pad="p" * 300_000))
    command_line.write(small := home.live.with_name(SMALL), row(96, pad="p" * 300_000))
    assert command_line.called("archive", "-y", ID, small.stem).code == 0

    def planned(*words: str) -> command_line.Ended:
        return command_line.called("restore", "-n", *words)

    monkeypatch.setattr(fs, "free_bytes", lambda _folder: 290_000)
    assert planned(small.stem).code == 74
    assert "for what is unpacked, and 283.2 KiB is free" in planned(small.stem).err
    monkeypatch.setattr(fs, "free_bytes", lambda _folder: 400_000)
    assert planned(small.stem).code == 0
    assert planned(small.stem, ID).code == 74
    monkeypatch.setattr(fs, "free_bytes", lambda _folder: 50_000_000)
    assert planned(small.stem, ID).code == 0


def test_a_full_disk_leaves_the_plain_files_and_the_next_run_compresses(home: Home) -> None:
    before = whole(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fs.Draft, "append", homes.failing(errno.ENOSPC))
        patch.setattr(fs, "free_bytes", lambda _folder: 7)
        with pytest.raises(StorageError, match="nothing is lost: run `archive` again") as caught:
            put_it_away(home)
    assert "KiB for the compressed session, and 7 B is free: make room" in str(caught.value)
    assert f"{ID}.jsonl" in away(home)
    assert not [name for name in home.archived() if name.endswith(".partial")]
    assert home.stitched() == DATA
    assert put_away.put_away(home.where, 1) == 0
    assert f"{ID}.jsonl.sessrotate.zst" in away(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fs, "free_bytes", lambda _path: 1000)
        unchanged(home, StorageError, "what is unpacked, and 1000 B is free", away=True)
    bring_it_back(home)
    assert whole(home) == before


def test_a_compressed_file_that_is_not_what_was_written_never_takes_the_plain_ones_place(
    home: Home,
) -> None:
    real = fs.Draft.append
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            fs.Draft,
            "append",
            lambda draft, data: real(draft, bytes(data)[:-1] + b"x" if data else data),
        )
        with pytest.raises(StorageError, match="the disk is failing"):
            put_it_away(home)
    assert home.stitched() == DATA
    bring_it_back(home)
    assert home.stitched() == DATA


# ── hostile ──────────────────────────────────────────────────────────────────────────────────


def test_damage_to_what_is_away_is_found_and_nothing_comes_back_half(home: Home) -> None:
    put_it_away(home)
    for name in (f"{ID}.jsonl.sessrotate.zst", f"{ID}/subagents/agent-a1.jsonl.sessrotate.zst"):
        path = home.archive / "archived" / name
        data = path.read_bytes()
        for damaged in (data[:-3], data[: len(data) // 2] + b"x" + data[len(data) // 2 + 1 :], b""):
            path.write_bytes(damaged)
            with pytest.raises(DamagedError, match="damaged"):
                bring_it_back(home)
            assert not home.live.exists()
        path.write_bytes(data)
    with state.opened(home.where) as found:
        assert found.live is not None
        assert b"".join(found.live.pieces(Span(0, found.live.size())))
    bring_it_back(home)
    assert home.stitched() == DATA


def test_a_live_file_that_somebody_moved_back_is_followed_by_the_rest(home: Home) -> None:
    put_it_away(home)
    command_line.write(home.live, DATA)
    (home.archive / "archived" / f"{ID}.jsonl.sessrotate.zst").unlink()
    unchanged(home, RefusedError, "Someone moved")
    assert [finding.kind for finding in doctor.findings()] == ["doubled"]
    bring_it_back(home)
    assert (home.live.parent / ID / "subagents" / "agent-a1.jsonl").read_bytes() == LONG
    assert not (home.archive / "record.json").exists()


def test_what_is_lost_is_told_and_nothing_is_changed(home: Home) -> None:
    put_it_away(home)
    path = home.archive / "archived" / f"{ID}.jsonl.sessrotate.zst"
    path.rename(home.config / "kept")
    unchanged(home, DamagedError, "is no longer in", away=True)
    unchanged(home, DamagedError, "is no longer in")
    assert "damaged" in {finding.kind for finding in doctor.findings()}
    (home.config / "kept").rename(path)
    bring_it_back(home)
    assert home.stitched() == DATA


@pytest.mark.parametrize("own", [b"no zstd at all" + LONG, homes.packed(LONG), homes.packed(b"")])
def test_what_the_client_itself_called_zst_comes_back_as_it_was(home: Home, own: bytes) -> None:
    side = home.live.parent / ID / "tool-results"
    for name in ("alone.txt.zst", "both.txt.zst", "both.txt"):
        command_line.write(side / name, own if name.endswith(".zst") else LONG)
    before = whole(home)
    put_it_away(home)
    assert (home.archive / "archived" / ID / "tool-results" / "both.txt.zst").read_bytes() == own
    put_it_away(home)
    bring_it_back(home)
    assert whole(home) == before


def test_what_would_come_back_as_another_file_is_not_put_away(home: Home) -> None:
    taken = home.live.parent / ID / "tool-results" / "both.txt.sessrotate.zst"
    command_line.write(taken, b"mine")
    with pytest.raises(RefusedError, match=r"ends in \.sessrotate\.zst: rename it"):
        put_it_away(home)
    assert taken.read_bytes() == b"mine"


def forged(home: Home, **fields: object) -> None:
    path = home.archive / "record.json"
    told = json.loads(path.read_text())
    told["away"] |= fields
    path.write_text(json.dumps(told) + "\n")


@pytest.mark.parametrize(
    "fields",
    [
        {"is_plain": False},
        {"standing": "archiving"},
        {"standing": "unarchiving"},
    ],
)
def test_no_link_that_was_put_away_leads_anywhere(home: Home, fields: dict[str, object]) -> None:
    victim = home.config / "victim.jsonl"
    victim.write_bytes(LONG)
    packed = command_line.write(home.config / "packed", homes.packed(LONG))
    link = home.live.parent / ID / "link.jsonl"
    link.unlink()
    link.symlink_to(victim)
    put_it_away(home)
    (home.archive / "archived" / ID / "elsewhere.jsonl.sessrotate.zst").symlink_to(packed)
    forged(home, **fields)
    then = homes.snapshot(home.config / "projects"), victim.lstat().st_mtime_ns
    folder = home.config.lstat().st_mtime_ns
    for do in (put_it_away, bring_it_back, put_it_away):
        with suppress(SessrotateError):
            do(home)
    assert victim.read_bytes() == LONG
    assert any(path.is_symlink() for path in home.config.rglob("link.jsonl"))
    assert victim.lstat().st_mtime_ns == then[1]
    assert home.config.lstat().st_mtime_ns == folder
    top = [path.name for path in home.config.parent.iterdir()]
    assert top == [".claude"]


@pytest.mark.parametrize(
    "other",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        {"format": 2},
        {"session": "x"},
        {"standing": "away"},
        {"standing": ["archived"]},
        {"at": 1},
        {"project": ""},
        {"more": 1},
        {"used": 5},
        {"is_plain": "yes"},
        None,
    ],
    ids=repr,
)
def test_without_its_note_it_is_told_by_its_files_and_comes_back_as_it_was(
    home: Home, other: bytes | dict[str, object] | None
) -> None:
    before = whole(home)
    put_it_away(home)
    note = home.archive / "record.json"
    told = json.loads(note.read_bytes())
    if isinstance(other, dict):
        for key, value in other.items():
            part = told["away"] if key in told["away"] else told
            assert key == "more" or key in part
            part[key] = value
        note.write_bytes(json.dumps(told).encode() + b"\n")
    elif other is not None:
        note.write_bytes(other)
    else:
        note.unlink()
    assert home.stitched() == DATA
    told = [each.detail for each in doctor.findings()]
    assert len(told) == (not place.of_session(ID).project)
    assert all(f"`sessrotate restore {ID} --project FOLDER` brings it back" in one for one in told)
    bring_it_back(home)
    after = whole(home)
    assert after.keys() == before.keys()
    assert home.stitched() == DATA


MOMENTS: Final = ("archiving", "archived", "unarchiving", "restored")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("deeds", [["restore"], ["archive", "restore"], ["run", "restore"]])
def test_a_record_of_another_moment_that_is_put_back_takes_nothing_away(
    home: Home, moment: str, deeds: list[str], *, is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = home.live.parent / ID / "tool-results"
    command_line.write(side / "own.txt.zst", homes.packed(LONG))
    before, records = held(home), dict[str, bytes]()
    real = away_files.write_standing

    def told(*given: Any, **more: Any) -> PutAway:
        done = real(*given, **more)
        records[given[1]] = (home.archive / "record.json").read_bytes()
        return done

    with monkeypatch.context() as patch:
        patch.setattr(away_files, "write_standing", told)
        put_it_away(home)
        bring_it_back(home)
    records["restored"] = record.dump(Record(ID, homes.PROJECT, restored=""))
    with monkeypatch.context() as patch:
        if is_plain:
            patch.setattr(away_files, "compress", lambda *_: None)
        put_it_away(home)
    (home.archive / "record.json").write_bytes(records[moment])
    assert home.stitched() == DATA
    for deed in deeds:
        ended = called(deed, *([] if deed == "run" else [ID]))
        assert ended.code == 0, ended
    assert held(home) == before
    assert home.stitched() == DATA


def held(home: Home) -> dict[str, object]:
    """Return what lies beside the live file, but for when it was changed."""
    found = whole(home, folders_too=False)
    del found[str(home.live.relative_to(home.config))]
    return {name: kept[-1] for name, kept in found.items() if name.startswith("projects")}


def test_a_damaged_note_without_a_file_says_nothing(home: Home) -> None:
    home.archive.mkdir(parents=True, exist_ok=True)
    (home.archive / "record.json").write_bytes(b"{")
    assert home.stitched() == DATA
    for command in ("report", "verify", "stitch", "archive", "restore"):
        assert called(command, ID).code == 0, command
    assert home.stitched() == DATA


def test_one_that_is_half_put_away_with_a_damaged_note_stops_no_other(home: Home) -> None:
    command_line.write(home.archive / "archived" / "agent-mine.jsonl", LONG)
    (home.archive / "record.json").write_bytes(b"{")
    homes.another(home, "another-session", DATA)
    assert called("archive", "--older-than", "1d", "--yes").code == 0
    assert away_file.away(place.of_session("another-session")) is not None
    assert called("restore", ID).code == 0
    assert home.stitched() == DATA
    assert (home.live.parent / "agent-mine.jsonl").read_bytes() == LONG


def test_a_folder_that_is_a_link_is_not_followed(home: Home) -> None:
    elsewhere = home.config / "mine"
    command_line.write(elsewhere / "agent-mine.jsonl", LONG)
    command_line.write(
        home.archive / "record.json",
        record.dump(Record(ID, homes.PROJECT, away=PutAway("archived", ""))),
    )
    (home.archive / "archived").symlink_to(elsewhere)
    unchanged(home, DamagedError, "is not a folder", away=True)
    with pytest.raises(DamagedError, match="is not a folder"):
        put_it_away(home)
    forged(home, standing="archiving")
    unchanged(home, DamagedError, "is not a folder", away=True)
    unchanged(home, DamagedError, "is not a folder")
    (home.archive / "archived").unlink()
    put_it_away(home)
    (home.archive / "archived").rename(home.config / "elsewhere")
    (home.archive / "archived").symlink_to(home.config / "elsewhere")
    unchanged(home, DamagedError, "is not a folder|not in", away=True)


@pytest.mark.parametrize("count", in_gate([100, 1500], 1, "scale"))
def test_thousands_of_files_go_and_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    home = homes.home(tmp_path, monkeypatch, DATA)
    side = home.live.parent / ID / "subagents"
    side.mkdir(parents=True)
    long = count * 2 // 5
    for number in range(count):
        (side / f"agent-{number}.jsonl").write_bytes(LONG if number < long else b"x")
    before = whole(home)
    put_it_away(home)
    assert sum(name.endswith(".zst") for name in away(home)) == long + 1
    bring_it_back(home)
    assert whole(home) == before
