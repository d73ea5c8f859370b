"""What is done to a session in a few steps, as a table, and where it may end: anywhere.

Each row is a session as it is before, what is done to it, and what must hold of whatever is left:
that nothing is lost, and that the next run ends it. The oracles know the bytes that a client wrote.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from typing import TYPE_CHECKING, Final

from sessrotate import names
from sessrotate.archive import restored, state
from sessrotate.clients.claude import cleanup
from sessrotate.errors import SessrotateError
from sessrotate.retention import bring_back, prune, put_away, restore, trash
from sessrotate.retention.policy import Policy
from sessrotate.units import DAY
from support import homes, oracle, sets
from support.crash.changes import Faults
from support.crash.disk import Image
from support.crash.judging import seen_of
from support.crash.power import recorded
from support.crash.scenes import MORE, OPENING, Session, compaction, laid_out, recovered, unseen
from support.crash.simulator import Disk
from support.lines import row
from support.trimming import keep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Do = Callable[[Session], None]

HISTORY: Final = OPENING + MORE
BODIES: Final = oracle.bodies(HISTORY)
ARCHIVED: Final = range(len(BODIES) - 1)
KEPT: Final = 2
GOES: Final = frozenset(ARCHIVED[:-KEPT])
NOW: Final = 1_900_000_000.0
NOTHING: Final = Image(frozenset(), (), ())


@dataclass(frozen=True)
class Deed:
    """What is done to a session, and what must hold of what is left.

    `is_told` says that whatever fails is told, and is no text that nothing needs.
    """

    name: str
    before: Callable[[], Image]
    run: Do
    check: Callable[[Image], None]
    is_told: bool = True


# ── where it ends ────────────────────────────────────────────────────────────────────────────


def after_kills(deed: Deed) -> Iterator[Image]:
    """Yield what a kill may leave: before every change, and in the middle of every write."""
    with laid_out(deed.before()) as found:
        yield from seen_of(found, deed.run)


def after_power_losses(deed: Deed, run: Do | None = None) -> Iterator[Image]:
    """Yield what a power loss may leave, each state once."""
    trace = recorded(deed.name, deed.before(), HISTORY, run or deed.run).trace
    disk, known = Disk.of(trace), set[Image]()
    for event in trace.events:
        disk.apply(event)
        for image, _ in disk.states():
            if image not in known:
                known.add(image)
                yield image


def after_faults(
    deed: Deed, faults: Callable[[int], Faults]
) -> Iterator[tuple[Image, Faults, SessrotateError | None]]:
    """Yield what is left where the 1st call fails, then the 2nd …, and what was said of it."""
    for at in count(1):
        with laid_out(deed.before()) as found:
            failing, failure = faults(at), None
            with failing.installed():
                try:
                    deed.run(found)
                except SessrotateError as error:
                    failure = error
            if not failing.failed:
                assert failure is None
                return
            image = found.image()
        yield image, failing, failure


def made(*deeds: Do) -> Image:
    """Return what these deeds leave, one after the other, of a session with all of `HISTORY`."""
    with laid_out(NOTHING) as found:
        found.rotated_twice()
        for deed in deeds:
            deed(found)
        return found.image()


# ── sealed segments ──────────────────────────────────────────────────────────────────────────


def run_prune(found: Session) -> None:
    plan = prune.prepare([found.where], Policy(keep_last=KEPT), NOW, lambda _done: None)
    for outcome in (*plan.failures, *prune.execute(plan, 1)):
        if outcome.error is not None:
            raise outcome.error


def run_restore(found: Session) -> None:
    restore.restore(found.where, restore.WantedBack(whole=False), 1, unseen)


def run_empty(found: Session) -> None:
    trash.empty(found.where, 7 * DAY, NOW + 7 * DAY, 1)


def run_pin(found: Session) -> None:
    prune.pin(found.where, ARCHIVED[-1], "the design", 1)


def without(gone: frozenset[int]) -> bytes:
    return b"".join(body for index, body in enumerate(BODIES) if index not in gone)


def files_of(found: Session) -> dict[str, bytes]:
    """Return the files of an archive, decompressed, by their paths in it."""
    top = found.where.archive
    paths = [path for path in top.rglob("*") if path.is_file()]
    return {str(path.relative_to(top)): homes.content(path) for path in paths}


def told(found: Session) -> tuple[bytes, list[str]]:
    """Return the history as a reader gets it, and what it says of its gaps."""
    gaps: list[str] = []
    with state.opened(found.where) as opened:
        return sets.whole(opened, gaps.append), gaps


@dataclass(frozen=True)
class Pruning:
    """A change of sealed segments: which are gone before it and after it, and which are freed."""

    run: Do
    earlier: tuple[Do, ...]
    before: frozenset[int]
    after: frozenset[int]
    freed: frozenset[int] = frozenset()

    def image(self) -> Image:
        return _made(self.earlier)

    def deed(self, name: str) -> Deed:
        return Deed(name, self.image, self.run, self.check)

    def check(self, image: Image) -> None:
        with laid_out(image) as found:
            self._check_told(found)
            self.run(found)
            assert files_of(found).keys() == _left_by(self)
            assert told(found)[0] == without(self.after)
            self._check_nothing_lost(found)
        with laid_out(image) as found:  # nor may another command be the next
            run_pin(found)
            self._check_told(found)
            left = {name for name in files_of(found) if name.endswith(names.PARTIAL)}
            assert left <= {f"{names.RECORD}{names.PARTIAL}"}  # the next record takes its place

    def _check_nothing_lost(self, found: Session) -> None:
        """Look for every body, in files of any name that it could have."""
        there = files_of(found)
        for index in {*ARCHIVED} - self.freed:
            file = names.sealed_file(found.where.session, index)
            at = [data for name, data in there.items() if name in {file, f"{names.TRASH}/{file}"}]
            assert any(data.endswith(BODIES[index]) for data in at), f"segment {index} is lost"

    def _check_told(self, found: Session) -> None:
        """See that a reader gets a history from before the change or after it, and its gaps."""
        self._check_nothing_lost(found)
        history, gaps = told(found)
        assert history in {without(self.before), without(self.after)}
        assert bool(gaps) == (history != HISTORY)


@cache
def _made(earlier: tuple[Do, ...]) -> Image:
    return made(*earlier)


@cache
def _left_by(pruning: Pruning) -> frozenset[str]:
    """Return the names of what a whole run leaves."""
    with laid_out(pruning.image()) as found:
        pruning.run(found)
        return frozenset(files_of(found))


NONE: Final[frozenset[int]] = frozenset()
PRUNINGS: Final = {
    "prune": Pruning(run_prune, (), NONE, GOES),
    "restore pruned": Pruning(run_restore, (run_prune,), GOES, NONE),
    "empty the trash": Pruning(run_empty, (run_prune,), GOES, GOES, freed=GOES),
    "pin": Pruning(run_pin, (), NONE, NONE),
}


# ── everything that `restore` undoes ─────────────────────────────────────────────────────────


def put_it_away(found: Session) -> None:
    put_away.put_away(found.where, 1)


def run_restore_all(found: Session) -> None:
    restore.restore(found.where, restore.ALL, 1, unseen)


def check_whole(image: Image) -> None:
    with laid_out(image) as found:
        history, gaps = told(found)  # nothing but what is in the trash is missing
        assert history == HISTORY or (gaps and HISTORY.endswith(history))
        run_restore_all(found)
        assert found.where.live.read_bytes() == HISTORY
        emptied = found.where.archive / names.TRASH
        if emptied.exists():
            emptied.rmdir()  # a crash left it, with nothing in it
        found.check_clean()


# ── a session that is put away, and comes back ───────────────────────────────────────────────

AGENT: Final = b'{"sessionId":"5e55107a-0000-4000-a000-000000000001","type":"user","uuid":"1"}\n'


def bring_it_back(found: Session) -> None:
    bring_back.bring_back(found.where, 1)


@cache
def with_an_agent(*, is_written: bool = True, is_away: bool = False) -> Image:
    """Return a session with an agent's transcript; or that alone, as a client leaves it."""
    with laid_out(NOTHING) as found:
        if is_written:
            found.begin(OPENING)
        else:
            found.where.live.parent.mkdir(parents=True)
        (found.where.live.parent / "agent-0a.jsonl").write_bytes(AGENT)
        if is_away:
            put_it_away(found)
        return found.image()


def contents(found: Session) -> set[bytes]:
    """Return what any file of a home holds, decompressed."""
    return {homes.content(path) for path in found.root.rglob("*") if path.is_file()}


def check_there(image: Image, *there: bytes) -> None:
    """See that all is there at once, and after either command that may be the next."""
    for following in (put_it_away, bring_it_back):
        with laid_out(image) as found:
            assert {*there} <= contents(found), image.shown()
            with suppress(SessrotateError):
                following(found)
            assert {*there} <= contents(found), image.shown()


def check_both(image: Image) -> None:
    check_there(image, OPENING, AGENT)


def check_saved(image: Image) -> None:
    """See the same of a session that was never written, and that it is not forgotten half way."""
    check_there(image, AGENT)
    with laid_out(image) as found:
        put_it_away(found)
        assert not found.where.live.exists()
        assert not (found.where.live.parent / "agent-0a.jsonl").exists()


# ── what a restoration left ──────────────────────────────────────────────────────────────────


@cache
def whole_again() -> Image:
    return made(Session.restore)


def free(found: Session) -> None:
    trash.empty(found.where, 7 * DAY, NOW + 8 * DAY, 1)


def check_freed(image: Image) -> None:
    with laid_out(image) as found:
        assert found.stitched() == HISTORY
        assert found.where.live.read_bytes() == HISTORY
        assert restored.is_marked(found.where)
        free(found)
        assert found.stitched() == HISTORY
        found.check_clean()
        left = {path.name for path in found.where.archive.iterdir()}
        assert left - {names.WAITING} == {names.RECORD}


def check_rotated(image: Image) -> None:
    with laid_out(image) as found:
        assert found.stitched() == HISTORY
        found.recover()
        assert found.stitched() == HISTORY
        found.check_clean()
        free(found)
        found.rotate()
        assert found.stitched() == HISTORY
        assert not restored.is_marked(found.where)
        found.check_clean()


# ── a manifest that is made again ────────────────────────────────────────────────────────────

HALF: Final = b'{"format": 1, "sess'


@cache
def without_manifest(damage: bytes | None) -> Image:
    """Return an archive with a segment in the trash, and a manifest that is gone or damaged."""
    with laid_out(_made((run_prune,))) as found:
        path = found.where.archive / names.MANIFEST
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
        return found.image()


def check_rebuilt(image: Image, damage: bytes | None) -> None:
    with laid_out(image) as found:
        found.recover()
        with trash.begin(found.where, 1) as listed:
            assert all(entry.pin and entry.pruned is None for entry in listed.segments)
        assert told(found)[0] == without(frozenset())
        files = files_of(found)
        for body in BODIES[:-1]:
            assert any(data.endswith(body) for data in files.values())
        if damage is not None:
            assert damage in {data for name, data in files.items() if "damaged" in name}


# ── a session that its client trimmed ────────────────────────────────────────────────────────

TRIMMED: Final = ("never rotated", "rotated", "not trimmed yet")
MORE_TO_TRIM: Final = tuple(
    row(cut) + b"\n" + compaction(cut) + row(cut * 10) + b"\n" for cut in (17, 18, 19)
)
TRIMMED_HISTORY: Final = OPENING + b"".join(MORE_TO_TRIM) + row(20) + b"\n"


@cache
def trimmed(name: str) -> Image:
    """Return a session that its client trimmed three times, as it is before it is rotated."""
    with laid_out(NOTHING) as found:
        found.begin(OPENING)
        if name == "rotated":
            found.rotate()
        for more in MORE_TO_TRIM:
            found.append(more)
            if name != "not trimmed yet":
                keep(found.where.live)
        if name == "not trimmed yet":
            path = cleanup.new_name(found.where.live, found.where.session)
            path.parent.mkdir(parents=True)
            path.hardlink_to(found.where.live)
        found.append(row(20) + b"\n")
        return found.image()


def check_put_together(image: Image) -> None:
    with laid_out(image) as found:
        found.rotate()
        assert found.stitched() == TRIMMED_HISTORY
        folder = found.where.live.with_suffix("") / "before-cleanup"
        for path in folder.iterdir():
            assert path.samefile(found.where.live)
            path.unlink()
        folder.rmdir()  # the client's, and nothing else is in it
        folder.parent.rmdir()
        found.check_clean()


DEEDS: Final = (
    *(pruning.deed(name) for name, pruning in PRUNINGS.items()),
    Deed("restore all", partial(_made, (run_prune, put_it_away)), run_restore_all, check_whole),
    Deed("put away", with_an_agent, put_it_away, check_both, is_told=False),
    Deed(
        "archive what was never written",
        partial(with_an_agent, is_written=False),
        put_it_away,
        check_saved,
        is_told=False,
    ),
    Deed(
        "bring back", partial(with_an_agent, is_away=True), bring_it_back, check_both, is_told=False
    ),
    Deed("free what was restored", whole_again, free, check_freed),
    Deed("rotate what was restored", whole_again, Session.rotate, check_rotated, is_told=False),
    *(
        Deed(
            f"rebuild the manifest, {what}",
            partial(without_manifest, damage),
            recovered,
            partial(check_rebuilt, damage=damage),
        )
        for what, damage in (("gone", None), ("half", HALF))
    ),
    *(
        Deed(
            f"put together, {name}",
            partial(trimmed, name),
            Session.rotate,
            check_put_together,
            is_told=False,
        )
        for name in TRIMMED
    ),
)
