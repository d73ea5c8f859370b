"""The client's call at the end of a session, and having it call: the real command, real processes.

Rule: what a call started has ended before a test looks at what it did.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest

import sessrotate
from sessrotate import names
from sessrotate.clients.common import BOM
from sessrotate.errors import InUseError
from sessrotate.hook import call as hook_call
from sessrotate.hook import installation
from sessrotate.in_place import second_names
from sessrotate.system import locks
from support import command_line, processes
from support.command_line import (
    COMMAND,
    ENVIRONMENT,
    ID,
    SECONDS,
    Ended,
    assert_one_sentence,
    boundary,
    called,
    decoded,
    patched,
    row,
    write,
)
from support.homes import Home, snapshot
from support.limits import UNPRIVILEGED, limited
from support.processes import needs_proc, opened, until, workers
from support.trimming import keep, trimmed

if TYPE_CHECKING:
    from collections.abc import Sequence

DATA: Final = command_line.session(boundaries=2, padding=8000)
LIMIT: Final = "16000"
"""Less than a rotation of that gains."""

CALL: Final = ("hook", "--min-gain", LIMIT)

NO_FORK: Final = patched("import os; os.fork = lambda: os._exit(9)")
"""The real command, that ends with 9 where it would start a process."""


def document(home: Home, **changes: Any) -> bytes:
    """Return what the client sends, or something like it."""
    found = {
        "session_id": ID,
        "transcript_path": str(home.live),
        "cwd": "/home/somebody/project",
        "hook_event_name": "SessionEnd",
        "reason": "other",
        **changes,
    }
    return json.dumps({key: value for key, value in found.items() if value is not None}).encode()


def call(
    home: Home,
    data: bytes,
    *arguments: str,
    program: Sequence[str] = (COMMAND,),
) -> Ended:
    """Call the hook as the client does."""
    done = subprocess.run(
        [*program, *(arguments or CALL)],
        cwd=home.config,
        env={**ENVIRONMENT, **home.env},
        input=data,
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    return Ended(done.returncode, decoded(done.stdout), decoded(done.stderr))


def idle(home: Home) -> None:
    """Wait for all work of hooks to be done."""
    processes.idle(home.config)


def worked(
    home: Home,
    data: bytes | None = None,
    *arguments: str,
    program: Sequence[str] = (COMMAND,),
) -> None:
    """Call the hook, at the session's end if nothing else is said, and wait for its work."""
    data = document(home) if data is None else data
    assert call(home, data, *arguments, program=program) == Ended(0, "", "")
    idle(home)


def findings() -> list[dict[str, str]]:
    """Return what `doctor` finds of the hook."""
    found = called("doctor", "--json").document()["findings"]
    return [each for each in found if each["kind"] == "hook"]


def note(home: Home) -> Path:
    return home.where.note


# ── calling ──────────────────────────────────────────────────────────────────────────────────


@needs_proc
def test_a_session_over_the_limit_is_rotated_when_it_ends(home: Home) -> None:
    worked(home)
    assert home.archived() == {f"{ID}.jsonl.zst", f"{ID}.1.jsonl.zst", "manifest.json"}
    assert home.stitched() == DATA
    assert home.live.stat().st_size < len(DATA)
    assert home.problems() == []
    assert not note(home).exists()
    assert called("doctor").code == 0


# anthropics/claude-code #44450, #65219: in a worktree, the folder of another project is named.
# #13668: no path, or an empty one.
@needs_proc
@pytest.mark.parametrize("path", ["-srv-repo--claude-worktrees-fix", "", None, "null"])
def test_where_the_named_file_does_not_exist_the_session_is_found_by_its_id(
    home: Home, path: str | None
) -> None:
    elsewhere = path and str(home.live.parent.with_name(path) / home.live.name)
    data = document(home, transcript_path=elsewhere)
    if path == "null":
        data = data.replace(json.dumps(elsewhere).encode(), b"null")
    worked(home, data)
    assert home.archived()
    assert home.stitched() == DATA
    assert not note(home).exists()


@needs_proc
def test_where_several_files_have_the_id_nothing_is_done_and_doctor_says_it(home: Home) -> None:
    other = home.live.parent.with_name("-other")
    copied = write(other / home.live.name, home.live.read_bytes())
    elsewhere = str(home.live.parent.with_name("-none") / home.live.name)
    worked(home, document(home, transcript_path=elsewhere))
    assert home.live.read_bytes() == copied.read_bytes() == DATA
    (found,) = findings()
    assert found["session"] == ID
    detail = found["detail"]
    assert "named no file that exists, and 2 files have the session's id: " in detail
    assert str(home.live) in detail
    assert str(copied) in detail
    assert detail.endswith("`sessrotate rotate PATH`, where PATH is the file that you mean.")


@needs_proc
def test_a_session_in_which_nothing_was_said_has_no_file_and_that_is_no_problem(home: Home) -> None:
    unused = {"session_id": ID.replace("5", "6"), "transcript_path": str(home.live) + "x"}
    worked(home, document(home, **unused))
    assert home.live.read_bytes() == DATA
    assert called("doctor").code == 0


@needs_proc
def test_a_client_that_still_runs_the_session_is_no_obstacle(home: Home) -> None:
    home.run_by_a_client()
    assert called("split", "--in-place", ID).code == 75
    worked(home)
    assert home.archived()


@needs_proc
def test_a_small_session_that_goes_on_from_an_archived_row_is_healed_when_it_ends(
    home: Home,
) -> None:
    archived = DATA.splitlines(keepends=True)[1]
    home.rotate()
    worked(home)
    assert archived not in home.live.read_bytes()
    home.append(row(900, parentUuid=json.loads(archived)["uuid"]))
    before = home.stitched()
    worked(home, document(home), "hook", "--min-gain", "1M")
    assert archived in home.live.read_bytes()
    assert home.stitched() == before
    assert not note(home).exists()


@needs_proc
def test_a_small_session_that_its_client_trimmed_is_put_together_when_it_ends(home: Home) -> None:
    before = home.live.read_bytes()
    keep(home.live)
    home.append(row(900))
    worked(home, document(home), "hook", "--min-gain", "1M")
    assert home.stitched() == before + row(900)
    assert home.archived()
    assert not note(home).exists()


def trim(home: Home) -> None:
    """Save what its client keeps of the session, as it does that."""
    draft = home.live.with_name("draft")
    draft.write_bytes(trimmed(home.live.read_bytes()))
    draft.rename(home.live)


@needs_proc
@pytest.mark.parametrize(
    ("told", "is_kept"), [("1", True), ("true", True), ("keep", False), ("0", False)]
)
def test_what_its_client_is_about_to_trim_is_kept_at_once(
    home: Home, told: str, *, is_kept: bool
) -> None:
    before = home.live.read_bytes()
    program = ("env", f"CLAUDE_CODE_TRANSCRIPT_LOCAL_GC={told}", COMMAND)
    assert call(home, compacting(home), program=program) == Ended(0, "", "")
    folder = home.live.with_suffix("") / names.KEPT
    there = [*folder.glob("*")] if folder.exists() else []
    assert [path.samefile(home.live) for path in there] == [True] * is_kept
    written = boundary(900) + row(901, isCompactSummary=True)
    home.append(written)
    if is_kept:
        trim(home)
    idle(home)
    assert home.stitched() == before + written
    assert not note(home).exists()
    assert not [path for path in folder.glob("*") if not path.samefile(home.live)]


@pytest.mark.parametrize("is_reused", [False, True])
def test_a_rotation_that_comes_first_is_not_taken_for_the_trim(
    home: Home, monkeypatch: pytest.MonkeyPatch, *, is_reused: bool
) -> None:
    """The one of the compaction before comes late on a busy machine, and its file has a name.

    What it replaced is gone then, and the trimmed file may have got its number.
    """
    monkeypatch.setenv("CLAUDE_CODE_TRANSCRIPT_LOCAL_GC", "1")
    job = hook_call.wanted(compacting(home), 1)
    assert job is not None
    if is_reused:
        draft = write(home.live.with_name("draft"), b"").stat()
        mode, _, *others = job.status[:10]
        job = replace(job, status=os.stat_result((mode, draft.st_ino, *others)))
    second_names.give(home.where, home.live)
    written = boundary(900) + row(901, isCompactSummary=True)
    home.append(written)
    done = list[str]()

    def sleep(_seconds: float) -> None:
        deeds: dict[int, Callable[[], object]] = {0: home.rotate, 2: lambda: trim(home)}
        deeds.get(len(done), lambda: None)()
        done.append("slept" if len(done) != 2 else "trimmed")

    clock = SimpleNamespace(sleep=sleep, monotonic=lambda: len(done) / 10)
    monkeypatch.setattr(hook_call, "time", clock)
    hook_call.rotate(job, 1)
    assert done == ["slept", "slept", "trimmed", "slept"]
    assert home.stitched() == DATA + written
    assert not note(home).exists()


@needs_proc
def test_without_hard_links_a_trim_is_no_worse_than_without_a_hook(
    home: Home,
) -> None:
    links = patched(
        "import errno, os\n"
        "def link(*_, **__): raise OSError(errno.EPERM, os.strerror(errno.EPERM))\n"
        "os.link = link"
    )
    program = ("env", "CLAUDE_CODE_TRANSCRIPT_LOCAL_GC=1", *links)
    assert call(home, compacting(home), program=program) == Ended(0, "", "")
    home.append(boundary(900) + row(901, isCompactSummary=True))
    trim(home)
    trimmed_file = home.live.read_bytes()
    idle(home)
    assert home.live.read_bytes() == trimmed_file
    worked(home, document(home), program=program)
    assert home.live.read_bytes() == trimmed_file


def test_the_hook_is_not_installed_where_there_are_no_hard_links(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    before = snapshot(home.config)
    monkeypatch.setattr(os, "link", refused)
    ended = called("hook", "install")
    assert_one_sentence(ended, 77)
    assert "is on a file system without reliable hard links" in ended.err
    assert snapshot(home.config) == before
    assert called("hook", "remove").code == 0


def compacting(home: Home, **changes: Any) -> bytes:
    """Return what the client sends at a compaction that is not on the disk yet."""
    changes = {"hook_event_name": "SessionStart", "source": "compact", "reason": None, **changes}
    return document(home, **changes)


@needs_proc
def test_a_compaction_is_waited_for_and_the_session_cut_there(home: Home) -> None:
    assert call(home, compacting(home)) == Ended(0, "", "")
    assert home.live.read_bytes() == DATA  # what is there already is no reason
    written = boundary(900) + row(901, isCompactSummary=True)
    home.append(written)
    idle(home)
    assert len(home.archived()) == 4  # two segments that were there, the one that ended, a manifest
    assert home.stitched() == DATA + written
    assert home.live.read_bytes().endswith(written)
    assert not note(home).exists()


@needs_proc
@pytest.mark.parametrize("written", [b"", row(900), boundary(900)])
def test_without_its_compaction_a_call_ends_without_a_word(home: Home, written: bytes) -> None:
    soon = patched("from sessrotate.hook import compaction as c; c.awaited.__defaults__ = (0.3,)")
    assert call(home, compacting(home), program=soon) == Ended(0, "", "")
    home.append(written)
    idle(home)
    assert home.live.read_bytes() == DATA + written
    assert not (home.config / "sessrotate").exists()


@needs_proc
def test_where_the_client_would_write_the_archive_again_its_end_is_waited_for(home: Home) -> None:
    assert call(home, compacting(home)) == Ended(0, "", "")
    metadata = {"trigger": "manual", "preTokens": 1}
    last = boundary(900, version="2.1.112", entrypoint="sdk-ts", compactMetadata=metadata)
    home.append(last + row(901, isCompactSummary=True))
    idle(home)
    assert not home.archived()
    worked(home)
    assert home.archived()


def test_a_session_too_small_to_gain_anything_is_not_waited_for(home: Home) -> None:
    assert nothing_done(home, compacting(home), "hook", "--min-gain", "1M").err == ""


@needs_proc
def test_a_rotation_that_gains_less_than_the_limit_is_not_done(home: Home) -> None:
    worked(home, document(home), "hook", "--min-gain", str(len(DATA)))
    assert home.live.read_bytes() == DATA
    assert not home.archived()
    assert not note(home).exists()


def nothing_done(home: Home, data: bytes, *arguments: str) -> Ended:
    """Check that a call starts no process, changes nothing and ends with 0."""
    before = snapshot(home.config.parent)
    ended = call(home, data, *arguments, program=NO_FORK)
    assert (ended.code, ended.out) == (0, "")
    assert snapshot(home.config.parent) == before
    assert not (home.config / "sessrotate").exists()
    return ended


def test_a_process_is_started_only_for_what_is_to_be_rotated(home: Home) -> None:
    assert call(home, document(home), program=NO_FORK).code == 9  # else the next tests say nothing


@pytest.mark.parametrize("arguments", [("hook",), ("hook", "--min-gain", str(len(DATA) + 1))])
def test_a_session_under_the_limit_is_left_alone(home: Home, arguments: tuple[str, ...]) -> None:
    assert nothing_done(home, document(home), *arguments).err == ""


def test_a_session_of_exactly_the_limit_is_rotated(home: Home) -> None:
    size = str(len(DATA))
    assert call(home, document(home), "hook", "--min-gain", size, program=NO_FORK).code == 9


HOSTILE: Final[dict[str, Callable[[Home], bytes]]] = {
    "nothing": lambda _: b"",
    "no JSON": lambda _: b"session over",
    "no object": lambda _: b"[1]",
    "too deep": lambda _: b"[" * 100_000,
    "a long number": lambda _: b"9" * 10_000,
    "invalid UTF-8": lambda home: document(home).replace(b"other", b"\xff\xfe"),
    "too long": lambda home: document(home) + b" " * (2 << 20),
    "another event": lambda home: document(home, hook_event_name="Stop"),
    "no session": lambda home: document(home, session_id=None),
    "a path that is none": lambda home: document(home, transcript_path=[1]),
    "NUL in the path": lambda home: document(home, transcript_path=f"{home.live}\0"),
    "a lone surrogate": lambda home: document(home, transcript_path=f"{home.live}\ud800"),
    "a path that is too long": lambda home: document(home, transcript_path="/x" * 100_000),
    "a session that is gone": lambda home: document(
        home, transcript_path=f"{home.live}l", session_id=ID.replace("5", "6")
    ),
    "another session's id": lambda home: document(home, session_id=ID.replace("5", "6")),
    "an id that is a path": lambda home: document(home, session_id=f"../x/{ID}"),
    "an id that is none": lambda home: document(home, session_id={"a": 1}),
    "a relative path": lambda home: document(
        home, transcript_path=str(home.live.relative_to(home.config))
    ),
    "a file elsewhere, by dots": lambda home: document(
        home,
        transcript_path=str(
            write(home.config / "other" / f"{ID}.jsonl", DATA).parent
            / f"../projects/../other/{ID}.jsonl"
        ),
    ),
    "a start": lambda home: compacting(home, source="startup"),
    "an agent's transcript": lambda home: document(
        home,
        session_id="agent-1",
        transcript_path=str(write(home.live.with_name("agent-1.jsonl"), DATA)),
    ),
    "a link": lambda home: document(
        home,
        session_id="link",
        transcript_path=str(linked(home.live.with_name("link.jsonl"), home.live)),
    ),
    "a device": lambda home: document(home, transcript_path="/dev/zero"),
}


def linked(path: Path, target: Path) -> Path:
    path.symlink_to(target)
    return path


CALLED: Final = {
    *("nothing", "too deep", "invalid UTF-8", "too long"),
    *("a file elsewhere, by dots", "a device"),
}
"""What is tried with a process, too: the others differ only in what `wanted` makes of them."""


@pytest.mark.parametrize("kind", HOSTILE)
def test_whatever_comes_in_is_passed_over_quietly(home: Home, kind: str) -> None:
    data = HOSTILE[kind](home)
    if kind in CALLED:
        assert nothing_done(home, data, "hook", "--min-gain", "1").err == ""
    before = snapshot(home.config.parent)
    assert kind == "too long" or hook_call.wanted(data, 1) is None  # that is not even given to it
    assert snapshot(home.config.parent) == before


@pytest.mark.parametrize("given", ["</dev/zero", "<&-", "<&- >&- 2>&-", ">&-", "2>&-"])
def test_input_without_end_and_streams_that_are_closed_are_passed_over(
    home: Home, given: str
) -> None:
    script = ("-c", f'exec "$@" {given}', "sh", *NO_FORK, *CALL)
    assert call(home, b"{}", *script, program=["/bin/sh"]) == Ended(0, "", "")


def test_input_that_never_comes_is_not_waited_for(home: Home) -> None:
    read, held_open = os.pipe()
    try:
        os.write(held_open, document(home))
        done = subprocess.run(
            [*NO_FORK, *CALL], stdin=read, capture_output=True, check=False, timeout=SECONDS
        )
    finally:
        os.close(read)
        os.close(held_open)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "arguments", [("--min-gain", "many"), ("--min-gain",), ("more",), ("--min-gain", "5", "x")]
)
def test_a_wrong_call_is_told_on_one_line_and_still_no_failure(
    home: Home, arguments: tuple[str, ...]
) -> None:
    ended = nothing_done(home, document(home), "hook", *arguments)
    assert ended.err.count("\n") == 1
    assert "sessrotate hook --help" in ended.err


def test_on_a_terminal_it_says_what_it_is_for(home: Home) -> None:
    ended = command_line.on_terminal("hook", env=home.env)
    assert (ended.code, ended.out) == (0, "")
    assert "sessrotate hook install" in ended.err


@pytest.mark.parametrize(
    "fault",
    [
        "import os\ndef fork(): raise BlockingIOError(11, 'no')\nos.fork = fork",
        "import os; del os.fork",
        "from sessrotate.hook import call\ndef wanted(*a): raise MemoryError\ncall.wanted = wanted",
    ],
)
def test_what_goes_wrong_is_told_on_one_line_and_still_no_failure(home: Home, fault: str) -> None:
    ended = call(home, document(home), program=patched(fault))
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("sessrotate: The hook ")
    assert ended.err.count("\n") == 1
    assert home.live.read_bytes() == DATA


# ── half uninstalled ─────────────────────────────────────────────────────────────────────────

PACKAGE: Final = Path(sessrotate.__file__).parent

SCRIPT: Final = """#!/bin/sh
'''exec' "{python}" -IS "$0" "$@"
'''
import sys
sys.path[:] = [{found!r}, *sys.path]
from sessrotate.cli import main
main()
"""
"""The installed program, where nothing but the standard library and this folder is found.

A shell begins it, as pip has it where the path of the Python has a space.
"""


def half(folder: Path, *, python: str = sys.executable, without: Sequence[str] | None = ()) -> str:
    """Make a program of which a part is missing: its interpreter, modules, or the whole package.

    No other package is there at all.
    """
    library = folder / "library"
    if without is not None:
        shutil.copytree(PACKAGE, library / "sessrotate", ignore=shutil.ignore_patterns(*without))
    program = folder / "sessrotate"
    program.write_text(SCRIPT.format(python=python, found=str(library)))
    program.chmod(0o700)
    return str(program)


HALVES: Final[dict[str, Callable[[Path], str]]] = {
    "the program is gone": lambda folder: str(folder / "sessrotate"),
    "the package is gone": lambda folder: half(folder, without=None),
    "its Python is gone": lambda folder: half(folder, python="/no/python"),
    "all that it needs is gone": half,
    "a module is gone": lambda folder: half(folder, without=["call.py"]),
    "what all need is gone": lambda folder: half(folder, without=["errors.py"]),
}


@pytest.mark.parametrize("what", HALVES)
def test_a_client_notices_nothing_of_a_hook_that_is_half_uninstalled(home: Home, what: str) -> None:
    line = installation.command(HALVES[what](home.config.parent), LIMIT)
    worked(home, None, "-c", line, program=["/bin/sh"])
    assert home.live.read_bytes() == DATA


@pytest.mark.parametrize("without", [[], ["call.py"], ["errors.py"], ["hook"]])
def test_what_is_half_uninstalled_says_so_on_one_line(home: Home, without: list[str]) -> None:
    program = [half(home.config.parent, without=without)]
    ended = call(home, document(home), program=program)
    assert (ended.code, ended.out) == (0, "")
    assert_one_line(ended)
    ended = call(home, b"", "list", program=program)
    assert ended.code == 74
    assert_one_line(ended)


def assert_one_line(ended: Ended) -> None:
    assert ended.err.startswith("sessrotate: ")
    assert ended.err.count("\n") == 1
    assert "install it again" in ended.err or "ModuleNotFoundError" in ended.err


@pytest.mark.parametrize(
    "limit",
    ["ulimit -n 48", "ulimit -n 4", "exec 0<&-", "exec 1>&- 2>&-", "unset HOME", "umask 777"],
)
def test_a_client_notices_nothing_of_a_hook_that_lacks_something(home: Home, limit: str) -> None:
    line = installation.command(COMMAND, LIMIT)
    worked(home, None, "-c", f"{limit}; {line}", program=["/bin/sh"])
    assert home.problems() == []


# ── the process apart ────────────────────────────────────────────────────────────────────────


@needs_proc
def test_the_work_is_done_by_a_process_that_nothing_ties_to_the_client(home: Home) -> None:
    held = home.config / "held"  # by the client; nothing of ours opens it
    held.write_bytes(b"")
    with locks.alone(home.where, 1):  # the worker has to wait
        client = subprocess.Popen(
            ["/bin/sh", "-c", f'"{COMMAND}" {" ".join(CALL)}; read never', "sh"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**ENVIRONMENT, **home.env},
            start_new_session=True,
            pass_fds=[fd := os.open(held, os.O_RDONLY)],
        )
        os.close(fd)
        assert client.stdin is not None
        assert client.stdout is not None
        with client:
            client.stdin.write(document(home))
            client.stdin.close()
            assert client.stdout.read() == b""  # nobody else has it open
            assert client.wait(SECONDS) is not None
            with suppress(ProcessLookupError):
                os.killpg(client.pid, signal.SIGKILL)
        (worker,) = workers(home.config)
        assert os.getsid(worker) not in {client.pid, os.getsid(0), worker}
        assert os.getpgid(worker) not in {client.pid, os.getpgid(0)}
        until(lambda: [opened(worker).get(name) for name in "012"] == ["/dev/null"] * 3)
        assert str(held) not in opened(worker).values()
        assert os.readlink(f"/proc/{worker}/cwd") == "/"  # noqa: PTH115
        assert home.live.read_bytes() == DATA
    idle(home)
    assert home.archived()
    assert home.stitched() == DATA


@needs_proc
def test_a_failure_is_told_by_doctor_until_the_session_is_rotated(home: Home) -> None:
    # Notes are smaller, the new live file is larger: as on a disk that is nearly full.
    worked(home, program=limited("RLIMIT_FSIZE", 300))
    assert home.stitched() == DATA
    assert stat.S_IMODE(note(home).stat().st_mode) == 0o600
    assert DATA.splitlines()[0] not in note(home).read_bytes()
    (found,) = findings()
    assert found["session"] == ID
    assert "Cannot" in found["detail"]
    assert f"sessrotate rotate {ID}" in found["detail"]
    assert "Cannot" in called("doctor").out
    assert called("split", "--in-place", ID).code == 0
    assert called("doctor").code == 0  # it is another file now, however that was done
    home.append(row(80, pad="p" * 30_000) + boundary(82) + row(83))
    worked(home)
    assert not note(home).exists()
    assert called("doctor").code == 0


@needs_proc
def test_a_refusal_is_told_by_doctor(home: Home) -> None:
    home.live.write_bytes(DATA + DATA)  # every row is there twice: refused, and says why
    worked(home)
    refused = called("split", "--in-place", ID)
    if refused.code == 0:
        pytest.fail("it is not refused: this test needs another session")
    told = json.loads(note(home).read_bytes())["error"]
    assert told in called("doctor").out


@needs_proc
def test_an_error_that_nobody_expected_is_told_without_what_it_says(home: Home) -> None:
    broken = patched(
        "from sessrotate.in_place import operations as in_place\n"
        "def broken(*a, **k): raise KeyError('secret words')\n"
        "in_place.rotate_session = broken"
    )
    worked(home, document(home), program=broken)
    assert b"secret" not in note(home).read_bytes()
    assert "KeyError in broken" in called("doctor").out


@needs_proc
def test_where_nothing_can_be_written_nothing_happens(home: Home) -> None:
    home.config.chmod(0o500)
    try:
        worked(home, program=UNPRIVILEGED)
        assert home.live.read_bytes() == DATA
        assert command_line.names_in(home.config) == ["projects"]
    finally:
        home.config.chmod(0o700)


@needs_proc
def test_a_rotation_that_had_no_room_even_for_a_note_is_a_finding(home: Home) -> None:
    full = patched(
        "import errno, os; from sessrotate import fs; real = fs.create_file_at_once\n"
        "def none(path, data):\n"
        "    if data: raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))\n"
        "    real(path, data)\n"
        "fs.create_file_at_once = none"
    )
    worked(home, document(home), program=full)
    assert note(home).read_bytes() == b""
    (finding,) = called("doctor", "--json").document()["findings"]
    assert (finding["session"], finding["kind"]) == (ID, "hook")
    assert "no room" in finding["detail"]
    assert "no room" in called().out
    assert home.rotate() is not None
    assert called("doctor").code == 0


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"at": 1}', '{"at": "x", "inode": 1, "error": null}', '{"inode": 9e999}'],
)
def test_a_note_that_is_none_is_passed_over(home: Home, text: str) -> None:
    write(note(home), text.encode())
    assert called("doctor").code == 0


# ── having it called ─────────────────────────────────────────────────────────────────────────

QUOTED: Final = shlex.quote(COMMAND)
LINE: Final = f"{QUOTED} hook --min-gain 128K 2>/dev/null || true"
GROUP: Final = {"hooks": [{"type": "command", "command": LINE, "timeout": 10}]}
HOOKS: Final = {"SessionStart": [{"matcher": "compact", **GROUP}], "SessionEnd": [GROUP]}


def settings_of(home: Home) -> Path:
    return home.config / "settings.json"


def run(home: Home, *arguments: str, program: Sequence[str] = (COMMAND,)) -> Ended:
    return command_line.piped("hook", *arguments, env=home.env, program=program)


def test_settings_are_made_and_gone_again(home: Home) -> None:
    path = settings_of(home)
    ended = run(home, "install")
    assert (ended.code, ended.err) == (0, "")
    assert str(path) in ended.out
    assert json.loads(path.read_bytes()) == {"hooks": HOOKS}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = snapshot(home.config)
    assert "Nothing to change" in run(home, "install").out
    assert snapshot(home.config) == before
    assert run(home, "remove").code == 0
    assert command_line.names_in(home.config) == ["projects"]
    assert "Nothing to change" in run(home, "remove").out


def test_what_was_there_is_kept_beside_it_and_comes_back(home: Home) -> None:
    path, backup = settings_of(home), settings_of(home).with_name("settings.json.bak-sessrotate")
    data = b'{\r\n\t"n": 1e2, "m":\t1.0,\r\n\t"hooks": { }}'
    write(path, data).chmod(0o640)
    assert str(backup) in run(home, "install").out
    assert backup.read_bytes() == data
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert str(backup) not in run(home, "install", "--min-gain", "2G").out
    assert b"--min-gain 2G" in path.read_bytes()
    assert backup.read_bytes() == data
    assert run(home, "remove").code == 0
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert command_line.names_in(home.config) == ["projects", path.name, backup.name]


@pytest.mark.parametrize("there", [b'{"model": "opus"}\n', None])
def test_a_link_stays_a_link(home: Home, there: bytes | None) -> None:
    target = home.config.parent / "dotfiles" / "claude.json"
    target.parent.mkdir()
    if there is not None:
        target.write_bytes(there)
    path = settings_of(home)
    path.symlink_to("../dotfiles/claude.json")
    assert run(home, "install").code == 0
    assert path.is_symlink()
    assert json.loads(target.read_bytes())["hooks"] == HOOKS
    assert command_line.names_in(target.parent) == ["claude.json"]
    assert run(home, "remove").code == 0
    assert path.is_symlink()
    assert target.read_bytes() == (there or b"{}\n")


def test_a_dry_run_shows_the_change_and_makes_none(home: Home) -> None:
    write(settings_of(home), b'{\n  "model": "opus"\n}\n')
    before = snapshot(home.config)
    ended = run(home, "install", "--dry-run")
    assert ended.code == 0
    assert '-  "model": "opus"\n+  "model": "opus",\n' in ended.out
    assert f'+            "command": "{LINE}",\n' in ended.out
    assert snapshot(home.config) == before
    assert run(home, "install").code == 0
    before = snapshot(home.config)
    assert f'-            "command": "{LINE}",\n' in run(home, "remove", "-n").out
    assert snapshot(home.config) == before


# ooples/token-optimizer-mcp PR #105
@pytest.mark.parametrize("text", [b'{\n  "model": "opus"\n}\n', b"{}", b'{"hooks": {}}'])
def test_a_mark_that_an_editor_put_before_the_settings_stays(home: Home, text: bytes) -> None:
    """2.1.112 reads such settings; 2.0.28 does not."""
    write(settings_of(home), BOM + text)
    assert run(home, "install").code == 0
    written = settings_of(home).read_bytes()
    assert written.startswith(BOM + b"{")
    assert written.count(BOM) == 1
    assert json.loads(written.decode("utf-8-sig"))["hooks"] == HOOKS
    assert "not installed" not in called("doctor").out
    assert run(home, "install").code == 0
    assert settings_of(home).read_bytes() == written
    assert run(home, "remove").code == 0
    assert settings_of(home).read_bytes() == BOM + text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "not plain JSON from line 1, column 2 on"),
        (b"\xff", "not UTF-8"),
        (b'{"hooks": []}', "got `array` - at `$.hooks`"),
        (b'{"hooks": {}, "hooks": {}}', "twice"),
    ],
)
def test_what_cannot_be_understood_is_refused_and_left(home: Home, data: bytes, words: str) -> None:
    write(settings_of(home), data)
    before = snapshot(home.config)
    for arguments in (["install"], ["remove"], ["install", "--dry-run"]):
        ended = run(home, *arguments)
        assert_one_sentence(ended, 77)
        assert str(settings_of(home)) in ended.err
        assert words in ended.err
    assert snapshot(home.config) == before
    assert words in called("doctor").out
    assert "Expecting" not in called("doctor").out  # Python's words


def test_settings_with_a_second_name_or_that_are_no_file_are_refused(home: Home) -> None:
    os.mkfifo(settings_of(home))
    assert_one_sentence(run(home, "install"), 77)
    settings_of(home).unlink()
    write(settings_of(home), b"{}")
    (home.config / "other.json").hardlink_to(settings_of(home))
    assert_one_sentence(run(home, "install"), 77)


@pytest.mark.parametrize(
    ("before", "after"), [(b'{"a": 1}', b'{"a": 2}'), (b'{"a": 1}', None), (None, b'{"a": 2}')]
)
def test_what_another_process_changed_meanwhile_stays(
    home: Home, before: bytes | None, after: bytes | None
) -> None:
    path = settings_of(home)
    if before is not None:
        path.write_bytes(before)
    change = installation.plan_install("128K")
    path.unlink(missing_ok=True)
    if after is not None:
        path.write_bytes(after)
    with pytest.raises(InUseError, match="try again"):
        installation.execute(change)
    assert (path.read_bytes() if path.exists() else None) == after
    assert [name for name in command_line.names_in(home.config) if "partial" in name] == []


def test_settings_that_hold_nothing_else_any_more_go_with_it(home: Home) -> None:
    write(settings_of(home), b'{"model": "opus"}')
    assert run(home, "install").code == 0
    settings_of(home).write_text(json.dumps({"hooks": HOOKS}))
    removed = run(home, "remove").out
    assert removed.count("Removed") == 1
    assert removed.startswith("Removed /")
    assert not settings_of(home).exists()


def test_where_nothing_can_be_written_the_settings_stay(home: Home) -> None:
    write(settings_of(home), b"{}")
    home.config.chmod(0o500)
    try:
        assert_one_sentence(run(home, "install", program=UNPRIVILEGED), 74)
        assert settings_of(home).read_bytes() == b"{}"
        assert command_line.names_in(home.config) == ["projects", "settings.json"]
    finally:
        home.config.chmod(0o700)


def test_a_full_disk_leaves_the_settings_as_they_are(home: Home) -> None:
    write(settings_of(home), b'{"a": 1}')
    assert_one_sentence(run(home, "install", program=limited("RLIMIT_FSIZE", 100)), 74)
    assert settings_of(home).read_bytes() == b'{"a": 1}'
    assert [name for name in command_line.names_in(home.config) if name.startswith(".")] == []


@needs_proc
def test_what_is_installed_works_in_a_shell_that_knows_nothing(home: Home) -> None:
    assert run(home, "install", "--min-gain", LIMIT).code == 0
    (group,) = json.loads(settings_of(home).read_bytes())["hooks"]["SessionEnd"]
    knows_nothing = ("/usr/bin/env", "-u", "LC_ALL", "-u", "TERM", "PATH=/nonexistent", "/bin/sh")
    worked(home, None, "-c", f"cd /; {group['hooks'][0]['command']}", program=knows_nothing)
    assert home.archived()


def test_the_command_is_the_name_that_was_called_if_that_is_a_link(home: Home) -> None:
    link = home.config.parent / "with space" / "sessrotate"
    link.parent.mkdir()
    link.symlink_to(COMMAND)
    assert run(home, "install", program=(str(link),)).code == 0
    (group,) = json.loads(settings_of(home).read_bytes())["hooks"]["SessionEnd"]
    assert group["hooks"][0]["command"] == LINE.replace(QUOTED, f"'{link}'")


def test_a_module_that_was_called_is_installed_by_its_command(home: Home) -> None:
    assert run(home, "install", program=patched("")).code == 0
    (group,) = json.loads(settings_of(home).read_bytes())["hooks"]["SessionEnd"]
    assert group["hooks"][0]["command"] == LINE


def test_doctor_says_whether_it_is_installed_and_can_be_called(home: Home) -> None:
    def said() -> Any:
        return called("doctor", "--json").document()

    assert said()["settings"]["hook"] == "not installed"
    link = linked(home.config.parent / "sessrotate", Path(COMMAND))
    assert run(home, "install", program=(str(link),)).code == 0
    assert said()["settings"]["hook"] == LINE.replace(QUOTED, shlex.quote(str(link)))
    assert said()["ok"]
    link.unlink()
    (finding,) = said()["findings"]
    assert finding["kind"] == "settings"
    assert str(link) in finding["detail"]
    assert run(home, "install").code == 0
    assert said()["ok"]
    path = settings_of(home)
    path.write_bytes(path.read_bytes().replace(b"{", b'{"disableAllHooks": true,', 1))
    assert "does not call it: disableAllHooks is set" in said()["settings"]["hook"]
