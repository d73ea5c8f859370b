"""Claude Code's settings.json with our hook added or removed: text → text. Pure.

Rule: everything but our own entry stays the same, character for character: the spelling of numbers,
escapes, the order of keys, white space. So the text is never written again from its values; our
entry's own text is inserted or removed where a tokenizer says that it belongs.

The shape that the client documents (2.0.28 to 2.1.330), and the only one that is touched:

    {"hooks": {EVENT: [{"matcher": …, "hooks": [{"type": "command", "command": …, "timeout": …}]}]}}

`PostCompact` is never used: where 2.0.x finds an event that it does not know, it ignores the user's
whole settings.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import units
from sessrotate.errors import RefusedError
from sessrotate.parsing import json_edit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.parsing.json_edit import Box, Value

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


class _Ours(Struct, frozen=True):
    """An entry of ours: its number in its lists, and where its command is in the text."""

    entries: Box
    number: int
    groups: Box
    group: int
    command: Value


class _Found(Struct, frozen=True):
    """The objects and the list that lead to our entries of an event, as far as they exist."""

    top: Box
    hooks: Box | None
    event: Box | None
    ours: tuple[_Ours, ...]


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
    """Return the command lines of our entries by event. Raises as `install` does."""
    return {
        event: [json_edit.string(text, one.command) or "" for one in _look(text, event).ours]
        for event in EVENTS
    }


def install(text: str, line: str) -> str:
    """Return the settings with one entry of ours for each of `EVENTS`, which calls this line.

    An existing entry gets the command line and keeps everything else. Raises RefusedError if the
    text is not JSON, or not of the documented shape.
    """
    for event in EVENTS:
        text = _installed(text, event, line)
    return text


def _installed(text: str, event: str, line: str) -> str:
    found = _look(text, event)
    while len(found.ours) > 1:
        text = _without(text, found.ours[-1])
        found = _look(text, event)
    if found.ours:
        place = found.ours[0].command
        if json_edit.string(text, place) == line:
            return text
        return json_edit.replaced(text, place, json.dumps(line, ensure_ascii=False))
    entry = {"type": "command", "command": line, "timeout": TIMEOUT}
    group = {**EVENTS[event], "hooks": [entry]}
    if found.event is not None:
        return json_edit.including(text, found.event, None, group)
    if found.hooks is not None:
        return json_edit.including(text, found.hooks, event, [group])
    return json_edit.including(text, found.top, "hooks", {event: [group]})


def remove(text: str, before: str | None) -> str:
    """Return the settings without our entries, and without objects that only held them.

    `before` is the text before the first installation, if it is known: an empty object or list
    that it had stays, as it was. Raises as `install` does.
    """
    touched = [event for event in EVENTS if _look(text, event).ours]
    for event in touched:
        while ours := _look(text, event).ours:
            text = _without(text, ours[-1])
    husks = _husks(before or "")
    for event in touched:
        found = _look(text, event)
        if found.hooks is not None and found.event is not None:
            text = _unhusked(text, found.hooks, event, found.event, husks)
    found = _look(text, ENDED)
    if touched and found.hooks is not None:
        text = _unhusked(text, found.top, "hooks", found.hooks, husks)
    top = json_edit.outermost(text)
    if touched and not top.values and "" in husks:
        return json_edit.replaced(text, top, husks[""])
    return text


def _unhusked(text: str, inside: Box, name: str, box: Box, husks: dict[str, str]) -> str:
    """Return the text without an object or list that is empty now, unless it always was."""
    if box.values:
        return text
    if name in husks:
        return json_edit.replaced(text, box, husks[name])
    return json_edit.without(text, inside, [value.key for value in inside.values].index(name))


def is_empty(text: str) -> bool:
    """Tell whether settings have no entry; they have one if they cannot be understood."""
    try:
        return not json_edit.document(text)
    except RefusedError:
        return False


def _husks(before: str) -> dict[str, str]:
    """Return the empty objects and lists that lead to our entries, by name ("" for the top)."""
    boxes: dict[str, Box | None] = {}
    try:
        for event in EVENTS:
            found = _look(before, event)
            boxes |= {"": found.top, "hooks": found.hooks, event: found.event}
    except RefusedError:
        return {}
    return {
        name: before[box.start : box.end]
        for name, box in boxes.items()
        if box is not None and not box.values
    }


def _without(text: str, ours: _Ours) -> str:
    """Remove one entry, and its group if it is the only one."""
    if len(ours.entries.values) > 1:
        return json_edit.without(text, ours.entries, ours.number)
    return json_edit.without(text, ours.groups, ours.group)


def _look(text: str, event: str) -> _Found:
    json_edit.document(text)
    top = json_edit.outermost(text)
    hooks = _inner(text, top, "hooks", "{", "an object")
    groups = None if hooks is None else _inner(text, hooks, event, "[", "a list")
    ours = () if groups is None else tuple(_ours(text, event, groups))
    return _Found(top, hooks, groups, ours)


def _ours(text: str, event: str, groups: Box) -> Iterator[_Ours]:
    for group, value in enumerate(groups.values):
        inside = _object(text, value, f"An element of {event}")
        entries = _inner(text, inside, "hooks", "[", "a list")
        if entries is None:
            raise RefusedError(
                f"An object in {event} has no list of hooks: add one, or remove the object."
            )
        for number, entry in enumerate(entries.values):
            members = _object(text, entry, f"A hook of {event}")
            kind, line = (_member(members, key) for key in ("type", "command"))
            if line is None or kind is None or json_edit.string(text, kind) != "command":
                continue
            if program_of(json_edit.string(text, line) or "") is not None:
                yield _Ours(entries, number, groups, group, line)


def _object(text: str, value: Value, what: str) -> Box:
    if text[value.start] != "{":
        raise RefusedError(f"{what} is not an object, which the client expects: fix that first.")
    return json_edit.box(text, value.start)


def _inner(text: str, box: Box, key: str, opening: str, what: str) -> Box | None:
    """Return an object or list by its key, None if there is none."""
    member = _member(box, key)
    if member is None:
        return None
    if text[member.start] != opening:
        raise RefusedError(f"Its {key} is not {what}, which the client expects: fix that first.")
    return json_edit.box(text, member.start)


def _member(box: Box, key: str) -> Value | None:
    found = [value for value in box.values if value.key == key]
    if len(found) > 1:
        raise RefusedError(f"It has {key} twice, and the client reads only one: remove the other.")
    return found[0] if found else None
