"""How much memory the largest sessions of Gemini CLI take, in either format."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from generate_gemini import Options, generate
from support.gemini_sessions import UUID, metadata
from support.limits import MIB, weighed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.scale

MOST_MIB = 64
"""What a read of it may take: one record of 8 MiB is held some times over."""


@pytest.fixture(scope="module")
def monolith(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a session of a gigabyte, with a message of 200 MB in it: one object, indented."""
    lines = tmp_path_factory.mktemp("gemini") / f"session-2026-02-10T08-00-{UUID[:8]}.jsonl"
    path = lines.with_suffix(".json")
    with lines.open("wb", buffering=MIB) as target:
        generate(target, Options(size=1200 * MIB, resumes=0, history=1200 * MIB, big=200 * MIB))
    opening, closing = json.dumps(metadata(messages=[]), indent=2).split("]")
    comma = ""
    with lines.open() as rows, path.open("w") as target:
        target.write(opening)
        for row in map(json.loads, rows):
            if row.get("content") or "toolCalls" in row:  # what else has an id comes once more
                said = json.dumps(row, ensure_ascii=False, indent=2).replace("\n", "\n    ")
                target.write(f"{comma}\n    {said}")
                comma = ","
        target.write(f"\n  ]{closing}")
    assert path.stat().st_size > 1024 * MIB
    return path


@pytest.fixture(scope="module")
def appended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a session with updates of more than 100 MB, and with a message as large."""
    path = tmp_path_factory.mktemp("gemini") / "session-2026-02-10T08-00-930161f0.jsonl"
    with path.open("wb", buffering=MIB) as target:
        options = Options(size=700 * MIB, history=200 * MIB, resumes=4, big=100 * MIB)
        truth = generate(target, options)
    starts = (*truth.boundaries, truth.bytes)
    assert max(end - start for start, end in pairwise(starts)) > 100 * MIB
    return path


@pytest.mark.parametrize("session", ["monolith", "appended"])
def test_a_large_session_is_read_and_exported_in_bounded_memory(
    session: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    path: Path = request.getfixturevalue(session)
    out = tmp_path / "out"
    for command in (
        ("read", "--history", "--grep", "no such words", path),
        ("export", "--format", "jsonl", path, "-o", out / "a.jsonl"),
        ("export", "--format", "markdown", path, "-o", out / "a.md"),
    ):
        out.mkdir(exist_ok=True)
        done = weighed(*command)
        assert done.code == 0, done.err
        assert done.peak_mib <= MOST_MIB, command


@pytest.mark.parametrize("session", ["monolith", "appended"])
def test_a_large_session_is_split_in_bounded_memory(
    session: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    path: Path = request.getfixturevalue(session)
    done = weighed("split", path, "--out", tmp_path / "segments")
    assert done.code == 0, done.err
    assert done.peak_mib <= 48
