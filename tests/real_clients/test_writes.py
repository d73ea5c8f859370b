"""What strace says of a program's writes becomes the bytes of its files, or an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from support.real_clients.required import cannot_test
from support.real_clients.writes import (
    Recording,
    difference,
    recording,
    unrecorded,
)

PROGRAM: Final = """
import os, subprocess, sys, threading
path, other = sys.argv[1:]

def append(data):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, data)
    os.close(fd)

for number in range(50):
    thread = threading.Thread(target=append, args=(b"thread %d\\n" % number,))
    thread.start()
    thread.join()
held = os.open(path, os.O_WRONLY | os.O_APPEND)
copy = os.dup(held)
os.close(held)
os.writev(copy, [b"two ", b"pieces\\n"])
if os.fork() == 0:
    os.write(copy, b"from a child\\n")
    os._exit(0)
os.wait()
for fd in (os.open(other, os.O_WRONLY | os.O_CREAT), copy):
    os.write(fd, bytes(range(256)) * 4096)
edited = os.open(path, os.O_RDWR)
size = os.fstat(edited).st_size
os.ftruncate(edited, size - 100)
os.pwrite(edited, b"what was there", size - 110)
os.pwrite(edited, b"and on\\n", size - 96)
subprocess.run(["sh", "-c", "echo nobody asked for this > " + other + ".jsonl"], check=True)
"""
"""All that a client does, and more: threads, copies of descriptors, children, edits, tools."""


@pytest.mark.parametrize(
    ("required", "outcome"), [("1", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_what_cannot_be_recorded_is_skipped_unless_it_is_required(
    monkeypatch: pytest.MonkeyPatch, required: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("SESSROTATE_REQUIRE_CLIENTS", required)
    with pytest.raises(outcome, match="there is no strace"):
        cannot_test("NO BYTE WAS RECORDED: there is no strace")


def test_a_program_is_seen_to_write_what_is_in_its_files(tmp_path: Path) -> None:
    reason = unrecorded()
    if reason is not None:
        cannot_test(f"NO PROGRAM WAS RECORDED: {reason}")
    trace, path = tmp_path / "trace", tmp_path / "project" / "agents" / "a.jsonl"
    path.parent.mkdir(parents=True)
    found = Recording(trace, tmp_path / "project")
    for number in range(2):
        arguments = [str(path), str(path.with_name(f"other-{number}"))]
        subprocess.run(
            [*recording(trace), sys.executable, "-c", PROGRAM, *arguments],
            check=True,
            capture_output=True,  # the tracer holds it too: both have ended
        )
        assert difference(path.read_bytes(), found.of(path)) is None
    assert {*found.files} == {path}
    written = found.files[path]
    assert (written.appends, written.edits) == (2 * 54, 2 * 2)
