"""What a rotation says that the disk gains, held against `du`."""

from __future__ import annotations

import os
import re
from io import BytesIO
from typing import TYPE_CHECKING, Final

import pytest

import generate_session
from generate_session import Options
from support import command_line, homes
from support.command_line import called

if TYPE_CHECKING:
    from pathlib import Path

MIB: Final = 1024 * 1024


def generated(options: Options) -> bytes:
    file = BytesIO()
    generate_session.generate(file, options)
    return file.getvalue()


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(Options(size=20 * MIB, images=8), id="pictures"),
        pytest.param(Options(size=12 * MIB, boundaries=40), id="many segments"),
        pytest.param(Options(size=60 * MIB, images=20, boundaries=9), id="told from samples"),
    ],
)
def test_it_is_what_du_says_and_a_dry_run_tells_it_within_a_fifth(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shape: Options,
) -> None:
    home = homes.home(tmp_path, monkeypatch, generated(shape))
    before = homes.on_disk(home.config)
    would = called("split", "--in-place", "--dry-run", "--json", home.live)
    done = called("split", "--in-place", "--json", home.live)
    gained = before - homes.on_disk(home.config)
    told = done.document()["disk"]
    assert abs(told["bytes_gained"] - gained) <= max(0.01 * abs(gained), 32 * 1024)
    assert told["bytes_before"] - told["bytes_after"] == told["bytes_gained"]
    guess = would.document()["disk"]
    assert guess["is_estimated"]
    assert abs(guess["bytes_gained"] - gained) <= max(abs(gained) / 5, MIB / 4)
    assert gained > 0


def test_a_hole_in_the_file_is_no_gain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = homes.home(tmp_path, monkeypatch, command_line.session(boundaries=2, padding=4096))
    os.truncate(home.live, 3 * MIB)
    before = homes.on_disk(home.config)
    if before > MIB:
        pytest.skip("this file system has no holes")
    would = called("rotate", "--dry-run", command_line.ID).out
    done = called("rotate", command_line.ID).out
    more = homes.on_disk(home.config) - before
    assert more > 2 * MIB
    assert re.search(r"On disk, that would take about [23]\.\d MiB more", would)
    assert re.search(r"On disk, that takes [23]\.\d MiB more", done)
