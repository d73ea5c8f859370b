#!/usr/bin/env python3
"""Write a Claude Code session: the same options give the same bytes, in constant memory.

The bytes are those of clients 2.1.112 to 2.1.151: the kinds of rows, the order of their keys, the
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

from dice import KIB, MIB, RESULT_BYTES, AllOptions, Dice, Truth, Writer, command, option, templates

FIRST_VERSION, VERSIONS = 112, 40
PRESERVED_ROWS = 6
BOUNDARY_BYTES = 700  # about; what a tail leaves for the last boundary itself

# What a session of this size holds; one of another size has its share.
REFERENCE_SIZE = 400 * MIB
SMALLEST_WITH_DECOYS = MIB
BYTES_PER_IMAGE = 64 * MIB
SMALLEST_WITH_IMAGE = 20 * MIB
IMAGE_LINE_BYTES = (5 * MIB, 11 * MIB)

# Evenly spaced quantiles: the bytes of a rare big result, and the relative size of a segment
# (log-normal, spread 0.45, in thousandths).
BIG_RESULT_BYTES = (50 * KIB, 150 * KIB, 300 * KIB, 500 * KIB, MIB)
SEGMENT_WEIGHTS = (
    *(242, 501, 596, 671, 738, 803, 866, 932, 1000),
    *(1073, 1154, 1246, 1355, 1491, 1678, 1994, 4138),
)
SIGNATURE_POOL_BYTES = 256 * KIB


@dataclass(frozen=True)
class Options(AllOptions):
    """What to generate."""

    purpose = "session id"
    boundaries: int = option(142, "compactions")
    preserved_every: int = option(0, "let every Nth boundary preserve earlier rows, 0 for none")
    images: int | None = option(None, "lines of 5 to 11 MiB, smaller in a small file")
    tail: int | None = option(None, "about what follows the last boundary's line")

    def __post_init__(self) -> None:
        AllOptions.__post_init__(self)
        if self.tail is not None and not (self.boundaries and self.tail < self.size):
            raise ValueError("a tail needs a boundary before it and a size above its own")


ROWS = templates(rb"""
row: {"parentUuid":%(parent)b,"isSidechain":false,%(body)b,"uuid":"%(new)b","timestamp":"%(time)b"
    %(details)b%(trailer)b
trailer: ,"userType":"external","entrypoint":"cli","cwd":"/srv/demo/project",
    "sessionId":"%(session)b","version":"2.1.%(version)b","gitBranch":"main"%(slug)b}
user: "promptId":"%(prompt)b","type":"user","message":{"role":"user",
    "content":"%(text 64 1500)b"}
reply: "message":{"model":"claude-opus-4-6","id":"msg_01%(hex 22)b","type":"message",
    "role":"assistant","content":[
spent: ],"stop_reason":null,"stop_sequence":null,"usage":{
    "input_tokens":%(between 1 10)b,"cache_creation_input_tokens":%(between 0 4000)b,
    "cache_read_input_tokens":%(between 20000 150000)b,"output_tokens":%(between 1 2000)b,
    "server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},
    "service_tier":"standard","cache_creation":{"ephemeral_1h_input_tokens":0,
    "ephemeral_5m_input_tokens":0}}},"requestId":"req_011%(hex 20)b","type":"assistant"
said: %(reply)b{"type":"text","text":"%(text 80 4000)b"}%(spent)b
thought: %(reply)b{"type":"thinking","thinking":"%(text 300 6000)b","signature":"%(signed)b"}
    %(spent)b
tool_use: %(reply)b{"type":"tool_use","id":"%(call_id)b","name":"%(tool)b","input":%(call)b}
    %(spent)b
tool_result: "promptId":"%(prompt)b","type":"user","message":{"role":"user","content":[{
    "tool_use_id":"%(call_id)b","type":"tool_result","content":%(content)b,"is_error":false}]}
result_details: ,"toolUseResult":%(detail)b,"sourceToolAssistantUUID":"%(caller)b"
attachment: "attachment":{"type":"file","filename":"/srv/demo/project/%(path)b","content":{
    "type":"text","file":{"filePath":"/srv/demo/project/%(path)b","content":"%(text 100 3000)b",
    "numLines":1,"startLine":1,"totalLines":1}},"displayPath":"%(path)b"},"type":"attachment"
turn_duration: "type":"system","subtype":"turn_duration","durationMs":%(between 2000 400000)b
compact_summary: "type":"user","message":{"role":"user","content":"The work so far, in short:\n\n
    %(text 6000 16000 4)b"},"isVisibleInTranscriptOnly":true,"isCompactSummary":true
compact_boundary: {"parentUuid":null,"logicalParentUuid":"%(above)b","isSidechain":false,
    "type":"system","subtype":"compact_boundary","content":"Conversation compacted",
    "isMeta":false,"timestamp":"%(when)b","uuid":"%(new)b","level":"info",
    "compactMetadata":{"trigger":"%(trigger)b","preTokens":%(tokens)b%(kept)b}%(trailer)b
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
file_history_snapshot: {"type":"file-history-snapshot","messageId":"%(message)b","snapshot":{
    "messageId":"%(message)b","trackedFileBackups":{%(backups)b},"timestamp":"%(when)b"},
    "isSnapshotUpdate":false}
backup: "src/inlet_%(file)b.py":{"backupFileName":"%(hex 16)b@v1","version":1,
    "backupTime":"%(when)b"}
queue_operation: {"type":"queue-operation","operation":"%(operation)b","timestamp":"%(time)b",
    "sessionId":"%(session)b"%(content)b}
summary: {"type":"summary","summary":"Mend the ferry ledger","leafUuid":"%(uuid)b"}
custom_title: {"type":"custom-title","customTitle":"harbour works","sessionId":"%(session)b"}
permission_mode: {"type":"permission-mode","permissionMode":"acceptEdits",
    "sessionId":"%(session)b"}
last_prompt: {"type":"last-prompt","lastPrompt":"%(text 64 65)b","sessionId":"%(session)b"}
ai_title: {"type":"ai-title","aiTitle":"Mend the ferry ledger","sessionId":"%(session)b"}
mode: {"type":"mode","mode":"normal","sessionId":"%(session)b"}
module: src/inlet_%(between 0 100)b.py
Bash: {"command":"%(text 64 400 4)b","description":"%(text 64 65 4)b"}
plain_content: "%(out)b"
plain_detail: {"stdout":"%(out)b","stderr":"","interrupted":false,"isImage":false}
Read: {"file_path":"/srv/demo/project/%(module)b"}
Read_content: %(plain_content)b
Read_detail: {"type":"text","file":{"filePath":"/srv/demo/project/%(module)b","content":"%(out)b",
    "numLines":%(count)b,"startLine":1,"totalLines":%(count)b}}
Edit: {"file_path":"/srv/demo/project/%(module)b","old_string":"%(old)b",
    "new_string":"%(replaced)b","replace_all":false}
Edit_content: "/srv/demo/project/%(path)b was changed."
Edit_detail: {"filePath":"/srv/demo/project/%(path)b","originalFile":"%(out)b","structuredPatch":[],
    "userModified":false,"replaceAll":false}
Grep: {"pattern":"ferry_%(hex 4)b","path":"/srv/demo/project"}
image: {"file_path":"/srv/demo/project/%(module)b"}
image_content: [{"type":"image","source":{"type":"base64","media_type":"image/png",
    "data":"%(out)b"}}]
image_detail: {"type":"image","file":{"base64":"%(out)b","type":"image/png",
    "originalSize":%(count)b}}
decoy_escaped: {"command":"tail -n 40 other.jsonl | grep compact_boundary",
    "description":"look at another session"}
decoy_escaped_out: %(text 64 400 8)b\n%(quoted)b\n%(text 64 400 8)b
decoy_nested: {"filter":{"type":"system","subtype":"compact_boundary"}}
decoy_nested_content: [{"type":"text","text":"%(out)b"}]
decoy_nested_detail: {"structuredContent":{"entries":[%(entry)b,
    {"type":"user","isCompactSummary":true}]}}
""")
"""The rows, the blocks in them, and of each tool its call and its result: for the model, and for
the client's own use."""

# Facts about the session, of which a loader keeps the last of each type.
FACTS = ("permission_mode", "last_prompt", "last_prompt", "ai_title", "mode")
TOOLS = [("Bash", "Bash")] * 45 + [("Read", "Read")] * 25 + [("Edit", "Edit")] * 15
TOOLS += [("Grep", "Grep")] * 10 + [("mcp__tide__query", "Grep")] * 5
"""The tools of a hundred calls, each with the name of its templates."""


class Session(Writer):
    """What one row needs to know of the rows before it."""

    slug = b""

    def __init__(self, target: BinaryIO, options: Options) -> None:
        super().__init__(target, ROWS, options, "rows")
        self.options = options
        self.prompt = self.uuid()
        self.parent = b"null"
        self.chain: deque[bytes] = deque(maxlen=PRESERVED_ROWS)
        self.room = 0
        self.signatures = base64.b64encode(self.noise(SIGNATURE_POOL_BYTES))

    @property
    def version(self) -> int:
        """The client's, which may have been updated after a compaction."""
        return FIRST_VERSION + VERSIONS * len(self.boundaries) // (self.options.boundaries + 1)

    def row(self, name: str, details: bytes = b"", new: bytes = b"", **given: bytes) -> bytes:
        """Write the next row of the conversation and return its uuid."""
        body = self.fill(name, **given)
        new = new or self.uuid()
        self.write("row", body=body, new=new, details=details)
        self.parent = b'"%b"' % new
        self.chain.append(new)
        return new


def user(session: Session) -> None:
    """Write a prompt, whose id the results after it have, too."""
    session.prompt = session.uuid()
    session.row("user", b',"permissionMode":"acceptEdits"')


def thinking(session: Session) -> None:
    """Write a thought; the signature is what makes it so large."""
    start = session.between(0, len(session.signatures) // 8) * 4
    signed = session.signatures[start : start + session.between(75, 625) * 4]
    session.row("thought", signed=signed)


def file_history_snapshot(session: Session) -> None:
    """Write which backups would undo what a message did."""
    message, when = session.uuid(), session.time()
    files = range(session.between(0, 60))
    backups = [session.fill("backup", file=file, when=when) for file in files]
    facts = {"message": message, "when": when, "backups": b",".join(backups)}
    session.write("file_history_snapshot", **facts)


def queue_operation(session: Session) -> None:
    """Write that a prompt waited for its turn, and that it came."""
    content = b',"content":"%b"' % session.text(64, 130)
    session.write("queue_operation", operation=b"enqueue", content=content)
    session.write("queue_operation", operation=b"dequeue", content=b"")


# ---- tool calls: a reply that asks for one, and a user row that has the result twice


def tool_round(session: Session, tool: str, shape: str, **given: bytes | int) -> None:
    """Write a call and its result."""
    own = shape if f"{shape}_detail" in ROWS else "plain"
    content, detail = (session.fill(f"{own}_{part}", **given) for part in ("content", "detail"))
    if tool == "Edit":
        given |= {"old": session.text(64, 1500, 4), "replaced": session.text(64, 1500, 4)}
    call = session.fill(shape, **given)
    call_id = b"toolu_01" + session.hex(22)
    caller = session.row("tool_use", call_id=call_id, tool=tool.encode(), call=call)
    details = session.fill("result_details", detail=detail, caller=caller)
    session.row("tool_result", details, call_id=call_id, content=content)


def tool_result(session: Session) -> None:
    """Write a call of one of the usual tools."""
    tool, shape = session.choice(TOOLS)
    size = session.quantile(RESULT_BYTES)
    path = session.fill("module") if tool == "Edit" else b""
    out = session.cut(2 * size) if tool == "Edit" else session.cut(size, 2)
    tool_round(session, tool, shape, path=path, out=out, count=out.count(b"\\n") + 1)


def tool_result_big(session: Session) -> None:
    """Write a command that printed up to a megabyte."""
    out = session.cut(session.quantile(BIG_RESULT_BYTES), 2)
    tool_round(session, "Bash", "Bash", out=out)


def image(session: Session, line_bytes: int) -> None:
    """Write a picture that was looked at, in a line of about this size."""
    before = session.size
    out = base64.b64encode(session.noise(line_bytes // 8 * 3))
    tool_round(session, "Read", "image", out=out, count=len(out) // 4 * 3)
    session.room += session.size - before  # it would swallow whole segments


# ---- boundaries, and decoys: rows that name one, contain one or look like one


def compaction(session: Session) -> None:
    """Write a boundary and the summary after it."""
    above, new, summary = session.parent.strip(b'"'), session.uuid(), session.uuid()
    trigger = b"auto" if session.between(0, 10) else b"manual"
    tokens, when, kept = session.between(150_000, 168_000), session.time(), b""
    every = session.options.preserved_every
    if every and not (len(session.boundaries) + 1) % every:
        rows = b",".join(b'"%b"' % uuid for uuid in session.chain)
        ends = {"head": session.chain[0], "last": session.chain[-1]}
        kept = session.fill("kept", anchor=summary, all=rows, **ends)
    start = session.size
    facts = {"above": above, "new": new, "trigger": trigger, "when": when, "kept": kept}
    session.write("compact_boundary", tokens=tokens, **facts)
    session.boundaries.append(start)
    session.slug = b',"slug":"drifting-copper-lantern"'
    session.parent = b'"%b"' % new
    session.chain.clear()
    session.row("compact_summary", new=summary)


def foreign_boundary(session: Session) -> bytes:
    """Return a complete boundary row of some other session."""
    above, new, other = (session.uuid() for _ in range(3))
    facts = {"above": above, "when": session.time(), "trigger": b"auto", "tokens": b"155000"}
    return session.fill("compact_boundary", new=new, session=other, kept=b"", **facts)


def decoy_escaped(session: Session) -> None:
    """Write a command that printed another session: a boundary inside of a string."""
    quoted = foreign_boundary(session).replace(b'"', b'\\"')
    out = session.fill("decoy_escaped_out", quoted=quoted)
    tool_round(session, "Bash", "decoy_escaped", out=out)


def decoy_nested(session: Session) -> None:
    """Write a tool that gave rows back as objects: a boundary, unescaped, deeper in the line."""
    given = {"out": session.text(64, 400, 8), "entry": foreign_boundary(session)}
    tool_round(session, "mcp__tide__sessions", "decoy_nested", **given)


# ---- what is written when

WritesRow = Callable[[Session], object]
ROW_LOTTERY: tuple[WritesRow, ...] = (
    *[user] * 50,
    *[lambda session: session.row("said")] * 100,
    *[thinking] * 120,
    *[tool_result] * 577,
    *[tool_result_big] * 3,
    *[lambda session: session.write("progress")] * 70,
    *[lambda session: session.row("attachment", path=session.fill("module"))] * 10,
    *[file_history_snapshot] * 20,
    *[lambda session: session.row("turn_duration", b',"isMeta":false')] * 25,
    *[queue_operation] * 15,
    *[lambda session: session.write(session.choice(FACTS))] * 10,
)
"""How often each kind of row is written among a thousand."""
DECOYS: tuple[tuple[int, WritesRow], ...] = (
    (60, decoy_escaped),
    (12, decoy_nested),
    (8, lambda session: session.row("microcompact_boundary")),
)
"""What a session of the reference size has so many of."""


def opening(session: Session) -> None:
    """Write the first lines of the file; the custom title stands nowhere else."""
    session.write("summary")
    user(session)
    session.write("custom_title")


def schedule(options: Options) -> tuple[list[int], deque[tuple[int, WritesRow]]]:
    """Return where segments end, and what is due where without being left to the lottery."""
    dice, size = Dice(options.seed, "schedule"), options.size
    count = max(1, size // BYTES_PER_IMAGE) if size >= SMALLEST_WITH_IMAGE else 0
    if options.images is not None:
        count = options.images
    limit = size // max(16, 2 * count)
    images = [min(dice.between(*IMAGE_LINE_BYTES), limit) for _ in range(count)]
    ends = segment_ends(dice, options, size - sum(images))
    span = ends[-1] if options.tail is None else ends[-2]
    due: list[WritesRow] = [partial(image, line_bytes=line_bytes) for line_bytes in images]
    least = 1 if size >= SMALLEST_WITH_DECOYS else 0
    for of_reference, write in DECOYS:
        due += [write] * max(least, of_reference * size // REFERENCE_SIZE)
    events = [(dice.between(span // 100, span * 98 // 100 + 1), write) for write in due]
    return ends, deque(sorted(events, key=lambda event: event[0]))


def segment_ends(dice: Dice, options: Options, total: int) -> list[int]:
    """Cut the total into segments of unequal size, the last one as asked for."""
    weights = [dice.quantile(SEGMENT_WEIGHTS) for _ in range(options.boundaries + 1)]
    shared, last = total, list[int]()
    if options.tail is not None:
        shared, last = max(total - options.tail - BOUNDARY_BYTES, 0), [total]
        weights.pop()
    sums = list(itertools.accumulate(weights))
    return [shared * part // sums[-1] for part in sums] + last


def generate(target: BinaryIO, options: Options) -> Truth:
    """Write a session to the target and return what is in it."""
    session = Session(target, options)
    ends, events = schedule(options)
    for number, (begin, end) in enumerate(itertools.pairwise((0, *ends))):
        session.room += end - begin
        (compaction if number else opening)(session)
        while session.room > 0:
            if events and events[0][0] <= end - session.room:
                events.popleft()[1](session)
            else:
                session.choice(ROW_LOTTERY)(session)
    for _, write in events:
        write(session)
    return session.truth()


if __name__ == "__main__":
    command(Options, generate)
