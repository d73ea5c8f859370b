"""A manifest that is lost is made again from segments that prove themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sessrotate.errors import DamagedError, RefusedError
from support import homes
from support.lines import session


def without_manifest(tmp_path: Path, patch: pytest.MonkeyPatch) -> tuple[homes.Home, bytes, bytes]:
    """Return a rotated session that lost its manifest, its history, and that manifest."""
    data = session(5)
    home = homes.home(tmp_path, patch, data)
    home.rotate()
    manifest = home.archive / "manifest.json"
    lost = manifest.read_bytes()
    manifest.unlink()
    return home, data, lost


def known(manifest: bytes) -> dict[str, object]:
    """Return what a manifest says, but for what only a scan tells."""
    document: dict[str, object] = json.loads(manifest)
    segments = document["segments"]
    assert isinstance(segments, list)
    for entry in segments:
        entry["firstTimestamp"] = entry["lastTimestamp"] = None
    return document


def test_what_reads_says_who_makes_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _, _ = without_manifest(tmp_path, monkeypatch)
    with pytest.raises(DamagedError, match="the next rotation or restoration makes it again"):
        home.stitched()
    assert [problem.kind for problem in home.problems()] == ["live"]


def test_the_next_rotation_makes_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, data, lost = without_manifest(tmp_path, monkeypatch)
    assert home.rotate().recovered.deed == "rebuild"
    assert known((home.archive / "manifest.json").read_bytes()) == known(lost)
    assert home.stitched() == data
    assert home.problems() == []


def test_a_restoration_does_so_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, data, _ = without_manifest(tmp_path, monkeypatch)
    assert home.restore() is not None
    assert home.live.read_bytes() == data


@pytest.mark.parametrize("number", ["", ".1", ".3"])
def test_segments_that_do_not_prove_themselves_make_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    home, _, _ = without_manifest(tmp_path, monkeypatch)
    segment = home.archive / home.live.name.replace(".jsonl", f"{number}.jsonl")
    whole = segment.read_bytes()
    for damage in (whole[:-1], whole.replace(b"message 1", b"message 2"), None):
        if damage is None:
            segment.unlink()
        elif damage == whole:
            continue
        else:
            segment.write_bytes(damage)
        before = homes.snapshot(tmp_path)
        with pytest.raises((DamagedError, RefusedError)):
            home.rotate()
        assert homes.snapshot(tmp_path) == before
