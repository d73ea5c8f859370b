"""Archives from somebody else in which a file is another's: no byte of it is read or changed.

Rule: what is outside is a file of the same user, so that only its name tells that it is not ours.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from sessrotate.archive import record
from sessrotate.archive.record import Intent, Mark, Record, Swap
from sessrotate.model import SealedSegment, Span
from sessrotate.segments import headers, manifest
from sessrotate.system.digest import Tally
from support import homes, opens
from support.command_line import ID, called, session, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.homes import Home

DATA: Final = session(boundaries=3)
SECRET: Final = b"-----BEGIN KEY-----\nTOPSECRET-1\nTOPSECRET-2\n"

COMMANDS: Final = (
    ("stitch", ID),
    ("read", "--history", ID),
    ("export", ID),
    ("verify", ID),
    ("list",),
    ("report",),
    ("report", ID),
    ("doctor",),
    ("run",),
    ("split", "--in-place", "--wait", "0", ID),
    ("archive", "--wait", "0", ID),
    ("restore", "--keep-rotated", "--wait", "0", ID),
    ("restore", "--wait", "0", ID),
)


@pytest.fixture
def home(home: Home, tmp_path: Path) -> Home:
    write(tmp_path / "key", SECRET)
    return home


def withstood(home: Home) -> None:
    """Run every command; check that none tells or copies anything of the key, or changes it."""
    key = home.config.parent / "key"
    before = key.lstat()
    for command in COMMANDS:
        ended = called(*command)
        assert "TOPSECRET" not in ended.out + ended.err, command
        assert "Traceback" not in ended.err
    assert key.read_bytes() == SECRET
    after = key.lstat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert not home.live.is_symlink()
    assert not home.live.exists() or not home.live.samefile(key)
    for path in home.config.rglob("*"):
        if path.is_file() and not path.samefile(key):
            assert b"TOPSECRET" not in homes.content(path), path


def forged(home: Home, old: bytes) -> None:
    """Let the archive say that a rotation was interrupted, and that its pack begins with `old`.

    All of it fits together, so that whatever the pack has behind that counts as late lines.
    """
    home.rotate()
    listed = manifest.parse((home.archive / "manifest.json").read_bytes())
    first, second = listed.segments[:2]
    tally = Tally()
    tally.update(b"\n", 1)
    span = Span(second.segment.span.start, second.segment.span.start + 1)
    sealed = SealedSegment(
        replace(second.segment, span=span), tally.digest, tally.lines, second.codec
    )
    listed = replace(listed, source_bytes=span.end, segments=(first, sealed))
    head = headers.of(
        sealed.segment,
        session=ID,
        layout="numbered",
        digest=sealed.digest,
        parent_digest=first.digest,
        segments=None,
        source_bytes=None,
    )
    homes.rewrite(home.segment(1), head + b"\n")
    line, _, rest = home.live.read_bytes().partition(b"\n")
    said = headers.parse_live(line + b"\n", ID)
    assert said is not None
    line = headers.live_line(replace(said, start=span.end, index=2, parent_digest=sealed.digest))
    home.live.write_bytes(line + rest)
    doing = Intent(
        operation="rotate",
        swap=Swap(
            old=Mark.of(old),
            new=Mark.of(line),
            cut=max(1, len(old)),
            prefix=len(line + rest),
            tail=Mark.of(b""),
        ),
        first=1,
        count=1,
    )
    (home.archive / "record.json").write_bytes(record.dump(Record(ID, homes.PROJECT, doing)))
    (home.archive / "manifest.json").write_bytes(manifest.dump(listed))


@pytest.mark.parametrize("place_it", [Path.symlink_to, Path.hardlink_to])
@pytest.mark.parametrize(
    ("old", "is_gone"),
    [(b"", False), (SECRET[:20], False), (SECRET[:20], True)],
    ids=["anything", "known", "known, and to become the live file"],
)
def test_a_pack_that_is_another_file_brings_no_line_into_the_session(
    home: Home, place_it: Callable[[Path, Path], None], old: bytes, is_gone: bool
) -> None:
    forged(home, old)
    if is_gone:
        home.live.unlink()
    place_it(home.archive / "pack", home.config.parent / "key")
    withstood(home)


@pytest.mark.parametrize("where", ["manifest", "trash", "archived"])
def test_a_link_in_an_archived_session_is_never_opened(home: Home, where: str) -> None:
    home.rotate()
    assert called("archive", "--wait", "0", ID).code == 0
    if where == "archived":
        folder = home.archive / "archived"
        (path,) = folder.iterdir()
        path.unlink()
        (folder / path.name).symlink_to(home.config.parent / "key")
    elif where == "trash":
        (home.archive / "trash").symlink_to(home.config.parent)
    else:
        (home.archive / "record.json").unlink()
        (home.archive / "record.json").symlink_to(home.config.parent / "key")
    withstood(home)


EVERYWHERE: Final[tuple[tuple[str, ...], ...]] = (
    *COMMANDS,
    (),
    ("list", "--deep"),
    ("list", "--hidden", "--json"),
    ("report", "--all"),
    ("report", "--kinds", ID),
    ("search", "TOPSECRET"),
    ("search", "TOPSECRET", ID),
    ("read", ID),
    ("read", "LIVE"),
    ("export", "LIVE"),
    ("stitch", "LIVE"),
    ("verify", "LIVE"),
    ("verify", "--all"),
    ("split", "LIVE", "-o", "OUT"),
    ("split", "--in-place", "--dry-run", ID),
    ("split", "--in-place", "--unsafe-adopt", "--wait", "0", ID),
    ("rotate", "--all", "--wait", "0"),
    ("rotate", "--wait", "0", "LIVE"),
    ("tidy", "--dry-run"),
    ("tidy", "--yes"),
    ("archive", "--older-than", "0s", "--wait", "0"),
    ("prune", ID, "--keep-last", "1", "--yes"),
    ("prune", "--all", "--keep-last", "1", "--yes"),
    ("prune", "--empty-trash", "--all", "--grace", "0s", "--yes"),
    ("pin", ID, "1"),
    ("unpin", ID, "1"),
    ("restore", "--last-run", "--yes", "--wait", "0"),
    ("relocate", "-home-somebody-project", "-home-moved", "--yes"),
    ("aside", "--yes", ID),
)
"""`aside` is the last: what was rotated is no archive any more."""


@pytest.mark.parametrize("kind", ["text", "session", "live tail"])
@pytest.mark.parametrize("is_rotated", [True, False])
def test_a_live_file_that_is_a_link_is_not_opened(
    home: Home, kind: str, is_rotated: bool, tmp_path: Path
) -> None:
    if is_rotated or kind == "live tail":
        home.rotate()
    key = home.config.parent / "key"
    if kind == "live tail":
        key.write_bytes(home.live.read_bytes().replace(b"row ", b"TOPSECRET "))
    elif kind == "session":
        key.write_bytes(DATA.replace(b"row ", b"TOPSECRET "))
    if not is_rotated and home.archive.exists():
        shutil.rmtree(home.archive)
    home.live.unlink()
    home.live.symlink_to(key)
    os.utime(key, (1, 1))  # old enough for its client to delete it soon
    before = key.read_bytes()
    words = {"LIVE": str(home.live), "OUT": str(tmp_path / "out")}
    for command in EVERYWHERE:
        with opens.watched() as seen:
            ended = called(*(words.get(word, word) for word in command))
        assert not seen.of(key), command
        assert ended.code in {0, 1, 2, 65, 74, 75, 77}, (command, ended)
        assert "Traceback" not in ended.err, (command, ended)
        told = (ended.out + ended.err).replace('"query": "TOPSECRET"', "")
        assert "TOPSECRET" not in told or "search" in command, (command, ended)
        assert "TOPSECRET 1" not in told, (command, ended)
    assert home.live.is_symlink()
    assert key.read_bytes() == before


def test_doctor_says_that_a_live_file_is_a_link(home: Home) -> None:
    home.live.unlink()
    home.live.symlink_to(home.config.parent / "key")
    ended = called("doctor")
    assert ended.code == 1
    assert f"{home.live} is a symbolic link" in ended.out


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("command", ["stitch", "read", "export", "verify", "report", "split"])
def test_a_link_that_somebody_names_elsewhere_means_what_it_leads_to(
    tmp_path: Path, command: str
) -> None:
    write(tmp_path / "elsewhere" / "saved.jsonl", DATA)
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "elsewhere" / "saved.jsonl")
    words = ("--dry-run",) if command == "split" else ()
    ended = called(command, link, *words)
    assert ended.code == 0, ended
    if command == "stitch":
        assert ended.out.encode() == DATA


@pytest.mark.parametrize("target", ["copy", "itself"])
def test_a_link_elsewhere_to_a_live_tail_gives_the_whole_history(
    home: Home, tmp_path: Path, target: str
) -> None:
    home.rotate()
    file = home.live
    if target == "copy":
        file = write(tmp_path / "elsewhere" / "saved.jsonl", home.live.read_bytes())
    link = tmp_path / "link.jsonl"
    link.symlink_to(file)
    assert called("stitch", link).out.encode() == DATA


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of others")
def test_a_file_of_another_user_in_an_archive_is_not_opened(home: Home) -> None:
    home.rotate()
    os.chown(home.segment(1), 12345, 12345)
    ended = called("stitch", ID)
    assert ended.code == 74
    assert "it belongs to another user" in ended.err
