"""A stand-in for the Gemini API that the real Gemini CLI talks to, on loopback only.

It promises that every request for an answer can be read afterwards.

Rule: what is answered depends on the request alone; a test steers by what it writes into its
prompts: `[[run COMMAND]]` has a command run.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final, Self

Body = dict[str, Any]

LOOPBACK: Final = "127.0.0.1"
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


class GeminiApi:
    """The running mock; a context manager that ends it."""

    def __init__(self) -> None:
        self._bodies: list[Body] = []
        handler = type("Handler", (_Handler,), {"bodies": self._bodies})
        self._server = ThreadingHTTPServer((LOOPBACK, 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The API's address."""
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def requests(self) -> list[Body]:
        """Return the bodies of all requests for an answer, in order."""
        return [*self._bodies]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bodies: ClassVar[list[Body]]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer that there are no models to choose from."""
        self._send(b'{"models":[]}', "application/json")

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
        data = self._body()
        body: Body = json.loads(data) if data else {}
        if ":countTokens" in self.path:
            self._send(b'{"totalTokens":%d}' % (len(data) // 4), "application/json")
            return
        if "enerateContent" not in self.path:
            self._send(b"{}", "application/json")
            return
        answer = _answer(body, data)
        if ":streamGenerateContent" in self.path:
            if not _is_summing_up(body):
                self.bodies.append(body)
            self._send(b"data: %b\r\n\r\n" % json.dumps(answer).encode(), "text/event-stream")
        else:
            self._send(json.dumps(answer).encode(), "application/json")

    def _body(self) -> bytes:
        if (self.headers.get("Transfer-Encoding") or "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True


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
