"""Ctrl-C in the moment in which a question is asked."""

from __future__ import annotations

import os
import sys
from typing import Final

import pytest

from support.terminals import at_its_own, seen

ASKING: Final = """
import signal
from sessrotate.cli import streams

class Interrupted(BaseException):
    pass

def interrupt(number, frame):
    raise Interrupted

signal.signal(signal.SIGINT, interrupt)
while True:
    try:
        streams.confirmed()
    except Interrupted:
        pass
"""


@pytest.mark.race
def test_ctrl_c_ends_a_question_at_whatever_moment_it_comes() -> None:
    said = b""
    with at_its_own([sys.executable, "-c", ASKING], {}) as (_, master):
        for _ in range(20_000):  # one in a thousand waited for a key once
            while not said.endswith(b"[y/N]\r\n"):
                piece = seen(master, 10)
                assert piece, said
                said += piece
            said = b""
            os.write(master, b"\x03")
