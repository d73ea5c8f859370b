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


def test_an_error_without_a_place_ends_as_its_text_does() -> None:
    broken = report(1, text="file test_it.py, line 3\n\nE  fixture 'nobody' not found\n> available")
    broken.longrepr = "no such fixture"
    assert verdict.lines([broken]) == [
        "FAILED tests/test_it.py::test_1",
        "    file test_it.py, line 3",
        "    E  fixture 'nobody' not found",
        "    > available",
    ]


def test_of_several_failures_of_one_property_each_is_told() -> None:
    text = "  | ExceptionGroup: two\n  | AssertionError: one is odd\n  | ValueError: two\n"
    told = verdict.lines([report(1, text=text, message="ExceptionGroup: two")])
    assert "    AssertionError: one is odd" in told
    assert "    ValueError: two" in told


def test_a_blob_is_whole_however_long_it_is() -> None:
    blob = f"@reproduce_failure('6.1', b'{'A' * 900}')"
    assert verdict.lines([report(1, text=blob)])[-1] == f"    {blob}"


def test_a_verdict_fits_one_screen_however_much_failed() -> None:
    told = verdict.lines(report(number, message="x" * 5000) for number in range(500))
    assert len(told) <= verdict.MOST
    assert max(map(len, told)) <= verdict.WIDTH
    shown = sum(line.startswith("FAILED") for line in told)
    assert told[-1] == f"… and {500 - shown} more, above"


def test_nothing_is_told_where_nothing_failed() -> None:
    assert verdict.lines([]) == []
