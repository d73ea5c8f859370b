"""The real Codex as editors and its desktop app talk to it: `codex app-server`, JSON on pipes.

It promises that the process ends with the block that it was started for.

Rule: one request after another; what the server tells in between is only waited for.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

from support.real_clients.client import ClientError
from support.real_clients.installing import status_of

if TYPE_CHECKING:
    from support.real_clients.codex_api import Body
    from support.real_clients.codex_client import Codex

KINDS: Final = ("exec", "cli", "appServer", "vscode", "unknown")
"""All sources of sessions: without them, those of `codex exec` are not listed."""


class AppServer:
    """A running app server of one home; a context manager that ends it."""

    def __init__(self, codex: Codex) -> None:
        self._codex = codex
        self._numbers = itertools.count(1)
        self._told: list[str] = []
        self._process = subprocess.Popen(
            [*codex.command, "app-server"],
            cwd=codex.work,
            env=codex.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        client = {"name": "sessrotate-test", "title": "test", "version": "1"}
        self.call("initialize", clientInfo=client, capabilities={"experimentalApi": True})
        self._send({"method": "initialized"})

    def call(self, method: str, **params: Any) -> Any:
        """Return the result of a request, or `{"error": …}`."""
        number = next(self._numbers)
        self._send({"id": number, "method": method, "params": params})
        while True:
            answer = self._next()
            if answer.get("id") == number and "method" not in answer:
                return answer["result"] if "result" in answer else {"error": answer["error"]}

    def turn(self, thread: str, text: str) -> list[Body]:
        """Send a prompt to a thread that is open, and return what the client asked for."""
        before = len(self._codex.api.requests())
        self._told.clear()
        self.call("turn/start", threadId=thread, input=[{"type": "text", "text": text}])
        while "turn/completed" not in self._told:
            self._next()
        return self._codex.api.requests()[before:]

    def _send(self, message: Body) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _next(self) -> Body:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ClientError(f"Codex {self._codex.number}: its app server has ended")
        answer: Body = json.loads(line)
        self._told.append(answer.get("method", ""))
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        status_of(self._process, time.monotonic() + 10)
        self._process.stdout.close()
