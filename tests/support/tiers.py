"""Which parameters of a test the gate tries, where the soak tries all of them.

What is left to the soak is marked as the part of it that runs it, and keeps its id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from _pytest.mark.structures import ParameterSet


def in_gate(values: Iterable[Any], some: int | Collection[Any], part: str) -> list[ParameterSet]:
    """Return all values as parameters, those that are not for the gate with the mark of a part.

    `some` names the values for the gate, or says how many of the first ones they are.
    """
    found = [*values]
    tried = found[:some] if isinstance(some, int) else some
    strangers = [value for value in tried if value not in found]
    assert not strangers, strangers
    others = getattr(pytest.mark, part)
    return [pytest.param(value, marks=() if value in tried else others) for value in found]
