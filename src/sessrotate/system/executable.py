"""Where the command `sessrotate` is, for those who are to call it later.

Rule: an absolute path, since whoever calls it may know no PATH of the user's.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from sessrotate.errors import WrongUsageError


def path() -> str:
    """Return the absolute path; raise WrongUsageError if it is not installed where it is found.

    The name it was called by comes first: it may be a link that outlives an upgrade.
    """
    name = "sessrotate"
    beside = Path(sys.executable).with_name(name)
    for candidate in (Path(sys.argv[0]).absolute(), beside, shutil.which(name)):
        if candidate is not None and Path(candidate).name == name and os.access(candidate, os.X_OK):
            return str(Path(candidate).absolute())
    raise WrongUsageError(
        "The command `sessrotate` is not installed where it could be found: `pip install` it, so "
        "that it can be called."
    )
