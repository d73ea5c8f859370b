"""Claude Code's settings.json with our hook added or removed: text → text. Pure.

Rule: every value but our own entry stays, and so does the order of keys. The text is written anew
from its values, with the indent and the ends of lines that it has; where that would lose a value
(comments, a key that is there twice, a number out of range), it is refused, with what to add.

The shape that the client documents (2.0.28 to 2.1.330), and the only one that is touched:

    {"hooks": {EVENT: [{"matcher": …, "hooks": [{"type": "command", "command": …, "timeout": …}]}]}}

`PostCompact` is never used: where 2.0.x finds an event that it does not know, it ignores the user's
whole settings.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct, ValidationError, convert

from sessrotate import units
from sessrotate.errors import RefusedError, printable

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


def install(text: str, line: str) -> str:
    """Return the settings with one entry of ours for each of `EVENTS`, which calls this line.

    An existing entry gets the command line and keeps everything else. Raises RefusedError as
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
        if (first := next(_ours(groups), None)) is None:
            groups.append(_group(event, line))
        else:
            first["command"] = line
            groups[:] = _without(groups, keeping=first)
    return text if _plain(settings) == before else _dump(settings, text)


def _group(event: str, line: str) -> dict[str, Any]:
    entry = {"type": "command", "command": line, "timeout": TIMEOUT}
    return {**EVENTS[event], "hooks": [entry]}


def remove(text: str, before: str | None) -> str:
    """Return the settings without our entries, and without objects that only held them.

    `before` is the text before the first installation, if it is known; it is returned if it says
    the same, but for objects that hold nothing. Raises RefusedError as `commands` does.
    """
    if not any(commands(text).values()):
        return text
    left = _removed(text)
    if before is not None:
        with suppress(RefusedError):
            if _plain(_removed(before)) == _plain(left):
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


def _ours(groups: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (entry for group in groups for entry in group["hooks"] if _is_ours(entry))


def _is_ours(entry: dict[str, Any]) -> bool:
    line = entry.get("command")
    return entry.get("type") == "command" and isinstance(line, str) and program_of(line) is not None


def _without(groups: list[dict[str, Any]], keeping: object = None) -> list[dict[str, Any]]:
    """Return groups without our entries but one, and without those that held nothing else."""
    made = []
    for group in groups:
        left = [one for one in group["hooks"] if one is keeping or not _is_ours(one)]
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
