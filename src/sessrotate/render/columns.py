"""Tables with a bar in each row, as wide as the terminal, or as plain text. Pure.

Rule: text in, lines out; what came out of a session was made printable before. A narrow terminal
loses whole columns, in a given order. Without a width, every column is there and no bar is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from sessrotate.render.widths import padded, width

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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


class Canvas(Struct, frozen=True):
    """What to draw on: a terminal's width (None for a pipe or file), with colours or without."""

    width: int | None = None
    colour: bool = False

    def paint(self, style: str, text: str) -> str:
        """Return a text in one of the `STYLES`."""
        code = STYLES[style]
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code and text else text


class Row(Struct, frozen=True):
    """The cells of a row, the length of its bar (`share`, from 0 to 1), and its `style`."""

    cells: tuple[str, ...]
    share: float = 0.0
    style: str = ""


class Columns(Struct, frozen=True):
    """The columns of a table, by their titles.

    Those in `left` are text, the others numbers. Those in `expendable` are left out, in this order,
    if there is no room.
    """

    titles: tuple[str, ...]
    left: frozenset[str] = field(default_factory=frozenset)
    expendable: tuple[str, ...] = ()


def table(columns: Columns, rows: Sequence[Row], canvas: Canvas) -> Iterator[str]:
    """Yield the lines of a table, its titles first; nothing if there are no rows."""
    if not rows:
        return
    cells = dict(zip(columns.titles, zip(*(row.cells for row in rows), strict=True), strict=True))
    widths = {title: max(map(width, (title, *cells[title]))) for title in columns.titles}
    room = _fit(columns, widths, canvas)
    yield canvas.paint("bold", _line(columns, {title: title for title in widths}, widths).rstrip())
    for row in rows:
        told = dict(zip(columns.titles, row.cells, strict=True))
        line = _line(columns, told, widths)
        if room and row.share > 0:
            drawn = canvas.paint("bar", bar(row.share, room))
            yield f"{canvas.paint(row.style, line)}{_GAP}{drawn}"
        else:
            yield canvas.paint(row.style, line.rstrip())


def _fit(columns: Columns, widths: dict[str, int], canvas: Canvas) -> int:
    """Remove the columns that do not fit; return how wide a bar may be, or 0."""
    if canvas.width is None:
        return 0
    for title in (*columns.expendable, ""):
        left = canvas.width - sum(widths.values()) - len(_GAP) * len(widths)
        if left >= _NARROWEST_BAR:
            return min(left, _WIDEST_BAR)
        widths.pop(title, None)
    return 0


def _line(columns: Columns, cells: Mapping[str, str], widths: Mapping[str, int]) -> str:
    return _GAP.join(
        padded(cells[title], room, right=title not in columns.left)
        for title, room in widths.items()
    )


def bar(share: float, room: int) -> str:
    """Return a bar for a share from 0 to 1 of `room` columns, to an eighth of a column.

    It is never empty.
    """
    eighths = max(1, round(min(share, 1.0) * room * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
