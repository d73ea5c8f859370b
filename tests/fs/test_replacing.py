"""A file that replaces another counts when the record says so; until then the other one does."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from functools import partial
from itertools import count, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import fs
from sessrotate.errors import DamagedError
from sessrotate.fs import replacing
from sessrotate.fs.replacing import Replacement
from support.crash.changes import Before, Faults

NAMES = [f"f{number}" for number in range(5)]

threads = pytest.mark.parametrize("threads", [1, 3])


class Shelf:
    """Files with an old form each, and a record of those whose new form counts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in NAMES:
            (folder / name).write_bytes(name.encode())
        (folder / "record").write_bytes(b"")

    def replace(self, threads: int, unwanted: tuple[str, ...] = ()) -> list[str]:
        def write(name: str, draft: fs.Draft) -> str | None:
            draft.append(b"new ")
            draft.append(name.encode())
            return None if name in unwanted else name

        files = [
            Replacement(
                draft=self.folder / f"{name}.partial",
                path=self.folder / f"{name}.new",
                write=partial(write, name),
                old=self.folder / name,
            )
            for name in NAMES
        ]
        return replacing.replace_files(files, self.record, threads=threads)

    def record(self, names: list[str]) -> None:
        fs.create_file_at_once(self.folder / "record", " ".join(names).encode())

    def recorded(self) -> list[str]:
        return (self.folder / "record").read_bytes().decode().split()

    def check(self) -> None:
        """Fail unless each file is whole in the form that counts."""
        for name in NAMES:
            is_new = name in self.recorded()
            path = self.folder / (f"{name}.new" if is_new else name)
            assert path.read_bytes() == (b"new " if is_new else b"") + name.encode()

    def listing(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()} - {"record"}


@threads
def test_all_that_is_wanted_takes_the_place_of_the_old(tmp_path: Path, threads: int) -> None:
    shelf = Shelf(tmp_path)
    assert shelf.replace(threads, unwanted=("f2",)) == ["f0", "f1", "f3", "f4"]
    assert shelf.listing() == {"f0.new", "f1.new", "f2", "f3.new", "f4.new"}
    shelf.check()


def test_nothing_is_recorded_if_nothing_is_wanted(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    (tmp_path / "record").unlink()
    assert shelf.replace(1, unwanted=tuple(NAMES)) == []
    assert shelf.listing() == set(NAMES)


@threads
@pytest.mark.parametrize("lasting", [False, True])
def test_whatever_fails_each_file_is_there_in_the_form_that_counts(
    tmp_path: Path, threads: int, lasting: bool
) -> None:
    for at in count(1):
        (tmp_path / str(at)).mkdir()
        shelf = Shelf(tmp_path / str(at))
        full = Faults(at, lambda: OSError(errno.ENOSPC, "full"), lasting=lasting)
        with full.installed(), suppress(OSError):
            shelf.replace(threads)
        shelf.check()
        if not full.failed:
            break
        if not lasting and not shelf.recorded():  # it could clean up after itself
            drafts = {name for name in shelf.listing() if name.endswith(".partial")}
            assert full.failed == "unlink" or drafts <= {"record.partial"}


@threads
def test_at_every_moment_each_file_is_there_in_the_form_that_counts(
    tmp_path: Path, threads: int
) -> None:
    shelf = Shelf(tmp_path)
    with Before(shelf.check).installed():
        shelf.replace(threads)
    assert shelf.recorded() == NAMES


def test_each_step_is_on_the_disk_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, steps = Shelf(tmp_path), []

    def noted(verb: str) -> None:
        real = getattr(os, verb)

        def call(path: int | Path, *rest: object) -> object:
            target = path if not isinstance(path, int) else Path(f"/proc/self/fd/{path}").readlink()
            steps.append((verb, target.name))
            return real(path, *rest)

        monkeypatch.setattr(os, verb, call)

    for verb in ("fsync", "rename", "unlink"):
        noted(verb)
    shelf.replace(1)
    last_draft = max(steps.index(("fsync", f"{name}.partial")) for name in NAMES)
    first_name = min(steps.index(("rename", f"{name}.partial")) for name in NAMES)
    named = max(steps.index(("rename", f"{name}.partial")) for name in NAMES)
    recorded = steps.index(("rename", "record.partial"))
    gone = min(steps.index(("unlink", name)) for name in NAMES)
    folder = [at for at, step in enumerate(steps) if step == ("fsync", tmp_path.name)]
    assert last_draft < first_name
    assert any(named < at < recorded for at in folder)
    assert any(recorded < at < gone for at in folder)


@threads
def test_a_file_that_cannot_be_proved_stops_all_and_leaves_nothing(
    tmp_path: Path, threads: int
) -> None:
    def write(name: str, draft: fs.Draft) -> str:
        draft.append(b"half")
        if name == "f1":
            raise DamagedError("not what it was")
        return name

    files = [
        Replacement(tmp_path / f"{name}.partial", tmp_path / name, partial(write, name))
        for name in NAMES
    ]
    with pytest.raises(DamagedError, match="not what it was"):
        replacing.replace_files(files, threads=threads)
    assert list(tmp_path.iterdir()) == []


@given(sizes=st.lists(st.integers(0, 20)), limit=st.integers(0, 40), most=st.integers(1, 5))
def test_batches_keep_the_order_and_are_as_large_as_they_may_be(
    sizes: list[int], limit: int, most: int
) -> None:
    found = list(replacing.batches(sizes, lambda size: size, limit, most))
    assert [size for batch in found for size in batch] == sizes
    for batch in found:
        assert len(batch) == 1 or (sum(batch) <= limit and len(batch) <= most)
    for batch, following in pairwise(found):
        assert len(batch) == most or sum(batch) + following[0] > limit
