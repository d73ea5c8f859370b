"""What clients' sessions take of the disk, what would give that back, and with which command.

Promise: the figures are the sums of what `list` says of each session, hidden ones included, and no
figure is more than the disk has. In come what a list says of a client's sessions, and the time; out
come steps, the one that costs a user least first.

Rule: only reads. What cannot be read counts nothing, and what belongs to no session counts apart.
Steps are rows of a table. A figure of a step is an estimate: the command's own plan is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import clients
from sessrotate.archive import place
from sessrotate.archive.place import Place
from sessrotate.clients.common import ignored
from sessrotate.in_place import gain
from sessrotate.reports import NextStep, SessionInfo, discovery, project_folder
from sessrotate.reports.discovery import FoundSession, Look
from sessrotate.system import disk_use, in_use
from sessrotate.units import DAY

if TYPE_CHECKING:
    from sessrotate.in_place.outcome import Outcome
    from sessrotate.reports import SessionInfo

OLD: Final = 30
"""Days without use after which a session counts as old."""

_COMPRESSED: Final = 0.2
"""What a session takes once it is compressed, of what it took: 0.14 to 0.3 were measured."""

_BESIDE: Final = 4 * 4096
"""Bytes of the disk that an archive takes besides: a folder, a record, blocks that are not full."""

_WORTH: Final = 1 << 20
"""Bytes that are worth a line."""

SMALL: Final = 1 << 16
"""Bytes of a rollout that is never compressed by itself (`rollouts.WORTH`)."""


class Planned(Struct, frozen=True):
    """What is known of sessions by the plan of a rotation, by their ids.

    `after` are the bytes of live files that tidying makes smaller, `uncut` are the sessions that
    were never compacted, and `left` are those that no rule takes.
    """

    after: Mapping[str, int] = {}
    uncut: Collection[str] = ()
    left: Collection[str] = ()


class _Rule(Struct, frozen=True):
    """A row: which sessions a step is about, and how many bytes it frees of each."""

    takes: Callable[[SessionInfo, float, Planned], bool]
    frees: Callable[[SessionInfo, Planned], float]
    what: str
    command: str
    is_most: bool = False


def _is_old(each: SessionInfo, now: float, planned: Planned) -> bool:
    is_there = each.is_live and each.standing == "session" and each.id not in planned.left
    return is_there and each.last_used < now - OLD * DAY


def _is_uncut(each: SessionInfo, now: float, planned: Planned) -> bool:
    is_never = each.id in planned.uncut and not each.segments
    return is_never and each.bytes >= _WORTH and not _is_old(each, now, planned)


def _live(each: SessionInfo, planned: Planned) -> float:
    """Return what compressing a live file frees, as large as tidying leaves it."""
    taken = max(0, each.disk_bytes - each.archived_disk_bytes)
    left = min(taken, planned.after.get(each.id, taken))
    return max(0.0, left * (1 - _COMPRESSED) - _BESIDE)


_CLAUDE: Final = (
    _Rule(
        _is_old,
        _live,
        f"unused for {OLD} days (the client does not list what is archived)",
        f"sessrotate archive --older-than {OLD}d",
    ),
    _Rule(
        _is_uncut,
        _live,
        "that a resume needs in full (never compacted)",
        "/compact in the client, then: sessrotate tidy",
        is_most=True,
    ),
    _Rule(
        lambda each, _now, planned: (
            each.is_live and each.segments > 0 and each.id not in planned.left
        ),
        lambda each, _planned: each.archived_disk_bytes,
        "whose history is archived, if you let a prune rule delete old history for good",
        "sessrotate prune --all --max-age 90d --dry-run",
        is_most=True,
    ),
)
_CODEX: Final = (
    _Rule(
        lambda each, _now, planned: (
            each.disk_bytes > SMALL and not each.is_compressed and each.id not in planned.after
        ),
        lambda each, _planned: each.disk_bytes,
        "stored plain. `tidy` compresses a session a week after its last use, or 30 days after a "
        "resume or `restore`, if each Codex used in the last 90 days finds compressed sessions. "
        "`tidy SESSION` compresses one at once, if nobody uses it",
        "",
        is_most=True,
    ),
)
_OTHERS: Final = (
    _Rule(
        lambda _each, _now, _planned: True,
        lambda each, _planned: each.disk_bytes,
        "that sessrotate reads, but cannot make smaller",
        "",
        is_most=True,
    ),
)


_RULES: Final = {"claude": _CLAUDE, "codex": _CODEX}


def of(sessions: Iterable[SessionInfo], now: float, planned: Planned) -> tuple[NextStep, ...]:
    """Return the steps for these sessions, by client; `now` is in seconds since 1970."""
    clients: dict[str, list[SessionInfo]] = {}
    for each in sessions:
        clients.setdefault(each.client, []).append(each)
    steps = []
    for client, found in clients.items():
        for rule in _RULES.get(client, _OTHERS):
            taken = [each for each in found if rule.takes(each, now, planned)]
            freed = round(sum(rule.frees(each, planned) for each in taken))
            if freed >= _WORTH:
                step = NextStep(client, rule.what, len(taken), freed, rule.command, rule.is_most)
                steps.append(step)
    return tuple(steps)


def after(
    outcomes: Iterable[Outcome], clients: Iterable[OnDisk], now: float, left: Collection[str]
) -> tuple[NextStep, ...]:
    """Return the steps behind a run, or its plan, that came to these outcomes.

    `now` is in seconds since 1970, `left` as in `Planned`.
    """
    found = [*outcomes]
    planned = Planned(
        after={each.session: each.size for each in found if each.result == "planned"},
        uncut={each.session for each in found if each.usual == "not compacted"},
        left=left,
    )
    return of((info for each in clients for info in each.infos), now, planned)


# ── what sessions take ────────────────────────────────────────────────────────────────────────────


class OnDisk(Struct, frozen=True):
    """What a client's sessions take: `bytes` of the disk, `archived` of them by archives and trash.

    `archived` has what is compressed in its place, too (Codex). `sessions` counts those that
    somebody used. `aside` is what archives that were put aside take, and `others` what else of the
    client's folder of projects, and of ours, is on the disk and of no session. `missing` are the
    ids of the sessions whose archive is not there. `infos` are its sessions, and `plain` the live
    files of those that are plain (`FoundSession`).
    """

    client: str
    sessions: int
    bytes: int
    archived: int = 0
    others: int = 0
    aside: int = 0
    missing: tuple[str, ...] = ()
    infos: tuple[SessionInfo, ...] = ()
    plain: frozenset[Path] = frozenset()

    @property
    def gone(self) -> tuple[str, ...]:
        """The ids of the sessions of which only the archive is left, and nobody put them away."""
        return tuple(each.id for each in self.infos if not (each.is_live or each.is_away))


def left_alone(marked: Iterable[str]) -> set[str]:
    """Return the ids of the sessions that no rule takes: `marked` ones, and those of clients."""
    registries = clients.in_place().files.registries(place.root().parent)
    return {*marked, *in_use.running(registries)}


def of_clients(archives: Iterable[Place], look: Look = discovery.in_brief) -> list[OnDisk]:
    """Return what each client that has sessions takes, in the order of `list`.

    `archives` are all of this machine. Those of Claude Code are looked at by `look`.
    """
    found: dict[str, list[FoundSession]] = {clients.in_place().files.NAME: []}
    places = project_folder.places(ignored, archives)
    for session in discovery.sessions(places=places, look=look):
        found.setdefault(session.info.client, []).append(session)
    summed = [_summed(client, sessions) for client, sessions in found.items()]
    return [each for each in summed if found[each.client] or each.others or each.aside]


def _summed(client: str, found: list[FoundSession]) -> OnDisk:
    infos = [each.info for each in found]
    taken = sum(each.disk_bytes for each in infos)
    is_rotated = client == clients.in_place().files.NAME
    aside = disk_use.of(*place.aside()) if is_rotated else 0
    return OnDisk(
        client=client,
        sessions=sum(each.standing == "session" for each in infos),
        bytes=taken,
        archived=sum(
            each.disk_bytes if each.is_compressed else each.archived_disk_bytes for each in infos
        ),
        others=max(0, gain.measured_all() - taken - aside) if is_rotated else 0,
        aside=aside,
        missing=tuple(each.id for each in infos if each.archive_missing),
        infos=tuple(infos),
        plain=frozenset(each.info.path for each in found if each.is_plain),
    )
