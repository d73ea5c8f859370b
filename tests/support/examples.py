"""How property tests draw their examples: the same ones in each gate, new ones in each soak.

Both profiles name every setting. One that is not named comes from the profile that Hypothesis
loads by itself, and which one that is depends on whether `CI` is set.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.internal.conjecture import providers

GATE: Final = "gate"
SOAK: Final = "soak"

USUAL: Final = 100
"""Examples of a property without a number of its own."""

SHORTER: Final = 2
"""The gate tries one in so many of them, always the same."""

LONGER: Final = 5
"""The soak tries so many times as many, always others."""


FAILED: Final = Path(os.environ.get("HYPOTHESIS_STORAGE_DIRECTORY", ".hypothesis"), "examples")
"""Where the soak keeps what failed, to try it first in its next run."""

_BOTH: Final[dict[str, Any]] = {
    "backend": "hypothesis",
    "deadline": None,  # it would measure the machine, and what else it does
    "phases": (Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink),
    "print_blob": True,
    "report_multiple_bugs": True,
    "stateful_step_count": 50,
    "suppress_health_check": (HealthCheck.too_slow, HealthCheck.data_too_large),
    "verbosity": Verbosity.normal,
}

PROFILES: Final[dict[str, dict[str, Any]]] = {
    GATE: {**_BOTH, "derandomize": True, "database": None, "max_examples": USUAL // SHORTER},
    SOAK: {
        **_BOTH,
        "derandomize": False,
        "database": DirectoryBasedExampleDatabase(FAILED),
        "max_examples": USUAL * LONGER,
    },
}
"""Every setting of each."""


def register_profiles() -> None:
    """Make both profiles known, and load `gate`; `--hypothesis-profile soak` loads the other."""
    for name, values in PROFILES.items():
        settings.register_profile(name, **values)
    settings.load_profile(GATE)


def is_gate() -> bool:
    """Tell whether the gate's profile is loaded."""
    return settings.get_current_profile_name() == GATE


def draw_by_the_test_alone() -> None:
    """Have what is drawn depend on the property and the seed, not on which modules are loaded.

    Hypothesis 6.131 and later draws literals of all local modules that are loaded at that moment:
    which ones depends on the tests that ran before in the same process, and any change of a source
    file would draw other examples everywhere.
    """
    nothing: Final = providers._local_constants  # noqa: SLF001 - there is no public switch
    assert len(nothing) == 0, "something was drawn before"
    assert callable(providers._get_local_constants)  # noqa: SLF001
    providers._get_local_constants = lambda: nothing  # noqa: SLF001


def examples(count: int, **others: Any) -> settings:
    """Return the settings of a test of so many examples: `SHORTER` and `LONGER` say of what."""
    return settings(max_examples=count * settings().max_examples // USUAL, **others)
