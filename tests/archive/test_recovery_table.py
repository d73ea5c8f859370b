"""Every case of an interrupted swap is decided once, and never against what the files say."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from sessrotate.archive import recovery_table
from sessrotate.archive.intent import OPERATIONS, Operation
from sessrotate.archive.recovery_table import MATCHES, ROWS, SIGNS, Match, Sign, decided

CASES = list(product(OPERATIONS, MATCHES, SIGNS))


def test_the_table_is_about_every_case() -> None:
    assert set(MATCHES) == set(get_args(Match))
    assert set(SIGNS) == set(get_args(Sign))
    assert {row.standing for row in ROWS} == set(get_args(recovery_table.Standing))
    assert {row.deed for row in ROWS} == set(get_args(recovery_table.Deed))
    for case in CASES:
        assert decided(*case) in ROWS


def test_every_row_decides_something() -> None:
    assert {decided(*case).why for case in CASES} == {row.why for row in ROWS}
    for row in ROWS:
        assert any(decided(*case) is row for case in CASES), row


@pytest.mark.parametrize(("operation", "live", "sign"), CASES)
def test_what_is_done_fits_what_the_files_say(
    operation: Operation, live: Match, sign: Sign
) -> None:
    """The promises behind the rows, each by itself."""
    row = decided(operation, live, sign)
    is_swap = operation in {"rotate", "restore"}
    if row.standing == "after":
        assert row.deed == "finish", "what was done is never undone"
        assert live == "new" or sign == "done", "nothing else proves that it was"
    if row.deed == "undo":
        assert is_swap, "late lines are never given up"
        assert sign != "done", "nothing is undone that sealed anything"
        assert live in {"old", "absent"} or sign == "no pack", "the pack may have the only copy"
    if live == "old" and sign == "none":
        assert row.standing == "before"
    if (live == "other" or (operation == "rotate" and live == "absent")) and sign == "none":
        assert row.deed == "refuse" or operation == "late", "in doubt nothing is touched"
