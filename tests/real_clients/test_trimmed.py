"""A session that its own client trims: put together where that kept the old file, or with a gap.

Rule: the client is told to trim by its environment, as the Agent SDK's users do (2.1.287 and
later). What it sends of the file that it left is what it must send of that file once it is rotated.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

from support.processes import idle, needs_proc
from support.real_clients.client import Client, version
from support.real_clients.judge import compare
from support.real_clients.required import cannot_test
from support.real_clients.rotating import rotate, run, stitched
from support.real_clients.terminal import on_terminal
from support.real_clients.writes import difference, recorded, unrecorded

if TYPE_CHECKING:
    from pathlib import Path

    from support.real_clients.mock_api import MockApi

TRIMS: Final = {"CLAUDE_CODE_TRANSCRIPT_LOCAL_GC": "1"}
KEEPS: Final = {"CLAUDE_CODE_TRANSCRIPT_LOCAL_GC": "keep"}

LARGE: Final = "Three. " + "x" * 5_600_000
"""A prompt that makes the file so large that a compaction trims it: from 5 MiB on."""

TWENTY_MIB: Final = [f"{number}. " + "x" * 500_000 for number in range(43)]
"""Prompts after which a client trims without a compaction: larger ones would be compacted first."""


@pytest.mark.parametrize("number", ["2.1.287", "2.1.330", "2.1.332"])
def test_a_rotated_session_that_its_client_trims_goes_on_behind_a_gap(
    tmp_path: Path, api: MockApi, number: str
) -> None:
    client = Client(version(number), tmp_path / "home", api)
    session = client.converse(["One.", "Two."])[0].session
    client.compact(session)
    live = client.session_file(session)
    assert rotate(client, live).code == 0
    client.converse([LARGE, "/compact", "Four."], resume=session, environment=TRIMS)
    assert live.stat().st_size < 1_000_000
    history, request = run(client, "stitch", "--allow-gaps", session), client.resume_request(live)
    assert history.code == 0
    assert "the client cut segment 1 out of its own file" in history.err
    assert "One." in history.out
    assert run(client, "export", session).code == 0
    client.converse(["Five.", "/compact", "Six."], resume=session)
    history, request = run(client, "stitch", "--allow-gaps", session), client.resume_request(live)
    ended = run(client, "rotate", session)
    assert (ended.code, "Moved 2 segments" in ended.out) == (0, True), ended
    assert not compare(client.resume_request(live), request)
    again = run(client, "stitch", "--allow-gaps", session)
    assert (again.code, again.out) == (0, history.out)
    assert run(client, "verify", session).code == 1


@pytest.mark.parametrize("is_rotated", [False, True], ids=["never rotated", "rotated"])
@pytest.mark.parametrize("trims", [1, 3])
def test_what_its_client_kept_is_every_byte_that_it_wrote_and_is_resumed_the_same(
    tmp_path: Path, api: MockApi, trims: int, *, is_rotated: bool
) -> None:
    if (reason := unrecorded()) is not None:
        cannot_test(f"NO BYTE OF A CLIENT WAS RECORDED: {reason}")
    client = Client(version("2.1.332"), tmp_path / "home", api)
    written = recorded(client)
    session = client.converse(["One.", "Two."])[0].session
    live = client.session_file(session)
    if is_rotated:
        client.compact(session)
        assert rotate(client, live).code == 0
    for number in range(trims):
        prompts = [f"{LARGE} {number}", "/compact", f"Four {number}."]
        client.converse(prompts, resume=session, environment=KEEPS)
        assert live.stat().st_size < 1_000_000
    request = client.resume_request(live)
    assert run(client, "doctor").code == 1
    ended = run(client, "rotate", session)
    assert (ended.code, "that Claude Code had trimmed" in ended.out) == (0, True), ended
    history = stitched(client, live)
    assert difference(written.of(live, history), history) is None
    assert not compare(client.resume_request(live), request)
    assert (run(client, "verify", session).code, run(client, "doctor").code) == (0, 0)
    assert live.stat().st_size < 1_000_000


def test_what_its_client_keeps_between_rotations_is_put_together_each_time(
    tmp_path: Path, api: MockApi
) -> None:
    """Before a client keeps a file, ours may have given it a name for that already."""
    client = Client(version("2.1.332"), tmp_path / "home", api)
    session = client.converse(["One.", "Two."])[0].session
    live = client.session_file(session)
    history = b""
    for number in range(3):
        prompts = [f"{LARGE} {number}", "/compact", f"Four {number}."]
        client.converse(prompts, resume=session, environment=KEEPS)
        request = client.resume_request(live)
        ended = run(client, "rotate", session)
        assert ended.code == 0, ended
        assert "that Claude Code had trimmed" in ended.out
        assert not compare(client.resume_request(live), request)
        before, history = history, stitched(client, live)
        assert history.startswith(before)
        assert f"Four {number}.".encode() in history[len(before) :]
        assert (run(client, "verify", session).code, run(client, "doctor").code) == (0, 0)


@needs_proc
@pytest.mark.parametrize("number", ["2.1.287", "2.1.330", "2.1.332"])
def test_what_its_client_would_have_lost_the_hook_keeps_and_it_is_every_byte(
    tmp_path: Path, api: MockApi, number: str
) -> None:
    if (reason := unrecorded()) is not None:
        cannot_test(f"NO BYTE OF A CLIENT WAS RECORDED: {reason}")
    client = Client(version(number), tmp_path / "home", api)
    written = recorded(client)
    assert run(client, "hook", "install").code == 0
    prompts = [
        text
        for turn in range(2)
        for text in (f"{LARGE} {turn}", "/compact", f"Four {turn}.", "/compact", f"Five {turn}.")
    ]
    session = client.converse(["One.", *prompts], environment=TRIMS)[0].session
    idle(client.config)
    live = client.session_file(session)
    ended = run(client, "doctor")
    assert (ended.code, run(client, "verify", session).code) == (0, 0), ended.out[-3000:]
    assert live.stat().st_size < 1_000_000
    history = stitched(client, live)
    assert difference(written.of(live, history), history) is None
    whole = tmp_path / live.name
    whole.write_bytes(written.of(live))
    assert not compare(client.resume_request(live), client.resume_request(whole))
    assert not [*client.config.glob("sessrotate/hook/*"), *client.config.glob("sessrotate/aside")]


def test_a_trim_at_the_compaction_that_it_was_rotated_at_takes_nothing(
    tmp_path: Path, api: MockApi
) -> None:
    client = Client(version("2.1.287"), tmp_path / "home", api)
    session = client.converse(["One.", "Two."])[0].session
    client.compact(session)
    live = client.session_file(session)
    assert rotate(client, live).code == 0
    carried = live.read_bytes().splitlines()[1]
    client.converse(TWENTY_MIB, resume=session, environment=TRIMS)
    assert carried not in live.read_bytes()  # it was trimmed, and not compacted
    assert (run(client, "verify", session).code, run(client, "doctor").code) == (0, 0)
    whole = tmp_path / live.name
    whole.write_bytes(stitched(client, live))
    assert all(f"{number}. xxx".encode() in whole.read_bytes() for number in range(43))
    client.converse(["/compact", "Six."], resume=session)
    history, request = stitched(client, live), client.resume_request(live)
    ended = run(client, "rotate", session)
    assert (ended.code, "Moved 1 segment" in ended.out) == (0, True), ended
    assert stitched(client, live) == history
    assert history.startswith(whole.read_bytes())
    assert not compare(client.resume_request(live), request)


@needs_proc
def test_a_file_of_more_than_a_hundred_megabytes_is_trimmed_and_whole(
    tmp_path: Path, api: MockApi
) -> None:
    client = Client(version("2.1.332"), tmp_path / "home", api)
    one_turn = (f"{LARGE} {{}}", "/compact", "Four {}.")
    prompts = [text.format(turn) for turn in range(20) for text in one_turn]
    session = client.converse(["One.", *prompts])[0].session
    live = client.session_file(session)
    before = live.read_bytes()
    assert len(before) > 100_000_000
    assert run(client, "hook", "install").code == 0
    client.converse(["Two.", "/compact", "Three."], resume=session, environment=TRIMS)
    idle(client.config)
    assert (run(client, "doctor").code, run(client, "verify", session).code) == (0, 0)
    assert live.stat().st_size < 1_000_000
    history = stitched(client, live)
    assert history.startswith(before)
    assert b"Two." in history[len(before) :]
    whole = tmp_path / live.name
    whole.write_bytes(history)
    assert not compare(client.resume_request(live), client.resume_request(whole))


@needs_proc
def test_two_clients_in_one_session_that_both_trim_it_lose_nothing(
    tmp_path: Path, api: MockApi
) -> None:
    if (reason := unrecorded()) is not None:
        cannot_test(f"NO BYTE OF A CLIENT WAS RECORDED: {reason}")
    one, other = (Client(version("2.1.332"), tmp_path / "home", api) for _ in range(2))
    written = [recorded(client, f"trace{number}") for number, client in enumerate((one, other))]
    session = one.converse(["One.", LARGE])[0].session
    live = one.session_file(session)
    assert run(one, "hook", "install").code == 0
    with (
        one.conversation(resume=session, environment=TRIMS) as first,
        other.conversation(resume=session, environment=TRIMS) as second,
    ):
        for turn in range(2):
            for name, conversation in (("a", first), ("b", second)):
                conversation.say(f"{LARGE} {turn}{name}")
            for name, conversation in (("a", first), ("b", second)):
                conversation.say("/compact")
                conversation.say(f"Four {turn}{name}.")
    idle(one.config)
    run(one, "rotate", session)
    assert (run(one, "doctor").code, run(one, "verify", session).code) == (0, 0)
    history = Counter(stitched(one, live).splitlines())
    lines = Counter(line for each in written for line in each.of(live).splitlines())
    assert not lines - history
    assert not history - lines
    assert all(each.trims for each in written)


def test_a_session_that_goes_on_in_another_folder_is_found_by_its_id_and_whole(
    tmp_path: Path, api: MockApi
) -> None:
    client = Client(version("2.1.332"), tmp_path / "home", api)
    session = client.converse(["One.", "/compact", "Two."])[0].session
    live = client.session_file(session)
    assert rotate(client, live).code == 0
    client.converse([LARGE, "/compact", "Four."], resume=session, environment=KEEPS)
    other = client.home / "other"
    other.mkdir()
    with on_terminal(client, "--resume", session) as terminal:
        terminal.say("Five.")
        terminal.change_folder(other)
        terminal.say("Six.")
    moved = live.parent.with_name(live.parent.name.replace("work", "other")) / live.name
    assert (live.exists(), moved.exists()) == (False, True)
    ended = run(client, "rotate", session)
    assert (ended.code, "that Claude Code had trimmed" in ended.out) == (0, True), ended
    history = run(client, "stitch", session).out
    said = ["One.", "Two.", "Three. xxx", "Four.", "Five.", "Six."]
    places = [history.index(f'"{text}') for text in said]
    assert places == sorted(places)
    assert (run(client, "verify", session).code, run(client, "doctor").code) == (0, 0)
