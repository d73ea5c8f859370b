"""`sessrotate list` as users meet it: on a terminal, in a pipe, as JSON, on an empty machine."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import jsonschema
import pyte
import pytest

from sessrotate import clients, find, render
from sessrotate.reports import discovery
from sessrotate.retention import put_away
from sessrotate.system import in_use
from support import command_line, homes
from support.command_line import ID, assert_one_sentence, called
from support.homes import Home

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "schema" / "list.json").read_text())
DATA = command_line.session(boundaries=3)
OTHER = "0ddba11a-0000-4000-a000-00000000000a"
LARGE = "1a49e000-0000-4000-a000-00000000000b"

HOSTILE = (
    "\x1b[31mred\x1b]0;t\x07 \x9b2J \u202egnp \ud800 a\tb\nc 日本語 e\u0301 "
    "👩\u200d👩 [bold]x[/bold]"
)


def add(home: Home, session: str, said: str = "Hello", size: int = 0, **fields: Any) -> Path:
    """Add a session in which a user said something; return its live file."""
    row = {
        "type": "user",
        "sessionId": session,
        "uuid": session,
        "cwd": "/home/somebody/app",
        "timestamp": "2026-03-01T12:00:00.000Z",
        "message": {"content": said},
        **fields,
    }
    path = home.live.with_name(f"{session}.jsonl")
    rows = [row, {"pad": "x" * size, "timestamp": row["timestamp"]}]
    lines = [json.dumps(each, separators=(",", ":")) for each in rows]
    return command_line.write(path, ("\n".join(lines) + "\n").encode())


def listed(*arguments: str) -> list[dict[str, Any]]:
    ended = called("list", "--json", *arguments)
    assert ended.code == 0, ended
    document = ended.document()
    jsonschema.validate(document, SCHEMA)
    found: list[dict[str, Any]] = document
    return found


def table(text: str) -> list[str]:
    """Return the lines of the table: they stand behind the total and an empty line."""
    return text.split("\n\n")[1].splitlines()


def ids(*arguments: str) -> list[str]:
    return [each["session"] for each in listed(*arguments)]


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────


def test_json_says_what_is_on_the_disk(home: Home) -> None:
    path = add(home, OTHER, "Mend it", gitBranch="main")
    home.rotate()
    os.utime(path, (1_772_000_000.5, 1_772_000_000.5))
    (path.with_suffix("") / "tool-results").mkdir(parents=True)
    (path.with_suffix("") / "tool-results" / "a.txt").write_bytes(b"x" * 50)
    found = {each["session"]: each for each in listed()}
    assert found[OTHER] == {
        "session": OTHER,
        "client": "claude",
        "project": "/home/somebody/app",
        "path": str(path),
        "bytes": path.stat().st_size,
        "archived_bytes": 0,
        "boundaries": None,
        "live_tail_bytes": None,
        "modified": "2026-02-25T06:13:20.500Z",
        "running": False,
        "restored": False,
        "live": True,
        "put_away": False,
        "title": "Mend it",
        "title_source": "first prompt",
        "branch": "main",
        "started": "2026-03-01T12:00:00.000Z",
        "ended": "2026-03-01T12:00:00.000Z",
        "segments": 0,
        "archived_disk_bytes": 0,
        "archive_missing": False,
        "disk_bytes": homes.on_disk(path) + homes.on_disk(path.with_suffix("")),
        "gain_bytes": None,
        "waiting_disk_bytes": 0,
        "side_bytes": 50,
        "standing": "session",
        "continues": None,
    }
    rotated = found[ID]
    assert rotated["bytes"] == home.live.stat().st_size
    assert (rotated["segments"], rotated["boundaries"]) == (3, None)
    (deep,) = (each for each in listed("--deep") if each["session"] == ID)
    assert deep["archived_bytes"] + deep["live_tail_bytes"] == len(DATA)
    assert (deep["segments"], deep["boundaries"]) == (3, 3)


def test_every_kind_of_session_keeps_to_the_schema(home: Home) -> None:
    folder = home.live.parent
    for number in range(3):
        data = command_line.session(boundaries=3, padding=number * 30_000)
        command_line.write(folder / f"{number}{ID[1:]}.jsonl", data)
    home.rotate()
    home.live.unlink()
    command_line.write(folder / "empty.jsonl", b"")
    command_line.write(folder / "torn.jsonl", DATA[:100])
    add(home, OTHER, HOSTILE, cwd=HOSTILE, gitBranch="\x1b")
    put_away.put_away(
        next(each.place for each in discovery.sessions() if each.place and each.info.id == OTHER), 1
    )
    add(home, LARGE, "x" * 100_000)
    home.run_by_a_client(LARGE)
    assert ", 1 running" in called("list").out
    for arguments in ((), ("--deep",), ("--hidden",), ("--deep", "--hidden")):
        assert {OTHER, LARGE, ID} <= {*ids(*arguments)}
    assert "empty" in ids("--hidden")


def test_the_schema_refuses_what_is_not_so(home: Home) -> None:
    (entry,) = listed()
    for name, value in (("bytes", -1), ("modified", "now"), ("running", None), ("more", 1)):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate([{**entry, name: value}], SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([{k: v for k, v in entry.items() if k != "path"}], SCHEMA)
    assert home.live.exists()


# ── which, in which order ────────────────────────────────────────────────────────────────────


def test_sessions_come_in_the_order_that_is_wanted(home: Home) -> None:
    home.rotate()
    add(home, OTHER, "a first title", timestamp="2026-02-01T12:00:00.000Z")
    add(home, LARGE, "B second title", size=100_000, timestamp="2026-03-02T12:00:00.000Z")
    homes.another(home, "c01d0000-0000-4000-a000-00000000000c", DATA)
    found = {each["session"]: each for each in listed()}
    disk = sorted(found, key=lambda each: (-found[each]["disk_bytes"], each))
    assert ids("--sort", "disk") == disk
    assert ids("--sort", "date")[0] == LARGE
    assert ids("--sort", "date")[-1] == OTHER
    assert ids("--sort", "name")[:2] == [OTHER, LARGE]
    assert ids("--sort", "size") == ids()
    ended = called("list", "--sort", "length")
    assert ended.code == 2
    assert "size, disk, gain, date, name" in ended.err


def test_a_session_that_was_put_away_counts_with_its_archive(home: Home) -> None:
    add(home, OTHER)
    path = add(home, LARGE, size=3_000_000)
    with path.open("ab") as file:
        file.write(b"".join(json.dumps({"n": os.urandom(500).hex()}).encode() for _ in range(999)))
    assert called("archive", LARGE).code == 0
    found = {each["session"]: each for each in listed()}
    assert (found[LARGE]["bytes"], found[LARGE]["live"]) == (0, False)
    assert found[LARGE]["archived_disk_bytes"] > 100_000
    assert ids() == [LARGE, ID, OTHER]
    assert ids("--min-size", "100K") == [LARGE]
    assert [each["session"] for each in listed() if each["put_away"]] == [LARGE]
    said = called("list").out
    assert " 1 put away," in said.splitlines()[0]
    assert re.search(rf"^{LARGE[:8]}\S* +put away ", said, re.MULTILINE)


def test_a_live_file_that_is_gone_is_not_called_put_away(home: Home) -> None:
    home.rotate()
    home.live.unlink()
    (found,) = listed()
    assert (found["live"], found["put_away"]) == (False, False)
    assert re.search(rf"^{ID[:8]}\S* +gone ", called("list").out, re.MULTILINE)


def test_what_rotating_gains_is_known_by_a_scan(home: Home) -> None:
    data = command_line.session(boundaries=3, padding=60_000)
    home.live.write_bytes(data)
    add(home, OTHER)
    gains = {each["session"]: each["gain_bytes"] for each in listed()}
    assert gains == {ID: None, OTHER: None}
    deep = {each["session"]: each["gain_bytes"] for each in listed("--deep")}
    assert deep[OTHER] == 0
    planned = called("rotate", ID, "--dry-run", "--json").document()
    assert deep[ID] == planned["disk"]["bytes_gained"]
    heading, row, _ = table(called("list", "--deep").out)
    assert "gain" in heading
    assert render.size(deep[ID]) in row
    assert ids("--deep", "--sort", "gain") == [ID, OTHER]
    home.rotate()
    assert {each["session"]: each["gain_bytes"] for each in listed("--deep")}[ID] == 0


def test_a_rotated_session_whose_archive_is_gone_is_marked(home: Home) -> None:
    add(home, OTHER)
    home.rotate()
    shutil.rmtree(home.config / "sessrotate")
    ended = called("list", "--json")
    found = {each["session"]: each["archive_missing"] for each in ended.document()}
    assert found == {ID: True, OTHER: False}
    assert ended.code == 1
    assert called("list", "--project", "app").code == 0  # of what is listed, nothing is missing
    ended = called("list")
    assert ended.code == 1
    said = ended.out
    assert "1 with a missing archive" in said.split("\n")[0]
    (row,) = (line for line in table(said) if line.startswith(ID[:8]))
    assert "  missing  " in row


def test_options_choose(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recent = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - 3600))
    (tmp_path / "app").mkdir()
    add(home, OTHER, timestamp=recent, cwd=str(tmp_path / "app"))
    add(home, LARGE, size=100_000)
    assert ids("--min-size", "50K") == [LARGE]
    assert ids("--newer-than", "2h") == [OTHER]
    assert OTHER not in ids("--older-than", "2h")
    assert ids("--older-than", "30m", "--newer-than", "1d") == [OTHER]
    assert ids("--project", "/home/somebody/app") == [LARGE]
    assert ids("--project", "app") == [LARGE, OTHER]
    assert ids("--project", "home-somebody") == []
    monkeypatch.chdir(tmp_path / "app")
    assert ids("--project", ".") == [OTHER]
    assert ids("--project", "../app/") == [OTHER]
    assert ids("--client", "claude") == ids()


@pytest.mark.usefixtures("home")
def test_what_is_shown_of_files_that_share_a_uuid_finds_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_SESSIONS_DIR", str(tmp_path / "gemini"))
    chats = tmp_path / "gemini" / "project" / "chats"
    chats.mkdir(parents=True)
    head = {"projectHash": "0" * 64, "startTime": "2026-03-01T12:00:00.000Z", "kind": "main"}
    said = {"id": "1", "timestamp": head["startTime"], "type": "user", "content": [{"text": "Hi"}]}
    for name, uuid in (("52-7f04451b", 7), ("53-7f04451b", 7), ("52-9fb551bb", 9)):
        rows = [{"sessionId": f"{name[3:]}-000{uuid}", **head}, said]
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (chats / f"session-2026-03-01T12-{name}.jsonl").write_text(lines)
    shown = table(called("list", "--client", "gemini").out)[1:]
    found = {find.path_of(line.split()[0]) for line in shown}
    assert found == {*chats.iterdir()}


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("is_enabled", [True, False])
def test_garbage_is_collected_afterwards_as_before(
    monkeypatch: pytest.MonkeyPatch, is_enabled: bool
) -> None:
    meanwhile, real = list[bool](), in_use.written

    def asking(files: set[tuple[int, int]]) -> set[tuple[int, int]]:
        meanwhile.append(gc.isenabled())
        return real(files)

    monkeypatch.setattr(in_use, "written", asking)
    (gc.enable if is_enabled else gc.disable)()
    try:
        assert called("list").code == 0
        assert (meanwhile, gc.isenabled()) == ([False], is_enabled)
    finally:
        gc.enable()


# ── people ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("columns", [20, 80, 160])
def test_on_a_terminal_each_session_is_one_line_that_fits(home: Home, columns: int) -> None:
    for number in range(5):
        add(home, f"{number}{OTHER[1:]}", f"{number} {HOSTILE} {'word ' * 40}", cwd=HOSTILE * 3)
    home.rotate()
    ended = command_line.on_terminal("list", env={**home.env, "PAGER": "cat"}, columns=columns)
    assert (ended.code, ended.err) == (0, "")
    screen = pyte.Screen(columns, 30)
    pyte.Stream(screen).feed(ended.out.replace("\n", "\r\n"))
    shown = [line.rstrip() for line in screen.display if line.strip()]
    assert shown[0].startswith("6 sessions:")
    shown = shown[shown.index(next(line for line in shown if line.startswith("session"))) :]
    starts = [f"{number}{OTHER[1:8]}" for number in range(5)]
    assert sorted(line[:8] for line in shown[1:7]) == sorted([*starts, ID[:8]])
    assert len(shown) == 7
    if columns >= 80:
        assert all(" ago" in line for line in shown[1:7])


def test_an_empty_machine_is_told_where_was_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "nothing"))
    ended = called("list")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("There are no sessions in ")
    assert str(tmp_path / "nothing" / "projects") in ended.err
    assert called("list", "--json").document() == []


def test_a_filter_that_leaves_nothing_says_what_there_would_be(home: Home) -> None:
    ended = called("list", "--min-size", "9T")
    assert (ended.code, ended.out) == (0, "")
    assert "1 session would be listed." in ended.err
    assert home.live.exists()


# ── trouble ──────────────────────────────────────────────────────────────────────────────────


def test_what_cannot_be_read_is_told_and_the_rest_is_listed(home: Home) -> None:
    add(home, OTHER)
    broken = home.live.with_name("0bad0000.jsonl")
    broken.symlink_to(home.live.with_name("loop.jsonl"))
    os.mkfifo(home.live.with_name("pipe.jsonl"))
    home.live.with_name(f"{LARGE}.jsonl").mkdir()
    ended = called("list")
    assert ended.code == 0
    assert {line.split()[0] for line in table(ended.out)[1:]} == {ID[:8], OTHER[:8]}


def test_a_damaged_archive_is_told_on_stderr_and_listed(home: Home) -> None:
    home.rotate()
    (home.archive / "manifest.json").write_bytes(b"{}")
    ended = called("list", "--json")
    (found,) = ended.document()
    assert (found["archived_bytes"], found["boundaries"]) == (None, None)
    assert ended.err.count("\n") == 1
    assert str(home.archive) in ended.err


def test_a_deep_list_shows_what_a_cheap_one_leaves_open(home: Home) -> None:
    home.live.write_bytes(command_line.session(boundaries=3, padding=60_000))
    assert [each["boundaries"] for each in listed()] == [None]
    assert [each["boundaries"] for each in listed("--deep")] == [3]
    ended = command_line.on_terminal(
        "list", "--deep", env={**home.env, "PAGER": "cat"}, columns=160
    )
    assert "compactions" in ended.out


# ── files as people really have them ─────────────────────────────────────────────────────────


# anthropics/claude-code #40309: rows that were written with spaces.
def test_rows_with_spaces_say_what_rows_without_say(home: Home) -> None:
    path = add(home, OTHER, "Mend it", gitBranch="main")
    found = {each["session"]: each for each in listed()}[OTHER]
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    spaced = {each["session"]: each for each in listed()}[OTHER]
    sizes = {"bytes", "live_tail_bytes", "modified", "disk_bytes"}
    assert {name: spaced[name] for name in spaced.keys() - sizes} == {
        name: found[name] for name in found.keys() - sizes
    }
    assert (spaced["project"], spaced["branch"]) == ("/home/somebody/app", "main")
    assert OTHER in ids("--project", "app")


AGES: dict[str, dict[str, Any]] = {
    "spaced": {"timestamp": "2026-03-01T12:00:00.000Z", "separators": (", ", ": ")},
    "in another zone": {"timestamp": "2026-03-01T20:00:00.000+08:00"},
    "nested": {
        "timestamp": "2026-03-01T12:00:00.000Z",
        "toolUseResult": {"timestamp": "2099-01-01T00:00:00.000Z"},
    },
}


@pytest.mark.parametrize("case", AGES)
def test_what_is_old_is_the_same_for_list_and_archive(home: Home, case: str) -> None:
    """The time of the last record decides, to the second, in all of them."""
    members = dict(AGES[case])
    separators = members.pop("separators", (",", ":"))
    path = add(home, OTHER, "Mend it", **members)
    rows = [json.loads(line) for line in path.read_bytes().splitlines()[:1]]
    path.write_text("".join(json.dumps(row, separators=separators) + "\n" for row in rows))
    home.live.unlink()
    written = 1_772_366_400  # 2026-03-01T12:00:00Z
    age = int(time.time()) - written
    for wanted, seconds in (([OTHER], age - 120), ([], age + 120)):
        older = f"{seconds // 60}m"
        assert ids("--older-than", older) == wanted
        told = called("archive", "--older-than", older, "--dry-run")
        assert (OTHER[:8] in told.out) is bool(wanted), told
    assert listed()[0]["ended"] == "2026-03-01T12:00:00.000Z"


def test_archive_takes_what_list_shows_and_leaves_alone_what_it_hides(home: Home) -> None:
    """By age: what nobody has seen in a list does not go by itself."""
    said = add(home, "said").read_bytes()
    row = json.loads(said.splitlines()[0])
    other = json.dumps({**row, "sessionId": OTHER, "timestamp": "2020-01-01T00:00:00.000Z"})
    long_ago, now = 1_600_000_000, time.time()
    files = {
        "foreign-end": (said + other.encode() + b"\n", now),
        "undated": (json.dumps({**row, "timestamp": None}).encode(), long_ago),
        "undated-today": (json.dumps({**row, "timestamp": None}).encode(), now),
        "agents": (json.dumps({**row, "isSidechain": True}).encode(), long_ago),
        "warm-up": (json.dumps({**row, "message": {"content": "Warmup"}}).encode(), long_ago),
        "titled": (b'{"type":"summary","summary":"A stub"}\n', long_ago),
        "copied (1)": (said, long_ago),
        f"{OTHER} (1)": (said, long_ago),
        "future": (said.replace(b"2026-03", b"2099-03"), long_ago),
        "empty": (b"", long_ago),
    }
    for name, (data, at) in files.items():
        path = command_line.write(home.live.with_name(f"{name}.jsonl"), data)
        os.utime(path, (at, at))
    homes.another(home, "rotated", DATA)
    homes.another(home, "rotated-foreign", DATA)
    with home.live.with_name("rotated-foreign.jsonl").open("a") as file:
        file.write(f"{other}\n" * 500)
    for age in ("1d", "2000d"):
        due = called("archive", "--older-than", age, "--dry-run", "--json").document()["sessions"]
        assert {each["session"] for each in due} == {*ids("--older-than", age)}
    shown = {*ids("--older-than", "1d")}
    assert shown == {ID, "said", "undated", "foreign-end", "copied (1)", "rotated"}


# anthropics/claude-code #30802: rows of another session at the end of a file.
def test_rows_of_another_session_say_nothing_of_this_one(home: Home) -> None:
    path = add(home, OTHER, "Mend it")
    other = add(home, LARGE, "Another", timestamp="2026-04-01T12:00:00.000Z", cwd="/elsewhere")
    path.write_bytes(path.read_bytes() + other.read_bytes().splitlines(keepends=True)[0])
    found = {each["session"]: each for each in listed()}[OTHER]
    assert (found["title"], found["project"]) == ("Mend it", "/home/somebody/app")
    assert found["ended"] == "2026-03-01T12:00:00.000Z"
    with path.open("a") as file:
        title = {"type": "custom-title", "customTitle": "Of another", "sessionId": LARGE}
        file.write(json.dumps(title) + "\n")
    assert _titles(OTHER) == {"Mend it"}
    path.write_text(path.read_text().replace("Mend it", ""))  # of its own, it has none
    assert _titles(OTHER) == {""}
    renamed = path.rename(path.with_name("renamed.jsonl"))
    assert _titles(renamed.stem) == {"Of another"}


def _titles(session: str) -> set[str]:
    """Return what different commands call a session."""
    page = called("export", session, "--format", "markdown", "-o", "-").out.splitlines()[0]
    report = called("report", session, "--json").document()["title"]
    return {
        next(each["title"] for each in listed("--hidden") if each["session"] == session),
        report,
        page.removeprefix("#").strip().replace(session, ""),
    }


# dpclark4/frugal-tokens PR #70, sverrirsig/claude-control #8.
def test_files_that_no_id_tells_apart_are_named_by_their_paths(home: Home) -> None:
    path = add(home, OTHER)
    other = path.parent.with_name("-elsewhere") / path.name
    command_line.write(other, b"")
    assert "its path" not in called("list").out  # nobody used the other
    other.write_bytes(path.read_bytes())
    found = called("list")
    assert found.out.split("\n\n")[2].splitlines() == [
        f"{OTHER} is the id of 2 files. Name one by its path:",
        f"  {other}",
        f"  {path}",
    ]
    assert find.path_of(str(other)) == other


# openai/codex #39853: copies that a file manager made, one of them with data that is nowhere else.
def test_a_copy_is_listed_when_asked_for_and_no_command_takes_it_by_itself(home: Home) -> None:
    big = command_line.session(boundaries=6, rows=400, padding=4000)
    copy = home.live.with_name(f"{ID} (1).jsonl")
    copy.write_bytes(big)
    command_line.write(home.live.with_name(f"._{ID}.jsonl"), b"\0\5\x16\7" * 1024)
    assert ids() == [ID]
    assert called("list").out.split("\n\n")[0].endswith("1 copy hidden (11.2 MiB)")
    shown = {each["session"]: each["standing"] for each in listed("--hidden")}
    assert shown == {ID: "session", f"{ID} (1)": "copy"}
    assert f"{ID} (1)  " in called("list", "--hidden").out
    assert table(called("list").out)[1].split()[0] == ID[:8]  # it lengthens no id
    for command in (("rotate", "--all"), ("archive", "--older-than", "1m"), ("run",)):
        assert called(*command, *(() if command[0] == "run" else ("--yes",))).code in {0, 1}
    assert copy.read_bytes() == big
    told = called("doctor")
    assert (told.code, str(copy) in told.out, "._" in told.out) == (1, True, False)
    assert called("read", f"{ID} (1)").code == 0
    for verb in ("rotate", "archive"):
        refused = called(verb, str(copy))
        assert_one_sentence(refused, 77)
        assert "give it a name of its own" in refused.err
    assert copy.read_bytes() == big
    command_line.write(home.config / "projects" / "-srv-other" / f"{OTHER}.jsonl", DATA)
    assert "hidden" not in called("list", "--project", "/srv/other").out.split("\n\n")[0]


def test_the_end_of_a_session_that_was_put_away_is_known_as_long_as_its_record_is(
    home: Home,
) -> None:
    path = add(home, OTHER, size=200_000)
    late = {"type": "user", "sessionId": OTHER, "timestamp": "2026-03-05T12:00:00.000Z"}
    path.write_bytes(path.read_bytes() + json.dumps(late).encode() + b"\n")
    assert {each["session"]: each["ended"] for each in listed()}[OTHER] == late["timestamp"]
    assert called("archive", OTHER).code == 0
    assert {each["session"]: each["ended"] for each in listed()}[OTHER] == late["timestamp"]
    (home.config / "sessrotate" / "archives" / OTHER / "record.json").unlink()
    assert {each["session"]: each["ended"] for each in listed()}[OTHER] is None


def test_rotated_or_not_list_and_archive_go_by_the_same_row(home: Home) -> None:
    """The last row's date is out of sight: neither goes by one that stands before it."""
    home.rotate()
    long = {"type": "user", "sessionId": ID, "timestamp": "2026-11-25T00:00:00.000Z"}
    home.append(json.dumps({**long, "toolUseResult": {"text": "x" * 200_000}}).encode() + b"\n")
    assert listed()[0]["ended"] is None
    for older, wanted in (("1d", []), ("0m", [ID])):
        assert ids("--older-than", older) == wanted
        told = called("archive", "--older-than", older, "--dry-run")
        assert (ID[:8] in told.out) is bool(wanted), told


@pytest.mark.parametrize("padding", [20, 30_000], ids=["all of it in sight", "long"])
def test_a_session_that_was_copied_under_another_name_is_called_the_same_once_it_is_rotated(
    home: Home, padding: int
) -> None:
    copied = home.live.with_name(f"{OTHER}.jsonl")
    copied.write_bytes(command_line.session(boundaries=3, rows=9, padding=padding))
    home.live.unlink()

    def seen() -> dict[str, Any]:
        (found,) = listed()
        return {name: found[name] for name in ("title", "started", "ended", "branch", "project")}

    before = seen()
    assert before["title"]
    assert called("rotate", OTHER).code == 0
    assert seen() == before
    told = called("archive", "--older-than", "1m", "--dry-run", "--json").document()
    assert [each["session"] for each in told["sessions"]] == [OTHER]


def test_a_project_is_found_under_its_new_name_once_its_folder_has_that(
    home: Home, tmp_path: Path
) -> None:
    shop, store = tmp_path / "shop", tmp_path / "store"
    shop.mkdir()
    path = add(home, OTHER, said="a lantern", cwd=str(shop))
    files = clients.in_place().files
    folder = path.parent.with_name(files.project_name(shop))
    folder.mkdir()
    path.rename(folder / path.name)

    def found(project: Path) -> list[str]:
        ended = called("list", "--json", "--project", project)
        return [each["session"] for each in ended.document()]

    assert (found(shop), found(store)) == ([OTHER], [])
    shop.rename(store)
    folder.rename(folder.with_name(files.project_name(store)))
    assert (found(shop), found(store)) == ([OTHER], [OTHER])
    assert called("search", "lantern", "--project", store).code == 0
