#!/usr/bin/env python3
"""Write a Gemini CLI session: the same options give the same bytes, in memory that they bound.

The bytes are those of 0.61.0: appended, a message again when its tools have answered, all of it
again at each resume, what a compression left of it when it is too long. Some are what a careless
reader falls for: calls whose arguments are an update.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import BinaryIO

from dice import MIB, AllOptions, Truth, Writer, command, option, templates

DECOY_EVERY = 10
OUTPUT_BYTES = (111, 444, 756, 1111, 1561, 2183, 3153, 4401, 7033, 12756, 40000)
CHUNK = b"ballast and ember; " * (MIB // 19)
ROWS = templates(rb"""
metadata: {"sessionId":"%(session)b","projectHash":"%(project)b","startTime":"%(when)b",
    "lastUpdated":"%(when)b","kind":"main"}
resumed: {"$set":{"sessionId":"%(session)b"}}
updated: {"$set":{"lastUpdated":"%(time)b"}}
checkpoint: {"$set":{"messages":[%(messages)b],"lastUpdated":"%(time)b"}}
message: {"id":"%(uuid)b","timestamp":"%(time)b","type":"%(type)b","content":%(content)b
part: [{"text":"%(said)b"}]}
of_model: "%(said)b","thoughts":[%(thoughts)b],"tokens":{"input":%(sent)b,"output":%(received)b,
    "cached":%(cached)b,"thoughts":40,"tool":0,"total":%(total)b},"model":"gemini-2.5-pro"
thought: {"subject":"A plan","description":"%(text 80 1500)b","timestamp":"%(time)b"}
calls: ,"toolCalls":[{"id":"%(call)b","name":"run_shell_command","args":%(arguments)b,
    "result":%(result)b,"status":"success","timestamp":"%(time)b"}]}
arguments: {"command":"%(text 40 300)b"}
decoy: {"$set":{"messages":[{"id":"a decoy"}]}}
result: [{"functionResponse":{"id":"%(call)b","name":"run_shell_command",
    "response":{"output":"%(out)b"}}}]
context: <session_context>\nThis is the Gemini CLI.\n%(text 400 600)b
snapshot: <state_snapshot>\n%(text 500 2000)b</state_snapshot>
""")
"""The rows, and what is in them."""


@dataclass(frozen=True)
class Options(AllOptions):
    """What to generate."""

    size: int = option(100 * MIB, "about, of the file, in bytes")
    resumes: int = option(20, "times that all live messages are appended")
    history: int = option(16 * MIB, "bytes of live messages at most")
    big: int = option(0, "bytes of one message in the middle")


class Talk(Writer):
    """The user, the model and its tools; `live` is what a resume sends."""

    rows = ROWS
    options: Options
    project = hashlib.sha256(b"/srv/demo/project").hexdigest().encode()

    def __init__(self, target: BinaryIO, options: Options) -> None:
        super().__init__(target, options)
        self.live: list[bytes] = []
        self.held = 0  # bytes of these
        self.first = b""
        self._big = options.big
        self._calls = 0

    def text_of(self, kind: bytes, said: bytes) -> bytes:
        """Return a message that is nothing but text."""
        return self.fill("message", type=kind, content=self.fill("part", said=said))

    def of_model(self, said: bytes, thoughts: bytes) -> bytes:
        """Return a message of the model without its end: calls may follow."""
        sent, received = self.between(1000, 200_000), self.between(1, 4000)
        tokens = {"sent": sent, "received": received, "cached": sent // 2}
        tokens["total"] = sent + received + 40
        content = self.fill("of_model", said=said, thoughts=thoughts, **tokens)
        return self.fill("message", type=b"gemini", content=content)

    def ask_tool(self) -> None:
        """Write that the model calls a tool, and what that gave; some arguments are an update."""
        thought = self.of_model(b"", self.fill("thought"))
        self.append(thought + b"}")
        self._calls += 1
        call = b"run_shell_command__call_%d" % self._calls
        result = self.fill("result", call=call, out=self.cut(self.quantile(OUTPUT_BYTES)))
        arguments = self.fill("arguments" if self._calls % DECOY_EVERY else "decoy")
        self.say(thought + self.fill("calls", call=call, arguments=arguments, result=result))
        self.say(self.fill("message", type=b"user", content=result) + b"}")

    def say(self, message: bytes) -> None:
        """Write a message, which is live from now on."""
        self.append(message)
        self.live.append(message)
        self.held += len(message)

    def append(self, message: bytes) -> None:
        """Write a message, and when that was."""
        self.put(message)
        self.write("updated")

    def turn(self) -> None:
        """Write what a user asks, what tools gave, and what the model says."""
        if self._big and self.size >= self.options.size // 2:
            self.say(self.text_of(b"user", CHUNK * max(1, self._big // len(CHUNK))))
            self._big = 0
            self.compress()  # it is too much to hold
        self.say(self.text_of(b"user", self.text(40, 900)))
        for _ in range(self.between(0, 4)):
            self.ask_tool()
        self.say(self.of_model(self.text(100, 5000), b"") + b"}")

    def update(self) -> None:
        """Write a line that replaces all messages by those that are live."""
        self.boundaries.append(self.size)
        self.write("checkpoint", messages=b",".join((self.first, *self.live)))

    def compress(self) -> None:
        """Leave a snapshot of the conversation."""
        snapshot = self.text_of(b"user", self.fill("snapshot"))
        answer = self.text_of(b"gemini", b"Got it. Thanks for the additional context!")
        self.live = [snapshot, answer]
        self.held = len(snapshot) + len(answer)
        self.update()


def generate(target: BinaryIO, options: Options) -> Truth:
    """Write a session to the target and return what is in it."""
    talk = Talk(target, options)
    size, resumes = options.size, options.resumes
    talk.first = talk.text_of(b"user", talk.fill("context"))
    talk.write("metadata", when=talk.time())
    talk.update()
    due = [size * part // (resumes + 1) for part in range(1, resumes + 1)]
    while talk.size < size or due:
        if due and talk.size >= due[0]:
            due.pop(0)
            talk.write("resumed")
            talk.update()
        talk.turn()
        if talk.held > options.history:
            talk.compress()
    return talk.truth()


if __name__ == "__main__":
    command(Options, generate)
