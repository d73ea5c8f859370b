"""What a red run ends with: each failed test in a few lines, and how to see it again.

At most `MOST` lines, so that whoever reads the end of a log has all of it on one screen. The whole
tracebacks stand above.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

MOST: Final = 36
"""Lines of a verdict; four of the forty are left for the scripts around it."""

WIDTH: Final = 200
"""Characters of a line, but for a blob: half of one is of no use."""

_BLOB: Final = re.compile(r"@reproduce_failure\(.*\)")
_INNER: Final = re.compile(r"(?<=\| )\w*(?:Error|Exception): .*")
_SEED: Final = re.compile(r"--hypothesis-seed=\d+|@seed\(\d+\)")


def lines(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> list[str]:
    """Return what to say of failed reports: test, assertion, place, seed and blob of each."""
    told: list[str] = []
    rest = 0
    for report in reports:
        of_one = _of_one(report)
        if rest or len(told) + len(of_one) > MOST - 1:
            rest += 1
        else:
            told += of_one
    return [*told, f"… and {rest} more, above"] if rest else told


def _of_one(report: pytest.TestReport | pytest.CollectReport) -> list[str]:
    found = [f"FAILED {report.nodeid}"]
    if crash := getattr(report.longrepr, "reprcrash", None):
        found += [f"    {line}" for line in crash.message.splitlines()[:3]]
        found += [f"    {line}" for line in _grouped(crash.message, report.longreprtext)]
        found += [f"    at {crash.path}:{crash.lineno}"]
    else:
        whole = [line for line in report.longreprtext.splitlines() if line.strip()]
        found += [f"    {line}" for line in whole[-3:]]
    return [*(line[:WIDTH] for line in found), *(f"    {line}" for line in _again(report))]


def _grouped(message: str, text: str) -> list[str]:
    """Return what each of several failures of one property says."""
    return _INNER.findall(text)[:3] if "ExceptionGroup" in message else []


def _again(report: pytest.TestReport | pytest.CollectReport) -> list[str]:
    """Return what draws the same once more, whole however long it is."""
    text = "\n".join([report.longreprtext, *(content for _, content in report.sections)])
    found = [*dict.fromkeys(_BLOB.findall(text) + _SEED.findall(text))]
    properties = getattr(report, "user_properties", [])
    return [*found, *(f"seed {value}" for name, value in properties if name == "seed")]
