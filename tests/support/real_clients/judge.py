"""The verdict: does the real client send the same request from both files?

It promises that an empty answer means equal requests, and that every other answer names each
place where they differ, in words a person can act on.

Rule: messages are matched before they are compared, so that a lost one is reported as lost and
not as a difference in all that follow.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from support.real_clients.client import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from support.real_clients.client import Client
    from support.real_clients.normal import Sent

AROUND: Final = 60
"""Characters shown on either side of a difference."""


@dataclass(frozen=True)
class Difference:
    """One place where two requests differ; None where one of them has nothing."""

    where: str
    original: str | None
    rotated: str | None

    def __str__(self) -> str:
        if self.rotated is None:
            return f"{self.where}: only in the original: {self.original}"
        if self.original is None:
            return f"{self.where}: only in the rotated: {self.rotated}"
        return f"{self.where}:\n  original: {self.original}\n  rotated:  {self.rotated}"

    __repr__ = __str__


def differences(client: Client, original: Path, rotated: Path) -> list[Difference]:
    """Resume both files with the client and return where its requests differ; nothing if equal.

    Both take the original's session id and companions, so `rotated` may have any name. A rotated
    file that cannot be resumed is a difference; an original that cannot is an error.
    """
    expected = client.resume_request(original)
    try:
        found = client.resume_request(rotated, beside=original)
    except ClientError as error:
        return [Difference("the whole request", "was sent", str(error))]
    return compare(expected, found)


def requested(client: Client, session_file: Path) -> Sent | None:
    """Return what the client sends when it resumes a session file; None if it cannot resume it."""
    try:
        return client.resume_request(session_file)
    except ClientError:
        return None


def unequal(original: Sent | None, rotated: Sent | None) -> list[Difference]:
    """Return where two requests differ, either of which a client may not have sent at all."""
    if original is not None and rotated is not None:
        return compare(original, rotated)
    told = [None if sent is None else "was sent" for sent in (original, rotated)]
    return [] if told[0] == told[1] else [Difference("the whole request", *told)]


def compare(original: Sent, rotated: Sent) -> list[Difference]:
    """Return where two requests differ: messages, then the system prompt, then the rest."""
    return [
        *_sequences("message", original.messages, rotated.messages),
        *_sequences("system prompt, block", original.system, rotated.system),
        *(
            _values(key, original.rest.get(key), rotated.rest.get(key))
            for key in sorted({*original.rest, *rotated.rest})
            if original.rest.get(key) != rotated.rest.get(key)
        ),
    ]


def _sequences(what: str, original: Sequence[Any], rotated: Sequence[Any]) -> Iterator[Difference]:
    left, right = [*map(_text, original)], [*map(_text, rotated)]
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        if kind == "equal":
            continue
        pairs = zip_longest(range(start, end), range(other_start, other_end))
        for number, other in pairs:
            here = original[number] if number is not None else None
            there = rotated[other] if other is not None else None
            at = number if number is not None else other
            role = _role(here or there)
            yield _values(f"{what} {at}{role}", here, there)


def _values(where: str, original: object, rotated: object) -> Difference:
    if original is None or rotated is None:
        return Difference(where, _short(original), _short(rotated))
    left, right = _text(original), _text(rotated)
    same = next(
        (at for at, (one, other) in enumerate(zip(left, right, strict=False)) if one != other),
        min(len(left), len(right)),
    )
    return Difference(where, _excerpt(left, same), _excerpt(right, same))


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _role(value: object) -> str:
    role = value.get("role") if isinstance(value, dict) else None
    return f" ({role})" if role else ""


def _short(value: object) -> str | None:
    return None if value is None else _excerpt(_text(value), 0)


def _excerpt(text: str, at: int) -> str:
    start, end = max(0, at - AROUND), at + 2 * AROUND
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
