"""`sessrotate read`: what is shown, where, and how it ends."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support import homes
from support.command_line import (
    ID,
    REAL,
    assert_one_sentence,
    boundary,
    called,
    decoded,
    has_colour,
    on_terminal,
    patched,
    piped,
    row,
    segments_of,
    session,
    without_ansi,
    write,
)
from support.homes import Home
from support.limits import MIB, weighed
from support.talks import answer, call, chained, prompt, result, talk
from support.tiers import in_gate

TORN = b'{"type":"user","mess\n'
LATIN = b"caf\xe9 \x1b[31m\n"
MORE = prompt(30, "last prompt"), LATIN, answer(31, "last answer")
DATA = talk(TORN, *MORE)
FIRST = segments_of(talk())[0]
LAST = DATA.removeprefix(FIRST)


def uuid_of(number: int) -> str:
    return str(json.loads(row(number))["uuid"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / f"{ID}.jsonl", DATA)


def shown(*arguments: str | Path) -> str:
    """Return what the command prints to a pipe; it must end well."""
    ended = piped("read", *arguments)
    assert ended.code == 0, ended
    return ended.out


TAIL = """\
── Compaction 1 · 2026-03-01 10:00:15 · manual · 12,345 tokens before ──────────────────────────────

Summary · 2026-03-01 10:00:16
what was before

You · 2026-03-01 10:00:17
> /review all

Assistant · model-of-a-test · 2026-03-01 10:00:18
third answer

✗ segment 1, offset 797: 20 B that are not a record
  {"type":"user","mess

You · 2026-03-01 10:00:30
> last prompt

✗ segment 1, offset 1030: 10 B that are not a record
  caf�

Assistant · model-of-a-test · 2026-03-01 10:00:31
last answer
"""

UNREAD = (
    """\
✗ segment 1, offset 797: 20 B that are not a record
  {"type":"user","mess

""",
    """\
✗ segment 1, offset 1030: 10 B that are not a record
  caf�

""",
)

HEAD = """\
You · 2026-03-01 10:00:01
> first prompt

Assistant · model-of-a-test · 2026-03-01 10:00:02
I will look.

  • Read /srv/a.txt → 2 lines
  • Bash make test → error: it broke

first answer

You · 2026-03-01 10:00:13
> second prompt

Assistant · model-of-a-test · 2026-03-01 10:00:14
second answer

"""


HIDDEN = (
    "sessrotate: Hidden: 2 records of agents, 2 records of the client, 1 attachment, 1 record with "
    "thinking. --include sidechains,meta,attachments,thinking shows them.\n"
)


def sized(text: str) -> str:
    """Return a text with the offsets of the two lines that are no records in these bytes."""
    return text.replace("797", str(LAST.index(TORN))).replace("1030", str(LAST.index(LATIN)))


def test_a_row_behind_a_byte_order_mark_is_read_as_any_other(home: Home) -> None:
    """Editors put one before files, which then are put behind one another."""
    asked = (prompt(n, f"question {n}", sessionId=ID) for n in range(4))
    rows = chained(*asked).splitlines(keepends=True)
    mark = b"\xef\xbb\xbf"
    data = mark + rows[0] + rows[1] + mark + rows[2] + rows[3]
    home.live.write_bytes(data)
    for options in ((), ("--history",)):
        text = called("read", ID, *options)
        assert [f"question {n}" in text.out for n in range(4)] == [True] * 4
        assert "not JSON" not in text.out
    found = called("search", "question", "--json").out.splitlines()
    assert [json.loads(each)["text"] for each in found] == [f"question {n}" for n in range(4)]
    page = called("export", ID, "--format", "markdown", "-o", "-").out
    assert page.startswith("# question 0")
    assert all(f"question {n}" in page for n in range(4))
    for command in (
        ("read", ID, "--history", "--format", "jsonl"),
        ("export", ID, "--format", "jsonl", "-o", "-"),
        ("stitch", ID),
    ):
        assert called(*command).out.encode() == data


@pytest.mark.usefixtures("either")
def test_what_a_resume_sends_is_shown_as_text() -> None:
    ended = called("read", ID[:8])
    expected = TAIL.replace(UNREAD[0], "").replace(UNREAD[1], "")
    assert (ended.code, ended.out, ended.err) == (0, expected, "")


def test_all_of_it_is_shown_with_history(either: Home) -> None:
    expected = sized(HEAD + TAIL)
    ended = called("read", either.live, "--history")
    assert (ended.code, ended.out, ended.err) == (0, expected, HIDDEN)
    assert called("read", either.live, "--history", "--quiet").err == ""


@pytest.mark.usefixtures("either")
def test_lines_are_byte_exact() -> None:
    lines = ("--format", "jsonl")
    ended = called("read", ID, "--history", *lines)
    assert ended.out == called("stitch", ID).out == decoded(DATA)
    assert called("read", ID, "--segment", "1", *lines).out == decoded(LAST)
    sent = LAST.replace(TORN, b"").replace(LATIN, b"")
    assert called("read", ID, *lines).out == decoded(sent)


def test_a_torn_last_line_stays_torn(tmp_path: Path) -> None:
    path = write(tmp_path / f"{ID}.jsonl", DATA + b'{"torn')
    ended = piped("read", path, "--history", "--format", "jsonl")
    assert ended.out == decoded(DATA + b'{"torn')


def test_a_line_that_is_too_long_to_be_held_is_marked_and_exact(tmp_path: Path) -> None:
    long = prompt(40, "x" * (9 << 20))
    path = write(tmp_path / f"{ID}.jsonl", DATA + long + answer(41, "after it"))
    lines = piped("read", path, "--history", "--format", "jsonl").out
    assert lines == decoded(DATA + long + answer(41, "after it"))
    text = piped("read", path, "--segment", "1").out
    assert f"offset {len(LAST)}: a line of 9.0 MiB, too long" in text
    assert text.endswith("after it\n")
    assert len(text) < 3000
    found = piped("read", path, "--history", "--grep", "xxx")
    assert (found.code, found.out) == (0, "")
    assert "1 line longer than 8 MiB could not be searched" in found.err


def test_only_the_live_file_is_opened_for_what_a_resume_sends(home: Home) -> None:
    home.rotate()
    for file in home.segments():
        file.write_bytes(b"")
    before = called("read", ID)
    assert (before.code, before.err) == (0, "")
    assert "last answer" in before.out
    assert_one_sentence(called("read", ID, "--history", "--format", "jsonl"), 74)


def test_one_segment_is_read_without_the_others(home: Home) -> None:
    home.append(boundary(50) + prompt(51, "newest"))
    home.rotate()
    home.segment(0).write_bytes(b"")
    lines = called("read", ID, "--segment", "1", "--format", "jsonl")
    assert lines.out == decoded(LAST)
    both = called("read", ID, "--segment", "2", "--segment", "1", "--segment", "2")
    assert both.out.index("last answer") < both.out.index("newest")
    assert both.out.count("newest") == 1
    assert_one_sentence(called("read", ID, "--segment", "7"), 2)


def test_gaps_are_refused_or_told(home: Home) -> None:
    home.append(boundary(50) + prompt(51, "newest"))
    home.rotate()
    home.segment(0).unlink()
    assert_one_sentence(called("read", ID, "--history"), 74)
    allowed = called("read", ID, "--history", "--allow-gaps")
    assert allowed.code == 0
    assert "Segment 0" in allowed.err
    assert "newest" in allowed.out


def test_what_is_read_of_a_damaged_segment_is_said_to_be_doubtful(home: Home) -> None:
    home.append(boundary(50) + prompt(51, "newest"))
    home.rotate()
    changed = homes.content(home.segment(0)).replace(b"answer", b"ANSWER")
    homes.rewrite(home.segment(0), changed)
    allowed = called("read", ID, "--history", "--allow-gaps")
    assert allowed.code == 0
    assert "Segment 0" in allowed.err
    assert "What is read from it may be wrong." in allowed.err
    home.segment(0).unlink()
    assert "may be wrong" not in called("read", ID, "--history", "--allow-gaps").err


MANNERS = [[], ["--brief"], ["--grep", "9"], ["--format", "markdown"]]


@pytest.mark.parametrize("options", in_gate(MANNERS, 1, "scale"))
def test_memory_does_not_grow_with_the_session(tmp_path: Path, options: list[str]) -> None:
    rows = (prompt(n, f"{n}" + "word " * 3000) + answer(n, "word\n" * 3000) for n in range(800))
    path = write(tmp_path / f"{ID}.jsonl", b"".join(rows))
    assert path.stat().st_size > 24 * MIB
    done = weighed("read", path, "--history", *options)
    assert (done.code, done.err) == (0, "")
    assert done.peak_mib <= 40


# ── what a resume sends ──────────────────────────────────────────────────────────────────────

NOTHING_SENT = "Nothing matches in what a resume sends: --history searches everything."

BRANCHED = b"".join(
    [
        chained(prompt(1, "first prompt"), answer(2, "first answer")),
        prompt(3, "left prompt", parentUuid=uuid_of(2)),
        prompt(4, "to the left agent", parentUuid=None, isSidechain=True, agentId="a1"),
        answer(5, "left answer", parentUuid=uuid_of(3)),
        prompt(6, "second prompt", parentUuid=uuid_of(2)),
        prompt(7, "to the agent", parentUuid=None, isSidechain=True, agentId="a2"),
        row(8, type="attachment", message=None, attachment={"type": "note"}, parentUuid=uuid_of(6)),
        answer(9, "of the agent", parentUuid=uuid_of(7), isSidechain=True, agentId="a2"),
        row(10, type="mode", uuid=None, message=None),
        answer(11, "second answer", parentUuid=uuid_of(8)),
    ]
)


@pytest.mark.parametrize("output", ["text", "markdown", "jsonl"])
def test_a_branch_that_was_rewound_is_shown_with_history_only(tmp_path: Path, output: str) -> None:
    path = write(tmp_path / f"{ID}.jsonl", BRANCHED)
    sent = shown(path, "--format", output)
    for word in ("first prompt", "first answer", "second prompt", "second answer"):
        assert word in sent, word
    assert "left" not in sent
    assert "left answer" in shown(path, "--format", output, "--history")
    assert "left answer" in shown(path, "--format", output, "--segment", "0")


def test_as_lines_what_a_resume_sends_is_its_rows_and_no_others(tmp_path: Path) -> None:
    path = write(tmp_path / f"{ID}.jsonl", BRANCHED)
    lines = BRANCHED.splitlines(keepends=True)
    assert shown(path, "--format", "jsonl") == decoded(b"".join(lines[n] for n in (0, 1, 5, 7, 10)))


def test_agents_rows_are_shown_where_they_stand_in_what_a_resume_sends(tmp_path: Path) -> None:
    path = write(tmp_path / f"{ID}.jsonl", BRANCHED)
    said = [
        line.removeprefix("> ")
        for line in shown(path, "--include", "sidechains").splitlines()
        if line and " · " not in line
    ]
    assert said == [
        "first prompt", "first answer", "second prompt", "to the agent", "of the agent",
        "second answer",
    ]  # fmt: skip
    assert "to the left agent" in shown(path, "--history", "--include", "sidechains")


def test_what_is_chosen_is_chosen_among_what_a_resume_sends(tmp_path: Path) -> None:
    path = write(tmp_path / f"{ID}.jsonl", BRANCHED)
    ended = piped("read", path, "--grep", "left")
    assert (ended.code, ended.out, ended.err) == (0, "", f"sessrotate: {NOTHING_SENT}\n")
    assert "left" in shown(path, "--grep", "left", "--history")
    assert shown(path, "--grep", "answer").count("segment 0") == 2
    assert "left" not in shown(path, "--brief")
    late = shown(path, "--since", "2026-03-01T10:00:02Z", "--until", "2026-03-01T10:00:06Z")
    assert [word in late for word in ("first prompt", "first answer", "second prompt")] == [
        False, True, True,
    ]  # fmt: skip
    ended = piped("read", path, "--since", uuid_of(3))
    assert (ended.code, "--history" in ended.err) == (2, True)


def test_what_only_an_agent_said_is_counted_where_it_is_not_shown(tmp_path: Path) -> None:
    path = write(tmp_path / f"{ID}.jsonl", BRANCHED)
    ended = piped("read", path, "--grep", "of the agent")
    hidden = "Hidden: 1 record of agents. --include sidechains shows them."
    assert (ended.out, ended.err) == ("", f"sessrotate: {NOTHING_SENT} {hidden}\n")
    assert shown(path, "--grep", "of the agent", "--include", "sidechains").count("agent") == 1
    assert "Hidden: 2 records of agents, 1 attachment." in piped("read", path).err


# ── choosing ─────────────────────────────────────────────────────────────────────────────────


def test_a_time_or_a_record_limits_what_is_shown(path: Path) -> None:
    prompted = json.loads(row(13))["uuid"].upper()
    limits = ("--since", "2026-03-01 11:00:13+01:00", "--until", prompted)
    lines = [line for line in shown(path, "--history", *limits).splitlines() if line]
    assert lines[1] == lines[-1] == "> second prompt"


def test_what_is_old_is_not_shown(path: Path) -> None:
    ended = piped("read", path, "--since", "2h")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"sessrotate: {NOTHING_SENT}\n"
    assert piped("read", path, "--since", "2h", "--quiet").err == ""
    assert "last answer" in shown(path, "--until", "2h")


def test_an_empty_result_says_what_is_hidden_and_how_to_see_it(tmp_path: Path) -> None:
    path = write(tmp_path / f"{ID}.jsonl", BRANCHED)
    ended = piped("read", path, "--history", "--grep", "of the agent")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == (
        "sessrotate: Nothing matches. Hidden: 1 record of agents. --include sidechains shows "
        "them.\n"
    )
    assert "of the agent" in shown(
        path, "--history", "--grep", "of the agent", "--include", "sidechains"
    )
    path.write_bytes(prompt(1, "caveat", isMeta=True))
    ended = piped("read", path, "--history")
    assert ended.err == (
        "sessrotate: There is nothing to show. Hidden: 1 record of the client. --include meta "
        "shows them.\n"
    )
    ended = piped("read", path, "--history", "--brief")
    assert ended.err == (
        "sessrotate: There is nothing to show. Without --brief, there may be more.\n"
    )


def test_a_record_that_never_comes_is_an_error(path: Path) -> None:
    for option in ("--since", "--until"):
        ended = piped("read", path, option, "00000000-0000-0000-0000-000000000000")
        assert ended.code == 2
        assert "--history" in ended.err


def test_a_search_names_segment_and_offset(path: Path) -> None:
    found = shown(path, "--history", "--grep", "(first|third) answer|bro.e")
    places = [
        tuple(map(int, line.split(" · ")[0].replace(",", "").split()[1::2]))
        for line in found.splitlines()
        if line.startswith("segment ")
    ]
    bodies = segments_of(DATA.replace(TORN, b"").replace(LATIN, b""))
    for segment, offset in places:
        line = bodies[segment][offset:].split(b"\n")[0]
        assert b" answer" in line or b"broke" in line
    assert [segment for segment, _ in places] == [0, 0, 1]
    assert "  it broke\n" in found


def test_a_search_of_lines_gives_the_lines(path: Path) -> None:
    found = shown(path, "--history", "--grep", "first answer|caf", "--format", "jsonl")
    (first,) = (line for line in DATA.splitlines(keepends=True) if b"first answer" in line)
    assert found == decoded(first + LATIN)


def test_markdown_is_utf8_and_complete(path: Path) -> None:
    ended = piped(
        "read", path, "--history", "--format", "markdown", env={"LC_ALL": "C"}, program=REAL
    )
    assert ended.code == 0
    for word in (
        "## 1. first prompt",
        "third answer",
        "Compaction 1",
        "20 B that are not a record",
    ):
        assert word in ended.out, word


# ── where it goes ────────────────────────────────────────────────────────────────────────────


def test_a_pager_shows_it_on_a_terminal_and_nowhere_else(path: Path) -> None:
    pager = {"PAGER": "echo 'in a pager'; cat"}
    assert on_terminal("read", path, env=pager).out.startswith("in a pager\n")
    assert "in a pager" not in piped("read", path, env=pager).out
    for none in ({"PAGER": ""}, {"PAGER": "cat"}, {"TERM": "dumb"}):
        ended = on_terminal("read", path, env=none)
        assert ended.code == 0
        assert "last answer" in ended.out


def test_less_is_the_pager_where_there_is_one(path: Path, tmp_path: Path) -> None:
    less = write(tmp_path / "bin" / "less", b'#!/bin/sh\necho "less $* LESS=$LESS"\ncat\n')
    less.chmod(0o755)
    with_less = {"PATH": f"{less.parent}{os.pathsep}{os.environ['PATH']}"}
    assert on_terminal("read", path, env=with_less).out.startswith("less -FRX LESS=FRX\n")
    without = {"PATH": str(tmp_path), "PYTHONHOME": ""}
    assert "last answer" in on_terminal("read", path, env=without, program=REAL).out


def test_a_pager_that_cannot_run_is_one_sentence(path: Path) -> None:
    ended = on_terminal("read", path, env={"PAGER": "/nonexistent/pager"})
    assert ended.code == 2
    assert "PAGER" in ended.err
    assert "Traceback" not in ended.err


def test_a_pager_that_is_left_ends_the_command_quietly(tmp_path: Path) -> None:
    path = write(tmp_path / f"{ID}.jsonl", session(1, rows=200, padding=10) * 1)
    big = write(tmp_path / "big.jsonl", b"".join(prompt(n, "x" * 9000) for n in range(300)))
    for name in (path, big):
        ended = on_terminal("read", name, env={"PAGER": "head -n 1"})
        assert (ended.code, ended.err) == (0, ""), ended


def test_a_bar_appears_where_the_result_goes_into_a_file(path: Path, tmp_path: Path) -> None:
    python, _, program = patched("import sessrotate.cli.streams as s; s.PATIENCE = 0.0")
    for where, is_there in (('> "$3"', True), ('--quiet > "$3"', False), ("| cat", False)):
        line = f'"$0" -c "$1" read "$2" --history {where}'
        out = tmp_path / "out"
        ended = on_terminal("-c", line, python, program, path, out, program=("/bin/sh",))
        assert ended.code == 0
        assert ("Reading" in ended.err) is is_there, where
    assert (tmp_path / "out").read_text().endswith("last answer\n")


def test_an_interrupt_is_the_pagers(path: Path) -> None:
    ended = on_terminal("read", path, env={"PAGER": "kill -INT $PPID; cat"}, program=REAL)
    assert (ended.code, ended.err) == (0, "")
    assert "last answer" in ended.out


def test_the_first_line_comes_before_the_rest_is_read(tmp_path: Path) -> None:
    data = b"".join(prompt(n, "a" * 2000) for n in range(2000))
    path = write(tmp_path / f"{ID}.jsonl", data)
    program = patched(
        "import sessrotate.reading.session as s, sys\n"
        "history = s.Session.history\n"
        "def watched(self):\n"
        "    for n, record in enumerate(history(self)):\n"
        "        if n == 5: sys.exit(9)\n"
        "        yield record\n"
        "s.Session.history = watched"
    )
    ended = piped("read", path, "--history", program=program)
    assert ended.code == 9
    assert ended.out.startswith("You · ")


def test_colours_are_for_terminals_that_want_them(path: Path) -> None:
    plain = {"PAGER": "cat"}
    assert has_colour(on_terminal("read", path, env=plain).out)
    for without in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal("read", path, env={**plain, **without}).out
    assert "\x1b" not in piped("read", path).out
    drawn = without_ansi(on_terminal("read", path, env=plain, columns=60).out)
    assert "── Compaction 1 · 2026-03-01 10:00:15 · manual · 12,345… ───" in drawn


def test_a_session_cannot_command_the_terminal(tmp_path: Path) -> None:
    evil = "a\x1b]0;title\x07 \x1b[2J\r\x9b31m \u202e"
    rows = [
        prompt(1, "ok"),
        answer(2, evil, call(evil, "1", file_path=evil)),
        result(3, "1", evil, is_error=True),
        answer(4, call("x", "2", other=evil), model=evil),
        prompt(5, "surrogate").replace(b"surrogate", b"\\ud800"),
        prompt(6, "at what time", timestamp=evil),
        evil.encode() + b"\xff\n",
    ]
    path = write(tmp_path / f"{ID}.jsonl", b"".join(rows))
    for options in ([], ["--include", "tools"], ["--grep", "."], ["--format", "markdown"]):
        ended = on_terminal("read", path, *options, env={"PAGER": "cat"})
        assert ended.code == 0, ended
        assert not set(without_ansi(ended.out)) & set("\x07\x1b\x9b\u202e\r"), options


AGENTS = sorted((Path(__file__).parents[2] / "fixtures" / "claude").rglob("agent-*.jsonl"))


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: f"{path.parents[-5].name}-{path.stem}")
def test_of_an_agents_transcript_all_that_was_said_is_shown(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    asked = next(row["message"]["content"] for row in rows if row["type"] == "user")
    for options in ((), ("--history",)):
        said = shown(path, *options)
        assert asked in said
        assert "To the agent" in said
        assert "\nAgent " in said
    lines = shown(path, "--format", "jsonl").splitlines()
    assert {json.loads(line)["uuid"] for line in lines} <= {row.get("uuid") for row in rows}
    assert len(lines) > 1
