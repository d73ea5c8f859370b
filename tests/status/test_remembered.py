"""What `sessrotate` alone remembers: the same figures, sooner, and nobody else's business."""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec.structs import replace

from sessrotate import status
from sessrotate.archive import place
from sessrotate.clients.claude.cleanup import new_name
from sessrotate.in_place import operations, recover, seal
from sessrotate.job import config, run
from sessrotate.reports import discovery, next_steps
from sessrotate.system import in_use, user_folders
from support import command_line
from support.command_line import ID, called, write
from support.homes import Home, silent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.archive.state import State
    from sessrotate.reports.next_steps import OnDisk
    from sessrotate.status import Status

DATA: Final = command_line.session(boundaries=6, rows=20, padding=30_000)
OTHER: Final = "b0000000-0000-4000-a000-00000000000a"


@pytest.fixture
def home(home: Home) -> Home:
    home.beside(OTHER, DATA[: len(DATA) // 2])
    return home


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the sessions that are planned from now on, as long as nobody clears it."""
    real, found = operations.plan_session, list[str]()

    def plan(where: Place, *given: Any, **how: Any) -> operations.Rotated:
        found.append(where.session)
        return real(where, *given, **how)

    monkeypatch.setattr(operations, "plan_session", plan)
    return found


def beside(home: Home) -> Path:
    return home.live.with_name(f"{OTHER}.jsonl")


def known() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(user_folders.cache_file().read_text())["figures"]
    return found


def looked() -> Status:
    found = status.look(config.read(None).settings, time.time(), silent)
    return replace(found, clients=tuple(on_disk_of(found.clients)))


def to_tidy() -> tuple[int, int, set[str]]:
    """Return what the plan of `tidy` gains, of how many sessions, and for which it fails."""
    planned = run.plan(config.read(None).settings.for_tidying, time.time(), silent)
    found = [each for stage in planned.stages for each in stage.outcomes]
    gaining = [each for each in found if each.result == "planned" and each.gained > 0]
    failing = {each.session for each in found if each.result == "failed"}
    return sum(each.gained for each in gaining), len({each.where for each in gaining}), failing


def figures() -> tuple[int, int, set[str]]:
    """Return what the status says is to gain; what it says of the disk is what there is."""
    found = looked()
    assert on_disk_of(found.clients) == on_disk_of(next_steps.of_clients(place.archives()))
    return found.gain, found.worth, set(found.failing)


def on_disk_of(clients: Iterable[OnDisk]) -> list[OnDisk]:
    """Return the same with sessions in one order, and without what is not remembered of them."""
    found, unsaid = [], {"ended": None, "compactions": None, "live_tail_bytes": None}
    for each in clients:
        infos = sorted(each.infos, key=attrgetter("path"))
        found.append(replace(each, infos=tuple(replace(info, **unsaid) for info in infos)))
    return found


@pytest.mark.usefixtures("home")
def test_of_what_did_not_change_nothing_is_read_and_the_gain_stays_that_of_tidy(
    read: list[str],
) -> None:
    cold = looked()
    assert sorted(read) == [ID, OTHER]
    read.clear()
    assert looked() == cold
    assert read == []
    assert figures() == to_tidy()
    assert cold.worth == 2


def _append(home: Home) -> None:
    home.append(command_line.session(boundaries=1, rows=40, padding=30_000))


def _same_size(home: Home) -> None:
    data = home.live.read_bytes()
    there = home.live.stat()
    home.live.write_bytes(data[: len(data) // 2] + b" " * (len(data) - len(data) // 2))
    os.utime(home.live, ns=(there.st_atime_ns, there.st_mtime_ns))


def _prune(home: Home) -> None:
    home.rotate()
    looked()
    assert called("prune", ID, "--keep-last", "1", "--yes").code == 0


def _restore(home: Home) -> None:
    home.rotate()
    looked()
    home.restore()


def _archive(home: Home) -> None:
    home.rotate()
    looked()
    assert called("archive", ID).code == 0


CHANGES: Final = (
    _append,
    _same_size,
    lambda home: home.rotate(),
    _restore,
    _prune,
    lambda _: write(user_folders.config_file(), b"[rotate]\nmin_gain = '2M'\n"),
    lambda home: os.link(home.live, home.live.with_name("a backup")),
    lambda home: home.live.unlink(),
    _archive,
    lambda home: write(home.live.with_name("agent-1.jsonl"), command_line.row(1) * 99),
    lambda home: write(home.live.with_suffix("") / "tool-results" / "1.txt", b"long" * 9999),
    lambda home: write(new_name(home.live, ID), DATA),
    lambda home: home.live.write_bytes(bytes(9999)),
    lambda home: shutil.copytree(home.live.parent, home.live.parent.with_name("-copied")),
    lambda home: home.live.chmod(0o400),
)


@pytest.mark.parametrize("change", CHANGES, ids=range(len(CHANGES)))
def test_what_changed_is_read_again(home: Home, change: Callable[[Home], object]) -> None:
    for _ in range(2):
        before, clients = figures(), on_disk_of(looked().clients)
    change(home)
    for _ in range(2):
        assert figures() == to_tidy()
    is_same = (figures(), on_disk_of(looked().clients)) == (before, clients)
    assert is_same == (change is CHANGES[-1])


def _led_elsewhere(home: Home) -> None:
    elsewhere = home.config.parent / "elsewhere"
    elsewhere.mkdir()
    (home.config / "sessrotate").mkdir()
    (home.config / "sessrotate" / "archives").symlink_to(elsewhere)


@pytest.mark.parametrize(
    "change",
    [
        lambda home: (home.config / "sessrotate").touch(),
        lambda home: (home.config / "sessrotate").symlink_to(home.config / "no such disk"),
        _led_elsewhere,
    ],
    ids=["in the way", "leads nowhere", "leads elsewhere"],
)
def test_what_leads_to_the_archives_is_seen_though_there_is_none(
    home: Home, change: Callable[[Home], object]
) -> None:
    before = figures()
    change(home)
    for _ in range(2):
        assert figures() == to_tidy() != before


def test_a_copy_whose_owner_goes_is_looked_at_again(home: Home) -> None:
    home.rotate()
    copy = home.live.parent.with_name("-copied") / home.live.name
    write(copy, home.live.read_bytes())
    write(new_name(copy, ID), DATA)  # as if its client had trimmed it
    looked()
    home.live.unlink()
    assert figures() == to_tidy()


def test_only_what_changed_is_read_again(home: Home, read: list[str]) -> None:
    looked()
    read.clear()
    _append(home)
    looked()
    assert read == [ID]


def test_what_a_run_has_to_finish_is_only_looked_for_where_something_changed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.rotate()
    real, opened = recover.plan, list[str]()

    def plan(found: State) -> recover.Recovery:
        opened.append(found.place.session)
        return real(found)

    monkeypatch.setattr(recover, "plan", plan)
    looked()
    assert {*opened} == {ID, OTHER}
    opened.clear()
    looked()
    assert opened == []
    (home.archive / "live.partial").write_bytes(b"left")
    assert figures() == to_tidy()
    assert ID in opened


def test_what_another_version_found_is_not_known(
    home: Home, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    beside(home).unlink()
    looked()
    monkeypatch.setattr(status, "__version__", "0.0.1")
    looked()
    assert read == [ID, ID]


def test_what_changes_while_it_is_read_is_read_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside(home).unlink()
    real = operations.plan_session

    def plan(*given: Any, **how: Any) -> operations.Rotated:
        found = real(*given, **how)
        home.append(command_line.row(99))
        return found

    def brief(*given: Any) -> Iterator[discovery.FoundSession]:
        for each in discovery.in_brief(*given):
            home.append(command_line.row(98))
            yield each

    with monkeypatch.context() as patch:
        patch.setattr(operations, "plan_session", plan)
        patch.setattr(status, "discovery", SimpleNamespace(in_brief=brief))
        looked()
    assert not user_folders.cache_file().exists()
    assert figures() == to_tidy()


def test_what_fails_or_was_interrupted_is_looked_at_each_time(
    home: Home, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    os.link(beside(home), beside(home).with_name("a backup"))
    with monkeypatch.context() as patch:
        patch.setattr(seal, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            home.rotate()
    looked()
    first = [*read]
    read.clear()
    looked()
    assert read == first
    assert figures() == to_tidy()


def test_a_session_that_somebody_uses_gains_nothing_though_it_is_known(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked()
    there = home.live.stat()
    file = (there.st_dev, there.st_ino)

    def written(files: frozenset[tuple[int, int]]) -> set[tuple[int, int]]:
        return {file} & files

    monkeypatch.setattr(in_use, "written", written)
    user = in_use.User(1, "has it open for writing")
    monkeypatch.setattr(
        in_use, "writers", lambda one: [user] if (one.device, one.inode) == file else []
    )
    assert figures() == to_tidy()
    assert looked().worth == 1


@pytest.mark.usefixtures("home")
def test_a_full_disk_is_seen_though_all_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    looked()
    monkeypatch.setattr("sessrotate.fs.free_bytes", lambda _folder: 1000)
    assert figures() == to_tidy()
    assert len(looked().failing) == 2


# ── the file ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("home")
def test_the_file_is_its_owners_and_has_neither_names_nor_content() -> None:
    before = os.umask(0)
    try:
        looked()
    finally:
        os.umask(before)
    path = user_folders.cache_file()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [*path.parent.iterdir()] == [path]
    found = known()
    assert len(found) == 2
    for key, each in found.items():
        assert key.startswith("xxh3_128:")
        assert {*each} == {"result", "freed", "size", "gained", "room", "usual"}
        assert (each.pop("result"), each.pop("usual")) == ("planned", "")
        assert all(isinstance(value, int) for value in each.values())
    taken = json.loads(path.read_text())["taken"]
    assert [each[0] for each in taken.values()] == ["session", "session"]
    words = [each for row in taken.values() for each in row[1:] if isinstance(each, str)]
    assert (len(taken), words) == (2, [])


@pytest.mark.usefixtures("home")
def test_what_was_found_before_an_interrupt_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    real = operations.plan_session

    def plan(where: Place, *given: Any, **how: Any) -> operations.Rotated:
        if where.session == OTHER:
            raise KeyboardInterrupt
        return real(where, *given, **how)

    with monkeypatch.context() as patch:
        patch.setattr(operations, "plan_session", plan)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                looked()
            assert len(known()) == 1
    assert figures() == to_tidy()


def test_what_is_no_longer_there_is_forgotten(home: Home) -> None:
    looked()
    beside(home).unlink()
    looked()
    assert len(known()) == 1


def _changed(**to: object) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        found = json.loads(data)
        for each in found["figures"].values():
            each.update(to)
        return json.dumps(found).encode() + b"\n"

    return change


@pytest.mark.parametrize(
    "hostile",
    [
        lambda _: b"\0" * 100,
        lambda _: b"[" * 100_000,
        lambda data: data[:-20],
        lambda data: data.replace(b'"format": 1', b'"format": 2'),
        _changed(gained="\x1b[2J"),
        _changed(result="failed"),
        lambda data: data.replace(b'["session",', b'["\\u001b[2J",'),
        lambda data: data.replace(b"\n", b" " * (33 << 20) + b"\n"),
    ],
)
@pytest.mark.usefixtures("home")
def test_a_file_that_we_would_not_have_written_is_not_there(
    hostile: Callable[[bytes], bytes], read: list[str]
) -> None:
    before, path = looked(), user_folders.cache_file()
    path.write_bytes(hostile(path.read_bytes()))
    read.clear()
    assert looked() == before
    assert sorted(read) == [ID, OTHER]
    read.clear()
    assert looked() == before
    assert read == []  # it has been replaced


def _pipe(path: Path) -> None:
    path.parent.mkdir(parents=True)
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.symlink_to(path)


@pytest.mark.parametrize(
    "hindrance",
    [
        lambda path: path.mkdir(parents=True),
        _pipe,
        _link,
        lambda path: write(path.parent, b"a file in the place of the folder"),
        lambda path: write(path.parent.parent, b"a file in the place of all"),
        lambda path: (path.parent / "status.json.partial").mkdir(parents=True),
    ],
)
@pytest.mark.usefixtures("home")
def test_where_it_cannot_be_written_nobody_hears_of_it(
    hindrance: Callable[[Path], object],
) -> None:
    expected = to_tidy()
    hindrance(user_folders.cache_file())
    for _ in range(2):
        ended = called()
        assert (ended.code, ended.err) == (0, "")
        assert figures() == expected


@pytest.mark.usefixtures("home")
def test_nothing_but_the_status_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert called().code == 0
    path = user_folders.cache_file()
    path.write_bytes(_changed(gained=1 << 40)(path.read_bytes()))
    assert "Can free   without any loss: about 2.0 TiB" in called().out

    def unread() -> None:
        pytest.fail("somebody asked for it")

    monkeypatch.setattr(user_folders, "cache_file", unread)
    for command in (
        ["tidy", "-n"],
        ["rotate", "-n", "--all"],
        ["run", "-n"],
        ["list"],
        ["report", "--all"],
        ["doctor"],
        ["tidy", "-y"],
        ["run"],
    ):
        assert "TiB" not in called(*command).out
