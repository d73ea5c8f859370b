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
    looks, real = [], state.opened

    def counted(place: Place) -> AbstractContextManager[State]:
        looks.append(place)
        return real(place)

    home = homes.home(tmp_path, monkeypatch, DATA)
    monkeypatch.setattr(state, "opened", counted)
    for deed in (home.rotate, home.restore, home.rotate, lambda: called("restore", ID)):
        looks.clear()
        manifest.parse.cache_clear()
        deed()
        assert len(looks) <= MOST, deed
        assert manifest.parse.cache_info().misses <= MOST, deed
    assert home.live.read_bytes() == DATA
