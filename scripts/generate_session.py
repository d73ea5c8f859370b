#!/usr/bin/env python3
"""Write a Claude Code session: the same options give the same bytes, in constant memory.

The bytes are those of client 2.1.151: the kinds of rows, the order of their keys, the
spelling of `JSON.stringify`, and what a naive splitter falls for: rows that quote a boundary, rows
that contain one, and boundaries of another sort.
"""

from __future__ import annotations

import base64
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from dice import KIB, MIB, RESULT_BYTES, AllOptions, Truth, Writer, command, option, templates

PRESERVED_ROWS = 6
IMAGE_LINE_BYTES = (5 * MIB, 11 * MIB)
BIG_RESULT_BYTES = (20 * KIB, 600 * KIB)


@dataclass(frozen=True)
class Options(AllOptions):
    """What to generate."""

    boundaries: int = option(142, "compactions")
    preserved_every: int = option(0, "let every Nth boundary preserve earlier rows, 0 for none")
    images: int = option(1, "lines of 5 to 11 MiB, smaller in a small file")
    tail: int = option(0, "about what follows the last boundary, 0 for a segment like any other")


ROWS = templates(rb"""
row: {"parentUuid":%(parent)b,"isSidechain":false,%(body)b,"uuid":"%(new)b","timestamp":"%(time)b"
    %(details)b%(trailer)b
trailer: ,"userType":"external","entrypoint":"cli","cwd":"/srv/demo/project",
    "sessionId":"%(session)b","version":"2.1.151","gitBranch":"main"}
user: "promptId":"%(prompt)b","type":"user","message":{"role":"user",
    "content":"%(text 64 1500)b"}
user_details: ,"permissionMode":"acceptEdits"
reply: "message":{"model":"claude-opus-4-6","id":"msg_01%(hex 22)b","type":"message",
    "role":"assistant","content":[
spent: ],"stop_reason":null,"stop_sequence":null,"usage":{
    "input_tokens":%(between 1 10)b,"cache_creation_input_tokens":%(between 0 4000)b,
    "cache_read_input_tokens":%(between 20000 150000)b,"output_tokens":%(between 1 2000)b,
    "server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},
    "service_tier":"standard","cache_creation":{"ephemeral_1h_input_tokens":0,
    "ephemeral_5m_input_tokens":0}}},"requestId":"req_011%(hex 20)b","type":"assistant"
said: %(reply)b{"type":"text","text":"%(text 80 4000)b"}%(spent)b
thought: %(reply)b{"type":"thinking","thinking":"%(text 300 6000)b",
    "signature":"%(base64 225 1875)b"}%(spent)b
tool_use: %(reply)b{"type":"tool_use","id":"%(call_id)b","name":%(call)b}%(spent)b
tool_result: "promptId":"%(prompt)b","type":"user","message":{"role":"user","content":[{
    "tool_use_id":"%(call_id)b","type":"tool_result","content":%(content)b,"is_error":false}]}
tool_result_details: ,"toolUseResult":%(detail)b,"sourceToolAssistantUUID":"%(caller)b"
attachment: "attachment":{"type":"file","filename":"/srv/demo/project/NOTES.md","content":{
    "type":"text","file":{"filePath":"/srv/demo/project/NOTES.md","content":"%(text 100 3000)b",
    "numLines":1,"startLine":1,"totalLines":1}},"displayPath":"NOTES.md"},"type":"attachment"
turn_duration: "type":"system","subtype":"turn_duration","durationMs":%(between 2000 400000)b
turn_duration_details: ,"isMeta":false
compact_summary: "type":"user","message":{"role":"user","content":"The work so far, in short:\n\n
    %(text 6000 16000 4)b"},"isVisibleInTranscriptOnly":true,"isCompactSummary":true
compact_boundary: {"parentUuid":null,"logicalParentUuid":%(parent)b,"isSidechain":false,
    "type":"system","subtype":"compact_boundary","content":"Conversation compacted",
    "isMeta":false,"timestamp":"%(time)b","uuid":"%(new)b","level":"info",
    "compactMetadata":{"trigger":"%(trigger)b","preTokens":%(between 150000 168000)b%(kept)b}
    %(trailer)b
kept: ,"preservedSegment":{"headUuid":"%(head)b","anchorUuid":"%(anchor)b","tailUuid":"%(last)b"},
    "preservedMessages":{"anchorUuid":"%(anchor)b","uuids":[%(all)b],"allUuids":[%(all)b]}
microcompact_boundary: "type":"system","subtype":"microcompact_boundary",
    "content":"Context microcompacted","isMeta":false,"level":"info",
    "microcompactMetadata":{"trigger":"auto","preTokens":90000,"tokensSaved":30000,
    "compactedToolIds":[],"clearedAttachmentUUIDs":[]}
progress: {"parentUuid":%(parent)b,"isSidechain":false,"type":"progress","data":{
    "type":"bash_progress","output":"%(text 64 900)b","elapsedTimeSeconds":%(between 1 90)b},
    "toolUseID":"bash-progress-%(between 0 1000)b","parentToolUseID":"toolu_01%(hex 22)b",
    "uuid":"%(uuid)b","timestamp":"%(time)b"%(trailer)b
file_history_snapshot: {"type":"file-history-snapshot","messageId":%(parent)b,"snapshot":{
    "messageId":%(parent)b,"trackedFileBackups":{%(backup)b,%(backup)b,%(backup)b},
    "timestamp":"%(time)b"},"isSnapshotUpdate":false}
backup: "src/inlet_%(hex 8)b.py":{"backupFileName":"%(hex 16)b@v1","version":1,
    "backupTime":"%(time)b"}
enqueue: {"type":"queue-operation","operation":"enqueue","timestamp":"%(time)b",
    "sessionId":"%(session)b","content":"%(text 64 130)b"}
dequeue: {"type":"queue-operation","operation":"dequeue","timestamp":"%(time)b",
    "sessionId":"%(session)b"}
summary: {"type":"summary","summary":"Mend the ferry ledger","leafUuid":"%(uuid)b"}
custom_title: {"type":"custom-title","customTitle":"harbour works","sessionId":"%(session)b"}
permission_mode: {"type":"permission-mode","permissionMode":"acceptEdits",
    "sessionId":"%(session)b"}
last_prompt: {"type":"last-prompt","lastPrompt":"%(text 64 65)b","sessionId":"%(session)b"}
ai_title: {"type":"ai-title","aiTitle":"Mend the ferry ledger","sessionId":"%(session)b"}
mode: {"type":"mode","mode":"normal","sessionId":"%(session)b"}
path: /srv/demo/project/src/inlet_%(between 0 100)b.py
Bash: "Bash","input":{"command":"%(text 64 400 4)b","description":"%(text 64 65 4)b"}
plain_content: "%(out)b"
plain_detail: {"stdout":"%(out)b","stderr":"","interrupted":false,"isImage":false}
Read: "Read","input":{"file_path":"%(path)b"}
Read_content: %(plain_content)b
Read_detail: {"type":"text","file":{"filePath":"%(path)b","content":"%(out)b",
    "numLines":2000,"startLine":1,"totalLines":4000}}
Edit: "Edit","input":{"file_path":"%(path)b","old_string":"%(text 64 1500 4)b",
    "new_string":"%(text 64 1500 4)b","replace_all":false}
Edit_content: "%(path)b was changed."
Edit_detail: {"filePath":"%(path)b","originalFile":"%(out)b","structuredPatch":[],
    "userModified":false,"replaceAll":false}
Grep: "Grep","input":{"pattern":"ferry_%(hex 4)b","path":"/srv/demo/project"}
query: "mcp__tide__query","input":{"pattern":"ferry_%(hex 4)b"}
image: %(Read)b
image_content: [{"type":"image","source":{"type":"base64","media_type":"image/png",
    "data":"%(out)b"}}]
image_detail: {"type":"image","file":{"base64":"%(out)b","type":"image/png",
    "originalSize":%(between 100000 999999)b}}
decoy_escaped: "Bash","input":{"command":"tail -n 40 other.jsonl | grep compact_boundary",
    "description":"look at another session"}
decoy_escaped_out: %(text 64 400 8)b\n%(quoted)b\n%(text 64 400 8)b
decoy_nested: "mcp__tide__sessions","input":{"filter":{"type":"system",
    "subtype":"compact_boundary"}}
decoy_nested_content: [{"type":"text","text":"%(text 64 400 8)b"}]
decoy_nested_detail: {"structuredContent":{"entries":[%(entry)b,
    {"type":"user","isCompactSummary":true}]}}
""")
"""The rows, the blocks in them, and of each tool its call and its result: for the model, and for
the client's own use."""

BESIDE = (
    *("progress",) * 14,
    *("file_history_snapshot",) * 4,
    *("enqueue", "dequeue"),
    # Of facts about the session, a loader keeps the last of each type.
    *("permission_mode", "last_prompt", "ai_title", "mode"),
)
"""The rows that are no part of the conversation, as often as they are written."""
TOOLS = ("Bash",) * 9 + ("Read",) * 5 + ("Edit",) * 3 + ("Grep",) * 2 + ("query",)


class Session(Writer):
    """What one row needs to know of the rows before it."""

    rows = ROWS
    options: Options

    def __init__(self, target: BinaryIO, options: Options) -> None:
        super().__init__(target, options)
        self.prompt = self.uuid()
        self.parent = b"null"
        self.chain: deque[bytes] = deque(maxlen=PRESERVED_ROWS)
        self.room = 0

    def trigger(self) -> bytes:
        """Return why there is a compaction."""
        return b"auto" if self.between(0, 10) else b"manual"

    def row(self, name: str, new: bytes = b"", **given: bytes) -> bytes:
        """Write the next row of the conversation and return its uuid."""
        body = self.fill(name, **given)
        new = new or self.uuid()
        details = self.fill(f"{name}_details", **given) if f"{name}_details" in ROWS else b""
        self.write("row", body=body, new=new, details=details)
        self.parent = b'"%b"' % new
        self.chain.append(new)
        return new


def user(session: Session) -> None:
    """Write a prompt, whose id the results after it have, too."""
    session.prompt = session.uuid()
    session.row("user")


# ---- tool calls: a reply that asks for one, and a user row that has the result twice


def tool_round(session: Session, tool: str, **given: bytes) -> None:
    """Write a call and its result."""
    own = tool if f"{tool}_detail" in ROWS else "plain"
    content, detail = (session.fill(f"{own}_{part}", **given) for part in ("content", "detail"))
    call_id = b"toolu_01" + session.hex(22)
    caller = session.row("tool_use", call_id=call_id, call=session.fill(tool))
    session.row("tool_result", call_id=call_id, content=content, detail=detail, caller=caller)


def tool_result(session: Session) -> None:
    """Write a call of one of the usual tools."""
    out = session.cut(session.quantile(RESULT_BYTES), 2)
    tool_round(session, session.choice(TOOLS), out=out)


def tool_result_big(session: Session) -> None:
    """Write a command that printed some hundred kilobytes."""
    tool_round(session, "Bash", out=session.text(*BIG_RESULT_BYTES, 2))


def image(session: Session, line_bytes: int) -> None:
    """Write a picture that was looked at, in a line of about this size."""
    before = session.size
    tool_round(session, "image", out=base64.b64encode(session.noise(line_bytes // 8 * 3)))
    session.room += session.size - before  # it would swallow whole segments


# ---- boundaries, and decoys: rows that name one, contain one or look like one


def compaction(session: Session) -> None:
    """Write a boundary and the summary after it."""
    new, summary, kept = session.uuid(), session.uuid(), b""
    session.boundaries.append(session.size)
    every = session.options.preserved_every
    if every and not len(session.boundaries) % every:
        rows = b",".join(b'"%b"' % uuid for uuid in session.chain)
        ends = {"head": session.chain[0], "last": session.chain[-1]}
        kept = session.fill("kept", anchor=summary, all=rows, **ends)
    session.write("compact_boundary", new=new, kept=kept)
    session.parent = b'"%b"' % new
    session.chain.clear()
    session.row("compact_summary", new=summary)


def foreign_boundary(session: Session) -> bytes:
    """Return a complete boundary row of some other session."""
    given = {"new": session.uuid(), "session": session.uuid(), "kept": b""}
    return session.fill("compact_boundary", **given)


def decoy_escaped(session: Session) -> None:
    """Write a command that printed another session: a boundary inside of a string."""
    quoted = foreign_boundary(session).replace(b'"', b'\\"')
    out = session.fill("decoy_escaped_out", quoted=quoted)
    tool_round(session, "decoy_escaped", out=out)


def decoy_nested(session: Session) -> None:
    """Write a tool that gave rows back as objects: a boundary, unescaped, deeper in the line."""
    tool_round(session, "decoy_nested", entry=foreign_boundary(session))


# ---- what is written when

WritesRow = Callable[[Session], object]
ROW_LOTTERY: tuple[WritesRow, ...] = (
    *[user] * 50,
    *[lambda session: session.row("said")] * 100,
    *[lambda session: session.row("thought")] * 120,
    *[tool_result] * 577,
    *[tool_result_big] * 3,
    *[lambda session: session.row("attachment")] * 10,
    *[lambda session: session.row("turn_duration")] * 25,
    *[lambda session: session.write(session.choice(BESIDE))] * 115,
)
"""How often each kind of row is written among a thousand."""
DECOYS: tuple[WritesRow, ...] = (
    decoy_escaped,
    decoy_nested,
    lambda session: session.row("microcompact_boundary"),
)
"""What a session has one of in each MiB, somewhere."""


def opening(session: Session) -> None:
    """Write the first lines of the file; the custom title stands nowhere else."""
    session.write("summary")
    user(session)
    session.write("custom_title")


def segment_ends(session: Session, total: int) -> list[int]:
    """Cut the total into segments of unequal size, the last one as asked for."""
    tail = session.options.tail
    cuts = session.options.boundaries + (0 if tail else 1)
    sums = list(itertools.accumulate(session.between(250, 1750) for _ in range(cuts)))
    ends = [(total - tail) * part // sums[-1] for part in sums]
    return [*ends, total] if tail else ends


def generate(target: BinaryIO, options: Options) -> Truth:
    """Write a session to the target and return what is in it."""
    session = Session(target, options)
    limit = options.size // max(16, 2 * options.images)
    images = [min(session.between(*IMAGE_LINE_BYTES), limit) for _ in range(options.images)]
    ends = segment_ends(session, options.size - sum(images))
    rows: list[WritesRow] = [partial(image, line_bytes=each) for each in images]
    rows += DECOYS * (options.size // MIB)
    places = [session.between(0, ends[-1] - options.tail) for _ in rows]
    due = deque(sorted(zip(places, rows, strict=True), key=lambda each: each[0]))
    for number, (begin, end) in enumerate(itertools.pairwise((0, *ends))):
        session.room += end - begin
        (compaction if number else opening)(session)
        while session.room > 0 or (due and due[0][0] < end):
            if due and due[0][0] <= end - session.room:
                due.popleft()[1](session)
            else:
                session.choice(ROW_LOTTERY)(session)
    return session.truth()


if __name__ == "__main__":
    command(Options, generate)
