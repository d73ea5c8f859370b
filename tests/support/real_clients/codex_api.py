"""A stand-in for OpenAI's Responses API that the real Codex talks to, on loopback only.

It promises that every request body can be read afterwards.

Rule: what is answered depends on the request alone; a test steers by what it writes into its
prompts: `[[run COMMAND]]` has a command run, `[[usage N]]` says that the request had N tokens.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, Final

from support.real_clients import loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Body = dict[str, Any]

TOKENS: Final = 1000

SUMMARY: Final = "So far the ferry ledger was mended."
"""What the model says when it is asked to sum up."""

_COMPACTION: Final = re.compile(
    "CONTEXT CHECKPOINT COMPACTION|exceeded the maximum number of tokens"
)
"""What clients ask for when they compact, and nothing else contains: the second up to 0.42."""

_OUTPUTS: Final = {"function_call_output", "custom_tool_call_output", "local_shell_call_output"}
_RUN: Final = re.compile(r"\[\[run (.*?)\]\]")
_USAGE: Final = re.compile(r"\[\[usage (\d+)\]\]")

# The shell's tool has had several names and arguments.
_SHELLS: Final[dict[str, Callable[[str], Body]]] = {
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-lc", command]},
}


class ResponsesApi(loopback.Api[Body]):
    """The running mock; it keeps the bodies of all requests for an answer."""

    def __init__(self) -> None:
        super().__init__(loopback.Server(_Handler))


class _Handler(loopback.Handler):
    headers_too = (("connection", "close"),)
    server: loopback.Server[Body]

    def do_GET(self) -> None:
        """Answer that there are no models to choose from."""
        self.send(b'{"object":"list","data":[],"models":[]}', "application/json")

    def do_CONNECT(self) -> None:
        """Refuse to be a way out."""
        self.send_error(403)

    def do_POST(self) -> None:
        """Answer a request for an answer, as a stream."""
        data = self.content()
        if not self.path.endswith("/responses"):
            self.send_error(404)
            return
        body: Body = json.loads(data)
        self.server.record(body)
        events = b"".join(
            b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps(event).encode())
            for event in _events(body)
        )
        self.send(events, "text/event-stream")


def _events(body: Body) -> Iterator[Body]:
    items = body.get("input", [])
    name = hashlib.sha256(json.dumps(items).encode()).hexdigest()[:16]
    yield {"type": "response.created", "response": {"id": f"resp_{name}"}}
    for index, item in enumerate(_reply(body, items, name)):
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    told = _USAGE.findall(asked(items))
    total = int(told[-1]) if told else TOKENS
    usage = {
        "input_tokens": total - 100,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 100,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": total,
    }
    yield {"type": "response.completed", "response": {"id": f"resp_{name}", "usage": usage}}


def _reply(body: Body, items: list[Body], name: str) -> list[Body]:
    last, said = items[-1] if items else {}, asked(items)
    if _COMPACTION.search(said):
        return [_message(name, SUMMARY)]
    thought = {
        "type": "reasoning",
        "id": f"rs_{name}",
        "summary": [{"type": "summary_text", "text": f"thinking of {said[:20]}"}],
        "encrypted_content": f"hidden {name}",
    }
    command = _RUN.search(said)
    if command is None or last.get("type") in _OUTPUTS:
        return [thought, _message(name, f"Answer to: {said[:60]}")]
    offered = [tool.get("name") for tool in body.get("tools", [])]
    shell = next(each for each in _SHELLS if each in offered)
    call = {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": f"call_{name}",
        "name": shell,
        "arguments": json.dumps(_SHELLS[shell](command[1])),
    }
    return [thought, call]


def _message(name: str, text: str) -> Body:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "id": f"msg_{name}", "content": content}


def asked(items: list[Body]) -> str:
    """Return the text of the last message of the user."""
    for item in reversed(items):
        if item.get("type", "message") == "message" and item.get("role") == "user":
            content = item["content"]
            if isinstance(content, str):
                return content
            return "\n".join(part.get("text", "") for part in content)
    return ""
