"""Whatever kills `archive` or `unarchive`, and whoever saves by rename then, no file is lost.

The oracle looks in all files for what the session held, and for what was saved last.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.errors import SessrotateError
from sessrotate.retention import archive, unarchive
from support.crash.changes import killed
from support.crash.disk import Image
from support.crash.judging import seen_of
from support.crash.power import recorded
from support.crash.scenes import OPENING, Session, laid_out
from support.crash.simulator import Disk
from support.newcomers import Newcomers

if TYPE_CHECKING:
    from collections.abc import Callable

SAVED: Final = OPENING + b'{"type":"user","uuid":"saved last"}\n'
BEFORE: Final = OPENING + b'{"type":"user","uuid":"saved before"}\n'
AGENT: Final = b'{"sessionId":"5e55107a-0000-4000-a000-000000000001","type":"user","uuid":"1"}\n'


@pytest.fixture(autouse=True)
def _plain_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the files plain, so that they can be looked into, and wait for nobody."""
    monkeypatch.setattr("sessrotate.retention.archive_files.compress", lambda *_: None)
    monkeypatch.setattr("sessrotate.system.in_use.writers", lambda _file: iter(()))
    monkeypatch.setattr("sessrotate.system.lease.GRACE", 0)


def put_away(found: Session) -> None:
    archive.archive(found.where, 1)


def bring_back(found: Session) -> None:
    unarchive.unarchive(found.where, 1)


@cache
def before(deed: Callable[[Session], None]) -> Image:
    with laid_out(Image(frozenset(), (), ())) as found:
        found.begin(OPENING)
        (found.where.live.parent / "agent-0a.jsonl").write_bytes(AGENT)
        if deed is bring_back:
            put_away(found)
        return found.image()


def beside(*saves: bytes, deed: Callable[[Session], None]) -> Callable[[Session], None]:
    def both(found: Session) -> None:
        with Newcomers(found.where.live, [*saves]).coming(), suppress(SessrotateError):
            deed(found)

    return both


def files(found: Session) -> list[bytes]:
    return [path.read_bytes() for path in found.root.rglob("*") if path.is_file()]


def check(image: Image, *there: bytes) -> None:
    """See that all is there at once, and after either command that may be the next."""
    for following in (put_away, bring_back):
        with laid_out(image) as found:
            assert {*there} <= {*files(found)}, image.shown()
            with suppress(SessrotateError):
                following(found)
            assert {*there} <= {*files(found)}, image.shown()


def test_a_kill_while_agents_of_a_session_that_was_never_written_are_saved_loses_none() -> None:
    with laid_out(Image(frozenset(), (), ())) as found:
        found.where.live.parent.mkdir(parents=True, exist_ok=True)
        (found.where.live.parent / "agent-0a.jsonl").write_bytes(AGENT)
        unwritten = found.image()
    count = 0
    for found in killed(lambda: laid_out(unwritten), put_away):
        count += 1
        check(found.image(), AGENT)
        with laid_out(found.image()) as again:  # nor is it forgotten half way
            put_away(again)
            assert not again.where.live.exists()
            assert not (again.where.live.parent / "agent-0a.jsonl").exists()
    assert count > 10


DEEDS: Final = pytest.mark.parametrize("deed", [put_away, bring_back])


@DEEDS
def test_a_kill_at_any_moment_loses_no_file(deed: Callable[[Session], None]) -> None:
    count = 0
    for found in killed(lambda: laid_out(before(deed)), deed):
        count += 1
        check(found.image(), OPENING, AGENT)
    assert count > 10


@pytest.mark.parametrize(
    ("deed", "saves"),
    [
        pytest.param(put_away, [SAVED], id="archive"),
        pytest.param(put_away, [BEFORE, SAVED], id="archive, two saves"),
        pytest.param(bring_back, [SAVED], id="unarchive"),
    ],
)
def test_a_kill_beside_a_program_that_saves_loses_no_save(
    deed: Callable[[Session], None], saves: list[bytes]
) -> None:
    with laid_out(before(deed)) as found:
        states = seen_of(found, beside(*saves, deed=deed))
    done = [image for image in states if not any(".saving" in path for path, _ in image.names)]
    later = [image for image in done if SAVED in image.contents]
    assert later
    for image in later:
        kept = [OPENING] if deed is bring_back else []  # else the program has replaced it
        check(image, SAVED, AGENT, *kept)


@DEEDS
def test_a_power_loss_at_any_moment_loses_no_file(deed: Callable[[Session], None]) -> None:
    run = recorded("archive", before(deed), OPENING, deed)
    disk, known = Disk.of(run.trace), set()
    for event in run.trace.events:
        disk.apply(event)
        for image, _ in disk.states():
            if image not in known:
                known.add(image)
                check(image, OPENING, AGENT)
    assert len(known) > 5
