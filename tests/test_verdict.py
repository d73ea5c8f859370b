"""A red run ends with what failed, where, and how to draw it again, on one screen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from support import verdict


def report(number: int, *, text: str = "", seed: str = "", message: str = "E: wrong") -> Any:
    crash = SimpleNamespace(message=message, path="tests/test_it.py", lineno=number)
    return SimpleNamespace(
        nodeid=f"tests/test_it.py::test_{number}",
        longrepr=SimpleNamespace(reprcrash=crash),
        longreprtext=text,
        sections=[],
        user_properties=[("seed", seed)] if seed else [],
    )


def test_a_failed_test_is_told_with_assertion_place_seed_and_blob() -> None:
    text = "You can reproduce it by temporarily adding @reproduce_failure('6.1', b'AXic')\non top"
    failed = report(7, text=text, seed="12 a", message="assert 1 == 2\nwhere\n1\nmore\nand more")
    assert verdict.lines([failed]) == [
        "FAILED tests/test_it.py::test_7",
        "    assert 1 == 2",
        "    where",
        "    1",
        "    at tests/test_it.py:7",
        "    @reproduce_failure('6.1', b'AXic')",
        "    seed 12 a",
    ]


def test_a_verdict_fits_one_screen_however_much_failed() -> None:
    told = verdict.lines(report(number, message="x" * 5000) for number in range(500))
    assert len(told) <= verdict.MOST
    assert max(map(len, told)) <= verdict.WIDTH
    shown = sum(line.startswith("FAILED") for line in told)
    assert told[-1] == f"… and {500 - shown} more, above"
