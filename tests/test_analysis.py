"""Whether the query of docs/guide/analysis.md counts what there is in an archive."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import duckdb
import pytest

import generate_session
from support import homes

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "analysis.md"


def counted(data: bytes) -> list[tuple[object, ...]]:
    """Return what the answers cost, by day and model: rows parsed one by one."""
    answers: dict[str, tuple[str, str, dict[str, int]]] = {}
    for line in data.splitlines():
        row = json.loads(line)
        if row["type"] == "assistant":
            message = row["message"]
            told = (row["timestamp"][:10], message["model"], message["usage"])
            answers.setdefault(message["id"], told)
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for day, model, usage in answers.values():
        names = ("input_tokens", "cache_read_input_tokens", "output_tokens")
        for number, value in enumerate((1, *(usage[name] for name in names))):
            sums[day, model][number] += value
    return [(*key, *values) for key, values in sorted(sums.items())]


def test_the_query_sums_a_whole_archive_with_its_live_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = generate_session.Options(size=4 << 20, boundaries=5, preserved_every=2)
    with (tmp_path / "made.jsonl").open("wb") as file:
        generate_session.generate(file, options)
    data = (tmp_path / "made.jsonl").read_bytes()
    half = data[: data.index(b"\n", len(data) // 2) + 1]
    home = homes.home(tmp_path / ".claude", monkeypatch, half)
    home.rotate()
    home.append(data[len(half) :] + b'{"type":"assistant","torn')

    found = re.search(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    query = found[1].replace("~/.claude", str(home.config))
    assert query.count(str(home.config)) == 2
    answer = duckdb.sql(query)
    assert answer is not None
    assert answer.fetchall() == counted(data)
