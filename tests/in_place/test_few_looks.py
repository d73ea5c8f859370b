"""A happy rotation, and a restoration, look at a session no more often than they must."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.archive import state
from sessrotate.segments import manifest
from support import homes
from support.command_line import ID, called
from support.lines import session

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.archive.state import State

DATA: Final = session(5, rows=60)

MOST: Final = 3
"""Once before anything is changed, and twice behind the swap: to see what came, and to seal."""


def test_a_session_is_opened_three_times_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, parsed, real = [], list[int](), state.opened
    parse = manifest._parsed  # noqa: SLF001 - what is parsed, and not only looked up

    def counted(place: Place) -> AbstractContextManager[State]:
        looks.append(place)
        return real(place)

    def counted_parse(data: bytes) -> manifest.Manifest:
        parsed.append(len(data))
        return parse(data)

    home = homes.home(tmp_path, monkeypatch, DATA)
    monkeypatch.setattr(state, "opened", counted)
    monkeypatch.setattr(manifest, "_parsed", counted_parse)
    for deed in (home.rotate, home.restore, home.rotate, lambda: called("restore", ID)):
        looks.clear()
        parsed.clear()
        deed()
        assert len(looks) <= MOST, deed
        assert len(parsed) <= MOST, deed
    assert home.live.read_bytes() == DATA
