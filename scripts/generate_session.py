#!/usr/bin/env python3
"""Promise: the same options give the same bytes, at any size, in constant memory.

One rule: every byte follows from the options. All chance comes out of SHAKE-128 and integer
arithmetic, so that no clock, no machine, no release of Python and no libm can change a byte.

The bytes are a Claude Code session as clients 2.1.112 to 2.1.151 write it: the kinds of rows, the
order of their keys, the spelling of `JSON.stringify`, and what a naive splitter falls for: rows
that quote a boundary, rows that contain one, and boundaries of another sort. Strings are escaped
once, in the pool that they are cut from, so that a row is put together and not serialised.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import itertools
import json
import re
import struct
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

KIB, MIB = 1 << 10, 1 << 20
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

PROJECT = b"/srv/demo/project"
FIRST_DAY = date(2026, 2, 10)
DAY_MS = 24 * 60 * 60 * 1000
FIRST_VERSION, VERSIONS = 112, 40
PRESERVED_ROWS = 6
BOUNDARY_BYTES = 700  # about; what --tail leaves for the last boundary itself
SMALLEST_TEXT = 64

# What a session of this size holds; one of another size has its share.
REFERENCE_SIZE = 400 * MIB
REFERENCE_DECOYS = {"escaped": 60, "nested": 12, "micro": 8}
SMALLEST_WITH_DECOYS = MIB
BYTES_PER_IMAGE = 64 * MIB
SMALLEST_WITH_IMAGE = 20 * MIB

# Evenly spaced quantiles: the bytes of a tool result (log-normal, median 1.7 kB, spread 1.1), of
# the rare big one, and the relative size of a segment (log-normal, spread 0.45, in thousandths).
RESULT_BYTES = (
    *(111, 271, 363, 444, 522, 599, 677, 756, 839, 925, 1016, 1111, 1212, 1320, 1436, 1561, 1696),
    *(1843, 2005, 2184, 2383, 2606, 2861, 3153, 3496, 3903, 4401, 5029, 5859, 7033, 8904, 12756),
    40000,
)
BIG_RESULT_BYTES = (50 * KIB, 150 * KIB, 300 * KIB, 500 * KIB, MIB)
SEGMENT_WEIGHTS = (
    *(242, 501, 596, 671, 738, 803, 866, 932, 1000),
    *(1073, 1154, 1246, 1355, 1491, 1678, 1994, 4138),
)
IMAGE_LINE_BYTES = (5 * MIB, 11 * MIB)

# Plain words, then what a reader of JSON has to get right: quotes, backslashes, control
# characters, two to four bytes of UTF-8, and a line separator that is none in JSON Lines.
PLAIN_WORDS = """
anchor ballast bracket buffer cargo chain cinder column copper cursor delta drift ember fathom
ferry gauge gravel harbour hinge index inlet kettle ladder lantern ledger margin meadow needle
offset orchard packet pebble pivot quarry ratio ribbon rudder sextant shingle signal slate spindle
tally tangent timber token turbine def return import await class yield None True False += -> => !=
0x7f 42 3.14 12:30:07 v2.4.1 --verbose src/ferry/inlet.py tests/test_slate.py::ok self.total {} []
naïve façade Größe señal čeština данные конец 読む 分割 境界 → … 🛶 🧭
"""
HARD_WORDS = ('"quoted"', "C:\\Depot\\out", "\\d+", "\x1b[32mok\x1b[0m", "\t", "\r", "\b", "\u2028")
POOL_BYTES = 4 * MIB
SIGNATURE_POOL_BYTES = 256 * KIB

Parts = tuple[bytes, ...]
Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class Options:
    """What to generate. A count that is None follows from the size."""

    size: int = REFERENCE_SIZE
    boundaries: int = 142
    seed: int = 7
    decoys_escaped: int | None = None
    decoys_nested: int | None = None
    micro: int | None = None
    preserved_every: int = 0  # every Nth boundary preserves rows from before it; 0: none does
    images: int | None = None
    tail: int | None = None  # bytes after the last boundary's line; None: as it falls

    def __post_init__(self) -> None:
        counts = (self.decoys_escaped, self.decoys_nested, self.micro, self.images, self.tail)
        numbers = (self.size, self.boundaries, self.preserved_every, *counts)
        if any(number is not None and number < 0 for number in numbers):
            raise ValueError("sizes and counts cannot be negative")
        if self.tail is not None and not (self.boundaries and self.tail < self.size):
            raise ValueError("a tail needs a boundary before it and a size above its own")

    def planned_decoys(self) -> dict[str, int]:
        """How many of each decoy to write."""
        asked = {"escaped": self.decoys_escaped, "nested": self.decoys_nested, "micro": self.micro}
        return {
            name: self._share(REFERENCE_DECOYS[name]) if count is None else count
            for name, count in asked.items()
        }

    def planned_images(self) -> int:
        """How many images to write."""
        if self.images is not None:
            return self.images
        return max(1, self.size // BYTES_PER_IMAGE) if self.size >= SMALLEST_WITH_IMAGE else 0

    def _share(self, of_reference: int) -> int:
        share = of_reference * self.size // REFERENCE_SIZE
        return max(1, share) if self.size >= SMALLEST_WITH_DECOYS else share


DEFAULTS = Options()


@dataclass(frozen=True, slots=True)
class BoundaryTruth:
    """One real boundary: where its line begins, counted from byte 0 and from line 1."""

    offset: int
    line: int
    uuid: str
    timestamp: str
    trigger: str
    pre_tokens: int


@dataclass(frozen=True, slots=True)
class KindTruth:
    """How many rows of a kind there are, and their bytes with newlines."""

    lines: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Truth:
    """What is in the generated bytes, known without reading them."""

    session_id: str
    bytes: int
    lines: int
    sha256: str
    boundaries: tuple[BoundaryTruth, ...]
    decoys: dict[str, int]
    kinds: dict[str, KindTruth]


class Dice:
    """Chance that depends on nothing but a seed and a purpose."""

    _WORDS = struct.Struct("<4096Q")

    def __init__(self, seed: int, purpose: str) -> None:
        self._key = f"sessrotate {purpose} {seed}"
        self._blocks = itertools.count()
        self._words: Iterator[int] = iter(())
        self._digits = ""
        self._next_digit = 0

    def noise(self, size: int) -> bytes:
        """Return `size` bytes without a pattern."""
        return hashlib.shake_128(f"{self._key} {next(self._blocks)}".encode()).digest(size)

    def below(self, limit: int) -> int:
        """Return an integer from 0 up to, but not including, the limit."""
        word = next(self._words, None)
        if word is None:
            self._words = iter(self._WORDS.unpack(self.noise(self._WORDS.size)))
            word = next(self._words)
        return word * limit >> 64

    def between(self, low: int, high: int) -> int:
        """Return an integer from low up to, but not including, high."""
        return low + self.below(high - low)

    def quantile(self, table: Sequence[int]) -> int:
        """Draw from the distribution that has these evenly spaced quantiles."""
        cell, part = divmod(self.below(len(table) - 1 << 10), 1 << 10)
        return table[cell] + ((table[cell + 1] - table[cell]) * part >> 10)

    def choice(self, choices: Sequence[Choice]) -> Choice:
        """Return one of the choices, each as likely as any other."""
        return choices[self.below(len(choices))]

    def hex(self, digits: int) -> bytes:
        """Return lower-case hexadecimal digits."""
        start, end = self._next_digit, self._next_digit + digits
        if end > len(self._digits):
            self._digits = self.noise(32 * KIB).hex()
            start, end = 0, digits
        self._next_digit = end
        return self._digits[start:end].encode()

    def uuid(self) -> bytes:
        """Return a random UUID of version 4."""
        digits = self.hex(30)
        groups = (digits[:8], digits[8:12], digits[12:15], digits[15:18], digits[18:])
        return b"%b-%b-4%b-a%b-%b" % groups


class TextPool:
    """Text, escaped for a JSON string, from which any length is cut without breaking a word."""

    _STEP = 64

    def __init__(self, dice: Dice) -> None:
        all_words = (*PLAIN_WORDS.split(), *HARD_WORDS)
        escaped = [json.dumps(word, ensure_ascii=False)[1:-1].encode() for word in all_words]
        gaps = (b" ", b" ", b" ", b" ", b" ", b" ", b"\\n", b"\\n    ")
        pieces = [word + gap for word in escaped for gap in gaps]
        text = bytearray()
        self._starts = array("I")  # where the first piece begins after each multiple of the step
        while len(text) < POOL_BYTES:
            while len(text) >= len(self._starts) * self._STEP:
                self._starts.append(len(text))
            text += dice.choice(pieces)
        self._text = bytes(text)

    def cut(self, dice: Dice, size: int) -> bytes:
        """Return about `size` bytes from anywhere in the pool."""
        steps = min(max(size, self._STEP) // self._STEP, len(self._starts) - 1)
        first = dice.below(len(self._starts) - steps)
        return self._text[self._starts[first] : self._starts[first + steps]]


@cache
def text_pool() -> TextPool:
    """Return the pool that all sessions cut their text from; making it takes a while."""
    return TextPool(Dice(0, "text"))


class Clock:
    """The time of the session's rows, which never stands still and never goes back."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._elapsed_ms = 8 * 60 * 60 * 1000
        self._day = -1
        self._date = b""

    def tick(self) -> bytes:
        """Return a later time than before, as the client writes it."""
        self._elapsed_ms += self._dice.between(40, 40_000)
        day, of_day = divmod(self._elapsed_ms, DAY_MS)
        if day != self._day:
            self._day = day
            self._date = (FIRST_DAY + timedelta(days=day)).isoformat().encode()
        seconds, milliseconds = divmod(of_day, 1000)
        minutes, second = divmod(seconds, 60)
        time = (self._date, *divmod(minutes, 60), second, milliseconds)
        return b"%bT%02d:%02d:%02d.%03dZ" % time


class Ledger:
    """The target, and what went into it: size, lines, digest and a tally by kind of row."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._digest = hashlib.sha256()
        self._lines: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self.size = 0

    def write(self, kind: str, *parts: bytes) -> None:
        """Write one line, put together from its parts."""
        line = b"".join(parts)
        self._target.write(line)
        self._digest.update(line)
        self.size += len(line)
        self._lines[kind] += 1
        self._bytes[kind] += len(line)

    @property
    def lines(self) -> int:
        """The number of lines so far."""
        return self._lines.total()

    def sha256(self) -> str:
        """Return the digest of everything so far."""
        return self._digest.hexdigest()

    def kinds(self) -> dict[str, KindTruth]:
        """Return the tally, the kind with the most bytes first."""
        return {
            kind: KindTruth(self._lines[kind], size) for kind, size in self._bytes.most_common()
        }


class Session:
    """What one row needs to know of the rows before it."""

    def __init__(self, ledger: Ledger, options: Options) -> None:
        self.ledger = ledger
        self.options = options
        self.dice = Dice(options.seed, "rows")
        self.clock = Clock(self.dice)
        self.id = session_id(options.seed).encode()
        self.prompt_id = self.dice.uuid()
        self.signatures = base64.b64encode(self.dice.noise(SIGNATURE_POOL_BYTES))
        self.parent = b"null"
        self.chain: deque[bytes] = deque(maxlen=PRESERVED_ROWS)
        self.boundaries: list[BoundaryTruth] = []
        self.image_bytes = 0
        self.segment_end = 0
        self._pool = text_pool()
        self.trailer = self._make_trailer()

    @property
    def position(self) -> int:
        """The bytes so far without the images, which would swallow whole segments."""
        return self.ledger.size - self.image_bytes

    def text(self, low: int, high: int, share: int = 1) -> bytes:
        """Return escaped text that takes up at most one share of what the segment has left."""
        return self.cut(self.dice.between(low, high), share)

    def cut(self, size: int, share: int = 1) -> bytes:
        """Return about `size` bytes of escaped text, within the same limit."""
        room = (self.segment_end - self.position) // share
        return self._pool.cut(self.dice, min(size, max(room, SMALLEST_TEXT)))

    def row(self, kind: str, *body: bytes, details: Parts = (), uuid: bytes | None = None) -> bytes:
        """Write the next row of the conversation and return its uuid."""
        uuid = uuid or self.dice.uuid()
        start = (b'{"parentUuid":', self.parent, b',"isSidechain":false,')
        identity = (b',"uuid":"', uuid, b'","timestamp":"', self.clock.tick(), b'"')
        self.ledger.write(kind, *start, *body, *identity, *details, self.trailer)
        self.parent = b'"%b"' % uuid
        self.chain.append(uuid)
        return uuid

    def begin_segment(self, boundary: BoundaryTruth) -> None:
        """Make the boundary the parent of what follows; the client may have been updated."""
        self.boundaries.append(boundary)
        self.parent = b'"%b"' % boundary.uuid.encode()
        self.chain.clear()
        self.trailer = self._make_trailer()

    def _make_trailer(self) -> bytes:
        version = FIRST_VERSION + VERSIONS * len(self.boundaries) // (self.options.boundaries + 1)
        slug = b',"slug":"drifting-copper-lantern"' if self.boundaries else b""
        return (
            b',"userType":"external","entrypoint":"cli","cwd":"%b","sessionId":"%b",'
            b'"version":"2.1.%d","gitBranch":"main"%b}\n'
        ) % (PROJECT, self.id, version, slug)


def session_id(seed: int) -> str:
    """Return the id of the session that this seed generates."""
    return Dice(seed, "session id").uuid().decode()


# ---- rows of the conversation


def user_prompt(session: Session) -> None:
    """Write what the user typed."""
    session.prompt_id = session.dice.uuid()
    body = b'"promptId":"%b","type":"user","message":{"role":"user","content":"%b"}'
    values = (session.prompt_id, session.text(64, 1500))
    session.row("user", body % values, details=(b',"permissionMode":"acceptEdits"',))


def assistant(session: Session, kind: str, block: bytes) -> bytes:
    """Write a reply of one block and return its uuid."""
    dice = session.dice
    body = (
        b'"message":{"model":"claude-opus-4-6","id":"msg_01%b","type":"message",'
        b'"role":"assistant","content":[%b],"stop_reason":null,"stop_sequence":null,"usage":{'
        b'"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,'
        b'"output_tokens":%d,"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},'
        b'"service_tier":"standard","cache_creation":{"ephemeral_1h_input_tokens":0,'
        b'"ephemeral_5m_input_tokens":0}}},"requestId":"req_011%b","type":"assistant"'
    )
    new, cached, read = dice.between(1, 10), dice.below(4000), dice.between(20_000, 150_000)
    tokens = (new, cached, read, dice.between(1, 2000))
    return session.row(kind, body % (dice.hex(22), block, *tokens, dice.hex(20)))


def assistant_text(session: Session) -> None:
    """Write a reply in words."""
    assistant(session, "assistant_text", b'{"type":"text","text":"%b"}' % session.text(80, 4000))


def assistant_thinking(session: Session) -> None:
    """Write a reply's reasoning, with the signature that makes it so large."""
    start = session.dice.below(len(session.signatures) // 8) * 4
    signature = session.signatures[start : start + session.dice.between(75, 625) * 4]
    block = b'{"type":"thinking","thinking":"%b","signature":"%b"}'
    assistant(session, "assistant_thinking", block % (session.text(300, 6000), signature))


def attachment(session: Session) -> None:
    """Write a file that the client attached by itself."""
    path = module_path(session)
    body = (
        b'"attachment":{"type":"file","filename":"%b","content":{"type":"text","file":{'
        b'"filePath":"%b","content":"%b","numLines":1,"startLine":1,"totalLines":1}},'
        b'"displayPath":"%b"},"type":"attachment"'
    )
    name = path.removeprefix(PROJECT + b"/")
    session.row("attachment", body % (path, path, session.text(100, 3000), name))


def turn_duration(session: Session) -> None:
    """Write how long a turn took."""
    body = b'"type":"system","subtype":"turn_duration","durationMs":%d'
    duration = session.dice.between(2_000, 400_000)
    session.row("turn_duration", body % duration, details=(b',"isMeta":false',))


# ---- tool calls: a reply that asks for one, and a user row that has the result twice


class Result(NamedTuple):
    """What a tool gave back, as JSON: for the model, and for the client's own use."""

    content: Parts
    detail: Parts


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, and how often it is called among a hundred calls."""

    name: bytes
    weight: int
    call: Callable[[Session], bytes]
    result: Callable[[Session, int], Result]  # of about so many bytes, twice


def module_path(session: Session) -> bytes:
    """Return the path of some file of the project."""
    return b"%b/src/inlet_%d.py" % (PROJECT, session.dice.below(100))


def command_call(session: Session) -> bytes:
    """Return the input of a tool that runs a command."""
    values = (session.text(64, 400, share=4), session.text(64, 65, share=4))
    return b'{"command":"%b","description":"%b"}' % values


def file_call(session: Session) -> bytes:
    """Return the input of a tool that reads a file."""
    return b'{"file_path":"%b"}' % module_path(session)


def pattern_call(session: Session) -> bytes:
    """Return the input of a tool that searches."""
    return b'{"pattern":"ferry_%b","path":"%b"}' % (session.dice.hex(4), PROJECT)


def edit_call(session: Session) -> bytes:
    """Return the input of a tool that changes a file."""
    call = b'{"file_path":"%b","old_string":"%b","new_string":"%b","replace_all":false}'
    old, new = session.text(64, 1500, share=4), session.text(64, 1500, share=4)
    return call % (module_path(session), old, new)


def output_result(session: Session, size: int) -> Result:
    """Return what a command printed."""
    return printed(session.cut(size, share=2))


def printed(text: bytes) -> Result:
    """Return a command's result, given what it printed."""
    detail = (b'{"stdout":"', text, b'","stderr":"","interrupted":false,"isImage":false}')
    return Result((b'"', text, b'"'), detail)


def file_result(session: Session, size: int) -> Result:
    """Return what a file contains."""
    text = session.cut(size, share=2)
    lines = text.count(b"\\n") + 1
    start = b'{"type":"text","file":{"filePath":"%b","content":"' % module_path(session)
    end = b'","numLines":%d,"startLine":1,"totalLines":%d}}' % (lines, lines)
    return Result((b'"', text, b'"'), (start, text, end))


def edit_result(session: Session, size: int) -> Result:
    """Return a file as it was before an edit, of which the model is told next to nothing."""
    path = module_path(session)
    start = b'{"filePath":"%b","originalFile":"' % path
    end = b'","structuredPatch":[],"userModified":false,"replaceAll":false}'
    return Result((b'"', path, b' was changed."'), (start, session.cut(2 * size), end))


TOOLS = (
    Tool(b"Bash", 45, command_call, output_result),
    Tool(b"Read", 25, file_call, file_result),
    Tool(b"Edit", 15, edit_call, edit_result),
    Tool(b"Grep", 10, pattern_call, output_result),
    Tool(b"mcp__tide__query", 5, pattern_call, output_result),
)
TOOL_LOTTERY = tuple(tool for tool in TOOLS for _ in range(tool.weight))


def tool_round(session: Session, kind: str, name: bytes, call: bytes, result: Result) -> None:
    """Write a call and its result."""
    tool_use_id = b"toolu_01" + session.dice.hex(22)
    block = b'{"type":"tool_use","id":"%b","name":"%b","input":%b}' % (tool_use_id, name, call)
    caller = assistant(session, "assistant_tool_use", block)
    start = (
        b'"promptId":"%b","type":"user","message":{"role":"user","content":[{'
        b'"tool_use_id":"%b","type":"tool_result","content":'
    ) % (session.prompt_id, tool_use_id)
    source = b',"sourceToolAssistantUUID":"%b"' % caller
    details = (b',"toolUseResult":', *result.detail, source)
    session.row(kind, start, *result.content, b',"is_error":false}]}', details=details)


def tool_result(session: Session) -> None:
    """Write a call of one of the usual tools."""
    tool = session.dice.choice(TOOL_LOTTERY)
    result = tool.result(session, session.dice.quantile(RESULT_BYTES))
    tool_round(session, "tool_result", tool.name, tool.call(session), result)


def tool_result_big(session: Session) -> None:
    """Write a command that printed up to a megabyte."""
    result = output_result(session, session.dice.quantile(BIG_RESULT_BYTES))
    tool_round(session, "tool_result_big", b"Bash", command_call(session), result)


def image(session: Session, line_bytes: int) -> None:
    """Write a picture that was looked at, in a line of about this size."""
    before = session.ledger.size
    data = base64.b64encode(session.dice.noise(line_bytes // 8 * 3))
    source = b'[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"'
    file = b'{"type":"image","file":{"base64":"'
    size = b'","type":"image/png","originalSize":%d}}' % (len(data) // 4 * 3)
    result = Result((source, data, b'"}}]'), (file, data, size))
    tool_round(session, "image", b"Read", file_call(session), result)
    session.image_bytes += session.ledger.size - before


# ---- boundaries, and decoys: rows that name one, contain one or look like one

BOUNDARY = (
    b'{"parentUuid":null,"logicalParentUuid":"%b","isSidechain":false,"type":"system",'
    b'"subtype":"compact_boundary","content":"Conversation compacted","isMeta":false,'
    b'"timestamp":"%b","uuid":"%b","level":"info",'
    b'"compactMetadata":{"trigger":"%b","preTokens":%d%b}%b'
)


def compaction(session: Session) -> None:
    """Write a boundary and the summary after it."""
    dice = session.dice
    parent, uuid, summary_uuid = session.parent.strip(b'"'), dice.uuid(), dice.uuid()
    trigger = b"auto" if dice.below(10) else b"manual"
    tokens, time = dice.between(150_000, 168_000), session.clock.tick()
    kept = preserved(session, summary_uuid)
    line = BOUNDARY % (parent, time, uuid, trigger, tokens, kept, session.trailer)
    offset, line_number = session.ledger.size, session.ledger.lines + 1
    session.ledger.write("compact_boundary", line)
    words = (uuid.decode(), time.decode(), trigger.decode())
    session.begin_segment(BoundaryTruth(offset, line_number, *words, tokens))
    summary = (
        b'"type":"user","message":{"role":"user","content":"The work so far, in short:\\n\\n%b"},'
        b'"isVisibleInTranscriptOnly":true,"isCompactSummary":true'
    ) % session.text(6_000, 16_000, share=4)
    session.row("compact_summary", summary, uuid=summary_uuid)


def preserved(session: Session, anchor: bytes) -> bytes:
    """Return the names of the rows that outlive the boundary to come, if it is one of those."""
    every = session.options.preserved_every
    if not every or (len(session.boundaries) + 1) % every:
        return b""
    first, last = session.chain[0], session.chain[-1]
    uuids = b",".join(b'"%b"' % uuid for uuid in session.chain)
    return (
        b',"preservedSegment":{"headUuid":"%b","anchorUuid":"%b","tailUuid":"%b"},'
        b'"preservedMessages":{"anchorUuid":"%b","uuids":[%b],"allUuids":[%b]}'
    ) % (first, anchor, last, anchor, uuids, uuids)


def foreign_boundary(session: Session) -> bytes:
    """Return a complete boundary row of some other session, without its newline."""
    dice = session.dice
    parent, uuid, other_session = dice.uuid(), dice.uuid(), dice.uuid()
    trailer = session.trailer.removesuffix(b"\n").replace(session.id, other_session)
    return BOUNDARY % (parent, session.clock.tick(), uuid, b"auto", 155_000, b"", trailer)


def decoy_escaped(session: Session) -> None:
    """Write a command that printed another session: a boundary inside of a string."""
    call = (
        b'{"command":"tail -n 40 other.jsonl | grep compact_boundary",'
        b'"description":"look at another session"}'
    )
    quoted = foreign_boundary(session).replace(b'"', b'\\"')
    before, after = session.text(64, 400, share=8), session.text(64, 400, share=8)
    result = printed(b"%b\\n%b\\n%b" % (before, quoted, after))
    tool_round(session, "decoy_escaped", b"Bash", call, result)


def decoy_nested(session: Session) -> None:
    """Write a tool that gave rows back as objects: a boundary, unescaped, deeper in the line."""
    call = b'{"filter":{"type":"system","subtype":"compact_boundary"}}'
    content = (b'[{"type":"text","text":"', session.text(64, 400, share=8), b'"}]')
    entries = b'{"structuredContent":{"entries":[%b,{"type":"user","isCompactSummary":true}]}}'
    result = Result(content, (entries % foreign_boundary(session),))
    tool_round(session, "decoy_nested", b"mcp__tide__sessions", call, result)


def microcompact_boundary(session: Session) -> None:
    """Write a boundary of the other sort: old tool results were dropped, not the context."""
    body = (
        b'"type":"system","subtype":"microcompact_boundary","content":"Context microcompacted",'
        b'"isMeta":false,"level":"info","microcompactMetadata":{"trigger":"auto",'
        b'"preTokens":90000,"tokensSaved":30000,"compactedToolIds":[],'
        b'"clearedAttachmentUUIDs":[]}'
    )
    session.row("microcompact_boundary", body)


# ---- lines that are no part of the conversation

METADATA = (
    (b"permission-mode", b"permissionMode", b"acceptEdits"),
    (b"last-prompt", b"lastPrompt", b""),
    (b"last-prompt", b"lastPrompt", b""),
    (b"ai-title", b"aiTitle", b"Mend the ferry ledger"),
    (b"mode", b"mode", b"normal"),
)


def opening(session: Session) -> None:
    """Write the first lines of the file; the custom title stands nowhere else."""
    line = b'{"type":"summary","summary":"Mend the ferry ledger","leafUuid":"%b"}\n'
    session.ledger.write("summary", line % session.dice.uuid())
    user_prompt(session)
    write_metadata(session, b"custom-title", b"customTitle", b"harbour works")


def metadata(session: Session) -> None:
    """Write a fact about the session, of which a loader keeps the last of each type."""
    row_type, key, value = session.dice.choice(METADATA)
    write_metadata(session, row_type, key, value or session.text(64, 65))


def write_metadata(session: Session, row_type: bytes, key: bytes, value: bytes) -> None:
    """Write one such fact."""
    line = b'{"type":"%b","%b":"%b","sessionId":"%b"}\n'
    session.ledger.write("metadata", line % (row_type, key, value, session.id))


def progress(session: Session) -> None:
    """Write a sign of life from a running command."""
    dice = session.dice
    line = (
        b'{"parentUuid":%b,"isSidechain":false,"type":"progress","data":{"type":"bash_progress",'
        b'"output":"%b","elapsedTimeSeconds":%d},"toolUseID":"bash-progress-%d",'
        b'"parentToolUseID":"toolu_01%b","uuid":"%b","timestamp":"%b"%b'
    )
    data = (session.text(64, 900), dice.between(1, 90), dice.below(1000))
    identity = (dice.hex(22), dice.uuid(), session.clock.tick())
    session.ledger.write("progress", line % (session.parent, *data, *identity, session.trailer))


def file_history_snapshot(session: Session) -> None:
    """Write which backups would undo what a message did."""
    dice = session.dice
    message_id, time = dice.uuid(), session.clock.tick()
    backup = b'"src/inlet_%d.py":{"backupFileName":"%b@v1","version":1,"backupTime":"%b"}'
    backups = b",".join(backup % (file, dice.hex(16), time) for file in range(dice.below(60)))
    line = (
        b'{"type":"file-history-snapshot","messageId":"%b","snapshot":{"messageId":"%b",'
        b'"trackedFileBackups":{%b},"timestamp":"%b"},"isSnapshotUpdate":false}\n'
    )
    values = (message_id, message_id, backups, time)
    session.ledger.write("file_history_snapshot", line % values)


def queue_operation(session: Session) -> None:
    """Write that a prompt waited for its turn, and that it came."""
    line = b'{"type":"queue-operation","operation":"%b","timestamp":"%b","sessionId":"%b"%b}\n'
    prompt = b',"content":"%b"' % session.text(64, 130)
    for operation, content in ((b"enqueue", prompt), (b"dequeue", b"")):
        values = (operation, session.clock.tick(), session.id, content)
        session.ledger.write("queue_operation", line % values)


# ---- what is written when

WritesRow = Callable[[Session], None]


@dataclass(frozen=True, slots=True)
class RowKind:
    """A kind of row and how often it is written among a thousand."""

    weight: int
    write: WritesRow


ROW_KINDS = (
    RowKind(50, user_prompt),
    RowKind(100, assistant_text),
    RowKind(120, assistant_thinking),
    RowKind(577, tool_result),
    RowKind(3, tool_result_big),
    RowKind(70, progress),
    RowKind(10, attachment),
    RowKind(20, file_history_snapshot),
    RowKind(25, turn_duration),
    RowKind(15, queue_operation),
    RowKind(10, metadata),
)
ROW_LOTTERY = tuple(kind.write for kind in ROW_KINDS for _ in range(kind.weight))
DECOYS: dict[str, WritesRow] = {
    "escaped": decoy_escaped,
    "nested": decoy_nested,
    "micro": microcompact_boundary,
}


@dataclass(frozen=True, slots=True)
class Event:
    """A row that is not left to the lottery, and the position at which it is due."""

    position: int
    write: WritesRow


@dataclass(frozen=True, slots=True)
class Schedule:
    """The positions at which segments end and events are due, in order."""

    segment_ends: tuple[int, ...]
    events: tuple[Event, ...]


def make_schedule(options: Options) -> Schedule:
    """Decide what the file will look like before its first byte is written."""
    dice = Dice(options.seed, "schedule")
    count = options.planned_images()
    limit = options.size // max(16, 2 * count)
    images = [min(dice.between(*IMAGE_LINE_BYTES), limit) for _ in range(count)]
    ends = segment_ends(dice, options, options.size - sum(images))
    span = ends[-1] if options.tail is None else ends[-2]
    writers: list[WritesRow] = [partial(image, line_bytes=line_bytes) for line_bytes in images]
    for name, number in options.planned_decoys().items():
        writers += [DECOYS[name]] * number
    first, last = span // 100, span * 98 // 100
    events = [Event(dice.between(first, last + 1), write) for write in writers]
    return Schedule(ends, tuple(sorted(events, key=lambda event: event.position)))


def segment_ends(dice: Dice, options: Options, total: int) -> tuple[int, ...]:
    """Cut the total into segments of unequal size, the last one as asked for."""
    weights = [dice.quantile(SEGMENT_WEIGHTS) for _ in range(options.boundaries + 1)]
    if options.tail is None:
        return shares(total, weights)
    before_tail = max(total - options.tail - BOUNDARY_BYTES, 0)
    return (*shares(before_tail, weights[:-1]), total)


def shares(total: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Return where each share of the total ends."""
    sums = tuple(itertools.accumulate(weights))
    return tuple(total * part // sums[-1] for part in sums)


def generate(target: BinaryIO, options: Options) -> Truth:
    """Write a session to the target and return what is in it."""
    ledger = Ledger(target)
    session = Session(ledger, options)
    schedule = make_schedule(options)
    events = deque(schedule.events)
    for number, end in enumerate(schedule.segment_ends):
        session.segment_end = end
        begin = compaction if number else opening
        begin(session)
        while session.position < end:
            if events and events[0].position <= session.position:
                events.popleft().write(session)
            else:
                session.dice.choice(ROW_LOTTERY)(session)
    for event in events:
        event.write(session)
    return Truth(
        session_id=session.id.decode(),
        bytes=ledger.size,
        lines=ledger.lines,
        sha256=ledger.sha256(),
        boundaries=tuple(session.boundaries),
        decoys=options.planned_decoys(),
        kinds=ledger.kinds(),
    )


# ---- the command


def parse_size(text: str) -> int:
    """Read a size such as 400M, in powers of 1024."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text.upper())
    if not match:
        raise argparse.ArgumentTypeError(f"not a size: {text!r} (write 512K, 400M, 2G)")
    return int(match[1]) * UNITS[match[2]]


def make_parser() -> argparse.ArgumentParser:
    """Describe the command line; an option's name is its field in Options."""
    parser = argparse.ArgumentParser(
        description="Write a synthetic Claude Code session: same arguments, same bytes.",
        epilog="Counts without a stated default follow from the size.",
    )
    parser.add_argument("out", type=Path, help="a file, or a folder to put <sessionId>.jsonl in")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="write what is in it as JSON")
    for name, read, text in (
        ("size", parse_size, "of the file, in bytes (default: 400M)"),
        ("boundaries", int, "compactions (default: %(default)s)"),
        ("seed", int, "another session for every integer (default: %(default)s)"),
        ("decoys-escaped", int, "boundaries that stand in a string"),
        ("decoys-nested", int, "boundaries that stand deeper in a row"),
        ("micro", int, "boundaries of the other sort"),
        ("images", int, "lines of 5 to 11 MiB, smaller in a small file"),
        ("preserved-every", int, "let every Nth boundary preserve earlier rows (default: none)"),
        ("tail", parse_size, "about what follows the last boundary's line (default: as it falls)"),
    ):
        default = getattr(DEFAULTS, name.replace("-", "_"))
        parser.add_argument(f"--{name}", type=read, metavar="N", default=default, help=text)
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate one file and say what is in it."""
    parser = make_parser()
    settings = vars(parser.parse_args(arguments))
    out: Path = settings.pop("out")
    truth_file: Path | None = settings.pop("truth")
    try:
        options = Options(**settings)
    except ValueError as error:
        parser.error(str(error))
    path = out / f"{session_id(options.seed)}.jsonl" if out.is_dir() else out
    with path.open("wb", buffering=MIB) as target:
        truth = generate(target, options)
    record = {"path": str(path), **asdict(truth)}
    if truth_file:
        truth_file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    del record["kinds"]
    print(json.dumps(record | {"boundaries": len(truth.boundaries)}, indent=1))


if __name__ == "__main__":
    main()
