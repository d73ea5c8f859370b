"""What a session consists of, found the slow and obvious way: the whole file in memory.

It shares nothing with the code under test: no blocks, no markers, no sizes at which anything
changes. Every line is parsed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NoReturn


def _reject(constant: str) -> NoReturn:
    raise ValueError(constant)


def parse(line: bytes) -> Any:
    """Return what JSON.parse gives for a line read as UTF-8 with replacement; else ValueError."""
    text = line.decode("utf-8", "replace")
    depth, digits = sys.getrecursionlimit(), sys.get_int_max_str_digits()
    sys.setrecursionlimit(8_000)  # the deepest line of the strategies has 2,000 levels
    sys.set_int_max_str_digits(0)
    try:
        return json.loads(text, parse_constant=_reject)
    finally:
        sys.setrecursionlimit(depth)
        sys.set_int_max_str_digits(digits)


def is_object(line: bytes) -> bool:
    try:
        return isinstance(parse(line), dict)
    except ValueError:
        return False


def is_boundary(line: bytes) -> bool:
    try:
        record = parse(line)
    except ValueError:
        return False
    return (
        isinstance(record, dict)
        and record.get("type") == "system"
        and record.get("subtype") == "compact_boundary"
    )


def row(line: bytes) -> dict[str, Any]:
    """Return the object on a line, an empty one if there is none."""
    try:
        found = json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def time(line: bytes) -> str | None:
    """Return when a row was written, if it says so."""
    told = row(line).get("timestamp")
    return told if isinstance(told, str) and told[:2] == "20" else None


def offsets(data: bytes, is_one: Callable[[bytes], bool]) -> list[int]:
    """Return the offset of every line that is one of those."""
    found, position = [], 0
    for line in data.split(b"\n"):
        if is_one(line):
            found.append(position)
        position += len(line) + 1
    return found


def boundaries(data: bytes) -> list[int]:
    """Return the offset of every boundary line of a session."""
    return offsets(data, is_boundary)


def bodies(data: bytes) -> list[bytes]:
    """Return the session cut at its boundaries."""
    cuts = [0, *boundaries(data), len(data)]
    return [data[start:end] for start, end in pairwise(cuts)]
