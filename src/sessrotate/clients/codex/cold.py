"""What Codex does with a rollout that it keeps compressed: `rollout-….jsonl.zst`.

Rule: the client decides, and was asked: 0.142.5, 0.150, 0.169 and 0.171 list, read, search, fork
and resume such a file as the plain one, whoever wrote it. A resume makes it plain again. 0.118 does
not find it any more. Of a session that has both forms, each of these takes the plain one, and never
looks at the other.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import names, units
from sessrotate.clients.codex import client as codex
from sessrotate.clients.common import real
from sessrotate.errors import DamagedError, printable
from sessrotate.units import DAY

FORMAT: Final = codex

folders: Final = codex.folders

is_named_so: Final = codex.is_rollout

WINDOW: Final = 27
"""Log 2 of the largest window that the client reads: 128 MiB (0.171; with 28 it lists nothing)."""

_SUFFIX: Final = names.CODEC_SUFFIX["zstd"]

_RECENT: Final = 90 * DAY
"""Seconds back from now in which a client that wrote something may still be there."""

_READS: Final = (0, 142, 5)
"""The first version that was seen to read the compressed form."""

_LOCKS: Final = (0, 147, 0)
"""The first version that holds a lock of its own while a rollout is open."""

_TRIED: Final = frozenset({"codex_exec", "codex_cli_rs", "codex-tui"})
"""What calls itself so is the command line: these were tried, and an IDE's client was not."""

_WRITTEN_BY: Final = re.compile(rb'"(originator|cli_version)"\s*:\s*"([^"\\]{1,64})"')
"""In the first row. No text can have it: there, a backslash stands before each quote."""

_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")

_HEAD: Final = 16 * 1024
"""Bytes of a rollout's beginning in which it says who wrote it."""

_FIRST_BLOCK: Final = 192 * 1024
"""Bytes of a compressed one that surely hold as much: zstd has blocks of up to 128 KiB."""

_LEFT: Final = re.compile(
    r"\.rollout-.+\.partial|\.rollout-materialize-.+|rollout-compress-.+\.tmp"
    r"|rollout-.+\.jsonl\.decompress\..+\.tmp"
)
"""What a kill leaves beside rollouts: our own drafts, and the client's (0.171; before 0.155)."""

_ASIDE: Final = re.compile(r"\.rollout-.+\.jsonl(?:\.zst)?")
"""The names that `aside` gives."""


class Writer(Struct, frozen=True, order=True):
    """A client that wrote rollouts: what it calls itself, and its version as it says it."""

    originator: str
    version: str

    @property
    def reads_compressed(self) -> bool:
        """Whether it is known to find a rollout that is compressed."""
        return self.originator in _TRIED and _number(self.version) >= _READS

    @property
    def locks(self) -> bool:
        """Whether nothing is lost that it writes while a rollout is replaced."""
        return _number(self.version) >= _LOCKS


def _number(version: str) -> tuple[int, ...]:
    found = _VERSION.match(version)
    return () if found is None else tuple(map(int, found.groups()))


def writers(now: float) -> set[Writer]:
    """Return the clients that wrote rollouts within 90 days before `now`, seconds since 1970.

    What is empty, torn or garbage, or does not decompress, says nothing of any: it is left out.
    """
    found = set()
    for path in codex.sessions():
        with suppress(OSError):
            if path.stat().st_mtime >= now - _RECENT and _is_row(head := _head(path)):
                found.add(_writer(head))
    return found


def _is_row(head: bytes) -> bool:
    """Tell whether a rollout with this beginning begins with a row of a client, as far as is seen.

    Those before 0.44 do not say there who they are, and count as unknown.
    """
    line, newline, _ = head.partition(b"\n")
    if not newline:
        return len(head) >= _HEAD and head.startswith(b"{")
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(line), dict)
    return False


def _head(path: Path) -> bytes:
    from sessrotate.clients.codex.preview import unpacked  # noqa: PLC0415 - 20 ms at start-up

    is_plain = path.suffix != _SUFFIX
    with path.open("rb") as file:
        head = file.read(_HEAD if is_plain else _FIRST_BLOCK)
    return head if is_plain else unpacked(head)


def is_readable(path: Path) -> bool:
    """Tell whether a compressed rollout begins as one that can be decompressed, or is empty."""
    from sessrotate.system import zstd  # noqa: PLC0415 - few sessions are compressed

    with path.open("rb") as file:
        head = file.read(_FIRST_BLOCK)
    try:
        return any(zstd.decompressed(BytesIO(head).read, _HEAD)) or not head
    except DamagedError:
        return False


def _writer(head: bytes) -> Writer:
    said = dict[bytes, bytes]()
    for name, value in _WRITTEN_BY.findall(head):
        said.setdefault(name, value)
    return Writer(*(said.get(name, b"").decode("utf-8", "replace") for name in _NAMES))


_NAMES: Final = (b"originator", b"cli_version")


def unread_by(now: float) -> str:
    """Say which clients may not find a compressed rollout; empty if none wrote any in 90 days."""
    others = sorted(each for each in writers(now) if not each.reads_compressed)
    if not others:
        return ""
    named = [
        printable(" ".join(filter(None, (each.originator or "unknown", each.version))), 60)
        for each in others
    ]
    return (
        f"Codex sessions of the last 90 days were written by {units.some(named)}, which may not "
        "find a compressed session; `codex` 0.142.5 and later does."
    )


def is_written_to_blindly(now: float) -> bool:
    """Tell whether a client wrote in the last 90 days that holds no lock while a file is open."""
    return not all(each.locks for each in writers(now))


# ── names ────────────────────────────────────────────────────────────────────────────────────


def is_session(path: Path) -> bool:
    """Tell whether a path names a rollout where the client looks for one, in either form."""
    if not codex.is_rollout(path.name):
        return False
    folder = real(path.parent)
    return any(folder.is_relative_to(real(each)) for each in codex.folders())


def is_archived(path: Path) -> bool:
    """Tell whether the user has archived the session of a rollout (`codex archive`)."""
    return real(path.parent).is_relative_to(real(codex.archived_folder()))


def plain(path: Path) -> Path:
    """Return the name of a rollout's plain form, whichever form `path` names, aside or not."""
    return path.with_name(path.name.removeprefix(".").removesuffix(_SUFFIX))


def compressed(path: Path) -> Path:
    """Return the name of a rollout's compressed form."""
    name = plain(path)
    return name.with_name(f"{name.name}{_SUFFIX}")


def form(path: Path) -> Path:
    """Return the form of a rollout that its client takes: the plain one, if that is there."""
    found = plain(path)
    return found if os.path.lexists(found) else compressed(path)


def aside(path: Path) -> Path:
    """Return the name that a form of a rollout has while the other takes its place.

    No client takes it, and no draft has it: whoever had found the old name may still write to it.
    """
    return path.with_name(f".{path.name}")


def all_names(path: Path) -> tuple[Path, ...]:
    """Return all names that files of a rollout have, drafts left out."""
    forms = plain(path), compressed(path)
    return (*map(aside, forms), *forms)


def seconds() -> Iterator[Path]:
    """Yield what is there of sessions besides the file that their client takes.

    A resume that is killed right after it has unpacked a rollout leaves the compressed form, and no
    client looks at that again; a kill of ours can leave a form under the name that `aside` gives.
    """
    yield from codex.files_named(_ASIDE)
    for path in codex.sessions():
        other = compressed(path)
        if other != path and os.path.lexists(other):
            yield other


def left_behind(now: float) -> Iterator[Path]:
    """Yield the files that were left beside rollouts a day before `now`, or earlier.

    A resume of 0.171 that is killed while it unpacks leaves one, and no later start removes it.
    """
    for path in codex.files_named(_LEFT):
        with suppress(OSError):
            status = path.lstat()
            if max(status.st_ctime, status.st_mtime) < now - DAY:
                yield path


# ── locks ────────────────────────────────────────────────────────────────────────────────────


def maintenance_lock() -> Path:
    """Return what is held (flock) by whoever compresses or migrates rollouts (0.171).

    The client never removes it, and its name may be a link.
    """
    return codex.config_folder() / ".tmp" / "rollout-maintenance.lock"


def writer_locks(path: Path) -> tuple[Path, Path]:
    """Return what is held by whoever takes a writer's lock, and the lock of a rollout's writer.

    The first is held only for as long as it takes to get, or to remove, the second (0.147 and
    later, seen in 0.150 to 0.171).
    """
    folder = codex.config_folder() / "thread-writer-locks"
    return folder / ".coordination.lock", folder / f"{codex.root_of(path.name)}.lock"
