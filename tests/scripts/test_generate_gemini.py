"""The generator keeps its word: checked against the bytes alone, read with `json.loads`."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import generate_gemini
from dice import Truth
from generate_gemini import Options, generate
from sessrotate.clients.gemini import reader
from support.gemini_sessions import Held

KIB = 1 << 10
OPTIONS = Options(size=900 * KIB, resumes=4, history=120 * KIB, big=80 * KIB)


def made(options: Options) -> tuple[bytes, Truth]:
    target = io.BytesIO()
    truth = generate(target, options)
    return target.getvalue(), truth


def test_the_same_options_give_the_same_bytes() -> None:
    data, truth = made(OPTIONS)
    assert made(OPTIONS) == (data, truth)
    assert truth.bytes == len(data) >= OPTIONS.size
    assert truth.sha256 == hashlib.sha256(data).hexdigest()
    assert made(Options(size=OPTIONS.size, seed=8))[0] != data


def test_lines_are_written_as_the_client_writes_them() -> None:
    data, truth = made(OPTIONS)
    boundaries, names, at = [], [], 0
    for line in data.split(b"\n")[:-1]:
        row: dict[str, Any] = json.loads(line)
        assert json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() == line
        if "messages" in row.get("$set", {}):
            boundaries.append(at)
        elif "id" in row:
            names.append(row["id"])
        at += len(line) + 1
    assert tuple(boundaries) == truth.boundaries
    assert len(boundaries) >= 1 + OPTIONS.resumes
    assert len(names) > len(set(names))
    assert b'"args":{"$set":{"messages":[' in data


def test_a_resume_sends_what_is_live() -> None:
    data, _ = made(OPTIONS)
    live: dict[str, bool] = {}
    for row in map(json.loads, data.splitlines()):
        if "messages" in row.get("$set", {}):
            live = {each["id"]: True for each in row["$set"]["messages"][1:]}
        elif "id" in row:
            live[row["id"]] = True
    session = Held(data)
    sent = [json.loads(record.line)["id"] for record in reader.conversation(session)]
    assert sent == [*live]
    told = [
        record
        for record in reader.said(session.history(), session.bytes_of)
        if reader.key(record) is not None
    ]
    keys = [reader.key(record) for record in told]
    assert len(set(keys)) == len(keys) >= len(live)


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    script = Path(generate_gemini.__file__)
    arguments = (str(script), str(out), "--size", "100K", "--resumes", "1")
    done = subprocess.run((sys.executable, *arguments), check=True, capture_output=True)
    said = json.loads(done.stdout)
    assert said["bytes"] == out.stat().st_size
    assert said["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
