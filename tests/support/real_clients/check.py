"""What `scripts/check-client` does: one version of the client judges rotations, in plain words.

It promises that "as before" is said only of cases that were run to their end and were equal.

Rule: the tests are the judgement. Here they are started, watched, and counted.
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

from support.real_clients.client import PACKAGE, install
from support.real_clients.installing import FOLDER, REPOSITORY, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HERE: Final = REPOSITORY / "tests" / "real_clients"
JUDGEMENT: Final = ("test_in_place.py", "test_synthetic.py")
WITHOUT: Final = "not is_refused"
"""What is refused is not for the client to judge."""

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
            what = "same"
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
        told = [f"{self.version}: resumes rotated sessions as before in {equal} of {count} cases."]
        if self.known:
            told.append("It differs, as is known and no reason to worry about this version, in:")
            told += [f"  {case}" for case in self.known]
        if self.different:
            told.append("It DIFFERS in:")
            for case, reason in self.different.items():
                told.append(f"  {case}")
                told += [f"      {line}" for line in reason.splitlines()[:LINES]]
        return told


def in_words(nodeid: str) -> str:
    """Return what a test says of a case: its name and its parameter, without the version."""
    found = re.fullmatch(r".*::test_(\w+)(?:\[[\d.]+-?(.*)\])?", nodeid)
    if found is None:
        return nodeid
    parts = [part for part in found.groups() if part]
    return ": ".join(part.replace("_", " ") for part in parts)


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash is not None else report.longrepr)


def judge(version: str, only: str, say: Callable[[str], object]) -> tuple[Verdict, str | None]:
    """Run the cases; return what came of them, and what kept some from being run."""
    verdict = Verdict(version, say)
    os.environ["SESSROTATE_CLIENT_VERSIONS"] = version
    os.environ["SESSROTATE_REQUIRE_CLIENTS"] = "1"
    arguments = [*(str(HERE / name) for name in JUDGEMENT), "--rootdir", str(REPOSITORY)]
    chosen = f"{WITHOUT} and ({only})" if only else WITHOUT
    arguments += ["-q", "-s", "-m", "clients", "-k", chosen, "-n", "2", "--dist", "worksteal"]
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Check one version; return 0 if rotated sessions are resumed as before, else 1."""
    parser = argparse.ArgumentParser(
        prog="check-client",
        description=(
            f"Installs a version of {PACKAGE} from npm into {FOLDER.name} and lets it judge: does "
            "it resume sessions that were rotated in place as it resumes whole ones? Takes a few "
            "minutes. Nothing leaves this machine but the installation, and your own sessions are "
            "not touched. Ends with 0 if it does, with 1 if not or if that cannot be told."
        ),
    )
    parser.add_argument("version", type=_version, metavar="VERSION", help="such as 2.1.330")
    parser.add_argument("--only", default="", metavar="WORDS", help="only cases named so")
    chosen = parser.parse_args(arguments)

    out = sys.stdout

    def say(text: str) -> None:
        out.write(f"{text}\n")
        out.flush()

    say(f"{chosen.version}: installing it, unless it is there …")
    try:
        install(chosen.version)
    except UnavailableError as error:
        say(f"{chosen.version}: cannot be tested here. {error}")
        return 1
    say(f"{chosen.version}: rotating its sessions, and going on in them …")
    verdict, problem = judge(chosen.version, chosen.only, say)
    if problem is not None:
        say(problem)
        say(f"{chosen.version}: the judgement did not come to its end after {verdict.count} cases.")
        return 1
    for line in verdict.lines():
        say(line)
    return 1 if verdict.different else 0


if __name__ == "__main__":
    sys.exit(main())
