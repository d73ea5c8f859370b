"""The real client on a terminal, as a user has it: keys in, a screen out.

It promises that a text which `wait_for` returns stood on the screen, all of it at one time, and
that the client is ended with the block.

Rule: only what the screen shows says which key is pressed. A key is pressed again where the line
that keys go to has not changed for a while. On a busy machine the client may still have to read the
first one: so the keys are chosen anew by what the screen shows then, on whatever way both led.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyte

from support.in_process import next_piece
from support.real_clients.client import LIMIT, ClientError
from support.real_clients.installing import status_of
from support.real_clients.mock_api import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from support.real_clients.client import Client
    from support.real_clients.mock_api import MockApi

COLUMNS: Final = 120
LINES: Final = 60

ENTER: Final = "\r"
UP: Final = "\x1b[A"
DOWN: Final = "\x1b[B"
REWIND: Final = "/rewind"

AGAIN: Final = 5.0
"""Seconds after which a key without any effect is pressed once more: a client that has just drawn a
list may not listen to keys yet, and they are lost."""

STILL: Final = 0.2
"""Seconds without a change after which a screen counts as drawn."""

MARKED: Final = "^ *[>\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}](?:[ \xa0]|$)"
"""Before the line that keys go to: what is typed, or what is chosen of a list."""

_PRIVATE: Final = re.compile(rb"\x1b\[[<>=?][\d;]*[a-gi-km-z$]*[a-gi-km-z]")
"""Questions and modes of newer terminals, which the screen does not know."""


@contextlib.contextmanager
def on_terminal(
    client: Client, *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """Run a client on a terminal; it is past all questions that a new user gets."""
    _settle_in(client)
    with tempfile.TemporaryDirectory(prefix="run-") as runtime:
        variables = client.environment(environment) | {
            "XDG_RUNTIME_DIR": runtime,
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
        }
        command = [*client.command, *arguments]
        terminal = Terminal(command, str(client.work), variables, client.api)
        try:
            yield terminal
        finally:
            terminal.close()


def _settle_in(client: Client) -> None:
    """Answer in advance what a client asks who runs it for the first time in a folder."""
    file = client.config / ".claude.json"
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    key = client.environment()["ANTHROPIC_API_KEY"]
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    known |= {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [key[-20:]], "rejected": []},
    }
    known.setdefault("projects", {}).setdefault(str(client.work), {}).update(trusted)
    file.write_text(json.dumps(known))


def _marked(shown: str) -> tuple[int, str]:
    """Return the line that keys go to, and its number; -1 while there is none."""
    lines = shown.splitlines()
    marked = (number for number in reversed(range(len(lines))) if re.match(MARKED, lines[number]))
    at = next(marked, -1)
    return at, re.sub(MARKED, "", lines[at]) if at >= 0 else ""


def _shows(pattern: str, shown: str) -> bool:
    return re.search(pattern, shown, re.MULTILINE) is not None


def _to_send(shown: str) -> str | None:
    return ENTER if _marked(shown)[1] else None


def _to_move(shown: str) -> str | None:
    """Return what to press on the way from `/cd` to the new folder."""
    marked = _marked(shown)[1]
    if marked.startswith("No, "):
        return DOWN
    return ENTER if marked.startswith(("/cd ", "Yes, ")) else None


def _to_go_back(prompt: str, shown: str) -> str | None:
    """Return what to press on the way from `/rewind` to sending a prompt again."""
    at, marked = _marked(shown)
    if marked.startswith((REWIND, "1. Restore ")) or prompt in marked:
        return ENTER
    lines = shown.splitlines()
    offered = next((number for number, line in enumerate(lines) if line.strip() == "Rewind"), None)
    if offered is None or at < offered:
        return None
    rows = [number for number, line in enumerate(lines) if number > offered and prompt in line]
    return None if not rows else UP if rows[-1] < at else DOWN


class _Screen(pyte.Screen):
    """A screen that answers what programs ask a terminal."""

    def __init__(self, master: int) -> None:
        super().__init__(COLUMNS, LINES)
        self._master = master

    def write_process_input(self, data: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._master, data.encode())


class Terminal:
    """A running client and its screen."""

    def __init__(
        self, command: list[str], folder: str, environment: dict[str, str], api: MockApi
    ) -> None:
        self._deadline = time.monotonic() + LIMIT
        self._api = api
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self._screen = _Screen(self._master)
        self._stream = pyte.ByteStream(self._screen)
        self._changed = threading.Condition()
        self._has_ended = False
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id of the client."""
        return self._process.pid

    def text(self) -> str:
        """Return what the screen shows."""
        with self._changed:
            return self._text()

    def wait_for(self, pattern: str) -> str:
        """Wait until the screen shows what a regular expression finds; return the screen."""
        return self._wait_until(partial(_shows, pattern), pattern)

    def say(self, text: str, rounds: int = 1) -> str:
        """Give a prompt, wait for the reply to it, and return the reply's name.

        A reply that calls tools is followed by another: that is a round more.
        """
        self._type(text)
        return self.send(rounds)

    def send(self, rounds: int = 1) -> str:
        """Send the prompt that stands there, wait for the reply to it, and return its name."""
        return self._sent(_to_send, rounds)

    def _sent(self, choose: Callable[[str], str | None], rounds: int, begun: str = "") -> str:
        known = len(self._api.requests())
        self._press_until(choose, partial(self._was_asked, known), "a question to the model", begun)
        names: list[str] = []

        def is_there(shown: str) -> bool:
            names[:] = [
                fingerprint(request.messages)
                for request in self._api.requests()[known:]
                if request.is_conversation
            ][rounds - 1 : rounds]
            return any(name in shown for name in names)

        self._wait_until(is_there, "a reply")
        return names[0]

    def compact(self) -> None:
        """Have the session compacted."""
        known = len(self._api.requests())
        self._type("/compact")
        self._press_until(_to_send, partial(self._was_asked, known), "a question to the model")
        self.wait_for("Compacted")

    def go_back(self, prompt: str) -> str:
        """Go back to the moment before a prompt, send it again, and return the reply's name."""
        self._type(REWIND)
        return self._sent(partial(_to_go_back, prompt), rounds=1, begun=REWIND)

    def change_folder(self, folder: Path) -> None:
        """Have the client go on in another folder, which it is told to trust (2.1.330)."""
        self._type(f"/cd {folder}")
        self._press_until(_to_move, partial(_shows, "Moved to "), "that it moved")

    def close(self) -> None:
        """End the client and everything that it started."""
        status_of(self._process, deadline=0)
        self._reader.join()
        os.close(self._master)

    def _type(self, text: str) -> None:
        """Type a text; with the Enter key at once it would be taken for something pasted."""
        os.write(self._master, text.encode())
        self.wait_for(rf"{MARKED}{re.escape(text)}")

    def _was_asked(self, known: int, _shown: str) -> bool:
        requests = self._api.requests()[known:]
        return any(request.is_conversation or request.is_compaction for request in requests)

    def _press_until(
        self,
        choose: Callable[[str], str | None],
        holds: Callable[[str], bool],
        what: str,
        begun: str = "",
    ) -> None:
        """Press the keys that a screen asks for until something holds.

        Where a screen asks for none for a while, `begun` is typed: a second key, pressed for the
        same line, has left what it began.
        """
        pressed: tuple[str | None, int, str] | None = None

        def is_over_or_new(shown: str) -> bool:
            key = choose(shown)
            return holds(shown) or (key is not None and (key, *_marked(shown)) != pressed)

        while not self._has_ended and time.monotonic() < self._deadline:
            is_late = self._waited(is_over_or_new, time.monotonic() + AGAIN) is None
            shown = self._still()
            if holds(shown):
                return
            key = choose(shown)
            if is_late or (key is not None and (key, *_marked(shown)) != pressed):
                pressed = (key, *_marked(shown))
                os.write(self._master, (begun if key is None else key).encode())
        self._wait_until(holds, what)

    def _still(self) -> str:
        """Return the screen when all of it is drawn; one that is never still, after `AGAIN`."""
        end = time.monotonic() + AGAIN
        with self._changed:
            while time.monotonic() < end and self._changed.wait(STILL) and not self._has_ended:
                pass
            return self._text()

    def _wait_until(self, holds: Callable[[str], bool], what: str) -> str:
        shown = self._waited(holds, self._deadline)
        if shown is None:
            how = "ended" if self._has_ended else f"took longer than {LIMIT:.0f} s"
            raise ClientError(f"The client {how} without {what!r}. It shows:\n{self.text()}")
        return shown

    def _waited(self, holds: Callable[[str], bool], deadline: float) -> str | None:
        """Wait for the screen to be as wanted, and return it; None when it was not in time."""
        with self._changed:
            while not holds(shown := self._text()):
                left = deadline - time.monotonic()
                if self._has_ended or not self._changed.wait(max(0.0, left)):
                    return None
        return shown

    def _text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display).strip("\n")

    def _read(self) -> None:
        rest = b""
        while not self._has_ended:
            data = next_piece(self._master)
            with self._changed:
                self._has_ended = not data
                # A sequence that is not complete yet waits for its end.
                data, rest = rest + data, b""
                start = data.rfind(b"\x1b")
                if start >= 0 and re.fullmatch(rb"\x1b(\[[\d;<>=?$]*)?", data[start:]):
                    data, rest = data[:start], data[start:]
                self._stream.feed(_PRIVATE.sub(b"", data))
                self._changed.notify_all()
