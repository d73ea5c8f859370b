"""`search` finds what somebody finds who parses every row with `json` and reads its guide.

The rows are those of three clients, and so are the rules: the words are all in one record, in what
people see of it; said by whom, when and where is asked for.
"""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from support import codex_sessions, gemini_sessions, homes
from support.codex_sessions import Rows
from support.command_line import ID, boundary, piped, write
from support.examples import examples
from support.talks import answer, call, prompt, result, thinking

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ROLLOUT = f"rollout-2026-03-01T12-00-00-{codex_sessions.ID}.jsonl"
CHAT = f"session-2026-03-01T12-00-{gemini_sessions.UUID[:8]}.jsonl"
NAMES = {"claude": ID, "codex": codex_sessions.ID, "gemini": gemini_sessions.UUID}

# ── what is said ─────────────────────────────────────────────────────────────────────────────

PIECES = ["kiln", "Kiln", "glaze", " ", " ", "\n", "café", "cafe\u0301", "a/b", 'say "x"', "x.y",
          "\u212a", "größe", "no", "\u2028", "\t"]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join)
KINDS = ["prompt", "answer", "thought", "call", "result"]
ROWS = st.tuples(st.sampled_from([*KINDS, "boundary"]), TEXTS)
SESSIONS = st.lists(ROWS, min_size=2, max_size=7)
OFTEN = st.sampled_from(["kiln", "k.ln", "glaze", "no", "café", "\\w"])
WORDS = OFTEN | st.sampled_from(
    ["kiln", "KILN", "glaze", "café", "cafe\u0301", "caf.", "cafe", "a/b", 'say "x"', "^kiln$",
     "kiln|glaze", "k.ln", "x.y", "größe", "GRÖSSE", "\\bno\\b", "Bash", "n\\s+glaze", "e\\b",
     "no", "(?s)kiln.*café", "ln", "la"]
)  # fmt: skip


def time_of(number: int) -> str:
    return f"2026-03-01T10:{number // 60:02d}:{number % 60:02d}.000Z"


def in_claude(rows: list[tuple[str, str]]) -> bytes:
    made = [prompt(0, "begin")]
    for number, (kind, text) in enumerate(rows, 1):
        match kind:
            case "prompt":
                made.append(prompt(number, text or "-"))
            case "answer":
                made.append(answer(number, text))
            case "thought":
                made.append(answer(number, thinking(text), "kiln" if "no" in text else "done"))
            case "call":
                made.append(answer(number, call("Bash", f"t{number}", command=text, limit=7)))
            case "result":
                made.append(result(number, "t1", [{"type": "text", "text": text}]))
            case _:
                made.append(boundary(number))
    return b"".join(made)


def in_codex(rows: list[tuple[str, str]]) -> bytes:
    made = Rows()
    made.add("session_meta", id=codex_sessions.ID, cwd="/srv/demo")
    for number, (kind, text) in enumerate(rows, 1):
        match kind:
            case "prompt" | "answer":
                role = "user" if kind == "prompt" else "assistant"
                made.item(**codex_sessions.message(role, text))
            case "thought":
                made.item(type="reasoning", summary=[{"type": "summary_text", "text": text}])
            case "call":
                told = json.dumps({"command": text, "limit": 7}, ensure_ascii=number % 2 == 0)
                made.item(type="function_call", name="Bash", call_id="1", arguments=told)
            case "result":
                made.item(type="function_call_output", call_id="1", output=text)
    return b"".join(line + b"\n" for line in made.lines)


def in_gemini(rows: list[tuple[str, str]]) -> bytes:
    begun = {**gemini_sessions.message("m0", content=[{"text": "begin"}]), "timestamp": time_of(0)}
    made: list[dict[str, Any]] = [gemini_sessions.metadata(), begun]
    for number, (kind, text) in enumerate(rows, 1):
        content: Any = [{"text": text}]
        more: dict[str, Any] = {}
        if kind == "thought":
            more["thoughts"] = [{"subject": "", "description": text}]
            content = "done"
        if kind in {"call", "result"}:
            used: dict[str, Any] = {"id": "1", "name": "Bash", "status": "success"}
            used["args"] = {"command": text if kind == "call" else "ls"}
            used["result"] = [] if kind == "call" else [{"text": text}]
            more["toolCalls"] = [used]
            content = ""
        who = "user" if kind == "prompt" else "gemini"
        row = gemini_sessions.message(f"m{number}", who, content, **more)
        if kind != "boundary":
            made.append({**row, "timestamp": time_of(number)})
    return gemini_sessions.file(*made)


# ── who parses every row ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Said:
    """A record: when, and each text with who says it."""

    client: str
    time: str
    texts: tuple[tuple[str, str], ...]


def strings(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [each for member in value.values() for each in strings(member)]
        case list():
            return [each for member in value for each in strings(member)]
    return []


def block_of(block: dict[str, Any], who: str) -> list[tuple[str, str]]:
    match block:
        case {"type": "tool_use"}:
            return [("tools", block["name"]), *(("tools", s) for s in strings(block["input"]))]
        case {"type": "tool_result"}:
            return [("tools", each["text"]) for each in block["content"]]
    return [(who, block["thinking"] if block["type"] == "thinking" else block["text"])]


def read_claude(data: bytes) -> list[Said]:
    found = []
    for line in data.split(b"\n")[:-1]:
        row = json.loads(line)
        said = (row.get("message") or {}).get("content", [])
        who = "you" if row["type"] == "user" else "agent"
        texts = [(who, said)] if isinstance(said, str) else []
        texts += [
            each for block in said if isinstance(block, dict) for each in block_of(block, who)
        ]
        found.append(Said("claude", row["timestamp"], tuple(texts)))
    return found


def read_codex(data: bytes) -> list[Said]:
    found = []
    for line in data.split(b"\n")[:-1]:
        row = json.loads(line)
        item = row["payload"]
        texts: list[tuple[str, str]] = []
        match item.get("type"):
            case "message":
                who = "you" if item["role"] == "user" else "agent"
                texts = [(who, each["text"]) for each in item["content"]]
            case "reasoning":
                texts = [("agent", each["text"]) for each in item["summary"]]
            case "function_call":
                given = strings(json.loads(item["arguments"]))
                texts = [("tools", "Bash"), *(("tools", each) for each in given)]
            case "function_call_output":
                texts = [("tools", item["output"])]
        found.append(Said("codex", row["timestamp"], tuple(texts)))
    return found


def read_gemini(data: bytes) -> list[Said]:
    found = []
    for line in data.split(b"\n")[1:-1]:
        row = json.loads(line)
        who = "you" if row["type"] == "user" else "agent"
        texts = [(who, each["description"]) for each in row.get("thoughts", [])]
        content = row["content"]
        texts += [(who, each) for each in strings(content) if content]
        for used in row.get("toolCalls", []):
            texts += [("tools", "Bash"), *(("tools", each) for each in strings(used["args"]))]
            texts += [("tools", each["text"]) for each in used["result"]]
        found.append(Said("gemini", row["timestamp"], tuple(texts)))
    return found


# ── who applies the rules ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Asked:
    """What is typed behind `search`."""

    words: list[str]
    is_fixed: bool = False
    is_caseless: bool = False
    who: str = ""
    client: str = ""
    session: str = ""
    since: int = 0
    until: int = 0

    @property
    def arguments(self) -> list[str]:
        given = {"--who": self.who, "--client": self.client,
                 "--session": NAMES.get(self.session, "")[:9],
                 "--since": time_of(self.since) if self.since else "",
                 "--until": time_of(self.until) if self.until else ""}  # fmt: skip
        options = [word for name, value in given.items() if value for word in (name, value)]
        flags = ["-F"] * self.is_fixed + ["-i"] * self.is_caseless
        return [*options, *flags, "--", *self.words]

    def lines(self, said: Said) -> list[str]:
        """Return the lines of a record that are shown; none if it is not found."""
        seconds = int(said.time[14:16]) * 60 + int(said.time[17:19])
        here = said.client if self.client in {"", said.client} else ""
        if here != (self.session or here) or not here or (self.since and seconds < self.since):
            return []
        if (said.time[11:13] != "10" and self.until) or (self.until and seconds > self.until):
            return []
        is_composed = any(not word.isascii() for word in self.words)

        def told(text: str) -> str:
            return unicodedata.normalize("NFC", text) if is_composed else text

        flags = re.MULTILINE | (re.IGNORECASE if self.is_caseless else re.NOFLAG)
        words = [
            re.compile(re.escape(w) if self.is_fixed else w, flags) for w in map(told, self.words)
        ]
        texts = [told(text) for who, text in said.texts if self.who in {"", who}]
        if not all(any(word.search(text) for text in texts) for word in words):
            return []
        lines = [each for text in texts for each in _matching(text, words)]
        with_all = [line for line, number in lines if number == len(words)]
        return with_all or [line for line, _ in lines]


def _matching(text: str, words: list[re.Pattern[str]]) -> list[tuple[str, int]]:
    """Return the lines in which a match begins, and of how many words."""
    starts = [{match.start() for match in word.finditer(text)} for word in words]
    found, at = [], 0
    for line in text.split("\n"):
        here = range(at, at + len(line) + 1)
        if number := sum(any(start in here for start in each) for each in starts):
            found.append((line, number))
        at += len(line) + 1
    return found


def seldom(*values: Any) -> st.SearchStrategy[Any]:
    """Draw one of these values now and then, and otherwise what is false."""
    return st.integers(0, 3).flatmap(
        lambda n: st.sampled_from(values) if n == 0 else st.just(type(values[0])())
    )


ASKED = st.builds(
    Asked,
    words=st.lists(WORDS, min_size=1, max_size=3),
    is_fixed=seldom(True),
    is_caseless=st.booleans(),
    who=seldom("you", "agent", "tools"),
    client=seldom("claude", "codex", "gemini"),
    session=seldom("claude", "codex", "gemini"),
    since=seldom(2, 4),
    until=seldom(3, 6),
)


@examples(50)
@given(sessions=st.tuples(SESSIONS, SESSIONS, SESSIONS), asked=ASKED, most=st.integers(1, 4))
def test_it_finds_what_one_finds_who_parses_every_row(
    tmp_path_factory: pytest.TempPathFactory,
    sessions: tuple[list[tuple[str, str]], ...],
    asked: Asked,
    most: int,
) -> None:
    folder = tmp_path_factory.mktemp("home")
    claude, codex, gemini = in_claude(sessions[0]), in_codex(sessions[1]), in_gemini(sessions[2])
    codex = codex.replace(b"2026-11-21T12", b"2026-03-01T10")
    env = _home(folder, claude, codex, gemini)
    every = [*read_claude(claude), *read_codex(codex), *read_gemini(gemini)]
    expected = {(each.client, each.time): lines for each in every if (lines := asked.lines(each))}
    ended = piped("search", "--json", *asked.arguments, env=env)
    assert (ended.code, ended.err if expected else "") == (0 if expected else 1, "")
    hits = [json.loads(line) for line in ended.out.splitlines()]
    assert {(hit["client"], hit["time"]): hit["text"].split("\n") for hit in hits} == expected
    assert len(hits) == len(expected)
    _is_at_a_match(hits, every, asked)
    counts: dict[str, int] = {}
    for hit in hits:
        counts[hit["client"]] = counts.get(hit["client"], 0) + 1
    for option, more in (("-l", {}), ("-c", {"hits": 0})):
        ended = piped("search", "--json", option, *asked.arguments, env=env)
        told = [json.loads(line) for line in ended.out.splitlines()]
        assert [each["client"] for each in told] == list(counts), "the newest first"
        if more:
            assert [each["hits"] for each in told] == list(counts.values())
    ended = piped("search", "--json", "-m", str(most), *asked.arguments, env=env)
    assert [json.loads(line) for line in ended.out.splitlines()] == hits[:most]
    shutil.rmtree(folder)


def _home(folder: Path, claude: bytes, codex: bytes, gemini: bytes) -> dict[str, str]:
    write(folder / ".claude" / "projects" / homes.PROJECT / f"{ID}.jsonl", claude)
    write(folder / "codex" / "sessions" / "2026" / "03" / "01" / ROLLOUT, codex)
    write(folder / "gemini" / ".gemini" / "tmp" / ("0" * 64) / "chats" / CHAT, gemini)
    return {
        "HOME": str(folder),
        "CLAUDE_CONFIG_DIR": str(folder / ".claude"),
        "CODEX_HOME": str(folder / "codex"),
        "GEMINI_CLI_HOME": str(folder / "gemini"),
    }


def _is_at_a_match(hits: list[dict[str, Any]], every: list[Said], asked: Asked) -> None:
    """Check that each hit's character begins a line's match, counted in what the record says."""
    for hit in hits:
        (said,) = (s for s in every if (s.client, s.time) == (hit["client"], hit["time"]))
        whole = "\n".join(text for _, text in said.texts)
        begin = whole.rfind("\n", 0, hit["character"]) + 1
        line = unicodedata.normalize("NFC", whole[begin:].split("\n")[0])
        first = unicodedata.normalize("NFC", asked.lines(said)[0])
        assert line == first, hit
