"""Where the command `sessrotate` is, for those who are to call it later, and whether they can.

Rule: an absolute path, since whoever calls it may know no PATH of the user's.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from sessrotate.errors import WrongUsageError

_EXEC: Final = re.compile(rb"""^'{3}exec' (?:"([^"]+)"|(\S+)) """, re.MULTILINE)
"""The second line of a script that installers write, where a path is too long for the first."""


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
        "The command `sessrotate` cannot be found: install it with `pip install`, so that it can "
        "be called."
    )


def can_start(program: str) -> bool:
    """Tell whether a program can be started: it is there, and so is what interprets it.

    A script outlives the environment that it belongs to (a Python that was upgraded or removed).
    """
    path = shutil.which(program)
    if path is None:
        return False
    try:
        with Path(path).open("rb") as file:
            head = file.read(4096)
    except OSError:
        return True  # one that may be started, and not read
    if not head.startswith(b"#!"):
        return True
    words = head[2:].split(b"\n")[0].split()
    named = _EXEC.search(head)
    needed = [*words[:1], *((named[1] or named[2],) if named else ())]
    if words[1:] and words[0].endswith(b"/env") and shutil.which(os.fsdecode(words[1])) is None:
        return False
    return bool(needed) and all(Path(os.fsdecode(name)).exists() for name in needed)
