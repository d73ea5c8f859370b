"""Which parameters of an exhaustive test are tried day by day, and which in the full run only.

Rule: nothing is left out of the full run. What is marked keeps its id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from _pytest.mark.structures import ParameterSet


def by_day(values: Iterable[Any], daily: int | Collection[Any], mark: str) -> list[ParameterSet]:
    """Return all values as parameters, and mark all but the daily ones.

    `daily` is those values themselves, or how many of the first ones.
    """
    found = [*values]
    kept = found[:daily] if isinstance(daily, int) else daily
    strangers = [value for value in kept if value not in found]
    assert not strangers, strangers
    others = getattr(pytest.mark, mark)
    return [pytest.param(value, marks=() if value in kept else others) for value in found]
