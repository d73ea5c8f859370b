"""What a client wrote to its session files, call by call, as the system saw it: strace tells.

It promises the bytes that each file would have if nobody but the client had ever touched it, or
says that the recording cannot tell them.

Rule: nothing is read from the files themselves. What is not understood, came cut off, or was
changed by two threads at once is an error, never a guess. Of appends at once, which the system does
one after the other, any order is one that the file may have.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Final

from support import tracing

if TYPE_CHECKING:
    from support.real_clients.client import Client

_CALLS: Final = (
    *("execve", "clone", "clone3", "fork", "vfork", "open", "openat", "creat", "close"),
    *("dup", "dup2", "dup3", "fcntl", "fstat", "statx", "newfstatat"),
    *("write", "pwrite64", "writev", "pwritev", "ftruncate", "truncate"),
    *("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat"),
)
"""All by which the clients make, hold, change and drop session files. If one of them took another
way, bytes would be missing here, and no history would be equal to what is left."""

_OPTIONS: Final = (
    # The client stays the child of its starter, the tracer goes into a session of its own: it ends
    # when the last process does that it follows, and what kills the client's group spares it.
    *("-f", "-qq", "-DDD", "-v", "-xx", "-s", "67108864", "-e", "signal=none"),
    *("-e", f"trace={','.join(f'?{name}' for name in _CALLS)}"),
)

_TRIMMED: Final = re.compile(r"\.jsonl\.compact\.tmp\.|\.jsonl\.replaced$|/resume-head\.jsonl$")
"""Names of files by which a client trims its own session (2.1.287 and later)."""

_QUICK: Final = "--seccomp-bpf"
"""Stops a process at these calls only, where strace and the system can do it."""


def unrecorded() -> str | None:
    """Return why nothing can be recorded here, None if it can."""
    return tracing.hindrance(*_OPTIONS)


class UnclearError(Exception):
    """The recording does not tell what a file holds; the message says why."""


# ── what a file holds ────────────────────────────────────────────────────────────────────────


@dataclass
class Written:
    """A file, made of what the client did to it."""

    data: bytearray = field(default_factory=bytearray)
    appends: int = 0
    edits: int = 0
    """How often the client took something back, or wrote elsewhere than at the end."""
    amount: int = 0
    """All bytes that were written, those that were taken back too."""
    writing: int = 0
    """How many calls are changing it at this moment."""
    together: list[tuple[int, list[bytes]]] = field(default_factory=list)
    """Where appends lie of which the order is unknown, and what they are."""
    is_together: bool = False
    """Whether the last of these are not all done."""
    is_appending: bool = False
    """Whether what changes it at this moment are appends."""

    def like(self, found: bytes) -> bytes:
        """Return what it holds; where several orders are possible, in that of `found`."""
        data = bytearray(self.data)
        for start, pieces in self.together:
            there = found[start : start + sum(map(len, pieces))]
            if there in {b"".join(order) for order in permutations(pieces)}:
                data[start : start + len(there)] = there
        return bytes(data)

    def begin(self, is_append: bool) -> None:
        """Begin to change it: by an append, or in another way."""
        self.writing += 1
        if self.writing > 1 and not (is_append and self.is_appending):
            raise UnclearError("two threads write to one file at once")
        if self.writing > 1 and not self.is_together:
            self.together.append((len(self.data), []))
            self.is_together = True
        self.is_appending = is_append

    def end(self) -> None:
        """Be done with it."""
        self.writing -= 1
        self.is_together = self.is_together and self.writing > 0


@dataclass(eq=False)
class _Open:
    """An open file: one position for all descriptors that were made of it."""

    file: Written
    appends: bool
    at: int | None
    """Where the next write goes, if it does not append; None when that is not known."""
    size: int | None
    """How long the file was when the client last looked: the one that it has open, which by then
    may be the old file of a rotation, or a new one that is shorter than the history."""

    def append(self, data: bytes) -> None:
        self.file.data += data
        if self.file.is_together:
            self.file.together[-1][1].append(data)
        self.file.appends += 1
        self.file.amount += len(data)
        if self.size is not None:
            self.size += len(data)

    def cut(self, length: int) -> None:
        """Shorten the file. What it ends with is what the history ends with."""
        self.file.edits += 1
        end = self._from_end(length)
        del self.file.data[end:]
        self.size = length

    def overwrite(self, at: int, data: bytes) -> None:
        """Write at a place in the file."""
        if self.size == at:
            self.append(data)
            return
        start = self._from_end(at)
        self.file.edits += 1
        self.file.amount += len(data)
        self.file.data[start : start + len(data)] = data
        assert self.size is not None
        self.size = max(self.size, at + len(data))

    def _from_end(self, at: int) -> int:
        if self.size is None:
            raise UnclearError("the client edits a file that it has not looked at before")
        place = len(self.file.data) - (self.size - at)
        if not 0 <= place <= len(self.file.data):
            raise UnclearError("the client edits more than what was written since the recording")
        if any(place < start + sum(map(len, told)) for start, told in self.file.together):
            raise UnclearError("the client edits what was written in an unknown order")
        return place


# ── what happened ────────────────────────────────────────────────────────────────────────────


@dataclass(eq=False)
class _Process:
    """What threads share."""

    program: str = ""
    descriptors: dict[int, _Open] = field(default_factory=dict)


@dataclass
class _Call:
    """A call that has begun."""

    name: str
    begun: str
    """Its arguments as far as they were known then."""
    process: _Process
    opened: _Open | None = None
    """What its first argument is a descriptor of."""


_LINE: Final = re.compile(
    r"(?P<pid>\d+) +(?:"
    r"(?P<end>\+\+\+ (?:exited|killed|superseded).*)"
    r"|(?P<none>\?\?\?\(.*)"  # killed before it called anything
    r"|<\.\.\. (?P<resumed>\w+) resumed>(?P<rest>.*)"
    r"|(?P<name>\w+)\((?P<all>.*))"
)
_UNFINISHED: Final = " <unfinished ...>"
_RESULT: Final = re.compile(r"(.*)\) += (-?\d+|0x[0-9a-f]+|\?)(?: [^\"]*)?$")
_TEXT: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_SIZE: Final = re.compile(r"stx?_size=(\d+)")

_NEW: Final = {"clone", "clone3", "fork", "vfork"}
_COPIES: Final = {"dup", "dup2", "dup3"}
_WRITES: Final = {"write", "pwrite64", "writev", "pwritev"}
_CHANGES: Final = {*_WRITES, "ftruncate"}
_RENAMES: Final = {
    *("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "truncate")
}
"""What is done to a name; no version does it to a session file."""


def recording(trace: Path) -> tuple[str, ...]:
    """Return what a program is run by to have it recorded; one at a time for each trace."""
    quick = [] if tracing.hindrance(*_OPTIONS, _QUICK) else [_QUICK]
    return ("strace", *_OPTIONS, *quick, "-A", "-o", str(trace))


def recorded(client: Client, name: str = "trace") -> Recording:
    """Have everything recorded, in a file of that name, that a client runs from now on."""
    trace = client.home / name
    client.command = (*recording(trace), *client.command)
    return Recording(trace, client.project)


class Recording:
    """What one client, in all its processes, wrote to the files of its project."""

    def __init__(self, trace: Path, folder: Path) -> None:
        self._trace, self._folder = trace, folder
        self.files: dict[Path, Written] = {}
        self.trims = 0
        """How often it trimmed a session."""
        self._changes = 0
        """How many calls changed a file."""
        self._reading = threading.Lock()
        self._read = 0
        self._torn = ""
        self._processes: dict[int, _Process] = {}
        self._pending: dict[int, _Call] = {}
        self._early: dict[int, list[tuple[str, int | None]]] = {}
        """What threads do of which it is not known yet who made them, each with how many changes
        there were before it; None if one was under way."""
        self._client = ""
        self._problem: UnclearError | None = None

    def of(self, path: Path, found: bytes = b"") -> bytes:
        """Return what a file holds by all that has been recorded up to now.

        Where that may be one of several orders, it is that of `found` if that is one of them.
        """
        with self._reading:
            self._go_on()
            written = self.files.get(path)
            return written.like(found) if written is not None else b""

    def _go_on(self) -> None:
        """Read what the tracer has written since."""
        if not self._trace.exists():
            return
        with self._trace.open("rb") as trace:
            trace.seek(self._read)
            data = trace.read()
        self._read += len(data)
        *lines, self._torn = (self._torn + data.decode("ascii")).split("\n")
        for line in lines:
            if self._problem is None:
                self._try(line)
        if self._problem is not None:
            raise self._problem

    def _try(self, line: str) -> None:
        try:
            self.take(line)
        except UnclearError as problem:  # after it, nothing is known any more
            self._problem = problem

    def take(self, line: str) -> None:
        """Take in one line of the trace."""
        found = _LINE.fullmatch(line)
        if found is None:
            raise UnclearError(f"strace says {line[:200]!r}")
        pid = int(found["pid"])
        if pid not in self._processes:
            making = any(call.name in _NEW for call in self._pending.values())
            if making or found["name"] != "execve":
                is_alone = not any(call.name in _CHANGES for call in self._pending.values())
                early = (line, self._changes if is_alone else None)
                self._early.setdefault(pid, []).append(early)
                return
            self._processes[pid] = _Process()
        if found["none"]:
            return
        if found["end"]:
            del self._processes[pid]
            call = self._pending.pop(pid, None)
            if call is not None and call.opened is not None and call.name in _CHANGES:
                raise UnclearError("a thread was killed as it wrote")
        elif found["resumed"]:
            call = self._pending.pop(pid, None)
            if call is None or call.name != found["resumed"]:
                raise UnclearError(f"{found['resumed']} goes on that has not begun")
            self._end(pid, call, call.begun + found["rest"])
        else:
            begun = found["all"].removesuffix(_UNFINISHED)
            call = self._begin(pid, found["name"], begun)
            if begun == found["all"]:
                self._end(pid, call, begun)
            else:
                self._pending[pid] = call

    def _begin(self, pid: int, name: str, begun: str) -> _Call:
        call = _Call(name, begun, self._processes[pid])
        first = re.match(r"\d+", begun)
        if first is not None:
            table = call.process.descriptors
            # From here on another thread may be given the number: the call's end may come later.
            take = table.pop if name == "close" else table.get
            call.opened = take(int(first[0]), None)
        if call.opened is not None and name in _CHANGES:
            call.opened.file.begin(call.opened.appends and name in _WRITES)
        return call

    def _end(self, pid: int, call: _Call, text: str) -> None:
        ended = _RESULT.fullmatch(text)
        is_open = call.opened is not None
        if ended is None or (ended[2] == "?" and is_open and call.name in _CHANGES):
            raise UnclearError(f"{call.name} ends with {text[-200:]!r}")
        arguments, result = ended[1], -1 if ended[2] == "?" else int(ended[2], 0)
        if result >= 0:
            self._take_in(pid, call, arguments, result)
        if call.opened is not None and call.name in _CHANGES:
            call.opened.file.end()

    def _take_in(self, pid: int, call: _Call, arguments: str, result: int) -> None:
        """Take in a call that was done."""
        if call.name in _NEW:
            self._made(result, call)
        elif call.name == "execve":
            program = _texts(arguments)[0]
            self._client = self._client or program
            self._processes[pid] = _Process(program)
        elif call.name in {"open", "openat", "creat"}:
            self._opened(call, arguments, result)
        elif call.name in _RENAMES:
            self._renamed(call, arguments)
        elif call.name in _COPIES:
            _copied(call, result)
        elif call.opened is not None:
            self._used(call, call.opened, arguments, result)

    def _made(self, pid: int, call: _Call) -> None:
        """Take in a new thread or process, with what it did before the call returned."""
        by = call.process
        is_thread = "CLONE_FILES" in call.begun
        self._processes[pid] = by if is_thread else _Process(by.program, dict(by.descriptors))
        own = 0
        for line, changes in self._early.pop(pid, ()):
            before = self._changes
            self.take(line)
            # Bytes are in the file in the order of the lines: others may not have come in between.
            if self._changes > before and changes != before - own:
                raise UnclearError("a new thread and another one write in an unknown order")
            own += self._changes - before

    def _is_ours(self, process: _Process) -> bool:
        """Tell whether the client runs there, and no tool of its: a hook may be a rotation."""
        return process.program == self._client

    def _is_kept(self, path: str) -> bool:
        return path.endswith(".jsonl") and Path(path).is_relative_to(self._folder)

    def _opened(self, call: _Call, arguments: str, descriptor: int) -> None:
        path = _texts(arguments)[0]
        call.process.descriptors.pop(descriptor, None)
        writes = call.name == "creat" or "O_WRONLY" in arguments or "O_RDWR" in arguments
        if not self._is_ours(call.process) or not writes:
            return
        if not path.startswith("/") and path.endswith(".jsonl"):
            raise UnclearError(f"the client opens {path} wherever it is")
        if not self._is_kept(path):
            return
        file = self.files.setdefault(Path(path), Written())
        is_new = "O_TRUNC" in arguments or call.name == "creat"
        if file.data and is_new:
            raise UnclearError("the client writes a whole file anew")
        call.process.descriptors[descriptor] = _Open(
            file,
            "O_APPEND" in arguments,
            at=None if "O_RDWR" in arguments else 0,  # a read moves it, and is not recorded
            size=0 if is_new else None,
        )

    def _renamed(self, call: _Call, arguments: str) -> None:
        if any(_TRIMMED.search(path) for path in _texts(arguments)):
            self.trims += call.name.startswith("rename")
            return  # what it wrote before it wrote all the same
        if self._is_ours(call.process) and any(map(self._is_kept, _texts(arguments))):
            raise UnclearError(f"the client gives a file another name, or none: {call.name}")

    def _used(self, call: _Call, opened: _Open, arguments: str, result: int) -> None:
        name = call.name
        if name in _WRITES:
            data = b"".join(map(_bytes, _whole(arguments)))[:result]
            if len(data) != result:
                raise UnclearError(f"{result} bytes were written, and {len(data)} are known")
            self._wrote(name, opened, arguments, data)
        elif name == "ftruncate":
            opened.cut(int(_last(arguments)))
        elif name == "fcntl" and "F_DUPFD" in arguments:
            _copied(call, result)
        elif found := _SIZE.search(arguments):
            opened.size = int(found[1])
        self._changes += name in _CHANGES

    def _wrote(self, name: str, opened: _Open, arguments: str, data: bytes) -> None:
        if opened.appends:  # wherever it is told to write
            opened.append(data)
        elif name in {"pwrite64", "pwritev"}:
            opened.overwrite(int(_last(arguments)), data)
        elif opened.at is not None:
            opened.overwrite(opened.at, data)
            opened.at += len(data)
        else:
            raise UnclearError(f"it is not known where {name} writes")


def _copied(call: _Call, number: int) -> None:
    """Have a number stand for what the call was given, and no longer for what it did before."""
    call.process.descriptors.pop(number, None)
    if call.opened is not None:
        call.process.descriptors[number] = call.opened


def _whole(arguments: str) -> list[str]:
    if any(cut for _, cut in _TEXT.findall(arguments)):
        raise UnclearError("strace cut off what was written")
    return [text for text, _ in _TEXT.findall(arguments)]


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _texts(arguments: str) -> list[str]:
    return [_bytes(text).decode("utf-8", "surrogateescape") for text in _whole(arguments)]


def _last(arguments: str) -> str:
    return arguments.rpartition(", ")[2]


# ── comparing ────────────────────────────────────────────────────────────────────────────────


def difference(expected: bytes, found: bytes) -> str | None:
    """Return how bytes differ from those that are expected, None if they do not."""
    if expected == found:
        return None
    wanted, there = expected.split(b"\n"), found.split(b"\n")
    pairs = enumerate(zip(wanted, there, strict=False), start=1)
    first = next(
        (number for number, (one, other) in pairs if one != other), min(len(wanted), len(there))
    )
    lost, more = Counter(wanted) - Counter(there), Counter(there) - Counter(wanted)
    return (
        f"line {first} of {len(wanted)} is not what was written; {lost.total()} lines are missing, "
        f"{more.total()} are there that nobody wrote"
    )
