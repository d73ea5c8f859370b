"""What `list` shows: a table as wide as the terminal, plain text, or JSON for programs. Pure.

Rule: no line is wider than the terminal, and a size or a time is shown whole or not at all. Whole
columns are left out, the least useful first; only projects and titles are shortened. Text from a
session passes `safe_text` first, and colours come only from this module. The keys of the JSON
(`docs/schema/list.json`) are a contract: new ones are added, none is changed. Sizes are in bytes.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from sessrotate import safe_text
from sessrotate.render import columns, count, json_rows, moment, size
from sessrotate.render.columns import Canvas, Columns, TableRow
from sessrotate.reports import SessionInfo, short_names
from sessrotate.units import DAY

_AGES: Final = (
    (3600.0, 60.0, "minute"),
    (48 * 3600.0, 3600.0, "hour"),
    (21 * DAY, DAY, "day"),
    (70 * DAY, 7 * DAY, "week"),
    (730 * DAY, 30.44 * DAY, "month"),
    (float("inf"), 365.25 * DAY, "year"),
)
"""Up to how many seconds an age is given in which unit: the unit's seconds and name."""

_NOW: Final = 60.0
"""Seconds within which something happened just now."""

LEAST: Final = {"session": 40, "project": 12, "title": 16}
"""Columns that a long id, a project or a title needs; others are left out to get them."""

PATHS: Final = frozenset({"project"})

_RUNNING: Final = {"last used": "running"}

_NOT_USED: Final = {
    "empty": "(empty)",
    "warm-up": "(warm-up)",
    "agent": "(agents only)",
    "copy": "(copy)",
    "session": "",
}


class Look(Canvas, frozen=True, kw_only=True):
    """How to draw the list: in how many columns, None for as many as it takes.

    `home` is the folder that is shown as `~`; `now` is in seconds since 1970. A terminal shows
    ages, everything else shows times. `by` is what sessions are sorted by.
    """

    now: float
    home: str = ""
    by: str = ""


class _Shown(Struct, frozen=True):
    """What cells depend on besides their own session."""

    look: Look
    names: dict[str, str]
    clients: int
    is_more: bool
    """Whether any session has more on the disk than its live file."""


class _Column(Struct, frozen=True):
    """A column: its cells, its style, and its rank; the highest rank is left out first.

    A column whose cells are all `empty` is left out anyway.
    """

    name: str
    rank: int
    cell: Callable[[SessionInfo, _Shown], str]
    is_right: bool = False
    style: str = ""
    empty: str | None = None


def _taken(number: int) -> str:
    return size(number) if number else "-"


def _size(entry: SessionInfo, _shown: _Shown) -> str:
    if entry.is_live:
        return size(entry.bytes)
    if not entry.is_there:
        return "-"
    return "put away" if entry.is_away else "gone"


def _is_more(entry: SessionInfo) -> bool:
    """Tell whether a session has more on the disk than its live file."""
    return bool(entry.archived_disk_bytes or entry.side_bytes)


def _on_disk(entry: SessionInfo, shown: _Shown) -> str:
    return size(entry.disk_bytes) if shown.is_more else "-"


def _archived(entry: SessionInfo, _shown: _Shown) -> str:
    if entry.archive_missing:
        return "missing"
    return "?" if entry.archived_bytes is None else _taken(entry.archived_bytes)


def _compactions(entry: SessionInfo, _shown: _Shown) -> str:
    if entry.compactions is not None:
        return f"{entry.compactions:,}"
    return f"{entry.segments:,}+" if entry.segments else "-"


def used(entry: SessionInfo, look: Look) -> str:
    """Return when a session was used last."""
    if entry.is_running:
        return "running"
    if look.width is None:
        return moment(entry.last_used).isoformat(" ")[:19]
    return ago(entry.last_used, look.now)


def _continues(entry: SessionInfo, shown: _Shown) -> str:
    if entry.continues is None:
        return "-"
    return safe_text.line(shown.names.get(entry.continues.session, entry.continues.session))


def project(folder: str, look: Look) -> str:
    """Return the folder that a session ran in, as people write it."""
    home = look.home
    if home and (folder == home or folder.startswith(home + "/")):
        folder = "~" + folder[len(home) :]
    return safe_text.line(folder) or "-"


def title(entry: SessionInfo) -> str:
    """Return what a session is called, or what it is instead of one."""
    return safe_text.line(entry.title.text) or _NOT_USED[entry.standing] or "-"


_detail: Final = partial(_Column, style="dim", empty="-")


def _name(entry: SessionInfo, shown: _Shown) -> str:
    """Return a session's id as short as it can be; a copy is told apart by all of its."""
    return safe_text.line(entry.name if entry.standing == "copy" else shown.names[entry.name])


_COLUMNS: Final = (
    _Column("session", 0, _name, style="bold"),
    _Column("client", 7, lambda each, shown: each.client if shown.clients > 1 else "", empty=""),
    _Column("size", 1, _size, is_right=True),
    _Column("on disk", 4, _on_disk, is_right=True, empty="-"),
    _Column("archived", 8, _archived, is_right=True, empty="-"),
    _Column("gain", 6, lambda each, _: _taken(each.gain_bytes or 0), is_right=True, empty="-"),
    _detail("beside", 9, lambda each, _: _taken(each.side_bytes), is_right=True),
    _detail("compactions", 11, _compactions, is_right=True),
    _detail(
        "live tail",
        12,
        lambda each, _: (
            size(each.live_tail_bytes) if each.is_live and each.live_tail_bytes is not None else "-"
        ),
        is_right=True,
    ),
    _detail("continues", 10, _continues),
    _Column("last used", 3, lambda each, shown: used(each, shown.look), style="dim"),
    _Column("project", 5, lambda each, shown: project(each.project, shown.look)),
    _Column("title", 2, lambda each, _: title(each)),
)
"""In the order in which they are shown."""

_SORTED: Final = {"disk": "on disk", "gain": "gain"}
"""Columns by what sessions are sorted by, where a narrow terminal would leave them out."""


def _in_order(by: str) -> list[_Column]:
    """Return the columns; that which sessions are sorted by comes behind their ids, and stays."""
    first = _SORTED.get(by)
    ranked = (replace(each, rank=1) if each.name == first else each for each in _COLUMNS)
    return sorted(ranked, key=lambda each: (each.rank > 0, each.name != first))


def table(entries: Sequence[SessionInfo], names: Iterable[str], look: Look) -> Iterator[str]:
    """Yield the lines of the table, each with its newline.

    `names` are all names of sessions, listed or not: ids are cut so that they stay unique.
    """
    shown = _Shown(
        look,
        short_names(names),
        len({entry.client for entry in entries}),
        any(map(_is_more, entries)),
    )
    ordered = _in_order(look.by)
    cells = {column.name: [column.cell(each, shown) for each in entries] for column in ordered}
    kept = [column for column in ordered if set(cells[column.name]) != {column.empty}]
    shape = Columns(
        tuple(column.name for column in kept),
        frozenset(column.name for column in kept if not column.is_right),
        tuple(column.name for column in sorted(kept, key=lambda each: -each.rank) if column.rank),
        LEAST,
        PATHS,
        {column.name: column.style for column in kept},
    )
    rows = [
        TableRow(tuple(told), styles=_RUNNING if entry.is_running else {})
        for entry, *told in zip(entries, *(cells[each.name] for each in kept), strict=True)
    ]
    yield from (f"{line}\n" for line in columns.table(shape, rows, look))


def namesakes(entries: Sequence[SessionInfo]) -> Iterator[str]:
    """Yield lines that name the files which no id tells apart: their paths do."""
    files: dict[tuple[str, str], list[SessionInfo]] = defaultdict(list)
    for entry in (each for each in entries if each.standing == "session"):
        files[entry.client, entry.id].append(entry)
    for (_, session), found in files.items():
        # Where one is rotated or put away, the id means that one (`archive.owner`).
        if found[1:] and not any(each.is_away or each.archived_bytes for each in found):
            told = f"{safe_text.line(session)} is the id of {len(found)} files"
            yield f"\n{told}. Name one by its path:\n"
            yield from (f"  {safe_text.line(str(each.path))}\n" for each in found)


def total(shown: Sequence[SessionInfo], hidden: Sequence[SessionInfo], look: Look) -> str:
    """Return the sums over the sessions listed; `hidden` are of agents, unused, or copies.

    What those take of the disk is in no other sum. Behind it is an empty line: it stands before
    the table.
    """
    archived = sum(entry.archived_bytes or 0 for entry in shown)
    packed = sum(entry.bytes for entry in shown if entry.is_compressed)
    waiting = sum(entry.waiting_disk_bytes for entry in shown)
    beside = sum(entry.side_bytes for entry in shown)
    running = sum(entry.is_running for entry in shown)
    away = sum(entry.is_away for entry in shown)
    restored = sum(entry.is_restored for entry in shown)
    missing = sum(entry.archive_missing for entry in shown)
    gain = sum(entry.gain_bytes or 0 for entry in shown)
    taken = sum(entry.disk_bytes for entry in shown)
    copies = sum(entry.standing == "copy" for entry in hidden)
    agents = sum(entry.standing == "agent" for entry in hidden)
    unused, hidden_disk = len(hidden) - copies - agents, sum(entry.disk_bytes for entry in hidden)
    kinds = [f"{agents:,} of agents"] if agents else []
    kinds += [f"{unused:,} unused"] if unused else []
    kinds += [f"{copies:,} {'copies' if copies > 1 else 'copy'}"] if copies else []
    more = f" ({size(hidden_disk)})" if hidden_disk else ""
    parts = (
        f"{count(len(shown), 'session')}: {size(sum(entry.bytes for entry in shown))} live",
        f"{away:,} put away" if away else "",
        f"{size(archived)} archived" if archived else "",
        f"{size(packed)} of it compressed" if packed else "",
        f"{size(taken)} on disk" if any(map(_is_more, shown)) else "",
        f"{size(waiting)} of it freed later" if waiting else "",
        f"{size(gain)} can be freed" if gain else "",
        f"{missing:,} with a missing archive" if missing else "",
        f"{size(beside)} beside" if beside else "",
        f"{running:,} running" if running else "",
        f"{restored:,} restored (rotated by name only)" if restored else "",
        f"{' and '.join(kinds)} hidden{more}" if kinds else "",
    )
    told = ", ".join(filter(None, parts))
    return "".join(f"{line}\n" for line in (*textwrap.wrap(told, look.width or len(told)), ""))


def ago(then: float, now: float) -> str:
    """Return how long ago a time was (seconds since 1970); a later time is given as a date."""
    age = now - then
    if age < -_NOW:
        return moment(then).strftime("%Y-%m-%d")
    if age < _NOW:
        return "just now"
    unit, name = next((unit, name) for limit, unit, name in _AGES if age < limit)
    return f"{count(int(age / unit), name)} ago"


# ── for programs ─────────────────────────────────────────────────────────────────────────────


def as_json(entries: Iterable[SessionInfo]) -> Iterator[str]:
    """Yield the document that `list --json` prints: a session a line (docs/schema/list.json)."""
    yield from json_rows(map(_document, entries), "\n", "\n")
    yield "\n"


def _document(entry: SessionInfo) -> dict[str, Any]:
    return {
        "session": entry.id,
        "client": entry.client,
        "project": entry.project,
        "path": str(entry.path),
        "bytes": entry.bytes,
        "archived_bytes": entry.archived_bytes,
        "boundaries": entry.compactions,
        "live_tail_bytes": entry.live_tail_bytes,
        "modified": _iso(entry.modified),
        "running": entry.is_running,
        "restored": entry.is_restored,
        "live": entry.is_live,
        "put_away": entry.is_away,
        "title": entry.title.text,
        "title_source": entry.title.source,
        "branch": entry.branch,
        "started": entry.started,
        "ended": entry.ended,
        "segments": entry.segments,
        "archived_disk_bytes": entry.archived_disk_bytes,
        "archive_missing": entry.archive_missing,
        "disk_bytes": entry.disk_bytes,
        "gain_bytes": entry.gain_bytes,
        "waiting_disk_bytes": entry.waiting_disk_bytes,
        "side_bytes": entry.side_bytes,
        "standing": entry.standing,
        "continues": entry.continues and asdict(entry.continues),
    }


def _iso(seconds: float) -> str:
    return moment(seconds).isoformat(timespec="milliseconds").replace("+00:00", "Z")
