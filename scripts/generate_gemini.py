#!/usr/bin/env python3
"""Write a Gemini CLI session: the same options give the same bytes, in memory that they bound.

The bytes are those of 0.61.0 (`jsonl`: appended, a message again when its tools have answered, all
of it again at each resume, what a compression left of it when it is too long) or of 0.38.2 (`json`:
one object, indented), with what a careless reader falls for: texts that quote an update, and calls
whose arguments are one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import BinaryIO

from dice import MIB, Dice, Truth, Writer, command, option, parse_size, templates
from dice import Options as AllOptions

FORMATS = ("jsonl", "json")
PROJECT_HASH = hashlib.sha256(b"/srv/demo/project").hexdigest().encode()
DECOY_EVERY = 10
OUTPUT_BYTES = (111, 444, 756, 1111, 1561, 2183, 3153, 4401, 7033, 12756, 40000)
CHUNK = b"ballast and ember; " * (MIB // 19)
ROWS = templates(rb"""
metadata: {"sessionId":"%(session)b","projectHash":"%(project)b","startTime":"%(when)b",
    "lastUpdated":"%(when)b","kind":"main"}
resumed: {"$set":{"sessionId":"%(session)b"}}
updated: {"$set":{"lastUpdated":"%(time)b"}}
checkpoint: {"$set":{"messages":[%(messages)b],"lastUpdated":"%(time)b"}}
message: {"id":"%(id)b","timestamp":"%(when)b","type":"%(type)b","content":%(content)b%(more)b}
part: [{"text":"%(said)b"}]
of_model: ,"thoughts":[%(thoughts)b],"tokens":{"input":%(sent)b,"output":%(received)b,
    "cached":%(cached)b,"thoughts":40,"tool":0,"total":%(total)b},"model":"gemini-2.5-pro"
thought: {"subject":"A plan","description":"%(thinking)b","timestamp":"%(when)b"}
call: {"id":"%(call)b","name":"run_shell_command","args":%(arguments)b,"result":%(result)b,
    "status":"success","timestamp":"%(time)b"}
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

    size: int = option(100 * MIB, "about, of the file, in bytes (default: 100M)", parse_size)
    format: str = option("jsonl", "jsonl, or json: one object", str)
    resumes: int = option(20, "times that all live messages are appended (default: %(default)s)")
    history: int = option(16 * MIB, "bytes of live messages at most (default: 16M)", parse_size)
    big: int = option(0, "bytes of one message in the middle (default: none)", parse_size)

    def __post_init__(self) -> None:
        AllOptions.__post_init__(self)
        if self.format not in FORMATS:
            raise ValueError(f"the format is one of {', '.join(FORMATS)}")


def session_id(seed: int) -> bytes:
    """Return the id of the session with this seed."""
    return Dice(seed, "gemini session").uuid()


class Talk(Writer):
    """The user, the model and its tools; `live` is what a resume sends, by the messages' ids."""

    project = PROJECT_HASH

    def __init__(self, target: BinaryIO, options: Options) -> None:
        super().__init__(target, ROWS, Dice(options.seed, "gemini"), session_id(options.seed))
        self.options = options
        self.live: dict[bytes, bytes] = {}
        self.first = b""
        self._big = options.big
        self._calls = 0

    def message(self, kind: bytes, content: bytes, more: bytes = b"", **given: bytes) -> bytes:
        """Return a message of now, or of the id and the time that are given."""
        named = {
            "id": given.get("id") or self.dice.uuid(),
            "when": given.get("when") or self.time(),
        }
        return self.fill("message", type=kind, content=content, more=more, **named)

    def saying(self, said: bytes, kind: bytes = b"user") -> bytes:
        """Return a message that is nothing but text."""
        return self.message(kind, self.fill("part", said=said))

    def of_model(self, said: bytes, thinking: bytes) -> dict[str, bytes]:
        """Return what a message of the model is made of: what it says, or thought before a call."""
        new, when = self.dice.uuid(), self.time()
        thoughts = self.fill("thought", thinking=thinking, when=when) if thinking else b""
        sent, received = self.dice.between(1000, 200_000), self.dice.between(1, 4000)
        figures = {"sent": sent, "received": received, "cached": sent // 2}
        figures["total"] = sent + received + 40
        tokens = {name: b"%d" % figure for name, figure in figures.items()}
        more = self.fill("of_model", thoughts=thoughts, **tokens)
        return {"id": new, "when": when, "content": b'"%b"' % said, "more": more}

    def call(self) -> tuple[bytes, bytes]:
        """Return a tool's call and its result; some have an update in their arguments."""
        self._calls += 1
        call = b"run_shell_command__call_%d" % self._calls
        out = self.cut(self.dice.quantile(OUTPUT_BYTES))
        arguments = self.fill("arguments")
        if self._calls % DECOY_EVERY == 0:
            arguments = self.rows["decoy"]
        result = self.fill("result", call=call, out=out)
        return self.fill("call", call=call, arguments=arguments, result=result), result

    def say(self, message: bytes) -> None:
        """Write a message, which is live from now on."""
        self.append(message)
        self.live[message[7:43]] = message  # by its id: it begins with that

    def append(self, message: bytes) -> None:
        """Write a message as the format has it."""
        if self.options.format == "jsonl":
            self.put("message", message, b"\n")
            self.write("update", "updated")
        else:
            text = json.dumps(json.loads(message), ensure_ascii=False, indent=2)
            comma = b",\n    " if self.live else b"\n    "
            self.put("message", comma, text.encode().replace(b"\n", b"\n    "))

    def turn(self) -> None:
        """Write what a user asks, what tools gave, and what the model says."""
        if self._big and self.size >= self.options.size // 2:
            large = self.saying(CHUNK * max(1, self._big // len(CHUNK)))
            self._big = 0
            if self.options.format == "jsonl":  # too much to hold: it is compressed away at once
                self.append(large)
                self.compress()
            else:
                self.say(large)
        self.say(self.saying(self.text(40, 900)))
        for _ in range(self.dice.between(0, 4)):
            thought = self.of_model(b"", self.text(80, 1500))
            if self.options.format == "jsonl":
                self.append(self.message(b"gemini", **thought))
            call, result = self.call()
            thought["more"] += b',"toolCalls":[%b]' % call
            self.say(self.message(b"gemini", **thought))
            if self.options.format == "jsonl":
                self.say(self.message(b"user", result))
        self.say(self.message(b"gemini", **self.of_model(self.text(100, 5000), b"")))

    def update(self) -> None:
        """Write a line that replaces all messages by those that are live."""
        self.boundaries.append(self.size)
        self.write("checkpoint", messages=b",".join((self.first, *self.live.values())))

    def compress(self) -> None:
        """Leave a snapshot of the conversation."""
        self.live = {}
        for kind, said in (
            (b"user", self.fill("snapshot")),
            (b"gemini", b"Got it. Thanks for the additional context!"),
        ):
            message = self.saying(said, kind)
            self.live[message[7:43]] = message
        self.update()


def generate(target: BinaryIO, options: Options) -> Truth:
    """Write a session to the target and return what is in it."""
    talk = Talk(target, options)
    (append if options.format == "jsonl" else write_whole)(talk)
    return talk.truth(tuple(talk.live))


def append(talk: Talk) -> None:
    """Write a session that is appended to."""
    size, resumes = talk.options.size, talk.options.resumes
    talk.first = talk.saying(talk.fill("context"))
    talk.write("metadata", when=talk.time())
    talk.update()
    due = [size * part // (resumes + 1) for part in range(1, resumes + 1)]
    while talk.size < size or due:
        if due and talk.size >= due[0]:
            due.pop(0)
            talk.write("update", "resumed")
            talk.update()
        talk.turn()
        if sum(map(len, talk.live.values())) > talk.options.history:
            talk.compress()


def write_whole(talk: Talk) -> None:
    """Write a session that is one object."""
    head = json.loads(talk.fill("metadata", when=talk.time()))
    kind = head.pop("kind")
    opening = json.dumps(head, indent=2).removesuffix("\n}").encode()
    talk.put("metadata", opening, b',\n  "messages": [')
    while talk.size < talk.options.size:
        talk.turn()
    talk.put("metadata", b'\n  ],\n  "kind": "%b"\n}' % kind.encode())


def name(options: Options) -> str:
    """Return the file's name, as the client calls it."""
    return f"session-2026-02-10T08-00-{session_id(options.seed)[:8].decode()}.{options.format}"


if __name__ == "__main__":
    command(Options, generate, name)
