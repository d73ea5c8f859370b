"""The real client calls the hook at the end of a session, and goes on as if nothing had been done.

Rule: a process that the hook started has ended before anything is compared; the harness ends the
whole group of the client as soon as that is done, so it has to be in one of its own.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, Final

import pytest

from real_clients.test_in_place import different, going_on, left_alone, nothing
from support import oracle
from support.processes import idle, needs_proc
from support.real_clients.making import Sessions, talk
from support.real_clients.rotating import archived, conversation, run, stitched

if TYPE_CHECKING:
    from pathlib import Path

    from support.real_clients.client import Client

pytestmark = needs_proc

SAID: Final = {"session_id", "transcript_path", "cwd", "hook_event_name", "reason"}
"""What every version says."""


def spied(client: Client) -> Path:
    """Have the client tell a file what it tells a hook; return that file."""
    told = client.home / "told"
    command = f"cat > {shlex.quote(str(told))}; env -0 > {shlex.quote(str(told))}.environment"
    entry = {"hooks": [{"type": "command", "command": command, "timeout": 10}]}
    settings = {"hooks": {"SessionEnd": [entry]}}
    (client.config / "settings.json").write_text(json.dumps(settings))
    return told


def test_what_the_client_says_is_what_the_hook_reads(client: Client) -> None:
    told = spied(client)
    session = talk(client, "Spied", turns=1)
    found: dict[str, Any] = json.loads(told.read_bytes())
    environment = told.with_suffix(".environment").read_text().split("\0")
    assert set(found) >= SAID
    assert found["session_id"] == session
    assert found["transcript_path"] == str(client.session_file(session))
    assert found["hook_event_name"] == "SessionEnd"
    assert f"CLAUDE_CONFIG_DIR={client.config}" in environment


@pytest.mark.parametrize("kind", ["with_tools", "compacted_twice_at_once", "long"])
def test_a_session_rotated_by_the_hook_whenever_it_ends_goes_on_as_if_it_never_was(
    sessions: Sessions, kind: str
) -> None:
    expected, whole = left_alone(sessions, kind)
    client, path = sessions.get(kind)
    assert run(client, "hook", "install", "--min-gain", "0").code == 0
    grown = [path.read_bytes()]

    def ended(client: Client, path: Path) -> None:
        idle(client.config)
        if archived(client, path) == 0:
            assert path.read_bytes() == grown[-1]  # nothing has ended yet
            return
        grown.append(stitched(client, path))
        assert grown[-1].startswith(grown[-2])
        assert archived(client, path) == len(oracle.boundaries(grown[-1]))

    assert different(expected, [*going_on(client, path, ended)]) == []
    ended(client, path)
    assert len(grown) == 1 + len(expected)
    assert conversation(grown[-1]) == conversation(whole)
    assert not [*client.config.glob("sessrotate/hook/*")]
    assert run(client, "doctor").code == 0
    assert run(client, "verify", path).code == 0
    assert run(client, "hook", "remove").code == 0
    assert not (client.config / "settings.json").exists()


def test_a_session_resumed_at_once_while_it_is_still_being_rotated_goes_on_the_same(
    sessions: Sessions,
) -> None:
    expected, whole = left_alone(sessions, "with_tools")
    client, path = sessions.get("with_tools")
    assert run(client, "hook", "install", "--min-gain", "0").code == 0
    assert different(expected, [*going_on(client, path, nothing)]) == []
    idle(client.config)
    grown = stitched(client, path)
    assert conversation(grown) == conversation(whole)
    assert archived(client, path) == len(oracle.boundaries(grown))
    assert run(client, "verify", path).code == 0
