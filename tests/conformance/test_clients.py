"""What is asked of every client's format, with each one's own sessions and its own truth."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import clients, find, open_session
from sessrotate.clients.preview import EDGE, Sight, Title
from sessrotate.clients.view import View
from sessrotate.errors import RefusedError
from sessrotate.export import Scope, html, jsonl, markdown
from sessrotate.model import CODECS, LAYOUTS, Boundary, Codec, Layout, Span
from sessrotate.parsing import json_line
from sessrotate.reading.pieces import Holder, OpenSegment, SegmentInfo
from sessrotate.reading.session import Session
from sessrotate.reports import discovery
from sessrotate.segments import manifest, scan
from sessrotate.system.source import Source
from support import sets
from support.conformance import mutating
from support.conformance.specimen import Specimen, specimens
from support.examples import examples

SPECIMENS = specimens()
FILES = [(specimen, path) for specimen in SPECIMENS for path in specimen.files]

_every = pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda each: each.name)
_every_file = pytest.mark.parametrize(
    ("specimen", "path"), FILES, ids=[f"{each.name}-{path.name[:40]}" for each, path in FILES]
)


def test_every_format_has_a_specimen() -> None:
    known = [*clients.clients()]
    assert len(known) == len(SPECIMENS)
    for client in known:
        (specimen,) = (each for each in SPECIMENS if each.client is client)
        assert clients.reader(client) is specimen.reader


@_every
def test_a_specimen_is_worth_something(specimen: Specimen) -> None:
    assert specimen.files
    has_boundaries = bool(specimen.client.MARKER)
    assert len(specimen.boundaries(specimen.made(3))) == (3 if has_boundaries else 0)
    assert any(specimen.boundaries(path.read_bytes()) for path in specimen.files) == has_boundaries


# ── recognised ───────────────────────────────────────────────────────────────────────────────


@_every_file
def test_a_session_is_recognised_as_its_own_clients_alone(specimen: Specimen, path: Path) -> None:
    data = path.read_bytes()
    head, is_whole = data[: clients.HEAD], len(data) <= clients.HEAD
    for other in SPECIMENS:
        is_its_own = other.client.recognise(head, is_whole=is_whole)
        assert is_its_own == (other is specimen), other.name
    assert clients.of(head, is_whole=is_whole) is specimen.client


@_every
def test_a_session_that_was_begun_and_is_long_is_recognised(specimen: Specimen) -> None:
    data = specimen.made(2)
    for cut in (data, data + data[: len(data) // 3]):
        assert clients.of(cut, is_whole=True) is specimen.client
        assert clients.of(cut, is_whole=False) is specimen.client


@_every
def test_what_is_nobodys_is_not_recognised(specimen: Specimen) -> None:
    for data in (b"\n", b"notes\n", b"{}\n", b"[]\n", b"\0" * 4096, b'{"a": 1}\n' * 99, b"\xff\n"):
        assert not specimen.client.recognise(data, is_whole=True)


# ── cut ──────────────────────────────────────────────────────────────────────────────────────


@_every_file
def test_the_boundaries_are_those_that_the_client_has(specimen: Specimen, path: Path) -> None:
    assert _boundaries(specimen, path) == specimen.boundaries(path.read_bytes())


def _boundaries(specimen: Specimen, path: Path) -> list[int]:
    with Source(path) as source:
        found = scan.scan(source, specimen.client, sets.nothing)
        assert found.end == source.size()
        return [boundary.offset for boundary in found.boundaries]


@st.composite
def _sessions(draw: st.DrawFn, specimen: Specimen) -> bytes:
    """Draw a session with lines in it that nobody wrote, or a torn one."""
    made = specimen.made(draw(st.integers(0, 4)))
    if specimen.has_lines:
        lines = made.split(b"\n")
        real = [line for path in specimen.files[:3] for line in path.read_bytes().split(b"\n")]
        foreign = st.one_of(st.binary(max_size=30), mutating.lines(real[:200]))
        for _ in range(draw(st.integers(0, 4))):
            # Behind the first line, by which the file is known.
            lines.insert(draw(st.integers(1, len(lines))), draw(foreign).replace(b"\n", b""))
        made = b"\n".join(lines)
    return made[: draw(st.sampled_from([len(made), len(made) - 1, len(made) - 9]))]


@_every
@given(st.data(), st.sampled_from(LAYOUTS), st.sampled_from(CODECS))
@examples(60)
def test_any_session_is_cut_where_its_client_would_and_comes_back(
    specimen: Specimen, data: st.DataObject, layout: Layout, codec: Codec
) -> None:
    session = data.draw(_sessions(specimen))
    with TemporaryDirectory() as name:
        path, folder = Path(name, "s.jsonl"), Path(name, "out")
        path.write_bytes(session)
        made = sets.made(path, folder, layout, codec)
        assert made.client == specimen.client.NAME
        starts = [each.segment.span.start for each in made.segments]
        assert starts == [0, *specimen.boundaries(session)]
        assert sets.stitched(folder) == session
        if len(starts) > 1:
            (folder / "manifest.json").unlink()
            assert sets.stitched(folder) == session
            with open_session(folder) as opened:
                assert opened.client == specimen.client.NAME


@_every_file
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_real_session_comes_back(
    specimen: Specimen, path: Path, tmp_path: Path, layout: Layout
) -> None:
    made = sets.made(path, tmp_path / "out", layout)
    assert made.client == specimen.client.NAME
    assert made.session == specimen.client.session_of(path.name)
    assert sets.stitched(tmp_path / "out") == path.read_bytes()


@_every_file
def test_a_segment_reaches_from_its_first_to_its_last_dated_line(
    specimen: Specimen, path: Path
) -> None:
    data = path.read_bytes()
    cuts = [0, *specimen.boundaries(data), len(data)]
    expected = []
    for start, end in pairwise(cuts):
        lines = data[start:end].split(b"\n")
        # Long lines are asked only where no other knows.
        for some in ([line for line in lines if json_line.is_small(len(line))], lines):
            times = [time for line in some if (time := specimen.time(line)) is not None]
            if times:
                break
        opening = specimen.time(lines[0]) if start else None
        expected.append((opening or times[0], times[-1]) if times else (None, None))
    with Source(path) as source:
        parts = manifest.spans(scan.scan(source, specimen.client, sets.nothing))
        assert list(scan.times(source, specimen.client, parts)) == expected


# ── found ────────────────────────────────────────────────────────────────────────────────────


@_every
def test_a_session_is_found_where_its_client_keeps_it(
    specimen: Specimen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in SPECIMENS:
        for name, value in other.environment(tmp_path / "nothing").items():
            monkeypatch.setenv(name, value)
    for name, value in specimen.environment(tmp_path / "home").items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    data = specimen.made(1)
    path = specimen.installed(tmp_path / "home", data)
    assert list(specimen.client.sessions()) == [path]
    assert specimen.client.session_of(path.name) == specimen.session
    for wanted in (specimen.session, specimen.session[:-2]):
        assert find.path_of(wanted) == path
    assert list(specimen.client.sessions("no-such-session")) == []
    (found,) = discovery.sessions()
    listed = found.info
    assert (listed.client, listed.id, listed.path, listed.bytes) == (
        specimen.client.NAME,
        specimen.session,
        path,
        len(data),
    )
    if specimen.client.NAME != "claude":  # the one client whose sessions are changed in place
        with pytest.raises(RefusedError):
            find.live_of(path)


# ── read ─────────────────────────────────────────────────────────────────────────────────────


@_every_file
def test_a_session_is_read_each_record_once(specimen: Specimen, path: Path) -> None:
    data = path.read_bytes()
    with open_session(path) as session:
        history = list(session.history())
        views = [session.view(record) for record in history]
        assert {view.kind for view in views if view} >= {"user", "assistant"}
        conversation = list(session.conversation())
        known = {(record.segment, record.offset) for record in history}
        whole = {(each.segment, each.offset) for each in conversation if not each.is_part}
        assert whole <= known
        with_agents = list(session.conversation(with_agents=True))
        agents = [each for each in with_agents if each not in conversation]
        assert [each for each in with_agents if each not in agents] == conversation
        assert all(view.is_sidechain for each in agents if (view := session.view(each)))
        is_rewound = session.reader.rewound(session)
        assert not any(map(is_rewound, conversation))
        assert conversation
        assert session.title().text
        for agent in session.agents():
            assert list(session.records_of(agent))
        if not specimen.has_lines:
            assert {each.line for each in conversation} <= {each.line for each in history}
        else:
            cuts = [0, *specimen.boundaries(data)]
            assert data == b"".join(record.line + b"\n" * record.is_ended for record in history)
            # A record of the conversation, or of what is read, may be part of a line.
            for record in (*history, *conversation, *session.said(iter(history))):
                start = cuts[record.segment] + record.offset
                assert data[start : start + record.size] == record.line
            assert [session.key(record) for record in history] == [
                specimen.key(record.line) for record in history
            ]


@_every_file
def test_an_export_has_each_record_once(specimen: Specimen, path: Path) -> None:
    with open_session(path) as session:
        exported = b"".join(jsonl.pieces(session))
        for pieces in (markdown.pieces, html.pieces):
            few, many = (
                sum(1 for _ in pieces(session, Scope(all_branches=b))) for b in (False, True)
            )
            assert 0 < few <= many
    if specimen.has_lines and not specimen.repeats:
        seen: dict[object, bytes] = {}
        for line in path.read_bytes().split(b"\n"):
            seen.setdefault(specimen.key(line) or (line,), line)
        seen.pop((b"",), None)
        assert exported == b"".join(line + b"\n" for line in seen.values())


# ── hostile ──────────────────────────────────────────────────────────────────────────────────


@_every
def test_no_value_is_too_odd_for_the_record_that_has_it(specimen: Specimen) -> None:
    client, reader = specimen.client, specimen.reader
    whole = [path.read_bytes() for path in specimen.files]
    lines = [line for data in whole for line in data.split(b"\n")] if specimen.has_lines else whole
    tried = 0
    for odd in mutating.variants(lines):
        assert isinstance(client.boundary([odd], Span(0, len(odd))), (Boundary, bool))
        assert isinstance(client.timestamp([odd], len(odd)), (str, type(None)))
        assert isinstance(client.recognise(odd, is_whole=True), bool)
        for record in reader.records([odd], 0):
            assert isinstance(reader.view(record), (View, type(None)))
            assert isinstance(reader.key(record), (bytes, type(None)))
        tried += 1
    assert tried > (1_000 if specimen.has_lines else 100)


def _piece(data: bytes) -> Iterator[bytes]:
    return iter([data])


def _in_memory(specimen: Specimen, segments: list[bytes]) -> Session:
    """Return a session of these segments, whatever they hold."""
    bodies = [
        OpenSegment(
            SegmentInfo(index, len(data), None, None, None, "sealed"), partial(_piece, data)
        )
        for index, data in enumerate(segments)
    ]
    holder = Holder(specimen.session, specimen.client, tuple(bodies))
    return Session(Path("/nonexistent/session"), holder)


@_every
@given(st.data())
@examples(40)
def test_no_line_is_too_odd_to_be_read(specimen: Specimen, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(specimen.files))
    segments = _odd(data, specimen, path.read_bytes())
    whole = b"".join(segments)
    for line in whole.split(b"\n"):
        span = Span(0, len(line))
        assert isinstance(specimen.client.boundary([line], span), (Boundary, bool))
        assert isinstance(specimen.client.timestamp([line], len(line)), (str, type(None)))
    assert isinstance(specimen.client.recognise(whole, is_whole=data.draw(st.booleans())), bool)
    sight = specimen.reader.sight(whole[:EDGE], whole[-EDGE:], is_whole=True)
    assert isinstance(sight, Sight)
    assert "\n" not in sight.title.text
    session = _in_memory(specimen, segments)
    for record in session.history():
        assert isinstance(session.view(record), (View, type(None)))
        assert isinstance(session.key(record), (bytes, type(None)))
    for with_agents in (False, True):
        assert sum(1 for _ in session.conversation(with_agents=with_agents)) >= 0
    is_rewound = session.reader.rewound(session)
    assert not any(map(is_rewound, session.conversation()))
    assert isinstance(session.title(), Title)
    assert "\n" not in session.title().text
    assert isinstance(session.agents(), list)
    every = (
        html.pieces(session, Scope(all_branches=True)),
        markdown.pieces(session, Scope(all_branches=True)),
    )
    for pieces in (jsonl.pieces(session), markdown.pieces(session), html.pieces(session), *every):
        assert isinstance(b"".join(pieces), bytes)


def _odd(data: st.DataObject, specimen: Specimen, whole: bytes) -> list[bytes]:
    """Return a session's segments with some lines replaced, or its bytes if it has no lines."""
    if not specimen.has_lines:
        return [data.draw(mutating.lines([whole]))]
    cuts = [0, *specimen.boundaries(whole), len(whole)]
    segments = [whole[start:end].split(b"\n") for start, end in pairwise(cuts)]
    for _ in range(data.draw(st.integers(1, 6))):
        segment = data.draw(st.sampled_from(segments))
        at = data.draw(st.integers(0, len(segment) - 1))
        segment[at] = data.draw(mutating.lines(segment[at : at + 1]))
    return [b"\n".join(segment) for segment in segments]
