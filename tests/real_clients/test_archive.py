"""The real client neither finds nor deletes what is away, and resumes what came back as before."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Final

import pytest

from real_clients.test_in_place import different, going_on, left_alone
from sessrotate.clients.claude import cleanup
from support.real_clients.client import ClientError
from support.real_clients.making import Sessions, talk
from support.real_clients.rotating import rotate, run, stitched

if TYPE_CHECKING:
    from pathlib import Path

    from support.real_clients.client import Client

SWEEPING: Final = 60.0
"""Seconds within which a client that deletes old sessions has done so: 2.1.330 begins after 5."""

LONG_AGO: Final = 40 * 86_400.0


def tree(client: Client) -> dict[str, tuple[object, ...]]:
    """Return all that a client has in its project, and when it was changed."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(client.project.rglob("*")):
        status = path.lstat()
        data = path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(client.project))] = (status.st_mode, status.st_mtime_ns, data)
    return found


def of_session(client: Client, session: str) -> set[str]:
    """Return the names of what is in the project and names a session."""
    return {
        name
        for name, (_, _, data) in tree(client).items()
        if session in name or (isinstance(data, bytes) and session.encode() in data)
    }


@pytest.mark.parametrize("kind", ["with_tools", "with_subagent"])
@pytest.mark.parametrize("rotated", [False, True], ids=["whole", "rotated"])
def test_a_session_put_away_and_back_again_goes_on_as_if_it_never_went(
    sessions: Sessions, kind: str, rotated: bool
) -> None:
    expected, _ = left_alone(sessions, kind)
    client, path = sessions.get(kind)

    def away_and_back(client: Client, path: Path) -> None:
        if rotated:
            assert rotate(client, path).code == 0
        before, whole = tree(client), stitched(client, path)
        assert run(client, "archive", path).code == 0
        assert of_session(client, path.stem) == set()
        assert run(client, "stitch", path.stem).out.encode() == whole
        with pytest.raises(ClientError):
            client.prompt("Are you there?", resume=path.stem)
        for name in tree(client).keys() - before.keys():  # what that left
            (client.project / name).unlink()
        assert run(client, "restore", "--keep-rotated", "--keep-times", path.stem).code == 0
        assert tree(client) == before

    assert different(expected, [*going_on(client, path, away_and_back)]) == []
    assert run(client, "doctor").code == 0


def test_what_is_put_away_outlives_the_clients_clean_up(client: Client) -> None:
    if client.version.like == "2.1.112":
        pytest.skip("its clean-up begins later than any test can wait")
    kept, lost = (client.session_file(talk(client, mark, turns=1)) for mark in ("Kept", "Lost"))
    then = time.time() - LONG_AGO
    for path in sorted(client.project.rglob("*")):
        os.utime(path, (then, then))
    before = tree(client)
    assert run(client, "archive", kept).code == 0
    with client.conversation() as conversation:
        conversation.say("Hello.")
        deadline = time.monotonic() + SWEEPING
        while lost.exists() and time.monotonic() < deadline:
            time.sleep(0.2)
    assert not lost.exists(), "this client deleted nothing, so that nothing is proved"
    ended = run(client, "restore", "--keep-times", kept.stem)
    assert ended.code == 0
    assert "--keep-times" in ended.err
    assert tree(client)[kept.name] == before[kept.name]
    assert run(client, "archive", kept).code == 0
    assert run(client, "restore", kept.stem).code == 0
    assert client.prompt("On.", resume=kept.stem).session
    assert kept.exists()


def test_with_a_period_of_0_only_old_clients_delete_what_was_just_used(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    if client.version.like == "2.1.112":
        pytest.skip("its clean-up begins later than any test can wait")
    path = client.session_file(talk(client, "Kept?", turns=1))
    file = client.config / "settings.json"
    said = json.loads(file.read_bytes()) if file.exists() else {}
    file.write_text(json.dumps({**said, "cleanupPeriodDays": 0}))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(client.config))
    at = cleanup.in_force().saved_at(path.stat(), 0.0, is_desktop=False)
    hour = time.time() - 3600
    for each in sorted(client.project.rglob("*")):
        os.utime(each, (hour, hour))
    (client.config / ".last-cleanup").unlink(missing_ok=True)
    with client.conversation() as conversation:
        conversation.say("Hello.")
        deadline = time.monotonic() + SWEEPING
        while path.exists() and time.monotonic() < deadline:
            time.sleep(0.2)
    assert path.exists() == (at is None)
