"""The real client, installed from npm and run where it can do no harm.

It promises that a run sees nothing of this machine but PATH and its own folders, talks to nobody
but the mock API, and ends within its time limit.

Rule: a client's files are touched only in folders that this module made, and only processes are
ended that it started.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import pickle
import queue
import re
import shutil
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support.real_clients.installing import (
    KEEPS_COMPILED,
    UnavailableError,
    by_quick_node,
    installed,
    quick_tools,
    status_of,
)
from support.real_clients.mock_api import fingerprint
from support.real_clients.normal import Sent, normalise, slug

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from support.real_clients.mock_api import Block, Body, MockApi, Request

PACKAGE: Final = "@anthropic-ai/claude-code"

LIMIT: Final = 120.0
"""Seconds that one run of a client may take; a usual one takes one or two."""

WRITING: Final = 10.0
"""Seconds within which a client writes a turn that has ended; usually a tenth of one."""

QUESTION: Final = "What did we do so far?"
"""The prompt that `resume_request` resumes with."""


_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


# ── which clients ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ClientVersion:
    """A release of the client, and the little that the harness has to know of it."""

    number: str
    preserves: bool
    """Whether its boundaries name earlier rows that a resume needs."""
    like: str = ""
    """The number of the version in the table that it is taken to be like; mostly its own."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "like", self.like or self.number)

    def __str__(self) -> str:
        return self.number

    @property
    def key(self) -> tuple[int, ...]:
        """What versions are ordered by."""
        return tuple(int(part) for part in self.number.split("."))


VERSIONS: Final = (
    ClientVersion("2.0.28", preserves=False),
    ClientVersion("2.1.112", preserves=False),
    ClientVersion("2.1.330", preserves=True),
)
"""All clients that the tests run, oldest first."""

OTHERS: Final = (
    ClientVersion("2.0.76", preserves=False, like="2.0.28"),
    ClientVersion("2.1.80", preserves=False, like="2.1.112"),
    ClientVersion("2.1.200", preserves=True, like="2.1.330"),
    ClientVersion("2.1.260", preserves=True, like="2.1.330"),
    ClientVersion("2.1.332", preserves=True, like="2.1.330"),
)
"""Those that write and judge sessions of any shape, and that `scripts/check-client --all` runs.

Each writes or reads something as no other does; the last is the newest.
"""


def version(number: str) -> ClientVersion:
    """Return a version; one that is not in the table is taken to be like the one before it."""
    wanted = replace(VERSIONS[0], number=number)
    known = [row for row in (*VERSIONS, *OTHERS) if row.key <= wanted.key]
    before = max(known, key=lambda row: row.key, default=VERSIONS[0])
    return replace(before, number=number)


# ── getting them ─────────────────────────────────────────────────────────────────────────────


class ClientError(Exception):
    """A client did not do what it was asked to; the message holds what it said."""


@functools.cache
def install(number: str) -> tuple[str, ...]:
    """Install a version of the client unless it is there, and return the command that runs it.

    Raises UnavailableError, at once when it failed before in this process.
    """
    return _command(installed(PACKAGE, number, number))


def _command(folder: Path) -> tuple[str, ...]:
    packages = folder / "node_modules"
    native = sorted(packages.glob(f"{PACKAGE}-*/claude"))
    if native:
        return (str(native[0]),)
    script = packages / PACKAGE / "cli.js"
    node = shutil.which("node")
    if not script.is_file() or node is None:
        raise UnavailableError(f"{folder} holds no client that runs on this machine")
    return (node, str(script))


def _read_if_there(path: Path) -> bytes:
    """Return a file's bytes, none where there is no file: clients make it with their first rows."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_bytes()
    return b""


def session_id(session_file: Path) -> str:
    """Return the id of a session: the name of its file."""
    if not _UUID.fullmatch(session_file.stem):
        raise ValueError(f"{session_file.name} is not named after a session; name one beside it")
    return session_file.stem


# ── running them ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Turn:
    """What came of one prompt."""

    session: str
    """The session's id; another one than before after a fork."""
    text: str
    requests: tuple[Request, ...]
    """What the client sent, in order, titles and warm-ups included."""

    @property
    def conversation(self) -> tuple[Request, ...]:
        """The turns of agents among the requests."""
        return tuple(request for request in self.requests if request.is_conversation)


class Client:
    """One installation of the client at home in one folder.

    `home` gets four folders: `config` (the client's own), `work` (the project), `user` (HOME) and
    `tmp`. Two clients share a home only to be in one session; runs of one follow one another.
    """

    def __init__(self, version: ClientVersion, home: Path, api: MockApi) -> None:
        self.version = version
        self.home = home.resolve()
        self.api = api
        self.config, self.work = self.home / "config", self.home / "work"
        for folder in (self.config, self.work, self.home / "user", self.home / "tmp"):
            folder.mkdir(parents=True, exist_ok=True)
        self.command = by_quick_node(install(version.number))

    @property
    def project(self) -> Path:
        """The folder of the sessions of `work`."""
        return self.config / "projects" / slug(self.work)

    def session_file(self, session: str) -> Path:
        """Return where the client keeps a session."""
        return self.project / f"{session}.jsonl"

    # ── verbs ────────────────────────────────────────────────────────────────────────────────

    def prompt(
        self,
        text: str,
        *,
        resume: str | None = None,
        fork: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> Turn:
        """Run the client for one prompt, in a new session or in one that it resumes."""
        arguments = [text, "--output-format", "json", *self._resuming(resume, fork=fork)]
        before = len(self.api.requests())
        with self._process(arguments, environment, writes=False) as process:
            said = process.until_end()
        try:
            result = json.loads(said)
            session, answer = result["session_id"], result.get("result", "")
        except (ValueError, KeyError, TypeError):
            raise ClientError(f"{self._name} answered no JSON: {said[-1000:]!r}") from None
        if result.get("is_error"):
            raise ClientError(f"{self._name} reports an error: {answer[:1000]}")
        return Turn(session, answer, tuple(self.api.requests()[before:]))

    def compact(self, session: str) -> Turn:
        """Resume a session and have it compacted, as a user does it."""
        return self.prompt("/compact", resume=session)

    @contextlib.contextmanager
    def conversation(
        self, *, resume: str | None = None, environment: Mapping[str, str] | None = None
    ) -> Iterator[Conversation]:
        """Keep one process running that takes prompt after prompt, and let it end by itself.

        Between two prompts the client has the session open, as it would for a user.
        """
        arguments = ["--input-format", "stream-json", "--output-format", "stream-json"]
        arguments += ["--verbose", *self._resuming(resume)]
        with self._process(arguments, environment, writes=True) as process:
            yield Conversation(process, self.api)
            process.until_end()

    def converse(
        self,
        prompts: Sequence[str],
        *,
        resume: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> list[Turn]:
        """Give several prompts to one process, each after the answer to the one before."""
        with self.conversation(resume=resume, environment=environment) as conversation:
            turns = [conversation.say(text) for text in prompts]
            self._wait_until_written(turns[-1])
        return turns

    def resume_request(self, session_file: Path, *, beside: Path | None = None) -> Sent:
        """Return what the client sends when it resumes a copy of a session file, normalised."""
        body, places = self.resume_body(session_file, beside=beside)
        return normalise(body, places)

    def resume_body(
        self, session_file: Path, *, beside: Path | None = None
    ) -> tuple[Body, dict[Path, str]]:
        """Return the body that the client sends when it resumes a copy of a session file.

        With it come the folders that may appear in it. The copy lives in a home of its own, which
        is gone afterwards. `beside` is the session
        file whose companions (subagents, tool results) are copied too, by default the same;
        it also gives the session's id when `session_file` bears another name.

        Of the same bytes it is done once a run, if the API has a folder to keep that in.
        """
        beside = beside or session_file
        kept = self.api.known
        if kept is None:
            return self._resume_body(session_file, beside)
        kept /= self._resumed(session_file, beside)
        if not kept.exists():
            found = self._resume_body(session_file, beside)
            with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as file:
                pickle.dump(found, file)
            Path(file.name).rename(kept)
            return found
        return pickle.loads(kept.read_bytes())  # type: ignore[no-any-return]

    def _resumed(self, session_file: Path, beside: Path) -> str:
        """Return what tells one resume from others: the version, and every byte that is copied."""
        told = hashlib.sha256(f"{self.version} {session_id(beside)}\n".encode())
        beside_it = (beside.parent / session_id(beside)).rglob("*")
        for path in (session_file, *sorted((*beside_it, *beside.parent.glob("agent-*.jsonl")))):
            if path.is_file():
                name = path.name if path == session_file else str(path.relative_to(beside.parent))
                told.update(f"{name} {path.stat().st_size}\n".encode())
                told.update(path.read_bytes())
        return told.hexdigest()

    def _resume_body(self, session_file: Path, beside: Path) -> tuple[Body, dict[Path, str]]:
        session = session_id(beside)
        with tempfile.TemporaryDirectory(prefix="probe-", dir=self.home) as home:
            probe = Client(self.version, Path(home), self.api)
            probe.project.mkdir(parents=True)
            shutil.copy2(session_file, probe.session_file(session))
            if (companions := beside.parent / session).is_dir():
                shutil.copytree(companions, probe.project / session)
            for agent in beside.parent.glob("agent-*.jsonl"):
                shutil.copy2(agent, probe.project)
            turn = probe.prompt(QUESTION, resume=session)
            if not turn.conversation:
                raise ClientError(f"{self._name} resumed {session_file} and sent nothing")
            places = {**self.places(), **probe.places()}
            return turn.conversation[0].body, places

    # ── going back ───────────────────────────────────────────────────────────────────────────

    def save(self) -> Path:
        """Copy everything that is in the client's home, for `put_back`; return the copy."""
        copy = Path(tempfile.mkdtemp(prefix="saved-", dir=self.home.parent))
        shutil.copytree(self.home, copy / "home", symlinks=True)
        return copy

    def put_back(self, saved: Path) -> None:
        """Make the client's home what it was at `save`; the copy stays.

        Under the same path, so that two ways to go on can be compared without a difference in
        any path.
        """
        shutil.rmtree(self.home)
        shutil.copytree(saved / "home", self.home, symlinks=True)

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _wait_until_written(self, turn: Turn) -> None:
        """Wait for the reply to be in the session file, if there is one that belongs there.

        A client whose input ends before may end without writing the turn (2.1.80 does at times).
        """
        if not turn.conversation:
            return
        name = fingerprint(turn.conversation[-1].messages).encode()
        deadline = time.monotonic() + WRITING
        while name not in _read_if_there(self.session_file(turn.session)):
            if time.monotonic() > deadline:
                raise ClientError(f"{self._name} does not write down what was said")
            time.sleep(0.01)

    @property
    def _name(self) -> str:
        return f"Claude Code {self.version}"

    def places(self) -> dict[Path, str]:
        """Return the folders that appear in requests, each with what it is."""
        names = {"config": "config", "work": "work", "user": "user", "tmp": "tmp", "": "home"}
        return {self.home / folder: name for folder, name in names.items()}

    def _resuming(self, session: str | None, *, fork: bool = False) -> list[str]:
        if session is None:
            return []
        return ["--resume", session, *(["--fork-session"] if fork else [])]

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return all variables of a run.

        The mock stands in as the proxy for every other host, so that nothing leaves the machine
        and an attempt shows in the requests as CONNECT.
        """
        proxies = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
        return {
            "PATH": os.pathsep.join((quick_tools(), os.environ.get("PATH", os.defpath))),
            "HOME": str(self.home / "user"),
            "TMPDIR": str(self.home / "tmp"),
            "CLAUDE_CODE_TMPDIR": str(self.home / "tmp"),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "GIT_CEILING_DIRECTORIES": str(self.home),
            "ANTHROPIC_API_KEY": "sk-ant-dummy",
            "ANTHROPIC_BASE_URL": self.api.url,
            **dict.fromkeys(proxies, self.api.url),
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            **KEEPS_COMPILED,
            "IS_SANDBOX": "1",  # else root may not skip the permissions
            **(more or {}),
        }

    @contextlib.contextmanager
    def _process(
        self, arguments: Sequence[str], more: Mapping[str, str] | None, *, writes: bool
    ) -> Iterator[_Process]:
        command = [*self.command, "-p", "--dangerously-skip-permissions", *arguments]
        # For sockets: their paths must be short, or the client takes a folder that it shares.
        with tempfile.TemporaryDirectory(prefix="run-") as runtime:
            environment = self.environment(more) | {"XDG_RUNTIME_DIR": runtime}
            process = _Process(self._name, command, self.work, environment, writes=writes)
            try:
                yield process
            finally:
                process.close()


class Conversation:
    """A client that waits for the next prompt."""

    def __init__(self, process: _Process, api: MockApi) -> None:
        self._process, self._api = process, api

    @property
    def pid(self) -> int:
        """The process id of the client."""
        return self._process.pid

    def say(self, text: str) -> Turn:
        """Give a prompt, or a command such as `/compact`, and wait for the end of the turn.

        The client may write the turn's last rows to the session file a moment later.
        """
        before = len(self._api.requests())
        self.send({"type": "text", "text": text})
        return self.end_of_turn(before)

    def send(self, *content: Block) -> None:
        """Give a prompt, whether the client works or not, and wait for nothing."""
        message = {"role": "user", "content": [*content]}
        self._process.write(json.dumps({"type": "user", "message": message}))

    def end_of_turn(self, before: int = 0) -> Turn:
        """Wait for the end of a turn; `before` is how many requests there were before it."""
        result = self._process.until_result()
        requests = tuple(self._api.requests()[before:])
        return Turn(result["session_id"], result.get("result", ""), requests)


class _Process:
    """A running client: lines in, lines out, and a time by which it has to be done."""

    def __init__(
        self,
        name: str,
        command: list[str],
        folder: Path,
        environment: dict[str, str],
        *,
        writes: bool,
    ) -> None:
        self._name = name
        self._deadline = time.monotonic() + LIMIT
        self._open = contextlib.ExitStack()
        self._errors = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - so it is
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE if writes else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id, which is also that of its group."""
        return self._process.pid

    def write(self, line: str) -> None:
        """Give the client one line."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure("stopped reading", b"") from None

    def until_result(self) -> dict[str, Any]:
        """Read up to the end of a turn and return what the client says of it."""
        seen: list[bytes] = []
        while (line := self._next()) is not None:
            seen.append(line)
            with contextlib.suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, dict) and value.get("type") == "result":
                    if value.get("is_error"):
                        raise self._failure("reports an error", line)
                    return value
        raise self._failure("ended without an answer", b"".join(seen))

    def until_end(self) -> bytes:
        """Let the client end by itself and return the rest of what it says."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        said = b"".join(iter(self._next, None))
        status = status_of(self._process, self._deadline)
        if status != 0:
            raise self._failure(f"ended with {status}", said)
        return said

    def close(self) -> None:
        """End the client if it still runs, and everything that it started."""
        status_of(self._process, deadline=0)
        self._reader.join()
        with self._open, contextlib.suppress(BrokenPipeError):  # what was not written
            for pipe in (self._process.stdout, self._process.stdin):
                if pipe is not None:
                    pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _next(self) -> bytes | None:
        try:
            return self._lines.get(timeout=max(0.0, self._deadline - time.monotonic()))
        except queue.Empty:
            raise self._failure(f"took longer than {LIMIT:.0f} s", b"") from None

    def _failure(self, what: str, said: bytes) -> ClientError:
        self._errors.seek(0)
        complaint = self._errors.read()[-1000:].decode(errors="replace")
        text = said[-1000:].decode(errors="replace")
        return ClientError(f"{self._name} {what}. It said: {text!r}; its errors: {complaint!r}")
