"""`sessrotate report --html`: a page in a new file, and what stands in its way."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sessrotate.system.source import Source
from support.command_line import ID, assert_one_sentence, called, piped, session
from support.homes import Home, snapshot

DATA = session(padding=4000)


def data(page: Path) -> Any:
    found = re.search(r'id="data">(.*)</script>', page.read_text(encoding="utf-8"))
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize("options", [(), ("--kinds",)])
def test_the_page_holds_what_json_tells_and_nothing_is_printed(
    home: Home, tmp_path: Path, options: tuple[str, ...]
) -> None:
    page = tmp_path / "page.html"
    before = snapshot(home.config)
    ended = called("report", ID, *options, "--html", page)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert snapshot(home.config) == before
    assert data(page)["sessions"] == [called("report", ID, *options, "--json").document()]
    assert page.stat().st_mode & 0o777 == 0o600


def test_the_page_of_all_sessions_holds_what_json_tells(home: Home, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ended = called("report", "--all", "--kinds", "--html", page)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert data(page)["machine"] == called("report", "--all", "--kinds", "--json").document()
    assert home.live.exists()


def test_json_is_printed_beside_the_page_where_both_are_asked_for(
    home: Home, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    for what, key in ((ID, "sessions"), ("--all", "machine")):
        ended = called("report", what, "--json", "--html", page)
        assert ended.code == 0
        found = data(page)[key]
        assert ended.document() == (found[0] if key == "sessions" else found)
        page.unlink()
    assert home.live.exists()


@pytest.mark.parametrize("what", [ID, "--all"])
def test_nothing_is_written_over_nor_read_for_nothing(
    home: Home, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    page.write_text("mine")
    monkeypatch.setattr(
        "sessrotate.reports.session_report.of_session", lambda *_a, **_k: pytest.fail("read")
    )
    ended = called("report", what, "--html", page)
    assert_one_sentence(ended, 77)
    assert "Remove it, or choose another name with --html." in ended.err
    assert page.read_text() == "mine"
    assert called("report", what, "--html", tmp_path).code == 77
    assert home.live.exists()


def test_a_page_that_cannot_be_written_leaves_nothing(home: Home, tmp_path: Path) -> None:
    ended = called("report", ID, "--html", tmp_path / "nowhere" / "page.html")
    assert_one_sentence(ended, 74)
    assert home.live.exists()


def test_a_page_goes_to_the_device_that_the_option_names(home: Home) -> None:
    ended = piped("report", home.live, "--html", "/dev/stdout")
    assert ended.code == 0
    assert ended.out.startswith("<!DOCTYPE html>")
    assert ended.out.endswith("</html>\n")


def test_what_could_not_be_read_is_on_the_page_and_in_the_exit_code(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Source.__init__
    bad = home.live.with_name("0ddba115-0000-4000-a000-000000000002.jsonl")
    bad.write_bytes(home.live.read_bytes())

    def refuse(self: Source, path: Path, fd: int | None = None) -> None:
        if path == bad:
            raise PermissionError(13, "Permission denied", str(path))
        real(self, path, fd)

    monkeypatch.setattr(Source, "__init__", refuse)
    page = tmp_path / "page.html"
    ended = called("report", "--all", "--html", page)
    assert (ended.code, ended.out) == (74, "")
    found = data(page)["machine"]
    assert [each["path"] for each in found["unreadable"]] == [str(bad)]
    assert [each["session"] for each in found["sessions"]] == [ID]
