"""Codex cannot tell a rollout that sessrotate compressed from one that nobody touched.

A session with pictures and compactions is lived on twice at the same place: once as the client left
it, once compressed. Everything that the client then sends, shows and leaves must be equal. Ids that
the session did not have before are new each time, and are left out.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import struct
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pytest

from support.command_line import Ended, piped
from support.real_clients.client import ClientError
from support.real_clients.codex_api import SUMMARY, ResponsesApi
from support.real_clients.codex_app_server import KINDS, AppServer
from support.real_clients.codex_client import WINDOW, Codex, at_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Step = Callable[[Codex], Any]

VERSIONS: Final = ("0.142.5", "0.150.0", "0.169.0", "0.171.0")
WANTED: Final = tuple(os.environ.get("SESSROTATE_CODEX_VERSIONS", "").split()) or VERSIONS
ROLLOUTS: Final = "*sessions/**/rollout-*"
RESUMES: Final = 200
LAST_USE: Final = time.time() - 2 * 86_400
"""A client that holds no lock (before 0.147) may still write to what was used within a day."""

SIDE: Final = 600
"""Pixels; of noise, so that only finding it again makes the second copy small: 1.4 MB in base64."""

_ID: Final = re.compile(
    r"(?:rollout-[\dT-]{20})?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![0-9a-f])[0-9a-f]{16}"
)
_UNLIKE: Final = ("client_metadata", "createdAt", "updatedAt", "recencyAt", "startedAt")


def compress(codex: Codex, session: str, command: str = "tidy") -> Ended:
    """Have sessrotate compress the session's rollout, or make it plain again: `restore`."""
    home = {"CODEX_HOME": codex.config, "CLAUDE_CONFIG_DIR": codex.home / "nobody"}
    home |= {"HOME": codex.home / "user"}
    env = {name: str(path) for name, path in home.items()}
    return piped(command, session, "--yes", env=env)


def picture() -> bytes:
    """Return a PNG of noise."""
    rows = b"".join(b"\0" + random.Random(row).randbytes(3 * SIDE) for row in range(SIDE))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    parts = [b"IHDR" + head, b"IDAT" + zlib.compress(rows, 0), b"IEND"]
    chunks = [struct.pack(">I", len(p) - 4) + p + struct.pack(">I", zlib.crc32(p)) for p in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.fixture(scope="module")
def api() -> Iterator[ResponsesApi]:
    with ResponsesApi() as running:
        yield running


@pytest.fixture(scope="module")
def lived(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, api: ResponsesApi
) -> Codex:
    """Return a client with a session of seven turns, two pictures and two compactions."""
    codex = at_home(request.param, tmp_path_factory.mktemp("codex") / "home", api)
    drawn = codex.home / "tmp" / "noise.png"
    drawn.write_bytes(picture())
    codex.prompt("one [[run seq 1 5]]", "-i", str(drawn))
    for text in ("two", f"three [[usage {WINDOW + 9_000}]]", "four [[run echo four]]"):
        codex.prompt(text, resume=codex.session)
    codex.prompt(f"five [[usage {WINDOW + 9_000}]]", "-i", str(drawn), resume=codex.session)
    for text in ("six [[run echo six]]", "seven"):
        codex.prompt(text, resume=codex.session)
    data = codex.path.read_bytes()
    assert data.count(b"data:image/png;base64,") >= 2
    assert data.count(b'"type":"compacted"') == 2
    os.utime(codex.path, times=(LAST_USE, LAST_USE))
    shutil.copytree(codex.home, saved(codex), symlinks=True)
    return codex


def saved(codex: Codex) -> Path:
    return codex.home.with_name("saved")


def again(codex: Codex) -> None:
    """Put the session back as its client left it, with its times and the databases' paths."""
    shutil.rmtree(codex.home)
    shutil.copytree(saved(codex), codex.home, symlinks=True)


# ── what the client sends, shows and leaves ──────────────────────────────────────────────────


def forms(codex: Codex) -> list[str]:
    """Return which forms of its rollout are there, and where."""
    paths = sorted(path.relative_to(codex.config) for path in codex.config.glob(ROLLOUTS))
    return [f"{path.parts[0]} {''.join(path.suffixes[-2:])}" for path in paths]


def turns(server: AppServer, session: str) -> list[Any]:
    listed = server.call(
        "thread/turns/list", threadId=session, limit=50, itemsView="full", sortDirection="asc"
    )
    found: list[Any] = listed["data"]
    assert len(found) == 7
    return found


def shown(codex: Codex) -> Any:
    """Return all screens of a session that is not open; they leave it as it is."""
    session = codex.session
    is_before = forms(codex)
    with AppServer(codex) as server:
        listed = server.call("thread/list", limit=20, sourceKinds=KINDS)["data"]
        assert [each["id"] for each in listed] == [session]
        read = server.call("thread/read", threadId=session, includeTurns=True)
        found = server.call("thread/search", searchTerm="seven", limit=5, sourceKinds=KINDS)
        assert len(found["data"]) == 1
        everything = [listed, read, found, turns(server, session)]
    assert forms(codex) == is_before
    return [json.dumps(each) for each in everything]  # as text: no time is left out of these


def resumed(codex: Codex) -> Any:
    session = codex.session
    bodies = [codex.prompt(text, resume=session) for text in ("eight", "nine")]
    bodies.append(codex.prompt("ten", resume="--last"))
    assert all(SUMMARY in json.dumps(body) for (body,) in bodies)
    return [bodies, forms(codex)]


def forked(codex: Codex) -> Any:
    """Return what forks at a turn send, from before, between and after the compactions."""
    session = codex.session
    sent = []
    with AppServer(codex) as server:
        ids = [turn["id"] for turn in turns(server, session)]
        for last in (ids[0], ids[3], ids[6]):
            fork = server.call("thread/fork", threadId=session, lastTurnId=last)
            sent.append([fork, server.turn(fork["thread"]["id"], "eight")])
    return [sent, len(forms(codex))]


def archived(codex: Codex) -> Any:
    session = codex.session
    with AppServer(codex) as server:
        told = []
        for method in ("thread/archive", "thread/unarchive", "thread/archive"):
            told += [server.call(method, threadId=session)]
            for is_archived in (False, True):
                threads = server.call("thread/list", archived=is_archived, sourceKinds=KINDS)
                told.append([(each["id"], each["preview"]) for each in threads["data"]])
            told.append([each.partition(" ")[0] for each in forms(codex)])
        told += [server.call("thread/unarchive", threadId=session), turns(server, session)]
    return [told, codex.prompt("eight", resume=session)]


def deleted(codex: Codex) -> Any:
    session = codex.session
    codex.run("delete", session, "--force")
    assert forms(codex) == []
    with AppServer(codex) as server:
        return server.call("thread/list", sourceKinds=KINDS)["data"]


def without_databases(codex: Codex) -> Any:
    session = codex.session
    for database in codex.config.glob("*.sqlite*"):
        database.unlink()
    with AppServer(codex) as server:
        listed = server.call("thread/list", sourceKinds=KINDS)["data"]
        assert [each["id"] for each in listed] == [session]
        told = [listed, server.call("thread/resume", threadId=session)]
    return [told, codex.prompt("eight", resume=session)]


STEPS: Final[dict[str, Step]] = {
    step.__name__: step for step in (shown, resumed, forked, archived, deleted, without_databases)
}


def told(codex: Codex, step: Step) -> str:
    """Return what a step gave, without the ids that the session did not have before."""
    (rollout,) = (saved(codex) / "config").glob(ROLLOUTS)
    known = set(_ID.findall(f"{rollout.name} {rollout.read_text()}"))
    text = json.dumps(_like(step(codex)), indent=0)
    return _ID.sub(lambda match: match[0] if match[0] in known else "new", text)


def _like(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _like(each) for name, each in value.items() if name not in _UNLIKE}
    return [_like(each) for each in value] if isinstance(value, list) else value


def difference(one: str, other: str) -> str:
    """Return the first place where two texts differ, nothing if they do not."""
    pairs = zip(one, other, strict=False)
    at = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    return "" if one == other else f"{one[at - 200 : at + 200]!r} != {other[at - 200 : at + 200]!r}"


# ── tests ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lived", WANTED, indirect=True)
@pytest.mark.parametrize("step", STEPS)
def test_the_client_cannot_tell_a_compressed_session_from_its_twin(lived: Codex, step: str) -> None:
    again(lived)
    twin = told(lived, STEPS[step])
    again(lived)
    assert compress(lived, lived.session).code == 0
    assert forms(lived) == ["sessions .jsonl.zst"]
    assert difference(told(lived, STEPS[step]), twin) == ""


@pytest.mark.parametrize("lived", WANTED, indirect=True)
def test_a_restored_session_is_the_file_that_its_client_left(lived: Codex) -> None:
    again(lived)
    path, data, status = lived.path, lived.path.read_bytes(), lived.path.stat()
    for _ in range(2):
        assert compress(lived, lived.session).code == 0
        assert forms(lived) == ["sessions .jsonl.zst"]
        ended = compress(lived, lived.session, "restore")
        assert ended.code == 0, ended.err
        now = path.stat()
        assert path.read_bytes() == data
        assert (now.st_mtime_ns, now.st_mode) == (status.st_mtime_ns, status.st_mode)
        assert forms(lived) == ["sessions .jsonl"]


@pytest.mark.parametrize("lived", [each for each in WANTED if each >= "0.169"], indirect=True)
def test_nothing_is_lost_of_many_resumes_beside_compressions_without_a_pause(
    lived: Codex,
) -> None:
    again(lived)
    session = lived.session
    with ThreadPoolExecutor(1) as beside:
        living, ended = beside.submit(lived_on, lived, session), list[Ended]()
        while not living.done():
            ended.append(compress(lived, session))
    refused = living.result()
    done = sum(each.out.count("Compressed 1 session") for each in ended)
    busy = sum(each.code == 75 for each in ended)
    figures = (
        f"{RESUMES} resumes, {refused} refused; {done} of {len(ended)} compressed, {busy} busy"
    )
    assert done > RESUMES // 10, f"not raced: {figures}"
    lived.prompt("end", resume=session)
    rows = [json.loads(line) for line in lived.path.read_bytes().splitlines()]
    assert [row["ordinal"] for row in rows] == list(range(len(rows)))
    items, page = list[Any](), dict[str, Any]()
    with AppServer(lived) as server:
        while not page or page["nextCursor"]:
            more = {"cursor": page["nextCursor"]} if page else {}
            page = server.call("thread/turns/list", threadId=session, sortDirection="asc", **more)
            items += [item for turn in page["data"] for item in turn["items"]]
    parts = [part for item in items if item["type"] == "userMessage" for part in item["content"]]
    asked = [part["text"] for part in parts if part["type"] == "text"]
    assert asked[7:] == [*map(str, range(RESUMES)), "end"]
    assert [each.err for each in ended if each.code not in {0, 75}] == []


def lived_on(codex: Codex, session: str) -> int:
    """Resume a session many times; return how often that was refused, as somebody had it open.

    Each request must continue the one before.
    """
    before = list[Any]()
    number = refused = 0
    while number < RESUMES:
        try:
            (body,) = codex.prompt(str(number), resume=session)
        except ClientError as error:
            refused += 1
            if "already has an active writer" not in str(error) or refused > RESUMES:
                raise
            continue
        number += 1
        assert body["input"][: len(before)] == before, number
        before = body["input"]
    return refused
