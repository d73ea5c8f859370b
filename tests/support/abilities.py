"""Marks for tests about what only some systems have, skipped with the reason where it is missing.

Rule: asked of `platforms`, as the code does, so that `--portable` skips them too.
"""

from __future__ import annotations

from typing import Final

import pytest

from sessrotate.platforms import HERE

needs_leases: Final = pytest.mark.skipif(not HERE.leases, reason="there are no leases here")

needs_exact_renames: Final = pytest.mark.skipif(
    HERE.exact_renames is None, reason="two names cannot exchange their files here"
)

needs_open_files: Final = pytest.mark.skipif(
    HERE.open_files != "proc", reason="nobody tells here who has a file open"
)
