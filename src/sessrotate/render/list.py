"""What `list` shows: a table as wide as the terminal, or plain text. Pure.

Rule: no line is wider than the terminal, and a size or a time is shown whole or not at all. Whole
columns are left out, the least useful first; only projects and titles are shortened. Text from a
session passes `safe_text` first, and colours come only from this module.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate import safe_text
from sessrotate.render import widths
from sessrotate.render.columns import Canvas
from sessrotate.render.common import count, size
from sessrotate.reports.session_info import short_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sessrotate.reports.session_info import SessionInfo

_AGES: Final = (
    (3600.0, 60.0, "minute"),
    (48 * 3600.0, 3600.0, "hour"),
    (21 * 86_400.0, 86_400.0, "day"),
    (70 * 86_400.0, 7 * 86_400.0, "week"),
    (730 * 86_400.0, 30.44 * 86_400.0, "month"),
    (float("inf"), 365.25 * 86_400.0, "year"),
)
"""Up to how many seconds an age is given in which unit: the unit's seconds and name."""

_NOW: Final = 60.0
"""Seconds within which something happened just now."""

_WRITABLE: Final = (-62_135_596_800.0, 253_402_300_799.0)
"""The times that can be written, in seconds since 1970: the years 1 to 9999."""

_GAP: Final = "  "
_SMALLEST: Final = {"project": 12, "title": 16}
"""Columns that a project or a title needs; other columns are left out to get them."""

_LONGEST: Final = 40
"""Columns that an id may take: more than any client's does."""

_PROJECT_SHARE: Final = 0.4
"""The project's share of the room for it and the title, if both need more."""

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


def _used(entry: SessionInfo, shown: _Shown) -> str:
    if entry.is_running:
        return "running"
    if shown.look.width is None:
        return moment(entry.last_used).isoformat(" ")[:19]
    return ago(entry.last_used, shown.look.now)


def _continues(entry: SessionInfo, shown: _Shown) -> str:
    if entry.continues is None:
        return "-"
    told = safe_text.line(shown.names.get(entry.continues.session, entry.continues.session))
    return f"{told}?" if entry.continues.reason == "same title" else told


def _project(entry: SessionInfo, shown: _Shown) -> str:
    folder, home = entry.project, shown.look.home
    if home and (folder == home or folder.startswith(home + "/")):
        folder = "~" + folder[len(home) :]
    return safe_text.line(folder) or "-"


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
    _Column("last used", 3, _used, style="dim"),
    _Column("project", 5, _project),
    _Column(
        "title",
        2,
        lambda each, _: safe_text.line(each.title.text) or _NOT_USED[each.standing] or "-",
    ),
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
    columns = _in_order(look.by)
    cells = {column.name: [column.cell(each, shown) for each in entries] for column in columns}
    told = [column for column in columns if set(cells[column.name]) != {column.empty}]
    taken = {column.name: [*map(widths.width, cells[column.name])] for column in told}
    needs = {name: max((widths.width(name), *each)) for name, each in taken.items()}
    room = _room(told, needs, look.width)
    kept = [column for column in told if column.name in room]
    yield _line([(each, each.name, widths.width(each.name), "bold") for each in kept], room, look)
    for number, entry in enumerate(entries):
        row = [
            (each, cells[each.name][number], taken[each.name][number], each.style) for each in kept
        ]
        if entry.is_running:
            row = [(*cell[:3], "running") if cell[0].cell is _used else cell for cell in row]
        yield _line(row, room, look)


def _line(row: Sequence[tuple[_Column, str, int, str]], room: dict[str, int], look: Look) -> str:
    """Return a line of the table; each cell is a column, a text, its width, and a style."""
    parts = []
    for column, text, taken, style in row:
        spaces = " " * (room[column.name] - taken)
        fitted = spaces + text if column.is_right else text + spaces
        if taken > room[column.name]:
            cut = widths.cut_middle if column.cell is _project else widths.cut
            fitted = cut(text, room[column.name])
            fitted = widths.padded(fitted, room[column.name], right=column.is_right)
        parts.append(look.paint(style, fitted.rstrip() if column is row[-1][0] else fitted))
    return _GAP.join(parts).rstrip() + "\n"


def _room(told: Sequence[_Column], needs: dict[str, int], width: int | None) -> dict[str, int]:
    """Return the width of each column of the table that fits."""
    if width is None:
        return needs
    room = {name: min(need, _SMALLEST.get(name, need)) for name, need in needs.items()}
    room["session"] = min(room["session"], _LONGEST)
    for column in sorted(told, key=lambda column: -column.rank):
        if _sum(room) > width and column.rank:
            del room[column.name]
    spare = width - _sum(room)
    if spare < 0:
        return dict.fromkeys(room, width)
    wanted = {name: needs[name] - room[name] for name in _SMALLEST if name in room}
    if "project" in wanted:
        most = max(int(spare * _PROJECT_SHARE), spare - wanted.get("title", 0))
        room["project"] += min(wanted["project"], most)
    if "title" in wanted:
        room["title"] += min(wanted["title"], width - _sum(room))
    return room


def _sum(room: dict[str, int]) -> int:
    """Return how wide a line is, the gaps between its columns included."""
    return sum(room.values()) + len(_GAP) * (len(room) - 1)


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
    """Return the sums over the sessions listed; `hidden` are unused, or copies.

    What those take of the disk is in no other sum. Behind it is an empty line: it stands before
    the table.
    """
    archived = sum(entry.archived_bytes or 0 for entry in shown)
    waiting = sum(entry.waiting_disk_bytes for entry in shown)
    beside = sum(entry.side_bytes for entry in shown)
    running = sum(entry.is_running for entry in shown)
    away = sum(entry.is_away for entry in shown)
    restored = sum(entry.is_restored for entry in shown)
    missing = sum(entry.archive_missing for entry in shown)
    gain = sum(entry.gain_bytes or 0 for entry in shown)
    taken = sum(entry.disk_bytes for entry in shown)
    copies = sum(entry.standing == "copy" for entry in hidden)
    unused, hidden_disk = len(hidden) - copies, sum(entry.disk_bytes for entry in hidden)
    kinds = [f"{unused:,} unused"] if unused else []
    kinds += [f"{copies:,} {'copies' if copies > 1 else 'copy'}"] if copies else []
    more = f" ({size(hidden_disk)})" if hidden_disk else ""
    parts = (
        f"{count(len(shown), 'session')}: {size(sum(entry.bytes for entry in shown))} live",
        f"{away:,} put away" if away else "",
        f"{size(archived)} archived" if archived else "",
        f"{size(taken)} on disk" if any(map(_is_more, shown)) else "",
        f"{size(waiting)} of it freed after a quiet day" if waiting else "",
        f"{size(gain)} to gain by rotating" if gain else "",
        f"{missing:,} whose archive is missing" if missing else "",
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


def moment(seconds: float) -> datetime:
    """Return a time in seconds since 1970 as a date that can be written, the nearest to it."""
    return datetime.fromtimestamp(min(max(seconds, _WRITABLE[0]), _WRITABLE[1]), UTC)
