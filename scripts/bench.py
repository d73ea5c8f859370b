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
import shutil
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import generate_session
from dice import MIB, RESULT_BYTES, Dice, parse_size, templates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCRIPTS = Path(__file__).resolve().parent
BIN = SCRIPTS.parent / ".venv" / "bin"
PATH = f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
FOUND_NOTHING = 2  # with 1 or 2 a command says that what it was to look for is nowhere
PEAK_UNIT = 1 if sys.platform == "darwin" else 1 << 10  # ru_maxrss: bytes there, KiB elsewhere
LAUNCHER = """
import posix, sys, time
start = time.perf_counter()
pid = posix.posix_spawn("/bin/sh", ["sh", "-c", sys.argv[1]], posix.environ)
_, status, usage = posix.wait4(pid, 0)
figures = (time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
print(*figures, posix.waitstatus_to_exitcode(status), file=sys.stderr)
"""

# ---- the cases

# A case: on which files or homes and how often, then rows of a command, what it is compared with,
# and the most that its figures may be. `{session --size 2G}` is the file that generate_session.py
# makes of these options, `{home …}` a home with many sessions, which commands see instead of the
# user's, `{it}` the one that the table is about, `{twice}` one of twice the sessions, and `{work}`
# a folder that is empty before each run; all else in braces is in SHELL. `(one; another)` makes a
# row of each, which `()` repeats. What stands before `=>` is done before the clock starts.
TABLE = """
scan: Nothing is written. `grep` also counts lines that only quote a boundary.
    5 times on {small}
    5 times on {large}
    sessrotate split --dry-run --json {it} | grep -cF compact_boundary {it} | wall ÷ 1, MiB 48
    sessrotate split --dry-run --json {it} | wc -l {it}

codex: Compacted records have three quarters of the bytes.
    5 times on {codex --size 400M --boundaries 40}
    5 times on {codex --size 1G --boundaries 4}
    sessrotate split --dry-run --json {it} | grep -cF '"compacted"' {it} | wall ÷ 1, MiB 48
    sessrotate split --dry-run --json {it} | wc -l {it}

gemini: Lines that repeat the conversation have nine tenths of the bytes.
    5 times on {gemini --size 500M --resumes 60 --history 12M}
    sessrotate split --dry-run --json {it} | grep -cF '"$set":{{"messages"' {it} | wall ÷ 1, MiB 48
    sessrotate split --dry-run --json {it} | wc -l {it}

split: With digests, a manifest and all synced.
    5 times on {small}
    5 times on {large}
    sessrotate split {it} --out {work}/out | {copy} | wall ÷ 1.5, MiB 48
    {split} => sessrotate stitch {work}/out -o {work}/whole | {copy} | MiB 48

rotation: The whole command: plan, compression, proof and sync; then once more, with 20 MB more.
    5 times on {small}
    5 times on {large}
    {put} => sessrotate rotate --json {live} | {zstd} | wall ÷ 2, CPU ÷ 1.5, MiB 64
    {rotated} => sessrotate rotate --json {live} | {put more} => {rotate}

swap: How long a client may have to wait does not depend on the history.
    5 times on {session --size 100M --boundaries 20 --tail 3M}
    5 times on {session --size 1G --boundaries 20 --tail 3M}
    5 times on {session --size 4G --boundaries 20 --tail 3M}
    {put} => sessrotate rotate --json {live} | {copy} | swap ms 50

prune: The plan for very many segments.
    5 times on {home sessions 1 size 40M boundaries 10000 folders 1 rotated 100}
    sessrotate prune --all -n --keep-last 9999 | {idle} | wall s 1, MiB 64
    sessrotate prune --all -n --keep-daily 30 --max-age 26w | {idle} | wall s 1, MiB 64

reading: Of a session that was never rotated; the loop keeps nothing.
    3 times on {large}
    sessrotate export --format jsonl {it} | {loop} | CPU s 4.8, MiB 64
    sessrotate report --kinds --json {it} | {loop} | CPU s 3.6, CPU ÷ 0.33
    sessrotate read --history --grep 'no such words anywhere' {it} | {loop} | MiB 64

search: Three sessions in four are rotated, and so compressed. What is found is decoded, too.
    5 times on {home sessions 8 size 128M boundaries 20 folders 1 rotated 75}
    sessrotate search -F {nowhere} | {count} {nowhere} | wall ÷ 1.25, MiB 64
    sessrotate search -F {rare} | {count} {rare} | wall ÷ 1.25, MiB 64
    sessrotate search -F {common} | {count} {common} | MiB 64
    {first hit} | {count} {common} | wall s 1

list: Sizes are log-normal. Python looks at each file, and reads its first 64 KiB.
    5 times on {home sessions 10000 size ~100K boundaries 2 folders 50 rotated 2}
    sessrotate list | {edges} | wall s 1.5, wall ÷ 4
    sessrotate report --all --json | {edges} | wall s 6, MiB 64
    {completion} | {edges} | wall s 0.3
    sessrotate | {stat} | wall s 0.5

thousands: Many small sessions. Rotated, they may take 3 times the limits.
    5 times on {home sessions 10000 size 30K boundaries 2 folders 80 rotated 0}
    5 times on {home sessions 10000 size 30K boundaries 2 folders 80 rotated 100} at 3 times
    sessrotate list | {grep} | wall s 1.5
    sessrotate report --all | {grep} | wall s 6
    sessrotate (search -F {nowhere}; doctor) | {grep} | wall s 3
    {first hit} | {grep} | wall s 0.5

twice: Twice the sessions, beside once. The ids are of none: all are looked through.
    1 times on {home sessions 2000 size 30K boundaries 2 folders 1 rotated 0}
    1 times on {home sessions 2000 size 30K boundaries 2 folders 1 rotated 100}
    1 times on {home sessions 2000 size 30K boundaries 2 folders 80 rotated 0}
    1 times on {home sessions 2000 size 30K boundaries 2 folders 80 rotated 100}
    HOME={twice} sessrotate (; list; report --all; doctor) | sessrotate () | CPU ÷ 2
    HOME={twice} sessrotate (tidy -n; run -n; verify --all) | sessrotate () | CPU ÷ 2
    HOME={twice} sessrotate (restore -n ffffffff; export ffffffff) | sessrotate () | CPU ÷ 2
    HOME={twice} sessrotate (search -F {nowhere}; {archive}; {prune}) | sessrotate () | CPU ÷ 2

start-up: The hook is told of a session that is under its limit.
    20 times on {session --size 20K --boundaries 2}
    sessrotate --version | {idle} | wall ÷ 4
    sessrotate --help | {idle} | wall ÷ 9
    {told} => sessrotate hook <{work}/told | {idle} | wall ÷ 4, wall s 0.3
    sessrotate split --dry-run --json {it} | {idle} | wall ÷ 10
    sessrotate (; list; tidy -n; run -n; doctor) | {idle} | wall ÷ 14
    sessrotate (read; export; report) {it} | {idle} | wall ÷ 14
"""

SHELL = templates(rb"""
small: {session --size 400M --boundaries 142 --images 6}
large: {session --size 2G --boundaries 730 --images 32}
more: {session --size 20M --boundaries 7}
idle: python -c pass
loop: python -c "import collections, json, sys;
     collections.deque(map(json.loads, open(sys.argv[1], 'rb')), 0)" {it}
copy: cp {it} {work}/copy && sync {work}/copy
zstd: zstd -q -3 -T0 {it} -o {work}/z && sync {work}/z
split: sessrotate split {it} --out {work}/out
folder: {work}/.claude/projects/-bench
live: {folder}/5e55107a-0000-4000-a000-000000000007.jsonl
rotate: sessrotate rotate --json {live}
put: mkdir -p {folder} && cp {it} {live} && sync
put more: mkdir -p {folder} && cp {more} {live} && sync
rotated: {put} && {rotate} && cat {more} >> {live} && sync
nowhere: 'no such words anywhere'
rare: 'spindle ferry yield kettle'
common: 'ferry ledger'
first hit: sessrotate search -F {common} | head -n 1
count: {{ find {it} -name '*.zst' -print0 | xargs -0 zstdcat;
     find {it} -name '*.jsonl' -print0 | xargs -0 cat; }} | grep -cF
grep: grep -rlF {nowhere} {it}
edges: python -ISc 'import os, sys; [open(os.path.join(top, name), "rb").read(65536)
     for top, _, names in os.walk(sys.argv[1]) for name in names if name.endswith(".jsonl")]' {it}
stat: find {it} -type f -print0 | xargs -0 stat
completion: env _SESSROTATE_COMPLETE=complete_bash COMP_CWORD=2
     'COMP_WORDS=sessrotate read 5e' sessrotate
archive: archive --older-than 1d -n
prune: prune --all --max-age 1d -n
told: printf '{{"session_id":"a","transcript_path":"{it}","hook_event_name":"SessionEnd"}}'
     >{work}/told
""")
"""What commands name in braces, besides files."""


CASES = {case.partition(":")[0]: case.split("\n    ") for case in TABLE.strip().split("\n\n")}

# ---- the files


class Files(dict[str, str]):
    """What commands name in braces; files and homes are made when they are first named."""

    def __init__(self, folder: Path, *, quick: bool) -> None:
        super().__init__(work=str(folder / "work"))
        self._folder = folder
        self._quick = quick

    def __missing__(self, name: str) -> str:
        """Return a piece of shell, or the path of a file or home."""
        if name in SHELL:
            return SHELL[name].decode().format_map(self)
        wanted = smaller(name) if self._quick else name
        path = self._folder / wanted.replace(" ", "-")
        if not path.exists():
            say(f"making {wanted}")
            kind, *options = wanted.split()
            if kind == "home":
                make_home(path, dict(zip(options[::2], options[1::2], strict=True)))
            else:
                generator = str(SCRIPTS / f"generate_{kind}.py")
                command = (sys.executable, generator, str(path), *options)
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return str(path)


def smaller(name: str) -> str:
    """Return the name of what has a sixteenth of its size, and of its counts a sixty-fourth."""
    name = re.sub(r"\d+[MG]", lambda found: f"{parse_size(found[0]) // (16 << 10)}K", name)
    counts = r"(?<=boundaries )\d+|(?<=sessions )\d+"
    return re.sub(counts, lambda found: str(max(1, int(found[0]) // 64)), name)


def make_home(home: Path, shape: Mapping[str, str]) -> None:
    """Make a home of this shape, whose sessions were last used a minute apart."""
    count, folders, share = (int(shape[name]) for name in ("sessions", "folders", "rotated"))
    size, dice, median = parse_size(shape["size"].strip("~")), Dice(count, "home"), RESULT_BYTES[16]
    newest = datetime.now(UTC) - timedelta(days=7)
    rotated = []
    for number in range(count):
        folder = home / ".claude" / "projects" / f"-srv-demo-project-{number % folders}"
        folder.mkdir(parents=True, exist_ok=True)
        weight = dice.quantile(RESULT_BYTES) if shape["size"].startswith("~") else median
        options = generate_session.Options(
            size=size * weight // median,
            boundaries=int(shape["boundaries"]),
            seed=number,
            begin=newest - timedelta(minutes=number),
        )
        path = folder / f"{options.session_id}.jsonl"
        with path.open("wb", buffering=MIB) as file:
            generate_session.generate(file, options)
        used = options.begin.timestamp()
        os.utime(path, (used, used))
        if number * share % 100 < share:
            rotated.append(str(path))
    for start in range(0, len(rotated), 1000):
        command = ("sessrotate", "rotate", "--yes", "--quiet", *rotated[start : start + 1000])
        environment = {"PATH": PATH, "HOME": str(home)}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)


# ---- measuring


def run(command: str, files: Files) -> dict[str, float]:
    """Do what comes before the clock starts, then run the command and return what it took."""
    before, _, words = command.format_map(files).rpartition(" => ")
    work = Path(files["work"])
    work.mkdir()
    home = files["it"] if Path(files["it"]).is_dir() else str(work)
    environment = {"PATH": PATH, "LC_ALL": "C", "HOME": home}
    quiet = subprocess.DEVNULL
    subprocess.run(("sh", "-c", before), check=True, env=environment, stdout=quiet)
    launcher = (sys.executable, "-I", "-S", "-c", LAUNCHER, words)
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


def measure(case: list[str], files: Files, *, once: bool) -> None:
    """Print the tables of a case, and which targets are reached."""
    title, *lines = case
    rows = [row for line in lines if " | " in line for row in rows_of(line)]
    commands = list(dict.fromkeys(each for row in rows for each in row[:2]))
    columns = ("command", "beside", "wall s", "its", "÷", "CPU s", "its", "÷", "peak MiB", "target")
    shapes = re.findall(r"(\d+) times on ({.*?})(?: at (\d) times)?", "\n".join(lines))
    for times, it, slower in shapes:
        files["it"] = it.format_map(files)
        files["twice"] = it.replace("sessions 2000", "sessions 4000").format_map(files)
        warm = f"find {files['it']} -type f -exec cat {{}} + >{os.devnull}"
        subprocess.run(("sh", "-c", warm), check=True)
        runs: dict[str, list[dict[str, float]]] = {command: [] for command in commands}
        for number in range(1 if once else int(times)):
            say(f"{title.partition(':')[0]}, {it}, round {number + 1} of {times}")
            for command in reversed(commands) if number % 2 else commands:
                runs[command].append(run(command, files))
        print(f"\n### {title}\n\nOn {Path(files['it']).name}:\n\n| {' | '.join(columns)} |")
        print("|---|---|" + "---:|" * 7 + "---|", flush=True)
        for command, other, *limits in rows:
            ours, its = medians(runs[command]), medians(runs[other])
            cells = [f"`{each.rpartition(' => ')[2]}`" for each in (command, other)]
            for unit in ("wall", "CPU"):
                mine, theirs = ours[f"{unit} s"], its[f"{unit} s"]
                ours[f"{unit} ÷"] = mine / max(theirs, 0.001)
                cells += [f"{mine:.3f}", f"{theirs:.3f}", f"{ours[f'{unit} ÷']:.2f}"]
            cells += [f"{ours['MiB']:.1f}", "; ".join(verdicts(ours, int(slower or 1), *limits))]
            print(f"| {' | '.join(cells)} |", flush=True)


def rows_of(line: str) -> Iterator[list[str]]:
    """Give the cells of a row, or of one for each of what stands in parentheses."""
    found = re.search(r"\((.*?)\)", line)
    for each in found[1].split("; ") if found else [""]:
        row = re.sub(r"\(.*?\)", each, line)
        yield [cell.strip() for cell in row.split(" | ")]


def verdicts(figures: Mapping[str, float], slower: int, limits: str = "") -> Iterator[str]:
    """Give each figure that has a target, and whether it reaches that."""
    for figure, limit in re.findall(r"(\w+ ?\S*?) ([\d.]+)", limits):
        most = float(limit) * slower
        reached = "≤" if figures[figure] <= most else "**>**"
        yield f"{figure} {figures[figure]:.2f} {reached} {most:g}"


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure of some runs."""
    return {name: statistics.median(each[name] for each in runs) for name in runs[0]}


def say(text: str) -> None:
    """Tell on stderr what is going on."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure and print; what is missed is printed too, and is no failure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a sixteenth of each file, one round")
    parser.add_argument("--only", action="append", choices=CASES, help="only this case")
    options = parser.parse_args()
    subprocess.run([SCRIPTS / "setup"], check=True)
    # What matters of the machine, and nothing of its owner.
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores")
    subprocess.run([BIN / "sessrotate", "--version"], check=True)
    with tempfile.TemporaryDirectory(prefix="sessrotate-bench-") as folder:
        files = Files(Path(folder), quick=options.quick)
        for name in options.only or CASES:
            measure(CASES[name], files, once=options.quick)


if __name__ == "__main__":
    main()
