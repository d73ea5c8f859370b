"""What `scripts/check-client` does: versions of the client judge rotations, in plain words.

It promises that "as before" is said only of cases that were run to their end and were equal.

Rule: the tests are the judgement. Here they are started, watched, and counted: one version by what
matters to it (`judge`), or all by that, and then sessions of any shape that all of them may have
written (`judge_all`).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

from support.real_clients.client import OTHERS, PACKAGE, install
from support.real_clients.installing import FOLDER, REPOSITORY, UnavailableError
from support.real_clients.rotating import ROTATION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HERE: Final = REPOSITORY / "tests" / "real_clients"
JUDGEMENT: Final = ("test_in_place.py", "test_synthetic.py", "test_stop_hook.py")
SHAPES: Final = ("test_shapes.py",)

NUMBERS: Final = [version.number for version in OTHERS]

PARTS: Final = {
    "a sample": "samples of real clients",
    "a session rotated": "fresh sessions",
    "a fork": "fresh sessions",
    "a rare session": "rare sessions",
    "a session of any shape": "shapes",
    "a life": "lives",
}
"""What kind of case a test has, by how its name begins."""

REFUSED: Final = "refused"

LINES: Final = 8
"""Lines that are shown of each difference."""

_ENDED: Final = {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}


@dataclass
class Verdict:
    """What came of the cases so far; a plugin of pytest."""

    version: str
    say: Callable[[str], object]
    equal: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    different: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    """The rotations that were refused, and that had to be."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case when it has ended."""
        case = in_words(report.nodeid)
        is_end = report.when == "call" or not report.passed
        if not is_end or case in self.different:
            return
        if case in self.equal:  # what came after it failed
            self.equal.remove(case)
        if report.passed:
            self.equal.append(case)
            told = [str(value) for name, value in report.user_properties if name == ROTATION]
            refusals = [one for one in told if one.startswith(REFUSED)]
            self.refused += [case] * len(refusals)
            what = "rightly refused" if refusals else "same"
        elif report.skipped and hasattr(report, "wasxfail"):
            self.known.append(case)
            what = "differs, as is known"
        else:
            self.different[case] = _reason(report)
            what = "DIFFERS"
        self.say(f"  {self.count:3}  {what}: {case}")

    @property
    def count(self) -> int:
        """How many cases have ended."""
        return len(self.equal) + len(self.known) + len(self.different)

    def lines(self) -> list[str]:
        """Return the verdict, a sentence first."""
        count, equal = self.count, len(self.equal)
        head = f"{self.version}: resumes rotated sessions as before in {equal} of {count} cases."
        return [head, *self.told()]

    def told(self) -> list[str]:
        """Return where it differs, if anywhere."""
        told = []
        if self.known:
            told.append("It differs, as is known and no reason to worry about this version, in:")
            told += [f"  {case}" for case in self.known]
        if self.different:
            told.append("It DIFFERS in:")
            for case, reason in self.different.items():
                told.append(f"  {case}")
                told += [f"      {line}" for line in reason.splitlines()[:LINES]]
        return told

    def table(self) -> list[str]:
        """Return a line for each kind of case: how many there were, and what came of them."""
        lists = (self.equal, self.known, list(self.different), self.refused)
        cases = [case for cases in lists[:3] for case in cases]
        return [
            _line(self.version, part, *(_count(cases, part) for cases in (cases, *lists)))
            for part in dict.fromkeys(PARTS.values())
            if _count(cases, part)
        ]


TITLES: Final = ("cases", "same", "known", "DIFFER", "refused")


def _line(version: str, part: str, *numbers: object) -> str:
    return f"{version:9} {part:24}" + "".join(f"{number:>9}" for number in numbers)


def _count(cases: Sequence[str], part: str) -> int:
    return sum(PARTS[begin] == part for case in cases for begin in PARTS if case.startswith(begin))


def in_words(nodeid: str) -> str:
    """Return what a test says of a case: its name and its parameter, without the version."""
    found = re.fullmatch(r".*::test_(\w+)(?:\[(?:\d+\.[\d.]+)?-?(.*)\])?", nodeid)
    if found is None:
        return nodeid
    parts = [part for part in found.groups() if part]
    return ": ".join(part.replace("_", " ") for part in parts)


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash is not None else report.longrepr)


def judge(
    name: str,
    only: str,
    say: Callable[[str], object],
    tests: Sequence[str] = JUDGEMENT,
    versions: Sequence[str] = (),
) -> tuple[Verdict, str | None]:
    """Run the cases; return what came of them, and what kept some from being run.

    `versions` are judged together, by default the one of that name.
    """
    verdict = Verdict(name, say)
    os.environ["SESSROTATE_CLIENT_VERSIONS"] = " ".join(versions or [name])
    os.environ["SESSROTATE_REQUIRE_CLIENTS"] = "1"
    arguments = [*(str(HERE / name) for name in tests), "--rootdir", str(REPOSITORY)]
    arguments += ["-q", "-s", "-m", "clients", "-k", only, "-n", "2", "--dist", "worksteal"]
    arguments += ["-p", "no:cacheprovider"]
    with contextlib.redirect_stdout(io.StringIO()) as told:
        status = pytest.main(arguments, plugins=[verdict])
    if status not in _ENDED or not verdict.count:
        return verdict, told.getvalue().strip() or "no case was run"
    return verdict, None


def _version(text: str) -> str:
    if not re.fullmatch(r"\d+\.\d+\.\d+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no version: name one such as 2.1.330")
    return text


def judge_all(versions: Sequence[str], only: str, shapes: int, say: Callable[[str], object]) -> int:
    """Judge versions one by one, then shapes by all of them; end with a table."""
    verdicts, problems = [], []
    os.environ["SESSROTATE_SHAPES"] = f"1-{shapes}"
    for name, tests in [*((version, JUDGEMENT) for version in versions), ("together", SHAPES)]:
        say(f"{name}: …")
        verdict, problem = judge(name, only, say, tests, versions if tests is SHAPES else ())
        verdicts.append(verdict)
        problems += [f"{name}: {problem}"] if problem is not None else []
    say(_line("version", "kind of case", *TITLES))
    for verdict in verdicts:
        for line in verdict.table():
            say(line)
    for line in [line for verdict in verdicts for line in verdict.told()] + problems:
        say(line)
    return 1 if problems or any(verdict.different for verdict in verdicts) else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Check versions; return 0 if rotated sessions are resumed as before, else 1."""
    parser = argparse.ArgumentParser(
        prog="check-client",
        description=(
            f"Installs a version of {PACKAGE} from npm into {FOLDER.name} and lets it judge: does "
            "it resume sessions that were rotated in place as it resumes whole ones? Takes a few "
            "minutes. Nothing leaves this machine but the installation, and your own sessions are "
            "not touched. Ends with 0 if it does, with 1 if not or if that cannot be told."
        ),
    )
    parser.add_argument("version", nargs="*", metavar="VERSION", help="such as 2.1.330")
    parser.add_argument(
        "--all",
        action="store_true",
        help=f"judge {', '.join(NUMBERS)}, or the versions named, and sessions of any shape; "
        "takes an hour or two, and ends with a table",
    )
    parser.add_argument(
        "--shapes", type=int, default=300, metavar="N", help="with --all: of how many shapes (300)"
    )
    parser.add_argument("--only", default="", metavar="WORDS", help="only cases named so")
    chosen = parser.parse_args(arguments)
    try:
        versions = [_version(text) for text in chosen.version] or NUMBERS * chosen.all
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    if not versions or (len(versions) > 1 and not chosen.all):
        parser.error("name one version, or several with --all")

    out = sys.stdout

    def say(text: str) -> None:
        out.write(f"{text}\n")
        out.flush()

    for version in versions:
        say(f"{version}: installing it, unless it is there …")
        try:
            install(version)
        except UnavailableError as error:
            say(f"{version}: cannot be tested here. {error}")
            return 1
    if chosen.all:
        return judge_all(versions, chosen.only, chosen.shapes, say)
    (version,) = versions
    say(f"{version}: rotating its sessions, and going on in them …")
    verdict, problem = judge(version, chosen.only, say)
    if problem is not None:
        say(problem)
        say(f"{version}: the judgement did not come to its end after {verdict.count} cases.")
        return 1
    for line in verdict.lines():
        say(line)
    return 1 if verdict.different else 0


if __name__ == "__main__":
    sys.exit(main())
