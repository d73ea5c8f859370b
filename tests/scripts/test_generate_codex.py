"""Generated rollouts of Codex hold what the generator says they hold."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import pytest

import generate_codex
from generate_codex import Options, Truth
from sessrotate.clients.codex import client as codex
from sessrotate.clients.codex.reader import sight, view
from sessrotate.clients.preview import EDGE
from sessrotate.parsing.records import records

SIZE = 3 << 20
EVERY = (
    Options(size=SIZE, boundaries=0, shape="bare"),
    Options(size=SIZE, boundaries=4, shape="legacy", carries=False),
    Options(size=SIZE, boundaries=4, shape="legacy"),
    Options(size=SIZE, boundaries=4, images=2, image_bytes=50_000),
    Options(size=SIZE, boundaries=2, fork=True, seed=9, compacted=20),
    Options(size=0, boundaries=0),
)


def made(options: Options) -> tuple[bytes, Truth]:
    target = io.BytesIO()
    truth = generate_codex.generate(target, options)
    return target.getvalue(), truth


@pytest.mark.parametrize("options", EVERY, ids=str)
def test_what_it_says_is_what_it_wrote(options: Options) -> None:
    data, truth = made(options)
    assert (truth.bytes, truth.lines) == (len(data), data.count(b"\n"))
    assert truth.sha256 == hashlib.sha256(data).hexdigest()
    rows: list[dict[str, Any]] = [json.loads(line) for line in data.splitlines()]
    found = (
        [number for number, row in enumerate(rows, 1) if row["type"] == "compacted"]
        if (options.shape != "bare")
        else []
    )
    assert found == [boundary.line for boundary in truth.boundaries]
    assert len(found) == options.boundaries
    for boundary in truth.boundaries:
        row = json.loads(data[boundary.offset : data.index(b"\n", boundary.offset)])
        assert ("replacement_history" in row["payload"]) == boundary.carries == options.carries
    if options.shape == "paginated":
        assert [row["ordinal"] for row in rows] == list(range(len(rows)))
    assert len(data) >= options.size


def test_the_same_options_give_the_same_bytes_and_another_seed_others() -> None:
    first, again = made(EVERY[3]), made(EVERY[3])
    assert first == again
    assert made(Options(size=0, boundaries=0, seed=8))[0] != made(EVERY[5])[0]


@pytest.mark.parametrize("options", EVERY, ids=str)
def test_it_is_a_session_that_reads_like_one(options: Options) -> None:
    data, truth = made(options)
    assert codex.recognise(data[: 256 * 1024], is_whole=False)
    assert codex.session_of(truth.file_name) == truth.session_id
    seen = sight(data[:EDGE], data[-EDGE:], is_whole=False)
    assert seen.title.source == "first prompt"
    assert (seen.origin is not None) == options.fork
    views = [view(record) for record in records([data], 0)]
    assert all(each is not None for each in views)
    asked = [each for each in views if each and each.kind == "user" and each.type == "message"]
    assert len(asked) == truth.prompts


def test_most_bytes_are_in_compacted_records_if_that_is_asked_for() -> None:
    _, truth = made(Options(size=SIZE, boundaries=8, compacted=90))
    assert truth.kinds["compacted"].bytes > truth.bytes * 3 // 4


@pytest.mark.parametrize(
    "options",
    [{"size": -1}, {"shape": "round"}, {"compacted": 101}, {"shape": "bare", "boundaries": 1}],
)
def test_what_cannot_be_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"cannot be|no such|had no"):
        Options(**options)
