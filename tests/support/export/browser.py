"""A headless Chromium for a test, told what to do over the DevTools protocol.

Rule: nothing is sent anywhere: every request but that of the page itself is noted and failed.
What the page says (dialogs, messages of the console, exceptions) is noted too.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE: Final = 60.0
"""Seconds for anything to happen, on a machine with other things to do."""

# DevTools speaks on file descriptors 3 and 4; both are moved away first, as either may be taken.
_ON_3_AND_4: Final = """
import os, sys
into, out = os.dup(int(sys.argv[1])), os.dup(int(sys.argv[2]))
os.dup2(into, 3), os.dup2(out, 4)
os.set_inheritable(3, True), os.set_inheritable(4, True)
os.execv(sys.argv[3], sys.argv[3:])
"""


def executable() -> str | None:
    """Return the path of a Chromium, None if there is none."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@dataclass(slots=True)
class Browser:
    """One page. `noted` are the requests, dialogs and messages that nobody asked for."""

    _into: int
    _out: int
    _session: str = ""
    _number: int = 0
    _held: bytes = b""
    noted: list[str] = field(default_factory=list)

    def call(self, method: str, **parameters: Any) -> Any:
        """Carry out a command of the protocol and return its result."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._send(message)
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self._note(answer)

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page, a promise's when it is kept."""
        done = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < deadline, condition
            time.sleep(0.02)

    def open(self, page: Path, fragment: str = "") -> None:
        """Open a page from the disk and wait until it is there."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=page.as_uri() + fragment)
        self.wait(f"location.href.startsWith('{page.as_uri()}') && document.readyState=='complete'")

    def press(self, key: str) -> None:
        """Press and release a key."""
        code = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}.get(key)
        more = {"windowsVirtualKeyCode": code} if code else {"text": key}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        """Put a text where the cursor is."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click into the middle of the first element that a selector finds."""
        spot = self.run(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2] })()"
        )
        where = {"x": spot[0], "y": spot[1], "button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mousePressed", **where)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", **where)

    def resize(self, width: int, height: int, *, scheme: str = "light") -> None:
        """Give the window a size and the user a preference for light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def picture(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def attach(self) -> None:
        """Take the browser's first page, and from now on hear of all that it does."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Debugger"):
            self.call(f"{domain}.enable")
        # A page's first script may run before the browser's process has heard that the page is
        # there. Chromium then refuses it localStorage without a word: until the next page it reads
        # nothing and writes nowhere. A pause ahead of the scripts is told after the page is.
        self.call("Page.addScriptToEvaluateOnNewDocument", source="debugger")
        self.call("Fetch.enable", patterns=[{"urlPattern": "*"}])

    def _note(self, event: dict[str, Any]) -> None:
        method, told = event.get("method", ""), event.get("params", {})
        if method == "Fetch.requestPaused":
            is_page = told["resourceType"] == "Document" and told["request"]["url"].startswith(
                ("file:", "about:")
            )
            if is_page:
                self._later("Fetch.continueRequest", requestId=told["requestId"])
            else:
                self.noted.append(f"request {told['request']['url'][:200]}")
                self._later("Fetch.failRequest", requestId=told["requestId"], errorReason="Aborted")
        elif method == "Debugger.paused":
            self._later("Debugger.resume")
        elif method == "Page.javascriptDialogOpening":
            self.noted.append(f"dialog {told['message']}")
            self._later("Page.handleJavaScriptDialog", accept=False)
        elif method == "Runtime.consoleAPICalled":
            self.noted.append(f"console {told['args']}")
        elif method == "Runtime.exceptionThrown":
            self.noted.append(f"exception {told['exceptionDetails']}")
        elif method == "Log.entryAdded":
            self.noted.append(f"log {told['entry']['text']}")

    def _later(self, method: str, **parameters: Any) -> None:
        """Send a command whose result nobody waits for."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        self._send(message | {"sessionId": self._session})

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._into, data) :]

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._held:
            with selectors.DefaultSelector() as ready:
                ready.register(self._out, selectors.EVENT_READ)
                assert ready.select(deadline - time.monotonic()), "Chromium does not answer."
            data = os.read(self._out, 1 << 20)
            assert data, "Chromium has ended."
            self._held += data
        line, _, self._held = self._held.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a Chromium that keeps its things in a folder, and end it."""
    path = executable()
    assert path is not None
    commands, into = os.pipe()
    out, events = os.pipe()
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", _ON_3_AND_4, str(commands), str(events), path),
            *("--headless=new", "--remote-debugging-pipe", f"--user-data-dir={folder}"),
            *("--no-first-run", "--no-default-browser-check", "--disable-gpu", "--disable-sync"),
            *("--disable-background-networking", "--disable-component-update", "--mute-audio"),
            "--disable-dev-shm-usage",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # root has no sandbox to enter
        ],
        pass_fds=(commands, events),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(commands)
    os.close(events)
    try:
        found = Browser(into, out)
        found.attach()
        yield found
        found._session = ""  # noqa: SLF001 — the browser, not the page, is told to end
        found._later("Browser.close")  # noqa: SLF001 — its answer may not come any more
    finally:
        os.close(into)
        os.close(out)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def check_theme(browser: Browser, page: Path, scheme: str) -> None:
    """Check that a page takes the system's theme until `#theme` or `t` switches it, for good."""
    background = "getComputedStyle(document.body).backgroundColor"
    colours = {}
    for each in ("light", "dark"):
        browser.resize(1280, 800, scheme=each)
        browser.open(page)
        colours[each] = browser.run(background)
    other = {"light": "dark", "dark": "light"}[scheme]
    assert colours["light"] != colours["dark"]
    browser.resize(1280, 800, scheme=scheme)
    assert browser.run(background) == colours[scheme]
    browser.click("#theme")
    assert browser.run(background) == colours[other]
    stored = [browser.run("JSON.stringify(localStorage)")]
    browser.open(page)
    stored.append(browser.run("JSON.stringify(localStorage)"))
    assert browser.run(background) == colours[other], stored
    browser.press("t")
    assert browser.run(background) == colours[scheme]
