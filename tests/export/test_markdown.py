"""A session as Markdown: all of it, each record once, and nothing in it becomes markup.

The judge is a Markdown parser of others, in its strictest and in GitHub's dialect.
"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from sessrotate import open_session
from sessrotate.export import markdown
from sessrotate.export.markdown import fenced, inline, prose
from support.command_line import ID, boundary, row, write
from support.examples import examples
from support.talks import answer, call, prompt, result, summary, talk, thinking

DIALECTS = ("commonmark", "gfm-like")
OURS = {"details", "/details", "summary", "/summary"}


def exported(path: Path) -> str:
    with open_session(path) as session:
        return b"".join(markdown.pieces(session)).decode()


def parsed(document: str, dialect: str) -> list[Token]:
    options = {"html": True, "linkify": False}
    return MarkdownIt(dialect, options).parse(document)


def flat(tokens: list[Token]) -> list[Token]:
    return [each for token in tokens for each in (token, *flat(token.children or []))]


class Tags(HTMLParser):
    """Collects the tags and the text of HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def shown(document: str, dialect: str) -> Tags:
    """Return what a browser would make of a document: its tags and its text."""
    tags = Tags()
    tags.feed(MarkdownIt(dialect, {"html": True, "linkify": False}).render(document))
    return tags


SAFE = {"h1", "h2", "p", "strong", "pre", "code", "br", "hr", "details", "summary"}

HOSTILE = [
    "# a heading\n## another\nunder\n===\nline\n---",
    "```\ncode\n```\nafter\n````\nfour\n```\nstill four\n````\n```unclosed\n# x",
    "~~~ lang <b>\ncode\n~~~",
    "</details></summary><script>alert(1)</script><img src=x onerror=alert(1)>",
    "[a](javascript:alert(1)) ![b](http://x/y.png) <http://z> [c]: http://d\n[c]",
    "<!-- comment",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "* a\n- b\n+ c\n1. d\n2) e\n> quoted\n    indented\n\ttab",
    "&lt;b&gt; &amp; \\<b> \\\\<i> *x* _y_ ~~z~~ `q` ``r`` $m$ :smile: @who #1",
    "nul \x00 bell \x07 \x1b[31m lone \ud800 \x0c \x85 \u2028 \u202e end",
    "a\r# b\rc\r\n# d",
    "trailing backslash \\\nnext\\",
    "***\n___\n- - -",
    "<details>\n\n# x\n\n</details>",
    "https://example.org/a_b_c www.example.org me@example.org",
    "  \n \n\n",
    "- item",
    "7) seven",
    "Term\n: definition\n\n[^1]: note [^1]",
]


def hostile(text: str) -> bytes:
    """Return a session that says this everywhere; surrogates go as JSON escapes, as clients do."""
    mark = "MARK"
    rows = [
        prompt(1, mark),
        answer(2, thinking(mark), mark, call(mark, "1", **{mark: mark, "n": [1, mark]})),
        result(3, "1", [{"type": "text", "text": mark}]),
        answer(4, call("Bash", "2", command=mark)),
        result(5, "2", mark, is_error=True),
        prompt(6, mark, isSidechain=True, agentId=mark),
        answer(7, mark, isSidechain=True),
        boundary(8, compactMetadata={"trigger": mark, "preTokens": 1}),
        summary(9, mark),
        row(10, message={"role": "user", "content": [{"type": "odd", "x": mark}]}),
        row(11, type="assistant", timestamp=mark, message={"content": mark, "model": mark}),
        answer(12, {"type": "image", "source": {"media_type": mark, "url": mark}}),
    ]
    safe = json.dumps(text)[1:-1].encode()
    raw = b"no json " + text.replace("\n", " ").encode("utf-8", "replace") + b"\n"
    return b"".join(rows).replace(mark.encode(), safe) + raw + answer(13, "the end")


def check(document: str) -> None:
    document.encode()
    for dialect in DIALECTS:
        tokens = flat(parsed(document, dialect))
        for token in tokens:
            if token.type == "fence":
                assert re.fullmatch(r"[A-Za-z0-9+#_.-]{0,20}", token.info.strip())
            if token.type in {"html_block", "html_inline"}:
                assert set(re.findall(r"<(/?\w+)", token.content)) <= OURS, token.content
        found = shown(document, dialect)
        assert found.tags <= SAFE, found.tags - SAFE
        assert all(name == "class" for name, _ in found.attributes), found.attributes
        opened = [t for t in tokens if t.type == "html_block"]
        assert sum("<details>" in t.content for t in opened) == sum(
            "</details>" in t.content for t in opened
        )
        headings = [t.tag for t in tokens if t.type == "heading_open"]
        assert headings.count("h1") == 1
        assert "".join(found.text).rstrip().endswith("the end")


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_a_session_says_becomes_markup(text: str, tmp_path: Path) -> None:
    document = exported(write(tmp_path / f"{ID}.jsonl", hostile(text)))
    check(document)
    assert len(re.findall("^## ", document, re.MULTILINE)) >= 1


PIECES = st.lists(
    st.sampled_from(
        [
            *"ab #>-+=*_`~|<>[]()!\\&:;\n\t\r1.)",
            "\n\n",
            "```",
            "~~~",
            "    ",
            "</details>",
            "<b>",
            "://",
        ]
    ),
    max_size=14,
).map("".join)


@examples(300)
@given(text=PIECES)
def test_prose_keeps_its_words_and_gains_no_markup(text: str) -> None:
    for dialect in DIALECTS:
        found = shown(prose(text), dialect)
        assert found.tags <= {"p", "br", "pre", "code"}
        if "```" not in text and "~~~" not in text:
            words = re.sub(r"[\s\xa0␍]", "", "".join(found.text))
            assert words == re.sub(r"\s", "", text)


def test_code_in_prose_stays_code_to_its_end() -> None:
    shown_as = prose(
        "before\n```python\nif a:\n    # b\n```\nbetween\n~~~~ odd one\n```\n# open end"
    )
    tokens = [token for token in parsed(shown_as, "commonmark") if token.type == "fence"]
    assert [(token.info, token.content) for token in tokens] == [
        ("python", "if a:\n    # b\n"),
        ("", "```\n# open end\n"),
    ]


@examples(200)
@given(text=PIECES)
def test_a_fence_holds_whatever_is_in_it(text: str) -> None:
    for dialect in DIALECTS:
        tokens = parsed(fenced(text) + "\nafter\n", dialect)
        assert [token.type for token in tokens][:2] == ["fence", "paragraph_open"]
        expected = text.replace("\r\n", "\n").replace("\r", "␍").removesuffix("\n")
        assert tokens[0].content.removesuffix("\n") == expected


@given(text=PIECES.map(lambda text: " ".join(text.split())))
def test_a_heading_is_its_words(text: str) -> None:
    for dialect in DIALECTS:
        tokens = parsed(f"## 1. {inline(text)}\n", dialect)
        assert tokens[0].type == "heading_open"
        said = "".join(t.content for t in flat(tokens) if t.type in {"text", "text_special"})
        assert said == f"1. {text}".strip()


def test_a_talk_reads_like_one(tmp_path: Path) -> None:
    document = exported(write(tmp_path / f"{ID}.jsonl", talk()))
    assert document.startswith("# first prompt\n\nA session of 2 segments, 1 compaction.\n\n## 1.")
    assert re.findall("^## .*", document, re.MULTILINE) == [
        "## 1. first prompt",
        "## 2. second prompt",
        "## 3. /review all",
    ]
    assert (
        "---\n\n**Compaction 1 · 2026-03-01 10:00:15 · manual · 12,345 tokens before**" in document
    )
    assert "<summary>Read /srv/a.txt → 2 lines</summary>" in document
    assert "<summary>Summary of what came before</summary>" in document
    for word in ("a hidden thought", "of the agent", "it broke", "make\ntest"):
        assert word in document
    for word in ("caveat", "local-command", '"att"'):
        assert word not in document


def test_each_record_is_there_once(tmp_path: Path) -> None:
    again = prompt(1, "first prompt", slug="again") + answer(7, "first answer")
    path = write(tmp_path / f"{ID}.jsonl", talk() + again + b"torn\n" * 2)
    document = exported(path)
    assert document.count("## 1. first prompt") == 1
    assert document.count("first prompt") == 2  # it is the title too
    assert document.count("first answer") == 1
    assert document.count("that are not a record") == 1


def test_a_long_prompt_follows_its_heading(tmp_path: Path) -> None:
    long = "word " * 40
    document = exported(write(tmp_path / f"{ID}.jsonl", prompt(1, f"{long}\nsecond line")))
    assert f"```\n{long}\nsecond line\n```" in document
    heading = re.findall("^## .*", document, re.MULTILINE)[0]
    assert len(heading) < 90
    assert heading.endswith("…")


def test_it_comes_in_pieces_as_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / f"{ID}.jsonl", b"".join(prompt(n, f"p{n}") for n in range(5000)))
    with open_session(path) as session:
        pieces = markdown.pieces(session)
        first = [next(pieces) for _ in range(4)]
    assert b"## 1. p0" in b"".join(first)
    assert max(map(len, first)) < 200
