"""How many examples a property test tries: as many as it says in full, a tenth of it day by day.

Rule: a test says how many the full run tries. The profile, chosen by `--hypothesis-profile`,
makes it fewer.
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import HealthCheck, settings

FULL: Final = 100
"""What a property without a number of its own tries in the full profile: hypothesis's default."""

QUICK: Final = 10
_FEWEST: Final = 5


def register_profiles() -> None:
    """Make `quick` and `full` known, and `quick` the one where none is asked for."""
    for name, count in (("quick", QUICK), ("full", FULL)):
        settings.register_profile(
            name,
            max_examples=count,
            # No deadline: it would measure the machine, and what else it does.
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
    settings.load_profile("quick")


def examples(count: int, **others: Any) -> settings:
    """Return the settings of a test that tries so many examples in the full profile."""
    share = count * settings().max_examples // FULL  # of the profile that is loaded
    return settings(max_examples=max(min(_FEWEST, count), share), **others)
