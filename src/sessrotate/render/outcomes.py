"""What becomes of several sessions, as every command shows it that changes some. Pure.

Rule: a session that is changed has a row in which its owner knows it by its title, project and age,
and the row fits a terminal of 80 columns. Of every other it is said why it stays. A plan, a dry
run, and what was done show the same.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import field

from sessrotate.errors import printable
from sessrotate.render import columns, common
from sessrotate.render import list as render_list
from sessrotate.render.columns import Columns, Row
from sessrotate.render.common import count, size
from sessrotate.render.list import Look
from sessrotate.reports.session_info import short_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sessrotate.archive.place import Place
    from sessrotate.in_place.outcome import Outcome
    from sessrotate.reports.session_info import SessionInfo

_WHO: Final = ("session", "title", "project", "last used")
_LEAST: Final = {**render_list.LEAST, "result": 24, "why": 24}

_FEW: Final = 3
"""Sessions that stay for the same reason and are each named; more are counted."""

CHANGED: Final = frozenset({"planned", "done"})


class Seen(Look, frozen=True, kw_only=True):
    """What to draw on, and what the list knows of sessions."""

    known: Mapping[Place, SessionInfo] = field(default_factory=dict)


def table(
    found: Sequence[Outcome], figures: Mapping[str, Callable[[Outcome], str]], seen: Seen
) -> Iterator[str]:
    """Yield the lines of a table of those that are changed, and why the others stay.

    `figures` are the columns of numbers, by their titles.
    """
    changed = [each for each in found if each.result in CHANGED]
    is_told = any(each.detail for each in changed)
    rows = [
        (
            each.where,
            (
                *(cell(each) for cell in figures.values()),
                printable(each.text, 1000) if is_told else "",
            ),
        )
        for each in changed
        if each.where is not None
    ]
    yield from of_places(rows, tuple(figures), ("result",), seen)
    yield from _left([each for each in found if each.result not in CHANGED], seen)


def of_places(
    rows: Sequence[tuple[Place, tuple[str, ...]]],
    figures: tuple[str, ...],
    texts: tuple[str, ...],
    seen: Seen,
) -> Iterator[str]:
    """Yield the lines of a table with a row for each session.

    A row has a cell for each of the `figures` and of the `texts`, which a narrow terminal does
    without first. A column of which every cell is empty is left out.
    """
    names = short_names(where.session for where, _ in rows)
    cells = [(*_who(where, names, seen), *told) for where, told in rows]
    titles = (*_WHO, *figures, *texts)
    kept = [at for at, column in enumerate(zip(*cells, strict=True)) if any(column)]
    shape = Columns(
        tuple(titles[at] for at in kept),
        frozenset({*_WHO, *texts}),
        (*texts, *reversed(figures[2:]), "project", "last used", *figures[1:2], "title"),
        _LEAST,
        render_list.PATHS,
    )
    return columns.table(shape, [Row(tuple(row[at] for at in kept)) for row in cells], seen)


def _who(where: Place, names: Mapping[str, str], seen: Seen) -> tuple[str, str, str, str]:
    """Return the id of a session, its title, its project and when it was used."""
    name, entry = printable(names[where.session], 40), seen.known.get(where)
    if entry is None:
        return name, "", "", ""
    cells = (
        render_list.title(entry),
        render_list.project(entry.project, seen),
        render_list.used(entry, seen),
    )
    return name, *cells


def _left(found: Sequence[Outcome], seen: Look) -> Iterator[str]:
    """Yield why each session stays as it is."""
    texts = Counter(each.text for each in found)
    for each in found:
        many = texts[each.text]
        if many > _FEW:
            texts[each.text] = 0
        if many:
            who = count(many, "session") if many > _FEW else printable(each.session, 40)
            line = ": ".join(filter(None, (who, printable(each.text, 1000))))
            wrapped = textwrap.wrap(
                line,
                seen.width or len(line),
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            yield from wrapped


def as_json(
    found: Sequence[Outcome], figures: Mapping[str, Callable[[Outcome], int]], **more: bool
) -> str:
    """Return for programs what became of each session, with these figures, and the sums."""
    document = {
        "sessions": [
            common.outcome(
                entry,
                **{name: figure(entry) for name, figure in figures.items()},
                disk_bytes_gained=entry.gained,
            )
            for entry in found
        ],
        "bytes_moved": sum(entry.freed for entry in found),
        "disk_bytes_gained": sum(entry.gained for entry in found),
        **more,
    }
    return common.as_json(document)


def put_away(found: Sequence[Outcome], seen: Seen, *, dry_run: bool) -> Iterator[str]:
    """Yield what `archive` shows: what became of each session, and the sum."""
    yield from table(found, PUT_AWAY, seen)
    if dry_run and any(entry.freed for entry in found):
        yield common.PUT_AWAY
    verb = "would leave" if dry_run else "left"
    freed = size(sum(entry.freed for entry in found))
    gained = sum(entry.gained for entry in found)
    on_disk = f", {_freed(gained, dry_run=dry_run)}" if found else ""
    yield f"{count(len(found), 'session')}; {freed} {verb} the client's folder{on_disk}."


def _freed(gained: int, *, dry_run: bool) -> str:
    """Say what the disk gains."""
    if gained <= 0:
        return "which frees nothing on disk" if dry_run else "which freed nothing on disk"
    return (
        f"which frees about {size(gained)} on disk" if dry_run else f"{size(gained)} freed on disk"
    )


def _takes(entry: Outcome) -> str:
    """Return how much of the disk the archived session takes; in a plan, about how much."""
    about = "~" if entry.result == "planned" else ""
    return f"{about}{size(max(0, entry.disk - entry.gained))}"


PUT_AWAY: Final[Mapping[str, Callable[[Outcome], str]]] = {
    "leaves": lambda entry: size(entry.freed),
    "takes": _takes,
}


def put_away_json(found: Sequence[Outcome], *, dry_run: bool) -> str:
    """Return the same for programs."""
    figures = {
        "bytes_moved": lambda entry: entry.freed,
        "bytes_stored": lambda entry: entry.size,
    }
    return as_json(found, figures, dry_run=dry_run)
