#!/usr/bin/env python3
"""Write a rollout of Codex: the same options give the same bytes, in the memory of one record.

The bytes are those of Codex 0.169: the kinds of rows, the order of their keys, each thing as an
item and as an event, and compacted records that hold a copy of the history, which is where most of
the bytes are. Among the rows are those that a naive splitter falls for: a compacted record inside
of a string, and one as an object deeper in a row.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from dice import KIB, MIB, RESULT_BYTES, AllOptions, Truth, Writer, command, option, templates

BYTES_PER_DECOY = 4 * MIB
ROWS = templates(rb"""
row: {"timestamp":"%(time)b","ordinal":%(ordinal)b,"type":"%(type)b","payload":%(body)b}
session_meta: {"id":"%(session)b","cwd":"/srv/demo/project","originator":"codex_exec",
    "cli_version":"0.169.0","source":"exec","model_provider":"demo","git":{"branch":"ebb"},
    "base_instructions":{"text":"%(text 16384 20480)b"}}
event_msg.task_started: {"type":"task_started","turn_id":"%(uuid)b"}
turn_context: {"turn_id":"%(uuid)b","cwd":"/srv/demo/project","model":"gpt-5.1-codex"}
response_item.user: {"type":"message","role":"%(role)b","content":[
    {"type":"input_text","text":"%(said)b"}%(picture)b]}
picture: ,{"type":"input_image","image_url":"data:image/png;base64,%(pixels)b"}
event_msg.item_completed: {"type":"item_completed","item":{"type":"UserMessage",
    "content":[{"type":"text","text":"%(said)b"}]}}
response_item.assistant: {"type":"message","role":"assistant","content":[
    {"type":"output_text","text":"%(said)b"}]}
event_msg.agent_message: {"type":"agent_message","message":"%(said)b"}
event_msg.token_count: {"type":"token_count","info":{"total_token_usage":{%(usage)b},
    "last_token_usage":{%(usage)b}}}
usage: "input_tokens":%(sent)b,"cached_input_tokens":%(cached)b,"output_tokens":100,
    "total_tokens":%(total)b
event_msg.task_complete: {"type":"task_complete","last_agent_message":"%(said)b"}
response_item.reasoning: {"type":"reasoning","id":"rs_%(hex 20)b","summary":[
    {"type":"summary_text","text":"%(text 64 300)b"}],"content":null,
    "encrypted_content":"%(base64 200 2000)b"}
response_item.call: {"type":"function_call","name":"exec_command","arguments":"%(arguments)b",
    "call_id":"call_%(call)b"}
response_item.output: {"type":"function_call_output","call_id":"call_%(call)b","output":"%(out)b"}
event_msg.mcp_tool_call_end: {"type":"mcp_tool_call_end",
    "result":{"Ok":{"structuredContent":%(foreign)b}}}
foreign: {"timestamp":"%(time)b","type":"compacted","payload":{"message":"so far",
    "replacement_history":[]}}
compacted: {"message":"%(summary)b","replacement_history":[%(history)b],"window_number":%(window)b,
    "window_id":"%(uuid)b","latest_token_usage_record":{"thread_id":"%(session)b",
    "usage":{"input_tokens":%(between 150000 195000)b,"output_tokens":900}},
    "resume_metadata":{"multi_agent_version":"v1"}}
event_msg.context_compacted: {"type":"context_compacted"}
world_state: {"full":true,"state":{"agents_md":{}}}
""")
"""The payload of each kind of row, and what is in them."""


@dataclass(frozen=True)
class Options(AllOptions):
    """What to generate."""

    boundaries: int = option(40, "compactions")
    compacted: int = option(75, "percent of the bytes that are in compacted records")
    images: int = option(0, "pictures among the prompts, again in every later compaction")
    image_bytes: int = option(MIB, "of each picture")


class Rollout(Writer):
    """What one row needs to know of the rows before it."""

    rows = ROWS
    options: Options

    @cached_property
    def pixels(self) -> bytes:
        """The one picture that all prompts have."""
        return base64.b64encode(self.noise(self.options.image_bytes // 4 * 3))

    def row(self, name: str, **given: bytes | int) -> None:
        """Write one row around its payload."""
        given["body"] = self.fill(name, **given)
        given["type"] = name.partition(".")[0].encode()
        self.write("row", ordinal=self.lines, **given)

    def prompt(self, *, with_picture: bool = False) -> None:
        """Write what begins a turn: its prompt, sent and shown, and its context."""
        said = self.text(64, 900)
        self.row("event_msg.task_started")
        self.row("turn_context")
        picture = self.fill("picture") if with_picture else b""
        self.row("response_item.user", role=b"user", said=said, picture=picture)
        self.row("event_msg.item_completed", said=said)

    def answer(self) -> None:
        """Write what the model says, what it cost, and that the turn is over."""
        said = self.text(200, 3000)
        self.row("response_item.assistant", said=said)
        self.row("event_msg.agent_message", said=said)
        sent = self.between(9_000, 190_000)
        self.row("event_msg.token_count", sent=sent, cached=sent // 2, total=sent + 100)
        self.row("event_msg.task_complete", said=said)

    def exchange(self, arguments: bytes, out: bytes) -> None:
        """Write a call and what it gave."""
        call = self.hex(24)
        self.row("response_item.call", call=call, arguments=arguments)
        self.row("response_item.output", call=call, out=out)

    def tool(self) -> None:
        """Write a usual exchange."""
        self.exchange(rb"{\"cmd\":\"make check\"}", self.cut(self.quantile(RESULT_BYTES)))

    def decoys(self) -> None:
        """Write a compacted record of another session in a string, and one deeper in a row."""
        foreign = self.fill("foreign")
        self.exchange(rb"{\"cmd\":\"cat x\"}", foreign.replace(b'"', b'\\"'))
        self.row("event_msg.mcp_tool_call_end")

    def compaction(self, size: int) -> None:
        """Write a compacted record of about `size` bytes, and what the client writes behind it."""
        summary = self.text(2 * KIB, 6 * KIB)
        history: list[bytes] = []
        written = 0
        while not written or written < size:
            role = self.choice((b"user", b"user", b"developer"))
            said = self.text(400, 24 * KIB)
            history.append(self.fill("response_item.user", role=role, said=said, picture=b""))
            written += len(history[-1])
        look = self.fill("response_item.user", role=b"user", said=b"look")
        history += [look] * (self.options.images if self.boundaries else 0)
        self.boundaries.append(self.size)
        given = {"summary": summary, "history": b",".join(history)}
        self.row("compacted", window=len(self.boundaries), **given)
        self.row("event_msg.context_compacted")
        self.row("world_state")

    def turns(self, end: int, pictures: int) -> None:
        """Write whole turns until the file has about `end` bytes."""
        next_decoy = self.size + BYTES_PER_DECOY
        while self.size < end or pictures or self.lines == 1:
            self.prompt(with_picture=pictures > 0)
            pictures = max(0, pictures - 1)
            for _ in range(self.between(1, 12)):
                self.tool() if self.between(0, 3) else self.row("response_item.reasoning")
            if self.size > next_decoy:
                next_decoy += BYTES_PER_DECOY
                self.decoys()
            self.answer()


def generate(target: BinaryIO, options: Options) -> Truth:
    """Write a rollout to the target and return what is in it."""
    rollout = Rollout(target, options)
    rollout.row("session_meta")
    share = options.size // (options.boundaries + 1)
    for number in range(options.boundaries + 1):
        if number:
            rollout.compaction(share * options.compacted // 100)
        rollout.turns(share * (number + 1), 0 if number else options.images)
    return rollout.truth()


if __name__ == "__main__":
    command(Options, generate)
