"""Installing our hook in Claude Code's settings, and removing it.

Rule: a change is planned from the file as it was read, and made only if the file is still the same,
atomically. Before the hook is first installed, the file is backed up beside it. A symbolic link
stays a link: dotfiles often are.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from sessrotate import clients, fs
from sessrotate.clients.common import BOM
from sessrotate.errors import InUseError, RefusedError, printable, storage
from sessrotate.hook import claude_settings
from sessrotate.system import executable, ownership

_BACKUP: Final = ".bak-sessrotate"
"""The end of the backup's name."""


class Change(Struct, frozen=True):
    """What a settings file holds before and after; None for no file.

    `target` is the file itself if `path` is a link. `backup` is where `before` is copied to.
    `installs`: the hook is called afterwards.
    """

    path: Path
    target: Path
    before: bytes | None
    after: bytes | None
    backup: Path | None
    installs: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to change."""
        return self.before == self.after


class Installed(Struct, frozen=True):
    """Our hooks in the settings: their command lines.

    `lacking` are the events that none of them is for, where there are some.
    """

    path: Path
    commands: tuple[str, ...]
    lacking: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """The programs that these call and that do not exist any more."""
        programs = [claude_settings.program_of(line) for line in self.commands]
        return tuple(name for name in programs if name and not executable.can_start(name))


def installed() -> Installed:
    """Return the installed hooks. Raises RefusedError if the settings cannot be understood."""
    path = clients.in_place().files.settings_file()
    with storage("read the settings"):
        data = _content(path)
    if data is None:
        return Installed(path, ())
    with _named(path):
        text = _text(data)
        ours = claude_settings.commands(text)
        lines = tuple(dict.fromkeys(line for found in ours.values() for line in found))
        lacking = tuple(event for event, found in ours.items() if lines and not found)
        return Installed(path, lines, lacking)


def plan_install(least: str) -> Change:
    """Return the change that installs the hook for rotations that gain `least`, e.g. `128K`.

    Raises RefusedError if the settings cannot be understood.
    """
    path, target, before = _read()
    line = claude_settings.command(executable.path(), least)
    with _named(path):
        text = "{}\n" if before is None else _text(before)
        try:
            after = _begin(before) + claude_settings.install(text, line).encode()
        except UnicodeEncodeError:
            raise RefusedError(
                f"{printable(line)} is not UTF-8, which JSON must be: install sessrotate elsewhere."
            ) from None
        is_first = before is not None and not any(claude_settings.commands(text).values())
    return Change(path, target, before, after, _backup(path) if is_first else None, installs=True)


def plan_remove() -> Change:
    """Return the change that removes the hook. Raises as `plan_install` does."""
    path, target, before = _read()
    if before is None:
        return Change(path, target, None, None, None)
    with storage("read the copy of the settings"):
        first = _content(_backup(path))
    with _named(path):
        text = _text(before)
        known = None if first is None else first.removeprefix(BOM).decode(errors="replace")
        left = claude_settings.remove(text, known)
    if left not in {text, known} and left.strip() == "{}" and not path.is_symlink():
        return Change(path, target, before, None, None)
    return Change(path, target, before, _begin(before) + left.encode(), None)


def execute(change: Change) -> None:
    """Make a change.

    Raises InUseError if the settings changed after they were read, RefusedError if the hook could
    not rotate anything there.
    """
    if change.is_nothing:
        return
    with storage(f"change {printable(str(change.path))}"):
        ownership.check(change.target)
        if change.path != change.target and not os.access(change.target.parent, os.W_OK):
            raise RefusedError(
                f"{printable(str(change.path))} is a link to {printable(str(change.target))}, "
                f"which you may not change, so it was left alone. {_by_hand(change)}"
            )
        if change.before is None:
            fs.create_folder(change.target.parent)
        if change.installs and not fs.has_hard_links(change.target.parent):
            raise RefusedError(
                f"{printable(str(change.target.parent))} is on a file system without hard links "
                "(such as exFAT), and a rotation needs one: move the folder to another file "
                "system. `sessrotate archive` puts sessions away whole, also there."
            )
        if change.backup is not None and change.before is not None:
            fs.create_file_at_once(change.backup, change.before)
        if not fs.rewrite(change.target, change.before, change.after):
            raise InUseError(
                f"Another process has just changed {printable(str(change.path))}, so it was left "
                "alone: try again."
            )


def _by_hand(change: Change) -> str:
    """Say what to change where somebody else makes the file (a manager of packages or homes)."""
    texts = ((data or b"").decode(errors="replace") for data in (change.before, change.after))
    before, after = (text.splitlines() for text in texts)
    lines = [*difflib.unified_diff(before, after, n=0, lineterm="")][2:]
    added = [printable(line[1:], 1000) for line in lines if line.startswith("+")]
    verb, shown = "Add", added
    if not added:
        verb, shown = "Remove", [printable(line[1:], 1000) for line in lines if line[0] == "-"]
    return "\n".join([f"{verb} these lines where that file is generated:", *shown])


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in every refusal."""
    try:
        yield
    except RefusedError as error:
        raise RefusedError(f"{printable(str(path))} was left alone. {error}") from None


def _read() -> tuple[Path, Path, bytes | None]:
    """Return the path of the settings, the file that it leads to, and its content."""
    path = clients.in_place().files.settings_file()
    with storage("read the settings"):
        path = path.absolute()
        target = Path(os.path.realpath(path))
        data = _content(target)
        if data is not None and target.stat().st_nlink > 1:
            raise RefusedError(
                f"{printable(str(target))} has a second name (a hard link), which would keep the "
                "old settings: replace one of them by a copy or a symbolic link."
            )
    return path, target, data


def _content(path: Path) -> bytes | None:
    if path.exists() and not path.is_file():
        raise RefusedError(f"{printable(str(path))} is not a regular file: move it away.")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _begin(data: bytes | None) -> bytes:
    """Return the mark that an editor put before the text, if there is one: it stays."""
    return BOM if data is not None and data.startswith(BOM) else b""


def _text(data: bytes) -> str:
    try:
        return data.removeprefix(BOM).decode()
    except UnicodeDecodeError:
        raise RefusedError("It is not UTF-8, which JSON must be: fix that first.") from None


def _backup(path: Path) -> Path:
    return path.with_name(path.name + _BACKUP)
