"""A part of a session, for somebody else: the same turns in every format, and pages to walk."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.cli import export
from support import command_line, oracle
from support.command_line import ID, assert_one_sentence, boundary, called, contents, write
from support.export.pages import Page, parsed
from support.homes import Home
from support.talks import answer, call, chained, prompt, result

if TYPE_CHECKING:
    from pathlib import Path

DATA: Final = command_line.session(boundaries=3, rows=4)
LINES: Final = DATA.splitlines(keepends=True)
PROMPTS: Final = [
    number for number, line in enumerate(LINES) if b"row " in line and b'"type":"user"' in line
]
"""Each of these rows is the prompt of a turn."""


def exported(*arguments: str) -> str:
    ended = called("export", *arguments, ID)
    assert (ended.code, ended.err) == (0, ""), ended
    return ended.out


def sidebar(page: Page) -> set[str]:
    """Return where the links of a page's sidebar lead."""
    return {each.attributes["href"] for each in page.all("a") if "nav" in each.inside}


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(("wanted", "first", "last"), [("3:5", 3, 5), ("4", 4, 4), (":2", 1, 2)])
def test_the_same_turns_come_in_every_format(
    wanted: str, first: int, last: int, tmp_path: Path
) -> None:
    begin = 0 if first == 1 else PROMPTS[first - 1]
    assert exported("--turns", wanted).encode() == b"".join(LINES[begin : PROMPTS[last]])
    text = exported("--format", "markdown", "--turns", wanted)
    numbers = list(range(first, last + 1))
    assert [int(number) for number in re.findall(r"(?m)^## (\d+)\. ", text)] == numbers
    assert "This is a part of the session: turn" in text
    out = tmp_path / "part.html"
    assert called("export", "--format", "html", "--turns", wanted, ID, "-o", out).code == 0
    page = parsed(out.read_bytes())
    shown = [each for each in page.all("article") if "row " in each.text]
    assert len(shown) == len(numbers)
    assert "This is a part of the session: turn" in page.all("main")[0].text
    # In the sidebar are the segments that it has something of.
    assert sidebar(page) == {
        f"#{each.attributes['id']}" for each in page.all("h2") if each.attributes
    }


@pytest.mark.usefixtures("either")
def test_read_takes_the_same_turns_and_numbers_them_the_same() -> None:
    read = called("read", "--history", "--format", "markdown", "--turns", "3:5", ID).out
    assert re.findall(r"(?m)^## (\d+)\. ", read) == ["3", "4", "5"]
    lines = called("read", "--history", "--format", "jsonl", "--turns", "3:5", ID).out
    assert lines.encode() == b"".join(LINES[PROMPTS[2] : PROMPTS[5]])


@pytest.mark.usefixtures("either")
def test_a_part_begins_at_a_place_and_its_turns_are_counted_from_there() -> None:
    parts = oracle.bodies(DATA)
    offset = parts[1].index(b"\n") + 1
    from_there = parts[1][offset:] + b"".join(parts[2:])
    assert exported("--at", f"1:{offset}").encode() == from_there
    prompts = [m.start() for m in re.finditer(rb"(?m)^.*row \d+ ", from_there)]
    two = exported("--at", f"1:{offset}", "--turns", "1:2")
    assert two.encode() == from_there[: prompts[2]]
    text = exported("--at", f"1:{offset}", "--format", "markdown")
    assert "This is a part of the session: from 1:" in text
    assert "## 1. " in text


@pytest.mark.usefixtures("either")
def test_times_limit_a_part() -> None:
    whole = exported()
    since = "2026-03-01T10:00:04"
    found = exported("--since", since)
    assert whole.endswith(found)
    assert 0 < len(found) < len(whole)
    until = exported("--until", "2026-03-01T10:00:03")
    assert whole == until + found


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--turns", "7:3"], "does not name turns"),
        (["--turns", "x"], "does not name turns"),
        (["--since", "soon"], "is not a time"),
        (["--at", "9:0"], "There is no segment 9"),
        (["--split"], "--split needs --format html."),
        (["--format", "html", "--split", "-o", "-"], "and standard output is not one"),
        (["--format", "html", "--split", "-o", "/dev/null"], "and /dev/null is not one"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], said: str) -> None:
    ended = called("export", *arguments, ID)
    assert_one_sentence(ended, 2)
    assert said in ended.err


@pytest.mark.parametrize("words", [["export"], ["read", "--history", "--format", "jsonl"]])
def test_turns_that_are_counted_without_a_missing_segment_say_so(
    home: Home, words: list[str]
) -> None:
    home.rotate()
    for number in (1, 2):
        home.segment(number).unlink()
    said = "Turns in missing parts are not counted."
    ended = called(*words, ID, "--allow-gaps", "--turns", "2:")
    assert (ended.code, ended.err.count(said)) == (0, 1)
    assert said not in called(*words, ID, "--allow-gaps").err


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("form", ["jsonl", "markdown"])
def test_an_empty_part_is_said(form: str) -> None:
    ended = called("export", "--format", form, "--turns", "999:", ID)
    assert (ended.code, ended.err) == (0, f"sessrotate: This part of {ID} is empty.\n")


@pytest.mark.usefixtures("home")
def test_a_record_that_is_in_no_document_is_said_to_be_where_it_is() -> None:
    ended = called("export", "--since", "99999999-0000-4000-a000-000000000003", ID)
    assert ended.code == 2
    assert "`export --all-branches` rewound branches, too" in ended.err


def test_of_several_sessions_a_damaged_one_keeps_no_other_from_being_written(
    home: Home, tmp_path: Path
) -> None:
    home.rotate()
    home.segment(2).unlink()
    other = "66666666-0000-4000-a000-000000000003"
    data = home.beside(other, DATA).read_bytes()
    out = tmp_path / "out"
    ended = called("export", ID, other, "-o", out)
    assert ended.code == 74
    assert f"{home.live}: Segment 2" in ended.err
    # What it has in common with the first was written nowhere else.
    assert contents(out) == {f"{other}.jsonl": data}


# ── several pages ────────────────────────────────────────────────────────────────────────────


def test_each_segment_has_a_page_and_an_index_leads_to_them(either: Home, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    ended = called("export", "--format", "html", "--split", ID, "-o", folder)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith(f"Wrote the pages that {folder / 'index.html'} leads to (")
    numbers = range(len(oracle.bodies(DATA)))
    pages = {name: parsed(data) for name, data in contents(folder).items()}
    assert {*pages} == {"index.html", *(f"{number}.html" for number in numbers)}
    index = pages.pop("index.html")
    assert {link.partition("#")[0] for link in sidebar(index)} == {"index.html", *pages}
    links = [each.attributes["href"] for each in index.all("a") if "main" in each.inside]
    assert links == [f"{number}.html" for number in numbers]
    single = tmp_path / "one.html"
    assert called("export", "--format", "html", ID, "-o", single).code == 0
    whole = [each.attributes["id"] for each in parsed(single.read_bytes()).all("article")]
    split = [
        each.attributes["id"]
        for number in numbers
        for each in pages[f"{number}.html"].all("article")
    ]
    assert split == whole
    for number in numbers:
        page = pages[f"{number}.html"]
        others = {f"{each}.html#s{each}" for each in numbers if each != number}
        assert sidebar(page) == {"index.html", f"#s{number}", *others}
        assert f"Segment {number}" in index.all("main")[0].text
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())
    assert either.live.exists()


def test_a_result_leads_to_its_call_on_whichever_page_it_is(tmp_path: Path) -> None:
    use = call("Bash", "toolu_1", command="ls")
    rows = [prompt(1, "go"), answer(2, use), boundary(3, logicalParentUuid=None)]
    path = write(tmp_path / f"{ID}.jsonl", chained(*rows, result(4, "toolu_1", "a file")))
    folder, single = tmp_path / "pages", tmp_path / "one.html"
    assert called("export", "--format", "html", "--split", path, "-o", folder).code == 0
    assert called("export", "--format", "html", path, "-o", single).code == 0
    pages = {name: parsed(data) for name, data in contents(folder).items()}
    used = next(each for each in pages["0.html"].all("article") if "ls" in each.text)
    at = used.attributes["id"]

    def leads(page: Page) -> list[str]:
        found = page.all("a")
        return [each.attributes["href"] for each in found if each.text == "Bash"]

    assert leads(pages["1.html"]) == [f"0.html#{at}"]
    assert leads(parsed(single.read_bytes())) == [f"#{at}"]


@pytest.mark.usefixtures("either")
def test_pages_go_to_a_new_folder_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("export", "--format", "html", "--split", ID)
    assert called(*words, "-q").code == 0
    before = contents(tmp_path / ID)
    ended = called(*words)
    assert_one_sentence(ended, 77)
    assert "already exists" in ended.err
    assert contents(tmp_path / ID) == before


def test_of_pages_that_cannot_all_be_written_none_is_left(home: Home, tmp_path: Path) -> None:
    home.rotate()
    home.segment(2).unlink()
    folder = tmp_path / "pages"
    ended = called("export", "--format", "html", "--split", ID, "-o", folder)
    assert_one_sentence(ended, 74)
    assert "Segment 2" in ended.err
    assert not folder.exists()
    words = ("export", "--format", "html", "--split", "--allow-gaps", ID, "-o", folder)
    assert called(*words).code == 0
    assert {*contents(folder)} == {"index.html", "0.html", "1.html", "2.html", "3.html"}


@pytest.mark.usefixtures("either")
def test_some_turns_become_several_pages_too(tmp_path: Path) -> None:
    folder = tmp_path / "some"
    words = ("export", "--format", "html", "--split", "--turns", "1:2", ID, "-o", folder)
    assert called(*words).code == 0
    assert {*contents(folder)} == {"index.html", "0.html"}


@pytest.mark.usefixtures("either")
def test_a_page_that_browsers_do_not_like_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("export", "--format", "html", ID, "-o")
    assert "may not open" not in called(*words, tmp_path / "small.html").err
    monkeypatch.setattr(export, "_LARGE", 1000)
    said = called(*words, tmp_path / "large.html").err
    assert "a browser may not open it. --split makes a page for each segment" in said
    assert "may not open" not in called(*words, tmp_path / "part.html", "--turns", "2").err
