"""What a run of the tests costs: tests and seconds for each part, after `pytest --cost`.

Rule: a part is a marker that keeps tests out of the daily run; what has none counts by its folder.
The seconds are those of the tests themselves, on whatever worker, with their fixtures.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

MARKERS: Final = ("clients", "browser", "scale", "race", "hostile", "exhaustive")
"""A test with several counts for the first of them."""

TESTS: Final = Path(__file__).parents[1]


def part_of(item: pytest.Item) -> str:
    """Return which part of a full run a test belongs to."""
    for name in MARKERS:
        if item.get_closest_marker(name) is not None:
            return name
    folder = item.path.relative_to(TESTS).parts[0]
    return f"by day: {folder if (TESTS / folder).is_dir() else 'the rest'}"


def table(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return the lines of the table, the most expensive part first."""
    tests: Counter[str] = Counter()
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        part = dict(report.user_properties).get("part")
        if isinstance(part, str):
            tests[part] += report.when == "call"
            seconds[part] += report.duration
    dearest_first = sorted(seconds, key=lambda part: -seconds[part])
    rows = [(part, tests[part], seconds[part]) for part in dearest_first]
    rows.append(("together", tests.total(), sum(seconds.values())))
    return [
        "| part | tests | seconds |",
        "|---|---:|---:|",
        *(f"| {part} | {count:,} | {spent:,.0f} |" for part, count, spent in rows),
    ]
