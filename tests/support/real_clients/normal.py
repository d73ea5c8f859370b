"""A request, freed from what differs between two runs of the same steps.

It promises that two requests are equal after it if and only if the model would have been told
the same.

Rule: everything stays that is not listed in `normalise`. What the client sends besides the
conversation (model, tools, limits) is part of the request and is compared too.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Value = Any  # what json.loads gives

_UNSENT_KEYS: Final = frozenset({"cache_control"})
_UNSENT_PARTS: Final = frozenset({"metadata"})

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_DATE: Final = re.compile(r"(\bdate(?: is|:)(?: now)? )\d{4}[-/]\d\d[-/]\d\d")
_ID: Final = re.compile(
    r"(?P<uuid>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)|(?P<call>\btoolu_\w+)"
)


@dataclass(frozen=True)
class Sent:
    """A normalised request: the messages, the system prompt, and everything else."""

    messages: tuple[Value, ...]
    system: tuple[Value, ...]
    rest: Mapping[str, Value]

    def __str__(self) -> str:
        parts = {"messages": self.messages, "system": self.system, **self.rest}
        return json.dumps(parts, indent=1, ensure_ascii=False)


def normalise(body: Mapping[str, Value], places: Mapping[Path, str]) -> Sent:
    """Return a request without its volatile parts. These are all of them:

    - `cache_control`: marks for billing, which move with the end of the conversation;
    - `metadata`: the ids of the machine and of the session;
    - the folders in `places`, also in the form that names a project's folder: run-dependent;
    - ISO timestamps to the second, and today's date where the client states it;
    - UUIDs and ids of tool calls: each becomes its number in order of first appearance, so that
      *which* ids are equal still counts.
    """
    text = _text_normaliser(places)
    parts = {key: _walk(value, text) for key, value in body.items() if key not in _UNSENT_PARTS}
    system = parts.pop("system", ())
    return Sent(
        messages=tuple(parts.pop("messages", ())),
        system=(system,) if isinstance(system, str) else tuple(system),
        rest=parts,
    )


def slug(folder: Path) -> str:
    """Return the name that the client gives to the folder of a project's sessions."""
    return re.sub(r"[^a-zA-Z0-9]", "-", str(folder))


def _text_normaliser(places: Mapping[Path, str]) -> Callable[[str], str]:
    names: dict[str, str] = {}
    for folder, name in places.items():
        names[str(folder)] = f"<{name}>"
        names[slug(folder)] = f"<{name}-slug>"
    longest_first = sorted(names, key=len, reverse=True)
    place = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
    ids: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        kind = found.lastgroup
        return ids.setdefault(found[0], f"<{kind} {len(ids) + 1}>")

    def text(value: str) -> str:
        value = place.sub(lambda found: names[found[0]], value)
        value = _TIME.sub("<time>", value)
        value = _DATE.sub(r"\1<date>", value)
        return _ID.sub(number, value)

    return text


def _walk(value: Value, text: Callable[[str], str]) -> Value:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return [_walk(item, text) for item in value]
    if isinstance(value, dict):
        return {key: _walk(item, text) for key, item in value.items() if key not in _UNSENT_KEYS}
    return value
