"""A session with a Stop hook stays at one live tail, however often it is compacted and rotated.

Rule: 2.1.200 and 2.1.260 wrote rows that had its ancestors carried, more at each rotation; the
versions of CI never did. So `scripts/check-client --all` has those two live it, too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from real_clients.test_live_rotation import COMPACT, LOOK, Running, resumes_as_whole
from support.processes import needs_proc
from support.real_clients.judge import compare
from support.real_clients.rotating import archived, run, stitched

if TYPE_CHECKING:
    from support.real_clients.client import Client

pytestmark = needs_proc

ROTATIONS: Final = 5
TURNS: Final = 5
MOST: Final = 40_000
"""Bytes that a live file may have right after a rotation."""


def test_a_life_with_a_stop_hook_leaves_little_at_each_of_five_rotations(
    client: Client, later: list[Client]
) -> None:
    entry = {"hooks": [{"type": "command", "command": "cat >/dev/null"}]}
    (client.config / "settings.json").write_text(json.dumps({"hooks": {"Stop": [entry]}}))
    sizes: list[int] = []
    with client.conversation() as opened:
        running = Running(client, opened)
        for number in range(ROTATIONS):
            for turn in range(TURNS):
                running.say(f"Round {number}, turn {turn}. {LOOK} {LOOK}")
            running.say(COMPACT)
            before = stitched(client, running.path)
            ended = run(client, "split", "--in-place", "--live", running.session)
            assert ended.code == 0, ended
            assert archived(client, running.path) > number
            assert stitched(client, running.path).startswith(before)
            sizes.append(running.path.stat().st_size)
    path = running.path
    assert b'"stop_hook_summary"' in stitched(client, path) or client.version.like == "2.0.28"
    assert max(sizes) < MOST, sizes
    assert sizes[-1] < len(stitched(client, path)) / 5
    resumes_as_whole(client, path)
    whole = client.home / "whole.jsonl"
    for judge in later:
        expected = judge.resume_request(whole, beside=path)
        assert compare(expected, judge.resume_request(path)) == []
