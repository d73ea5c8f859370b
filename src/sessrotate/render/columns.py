"""Tables as wide as the terminal, with a bar in each row where it has one, or as plain text. Pure.

Rule: text in, lines out; what came out of a session was made printable before. A narrow terminal
loses whole columns, in a given order; only those that may be cut are. Without a width, every column
is there whole, and no bar is drawn. A text never counts as fewer columns than it takes: where
terminals differ (joined emoji, characters of a later Unicode), the widest counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct, field

# ── how wide a text is ───────────────────────────────────────────────────────────────────────


ELLIPSIS: Final = "…"

_WIDE: Final = frozenset("WF")
_ABOVE: Final = frozenset({"Mn", "Me"})
_UNKNOWN: Final = frozenset({"Cn", "Co"})
_WIDER: Final = (
    (0x2630, 0x2637),
    (0x268A, 0x268F),
    (0x4DC0, 0x4DFF),
    (0x1D300, 0x1D376),
    (0x1F1E6, 0x1F1FF),
)
"""First and last of characters that are wide from Unicode 16 on, or in some terminals."""

_OTHERS: Final = re.compile(r"[^\x00-\x7f]")

_EMOJI: Final = "\N{VARIATION SELECTOR-16}"
"""Turns the character before it into a picture, twice as wide."""


def width(text: str) -> int:
    """Return how many columns a text without control characters takes, at most."""
    if text.isascii():
        return len(text)
    others = _OTHERS.findall(text)
    return len(text) - len(others) + sum(map(_columns, others))


def cut(text: str, columns: int) -> str:
    """Return the beginning of a text, in at most so many columns (1 or more), and a `…`."""
    if width(text) <= columns:
        return text
    return _beginning(text, columns - 1).rstrip() + ELLIPSIS


def cut_middle(text: str, columns: int) -> str:
    """Return a text without what is in its middle, in at most so many columns (1 or more).

    Of what is left, the end has two thirds: it tells folders apart.
    """
    if width(text) <= columns:
        return text
    start = _beginning(text, (columns - 1) // 3)
    return start + ELLIPSIS + _end(text, columns - 1 - width(start))


def _beginning(text: str, columns: int) -> str:
    used = 0
    for number, character in enumerate(text):
        used += _columns(character)
        if used > columns:
            return text[:number]
    return text


def _end(text: str, columns: int) -> str:
    used = 0
    for number in range(len(text), 0, -1):
        used += _columns(text[number - 1])
        if used > columns:
            # What stands above the character that is left out would go above the ellipsis.
            kept = text[number:]
            return kept.lstrip("".join(c for c in kept if unicodedata.category(c) in _ABOVE))
    return text


@lru_cache(maxsize=4096)
def _columns(character: str) -> int:
    if character.isascii() or character == _EMOJI:
        return 1
    category = unicodedata.category(character)
    if category in _ABOVE:
        return 0
    is_wide = (
        unicodedata.east_asian_width(character) in _WIDE
        or category in _UNKNOWN
        or any(first <= ord(character) <= last for first, last in _WIDER)
    )
    return 2 if is_wide else 1


# ── tables ───────────────────────────────────────────────────────────────────────────────────


STYLES: Final = {
    "": "",
    "bold": "1",
    "dim": "2",
    "wrong": "31",
    "bar": "36",
    "hit": "1;31",
    "running": "1;32",
    "rule": "1;33",
    "you": "1;36",
}
"""What is shown how, as SGR parameters."""

_GAP: Final = "  "
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_NARROWEST_BAR, _WIDEST_BAR = 8, 40

_SHARE: Final = 0.4
"""What a column that may be cut gets of the room to spare, if those behind it need the rest."""


class Canvas(Struct, frozen=True):
    """What to draw on: a terminal's width (None for a pipe or file), with colours or without."""

    width: int | None = None
    colour: bool = False

    def paint(self, style: str, text: str) -> str:
        """Return a text in one of the `STYLES`."""
        code = STYLES[style]
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code and text else text


class TableRow(Struct, frozen=True):
    """The cells of a row, the length of its bar (`share`, from 0 to 1), and its `style`.

    `styles` are those of single cells, by their columns.
    """

    cells: tuple[str, ...]
    share: float = 0.0
    style: str = ""
    styles: Mapping[str, str] = field(default_factory=dict)


class Columns(Struct, frozen=True):
    """The columns of a table, by their titles.

    Those in `left` are text, the others numbers. Those in `expendable` are left out, in this order,
    if there is no room. Those in `least` may be cut to so many columns of the terminal, paths in
    their middle. `styles` are the columns' own.
    """

    titles: tuple[str, ...]
    left: frozenset[str] = field(default_factory=frozenset)
    expendable: tuple[str, ...] = ()
    least: Mapping[str, int] = field(default_factory=dict)
    paths: frozenset[str] = field(default_factory=frozenset)
    styles: Mapping[str, str] = field(default_factory=dict)


def table(columns: Columns, rows: Sequence[TableRow], canvas: Canvas) -> Iterator[str]:
    """Yield the lines of a table, its titles first; nothing if there are no rows."""
    if not rows:
        return
    head = TableRow(columns.titles, styles=dict.fromkeys(columns.titles, "bold"))
    cells = zip(*(row.cells for row in (head, *rows)), strict=True)
    whole = dict(zip(columns.titles, cells, strict=True))
    taken = {title: [*map(width, column)] for title, column in whole.items()}
    needs = {title: max(each) for title, each in taken.items()}
    room, bars = _room(columns, needs, canvas.width, is_barred=any(row.share for row in rows))
    fitted = [
        _fitted(columns, title, zip(whole[title], taken[title], strict=True), wide)
        for title, wide in room.items()
    ]
    for row, *parts in zip((head, *rows), *fitted, strict=True):
        drawn = bar(row.share, bars) if bars and row.share > 0 else ""
        if not drawn:
            parts[-1] = parts[-1].rstrip()
        if row.style or not canvas.colour:
            line = canvas.paint(row.style, _GAP.join(parts))
        else:
            painted = zip(
                (row.styles.get(each, columns.styles.get(each, "")) for each in room),
                parts,
                strict=True,
            )
            line = _GAP.join(canvas.paint(*part) for part in painted)
        yield f"{line}{_GAP}{canvas.paint('bar', drawn)}" if drawn else line.rstrip()


def _fitted(
    columns: Columns, title: str, cells: Iterable[tuple[str, int]], room: int
) -> Iterator[str]:
    """Yield the cells of a column as wide as its room; a cell is a text and its width."""
    shorten = cut_middle if title in columns.paths else cut
    is_right = title not in columns.left
    for text, taken in cells:
        shown = text if taken <= room else shorten(text, room)
        spaces = " " * (room - (taken if shown is text else width(shown)))
        yield spaces + shown if is_right else shown + spaces


def _room(
    columns: Columns, needs: Mapping[str, int], whole: int | None, *, is_barred: bool
) -> tuple[dict[str, int], int]:
    """Return how wide each column is that fits, and how wide a bar may be, or 0."""
    if whole is None:
        return dict(needs), 0
    room = {title: min(need, columns.least.get(title, need)) for title, need in needs.items()}
    narrowest = _NARROWEST_BAR + len(_GAP) if is_barred else 0
    for title in columns.expendable:
        if _sum(room) + narrowest <= whole:
            break
        room.pop(title, None)
    spare = whole - _sum(room)
    if spare < 0 and len(room) == 1:
        return dict.fromkeys(room, whole), 0
    if is_barred:
        bars = spare - len(_GAP)
        return room, min(bars, _WIDEST_BAR) if bars >= _NARROWEST_BAR else 0
    wanted = {title: needs[title] - room[title] for title in columns.least if title in room}
    for title in [*wanted]:
        more = wanted.pop(title)
        most = max(int(spare * _SHARE) if wanted else spare, spare - sum(wanted.values()))
        room[title] += max(0, min(more, most))
        spare = whole - _sum(room)
    return room, 0


def _sum(room: Mapping[str, int]) -> int:
    """Return how wide a line is, the gaps between its columns included."""
    return sum(room.values()) + len(_GAP) * (len(room) - 1)


def bar(share: float, room: int) -> str:
    """Return a bar for a share from 0 to 1 of `room` columns, to an eighth of a column.

    It is never empty.
    """
    eighths = max(1, round(min(share, 1.0) * room * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
