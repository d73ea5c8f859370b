"""What makes no sense is exit code 2 and a word about it, whatever the command; nothing changes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

import pytest

from support import command_line
from support.command_line import assert_one_sentence, called, raw_controls
from support.homes import snapshot

if TYPE_CHECKING:
    from support.command_line import Ended
    from support.homes import Home

DATA: Final = command_line.session(boundaries=4)

WRONG: Final = """
split
split a b
split LIVE --nonsense
split LIVE --layout spiral
split LIVE --out
split LIVE --dry-run=yes
split LIVE --in-place --out x
split LIVE --in-place --layout linked
split LIVE --unsafe-adopt
split LIVE --unsafe-adopt --dry-run
split LIVE --in-place --wait -1
split LIVE --in-place --wait soon
split --in-place
split --all
split --all --in-place x
split --min-size 1M x
split --all --in-place --min-size 1X
split --all --in-place --min-size -5
split --all --in-place --min-size ''
split --all --in-place --min-size 1.5.2M
stitch
stitch x y
stitch --nonsense x
stitch x -o
verify
verify --nonsense x
verify --all x
read
read --nonsense x
read x --format xml
read x --segment -1
read x y
export
export --format yaml
export nowhere
prune ID --keep-last -1 --yes
prune ID --max-age 30 --yes
prune ID --max-size x --yes
prune ID --kep-last 1 --yes
pin ID 9
pin ID -1
pin ID x
pin ID 1 --note LONG
archive
archive ID --older-than 7d
archive --older-than soon
restore
restore --last-run ID
hook install --min-gain=many
hook install --min-gain=
hook install --min-gain=-1
schedule show --every yearly
"""

IN_ONE_SENTENCE: Final = [
    ("prune ID", "No rule"),
    ("prune", "Name a SESSION or pass --all: `sessrotate list` shows the sessions."),
    ("prune ID --all --keep-last 2", "Name a SESSION or pass --all, but not both."),
    ("prune nosuch --keep-last 2", "no file or session"),
    ("list --client cluade", "cluade"),
    ("list --client cluade", "claude"),
    ("read LIVE --since yesterday", "yesterday"),
    ("read LIVE --until 3x", "3x"),
    ("read LIVE --since 999999d", "999999d"),
    ("read LIVE --grep '('", "( is not a valid regular expression"),
    ("read LIVE --include tool", "choose from sidechains, meta, tools,"),
    ("read LIVE --include tools --brief", "leave out --include"),
    ("read LIVE --include tools --format jsonl", "leave out --include"),
    ("read LIVE --history --segment 0", "leave out --history or --segment"),
    ("read ID --at 7:0", "There is no segment 7"),
    ("read ID --at 0:99999999", "There is no record at 0:99999999"),
    ("read ID --at x", "is not a place"),
    ("read ID --at 1", "is not a place"),
    ("read ID --at=-1:0", "is not a place"),
    ("read ID --at 0:0:0:0", "is not a place"),
    ("read ID --at 1:99999999999999999", "is not a place"),
    ("read ID --at 0:0 --history", "leave out --history and --segment"),
    ("read ID --at 0:0 --segment 1", "leave out --history and --segment"),
    ("search '('", "( is not a valid regular expression"),
    ("search '[a'", "[a is not a valid regular expression"),
    ("search '*x'", "*x is not a valid regular expression"),
    ("search 'a{2,1}'", "a{2,1} is not a valid regular expression"),
]


@pytest.fixture
def home(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Give one whose session is rotated, and could be again, from a folder within it."""
    monkeypatch.chdir(home.config.parent)
    home.rotate()
    home.append(command_line.boundary(90) + command_line.row(91))
    return home


def refused(home: Home, line: str) -> Ended:
    """Return how a command line ends, which has to change nothing."""
    meant = {"LIVE": str(home.live), "ID": command_line.ID, "LONG": "x" * 401}
    before = snapshot(home.config.parent)
    ended = called(*(meant.get(word, word) for word in shlex.split(line)))
    assert snapshot(home.config.parent) == before
    return ended


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_what_makes_no_sense_is_wrong_usage_and_changes_nothing(home: Home, line: str) -> None:
    ended = refused(home, line)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err
    assert "Traceback" not in ended.err
    assert raw_controls(ended.err) == set()


@pytest.mark.parametrize(("line", "told"), IN_ONE_SENTENCE)
def test_what_commands_find_out_themselves_is_one_sentence(
    home: Home, line: str, told: str
) -> None:
    ended = refused(home, line)
    assert_one_sentence(ended, 2)
    assert told in ended.err
