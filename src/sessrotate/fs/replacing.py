"""New files that replace others: drafted, proved, named, and only then the old ones go.

Promise: whatever fails or crashes, each file is there whole, in its old form or its new one. In
come `Replacement`s; out comes how many of them were wanted.

Rule: one order, each step on the disk before the next:

1. every draft is written and proved, then synced; one that is not wanted after all is removed;
2. the drafts take their names;
3. the old files are removed.

A crash before 3 leaves drafts and both forms of a file: whoever owns them knows which one counts
then, and removes the other when it next begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from sessrotate import fs, platforms
from sessrotate.fs.files import Draft

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]  # the stubs know only systems that have it

if TYPE_CHECKING:
    from concurrent.futures import Future

BATCH: Final = 64 * 1024 * 1024
"""Bytes of files that are best replaced at once: one by one, each waits for the disk alone."""

MOST: Final = 512
"""Files that are replaced at once, however small."""

_OPEN: Final = 32
"""Complete drafts that are open at once, on their way to the disk while the next are written."""

_SPARE: Final = 32
"""Descriptors that a process needs besides: its streams, the session, the pack, a lock, threads."""

_SYNCED: Final = 16
"""Drafts that wait for the disk side by side."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Replacement:
    """A file to be made: `draft` is its name until it is whole, `path` its name from then on.

    `write` fills the draft and proves it: it reads back, or compares, what it needs to be sure
    of. It tells whether the file is wanted. `old` goes once the new one has its name.
    """

    draft: Path
    path: Path
    write: Callable[[Draft], bool]
    old: Path | None = None


def replace_files(files: Sequence[Replacement]) -> int:
    """Make new files and remove the old ones; return how many were wanted.

    Whatever `write` raises goes through; drafts are removed then.
    """
    wanted = write_drafts(files)
    try:
        fs.rename_files({file.draft: file.path for file in wanted})
    except BaseException:
        with suppress(Exception):  # a full disk needs the room
            _remove(file.draft for file in files)
        raise
    _remove(file.old for file in wanted if file.old is not None)
    return len(wanted)


def write_drafts(files: Sequence[Replacement], *, threads: int = 1) -> list[Replacement]:
    """Write the drafts alone, all of them on the disk when this returns; return those wanted.

    With `threads`, so many are written side by side. Fails as `replace_files` does.
    """
    _remove(file.draft for file in files)
    try:
        wanted = [each.file for each in _written(files, threads) if each.is_wanted]
        _remove({file.draft for file in files} - {file.draft for file in wanted})
    except BaseException:
        with suppress(Exception):  # a full disk needs the room
            _remove(file.draft for file in files)
        raise
    return wanted


def batches(
    items: Iterable[Item], size: Callable[[Item], int], limit: int = BATCH, most: int = MOST
) -> Iterator[list[Item]]:
    """Yield items in order, so many at a time that they have `limit` bytes and are `most`.

    `size` tells an item's bytes. One that is larger than the limit is alone.
    """
    batch: list[Item] = []
    total = 0
    for item in items:
        total += size(item)
        if batch and (total > limit or len(batch) == most):
            yield batch
            batch, total = [], size(item)
        batch.append(item)
    if batch:
        yield batch


def _written(files: Sequence[Replacement], threads: int) -> Iterator[_Drafted]:
    """Yield the files whose drafts are on the disk, in order, and what came of each."""
    waiting: list[_Drafted] = []
    most = _most_open()
    with ExitStack() as stack:
        for drafted in _drafted(files, threads):
            stack.push(drafted.draft)
            waiting.append(drafted)
            if len(waiting) >= most:
                yield from _synced(waiting)
                waiting.clear()
        yield from _synced(waiting)


def _most_open() -> int:
    """Return how many drafts may be open at once; fewer where the user has few descriptors.

    With threads, so many are on their way and as many wait to be synced.
    """
    if resource is None:
        return _OPEN
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = _OPEN if limit == resource.RLIM_INFINITY else (limit - _SPARE) // 2
    return max(1, min(_OPEN, few))


def _synced(drafts: Sequence[_Drafted]) -> Iterator[_Drafted]:
    """Wait until drafts are on the disk, and close them.

    They are synced side by side: a journal takes to the disk at once what waits for it together,
    and one after the other each would wait for a commit of its own.
    """
    wanted = [each.draft for each in drafts if each.is_wanted]
    if len(wanted) > 1:
        with platforms.pool(min(len(wanted), _SYNCED)) as pool:
            for done in [pool.submit(draft.sync) for draft in wanted]:
                done.result()
    else:
        for draft in wanted:
            draft.sync()
    for each in drafts:
        each.draft.close()
        yield each


@dataclass(frozen=True, slots=True)
class _Drafted:
    """A draft that is complete, open, and on its way to the disk."""

    file: Replacement
    draft: Draft
    is_wanted: bool


def _drafted(files: Sequence[Replacement], threads: int) -> Iterator[_Drafted]:
    if threads == 1:
        yield from map(_draft, files)
        return
    ahead: deque[Future[_Drafted]] = deque()
    most = _most_open()
    with platforms.pool(threads) as pool:
        try:
            for file in files:
                ahead.append(pool.submit(_draft, file))
                if len(ahead) >= most:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
            for each in ahead:
                if not each.cancelled() and each.exception() is None:
                    each.result().draft.close()


def _draft(file: Replacement) -> _Drafted:
    draft = Draft(file.draft)
    try:
        is_wanted = file.write(draft)
        draft.hasten()
    except BaseException:
        draft.close()
        raise
    return _Drafted(file, draft, is_wanted)


def _remove(paths: Iterable[Path]) -> None:
    for folder, group in groupby(sorted(paths), lambda path: path.parent):
        fs.remove_files(folder, [path.name for path in group])
