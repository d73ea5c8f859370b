"""What is promised of every client whose sessions are rotated in place, by what its user sees.

Two clients are asked the same: Claude Code, and one that is made up and has a format, folders and
rules of its own. No file, state or step of ours is named here: only the session's file, where its
client looks for it, and what commands say.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from sessrotate import clients
from support import command_line, homes, made_up
from support.command_line import ID, called
from support.crash.changes import killed
from support.made_up import client as made_up_client
from support.tiers import in_gate


@dataclass(frozen=True)
class Client:
    """A client of the suite: `row` and `cut` make a line of a number, `needed` what a resume sends.

    A compaction needs row 0 and, if it is not the first, a row of the segment before.
    """

    name: str
    folder: str
    variable: str
    row: Callable[[int], bytes]
    cut: Callable[[int, tuple[int, ...]], bytes]

    def live(self, home: Path) -> Path:
        return home / self.folder / "room" / f"{ID}.jsonl"

    def session(self, cuts: int, since: int = 0) -> bytes:
        """Return so many segments' lines, numbered from `since` on."""
        rows = [self.row(number) for number in range(since, since + ROWS * cuts + 2)]
        for cut in range(cuts):
            at = ROWS * (cut + 1) - 1
            rows[at] = self.cut(since + at, (0, since + at - 2))
        return b"".join(rows)


ROWS: Final = 6


def _made_up_row(number: int) -> bytes:
    at = f"2026-01-01T00:00:{number % 60:02}Z"
    return _line({"is": "say", "n": number, "at": at, "text": f"row {number} " + "x" * 400})


def _made_up_cut(number: int, needs: tuple[int, ...]) -> bytes:
    at = f"2026-01-01T00:00:{number % 60:02}Z"
    return _line({"is": "cut", "n": number, "at": at, "needs": needs})


def _line(row: dict[str, object]) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


CLIENTS: Final = (
    Client(
        "claude",
        "projects",
        "CLAUDE_CONFIG_DIR",
        command_line.row,
        lambda number, _needs: command_line.boundary(number),
    ),
    Client("made_up", "rooms", "MADE_UP_HOME", _made_up_row, _made_up_cut),
)

COMMANDS: Final = ("rotate", "restore", "archive")

every_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.name)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Client) -> Path:
    """Return the folder of the one client that there is."""
    with_client(monkeypatch, client, tmp_path)
    return tmp_path


def with_client(patch: pytest.MonkeyPatch, client: Client, home: Path) -> None:
    if client.name != "claude":
        patch.setitem(sys.modules, f"{clients.__name__}.{client.name}", made_up)
    patch.setattr(clients, "CLIENTS", (client.name,))
    for name, folder in homes.OWN_FOLDERS.items():
        patch.setenv(name, str(home / folder))
    patch.setenv("HOME", str(home))
    patch.setenv(client.variable, str(home))


def written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def run(*arguments: str | Path) -> str:
    """Run a command that has to end well; return what it says."""
    ended = called(*arguments)
    assert ended.code == 0, ended.err
    return ended.out


def history() -> bytes:
    """Return all of the session, as its user gets it."""
    return run("stitch", ID).encode()


def request(client: Client, live: Path) -> list[bytes]:
    """Return the lines that a resume sends: what is needed from before, and all behind the cut."""
    lines = live.read_bytes().splitlines(keepends=True)
    if client.name == "claude":  # what real clients send, they are asked elsewhere
        at = max(at for at, line in enumerate(lines) if b"compact_boundary" in line)
        return lines[at:]
    rows = [(json.loads(line), line) for line in lines]
    at = max(at for at, (row, _) in enumerate(rows) if row.get("is") == "cut")
    needs = rows[at][0]["needs"]
    needed = {row["n"]: line for row, line in rows[:at] if row.get("n") in needs}
    assert sorted(needed) == sorted(needs)
    return [*(needed[number] for number in sorted(needed)), *(line for _, line in rows[at:])]


# ── a life ───────────────────────────────────────────────────────────────────────────────────


@every_client
def test_a_session_is_found_and_planned_and_nothing_changes(client: Client, home: Path) -> None:
    data = client.session(3)
    live = written(client.live(home), data)
    assert ID[:8] in run("list")
    assert run("rotate", ID, "-n")
    assert run("verify", ID)
    assert history() == live.read_bytes() == data


@every_client
def test_a_rotation_leaves_what_a_resume_needs_and_loses_nothing(
    client: Client, home: Path
) -> None:
    data = client.session(3)
    live = written(client.live(home), data)
    sent = request(client, live)
    run("rotate", ID)
    assert live.stat().st_size < len(data) / 2
    assert request(client, live) == sent
    assert history() == data
    more = client.session(2, since=100)
    with live.open("ab") as file:
        file.write(more)
    sent = request(client, live)
    run("rotate", ID)
    assert request(client, live) == sent
    assert history() == data + more
    assert run("verify", ID)
    assert run("read", ID, "--history", "--format", "jsonl").encode() == data + more


@every_client
def test_what_was_rotated_comes_back_byte_for_byte(client: Client, home: Path) -> None:
    data = client.session(4)
    live = written(client.live(home), data)
    run("rotate", ID)
    run("restore", ID)
    assert live.read_bytes() == data
    assert history() == data
    run("rotate", ID)
    assert live.stat().st_size < len(data) / 2
    assert history() == data


@every_client
def test_a_pruned_segment_is_a_gap_until_it_comes_back(client: Client, home: Path) -> None:
    data = client.session(4)
    written(client.live(home), data)
    run("rotate", ID)
    run("prune", ID, "--keep-last", "1", "--yes")
    assert called("stitch", ID).code != 0
    part = run("stitch", ID, "--allow-gaps").encode()
    assert data.endswith(part)
    assert len(part) < len(data)
    run("restore", ID)
    assert history() == data


@every_client
def test_a_session_that_is_put_away_comes_back(client: Client, home: Path) -> None:
    data = client.session(3)
    live = written(client.live(home), data)
    run("rotate", ID)
    left = live.read_bytes()
    run("archive", ID, "--yes")
    assert not live.exists()
    assert history() == data
    run("restore", ID)
    assert live.read_bytes() in (left, data)
    assert history() == data


@every_client
def test_who_has_the_file_open_loses_no_line(client: Client, home: Path) -> None:
    data = client.session(3)
    live = written(client.live(home), data)
    late = client.row(500)
    with live.open("ab") as file:
        called("rotate", ID, "--live", "--wait", "0")
        file.write(late)
    called("rotate", ID)
    assert history() == data + late


# ── a database of the client's own ───────────────────────────────────────────────────────────


def test_a_rotation_waits_for_a_database_that_cannot_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, data = CLIENTS[1], CLIENTS[1].session(3)
    with_client(monkeypatch, client, tmp_path)
    live, lock = written(client.live(tmp_path), data), written(tmp_path / "database.lock", b"")
    for words in (("rotate", ID, "-n"), ("rotate", ID)):
        ended = called(*words)
        assert (ended.code, "Its database is locked" in ended.out + ended.err) == (77, True)
        assert live.read_bytes() == data
    lock.unlink()
    run("rotate", ID)
    assert is_followed(client, tmp_path)


def is_followed(client: Client, home: Path) -> bool:
    """Tell whether the client's database, if it has one, says what its live file is."""
    if client is CLIENTS[0]:
        return True
    live = client.live(home)
    size = live.stat().st_size if live.exists() else None
    return bool(json.loads((home / "database").read_text())[ID] == size)


# ── a kill at every step ─────────────────────────────────────────────────────────────────────


def moments(
    client: Client, before: Callable[[Path], None], command: tuple[str, ...]
) -> Iterator[Path]:
    """Yield the home that a kill of the command leaves, for each of its changes to the disk."""
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        first, home = Path(name, "first"), Path(name, "home")
        first.mkdir()
        with_client(patch, client, home)
        home.mkdir()
        before(home)
        shutil.rmtree(first)
        home.rename(first)

        @contextmanager
        def laid_out() -> Iterator[Path]:
            shutil.copytree(first, home, symlinks=True)
            yield home
            shutil.rmtree(home)

        opened: Callable[[], AbstractContextManager[Path]] = laid_out
        yield from killed(opened, lambda _home: called(*command))


@pytest.mark.parametrize(
    "case",
    in_gate([*product(CLIENTS, COMMANDS)], [(CLIENTS[1], "rotate")], "scale"),
    ids=lambda case: f"{case[0].name}-{case[1]}",
)
def test_a_kill_at_any_step_loses_nothing_and_the_next_run_ends_it(
    case: tuple[Client, str],
) -> None:
    client, command = case
    data = client.session(1)

    def before(home: Path) -> None:
        written(client.live(home), data)
        if client is not CLIENTS[0]:
            made_up_client.follow(client.live(home))
        if command != "rotate":
            run("rotate", ID)

    words = {"rotate": ("rotate", ID), "restore": ("restore", ID)}.get(
        command, ("archive", ID, "--yes")
    )
    count = behind = 0
    for home in moments(client, before, words):
        count += 1
        live = client.live(home)
        assert history() == data
        if command != "archive":
            assert live.exists()
            behind += not is_followed(client, home)
        called(*words)
        assert history() == data
        assert command == "archive" or is_followed(client, home)
        run("restore", ID)
        assert live.read_bytes() == data
    assert count > 5
    assert behind <= 3  # the exchange itself, and what it syncs before it returns
