"""Sessions that their client compressed are found, cut and read as what is in them."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import generate_codex
from sessrotate import find, open_session
from sessrotate.errors import DamagedError, InUseError, RefusedError, StorageError
from sessrotate.fs import files
from sessrotate.model import Span
from sessrotate.reports import discovery
from sessrotate.segments import compressed, load, split
from sessrotate.segments.header_chain import Folder
from support import sets
from support.homes import packed

if TYPE_CHECKING:
    from collections.abc import Callable

ID = generate_codex.Options().session_id
NAME = f"rollout-2026-02-10T08-00-00-{ID}.jsonl.zst"


def plain(size: int = 400_000) -> bytes:
    target = io.BytesIO()
    generate_codex.generate(target, generate_codex.Options(size=size, boundaries=3))
    return target.getvalue()


def open_descriptors() -> list[int]:
    found = []
    for number in range(256):
        with suppress(OSError):
            os.fstat(number)
            found.append(number)
    return found


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "nobody"))
    monkeypatch.delenv("CODEX_SESSIONS_DIR", raising=False)
    path = tmp_path / "sessions" / "2026" / "02" / "10" / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(packed(plain()))
    return path


def test_it_is_found_listed_and_read(session: Path) -> None:
    assert find.path_of(ID[:8]) == session
    (listed,) = discovery.sessions()
    assert listed.info.id == ID
    with open_session(session) as opened:
        assert (opened.id, opened.client, len(opened.segments)) == (ID, "codex", 4)
        lines = [record.line for record in opened.history()]
        assert str(opened.title()) == listed.info.title.text != ""
    assert b"".join(line + b"\n" for line in lines) == plain()


def test_its_segments_hold_what_is_in_it(session: Path, tmp_path: Path) -> None:
    before = session.read_bytes()
    with compressed.opened_session(session) as source:
        plan = split.prepare(source, sets.nothing, layout="numbered", codec="plain")
        split.execute(plan, source, tmp_path / "out", sets.nothing)
    assert sets.stitched(tmp_path / "out") == plain()
    assert session.read_bytes() == before
    assert [path.name for path in session.parent.iterdir()] == [NAME]


def test_it_is_not_changed_in_place(session: Path) -> None:
    with pytest.raises(RefusedError):
        find.live_of(session)


@pytest.mark.parametrize("cut", [3, 2_000, -1])
def test_one_that_is_cut_is_damaged(session: Path, cut: int) -> None:
    session.write_bytes(session.read_bytes()[:cut])
    with pytest.raises(DamagedError):
        compressed.opened_session(session)


def test_one_that_changes_meanwhile_is_not_split(session: Path) -> None:
    with compressed.opened_session(session) as source:
        source.check_unreplaced()
        os.utime(session, ns=(0, 1))
        with pytest.raises(InUseError):
            source.check_unreplaced()
    with compressed.opened_session(session) as source:
        session.rename(session.with_suffix(".old"))
        session.write_bytes(packed(plain()))
        with pytest.raises(InUseError):
            source.check_unreplaced()


def test_a_folder_that_cannot_be_written_to_is_no_obstacle(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unnamed: Callable[[Path], int] = vars(files)["_unnamed"]

    def elsewhere(folder: Path) -> int:
        if folder == session.parent:
            raise PermissionError
        return unnamed(folder)

    monkeypatch.setattr(files, "_unnamed", elsewhere)
    with compressed.opened_session(session) as source:
        assert b"".join(source.pieces(Span(0, source.size()))) == plain()


def test_no_room_for_what_is_in_it_is_told(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int, _data: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_all", full)
    before = open_descriptors()
    with pytest.raises(StorageError, match="decompress the session"):
        compressed.opened_session(session)
    assert open_descriptors() == before


def test_a_compressed_segment_is_none(session: Path, tmp_path: Path) -> None:
    data = tmp_path / NAME.removesuffix(".zst")
    data.write_bytes(plain())
    sets.made(data, tmp_path / "out", "numbered", "zstd")
    files = sorted(path.name for path in (tmp_path / "out").glob("*.zst"))
    assert len(files) == 4
    for file in files:
        assert not compressed.is_session(file)
        assert load.is_segment(Folder(tmp_path / "out"), file)
    assert compressed.is_session(NAME)
    assert not load.is_segment(Folder(session.parent), NAME)
    assert load.is_segment(Folder(session.parent), f"{ID}.1.jsonl.zst")
