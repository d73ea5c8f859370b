"""`sessrotate report`: what people and programs see, whatever is in the sessions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from sessrotate.reports import discovery, session_report
from sessrotate.system.source import Source
from support import homes, report_oracle
from support.command_line import (
    ID,
    Ended,
    assert_one_sentence,
    boundary,
    called,
    has_colour,
    on_terminal,
    raw_controls,
    row,
    session,
    without_ansi,
    write,
)
from support.homes import PROJECT, Home, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/report.json").read_text())
DATA = session(padding=4000)
OTHER = "0ddba115-0000-4000-a000-000000000002"


def valid(ended: Ended) -> Any:
    """Return the document, which must be of the schema."""
    assert (ended.code, ended.err) == (0, ""), ended
    document = ended.document()
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def beside(home: Home, identity: str, data: bytes, project: str = PROJECT) -> Path:
    return write(home.config / "projects" / project / f"{identity}.jsonl", data)


def test_with_all_what_is_no_session_ends_as_what_cannot_be_read(home: Home) -> None:
    garbage = beside(home, OTHER, b"%PDF-1.4\n" * 99)
    ended = called("report", "--all")
    assert ended.code == 74
    assert ended.err.count(str(garbage)) == 1
    assert "is not a session file" in ended.err
    assert called("report", str(garbage)).code == 65


def test_a_page_is_a_file_and_no_folder(home: Home, tmp_path: Path) -> None:
    ended = called("report", "--all", "--html", f"{tmp_path}/new/")
    assert (ended.code, (tmp_path / "new").exists()) == (2, False)
    assert "Add the name of a file" in ended.err
    assert home.live.exists()


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_all_has_a_project_by_what_its_client_calls_it_where_no_row_names_its_folder(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fixture, *_) = sorted((Path(__file__).parents[2] / "fixtures/gemini/0.61.0").rglob("*.jsonl"))
    monkeypatch.setenv("GEMINI_SESSIONS_DIR", str(tmp_path / "gemini"))
    write(tmp_path / "gemini" / "harbour" / "chats" / fixture.name, fixture.read_bytes())
    found = valid(called("report", "--all", "--json"))
    sizes = {each["name"]: each["bytes"] for each in found["projects"]}
    assert sizes["harbour"] == fixture.stat().st_size
    assert home.live.exists()


def test_json_has_the_keys_of_the_contract(home: Home) -> None:
    data = home.live.read_bytes()
    found = valid(called("report", ID, "--json"))
    assert (found["session"], found["bytes"], found["lines"]) == (ID, len(data), data.count(b"\n"))
    assert found["live_tail_bytes"] == found["segments"][-1]["bytes"]
    assert 0 < found["would_free_bytes"] < len(data)
    assert [each["file"] for each in found["segments"][:2]] == [f"{ID}.jsonl", f"{ID}.1.jsonl"]
    assert found["segments"][-1]["file"] == home.live.name
    assert found["segments"][1]["boundary"]["trigger"] == "auto"
    assert "kinds" not in found


def test_json_with_kinds_adds_up(home: Home) -> None:
    data = home.live.read_bytes()
    found = valid(called("report", ID, "--json", "--kinds"))
    right = report_oracle.counted(data)
    assert {name: each["bytes"] for name, each in found["kinds"].items()} == right.bytes
    assert sum(each["bytes"] for each in found["kinds"].values()) == found["bytes"] == len(data)
    assert found["duplicate_bytes"] == right.copied
    assert found["unique_bytes"] == len(data) - right.copied
    assert sum(each["bytes"] for each in found["copies"].values()) == right.copied
    for line in found["largest_lines"]:
        whole = data[line["offset"] : line["offset"] + line["bytes"]]
        assert whole.endswith(b"\n")
        assert whole.count(b"\n") == 1


def test_json_of_several_sessions_is_one_document(home: Home) -> None:
    beside(home, OTHER, row(1))
    found = valid(called("report", ID, OTHER, "--json"))
    assert [each["session"] for each in found["sessions"]] == [ID, OTHER]


def test_json_of_a_rotated_session_is_of_the_schema(home: Home) -> None:
    home.rotate()
    home.segment(1).unlink()
    for options in ((), ("--kinds",)):
        found = valid(called("report", ID, "--json", *options))
        assert found["segments"][1]["standing"] == "absent"
        assert found["would_free_reason"]
        assert found["command"] is None


def test_json_of_all_sessions_has_their_sums(home: Home) -> None:
    data = home.live.read_bytes()
    home.rotate()
    beside(home, OTHER, session() + row(9, cwd="/srv/x"), "-other")
    for options in ((), ("--kinds",)):
        found = valid(called("report", "--all", "--json", *options))
        assert [each["session"] for each in found["sessions"]] == [ID, OTHER]
        whole = len(data) + len(session() + row(9, cwd="/srv/x"))
        assert found["bytes"] == whole
        for group in ("clients", "projects", "growth"):
            assert sum(each["bytes"] for each in found[group]) == whole
        assert found["archived_bytes"] == found["sessions"][0]["archived_bytes"] > 0
        assert {each["name"] for each in found["projects"]} == {"", "/srv/x"}
    assert sum(each["bytes"] for each in found["kinds"].values()) == whole


def test_what_is_worth_rotating_comes_with_the_command_that_does_it(home: Home) -> None:
    beside(home, OTHER, session(padding=2 << 20))
    twin = beside(home, OTHER, session(padding=2 << 20), "-o ther")
    found = valid(called("report", "--all", "--json"))
    named, by_path = found["worth_rotating"]
    assert named["session"] == by_path["session"] == OTHER
    assert by_path["command"] == f"sessrotate rotate '{twin}'"
    alone = valid(called("report", twin, "--json"))
    assert alone["command"] == by_path["command"]
    assert found["would_free_bytes"] > named["would_free_bytes"] + by_path["would_free_bytes"]


# ── what people see ──────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("home")
def test_a_report_tells_what_is_big_and_what_to_do() -> None:
    ended = called("report", ID, "--kinds")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[-1] == f"  sessrotate rotate {ID}"
    for words in ("4 segments", "live tail", "user text", "largest lines", "100,003", "auto"):
        assert words in ended.out
    assert not has_colour(ended.out)
    assert "█" not in ended.out


def test_a_terminal_shows_bars_and_is_never_overrun(home: Home) -> None:
    beside(home, OTHER, session(padding=2 << 20))
    for arguments in ((ID, "--kinds"), ("--all", "--kinds")):
        for columns in (60, 80, 120):
            ended = on_terminal("report", *arguments, env=home.env, columns=columns)
            assert ended.code == 0, ended
            assert "█" in ended.out
            assert has_colour(ended.out)
            tables = [line for line in without_ansi(ended.out).splitlines() if "█" in line]
            assert max(map(len, tables)) <= columns
    plain = on_terminal("report", ID, env={**home.env, "NO_COLOR": "1"})
    assert not has_colour(plain.out)
    assert "█" in plain.out


def test_a_long_session_shows_its_newest_segments_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes.home(tmp_path, monkeypatch, session(boundaries=60))
    ended = on_terminal("report", ID, env=home.env)
    assert "36 older segments" in ended.out
    assert len(called("report", ID).out.splitlines()) > 60


HOSTILE = "[bold]\x1b]0;evil\x07\x9b31m\u202e\n<script>" + "x" * 3000


def hostile(number: int) -> bytes:
    call = {"type": "tool_use", "id": f"t{number}", "name": f"{number}{HOSTILE}", "input": {}}
    given = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "y" * 100}
    return row(
        number,
        uuid=f"a{number}",
        type="assistant",
        cwd=f"/srv/{HOSTILE}",
        timestamp=HOSTILE,
        message={"role": "assistant", "content": [call]},
    ) + row(number, uuid=f"b{number}", message={"role": "user", "content": [given]})


def test_nothing_in_a_session_reaches_the_terminal_raw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"".join(
        [
            json.dumps({"type": "custom-title", "customTitle": HOSTILE}).encode() + b"\n",
            *(hostile(number) for number in range(30)),
            boundary(
                5, timestamp=HOSTILE, compactMetadata={"trigger": HOSTILE, "preTokens": 10**30}
            ),
            hostile(99),
        ]
    )
    home = homes.home(tmp_path, monkeypatch, data)
    for arguments in ((ID,), ("--all",)):
        shown = on_terminal("report", "--kinds", *arguments, env=home.env)
        assert shown.code == 0, shown
        assert not raw_controls(without_ansi(shown.out))
        assert not raw_controls(without_ansi(shown.err))
        assert "\u202e" not in shown.out
        told = called("report", "--kinds", *arguments)
        assert not raw_controls(told.out)
        assert "[bold]" in told.out
        assert valid(called("report", "--kinds", "--json", *arguments))


def test_reporting_changes_nothing(home: Home) -> None:
    home.rotate()
    before = snapshot(home.config)
    for arguments in ((ID, "--kinds"), ("--all",), ("--all", "--kinds", "--json")):
        assert called("report", *arguments).code == 0
    assert snapshot(home.config) == before


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────


def test_an_empty_machine_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes.home(tmp_path, monkeypatch)
    assert called("report", "--all").out.startswith("0 sessions")
    assert valid(called("report", "--all", "--json", "--kinds"))["sessions"] == []


def listed_then(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Have something happen after the sessions were listed, and before they are read."""
    found = [*discovery.sessions()]

    def sessions(*, unread: object) -> list[discovery.FoundSession]:
        assert unread is not None
        action()
        return found

    monkeypatch.setattr(discovery, "sessions", sessions)


def test_a_session_that_vanishes_is_told_and_no_failure(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = beside(home, OTHER, session())
    listed_then(monkeypatch, gone.unlink)
    ended = called("report", "--all", "--json")
    assert ended.code == 0
    assert ended.err.count("\n") == 1
    assert OTHER in ended.err
    found = ended.document()
    assert [each["session"] for each in found["sessions"]] == [ID]
    assert [each["path"] for each in found["unreadable"]] == [str(gone)]


@pytest.mark.parametrize("options", [(), ("--kinds",)])
def test_a_session_that_cannot_be_read_is_told_and_the_others_are_counted(
    home: Home, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    bad = beside(home, OTHER, session())
    real = Source.__init__

    def refuse(self: Source, path: Path, fd: int | None = None) -> None:
        if path == bad:
            raise PermissionError(13, "Permission denied", str(path))
        real(self, path, fd)

    monkeypatch.setattr(Source, "__init__", refuse)
    ended = called("report", "--all", *options)
    assert ended.code == 74
    assert ended.err.count("\n") == 1
    assert "Permission denied" in ended.err
    assert "1 session:" in ended.out


@pytest.mark.parametrize("options", [(), ("--kinds",)])
def test_a_session_that_grows_is_counted_as_it_was(
    home: Home, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    data = home.live.read_bytes()
    real = Source.read_into
    grown = [b'{"type":"user","uu', b'id":"new"}\n'] * 3

    def grow(self: Source, buffer: memoryview, offset: int) -> int:
        if grown and self.path == home.live:
            home.append(grown.pop(0))
        return real(self, buffer, offset)

    monkeypatch.setattr(Source, "read_into", grow)
    found = valid(called("report", ID, "--json", *options))
    assert found["bytes"] >= len(data)
    now = home.live.read_bytes()[: found["bytes"]]
    assert now.endswith(b"\n")
    assert found["lines"] == now.count(b"\n")


def test_a_session_that_shrinks_while_it_is_read_says_so(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home.live, session(padding=1 << 20))
    real = session_report.session_rows

    def shrink(*arguments: Any, **named: Any) -> Any:
        found = real(*arguments, **named)
        os.truncate(home.live, 1000)
        return found

    monkeypatch.setattr(session_report, "session_rows", shrink)
    assert_one_sentence(called("report", ID, "--kinds"), 75)
