"""Every session, cut at its boundaries and put together again, is the bytes it was."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.claude import client as claude
from sessrotate.model import CODECS, LAYOUTS, Codec, Layout
from sessrotate.segments import split
from support import oracle, sets
from support.examples import examples
from support.lines import sessions

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures" / "claude").rglob("*.jsonl"))


@pytest.fixture(autouse=True, scope="module")
def _any_bytes_are_a_session() -> object:
    """Recognising sessions has tests of its own; here any bytes have to come back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claude, "recognise", lambda _head, **_options: True)
        yield


@given(sessions(), st.sampled_from(LAYOUTS), st.sampled_from(CODECS), st.booleans())
@examples(150)
def test_any_bytes_come_back(data: bytes, layout: Layout, codec: Codec, keep: bool) -> None:
    with TemporaryDirectory() as name:
        path, folder = Path(name, "s.jsonl"), Path(name, "out")
        path.write_bytes(data)
        manifest = sets.made(path, folder, layout, codec)
        expected = oracle.bodies(data)
        assert [entry.segment.span.size for entry in manifest.segments] == list(map(len, expected))
        assert [entry.lines for entry in manifest.segments] == [_lines(body) for body in expected]
        assert path.read_bytes() == data
        if not keep:
            (folder / "manifest.json").unlink()
        if keep or len(expected) > 1:
            assert sets.stitched(folder) == data


def _lines(body: bytes) -> int:
    return body.count(b"\n") + (not body.endswith(b"\n") and body != b"")


def test_the_samples_have_the_compactions_that_were_made_in_them() -> None:
    found = {
        path.parts[-4]: len(sets.planned(path).segments) - 1
        for path in FIXTURES
        if "subagents" not in path.parts and "agent-" not in path.name
    }
    assert found == {
        "A-2.0.28": 2,
        "A-2.1.112": 2,
        "A-2.1.30": 2,
        "A-2.1.330": 2,
        "auto-2.1.300": 3,
        "auto-2.1.330": 1,
        "dup-2.1.300": 4,
        "hook-2.1.260": 4,
        "rewind-2.1.112": 1,
    }


@given(sessions(), st.sampled_from(LAYOUTS))
@examples(60)
def test_a_plain_segment_is_its_header_and_the_sources_own_bytes(
    data: bytes, layout: Layout
) -> None:
    with TemporaryDirectory() as name:
        path, folder = Path(name, "s.jsonl"), Path(name, "out")
        path.write_bytes(data)
        sets.made(path, folder, layout)
        listed = json.loads((folder / "manifest.json").read_bytes())["segments"]
        for number, (entry, body) in enumerate(zip(listed, oracle.bodies(data), strict=True)):
            written = (folder / entry["file"]).read_bytes()
            head, _, rest = written.partition(b"\n") if number else (b"", b"", written)
            assert rest == body
            if number:
                assert json.loads(head)["segmentIndex"] == number


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_session_gives_the_same_files(
    tmp_path: Path, layout: Layout, codec: Codec
) -> None:
    path = next(path for path in FIXTURES if "A-2.1.112" in path.parts and "agent" not in path.name)
    for name in ("one", "two"):
        sets.made(path, tmp_path / name, layout, codec)
    one, two = (
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    assert one == two


def test_a_session_is_split_the_same_when_it_is_read_in_tiny_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = next(path for path in FIXTURES if "A-2.0.28" in path.parts and "agent" not in path.name)
    sets.made(path, tmp_path / "one")
    monkeypatch.setattr(split, "BUFFER", 37)
    sets.made(path, tmp_path / "two")
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
