"""What clients write rarely: rotated, the real client resumes it the same, or it is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.real_clients.editing import Session, line
from support.real_clients.judge import Difference, requested, unequal
from support.real_clients.rotating import REFUSED, archived, rotate, rotate_all_the_same
from support.real_clients.synthetic import CASES

if TYPE_CHECKING:
    from pathlib import Path

    from support.real_clients.client import Client, ClientVersion
    from support.real_clients.making import Sessions


def changed(sessions: Sessions, name: str) -> tuple[Client, Path, Session]:
    client, path = sessions.get("compacted")
    session = Session.read(path)
    CASES[name].change(session)
    path.write_bytes(session.data)
    return client, path, session


@pytest.mark.parametrize("name", CASES)
def test_a_rare_session_is_resumed_the_same_or_not_rotated(
    sessions: Sessions, version: ClientVersion, later: list[Client], name: str
) -> None:
    client, path, session = changed(sessions, name)
    judges = [client, *later]
    expected = [requested(judge, path) for judge in judges]

    def differences() -> list[list[Difference]]:
        found = (requested(judge, path) for judge in judges)
        return [*map(unequal, expected, found)]

    if {version.number, version.like} & CASES[name].refused:
        ended = rotate(client, path)
        assert ended.code == REFUSED, ended
        assert CASES[name].because in ended.err
        rotate_all_the_same(client, path)
        assert any(differences())
        return
    ended = rotate(client, path)
    assert ended.code == 0, ended
    assert archived(client, path) > 0 or session.rows[0] is session.boundary
    live = path.read_bytes().splitlines()
    assert [row for row in session.kept if line(row) not in live] == []
    assert [row for row in session.gone if line(row) in live] == []
    assert differences() == [[] for _ in judges]
