"""A system that has nothing of its own, or that lacks one ability.

Rule: taken away in the one place where the code asks for it (`platforms`), so that what runs is
what runs on such a system.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sessrotate import platforms
from sessrotate.in_place import waiting
from sessrotate.system import locks

if TYPE_CHECKING:
    import pytest


_SETTLE: Final = locks.SETTLE
_is_over: Final = waiting.is_over


def become_portable(patch: pytest.MonkeyPatch) -> None:
    """Take all abilities away at once.

    Nobody waits for a day: what was replaced goes with the next run. Waiting, and the clock that it
    goes by, have tests of their own (`in_place/test_waiting.py`, `crash/test_waiting_kills.py`).
    """
    patch.setattr(platforms, "HERE", platforms.PORTABLE)
    patch.setattr(locks, "SETTLE", 0)
    patch.setattr(waiting, "is_over", lambda *_, **__: True)


def have_quiet(patch: pytest.MonkeyPatch, day: float) -> None:
    """Have the quiet day, of which nothing is left out, last for so many seconds."""
    patch.setattr(locks, "SETTLE", _SETTLE)
    patch.setattr(waiting, "is_over", _is_over)
    patch.setattr(waiting, "QUIET", day)


def lack(patch: pytest.MonkeyPatch, *abilities: str) -> None:
    """Take away some abilities: fields of `Platform`."""
    without: dict[str, Any] = dict.fromkeys(abilities)
    patch.setattr(platforms, "HERE", replace(platforms.HERE, **without))
