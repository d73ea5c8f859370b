"""What clients write rarely: rotated, the real client resumes it the same, or it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.client import Client, ClientError, ClientVersion
from clients.editing import Session, line
from clients.judge import Difference, compare
from clients.making import Sessions
from clients.normal import Sent
from clients.rotating import REFUSED, archived, rotate
from clients.synthetic import CASES


def differences(client: Client, expected: Sent, path: Path) -> list[Difference]:
    try:
        return compare(expected, client.resume_request(path))
    except ClientError as error:
        return [Difference("the whole request", "was sent", str(error))]


@pytest.mark.parametrize("name", CASES)
def test_a_rare_session_is_rotated_and_resumed_the_same_or_refused(
    sessions: Sessions, version: ClientVersion, name: str
) -> None:
    case = CASES[name]
    client, path = sessions.get("compacted")
    session = Session.read(path)
    case.change(session)
    path.write_bytes(session.data)
    if case.refused:
        assert rotate(client, path).code == REFUSED
        return
    expected = client.resume_request(path)
    assert rotate(client, path).code == 0
    assert archived(client, path) > 0 or session.rows[0] is session.boundary
    live = path.read_bytes().splitlines()
    assert [row for row in session.kept if line(row) not in live] == []
    assert [row for row in session.gone if line(row) in live] == []
    found = differences(client, expected, path)
    if version.like in case.differs and (found or version.like == version.number):
        assert found != []
        pytest.xfail("a known difference")
    assert found == []
