"""The real client goes on in a session rotated in place as it does in one that never was."""

from __future__ import annotations

import json
import shutil
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.in_place import seal
from support import oracle
from support.command_line import called
from support.real_clients.client import QUESTION
from support.real_clients.judge import compare
from support.real_clients.making import MAKERS, Sessions, compact, talk
from support.real_clients.mock_api import call
from support.real_clients.normal import Sent, normalise
from support.real_clients.rotating import (
    archived,
    conversation,
    place_of,
    rotate,
    run,
    stitched,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.real_clients.client import Client

    Between = Callable[[Client, Path], object]

FIXTURES = sorted(
    path
    for path in (Path(__file__).parents[2] / "fixtures" / "claude").glob("*/projects/*/*.jsonl")
    if not path.name.startswith("agent-")
)

DOWNGRADED = {("2.0.28", "hook-2.1.260"), ("2.1.112", "hook-2.1.260")}
"""Samples of later clients that load less than these: rows go that only these would send. Equality
is owed to the client that wrote the last compaction and to later ones; others need `restore`."""

REPEATING = {"auto-2.1.300", "dup-2.1.300", "hook-2.1.260"}
"""Samples of clients that append earlier rows again at a later compaction."""


def sent(client: Client, do: Callable[[], object]) -> list[Sent]:
    """Return the turns of agents and the compactions that the client sends while it does this."""
    before = len(client.api.requests())
    do()
    return [
        normalise(request.body, client.places())
        for request in client.api.requests()[before:]
        if request.is_conversation or request.is_compaction
    ]


PROCESSES: Final = 4


def going_on(client: Client, path: Path, between: Between) -> Iterator[list[Sent]]:
    """Use a session for a while; yield what each process sent. `between` comes before each."""
    session = path.stem
    looking = call("Bash", command="echo on; ls", description="Look")
    prompts = ["On, question 0.", f"On, look. {looking}", "On, question 1."]
    steps: list[Callable[[], object]] = [
        lambda: client.converse(prompts, resume=session),
        lambda: compact(client, session),
        lambda: talk(client, "Further", resume=session),
        lambda: client.prompt(QUESTION, resume=session),
    ]
    assert len(steps) == PROCESSES
    for step in steps:
        between(client, path)
        yield sent(client, step)


def forking(client: Client, trunk: Path, between: Between) -> Iterator[list[Sent]]:
    """Fork a session and use the fork; yield what each process sent."""
    forks: list[str] = []
    between(client, trunk)
    yield sent(
        client,
        lambda: forks.append(client.prompt("Fork.", resume=trunk.stem, fork=True).session),
    )
    assert forks != [trunk.stem]
    fork = client.session_file(forks[0])
    for step in (
        lambda: talk(client, "Branch", resume=fork.stem),
        lambda: compact(client, fork.stem),
        lambda: client.prompt(QUESTION, resume=fork.stem),
    ):
        between(client, fork)
        yield sent(client, step)


def nothing(_client: Client, _path: Path) -> None:
    """Leave a session alone."""


def left_alone(
    sessions: Sessions, kind: str, use: Callable[..., Iterator[list[Sent]]] = going_on
) -> tuple[list[list[Sent]], bytes]:
    """Return what is sent where nobody touches a session, and its bytes then; it is used once."""
    if (kind, use) not in sessions.lives:
        client, path = sessions.get(kind)
        sessions.lives[kind, use] = [*use(client, path, nothing)], path.read_bytes()
    return sessions.lives[kind, use]


def different(expected: list[list[Sent]], found: list[list[Sent]]) -> list[str]:
    """Return where the requests of two ways to go on differ, in words; nothing if nowhere."""
    assert [len(one) for one in found] == [len(one) for one in expected]
    return [
        f"process {process}, request {number}: {difference}"
        for process, (one, other) in enumerate(zip(expected, found, strict=True))
        for number, (left, right) in enumerate(zip(one, other, strict=True))
        for difference in compare(left, right)
    ]


@pytest.mark.parametrize("kind", MAKERS)
def test_a_session_rotated_whenever_possible_and_restored_goes_on_as_if_it_never_was(
    sessions: Sessions, kind: str
) -> None:
    expected, whole = left_alone(sessions, kind)
    client, path = sessions.get(kind)
    grown = [path.read_bytes()]
    made = len(oracle.boundaries(grown[0]))

    def rotating(client: Client, path: Path) -> None:
        before = path.stat()
        grown.append(stitched(client, path))
        assert rotate(client, path).code == 0
        # A fork by 2.1.330 has nothing before its boundary but a few lines that are carried.
        changed = path.stat().st_ino != before.st_ino
        assert not changed or path.stat().st_size < before.st_size or kind == "forked"
        if len(grown) == PROCESSES + 1:  # the last one goes on from the restored file
            assert archived(client, path) == len(oracle.boundaries(whole)) > made
            assert run(client, "restore", path).code == 0
            assert path.read_bytes() == grown[-1]
            assert archived(client, path) == 0

    assert different(expected, [*going_on(client, path, rotating)]) == []
    grown.append(path.read_bytes())
    assert all(after.startswith(before) for before, after in pairwise(grown))
    assert conversation(grown[-1]) == conversation(whole)


@pytest.mark.parametrize("kind", ["with_tools", "compacted_often"])
def test_a_fork_of_a_rotated_session_is_the_fork_of_the_whole_and_is_rotated_itself(
    sessions: Sessions, kind: str
) -> None:
    expected, _ = left_alone(sessions, kind, forking)
    client, path = sessions.get(kind)
    touched: list[Path] = []

    def rotating(client: Client, path: Path) -> None:
        assert rotate(client, path).code == 0
        touched.append(path)

    whole = path.read_bytes()
    assert different(expected, [*forking(client, path, rotating)]) == []
    assert stitched(client, path) == whole
    fork = touched[-1]
    rotating(client, fork)
    assert fork != path
    assert archived(client, fork) > 0


def spoken(data: bytes) -> list[int]:
    """Return where the rows begin that users and models said."""
    lines = data.splitlines(keepends=True)
    starts = accumulate(map(len, lines), initial=0)
    kinds = [json.loads(line)["type"] for line in lines]
    return [at for at, kind in zip(starts, kinds, strict=False) if kind in {"user", "assistant"}]


LAST_TURN: Final = ("answer before", "question", "words", "call", "result", "answer")
"""What the last rows of `with_tools` are that somebody said; other rows follow some of them."""


@pytest.mark.parametrize(
    ("first", "next_one"),
    [
        ("answer before", "question"),
        ("question", "words"),
        ("call", "answer"),
        ("result", "answer"),
    ],
)
def test_a_session_goes_on_as_if_it_never_was_rotated_where_a_killed_rotation_has_lines_come_late(
    sessions: Sessions, first: str, next_one: str
) -> None:
    expected, _ = left_alone(sessions, "with_tools")
    client, path = sessions.get("with_tools")
    whole = path.read_bytes()
    rows = dict(zip(LAST_TURN, spoken(whole)[-len(LAST_TURN) :], strict=True))
    before, late = whole[: rows[first]], whole[rows[first] : rows[next_one]]
    since = whole[rows[next_one] :]

    path.write_bytes(before)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_CONFIG_DIR", str(client.config))
        patch.setattr(seal, "finish", lambda *_: None)  # it dies behind its swap
        assert called("split", "--in-place", path).code == 0
    for file, data in ((path, since), (place_of(client, path).pack, late)):
        with file.open("ab") as appended:
            appended.write(data)
    assert run(client, "split", "--in-place", path).code == 0
    assert stitched(client, path).startswith(before + since + late)
    assert different(expected, [*going_on(client, path, rotate)]) == []


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.parts[-4])
def test_a_sample_rotated_once_or_at_every_boundary_as_it_grew_is_resumed_the_same(
    client: Client, path: Path
) -> None:
    data = path.read_bytes()
    expected = client.resume_request(path)
    assert len(expected.messages) >= 3
    assert QUESTION in str(expected.messages[-3:])
    copied = client.session_file(path.stem)
    shutil.copytree(path.parent, client.project)
    assert rotate(client, copied).code == 0
    assert archived(client, copied) == len(oracle.boundaries(data))
    is_owed = (client.version.like, path.parts[-4]) not in DOWNGRADED
    assert (compare(expected, client.resume_request(copied)) == []) is is_owed

    assert run(client, "restore", copied).code == 0
    assert compare(expected, client.resume_request(copied)) == []
    copied.write_bytes(b"")
    parts = oracle.bodies(data)
    for part in parts:
        with copied.open("ab") as file:
            file.write(part)
        done = part is parts[-1]
        # Clients that repeat rows write them just before the next boundary: to rotate between
        # the two is refused, and at the next boundary possible again.
        refused = rotate(client, copied).code != 0
        assert not refused or (not done and path.parts[-4] in REPEATING)
    assert stitched(client, copied) == data
    assert (compare(expected, client.resume_request(copied)) == []) is is_owed
