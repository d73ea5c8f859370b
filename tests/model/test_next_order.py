"""The next order of writes, in a model: no history of a short life loses a line.

Its rules stand at the top of `support/next_order/rules.py`. The gate tries a sample of the
histories, the soak a sweep. Each rule is taken out once, and then some history is a bad one; the
rules of which the model cannot tell what they are good for are listed with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from support.next_order import jobs
from support.next_order.histories import Job, explore
from support.next_order.rules import Rule
from support.tiers import in_gate

if TYPE_CHECKING:
    from collections.abc import Iterable

CAUGHT: Final = {
    Rule.BUSY_FIRST: Job("_r", "O"),
    Rule.LISTED_IS_READ_BACK: Job("rpe", "S"),
    Rule.SYNC_SEGMENT: Job("r", cuts=1),
    Rule.KEPT_GOES_WHEN_READ: Job("rcr", "TV"),
    Rule.SYNC_SMALL_FOLDER: Job("rcr", cuts=1),
    Rule.COMPARED_BEFORE: Job("r", "D"),
    Rule.LEASE: Job("r", "OC"),
    Rule.CATCH_UP: Job("r", "A"),
    Rule.SYNC_OLD: Job("r", "A", cuts=1),
    Rule.SYNC_BEFORE_A_BATCH: Job("r", "A", cuts=1),
    Rule.SYNC_DRAFT: Job("r", cuts=1),
    Rule.EDGE: Job("r", "D", leases=False),
    Rule.CAME_OUT: Job("r", "R"),
    Rule.NEWER_SAVE_STAYS: Job("r", "sGP", kills=1),
    Rule.BACK_AGAIN: Job("r", "RR"),
    Rule.REPLACED_IS_FINISHED: Job("r", "ETV", kills=1, leases=False),
    Rule.COMPARED_BEFORE_A_BATCH: Job("r", "OE"),
    Rule.NOTED_FIRST: Job("r", "A", kills=1),
    Rule.SYNC_APPENDED: Job("r", "A", cuts=1),
    Rule.NOT_BEHIND_A_TORN_LINE: Job("r", "AHC", kills=1),
    Rule.NAME_IS_LOOKED_AT: Job("r", "AR", leases=False),
    Rule.EDITED_GOES_ASIDE: Job("r", "E", leases=False),
    Rule.LEASE_LETS_GO: Job("r", "O"),
    Rule.QUIET_DAY: Job("r", "oC", leases=False),
    Rule.NOBODY_KNOWN: Job("rd", "OC", leases=False),
    Rule.DRAFT_WAITS: Job("r", "RO", kills=1),
    Rule.RECORD_FIRST: Job("r", "RO", kills=1),
    Rule.LOST_RECORD_ASIDE: Job("rlr", "O"),
    Rule.NEVER_COUNTED_ASIDE: Job("r", "s", kills=1),
    Rule.SYNC_LIVE_FIRST: Job("rcrmr", "S", cuts=1),
    Rule.READER_COMPARES: Job("r", "s"),
    Rule.ONLY_COUNTED_PRUNED: Job("rRpe", "q"),
    Rule.PRUNE_IS_SETTLED: Job("rpRr", kills=1),
}
"""For each rule, the histories among which one is bad as soon as it is left out."""

DEAR: Final = frozenset(
    {
        Rule.SYNC_OLD,
        Rule.SYNC_BEFORE_A_BATCH,
        Rule.SYNC_LIVE_FIRST,
        Rule.NEWER_SAVE_STAYS,
        Rule.REPLACED_IS_FINISHED,
        Rule.SYNC_APPENDED,
        Rule.NOT_BEHIND_A_TORN_LINE,
    }
)
"""What takes seconds: the soak does it."""

EASING: Final = {
    Rule.KEPT_IS_READ: Job("r", "TV"),
    Rule.COUNTED: Job("r", "s"),
    Rule.COUNTED_REFUSED: Job("r", "s"),
    Rule.TAIL_GETS_HEADER: Job("r", "TU"),
    Rule.MARK_TAKEN_FIRST: Job("rR", "E"),
}
"""Without these nothing is lost, but more is put aside or refused: a person has to see to it."""

NOT_CAUGHT: Final = {
    Rule.SYNC_LIVE_FOLDER: "the plan began with it, and a file that came later is noticed",
    Rule.SYNC_SEGMENTS_FOLDER: "the manifest is in that folder, and its own sync does it",
    Rule.WHOLE_LINES: "others would write behind a torn line without us, too",
    Rule.SYNC_BOTH_FOLDERS: "whatever comes next begins with that, and the old file is whole",
    Rule.LATE_AT_ONCE: "they come over a moment later, when the old file is let go",
    Rule.LATE_ARE_WHOLE: "others would write behind a torn line without us, too",
    Rule.NO_UUID_TWICE: "the place of a batch is found without it",
    Rule.GONE_GOES_ASIDE: "its client took the live file away itself",
}
"""What the model cannot tell the good of. Of the bytes within a line it knows nothing."""


def bad(tried: Iterable[Job]) -> dict[str, dict[str, tuple[int, str]]]:
    """Return what is wrong: for each job each complaint, how often, the shortest history."""
    found = {str(job): explore(job).complaints for job in tried}
    return {job: complaints for job, complaints in found.items() if complaints}


@pytest.mark.parametrize("leases", jobs.BOTH)
def test_no_history_of_a_short_life_loses_a_line(leases: bool) -> None:
    assert bad(job for job in jobs.sample() if job.leases is leases) == {}


@pytest.mark.race
@pytest.mark.parametrize("life", [*jobs.LIVES, *jobs.LOSING])
def test_no_history_of_the_sweep_loses_a_line(life: str) -> None:
    assert bad(job for job in jobs.sweep() if job.life == life) == {}


@pytest.mark.parametrize(
    "rule",
    in_gate(CAUGHT, [rule for rule in CAUGHT if rule not in DEAR], "race"),
    ids=[rule.name for rule in CAUGHT],
)
def test_without_a_rule_some_history_is_bad(rule: Rule) -> None:
    assert bad([CAUGHT[rule]]) == {}
    assert bad([CAUGHT[rule]._replace(without=rule)])


@pytest.mark.parametrize("rule", EASING, ids=[rule.name for rule in EASING])
def test_without_some_rules_a_person_has_to_see_to_it(rule: Rule) -> None:
    without = explore(EASING[rule]._replace(without=rule))
    assert not without.complaints
    assert {*without.remarks} - {*explore(EASING[rule]).remarks}


def test_each_rule_is_caught_or_a_reason_says_why_not() -> None:
    assert sorted([*CAUGHT, *EASING, *NOT_CAUGHT]) == sorted(Rule)
