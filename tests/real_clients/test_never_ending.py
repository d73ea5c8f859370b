"""A session that never ends stays at one live tail, by the hook that people install.

Rule: the judge is the same client without the hook, in the same home: what it sends, and what it
writes. Nothing is compared before the hook's process is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from real_clients.test_live_rotation import (
    COMPACT,
    COMPACTED,
    LOOK,
    Lives,
    Running,
    compactions,
    live,
    lives,
    resumes_as_whole,
)
from support import oracle
from support.processes import hooked, idle, needs_proc
from support.real_clients.judge import compare
from support.real_clients.making import FULL, WINDOW
from support.real_clients.mock_api import usage
from support.real_clients.normal import Sent, normalise
from support.real_clients.rotating import archived, run, stitched

if TYPE_CHECKING:
    from pathlib import Path

    from support.real_clients.client import Client

pytestmark = needs_proc
__all__ = ["lives"]  # a fixture

ROUNDS: Final = 20
BY_ITSELF: Final = 4
"""Each fourth compaction is one that nobody asked for."""


def install(client: Client) -> None:
    assert run(client, "hook", "install", "--min-gain", "0").code == 0


def waits_for_the_end(client: Client, *, by_itself: bool) -> bool:
    """Tell whether the hook leaves a compaction of a program's backend to the session's end."""
    return (2, 1, 112) <= client.version.key < (2, 1, 160) and not by_itself


def test_a_session_goes_on_that_its_hook_rotates_at_each_compaction(lives: Lives) -> None:
    client = lives.again()
    install(client)
    found: list[int] = []

    def step(running: Running, text: str) -> None:
        running.say(text)
        if text in COMPACTED:
            hooked(client.config)
            found.append(archived(client, running.path))

    path = live(client, step)
    idle(client.config)
    left = waits_for_the_end(client, by_itself=False)
    assert found == ([0, 0, 0, 4, 4] if left else [1, 2, 3, 4, 5])
    assert archived(client, path) == len(oracle.boundaries(stitched(client, path)))
    assert not [*client.config.glob("sessrotate/hook/*")]
    assert run(client, "doctor").code == 0
    assert run(client, "hook", "remove").code == 0
    lives.check(path)


def lived(client: Client, *, by_hook: bool) -> tuple[Path, list[int], list[Sent]]:
    """Live a session of many compactions in one process.

    Return its file, that file's bytes after each compaction that its hook has rotated, and what was
    sent.
    """
    done, sizes = len(client.api.requests()), list[int]()
    if by_hook:
        install(client)
    with client.conversation(environment=WINDOW) as opened:
        running = Running(client, opened)
        for number in range(ROUNDS):
            by_itself = number % BY_ITSELF == BY_ITSELF - 1
            running.say(f"Round {number}. {LOOK}")
            if by_itself:
                running.say(f"Round {number} fills the window. {usage(FULL)}")
                running.compactions += 1
            running.say(f"Round {number}, on." if by_itself else COMPACT)
            if by_hook and not waits_for_the_end(client, by_itself=by_itself):
                hooked(client.config)
                data = running.path.read_bytes()
                assert compactions(data) == 1
                sizes.append(len(data))
    idle(client.config)
    sent = [
        normalise(request.body, client.places())
        for request in client.api.requests()[done:]
        if request.is_conversation or request.is_compaction
    ]
    return running.path, sizes, sent


def test_a_process_that_is_compacted_twenty_times_stays_at_one_live_tail(client: Client) -> None:
    fresh = client.save()
    path, _, alone = lived(client, by_hook=False)
    whole = len(path.read_bytes())
    client.put_back(fresh)
    path, sizes, sent = lived(client, by_hook=True)
    waits = waits_for_the_end(client, by_itself=False)
    assert len(sizes) == (ROUNDS // BY_ITSELF if waits else ROUNDS)
    first, second = sizes[: len(sizes) // 2], sizes[len(sizes) // 2 :]
    assert max(second) < 1.25 * max(first)
    assert max(sizes) < whole / 3
    assert len(sent) == len(alone)
    for expected, other in zip(alone, sent, strict=True):
        assert compare(expected, other) == []
    history = stitched(client, path)
    assert compactions(history) == ROUNDS
    assert archived(client, path) == len(oracle.boundaries(history))
    assert run(client, "verify", path.stem).code == 0
    resumes_as_whole(client, path)
