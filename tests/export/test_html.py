"""A session's page holds all of it, each record once, and nothing but the exporter's own tags."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessrotate.errors import DamagedError
from sessrotate.export import html_record
from sessrotate.parsing import LONGEST
from sessrotate.render import html_text
from support import command_line
from support.command_line import ID, write
from support.examples import examples
from support.export import sessions
from support.export.pages import Page, parsed, written
from support.homes import Home

DATA = command_line.session(boundaries=3)


def page_of(tmp_path: Path, data: bytes) -> Page:
    return parsed(written(write(tmp_path / f"{ID}.jsonl", data)))


def said(tmp_path: Path, *contents: object) -> Page:
    """Return the page of a session in which a user says these things."""
    script = sessions.Script()
    for content in contents:
        script.user(content)
    return page_of(tmp_path, script.bytes())


@pytest.fixture
def friendly(tmp_path: Path) -> Page:
    return page_of(tmp_path, sessions.friendly())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return written(write(tmp_path_factory.mktemp("hostile") / f"{ID}.jsonl", sessions.hostile()))


# ── what is in it ────────────────────────────────────────────────────────────────────────────


def anchors(data: bytes) -> list[str]:
    """Return the address of each line: its segment, and its offset in it."""
    found, segment, offset = [], 0, 0
    for line in data.splitlines(keepends=True):
        if b'"compact_boundary"' in line:
            segment, offset = segment + 1, 0
        found.append(f"{segment}-{offset}")
        offset += len(line)
    return found


def test_every_record_is_there_once_in_its_order_under_its_segment_and_offset(
    tmp_path: Path,
) -> None:
    data = sessions.friendly()
    lines = data.splitlines(keepends=True)
    repeated = b"".join((*lines, *lines[1:3]))
    page = page_of(tmp_path, repeated)
    assert [each.attributes["id"] for each in page.all("article")] == anchors(data)


def test_every_link_leads_to_an_element_of_the_page(friendly: Page) -> None:
    ids = [each.attributes["id"] for each in friendly.elements if "id" in each.attributes]
    assert len(set(ids)) == len(ids)
    links = {each.attributes["href"].removeprefix("#") for each in friendly.all("a")}
    assert links <= set(ids)
    assert len(links) > len(friendly.all("article"))


def test_a_browser_may_leave_out_forty_records_at_a_time(tmp_path: Path) -> None:
    page = said(tmp_path, *(f"prompt {number}" for number in range(100)))
    assert [each.text.count("prompt ") for each in page.all("section")] == [40, 40, 20]


def test_segments_are_listed_and_a_compaction_says_when_why_and_after_how_many_tokens(
    friendly: Page,
) -> None:
    listed = [each.text for each in friendly.all("li")]
    assert [text.split("2026")[0].strip() for text in listed] == ["Segment 0", "Segment 1"]
    (boundary,) = friendly.all("article", "boundary")
    for told in ("Compacted", "2026-03-01 09:01:38", "auto", "166,446 tokens before"):
        assert told in boundary.text


def test_an_answer_tells_its_model_its_time_and_its_tokens_once(friendly: Page) -> None:
    answers = friendly.all("article", "answer")
    first, second = answers[:2]
    assert "claude-opus-5-5" in first.text
    assert "2026-03-01 09:00:21" in first.text
    assert "32,696 tokens in, 386 out" in first.text
    assert "tokens in" not in second.text
    assert second.attributes["class"] == "answer more"


def test_tools_and_thinking_are_folded_and_a_result_names_its_call(friendly: Page) -> None:
    for kind in ("tool", "result", "thinking"):
        for fold in friendly.all("details", kind):
            assert "open" not in fold.attributes
    assert friendly.all("details", "thinking")[0].text.startswith("Thinking")
    first = friendly.all("details", "tool")[0]
    assert "grep -rn weekday src/ferry" in first.text
    assert "Find weekdays" in first.text
    result = friendly.all("details", "result")[0]
    assert result.text.startswith("Result Bash")
    hints = [each.attributes["data-hint"] for each in friendly.all("span") if each.attributes]
    assert "grep -rn weekday src/ferry" in hints
    assert "E assert 5 == 6" in next(hint for hint in hints if hint.startswith("Exit code 1"))
    link = next(each for each in friendly.all("a") if each.text == "Bash")
    call = friendly.one("article", link.attributes["href"].removeprefix("#"))
    assert "grep -rn weekday" in call.text
    assert friendly.all("details", "result error")[0].text.startswith("Error Bash")


def test_colours_for_a_terminal_are_left_out(friendly: Page) -> None:
    assert "\n    src" not in friendly.one("article", "0-0").text
    result = friendly.all("details", "result")[0].text
    assert "src/ferry/render.py:17:    name = DAYS[day.weekday()]\ntests/" in result


def test_code_headings_and_strong_words_of_an_answer_are_marked_up(friendly: Page) -> None:
    assert [each.text for each in friendly.all("h3")] == ["The cause"]
    assert [each.text for each in friendly.all("strong")] == ["Sunday"]
    assert [each.text for each in friendly.all("code")] == ["isoweekday() - 1"]
    code = [each.text for each in friendly.all("pre") if "def column" in each.text]
    assert code[0].endswith('begin with Sunday: <td> 0."""\n    return day.isoweekday() % 7')


def test_what_a_user_says_is_not_marked_up(tmp_path: Path) -> None:
    marked = "**a** `b`\n# c\n```\nd\n```"
    assert said(tmp_path, marked).all("div", "text")[0].text == marked


def test_an_agents_records_and_the_clients_own_are_no_prompts(friendly: Page) -> None:
    prompts = [each.text for each in friendly.all("article", "prompt")]
    assert len(prompts) == 4
    assert "Check all timetables" in friendly.all("article", "task side")[0].text
    assert "nothing" in friendly.all("article", "meta")[0].text
    assert "The user asked" in friendly.all("article", "summary")[0].text


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        ("<command-name>/review</command-name>\n<command-args>all of it</command-args>",
         "/review all of it"),
        ("<command-message>cost</command-message>\n<command-name>/cost</command-name>", "/cost"),
        ("<bash-input>ls -l</bash-input>", "!ls -l"),
        ("<command-name>/x</command-name> and this", "<command-name>/x</command-name> and this"),
    ],
)  # fmt: skip
def test_a_command_is_a_prompt_as_it_was_typed(tmp_path: Path, command: str, typed: str) -> None:
    (prompt,) = said(tmp_path, command).all("article", "prompt")
    assert prompt.text.endswith(f" 0-0{typed}")


def test_to_ask_for_a_compaction_is_no_prompt_and_shown_as_typed(tmp_path: Path) -> None:
    page = said(
        tmp_path,
        "<command-name>/compact</command-name>\n  <command-message>compact</command-message>\n"
        "  <command-args>keep the names</command-args>",
    )
    assert page.all("article", "prompt") == []
    (article,) = page.all("article", "typed")
    assert article.text.startswith("Command")
    assert article.text.endswith("/compact keep the names")


@pytest.mark.parametrize(
    "output",
    [
        "<local-command-stdout>Compacted</local-command-stdout>",
        "<bash-stdout>total 0</bash-stdout><bash-stderr></bash-stderr>",
        "<task-notification>done</task-notification>",
    ],
)
def test_the_output_of_a_command_is_no_prompt_and_is_folded(tmp_path: Path, output: str) -> None:
    page = said(tmp_path, output)
    assert page.all("article", "prompt") == []
    (article,) = page.all("article", "meta")
    assert "Said by the client" in article.text
    assert output in article.text
    assert "open" not in page.all("details", "raw")[0].attributes


def test_an_interruption_is_no_prompt_and_is_there_to_read(tmp_path: Path) -> None:
    interruption = sessions.text("[Request interrupted by user for tool use]")
    (article,) = said(tmp_path, [interruption]).all("article")
    assert article.attributes["class"] == "other"
    assert "[Request interrupted by user for tool use]" in article.text


def test_a_reminder_beside_a_result_of_a_tool_leaves_it_a_step(tmp_path: Path) -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a file"}
    reminder = sessions.text("<system-reminder>x</system-reminder>")
    (article,) = said(tmp_path, [result, reminder]).all("article")
    assert article.attributes["class"] == "step"


def test_a_line_that_is_no_row_is_marked_with_its_segment_and_offset(tmp_path: Path) -> None:
    data = sessions.friendly()
    page = page_of(tmp_path, data)
    (broken,) = page.all("article", "broken")
    line = b'{"type":"user","message":{"role":"us'
    where = anchors(data)[data.splitlines().index(line)]
    assert broken.attributes["id"] == where
    segment, offset = where.split("-")
    assert f"Segment {segment}, offset {offset}: 36 B, not a JSON object." in broken.text
    assert line.decode() in broken.text
    assert "26 records, 1 of them unreadable" in page.all("footer")[0].text


def test_a_line_that_is_too_long_to_be_held_is_marked(tmp_path: Path) -> None:
    (broken,) = said(tmp_path, "before", "x" * LONGEST, "after").all("article", "broken")
    assert "8.0 MiB, longer than 8.0 MiB." in broken.text
    assert len(broken.text) < 5000


def test_thinking_of_which_only_a_signature_was_kept_is_named(tmp_path: Path) -> None:
    script = sessions.Script()
    script.answer(sessions.thinking(""))
    assert "Thinking (its text was not kept)" in page_of(tmp_path, script.bytes()).all("p")[0].text


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
def test_a_picture_is_shown_from_the_page_itself(tmp_path: Path, kind: str) -> None:
    (image,) = said(tmp_path, [sessions.picture(f"image/{kind}", sessions.png(8, 8))]).all("img")
    head, data = image.attributes["src"].split(",")
    assert head == f"data:image/{kind};base64"
    assert base64.b64decode(data).startswith(b"\x89PNG")


def test_a_picture_in_a_result_is_shown_without_unfolding(tmp_path: Path) -> None:
    script = sessions.Script()
    script.answer(sessions.call("Read", "t", file_path="a.png"))
    script.result("t", [sessions.text("a picture"), sessions.picture("image/png", "aGVsbG8=")])
    (image,) = page_of(tmp_path, script.bytes()).all("img")
    assert "details" not in image.inside


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ({"media_type": "image/svg+xml", "data": "aGVsbG8="}, "image/svg+xml, 6 B: not shown"),
        ({"media_type": "application/pdf", "data": "aGVsbG8="}, "application/pdf, 6 B: not shown"),
        ({"media_type": "image/PNG", "data": "aGVsbG8="}, "image/PNG, 6 B: not shown"),
        ({"media_type": "image/png", "data": "aGVs bG8="}, "image/png, 6 B: damaged"),
        ({"media_type": "image/png", "data": "aGVsbG8=\n"}, "image/png, 6 B: damaged"),
        ({"media_type": "image/png", "data": ""}, "image/png, 0 B: damaged"),
        ({"media_type": "image/png", "url": "http://a/b.png"}, "image/png at http://a/b.png"),
        (
            {"media_type": "image/png", "data": "A" * (html_record.LARGEST_PICTURE + 4)},
            "image/png, 3.8 MiB: too large to be shown",
        ),
    ],
)
def test_what_is_no_sound_picture_is_named(
    tmp_path: Path, source: dict[str, str], told: str
) -> None:
    page = said(tmp_path, [{"type": "image", "source": source}])
    assert not page.all("img")
    assert page.all("p", "note")[0].text == told


def test_calls_that_wait_for_a_result_do_not_pile_up(tmp_path: Path) -> None:
    script = sessions.Script()
    script.answer(sessions.call("Slow", "slow"))
    for number in range(1_100):
        script.answer(sessions.call("Bash", f"t{number}"))
        script.result(f"t{number}", "done")
    script.result("slow", "waited while others were answered")
    for number in range(1_100):
        script.answer(sessions.call("Bash", f"u{number}"))
    script.result("u0", "too late to be told whose it is")
    script.result("u1099", "just in time")
    slow, first, last = page_of(tmp_path, script.bytes()).all("details", "result")[-3:]
    assert slow.text.startswith("Result Slow")
    assert re.match("Result +too late", first.text)
    assert re.match("Result Bash +just", last.text)


@pytest.mark.parametrize("depth", [50, 200, 400, 800])
def test_what_is_nested_deeply_does_not_end_the_page(tmp_path: Path, depth: int) -> None:
    deep = b'{"a":[' * depth + b'"<b>"' + b"]}" * depth
    block = b'{"type":"odd","value":' + deep + b"}"
    line = b'{"type":"user","message":{"content":[' + block + b"]}}\n"
    page = page_of(tmp_path, line + sessions.friendly())
    assert len(page.all("article")) == 1 + len(sessions.friendly().splitlines())
    first = page.all("article")[0].text
    assert "<b>" in first or "nested too deeply" in first or "Unreadable" in first


def test_counts_that_no_session_has_are_not_written_out(hostile: bytes) -> None:
    assert "very many tokens in" in parsed(hostile).all("article", "answer")[0].text


def test_an_agents_transcript_is_folded_behind_the_call_that_started_it(home: Home) -> None:
    home.live.write_bytes(sessions.friendly())
    folder = home.live.parent / ID / "subagents"
    folder.mkdir(parents=True)
    for name, prompt, call in (("abc", "Check all", "toolu_4"), ("def", "Something else", None)):
        script = sessions.Script()
        script.user(prompt, isSidechain=True, agentId=name, sessionId=ID)
        script.answer(sessions.text(f"said by {name}"), isSidechain=True, agentId=name)
        (folder / f"agent-{name}.jsonl").write_bytes(script.bytes())
        if call:
            (folder / f"agent-{name}.meta.json").write_text(json.dumps({"toolUseId": call}))
    page = parsed(written(home.live))
    first, second = page.all("details", "agent")
    assert "said by abc" in first.text
    assert "said by def" in second.text
    order = page.all("main")[0].text
    assert order.index("Check timetables") < order.index("said by abc")
    assert order.index("said by abc") < order.index("Check all timetables")
    assert order.index("Thanks!") < order.index("Agents") < order.index("said by def")
    assert len(page.all("article", "prompt")) == 4


# ── where it is read from ────────────────────────────────────────────────────────────────────


def test_the_page_is_the_same_wherever_the_session_is(tmp_path: Path, home: Home) -> None:
    whole = written(home.live)
    assert whole.count(b"<article") == len(home.live.read_bytes().splitlines())
    assert command_line.piped("split", home.live, "--out", tmp_path / "set", "--compress").code == 0
    home.rotate()
    assert written(home.live) == whole
    assert body(written(tmp_path / "set")) == body(whole)


def body(page: bytes) -> bytes:
    """Return the records of a page."""
    return page[page.index(b"<main>") :]


def test_a_segment_that_is_gone_has_its_place_where_gaps_are_allowed(home: Home) -> None:
    home.rotate()
    home.segment(1).unlink()
    with pytest.raises(DamagedError, match="Segment 1"):
        written(home.live)
    told: list[str] = []
    page = parsed(written(home.live, on_gap=told.append))
    assert len(told) == 1
    assert [each.text for each in page.all("h2")][1:] == [f"Segment {n}" for n in range(4)]
    assert {each.attributes["id"][0] for each in page.all("article")} == {"0", "2", "3"}


def test_a_segment_that_is_gone_at_the_end_has_its_place_too(tmp_path: Path) -> None:
    source = write(tmp_path / f"{ID}.jsonl", DATA)
    assert command_line.piped("split", source, "--out", tmp_path / "set").code == 0
    (tmp_path / "set" / f"{ID}.3.jsonl").unlink()
    told: list[str] = []
    page = parsed(written(tmp_path / "set", on_gap=told.append))
    assert len(told) == 1
    assert [each.text for each in page.all("h2")][1:] == [f"Segment {n}" for n in range(4)]


# ── what cannot get out of it ────────────────────────────────────────────────────────────────


def test_a_hostile_session_adds_no_element_and_no_attribute_of_its_own(hostile: bytes) -> None:
    page = parsed(hostile)
    assert len(page.all("script")) == len(page.all("style")) == 1
    assert len(page.all("article")) > 20 * len(sessions.TAGS)
    assert len(page.all("article", "broken")) > 2 * len(sessions.TAGS)
    ids = [each.attributes["id"] for each in page.elements if "id" in each.attributes]
    assert len(set(ids)) == len(ids)


def test_what_a_hostile_session_says_is_there_to_read(hostile: bytes) -> None:
    told = parsed(hostile).all("main")[0].text
    for trick in sessions.TAGS:
        if trick.isascii() and trick.isprintable():
            assert told.count(trick) > 10, trick


def test_a_hostile_page_is_utf_8_without_control_characters(hostile: bytes) -> None:
    odd = {character for character in hostile.decode() if not is_harmless(character)}
    assert odd == set()


@pytest.mark.parametrize("page", ["hostile", "empty"])
def test_the_policy_allows_the_two_files_of_the_page_and_nothing_else(
    page: str, hostile: bytes, tmp_path: Path
) -> None:
    found = parsed(hostile) if page == "hostile" else said(tmp_path, "")
    assets = resources.files("sessrotate.export").joinpath("assets")
    (style,), (program,) = found.all("style"), found.all("script")
    assert style.text == assets.joinpath("page.css").read_text()
    assert program.text == assets.joinpath("page.js").read_text()
    policies = [each for each in found.all("meta") if "http-equiv" in each.attributes]
    assert [each.attributes["http-equiv"] for each in policies] == ["Content-Security-Policy"]
    rules = dict(
        rule.strip().split(" ", 1) for rule in policies[0].attributes["content"].split(";")
    )
    assert rules == {
        "default-src": "'none'",
        "script-src": hash_of(program.text),
        "style-src": hash_of(style.text),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    before = found.elements[: found.elements.index(style)]
    assert policies[0] in before


def hash_of(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def test_the_style_asks_for_nothing_and_the_script_writes_no_markup() -> None:
    assets = resources.files("sessrotate.export").joinpath("assets")
    style, script = (assets.joinpath(f"page.{kind}").read_text() for kind in ("css", "js"))
    assert re.search(r"url\(|@import|image-set|@font-face", style) is None
    ways = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(|fetch|XMLHttp"
    assert re.search(rf"{ways}|WebSocket|import\(|setAttribute|srcdoc|\.src\b", script) is None
    for text in (style, script):
        assert re.search(r"</|<!--", text) is None


def test_a_session_whose_title_is_hostile_has_a_title_all_the_same(tmp_path: Path) -> None:
    script = sessions.Script()
    script.user("hello")
    name = "<script>alert(1)<!-- & TITLE \N{RIGHT-TO-LEFT OVERRIDE}\x1b[31m"
    script.metadata("custom-title", customTitle=name)
    page = page_of(tmp_path, script.bytes())
    assert page.all("title")[0].text.startswith("<script>alert(1)<!-- & TITLE")
    assert page.all("h1")[0].text == page.all("title")[0].text


# ── text, whatever it holds ──────────────────────────────────────────────────────────────────

ANYTHING = st.text(st.characters(categories=None, exclude_categories=())) | st.text(
    st.sampled_from("<>&\"'`*#~ \n\r\x1b[31m\0\x7f\ud800a/!-=;")
)


def is_harmless(character: str) -> bool:
    code = ord(character)
    if code < 0x20:
        return character in "\t\n"
    return not (0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code in {0xFEFF, 0xFFFE, 0xFFFF})


MARKED_UP = st.lists(
    st.sampled_from(["```", "~~~~", "`", "**", "# ", "\n", "\n", "\n", " ", "a", "<b>", "py", "\r"])
).map("".join)
"""Text that is mostly marks."""


def text_of(found: str) -> str:
    """Return the text of some HTML that may hold what records may."""
    page = Page()
    page.feed(f"<html><body><main>{found}</main></body></html>")
    page.close()
    assert page.open == []
    return page.all("main")[0].text


@given(ANYTHING)
def test_any_text_is_text_again_but_for_what_is_harmful(text: str) -> None:
    expected, rest = "", re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text).replace("\r\n", "\n")
    for character in rest:
        is_control = ord(character) < 0x20
        harmful = chr(0x2400 + ord(character)) if is_control else "\N{REPLACEMENT CHARACTER}"
        harmful = "␡" if character == "\x7f" else harmful
        expected += character if is_harmless(character) else harmful
    shown = html_text.escape(text)
    shown.encode()
    assert text_of(f"<b>{shown}</b>") == expected
    page = Page()
    page.feed(f'<html><body><main><time datetime="{shown}"></time></main></body></html>')
    assert page.all("time")[0].attributes["datetime"] == expected


@given(ANYTHING, st.integers(2, 40))
def test_a_short_text_is_one_line_of_at_most_so_many_characters(text: str, limit: int) -> None:
    shown = text_of(f"<b>{html_text.short(text, limit)}</b>")
    assert "\n" not in shown
    assert len(shown) <= limit


@given(ANYTHING | MARKED_UP)
def test_markup_adds_only_elements_of_ours_and_loses_only_marks(text: str) -> None:
    shown = html_text.prose(text)
    shown.encode()
    plain = text_of(f"<b>{html_text.escape(text)}</b>")
    assert letters(text_of(shown)) == letters(without_fences(plain))


def letters(text: str) -> str:
    """Return a text without what may be a mark, and without white space."""
    return re.sub(r"[\s`*#]", "", text)


def without_fences(text: str) -> str:
    """Return a text without the lines that open or close code: these are not shown."""
    kept, fence = [], ""
    for line in text.split("\n"):
        found = re.match(r"^ ? ? ?(```+|~~~+) *", line)
        word = line[found.end() :].strip(" ") if found else ""
        if found and not fence and re.fullmatch(r"[\w.+#-]*", word):
            fence = found[1]
        elif found and fence and found[1][: len(fence)] == fence and not word:
            fence = ""
        else:
            kept.append(line)
    return "\n".join(kept)


@examples(50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | ANYTHING,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANYTHING, inner, max_size=4),
        max_leaves=12,
    ),
    st.sampled_from(["message", "content", "type", "timestamp", "attachment", "uuid", "subtype"]),
    st.sampled_from(["user", "assistant", "system", "attachment", "mode"]),
)
@example(value="", key="uuid", kind="user")  # a row that nothing continues: a branch
def test_a_row_of_any_shape_has_an_article_or_is_marked_or_counted(
    tmp_path_factory: pytest.TempPathFactory, value: object, key: str, kind: str
) -> None:
    blocks = [{"type": "tool_use", "input": value}, {"type": "x", "y": value}, value]
    row = {"type": kind, "message": {"content": blocks, "model": value}, key: value}
    data = json.dumps(row).encode() + b"\n" + sessions.friendly()
    path = write(tmp_path_factory.mktemp("any") / f"{ID}.jsonl", data)
    page = parsed(written(path))
    is_left_out = key == "uuid" and "left out: 1 of rewound branches" in page.elements[-1].text
    assert len(page.all("article")) + is_left_out == 1 + len(sessions.friendly().splitlines())
