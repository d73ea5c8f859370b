"""A stand-in for the Gemini API that the real Gemini CLI talks to, on loopback only.

It promises that every request for an answer can be read afterwards.

Rule: what is answered depends on the request alone; a test steers by what it writes into its
prompts: `[[run COMMAND]]` has a command run.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final

from support.real_clients import loopback

Body = dict[str, Any]

TOKENS: Final = 1000

SUMMARY: Final = (
    "<state_snapshot><overall_goal>Mend the ferry ledger.</overall_goal></state_snapshot>"
)
"""What the model says when it is asked to sum up."""

_RUN: Final = re.compile(r"\[\[run (.*?)\]\]")
_ROUTED: Final = {
    "reasoning": "mock",
    "next_speaker": "user",
    "model_choice": "flash",
    "complexity_score": 10,
    "complexity_reasoning": "mock",
}
"""What the client asks on the side: who speaks next, and which model is to answer."""


class GeminiApi(loopback.Api[Body]):
    """The running mock; it keeps the bodies of all requests for an answer."""

    def __init__(self) -> None:
        super().__init__(loopback.Server(_Handler))


class _Handler(loopback.Handler):
    headers_too = (("connection", "close"),)
    server: loopback.Server[Body]

    def do_GET(self) -> None:
        """Answer that there are no models to choose from."""
        self.send(b'{"models":[]}', "application/json")

    def do_CONNECT(self) -> None:
        """Be a way to here (0.38.2 asks its proxy for that too), and to nowhere else."""
        own = self.connection.getsockname()
        if self.path != f"{own[0]}:{own[1]}":
            self.send_error(403)
            return
        self.send_response(200)
        self.end_headers()
        self.close_connection = False

    def do_POST(self) -> None:
        """Answer a request, as a stream where one is asked for."""
        data = self.content()
        body: Body = json.loads(data) if data else {}
        if ":countTokens" in self.path:
            self.send(b'{"totalTokens":%d}' % (len(data) // 4), "application/json")
            return
        if "enerateContent" not in self.path:
            self.send(b"{}", "application/json")
            return
        answer = _answer(body, data)
        if ":streamGenerateContent" in self.path:
            if not _is_summing_up(body):
                self.server.record(body)
            self.send(b"data: %b\r\n\r\n" % json.dumps(answer).encode(), "text/event-stream")
        else:
            self.send(json.dumps(answer).encode(), "application/json")


def _answer(body: Body, data: bytes) -> Body:
    contents = body.get("contents", [])
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": _parts(body, contents)},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": TOKENS,
            "candidatesTokenCount": 100,
            "totalTokenCount": TOKENS + 100,
        },
        "modelVersion": "mock",
        "responseId": hashlib.sha256(data).hexdigest()[:16],
    }


def _parts(body: Body, contents: list[Body]) -> list[Body]:
    last = contents[-1] if contents else {}
    if _is_summing_up(body):
        return [{"text": SUMMARY}]
    settings = body.get("generationConfig", {})
    if settings.get("responseMimeType") == "application/json":
        return [{"text": json.dumps(_ROUTED)}]
    thought = {"text": "**A plan** and what to do", "thought": True}
    answered = any("functionResponse" in part for part in last.get("parts", []))
    said = last.get("parts", [{}])[-1].get("text", "")
    command = _RUN.search(said)
    if answered:
        return [{"text": f"It is done ({len(contents)})."}]
    if command is None:
        return [thought, {"text": f"Answer to: {said[-60:]}"}]
    name = hashlib.sha256(said.encode()).hexdigest()[:12]
    arguments = {"command": command[1], "description": "as asked"}
    call = {"name": "run_shell_command", "args": arguments, "id": f"call_{name}"}
    return [thought, {"functionCall": call}]


def _is_summing_up(body: Body) -> bool:
    """Tell whether the client compresses: its instruction names the element of the summary."""
    asked = json.dumps(body.get("systemInstruction", ""))[:6000]
    return "state_snapshot" in asked or "state_snapshot" in _text(
        (body.get("contents") or [{}])[-1]
    ).replace(SUMMARY, "")


def _text(content: Body) -> str:
    return " ".join(part.get("text", "") for part in content.get("parts", []))
