"""What clients write rarely: rotated, the real client resumes it the same, or it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.real_clients.client import Client, ClientError, ClientVersion
from support.real_clients.editing import Session, line
from support.real_clients.judge import Difference, compare
from support.real_clients.making import Sessions
from support.real_clients.normal import Sent
from support.real_clients.rotating import REFUSED, archived, rotate
from support.real_clients.synthetic import CASES


def differences(client: Client, expected: Sent, path: Path) -> list[Difference]:
    try:
        return compare(expected, client.resume_request(path))
    except ClientError as error:
        return [Difference("the whole request", "was sent", str(error))]


def changed(sessions: Sessions, name: str) -> tuple[Client, Path, Session]:
    client, path = sessions.get("compacted")
    session = Session.read(path)
    CASES[name].change(session)
    path.write_bytes(session.data)
    return client, path, session


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.refused])
def test_a_rare_session_is_rotated_and_resumed_the_same(
    sessions: Sessions, version: ClientVersion, name: str
) -> None:
    client, path, session = changed(sessions, name)
    expected = client.resume_request(path)
    assert rotate(client, path).code == 0
    assert archived(client, path) > 0 or session.rows[0] is session.boundary
    live = path.read_bytes().splitlines()
    assert [row for row in session.kept if line(row) not in live] == []
    assert [row for row in session.gone if line(row) in live] == []
    found = differences(client, expected, path)
    if version.like in CASES[name].differs and (found or version.like == version.number):
        assert found != []
        pytest.xfail("a known difference")
    assert found == []


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.refused])
def test_what_would_not_be_resumed_the_same_is_refused_and_left_alone(
    sessions: Sessions, name: str
) -> None:
    client, path, _ = changed(sessions, name)
    assert rotate(client, path).code == REFUSED
