"""Another program saves the session by rename at the worst moment, and its save is not lost.

The oracle is the saves: the last one has the live file's name, and every other is in some file.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate import doctor, fs
from sessrotate.archive import place
from sessrotate.errors import InUseError, RefusedError
from sessrotate.fs import exact
from sessrotate.in_place import obstacles
from sessrotate.retention import bring_back, put_away
from sessrotate.system import in_use, locks
from support import command_line, homes
from support.command_line import boundary, row
from support.homes import Home
from support.newcomers import Newcomers, needs_exchange, saved

if TYPE_CHECKING:
    from collections.abc import Callable

DATA: Final = command_line.session(boundaries=2)
MORE: Final = row(90) + boundary(91) + row(92)
SAVED: Final = DATA + row(400)
OTHER: Final = b'{"type":"user","uuid":"somebody began anew"}\n'
EARLIER: Final = DATA + row(401)


@pytest.fixture(autouse=True)
def _nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_use, "writers", lambda *_: iter(()))


def rotate(home: Home) -> object:
    return home.rotate()


def restore(home: Home) -> object:
    return home.restore()


def put_it_away(home: Home) -> object:
    return put_away.put_away(home.where, 0.2)


def to_rotate(home: Home) -> None:
    """Leave the session as it is, before its first rotation."""
    assert home.live.read_bytes() == DATA


def to_restore(home: Home) -> None:
    home.rotate()
    home.append(MORE)


DEEDS: Final = pytest.mark.parametrize(
    ("prepare", "deed"),
    [
        pytest.param(to_rotate, rotate, id="rotate"),
        pytest.param(to_restore, restore, id="restore"),
        pytest.param(to_rotate, put_it_away, id="archive"),
        pytest.param(to_restore, put_it_away, id="archive what was rotated"),
    ],
)


def kept() -> list[Path]:
    """Return the files that wait for a person."""
    return [path for path in place.aside() if path.is_file()]


# ── while it is done ─────────────────────────────────────────────────────────────────────────


@DEEDS
@pytest.mark.parametrize("data", [SAVED, OTHER, b""], ids=["a line more", "another", "empty"])
def test_what_is_saved_at_the_last_moment_stays(
    home: Home, prepare: Callable[[Home], None], deed: Callable[[Home], object], data: bytes
) -> None:
    if deed is not put_it_away:
        needs_exchange()
    prepare(home)
    before = home.live.read_bytes()
    newcomers = Newcomers(home.live, [data])
    with newcomers.coming(), pytest.raises(InUseError):
        deed(home)
    assert newcomers.came == [data]
    assert home.live.read_bytes() == data
    assert home.live.stat().st_nlink == 1
    # What it had replaced had no other name any more, unless it is all in what was saved.
    is_in_it = deed is put_it_away or data.startswith(before)
    assert [path.read_bytes() for path in kept()] == ([] if is_in_it else [before])
    assert not home.pack.exists()
    assert not (home.archive / "live.partial").exists()


@DEEDS
def test_of_several_saves_at_the_last_moment_the_last_stays_and_none_is_lost(
    home: Home, prepare: Callable[[Home], None], deed: Callable[[Home], object]
) -> None:
    if deed is not put_it_away:
        needs_exchange()
    prepare(home)
    before = home.live.read_bytes()
    with Newcomers(home.live, [EARLIER, SAVED]).coming(), pytest.raises(InUseError) as caught:
        deed(home)
    assert home.live.read_bytes() == SAVED
    replaced = [] if deed is put_it_away or SAVED.startswith(before) else [before]
    paths = kept()
    assert sorted(path.read_bytes() for path in paths) == sorted([EARLIER, *replaced])
    assert all(str(path) in str(caught.value) for path in paths)
    findings = [found for found in doctor.findings() if found.kind == "kept"]
    assert {(found.session, found.path) for found in findings} == {
        (command_line.ID, str(path)) for path in paths
    }
    for path in paths:
        path.unlink()
    assert not [found for found in doctor.findings() if found.kind == "kept"]


@DEEDS
def test_a_session_that_is_deleted_at_the_last_moment_does_not_come_back(
    home: Home, prepare: Callable[[Home], None], deed: Callable[[Home], object]
) -> None:
    if deed is not put_it_away:
        needs_exchange()
    prepare(home)
    before = home.live.read_bytes()
    with Newcomers(home.live, [None]).coming(), pytest.raises(InUseError) as caught:
        deed(home)
    assert not home.live.exists()
    assert deed is put_it_away or "move it back" in str(caught.value)
    assert [path.read_bytes() for path in kept()] == ([] if deed is put_it_away else [before])


def test_what_was_saved_at_the_last_moment_is_rotated_by_the_next_run(home: Home) -> None:
    needs_exchange()
    with Newcomers(home.live, [SAVED]).coming(), pytest.raises(InUseError):
        home.rotate()
    home.rotate()
    assert home.stitched() == SAVED


def test_a_line_that_a_client_wrote_to_our_file_before_it_was_taken_back_is_kept(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client came by the name in the moment in which it was ours."""
    needs_exchange()
    real = exact.give_back

    def found_it(hand: Path, path: Path, ours: object) -> bool:
        with path.open("ab") as file:  # a lease would have it wait
            file.write(row(500))
        return real(hand, path, ours)  # type: ignore[arg-type]  # as it came

    monkeypatch.setattr(exact, "give_back", found_it)
    monkeypatch.setattr("sessrotate.system.locks.write_lease", lambda _fd: "none")
    monkeypatch.setattr("sessrotate.system.locks.read_lease", lambda _fd: "none")
    with Newcomers(home.live, [SAVED]).coming(), pytest.raises(InUseError) as caught:
        home.rotate()
    assert home.live.read_bytes() == SAVED
    (path,) = kept()
    assert path.read_bytes().endswith(row(500))
    assert str(path) in str(caught.value)


def test_a_client_that_waited_for_our_file_may_still_write_to_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_exchange()
    answers = iter(["taken", "busy"])
    monkeypatch.setattr("sessrotate.system.locks.write_lease", lambda _fd: next(answers))
    with Newcomers(home.live, [SAVED]).coming(), pytest.raises(InUseError):
        home.rotate()
    assert len(kept()) == 1


# ── putting away, and back ───────────────────────────────────────────────────────────────────


def test_what_is_saved_while_a_session_is_put_away_stays_beside_what_was_before(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The live file has left already when another program saves."""
    settled = locks.settled

    def saving(fd: int, answer: locks.Answer) -> bool:
        saved(home.live, SAVED)
        return settled(fd, answer)

    monkeypatch.setattr(locks, "settled", saving)
    with pytest.raises(InUseError) as caught:
        put_it_away(home)
    assert home.live.read_bytes() == SAVED
    (path,) = kept()
    assert path.read_bytes() == DATA
    assert str(path) in str(caught.value)
    assert not home.archive.exists()


def test_what_is_saved_before_a_session_comes_back_stays(home: Home) -> None:
    put_it_away(home)
    with Newcomers(home.live, [SAVED]).coming(), pytest.raises(InUseError):
        bring_back.bring_back(home.where, 0.2)
    assert home.live.read_bytes() == SAVED
    home.live.rename(home.live.with_suffix(".mine"))
    bring_back.bring_back(home.where, 0.2)
    assert home.live.read_bytes() == DATA


def test_a_file_beside_the_session_that_is_saved_at_the_last_moment_stays(home: Home) -> None:
    agent = home.live.parent / "agent-0a.jsonl"
    line = b'{"sessionId":"%s","type":"user","uuid":"1"}\n' % command_line.ID.encode()
    agent.write_bytes(line)
    with Newcomers(agent, [line * 2]).coming(), pytest.raises(InUseError):
        put_it_away(home)
    assert agent.read_bytes() == line * 2
    assert home.live.read_bytes() == DATA
    put_it_away(home)
    assert not agent.exists()
    bring_back.bring_back(home.where, 0.2)
    assert agent.read_bytes() == line * 2


# ── settings ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("after", [b"ours", None], ids=["changed", "removed"])
def test_settings_that_are_saved_at_the_last_moment_stay(
    tmp_path: Path, after: bytes | None
) -> None:
    if after is not None:
        needs_exchange()
    path = tmp_path / "settings.json"
    path.write_bytes(b"before")
    with Newcomers(path, [b"theirs"]).coming():
        assert not fs.rewrite(path, b"before", after)
    assert path.read_bytes() == b"theirs"
    assert [*tmp_path.iterdir()] == [path]
    assert fs.rewrite(path, b"theirs", after)
    assert (path.read_bytes() if path.exists() else None) == after


@pytest.mark.parametrize("after", [b"ours", None], ids=["changed", "removed"])
def test_settings_that_are_saved_again_and_again_are_all_there(
    tmp_path: Path, after: bytes | None
) -> None:
    if after is not None:
        needs_exchange()
    path = tmp_path / "settings.json"
    path.write_bytes(b"before")
    with Newcomers(path, [b"1", b"2"]).coming(), pytest.raises(OSError, match="earlier") as caught:
        fs.rewrite(path, b"before", after)
    assert path.read_bytes() == b"2"
    (other,) = (file for file in tmp_path.iterdir() if file != path)
    assert other.read_bytes() == b"1"
    assert str(other) in str(caught.value)


def test_settings_that_appear_at_the_last_moment_are_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    with Newcomers(path, [b"theirs"]).coming():
        assert not fs.rewrite(path, None, b"ours")
    assert path.read_bytes() == b"theirs"
    assert [*tmp_path.iterdir()] == [path]


def test_an_edit_in_place_at_the_last_moment_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_exchange()
    path = tmp_path / "settings.json"
    path.write_bytes(b"before")
    exchange = exact.FORM.exchange

    class Late(exact.System):
        def exchange(self, one: Path, other: Path) -> bool:
            if path.read_bytes() == b"before":
                path.write_bytes(b"edited")
            return exchange(one, other)

    monkeypatch.setattr(exact, "FORM", Late())
    assert not fs.rewrite(path, b"before", b"ours")
    assert path.read_bytes() == b"edited"
    assert [*tmp_path.iterdir()] == [path]


def test_a_session_that_is_gone_when_it_is_to_be_changed_is_refused(home: Home) -> None:
    home.live.unlink()
    with pytest.raises(RefusedError):
        put_it_away(home)


# ── a folder that is mounted by itself ───────────────────────────────────────────────────────


def mounted_apart(patch: pytest.MonkeyPatch, *paths: Path) -> None:
    """Have the system tell another mount of these paths, and refuse a second name elsewhere."""
    files = {(path.stat().st_dev, path.stat().st_ino) for path in paths}
    real = obstacles.disk_of

    def disk_of(fd: int, folder: Path) -> tuple[int, str]:
        status = os.fstat(fd)
        device, mount = real(fd, folder)
        return device, "apart" if (status.st_dev, status.st_ino) in files else mount

    patch.setattr(obstacles, "disk_of", disk_of)


@pytest.mark.parametrize("deed", [rotate, put_it_away])
def test_a_session_in_a_mount_of_its_own_is_refused_before_anything_is_written(
    home: Home, monkeypatch: pytest.MonkeyPatch, deed: Callable[[Home], object]
) -> None:
    mounted_apart(monkeypatch, home.live)
    monkeypatch.setattr("sessrotate.retention.put_away.disk_of", obstacles.disk_of)
    before = homes.snapshot(home.config / "projects")
    with pytest.raises(RefusedError, match="mount"):
        deed(home)
    assert homes.snapshot(home.config / "projects") == before
    assert not home.archive.exists()


def test_a_file_is_on_the_disk_of_its_folder_whatever_device_it_tells(home: Home) -> None:
    """In an overlay of two disks, a file has another device than its folder."""
    other = Path("/dev")
    assert other.stat().st_dev != home.live.stat().st_dev
    with home.live.open("rb") as stream:
        found = obstacles.disk_of(stream.fileno(), other)
    assert found == (other.stat().st_dev, obstacles.disk(home.live.parent)[1])


def test_doctor_names_a_mount_between_sessions_and_archives(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [*doctor.findings()] == []
    mounted_apart(monkeypatch, home.config / "projects")
    (finding,) = doctor.findings()
    assert finding.kind == "settings"
    assert "mount" in finding.detail


@pytest.mark.parametrize("deed", [rotate, put_it_away])
def test_a_second_name_that_the_system_refuses_leaves_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, deed: Callable[[Home], object]
) -> None:
    """Quotas by project (xfs, ext4) are seen by no look: only the call tells."""
    refused = homes.failing(errno.EXDEV)
    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(exact, "FORM", SimpleNamespace(exchange=refused, move=refused))
    with pytest.raises(RefusedError, match="file system"):
        deed(home)
    assert home.live.read_bytes() == DATA
    assert not home.archive.exists()


def test_a_file_system_without_hard_links_is_named_and_what_works_there(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", homes.failing(errno.EPERM))  # as exfat-fuse 1.3.0 answers
    nothing = SimpleNamespace(exchange=lambda *_: False, move=lambda *_: False)
    monkeypatch.setattr(exact, "FORM", nothing)
    with pytest.raises(RefusedError, match=r"without reliable hard links .* `sessrotate archive"):
        rotate(home)
    assert home.live.read_bytes() == DATA
    assert not home.archive.exists()
    put_it_away(home)
    assert not home.live.exists()
    assert command_line.called("restore", command_line.ID).code == 0
    assert home.live.read_bytes() == DATA


def test_a_second_name_that_passes_for_another_file_is_none(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def linked(path: str, name: str, **_: object) -> None:
        shutil.copy(path, name)  # as on sshfs: the same bytes, and another number

    monkeypatch.setattr(os, "link", linked)
    assert not fs.has_hard_links(home.config)
    with pytest.raises(RefusedError, match=r"without reliable hard links .* `sessrotate archive"):
        rotate(home)
    assert home.live.read_bytes() == DATA
    assert not home.archive.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="bind mounts are Linux's")
@pytest.mark.parametrize("mounted", ["projects", "file"])
def test_a_bind_mount_is_refused_before_anything_is_written(home: Home, mounted: str) -> None:
    path = home.config / "projects" if mounted == "projects" else home.live
    copy = home.config.parent / "elsewhere"
    script = (
        'set -e; cp -a "$1" "$2"; mount --bind "$2" "$1"; shift 2; '
        '"$@" split --in-place ID || echo "split $?"; "$@" archive ID || echo "archive $?"'
    ).replace("ID", command_line.ID)
    command = ["unshare", "-rm", "sh", "-c", script, "sh", str(path), str(copy)]
    done = subprocess.run(
        [*command, command_line.COMMAND],
        env={**os.environ, **home.env},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("this machine allows no mounts")
    assert done.stdout.split("\n")[-3:] == ["split 77", "archive 77", ""], done
    assert done.stderr.count("mount") >= 2
    assert not home.archive.exists()
