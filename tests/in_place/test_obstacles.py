"""What would keep a rotation from being finished is found before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import place
from sessrotate.errors import RefusedError
from sessrotate.in_place import operations
from support import homes
from support.command_line import ID, REAL, piped, session, write

if TYPE_CHECKING:
    from pathlib import Path

MANY: Final = session(boundaries=80)


@pytest.mark.parametrize("length", [245, 249])
def test_a_name_that_is_too_long_for_its_segments_is_refused_before_anything_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    home = homes.home(tmp_path, monkeypatch)
    name = "n" * length
    path = write(home.live.with_name(f"{name}.jsonl"), session(boundaries=3))
    before = homes.snapshot(home.config)
    with pytest.raises(RefusedError, match="too long a name"):
        operations.rotate_session(place.of_live(path), 0, homes.silent)
    assert homes.snapshot(home.config) == before


@pytest.mark.parametrize("length", [200, 225])
def test_a_long_name_that_fits_is_rotated_and_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    home = homes.home(tmp_path, monkeypatch)
    data = session(boundaries=3)
    path = write(home.live.with_name(f"{'n' * length}.jsonl"), data)
    where = place.of_live(path)
    assert operations.rotate_session(where, 0, homes.silent).refusal is None
    assert path.stat().st_size < len(data)
    operations.restore_session(where, 0, homes.silent)
    assert path.read_bytes() == data


@pytest.mark.parametrize("limit", [40, 48, 64])
def test_a_session_with_many_segments_is_sealed_with_few_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    home = homes.home(tmp_path, monkeypatch, MANY)
    few = ("prlimit", f"--nofile={limit}:{limit}", *REAL)
    for command in (("split", "--in-place", ID), ("restore", ID)):
        ended = piped(*command, env=home.env, program=few)
        assert ended.code == 0, (command, ended)
    assert home.live.read_bytes() == MANY


@pytest.mark.parametrize("umask", [0, 0o077, 0o777])
def test_what_is_made_is_private_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    home = homes.home(tmp_path, monkeypatch, session(boundaries=3))
    assert piped("split", "--in-place", ID, env=home.env, umask=umask).code == 0
    assert piped("stitch", ID, env=home.env, umask=umask).out.encode() == session(boundaries=3)
    for path in (home.config / "sessrotate").rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
