"""A system that has nothing of its own: every difference of platforms taken away at once.

Rule: taken away where the code asks for it, so that what runs is what runs on such a system.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate.fs import exact
from sessrotate.in_place import seal
from sessrotate.system import in_use, lease

if TYPE_CHECKING:
    import pytest

MISSING: Final = ("O_TMPFILE", "listxattr", "getxattr", "setxattr")
"""What only Linux has of Python's `os`."""


def become_portable(patch: pytest.MonkeyPatch) -> None:
    """Have no leases, no `renameat2`, no unnamed files, no extended attributes and no `/proc`.

    Nobody waits for a minute: what was replaced is sealed at once, by copies, and waits for a day.
    """
    patch.setattr(lease, "_take", lambda _fd, _kind: "none")
    patch.setattr(lease, "SETTLE", 0)
    patch.setattr(seal, "_QUIET", 0)
    patch.setattr(exact, "FORM", exact.Portable())
    patch.setattr(in_use, "_PROC", Path("/nonexistent"))
    for name in MISSING:
        patch.delattr(os, name, raising=False)
