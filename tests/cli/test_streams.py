"""What becomes of results and messages where a stream is slow, full, closed or a terminal.

Real processes: it is the same for all commands.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from support.command_line import (
    COMMAND,
    ID,
    assert_one_sentence,
    called,
    has_colour,
    names_in,
    on_terminal,
    patched,
    piped,
    row,
    session,
    write,
)

if TYPE_CHECKING:
    from support.command_line import Ended

SHELL: Final = ("/bin/sh",)


class Place:
    """A folder with a session, a set of its segments, and names that nothing has yet."""

    def __init__(self, folder: Path, data: bytes) -> None:
        self.folder = folder
        self.live = write(folder / "projects" / "-srv" / f"{ID}.jsonl", data)
        assert called("split", self.live, "--out", folder / "set").code == 0

    def words(self, line: str) -> list[str]:
        """Return the words of a command line."""
        meant = {
            "LIVE": str(self.live),
            "SET": str(self.folder / "set"),
            "OUT": str(self.folder / f"out-{len(names_in(self.folder))}"),
        }
        return [meant.get(word, word) for word in shlex.split(line)]

    def in_a_shell(self, script: str, line: str) -> Ended:
        """Run a command line as `"$0" "$@"` of a script."""
        env = {"CLAUDE_CONFIG_DIR": str(self.folder)}
        words = ("-c", script, COMMAND, *self.words(line))
        return piped(*words, cwd=self.folder, env=env, program=SHELL)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, session())


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Give one of whose session every command has more to say than a pipe holds."""
    made = Place(tmp_path_factory.mktemp("large"), session(boundaries=1500, rows=1))
    for number in range(300):
        write(made.live.with_name(f"{number:04}{ID[4:]}.jsonl"), row(number))
    return made


READ_EARLY: Final = (
    "split LIVE -n",
    "split LIVE -n --json",
    "split LIVE -n --quiet",
    "stitch LIVE",
    "stitch SET",
    "stitch LIVE -o /dev/stdout",
    "stitch SET -o /dev/stdout",
    "verify SET --json",
    "read LIVE --history",
    "read LIVE --history --grep row",
    "read LIVE --history --format jsonl",
    "read LIVE --history --format markdown",
    "export LIVE",
    "search row",
    "list",
    "list --json",
)


@pytest.mark.parametrize("reader", ["true", "head -c 1"])
@pytest.mark.parametrize("line", READ_EARLY)
def test_a_reader_that_goes_ends_it_quietly(large: Place, line: str, reader: str) -> None:
    ended = large.in_a_shell(f'("$0" "$@"; echo "$?" >&2) | {reader}', line)
    assert ended.err == "0\n"
    assert len(ended.out) == (reader != "true")


@pytest.mark.parametrize(
    "line", ["split LIVE -n --json", "split LIVE -n --quiet", "verify SET --json"]
)
def test_a_reader_that_is_gone_before_a_little_is_written_ends_it_quietly(
    place: Place, line: str
) -> None:
    assert place.in_a_shell('("$0" "$@"; echo "$?" >&2) | true', line).err == "0\n"


@pytest.mark.parametrize(
    "line",
    [
        "split LIVE --dry-run",
        "split LIVE --dry-run --json",
        "split LIVE --out OUT",
        "split LIVE --out OUT --json",
        "stitch SET",
        "verify SET --json",
    ],
)
def test_a_full_device_for_the_result_is_one_sentence(place: Place, line: str) -> None:
    ended = place.in_a_shell('"$0" "$@" > /dev/full', line)
    assert_one_sentence(ended, 74)
    assert "standard output" in ended.err


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
@pytest.mark.parametrize("line", ["split LIVE -n", "stitch SET", "stitch SET -o OUT"])
def test_closed_streams_end_without_a_traceback(place: Place, line: str, closed: str) -> None:
    ended = place.in_a_shell(f'"$0" "$@" {closed}', line)
    is_lost = ">&-" in closed.split() and "OUT" not in line
    assert ended.code == (74 if is_lost else 0)
    assert ("standard output" in ended.err) == (is_lost and "2>&-" not in closed)
    assert "Traceback" not in ended.err
    assert "Exception ignored" not in ended.err


IMPATIENT: Final = patched("import sessrotate.cli.streams as s; s.PATIENCE = 0.0")


@pytest.mark.parametrize(
    ("line", "phases"),
    [
        ("split LIVE --out OUT", ["Reading", "Writing"]),
        ("stitch SET -o OUT", ["Stitching"]),
        ("verify SET", ["Verifying"]),
        ("verify SET --json", ["Verifying"]),
    ],
)
def test_a_bar_appears_on_a_terminal_and_only_there(
    place: Place, line: str, phases: list[str]
) -> None:
    shown = on_terminal(*place.words(line), program=IMPATIENT)
    assert shown.code == 0
    assert [phase in shown.err for phase in phases] == [True] * len(phases)
    assert not any(phase in shown.out for phase in phases)
    plain = on_terminal(*place.words(line), program=IMPATIENT, env={"NO_COLOR": "1"})
    assert phases[-1] in plain.err
    assert not has_colour(plain.err)
    for option in ("--quiet", "-q"):
        quiet = on_terminal(*place.words(line), option, program=IMPATIENT)
        assert (quiet.code, quiet.err) == (0, "")
    hidden = piped(*place.words(line), program=IMPATIENT)
    assert (hidden.code, hidden.err) == (0, "")


# ── what is no session ───────────────────────────────────────────────────────────────────────

NO_SOURCES: Final = {
    "none.jsonl": 2,
    "none/none.jsonl": 2,
    "folder": 65,
    "pipe": 65,
    "text": 65,
    "/dev/zero": 65,
}


@pytest.mark.parametrize("name", NO_SOURCES)
@pytest.mark.parametrize(
    "line",
    ["split", "stitch", "stitch -o OUT", "verify", "verify --json", "read", "report", "export"],
)
def test_what_is_no_source_is_refused_without_being_waited_for(
    tmp_path: Path, line: str, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path / "text", b"no session at all\n" * 99)
    before = names_in(tmp_path)
    command, *options = line.replace("OUT", str(tmp_path / "out")).split()
    assert_one_sentence(called(command, tmp_path / name, *options), NO_SOURCES[name])
    assert names_in(tmp_path) == before
