"""What the Agent SDK says of sessions, which programs list with it instead of the client.

Rule: it only reads, in a process of its own, at the home of the client whose sessions they are.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final

from support.real_clients.installing import UnavailableError, installed

if TYPE_CHECKING:
    from pathlib import Path

    from support.real_clients.client import Client

PACKAGE: Final = "@anthropic-ai/claude-agent-sdk"
NUMBER: Final = "0.3.330"
"""The release that goes with 2.1.330."""

_LIMIT: Final = 60.0

_SCRIPT: Final = """
import { pathToFileURL } from "node:url";
const { listSessions } = await import(pathToFileURL(process.argv[2]).href);
console.log(JSON.stringify(await listSessions({ dir: process.argv[3] })));
"""


def install() -> Path:
    """Install the SDK unless it is there, without the client that it brings; return its module."""
    folder = installed(PACKAGE, NUMBER, f"sdk-{NUMBER}", "--omit=optional")
    return folder / "node_modules" / PACKAGE / "sdk.mjs"


def listed(client: Client) -> list[dict[str, Any]]:
    """Return what the SDK says of the sessions of a client."""
    module, node = install(), shutil.which("node")
    if node is None:
        raise UnavailableError("Node.js is not installed")
    done = subprocess.run(
        [node, "--input-type=module", "-", str(module), str(client.work)],
        input=_SCRIPT,
        cwd=client.work,
        env=client.environment(),
        capture_output=True,
        text=True,
        timeout=_LIMIT,
        check=True,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
