"""Rollouts of Codex that nobody uses, compressed as their client reads them, and made plain again.

Promise: whatever crashes, one whole file of the session is under a name that its client takes, and
all that a client wrote is in it. In come rollouts as a `Place`, whose live file is the plain form.

Rule: one order, each step on the disk before the next. The client's own lock for such work is held
throughout; a writer's lock, and a lease where there are any, only while names change.

1. the new form is drafted under a name that no client takes, and proved by reading it back;
2. it gets its name, if the old one is still as it was read. Now both are there with one content;
3. the old form is moved out of its name, so that nobody else's file goes, and then removed.

A crash leaves a draft, both forms, or the new one and the old one out of its name. The next command
makes drafts anew, and of two files of a session removes the one that the other begins with. The old
form gets its name back only if it has more, which a client wrote that had found it before.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Final

from sessrotate import clients, find, fs, names, platforms, units
from sessrotate.archive.place import Place
from sessrotate.clients.common import real
from sessrotate.errors import (
    DamagedError,
    InUseError,
    RefusedError,
    StorageError,
    WrongUsageError,
    printable,
    storage,
)
from sessrotate.in_place import obstacles
from sessrotate.in_place.obstacles import Need, of_another, read_only
from sessrotate.model import Span
from sessrotate.retention import rollout_swap
from sessrotate.retention.bring_back import Away
from sessrotate.retention.rollout_swap import Second
from sessrotate.segments import compressed
from sessrotate.system import disk_use, in_use, locks, zstd
from sessrotate.system.digest import Fingerprint
from sessrotate.system.source import Source

WORTH: Final = 1 << 16
"""Bytes that compressing a rollout gains at least, and a tenth of them, to be worth it.

Most rollouts are of less than a megabyte, and to compress one takes some tens of milliseconds.
"""

SPARE: Final = 4 << 20
"""Bytes of the disk that are left to clients, who append to their sessions meanwhile."""

REST: Final = 30 * units.DAY
"""Seconds for which a rollout stays plain that a resume, or its owner, made plain again."""

_IN_SIGHT: Final = 128 * 1024
"""Bytes at the beginning of which each part can be read without what follows: lists look no
further than 64 KiB of what is compressed.
"""

_PART: Final = 16 * 1024

_READ: Final = 1 << 20


def place_of(path: Path) -> Place:
    """Return the place of a rollout, by the path of either form."""
    folder, name = real(path.parent), clients.cold().plain(path).name
    return Place(folder, "", clients.cold().FORMAT.session_of(name), folder / name)


def meant(path: Path) -> Place:
    """Return the place of a session that is made smaller, or brought back, of any client.

    Raises RefusedError as `find.live_of` does.
    """
    return place_of(path) if clients.cold().is_session(path) else find.live_of(path)


def is_one(where: Place) -> bool:
    """Tell whether a place is that of a rollout."""
    return clients.cold().is_named_so(where.live.name)


def measured(where: Place) -> int:
    """Return how many bytes of the disk a rollout takes, in whatever form."""
    return disk_use.of(where.live, clients.cold().compressed(where.live))


def measured_all() -> int:
    """Return how many bytes of the disk all that the client keeps sessions in takes."""
    return disk_use.of(*map(real, clients.cold().folders()))


def every() -> Iterator[Place]:
    """Yield the places of all rollouts."""
    return map(place_of, clients.cold().FORMAT.sessions())


def compressed_ones() -> Iterator[Place]:
    """Yield the places of those that are compressed."""
    return (each for each in every() if clients.cold().form(each.live) != each.live)


# ── which ────────────────────────────────────────────────────────────────────────────────────


def wanted(
    after: float, now: float, least: int = WORTH, *, largest_first: bool = False
) -> list[Place]:
    """Return the rollouts to compress: those not used for `after` seconds at `now` (since 1970).

    They have more than `least` bytes. Those that their user has archived come first, then those
    that need least room, or the largest.
    """
    found = []
    for path in clients.cold().FORMAT.sessions():
        with suppress(OSError):
            status, is_plain = path.lstat(), path == clients.cold().plain(path)
            unused = max(0.0, now - status.st_mtime)  # a clock may have been ahead
            if is_plain and unused >= after and status.st_size > least:
                size = -status.st_size if largest_first else status.st_size
                found.append((not clients.cold().is_archived(path), size, path))
    return [place_of(path) for *_, path in sorted(found)]


def doubled() -> list[Place]:
    """Return the rollouts of which there is more than the file that their client takes."""
    found = dict.fromkeys(map(place_of, clients.cold().seconds()))
    return [each for each in found if os.path.lexists(clients.cold().form(each.live))]


def rested(found: Sequence[Place], now: float, plain_since: Mapping[str, float]) -> list[Place]:
    """Return those that may be compressed by themselves: not those made plain within 30 days.

    `plain_since` says by id when sessions were compressed before, or made plain, in seconds since
    1970. A resume makes one plain; from then on it was used.
    """
    return [
        each
        for each in found
        if (at := plain_since.get(each.session)) is None
        or now - max(at, each.live.stat().st_mtime) >= REST
    ]


# ── doing ────────────────────────────────────────────────────────────────────────────────────


def compress(
    where: Place, progress: Callable[[int], None] = lambda _done: None, *, least: int = 0
) -> int:
    """Compress a rollout; return how many bytes its client's folder has less, 0 if it stays plain.

    It stays plain where less than `least` bytes are gained, or than a tenth. `progress` is given
    how many bytes are done. Raises InUseError if somebody writes to it, or it was changed
    meanwhile; RefusedError if it cannot be replaced safely; StorageError as the system reports.
    """
    new = clients.cold().compressed(where.live)
    with ExitStack() as stack:
        stack.enter_context(storage(_DOING))
        stack.enter_context(rollout_swap.maintained(where.live.parent))
        dropped = _as_one(where)
        if not os.path.lexists(where.live):
            raise InUseError(f"{printable(where.live.name)} has just been compressed, or moved.")
        source = stack.enter_context(Source.itself(where.live))
        was = check(source)
        with rollout_swap.drafted(new) as draft:
            need = partial(_need, draft)
            with obstacles.told("compress the session", where.config, need), storage(_DOING):
                _compressed(source, was.st_size, draft, progress)
            gained = was.st_size - draft.size
            if gained < max(least, was.st_size // 10, 1):
                return dropped
            rollout_swap.replace(where.live, source, was, draft, new)
    return dropped + gained


_DOING: Final = "compress the session"


def _need(draft: fs.Draft) -> Need:
    """Return what has to be free at least: as far as the draft has come, and what is left alone."""
    return Need(draft.size + SPARE, "the compressed session, and what clients write meanwhile")


def decompress(where: Place, progress: Callable[[int], None] = lambda _done: None) -> int:
    """Make a rollout plain again, as it was; return how many bytes that is.

    Raises as `compress` does; DamagedError if it cannot be decompressed, or was changed.
    """
    old = clients.cold().compressed(where.live)
    with ExitStack() as stack:
        stack.enter_context(storage("restore the session"))
        stack.enter_context(rollout_swap.maintained(where.live.parent))
        _as_one(where)
        if os.path.lexists(where.live):
            return where.live.stat().st_size
        source = stack.enter_context(Source.itself(old))
        was = check(source)
        _check_any(source)
        with rollout_swap.drafted(where.live) as draft:
            found = Fingerprint()
            for piece in _unpacked(source.fd, source.path):
                draft.append(piece)
                found.update(piece)
                progress(draft.size)
            size, written = draft.size, Fingerprint()
            for start in range(0, size, _READ):
                written.update(draft.read_at(start, _READ))
            _prove(found, written)
            rollout_swap.replace(old, source, was, draft, where.live)
    return size


def wait_for_client() -> None:
    """Wait a moment until its client does no work on rollouts; raise InUseError if it goes on."""
    with storage(_DOING), rollout_swap.maintained():
        pass


def packed(where: Place) -> Away | None:
    """Return what a compressed rollout holds, and takes; None if it is plain. Change nothing.

    What it says that it holds is believed. Raises RefusedError as `decompress` does, DamagedError
    if it says nothing, and cannot be decompressed; RefusedError if it is plain, and lacks what the
    compressed one beside it has, as a power loss during a resume leaves it.
    """
    path = clients.cold().form(where.live)
    if path == where.live:
        with storage("read the session"):
            seconds(where)
        return None
    size = path.stat().st_size
    with storage("read the session"), Source.itself(path) as source:
        check(source)
        _check_any(source)
        told = zstd.content_size(source.fd)
        plain = sum(map(len, _unpacked(source.fd, source.path))) if told is None else told
    return Away(plain, size, plain)


def verify(path: Path, progress: Callable[[int], None] = lambda _done: None) -> bool:
    """Read all that a compressed rollout holds; tell whether its checksum proves that unchanged.

    `progress` is given how many bytes are read. Raises DamagedError if it cannot be decompressed,
    or its checksum, where it has one, is another.
    """
    done = 0
    with storage("read the session"), Source.itself(path) as source:
        _check_any(source)
        for piece in _unpacked(source.fd, path):
            done += len(piece)
            progress(done)
        return zstd.has_checksum(source.fd)


def _check_any(source: Source) -> None:
    """Raise DamagedError if a compressed rollout is empty, as a power loss may leave it."""
    with compressed.named(source.path):
        if not os.fstat(source.fd).st_size:
            raise DamagedError("it is empty")


def leave_one(where: Place) -> int:
    """Leave one file of a rollout, the one that has all; return how many bytes went.

    0 if its client, which unpacks it just now, was faster. Raises as `seconds` does.
    """
    with storage(_DOING), rollout_swap.maintained(where.live.parent):
        return _as_one(where)


def remove_left(path: Path) -> int:
    """Remove what a kill left beside rollouts; return its bytes. InUseError if it is open."""
    with storage("remove what was left"), rollout_swap.maintained(), Source.itself(path) as source:
        if locks.write_lease(source.fd) == "busy" or any(in_use.writers(source.identity())):
            raise InUseError(f"{printable(path.name)} is open in another process: try again.")
        size = source.size()
        fs.remove_files(path.parent, [path.name])
    return size


def check(source: Source) -> os.stat_result:
    """Return the status of a rollout's form, and raise RefusedError if it cannot be replaced."""
    path, status = source.path, os.fstat(source.fd)
    name = printable(str(path))
    reasons = (
        (status.st_nlink > 1, "has another name (a hard link): remove that first"),
        (bool(read_only(path.parent)), "is in a read-only folder: make that writable"),
        (platforms.fcntl is None, "cannot be locked on this system as its client locks it"),
    )
    if told := of_another(path, status.st_uid) or obstacles.fixed(source.fd, path):
        raise RefusedError(told)
    for is_so, reason in reasons:
        if is_so:
            raise RefusedError(f"{name} {reason}.")
    idle = time.time() - status.st_mtime
    if idle < units.DAY and clients.cold().is_written_to_blindly(time.time()):
        raise RefusedError(
            f"{name} was written to within the last day, and a Codex before 0.147, which holds no "
            "lock, was used in the last 90 days: try again tomorrow."
        )
    return status


def _as_one(where: Place) -> int:
    """Leave one file of a rollout, if a crash has left more; return how many bytes went.

    Raises as `seconds` does; InUseError if a client was faster.
    """
    rollout_swap.forget_drafts(where.live, clients.cold().compressed(where.live))
    return sum(rollout_swap.leave(where.live, second) for second in seconds(where))


def seconds(where: Place) -> list[Second]:
    """Return what is there of a rollout besides the file that its client takes, if that is there.

    Reads all of them. Raises RefusedError of two of which neither begins with all of the other, and
    where the client takes the shorter one: then both stay.
    """
    taken, found = clients.cold().form(where.live), []
    # A client may unpack the compressed one just now: then it takes the plain one.
    others = [
        each for each in clients.cold().all_names(where.live) if each not in {taken, where.live}
    ]
    for path in filter(os.path.lexists, others if os.path.lexists(taken) else ()):
        try:
            with Source.itself(taken) as one, Source.itself(path) as other:
                status = os.fstat(other.fd)
                more = _more(_content(one), _content(other))
        except WrongUsageError:  # gone: its client was faster
            continue
        except DamagedError:
            if taken != where.live:
                raise
            raise RefusedError(
                f"{printable(str(path))} is damaged, and its client uses the plain file beside it: "
                "move the damaged one away."
            ) from None
        is_longer = more is not None and more < 0
        may_be_longer = taken != where.live and path == clients.cold().aside(where.live)
        if more is None or (is_longer and not may_be_longer):
            raise RefusedError(
                f"{printable(str(path))} has content that the file beside it lacks, and its client "
                "uses that file: compare the two, and move one away."
            )
        found.append(Second(path, status, taken if is_longer else path))
    return found


def _content(source: Source) -> Iterator[memoryview]:
    if source.path.suffix != names.CODEC_SUFFIX["zstd"]:
        return map(memoryview, source.pieces(Span(0, source.size())))
    return map(memoryview, _unpacked(source.fd, source.path))


def _more(one: Iterator[memoryview], other: Iterator[memoryview]) -> int | None:
    """Return how many bytes the first has more than the other, None where neither begins so."""
    a = b = memoryview(b"")
    while (a := a or next(one, a)) and (b := b or next(other, b)):
        both = min(len(a), len(b))
        if a[:both] != b[:both]:
            return None
        a, b = a[both:], b[both:]
    return len(a) + sum(map(len, one)) - len(b) - sum(map(len, other))


def _compressed(
    source: Source, size: int, draft: fs.Draft, progress: Callable[[int], None]
) -> None:
    """Write the first `size` bytes of a rollout compressed, and prove that they read back.

    Raises OSError of a full disk before it is full: clients go on writing.
    """
    found, frame = Fingerprint(), zstd.compressor(size, window=clients.cold().WINDOW)
    for start in range(0, min(size, _IN_SIGHT), _PART):
        part = source.read_at(start, min(_PART, size - start))
        found.update(part)
        draft.append(frame.compress(part, frame.FLUSH_BLOCK))
    _leave_room(source.path.parent)
    for start in range(_IN_SIGHT, size, _READ):
        span = Span(start, min(size, start + _READ))
        for piece in source.pieces(span):
            found.update(piece)
            draft.append(frame.compress(piece))
        progress(span.end)
        _leave_room(source.path.parent)
    draft.append(frame.flush())
    del frame  # or there would be two windows in memory
    back = Fingerprint()
    for piece in _unpacked(draft.fd, clients.cold().compressed(source.path)):
        back.update(piece)
    _prove(found, back)


def _leave_room(folder: Path) -> None:
    free = fs.free_bytes(folder)
    if free is not None and free < SPARE:
        raise OSError(errno.ENOSPC, "The remaining disk space is reserved for clients that write")


def _unpacked(fd: int, path: Path) -> Iterator[bytes]:
    """Yield what a compressed file holds. Raises DamagedError if it cannot be read."""
    with FileIO(fd, "rb", closefd=False) as stream, compressed.named(path):
        stream.seek(0)
        yield from zstd.decompressed(stream.read, _READ)


def _prove(found: Fingerprint, back: Fingerprint) -> None:
    if found.digest != back.digest:
        raise StorageError("The file does not read back as it was written: the disk is failing.")
