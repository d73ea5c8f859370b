"""Rotating every large session of the machine, one after the other, and those to be healed.

Rule: a session that a client runs is passed over; nobody waits for it. So is one whose owner
restored it, a file that is no session's own, and one that has nothing but zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import clients
from sessrotate.archive import live_tail, owner
from sessrotate.archive.place import Place
from sessrotate.archive.state import State
from sessrotate.clients.common import is_folder
from sessrotate.errors import NotASessionError, SessrotateError, printable
from sessrotate.in_place import obstacles, operations, restore
from sessrotate.in_place.operations import RestoredError
from sessrotate.in_place.outcome import Outcome, Result, Usual, each, failure
from sessrotate.segments import headers
from sessrotate.system import in_use
from sessrotate.system.source import Source, is_zeros

_MIB: Final = 1 << 20

ZEROS: Final = (
    "It holds only zeros, as files do after a crash or on a full disk: put it back from a backup, "
    "or remove it."
)


class Known(Struct, frozen=True):
    """What somebody who has looked at this machine knows of it, so that nobody looks again.

    `archives` are all, and `sizes` the bytes of the live files of sessions. The `plain` ones need
    no rows from anywhere: they begin with no header, and have no folder beside them.
    """

    archives: Sequence[Place]
    sizes: Mapping[Path, int]
    plain: Collection[Path]


def sessions(
    least: int, known: Known | None = None, *, or_rewound: bool = False
) -> list[tuple[Place, int]]:
    """Return the sessions of at least `least` bytes and their sizes, largest first.

    With `or_rewound`, smaller ones too that may need rows of their archives. What is `known` is not
    looked at again.
    """
    return _found(lambda path, size: size >= least or (or_rewound and _is_to_heal(path)), known)


def not_plain(known: Known | None = None) -> list[tuple[Place, int]]:
    """Return the live files that are not plain (`Known`), whoever's they are, and their sizes."""
    sizes, places = known.sizes if known else dict(_sizes()), owner.Places()
    # The place of a file in a linked folder has the folder's own path, the list the link's.
    found = (
        (places.of(path), size)
        for path, size in sizes.items()
        if not (path in known.plain if known else _is_plain(path))
    )
    return [(where, size) for where, size in found if where is not None]


def to_heal(wanted: Iterable[tuple[Place, int]]) -> list[tuple[Place, int]]:
    """Return which of these live files may need rows of their archives, whoever's they are.

    So do those that their client trimmed, of what it kept.
    """
    return [(where, size) for where, size in wanted if _is_to_heal(where.live)]


def owned(wanted: Iterable[tuple[Place, int]]) -> list[tuple[Place, int]]:
    """Return which of these live files are their sessions' own."""
    return [(where, size) for where, size in wanted if owner.of(where.live) is not None]


def _is_plain(path: Path) -> bool:
    return not (live_tail.begins_so(path) or is_folder(path.with_suffix("")))


def _is_to_heal(path: Path) -> bool:
    return restore.is_trimmed(path, path.stem) or may_be_rewound(path)


def _found(is_wanted: Callable[[Path, int], bool], known: Known | None) -> list[tuple[Place, int]]:
    places = owner.Places(None if known is None else known.archives)
    sizes = dict(_sizes()) if known is None else known.sizes
    wanted = ((path, size) for path, size in sizes.items() if is_wanted(path, size))
    owned = ((owner.of(path, places), size) for path, size in wanted)
    found = [(where, size) for where, size in owned if where is not None]
    return sorted(found, key=lambda entry: (-entry[1], entry[0].live))


def _sizes() -> Iterator[tuple[Path, int]]:
    for path in clients.in_place().files.sessions():
        with suppress(OSError):  # it went away while we looked
            yield path, path.stat().st_size


def leads(wanted: list[tuple[Place, int]]) -> dict[Place, str]:
    """Return for each session where in the batch it is: `3 of 8 · 580/875 MiB`.

    The bytes are of live files: those of the sessions before it, and of all.
    """
    found: dict[Place, str] = {}
    before, total = 0, sum(size for _, size in wanted)
    for number, (where, size) in enumerate(wanted, 1):
        found[where] = f"{number:,} of {len(wanted):,}"
        if total >= _MIB:
            found[where] += f" · {before // _MIB:,}/{total // _MIB:,} MiB"
        before += size
    return found


def rotate(
    wanted: list[tuple[Place, int]],
    action: Callable[[Place], operations.Rotated],
    *,
    live: bool,
    to_come: int = 0,
) -> Iterator[Outcome]:
    """Rotate sessions by `action`, and yield what became of each; sizes are of the live files.

    Sessions that a client says it runs are passed over, unless `live`. One for which the disk has
    no room is tried again when the others have freed some, as long as that helps. In a plan it
    fails, as it would; `to_come` is how many bytes the disk is to gain before.
    """
    sizes = dict(wanted)
    gains = [to_come]  # bytes of the disk that are to be gained before it, in a plan

    def act(where: Place) -> Outcome:
        before = sizes[where]
        if not live and any(in_use.clients(where)):
            return Outcome(where, "in use", size=before)
        try:
            done = action(where)
        except (RestoredError, NotASessionError) as error:
            return Outcome(where, "nothing to do", size=before, detail=_stays(where, error))
        if (left := _left(where, done, before)) is not None:
            return left
        planned = done.seconds is None
        after = done.plan.bytes_after if planned else live_size(where, before)
        detail = "rows came back from its archive" if done.plan.heals else ""
        if done.plan.live is not None and done.plan.heals and done.plan.live.misleads:
            detail = "its first prompt went to its archive"
        if done.together:
            before, detail = before + done.together, "put together what its client trimmed"
        gained, disk = (done.disk.gain, done.disk.before) if done.disk is not None else (0, 0)
        if planned:
            obstacles.check_room(where.config, done.need, sum(gains))
            gains.append(max(0, gained))
        result: Result = "planned" if planned else "done"
        numbers = tuple(segment.index for segment in done.plan.segments)
        return Outcome(
            where, result, before - after, after, gained, detail, disk=disk, segments=numbers
        )

    for outcome in as_room_comes(sizes, act, "rotate the session"):
        yield _told(outcome, sizes)


def as_room_comes(
    wanted: Iterable[Place], act: Callable[[Place], Outcome], doing: str
) -> Iterator[Outcome]:
    """Do something to each session; again to those without room, as long as others free some.

    `doing` is as for `each`.
    """
    left, is_last = [*wanted], False
    while left:
        cramped, is_freed = list[Place](), False
        for outcome in each(left, act, doing):
            if outcome.where is not None and obstacles.is_cramped(outcome.error) and not is_last:
                cramped.append(outcome.where)
            else:
                is_freed = is_freed or outcome.gained > 0
                yield outcome
        left, is_last = cramped, not is_freed


def _told(outcome: Outcome, sizes: dict[Place, int]) -> Outcome:
    """Return what became of a session; where it failed, the swap may be done all the same."""
    if outcome.error is None or outcome.where is None:
        return outcome
    after = live_size(outcome.where, sizes[outcome.where])
    return replace(outcome, freed=sizes[outcome.where] - after, size=after)


def _stays(where: Place, error: RestoredError | NotASessionError) -> str:
    """Return why a file stays as it is; raise the error if that is a failure."""
    if isinstance(error, RestoredError):
        return str(error)
    if is_zeros(where.live):
        return ZEROS
    raise error


def _left(where: Place, done: operations.Rotated, size: int) -> Outcome | None:
    """Return why a session is left as it is, None if it is not; `size` is that of its live file."""
    if done.refusal is not None:
        return failure(where, done.refusal)
    lacks = done.plan.lacks
    if done.together:
        return None
    if done.plan.live is None and lacks is not None:
        gone = f"A resume lacks rows that may have been in segment {lacks:,}, which is gone."
        return Outcome(where, "nothing to do", size=size, detail=gone)
    usual: Usual
    if done.plan.live is None:
        why, usual = f"it has not been compacted {done.plan.since}", "not compacted"
    elif done.gains_too_little:
        why, usual = "rotating it would free too little to be worth it", "too little"
    else:
        return None
    return Outcome(where, "nothing to do", size=size, detail=why, usual=usual)


def live_size(where: Place, otherwise: int = 0) -> int:
    """Return how many bytes the live file of a session has; `otherwise` if it is gone."""
    try:
        return where.live.stat().st_size
    except OSError:
        return otherwise


# ── rotated sessions that go on from an archived row: a rotation heals them ─────────────────────


def may_be_rewound(path: Path) -> bool:
    """Tell whether a live file may need rows of its archive; one that cannot be read does not."""
    try:
        if not live_tail.begins_so(path):
            return False
        with Source.itself(path) as source:
            header = headers.parse_live(live_tail.first_line(source))
            if header is None or live_tail.misfit(header, source) is not None:
                return False  # its client cut it, and knows what it needs
            prefix = headers.prefix(header)
            return clients.in_place().resume.dangles(source, prefix, prefix + header.judged_bytes)
    except (SessrotateError, OSError):
        return False


def may_lack_rows(found: State) -> bool:
    """Tell whether an open session may need rows of its archive, or has no header to tell by."""
    header, live = found.header, found.live
    if header is None or live is None or found.is_gone:
        return True
    return found.place.client.resume.dangles(live, found.prefix, found.prefix + header.judged_bytes)


def rewound_problem(where: Place) -> str | None:
    """Return what to say of a session that a rotation would heal; None if that is not so."""
    if not may_be_rewound(where.live):
        return None
    with suppress(SessrotateError):  # that is said of the session by those who look at its archive
        planned = operations.plan_session(where, lambda *_: nullcontext(lambda _done: None)).plan
        if planned.live is None or not planned.heals:
            return None
        name, goes = printable(where.session), planned.live.misleads
        what = "has one prompt too many" if goes else "lacks the rows before it"
        helps = f"`sessrotate rotate {name}` {'takes that out' if goes else 'puts them back'}."
        if planned.live.refusals:
            helps = f"{planned.live.refusals[0]} `sessrotate restore {name}` gives the whole file."
        return (
            "Someone rewound, in a running client, to a message from before the rotation, and a "
            f"resume {what}: {helps}"
        )
    return None
