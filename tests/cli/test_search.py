"""`sessrotate search`: what is found in all sessions, how it is shown, and how it ends."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from sessrotate.cli import streams
from support import homes
from support.command_line import (
    COMMAND,
    ENVIRONMENT,
    ID,
    REAL,
    SECONDS,
    assert_one_sentence,
    boundary,
    called,
    has_colour,
    on_terminal,
    piped,
    raw_controls,
    without_ansi,
    write,
)
from support.homes import Home
from support.limits import MIB, weighed
from support.talks import answer, call, prompt, talk

OTHER = "55555555-0000-4000-a000-000000000002"
NEWER = "66666666-0000-4000-a000-000000000003"
DATA = talk() + boundary(60) + prompt(61, "the needle\nin the tail") + answer(62, "no")


def later(data: bytes, session: str) -> bytes:
    """Return a session of another id, a day younger."""
    return data.replace(ID.encode(), session.encode()).replace(b"2026-03-01", b"2026-03-02")


def hits(*arguments: str) -> list[dict[str, object]]:
    ended = called("search", "--json", *arguments)
    assert ended.code in {0, 1}, ended
    return [json.loads(line) for line in ended.out.splitlines()]


def commands(text: str) -> list[list[str]]:
    return [
        shlex.split(line.partition("sessrotate ")[2])
        for line in without_ansi(text).splitlines()
        if " · sessrotate read " in line
    ]


# ── where it is looked for ───────────────────────────────────────────────────────────────────


def test_what_an_agent_said_is_found_and_shown_by_its_path(home: Home) -> None:
    said = b"".join(
        json.dumps({**json.loads(line), "isSidechain": True, "agentId": "a1"}).encode() + b"\n"
        for line in (prompt(71, "look into it"), answer(72, "a thimble in the agent"))
    )
    path = write(home.live.with_suffix("") / "subagents" / "agent-a1.jsonl", said)
    (hit,) = hits("thimble")
    assert (hit["session"], hit["text"]) == (str(path), "a thimble in the agent")
    ended = called("search", "thimble")
    (command,) = commands(ended.out)
    assert command[:2] == ["read", str(path)]
    assert "a thimble in the agent" in called(*command).out
    home.append(
        prompt(73, "a thimble?")
        + prompt(74, "a thimble of the client", isMeta=True)
        + prompt(75, "find a thimble", isSidechain=True, agentId="a1")
    )
    home.rotate()
    assert len(hits("thimble")) == 4
    for options in ((), ("--raw",)):
        assert len(hits("thimble", "--who", "you", *options)) == 1
    by_agents = {str(hit["text"]) for hit in hits("thimble", "--who", "agent")}
    assert by_agents == {"a thimble in the agent", "find a thimble"}
    assert_one_sentence(called("search", "x", "--who", "me"), 2)


# ── what is shown ────────────────────────────────────────────────────────────────────────────


def test_hits_stand_below_their_session_each_with_the_command_that_shows_it(home: Home) -> None:
    ended = called("search", "needle")
    offset = len(boundary(60))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        f"{ID[:8]} · first prompt · {homes.PROJECT} · 2026-03-01 10:01:02\n"
        f"  You · 2026-03-01 10:01:01 · sessrotate read {ID[:8]} --at 2:{offset}:4\n"
        "    the needle\n"
        "\n"
        "1 hit in 1 of 1 session.\n"
    )
    assert home.live.exists()


@pytest.mark.usefixtures("home")
def test_json_is_an_object_a_line() -> None:
    assert hits("in the") == [
        {
            "session": ID,
            "client": "claude",
            "project": homes.PROJECT,
            "title": "first prompt",
            "segment": 2,
            "offset": len(boundary(60)),
            "character": 11,
            "time": "2026-03-01T10:01:01.000Z",
            "who": "You",
            "text": "in the tail",
        }
    ]


def test_lines_around_a_hit_are_shown_with_context(home: Home) -> None:
    text = "\n".join(f"line {n}" for n in range(20))
    home.append(prompt(70, text))
    shown = called("search", "line (3|5|15)$", "-C", "1").out.split("\n")[2:]
    assert shown == [
        *("      line 2", "    > line 3", "      line 4", "    > line 5", "      line 6", "    --"),
        *("      line 14", "    > line 15", "      line 16", ""),
        *("1 hit in 1 of 1 session.", ""),
    ]


def test_a_match_is_marked_on_a_terminal_unless_colours_are_not_wanted(home: Home) -> None:
    shown = on_terminal("search", "needle", env=home.env).out
    assert "the \x1b[1;31mneedle\x1b[0m\n" in shown
    assert not has_colour(on_terminal("search", "needle", env={**home.env, "NO_COLOR": "1"}).out)
    assert not has_colour(called("search", "needle").out)
    assert without_ansi(shown) == called("search", "needle").out


def test_a_session_cannot_command_a_terminal(home: Home) -> None:
    home.append(prompt(70, "x\x1b]0;title\x07 \u202eneedle\x9b31m\r\nneedle\ttab"))
    home.append(b'{"torn \x1b[2J needle\n')
    ended = on_terminal("search", "needle", env={**home.env, "NO_COLOR": "1"})
    assert raw_controls(ended.out) == set()
    assert "\u202e" not in ended.out
    assert "needle tab" in ended.out
    lines = called("search", "--json", "needle").out
    assert lines.isascii()
    assert raw_controls(lines) == set()


# ── what is searched ─────────────────────────────────────────────────────────────────────────


def test_what_people_see_is_searched_and_with_raw_what_is_in_the_file(home: Home) -> None:
    home.append(answer(70, call("Bash", "t9", command='echo "größe"\nls')))
    assert len(hits('echo "größe"$')) == 1
    assert hits("tool_use") == []
    raw = hits("--raw", "-F", 'echo \\"größe\\"\\nls')
    assert [hit["text"] for hit in raw] != []
    (command,) = commands(called("search", "--raw", "-F", '\\"größe').out)
    assert called(*command).out.encode() == answer(
        70, call("Bash", "t9", command='echo "größe"\nls')
    )


def test_a_command_is_found_as_it_was_typed(home: Home) -> None:
    tags = "<command-name>/review</command-name>\n<command-args>the walrus</command-args>"
    home.append(prompt(70, tags) + prompt(71, "<bash-input>ls -la</bash-input>"))
    (command,) = hits("-F", "/review the walrus")
    assert command["text"] == "/review the walrus"
    assert [each["text"] for each in hits("-F", "!ls -la")] == ["!ls -la"]
    assert hits("-F", "<command-args>") == []
    assert len(hits("-F", "<command-args>the", "--raw")) == 1
    ended = called("read", ID, "--history", "--grep", "^/review the")
    assert "/review the walrus" in ended.out


def test_sessions_are_chosen_by_project_client_and_time(home: Home) -> None:
    write(home.config / "projects" / "-srv-other" / f"{NEWER}.jsonl", later(DATA, NEWER))
    assert [hit["session"] for hit in hits("needle", "--project", homes.PROJECT)] == [ID]
    assert [hit["session"] for hit in hits("needle", "--since", "2026-03-02")] == [NEWER]
    early = hits("prompt|needle", "--since", "2026-03-01T10:00:14Z", "--project", homes.PROJECT)
    assert [hit["text"] for hit in early] == ["the needle"]
    assert hits("needle", "--client", "codex") == []
    assert_one_sentence(called("search", "x", "--client", "nobody"), 2)
    for limit in ("--since", "--until"):
        assert_one_sentence(called("search", "x", limit, "yesteryear"), 2)


def test_a_record_that_stands_twice_is_shown_once(home: Home) -> None:
    home.append(prompt(61, "the needle\nin the tail", slug="copied"))
    assert len(hits("needle")) == 1
    before = hits("prompt|answer")
    home.rotate()
    assert hits("prompt|answer") == before


def test_what_archive_put_away_is_found_and_shown(home: Home) -> None:
    home.rotate()
    before = hits("answer|needle")
    homes.another(home, OTHER, DATA)
    home.age()
    for path in home.live.parent.glob("*.jsonl"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    ended = called("archive", ID)
    assert ended.code == 0, ended
    assert not home.live.exists()
    assert [hit for hit in hits("answer|needle") if hit["session"] == ID] == before
    (command,) = [each for each in commands(called("search", "needle").out) if ID[:8] in each]
    assert "the needle" in called(*command).out


def test_pruned_segments_are_said_not_to_be_searched(home: Home) -> None:
    home.rotate()
    assert called("prune", ID, "--keep-last", "1", "--yes").code == 0
    ended = called("search", "first prompt|needle")
    assert ended.code == 0
    assert "1 pruned segment was not searched" in ended.err
    assert "the needle" in ended.out


# ── words, and what is printed of them ───────────────────────────────────────────────────────


def test_names_only_and_counts(home: Home) -> None:
    write(home.live.with_name(f"{NEWER}.jsonl"), later(DATA + prompt(70, "a needle"), NEWER))
    ended = called("search", "-l", "needle")
    assert (ended.code, ended.out, ended.err) == (0, f"{NEWER[:8]}\n{ID[:8]}\n", "")
    ended = called("search", "-c", "needle")
    assert ended.out == (
        f"     2 · {NEWER[:8]} · first prompt · {homes.PROJECT} · 2026-03-02 10:01:10\n"
        f"     1 · {ID[:8]} · first prompt · {homes.PROJECT} · 2026-03-01 10:01:02\n"
        "\n"
        "3 hits in 2 of 2 sessions.\n"
    )
    about = {"client": "claude", "project": homes.PROJECT, "title": "first prompt"}
    assert hits("-l", "needle") == [{"session": each, **about} for each in (NEWER, ID)]
    assert [hit["hits"] for hit in hits("-c", "needle")] == [2, 1]
    assert_one_sentence(called("search", "-l", "-c", "x"), 2)


def test_it_stops_where_it_is_asked_to(home: Home) -> None:
    write(home.live.with_name(f"{NEWER}.jsonl"), later(DATA + prompt(70, "a needle"), NEWER))
    told = "2 hits in 1 session; stopped at 2, there may be more."
    assert called("search", "needle", "-m", "2").out.split("\n")[-2] == told
    assert len(hits("needle", "-m", "2")) == 2
    assert called("search", "needle", "-l", "-m", "1").out == f"{NEWER[:8]}\n"
    assert [hit["hits"] for hit in hits("needle", "-c", "-m", "1")] == [2]
    assert "3 hits in 2 of 2 sessions.\n" in called("search", "needle", "-m", "9").out
    assert called("search", "needle", "-m", "0").code == 2


def test_one_session_is_searched_with_its_agents(home: Home, tmp_path: Path) -> None:
    newer = write(home.live.with_name(f"{NEWER}.jsonl"), later(DATA, NEWER))
    said = json.dumps({**json.loads(prompt(71, "needle too")), "isSidechain": True}).encode()
    agents = write(home.live.with_suffix("") / "subagents" / "agent-a1.jsonl", said + b"\n")
    both = {ID, str(agents)}
    for named in (ID, ID[:6], str(home.live)):
        assert {hit["session"] for hit in hits("needle", "--session", named)} == both
    assert [hit["session"] for hit in hits("needle", "--session", str(agents))] == [str(agents)]
    assert [hit["session"] for hit in hits("needle", "--session", NEWER)] == [NEWER]
    home.rotate()
    home.live.unlink()
    for named in (ID, str(home.archive)):
        found = hits("first prompt", "--session", named)
        assert [hit["session"] for hit in found] == [ID], named
    outside = write(tmp_path / "elsewhere" / "copy.jsonl", newer.read_bytes())
    (command,) = commands(called("search", "needle", "--session", str(outside)).out)
    assert command[:2] == ["read", str(outside)]
    assert "> the needle" in called(*command).out
    assert_one_sentence(called("search", "needle", "--session", "0000"), 2)


@pytest.mark.parametrize("typed", ["café", "cafe\u0301"])
def test_accents_are_found_however_they_are_written(home: Home, typed: str) -> None:
    folder = home.config / "projects" / "-srv-Cafe--U-ber"
    told = {"cwd": "/srv/Cafe\u0301-U\u0308ber"}
    rows = prompt(1, "a café in Zürich", **told) + prompt(
        2, "Re\u0301sume\u0301-cafe\u0301", **told
    )
    write(folder / f"{NEWER}.jsonl", later(rows, NEWER))
    assert len(hits(typed)) == 2
    assert len(hits("-F", typed, "-i")) == 2
    assert len(hits(f"{typed}$")) == 1
    assert len(hits(typed, "--raw")) == 1
    for project in ("Café-Über", "Cafe\u0301-U\u0308ber", "/srv/Café-Über"):
        assert len(hits(typed, "--project", project)) == 2
        assert NEWER in called("list", "--json", "--project", project).out


# ── how it ends ──────────────────────────────────────────────────────────────────────────────


def test_nothing_found_is_exit_code_1_and_no_word(home: Home) -> None:
    ended = called("search", "nowhere to be found")
    assert (ended.code, ended.out, ended.err) == (1, "", "")
    nowhere = {**home.env, "CLAUDE_CONFIG_DIR": "/nonexistent"}
    assert piped("search", "needle", env=nowhere).code == 1


@pytest.mark.usefixtures("home")
def test_a_terminal_is_told_how_far_it_is_and_that_nothing_was_found(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = on_terminal("search", "nowhere", env=home.env)
    assert (ended.code, ended.out, ended.err) == (
        1,
        "",
        "sessrotate: Nothing found in 1 session.\n",
    )
    monkeypatch.setattr(streams, "PATIENCE", 0)
    ended = on_terminal("search", "nowhere", env=home.env)
    shown = "\rSearching: 100 %, 0 hits\x1b[K\r\x1b[K"
    assert ended.err == f"{shown}sessrotate: Nothing found in 1 session.\n"
    ended = on_terminal("search", "needle", env={**home.env, "NO_COLOR": "1"})
    assert ended.err == shown.replace("0 hits", "1 hit")
    assert ended.out == called("search", "needle").out
    assert "1 of 1 session" in on_terminal("search", "-l", "needle", env=home.env).err
    assert called("search", "nowhere").err == ""


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "options", [("--project", "/nope"), ("--client", "codex"), ("--since", "2027-01-01")]
)
def test_options_that_leave_nothing_to_be_found_are_named(options: tuple[str, ...]) -> None:
    ended = called("search", "needle", *options)
    assert (ended.code, ended.out) == (1, "")
    said = "Nothing found in 0 of 1 session: the options leave the others out."
    assert ended.err == f"sessrotate: {said}\n"


def test_a_damaged_session_is_named_and_the_rest_is_searched(home: Home) -> None:
    home.rotate()
    homes.another(home, OTHER, later(DATA, OTHER))
    broken = home.segment(0)
    homes.rewrite(broken, homes.content(broken).replace(b"first answer", b"FIRST answer"))
    write(home.live.with_name("77777777-0000-4000-a000-000000000009.jsonl"), b"no session\n" * 9)
    ended = called("search", "needle")
    assert ended.code == 74
    assert [line.split(" · ")[0] for line in ended.out.split("\n") if "first" in line] == [
        OTHER[:8], ID[:8],
    ]  # fmt: skip
    assert "Segment 0" in ended.err
    assert "77777777" in ended.err


def test_ctrl_c_ends_it_with_130(home: Home) -> None:
    home.append(prompt(100, "a" * 30 + "b"))
    running = subprocess.Popen(
        [*REAL, "search", "needle|(a|aa)+$"],
        env={**ENVIRONMENT, **home.env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdout is not None
    assert "first prompt" in running.stdout.readline()  # streamed: it is still at work
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=SECONDS)
    assert (running.returncode, said) == (130, "sessrotate: Interrupted.\n")


# ── at a place ───────────────────────────────────────────────────────────────────────────────


def test_read_shows_all_from_a_place_on(home: Home) -> None:
    whole = called("read", ID, "--history").out
    second = DATA.index(b"second prompt")
    start = DATA.rindex(b"\n", 0, second) + 1
    for _ in range(2):
        shown = called("read", ID, "--at", f"0:{start}").out
        assert whole.endswith(shown)
        assert shown.startswith("You · 2026-03-01 10:00:13\n> second prompt\n")
        assert called("read", ID, "--at", f"0:{second}").out == shown
        raw = called("read", ID, "--at", f"0:{start}", "--format", "jsonl").out
        assert raw.encode() == DATA[start:]
        home.rotate()


# ── many bytes ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("word", ["needle", "x{3}y"])
def test_two_processes_find_what_one_finds_in_bounded_memory(home: Home, word: str) -> None:
    rows = [
        prompt(n, f"{n} " + "word " * 2000 + ("needle" if n % 50 == 0 else "")) for n in range(6000)
    ]
    rows.insert(3000, boundary(9000))
    long = prompt(9001, "z" * (40 * MIB) + "needle")
    path = write(home.live.with_name(f"{NEWER}.jsonl"), later(b"".join([*rows, long]), NEWER))
    assert path.stat().st_size > 64 * MIB
    here = hits(word)  # beside the threads of this process, nothing is forked
    program = (
        str(shutil.which("env")),
        *(f"{name}={value}" for name, value in home.env.items()),
        COMMAND,
    )
    done = weighed("search", "--json", word, program=program)
    assert [json.loads(line) for line in done.out.splitlines()] == here
    assert done.peak_mib <= 64
    assert "1 line longer than 8 MiB" in done.err
    assert len(here) == (121 if word == "needle" else 0)
