"""What a client trimmed and kept is put together, and then a session like any other."""

from __future__ import annotations

import errno
import json
import random
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import doctor, fs, names
from sessrotate.archive import live_tail as archive_trimmed
from sessrotate.clients.claude import cleanup
from sessrotate.errors import InUseError, RefusedError, StorageError
from sessrotate.in_place import seal
from sessrotate.retention import put_away
from sessrotate.system.source import Source
from sessrotate.units import amount
from support import command_line, homes
from support.command_line import ID, append, boundary, called, row
from support.crash.changes import Meanwhile
from support.homes import Home, snapshot
from support.tiers import in_gate
from support.trimming import keep, trimmed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODE: Final = b'{"type":"mode","sessionId":"s","mode":"default"}\n'
DATA: Final = MODE + command_line.session(boundaries=2)


def said(first: int, compaction: int) -> bytes:
    """Return rows, a compaction that preserved one of them, and its summary."""
    uuid = f"{first + 1:08x}-0000-4000-a000-00000000000a"
    metadata = {"trigger": "auto", "preTokens": 1, "preservedMessages": {"uuids": [uuid]}}
    return b"".join(
        (
            row(first),
            row(first + 1),
            boundary(compaction, compactMetadata=metadata),
            row(compaction + 1),
        )
    )


def kept(home: Home) -> list[Path]:
    return sorted((home.live.with_suffix("") / names.KEPT).glob("*"))


def whole(home: Home, expected: bytes) -> None:
    """Check that a session is whole, and that nothing is left to be done."""
    assert home.stitched() == expected
    assert not home.problems()
    assert not [path for path in kept(home) if not path.samefile(home.live)]
    assert not [*doctor.findings()]


# ── put together ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_rotated", [False, True])
@pytest.mark.parametrize("trims", [1, 2, 3])
def test_a_trimmed_session_is_whole_again_and_rotated(
    home: Home, trims: int, *, is_rotated: bool
) -> None:
    expected = DATA
    if is_rotated:
        home.rotate()
    for number in range(trims):
        more = said(100 * number + 90, 100 * number + 95)
        home.append(more)
        keep(home.live)
        home.append(row(100 * number + 99))
        expected += more + row(100 * number + 99)
    done = home.rotate()
    assert done.together > 0
    whole(home, expected)
    assert home.rotate().together == 0


def test_a_session_that_is_trimmed_at_the_compaction_it_was_rotated_at_is_whole_again(
    home: Home,
) -> None:
    """2.1.287 trims a session of any size, once it has trimmed it."""
    home.rotate()
    home.append(MODE + row(90))
    keep(home.live)
    home.append(row(99))
    (finding,) = doctor.findings()
    assert finding.kind == "cut"
    assert "puts it back together" in called("read", "--history", ID).err
    home.rotate()
    whole(home, DATA + MODE + row(90) + row(99))


SINCE: Final = (row(91), row(91) + MODE, row(91) + MODE + row(92))


@pytest.mark.parametrize("late", [row(90), b"\n", MODE, row(90) + MODE, MODE + row(90)])
@pytest.mark.parametrize("since", SINCE)
def test_what_came_too_late_for_a_trim_is_there_though_it_equals_later_lines(
    home: Home, late: bytes, since: bytes
) -> None:
    path = keep(home.live)
    append(path, late)
    home.append(since)
    home.rotate()
    whole(home, DATA + late + since)


def test_a_kept_file_that_somebody_writes_to_at_last_stays(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = keep(home.live)
    real = seal.finish

    def finish(*given: Any) -> None:
        append(path, row(90))
        real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(seal, "finish", finish)
        home.rotate()
    assert path.read_bytes().endswith(row(90))
    with pytest.raises(RefusedError, match="both are whole, and nothing was changed"):
        home.rotate()
    path.rename(home.config / "away")
    assert home.stitched() == DATA


def test_what_a_client_keeps_of_a_file_that_has_a_name_from_us_goes_with_that(home: Home) -> None:
    expected = DATA
    for number in range(3):
        keep(home.live)
        home.append(row(90 + 10 * number))
        home.rotate()
        expected += row(90 + 10 * number)
        whole(home, expected)
        home.append(boundary(93 + 10 * number) + row(94 + 10 * number))
        expected += boundary(93 + 10 * number) + row(94 + 10 * number)


def test_a_kept_file_that_somebody_has_open_for_writing_stays_as_it_is(home: Home) -> None:
    with home.live.open("ab") as late:
        path = keep(home.live)
        before = snapshot(home.config)
        with pytest.raises(InUseError, match="is in use"):
            home.rotate()
        assert snapshot(home.config) == before
        late.write(row(90))
    assert path.exists()
    home.rotate()
    whole(home, DATA + row(90))


def test_what_a_client_kept_is_put_together_before_its_session_is_put_away(home: Home) -> None:
    keep(home.live)
    before = snapshot(home.config)
    for words in (("archive", "-n", ID), ("archive", ID)):
        ended = called(*words)
        assert ended.code == 77
        assert f"`sessrotate rotate {ID}` puts it back together" in ended.out + ended.err
    assert snapshot(home.config) == before
    assert called("rotate", ID).code == 0
    assert called("archive", ID).code == 0
    assert called("stitch", ID).out.encode() == DATA


def test_what_is_there_already_only_goes(home: Home) -> None:
    path = keep(home.live)
    home.live.write_bytes(path.read_bytes() + row(90))
    assert home.rotate().together
    whole(home, DATA + row(90))


@pytest.mark.parametrize("name", ["1-00000000.jsonl", "x.replaced", "1-0000000g.jsonl.replaced"])
def test_files_of_other_names_are_none(home: Home, name: str) -> None:
    path = keep(home.live)
    other = path.rename(path.with_name(name))
    home.rotate()
    assert other.exists()
    assert home.stitched() != DATA


def test_the_nightly_run_and_all_commands_for_many_put_it_together(home: Home) -> None:
    keep(home.live)
    assert "1 session" in called("run", "--dry-run").out
    planned = called("rotate", "--all", "--dry-run", "--json").document()["sessions"]
    assert [entry["result"] for entry in planned] == ["planned"]
    ended = called("run")
    assert (ended.code, ended.err) == (0, "")
    assert "Healed 1 session" in ended.out
    whole(home, DATA)


def test_a_person_is_told_before_and_after(home: Home) -> None:
    keep(home.live)
    before = snapshot(home.config)
    planned = called("rotate", ID, "--dry-run")
    assert "Claude Code trimmed this session, and kept 2.4 KiB of it: rotating puts that back" in (
        planned.out
    )
    assert snapshot(home.config) == before
    assert called("rotate", ID, "--dry-run", "--json").document()["put_together_bytes"] == len(DATA)
    done = called("rotate", ID)
    assert done.out.startswith("Put back together 2.4 KiB that Claude Code had trimmed and kept.\n")


@pytest.mark.parametrize("trims", [1, 3])
def test_what_the_disk_gains_by_it_is_what_was_told(home: Home, trims: int) -> None:
    dice = random.Random(1)
    for number in range(trims):
        pads = [dice.randbytes(100_000).hex() for _ in range(9)]
        rows = b"".join(row(100 * number + 90 + n, pad=pad) for n, pad in enumerate(pads))
        home.append(rows + boundary(100 * number + 99) + row(100 * number + 100))
        keep(home.live)
    planned = called("rotate", ID, "--dry-run", "--json").document()["disk"]["bytes_gained"]
    before = homes.on_disk(home.config)
    done = called("rotate", ID, "--json").document()["disk"]["bytes_gained"]
    gained = before - homes.on_disk(home.config)
    assert done == pytest.approx(gained, rel=0.02, abs=40_000)
    assert planned == pytest.approx(gained, rel=0.2, abs=60_000)


def test_doctor_and_readers_name_what_is_to_be_put_together(home: Home) -> None:
    keep(home.live)
    (found,) = [*doctor.findings()]
    assert found.kind == "cut"
    assert f"`sessrotate rotate {ID}` puts it back together" in found.detail
    for command in (("read", "--history", ID), ("export", ID)):
        ended = called(*command)
        assert ended.code == 0
        assert f"`sessrotate rotate {ID}` puts it back together" in ended.err
    assert called("stitch", ID).code == 74
    assert called("verify", ID).code == 1
    home.rotate()
    whole(home, DATA)


def test_of_a_restored_session_that_was_trimmed_doctor_gives_one_advice(home: Home) -> None:
    home.rotate()
    home.restore()
    keep(home.live)
    (found,) = [*doctor.findings()]
    assert f"`sessrotate rotate {ID}` puts it back together" in found.detail
    home.rotate()
    whole(home, DATA)


def test_a_name_that_is_there_for_the_trim_is_in_nobodys_way(home: Home) -> None:
    link(home)
    assert home.stitched() == DATA
    assert not home.problems()
    done = home.rotate()
    assert (done.together, done.pending) == (0, None)
    (name,) = kept(home)
    assert name.samefile(home.live)  # what took the place of a kept file is kept, too
    home.append(said(90, 95))
    home.rotate()
    assert [path.samefile(home.live) for path in kept(home)] == [True]
    home.restore()
    assert home.live.read_bytes() == DATA + said(90, 95)


def test_what_is_put_away_has_no_name_left_where_it_was(home: Home) -> None:
    link(home)
    put_away.put_away(home.where, 1)
    assert called("verify", ID).code == 0
    assert called("restore", ID).code == 0
    assert home.live.read_bytes() == DATA
    assert not kept(home)


def test_what_a_client_trims_while_it_is_rotated_is_put_together_and_not_set_aside(
    home: Home,
) -> None:
    link(home)

    def trim_now() -> None:
        draft = home.live.with_name("draft")
        draft.write_bytes(trimmed(home.live.read_bytes()))
        draft.rename(home.live)

    real = fs.take_place

    def meanwhile(*given: Any) -> None:
        trim_now()
        real(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fs, "take_place", meanwhile)
        with pytest.raises(InUseError):
            home.rotate()
    assert not (home.config / "sessrotate" / "aside").exists()
    home.rotate()
    assert home.stitched() == DATA


def link(home: Home) -> None:
    """Do what the hook does where a client may trim."""
    name = cleanup.new_name(home.live, ID)
    name.parent.mkdir(parents=True)
    name.hardlink_to(home.live)


@pytest.mark.parametrize("is_rotated", [False, True])
def test_without_leases_it_takes_some_runs_and_nothing_is_lost(
    home: Home, monkeypatch: pytest.MonkeyPatch, *, is_rotated: bool
) -> None:
    homes.without_leases(monkeypatch)
    if is_rotated:
        home.rotate()
        home.age()
    home.append(said(90, 95))
    path = keep(home.live)
    home.append(row(99))
    for _ in range(6):
        with suppress(InUseError):
            home.rotate()
        path.exists() or home.stitched()
        home.age()
    expected = DATA + said(90, 95) + row(99)
    assert home.stitched() == expected
    assert all(path.samefile(home.live) for path in kept(home))
    assert home.live.stat().st_size < len(expected)


def _noted(noted: list[bool], deed: Callable[[], bool]) -> None:
    noted.append(deed())


@pytest.mark.parametrize("is_rotated", in_gate([False, True], [True], "scale"))
def test_a_line_that_a_client_writes_at_any_moment_of_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_rotated: bool
) -> None:
    monkeypatch.setattr(seal, "MOMENT", 0)
    for at in count(1):
        home = homes.home(tmp_path / str(at), monkeypatch, DATA)
        if is_rotated:
            home.rotate()
        home.append(said(90, 95))
        keep(home.live)
        wrote: list[bool] = []
        write = partial(homes.tried_to_append, home.live, row(99))
        meanwhile = Meanwhile(at, partial(_noted, wrote, write))
        with meanwhile.installed(), suppress(InUseError):
            home.rotate()
        home.rotate()
        assert home.stitched() == DATA + said(90, 95) + row(99) * any(wrote)
        assert all(path.samefile(home.live) for path in kept(home))
        if not meanwhile.failed:
            break
    assert at > 40


# ── what cannot be told stays ────────────────────────────────────────────────────────────────


def test_a_file_of_another_session_is_left_and_named(home: Home) -> None:
    path = keep(home.live)
    path.write_bytes(path.read_bytes().replace(b'"x"', b'"y"').replace(b"0000a", b"0000b"))
    before = snapshot(home.config)
    with pytest.raises(RefusedError, match="both are whole, and nothing was changed"):
        home.rotate()
    assert snapshot(home.config) == before
    path.rename(home.config / "away")
    home.rotate()


def test_without_the_file_in_the_middle_nothing_is_put_together(home: Home) -> None:
    for number in (100, 200, 300):
        home.append(said(number, number + 5))
        keep(home.live)
    kept(home)[1].unlink()
    before = snapshot(home.config)
    with pytest.raises(RefusedError, match="both are whole, and nothing was changed"):
        home.rotate()
    assert snapshot(home.config) == before


def test_a_full_disk_leaves_everything_as_it_was(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(home.live)
    before = snapshot(home.config)
    with monkeypatch.context() as patch:
        patch.setattr(fs.Draft, "append", homes.failing(errno.ENOSPC))
        patch.setattr(fs, "free_bytes", lambda _path: 10)
        with pytest.raises(StorageError, match=f"about {amount(len(DATA), up=True)} for the whole"):
            home.rotate()
    assert snapshot(home.config) == before
    home.rotate()
    whole(home, DATA)


# ── the rules ────────────────────────────────────────────────────────────────────────────────


SETTINGS: Final = ("mode", "custom-title", "attribution-snapshot", "tag", "permission-mode")
OTHERS: Final = ("zz-unknown", "api-request", "last-prompt", "progress")


def made(seed: int) -> list[bytes]:
    """Return the lines of a session in which anything may stand anywhere, and again."""
    dice = random.Random(seed)
    lines: list[bytes] = []
    uuids: list[str] = []
    for number in range(dice.randrange(4, 50)):
        fields: dict[str, Any] = {}
        roll = dice.random()
        if roll < 0.5 or not uuids:
            parent = dice.choice(uuids[-4:]) if uuids and dice.random() < 0.9 else None
            kind = dice.choice(["user", "assistant", "attachment"])
            fields = {"type": kind, "uuid": f"{number:08x}", "parentUuid": parent}
            uuids.append(f"{number:08x}")
        elif roll < 0.85:
            kind = dice.choice(SETTINGS + OTHERS)
            fields = {"type": kind, "v": dice.randrange(2), "sessionId": dice.choice("st")}
        elif roll < 0.92:
            kind = dice.choice(["file-history-snapshot", "file-history-delta"])
            fields = {"type": kind, "messageId": dice.choice(uuids), "v": number}
        else:
            metadata: dict[str, Any] = {}
            if dice.random() < 0.6:
                metadata = {"preservedMessages": {"uuids": sorted({*dice.choices(uuids, k=2)})}}
            fields = {
                "type": "system",
                "subtype": "compact_boundary",
                "uuid": f"{number:08x}",
                "parentUuid": None,
                "compactMetadata": metadata,
            }
            uuids.append(f"{number:08x}")
        line = json.dumps(fields, separators=(",", ":")).encode()
        if dice.random() < 0.04:
            line = line[: dice.randrange(len(line))]  # torn, or empty
        lines.append(line + b"\n")
    return lines


@given(seed=st.integers(0, 1 << 32), more=st.integers(0, 6), is_late=st.booleans())
def test_where_a_trimmed_file_goes_on_is_found_or_refused(
    tmp_path_factory: pytest.TempPathFactory, seed: int, more: int, *, is_late: bool
) -> None:
    lines, folder = made(seed), tmp_path_factory.mktemp("trimmed")
    old, new = folder / "old", folder / "new"
    summary = b'{"type":"user","uuid":"eeeeeeee","parentUuid":null}\n'
    data = b"".join((*lines, boundary(1), summary))
    late = b'{"type":"user","uuid":"ffffffff","parentUuid":null}\n' if is_late else b""
    old.write_bytes(data + late)
    dice = random.Random(seed)
    again = [dice.choice(lines) for _ in range(more)]  # the same bytes once more
    copy = trimmed(data)
    new.write_bytes(copy + b"".join(line for line in again if b"compact_b" not in line))
    with Source(old) as before, Source(new) as after:
        assert archive_trimmed.goes_on_at(before, after) in {len(copy), None}


@given(seed=st.integers(0, 1 << 32), kept=st.integers(0, 100), is_late=st.booleans())
def test_whatever_a_client_leaves_out_of_what_a_compaction_ended_the_new_file_goes_on(
    tmp_path_factory: pytest.TempPathFactory, seed: int, kept: int, *, is_late: bool
) -> None:
    dice, folder = random.Random(seed), tmp_path_factory.mktemp("trimmed")
    old, new = folder / "old", folder / "new"
    ended = [line for line in made(seed) if line.strip()]
    summary = b'{"type":"user","uuid":"eeeeeeee","parentUuid":null}\n'
    late = b'{"type":"user","uuid":"ffffffff","parentUuid":null}\n' if is_late else b""
    copy = b"".join((*(line for line in ended if dice.randrange(100) < kept), boundary(1), summary))
    old.write_bytes(b"".join((*ended, boundary(1), summary, late)))
    new.write_bytes(copy + b'{"type":"user","uuid":"dddddddd","parentUuid":"eeeeeeee"}\n')
    with Source(old) as before, Source(new) as after:
        assert archive_trimmed.goes_on_at(before, after) == len(copy)
