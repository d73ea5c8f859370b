"""The history of a session is every byte that its client wrote, in the order of its writes.

Rule: what is expected comes from the calls of the client itself, which strace records; no file and
no code of ours has a part in it.
"""

from __future__ import annotations

import json
import re
import shlex
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

from real_clients.test_live_rotation import (
    COMPACT,
    Running,
    Swapping,
    compactions,
    is_repeated,
    rewinding,
    rotating_around,
    until,
)
from sessrotate.errors import InUseError
from sessrotate.system import in_use
from support.command_line import COMMAND
from support.processes import idle
from support.race.mutants import MUTANTS
from support.real_clients.client import WRITING, Client
from support.real_clients.making import WINDOW
from support.real_clients.mock_api import BROKEN, call, fingerprint
from support.real_clients.required import cannot_test
from support.real_clients.rotating import archived, run, stitched
from support.real_clients.terminal import MARKED, on_terminal
from support.real_clients.writes import Recording, difference, recorded, unrecorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.real_clients.client import ClientVersion
    from support.real_clients.mock_api import MockApi, Moment, Request

    Waits = Callable[[Request, Moment], bool]

ROTATIONS: Final = 20
ALWAYS: Final = "all the time"
"""Rotations that came whenever they did, one after the other."""

LIVE: Final = "--live"

TOOL: Final = "tool.sh"
HOOK: Final = "hook.sh"
"""What the client runs, and what they do changes from turn to turn."""

TOOLS: Final = " ".join(
    (
        call("Bash", command="echo on; ls", description="Look"),
        call("Bash", command=f"sh {TOOL}", description="Run it"),
    )
)
"""Two at once, one of which may be a rotation."""

ERRAND: Final = call(
    "Agent|Task",  # its name, and what older clients call it
    description="Run an errand",
    prompt=f"Errand. {call('Bash', command='echo errand', description='Say a word')}",
    subagent_type="general-purpose",
    run_in_background=False,
)

HOOKS: Final = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PreCompact",
    "Stop",
    "SessionEnd",
)
"""Which have the client write down what they say; one more, `PostToolUse`, may be a rotation."""


@pytest.fixture(autouse=True)
def _strace() -> None:
    reason = unrecorded()
    if reason is not None:
        cannot_test(f"NO BYTE OF A CLIENT WAS RECORDED: {reason}")


@dataclass
class Life:
    """A client whose writes are recorded, and whose sessions are rotated."""

    client: Client
    hooks: bool = True
    recording: Recording = field(init=False)
    rotations: Counter[str] = field(default_factory=Counter)
    """How often a live file was replaced, by the moment at which that was."""

    def __post_init__(self) -> None:
        self.recording = recorded(self.client)
        for name in (TOOL, HOOK):
            self.script(name, ":")
        if not self.hooks:
            return
        hooks = {
            event: [{"hooks": [{"type": "command", "command": f"echo {event}"}]}] for event in HOOKS
        }
        hook = f"sh {shlex.quote(str(self.client.work / HOOK))}"
        hooks["PostToolUse"] = [{"hooks": [{"type": "command", "command": hook}]}]
        (self.client.config / "settings.json").write_text(json.dumps({"hooks": hooks}))

    def script(self, name: str, text: str) -> None:
        """Say what the client runs as a tool or as a hook."""
        (self.client.work / name).write_text(text)

    def rotate(self, path: Path, moment: str, *options: str) -> None:
        """Rotate a session by the real command, and compare its history."""
        with self.rotated(path, moment):
            ended = run(self.client, "split", "--in-place", *options, path.stem)
            assert ended.code == 0, ended

    @contextmanager
    def rotated(self, path: Path, moment: str) -> Iterator[None]:
        """Count the rotation that is in the block, and compare the history after it."""
        before = archived(self.client, path)
        yield
        assert archived(self.client, path) > before, moment
        self.rotations[moment] += 1
        self.check(path)

    def check(self, path: Path) -> None:
        """Compare a history with what was written; wait for what is being written."""
        deadline = time.monotonic() + WRITING
        while (problem := self.problem(path)) is not None:
            assert time.monotonic() < deadline, f"{path.name}: {problem}"
            time.sleep(0.01)

    def problem(self, path: Path) -> str | None:
        """Return how a history differs from what was written by now, None if it does not."""
        try:
            found = stitched(self.client, path)
            return difference(self.recording.of(path, found), found)
        except InUseError as problem:
            return str(problem)

    def check_all(self) -> None:
        """Compare all sessions and all files of agents; no other is there, and none is missing."""
        sessions = {
            path for path in self.client.project.glob("*.jsonl") if "agent-" not in path.name
        }
        files = {*self.client.project.rglob("*.jsonl")}
        assert files == {*self.recording.files}
        for path in sessions:
            self.check(path)
        for path in files - sessions:
            found = path.read_bytes()
            assert difference(self.recording.of(path, found), found) is None, path.name

    def told(self) -> str:
        """Return what was seen, in figures."""
        written = self.recording.files.values()
        return (
            f"{self.client.version}: {sum(each.appends for each in written)} appends and "
            f"{sum(each.edits for each in written)} edits, {sum(each.amount for each in written)} "
            f"bytes, in {len(written)} files; {self.rotations.total()} rotations: "
            + ", ".join(f"{count} {moment}" for moment, count in self.rotations.items())
        )

    @contextmanager
    def running(self, session: str | None = None) -> Iterator[Running]:
        """Keep a client running, in a new session or in one that it resumes."""
        with self.client.conversation(resume=session, environment=WINDOW) as opened:
            known = stitched(self.client, self.client.session_file(session)) if session else b""
            yield Running(self.client, opened, session or "", compactions(known))

    @contextmanager
    def meanwhile(self, running: Running, moment: str, is_now: Waits) -> Iterator[None]:
        """Rotate while the client waits for a reply, the first time that it is the moment."""

        def act(request: Request, when: Moment) -> None:
            if not self.rotations[moment] and is_now(request, when):
                self.rotate(running.path, moment, LIVE)

        with self.client.api.meanwhile(act):
            yield
        assert self.rotations[moment], moment

    @contextmanager
    def by(self, running: Running, script: str) -> Iterator[None]:
        """Have the client itself run the rotation, as a tool or as a hook."""
        command = f"{COMMAND} split --in-place {LIVE} {running.session}"
        self.script(script, f"{command} >{shlex.quote(str(self.client.home / 'said'))} 2>&1")
        with self.rotated(running.path, script):
            yield
        self.script(script, ":")


# ── the parts of a life ──────────────────────────────────────────────────────────────────────


WAITS: Final[dict[str, tuple[str, Waits]]] = {
    "before an answer": (
        "Question.",
        lambda request, when: request.is_conversation and when == "before",
    ),
    "half-way through an answer": (
        "Question.",
        lambda request, when: request.is_conversation and when == "half-way",
    ),
    "while an agent works": (
        f"Send somebody. {ERRAND}",
        lambda request, when: request.prompt.lstrip().startswith("Errand.") and when == "before",
    ),
    "while it compacts": (
        COMPACT,
        lambda request, when: request.is_compaction and when == "half-way",
    ),
}
"""When a session is rotated while the client waits for the model, and what it was asked."""


def rotated_at_every_moment(life: Life, monkeypatch: pytest.MonkeyPatch) -> str:
    """Rotate a session at every moment of a turn; return it."""
    with life.running() as running:
        for moment, (text, is_now) in WAITS.items():
            compacted(running, moment)
            with life.meanwhile(running, moment, is_now):
                running.say(text)
    with life.running(running.session) as running:
        for script in (TOOL, HOOK):
            compacted(running, script)
            with life.by(running, script):
                running.say(f"Run {script}. {TOOLS}")
        compacted(running, "late")
        with life.rotated(running.path, "as it opens the file"), late(running, monkeypatch):
            running.say("Late.")
        for number in range(5):
            compacted(running, f"turn {number}")
            life.rotate(running.path, "between turns", LIVE)
        running.say("Last.")
    return running.session


@contextmanager
def late(running: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Rotate at the very moment in which the client opens the file, for a turn in the block.

    What it writes then comes to the file that was replaced.
    """
    rotating: list[threading.Thread] = []

    def around(request: Request, when: Moment) -> None:
        if request.is_conversation and when == "before":
            rotating.append(rotating_around(running.client, running.path, patch))

    with monkeypatch.context() as patch, running.client.api.meanwhile(around):
        yield
        for thread in rotating:
            thread.join()


def compacted(running: Running, about: str) -> None:
    """Go on in a session, and have it compacted."""
    running.say(f"About {about}. {TOOLS}")
    running.say(COMPACT)


def rotated_all_the_time(life: Life, session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rotate and restore a session again and again while its client goes on."""
    with life.running(session) as running, monkeypatch.context() as patch:
        # `restore` has no --live. Here it has, so that there is always something to rotate.
        patch.setattr(in_use, "check_unused", lambda *_, **__: None)
        swapping = Swapping(life.client, running.path)
        wanted: list[int] = []

        def is_done() -> bool:
            return swapping.swaps >= wanted[-1] or bool(swapping.problems)

        try:
            for number in range(3):
                compacted(running, f"swaps {number}")
                wanted.append(swapping.swaps + 2)
                until(is_done)
        finally:
            swapping.stop()
    assert [text for text in swapping.refusals if not is_repeated(life.client, text)] == []
    life.rotations[ALWAYS] += swapping.swaps // 2
    life.check(running.path)


def rotated_at_rest(life: Life, session: str, times: int) -> None:
    """Go on in processes that end, and rotate after each."""
    for number in range(times):
        prompts = [f"At rest, {number}. {TOOLS}", COMPACT, f"At rest, {number}, on."]
        life.client.converse(prompts, resume=session)
        life.rotate(life.client.session_file(session), "at rest")


def rotated_by_its_hook(life: Life, session: str) -> None:
    """Have a session rotated as it ends, by the hook that people install."""
    assert run(life.client, "hook", "install", "--min-gain", "0").code == 0
    with life.rotated(life.client.session_file(session), "as it ends"):
        life.client.converse([f"Hook. {TOOLS}", COMPACT, "Hook, on."], resume=session)
        idle(life.client.config)
    assert run(life.client, "hook", "remove").code == 0


def restored(life: Life, session: str) -> None:
    """Make a session whole again: its live file is then all that was written."""
    path = life.client.session_file(session)
    assert run(life.client, "restore", session).code == 0
    found = path.read_bytes()
    assert difference(life.recording.of(path, found), found) is None
    life.check(path)


def forked(life: Life, session: str) -> str:
    """Fork a session, rotate the fork at rest and while it runs, and return it."""
    branch = life.client.prompt("Fork.", resume=session, fork=True).session
    assert branch != session
    rotated_at_rest(life, branch, 1)
    with life.running(branch) as running:
        compacted(running, "the fork")
        life.rotate(running.path, "in a fork", LIVE)
        running.say("Fork, on.")
    return branch


def rewound(life: Life) -> str:
    """Go back to what is archived, and have it put back; return the session.

    Without hooks: what is typed while one runs, 2.1.112 leaves in the line for the next prompt.
    """
    (life.client.config / "settings.json").unlink()
    path = rewinding(life.client, lambda path: life.rotate(path, "before a rewind", LIVE))
    life.check(path)
    ended = run(life.client, "split", "--in-place", path.stem)
    assert (ended.code, ended.out[:4]) == (0, "Put "), ended
    life.check(path)
    return path.stem


# ── the proof ────────────────────────────────────────────────────────────────────────────────


def test_a_history_is_every_byte_that_its_client_wrote_in_that_order(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(client)
    session = rotated_at_every_moment(life, monkeypatch)
    rotated_at_rest(life, session, 4)
    rotated_by_its_hook(life, session)
    branch = forked(life, session)
    restored(life, session)
    rotated_all_the_time(life, session, monkeypatch)
    others = [branch, rewound(life)]
    life.check_all()
    assert run(client, "verify", "--all").code == 0
    for each in (session, *others):
        restored(life, each)
    assert life.rotations.total() - life.rotations[ALWAYS] >= ROTATIONS, life.told()
    assert life.rotations[ALWAYS] >= 3, life.told()


@pytest.mark.parametrize("moment", ["before that", "as it opens the file for that"])
def test_a_row_that_a_client_takes_back_is_gone_from_the_history(
    one_that_takes_back: ClientVersion,
    tmp_path: Path,
    api: MockApi,
    moment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client(one_that_takes_back, tmp_path / "home", api)
    life = Life(client, hooks=False)
    rotated: list[threading.Thread] = []

    def session() -> Path:
        (path,) = client.project.glob("*.jsonl")
        return path

    def act(request: Request, when: Moment) -> None:
        if BROKEN in request.prompt and when == "before" and not request.body.get("stream"):
            row = fingerprint(request.messages).encode()
            until(lambda: row in life.recording.of(session()))
            if moment == "before that":
                life.rotate(session(), moment, LIVE)
            else:
                rotated.append(rotating_around(client, session(), monkeypatch))

    with on_terminal(client) as terminal, client.api.meanwhile(act):
        terminal.wait_for(MARKED)
        terminal.say("First.")
        terminal.compact()
        terminal.say("Second.")
        terminal.say(BROKEN, rounds=2)  # shown as soon as the first is
        path = session()
        until(lambda: archived(client, path) == 1)
        for thread in rotated:
            thread.join()
        until(lambda: bool(life.recording.of(path)) and life.recording.files[path].edits == 1)
        life.check(path)
        last = terminal.say("Last.").encode()
        until(lambda: last in life.recording.of(path))
    life.check_all()
    assert archived(client, path) == 1
    restored(life, path.stem)


def test_a_late_line_that_a_rotation_loses_is_missed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(client)
    with life.running() as running:
        compacted(running, "what is lost")
        life.check(running.path)
        MUTANTS["late-lines"](monkeypatch)
        with late(running, monkeypatch):
            turn = running.conversation.say("Late.")
            name = fingerprint(turn.conversation[-1].messages).encode()
            until(lambda: name in life.recording.of(running.path))
        assert re.search("[1-9][0-9]* lines are missing, 0 are", life.problem(running.path) or "")
