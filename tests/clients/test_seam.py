"""What holds for any client: it is found, cut, listed and read, and only refused in place."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sessrotate import clients, find, open_session
from sessrotate.clients import opaque
from sessrotate.clients.claude import agents, carried_lines, cleanup, preview
from sessrotate.clients.claude import client as claude
from sessrotate.clients.codex import cold
from sessrotate.clients.in_place import (
    Beside,
    Calls,
    CleanUp,
    Edges,
    Files,
    InPlace,
    Resume,
    Trims,
)
from sessrotate.clients.protocol import Cold
from sessrotate.errors import InUseError, NotASessionError, WrongUsageError
from sessrotate.hook import call
from sessrotate.model import LAYOUTS, Layout
from sessrotate.reports import discovery
from sessrotate.segments import split
from sessrotate.system.source import Source
from support import command_line, fakes, sets
from support.command_line import ID, called, piped
from support.fakes import CUTS, SESSION, Fake
from support.homes import Home

DATA = command_line.session(boundaries=2)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Home) -> Path:  # noqa: ARG001
    """Return a session of a client that nobody has heard of, which is registered."""
    folder = tmp_path / "fakes"
    folder.mkdir()
    path = folder / "fake-1234abcd.txt.jsonl"
    path.write_bytes(SESSION)
    fakes.registered(monkeypatch, Fake(folder))
    monkeypatch.chdir(tmp_path)
    return path


# ── the parts of what is in place ────────────────────────────────────────────────────────────


def test_each_part_of_what_is_in_place_is_a_module_of_its_client() -> None:
    files: Files = claude
    edges: Edges = preview
    resumes: Resume = carried_lines
    besides: Beside = agents
    trims: Trims = cleanup
    cleans: CleanUp = cleanup
    calls_us: Calls = cleanup
    frozen: Cold = cold
    found = clients.in_place()
    assert (found.files, found.edges, found.resume) == (files, edges, resumes)
    assert (found.beside, found.trims, found.cleanup) == (besides, trims, cleans)
    assert (found.calls, clients.cold()) == (calls_us, frozen)


def test_a_client_without_a_part_has_nothing_of_it(tmp_path: Path) -> None:
    found = InPlace({"files": claude.__name__})
    assert found.files is claude
    assert found.trims.replaced(tmp_path, ID) == found.beside.transcripts(tmp_path, ID) == []
    assert found.cleanup.in_force().deletes_at(tmp_path.stat(), is_desktop=False) is None
    assert found.calls.silenced() is None


# ── the registry ─────────────────────────────────────────────────────────────────────────────


def test_a_format_has_the_name_of_its_client_and_the_reader_that_goes_with_it() -> None:
    for each in clients.formats():
        assert each.name == each.client().NAME
        assert clients.reader(each.client()) is each.reader()


def test_of_two_formats_of_one_client_the_content_tells(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one, other = Fake(tmp_path), replace(Fake(tmp_path), MARKER=b"")
    monkeypatch.setattr(Fake, "recognise", lambda self, _head, **_: not self.MARKER)
    fakes.registered(monkeypatch, one)
    assert clients.named("fake", lambda: pytest.fail("there is no choice")) is one
    fakes.registered(monkeypatch, other)
    assert clients.named("fake", lambda: b"") is other
    monkeypatch.setattr(Fake, "recognise", lambda *_, **__: False)
    assert clients.named("fake", lambda: b"") is one


@pytest.mark.usefixtures("fake")
def test_segments_are_of_whom_their_manifest_names_or_their_bytes_tell() -> None:
    def never() -> bytes:
        raise AssertionError

    assert clients.of_set("claude", never) is claude
    assert clients.of_set("fake", never).NAME == "fake"
    for name in (None, "nobody"):
        assert clients.of_set(name, lambda: SESSION).NAME == "fake"
        assert clients.of_set(name, lambda: DATA) is claude
    assert clients.of_set(None, lambda: b"torn") is claude
    assert clients.of_set("nobody", lambda: b"torn") is opaque


def test_no_other_clients_modules_are_loaded_for_a_session_that_the_first_one_knows(
    home: Home,
) -> None:
    code = (
        "import sys; sys.argv[1:] = ['split', '-n', sys.argv[1]]\n"
        "import atexit; atexit.register(lambda: print('|', *sys.modules))\n"
        "import sessrotate.cli as c; c.main()"
    )
    done = piped(str(home.live), program=(sys.executable, "-c", code))
    assert done.code == 0
    modules = done.out.partition("|")[2].split()
    loaded = {name for name in modules if ".clients." in name and name.count(".") > 2}
    assert "sessrotate.clients.claude.client" in loaded
    assert "sessrotate.clients.claude.reader" not in loaded
    assert {name.split(".")[2] for name in loaded} == {"claude"}


# ── found ────────────────────────────────────────────────────────────────────────────────────


def test_a_session_of_any_client_is_found_by_its_id(fake: Path, home: Home) -> None:
    for name in ("1234abcd", "1234"):
        assert find.path_of(name) == fake
    assert find.path_of(ID) == home.live


def test_a_beginning_that_two_clients_have_is_ambiguous(fake: Path, home: Home) -> None:
    fake = fake.rename(fake.with_name(f"fake-{ID[:8]}ff.txt.jsonl"))
    with pytest.raises(WrongUsageError) as caught:
        find.path_of(ID[:8])
    listed = str(caught.value).split("\n")[1:]
    assert listed == [
        f"  {home.live} (claude, 2,390 bytes, last used 2026-03-01T10:00:10.000Z)",
        f"  {fake} (fake, 71 bytes)",
    ]
    assert called("verify", ID[:8]).code == 2


def test_an_id_that_two_clients_have_is_ambiguous(fake: Path) -> None:
    fake.rename(fake.with_name(f"fake-{ID}.txt.jsonl"))
    with pytest.raises(WrongUsageError, match="2 sessions"):
        find.path_of(ID)


@pytest.mark.usefixtures("fake")
def test_what_no_client_has_is_not_found() -> None:
    with pytest.raises(WrongUsageError, match=r"and the sessions of .*fake"):
        find.path_of("nobodys")


def test_the_sessions_of_all_clients_are_listed(fake: Path, home: Home) -> None:
    first, second = discovery.sessions()
    assert (first.info.client, first.info.id, first.info.path) == ("claude", ID, home.live)
    assert first.place == home.where
    assert second.place is None
    told = second.info
    assert (told.client, told.id, told.path) == ("fake", "1234abcd", fake)
    assert (told.bytes, told.segments) == (len(SESSION), 0)
    assert told.modified == fake.stat().st_mtime_ns / 1e9


def test_a_session_that_goes_away_meanwhile_is_not_listed(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = fake.with_name("fake-gone.txt.jsonl")
    monkeypatch.setattr(Fake, "sessions", lambda *_: iter([gone, fake]))
    assert [each.info.path for each in discovery.sessions() if each.info.client == "fake"] == [fake]


# ── cut and read ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("told_by", ["manifest", "headers", "unknown name"])
def test_a_session_of_any_client_is_cut_and_read(
    fake: Path, tmp_path: Path, told_by: str, layout: Layout
) -> None:
    folder = tmp_path / "out"
    made = sets.made(fake, folder, layout)
    assert (made.client, made.session) == ("fake", "1234abcd")
    assert [each.segment.span.start for each in made.segments] == [0, *CUTS]
    times = [(each.segment.first_timestamp, each.segment.last_timestamp) for each in made.segments]
    assert times == [("2026-01-01",) * 2, ("2026-01-02", "2026-01-03"), (None, None)]
    manifest = folder / "manifest.json"
    if told_by == "headers":
        manifest.unlink()
    elif told_by == "unknown name":
        manifest.write_bytes(manifest.read_bytes().replace(b'"fake"', b'"no\\u001b body"'))
    assert sets.stitched(folder) == SESSION
    for path in (folder, fake):
        with open_session(path) as session:
            assert (session.client, session.id) == ("fake", "1234abcd")
            assert b"".join(record.line + b"\n" for record in session.history()) == SESSION
            assert [each.timestamp for each in session.boundaries] == ["2026-01-02", None]
            assert [record.line for record in session.conversation()] == [b"CUT", b"three"]


def test_segments_of_a_client_that_nobody_knows_are_still_whole(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    sets.made(fake, folder)
    monkeypatch.setattr(clients, "CLIENTS", clients.CLIENTS[:-1])
    assert sets.stitched(folder) == SESSION
    with open_session(folder) as session:
        records = list(session.history())
        assert session.client == "unknown"
        assert [session.view(record) for record in records] == [None] * 6
        assert list(session.conversation()) == records[-2:]
        assert (str(session.title()), session.agents()) == ("", [])
    for command in ("read", "export", "verify"):
        assert piped(command, folder).code == 0


def test_a_format_without_boundaries_is_never_searched(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "CLIENTS", clients.CLIENTS[:-1])
    fakes.registered(monkeypatch, replace(Fake(fake.parent), MARKER=b""))
    done: list[int] = []
    with Source(fake) as source:
        made = split.prepare(source, done.append, layout="numbered", codec="plain")
    assert done == [len(SESSION)]
    assert [segment.span.size for segment in made.segments] == [len(SESSION)]
    assert made.segments[0].first_timestamp == "2026-01-01"
    sets.made(fake, tmp_path / "out")
    assert sets.stitched(tmp_path / "out") == SESSION


def test_a_format_without_boundaries_may_not_grow_while_it_is_read(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "CLIENTS", clients.CLIENTS[:-1])
    fakes.registered(monkeypatch, replace(Fake(fake.parent), MARKER=b""))
    with Source(fake) as source:
        made = split.prepare(source, sets.nothing, layout="numbered", codec="plain")
        fake.write_bytes(b"FAKE session of another kind, whole again and longer\n" * 9)
        with pytest.raises(InUseError):
            split.execute(made, source, tmp_path / "out", sets.nothing)


@pytest.mark.usefixtures("fake")
def test_segments_that_another_tool_made_are_of_whom_their_bytes_tell(tmp_path: Path) -> None:
    folder = tmp_path / "foreign"
    folder.mkdir()
    header = {"type": "system", "subtype": "segment_header", "rootSession": "s"}
    (folder / "s.jsonl").write_bytes(SESSION[: CUTS[0]])
    (folder / "s.1.jsonl").write_bytes(json.dumps(header).encode() + b"\n" + SESSION[CUTS[0] :])
    with open_session(folder) as session:
        assert session.client == "fake"
        assert b"".join(record.line + b"\n" for record in session.history()) == SESSION
        assert [each.timestamp for each in session.boundaries] == ["2026-01-02"]


def test_what_no_client_wrote_is_no_session(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(b"notes\n")
    with Source(path) as source, pytest.raises(NotASessionError):
        clients.client_of(source)


# ── never in place ───────────────────────────────────────────────────────────────────────────

IN_PLACE = [["split", "--in-place"], ["split", "--in-place", "-n"], ["restore"], ["archive"]]


@pytest.mark.parametrize("command", IN_PLACE, ids=" ".join)
@pytest.mark.parametrize("by", ["id", "path", "a place of another client"])
def test_what_is_done_in_place_is_refused_with_the_clients_reason(
    fake: Path, home: Home, command: list[str], by: str
) -> None:
    named = {"id": "1234abcd", "path": str(fake)}.get(by)
    if named is None:
        home.live.write_bytes(SESSION)
        named, fake = ID, home.live
    done = called(*command, named)
    assert done.code == 77
    assert "Its client holds the file open." in done.err
    assert fake.read_bytes() == SESSION
    assert not home.archive.exists()


def test_the_hook_leaves_a_session_of_another_client_alone(fake: Path, home: Home) -> None:
    def wanted(path: Path, session: str) -> object:
        said = {"hook_event_name": "SessionEnd", "session_id": session}
        job = call.wanted(json.dumps({**said, "transcript_path": str(path)}).encode(), 0)
        return job and job.where

    assert wanted(home.live, ID) == home.where
    home.live.write_bytes(SESSION)
    assert wanted(home.live, ID) is None
    assert wanted(fake, "1234abcd") is None
