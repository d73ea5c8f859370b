"""Whoever saves by rename while a session is put away or comes back, no file is lost by a kill.

The oracle looks in all files for what the session held, and for what was saved last.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.errors import SessrotateError
from support.crash.deeds import AGENT, bring_it_back, check_there, put_it_away, with_an_agent
from support.crash.judging import seen_of
from support.crash.scenes import OPENING, Session, laid_out
from support.newcomers import Newcomers

if TYPE_CHECKING:
    from collections.abc import Callable

SAVED: Final = OPENING + b'{"type":"user","uuid":"saved last"}\n'
BEFORE: Final = OPENING + b'{"type":"user","uuid":"saved before"}\n'


@pytest.fixture(autouse=True)
def _plain_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the files plain, so that they can be looked into, and wait for nobody."""
    monkeypatch.setattr("sessrotate.retention.away_files.compress", lambda *_: None)
    monkeypatch.setattr("sessrotate.system.in_use.writers", lambda _file: iter(()))
    monkeypatch.setattr("sessrotate.system.locks.GRACE", 0)


def beside(*saves: bytes, deed: Callable[[Session], None]) -> Callable[[Session], None]:
    def both(found: Session) -> None:
        with Newcomers(found.where.live, [*saves]).coming(), suppress(SessrotateError):
            deed(found)

    return both


@pytest.mark.parametrize(
    ("deed", "saves"),
    [
        pytest.param(put_it_away, [SAVED], id="archive"),
        pytest.param(put_it_away, [BEFORE, SAVED], id="archive, two saves"),
        pytest.param(bring_it_back, [SAVED], id="bring back"),
    ],
)
def test_a_kill_beside_a_program_that_saves_loses_no_save(
    deed: Callable[[Session], None], saves: list[bytes]
) -> None:
    with laid_out(with_an_agent(is_away=deed is bring_it_back)) as found:
        states = seen_of(found, beside(*saves, deed=deed))
    done = [image for image in states if not any(".saving" in path for path, _ in image.names)]
    later = [image for image in done if SAVED in image.contents]
    assert later
    for image in later:
        kept = [OPENING] if deed is bring_it_back else []  # else the program has replaced it
        check_there(image, SAVED, AGENT, *kept)
