"""How commands are measured, for all benchmarks.

Promise: a figure is the command's own: its launcher is a few MiB and starts nothing else.
Rule: nothing of the user's is seen by what is measured: no settings, no sessions, no language.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REPOSITORY = Path(__file__).resolve().parent.parent
SCRIPTS = REPOSITORY / "scripts"
BIN = REPOSITORY / ".venv" / "bin"
SESSROTATE, PYTHON = str(BIN / "sessrotate"), str(BIN / "python")
MIB = 1 << 20
PEAK_UNIT = 1 if sys.platform == "darwin" else 1 << 10  # ru_maxrss: bytes there, KiB elsewhere
# Nothing of the user's: no settings, no sessions, no language.
ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/nonexistent"}
COPY_AND_SYNC = 'cp "$1" "$2" && sync "$2"'
ROTATE = """
import contextlib, sys
from pathlib import Path
from sessrotate.archive import place
from sessrotate.in_place import operations
silent = lambda _what, _total: contextlib.nullcontext(lambda _done: None)
for path in sys.argv[1:]:
    done = operations.rotate_session(place.of_live(Path(path)), 1, silent)
    assert done.seconds is not None, done
"""
"""Rotates the sessions at these paths, in one process."""
LAUNCHER = """
import posix, sys, time
start = time.perf_counter()
pid = posix.posix_spawn(sys.argv[1], sys.argv[1:], posix.environ)
_, status, usage = posix.wait4(pid, 0)
figures = (time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
print(*figures, posix.waitstatus_to_exitcode(status), file=sys.stderr)
"""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one run of a command took."""

    wall_seconds: float
    cpu_seconds: float
    peak_mib: float
    exit_code: int
    said: bytes = b""


def table_line(cells: Sequence[str]) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def seconds(figure: float) -> str:
    """Return seconds with three significant digits or so."""
    return f"{figure:.2f}" if figure >= 1 else f"{figure:.3f}"


def mib(peak: float, launcher_mib: float) -> str:
    """Return a peak of memory, or that it is too low to be told from the launcher's."""
    return f"{peak:.1f}" if peak > launcher_mib * 1.05 else f"< {launcher_mib * 1.05:.0f}"


def measure(arguments: Sequence[str], more: Mapping[str, str] | None = None) -> Usage:
    """Run a command under the launcher and return what it took; `more` is for its environment."""
    program = shutil.which(arguments[0]) or arguments[0]
    launcher = (sys.executable, "-I", "-S", "-c", LAUNCHER, program, *arguments[1:])
    # Results go to a file: where they go to /dev/null, grep stops at the first match.
    with tempfile.TemporaryFile() as results:
        done = subprocess.run(
            launcher,
            check=False,
            env={**ENVIRONMENT, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=results,
            stderr=subprocess.PIPE,
            text=True,
        )
        results.seek(0)
        said = results.read(MIB)
    if done.returncode:
        raise SystemExit(f"bench: cannot start {program}: {done.stderr.strip()}")
    *complaints, figures = done.stderr.splitlines()
    wall, cpu, peak, exit_code = figures.split()
    if int(exit_code):
        complaint = complaints[-1] if complaints else "no message"
        say(f"{Path(program).name} {' '.join(arguments[1:3])} exited with {exit_code}: {complaint}")
    return Usage(float(wall), float(cpu), int(peak) * PEAK_UNIT / MIB, int(exit_code), said)


def warm(path: Path) -> None:
    """Read a file, or the files in a folder, into the page cache."""
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        with file.open("rb", buffering=0) as content:
            while content.read(MIB):
                pass


def say(text: str) -> None:
    """Tell on stderr what is going on."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def machine(folder: Path, launcher_mib: float) -> str:
    """Describe the machine, as far as it matters and as far as it says nothing of its owner."""
    facts = {
        "CPU": first_match(Path("/proc/cpuinfo"), "model name") or platform.processor() or "?",
        "cores": str(os.cpu_count()),
        "memory": first_match(Path("/proc/meminfo"), "MemTotal") or "?",
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": file_system(folder),
        "Python": first_line((PYTHON, "--version")).removeprefix("Python "),
        "sessrotate": first_line((SESSROTATE, "--version")).removeprefix("sessrotate "),
        "tools": ", ".join(first_line((tool, "--version")) for tool in ("grep", "cp", "csplit")),
        "locale": "C",
        "memory floor": f"{launcher_mib:.1f} MiB, the launcher's: lower peaks cannot be seen",
    }
    return "\n".join(f"- {name}: {fact}" for name, fact in facts.items()) + "\n"


def first_match(path: Path, key: str) -> str | None:
    """Return the value of the first line with this key."""
    if not path.exists():
        return None
    pairs = (line.partition(":") for line in path.read_text().splitlines())
    return next((value.strip() for name, _, value in pairs if name.strip() == key), None)


def first_line(command: Sequence[str]) -> str:
    """Return the first line that a command prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return next(iter(done.stdout.splitlines()), "?")


def file_system(folder: Path) -> str:
    """Return the type of the file system that a folder is on."""
    mounts = Path("/proc/self/mounts")
    if not mounts.exists():
        return "?"
    types: dict[Path, str] = {}
    for line in mounts.read_text().splitlines():
        _, mount_point, kind, *_ = line.split()
        types[Path(mount_point)] = kind
    resolved = folder.resolve()
    return next(types[place] for place in (resolved, *resolved.parents) if place in types)


@contextmanager
def work_folder(keep: Path | None) -> Iterator[Path]:
    """Return the folder to keep files in, or one that is removed in the end."""
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
    else:
        with tempfile.TemporaryDirectory(prefix="sessrotate-bench-") as folder:
            yield Path(folder)


def show(text: str) -> None:
    """Print a part of the result as soon as it is known."""
    print(text, flush=True)
