"""A function over many sessions, in several processes where that is faster.

Promise: the results are those of a loop, in its order, and come as they are found. Workers are
forks that take the next items from this process, write results to a pipe, and touch nothing else.
One that is far ahead waits, so that memory is bounded; if one fails, for whatever reason, this
process computes what is missing.
"""

from __future__ import annotations

import gc
import io
import os
import pickle
import select
import signal
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from sessrotate import platforms

if TYPE_CHECKING:
    Given = TypeVar("Given")
    Result = TypeVar("Result")
    Work = Callable[[int], Iterable[Any]]

AHEAD: Final = 2 * 1024 * 1024
"""Bytes of results that are held for a worker whose turn has not come."""

BATCH: Final = 64
_SOON: Final = 0.02
"""Results are sent when there are so many, or when the last were sent so many seconds ago.

What results that are sent together share is sent once.
"""

READ: Final = 256 * 1024
_FRAME: Final = struct.Struct("<IBI")
"""Before results: the number of the item, whether it is done, and how many bytes follow."""

_NUMBER: Final = struct.Struct("<I")


def mapped(
    function: Callable[[Given], Result], items: list[Given], worth_it: int
) -> Iterator[Result]:
    """Yield `function(item)` for each item, in order, and take the item off the list.

    With `worth_it` items or more, another process does every other 64. A fork costs 0.2 s of
    processor time with 30 MiB in memory, and each result 20 µs. All else is as for `streamed`.
    """
    if len(items) < worth_it:
        return map(function, taken(items))
    batches = [items[at : at + BATCH] for at in range(0, len(items), BATCH)]
    items.clear()
    return streamed(lambda batch: map(function, batch), batches, 1)


def streamed(
    function: Callable[[Given], Iterable[Result]], items: list[Given], workers: int
) -> Iterator[Result]:
    """Yield the results of `function(item)` for each item, in order, as soon as they are known.

    One worker does every other item, and this process the rest; several do all of them. Without
    `workers`, or where the system cannot fork or has one processor, or beside another thread, this
    process does it all. Raises what the function raises. Results are pickled; whatever else the
    function does to objects is lost.

    Each item is taken off the list: with ten thousand sessions, an item and what became of it
    together would be a fifth of the memory.
    """
    if not workers or len(items) < 2 or not platforms.can_fork():  # noqa: PLR2004 - two share the work
        for item in taken(items):
            yield from function(item)
        return
    left = dict(enumerate(taken(items)))
    with _Crew(lambda number: function(left[number]), len(left), workers) as crew:
        for number in range(len(left)):
            yield from crew.results(number)
            del left[number]


def taken(items: list[Given]) -> Iterator[Given]:
    """Yield the items, the first first, and let go of each."""
    items.reverse()  # the end of a list is taken off it at once
    while items:
        yield items.pop()


class Worker:
    """A process, and what it has sent: frames of pickled results, with their items' numbers."""

    def __init__(self, work: Work) -> None:
        read, results = os.pipe()
        orders, write = os.pipe()
        self.process: Final = os.fork()
        if not self.process:
            # Or neither process would learn that the other has gone.
            os.close(read)
            os.close(write)
            _work(work, orders, results)
        os.close(results)
        os.close(orders)
        self.fd: Final = read
        self._orders: Final = write
        self._raw = bytearray()
        self.frames: deque[tuple[int, bool, bytes]] = deque()
        self.held = 0
        self.is_gone = False

    def order(self, number: int) -> None:
        """Have it do an item, behind those that it was given before."""
        try:
            os.write(self._orders, _NUMBER.pack(number))
        except OSError:
            self.is_gone = True

    def receive(self) -> int:
        """Take what it has sent; return how many items it has done with that."""
        data = os.read(self.fd, READ)
        self.is_gone = self.is_gone or not data
        self._raw += data
        done = 0
        while len(self._raw) >= _FRAME.size:
            number, is_done, size = _FRAME.unpack_from(self._raw)
            end = _FRAME.size + size
            if len(self._raw) < end:
                break
            self.frames.append((number, bool(is_done), bytes(self._raw[_FRAME.size : end])))
            self.held += size
            del self._raw[:end]
            done += is_done
        return done

    def leave(self) -> None:
        """Give up on it."""
        self.is_gone = True
        self.frames.clear()

    def end(self) -> None:
        """End it, whatever it does."""
        os.close(self.fd)
        os.close(self._orders)
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


class _Crew:
    """Workers, and who does which item."""

    def __init__(self, work: Work, count: int, workers: int) -> None:
        self._work: Final = work
        self._count: Final = count
        self._next = 1 if workers == 1 else 0
        self._owner: dict[int, Worker] = {}
        self._workers: Final[list[Worker]] = []
        self._wanted: Final = workers

    def __enter__(self) -> Self:
        try:
            for _ in range(self._wanted):
                self._workers.append(Worker(self._work))
        except OSError:  # no more processes: those that there are do it
            pass
        except BaseException:
            self.__exit__()
            raise
        for _ in range(2):  # one to do, and one to go on with
            for worker in self._workers:
                self._give(worker)
        return self

    def __exit__(self, *_: object) -> None:
        while self._workers:
            self._workers.pop().end()

    def _give(self, worker: Worker) -> None:
        if self._next < self._count and not worker.is_gone:
            self._owner[self._next] = worker
            worker.order(self._next)
            self._next += 2 if self._wanted == 1 else 1

    def results(self, number: int) -> Iterator[Any]:
        """Yield the results of an item; all before it must have been taken."""
        self._next = max(self._next, number + 1)  # nobody is left to do it
        worker = self._owner.pop(number, None)
        given, is_done = 0, worker is None
        while worker is not None and not is_done:
            if not worker.frames:
                if worker.is_gone:
                    break
                self._wait(worker)
                continue
            _, is_last, data = worker.frames.popleft()
            worker.held -= len(data)
            try:
                results = pickle.loads(data)  # noqa: S301 - our own fork wrote it
            except Exception:  # noqa: BLE001 - it sent what cannot be read: done here then
                worker.leave()
                break
            is_done = is_last
            for result in results:
                given += 1
                yield result
        if worker is None or not is_done:
            yield from islice(self._work(number), given, None)

    def _wait(self, wanted: Worker) -> None:
        """Wait until a worker has sent something; take what others send too, up to a bound."""
        open_ = [
            each
            for each in self._workers
            if not each.is_gone and (each is wanted or each.held < AHEAD)
        ]
        ready, _, _ = select.select([each.fd for each in open_], [], [])
        for each in open_:
            if each.fd in ready:
                for _ in range(each.receive()):
                    self._give(each)


# ── in the other process ─────────────────────────────────────────────────────────────────────


def _work(work: Work, orders: int, results: int) -> None:
    """Do what is ordered until nobody reads any more, then end, without a word."""
    try:
        gc.freeze()  # looking for garbage among what both processes share would copy all of it
        # Ctrl-C reaches all processes, and only one is to answer it.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        while order := os.read(orders, _NUMBER.size):
            _send_all(work, _NUMBER.unpack(order)[0], results)
    finally:
        os._exit(0)


def _send_all(work: Work, number: int, results: int) -> None:
    held: list[Any] = []
    sent = 0.0
    for result in work(number):
        held.append(result)
        now = time.monotonic()
        if len(held) >= BATCH or now - sent > _SOON:
            _send(results, number, held, is_done=False)
            held, sent = [], now
    _send(results, number, held, is_done=True)


def _send(results: int, number: int, held: list[Any], *, is_done: bool) -> None:
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _REDUCED
    pickler.dump(held)
    data = stream.getvalue()
    whole = memoryview(_FRAME.pack(number, is_done, len(data)) + data)
    while whole:
        whole = whole[os.write(results, whole) :]


_REDUCED: Final = {type(Path()): lambda path: (Path, (str(path),))}
"""A path goes as text: made of its parts, each is looked at again."""
