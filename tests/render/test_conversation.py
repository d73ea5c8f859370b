"""What people read: every word of it, in order, and nothing that a terminal would obey."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sessrotate import safe_text
from sessrotate.clients.claude import view
from sessrotate.clients.view import Image, Text, ToolResult, Unknown
from sessrotate.model import Boundary
from sessrotate.parsing import records
from sessrotate.reading import Compaction, ToolUse, UnreadableLine, Utterance, paired, select
from sessrotate.reading.select import Choice
from sessrotate.render import conversation, html_text, phrases
from sessrotate.render.conversation import Style
from support.command_line import boundary, raw_controls, row, without_ansi
from support.examples import examples
from support.talks import answer, call, prompt, result, summary, talk, thinking

ALL = Choice(include=select.EVERYTHING)


def items(data: bytes, choice: Choice = Choice()) -> Any:  # noqa: B008 - frozen
    return select.chosen(records([data], 1), view.view, choice, lambda _record: None)


def text(data: bytes, choice: Choice = Choice(), **style: Any) -> str:  # noqa: B008 - frozen
    known = {1: Boundary(0, "u", "2026-03-01T10:00:15Z", "auto", 9)}
    return "\n".join(conversation.conversation(paired(items(data, choice)), known, Style(**style)))


# ── parts ────────────────────────────────────────────────────────────────────────────────────

BLOCKS = st.sampled_from(["text", "call", "result", "agent", "prompt", "torn", "boundary"])


@given(kinds=st.lists(st.tuples(BLOCKS, st.integers(0, 3)), max_size=16))
def test_every_block_comes_out_once_and_a_result_with_its_call(
    kinds: list[tuple[str, int]],
) -> None:
    made: dict[str, Callable[[int, int], bytes]] = {
        "text": lambda n, _i: answer(n, f"text {n}"),
        "agent": lambda n, _i: answer(n, f"text {n}", isSidechain=True),
        "prompt": lambda n, _i: prompt(n, f"text {n}"),
        "call": lambda n, i: answer(n, call(f"call {n}", f"t{i}")),
        "result": lambda n, i: result(n, f"t{i}", f"gave {n}"),
        "torn": lambda n, _i: b"torn %d\n" % n,
        "boundary": lambda n, _i: boundary(n),
    }
    data = b"".join(made[kind](n, i) for n, (kind, i) in enumerate(kinds))
    texts, calls, results, marks = [], [], [], []
    for part in paired(items(data, ALL)):
        match part:
            case Utterance():
                texts.append(part.block)
            case ToolUse():
                assert part.call or part.result
                if part.call:
                    calls.append(part.call.name)
                if part.result:
                    results.append(part.result)
                if part.call and part.result:
                    assert part.call.id == part.result.id
            case Compaction() | UnreadableLine():
                marks.append(part)
    count = {kind: sum(each == kind for each, _ in kinds) for kind in made}
    assert len(texts) == count["text"] + count["agent"] + count["prompt"]
    assert sorted(calls) == sorted(f"call {n}" for n, (k, _) in enumerate(kinds) if k == "call")
    assert len(results) == count["result"]
    assert len(marks) == count["torn"] + count["boundary"]


def test_a_result_finds_its_call_across_an_agents_talk() -> None:
    data = (
        answer(1, call("Task", "t1"))
        + answer(2, "of the agent", isSidechain=True)
        + result(3, "t1", "done")
    )
    assert "• Task → 1 line" in text(data, ALL)


def test_a_call_without_a_result_stays_where_it_was_made() -> None:
    data = answer(1, call("Read", "t1")) + answer(2, "and then") + result(3, "t1", "late")
    assert text(data).split("\n\n") == [
        "Assistant · model-of-a-test · 2026-03-01 10:00:01\n  • Read",
        "and then",
        "  • → 1 line",
    ]


# ── text ─────────────────────────────────────────────────────────────────────────────────────


def test_a_talk_reads_like_one() -> None:
    shown = text(talk(), Choice(include=frozenset({"tools", "thinking"})), whole_tools=True)
    assert shown.split("\n\n")[1:4] == [
        "Assistant · model-of-a-test · 2026-03-01 10:00:02\n(thinking)\na hidden thought",
        "I will look.",
        """\
  • Read
    file_path: /srv/a.txt
  →
    one
    two
  • Bash
    command:
      make
      test
    description: run
  → error
    it broke""",
    ]


def test_one_line_each_fits_the_width() -> None:
    long = "w" * 500
    data = (
        answer(1, call("Read" * 30, "1", file_path=long))
        + result(2, "1", long, is_error=True)
        + result(3, "of nobody", long, is_error=True)
        + b"torn " * 100
        + b"\n"
        + boundary(4)
    )
    for width in (40, 80, 100):
        lines = text(data, width=width).splitlines()
        cut = [line for line in lines if line[:1] in {" ", "✗", "─"}]
        assert len(cut) == 5
        assert max(map(len, cut)) <= width
        assert sum("•" in line for line in lines) == 2


WORDS = st.lists(st.text("ab", min_size=1, max_size=12), max_size=30)


@given(words=WORDS, kind=st.sampled_from([prompt, answer]))
def test_what_is_wrapped_has_the_same_words(words: list[str], kind: Any) -> None:
    data = kind(1, " ".join(["begin", *words]))
    wrapped = text(data, width=40, wraps=True).splitlines()[1:]
    whole = text(data, width=40).splitlines()[1:]
    assert len(whole) == 1
    assert " ".join(line.removeprefix("> ") for line in wrapped) == whole[0].removeprefix("> ")
    assert max(map(len, wrapped)) <= 40
    for line, after in itertools.pairwise(wrapped):  # no line could take another word
        assert len(line) + 1 + len(after.removeprefix("> ").split(" ")[0]) > 40


def test_a_word_that_fits_nowhere_stays_whole() -> None:
    assert "x" * 300 in text(answer(1, "a b " + "x" * 300), width=40, wraps=True)


def test_colours_are_added_and_nothing_else() -> None:
    data = talk() + b"torn\n"
    for include in (frozenset(), select.EVERYTHING):
        choice = Choice(include=include)
        for whole in (False, True):
            plain = text(data, choice, whole_tools=whole)
            coloured = text(data, choice, whole_tools=whole, colour=True)
            assert without_ansi(coloured) == plain
            assert coloured != plain


ODD = st.text(
    alphabet=st.sampled_from("aß \t\n\r\x00\x07\x1b[31m]0;\x7f\x85\x9b\u2028\u202e\u200f…")
)


@examples(200)
@given(odd=ODD, name=ODD)
def test_no_control_character_of_a_session_comes_out(odd: str, name: str) -> None:
    data = b"".join(
        [
            prompt(1, odd),
            answer(2, thinking(odd), odd, call(name, "1", **{name: odd, "other": [odd]})),
            result(3, "1", odd, is_error=bool(odd)),
            prompt(4, odd, isMeta=True),
            prompt(5, odd, isSidechain=True, agentId=name),
            row(6, type="attachment", message=None, attachment={"type": name, "c": odd}),
            row(7, type="assistant", timestamp=odd, message={"content": odd, "model": odd}),
            summary(8, odd),
            odd.replace("\n", "").encode() + b"\n",
        ]
    )
    unsafe = {*"\u2028\u202e\u200f"}
    for whole in (False, True):
        shown = text(data, ALL, whole_tools=whole)
        assert raw_controls(shown) <= {"\t"}
        assert not unsafe & set(shown)
    grep = re.compile(".")
    found = "\n".join(conversation.hits(items(data, Choice(grep=grep)), grep, Style()))
    assert raw_controls(found) <= {"\t"}
    assert not unsafe & set(found)


@given(said=st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])))
def test_what_is_printable_is_not_changed(said: str) -> None:
    assert safe_text.lines(said) == [said]
    assert text(answer(1, said + "x")).endswith(f"\n{said}x")


@given(said=ODD, width=st.integers(1, 30))
def test_what_is_clipped_is_a_line_of_that_width(said: str, width: int) -> None:
    clipped = safe_text.clipped(said, width)
    assert len(clipped) <= width
    assert "\n" not in clipped
    if not clipped.endswith("…"):
        assert clipped == safe_text.line(said)


def test_white_space_does_not_hide_what_comes_after() -> None:
    assert safe_text.clipped(" " * 1000 + "x", 10) in {"x", "…"}


# anthropics/claude-code #76059: a crash padded a file with 150 KB of them.
def test_nuls_that_pad_a_file_are_counted_not_shown() -> None:
    assert safe_text.lines("a" + "\0" * 153_600) == ["a␀… (153,600 bytes)"]
    assert safe_text.line("\0" * 16 + "b") == "␀… (16 bytes)b"
    assert safe_text.line("\0" * 15) == "␀" * 15
    assert html_text.escape("<" + "\0" * 16 + "\x1b[31m\0") == "&lt;␀… (16 bytes)␀"


def test_lines_end_as_they_do_in_files() -> None:
    assert safe_text.lines("a\r\nb\n") == ["a", "b"]
    assert safe_text.lines("a\n\n") == ["a", ""]
    assert safe_text.lines("") == [""]
    assert safe_text.lines("\x1b[1;31mred\x1b[0m \x07") == ["red ␇"]


# ── hits ─────────────────────────────────────────────────────────────────────────────────────


def test_a_hit_shows_its_lines_around_what_matches() -> None:
    data = prompt(1, f"no\nfirst needle and needle\n{'x' * 300}needle{'y' * 300}\n needle.")
    grep = re.compile("needle")
    found = list(conversation.hits(items(data, Choice(grep=grep)), grep, Style(60, colour=True)))
    assert without_ansi(found[0]) == "segment 1, offset 0 · You · 2026-03-01 10:00:01"
    assert len(found) == 4
    for line in found[1:]:
        assert "\x1b[1;31mneedle\x1b[0m" in line
        assert len(without_ansi(line)) <= 60
    assert without_ansi(found[2]).strip().startswith("…x")
    assert without_ansi(found[2]).endswith("y…")


def test_what_a_tool_gave_is_told_by_lines_pictures_and_other_blocks() -> None:
    given = (Text("a\nb"), Image("image/png", "", ""), Unknown("map", {}), Unknown("", 1))
    assert phrases.outcome(ToolResult("", given, is_error=False)) == "2 lines, 1 picture, 2 blocks"
    assert phrases.outcome(ToolResult("", given[2:3], is_error=False)) == "1 block"
    assert phrases.outcome(ToolResult("", (), is_error=False)) == "0 lines"


# anthropics/claude-code #63790: a prompt stands between the call and the answer of an adviser.
def test_a_result_whose_call_is_out_of_sight_has_its_tools_own_name() -> None:
    result = {"type": "advisor_tool_result", "tool_use_id": "i", "content": "a"}
    assert "  • advisor → 1 line" in text(answer(1, result))
