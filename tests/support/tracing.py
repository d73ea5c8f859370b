"""Whether strace can be used here.

Rule: what cannot be traced is skipped, and the reason says what is missing.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache


@cache
def hindrance(*options: str) -> str | None:
    """Return why nothing can be traced here with these options, None if it can."""
    if shutil.which("strace") is None:
        return "there is no strace"
    done = subprocess.run(
        ["strace", "-f", "-qq", *options, "-o", "/dev/null", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    # A tracer that is nobody's child (-D) has no exit code of its own, but it says what is wrong.
    if done.returncode == 0 and not done.stderr:
        return None
    return f"strace may not trace: {done.stderr.strip()}"
