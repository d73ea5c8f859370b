"""Installing our hook in Claude Code's settings, and removing it.

Rule: a change is planned from the file as it was read, and made only if the file is still the same,
atomically. Before the hook is first installed, the file is backed up beside it. A symbolic link
stays a link: dotfiles often are.

Every value but our own group stays, and so does the order of keys. The text is written anew from
its values, with the indent and the ends of lines that it has; where that would lose a value
(comments, a key that is there twice, a number out of range), it is refused, with what to add. The
shape that the client documents (2.0.28 to 2.1.330), and the only one that is touched:

    {"hooks": {EVENT: [{"matcher": …, "hooks": [{"type": "command", "command": …, "timeout": …}]}]}}

`PostCompact` is never used: where 2.0.x finds an event that it does not know, it ignores the user's
whole settings.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, ValidationError, convert

from sessrotate import clients, fs, units
from sessrotate.clients.common import BOM
from sessrotate.errors import InUseError, RefusedError, printable, storage
from sessrotate.in_place import obstacles
from sessrotate.system import inside, user_folders

# ── text → text ──────────────────────────────────────────────────────────────────────────────


ENDED: Final = "SessionEnd"
"""The event of a session that ends."""

BEGUN: Final = "SessionStart"
"""The event of a session that begins, or that goes on behind a compaction."""

COMPACTED: Final = "compact"
"""What a `SessionStart` matches that comes with a compaction, and its `source` then."""

EVENTS: Final[dict[str, dict[str, str]]] = {BEGUN: {"matcher": COMPACTED}, ENDED: {}}
"""When the client calls us, each with what our group has besides its hooks."""

TIMEOUT: Final = 10
"""Seconds after which the client gives up on the hook; a call takes a fraction of one."""

_PROGRAM: Final = "sessrotate"

_QUIETLY: Final = " 2>/dev/null || true"
"""A program that is gone, or half uninstalled, cannot see to it itself that the client goes on."""


class _Group(Struct, frozen=True):
    hooks: list[dict[str, Any]]


class _Hooks(Struct, frozen=True, rename="pascal"):
    session_start: tuple[_Group, ...] = ()
    session_end: tuple[_Group, ...] = ()


class _Shape(Struct, frozen=True):
    """What we rely on; the rest is nobody's business."""

    hooks: _Hooks = _Hooks()


def command(program: str, least: str) -> str:
    """Return the shell command that calls the hook of `program` with a size, and never fails."""
    return shlex.join([program, "hook", "--min-gain", least]) + _QUIETLY


def program_of(line: str) -> str | None:
    """Return the program that a command line calls, if it is our hook; None if it is not.

    A line that does more than call the hook belongs to somebody else.
    """
    try:
        words = shlex.split(line.removesuffix(_QUIETLY))
    except ValueError:
        return None
    match words:
        case [program, "hook"]:
            is_ours = True
        case [program, "hook", "--min-gain", least]:
            is_ours = units.size(least) is not None
        case _:
            return None
    return program if is_ours and program.rpartition("/")[2] == _PROGRAM else None


def commands(text: str) -> dict[str, list[str]]:
    """Return the command lines of our entries by event.

    Raises RefusedError if the text is not JSON, or not of the documented shape.
    """
    hooks = _load(text).get("hooks", {})
    return {event: [one["command"] for one in _ours(hooks.get(event, []))] for event in EVENTS}


def unheard(text: str) -> list[str]:
    """Return the events of which no group that matches as ours has our entry; raise as above."""
    hooks = _load(text).get("hooks", {})
    return [
        event
        for event, ours in EVENTS.items()
        if not any(
            _ours(
                group
                for group in hooks.get(event, [])
                if ours.get("matcher") in (None, group.get("matcher"))
            )
        )
    ]


def install(text: str, line: str) -> str:
    """Return the settings with one entry of ours for each of `EVENTS`, which calls this line.

    That is in a group as we write it, the last one where it is made anew. Raises RefusedError as
    `commands` does, then with what to add by hand.
    """
    try:
        settings = _load(text)
    except RefusedError as error:
        hooks = {event: [_group(event, line)] for event in EVENTS}
        by_hand = f'"hooks": {json.dumps(hooks, ensure_ascii=False)}'
        raise RefusedError(f"{error} Or add {printable(by_hand, 1000)} by hand.") from None
    before = _plain(settings)
    for event in EVENTS:
        groups = settings.setdefault("hooks", {}).setdefault(event, [])
        made = _group(event, line)
        if made not in groups or len([*_ours(groups)]) > 1:
            groups[:] = [*_without(groups), made]
    return text if _plain(settings) == before else _dump(settings, text)


def _group(event: str, line: str) -> dict[str, Any]:
    entry = {"type": "command", "command": line, "timeout": TIMEOUT}
    return {**EVENTS[event], "hooks": [entry]}


def remove(text: str, before: str | None) -> str:
    """Return the settings without our entries, and without objects that only held them.

    `before` is the text before the first installation, if it is known; it is returned if it says
    the same, but for objects that hold nothing, and nobody has formatted the text anew since.
    Raises RefusedError as `commands` does.
    """
    if not any(commands(text).values()):
        return text
    left = _removed(text)
    if before is not None:
        with suppress(RefusedError):
            is_as_written = _dump(_load(text), before) == text
            if is_as_written and _plain(_removed(before)) == _plain(left):
                return before
    return _dump(left, text)


def _removed(text: str) -> dict[str, Any]:
    settings = _load(text)
    hooks = settings.get("hooks", {})
    for event in EVENTS.keys() & hooks:
        hooks[event] = _without(hooks[event])
        if not hooks[event]:
            del hooks[event]
    if not hooks:
        settings.pop("hooks", None)
    return settings


# ── our entries ──────────────────────────────────────────────────────────────────────────────


def _ours(groups: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (entry for group in groups for entry in group["hooks"] if _is_ours(entry))


def _is_ours(entry: dict[str, Any]) -> bool:
    line = entry.get("command")
    return entry.get("type") == "command" and isinstance(line, str) and program_of(line) is not None


def _without(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return groups without our entries, and without those that held nothing else."""
    made = []
    for group in groups:
        left = [one for one in group["hooks"] if not _is_ours(one)]
        if left or not group["hooks"]:
            made.append({**group, "hooks": left})
    return made


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────


def _load(text: str) -> dict[str, Any]:
    """Return what settings say. Raises RefusedError where they could not be written again."""
    try:
        found = json.loads(text, object_pairs_hook=_once)
        _plain(found)
        convert(found, _Shape)
    except RecursionError:
        raise RefusedError("It is nested too deeply.") from None
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        raise RefusedError(f"It is not plain JSON from {at} on: fix that first.") from None
    except (ValueError, ValidationError) as error:
        said = printable(str(error))
        raise RefusedError(f"The client expects something else ({said}): fix that first.") from None
    settings: dict[str, Any] = found
    return settings


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    if len(made) < len(members):
        keys = [key for key, _ in members]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"{twice} appears twice")
    return made


def _plain(settings: object) -> bytes:
    """Return settings as one text, the same for the same values in the same order."""
    return json.dumps(settings, allow_nan=False, ensure_ascii=False).encode()


def _dump(settings: dict[str, Any], like: str) -> str:
    """Return settings as a text, with the indent and the ends of lines of another one."""
    broken = re.match(r"\s*\{[^\n]*\n([ \t]*)", like)
    is_one_line = broken is None and like.strip() != "{}"
    indent = None if is_one_line else (broken and broken[1]) or "  "
    made = json.dumps(settings, indent=indent, ensure_ascii=False)
    end = like[len(like.rstrip()) :]
    return (made.replace("\n", "\r\n") if "\r\n" in like else made) + end


# ── the file ─────────────────────────────────────────────────────────────────────────────────


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

    `lacking` are the events that have none, where there are some.
    """

    path: Path
    commands: tuple[str, ...]
    lacking: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """The programs that these call and that do not exist any more."""
        programs = [program_of(line) for line in self.commands]
        return tuple(name for name in programs if name and not user_folders.can_start(name))


def installed() -> Installed:
    """Return the installed hooks. Raises RefusedError if the settings cannot be understood."""
    path = clients.in_place().files.settings_file()
    with storage("read the settings"):
        data = _content(path)
    if data is None:
        return Installed(path, ())
    with _named(path):
        text = _text(data)
        ours = commands(text)
        lines = tuple(dict.fromkeys(line for found in ours.values() for line in found))
        return Installed(path, lines, tuple(unheard(text)) if lines else ())


def plan_install(least: str) -> Change:
    """Return the change that installs the hook for rotations that gain `least`, e.g. `128K`.

    Raises RefusedError if the settings cannot be understood.
    """
    path, target, before = _read()
    line = command(user_folders.executable(), least)
    with _named(path):
        text = "{}\n" if before is None else _text(before)
        try:
            after = begin(before) + install(text, line).encode()
        except UnicodeEncodeError:
            raise RefusedError(
                f"{printable(line)} is not UTF-8, which JSON must be: install sessrotate elsewhere."
            ) from None
        is_first = before is not None and not any(commands(text).values())
    backup = _backup(path) if is_first else None
    return checked(Change(path, target, before, after, backup, installs=True))


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
        left = remove(text, known)
    if left not in {text, known} and left.strip() == "{}" and not path.is_symlink():
        return checked(Change(path, target, before, None, None))
    return checked(Change(path, target, before, begin(before) + left.encode(), None))


def checked(change: Change) -> Change:
    """Return a change; raise RefusedError if its file cannot be replaced by another one."""
    if change.before is None or change.is_nothing:
        return change
    name = printable(str(change.target))
    with storage("read the settings"), change.target.open("rb") as file:
        if os.fstat(file.fileno()).st_nlink > 1:
            raise RefusedError(
                f"{name} has a second name (a hard link), which would keep the old settings: "
                "replace one of them by a copy or a symbolic link."
            )
        if reason := obstacles.fixed(file.fileno(), change.target):
            raise RefusedError(reason)
    return change


def execute(change: Change) -> None:
    """Make a change.

    Raises InUseError if the settings changed after they were read, RefusedError if the hook could
    not rotate anything there.
    """
    if change.is_nothing:
        return
    with storage(f"change {printable(str(change.path))}"):
        inside.check_owner(change.target)
        if change.path != change.target and not os.access(change.target.parent, os.W_OK):
            raise RefusedError(
                f"{printable(str(change.path))} is a link to {printable(str(change.target))}, "
                f"which you may not change, so it was left alone. {_by_hand(change)}"
            )
        if change.before is None:
            fs.create_folder(change.target.parent)
        if change.installs and not fs.has_hard_links(change.target.parent):
            raise RefusedError(
                f"{printable(str(change.target.parent))} is on a file system without reliable "
                "hard links (such as exFAT or sshfs), and a rotation needs them: move the folder "
                "to another file system. `sessrotate archive` works there, too: it puts whole "
                "sessions away."
            )
        if change.backup is not None and change.before is not None:
            fs.create_file_at_once(change.backup, change.before)
        if not fs.rewrite(change.target, change.before, change.after):
            raise InUseError(
                f"Another process has just changed {printable(str(change.path))}, so it was left "
                "alone: try again."
            )
        if change.after is None and change.path == user_folders.config_file():
            with suppress(OSError):  # a folder of ours, unless something else is in it
                fs.remove_folder(change.path.parent)


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
        return path, target, _content(target)


def _content(path: Path) -> bytes | None:
    if path.exists() and not path.is_file():
        raise RefusedError(f"{printable(str(path))} is not a regular file: move it away.")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def begin(data: bytes | None) -> bytes:
    """Return the mark that an editor put before the text, if there is one: it stays."""
    return BOM if data is not None and data.startswith(BOM) else b""


def _text(data: bytes) -> str:
    try:
        return data.removeprefix(BOM).decode()
    except UnicodeDecodeError:
        raise RefusedError("It is not UTF-8, which JSON must be: fix that first.") from None


def _backup(path: Path) -> Path:
    return path.with_name(path.name + _BACKUP)
