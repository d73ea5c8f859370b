"""Sessions to show: one as people have them, and one that wants to break out of the page.

Rule: rows have the shape that Claude Code 2.1.x writes; only what they say is made up.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from itertools import count
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MODEL: Final = "claude-opus-5-5"


def png(width: int, height: int) -> str:
    """Return a picture of slanted stripes, as base64."""
    rows = b"".join(
        b"\0"
        + b"".join(b"\x2f\x6f\x8f" if (x + y) // 12 % 2 else b"\xe5\xd9\xc3" for x in range(width))
        for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()


class Script:
    """Writes rows, each following the one before, seven seconds later."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self._numbers = count(1)
        self._parent: str | None = None

    def raw(self, line: bytes) -> None:
        """Write a line that is no row."""
        self.lines.append(line)

    def row(self, kind: str, **more: Any) -> None:
        """Write a row."""
        number = next(self._numbers)
        uuid = f"{number:08x}-0000-4000-a000-000000000000"
        minute, second = divmod(number * 7, 60)
        row = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-03-0{1 + minute // 60}T{9 + minute // 60:02}:{minute % 60:02}"
            f":{second:02}.000Z",
            **more,
        }
        self._parent = uuid
        self.lines.append(json.dumps(row, ensure_ascii=True).encode())

    def metadata(self, kind: str, **more: Any) -> None:
        """Write what is no row of the conversation: clients begin it with its type."""
        self.lines.append(json.dumps({"type": kind, **more}, ensure_ascii=True).encode())

    def user(self, content: Any, **more: Any) -> None:
        """Write what a user says."""
        self.row("user", message={"role": "user", "content": content}, **more)

    def answer(self, *blocks: dict[str, Any], message: str = "", **more: Any) -> None:
        """Write an answer, one row for each block, as the client does."""
        name = message or f"msg_{len(self.lines)}"
        usage = {
            "input_tokens": 12,
            "cache_read_input_tokens": 31_204,
            "cache_creation_input_tokens": 1_480,
            "output_tokens": 386,
        }
        for block in blocks:
            said = {"role": "assistant", "id": name, "model": MODEL, "content": [block]}
            self.row("assistant", message=said | {"usage": usage}, **more)

    def result(self, call: str, content: Any, **more: Any) -> None:
        """Write what a tool gave."""
        self.user([{"type": "tool_result", "tool_use_id": call, "content": content, **more}])

    def compaction(self, trigger: Any, tokens: Any, **more: Any) -> None:
        """Write a boundary."""
        self.row(
            "system",
            subtype="compact_boundary",
            content="Conversation compacted",
            compactMetadata={"trigger": trigger, "preTokens": tokens},
            **more,
        )

    def bytes(self) -> bytes:
        """Return the session."""
        return b"".join(line + b"\n" for line in self.lines)


def text(said: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": said}


def thinking(thought: str) -> dict[str, Any]:
    """Return a block of thinking."""
    return {"type": "thinking", "thinking": thought, "signature": "c2lnbmF0dXJl"}


def call(name: str, identity: str, **arguments: Any) -> dict[str, Any]:
    """Return a tool call."""
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments}


def picture(media_type: str, data: str) -> dict[str, Any]:
    """Return a picture."""
    source = {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "image", "source": source}


def friendly() -> bytes:
    """Return a session about a ferry, with one of everything."""
    script = Script()
    script.raw(b'{"type":"summary","summary":"Sailings on the wrong day","leafUuid":"x"}')
    script.user("The timetable shows Sunday's sailings on Saturdays. Can you find out why?")
    script.row("attachment", attachment={"type": "environment", "snapshot": {"platform": "linux"}})
    script.answer(
        thinking("Weekday numbers, I suppose: some count from Monday, some from Sunday."),
        text("I'll look at where days are turned into columns."),
        call("Bash", "toolu_1", command="grep -rn weekday src/ferry", description="Find weekdays"),
        message="msg_a",
    )
    script.result(
        "toolu_1",
        "src/ferry/timetable.py:41:    column = day.isoweekday() - 1\n"
        "src/ferry/render.py:17:    \x1b[32mname = DAYS[day.weekday()]\x1b[0m\r\n"
        "tests/test_timetable.py:9:    assert column(SATURDAY) == 6",
    )
    script.answer(call("Read", "toolu_2", file_path="src/ferry/timetable.py"))
    script.result("toolu_2", [text("    41\t    column = day.isoweekday() - 1\n")])
    script.answer(call("Bash", "toolu_3", command="python -m pytest -q tests/test_timetable.py"))
    script.result("toolu_3", "Exit code 1\nE   assert 5 == 6\n1 failed in 0.04s", is_error=True)
    script.answer(
        text(
            "## The cause\n\nThe test is right and the code is not: columns begin with **Sunday**,"
            " but `isoweekday() - 1` counts from Monday.\n\n```python\n"
            "def column(day: date) -> int:\n"
            '    """Columns begin with Sunday: <td> 0."""\n'
            "    return day.isoweekday() % 7\n```\n\nThat makes Saturday 6 and Sunday 0."
        )
    )
    script.user(
        [text("Looks right. This is how the page is now:"), picture("image/png", png(320, 120))]
    )
    script.answer(text("The columns are where they belong."))
    script.compaction("auto", 166_446)
    script.user("The user asked why sailings are on the wrong day.", isCompactSummary=True)
    script.user("<local-command-caveat>nothing</local-command-caveat>", isMeta=True)
    script.user("Now let an agent check the other timetables too.")
    script.answer(call("Task", "toolu_4", description="Check timetables", prompt="Check all"))
    script.user("Check all timetables for the wrong day.", isSidechain=True, agentId="a1")
    script.answer(text("All four are right."), isSidechain=True, agentId="a1")
    script.result("toolu_4", [text("All four are right.")])
    script.answer(text("The others were right all along; only this one counted from Monday."))
    script.raw(b'{"type":"user","message":{"role":"us')
    script.user("Thanks! Same for the winter timetable?")
    script.answer(text("Winter has the same code, so it is right now too."))
    return script.bytes()


TAGS: Final = (
    "<script>window.__pwned=1;alert(1)</script>",
    "</script><script>window.__pwned=1</script>",
    "</style><script>window.__pwned=1</script>",
    "</title></head><body><script>window.__pwned=1</script>",
    "</textarea></template></noscript></select></svg></math><script>window.__pwned=1</script>",
    "<img src=x onerror=window.__pwned=1>",
    "<svg/onload=window.__pwned=1>",
    "<svg><script>window.__pwned=1</script></svg>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=window.__pwned=1>",
    "<iframe src='javascript:parent.__pwned=1'></iframe><iframe srcdoc='<script>1</script>'>",
    "<object data='data:text/html,<script>window.__pwned=1</script>'></object>",
    "<embed src='http://127.0.0.1:9/e'><link rel=stylesheet href='http://127.0.0.1:9/c'>",
    "<base href='http://127.0.0.1:9/'><meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<a href='javascript:window.__pwned=1' id=query>click</a>",
    "<form action='http://127.0.0.1:9/'><input name=x autofocus onfocus=window.__pwned=1></form>",
    "<details open ontoggle=window.__pwned=1><summary>x</summary></details>",
    "<video><source onerror=window.__pwned=1></video><audio src=http://127.0.0.1:9/a autoplay>",
    "<style>@import 'http://127.0.0.1:9/s';body{background:url(http://127.0.0.1:9/b)}</style>",
    "<template><script>window.__pwned=1</script></template>",
    "<article id=bar class=prompt>not ours</article>",
    '"><script>window.__pwned=1</script>',
    "'><script>window.__pwned=1</script>",
    '" onmouseover="window.__pwned=1" x="',
    "' onfocus='window.__pwned=1' autofocus x='",
    "x onclick=window.__pwned=1 ",
    "`onload=window.__pwned=1`",
    "<!-- <script>window.__pwned=1</script> --!> --> <!-->",
    "<![CDATA[ ]]> <script>window.__pwned=1</script> ]]>",
    "<?xml version='1.0'?><!DOCTYPE html><html><body onload=window.__pwned=1>",
    "<!ENTITY x SYSTEM 'file:///etc/passwd'>",
    "&lt;script&gt;window.__pwned=1&lt;/script&gt; &#60;script&#62; &#x3c;b&#x3e; &lt &amp;lt;",
    "&quot; onload=&quot;window.__pwned=1",
    "<scr\0ipt>window.__pwned=1</scr\0ipt> <\0script> \0<script>\0",
    "\ud800<script>\udfff window.__pwned=1 \udc00</script>",
    "\x1b]8;;javascript:window.__pwned=1\x07link\x1b]8;;\x07 \x1b[31m<b>\x1b[0m",
    "\x9b31m \u202e reversed <script>",
    "\x1b[<script>window.__pwned=1</script>\x1b[m \r<b>\r\n\x0b\x0c\x7f\u2028\u2029\ufeff\ufffe",
    "\uff1cscript\uff1e \u00abscript\u00bb %3Cscript%3E \\u003cscript\\u003e +ADw-script+AD4-",
    "[click](javascript:window.__pwned=1) ![x](http://127.0.0.1:9/i) <http://127.0.0.1:9/>",
    "```<script>\n<script>window.__pwned=1</script>\n```\n~~~html\n<b>\n```\n</pre></div>\n~~~",
    "`<script>window.__pwned=1</script>` **<img src=x onerror=window.__pwned=1>** `a **b` c**",
    "# <script>window.__pwned=1</script> `x`\n###### **<b>** `\n**`**`** ** ` **",
    "```\n</pre><script>window.__pwned=1</script>",
    "javascript:window.__pwned=1",
    "data:text/html,<script>window.__pwned=1</script>",
    "http://127.0.0.1:9/leak",
)
"""What would run, load or break a page that does not escape it; each names its trick."""


def hostile() -> bytes:
    """Return a session with each of the tricks in each of the places that a page shows."""
    script = Script()
    for number, trick in enumerate(TAGS):
        identity = f"call {number} {trick}"
        _said(script, trick, number)
        _called(script, trick, identity)
        _shown(script, trick)
        script.compaction(trick, 10**18 + number, uuid=trick, timestamp=trick)
        script.raw(f'{{"type":"user", {trick}'.encode("utf-8", "surrogatepass"))
        script.raw(trick.replace("\n", " ").encode("utf-8", "surrogatepass"))
    for line in _odd():
        script.raw(line)
    return script.bytes()


def _said(script: Script, trick: str, number: int) -> None:
    row = {"timestamp": trick, "uuid": f"{number} {trick}"}
    script.user(trick, **row, sessionId=trick)
    script.user([text(trick), text(trick)], uuid=f"{number} b {trick}")
    script.user(trick, isMeta=True)
    script.user(trick, isCompactSummary=True)
    script.user(trick, isSidechain=True, agentId=trick)
    said = {"role": "assistant", "id": trick, "model": trick, "content": [text(trick)]}
    script.row("assistant", message=said | {"usage": {"input_tokens": 10**30}})
    script.answer(thinking(trick), text(trick), message=trick)
    script.row("system", subtype=trick, content=trick)
    script.row(trick)
    script.metadata("custom-title", customTitle=trick, aiTitle=trick)


def _called(script: Script, trick: str, identity: str) -> None:
    script.answer(
        call(trick, identity, **{trick: trick, "command": trick, "deep": [{trick: trick}]})
    )
    script.result(identity, trick)
    script.result(identity, [text(trick), picture(trick, trick)], is_error=True)
    script.answer({"type": "tool_use", "id": trick, "name": trick, "input": trick})
    script.user([{"type": "tool_result", "tool_use_id": trick, "content": [{"type": trick}]}])


def _shown(script: Script, trick: str) -> None:
    for block in (
        picture(trick, "aGVsbG8="),
        picture("image/png", trick),
        picture("image/svg+xml", base64.b64encode(trick.encode("utf-8", "replace")).decode()),
        picture(f'image/png" onerror="{trick}', "aGVsbG8="),
        picture("image/png", f'aGVsbG8="{trick}'),
        picture("image/png", "aGVsbG8=\n"),
        {"type": "image", "source": {"type": "url", "media_type": "image/png", "url": trick}},
        {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1:9/i.png"}},
        {"type": "document", "source": {"media_type": "text/html", "data": trick}},
        {"type": trick, "value": {trick: trick}},
    ):
        script.user([block])
    script.row("attachment", attachment={"type": trick, trick: trick})
    script.row("attachment", rendered=[{"content": trick}])


def _odd() -> Iterator[bytes]:
    """Yield lines that are rows in form only."""
    yield b""
    yield b"null"
    yield b"[" * 100_000
    yield b'{"a":' * 100_000
    yield b"\xff\xfe\x00<script>window.__pwned=1</script>"
    yield b'{"type":"user","message":{"content":[[[["<script>"]]]]}}'
    yield b'{"type":["user"],"message":"<b>","uuid":5,"timestamp":{}}'
    yield b'{"type":"assistant","message":{"usage":{"input_tokens":1e999},"content":7}}'
    nested = b'{"type":"tool_result","content":[' * 60 + b'"<b>"' + b"]}" * 60
    yield b'{"type":"user","message":{"content":[' + nested + b"]}}"
