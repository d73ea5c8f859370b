"""Claude Code's settings.json with our hook put in or taken out: text → text. Pure.

Rule: all but our own entry stays as it is, character for character: numbers that Python would
spell anew, escapes, the order of keys, white space. So the text is never written anew from its
values; our entry's own text is inserted or removed where a tokeniser says that it belongs.

What the client documents (2.0.28 to 2.1.330), and the only shape that is touched:

    {"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": …, "timeout": …}]}]}}
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sessrotate import units
from sessrotate.errors import RefusedError
from sessrotate.parsing import json_edit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessrotate.parsing.json_edit import Box, Value

EVENT: Final = "SessionEnd"

TIMEOUT: Final = 10
"""Seconds after which the client gives up on the hook; a call takes a fraction of one."""

_PROGRAM: Final = "sessrotate"


@dataclass(frozen=True, slots=True)
class _Ours:
    """An entry of ours: which of which list, and where its command stands."""

    entries: Box
    number: int
    groups: Box
    group: int
    command: Value


@dataclass(frozen=True, slots=True)
class _Found:
    """The objects and the list on the way to our entries, as far as they are there."""

    top: Box
    hooks: Box | None
    event: Box | None
    ours: tuple[_Ours, ...]


# ── our command ──────────────────────────────────────────────────────────────────────────────


def command(program: str, least: str) -> str:
    """Return the line for a shell that calls `program`'s hook for sessions over a size."""
    return shlex.join([program, "hook", "--min-size", least])


def program_of(line: str) -> str | None:
    """Return the program that a hook's command line calls, if the hook is ours; else None.

    A line that does more than to call it is somebody's own.
    """
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    match words:
        case [program, "hook"]:
            is_ours = True
        case [program, "hook", "--min-size", least]:
            is_ours = units.size(least) is not None
        case _:
            return None
    return program if is_ours and program.rpartition("/")[2] == _PROGRAM else None


def commands(text: str) -> list[str]:
    """Return the command lines of our entries. Raises as `install` does."""
    return [json_edit.string(text, one.command) or "" for one in _look(text).ours]


def is_disabled(text: str) -> bool:
    """Tell whether these settings, which are sound, turn all hooks off."""
    return json_edit.document(text).get("disableAllHooks") is True


# ── putting in and taking out ────────────────────────────────────────────────────────────────


def install(text: str, line: str) -> str:
    """Return the settings with one entry of ours, which calls this command line.

    An entry that is there gets the command line and keeps everything else. Raises RefusedError
    for what is no JSON, or not of the documented shape.
    """
    found = _look(text)
    while len(found.ours) > 1:
        text = _without(text, found.ours[-1])
        found = _look(text)
    if found.ours:
        place = found.ours[0].command
        if json_edit.string(text, place) == line:
            return text
        return json_edit.replaced(text, place, json.dumps(line, ensure_ascii=False))
    group = {"hooks": [{"type": "command", "command": line, "timeout": TIMEOUT}]}
    if found.event is not None:
        return json_edit.including(text, found.event, None, group)
    if found.hooks is not None:
        return json_edit.including(text, found.hooks, EVENT, [group])
    return json_edit.including(text, found.top, "hooks", {EVENT: [group]})


def remove(text: str, before: str | None) -> str:
    """Return the settings without our entries, and without what only held them.

    `before` is the text before the first one was put in, as far as it is known: an empty object
    or list that was there then stays, as it was. Raises as `install` does.
    """
    if not _look(text).ours:
        return text
    while ours := _look(text).ours:
        text = _without(text, ours[-1])
    husks = _husks(before)
    for name in (EVENT, "hooks"):
        found = _look(text)
        box, inside = (found.event, found.hooks) if name == EVENT else (found.hooks, found.top)
        if box is None or inside is None or box.values:
            return text
        if name in husks:
            return json_edit.replaced(text, box, husks[name])
        text = json_edit.without(text, inside, _number(inside, name))
    top = json_edit.outermost(text)
    return json_edit.replaced(text, top, husks[""]) if not top.values and "" in husks else text


def is_empty(text: str) -> bool:
    """Tell whether settings, which are sound, say nothing."""
    return not json_edit.document(text)


def _husks(before: str | None) -> dict[str, str]:
    """Return the empty objects and lists on our way in a text, by name; that of the top is ""."""
    if before is None:
        return {}
    try:
        found = _look(before)
    except RefusedError:
        return {}
    boxes = {"": found.top, "hooks": found.hooks, EVENT: found.event}
    return {
        name: before[box.start : box.end]
        for name, box in boxes.items()
        if box is not None and not box.values
    }


def _without(text: str, ours: _Ours) -> str:
    """Take out one entry, and its group if it is alone in it."""
    if len(ours.entries.values) > 1:
        return json_edit.without(text, ours.entries, ours.number)
    return json_edit.without(text, ours.groups, ours.group)


def _number(box: Box, key: str) -> int:
    return next(number for number, value in enumerate(box.values) if value.key == key)


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def _look(text: str) -> _Found:
    json_edit.document(text)
    top = json_edit.outermost(text)
    hooks = _inner(text, top, "hooks", "{", "an object")
    event = None if hooks is None else _inner(text, hooks, EVENT, "[", "a list")
    return _Found(top, hooks, event, () if event is None else tuple(_ours(text, event)))


def _ours(text: str, event: Box) -> Iterator[_Ours]:
    for group, value in enumerate(event.values):
        inside = _object(text, value, f"What is in {EVENT}")
        entries = _inner(text, inside, "hooks", "[", "a list")
        if entries is None:
            raise RefusedError(f"An object in {EVENT} has no list of hooks: add one or remove it.")
        for number, entry in enumerate(entries.values):
            members = _object(text, entry, f"A hook of {EVENT}")
            kind, line = (_member(members, key) for key in ("type", "command"))
            if line is None or kind is None or json_edit.string(text, kind) != "command":
                continue
            if program_of(json_edit.string(text, line) or "") is not None:
                yield _Ours(entries, number, event, group, line)


def _object(text: str, value: Value, what: str) -> Box:
    if text[value.start] != "{":
        raise RefusedError(f"{what} is no object, as the client wants it: mend that first.")
    return json_edit.box(text, value.start)


def _inner(text: str, box: Box, key: str, opening: str, what: str) -> Box | None:
    """Return an object or list by its key, None if there is none."""
    member = _member(box, key)
    if member is None:
        return None
    if text[member.start] != opening:
        raise RefusedError(f"Its {key} is not {what}, as the client wants it: mend that first.")
    return json_edit.box(text, member.start)


def _member(box: Box, key: str) -> Value | None:
    found = [value for value in box.values if value.key == key]
    if len(found) > 1:
        raise RefusedError(f"It has {key} twice, of which the client sees one: leave one of them.")
    return found[0] if found else None
