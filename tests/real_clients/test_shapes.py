"""Sessions of any shape: every rotation is judged by the client that wrote it, and by a later one.

Rule: equal, or refused; and what is refused is unequal on one of the two if it is rotated all the
same. What a session was is told by its seed: `SESSROTATE_SHAPES=17-17` has that one judged again.
"""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING, Final

import pytest

from support.real_clients.client import VERSIONS, Client, ClientVersion
from support.real_clients.client import version as numbered
from support.real_clients.editing import Session
from support.real_clients.judge import Difference, requested, unequal
from support.real_clients.kits import Kit, kit_of
from support.real_clients.rotating import REFUSED, rotate, rotate_all_the_same
from support.real_clients.shapes import draw

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.real_clients.making import Sessions
    from support.real_clients.mock_api import MockApi
    from support.real_clients.normal import Sent

# By default ten that have most of it: crashes, forks, a large row, both kinds of boundary.
FIRST, LAST = map(int, os.environ.get("SESSROTATE_SHAPES", "301-310").split("-"))

WRITERS: Final = {version.number: version for version in VERSIONS} | {
    number: numbered(number) for number in os.environ.get("SESSROTATE_CLIENT_VERSIONS", "").split()
}


@pytest.fixture(scope="session")
def kits(sessions_of: Callable[[ClientVersion], Sessions]) -> list[Kit]:
    """The rows of all clients that may write a shape."""
    found = []
    for number, version in WRITERS.items():
        _, path = sessions_of(version).get("with_tools")
        found.append(kit_of(number, Session.read(path).records))
    return found


def test_the_same_seed_gives_the_same_session(kits: list[Kit]) -> None:
    one, same, other = (draw(seed, kits[::step]) for seed, step in ((1, 1), (1, -1), (2, 1)))
    assert (one.lines, one.rotations, str(one)) == (same.lines, same.rotations, str(same))
    assert one.lines != other.lines


def differences(
    judges: list[Client], expected: list[Sent | None], live: Path
) -> dict[str, list[Difference]]:
    """Return where clients send something else than was expected, by their versions."""
    found = [requested(judge, live) for judge in judges]
    told = zip(judges, map(unequal, expected, found), strict=True)
    return {str(judge.version): where for judge, where in told if where}


@pytest.mark.parametrize("seed", range(FIRST, LAST + 1), ids=lambda seed: f"seed {seed}")
def test_a_session_of_any_shape_is_resumed_the_same_or_not_rotated(
    kits: list[Kit], tmp_path: Path, api: MockApi, seed: int
) -> None:
    shape = draw(seed, kits)
    client = Client(WRITERS[shape.rotations[0].version], tmp_path / "home", api)
    live = client.session_file(shape.session)
    whole = tmp_path / live.name
    live.parent.mkdir(parents=True)
    written = 0
    for rotation in shape.rotations:
        data = shape.data(rotation.lines)
        whole.write_bytes(data)
        with live.open("ab") as file:
            file.write(data[written:])
        written = len(data)
        owed = judging(seed, rotation.version)
        judges = [Client(WRITERS[number], tmp_path / number, api) for number in owed]
        expected = [requested(judge, whole) for judge in judges]
        ended = rotate(client, live)
        if ended.code == REFUSED:
            saved = client.save()
            rotate_all_the_same(client, live)
            is_needed = bool(differences(judges, expected, live))
            client.put_back(saved)
            assert is_needed, f"{shape}: refused without need: {ended.err}"
            continue
        assert ended.code == 0, ended
        assert differences(judges, expected, live) == {}, shape


def judging(seed: int, writer: str) -> list[str]:
    """Return to whom equality is owed: to the client that wrote, and to a later one."""
    later = [number for number in WRITERS if WRITERS[number].key > WRITERS[writer].key]
    if not later:
        return [writer]
    return [writer, Random(seed).choice([*later, *[VERSIONS[-1].number] * 3])]
