"""Branches that were rewound are left out of documents for people, or marked if that is asked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sessrotate import open_session
from sessrotate.export import Scope, html, jsonl, markdown
from sessrotate.reading.part import Part, Turns
from support import codex_sessions, gemini_sessions
from support.command_line import ID, assert_one_sentence, boundary, called, piped, row, write
from support.export import sessions
from support.export.pages import Page, parsed
from support.homes import Home
from support.limits import weighed
from support.talks import answer, call, chained, prompt, result, talk


def uuid_of(number: int) -> str:
    return str(json.loads(row(number))["uuid"])


def after(parent: int, *rows: bytes) -> bytes:
    """Return rows that follow one another, the first of them a row that stands before."""
    first, *rest = chained(*rows).splitlines(keepends=True)
    fields = {**json.loads(first), "parentUuid": uuid_of(parent)}
    return b"".join([json.dumps(fields).encode() + b"\n", *rest])


DATA = b"".join(
    [
        chained(prompt(1, "first prompt"), answer(2, "first answer")),
        after(
            2,
            prompt(3, "left prompt"),
            answer(4, call("Task", "toolu_left", prompt="left errand")),
            prompt(5, "to the left agent", isSidechain=True, agentId="a1"),
            result(6, "toolu_left", "left result"),
            answer(7, "left answer"),
        ),
        row(8, type="mode", uuid=None, message=None),
        after(2, prompt(9, "second prompt"), answer(10, "second answer")),
        boundary(11, parentUuid=None, logicalParentUuid=uuid_of(10)),
        after(11, prompt(12, "third prompt"), answer(13, call("Task", "toolu_kept", prompt="go"))),
        after(13, result(14, "toolu_kept", "kept result"), answer(15, "third answer")),
    ]
)
KEPT = ["first prompt", "first answer", "second prompt", "second answer", "third prompt",
        "kept result", "third answer"]  # fmt: skip
LEFT = ["left prompt", "to the left agent", "left result", "left answer"]

LEFT_OUT = "Left out here: 5 records of a rewound branch."
BEGIN = "A rewound branch begins here: the user went back to before it."
END = "The rewound branch ends here: what follows continues from before it."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / f"{ID}.jsonl", DATA)


def document(path: Path, **options: Any) -> str:
    with open_session(path) as session:
        return b"".join(markdown.pieces(session, Scope(**options))).decode()


def page(path: Path, **options: Any) -> Page:
    with open_session(path) as session:
        return parsed(b"".join(html.pieces(session, Scope(**options))))


def in_order(text: str, words: list[str]) -> None:
    places = [text.index(word) for word in words]
    assert places == sorted(places), words


def test_markdown_leaves_them_out_and_says_where_and_how_many(path: Path) -> None:
    found = document(path)
    in_order(found, [*KEPT[:2], LEFT_OUT, *KEPT[2:]])
    assert "left" not in found.replace("left out", "")
    assert found.count("Left out here") == 1
    assert "Export with --all-branches" in found
    assert "## 2. second prompt" in found


def test_markdown_marks_them_where_all_are_asked_for(path: Path) -> None:
    found = document(path, all_branches=True)
    in_order(found, [*KEPT[:2], BEGIN, *LEFT, END, *KEPT[2:]])
    assert "Left out" not in found


def test_a_page_leaves_them_out_and_says_where_and_how_many(path: Path) -> None:
    found = page(path)
    text = found.all("main")[0].text
    in_order(text, [*KEPT[:2], LEFT_OUT, *KEPT[2:]])
    assert "left" not in text.replace("left out", "")
    assert found.all("p", "branch")[0].text.startswith(LEFT_OUT)
    assert found.all("footer")[0].text.startswith("10 records; left out: 5 of rewound branches. ")
    assert len(found.all("article")) == len(DATA.splitlines()) - 5


def test_a_page_marks_them_where_all_are_asked_for(path: Path) -> None:
    found = page(path, all_branches=True)
    in_order(found.all("main")[0].text, [*KEPT[:2], BEGIN, *LEFT, END, *KEPT[2:]])
    assert [each.text for each in found.all("p", "branch")] == [BEGIN, END]
    marked = found.all("article", "rewound")
    assert len(marked) == 5
    assert all("rewound" in each.text for each in marked)  # in words too, not by its looks alone
    assert len(found.all("article")) == len(DATA.splitlines())
    assert found.all("footer")[0].text.startswith("15 records. ")


def test_lines_have_everything(path: Path) -> None:
    with open_session(path) as session:
        assert b"".join(jsonl.pieces(session)) == DATA


def test_a_branch_at_the_end_is_left_out_too(tmp_path: Path) -> None:
    end = json.dumps({"type": "last-prompt", "leafUuid": uuid_of(2)}).encode() + b"\n"
    rows = [prompt(1, "first"), answer(2, "kept"), prompt(3, "left"), answer(4, "left too"), end]
    path = write(tmp_path / f"{ID}.jsonl", chained(*rows))
    for text in (document(path), page(path).all("main")[0].text):
        assert "left too" not in text
        assert "Left out here: 2 records" in text
    in_order(document(path, all_branches=True), ["kept", BEGIN, "left too", END])


@pytest.mark.parametrize("data", [talk(), sessions.friendly(), sessions.hostile()])
def test_a_session_without_branches_is_the_same_with_all_of_them(
    tmp_path: Path, data: bytes
) -> None:
    path = write(tmp_path / f"{ID}.jsonl", data)
    with open_session(path) as session:
        for pieces in (markdown.pieces, html.pieces):
            assert [*pieces(session)] == [*pieces(session, Scope(all_branches=True))]


@pytest.fixture
def with_agents(home: Home) -> Home:
    """Give the session with an agent of each branch, and one that nobody called."""
    folder = home.live.parent / ID / "subagents"
    folder.mkdir(parents=True)
    for name, asked in (("left", "toolu_left"), ("kept", "toolu_kept"), ("nobodys", None)):
        said = answer(40, f"said by {name}", isSidechain=True, agentId=name)
        write(folder / f"agent-{name}.jsonl", said)
        if asked is not None:
            write(folder / f"agent-{name}.meta.json", json.dumps({"toolUseId": asked}).encode())
    return home


def agents_in(home: Home, **options: Any) -> list[str]:
    """Return which agents speak in a document, having checked that they do so in a page."""
    names = ("left", "kept", "nobodys")
    texts = document(home.live, **options), page(home.live, **options).all("main")[0].text
    told, other = ([name for name in names if f"said by {name}" in text] for text in texts)
    assert told == other
    return told


def test_the_agents_of_a_branch_are_left_out_with_it(with_agents: Home) -> None:
    assert agents_in(with_agents) == ["kept", "nobodys"]
    assert agents_in(with_agents, all_branches=True) == ["left", "kept", "nobodys"]


def test_a_turn_has_the_same_number_in_lines_as_in_a_document(path: Path) -> None:
    for number, name in enumerate(("first", "second", "third"), 1):
        with open_session(path) as session:
            lines = b"".join(jsonl.pieces(session, Scope(Part(Turns(number, number))))).decode()
        assert f"{name} prompt" in lines
        assert ("left prompt" in lines) is (number == 1)  # it stands behind the first
        assert f"{name} prompt" in document(path, part=Part(Turns(number, number)))
        words = ("read", path, "--history", "--format", "jsonl", "--turns", str(number))
        assert called(*words).out == lines
        found = document(path, part=Part(Turns(number, number)), all_branches=True)
        assert f"## {number}. {name} prompt" in found
        assert ("## left prompt" in found) is (number == 1)


def test_a_rewound_prompt_and_a_copy_have_no_number_among_the_turns(tmp_path: Path) -> None:
    path = write(tmp_path / f"{ID}.jsonl", DATA + prompt(12, "third prompt"))
    read = called("read", path, "--history", "--format", "markdown").out
    heads = ["1. first prompt", "left prompt", "2. second prompt", "3. third prompt"]
    assert re.findall(r"(?m)^## (.*)$", read) == [*heads, "third prompt"]
    every = document(path, all_branches=True)
    assert re.findall(r"(?m)^## (.*)$", every) == heads


def test_a_part_has_the_agents_that_were_called_in_it(with_agents: Home) -> None:
    assert agents_in(with_agents, part=Part(Turns(3))) == ["kept"]
    assert agents_in(with_agents, part=Part(Turns(1, 2))) == []


@pytest.mark.parametrize(("form", "ending"), [("markdown", "md"), ("html", "html")])
def test_what_a_parent_left_and_its_clone_goes_on_from_is_the_clones(
    tmp_path: Path, home: Home, form: str, ending: str
) -> None:
    clone = "66666666-0000-4000-a000-000000000003"
    rows = DATA.splitlines(keepends=True)[:7]
    forked = b"".join(rows) + after(7, prompt(20, "of the clone"), answer(21, "its answer"))
    write(home.live.with_name(f"{clone}.jsonl"), forked.replace(ID.encode(), clone.encode()))
    out = tmp_path / "out"
    assert called("export", "--format", form, ID, clone, "-o", out).code == 0
    parents, clones = ((out / f"{each}.{ending}").read_text() for each in (ID, clone))
    assert "left answer" not in parents
    in_order(clones, ["left prompt", "left answer", "of the clone"])
    assert "first prompt" not in clones.partition("</head>")[2].partition("that are also in")[2]


def test_it_is_the_same_after_a_rotation(home: Home) -> None:
    home.rotate()
    in_order(document(home.live), [*KEPT[:2], LEFT_OUT, *KEPT[2:]])


@pytest.mark.scale
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    path = tmp_path / f"{ID}.jsonl"
    with path.open("wb") as file:
        last = None
        for number in range(1, 180_001):
            start, is_left = number % 2000 == 0, number % 50 < 5
            fields = {"parentUuid": None if start else last, "message": None} | (
                {"type": "system", "subtype": "compact_boundary", "logicalParentUuid": last}
                if start
                else {"type": "user", "message": {"role": "user", "content": f"said {number}"}}
            )
            file.write(row(number, **fields))
            last = last if is_left and not start else uuid_of(number)
    for output, most in (("markdown", 56), ("html", 56)):
        done = weighed("export", path, "--format", output, "-o", tmp_path / output, "-q")
        assert (done.code, done.err) == (0, "")
        assert done.peak_mib <= most
        assert b"Left out here" in (tmp_path / output).read_bytes()


# ── other clients ────────────────────────────────────────────────────────────────────────────


def test_turns_that_codex_took_back_are_left_out(tmp_path: Path) -> None:
    rows = codex_sessions.Rows("legacy")
    rows.add("session_meta", id=ID, cli_version="0.145.0")
    for text in ("one", "two", "three"):
        rows.turn(text)
    rows.event("thread_rolled_back", num_turns=2)
    rows.turn("four")
    path = write(tmp_path / "rollout.jsonl", b"".join(line + b"\n" for line in rows.lines))
    for text in (document(path), page(path).all("main")[0].text):
        in_order(text, ["re: one", "Left out here: ", "re: four"])
        assert not re.search("two|three", text)
    in_order(document(path, all_branches=True), ["re: one", BEGIN, "re: two", "re: three", END])


def test_messages_that_gemini_took_back_are_left_out(tmp_path: Path) -> None:
    message = gemini_sessions.message
    data = gemini_sessions.file(
        gemini_sessions.metadata(),
        message("one"), message("two", "gemini"), message("three"), message("four", "gemini"),
        {"$rewindTo": "three"}, message("five"), message("six", "gemini"),
    )  # fmt: skip
    path = write(tmp_path / f"session-{gemini_sessions.UUID[:8]}.jsonl", data)
    for text in (document(path), page(path).all("main")[0].text):
        in_order(text, ["text of two", "Left out here: 2 records", "text of five"])
        assert not re.search("text of (three|four)", text)
    found = document(path, all_branches=True)
    in_order(found, ["text of two", BEGIN, "text of three", "text of four", END, "text of five"])


# ── the command ──────────────────────────────────────────────────────────────────────────────


def test_the_command_leaves_them_out_unless_all_are_asked_for(path: Path, tmp_path: Path) -> None:
    for output, module in (("markdown", markdown), ("html", html)):
        for options in ((), ("--all-branches",)):
            out = tmp_path / f"out{len(options)}.{output}"
            assert called("export", path, "--format", output, *options, "-o", out).code == 0
            with open_session(path) as session:
                expected = b"".join(module.pieces(session, Scope(all_branches=bool(options))))
            assert out.read_bytes() == expected
    assert piped("export", path).out.encode() == DATA


def test_lines_have_all_branches_anyway(path: Path) -> None:
    for options in ((), ("--format", "jsonl")):
        assert_one_sentence(piped("export", path, "--all-branches", *options), 2)
