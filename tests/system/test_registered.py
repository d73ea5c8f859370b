"""A registration is stale only if that is proved; whatever else may run is left alone."""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.errors import InUseError
from sessrotate.system import locks, registered
from sessrotate.system.registered import Evidence, verdict
from support import command_line, processes
from support.abilities import needs_leases
from support.command_line import write
from support.homes import Home, refused
from support.processes import register

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.system.registered import Registration

DATA: Final = command_line.session(boundaries=2)

linux: Final = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux shows namespaces"
)


@pytest.fixture
def dead() -> int:
    return processes.dead()


@pytest.fixture
def other() -> Iterator[int]:
    """Give the number of a process that goes on running."""
    with processes.holding() as process:
        yield process.pid


@pytest.fixture
def in_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registered, "_is_outermost", lambda: False)


def rotates(home: Home) -> None:
    home.rotate()
    assert home.stitched() == DATA


def ticks(pid: int) -> str:
    return (Path("/proc") / str(pid) / "stat").read_text().split(") ")[1].split()[19]


# ── deciding ─────────────────────────────────────────────────────────────────────────────────


def test_only_proof_makes_a_registration_stale() -> None:
    some = (None, True, False)
    for began in itertools.chain.from_iterable(itertools.product(some, repeat=n) for n in range(3)):
        for is_ours, is_older, sees_all in itertools.product(
            (None, True, False), (True, False), (True, False)
        ):
            found = verdict(
                Evidence(processes=began, is_ours=is_ours, is_older=is_older, sees_all=sees_all)
            )
            if True in began:
                assert found == "runs"
            elif None in began:
                assert found == "unknown"
            elif is_ours is True or is_older or (is_ours is None and sees_all):
                assert found == "stale"
            else:
                assert found == "unknown"


# ── clients of this machine ──────────────────────────────────────────────────────────────────


@linux
@pytest.mark.parametrize("seconds", [-7200, 120, 10**6])
def test_a_clock_that_is_stepped_ends_no_client(
    home: Home, other: int, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """It moves when this machine, and all that runs, began; that may also be another process."""
    file = register(home, other)
    began = int(Path("/proc/stat").read_text().partition("btime ")[2].split()[0])
    monkeypatch.setattr(registered, "_boot", lambda: began + seconds)
    refused(home, f"process {other} may be running", f"or remove {file}", error=InUseError)
    file.unlink()
    rotates(home)


@linux
def test_a_thread_of_the_kernel_is_no_client(
    home: Home, other: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fields = (Path("/proc") / str(other) / "stat").read_text().split()
    fields[8] = str(0x00200000)
    write(tmp_path / str(other) / "stat", " ".join(fields).encode())
    (tmp_path / "self").symlink_to("/proc/self")
    (tmp_path / "stat").symlink_to("/proc/stat")
    (tmp_path / "1").mkdir()
    monkeypatch.setattr(registered, "PROC", tmp_path)
    monkeypatch.setattr(registered, "_FIRST_NAMESPACE", os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - no path
    register(home, other, startedAt=0)
    rotates(home)


@linux
@pytest.mark.parametrize("seconds", [-30, 0, 30])
def test_a_minute_more_or_less_is_the_same_process(home: Home, other: int, seconds: int) -> None:
    register(home, other, startedAt=int((time.time() + seconds) * 1000))
    refused(home, f"process {other} runs the session", error=InUseError)


@linux
def test_the_exact_start_counts_where_a_client_tells_it(home: Home) -> None:
    register(home, os.getpid(), startedAt=0, procStart=ticks(os.getpid()))
    refused(home, f"process {os.getpid()} runs the session", error=InUseError)
    register(home, os.getpid(), procStart=str(int(ticks(os.getpid())) + 1))
    rotates(home)


@linux
@pytest.mark.usefixtures("in_a_container")
def test_a_registration_from_before_the_machines_start_is_stale(home: Home, dead: int) -> None:
    file = register(home, dead)
    refused(home, f"process {dead} may be running the session", error=InUseError)
    os.utime(file, (0, 0))
    rotates(home)


# ── clients that cannot be seen ──────────────────────────────────────────────────────────────


@linux
def test_a_client_of_another_namespace_counts_until_its_file_goes(home: Home, dead: int) -> None:
    file = register(home, dead, pidDomain="linux::pid:[4026532999]")
    refused(home, str(file), "has ended", "container", "--live", error=InUseError)
    file.unlink()
    rotates(home)


def of_machine(told: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have this machine tell this id; return the name of our namespace."""
    monkeypatch.setattr(registered, "MACHINE", write(folder / "machine-id", f"{told}\n".encode()))
    return f"linux:{told}:{Path('/proc/self/ns/pid').readlink()}"


@linux
def test_a_client_of_our_own_namespace_that_is_gone_does_not_count(
    home: Home, dead: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(registered, "_is_outermost", lambda: False)
    register(home, dead, pidDomain=of_machine("1f" * 16, tmp_path, monkeypatch))
    rotates(home)


@linux
@pytest.mark.parametrize("told", ["", "uninitialized"])
def test_a_machine_without_an_id_is_not_taken_for_another_without_one(
    home: Home, dead: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: str
) -> None:
    monkeypatch.setattr(registered, "is_beyond", lambda _file: True)
    file = register(home, dead, pidDomain=of_machine(told, tmp_path, monkeypatch))
    refused(home, str(file), error=InUseError)


@linux
@pytest.mark.usefixtures("in_a_container")
@pytest.mark.parametrize("kind", ["ext4", "overlay", "tmpfs"])
def test_from_within_a_container_an_end_cannot_be_proved(
    home: Home, dead: int, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Any of these may be bound into it, with the client outside."""
    monkeypatch.setattr(registered, "_file_system", lambda _file: kind)
    file = register(home, dead)
    refused(home, str(file), error=InUseError)


@linux
def test_on_a_network_an_end_cannot_be_proved(
    home: Home, dead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registered, "is_beyond", lambda _file: True)
    file = register(home, dead)
    os.utime(file, (0, 0))
    refused(home, str(file), error=InUseError)


@linux
def test_a_client_in_a_container_is_seen_from_outside(
    home: Home, dead: int, other: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The container's process has another number here, and tells both."""
    fake = tmp_path / "proc"
    for pid, inner in ((other, f"{other}\t{dead}"), (os.getpid(), f"{os.getpid()}")):
        (fake / str(pid)).mkdir(parents=True)
        (fake / str(pid) / "status").write_text(f"Name:\tx\nNSpid:\t{inner}\nNSsid:\t1\n")
        (fake / str(pid) / "stat").write_text((Path("/proc") / str(pid) / "stat").read_text())
    (fake / "stat").write_text(Path("/proc/stat").read_text())
    (fake / "self").mkdir()
    (fake / "self" / "mountinfo").write_text(Path("/proc/self/mountinfo").read_text())
    monkeypatch.setattr(registered, "PROC", fake)
    register(home, dead)
    refused(home, f"process {dead} runs the session", error=InUseError)


def test_without_proc_a_client_with_a_folder_of_this_system_is_one_of_it(
    home: Home, dead: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(registered, "PROC", tmp_path / "no-proc")
    register(home, os.getpid())
    refused(home, f"process {os.getpid()} runs", error=InUseError)
    (home.config / "sessions" / f"{os.getpid()}.json").unlink()
    file = register(home, dead, cwd="/workspaces/of-a-virtual-machine")
    refused(home, str(file), error=InUseError)
    register(home, dead, cwd=str(tmp_path))
    rotates(home)


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_what_another_user_registered_may_be_any_session_unprivileged(home: Home) -> None:
    before = home.live.read_bytes()
    register(home, os.getpid()).chmod(0)
    with pytest.raises(InUseError, match="another user"):
        home.rotate()
    assert home.live.read_bytes() == before
    assert home.archived() == set()


def test_what_another_user_registered_may_be_any_session(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def denied(path: Path, *args: Any, **kwargs: Any) -> Any:
        if path.parent.name == "sessions":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **kwargs)

    file = register(home, os.getpid())
    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(InUseError, match="another user") as caught:
        home.rotate()
    assert str(file) in str(caught.value)


# ── where a file can be reached from ─────────────────────────────────────────────────────────

MOUNTS: Final = """\
1 0 8:1 / / rw - ext4 /dev/a rw
2 1 0:2 / /home rw shared:1 - nfs4 server:/home rw
3 2 8:1 /x /home/u/.claude rw - ext4 /dev/a rw
4 1 0:3 / /with\\040blank rw - virtiofs tag rw
5 1 0:4 / /over rw - ext4 /dev/b rw
6 1 0:5 / /over rw master:2 - overlay overlay rw
7 1 0:6 / /sshfs rw - fuse.sshfs host: rw
"""


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/sessions/1.json", False),
        ("/home/1.json", True),
        ("/homely/1.json", False),
        ("/home/u/.claude/sessions/1.json", False),
        ("/with blank/1.json", True),
        ("/over/1.json", False),
        ("/sshfs/1.json", True),
    ],
)
def test_the_innermost_mount_tells_who_reaches_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, answer: bool
) -> None:
    write(tmp_path / "self" / "mountinfo", MOUNTS.encode())
    monkeypatch.setattr(registered, "PROC", tmp_path)
    assert registered.is_beyond(Path(path)) is answer


@pytest.mark.parametrize(
    ("kind", "answer"),
    [("ext4", "taken"), ("fuse.bindfs", "none"), ("virtiofs", "none"), ("unheard-of", "none")],
)
@needs_leases
def test_a_lease_counts_only_where_no_other_machine_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, answer: str
) -> None:
    write(tmp_path / "self" / "mountinfo", f"1 0 8:1 / / rw - {kind} /dev/a rw\n".encode())
    write(tmp_path / "session", b"")
    (tmp_path / "self" / "fd").mkdir()
    monkeypatch.setattr(registered, "PROC", tmp_path)
    fd = os.open(tmp_path / "session", os.O_RDONLY)
    (tmp_path / "self" / "fd" / str(fd)).symlink_to(tmp_path / "session")
    assert locks.read_lease(fd) == answer
    os.close(fd)


def test_registrations_are_found_once_each(home: Home) -> None:
    def found() -> Iterator[Registration]:
        return registered.registrations(home.where.registries)

    register(home, 77)
    (home.config / "sessions" / "77.abc.key").write_text("secret")
    assert [told.pid for told in found()] == [77]
