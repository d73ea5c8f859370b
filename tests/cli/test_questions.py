"""A question waits for what is typed in a way that Ctrl-C can end at every moment."""

from __future__ import annotations

import os
import select
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from sessrotate.cli import streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Keyboard:
    """Standard input that says whether it was read before something was typed."""

    def __init__(self) -> None:
        self.fd, self._typing = os.pipe()
        self.waited: list[bool] = []

    def fileno(self) -> int:
        return self.fd

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        self.waited.append(not select.select([self.fd], [], [], 0)[0])
        return os.read(self.fd, 100).decode()

    def type(self, line: bytes) -> None:
        os.write(self._typing, line)

    def close(self) -> None:
        os.close(self.fd)
        os.close(self._typing)


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Keyboard]:
    made = Keyboard()
    monkeypatch.setattr(sys, "stdin", made)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    yield made
    made.close()


@pytest.mark.parametrize(
    "asked", [streams.confirmed, lambda: streams.answered("?", otherwise=True)]
)
def test_nothing_is_read_before_it_was_typed(keyboard: Keyboard, asked: Callable[[], bool]) -> None:
    """A signal just before a read is handled after it: there Ctrl-C would wait for a key."""
    typing = threading.Timer(0.3, keyboard.type, [b"y\n"])
    typing.start()
    assert asked()
    typing.join()
    assert keyboard.waited == [False]
