"""The real Codex CLI, installed from npm and run where it can do no harm.

It promises that a run sees nothing of this machine but PATH and its own folders, talks to nobody
but the mock API, and ends within its time limit.

Rule: as in `clients.client`, whose installer this shares.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from support.real_clients import one_prompt
from support.real_clients.installing import UnavailableError, installed
from support.real_clients.required import cannot_test

if TYPE_CHECKING:
    from support.real_clients.codex_api import Body, ResponsesApi

PACKAGE: Final = "@openai/codex"

VERSIONS: Final = ("0.42.0", "0.101.0", "0.142.5", "0.169.0")
"""Oldest first: a summary alone, the same with later events, a history, a paginated session."""

WINDOW: Final = 50_000
"""Tokens from which on the client compacts before it goes on."""

_CONFIG: Final = """\
model = "gpt-5.1-codex"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
model_context_window = 100000
model_auto_compact_token_limit = {window}

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 0
stream_max_retries = 0
"""


def install(number: str) -> tuple[str, ...]:
    """Install a version of the client unless it is there, and return the command that runs it."""
    folder = installed(PACKAGE, number, f"codex-{number}")
    script = folder / "node_modules" / PACKAGE / "bin" / "codex.js"
    node = shutil.which("node")
    if not script.is_file() or node is None:
        raise UnavailableError(f"{folder} holds no client that runs on this machine")
    return (node, str(script))


def at_home(number: str, home: Path, api: ResponsesApi) -> Codex:
    """Return a version of the client at home in a folder; end the test if it cannot be had."""
    try:
        install(number)
    except UnavailableError as error:
        cannot_test(f"NOT TESTED with Codex {number}: {error}")
    return Codex(number, home, api)


class Codex:
    """One installation of the client at home in one folder."""

    def __init__(self, number: str, home: Path, api: ResponsesApi) -> None:
        self.number = number
        self.home = home.resolve()
        self.api = api
        self.config, self.work = self.home / "config", self.home / "work"
        for folder in (self.config, self.work, self.home / "user", self.home / "tmp"):
            folder.mkdir(parents=True, exist_ok=True)
        settings = _CONFIG.format(window=WINDOW, url=api.url)
        (self.config / "config.toml").write_text(settings)
        self.command = install(number)

    @property
    def path(self) -> Path:
        """The only session's file."""
        (path,) = (self.config / "sessions").rglob("rollout-*")
        return path

    @property
    def session(self) -> str:
        """The only session's id."""
        return self.path.name[len("rollout-2026-11-21T23-20-23-") :].partition(".")[0]

    def prompt(self, text: str, *options: str, resume: str | None = None) -> list[Body]:
        """Run the client for one prompt and return what it asked for, in order.

        `resume` is the session's id, or `--last`; the client's `options` stand behind the prompt.
        """
        before = len(self.api.requests())
        resuming = ["resume", resume] if resume is not None else []
        self.run("exec", "--skip-git-repo-check", *resuming, text, *options)
        return self.api.requests()[before:]

    def run(self, *arguments: str) -> None:
        """Run the client; raise ClientError unless it ends with 0 in time."""
        one_prompt.run(
            f"Codex {self.number}", [*self.command, *arguments], self.work, self.environment()
        )

    def environment(self) -> dict[str, str]:
        """Return all that a process of the client sees of its surroundings."""
        proxies = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.home / "user"),
            "TMPDIR": str(self.home / "tmp"),
            "CODEX_HOME": str(self.config),
            "GIT_CEILING_DIRECTORIES": str(self.home),
            "MOCK_KEY": "dummy",
            **dict.fromkeys(proxies, self.api.url),
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
