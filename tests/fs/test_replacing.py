"""A file that replaces another has its name before the other one goes; each is whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
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

Act = Callable[[Sequence[Replacement]], object]

acts = pytest.mark.parametrize(
    "act",
    [
        pytest.param(replacing.replace_files, id="replace"),
        pytest.param(replacing.write_drafts, id="drafts"),
        pytest.param(partial(replacing.write_drafts, threads=3), id="side by side"),
    ],
)


class Shelf:
    """Files with an old form each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in NAMES:
            (folder / name).write_bytes(name.encode())

    def files(self, unwanted: tuple[str, ...] = ()) -> list[Replacement]:
        def write(name: str, draft: fs.Draft) -> bool:
            draft.append(b"new ")
            draft.append(name.encode())
            return name not in unwanted

        return [
            Replacement(
                draft=self.folder / f"{name}.partial",
                path=self.folder / f"{name}.new",
                write=partial(write, name),
                old=self.folder / name,
            )
            for name in NAMES
        ]

    def check(self) -> None:
        """Fail unless each file is there, and whole in each form that it has."""
        for name in NAMES:
            forms = {f"{name}.new": f"new {name}", name: name}
            there = forms.keys() & self.listing()
            assert there
            for form in there:
                assert (self.folder / form).read_text() == forms[form]

    def listing(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


def test_all_that_is_wanted_takes_the_place_of_the_old(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    assert replacing.replace_files(shelf.files(unwanted=("f2",))) == 4
    assert shelf.listing() == {"f0.new", "f1.new", "f2", "f3.new", "f4.new"}
    shelf.check()


def test_nothing_changes_if_nothing_is_wanted(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    assert replacing.replace_files(shelf.files(unwanted=tuple(NAMES))) == 0
    assert shelf.listing() == set(NAMES)


@pytest.mark.parametrize("threads", [1, 3])
def test_drafts_alone_take_no_place(tmp_path: Path, threads: int) -> None:
    shelf = Shelf(tmp_path)
    files = shelf.files(unwanted=("f2",))
    wanted = replacing.write_drafts(files, threads=threads)
    assert wanted == [files[0], files[1], files[3], files[4]]
    drafts = {f"{name}.partial" for name in NAMES if name != "f2"}
    assert shelf.listing() == {*NAMES, *drafts}
    assert {(tmp_path / name).read_bytes()[:4] for name in drafts} == {b"new "}


@acts
@pytest.mark.parametrize("lasting", [False, True])
def test_whatever_fails_each_file_is_there(tmp_path: Path, act: Act, lasting: bool) -> None:
    for at in count(1):
        (tmp_path / str(at)).mkdir()
        shelf = Shelf(tmp_path / str(at))
        full = Faults(at, lambda: OSError(errno.ENOSPC, "full"), lasting=lasting)
        with full.installed(), suppress(OSError):
            act(shelf.files())
        shelf.check()
        if not full.failed:
            break
        if not lasting and set(NAMES) <= shelf.listing():  # it could clean up after itself
            drafts = {name for name in shelf.listing() if name.endswith(".partial")}
            assert full.failed == "unlink" or not drafts


@acts
def test_at_every_moment_each_file_is_there(tmp_path: Path, act: Act) -> None:
    shelf = Shelf(tmp_path)
    with Before(shelf.check).installed():
        act(shelf.files())


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
    replacing.replace_files(shelf.files())
    last_draft = max(steps.index(("fsync", f"{name}.partial")) for name in NAMES)
    first_name = min(steps.index(("rename", f"{name}.partial")) for name in NAMES)
    named = max(steps.index(("rename", f"{name}.partial")) for name in NAMES)
    gone = min(steps.index(("unlink", name)) for name in NAMES)
    folder = [at for at, step in enumerate(steps) if step == ("fsync", tmp_path.name)]
    assert last_draft < first_name
    assert any(named < at < gone for at in folder)


@acts
def test_a_file_that_cannot_be_proved_stops_all_and_leaves_nothing(
    tmp_path: Path, act: Act
) -> None:
    def write(name: str, draft: fs.Draft) -> bool:
        draft.append(b"half")
        if name == "f1":
            raise DamagedError("not what it was")
        return True

    files = [
        Replacement(tmp_path / f"{name}.partial", tmp_path / name, partial(write, name))
        for name in NAMES
    ]
    with pytest.raises(DamagedError, match="not what it was"):
        act(files)
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
