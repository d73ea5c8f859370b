"""A small file of ours: one value, written as one line of JSON. Pure.

Rule: `parse(dump(value), type(value)) == value`, and any other bytes are not a value. So whatever
else a file might say (another format, an unknown key, a number out of its range) is refused.
"""

from __future__ import annotations

import json
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

FORMAT: Final = 1
"""Of every such file."""

T = TypeVar("T", bound=Struct)


def dump(value: Struct) -> bytes:
    """Return a value as the bytes of its line, in ASCII so that any file's name fits."""
    return json.dumps({"format": FORMAT, **msgspec.to_builtins(value)}).encode() + b"\n"


def parse(data: bytes, kind: type[T]) -> T | None:
    """Return the value of a `kind` that these bytes are, None if we would not have written them.

    What a field may hold is its annotation: `model.Count`, `model.Digest`.
    """
    try:
        value = msgspec.convert(json.loads(data), kind)
    except (ValueError, TypeError, RecursionError):
        return None
    return value if dump(value) == data else None
