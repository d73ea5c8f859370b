"""What clients show and delete by how a session began, which a rotation must not change.

Rule: no request shows any of this, so the list on a terminal is read, and the client's own clean-up
is waited for.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.clients.claude import cleanup
from sessrotate.clients.claude.opening import SMALL
from sessrotate.clients.preview import EDGE
from support.real_clients import sdk
from support.real_clients.client import LIMIT, Client, ClientVersion
from support.real_clients.editing import Session, enlarge
from support.real_clients.installing import UnavailableError
from support.real_clients.judge import compare
from support.real_clients.making import compact, talk
from support.real_clients.required import cannot_test
from support.real_clients.rotating import REFUSED, rotate, rotate_all_the_same
from support.real_clients.terminal import MARKED, on_terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.real_clients.making import Sessions

DESKTOP: Final = "claude-desktop"
SESSION: Final = "the session"
LONG_AGO: Final = 90 * 86_400.0
"""Seconds; clients delete sessions of 30 days."""

LOOKING: Final = 3.0
"""Seconds within which a client that deletes sessions has looked at all: mostly milliseconds."""


def title(reader: Client, path: Path) -> str:
    """Return what a client calls a session that is alone in its list."""
    with tempfile.TemporaryDirectory(dir=reader.home) as home:
        alone = Client(reader.version, Path(home), reader.api)
        alone.project.mkdir(parents=True)
        shutil.copy2(path, alone.project)
        with on_terminal(alone, "--resume") as terminal:
            shown = terminal.wait_for(rf"{MARKED}.+\n.*\b(?:ago|now|in \d+ sec)\b")
    found = re.search(rf"{MARKED}(.+)", shown, re.MULTILINE)
    assert found is not None, shown
    return found[1].strip()


def begun_in(entrypoint: str, path: Path) -> None:
    """Have a session begun elsewhere: those of the harness are in no list."""
    data = path.read_bytes()
    path.write_bytes(
        re.sub(rb'"entrypoint":"[^"]*"', b'"entrypoint":"%b"' % entrypoint.encode(), data)
    )


def test_a_session_has_its_title_in_the_lists_of_all_clients(
    sessions: Sessions, later: list[Client]
) -> None:
    client, path = sessions.get("compacted")
    begun_in("cli", path)
    judges = [client, *later]
    before = [title(judge, path) for judge in judges]
    assert rotate(client, path).code == 0
    assert [title(judge, path) for judge in judges] == before


def told_by_sdk(client: Client, path: Path) -> dict[str, Any]:
    """Return how a session began and what it is called, as the SDK lists it for programs."""
    try:
        found = sdk.listed(client)
    except UnavailableError as error:
        cannot_test(f"NOT TESTED with the Agent SDK {sdk.NUMBER}: {error}")
    (session,) = [each for each in found if each["sessionId"] == path.stem]
    return {key: session[key] for key in ("firstPrompt", "createdAt", "summary", "cwd")}


def test_the_sdk_lists_a_session_as_before(sessions: Sessions) -> None:
    client, path = sessions.get("compacted")
    before = told_by_sdk(client, path)
    assert before["firstPrompt"] == "Before, question 0."
    for later in ("Later", "Later still"):
        assert rotate(client, path).code == 0
        assert told_by_sdk(client, path) == before
        compact(client, talk(client, later, resume=path.stem))
        talk(client, f"{later}, on", resume=path.stem)
        after = told_by_sdk(client, path)
        before["summary"] = after["summary"]  # mostly the newest question
        assert after == before
    live = path.read_bytes().splitlines(keepends=True)
    assert b"Before, question 0." in live[1]
    path.write_bytes(b"".join([live[0], *live[2:]]))
    assert told_by_sdk(client, path)["firstPrompt"] != before["firstPrompt"]


def begun_in_desktop(sessions: Sessions, change: Callable[[Session], None]) -> tuple[Client, Path]:
    """Return a session that was begun in the desktop app, and goes on in a terminal."""
    client, path = sessions.get("compacted")
    session = Session.read(path)
    session.plain()
    session.plain(session.boundaries[0])
    change(session)
    path.write_bytes(session.data)
    begun_in(DESKTOP, path)
    head, compaction, tail = path.read_bytes().rpartition(b'"subtype":"compact_boundary"')
    path.write_bytes(head + compaction + tail.replace(DESKTOP.encode(), b"cli"))
    return client, path


def spared(client: Client, path: Path, **doomed: bytes) -> list[str]:
    """Have a client clean up what is old; return the names of what it spares.

    `doomed` are sessions that it must delete: it is waited until it has, and a while longer for the
    other one, which may be the last that it comes to.
    """
    files = {name: path.with_name(f"{uuid.uuid4()}.jsonl") for name in doomed}
    for name, file in files.items():
        file.write_bytes(doomed[name])
    for file in (path, *files.values()):
        os.utime(file, (time.time() - LONG_AGO,) * 2)
    (client.config / ".last-cleanup").unlink(missing_ok=True)  # it does so once a day
    with client.conversation() as conversation:
        conversation.say("Stay for a while.")
        deadline = time.monotonic() + LIMIT / 3
        while any(file.exists() for file in files.values()) and time.monotonic() < deadline:
            time.sleep(0.1)
        deadline = time.monotonic() + LOOKING
        while path.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
    found = {SESSION: path, **files}
    return [name for name, file in found.items() if file.exists()]


def in_a_terminal(path: Path) -> bytes:
    """Return a session as if it had been begun in a terminal."""
    return path.read_bytes().replace(DESKTOP.encode(), b"cli")


def without_its_beginning(path: Path) -> bytes:
    """Return a rotated session without the line that says where it was begun."""
    lines = path.read_bytes().splitlines(keepends=True)
    assert DESKTOP.encode() in lines.pop(1)
    return b"".join(lines)


def test_what_the_clean_up_spares_it_spares_once_it_was_rotated(
    sessions: Sessions, version: ClientVersion
) -> None:
    if version.like != "2.1.330":
        return  # older clients spare nothing
    client, path = begun_in_desktop(sessions, lambda _session: None)
    terminal = in_a_terminal(path)
    assert rotate(client, path).code == 0
    assert spared(client, path, terminal=terminal, bare=without_its_beginning(path)) == [SESSION]


@pytest.mark.parametrize("size", [SMALL, EDGE - 8 * 1024])
def test_it_does_so_where_the_first_prompt_is_too_large_to_stay(
    sessions: Sessions, version: ClientVersion, size: int
) -> None:
    """(The second is so large that a client looks at no more than a few rows behind it.)"""
    if version.like != "2.1.330":
        return

    def pasted(session: Session) -> None:
        content = session.question("Before, question 0.")["message"]["content"]
        content[0]["text"] += "x" * size

    client, path = begun_in_desktop(sessions, pasted)
    whole, looked_at = path.read_bytes(), path.read_bytes()[:EDGE].split(b"\n")[:-1]
    told = [row for row in looked_at if DESKTOP.encode() in row]
    assert len(told[0]) > SMALL  # the prompt
    expected = client.resume_request(path)
    assert rotate(client, path).code == 0
    live = path.read_bytes().splitlines()
    assert (live[1], live[1] != told[0]) == (min(told, key=len), True)
    assert len(path.read_bytes()) < len(whole) / 2
    assert compare(expected, client.resume_request(path)) == []
    assert spared(client, path, bare=without_its_beginning(path)) == [SESSION]


def test_where_no_row_can_stay_for_that_a_session_is_not_rotated(
    sessions: Sessions, version: ClientVersion
) -> None:
    """The prompt is all that a client looks at, and too large to stay."""
    if version.like != "2.1.330":
        return

    def pasted(session: Session) -> None:
        prompt = session.question("Before, question 0.")
        prompt["message"]["content"][0]["text"] += "x" * (EDGE - 8 * 1024)
        enlarge(session.after(prompt), 8 * 1024)

    client, path = begun_in_desktop(sessions, pasted)
    whole = path.read_bytes()
    ended = rotate(client, path)
    assert (ended.code, "spares this session" in ended.err) == (REFUSED, True), ended
    rotate_all_the_same(client, path)
    rotated = path.read_bytes()
    path.write_bytes(whole)
    assert spared(client, path, rotated=rotated) == [SESSION]


def gone_on_in_desktop(path: Path) -> None:
    """Have a session begin in a terminal, and go on in the desktop app behind its compaction."""
    head, compaction, tail = in_a_terminal(path).rpartition(b'"subtype":"compact_boundary"')
    desktop = tail.replace(b'"entrypoint":"cli"', b'"entrypoint":"%b"' % DESKTOP.encode())
    path.write_bytes(head + compaction + desktop)


def with_a_long_first_row(session: Session) -> None:
    """Have the first row with an entry point end behind all that a client looks at."""
    enlarge(session.question("Before, question 0."), EDGE)


@pytest.mark.parametrize(
    ("change", "then"),
    [(with_a_long_first_row, None), (lambda _: None, gone_on_in_desktop)],
    ids=["begun by a long row", "gone on there"],
)
def test_doctor_knows_what_the_clean_up_spares(
    sessions: Sessions,
    version: ClientVersion,
    change: Callable[[Session], None],
    then: Callable[[Path], None] | None,
) -> None:
    if version.like != "2.1.330":
        return
    client, path = begun_in_desktop(sessions, change)
    terminal = in_a_terminal(path)
    if then is not None:
        then(path)
        assert cleanup.is_desktop(path)
        assert rotate(client, path).code == 0
    is_desktop = cleanup.is_desktop(path)
    assert is_desktop is (then is not None)
    assert spared(client, path, terminal=terminal) == [SESSION] * is_desktop
