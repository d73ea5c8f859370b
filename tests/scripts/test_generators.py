"""Generated sessions hold what their generators say, checked with `json.loads` and the bytes alone.

Nothing here shares code with the generators but their entry points. A digest is that of every
Python, machine and release so far: what was measured with a session can be measured again.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
from typing import Any, Final

import pytest

import generate_codex
import generate_gemini
import generate_session
from dice import Truth
from sessrotate.clients.gemini import reader
from support.conformance.specimen import Specimen
from support.conformance.specimens import claude, codex, gemini
from support.gemini_sessions import Held

MIB: Final = 1 << 20
CLAUDE: Final = generate_session.Options(size=MIB, boundaries=4, preserved_every=2, images=1)
CODEX: Final = generate_codex.Options(size=3 * MIB, boundaries=4, images=2, image_bytes=50_000)
GEMINI: Final = generate_gemini.Options(size=2 * MIB, resumes=4, history=120_000, big=80_000)


def made(options: Any) -> tuple[bytes, Truth]:
    target = io.BytesIO()
    generators = {CLAUDE: generate_session, CODEX: generate_codex, GEMINI: generate_gemini}
    truth: Truth = generators[options].generate(target, options)
    return target.getvalue(), truth


@pytest.mark.parametrize(
    ("options", "specimen", "boundaries", "digest"),
    [
        pytest.param(
            CLAUDE,
            claude.SPECIMEN,
            4,
            "97c3f750646dffbf01f8b87f0446ddd6e10a3d9007e9dfe6ec73d4de04055137",
            id="claude",
        ),
        pytest.param(
            CODEX,
            codex.SPECIMEN,
            4,
            "8b90b68a8e10220fcc58eae90df632fa26008fa525217a5e6ed1d864ba5456be",
            id="codex",
        ),
        pytest.param(
            GEMINI,
            gemini.SPECIMEN,
            12,
            "c78fa988fe008686701136738c69578c72339ca9e072cb70cba40fa41daa2cb8",
            id="gemini",
        ),
    ],
)
def test_the_same_options_give_the_same_session_on_every_python_so_far(
    options: Any, specimen: Specimen, boundaries: int, digest: str
) -> None:
    data, truth = made(options)
    assert truth.sha256 == hashlib.sha256(data).hexdigest() == digest
    assert truth.bytes == len(data)
    assert abs(len(data) - options.size) < options.size * 0.05
    assert [*truth.boundaries] == specimen.boundaries(data)
    assert len(truth.boundaries) == boundaries
    assert specimen.client.recognise(data[: 256 << 10], is_whole=False)


def test_every_decoy_occurs() -> None:
    data, _ = made(CLAUDE)
    rows = [json.loads(line) for line in data.splitlines() if b"compact_boundary" in line]
    results = [row["toolUseResult"] for row in rows if "toolUseResult" in row]
    escaped = [result["stdout"] for result in results if "stdout" in result]
    nested = [result["structuredContent"] for result in results if "stdout" not in result]
    micro = [row for row in rows if row.get("subtype") == "microcompact_boundary"]
    assert all((escaped, nested, micro))
    quoted = [line for text in escaped for line in text.split("\n") if line.startswith('{"par')]
    assert len(quoted) == len(escaped)
    decoys = [*map(json.loads, quoted), *(content["entries"][0] for content in nested)]
    assert {(row["type"], row["subtype"]) for row in decoys} == {("system", "compact_boundary")}


def test_a_rollout_of_codex_is_told_as_it_was_written() -> None:
    data, truth = made(CODEX)
    rows: list[dict[str, Any]] = [json.loads(line) for line in data.splitlines()]
    starts = [0, *itertools.accumulate(len(line) + 1 for line in data.splitlines())]
    found = [number for number, row in enumerate(rows) if row["type"] == "compacted"]
    assert tuple(starts[number] for number in found) == truth.boundaries
    assert all("replacement_history" in rows[number]["payload"] for number in found)
    assert [row["ordinal"] for row in rows] == [*range(len(rows))]


def test_a_resume_of_gemini_sends_what_is_live() -> None:
    data, _ = made(GEMINI)
    live: dict[str, bool] = {}
    for row in map(json.loads, data.splitlines()):
        if "messages" in row.get("$set", {}):
            live = {each["id"]: True for each in row["$set"]["messages"][1:]}
        elif "id" in row:
            live[row["id"]] = True
    session = Held(data)
    sent = [json.loads(record.line)["id"] for record in reader.conversation(session)]
    assert sent == [*live]
    told = map(reader.key, reader.said(session.history(), session.bytes_of))
    keys = [key for key in told if key is not None]
    assert len(set(keys)) == len(keys) >= len(live)
