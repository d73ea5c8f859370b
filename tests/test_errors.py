"""Every error has an exit code, and of several the one that should worry most decides."""

from __future__ import annotations

from itertools import permutations

from sessrotate import errors
from sessrotate.errors import DamagedError, InUseError, RefusedError, SessrotateError, StorageError


def leaves(of: type[SessrotateError]) -> list[type[SessrotateError]]:
    below = of.__subclasses__()
    return [leaf for each in below for leaf in leaves(each)] if below else [of]


def test_the_worst_is_the_same_in_whatever_order_they_come() -> None:
    ranked = [DamagedError("d"), RefusedError("r"), InUseError("u")]
    for some in permutations(ranked):
        assert errors.worst(some) is ranked[0]
        assert errors.worst(each for each in some if each is not ranked[0]) is ranked[1]
        assert errors.exit_code(some) == 74
    same = [StorageError("first"), DamagedError("second")]
    assert errors.worst(same) is same[0]


def test_nothing_is_worst_where_nothing_failed() -> None:
    assert errors.worst([]) is None
    assert errors.exit_code([]) == 0


def test_whatever_is_raised_can_be_the_worst() -> None:
    for kind in leaves(SessrotateError):
        assert errors.exit_code([kind("")]) == kind.exit_code > 0
