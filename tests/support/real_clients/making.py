"""Sessions as users make them, made with the real client.

It promises that each maker returns the file of a session that went through what its name says,
and fails when the client did something else.

Rule: a maker's prompts are fixed, so that the same client makes the same session each time, but
for ids and times. `mark` sets the prompts of one part of a session apart from those of another.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from support.real_clients.client import Client, ClientError
from support.real_clients.mock_api import call, usage
from support.real_clients.normal import slug

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.real_clients.client import ClientVersion, Turn
    from support.real_clients.mock_api import MockApi
    from support.real_clients.normal import Sent

NOTE: Final = "note.txt"
"""A file of the project, for the client's tools to read."""

WINDOW: Final = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"}
"""Of which size the model's window is, whatever newer clients know about the model."""

FULL: Final = 180_000
"""So many tokens in use make a client compact before its next turn, and it can still do so."""


# ── steps: each goes on with a session, or begins one ────────────────────────────────────────


def talk(client: Client, mark: str, *, resume: str | None = None, turns: int = 2) -> str:
    """Have a few plain turns in one process; return the session's id."""
    prompts = [f"{mark}, question {number}." for number in range(turns)]
    return client.converse(prompts, resume=resume)[-1].session


def use_tools(client: Client, mark: str, *, resume: str | None = None) -> str:
    """Have tools used, two of them side by side and one that changes a file."""
    note = client.work / NOTE
    note.write_text("".join(f"{mark}, line {number}.\n" for number in range(5)))
    reading = call("Read", file_path=str(note))
    running = call("Bash", command=f"echo '{mark}'; wc -l < {NOTE}", description="Count the lines")
    turn = client.prompt(f"{mark}, look around. {reading} {running}", resume=resume)
    _expect(len(results(turn)) == 2, f"Read and Bash were not used: {results(turn)}")
    edit = call("Edit", file_path=str(note), old_string="line 3", new_string="line three")
    # An edit needs the file to have been read by the same process.
    first, second = client.converse(
        [f"{mark}, read it. {reading}", f"{mark}, change it. {edit}"], resume=turn.session
    )
    _expect(len(results(first)) == 1, "Read was not used")
    _expect("line three" in note.read_text(), f"Edit did not work: {results(second)}")
    return second.session


def use_subagent(client: Client, mark: str, *, resume: str | None = None) -> str:
    """Have a subagent do something with a tool of its own."""
    errand = f"{mark}, errand. {call('Bash', command='echo errand', description='Say a word')}"
    sending = call(
        "Agent|Task",  # its name, and what older clients call it
        description="Run an errand",
        prompt=errand,
        subagent_type="general-purpose",
        run_in_background=False,
    )
    turn = client.prompt(f"{mark}, send somebody. {sending}", resume=resume)
    sent = [request for request in turn.conversation if "errand." in request.prompt]
    _expect(bool(sent) and bool(results(turn)), "no subagent was started")
    return turn.session


def compact(client: Client, session: str) -> str:
    """Have a session compacted by `/compact`."""
    # By their uuids: a hook may have the session rotated as soon as that process ends.
    before = {row["uuid"] for row in boundary_rows(client.session_file(session))}
    client.compact(session)
    found = {row["uuid"] for row in boundary_rows(client.session_file(session))} - before
    _expect(len(found) == 1, f"{len(found)} boundaries by /compact")
    return session


def overflow(client: Client, mark: str, *, resume: str | None = None) -> str:
    """Fill the model's window, so that the client compacts by itself before its next turn."""
    prompt = f"{mark}, fill the window. {usage(FULL)}"
    session = client.prompt(prompt, resume=resume, environment=WINDOW).session
    boundaries = len(boundary_rows(client.session_file(session)))
    client.prompt(f"{mark}, go on after that.", resume=session, environment=WINDOW)
    found = boundary_rows(client.session_file(session))[boundaries:]
    triggers = [row["compactMetadata"]["trigger"] for row in found]
    _expect(triggers == ["auto"], f"automatic compaction gave {triggers}")
    return session


def compact_twice(client: Client, mark: str, *, resume: str | None = None) -> str:
    """Have two compactions in one process, the first after one turn, the second after two.

    (2.1.330 preserves rows only where there was more than one turn to compact.)
    """
    prompts = [f"{mark}, first.", "/compact", f"{mark}, second.", f"{mark}, third.", "/compact"]
    return client.converse([*prompts, f"{mark}, fourth."], resume=resume)[-1].session


# ── makers: whole sessions ───────────────────────────────────────────────────────────────────


def plain(client: Client) -> Path:
    """Make a session without a boundary that was resumed twice."""
    session = None
    for mark in ("Plain", "Resumed", "Resumed again"):
        session = client.prompt(f"{mark}, question.", resume=session).session
    return client.session_file(session or "")


def with_tools(client: Client) -> Path:
    """Make a session with tool calls on both sides of a compaction."""
    session = compact(client, use_tools(client, "Tools before"))
    return client.session_file(use_tools(client, "Tools after", resume=session))


def compacted(client: Client) -> Path:
    """Make a session that a user compacted, twice, in processes of their own."""
    session = compact(client, talk(client, "Before"))
    session = compact(client, talk(client, "Between", resume=session))
    return client.session_file(talk(client, "After", resume=session))


def overflowed(client: Client) -> Path:
    """Make a session that the client compacted by itself."""
    session = overflow(client, "Overflow", resume=talk(client, "Before"))
    return client.session_file(talk(client, "After", resume=session))


def compacted_twice_at_once(client: Client) -> Path:
    """Make a session that one process compacted twice."""
    return client.session_file(compact_twice(client, "Twice"))


def compacted_often(client: Client) -> Path:
    """Make a session that one process compacted three times, mostly with little in between.

    2.1.112 writes the boundary before once more then, with all that follows it.
    """
    prompts = ["Often, first.", "/compact", "Often, second.", "/compact", "Often, third."]
    turns = client.converse([*prompts, "Often, fourth.", "/compact", "Often, fifth."])
    return client.session_file(turns[-1].session)


def with_subagent(client: Client) -> Path:
    """Make a session with subagents on both sides of a compaction."""
    session = compact(client, use_subagent(client, "Agent before"))
    return client.session_file(use_subagent(client, "Agent after", resume=session))


def forked(client: Client) -> Path:
    """Make a session that was forked from a compacted one, and went on."""
    trunk = compact(client, talk(client, "Trunk"))
    branch = client.prompt("Fork, question 0.", resume=trunk, fork=True).session
    _expect(branch != trunk, "the fork has the id of what it was forked from")
    return client.session_file(talk(client, "Branch", resume=branch, turns=1))


def long(client: Client) -> Path:
    """Make a session that went through all of it."""
    session = use_tools(client, "Long tools", resume=talk(client, "Long"))
    session = use_subagent(client, "Long agent", resume=compact(client, session))
    session = overflow(client, "Long overflow", resume=session)
    session = compact_twice(client, "Long twice", resume=session)
    return client.session_file(talk(client, "Long after", resume=session))


@dataclass(frozen=True)
class Made:
    """A way to make a session, and how many boundaries the session then has."""

    make: Callable[[Client], Path]
    boundaries: int


MAKERS: Final = {
    maker.make.__name__: maker
    for maker in (
        Made(plain, 0),
        Made(with_tools, 1),
        Made(compacted, 2),
        Made(overflowed, 1),
        Made(compacted_twice_at_once, 2),
        Made(compacted_often, 3),
        Made(with_subagent, 1),
        Made(forked, 1),
        Made(long, 4),
    )
}
"""All makers by name."""


class Sessions:
    """Sessions by maker, each made once; every caller gets it as it was when it was made.

    Processes that share the folder `made` share what is in it. Each takes a copy home, to `own`.
    """

    def __init__(self, version: ClientVersion, made: Path, own: Path, api: MockApi) -> None:
        self._version, self._made, self._own, self._api = version, made, own, api
        self._copies: dict[str, tuple[Client, str, Path]] = {}
        self.lives: dict[Any, tuple[list[list[Sent]], bytes]] = {}
        """What came of sessions that nobody touched, by whatever tells those ways to go on."""

    def get(self, maker: str) -> tuple[Client, Path]:
        """Return a session's file, and the client at whose home it is.

        Whatever was done there before is undone, also in a file that an earlier caller got.
        """
        if maker not in self._copies:
            made, session = self._make(maker)
            home = self._own / maker / "home"
            copy_home(made, home)
            client = Client(self._version, home, self._api)
            self._copies[maker] = (client, session, client.save())
        client, session, saved = self._copies[maker]
        client.put_back(saved)
        return client, client.session_file(session)

    def _make(self, maker: str) -> tuple[Path, str]:
        """Return the home of a session made by whoever comes first, and the session's id."""
        folder = self._made / str(self._version) / maker
        folder.mkdir(parents=True, exist_ok=True)
        done, home = folder / "session", folder / "home"
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(home, ignore_errors=True)
                done.write_text(MAKERS[maker].make(Client(self._version, home, self._api)).stem)
        return home, done.read_text()


def copy_home(home: Path, target: Path) -> None:
    """Copy a client's home, as if it had always been at `target`: in texts and in names."""
    shutil.copytree(home, target, symlinks=True)
    names = {str(home): str(target), slug(home): slug(target)}
    for path in sorted(target.rglob("*"), reverse=True):
        if path.is_file() and not path.is_symlink():
            before, status = path.read_bytes(), path.stat()
            after = before
            for name, other in names.items():
                after = after.replace(name.encode(), other.encode())
            if after != before:
                path.write_bytes(after)
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        if slug(home) in path.name:
            path.rename(path.with_name(path.name.replace(slug(home), slug(target))))


# ── looking at what was made ─────────────────────────────────────────────────────────────────


def rows(session_file: Path) -> list[dict[str, Any]]:
    """Return the rows of a session."""
    return [json.loads(line) for line in session_file.read_bytes().splitlines()]


def boundary_rows(session_file: Path) -> list[dict[str, Any]]:
    """Return the compaction boundaries of a session, in order; none if it has no file yet.

    A second copy of a boundary is none: many versions write the rows since the last compaction
    once more when one process compacts again (2.1.112 does it, 2.0.28 and 2.1.330 do not).
    """
    if not session_file.exists():
        return []
    found = {
        row["uuid"]: row
        for row in rows(session_file)
        if (row.get("type"), row.get("subtype")) == ("system", "compact_boundary")
    }
    return list(found.values())


def results(turn: Turn) -> list[str]:
    """Return the results of all tools that the last request of a turn reports."""
    if not turn.conversation:
        return []
    last = [message for message in turn.conversation[-1].messages if message["role"] == "user"][-1]
    content = last["content"] if isinstance(last["content"], list) else []
    return [json.dumps(block) for block in content if block.get("type") == "tool_result"]


def _expect(held: bool, otherwise: str) -> None:
    if not held:
        raise ClientError(f"The client did not do what the session needs: {otherwise}")
