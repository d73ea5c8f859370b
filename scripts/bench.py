#!/usr/bin/env python3
"""Measure sessrotate beside the usual tools, as the table of cases says.

    scripts/bench.py                    everything, which needs 20 GB of disk and some hours
    scripts/bench.py --quick            on small files and once, to see that all cases work
    scripts/bench.py --only rotation    one case; may be given several times

Each figure was measured in this run, beside what it is compared with. Nothing is measured but the
command: files are generated and in the page cache before it starts, and the disk settles after it
has ended. The commands of a case take turns, every second round in the opposite order, and figures
are medians. Nothing of the user's is seen by them: no settings, no sessions, no language.

A process starts with the peak memory of the one that it was forked from. A launcher of a few MiB
therefore stands between this program and every command.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import generate_session
from dice import MIB, RESULT_BYTES, Dice, parse_size

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPTS = Path(__file__).resolve().parent
BIN = SCRIPTS.parent / ".venv" / "bin"
PATH = f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
FOUND_NOTHING = 2  # with 1 or 2 a command says that what it was to look for is nowhere
PEAK_UNIT = 1 if sys.platform == "darwin" else 1 << 10  # ru_maxrss: bytes there, KiB elsewhere
LAUNCHER = """
import posix, sys, time
start = time.perf_counter()
pid = posix.posix_spawn(sys.argv[1], sys.argv[1:], posix.environ)
_, status, usage = posix.wait4(pid, 0)
figures = (time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
print(*figures, posix.waitstatus_to_exitcode(status), file=sys.stderr)
"""

# ---- the cases


class Row(NamedTuple):
    """A command, what it is compared with, and the most that its figures may be.

    `{session --size 2G}` is the file that `generate_session.py` makes of these options, `{home …}`
    a home with many sessions, and `{work}` a folder that is empty before each run. What stands
    before `=>` is done before the clock starts.
    """

    command: str
    other: str
    limits: Mapping[str, float] = {}


@dataclass(frozen=True)
class Case:
    """A table for each of the files or homes, which its rows call `{it}`."""

    note: str
    files: tuple[str, ...]
    rows: tuple[Row, ...]
    rounds: int = 5


SMALL, LARGE = "session --size 400M --boundaries 142", "session --size 2G --boundaries 730"
MORE = "{session --size 20M --boundaries 7}"
DRY_RUN = "sessrotate split --dry-run --json {it}"
SPLIT = "sessrotate split {it} --out {work}/out"
COPY = "cp {it} {work}/copy && sync {work}/copy"
ZSTD = "zstd -q -3 -T0 {it} -o {work}/z && sync {work}/z"
IDLE = "python -c pass"
LOOP = (
    'python -c "import collections, json, sys; '
    "collections.deque(map(json.loads, open(sys.argv[1], 'rb')), 0)\" {it}"
)
FOLDER = "{work}/.claude/projects/-bench"
LIVE = FOLDER + "/5e55107a-0000-4000-a000-000000000007.jsonl"
PUT = "mkdir -p " + FOLDER + " && cp {it} " + LIVE + " && sync"
ROTATE = "sessrotate rotate --json " + LIVE
STARTED = ("list", "read {it}", "export {it}", "report {it}", "tidy -n", "run -n", "doctor")
HOOK = """printf '{{"session_id":"a","transcript_path":"{it}","hook_event_name":"SessionEnd"}}'"""

NOWHERE, COMMON = "no such words anywhere", "ferry ledger"
HOME = "HOME={it} "
SEARCH = HOME + "sessrotate search -F "
FIRST_HIT = (
    HOME + "python -c 'import subprocess, sys; run = subprocess.Popen(sys.argv[1:], stdout=-1); "
    f"run.stdout.readline(); run.kill()' sessrotate search -F '{COMMON}'"
)
USUAL = (
    "{{ find {it} -name '*.zst' -print0 | xargs -0 zstdcat; "
    "find {it} -name '*.jsonl' -print0 | xargs -0 cat; }} | grep -cF "
)
COMPLETION = (
    HOME + "env _SESSROTATE_COMPLETE=complete_bash COMP_CWORD=2 'COMP_WORDS=sessrotate read 5e' "
    "sessrotate"
)
LOOKS = """python -ISc '
import os, sys
for top, _, files in os.walk(sys.argv[1]):
    for name in files:
        if name.endswith(".jsonl"):
            with open(os.path.join(top, name), "rb") as file:
                os.fstat(file.fileno())
                file.read(65536)
' {it}"""
STAT = "find {it} -type f -print0 | xargs -0 stat"
GREP = f"grep -rlF '{NOWHERE}' {{it}}"
MANY = "home of 2000 sessions of 30K with 2 compactions"
ON_MANY = (
    *("", " list", " report --all", f" search -F '{NOWHERE}'", " doctor", " tidy -n", " run -n"),
    *(" archive --older-than 1d -n", " prune --all --max-age 1d -n", " restore -n ffffffff"),
    *(" export ffffffff", " verify --all"),
)
"""What is measured on many sessions; the ids are of none, so that all are looked through."""


def scans(marker: str) -> tuple[Row, ...]:
    """Return what finding boundaries is compared with, and the target."""
    usual = f"grep -cF {shlex.quote(marker)} {{it}}"
    return (Row(DRY_RUN, usual, {"wall ÷": 1.0, "MiB": 48}), Row(DRY_RUN, "wc -l {it}"))


def thousands(share: int, factor: int) -> Case:
    """Return the case of 10,000 sessions, of which some are rotated and may take longer."""
    limits = {" list": 1.5, " report --all": 6, f" search -F '{NOWHERE}'": 3, " doctor": 3}
    rows = [
        Row(HOME + "sessrotate" + words, GREP, {"wall s": most * factor})
        for words, most in limits.items()
    ]
    first = Row(FIRST_HIT, GREP, {"wall s": 0.5 * factor})
    homes = f"home of 10000 sessions of 30K with 2 compactions in 80 folders, {share} % rotated"
    return Case("Many small sessions.", (homes,), (*rows, first))


CASES = {
    "scan": Case(
        "Nothing is written. `grep` also counts lines that only quote a boundary.",
        (SMALL, LARGE),
        scans("compact_boundary"),
    ),
    "codex": Case(
        "Compacted records have three quarters of the bytes.",
        ("codex --size 400M --boundaries 40", "codex --size 1G --boundaries 4"),
        scans('"compacted"'),
    ),
    "gemini": Case(
        "Lines that repeat the conversation have nine tenths of the bytes.",
        ("gemini --size 500M --resumes 60 --history 12M",),
        scans('"$set":{{"messages"'),
    ),
    "split": Case(
        "With digests, a manifest and all synced.",
        (SMALL, LARGE),
        (
            Row(SPLIT, COPY, {"wall ÷": 1.5, "MiB": 48}),
            Row(SPLIT + " => sessrotate stitch {work}/out -o {work}/whole", COPY, {"MiB": 48}),
        ),
    ),
    "rotation": Case(
        "The whole command: plan, compression, proof and sync; then once more, with 20 MB more.",
        (SMALL, LARGE),
        (
            Row(
                PUT + " => " + ROTATE,
                ZSTD,
                {"wall ÷": 2, "CPU ÷": 1.5, "MiB": 64},
            ),
            Row(
                f"{PUT} && {ROTATE} && cat {MORE} >> {LIVE} && sync => {ROTATE}",
                PUT.replace("{it}", MORE) + " => " + ROTATE,
            ),
        ),
    ),
    "swap": Case(
        "How long a client may have to wait does not depend on the history.",
        tuple(f"session --size {size} --boundaries 20 --tail 3M" for size in ("100M", "1G", "4G")),
        (Row(PUT + " => " + ROTATE, COPY, {"swap ms": 50}),),
    ),
    "prune": Case(
        "The plan for very many segments.",
        ("home of 1 sessions of 40M with 10000 compactions in 1 folders, 100 % rotated",),
        tuple(
            Row(HOME + "sessrotate prune --all -n " + rules, IDLE, {"wall s": 1, "MiB": 64})
            for rules in ("--keep-last 9999", "--keep-daily 30 --max-age 26w")
        ),
    ),
    "reading": Case(
        "Of a session that was never rotated; the loop keeps nothing.",
        (LARGE,),
        (
            Row("sessrotate export --format jsonl {it}", LOOP, {"CPU s": 4.8, "MiB": 64}),
            Row("sessrotate report --kinds --json {it}", LOOP, {"CPU s": 3.6, "CPU ÷": 0.33}),
            Row(f"sessrotate read --history --grep '{NOWHERE}' {{it}}", LOOP, {"MiB": 64}),
        ),
        rounds=3,
    ),
    "search": Case(
        "Three sessions in four are rotated, and so compressed. What is found is decoded, too.",
        ("home of 8 sessions of 128M with 20 compactions in 1 folders, 75 % rotated",),
        (
            *(
                Row(f"{SEARCH}'{word}'", f"{USUAL}'{word}'", {"wall ÷": 1.25, "MiB": 64})
                for word in (NOWHERE, "spindle None ferry import")
            ),
            Row(f"{SEARCH}'{COMMON}'", f"{USUAL}'{COMMON}'", {"MiB": 64}),
            Row(FIRST_HIT, f"{USUAL}'{COMMON}'", {"wall s": 1}),
        ),
    ),
    "list": Case(
        "Sizes are log-normal. Python looks at each file, and reads its first 64 KiB.",
        ("home of 10000 sessions of ~100K with 2 compactions in 50 folders, 2 % rotated",),
        (
            Row(HOME + "sessrotate list", LOOKS, {"wall s": 1.5, "wall ÷": 4}),
            Row(HOME + "sessrotate report --all --json", LOOKS, {"wall s": 6, "MiB": 64}),
            Row(COMPLETION, LOOKS, {"wall s": 0.3}),
            Row(HOME + "sessrotate", STAT, {"wall s": 0.5}),
        ),
    ),
    "thousands": thousands(0, 1),
    "thousands-rotated": thousands(100, 3),
    "twice": Case(
        "Twice the sessions, beside once.",
        tuple(
            f"{MANY} in {folders} folders, {share} % rotated"
            for folders in (1, 80)
            for share in (0, 100)
        ),
        tuple(
            Row("HOME={twice} sessrotate" + words, HOME + "sessrotate" + words, {"CPU ÷": 2})
            for words in ON_MANY
        ),
        rounds=1,
    ),
    "start-up": Case(
        "The hook is told of a session that is under its limit.",
        ("session --size 20K --boundaries 2",),
        (
            Row("sessrotate --version", IDLE, {"wall ÷": 4}),
            Row("sessrotate --help", IDLE, {"wall ÷": 9}),
            Row(
                HOOK + " >{work}/it => sessrotate hook < {work}/it",
                IDLE,
                {"wall ÷": 4, "wall s": 0.3},
            ),
            Row(DRY_RUN, IDLE, {"wall ÷": 10}),
            Row("sessrotate", IDLE, {"wall ÷": 14}),
            *(Row("sessrotate " + words, IDLE, {"wall ÷": 14}) for words in STARTED),
        ),
        rounds=20,
    ),
}

# ---- the files


class Files(dict[str, str]):
    """The paths that commands name in braces, made when they are first named."""

    def __init__(self, folder: Path, *, quick: bool) -> None:
        super().__init__(work=str(folder / "work"))
        self._folder = folder
        self._quick = quick

    def __missing__(self, name: str) -> str:
        """Make what is not there from an earlier run, under a name that it only gets when whole."""
        wanted = smaller(name) if self._quick else name
        path = self._folder / re.sub(r"\W+", "-", wanted)
        if not path.exists():
            say(f"making {wanted}")
            draft = path.with_suffix(".partial")
            shutil.rmtree(draft, ignore_errors=True)
            if name.startswith("home "):
                make_home(draft, wanted)
            else:
                kind, *options = wanted.split()
                generator = (
                    sys.executable,
                    str(SCRIPTS / f"generate_{kind}.py"),
                    str(draft),
                    *options,
                )
                subprocess.run(generator, check=True, stdout=subprocess.DEVNULL)
            draft.rename(path)
        return str(path)


def smaller(name: str) -> str:
    """Return the name of what has a sixteenth of its size, and of its counts a sixty-fourth."""
    name = re.sub(r"(\d+)G", lambda found: f"{int(found[1]) * 1024}M", name)
    name = re.sub(r"(\d+)M", lambda found: f"{int(found[1]) * 64}K", name)
    counts = r"(?<=--boundaries )\d+|\d+(?= (?:compactions|sessions))"
    return re.sub(counts, lambda found: str(max(1, int(found[0]) // 64)), name)


HOMES = re.compile(
    r"home of (\d+) sessions of (~?)(\w+) with (\d+) compactions in (\d+) folders, (\d+) % rotated"
)


def make_home(home: Path, name: str) -> None:
    """Make a home as its name says, whose sessions were last used a minute apart."""
    found = HOMES.fullmatch(name)
    assert found, name  # noqa: S101 - a mistake in the table
    count, compactions, folders, share = (int(found[group]) for group in (1, 4, 5, 6))
    size, dice, rotated = parse_size(found[3]), Dice(count, "home"), []
    newest = datetime.now(UTC) - timedelta(days=7)
    for number in range(count):
        folder = home / ".claude" / "projects" / f"-srv-demo-project-{number % folders}"
        folder.mkdir(parents=True, exist_ok=True)
        own = size * dice.quantile(RESULT_BYTES) // RESULT_BYTES[16] if found[2] else size
        begin = newest - timedelta(minutes=number)
        options = generate_session.Options(
            size=own, boundaries=compactions, seed=number, begin=begin
        )
        path = folder / generate_session.name(options)
        with path.open("wb", buffering=MIB) as file:
            ended = generate_session.generate(file, options).ended
        used = datetime.fromisoformat(ended).timestamp()
        os.utime(path, (used, used))
        if number * share % 100 < share:
            rotated.append(str(path))
    for start in range(0, len(rotated), 1000):
        command = ("sessrotate", "rotate", "--yes", "--quiet", *rotated[start : start + 1000])
        environment = {"PATH": PATH, "HOME": str(home)}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)


def warm(path: Path) -> None:
    """Read a file, or all files of a folder, into the page cache."""
    for file in [path] if path.is_file() else path.rglob("*.*"):
        if file.is_file():
            with file.open("rb", buffering=0) as content:
                while content.read(MIB):
                    pass


# ---- measuring


def run(command: str, files: Files) -> dict[str, float]:
    """Do what comes before the clock starts, then run the command and return what it took."""
    before, _, words = command.format_map(files).rpartition(" => ")
    work = Path(files["work"])
    work.mkdir()
    environment = {"PATH": PATH, "LC_ALL": "C", "HOME": str(work)}
    if before:
        quiet = subprocess.DEVNULL
        subprocess.run(("sh", "-c", before), check=True, env=environment, stdout=quiet)
    if set(shlex.split(words)) & {"&&", "|", "<"}:
        arguments = ["sh", "-c", words]
    else:
        arguments = shlex.split(words)
        if arguments[0].startswith("HOME="):
            environment["HOME"] = arguments.pop(0).removeprefix("HOME=")
    program = shutil.which(arguments[0], path=PATH) or arguments[0]
    launcher = (sys.executable, "-I", "-S", "-c", LAUNCHER, program, *arguments[1:])
    with (work / "stdout").open("w+b") as out:  # where it is /dev/null, grep stops at the first
        done = subprocess.run(
            launcher, check=True, env=environment, stdout=out, stderr=subprocess.PIPE, text=True
        )
        out.seek(0)
        swap = re.search(rb'"swap_seconds":\s*([\d.e-]+)', out.read(MIB))
    shutil.rmtree(work)
    os.sync()
    *complaints, figures = done.stderr.splitlines()
    wall, cpu, peak, code = map(float, figures.split())
    if code > FOUND_NOTHING:
        raise SystemExit(f"bench: {words} exited with {code:.0f}: {' '.join(complaints[-3:])}")
    found = {"wall s": wall, "CPU s": cpu, "MiB": peak * PEAK_UNIT / MIB}
    return found | ({"swap ms": float(swap[1]) * 1000} if swap else {})


def measure(name: str, case: Case, files: Files, rounds: int) -> None:
    """Print the tables of a case, and which targets are reached."""
    columns = ("command", "beside", "wall s", "its", "÷", "CPU s", "its", "÷", "peak MiB", "target")
    for it in case.files:
        files["it"] = files[it]
        if any("{twice}" in row.command for row in case.rows):
            files["twice"] = files[
                re.sub(r"\d+", lambda found: f"{int(found[0]) * 2}", it, count=1)
            ]
        commands = list(dict.fromkeys(each for row in case.rows for each in row[:2]))
        runs: dict[str, list[dict[str, float]]] = {command: [] for command in commands}
        warm(Path(files["it"]))
        for number in range(rounds):
            say(f"{name}, {it}, round {number + 1} of {rounds}")
            for command in reversed(commands) if number % 2 else commands:
                runs[command].append(run(command, files))
        print(f"\n### {name}: {Path(files['it']).name}\n\n{case.note}\n\n| {' | '.join(columns)} |")
        print("|---|---|" + "---:|" * 7 + "---|", flush=True)
        for row in case.rows:
            ours, its = (medians(runs[command]) for command in row[:2])
            figures = dict(ours)
            cells = [f"`{label(row.command)}`", f"`{label(row.other)}`"]
            for unit in ("wall", "CPU"):
                ratio = figures[f"{unit} ÷"] = ours[f"{unit} s"] / max(its[f"{unit} s"], 0.001)
                cells += [f"{ours[f'{unit} s']:.3f}", f"{its[f'{unit} s']:.3f}", f"{ratio:.2f}"]
            verdicts = [
                f"{name} {figures[name]:.2f} {'≤' if figures[name] <= most else '**>**'} {most:g}"
                for name, most in row.limits.items()
            ]
            cells += [f"{ours['MiB']:.1f}", "; ".join(verdicts)]
            print(f"| {' | '.join(cells)} |", flush=True)


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure of some runs."""
    return {name: statistics.median(each[name] for each in runs) for name in runs[0]}


def label(command: str) -> str:
    """Return how a command is called in a table: without what comes before it, and its files."""
    shown = command.rpartition(" => ")[2].removeprefix(HOME)
    for hidden in (r"(?<!\{)\{(?!\{)[^}]*\}\S*", r"""(?<=c )(["']).*?\1"""):
        shown = re.sub(hidden, "…", shown, flags=re.DOTALL)
    return shown.replace("|", "\\|")


def say(text: str) -> None:
    """Tell on stderr what is going on."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def machine() -> str:
    """Describe the machine, as far as it matters and as far as it says nothing of its owner."""
    version = (BIN / "sessrotate", "--version")
    told = subprocess.run(version, capture_output=True, text=True, check=True).stdout.strip()
    system = f"{platform.system()} {platform.release()} on {platform.machine()}"
    return f"{told}, Python {platform.python_version()}, {system}, {os.cpu_count()} cores"


def main() -> None:
    """Measure and print; what is missed is printed too, and is no failure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="instead of each case's own")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the files here, for reuse")
    parser.add_argument("--quick", action="store_true", help="a sixteenth of each file, one round")
    parser.add_argument("--only", action="append", choices=CASES, help="only this case")
    options = parser.parse_args()
    subprocess.run([SCRIPTS / "setup"], check=True)
    print(machine())
    with tempfile.TemporaryDirectory(prefix="sessrotate-bench-") as folder:
        place = (options.keep or Path(folder)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(place / "work", ignore_errors=True)  # of an interrupted run
        files = Files(place, quick=options.quick)
        for name in options.only or CASES:
            rounds = options.rounds or (1 if options.quick else CASES[name].rounds)
            measure(name, CASES[name], files, rounds)


if __name__ == "__main__":
    main()
