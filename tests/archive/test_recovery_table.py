"""Every case of an interrupted swap is decided once, and never against what the files say."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from sessrotate.archive import record
from sessrotate.archive.record import DRAFTED, MATCHES, ROWS, Drafted, Match, Operation, decided

CASES = list(product(get_args(Operation), MATCHES, DRAFTED, (True, False)))


def test_the_table_is_about_every_case() -> None:
    assert set(MATCHES) == set(get_args(Match))
    assert set(DRAFTED) == set(get_args(Drafted))
    assert {row.standing for row in ROWS} == set(get_args(record.Moment))
    assert {row.deed for row in ROWS} == set(get_args(record.Decision))
    for *case, has_pack in CASES:
        assert decided(*case, has_pack=has_pack) in ROWS


def test_every_row_decides_something() -> None:
    for row in ROWS:
        assert any(decided(*case, has_pack=pack) is row for *case, pack in CASES), row


@pytest.mark.parametrize(
    ("operation", "live", "has_pack"), [*product(get_args(Operation), MATCHES, (True, False))]
)
def test_what_is_done_fits_what_the_files_say(
    operation: Operation, live: Match, has_pack: bool
) -> None:
    """The promises behind the rows, each by itself."""
    for drafted in DRAFTED:
        row = decided(operation, live, drafted, has_pack=has_pack)
        is_elsewhere = drafted in {"old", "live", "absent"}
        if row.standing == "after":
            assert row.deed == "finish", "what was done is never undone"
            assert live in {"new", "kept"} or is_elsewhere, "no other proof"
        if row.deed == "undo":
            is_unneeded = live in {"old", "absent", "pack"} or not has_pack
            assert is_unneeded or drafted == "other", "the pack may have the only copy"
        if live == "pack":
            assert row.standing == "before", "the live file is the one that was to be replaced"
        if drafted == "old" and live not in {"pack", "absent"}:
            assert row.standing == "after", "it came out of the exchange"
        is_in_doubt = operation == "rotate" and live == drafted == "absent"
        if is_in_doubt and has_pack:
            assert row.deed == "refuse", "in doubt nothing is touched"
