"""A client goes on in a session that is rotated under it as if nobody had touched it."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import generate_session
from sessrotate import fs
from sessrotate.errors import InUseError
from sessrotate.in_place import operations
from sessrotate.system import in_use
from support import oracle
from support.command_line import COMMAND
from support.real_clients.client import QUESTION, WRITING, Client, ClientVersion
from support.real_clients.judge import compare
from support.real_clients.making import FULL, WINDOW, compact
from support.real_clients.mock_api import MockApi, call, fingerprint, usage
from support.real_clients.normal import Sent, normalise
from support.real_clients.rotating import archived, place_of, run, stitched
from support.real_clients.terminal import MARKED, on_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.real_clients.client import Conversation, Turn
    from support.real_clients.mock_api import Moment, Request

IN_USE: Final = 75

COMPACT: Final = "/compact"
SCRIPT: Final = "between.sh"
"""What the client runs as a tool; it says nothing, whatever it does."""

LOOK: Final = call("Bash", command="echo on; ls", description="Look")
RUN: Final = call("Bash", command=f"sh {SCRIPT}", description="Run it")

WAITING: Final = "Live, third: rotated before its answer."
STREAMING: Final = f"Live, fifth: rotated half-way through its answer. {LOOK}"
BY_TOOL: Final = f"Live, seventh: rotated by a tool. {RUN} {LOOK}"
OVERFLOWING: Final = "Live, ninth: compacted first."
LATE: Final = "Live, eleventh: its rows come late."
STEPS: Final = (
    "Live, first.",
    f"Live, second. {LOOK}",
    COMPACT,
    WAITING,
    f"Live, fourth. {LOOK}",
    COMPACT,
    STREAMING,
    "Live, sixth.",
    COMPACT,
    BY_TOOL,
    f"Live, eighth: fills the window. {usage(FULL)}",
    OVERFLOWING,
    f"Live, tenth. {LOOK}",
    COMPACT,
    LATE,
)
"""A session in one process that is compacted four times by hand and once by itself."""

COMPACTED: Final = {COMPACT, OVERFLOWING}
COMPACTIONS: Final = sum(step in COMPACTED for step in STEPS)


# ── a session, from its first prompt on ──────────────────────────────────────────────────────


@dataclass
class Running:
    """A client in the middle of a session that is one process long."""

    client: Client
    conversation: Conversation
    session: str = ""
    compactions: int = 0

    def say(self, step: str) -> None:
        """Take the next step, and wait until the client has written what came of it.

        What 2.0.28 and 2.1.112 write depends on whether they are done with the turn before.
        """
        turn = self.conversation.say(step)
        self.session = turn.session
        self.compactions += step in COMPACTED
        until(self._is_written(turn))

    @property
    def path(self) -> Path:
        return self.client.session_file(self.session)

    def _is_written(self, turn: Turn) -> Callable[[], bool]:
        names = [fingerprint(turn.conversation[-1].messages).encode()] if turn.conversation else []

        def is_written() -> bool:
            try:
                history = stitched(self.client, self.path) if self.path.exists() else b""
            except InUseError:  # it is rotated or restored just now
                return False
            return compactions(history) == self.compactions and all(
                name in history for name in names
            )

        return is_written


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that a client writes a moment later."""
    deadline = time.monotonic() + WRITING
    while not holds():
        assert time.monotonic() < deadline, "the client does not write it down"
        time.sleep(0.01)


def compactions(history: bytes) -> int:
    """Return how often a session was compacted; 2.1.112 repeats the lines that say so."""
    return len(
        {
            oracle.parse(history[at:].partition(b"\n")[0])["uuid"]
            for at in oracle.boundaries(history)
        }
    )


def live(client: Client, step: Callable[[Running, str], object] = Running.say) -> Path:
    """Use a client for a whole session in one process; return its file."""
    with client.conversation(environment=WINDOW) as opened:
        running = Running(client, opened)
        for text in STEPS:
            step(running, text)
    return running.path


def said(data: bytes) -> list[Any]:
    """Return who said what in a session, and to what.

    The first copy of each row counts: how many 2.1.112 repeats depends on time. So does what
    clients know of a streamed answer when they write it down, beside the text.
    """
    first: dict[str, Any] = {}
    for row in map(json.loads, data.splitlines()):
        if row.get("type") in {"user", "assistant", "system"}:
            message = row.get("message") or {}
            told = [row.get(key) for key in ("type", "subtype", "uuid", "parentUuid", "isMeta")]
            first.setdefault(row["uuid"], [*told, message.get("role"), message.get("content")])
    return list(normalise({"messages": list(first.values())}, {}).messages)


@dataclass(frozen=True)
class Life:
    """What a client sent and wrote in a whole session."""

    sent: list[Sent]
    rows: list[Any]


class Lives:
    """The life of a session that nobody touched, and the place to live it again."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._script(":")
        self._fresh = client.save()
        self._done = len(client.api.requests())
        self.alone = self.lived(live(client).read_bytes())

    def again(self) -> Client:
        """Return the client as it was before the session."""
        self._client.put_back(self._fresh)
        self._done = len(self._client.api.requests())
        return self._client

    def lived(self, history: bytes) -> Life:
        """Return what was sent since `again`, and what a history says."""
        return Life(self.sent(), said(history))

    def sent(self) -> list[Sent]:
        """Return what was sent since `again`, in order."""
        return [
            normalise(request.body, self._client.places())
            for request in self._client.api.requests()[self._done :]
            if request.is_conversation or request.is_compaction
        ]

    def _script(self, text: str) -> None:
        (self._client.work / SCRIPT).write_text(text)

    def check(self, path: Path) -> None:
        """Check that a session was the same as alone, that all of it is there, and resumes."""
        client = self._client
        found = self.lived(stitched(client, path))
        assert len(found.sent) == len(self.alone.sent)
        for expected, other in zip(self.alone.sent, found.sent, strict=True):
            assert compare(expected, other) == []
        assert found.rows == self.alone.rows
        # What 2.0.28 and 2.1.112 write behind a compaction differs from run to run: a resume of
        # the whole history of this one is what a resume must be equal to.
        resumes_as_whole(client, path)
        client.prompt("Live, resumed.", resume=path.stem)
        whole = stitched(client, path)
        assert run(client, "verify", path.stem).code == 0
        assert run(client, "restore", path.stem).code == 0
        assert path.read_bytes() == whole


def resumes_as_whole(client: Client, path: Path) -> None:
    """Check that a resume sends what it sends of the whole history, whatever is archived."""
    whole = client.home / "whole.jsonl"
    whole.write_bytes(stitched(client, path))
    expected = client.resume_request(whole, beside=path)
    assert compare(expected, client.resume_request(path)) == []


@pytest.fixture(scope="session")
def lives(version: ClientVersion, tmp_path_factory: pytest.TempPathFactory, api: MockApi) -> Lives:
    return Lives(Client(version, tmp_path_factory.mktemp("live") / "home", api))


def rotate(client: Client, path: Path) -> None:
    """Rotate a session under its client by the real command, and check it."""
    before = stitched(client, path)
    ended = run(client, "split", "--in-place", "--live", path.stem)
    assert stitched(client, path).startswith(before)
    assert ended.code == 0, ended
    assert archived(client, path) == len(oracle.boundaries(before))


# ── the proof ────────────────────────────────────────────────────────────────────────────────


def test_a_session_goes_on_that_is_rotated_between_its_turns(lives: Lives) -> None:
    client = lives.again()
    rotated: list[int] = []

    def step(running: Running, text: str) -> None:
        if running.session:
            if running.compactions > len(rotated):
                registered = client.config / "sessions" / f"{running.conversation.pid}.json"
                assert registered.exists() is (client.version.like != "2.0.28")
                if registered.exists():
                    assert run(client, "split", "--in-place", running.session).code == IN_USE
                rotated.append(archived(client, running.path))
            rotate(client, running.path)
        running.say(text)

    path = live(client, step)
    assert len(rotated) == COMPACTIONS
    lives.check(path)


def rotating_around(
    client: Client, path: Path, monkeypatch: pytest.MonkeyPatch
) -> threading.Thread:
    """Rotate in a thread, with the rename in the moment in which the client opens the session.

    The client, which has found the old file by then, writes there. Returns when it is to write.
    """
    old, may_write, replace = path.stat().st_ino, threading.Event(), fs.take_place

    def is_waited_for() -> bool:
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        return any("BREAKING" in lock and lock[-3].endswith(f":{old}") for lock in locks)

    def take_place(draft: Path, live_file: Path, is_it: Callable[[Path], bool]) -> None:
        if live_file == path:
            may_write.set()
            until(is_waited_for)
        replace(draft, live_file, is_it)

    def rotating() -> None:
        where = place_of(client, path)
        assert operations.rotate_session(where, WRITING, unseen, live=True).refusal is None

    monkeypatch.setattr(fs, "take_place", take_place)
    thread = threading.Thread(target=rotating)
    thread.start()
    assert may_write.wait(WRITING)
    return thread


def test_a_session_goes_on_that_is_rotated_during_its_turns(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = lives.again()
    now: list[Running] = []
    late: list[threading.Thread] = []
    rotated: list[str] = []

    def during(request: Request, moment: Moment) -> None:
        is_last = request.is_compaction and now[0].compactions == COMPACTIONS - 1
        if WAITING in request.prompt and moment == "before":
            rotated.append("waiting")
        elif STREAMING in request.prompt and moment == "half-way":
            rotated.append("streaming")
        elif is_last and moment == "half-way":
            rotated.append("compacting")
        elif LATE in request.prompt and moment == "before":
            late.append(rotating_around(now[0].client, now[0].path, monkeypatch))
            rotated.append("late")
            return
        else:
            return
        before = archived(client, now[0].path)
        rotate(client, now[0].path)
        assert archived(client, now[0].path) > before

    def step(running: Running, text: str) -> None:
        if not running.session:
            now.append(running)
        if text != BY_TOOL:
            running.say(text)
            return
        before = archived(client, running.path)
        command = f"{COMMAND} split --in-place --live {running.session}"
        (client.work / SCRIPT).write_text(f"{command} >../said 2>&1")
        running.say(text)
        assert archived(client, running.path) > before, (client.home / "said").read_text()
        rotated.append("by a tool")

    with client.api.meanwhile(during):
        path = live(client, step)
    assert rotated == ["waiting", "streaming", "by a tool", "compacting", "late"]
    late[0].join()
    assert archived(client, path) == len(oracle.boundaries(stitched(client, path)))
    rotate(client, path)
    lives.check(path)


PHASES: Final = ("Archiving", "Reading", "Archiving", "Reading")
"""In which part of a rotation the second compaction comes, the third, and so on."""


def test_a_session_goes_on_that_is_compacted_while_it_is_rotated(lives: Lives) -> None:
    client = lives.again()
    during: list[str] = []

    def step(running: Running, text: str) -> None:
        if text not in COMPACTED or not running.compactions:
            running.say(text)
            return
        before, done = archived(client, running.path), len(during)

        @contextmanager
        def progress(what: str, size: int) -> Iterator[Callable[[int], None]]:
            # Of nothing is sealed what an earlier run left.
            if size and what == PHASES[done] and len(during) == done:
                during.append(what)
                running.say(text)
            yield lambda _done: None

        where = place_of(client, running.path)
        assert operations.rotate_session(where, WRITING, progress, live=True).refusal is None
        assert archived(client, running.path) > before

    path = live(client, step)
    assert tuple(during) == PHASES
    rotate(client, path)
    lives.check(path)


class Swapping:
    """Rotates and restores a session again and again, in a thread, and watches its history."""

    def __init__(self, client: Client, path: Path) -> None:
        self._client, self._path = client, path
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.swaps = 0
        self.refusals: list[str] = []
        self.problems: list[BaseException] = []
        self._thread.start()

    def stop(self) -> None:
        """End it, after what it is doing; raise what went wrong."""
        self._stop.set()
        self._thread.join()
        for problem in self.problems:
            raise problem

    def _run(self) -> None:
        grown = b""
        try:
            while not self._stop.is_set():
                self._rotate_and_restore()
                before, grown = grown, stitched(self._client, self._path)
                assert grown.startswith(before), "the history did not only grow"
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test gets it
            self.problems.append(error)

    def _rotate_and_restore(self) -> None:
        where = place_of(self._client, self._path)
        with suppress(InUseError):
            done = operations.rotate_session(where, WRITING, unseen, live=True)
            if isinstance(done.refusal, InUseError):
                raise done.refusal
            self.refusals += [] if done.refusal is None else [str(done.refusal)]
            self.swaps += done.seconds is not None
            self.swaps += operations.restore_session(where, WRITING, unseen) is not None


@contextmanager
def unseen(_what: str, _size: int) -> Iterator[Callable[[int], None]]:
    """Show no progress."""
    yield lambda _done: None


def test_a_session_goes_on_that_is_rotated_and_restored_all_the_time(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `restore` has no --live. Here it has, so that there is always something to rotate.
    monkeypatch.setattr(in_use, "check_unused", lambda *_, **__: None)
    client = lives.again()
    swapping: list[Swapping] = []

    def step(running: Running, text: str) -> None:
        running.say(text)
        if not swapping:
            swapping.append(Swapping(client, running.path))
        if running.compactions:
            # However busy the machine is, both come between any two steps.
            seen = swapping[0].swaps
            until(lambda: swapping[0].swaps >= seen + 2 or bool(swapping[0].problems))

    try:
        path = live(client, step)
    finally:
        for one in swapping:
            one.stop()
    refused = {text for text in swapping[0].refusals if not is_repeated(client, text)}
    assert refused == set()
    if not swapping[0].refusals or not is_refused(client, path):
        rotate(client, path)
    lives.check(path)


def is_repeated(client: Client, refusal: str) -> bool:
    """Whether a rotation was refused for what a client writes while it compacts.

    Any of them may just have written the boundary, and not yet the summary. And 2.1.112 reads
    again at a compaction which rows the file has. In one life of about 150 that was between the
    new boundary and the next row, in a file that just then was a live tail: it wrote rows on both
    sides.
    """
    if "has no summary" in refusal:
        return True
    return client.version.like == "2.1.112" and "both before and after" in refusal


def is_refused(client: Client, path: Path) -> bool:
    """Whether a session is refused for such rows to the end, as no compaction came any more."""
    ended = run(client, "split", "--in-place", "--live", path.stem)
    assert ended.code == 0 or is_repeated(client, ended.err), ended
    return ended.code != 0


# ── going back ───────────────────────────────────────────────────────────────────────────────


PROMPTS: Final = ("Rewind, first.", "Rewind, second.")
TOOLS: Final = " ".join(call("Bash", command=command) for command in ("true", "sleep 1"))
"""What the first is to use, both at once: few letters, as a terminal has them in one line, and one
slower than the other, so that their results come in the same order every time."""
SUMMARY: Final = "This session is being continued from a previous conversation"


def rewinding(client: Client, between: Callable[[Path], object]) -> Path:
    """Use a client on a terminal, and go back behind the compaction; return the session's file.

    `between` comes before that, while the client runs.
    """
    with on_terminal(client) as terminal:
        terminal.wait_for(MARKED)
        terminal.say(f"{PROMPTS[0]} {TOOLS}", rounds=2)
        terminal.say(PROMPTS[1])
        terminal.compact()
        (path,) = (
            path
            for path in client.project.glob("*.jsonl")
            if PROMPTS[0].encode() in path.read_bytes()
        )
        until(lambda: b"local-command-stdout" in path.read_bytes())
        answer = terminal.say("Rewind, last.").encode()
        until(lambda: answer in path.read_bytes())
        between(path)
        terminal.go_back(PROMPTS[1])
        # A reply that there was before would not tell that the client has written this one.
        after = terminal.say("Rewind, on from there.").encode()
        until(lambda: after in path.read_bytes())
    return path


def test_a_running_client_goes_back_to_what_is_archived(lives: Lives) -> None:
    client = lives.again()
    path = rewinding(client, lambda _path: None)
    alone, expected = lives.sent(), client.resume_request(path)

    client = lives.again()
    path = rewinding(client, lambda path: rotate(client, path))
    found, live_file, whole = lives.sent(), path.read_bytes(), stitched(client, path)
    assert len(alone) == len(found)
    for one, other in zip(alone, found, strict=True):
        assert compare(one, other) == []
    assert run(client, "verify", path.stem).code == 0
    begins = SUMMARY if client.version.like != "2.0.28" and is_soon(live_file) else PROMPTS[1]
    assert opening(client.resume_request(path)) == begins

    ended = run(client, "split", "--in-place", path.stem)
    assert (ended.code, ended.out[:4]) == (0, "Put "), ended
    assert compare(expected, client.resume_request(path)) == []
    assert stitched(client, path) == whole

    rotated = client.save()
    assert run(client, "restore", path.stem).code == 0
    assert path.read_bytes() == whole
    assert compare(expected, client.resume_request(path)) == []

    client.put_back(rotated)
    compact(client, path.stem)
    assert run(client, "split", "--in-place", path.stem).code == 0
    resumes_as_whole(client, path)


SOON: Final = timedelta(seconds=5)


def is_soon(live_file: bytes) -> bool:
    """Tell whether the prompt that was sent anew came soon after another row.

    If so, 2.1.112 and 2.1.330 put it behind that row, since those that it goes on from are
    archived; and otherwise they begin with it, as 2.0.28 does at any time.
    """
    rows = [
        row
        for row in map(json.loads, live_file.splitlines())
        if "uuid" in row and "timestamp" in row
    ]
    times = [datetime.fromisoformat(row["timestamp"]) for row in rows]
    (prompt,) = (
        number
        for number, row in enumerate(rows)
        if PROMPTS[1] in json.dumps(row) and row["type"] == "user"
    )
    return any(timedelta(0) <= times[prompt] - each <= SOON for each in times[:prompt])


def opening(sent: Sent) -> str:
    """Return with which of the texts that are known a request begins."""
    text = json.dumps(sent.messages)
    return min((SUMMARY, *PROMPTS), key=lambda known: text.find(known) % len(text))


# ── a client that begins ─────────────────────────────────────────────────────────────────────

LARGE: Final = 32 << 20
"""So large that a client takes a while to read it."""


def stop_while_it_loads(
    session_file: Path, rotating: Callable[[], object], over: threading.Event
) -> threading.Thread:
    """Stop the child that opens a session, rotate, and let it go on; all in a thread.

    On a busy machine it may have read the file before anybody looks: nothing is done by the time
    it is `over`.
    """

    def opened() -> int | None:
        with suppress(OSError):  # a task, a child or a descriptor that is gone by now
            for tasks in Path("/proc/self/task").glob("*/children"):
                for pid in tasks.read_text().split():
                    for link in Path(f"/proc/{pid}/fd").iterdir():
                        if link.readlink() == session_file:
                            return int(pid)
        return None

    def watch() -> None:
        while (pid := opened()) is None:
            if over.is_set():
                return
        os.kill(pid, signal.SIGSTOP)
        try:
            rotating()
        finally:
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_a_session_may_be_rotated_while_a_client_loads_it(client: Client) -> None:
    client.project.mkdir(parents=True)
    options = generate_session.Options(size=LARGE, boundaries=4, tail=100 << 10)
    path = client.project / f"{options.session_id}.jsonl"
    with path.open("wb") as file:
        generate_session.generate(file, options)
    expected = client.resume_request(path)
    codes: list[int] = []

    def rotating() -> None:
        codes.append(run(client, "split", "--in-place", "--live", path.stem).code)

    whole = path.read_bytes()
    for _ in range(5):
        over = threading.Event()
        thread = stop_while_it_loads(path, rotating, over)
        turn = client.prompt(QUESTION, resume=path.stem)
        over.set()
        thread.join()
        if codes:
            break
        path.write_bytes(whole)  # it was not caught reading: once more
    assert codes
    found = normalise(turn.conversation[0].body, client.places())
    assert compare(expected, found) == []
    rotate(client, path)
    resumes_as_whole(client, path)
