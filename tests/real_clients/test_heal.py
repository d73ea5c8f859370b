"""A session that goes on from archived rows: healed, real clients resume what there would be.

Rule: what they resume then is what they would if nobody had rotated the session. Where newer ones
would have lost the branch (`LOST`), nothing comes back; of a session of 2.0.28, that is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from support.real_clients.editing import Session
from support.real_clients.judge import compare
from support.real_clients.rotating import REFUSED, rotate, run, stitched
from support.real_clients.synthetic import CASES

if TYPE_CHECKING:
    from pathlib import Path

    from support.real_clients.client import Client
    from support.real_clients.making import Sessions
    from support.real_clients.normal import Sent

ASKED_AGAIN: Final = b"Another way, question."
"""What a user asks who went back, in the line where the new branch begins."""

GONE_BACK: Final = [name for name in CASES if name.startswith("gone_back")]

LOST: Final = {
    "gone_back_before_a_plain_compaction_in_a_large_file",
    "gone_back_before_a_preserving_and_a_plain_compaction",
    "gone_back_between_a_preserving_and_a_plain_compaction",
    "gone_back_to_the_first_prompt_in_a_large_file",
    "gone_back_before_a_plain_and_a_preserving_compaction_in_a_large_file",
}
"""Branches that 2.1.80 and later lose in a file that nobody rotated: where the last compaction
preserved nothing, and another one did or the file is large."""


@dataclass(frozen=True)
class Whole:
    """A session that nobody rotated, and what each judge sends of it."""

    client: Client
    path: Path
    data: bytes
    expected: list[tuple[Client, Sent]]


def changed(sessions: Sessions, later: list[Client], name: str) -> Whole:
    """Return the session of a case, judged by its own client and later ones."""
    client, path = sessions.get("compacted")
    session = Session.read(path)
    CASES[name].change(session)
    path.write_bytes(session.data)
    expected = [(judge, judge.resume_request(path)) for judge in (client, *later)]
    return Whole(client, path, session.data, expected)


def continued(whole: Whole) -> None:
    """Have a session rotated, and then the branch written that begins at an archived row."""
    lines = whole.data.splitlines(keepends=True)
    branch = next(number for number, line in enumerate(lines) if ASKED_AGAIN in line)
    whole.path.write_bytes(b"".join(lines[:branch]))
    assert rotate(whole.client, whole.path).code == 0
    with whole.path.open("ab") as file:
        file.writelines(lines[branch:])


def check_healed(whole: Whole) -> None:
    """Check that all clients resume a session as if it had not been rotated."""
    for judge, one in whole.expected:
        assert compare(one, judge.resume_request(whole.path)) == [], judge.version
    assert stitched(whole.client, whole.path) == whole.data


@pytest.mark.parametrize("name", GONE_BACK)
def test_a_branch_that_begins_after_a_rotation_is_resumed_as_if_that_had_not_been(
    sessions: Sessions, later: list[Client], name: str
) -> None:
    whole = changed(sessions, later, name)
    continued(whole)
    ended = run(whole.client, "split", "--in-place", whole.path.stem)
    if name in LOST and ended.code == REFUSED:
        assert whole.client.version.like == "2.0.28"
        return
    assert ended.code == 0, ended
    is_needed = name not in LOST and name != "gone_back_after_the_compaction"
    assert ("Put " in ended.out) is is_needed
    is_misled = name == "gone_back_to_the_first_prompt_in_a_large_file"
    assert ("Took the first prompt" in ended.out) is is_misled
    check_healed(whole)


@pytest.mark.parametrize(
    "name",
    ["gone_back_to_calls_side_by_side", "gone_back_before_a_preserving_compaction"],
)
def test_the_nightly_run_heals_a_branch_that_begins_after_a_rotation(
    sessions: Sessions, later: list[Client], name: str
) -> None:
    whole = changed(sessions, later, name)
    continued(whole)
    lacking = whole.path.read_bytes()
    assert any(compare(one, judge.resume_request(whole.path)) for judge, one in whole.expected)
    ended = run(whole.client, "run")
    assert (ended.code, ended.err) == (0, ""), ended
    assert ended.out.startswith("Healed 1 session"), ended
    assert len(whole.path.read_bytes()) > len(lacking)
    check_healed(whole)
    again = run(whole.client, "run")
    assert (again.code, "ealed" in again.out) == (0, False), again


@pytest.mark.parametrize("name", GONE_BACK)
def test_a_branch_that_was_there_before_a_rotation_is_not_changed_by_the_next(
    sessions: Sessions, later: list[Client], name: str
) -> None:
    whole = changed(sessions, later, name)
    client, path = whole.client, whole.path
    if rotate(client, path).code:
        assert client.version.like in CASES[name].refused
        return
    live = path.read_bytes()
    ended = run(client, "rotate", path.stem)
    assert (ended.code, "Nothing to cut" in ended.out) == (0, True), ended
    assert path.read_bytes() == live
    for judge, one in whole.expected:
        assert compare(one, judge.resume_request(path)) == []
