"""What happens to a test where something that it needs cannot be had.

Rule: it is skipped and says why, unless SESSROTATE_REQUIRE_CLIENTS=1, which makes it fail.
"""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def cannot_test(reason: str) -> NoReturn:
    """End a test that cannot be run here."""
    if os.environ.get("SESSROTATE_REQUIRE_CLIENTS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
