"""A rotation under a client that appends loses, repeats, tears and reorders nothing."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from race.appenders import Appenders, Habits, missing
from sessrotate import in_place, place, state, stitch
from sessrotate.errors import InUseError

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSROTATE = str(Path(sys.executable).parent / "sessrotate")


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    path = tmp_path / "config" / "projects" / "-p" / "session.jsonl"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def rotate(path: Path, wait: float = 1.0) -> bool:
    """Rotate once; tell whether there was something to cut and nobody in the way."""
    done = in_place.rotate_session(
        place.of_live(path), wait, lambda *_: contextlib.nullcontext(lambda _: None), live=True
    )
    if done.refusal is not None and not isinstance(done.refusal, InUseError):
        raise done.refusal
    return done.seconds is not None


def history(path: Path) -> bytes:
    with state.opened(place.of_live(path)) as found:
        return b"".join(bytes(piece) for piece in stitch.history(found))


@pytest.mark.parametrize(
    ("count", "habits", "least"),
    [
        (2, Habits(3), 20),
        (2, Habits(3, same=True), 5),
        (1, Habits(4, pause=0.8), 1),
        pytest.param(6, Habits(30, pause=0.001), 20, marks=pytest.mark.scale),
        pytest.param(2, Habits(30), 100, marks=pytest.mark.scale),
        pytest.param(3, Habits(20, same=True), 20, marks=pytest.mark.scale),
    ],
    ids=str,
)
def test_appenders_lose_nothing(live: Path, count: int, habits: Habits, least: int) -> None:
    appenders = Appenders(live, count, habits)
    rotations = 0
    while appenders.are_at_work():
        rotations += rotate(live)
    wrote = appenders.finished()
    rotate(live)
    assert missing(history(live), wrote, habits) == []
    assert rotations >= least
    # On a machine that is not busy with other tests, the middle wait is some microseconds.
    assert max(did.median for did in wrote.values()) < 0.05
    assert max(did.longest for did in wrote.values()) < 2.0


def test_a_rotator_that_is_killed_at_any_time_holds_nobody_up_and_loses_nothing(
    live: Path,
) -> None:
    habits = Habits(5)
    appenders = Appenders(live, 2, habits)
    delay = 0.15
    while appenders.are_at_work():
        command = [SESSROTATE, "split", "--in-place", "--live", "--wait", "1", str(live)]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as rotator:
            time.sleep(delay)  # nothing to wait for: any moment will do
            rotator.send_signal(signal.SIGKILL)
        delay = 0.15 + (delay + 0.013) % 0.25
    wrote = appenders.finished()
    rotate(live, wait=10)
    assert missing(history(live), wrote, habits) == []
    assert max(did.longest for did in wrote.values()) < 2.0


def test_a_writer_that_holds_the_file_is_refused_and_nothing_is_changed(live: Path) -> None:
    Appenders(live, 1, Habits(0.2)).finished()
    before = live.read_bytes()
    with other_process(live), pytest.raises(InUseError, match="open for writing"):
        in_place_refused(live)
    assert live.read_bytes() == before
    assert not (live.parents[2] / "sessrotate" / "-p" / "session").exists()


@contextlib.contextmanager
def other_process(path: Path) -> Iterator[None]:
    """Have another process hold the file open for writing, as Codex does."""
    code = "import sys; file = open(sys.argv[1], 'ab'); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        yield
        holder.kill()


def in_place_refused(path: Path) -> None:
    done = in_place.rotate_session(
        place.of_live(path), 0.1, lambda *_: contextlib.nullcontext(lambda _: None), live=True
    )
    if done.refusal is not None:
        raise done.refusal
