"""Archives that somebody forged or broke: an error with a sentence, or the right bytes.

Rule: whatever an archive says, nothing outside of it and the live file is opened for writing or
read into a result, and nothing is waited for.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessrotate.errors import SessrotateError
from support import command_line, homes, opens
from support.command_line import ID, append, boundary, called, row, write
from support.examples import examples
from support.homes import Home
from support.tiers import in_gate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

DATA: Final = command_line.session(boundaries=3)
MORE: Final = boundary(80) + row(81)
CANARY: Final = b"outside\n"
OUTSIDE: Final = ("canary", "canary.jsonl", "manifest.json")

COMMANDS: Final = (
    ("doctor",),
    ("verify", ID),
    ("split", "--in-place", "--dry-run", "--wait", "0", ID),
    ("stitch", ID, "-o", "OUT"),
    ("split", "--in-place", "--wait", "0", ID),
    ("restore", "--wait", "0", ID),
)
"""In this order: those that only read first."""


def made(folder: Path, patch: pytest.MonkeyPatch, *, unfinished: bool = False) -> Home:
    """Make a session that was rotated, or whose second rotation was not finished."""
    home = homes.home(folder, patch, DATA)
    home.rotate()
    home.append(MORE)
    if unfinished:
        homes.crashed(home.rotate, "sessrotate.in_place.seal.finish")
        assert home.is_busy()
    for name in OUTSIDE:
        write(folder / name, CANARY)
    return home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return made(tmp_path, monkeypatch)


@pytest.fixture
def unfinished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return made(tmp_path, monkeypatch, unfinished=True)


STOPPED: Final = {
    "noted": "sessrotate.fs.append",
    "brought over": "sessrotate.in_place.waiting.said_again",
}
"""How far an unfinished run came that brings late lines over."""

LATE: Final = b'{"type":"mode","sessionId":"%s"}\n' % ID.encode()
"""Behind a row of the conversation, the last one would be said again."""

SINCE: Final = row(83)


def made_late(folder: Path, patch: pytest.MonkeyPatch, moment: str) -> Home:
    """Make a session of which a run that brought late lines over was not finished."""
    home = made(folder, patch, unfinished=True)
    append(home.pack, LATE)
    home.append(SINCE)
    homes.crashed(home.rotate, STOPPED[moment])
    assert home.record()["waiting"][0]["batch"] is not None
    return home


@pytest.fixture(params=in_gate(STOPPED, ["noted"], "hostile"))
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Home:
    return made_late(tmp_path, monkeypatch, request.param)


def withstood(home: Home, since: bytes = MORE, late: Sequence[bytes] = (b"",)) -> set[int]:
    """Run every command; check that each fails as it should or does right. Return their codes.

    `since` is what came since the first rotation, and one of `late` what may be there behind it.
    """
    codes, right = set(), {DATA + since + each for each in late}
    live = home.live.read_bytes() if home.live.is_file() else None
    outside = home.config.parent
    for command in COMMANDS:
        out = outside / "out"
        out.unlink(missing_ok=True)
        ended = called(*(str(out) if word == "OUT" else word for word in command))
        codes.add(ended.code)
        assert ended.code in {0, 1, 2, 65, 74, 75, 77}, ended
        assert "Traceback" not in ended.err
        if command[0] == "stitch":
            assert out.exists() == (ended.code == 0)
            if ended.code == 0:
                assert out.read_bytes() in right
        if command[0] == "restore" and ended.code == 0:
            assert home.live.read_bytes() in right
        if ended.code not in {0, 1} and home.live.is_file() and live is not None:
            last = live[-len(SINCE) :]
            assert home.live.read_bytes().endswith((last, *(last + each for each in late)))
    for name in OUTSIDE:
        assert (outside / name).read_bytes() == CANARY
    return codes


# ── things that are no files ─────────────────────────────────────────────────────────────────


def linked(path: Path) -> None:
    """All is right for whoever follows it: only that tells."""
    target = path.with_name("elsewhere")
    path.rename(target)
    path.symlink_to(target)


def linked_outside(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parents[4] / "canary")


def dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def huge(path: Path) -> None:
    os.truncate(path, 1 << 40)


def unreadable(path: Path) -> None:
    path.write_bytes(b"\xff\x00" * 3000)


def file_of(home: Home, file: str | int) -> Path:
    """Return a file of the archive by its name, or that of a segment by its number."""
    return home.segment(file) if isinstance(file, int) else home.archive / file


SHAPES: Final = [linked, pipe, folder, huge, unreadable]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("file", ["manifest.json", 0, 1])
def test_a_file_of_the_archive_may_be_anything(
    home: Home, file: str | int, shape: Callable[[Path], None]
) -> None:
    shape(file_of(home, file))
    assert 74 in withstood(home)


@pytest.mark.parametrize(
    ("file", "shape"),
    [
        (file, shape)
        for file in ("manifest.json", "record.json", "pack", 0)
        for shape in SHAPES
        if (file, shape) != ("pack", huge)  # a pack is as large as it is
    ],
)
def test_a_file_of_an_unfinished_rotation_may_be_anything(
    unfinished: Home, file: str | int, shape: Callable[[Path], None]
) -> None:
    shape(file_of(unfinished, file))
    withstood(unfinished)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("file", ["waiting/1", "record.json", "manifest.json"])
def test_a_file_may_be_anything_while_late_lines_are_brought_over(
    late: Home, file: str, shape: Callable[[Path], None]
) -> None:
    if (file, shape) == ("waiting/1", huge):
        return  # as large as it is, as above
    shape(late.archive / file)
    is_there = file != "waiting/1"  # else nothing has the line any more
    withstood(late, MORE + SINCE, [LATE] if is_there else [b"", LATE])


@pytest.mark.parametrize("shape", [linked_outside, dangling, pipe, folder])
@pytest.mark.parametrize("file", ["live", "record.json", "manifest.json", 3])
def test_an_unfinished_file_may_be_anything(
    unfinished: Home, file: str | int, shape: Callable[[Path], None]
) -> None:
    path = file_of(unfinished, file)
    shape(write(path.with_name(f"{path.name}.partial"), b""))
    withstood(unfinished)


@pytest.mark.parametrize("shape", [linked_outside, dangling, pipe, folder, unreadable])
def test_a_stranger_where_a_segment_is_to_go_is_left_alone(
    home: Home, shape: Callable[[Path], None]
) -> None:
    path = write(home.segment(3), b"mine")
    shape(path)
    before = homes.snapshot(home.archive)
    ended = called("split", "--in-place", ID)
    assert ended.code == 77, ended
    assert "which no manifest.json lists" in ended.err
    assert homes.snapshot(home.archive) == before


# ── forged words ─────────────────────────────────────────────────────────────────────────────

VALUES: Final[list[object]] = [
    "../canary.jsonl",
    "../../../../canary",
    "/etc/passwd",
    "a\x00b",
    "",
    -1,
    0,
    1,
    7,
    2**53,
    2**64,
    10**300,
    1.5,
    True,
    None,
    [],
    {},
    "x" * 5000,
]


def forge(path: Path, line: int, keys: tuple[str | int, ...], value: object) -> None:
    """Replace one value in a line of JSON of a file."""
    lines = path.read_bytes().split(b"\n")
    text = lines[line]
    for end in (b"", b"]}"):
        try:
            fields: Any = json.loads(text.rstrip(b",") + end)
            break
        except ValueError:
            continue
    inner = fields
    for key in keys[:-1]:
        inner = inner[key]
    assert keys[-1] in inner
    inner[keys[-1]] = value
    forged = json.dumps(fields)
    lines[line] = forged.encode()[: -len(b"]}") if end else None] + (
        b"," if text.endswith(b",") else b""
    )
    path.write_bytes(b"\n".join(lines))


FORGED: Final[list[tuple[str, int, tuple[str, ...]]]] = [
    *(("manifest.json", 0, (key,)) for key in ("session", "client", "layout")),
    *(("manifest.json", 0, ("source", key)) for key in ("bytes", "digest")),
    *(("manifest.json", 1, (key,)) for key in ("index", "file")),
    *(("manifest.json", 2, (key,)) for key in ("file", "start", "end", "lines", "digest", "codec")),
    *(
        ("record.json", 0, (key,))
        for key in ("format", "session", "project", "intent", "away", "restored")
    ),
    *(("record.json", 0, ("intent", key)) for key in ("operation", "first", "count", "swap")),
    *(
        ("record.json", 0, ("intent", "swap", key))
        for key in ("cut", "prefix", "old", "new", "tail", "batch")
    ),
    *(("record.json", 0, ("intent", "swap", mark, "size")) for mark in ("old", "new", "tail")),
]
"""Values of a manifest, and of the record of a rotation that was not finished."""


@pytest.mark.parametrize(("file", "line", "keys"), FORGED, ids=str)
@given(value=st.sampled_from(VALUES))
@example(value=0)  # as a cut: all of the replaced file would be late
@examples(6)
def test_a_forged_manifest_or_intent_is_an_error_or_right(
    tmp_path_factory: pytest.TempPathFactory,
    file: str,
    line: int,
    keys: tuple[str, ...],
    value: object,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("forged")
        home = made(folder, patch, unfinished=file == "record.json")
        forge(home.archive / file, line, keys, value)
        withstood(home)


FORGED_LATE: Final = [
    *((key,) for key in ("number", "mark", "since", "modified", "batch")),
    *(("batch", key) for key in ("span", "floor")),
    *(("batch", "span", key) for key in ("start", "end")),
    ("mark", "size"),
]


@pytest.mark.parametrize("moment", in_gate(STOPPED, ["noted"], "hostile"))
@pytest.mark.parametrize("keys", FORGED_LATE, ids=".".join)
@given(value=st.sampled_from([*VALUES, "rotate", "restore", 4096]))
@example(value=0)  # as a batch's start: all of the file would be late
@examples(6)
def test_a_forged_file_that_waits_is_an_error_or_right(
    tmp_path_factory: pytest.TempPathFactory, moment: str, keys: tuple[str, ...], value: object
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        home = made_late(tmp_path_factory.mktemp("forged"), patch, moment)
        forge(home.archive / "record.json", 0, ("waiting", 0, *keys), value)
        # What was brought over, and is not noted, comes again: a line twice, and none too few.
        # Of a file that is another than the record says nothing comes, but it stays.
        withstood(home, MORE + SINCE, [b"", LATE, LATE + LATE])
        paths = [home.live, home.archive / "waiting" / "1"]
        assert any(path.exists() and path.read_bytes().endswith(LATE) for path in paths)


def test_an_archive_under_another_sessions_name_is_not_taken_for_its_own(home: Home) -> None:
    other = home.archive.with_name("other")
    home.archive.rename(other)
    write(home.live.with_name("other.jsonl"), home.live.read_bytes())
    ended = called("stitch", "other")
    assert ended.code == 74
    assert f"other.jsonl is only the live tail of {ID}" in ended.err


@given(data=st.binary(max_size=200))
@examples(25)
def test_any_bytes_may_be_a_record_or_a_manifest(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        home = made(tmp_path_factory.mktemp("forged"), patch)
        before = home.stitched()
        (home.archive / "record.json").write_bytes(data)
        assert home.stitched() == before
        (home.archive / "manifest.json").write_bytes(data)
        with pytest.raises(SessrotateError):
            home.stitched()
        home.rotate()  # the chain of headers gives it back
        assert home.stitched() == before


# ── what is opened ───────────────────────────────────────────────────────────────────────────


def forged_names(home: Home) -> None:
    """Let everything in the archive that may name a file name one that is elsewhere."""
    segment = home.segment(1)
    head, body = homes.content(segment).split(b"\n", 1)
    fields = {**json.loads(head), "parentFile": "../../../../canary", "rootSession": "../canary"}
    homes.rewrite(segment, json.dumps(fields).encode() + b"\n" + body)


@pytest.mark.parametrize("forged", [False, True], ids=["sound", "forged"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command)[:30])
def test_nothing_outside_is_opened(home: Home, forged: bool, command: tuple[str, ...]) -> None:
    if forged:
        forged_names(home)
    out = home.config.parent / "out"
    with opens.watched() as seen:
        called(*(str(out) if word == "OUT" else word for word in command))
    ours = {name for name in seen.opened if name.startswith(str(home.config.parent))}
    own = (str(home.config.parent / folder) for folder in homes.OWN_FOLDERS.values())
    drafts = str(out.with_name(f".{out.name}."))
    allowed = (str(home.config), str(out), drafts, *own)  # `doctor` reads the log of runs
    assert ours
    assert {name for name in ours if not name.startswith(allowed)} <= {str(home.config.parent)}
    assert not [name for name in seen.opened if "canary" in name]
