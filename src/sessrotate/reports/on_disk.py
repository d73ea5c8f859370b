"""What the sessions of each client take of the disk, and how much of their history is archived.

Promise: the figures are the sums of what `list` says of each session, hidden ones included.

Rule: only reads. What cannot be read counts nothing, and what belongs to no session counts apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from sessrotate import clients
from sessrotate.archive import place
from sessrotate.archive.place import Place
from sessrotate.clients.common import ignored
from sessrotate.in_place import gain
from sessrotate.reports import discovery, project_folder
from sessrotate.reports.discovery import FoundSession, Look
from sessrotate.reports.session_info import SessionInfo
from sessrotate.system import disk_use, in_use


class OnDisk(Struct, frozen=True):
    """What a client's sessions take: `bytes` of the disk, `archived` of them by archives and trash.

    `archived` has what is compressed in its place, too (Codex).
    `sessions` counts those that somebody used. `history` are the bytes of history in archives, as
    the client wrote them. `aside` is what archives that were put aside take, and `others` what else
    of the client's folder of projects, and of ours, is on the disk and of no session. `missing` are
    the ids of the sessions whose archive is not there. `infos` are its sessions, and `plain` the
    live files of those that are plain (`FoundSession`).
    """

    client: str
    sessions: int
    bytes: int
    archived: int = 0
    history: int = 0
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
    for session in discovery.sessions(hidden=True, places=places, look=look):
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
        history=sum(each.archived_bytes or 0 for each in infos),
        others=max(0, gain.measured_all() - taken - aside) if is_rotated else 0,
        aside=aside,
        missing=tuple(each.id for each in infos if each.archive_missing),
        infos=tuple(infos),
        plain=frozenset(each.info.path for each in found if each.is_plain),
    )
