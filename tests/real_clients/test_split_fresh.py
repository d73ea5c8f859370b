"""Sessions that the real client has just written are split and come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support import oracle, sets
from support.real_clients.judge import differences

if TYPE_CHECKING:
    from pathlib import Path

    from support.real_clients.making import Sessions


@pytest.mark.parametrize("kind", ["plain", "long", "compacted_often", "with_subagent"])
def test_a_fresh_session_is_cut_at_its_compactions_and_comes_back(
    sessions: Sessions, tmp_path: Path, kind: str
) -> None:
    _, path = sessions.get(kind)
    data = path.read_bytes()
    manifest = sets.made(path, tmp_path / "set")
    starts = [entry.segment.span.start for entry in manifest.segments[1:]]
    assert starts == oracle.boundaries(data)
    assert (len(starts) > 0) == (kind != "plain")
    assert all(
        entry.segment.boundary and entry.segment.boundary.uuid for entry in manifest.segments[1:]
    )
    assert sets.stitched(tmp_path / "set") == data
    assert path.read_bytes() == data


def test_the_clients_own_resume_takes_a_stitched_session_for_the_original(
    sessions: Sessions, tmp_path: Path
) -> None:
    client, path = sessions.get("long")
    sets.made(path, tmp_path / "set")
    (tmp_path / "again.jsonl").write_bytes(sets.stitched(tmp_path / "set"))

    assert differences(client, path, tmp_path / "again.jsonl") == []
