"""A rotated session that its own client trims: it goes on behind a gap, and is resumed the same.

Rule: the client is told to trim by its environment, as the Agent SDK's users do (2.1.287 and
later). What it sends of the file that it left is what it must send of that file once it is rotated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from support.real_clients.client import Client, version
from support.real_clients.judge import compare
from support.real_clients.rotating import rotate, run

if TYPE_CHECKING:
    from pathlib import Path

    from support.real_clients.mock_api import MockApi

TRIMS: Final = {"CLAUDE_CODE_TRANSCRIPT_LOCAL_GC": "1"}

LARGE: Final = "Three. " + "x" * 5_600_000
"""A prompt that makes the file so large that a compaction trims it: from 5 MiB on."""


@pytest.mark.parametrize("number", ["2.1.287", "2.1.330", "2.1.332"])
def test_a_rotated_session_that_its_client_trims_goes_on_behind_a_gap(
    tmp_path: Path, api: MockApi, number: str
) -> None:
    client = Client(version(number), tmp_path / "home", api)
    session = client.converse(["One.", "Two."])[0].session
    client.compact(session)
    live = client.session_file(session)
    assert rotate(client, live).code == 0
    client.converse([LARGE, "/compact", "Four."], resume=session, environment=TRIMS)
    assert live.stat().st_size < 1_000_000
    history, request = run(client, "stitch", "--allow-gaps", session), client.resume_request(live)
    assert history.code == 0
    assert "the client cut segment 1 out of its own file" in history.err
    assert "One." in history.out
    assert run(client, "export", session).code == 0
    client.converse(["Five.", "/compact", "Six."], resume=session)
    history, request = run(client, "stitch", "--allow-gaps", session), client.resume_request(live)
    ended = run(client, "rotate", session)
    assert (ended.code, "Moved 2 segments" in ended.out) == (0, True), ended
    assert not compare(client.resume_request(live), request)
    again = run(client, "stitch", "--allow-gaps", session)
    assert (again.code, again.out) == (0, history.out)
    assert run(client, "verify", session).code == 1
