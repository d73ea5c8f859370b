"""What is to be started, and how often. Pure.

Rule: nothing here is for a shell. Each system quotes for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Every = Literal["hourly", "daily", "weekly"]

MARK: Final = "Written by `sessrotate schedule install`; `sessrotate schedule remove` removes it."
"""In every file of ours, so that nobody else's is taken for one."""

MINUTE: Final = 17
HOUR: Final = 3
"""When it is started where the system chooses no time itself: at night, and off the full hour."""


@dataclass(frozen=True, slots=True)
class Work:
    """`sessrotate run` by its absolute path; `environment` has the variables that say where."""

    program: str
    environment: Mapping[str, str]
    every: Every
