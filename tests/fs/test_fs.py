"""What is written is private, whole, never over something else, and on the disk in time."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from sessrotate import fs, platforms
from sessrotate.fs import exact, files
from support import homes
from support.crash.changes import Faults

if TYPE_CHECKING:
    from collections.abc import Callable


def test_an_output_file_is_not_there_until_it_is_published(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with fs.OutputFile(path) as file:
        file.append(b"all of it")
        assert not path.exists()
        (draft,) = tmp_path.iterdir()
        assert (draft.name[:5], draft.suffix) == (".out.", ".partial")
        file.publish()
    assert path.read_bytes() == b"all of it"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_an_output_file_gets_its_name_where_there_are_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", homes.failing(errno.EPERM))  # as exfat-fuse 1.3.0 answers
    for move in (exact.FORM.move, lambda *_: False):
        monkeypatch.setattr(exact, "FORM", SimpleNamespace(move=move))
        with fs.OutputFile(tmp_path / "out") as file:
            file.append(b"all of it")
            file.publish()
        with pytest.raises(FileExistsError), fs.OutputFile(tmp_path / "out") as file:
            file.publish()
        assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"all of it"]
        (tmp_path / "out").unlink()


def test_of_a_disk_that_does_not_say_its_size_nobody_knows_what_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zeros = SimpleNamespace(f_blocks=0, f_bavail=0, f_frsize=0)  # as of some FUSE
    monkeypatch.setattr(os, "statvfs", lambda _: zeros)
    assert fs.free_bytes(tmp_path) is None


def test_nothing_is_left_of_an_output_file_that_is_not_published(tmp_path: Path) -> None:
    with fs.OutputFile(tmp_path / "out") as file:
        file.append(b"part of it")
    assert list(tmp_path.iterdir()) == []


def test_an_output_file_never_takes_anothers_place(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with fs.OutputFile(path) as file:
        file.append(b"ours")
        path.write_bytes(b"theirs")
        with pytest.raises(FileExistsError):
            file.publish()
    assert path.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_is_never_an_old_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        fs.NewFile(path)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        fs.NewFile(tmp_path / "link")
    assert path.read_bytes() == b"old"


def test_modes_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        fs.create_folder(tmp_path / "a" / "b")
        fs.create_file_at_once(tmp_path / "a" / "b" / "f", b"x")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b", "a/b/f")]
    assert modes == [0o700, 0o700, 0o600]


@pytest.mark.parametrize("fault", [lambda: OSError(errno.EIO, "x"), KeyboardInterrupt])
def test_a_failure_leaves_no_draft_and_the_old_file(
    tmp_path: Path, fault: Callable[[], BaseException]
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    for at in range(2, 20):  # the second call creates the draft
        faults = Faults(at, fault, lasting=False)
        with faults.installed(), contextlib.suppress(OSError, KeyboardInterrupt):
            fs.create_file_at_once(path, b"new")
        assert [name.name for name in tmp_path.iterdir()] == ["x"]
        assert path.read_bytes() in {b"old", b"new"}
        if not faults.failed:
            break
    else:
        pytest.fail("it never ended")


def test_a_failure_leaves_the_draft_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = tmp_path / "x.partial"

    def full(_fd: int, _data: object) -> int:
        draft.unlink()
        draft.write_text("theirs")
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="full"):
            fs.create_file_at_once(tmp_path / "x", b"new")
    assert draft.exists()


def test_a_place_that_was_left_free_is_filled_in(tmp_path: Path) -> None:
    with fs.NewFile(tmp_path / "x") as file:
        file.append(b"....rest")
        file.fill_in(b"HEAD", 0)
        file.append(b"more")
    assert (tmp_path / "x").read_bytes() == b"HEADrestmore"


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:3])))
    with fs.NewFile(tmp_path / "x") as file:
        file.append(b"0123456789")
        file.fill_in(b"abcdefg", 1)
    assert (tmp_path / "x").read_bytes() == b"0abcdefg89"


def test_a_folder_that_cannot_be_synced_is_fine_and_one_that_fails_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, is_fine in ((errno.EINVAL, True), (errno.EIO, False)):

        def fail(_fd: int, number: int = number) -> None:
            raise OSError(number, "injected")

        monkeypatch.setattr(os, "fsync", fail)
        if is_fine:
            fs.sync_folder(tmp_path)
        else:
            with pytest.raises(OSError, match="injected"):
                fs.sync_folder(tmp_path)


def test_free_bytes_are_known_for_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    free = fs.free_bytes(tmp_path / "not" / "yet")
    assert free is not None
    assert free > 0


def test_a_scratch_file_has_no_name_and_can_be_read_again(tmp_path: Path) -> None:
    fd = fs.scratch(tmp_path, [b"scr", memoryview(b"atch")])
    try:
        assert os.pread(fd, 100, 0) == b"scratch"
        assert [*tmp_path.iterdir()] == []
    finally:
        os.close(fd)


@pytest.mark.parametrize("fills_after", [0, 5, 9])
def test_a_scratch_file_goes_where_temporary_files_do_if_there_is_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fills_after: int
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(other))
    made: list[Path] = []
    write = files.write_all
    unnamed: Callable[[Path], int] = vars(files)["_unnamed"]

    def limited(fd: int, data: bytes | memoryview) -> None:
        if len(made) == 1 and (room := fills_after - os.fstat(fd).st_size) < len(data):
            write(fd, data[:room])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(fd, data)

    def noted(folder: Path) -> int:
        made.append(folder)
        return unnamed(folder)

    monkeypatch.setattr(files, "write_all", limited)
    monkeypatch.setattr(files, "_unnamed", noted)
    fd = fs.scratch(tmp_path, [b"abcd", b"efgh", b"ijkl"])
    try:
        assert os.pread(fd, 100, 0) == b"abcdefghijkl"
        assert made == [tmp_path, other]
    finally:
        os.close(fd)


def test_where_no_folder_has_room_for_a_scratch_file_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_fd: int, _data: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write_all", full)
    with pytest.raises(OSError, match="TMPDIR"):
        fs.scratch(tmp_path, [b"abcd"])
    assert [*tmp_path.iterdir()] == []


def test_a_time_is_set_and_the_other_one_stays(tmp_path: Path) -> None:
    os.utime(tmp_path, ns=(5, 6))
    fs.set_time(tmp_path, 7)
    status = tmp_path.stat()
    assert (status.st_atime_ns, status.st_mtime_ns) == (5, 7)


def test_where_the_disk_can_be_asked_to_write_its_cache_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on macOS, whose `fsync` does not ask for it; and on a file system there that cannot."""
    full, asked = 51, list[int]()
    answers: list[int | OSError] = [0, OSError(errno.ENOTSUP, "not here")]

    def control(_fd: int, what: int) -> int:
        asked.append(what)
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr(platforms, "HERE", replace(platforms.HERE, full_sync=full))
    monkeypatch.setattr(files, "fcntl", SimpleNamespace(fcntl=control))
    fs.sync(1)
    assert (asked, synced) == ([full], [])
    fs.sync(1)
    assert (asked, synced) == ([full, full], [1])
    answers.append(OSError(errno.EIO, "lost"))
    with pytest.raises(OSError, match="lost"):
        fs.sync(1)
    assert synced == [1]
