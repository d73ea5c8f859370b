"""Rollouts are compressed and made plain again, and whatever happens, a client finds all of one."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessrotate import doctor, fs
from sessrotate.clients.codex import cold
from sessrotate.clients.codex.preview import unpacked as unpacked_head
from sessrotate.errors import (
    DamagedError,
    InUseError,
    RefusedError,
    SessrotateError,
    StorageError,
)
from sessrotate.retention import restore, rollouts, sizes
from sessrotate.system import in_use
from sessrotate.system.source import Source
from sessrotate.units import DAY
from support import homes
from support.command_line import called
from support.crash.changes import Before, Faults, Killed, killed
from support.crash.disk import Image
from support.crash.simulator import Disk, Recorder
from support.newcomers import saved
from support.rollouts import Codex, home, packed, rollout, taken, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DATA: Final = rollout(size=3000)
LATE: Final = b'{"timestamp":"2026-11-21T13:00:00.000Z","type":"event_msg","payload":{}}\n'


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nobody."""
    monkeypatch.setattr("sessrotate.system.locks.GRACE", 0)
    monkeypatch.setattr("sessrotate.system.locks.SETTLE", 0)
    monkeypatch.setattr("sessrotate.retention.rollout_swap._PATIENCE", 0)


@pytest.fixture
def codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Codex:
    return home(tmp_path, monkeypatch)


def compress(codex: Codex) -> None:
    rollouts.compress(codex.where())


def decompress(codex: Codex) -> None:
    rollouts.decompress(codex.where())


def settle(codex: Codex) -> None:
    """Do what the next runs do: whatever is there, compressed it is, and then plain again."""
    if codex.path().exists():
        compress(codex)
    decompress(codex)


# ── both ways ────────────────────────────────────────────────────────────────────────────────


def test_it_is_compressed_as_its_client_reads_it_and_plain_again_as_it_was(codex: Codex) -> None:
    path = codex.begin(DATA)
    path.chmod(0o640)
    os.setxattr(path, "user.kept", b"so")
    before = path.stat()
    freed = rollouts.compress(codex.where())
    (other,) = codex.day.iterdir()
    assert other.name == f"{path.name}.zst"
    after = other.stat()
    assert freed == before.st_size - after.st_size > 0
    assert unpacked(other.read_bytes()) == DATA
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert os.getxattr(other, "user.kept") == b"so"
    assert rollouts.decompress(codex.where()) == len(DATA)
    assert codex.names() == [path.name]
    assert path.read_bytes() == DATA
    again = path.stat()
    assert (again.st_mode, again.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert os.getxattr(path, "user.kept") == b"so"


@given(st.binary(min_size=1, max_size=300_000) | st.binary(max_size=90).map(lambda one: one * 4000))
@settings(max_examples=25)
def test_any_bytes_come_back(data: bytes) -> None:
    with _somewhere() as codex:
        codex.begin(data)
        compress(codex)
        assert codex.taken() == data
        if not codex.path().exists():
            decompress(codex)
        assert codex.path().read_bytes() == data


def test_what_would_not_become_smaller_stays_as_it_is(codex: Codex) -> None:
    path = codex.begin(os.urandom(100_000))
    before = path.stat()
    assert rollouts.compress(codex.where()) == 0
    assert codex.names() == [path.name]
    assert path.stat().st_ino == before.st_ino


def test_what_the_client_compressed_itself_becomes_plain_too(codex: Codex) -> None:
    path = codex.begin(packed(DATA))
    other = path.rename(f"{path}.zst")
    plan = restore.prepare(codex.where())
    assert plan.away is not None
    assert plan.away.unpacked == len(DATA)
    decompress(codex)
    assert path.read_bytes() == DATA
    assert not other.exists()


def test_a_list_sees_the_beginning_of_one_that_begins_with_a_large_picture(codex: Codex) -> None:
    data = rollout(size=400_000)
    codex.begin(data)
    compress(codex)
    head = unpacked_head(cold.compressed(codex.path()).read_bytes()[: 64 * 1024])
    assert len(head) >= 64 * 1024
    assert data.startswith(head)
    assert cold.writers(time.time()) == {cold.Writer("codex_exec", "0.169.0")}


# ── crashes and faults ───────────────────────────────────────────────────────────────────────

DEEDS: Final = pytest.mark.parametrize("deed", [compress, decompress])


@contextmanager
def _somewhere(image: Image | None = None) -> Iterator[Codex]:
    """Open a home of Codex that holds this, for what is done many times in one test."""
    with pytest.MonkeyPatch.context() as patch:
        folder = Path(tempfile.mkdtemp())
        try:
            if image is None:
                yield home(folder, patch)
            else:
                patch.setenv("CODEX_HOME", str(folder / "codex"))
                patch.setenv("CLAUDE_CONFIG_DIR", str(folder / "claude"))
                (folder / "codex").mkdir()
                image.lay_out(folder / "codex")
                yield Codex(folder / "codex")
        finally:
            shutil.rmtree(folder)


@contextmanager
def begun(deed: Callable[[Codex], None]) -> Iterator[Codex]:
    with _somewhere() as codex:
        codex.begin(DATA)
        if deed is decompress:
            compress(codex)
        for lock in codex.root.rglob("*.lock"):
            lock.unlink()
        yield codex


@DEEDS
def test_a_kill_at_any_moment_leaves_all_of_it_where_the_client_looks(
    deed: Callable[[Codex], None],
) -> None:
    count = 0
    for codex in killed(lambda: begun(deed), deed):
        count += 1
        assert codex.taken() == DATA, count
        Codex.age(cold.form(codex.path()), 40)
        settle(codex)
        assert codex.taken() == DATA
        assert codex.names() == [codex.path().name], count
    assert count > 15


@DEEDS
@pytest.mark.parametrize(("number", "lasting"), [(errno.ENOSPC, True), (errno.EIO, False)])
def test_a_failure_at_any_call_leaves_all_of_it_and_is_told(
    deed: Callable[[Codex], None], number: int, *, lasting: bool
) -> None:
    for at in count(1):
        with begun(deed) as codex:
            faults = Faults(at, lambda: OSError(number, os.strerror(number)), lasting=lasting)
            with faults.installed(), suppress(SessrotateError):
                deed(codex)
            assert codex.taken() == DATA, (at, faults.failed)
            if not faults.failed:
                break
            settle(codex)
            assert codex.names() == [codex.path().name]
            assert codex.taken() == DATA
    assert at > 15


@DEEDS
def test_a_power_loss_at_any_moment_leaves_all_of_it(deed: Callable[[Codex], None]) -> None:
    known = set()
    with begun(deed) as codex:
        recorder = Recorder(codex.root)
        with recorder.installed():
            deed(codex)
        trace = recorder.trace()
    disk = Disk.of(trace)
    for event in trace.events:
        disk.apply(event)
        for image, _ in disk.states():
            if image in known:
                continue
            known.add(image)
            with _somewhere(image) as found:
                assert found.taken() == DATA, f"{event.text}\n{image.shown()}"
                for path in found.day.iterdir():
                    Codex.age(path, 40)
                settle(found)
                assert found.taken() == DATA
    assert len(known) > 5


# ── who else writes ──────────────────────────────────────────────────────────────────────────


@dataclass
class Client:
    """Comes once, before a call or in the middle of a write."""

    path: Path
    comes: Callable[[Path], bytes]
    at: int
    calls: int = 0
    written: bytes = DATA

    def look(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            with suppress(BlockingIOError, FileNotFoundError):
                self.written = self.comes(self.path)


def beside(
    deed: Callable[[Codex], None], comes: Callable[[Path], bytes]
) -> Iterator[tuple[Codex, bytes]]:
    """Yield homes after a deed, and all that a client wrote: it came before call 1, then 2, …"""
    at, is_last = 0, False
    while not is_last:
        at += 1
        with begun(deed) as codex:
            client = Client(codex.path(), comes, at)
            with Before(client.look).installed(), suppress(SessrotateError):
                deed(codex)
            is_last = client.calls < at
            yield codex, client.written
    assert at > 15


def appended(path: Path) -> bytes:
    """Append as a client without locks does, which finds a file by its name, and has no patience.

    Raises BlockingIOError where it would wait for a lease.
    """
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
    try:
        os.write(fd, LATE)
    finally:
        os.close(fd)
    return DATA + LATE


def saved_anew(path: Path) -> bytes:
    saved(path, DATA + LATE * 2)
    return DATA + LATE * 2


@DEEDS
@pytest.mark.parametrize("comes", [appended, saved_anew])
def test_what_a_client_writes_at_any_moment_is_there_afterwards(
    deed: Callable[[Codex], None], comes: Callable[[Path], bytes]
) -> None:
    for codex, written in beside(deed, comes):
        assert codex.taken() == written
        Codex.age(cold.form(codex.path()), 40)
        with suppress(RefusedError):
            settle(codex)
        assert codex.taken() == written


def test_nothing_is_done_while_a_client_has_it_open(codex: Codex) -> None:
    path = codex.begin(DATA)
    with path.open("ab"), pytest.raises(InUseError, match="in use"):
        compress(codex)
    assert codex.names() == [path.name]


@pytest.mark.parametrize("number", range(3), ids=["maintenance", "coordination", "writer"])
@DEEDS
def test_nothing_is_done_while_a_client_holds_its_lock(
    deed: Callable[[Codex], None], number: int
) -> None:
    with begun(deed) as codex:
        lock = (cold.maintenance_lock(), *cold.writer_locks(codex.path()))[number]
        lock.parent.mkdir(exist_ok=True)
        before = Image.taken(codex.day)
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with pytest.raises(InUseError, match="try again"):
                deed(codex)
        assert Image.taken(codex.day) == before
        deed(codex)
        assert not cold.writer_locks(codex.path())[1].exists()


@DEEDS
@pytest.mark.parametrize("locks", [True, False], ids=["folders lock", "no folder locks"])
def test_two_homes_that_share_their_sessions_leave_all_of_it(
    deed: Callable[[Codex], None], locks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "container").mkdir()
    (tmp_path / "container" / "sessions").symlink_to(tmp_path / "codex" / "sessions")
    codex = home(tmp_path, monkeypatch)
    codex.begin(DATA)
    if deed is decompress:
        compress(codex)
    real, real_flock, others = in_use.lease_from_writers, fcntl.flock, list[BaseException]()

    def flock(fd: int, how: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode) and not locks:
            raise OSError(errno.EBADF, "as NFS")
        real_flock(fd, how)

    def other(*args: Any) -> Any:
        """Begin the same in the other home, and die with half a draft."""
        monkeypatch.setattr(in_use, "lease_from_writers", real)
        with monkeypatch.context() as patch:

            def half(draft: fs.Draft, data: bytes) -> None:
                os.write(draft.fd, data[:10])
                patch.setattr(fs, "remove_files", die)
                raise Killed

            patch.setenv("CODEX_HOME", str(tmp_path / "container"))
            patch.setattr(fs.Draft, "append", half)
            try:
                deed(codex)
            except (Killed, SessrotateError) as error:
                others.append(error)
        return real(*args)

    def die(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(in_use, "lease_from_writers", other)
    with suppress(InUseError):
        deed(codex)
    assert codex.taken() == DATA
    assert [type(each) for each in others] == [InUseError if locks else Killed]


def test_a_lock_that_stays_held_is_waited_for_once_and_not_for_each_session(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = codex.begin(DATA)
    monkeypatch.setattr("sessrotate.retention.rollout_swap._PATIENCE", 0.01)
    slept = list[float]()
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + sum(slept))
    monkeypatch.setattr(time, "sleep", slept.append)
    lock = cold.maintenance_lock()
    lock.parent.mkdir()
    with fs.held(lock, is_clients=True):
        for _ in range(3):
            with pytest.raises(InUseError):
                compress(codex)
    assert 0.01 <= sum(slept) < 0.02
    compress(codex)
    assert codex.names() == [f"{path.name}.zst"]


def test_what_a_client_writes_that_waited_until_a_kill_comes_back() -> None:
    """A client before 0.147 opens the file, waits for the lease, and gets it as the process dies.

    What it has open then may have no name by which clients look for it.
    """

    @contextmanager
    def waited_for() -> Iterator[tuple[Codex, int]]:
        with begun(compress) as codex:
            fd = os.open(codex.path(), os.O_RDONLY)
            try:
                yield codex, fd
            finally:
                os.close(fd)

    asides = 0
    for codex, fd in killed(waited_for, lambda found: compress(found[0])):
        status = os.fstat(fd)
        if not status.st_nlink:  # proved before: nobody waits
            continue
        asides += not codex.path().exists()
        appended(Path(f"/proc/self/fd/{fd}"))
        Codex.age(cold.form(codex.path()), 40)
        settle(codex)
        assert codex.taken() == DATA + LATE
        assert codex.names() == [codex.path().name]
    assert asides


def test_a_form_that_a_kill_left_aside_does_not_come_back_over_what_came_later(
    codex: Codex,
) -> None:
    path = codex.begin(packed(DATA + LATE))
    path.rename(f"{path}.zst")
    aside = path.with_name(f".{path.name}")
    aside.write_bytes(DATA)
    assert rollouts.leave_one(codex.where()) == len(DATA)
    assert codex.taken() == DATA + LATE
    assert codex.names() == [f"{path.name}.zst"]


def test_a_form_that_a_kill_left_aside_does_not_bring_a_deleted_session_back(codex: Codex) -> None:
    path = codex.begin(DATA)
    aside = path.rename(path.with_name(f".{path.name}"))
    assert rollouts.doubled() == []
    assert rollouts.leave_one(codex.where()) == 0
    assert codex.names() == [aside.name]
    assert str(aside) in {finding.path for finding in doctor.findings()}


def test_a_form_that_a_kill_left_aside_stays_while_somebody_writes_to_it(codex: Codex) -> None:
    path = codex.begin(packed(DATA))
    path.rename(f"{path}.zst")
    aside = path.with_name(f".{path.name}")
    aside.write_bytes(DATA)
    with aside.open("ab"), pytest.raises(InUseError, match="in use"):
        rollouts.leave_one(codex.where())
    assert aside.read_bytes() == DATA


def test_a_form_that_its_client_removes_while_it_is_looked_at_is_no_fault(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = codex.begin(DATA)
    other = path.with_name(f"{path.name}.zst")
    itself = Source.itself

    def opened(name: Path) -> Source:
        other.unlink(missing_ok=True)
        return itself(name)

    other.write_bytes(packed(DATA))
    monkeypatch.setattr(Source, "itself", opened)
    assert rollouts.leave_one(codex.where()) == 0
    assert codex.names() == [path.name]


def test_of_a_form_that_a_kill_left_aside_nothing_goes_that_the_plain_one_lacks(
    codex: Codex,
) -> None:
    path = codex.begin(DATA)
    aside = path.with_name(f".{path.name}")
    aside.write_bytes(DATA + LATE)
    before = Image.taken(codex.day)
    for deed in (compress, decompress):
        with pytest.raises(RefusedError, match="compare the two"):
            deed(codex)
        assert Image.taken(codex.day) == before
    aside.write_bytes(DATA[:-20])
    assert rollouts.doubled() == [codex.where()]
    assert rollouts.leave_one(codex.where()) == len(DATA) - 20
    assert codex.names() == [path.name]
    assert codex.taken() == DATA


@DEEDS
def test_nothing_is_done_where_the_clients_locks_cannot_be_held(
    deed: Callable[[Codex], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with begun(deed) as codex:
        before = Image.taken(codex.day)
        monkeypatch.setattr("fcntl.flock", homes.failing(errno.ENOLCK))
        with pytest.raises(StorageError, match="No locks"):
            deed(codex)
        assert Image.taken(codex.day) == before


# ── both forms, and what is refused ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("rest", [b"", LATE], ids=["equal", "longer"])
def test_of_two_forms_the_compressed_one_goes_if_the_plain_one_has_all_of_it(
    codex: Codex, rest: bytes
) -> None:
    path = codex.begin(DATA + rest, days=3)
    cold.compressed(path).write_bytes(packed(DATA))
    assert rollouts.decompress(codex.where()) == len(DATA + rest)
    assert codex.names() == [path.name]
    assert path.read_bytes() == DATA + rest


@pytest.mark.parametrize(
    "plain",
    [b"", DATA[:-9], DATA[:50] + b"x" + DATA[51:]],
    ids=["empty", "short", "other"],
)
@DEEDS
def test_of_two_forms_none_goes_if_the_compressed_one_has_more(
    codex: Codex, plain: bytes, deed: Callable[[Codex], None]
) -> None:
    path = codex.begin(plain)
    cold.compressed(path).write_bytes(packed(DATA))
    before = Image.taken(codex.day)
    for do in (deed, lambda each: rollouts.packed(each.where())):  # a plan to restore it says so
        with pytest.raises(RefusedError, match="compare the two"):
            do(codex)
    assert Image.taken(codex.day) == before


@DEEDS
def test_a_damaged_form_that_its_client_does_not_use_is_to_be_moved_away(
    codex: Codex, deed: Callable[[Codex], None]
) -> None:
    path = codex.begin(DATA)
    cold.compressed(path).write_bytes(packed(DATA)[:-9])
    before = Image.taken(codex.day)
    with pytest.raises(RefusedError, match=r"\.zst is damaged, .* move the damaged one away"):
        deed(codex)
    assert Image.taken(codex.day) == before


@pytest.mark.parametrize("command", ["stitch", "verify", "read", "report"])
def test_who_names_a_file_that_was_compressed_since_is_told_its_new_name(
    codex: Codex, command: str
) -> None:
    path = codex.begin(DATA)
    compress(codex)
    ended = called(command, str(path))
    assert ended.code == 2
    assert f"There is {path}.zst: name that instead." in ended.err
    assert called(command, f"{path}.zst").code == 0


def test_what_is_not_one_file_of_ours_is_refused(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = codex.begin(DATA)
    os.link(path, codex.root / "other")
    with pytest.raises(RefusedError, match="another name"):
        compress(codex)
    (codex.root / "other").unlink()
    with monkeypatch.context() as patch:
        patch.setattr("sessrotate.platforms.is_ours", lambda _owner: False)
        with pytest.raises(RefusedError, match="another user: run this as that user"):
            compress(codex)
    moved = path.rename(codex.root / "moved")
    path.symlink_to(moved)
    with pytest.raises(RefusedError, match="symbolic link"):
        compress(codex)
    assert moved.read_bytes() == DATA


def test_what_was_written_within_a_day_stays_where_a_client_without_locks_was_used(
    codex: Codex,
) -> None:
    codex.begin(DATA, days=0.5)
    codex.begin(rollout(version="0.145.0"), 1, days=80)
    with pytest.raises(RefusedError, match=r"before 0\.147"):
        compress(codex)
    Codex.age(codex.path(1), 91)
    compress(codex)
    assert codex.taken() == DATA


def test_a_plan_to_bring_an_empty_one_back_says_that_it_is_damaged(codex: Codex) -> None:
    path = codex.begin(DATA)
    compress(codex)
    other = path.with_name(f"{path.name}.zst")
    os.truncate(other, 0)
    Codex.age(other, 10)
    for does in (restore.prepare, rollouts.decompress):
        with pytest.raises(DamagedError, match="empty"):
            does(codex.where())


def test_a_plan_to_bring_it_back_says_what_the_deed_does(codex: Codex) -> None:
    path = codex.begin(DATA)
    compress(codex)
    assert restore.prepare(codex.where()).is_anything
    codex.begin(rollout(version="0.145.0"), 1, days=80)
    Codex.age(path.with_name(f"{path.name}.zst"), 0.5)  # as copied without its time
    for does in (restore.prepare, rollouts.decompress):
        with pytest.raises(RefusedError, match=r"before 0\.147"):
            does(codex.where())


def test_room_is_left_to_clients(codex: Codex, monkeypatch: pytest.MonkeyPatch) -> None:
    path = codex.begin(rollout(size=3 << 20))
    monkeypatch.setattr("sessrotate.fs.free_bytes", lambda _path: rollouts.SPARE - 1)
    with pytest.raises(StorageError, match="make room for"):
        compress(codex)
    assert codex.names() == [path.name]


# ── which ────────────────────────────────────────────────────────────────────────────────────

OVER: Final = rollout(size=1 << 20)


def test_those_come_first_that_were_archived_and_then_the_smaller_ones(codex: Codex) -> None:
    large = codex.begin(OVER + LATE, 1)
    small, first = codex.begin(OVER, 2), codex.begin(OVER + LATE * 2, 3, archived=True)
    codex.begin(OVER, 4, days=6)
    codex.begin(DATA, 5)
    found = rollouts.wanted(7 * DAY, small.stat().st_mtime + 40 * DAY)
    assert [each.live.name for each in found] == [first.name, small.name, large.name]
    ahead = small.stat().st_mtime - DAY  # by this clock they are of tomorrow: by name, all the same
    assert (len(rollouts.wanted(0, ahead)), rollouts.wanted(7 * DAY, ahead)) == (4, [])


def test_sessions_on_another_disk_are_measured_there(codex: Codex, tmp_path: Path) -> None:
    codex.begin(OVER)
    there = rollouts.measured_all()
    (codex.root / "sessions").rename(tmp_path / "disk")
    (codex.root / "sessions").symlink_to(tmp_path / "disk")
    assert rollouts.measured_all() == there > len(OVER)


def test_what_was_made_plain_rests_for_thirty_days(codex: Codex) -> None:
    path, where = codex.begin(OVER, days=40), codex.where()
    used = path.stat().st_mtime
    for since, now, is_rested in (
        (used - 90 * DAY, used + 29 * DAY, False),
        (used - 90 * DAY, used + 31 * DAY, True),
        (used + 20 * DAY, used + 49 * DAY, False),
        (used + 20 * DAY, used + 51 * DAY, True),
    ):
        assert bool(rollouts.rested([where], now, {where.session: since})) is is_rested
    assert rollouts.rested([where], used, {}) == [where]


@pytest.mark.parametrize(
    ("version", "originator", "is_read"),
    [
        ("0.142.5", "codex_exec", True),
        ("0.171.0", "codex-tui", True),
        ("0.150.0-alpha.3", "codex_cli_rs", True),
        ("0.142.4", "codex_exec", False),
        ("0.118.0", "codex_exec", False),
        ("0.171.0", "codex_vscode", False),
        ("", "codex_exec", False),
    ],
)
def test_a_client_that_may_not_find_it_is_named(
    codex: Codex, version: str, originator: str, *, is_read: bool
) -> None:
    path = codex.begin(rollout(version=version, originator=originator), days=80)
    now = path.stat().st_mtime + 80 * DAY
    assert (cold.unread_by(now) == "") is is_read
    if not is_read:
        assert f"{originator} {version}".strip() in cold.unread_by(now)
    assert cold.unread_by(now + 11 * DAY) == ""
    path.rename(f"{path}.zst").write_bytes(packed(path.with_name(f"{path.name}.zst").read_bytes()))
    Codex.age(cold.compressed(path), 80)
    assert (cold.unread_by(now) == "") is is_read


@pytest.mark.parametrize(
    ("data", "suffix"),
    [
        *[(data, "") for data in (b"", b"\0" * 5000, DATA[:40], b"no row\n" + DATA, b"[]\n")],
        *[(data, ".zst") for data in (b"", packed(DATA)[:9], b"no", packed(DATA[:40]))],
    ],
)
def test_what_cannot_be_read_says_nothing_of_a_client(
    codex: Codex, data: bytes, suffix: str
) -> None:
    codex.begin(DATA, days=1)
    path = codex.begin(data, 1, days=1)
    path.rename(f"{path}{suffix}")
    assert cold.writers(time.time()) == {cold.Writer("codex_exec", "0.169.0")}
    assert cold.unread_by(time.time()) == ""


@pytest.mark.parametrize("data", [b'{"id":"x"}\n', b'{"instructions":"' + b"x" * 20_000])
def test_a_row_that_does_not_say_who_wrote_it_is_of_a_client_that_nobody_knows(
    codex: Codex, data: bytes
) -> None:
    codex.begin(data, 1, days=1)
    assert "unknown" in cold.unread_by(time.time())


@pytest.mark.parametrize(
    "name",
    [
        ".rollout-materialize-x1",
        ".rollout-2026.jsonl.zst.partial",
        "rollout-compress-Ab12Cd.tmp",
        "rollout-2026-10-01.jsonl.decompress.77.0.tmp",
    ],
)
def test_what_a_kill_left_goes_after_a_day_unless_somebody_has_it_open(
    codex: Codex, name: str
) -> None:
    left = codex.day / name
    left.write_bytes(b"half")
    now = left.stat().st_ctime
    assert [*cold.left_behind(now + 0.9 * DAY)] == []
    assert [*cold.left_behind(now + 1.1 * DAY)] == [left]
    with left.open("rb"), pytest.raises(InUseError, match="open in another"):
        rollouts.remove_left(left)
    assert rollouts.remove_left(left) == 4
    assert codex.names() == []


# ── about how much ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("window", [cold.WINDOW, 20], ids=["all", "a sample"])
def test_the_estimate_is_within_a_fifth(codex: Codex, window: int) -> None:
    files = {}
    for number in range(6):
        path = codex.begin(rollout(size=60_000, compactions=20 * (number + 1)), number)
        files[path] = path.stat().st_size
    told = sum(files.values()) - sum(sizes.compressed(files, window).values())
    gained = sum(rollouts.compress(codex.where(number)) for number in range(6))
    assert abs(told - gained) <= gained / 5
    assert all(taken(path) for path in files)
