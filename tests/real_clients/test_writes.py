"""What strace says of a program's writes becomes the bytes of its files, or an error."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from support.real_clients.required import cannot_test
from support.real_clients.writes import (
    Recording,
    UnclearError,
    difference,
    recording,
    unrecorded,
)

FOLDER: Final = Path("/project")
FILE: Final = FOLDER / "session.jsonl"

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


# ── line by line ─────────────────────────────────────────────────────────────────────────────


def text(data: bytes) -> str:
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'


def seen(*lines: str) -> Recording:
    """Return what is known after these lines of a client with the number 7."""
    found = Recording(Path("/nowhere"), FOLDER)
    for line in (f"7 execve({text(b'/client')}, [], []) = 0", *lines):
        found.take(line)
    return found


def opened(descriptor: int, flags: str = "O_WRONLY|O_CREAT|O_APPEND", pid: int = 7) -> str:
    return f"{pid} openat(AT_FDCWD, {text(bytes(FILE))}, {flags}|O_CLOEXEC, 0600) = {descriptor}"


def wrote(descriptor: int, data: bytes, pid: int = 7) -> str:
    return f"{pid} write({descriptor}, {text(data)}, {len(data)}) = {len(data)}"


def test_threads_share_descriptors_and_may_be_interrupted() -> None:
    found = seen(
        "7 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD} <unfinished ...>",
        f"8 openat(AT_FDCWD, {text(bytes(FILE))}, O_WRONLY|O_APPEND <unfinished ...>",
        "7 <... clone3 resumed> => {parent_tid=[8]}, 88) = 8",
        "8 <... openat resumed>) = 3",
        f"7 write(3, {text(b'one')}, 3 <unfinished ...>",
        "8 fcntl(5, F_GETFL) = 0",
        "7 <... write resumed>) = 3",
        "8 close(3 <unfinished ...>",
        opened(3),  # the number is free before the call has returned
        "8 <... close resumed>) = 0",
        wrote(3, b"two"),
        "8 +++ exited with 0 +++",
        "7 +++ exited with 0 +++",
    )
    assert found.of(FILE) == b"onetwo"


def test_a_child_may_write_before_the_call_that_made_it_has_returned() -> None:
    found = seen(
        opened(3),
        wrote(3, b"one "),
        "7 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD <unfinished ...>",
        f"8 write(3, {text(b'from a ')}, 7 <unfinished ...>",
        "8 <... write resumed>) = 7",
        wrote(3, b"child ", pid=8),
        "7 <... clone resumed>) = 8",
        wrote(3, b"two"),
    )
    assert found.of(FILE) == b"one from a child two"


def test_what_was_not_written_whole_or_at_all_does_not_count() -> None:
    failed = f"7 write(3, {text(b'lost')}, 4) = -1 ENOSPC (No space left on device)"
    short = f"7 write(3, {text(b'half of it')}, 10) = 4"
    killed = ("7 ???()                = ?", "7 +++ killed by SIGKILL +++")
    assert seen(opened(3), failed, short, *killed).of(FILE) == b"half"


def test_what_another_program_writes_is_not_the_clients() -> None:
    found = seen(
        "7 vfork( <unfinished ...>",
        f"9 execve({text(b'/bin/sh')}, [], []) = 0",
        "7 <... vfork resumed>) = 9",
        opened(3, pid=9),
        wrote(3, b"a rotation", pid=9),
        opened(3),
        wrote(3, b"a row"),
    )
    assert found.of(FILE) == b"a row"


def test_a_number_that_is_given_to_something_else_is_no_file_any_more() -> None:
    found = seen(opened(3), "7 dup2(1, 3) = 3", wrote(3, b"a log"), opened(5), "7 dup(5) = 3")
    found.take(wrote(3, b"a row"))
    assert found.of(FILE) == b"a row"


def test_an_edit_counts_from_the_end_however_short_the_file_is_by_now() -> None:
    edit = (
        opened(4, "O_RDWR"),
        '7 statx(4, "", AT_EMPTY_PATH, STATX_ALL, {stx_size=9}) = 0',  # of a rotated file
        "7 ftruncate(4, 6) = 0",
        f"7 pwrite64(4, {text(b'Z')}, 1, 5) = 1",
        f"7 pwrite64(4, {text(b'!')}, 1, 6) = 1",
    )
    written = [opened(3), wrote(3, b"archived, and live")]
    assert seen(*written, *edit).of(FILE) == b"archived, and Z!"


AT_ONCE: Final = [
    opened(3),
    "7 clone(child_stack=NULL, flags=CLONE_FILES) = 8",
    wrote(3, b"begun "),
    f"7 write(3, {text(b'one ')}, 4 <unfinished ...>",
    wrote(3, b"two ", pid=8),
    "7 <... write resumed>) = 4",
    wrote(3, b"three"),
]
"""Two threads that append: the system does it one after the other."""


def test_appends_at_once_are_in_one_of_both_orders_and_nothing_else_is() -> None:
    found = seen(*AT_ONCE)
    orders = {b"begun one two three", b"begun two one three"}
    assert {found.of(FILE, each) for each in orders} == orders
    for other in (b"", b"begun one one three", b"begun two one thre", b"begun three one two"):
        assert found.of(FILE, other) in orders - {other}
    assert found.files[FILE].appends == 4


UNCLEAR: Final = {
    "cut off": [opened(3), f"7 write(3, {text(b'ab')}..., 9) = 9"],
    "at once": [
        opened(3),
        "7 clone(child_stack=NULL, flags=CLONE_FILES) = 8",
        f"7 write(3, {text(b'one')}, 3 <unfinished ...>",
        "8 ftruncate(3, 1) = 0",
    ],
    "what was written in an unknown order": [
        *AT_ONCE,
        opened(4, "O_RDWR"),
        '7 statx(4, "", AT_EMPTY_PATH, STATX_ALL, {stx_size=15}) = 0',
        "7 ftruncate(4, 9) = 0",
    ],
    "as it wrote": [
        opened(3),
        f"7 write(3, {text(b'one')}, 3 <unfinished ...>",
        "7 +++ killed by SIGKILL +++",
    ],
    "in an unknown order": [
        opened(3),
        "7 clone(child_stack=NULL, flags=CLONE_FILES <unfinished ...>",
        wrote(3, b"one", pid=8),
        wrote(3, b"two", pid=9),
        "7 <... clone resumed>) = 8",
        "7 clone(child_stack=NULL, flags=CLONE_FILES <unfinished ...>",
        wrote(3, b"three"),
        "7 <... clone resumed>) = 9",
    ],
    "anew": [opened(3), wrote(3, b"one"), opened(4, "O_WRONLY|O_TRUNC")],
    "not looked at": [opened(3), wrote(3, b"one"), opened(4, "O_RDWR"), "7 ftruncate(4, 1) = 0"],
    "not known where": [opened(4, "O_RDWR"), wrote(4, b"one")],
    "another name": [f"7 unlink({text(bytes(FILE))}) = 0"],
    "strace says": ["strace: something else"],
    "has not begun": ["7 <... write resumed>) = 3"],
}


@pytest.mark.parametrize("reason", UNCLEAR)
def test_what_cannot_be_told_is_an_error(reason: str) -> None:
    with pytest.raises(UnclearError, match=reason):
        seen(*UNCLEAR[reason])


def test_an_error_stays_one(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text("strace: something else\n")
    found = Recording(trace, FOLDER)
    for _ in range(2):
        with pytest.raises(UnclearError):
            found.of(FILE)


# ── comparing ────────────────────────────────────────────────────────────────────────────────

LINES: Final = [b'{"number":%d}\n' % number for number in range(9)]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (LINES[:4] + LINES[5:], "line 5 of 10 .* 1 lines are missing, 0 are there"),
        (LINES[:8], "line 9 of 10 .* 1 lines are missing, 0 are there"),
        (
            [*LINES[:2], LINES[3], LINES[2], *LINES[4:]],
            "line 3 of 10 .* 0 lines are missing, 0 ",
        ),
        ([*LINES[:8], LINES[8].upper()], "line 9 of 10 .* 1 lines are missing, 1 are there"),
        ([*LINES, LINES[8]], "line 10 of 10 .* 0 lines are missing, 1 are there"),
    ],
    ids=["lost", "lost at the end", "swapped", "changed", "twice"],
)
def test_any_difference_is_told(found: list[bytes], told: str) -> None:
    whole = b"".join(LINES)
    assert difference(whole, whole) is None
    said = difference(whole, b"".join(found))
    assert re.match(told, said or ""), said
