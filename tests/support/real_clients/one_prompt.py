"""A client run for one prompt, in a process that leaves nothing behind.

Rule: whatever it started ends with it, and what it said is told if it fails.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Final

from support.real_clients.client import ClientError
from support.real_clients.installing import status_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LIMIT: Final = 90.0
"""Seconds that a client may take for one prompt."""


def run(name: str, command: Sequence[str], work: Path, environment: Mapping[str, str]) -> None:
    """Run a client in its folder; raise ClientError unless it ends with 0 in time."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        status = status_of(process, time.monotonic() + LIMIT)
        output.seek(0)
        said = output.read()[-2000:].decode(errors="replace")
    if status != 0:
        raise ClientError(f"{name} ended with {status}. It said: {said!r}")
