"""Generated rollouts of Codex hold what the generator says they hold."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
from typing import Any

import pytest

import generate_codex
from dice import Truth
from generate_codex import Options
from sessrotate.clients.codex import client as codex
from sessrotate.clients.codex.reader import sight, view
from sessrotate.clients.preview import EDGE
from sessrotate.parsing import records

SIZE = 3 << 20
EVERY = (
    Options(size=SIZE, boundaries=0),
    Options(size=SIZE, boundaries=4),
    Options(size=SIZE, boundaries=4, images=2, image_bytes=50_000),
    Options(size=SIZE, boundaries=2, seed=9, compacted=20),
    Options(size=0, boundaries=0),
)


def made(options: Options) -> tuple[bytes, Truth]:
    target = io.BytesIO()
    truth = generate_codex.generate(target, options)
    return target.getvalue(), truth


@pytest.mark.parametrize("options", EVERY, ids=str)
def test_what_it_says_is_what_it_wrote(options: Options) -> None:
    data, truth = made(options)
    assert truth.bytes == len(data)
    assert truth.sha256 == hashlib.sha256(data).hexdigest()
    rows: list[dict[str, Any]] = [json.loads(line) for line in data.splitlines()]
    starts = [0, *itertools.accumulate(len(line) + 1 for line in data.splitlines())]
    found = [number for number, row in enumerate(rows) if row["type"] == "compacted"]
    assert tuple(starts[number] for number in found) == truth.boundaries
    assert len(found) == options.boundaries
    assert all("replacement_history" in rows[number]["payload"] for number in found)
    assert [row["ordinal"] for row in rows] == list(range(len(rows)))
    assert len(data) >= options.size


def test_the_same_options_give_the_same_bytes_and_another_seed_others() -> None:
    first, again = made(EVERY[2]), made(EVERY[2])
    assert first == again
    assert made(Options(size=0, boundaries=0, seed=8))[0] != made(EVERY[4])[0]


@pytest.mark.parametrize("options", EVERY, ids=str)
def test_it_is_a_session_that_reads_like_one(options: Options) -> None:
    data, _ = made(options)
    assert codex.recognise(data[: 256 * 1024], is_whole=False)
    name = f"rollout-2026-02-10T08-00-00-{options.session_id}.jsonl"
    assert codex.session_of(name) == json.loads(data.splitlines()[0])["payload"]["id"]
    seen = sight(data[:EDGE], data[-EDGE:], is_whole=False)
    assert seen.title.source == "first prompt"
    views = [view(record) for record in records([data], 0)]
    assert all(each is not None for each in views)
    asked = [each for each in views if each and each.kind == "user" and each.type == "message"]
    assert len(asked) == data.count(b'{"type":"task_started",')


def test_most_bytes_are_in_compacted_records_if_that_is_asked_for() -> None:
    data, truth = made(Options(size=SIZE, boundaries=8, compacted=90))
    compacted = [data.index(b"\n", start) - start for start in truth.boundaries]
    assert sum(compacted) > len(data) * 3 // 4
