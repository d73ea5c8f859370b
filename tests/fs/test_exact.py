"""Exactly the file that was identified is moved, whoever else renames files at that moment."""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import fs
from sessrotate.fs import exact
from support.abilities import needs_exact_renames
from support.newcomers import Newcomers, saved
from support.portable import lack

if TYPE_CHECKING:
    from pathlib import Path


TRIES: Final = 400


@pytest.fixture(params=["system", "portable"])
def _both_forms(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "portable":
        lack(monkeypatch, "exact_renames")


@dataclass
class Two:
    """A folder of another program's with a file, and one of ours."""

    root: Path
    files: dict[str, bytes] = field(init=False)

    def __post_init__(self) -> None:
        for name in ("theirs", "ours"):
            (self.root / name).mkdir()
        self.path.write_bytes(b"old")

    @property
    def path(self) -> Path:
        return self.root / "theirs" / "file"

    @property
    def draft(self) -> Path:
        return self.root / "ours" / "draft"

    def found(self) -> dict[str, bytes]:
        """Return what there is."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        return {path.name: path.read_bytes() for path in files}


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def take_place(two: Two) -> None:
    is_it = fs.same_as(two.path.lstat())
    two.draft.write_bytes(b"new")
    fs.take_place(two.draft, two.path, is_it)


def take_away(two: Two) -> None:
    fs.take_away(two.path, two.draft, fs.same_as(two.path.lstat()))


# ── nobody else ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("_both_forms")
def test_a_draft_takes_the_place_of_the_file_that_was_identified(two: Two) -> None:
    inode = two.path.stat().st_ino
    take_place(two)
    assert two.found() == {"file": b"new"}
    assert two.path.stat().st_ino != inode


@pytest.mark.usefixtures("_both_forms")
def test_a_file_is_taken_away_and_put_back(two: Two) -> None:
    status = two.path.lstat()
    take_away(two)
    assert two.found() == {"draft": b"old"}
    fs.put(two.draft, two.path)
    assert two.found() == {"file": b"old"}
    assert os.path.samestat(two.path.lstat(), status)


@pytest.mark.usefixtures("_both_forms")
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_folders_and_links_are_moved_as_they_are(two: Two, kind: str) -> None:
    two.path.unlink()
    if kind == "folder":
        two.path.mkdir()
        (two.path / "inside").write_bytes(b"x")
    else:
        two.path.symlink_to("nowhere")
    status = two.path.lstat()
    take_away(two)
    assert not os.path.lexists(two.path)
    fs.put(two.draft, two.path)
    assert not os.path.lexists(two.draft)
    assert os.path.samestat(two.path.lstat(), status)


@pytest.mark.usefixtures("_both_forms")
def test_nothing_is_put_over_another_file(two: Two) -> None:
    two.draft.write_bytes(b"ours")
    with pytest.raises(FileExistsError):
        fs.put(two.draft, two.path)
    assert two.found() == {"file": b"old", "draft": b"ours"}
    with pytest.raises(FileExistsError):
        fs.take_away(two.path, two.draft, fs.same_as(two.path.lstat()))
    assert two.found() == {"file": b"old", "draft": b"ours"}


def test_where_there_are_no_hard_links_a_file_is_put_by_renaming(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    lack(monkeypatch, "exact_renames")
    monkeypatch.setattr(os, "link", refused)
    two.draft.write_bytes(b"ours")
    with pytest.raises(FileExistsError):
        fs.put(two.draft, two.path)
    two.path.unlink()
    fs.put(two.draft, two.path)
    assert two.found() == {"file": b"ours"}


@needs_exact_renames
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM])
def test_where_the_call_is_not_known_or_denied_by_a_sandbox_there_is_the_portable_form(
    two: Two, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(exact, "_function", lambda _: lambda *_: number)
    take_place(two)
    assert two.found() == {"file": b"new"}
    take_away(two)
    assert two.found() == {"draft": b"new"}


@needs_exact_renames
def test_another_error_of_the_call_is_told_with_both_names(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "_function", lambda _: lambda *_: errno.EIO)
    with pytest.raises(OSError, match="Input/output error") as caught:
        take_place(two)
    assert (caught.value.filename, caught.value.filename2) == (str(two.draft), str(two.path))
    assert two.found() == {"file": b"old", "draft": b"new"}


@needs_exact_renames
def test_this_system_can_exchange_names() -> None:
    """Or all the tests below prove nothing."""
    assert exact._function("renameat2") is not None  # noqa: SLF001 - there is no other way to ask


# ── files that come by rename ────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("_both_forms")
def test_a_file_that_came_before_the_look_stays(two: Two) -> None:
    is_it = fs.same_as(two.path.lstat())
    saved(two.path, b"theirs")
    with pytest.raises(fs.ReplacedError, match="replaced"):
        fs.take_away(two.path, two.draft, is_it)
    two.draft.write_bytes(b"new")
    with pytest.raises(fs.ReplacedError, match="replaced"):
        fs.take_place(two.draft, two.path, is_it)
    assert two.found() == {"file": b"theirs", "draft": b"new"}


@needs_exact_renames
def test_a_file_that_comes_after_the_look_is_given_its_name_back(two: Two) -> None:
    with Newcomers(two.path, [b"theirs"]).coming(), pytest.raises(fs.ReplacedError) as caught:
        take_place(two)
    assert caught.value.kept is None
    assert two.found() == {"file": b"theirs", "draft": b"new"}


@pytest.mark.usefixtures("_both_forms")
def test_a_file_that_comes_after_the_look_is_not_taken_away(two: Two) -> None:
    with Newcomers(two.path, [b"theirs"]).coming(), pytest.raises(fs.ReplacedError) as caught:
        take_away(two)
    assert caught.value.kept is None
    assert two.found() == {"file": b"theirs"}


@needs_exact_renames
def test_of_two_files_that_come_one_after_the_other_the_last_stays_and_none_is_lost(
    two: Two,
) -> None:
    with Newcomers(two.path, [b"1", b"2"]).coming(), pytest.raises(fs.ReplacedError) as caught:
        take_place(two)
    assert caught.value.kept == two.draft
    assert two.found() == {"file": b"2", "draft": b"1"}
    assert str(two.draft) in str(caught.value)


@pytest.mark.usefixtures("_both_forms")
def test_a_file_that_cannot_be_put_back_is_kept(two: Two) -> None:
    with Newcomers(two.path, [b"1", b"2"]).coming(), pytest.raises(fs.ReplacedError) as caught:
        take_away(two)
    assert caught.value.kept == two.draft
    assert two.found() == {"file": b"2", "draft": b"1"}


@needs_exact_renames
def test_a_file_whose_name_was_taken_away_meanwhile_is_kept(two: Two) -> None:
    with Newcomers(two.path, [b"theirs", None]).coming(), pytest.raises(fs.ReplacedError) as caught:
        take_place(two)
    assert caught.value.kept == two.draft
    assert two.found() == {"draft": b"theirs"}


@needs_exact_renames
def test_a_name_that_goes_at_the_last_moment_is_not_taken(two: Two) -> None:
    with Newcomers(two.path, [None]).coming(), pytest.raises(fs.ReplacedError):
        take_place(two)
    assert two.found() == {"draft": b"new"}


@needs_exact_renames
@given(coming=st.lists(st.integers(0, 255).map(lambda n: b"%d" % n), max_size=130))
def test_however_many_files_come_the_last_has_the_name_and_nothing_of_the_first_is_lost(
    tmp_path_factory: pytest.TempPathFactory, coming: list[bytes]
) -> None:
    """One comes before each exchange, in the place of the one before."""
    two = Two(tmp_path_factory.mktemp("two"))
    newcomers = Newcomers(two.path, [*coming])
    if not coming:
        take_place(two)
        assert two.found() == {"file": b"new"}
        return
    with newcomers.coming(), pytest.raises(fs.ReplacedError) as caught:
        take_place(two)
    # Only files that their own program replaced since may be gone.
    left = two.draft.read_bytes()
    assert left in {b"new", *newcomers.came[:-1]}
    assert (caught.value.kept is None) == (left == b"new")
    assert two.path.read_bytes() == newcomers.came[-1]


@needs_exact_renames
def test_the_other_folder_is_synced_before_anything_is_said(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(exact, "sync_folder", lambda folder: synced.append(folder.name))
    with Newcomers(two.path, [b"theirs"]).coming(), pytest.raises(fs.ReplacedError):
        take_place(two)
    assert set(synced) == {"theirs", "ours"}


# ── against a program that saves all the time ────────────────────────────────────────────────


@needs_exact_renames
def test_no_save_of_a_program_that_saves_all_the_time_is_lost(two: Two) -> None:
    """Each of its saves is replaced by its next one, or by us after we had read it, or is there."""
    stop, saves, under, replaced = threading.Event(), [0], b"", 0

    def saving() -> None:
        while not stop.is_set():
            saves.append(saves[-1] + 1)
            saved(two.path, b"%d" % saves[-1])

    thread = threading.Thread(target=saving)
    thread.start()
    try:
        for _ in range(TRIES):
            with two.path.open("rb") as file:
                is_it, seen = fs.same_as(os.fstat(file.fileno())), file.read()
                two.draft.write_bytes(b"ours")
                try:
                    fs.take_place(two.draft, two.path, is_it)
                except fs.ReplacedError:
                    replaced += 1
                else:
                    under = under if seen == b"ours" else seen
    finally:
        stop.set()
        thread.join()
    last = b"%d" % saves[-1]
    assert replaced, "they never met"
    assert two.path.read_bytes() == last or (two.path.read_bytes(), under) == (b"ours", last)
