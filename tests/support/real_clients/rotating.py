"""The real command, run on a session in a client's own home.

It promises that a rotation which it reports as done kept every byte, moved all that it should and
left only what it should; anything else fails here, whatever the client makes of it.

Rule: what is expected is computed from bytes by the oracle, never by the code under test.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec.structs import replace

from sessrotate.archive import place, state
from sessrotate.clients.claude import carried_lines
from sessrotate.clients.in_place import LivePlan
from sessrotate.in_place import rotate as in_place_rotate
from support import oracle, sets
from support.command_line import REAL, Ended, called, piped
from support.real_clients.normal import normalise

if TYPE_CHECKING:
    from pathlib import Path

    from support.real_clients.client import Client

REFUSED: Final = 77

_HEADER: Final = 512
"""Bytes that a file may grow by where everything before its boundary is carried."""

_CONVERSATION: Final = {"user", "assistant", "system"}
_SAID: Final = ("type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "isMeta", "message")


def run(client: Client, *arguments: str | Path) -> Ended:
    """Run the command as a user of this client would: a process of its own."""
    environment = {"CLAUDE_CONFIG_DIR": str(client.config), "HOME": str(client.home / "user")}
    return piped(*arguments, env=environment, program=REAL)


def rotate(client: Client, session_file: Path) -> Ended:
    """Rotate a session in place; check what that did to its bytes, or that it did nothing."""
    before, live_before = stitched(client, session_file), session_file.read_bytes()
    archived_before = archived(client, session_file)
    files_before = files(client)
    ended = run(client, "split", "--in-place", session_file)
    if ended.code:
        assert ended.code == REFUSED, ended
        assert files(client) == files_before
        return ended
    parts = oracle.bodies(before)
    live = session_file.read_bytes()
    assert stitched(client, session_file) == before
    assert archived(client, session_file) == (len(parts) - 1 if any(parts[:-1]) else 0)
    assert live.endswith(parts[-1])
    if archived(client, session_file) == archived_before:
        assert live == live_before or ("Put " in ended.out and len(live) > len(live_before))
    else:
        assert len(live) < len(live_before) + _HEADER
    return ended


def rotate_all_the_same(client: Client, path: Path) -> None:
    """Rotate a session with all refusals put aside.

    Where there is no plan then, nothing is carried. A last line gets its newline for as long as
    that takes.
    """
    whole, planned = path.read_bytes(), carried_lines.plan

    def plan(*given: Any, **options: Any) -> LivePlan:
        return replace(planned(*given, **options), refusals=())

    is_whole = whole.endswith(b"\n")
    if not is_whole:
        path.write_bytes(whole + b"\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_CONFIG_DIR", str(client.config))
        patch.setattr(carried_lines, "plan", plan)
        patch.setattr(in_place_rotate, "_copied", lambda *_: iter(()))
        ended = called("split", "--in-place", path)
    assert ended.code == 0, ended
    assert archived(client, path) > 0, ended
    if not is_whole:
        path.write_bytes(path.read_bytes().removesuffix(b"\n"))


def stitched(client: Client, session_file: Path) -> bytes:
    """Return the whole history of a session."""
    with state.opened(place_of(client, session_file)) as found:
        return sets.whole(found)


def archived(client: Client, session_file: Path) -> int:
    """Return how many segments of a session are archived, none of one that is whole again."""
    folder = place_of(client, session_file).archive
    if (folder / "record.json").exists() and b"segment_header" not in _first(session_file):
        return 0
    return len([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.zst")])


def _first(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline()


def place_of(client: Client, session_file: Path) -> place.Place:
    return place.Place(client.config, client.project.name, session_file.stem, session_file)


def files(client: Client) -> dict[Path, bytes]:
    """Return all session files of a client and all archives, with what is in them."""
    return {
        path: path.read_bytes()
        for top in ("projects", place.FOLDER)
        for path in sorted((client.config / top).rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


def conversation(data: bytes) -> list[Any]:
    """Return what the rows of the conversation in a session say, and how they hang together.

    Other rows count for less: 2.1.330 repeats its metadata when that is far from the end of the
    file, which in a rotated one it is later.
    """
    parts = [{key: row.get(key) for key in _SAID} for row in map(json.loads, data.splitlines())]
    said = [part for part in parts if part["type"] in _CONVERSATION]
    return list(normalise({"messages": said}, {}).messages)
