"""`split --in-place` as people and programs meet it: the plan, the deed, and every way to stop."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import pytest

from support import command_line, homes
from support.command_line import ID, assert_one_sentence, boundary, called, row, write
from support.crash.changes import Faults, Killed
from support.homes import Home, snapshot

SECRET: Final = "a sentence of the conversation"
MODE: Final = b'{"type":"mode","sessionId":"s","mode":"default","note":"%s"}\n' % SECRET.encode()
DATA: Final = MODE + command_line.session(boundaries=2) + row(50, note=SECRET)

PLAN: Final = (
    "session",
    "client",
    "source",
    "segments",
    "opaque_lines",
    "archived_segments",
    "live",
)


def split(home: Home, *options: str) -> command_line.Ended:
    return called("split", "--in-place", "--wait", "0.2", home.live, *options)


def test_a_dry_run_changes_nothing_and_says_what_the_run_does(home: Home) -> None:
    before = snapshot(home.config)
    told = split(home, "--dry-run", "--json")
    assert told.code == 0
    assert snapshot(home.config) == before
    # Not even a lock is taken.
    assert not (home.config / "sessrotate").exists()
    done = split(home, "--json")
    assert done.code == 0
    planned, document = told.document(), done.document()
    assert [planned[key] for key in PLAN] == [document[key] for key in PLAN]
    assert (planned["dry_run"], document["dry_run"]) == (True, False)
    assert set(document) - set(planned) == {"swap_seconds", "pending"}


def test_json_says_where_the_cut_is_and_what_it_saves(home: Home) -> None:
    document = split(home, "--json").document()
    parts = command_line.segments_of(DATA)
    live = document["live"]
    wanted = {
        "index": 2,
        "cut": len(b"".join(parts[:2])),
        "bytes_before": len(DATA),
        "bytes_after": home.live.stat().st_size,
        "carried_bytes": len(b"".join(DATA.splitlines(keepends=True)[:2])),
        "carried_lines": 2,
    }
    assert [entry["reason"].partition(" ")[0] for entry in live["carried"]] == ["a", "the"]
    assert {key: live[key] for key in wanted} == wanted
    assert "refused" not in document
    assert document["session"] == ID
    assert document["source"] == {"path": str(home.live), "bytes": len(DATA)}
    assert [entry["bytes"] for entry in document["segments"]] == [len(part) for part in parts]
    assert [entry["file"] for entry in document["segments"]] == [
        f"{ID}.jsonl.zst",
        f"{ID}.1.jsonl.zst",
        f"{ID}.jsonl",
    ]


def test_offsets_go_on_where_the_archive_ends(home: Home) -> None:
    split(home)
    more = boundary(80) + row(81)
    home.append(more)
    document = split(home, "--json").document()
    assert document["archived_segments"] == 2
    assert [entry["index"] for entry in document["segments"]] == [2, 3]
    assert document["segments"][0]["start"] == len(b"".join(command_line.segments_of(DATA)[:2]))
    assert document["segments"][-1]["end"] == len(DATA + more)


def test_a_dry_run_shows_each_segment_what_is_carried_and_what_it_takes(home: Home) -> None:
    told = split(home, "--dry-run")
    assert told.code == 0
    assert told.err == ""
    for words in (
        "Would cut at byte",
        "2 archived lines",
        "a line from the beginning",
        "latest value of each setting",
        "free space",
        "This takes about",
    ):
        assert words in told.out
    done = split(home)
    assert "Moved 2 segments" in done.out
    assert "latest value of each setting" in done.out


def test_nothing_to_cut_is_no_failure(home: Home) -> None:
    split(home)
    for options in ((), ("--dry-run",)):
        told = split(home, *options)
        assert told.code == 0
        assert "Nothing to cut" in told.out
        assert "since the last rotation" in told.out
    document = split(home, "--json").document()
    assert (document["live"], document["swap_seconds"]) == (None, None)
    home.live.write_bytes(row(1))
    (home.archive / "manifest.json").unlink()
    for file in home.archive.iterdir():
        file.unlink()
    assert "has not been compacted yet" in split(home).out


def test_a_refusal_tells_programs_the_plan_and_why(home: Home) -> None:
    (home.config.parent / "other").hardlink_to(home.live)
    before = snapshot(home.config)
    for options in (("--dry-run",), ()):
        told = split(home, "--json", *options)
        assert told.code == 77
        document = told.document()
        assert len(document["refused"]) == 1
        assert "hard link" in document["refused"][0]
        assert document["live"]["bytes_before"] == len(DATA)
    assert_one_sentence(split(home), 77)
    told = split(home, "--dry-run")
    assert told.code == 77
    assert "Would" not in told.out
    assert "Takes" not in told.out
    assert snapshot(home.config) == before


def test_a_running_client_is_told_by_a_dry_run_too(home: Home) -> None:
    told = {"sessionId": ID, "startedAt": None}
    write(home.config / "sessions" / f"{os.getpid()}.json", json.dumps(told).encode())
    for options in ((), ("--dry-run", "--json"), ("--json",)):
        ended = split(home, *options)
        assert ended.code == 75
        assert str(os.getpid()) in ended.err
        if options:
            assert str(os.getpid()) in ended.document()["refused"][0]


def test_a_session_is_found_by_the_beginning_of_its_id(home: Home) -> None:
    assert called("split", "--in-place", ID[:6]).code == 0
    assert home.stitched() == DATA


def test_a_damaged_live_file_can_be_adopted_and_the_message_says_so(home: Home) -> None:
    split(home)
    home.live.write_bytes(row(79) + boundary(80) + row(81))
    ended = split(home)
    assert ended.code == 77
    assert "--unsafe-adopt" in ended.err
    assert split(home, "--unsafe-adopt").code == 0
    assert home.stitched() == row(79) + boundary(80) + row(81)


def test_what_a_crash_left_is_mentioned_and_dealt_with(home: Home) -> None:
    with pytest.MonkeyPatch.context() as patch:
        crash = Faults(1)
        patch.setattr("sessrotate.in_place.seal.finish", lambda *_: crash.met())
        with pytest.raises(Killed):
            home.rotate()
    told = split(home, "--dry-run")
    assert "A rotation was interrupted: the next run finishes it." in told.out
    assert home.pack.exists()
    done = split(home)
    finished = "Finished a rotation that was interrupted. On disk, that freed 8.0 KiB."
    assert done.err == f"sessrotate: {finished}\n"
    assert "Nothing to cut" in done.out
    assert not home.pack.exists()


# ── reading a session that was rotated ───────────────────────────────────────────────────────


def ways(home: Home) -> dict[str, str | Path]:
    return {
        "by id": ID,
        "by the beginning of its id": ID[:4],
        "by its live file": home.live,
        "by its archive": home.archive,
        "by segment 0": home.segment(0),
        "by segment 1": home.segment(1),
        "by the manifest": home.archive / "manifest.json",
    }


WAYS: Final = tuple(ways(Home(Path())))


@pytest.mark.parametrize(
    ("way", "is_gone"),
    [
        (way, is_gone)
        for way in WAYS
        for is_gone in (False, True)
        if "live" not in way or not is_gone
    ],
)
def test_the_history_is_found_however_the_session_is_named(
    home: Home, way: str, is_gone: bool
) -> None:
    split(home)
    expected = DATA
    if is_gone:
        home.live.unlink()
        expected = b"".join(command_line.segments_of(DATA)[:2])
    out = home.config / "out"
    named = ways(home)[way]
    ended = called("stitch", named, "-o", out)
    assert ended.code == 0, ended
    assert out.read_bytes() == expected
    assert ("is gone. This is what its archive holds" in ended.err) == is_gone
    checked = called("verify", named)
    assert checked.code == 0
    assert checked.out.endswith(": whole\n")
    assert called("verify", "--json", named).document() == {"ok": True, "problems": []}


def test_damage_in_the_archive_is_found_and_no_file_is_left(home: Home) -> None:
    split(home)
    segment = home.segment(1)
    data = bytearray(homes.content(segment))
    data[-3] ^= 1
    homes.rewrite(segment, bytes(data))
    out = home.config / "out"
    assert_one_sentence(called("stitch", ID, "-o", out), 74)
    assert not out.exists()
    checked = called("verify", "--json", ID)
    assert checked.code == 1
    (problem,) = checked.document()["problems"]
    assert problem["kind"] == "changed"
    assert f"Segment 1 ({segment.name})" in problem["detail"]


def test_a_missing_segment_is_named_before_the_first_byte(home: Home) -> None:
    split(home)
    gone = home.segment(1)
    gone.unlink()
    assert_one_sentence(called("stitch", ID, "-o", home.config / "out"), 74)
    checked = called("verify", "--json", ID)
    assert checked.code == 1
    assert checked.document()["problems"] == [
        {
            "source": str(home.live),
            "kind": "missing",
            "detail": f"Segment 1 ({gone.name}) is missing.",
        }
    ]


def test_no_message_quotes_the_session(home: Home) -> None:
    heard = [split(home, "--dry-run"), split(home, "--dry-run", "--json"), split(home)]
    home.append(boundary(80, note=SECRET) + row(81, parentUuid=SECRET))
    heard += [split(home), split(home, "--json"), called("verify", ID)]
    data = home.live.read_bytes()
    home.live.write_bytes(data.replace(b'"mode":"default"', b'"mode":"changed"'))
    heard += [split(home), called("verify", ID), called("stitch", ID), called("restore", ID)]
    heard += [called("doctor"), called("doctor", "--json")]
    homes.rewrite(home.segment(0), SECRET.encode())
    heard += [called("verify", ID), called("doctor")]
    assert {ended.code for ended in heard} >= {0, 1, 74, 77}
    for ended in heard:
        assert SECRET not in ended.out + ended.err
        assert "Traceback" not in ended.err
