"""The real Gemini CLI, installed from npm and run where it can do no harm.

It promises that a run sees nothing of this machine but PATH and its own folders, talks to nobody
but the mock API, and ends within its time limit.

Rule: as in `clients.client`, whose installer this shares.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Final

from support.real_clients import one_prompt
from support.real_clients.installing import (
    KEEPS_COMPILED,
    UnavailableError,
    by_quick_node,
    installed,
)

if TYPE_CHECKING:
    from pathlib import Path

    from support.real_clients.gemini_api import Body, GeminiApi

PACKAGE: Final = "@google/gemini-cli"

VERSIONS: Final = ("0.38.2", "0.39.1", "0.61.0")
"""Oldest first: one object, lines, lines with updates that replace all messages."""

_LITTLE: Final = 0.0015
"""The share of a million tokens from which on a client may be told to compress."""

_SETTINGS: Final = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    # The client would count what it leaves at a resume itself as damaged, and delete the session.
    "general": {"sessionRetention": {"enabled": False}, "disableAutoUpdate": True},
    "telemetry": {"enabled": False},
    "privacy": {"usageStatisticsEnabled": False},
}


def install(number: str) -> tuple[str, ...]:
    """Install a version of the client unless it is there, and return the command that runs it."""
    folder = installed(PACKAGE, number, f"gemini-{number}") / "node_modules" / PACKAGE
    node = shutil.which("node")
    script = next((path for path in folder.glob("bundle/gemini.js")), None)
    if script is None or node is None:
        raise UnavailableError(f"{folder} holds no client that runs on this machine")
    return (node, str(script))


class Gemini:
    """One installation of the client at home in one folder."""

    def __init__(self, number: str, home: Path, api: GeminiApi) -> None:
        self.number = number
        self.home = home.resolve()
        self.api = api
        self.work = self.home / "work"
        self.config = self.home / "user" / ".gemini"
        for folder in (self.work, self.config, self.home / "tmp"):
            folder.mkdir(parents=True, exist_ok=True)
        self.command = by_quick_node(install(number))

    @property
    def path(self) -> Path:
        """The only session's file: what else the client leaves there is smaller."""
        found = self.config.glob("tmp/*/chats/session-*")
        return max(found, key=lambda path: path.stat().st_size)

    def prompt(self, text: str, *, resumes: bool = True, compresses: bool = False) -> list[Body]:
        """Run the client for one prompt and return what it sent for an answer, in order.

        It resumes the session, unless told otherwise; with `compresses` it does that before it
        asks, if there are more than some thousand tokens: it estimates them by what it loaded.
        """
        threshold = {"model": {"compressionThreshold": _LITTLE if compresses else 0.9}}
        (self.config / "settings.json").write_text(json.dumps(_SETTINGS | threshold))
        before = len(self.api.requests())
        resuming = ("--resume", "latest") if resumes else ()
        command = [*self.command, *resuming, "--yolo", "--prompt", text]
        one_prompt.run(f"Gemini CLI {self.number}", command, self.work, self._environment())
        return self.api.requests()[before:]

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home / "user"),
            "TMPDIR": str(self.home / "tmp"),
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": self.api.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "NO_COLOR": "1",
            **KEEPS_COMPILED,
            # Whatever else it may want of the network goes nowhere.
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "https_proxy"), self.api.url),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1"),
        }
