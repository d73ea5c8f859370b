"""The real client resumes carried lines, boundary and tail as it would the whole session."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import oracle
from clients.client import Client
from clients.judge import compare, differences
from clients.making import MAKERS, Sessions
from sessrotate.formats import claude_contract
from sessrotate.model import Span
from sessrotate.source import Source

FIXTURES = sorted(
    path
    for path in (Path(__file__).parents[2] / "fixtures" / "claude").glob("*/projects/*/*.jsonl")
    if not path.name.startswith("agent-")
)

REPEATING = {"auto-2.1.300", "dup-2.1.300", "hook-2.1.260"}
"""Samples of clients that append earlier rows again at a later compaction."""

HEADER = b'{"type":"segment_header","rootSession":"x","segmentIndex":1}\n'


def live(data: bytes, folder: Path) -> bytes | None:
    """Return what would stay of a session, itself if it was never compacted; None if refused."""
    cuts = oracle.boundaries(data)
    if not cuts:
        return data
    path = folder / "whole.jsonl"
    path.write_bytes(data)
    with Source(path) as source:
        line = Span(cuts[-1], source.line_end(cuts[-1], len(data)))
        plan = claude_contract.plan(source, line, len(data))
    if plan.refusals:
        return None
    carried = [data[entry.span.start : entry.span.end + 1] for entry in plan.carried]
    return HEADER + b"".join(carried) + data[plan.cut :]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.parts[-4])
def test_a_sample_is_resumed_the_same(client: Client, tmp_path: Path, path: Path) -> None:
    rotated = tmp_path / path.name
    kept = live(path.read_bytes(), tmp_path)
    assert kept is not None
    rotated.write_bytes(kept)
    assert rotated.stat().st_size < path.stat().st_size
    assert differences(client, path, rotated) == []


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.parts[-4])
def test_a_sample_rotated_at_every_boundary_as_it_grew_is_resumed_the_same(
    client: Client, tmp_path: Path, path: Path
) -> None:
    data = path.read_bytes()
    cuts = [*oracle.boundaries(data), len(data)]
    grown = data[: cuts[0]]
    for start, end in pairwise(cuts):
        grown += data[start:end]
        kept = live(grown, tmp_path)
        # Clients that repeat rows write them just before the next boundary: to rotate between
        # the two is refused, and at the next boundary possible again.
        assert kept is not None or (end < len(data) and path.parts[-4] in REPEATING)
        grown = kept or grown
    rotated = tmp_path / path.name
    rotated.write_bytes(grown)
    assert differences(client, path, rotated) == []


@pytest.mark.parametrize("kind", MAKERS)
def test_a_fresh_session_is_resumed_the_same(sessions: Sessions, tmp_path: Path, kind: str) -> None:
    client, path = sessions.get(kind)
    before = client.resume_request(path)
    kept = live(path.read_bytes(), tmp_path)
    assert kept is not None
    path.write_bytes(kept)
    assert compare(before, client.resume_request(path)) == []
