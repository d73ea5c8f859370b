"""The generator keeps its word: checked against the bytes alone, read with `json.loads`.

Nothing here shares code with the generator but its entry points.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import generate_session
from dice import Truth, command
from generate_session import Options, generate

SCRIPTS = Path(generate_session.__file__).parent
MIB = 1 << 20
MARKER = b"compact_boundary"


@dataclass(frozen=True)
class Sample:
    """A generated file as a reader sees it, and what its generator says of it."""

    content: bytes
    lines: list[bytes]
    rows: list[dict[str, Any]]
    truth: dict[str, Any]

    @property
    def boundary_numbers(self) -> list[int]:
        return [number for number, row in enumerate(self.rows) if is_boundary(row)]


def is_boundary(row: dict[str, Any]) -> bool:
    return row.get("type") == "system" and row.get("subtype") == "compact_boundary"


def run(*arguments: str) -> None:
    command(Options, generate, arguments)


def in_memory(options: Options) -> tuple[bytes, Truth]:
    target = io.BytesIO()
    truth = generate(target, options)
    return target.getvalue(), truth


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    path = tmp_path_factory.mktemp("generated") / "session.jsonl"
    arguments = "--size 3M --boundaries 9 --preserved-every 3 --images 1"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        run(str(path), *arguments.split())
    content = path.read_bytes()
    lines = content.split(b"\n")[:-1]
    truth = json.loads(printed.getvalue())
    return Sample(content, lines, [json.loads(line) for line in lines], truth)


def test_the_same_options_give_the_same_bytes() -> None:
    options = Options(size=MIB, boundaries=4, seed=11)
    assert in_memory(options) == in_memory(options)


def test_another_seed_gives_another_session() -> None:
    first, second = (Options(size=MIB, boundaries=4, seed=seed) for seed in (1, 2))
    assert in_memory(first) != in_memory(second)
    assert first.session_id != second.session_id


def test_these_options_gave_these_bytes_on_every_python_so_far() -> None:
    _, truth = in_memory(Options(size=MIB, boundaries=4, seed=7, preserved_every=2, images=1))
    assert truth.sha256 == "97c3f750646dffbf01f8b87f0446ddd6e10a3d9007e9dfe6ec73d4de04055137"


def test_its_rows_name_their_session(sample: Sample) -> None:
    named = {row["sessionId"] for row in sample.rows if "sessionId" in row}
    assert named == {Options().session_id}


def test_every_line_is_json_as_the_client_would_print_it(sample: Sample) -> None:
    assert sample.content.endswith(b"\n")
    for line, row in zip(sample.lines, sample.rows, strict=True):
        assert json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode() == line


def test_text_is_not_only_ascii_and_not_only_printable(sample: Sample) -> None:
    assert "境界".encode() in sample.content
    assert "\u2028".encode() in sample.content
    assert rb"\u001b[" in sample.content
    assert rb"C:\\Depot" in sample.content


def test_size_and_digest_are_told_truly(sample: Sample) -> None:
    assert sample.truth["bytes"] == len(sample.content)
    assert sample.truth["sha256"] == hashlib.sha256(sample.content).hexdigest()


def test_boundaries_are_told_truly(sample: Sample) -> None:
    starts = [0, *itertools.accumulate(len(line) + 1 for line in sample.lines)]
    found = [starts[number] for number in sample.boundary_numbers]
    assert len(found) == 9
    assert sample.truth["boundaries"] == found


def test_every_decoy_occurs(sample: Sample) -> None:
    results = [
        (line, row["toolUseResult"])
        for line, row in zip(sample.lines, sample.rows, strict=True)
        if MARKER in line and "toolUseResult" in row
    ]
    escaped = [result["stdout"] for _, result in results if "stdout" in result]
    nested = [result["structuredContent"] for _, result in results if "stdout" not in result]
    micro = [row for row in sample.rows if row.get("subtype") == "microcompact_boundary"]
    assert all((escaped, nested, micro))
    quoted = [line for text in escaped for line in text.split("\n") if line.startswith('{"par')]
    assert len(quoted) == len(escaped)
    assert all(is_boundary(json.loads(line)) for line in quoted)
    assert all(is_boundary(content["entries"][0]) for content in nested)


def test_a_search_for_the_marker_finds_more_than_the_boundaries(sample: Sample) -> None:
    hits = [line for line in sample.lines if b'"subtype":"compact_boundary"' in line]
    assert len(hits) > len(sample.boundary_numbers)


def test_rows_form_a_chain_that_only_boundaries_interrupt(sample: Sample) -> None:
    seen: set[str] = set()
    for row in sample.rows:
        if "uuid" not in row:
            continue
        assert row["uuid"] not in seen
        assert row["parentUuid"] in seen or is_boundary(row) or not seen
        assert row.get("logicalParentUuid") in {None, *seen}
        seen.add(row["uuid"])


def test_time_never_goes_back(sample: Sample) -> None:
    times = [row["timestamp"] for row in sample.rows if "timestamp" in row]
    assert times == sorted(times)


def test_every_nth_boundary_preserves_the_rows_just_before_it(sample: Sample) -> None:
    for ordinal, number in enumerate(sample.boundary_numbers, start=1):
        preserved = sample.rows[number]["compactMetadata"].get("preservedMessages")
        assert bool(preserved) == (ordinal % 3 == 0)
        if preserved:
            conversation = [
                row["uuid"]
                for row in sample.rows[:number]
                if "uuid" in row and row["type"] != "progress"
            ]
            assert preserved["uuids"] == conversation[-len(preserved["uuids"]) :]
            assert preserved["anchorUuid"] == sample.rows[number + 1]["uuid"]


@pytest.mark.parametrize("boundaries", [0, 1, 18])
@pytest.mark.parametrize("size", [MIB, 4 * MIB])
def test_the_size_is_what_was_asked_for(size: int, boundaries: int) -> None:
    content, truth = in_memory(Options(size=size, boundaries=boundaries))
    assert len(truth.boundaries) == boundaries
    assert abs(len(content) - size) < size * 0.05


@pytest.mark.parametrize("tail", [20_000, 500_000])
def test_the_tail_is_what_was_asked_for(tail: int) -> None:
    content, truth = in_memory(Options(size=2 * MIB, boundaries=3, tail=tail))
    after_boundary = len(content) - content.index(b"\n", truth.boundaries[-1]) - 1
    assert abs(after_boundary - tail) < 5_000


def test_asked_counts_are_kept_to_even_where_they_hardly_fit() -> None:
    content, _ = in_memory(Options(size=1000, boundaries=3, images=1))
    assert sum(is_boundary(json.loads(line)) for line in content.splitlines()) == 3
    assert content.count(b'"content":[{"type":"image",') == 1


def test_a_size_that_is_none_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stopped, contextlib.redirect_stderr(io.StringIO()):
        run(str(tmp_path / "session.jsonl"), "--size", "4X")
    assert stopped.value.code == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read there")
def test_memory_stays_below_60_mib() -> None:
    # VmHWM and not ru_maxrss: that one starts from the memory of the process that forked.
    program = """
import os, re, sys
sys.path.insert(0, sys.argv[1])
from generate_session import Options, generate
with open(os.devnull, "wb", buffering=1 << 20) as target:
    generate(target, Options(size=60 << 20, boundaries=20, images=2))
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""
    command = [sys.executable, "-c", program, str(SCRIPTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60 * 1024
