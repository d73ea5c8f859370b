"""Archives with forged files and words, by the thousand: no file outside is opened or changed.

Rule: three judges that know nothing of the code. The system says of a file outside when it was last
read (its access time) and whether it is as it was; an audit hook sees which paths Python opens and
changes; and for a sample, `strace` sees every system call, with every name that it changes. A block
of inputs is told by its number.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import stat
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.hook import call
from support import command_line, homes, opens, system_calls
from support.command_line import ID, append, boundary, called, row, session, write
from support.limits import HANGS
from support.portable import have_quiet, lack
from support.tiers import in_gate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from support.homes import Home

DATA: Final = session(boundaries=3)
SECRET: Final = b"TOPSECRET"

PROJECT: Final = homes.PROJECT
MOVED: Final = "-home-moved"

BLOCKS: Final = range(105)
INPUTS: Final = 100
"""Inputs in a block: each is a forged archive and one command."""

TRACED: Final = 60
"""Inputs that are traced, of all commands in turn."""

COMMANDS: Final = (
    ("stitch", ID),
    ("stitch", "--allow-gaps", "ARCHIVE"),
    ("read", "--history", "--allow-gaps", ID),
    ("export", ID, "-o", "OUT"),
    ("verify", "--all"),
    ("list",),
    ("report", ID),
    ("report", "--all"),
    ("doctor",),
    ("run",),
    ("split", "--in-place", "--dry-run", ID),
    ("split", "--in-place", "--wait", "0", ID),
    ("split", "--in-place", "--unsafe-adopt", "--wait", "0", ID),
    ("restore", "--wait", "0", ID),
    ("archive", "--wait", "0", ID),
    ("restore", "--last-run", "--yes", "--wait", "0"),
    ("prune", "--keep-last", "1", "--yes", ID),
    ("prune", "--empty-trash", "--grace", "0s", "--yes", ID),
    ("restore", "--keep-rotated", "--wait", "0", ID),
    ("pin", ID, "0"),
    ("aside", "--yes", ID),
    ("aside", "--yes", "ARCHIVE"),
    (),
    ("search", "row", "--quiet"),
    ("search", "row", ID),
    ("tidy", "--yes"),
    ("unpin", ID, "0"),
    ("relocate", "OLD", "NEW", "--yes", "--wait", "0"),
    ("hook",),
)

DOCUMENTED: Final = {0, 1, 2, 65, 74, 75, 77}
"""Exit codes; 130 is only for whoever interrupts it."""

VALUES: Final[tuple[object, ...]] = (
    "../canary", "../../../../outside/canary", "/etc/passwd", "outside", "", "a\x00b", "x" * 4000,
    -1, 0, 1, 7, 4096, 2**53, 2**64, 10**300, 1.5, True, None, [], {}, "rotate", "restore",
    "archiving", "archived", "zstd", "linked",
)  # fmt: skip

NAMES: Final = (
    "pack", "live.partial", "record.json", "record.json.partial", "manifest.json",
    "manifest.json.partial", "trash", "archived", f"{ID}.jsonl", f"{ID}.1.jsonl",
    f"{ID}.2.jsonl.zst", f"{ID}.9.jsonl", f"archived/{ID}.jsonl",
    f"archived/{ID}.jsonl.sessrotate.zst",
    f"archived/{ID}/subagents/agent-a.jsonl", f"trash/{ID}.jsonl", f"trash/{ID}.1.jsonl",
    "waiting", "waiting/1",
)  # fmt: skip

AROUND: Final = (
    "locks", f"locks/{PROJECT}", f"locks/{PROJECT}/{ID}.lock", "locks/run",
    "hook", f"hook/{PROJECT}", f"hook/{PROJECT}/{ID}.json", f"hook/{PROJECT}/{ID}.json.partial",
    "aside", f"aside/{ID}.1", f"aside/{ID}.1/manifest.json", "README", "README.partial",
    MOVED, f"{MOVED}/{ID}",
)  # fmt: skip
"""What is beside the folders of archives."""


# ── the judges ───────────────────────────────────────────────────────────────────────────────


@contextmanager
def watched() -> Iterator[opens.Seen]:
    """Let a hook see what is opened and changed in the block, and nothing wait for long."""
    signal.signal(signal.SIGALRM, _waited)
    signal.alarm(HANGS)
    try:
        with opens.watched() as seen:
            yield seen
    finally:
        signal.alarm(0)


def _waited(*_: object) -> None:
    raise AssertionError("a command waits")


def outside(top: Path) -> dict[str, tuple[object, ...]]:
    """Return what could be seen of a read or a change of the files outside."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted([top, *top.rglob("*")]):
        status = path.lstat()
        times = () if path.is_dir() else (status.st_atime_ns, status.st_mtime_ns)
        found[str(path)] = (status.st_ino, status.st_mode, status.st_uid, status.st_size, *times)
    return found


def tells_reads(folder: Path) -> bool:
    """Tell whether this file system says when a file was last read."""
    probe = write(folder / "probe", b"x")
    os.utime(probe, ns=(10**9, 2 * 10**9))
    probe.read_bytes()
    return probe.stat().st_atime_ns != 10**9


# ── what is forged ───────────────────────────────────────────────────────────────────────────


SWAPPED: Final = "sessrotate.in_place.seal.finish"


def crashed_late(home: Home) -> None:
    homes.crashed(home.rotate, SWAPPED)
    append(home.pack, row(82))
    home.append(row(83))


def ran(*words: str) -> None:
    assert called(*words, ID).code == 0


def keep_waiting(home: Home) -> None:
    """Rotate as where there are no leases, so that the replaced file waits."""
    with pytest.MonkeyPatch.context() as patch:
        homes.without_leases(patch)
        lack(patch, "open_files")
        have_quiet(patch, 86_400.0)  # in the portable form, nobody waits otherwise
        home.rotate()
    assert [path.name for path in (home.archive / "waiting").iterdir()]


KINDS: Final[dict[str, Callable[[Home], object]]] = {
    "sound": lambda _home: None,
    "unfinished": lambda home: homes.crashed(home.rotate, SWAPPED),
    "late": crashed_late,
    "begun": lambda home: homes.crashed(home.rotate, "sessrotate.in_place.swap._Swap.run"),
    "pruned": lambda _home: ran("prune", "--keep-last", "1", "--yes"),
    "archived": lambda _home: ran("archive", "--wait", "0"),
    "restored": lambda home: home.restore(),
    "waiting": keep_waiting,
}


def made(folder: Path, patch: pytest.MonkeyPatch, kind: str) -> Home:
    """Make an archive in one of the states that a command may find."""
    home = homes.home(folder, patch, DATA)
    home.rotate()
    home.append(boundary(80) + row(81))
    KINDS[kind](home)
    target = folder / "outside"
    shutil.copytree(home.archive if home.archive.exists() else home.live.parent, target / ID)
    write(target / "canary", SECRET * 9 + b"\n")
    write(target / f"{ID}.jsonl", DATA.replace(b"row ", SECRET))
    write(target / "manifest.json", SECRET)
    for path in target.rglob("*"):
        os.utime(path, ns=(10**9, 2 * 10**9), follow_symlinks=False)
    write(folder / "shared", DATA.replace(b"row ", SECRET))
    return home


def forge(home: Home, chance: random.Random) -> list[str]:
    """Change one to three things in an archive; return what."""
    return [_forge_once(home, chance) for _ in range(chance.randint(1, 3))]


def _forge_once(home: Home, chance: random.Random) -> str:
    kept = (*home.archive.rglob("*"), *(home.config / "sessrotate").rglob("trash/**/*"))
    own = os.path.realpath(home.config)
    there = [
        path
        for path in kept
        if path.is_file() and not path.is_symlink() and os.path.realpath(path).startswith(own)
    ]
    roll = chance.random()
    if roll < 0.35 and there:
        words = [path for path in there if path.suffix == ".json"] or there
        return _forge_word(chance.choice(words), chance)
    path = home.archive / chance.choice(NAMES)
    if roll > 0.95:
        path = chance.choice([home.archive, home.archive.parent])
    elif roll > 0.8:
        path = home.config / "sessrotate" / chance.choice(AROUND)
    elif roll > 0.76:
        return _shape(home, home.live, chance, [name for name in _SHAPES if name in _NO_FILES])
    elif roll < 0.6 and there:
        path = chance.choice(there)
    return _shape(home, path, chance, _SHAPES)


def _shape(home: Home, path: Path, chance: random.Random, shapes: Iterable[str]) -> str:
    top = home.config.parent
    if any(
        each.is_symlink() or (os.path.lexists(each) and not each.is_dir()) for each in path.parents
    ):
        return "nothing: it is behind another forgery"
    path.parent.mkdir(parents=True, exist_ok=True)
    data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    shape = chance.choice(sorted(shapes))
    _SHAPES[shape](path, top, data)
    return f"{shape} as {path.name}"


def _to_a_file(path: Path, top: Path, data: bytes) -> None:
    files = sorted((top / "outside").iterdir())
    path.symlink_to(files[len(data) % len(files)])


def _owned_by_another(path: Path, _top: Path, data: bytes) -> None:
    path.write_bytes(data)
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)


def _huge(path: Path, _top: Path, data: bytes) -> None:
    path.write_bytes(data)
    os.truncate(path, 1 << 25)


_SHAPES: Final[dict[str, Callable[[Path, Path, bytes], object]]] = {
    "to a file": _to_a_file,
    "to a session": lambda path, top, _: path.symlink_to(
        os.path.relpath(top / "outside" / f"{ID}.jsonl", path.parent)
    ),
    "to a folder": lambda path, top, _: path.symlink_to(top / "outside"),
    "to nowhere": lambda path, _top, _data: path.symlink_to("nowhere"),
    "to a device": lambda path, _top, _data: path.symlink_to("/dev/zero"),
    "hard link": lambda path, top, _: path.hardlink_to(top / "shared"),
    "pipe": lambda path, _top, _data: os.mkfifo(path),
    "socket": lambda path, _top, _data: os.mknod(path, stat.S_IFSOCK | 0o600),
    "folder": lambda path, _top, _data: path.mkdir(),
    "huge": _huge,
    "half": lambda path, _top, data: path.write_bytes(data[: len(data) // 2]),
    "another's": _owned_by_another,
    "empty": lambda path, _top, _data: path.write_bytes(b""),
}


_NO_FILES: Final = {
    "to a file", "to a session", "to nowhere", "to a device", "hard link", "pipe", "socket",
}  # fmt: skip
"""What a live file may turn into."""


def _forge_word(path: Path, chance: random.Random) -> str:
    lines = path.read_bytes().split(b"\n")
    numbers = [number for number, line in enumerate(lines) if b":" in line]
    if not numbers:
        return "nothing: no words"
    number = chance.choice(numbers)
    text = lines[number]
    for end in (b"", b"]}", b"}"):
        try:
            fields: Any = json.loads(text.rstrip(b",") + end)
        except ValueError:
            continue
        break
    else:
        return "nothing: no JSON"
    inner = fields
    while isinstance(inner, dict) and inner:
        key = chance.choice(sorted(inner))
        if not isinstance(inner[key], dict) or chance.random() < 0.3:
            inner[key] = value = chance.choice(VALUES)
            break
        inner = inner[key]
    else:
        return "nothing: no key"
    forged = json.dumps(fields).encode()
    forged = forged[: len(forged) - len(end)] + (b"," if text.endswith(b",") else b"")
    lines[number] = forged
    path.write_bytes(b"\n".join(lines))
    return f"{path.name}: {key} = {str(value)[:40]!r}"


# ── the tests ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for kind in KINDS:
        with pytest.MonkeyPatch.context() as patch:
            folder = tmp_path_factory.mktemp(kind)
            made(folder, patch, kind)
            found[kind] = folder
    return found


def copied(template: Path, to: Path) -> None:
    """Copy a folder with its links, hard ones too, and its times."""
    subprocess.run(["cp", "-a", f"{template}/.", str(to)], check=True)


def filled(command: tuple[str, ...], home: Home, out: Path) -> list[str]:
    projects = home.live.parent.parent
    words = {
        "OUT": str(out),
        "ARCHIVE": str(home.archive),
        "OLD": str(projects / PROJECT),
        "NEW": str(projects / MOVED),
    }
    return [words.get(word, word) for word in command]


def ended_session(home: Home) -> bytes:
    """Return what the client tells its hook when a session ends."""
    told = {
        "hook_event_name": "SessionEnd",
        "session_id": ID,
        "transcript_path": str(home.live),
    }
    return json.dumps(told).encode()


def done(command: tuple[str, ...], home: Home, out: Path) -> command_line.Ended:
    """Carry out a command in this process; of the hook, what its own process would do."""
    if command != ("hook",):
        return called(*filled(command, home, out))
    job = call.wanted(ended_session(home), 0)
    if job is not None:
        call.rotate(job, 0)
    return command_line.Ended(0, "", "")


@pytest.mark.parametrize("block", in_gate(BLOCKS, 2, "hostile"))
def test_no_file_outside_is_opened_or_changed(
    block: int, templates: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not tells_reads(tmp_path):
        pytest.skip("this file system does not say when a file was last read")
    monkeypatch.setattr(call, "_WAIT", 0)
    chance = random.Random(block)
    for number in range(INPUTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        copied(templates[chance.choice([*KINDS])], folder)
        home = homes.home(folder, monkeypatch)
        told = (block, number, forge(home, chance), command := chance.choice(COMMANDS))
        before, shared = outside(folder / "outside"), (folder / "shared").read_bytes()
        with watched() as seen:
            ended = done(command, home, folder / "out")
        assert ended.code in DOCUMENTED, (told, ended)
        assert "Traceback" not in ended.err, (told, ended)
        assert outside(folder / "outside") == before, told
        assert (folder / "shared").read_bytes() == shared, told
        assert not seen.within(folder / "outside"), told
        shutil.rmtree(folder)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("number", in_gate(range(TRACED), 3, "hostile"))
def test_the_system_sees_no_call_for_a_file_outside(
    number: int, templates: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(10_000 + number)
    copied(templates[chance.choice([*KINDS])], tmp_path)
    home = homes.home(tmp_path, monkeypatch)
    told = (number, forge(home, chance), command := COMMANDS[number % len(COMMANDS)])
    before, there = system_calls.links(tmp_path), outside(tmp_path / "outside")
    given = ended_session(home) if command == ("hook",) else b""
    arguments = filled(command, home, tmp_path / "out")
    code, calls = system_calls.traced(arguments, home.env, tmp_path / "trace", given)
    assert code in DOCUMENTED, told
    assert any("openat" in each for each in calls)
    assert not system_calls.within(calls, tmp_path / "outside", before), told
    assert outside(tmp_path / "outside") == there, told


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_judge_of_system_calls_sees_what_is_done_by_a_link(tmp_path: Path) -> None:
    """A judge that sees nothing would agree with everything."""
    top = tmp_path / "outside"
    write(top / "folder" / "file", SECRET)
    (tmp_path / "link").symlink_to(top)
    before = system_calls.links(tmp_path)
    trace = tmp_path / "trace"
    for script in (
        "cat $T/link/folder/file",
        "mv $T/link/folder/file $T; mv $T/file $T/outside/folder",
        "mv $T/link/folder $T/moved; rm $T/link; mv $T/moved $T/outside/folder",
        "ln -s $T/outside $T/link; chmod 600 $T/link/folder/file",
        "truncate -s 100 $T/link/folder/file",
        "mkdir $T/link/new",
        "rmdir $T/link/new",
        "ln $T/link/folder/file $T/other",
        "rm $T/other; touch $T/new; mv $T/new $T/link/new",
        "rm $T/link/new",
    ):
        system_calls.run(["sh", "-c", script], {"T": str(tmp_path)}, trace)
        calls = trace.read_text(errors="replace").splitlines()
        assert system_calls.within(calls, top, before), script
    system_calls.run(["sh", "-c", "ls $T/link; readlink $T/link"], {"T": str(tmp_path)}, trace)
    assert not system_calls.within(trace.read_text().splitlines(), top, before)
