"""A stand-in for Anthropic's Messages API that the real client talks to, on loopback only.

It promises that equal requests get equal replies, however often and wherever they are sent, and
that every request body can be read afterwards.

Rule: what is answered depends on the request alone. No counter, clock or random number enters a
reply; a test steers by directives that it writes into its prompts (`call`, `usage`, `BROKEN`).
What `meanwhile` does decides only when a reply comes.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal

from support.real_clients import loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator
    from pathlib import Path

    Moment = Literal["before", "half-way"]
    """When a client waits: for the reply, or for the rest of one that is streamed."""

    Act = Callable[["Request", Moment], object]

TOKENS: Final = 1000
"""Input tokens that a reply reports unless the prompt says otherwise."""

MESSAGES: Final = "/v1/messages"
COUNT_TOKENS: Final = "/v1/messages/count_tokens"

COMPACTION: Final = "Your task is to create a detailed summary"
"""What every client version asks for when it compacts, and nothing else contains."""

Body = dict[str, Any]
Block = dict[str, Any]


# ── what a prompt can ask for ────────────────────────────────────────────────────────────────


def call(tool: str, **arguments: object) -> str:
    """Return a directive: the reply uses this tool. Several in one prompt are used side by side.

    A tool that has borne several names is given as `One|Other`; the first that is offered counts.
    """
    return f"[[call {tool} {json.dumps(arguments)}]]"


def usage(tokens: int) -> str:
    """Return a directive: the reply says that the request had so many input tokens.

    Near the size of the model's window this makes the client compact before its next turn.
    """
    return f"[[usage {json.dumps({'tokens': tokens})}]]"


BROKEN: Final = "[[broken]]"
"""A directive: a reply that is streamed breaks off behind its last block, before its end.

2.0.76 and 2.1.80 then ask for one that is not streamed, and take back what they wrote of the first.
"""

_DIRECTIVE: Final = re.compile(r"\[\[(call (?P<tool>[\w|-]+)|usage) (?={)")
_REMINDER: Final = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)


@dataclass(frozen=True)
class Directives:
    """What the last prompt of a request asks the mock to do."""

    calls: tuple[tuple[str, Body], ...] = ()
    tokens: int = TOKENS

    @classmethod
    def of(cls, prompt: str) -> Directives:
        """Read the directives in a prompt; later ones win over earlier ones of their kind.

        One that stands in the arguments of another is for whoever gets those.
        """
        calls: list[tuple[str, Body]] = []
        tokens = TOKENS
        end = 0
        while found := _DIRECTIVE.search(prompt, end):
            value, end = json.JSONDecoder().raw_decode(prompt, found.end())
            if found["tool"]:
                calls.append((found["tool"], value))
            else:
                tokens = value["tokens"]
        return cls(tuple(calls), tokens)


# ── reading a request ────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Request:
    """One request as it came: method, path without the query, and the JSON body."""

    method: str
    path: str
    body: Body

    @property
    def messages(self) -> list[Body]:
        """The conversation that was sent; empty for other requests."""
        found = self.body.get("messages")
        return found if isinstance(found, list) else []

    @property
    def is_compaction(self) -> bool:
        """Whether the client asks for a summary to go on from."""
        return COMPACTION in self.prompt

    @property
    def is_conversation(self) -> bool:
        """Whether this is a turn of an agent with its tools, not a title or a token count."""
        tools = self.body.get("tools")
        return self.path == MESSAGES and bool(self.messages) and bool(tools)

    @property
    def prompt(self) -> str:
        """What the last message says after its last tool result, without the client's reminders.

        The client puts neighbouring messages of a user into one, so this can be several texts.
        """
        said = [message for message in self.messages if message.get("role") == "user"]
        if not said:
            return ""
        texts: list[str] = []
        for block in blocks(said[-1]):
            if block.get("type") == "tool_result":
                texts.clear()
            elif block.get("type") == "text":
                texts.append(block.get("text", ""))
        return _REMINDER.sub("", "\n".join(texts))


def blocks(message: Body) -> list[Block]:
    """Return a message's content as blocks; a plain text is one block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


# What differs between two runs of the same steps: reminders, paths, ids, times.
_VOLATILE: Final = re.compile(
    r"""<system-reminder>.*?</system-reminder>
    | /[\w@.+/-]+
    | [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12} | \ba[0-9a-f]{7,}\b
    | \d{4}-\d\d-\d\d(?:T[\d:.]+Z?)? | duration_ms\W+\d+""",
    re.DOTALL | re.VERBOSE,
)


_LETTERS: Final = str.maketrans("0123456789abcdef", "ghjkmnpqrstuvwxy")


def fingerprint(messages: list[Body]) -> str:
    """Return a name for a conversation: sixteen letters, the same in every run of the same steps.

    Letters outside the hexadecimal ones, so that it is not taken for one of the client's ids.
    """
    digest = hashlib.sha256()
    for message in messages:
        digest.update(str(message.get("role")).encode())
        for block in blocks(message):
            kept = {key: block[key] for key in ("type", "text", "input", "content") if key in block}
            digest.update(_VOLATILE.sub("", json.dumps(kept, sort_keys=True)).encode())
    return digest.hexdigest()[:16].translate(_LETTERS)


# ── the reply ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Reply:
    """One message of the model."""

    name: str
    model: str
    content: tuple[Block, ...]
    stop: str
    tokens: int

    @classmethod
    def to(cls, request: Request) -> Reply:
        """Answer a request; a function of the request and nothing else."""
        name = fingerprint(request.messages)
        asked = Directives.of(request.prompt)
        tools = {tool.get("name") for tool in request.body.get("tools") or ()}
        calls = [(_offered(tool, tools), arguments) for tool, arguments in asked.calls]
        stop = "end_turn"
        if request.is_compaction:
            content = [
                _text(f"<analysis>Mock.</analysis>\n\n<summary>\nSummary {name}\n</summary>")
            ]
        elif calls and all(tool for tool, _ in calls):
            stop = "tool_use"
            content = [_text(f"Calling {name}.")]
            for number, (tool, arguments) in enumerate(calls):
                use = {"type": "tool_use", "id": f"toolu_{name}{number}", "name": tool}
                content.append({**use, "input": arguments})
        elif not tools and "JSON" in json.dumps(request.body.get("system")):
            content = [_text(json.dumps({"isNewTopic": False, "title": "A session"}))]
        else:
            content = [_text(f"Reply {name}.")]
        model = str(request.body.get("model"))
        return cls(f"msg_{name}", model, tuple(content), stop, asked.tokens)

    def message(self) -> Body:
        """Return the reply as the API sends it in one piece."""
        return {
            "id": self.name,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": list(self.content),
            "stop_reason": self.stop,
            "stop_sequence": None,
            "usage": self._usage(),
        }

    def events(self) -> Iterator[tuple[str, Body]]:
        """Yield the reply as the API streams it."""
        opening = {**self.message(), "content": [], "stop_reason": None}
        yield "message_start", {"message": opening}
        for index, block in enumerate(self.content):
            if block["type"] == "text":
                empty: Block = {"type": "text", "text": ""}
                delta = {"type": "text_delta", "text": block["text"]}
            else:
                empty = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield "content_block_start", {"index": index, "content_block": empty}
            yield "content_block_delta", {"index": index, "delta": delta}
            yield "content_block_stop", {"index": index}
        ending = {"stop_reason": self.stop, "stop_sequence": None}
        yield "message_delta", {"delta": ending, "usage": self._usage()}
        yield "message_stop", {}

    def _usage(self) -> Body:
        return {
            "input_tokens": self.tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 10,
            "service_tier": "standard",
        }


def _offered(names: str, tools: Container[str]) -> str | None:
    return next((name for name in names.split("|") if name in tools), None)


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


# ── the server ───────────────────────────────────────────────────────────────────────────────


class MockApi(loopback.Api[Request]):
    """The running server; `meanwhile` does something while a client waits."""

    def __init__(self, known: Path | None = None) -> None:
        self.known = known
        self._server = _Server()
        super().__init__(self._server)

    @contextmanager
    def meanwhile(self, act: Act) -> Iterator[None]:
        """In the block, call `act` at each moment at which a client waits for a reply.

        One call at a time, in a thread of the server's; the reply goes on when it returns. What
        it raises is raised at the end of the block: the client gets its reply all the same.
        """
        problems: list[Exception] = []

        def acting(request: Request, moment: Moment) -> None:
            try:
                act(request, moment)
            except Exception as error:  # noqa: BLE001 - whatever it is, the test gets it
                problems.append(error)

        self._server.act = acting
        try:
            yield
        finally:
            self._server.act = None
        for problem in problems:
            raise problem


class _Server(loopback.Server[Request]):
    """Lets a test act while a client waits."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.act: Act | None = None
        self._acting = threading.Lock()

    def wait(self, request: Request, moment: Moment) -> None:
        """Let a client wait for as long as it takes to do what is to be done meanwhile."""
        act = self.act
        if act is not None:
            with self._acting:
                act(request, moment)


class _Handler(loopback.Handler):
    """HTTP around `Reply`."""

    headers_too = (("request-id", "req_mock"),)
    server: _Server

    def do_HEAD(self) -> None:
        self.server.record(Request("HEAD", self._path(), {}))
        self.send(b"", "text/plain")

    def do_GET(self) -> None:
        self.server.record(Request("GET", self._path(), {}))
        self._send_error()

    def do_CONNECT(self) -> None:
        self.server.record(Request("CONNECT", self.path, {}))
        self._send_error()

    def do_POST(self) -> None:
        try:
            body = json.loads(self.content() or b"{}")
            request = Request("POST", self._path(), body)
            self.server.record(request)
            reply = Reply.to(request) if request.path == MESSAGES else None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.server.errors.append(error)
            self._send_error(HTTPStatus.BAD_REQUEST)
            return
        if request.path == COUNT_TOKENS:
            self._send_json(HTTPStatus.OK, {"input_tokens": TOKENS})
        elif reply is None:
            self._send_error()
        else:
            self._reply(request, reply)

    def _reply(self, request: Request, reply: Reply) -> None:
        self.server.wait(request, "before")
        if not request.body.get("stream"):
            self._send_json(HTTPStatus.OK, reply.message())
            return
        lines = [
            f"event: {name}\ndata: {json.dumps({'type': name, **event})}\n\n".encode()
            for name, event in reply.events()
        ]
        # At once, unless a test waits in between: 2.0.28 writes down a part of a message as soon as
        # that is there, and whether its stop reason is in the row then depends on the packets.
        half = len(lines) // 2 if self.server.act is not None else 0
        end = len(lines) - 2 if BROKEN in request.prompt else len(lines)
        self.send_head("text/event-stream", len(b"".join(lines)))
        self.wfile.write(b"".join(lines[:half]))
        self.wfile.flush()
        self.server.wait(request, "half-way")
        self.wfile.write(b"".join(lines[half:end]))
        self.close_connection |= end < len(lines)

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _send_error(self, status: HTTPStatus = HTTPStatus.NOT_FOUND) -> None:
        error = {"type": "invalid_request_error", "message": f"The mock: {status.phrase}."}
        self._send_json(status, {"type": "error", "error": error})

    def _send_json(self, status: HTTPStatus, value: Body) -> None:
        self.send(json.dumps(value).encode(), "application/json", status)
