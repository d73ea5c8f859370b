"""What becomes of several sessions, as every command shows it that changes some. Pure.

Rule: a session that is changed has a row in which its owner knows it by its title, project and age,
and the row fits a terminal of 80 columns. Of every other it is said why it stays. A plan, a dry
run, and what was done show the same, and programs get the same outcomes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from sessrotate import render
from sessrotate.errors import SessrotateError, printable
from sessrotate.in_place.outcome import Outcome, exit_code
from sessrotate.render import columns, count, size
from sessrotate.render import list as render_list
from sessrotate.render.columns import Columns, TableRow
from sessrotate.render.list import Look
from sessrotate.reports import SessionInfo, short_names

if TYPE_CHECKING:
    from sessrotate.archive.place import Place

_WHO: Final = ("session", "title", "project", "last used")
_LEAST: Final = {**render_list.LEAST, "result": 24, "why": 24}

_TITLE: Final = 60
"""Columns of a title at most: no terminal narrows what goes through a pipe."""

_FEW: Final = 3
"""Sessions that stay for the same reason and are each named; more are counted."""

CHANGED: Final = frozenset({"planned", "done"})


class Shown(Struct, frozen=True):
    """A plan, or what was done: lines for people, and parts of a document for programs.

    `is_anything`: there is something to do, which `question` sums up for who cannot see the lines.
    `warnings` follow, but for None, and `code` is the exit code.
    """

    lines: Iterable[str] = ()
    document: Iterable[str] = ()
    is_anything: bool = False
    question: str = ""
    warnings: Sequence[str | SessrotateError | None] = ()
    code: int = 0


class Wording(Struct, frozen=True):
    """What a command says of outcomes.

    `columns` are figures of a session by their titles, `keys` the same for programs, and `sums` are
    of all of them. `total` makes a sentence of all, done or with `dry_run` to be done. A plan that
    moves something has a `note`.
    """

    columns: Mapping[str, Callable[[Outcome], str]]
    keys: Mapping[str, Callable[[Outcome], int]]
    sums: Mapping[str, Callable[[Outcome], int]]
    total: Callable[..., str]
    note: str = ""


class Seen(Look, frozen=True, kw_only=True):
    """What to draw on, and what the list knows of sessions."""

    known: Mapping[Place, SessionInfo] = field(default_factory=dict)


def shown(
    kind: Wording,
    found: Sequence[Outcome],
    seen: Seen,
    *,
    dry_run: bool,
    in_use_counts: bool = True,
) -> Shown:
    """Return what a command shows of these outcomes: a table, and the sum.

    `in_use_counts` is as for `exit_code`.
    """
    total, is_moving = kind.total(found, dry_run=dry_run), any(map(_freed, found))
    notes = [kind.note] if kind.note and dry_run and is_moving else []
    return Shown(
        chain(table(found, kind.columns, seen), notes, [total]),
        as_json(kind, found, dry_run=dry_run),
        any(entry.result == "planned" or entry.freed > 0 for entry in found),
        total,
        code=exit_code(found, in_use_counts=in_use_counts),
    )


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
    yield from _left([each for each in found if each.result not in CHANGED])


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
    return columns.table(shape, [TableRow(tuple(row[at] for at in kept)) for row in cells], seen)


def _who(where: Place, names: Mapping[str, str], seen: Seen) -> tuple[str, str, str, str]:
    """Return the id of a session, its title, its project and when it was used."""
    name, entry = printable(names[where.session], 40), seen.known.get(where)
    if entry is None:
        return name, "", "", ""
    cells = (
        columns.cut(render_list.title(entry), _TITLE),
        render_list.project(entry.project, seen),
        render_list.used(entry, seen),
    )
    return name, *cells


def _left(found: Sequence[Outcome]) -> Iterator[str]:
    """Yield why each session stays as it is."""
    texts = Counter(each.text for each in found)
    for each in found:
        many = texts[each.text]
        if many > _FEW:
            texts[each.text] = 0
        if many:
            who = count(many, "session") if many > _FEW else printable(each.session, 40)
            yield ": ".join(filter(None, (who, printable(each.text, 1000))))


def as_json(
    kind: Wording,
    found: Iterable[Outcome],
    parts: Callable[[Outcome], dict[str, Any]] = lambda _: {},
    **more: object,
) -> Iterator[str]:
    """Yield for programs what became of each session, the sums, and `more`.

    `parts` returns what else is said of a session.
    """
    entries = [*found]
    sessions = [
        {
            "session": entry.session,
            "path": None if entry.where is None else str(entry.where.live),
            **{key: figure(entry) for key, figure in kind.keys.items()},
            "result": entry.result,
            "reason": _reason(entry),
            **parts(entry),
        }
        for entry in entries
    ]
    sums = {key: sum(map(figure, entries)) for key, figure in kind.sums.items()}
    yield render.as_json({"sessions": sessions, **sums, **more})


def _reason(entry: Outcome) -> str | None:
    """Return why nothing was done, None where something was or would be."""
    if entry.error is not None:
        return str(entry.error)
    return entry.detail or None if entry.result == "nothing to do" else None


# ── the table of commands ────────────────────────────────────────────────────────────────────


_OTHERS: Final = "`sessrotate tidy` compresses those of Codex."


def _rotated(found: Sequence[Outcome], *, dry_run: bool) -> str:
    if not found:
        return f"Nothing to rotate. Only sessions of Claude Code are rotated; {_OTHERS}"
    results = Counter(entry.result for entry in found)
    parts = ", ".join(f"{number:,} {result}" for result, number in results.most_common())
    gained = sum(map(_gained, found))
    about, what = "about " if dry_run and gained else "", "freed" if gained >= 0 else "more taken"
    freed = f"{about}{size(abs(gained))} {what} on disk"
    many = ": ".join(filter(None, (count(len(found), "session"), parts)))
    return f"{many}; {size(sum(map(_freed, found)))} out of the live files, {freed}."


def _put_away(found: Sequence[Outcome], *, dry_run: bool) -> str:
    if not found:
        return f"Nothing to put away. Only sessions of Claude Code are put away; {_OTHERS}"
    if not (changed := sum(entry.result in CHANGED or entry.freed > 0 for entry in found)):
        return f"{count(len(found), 'session')}: nothing {'to put' if dry_run else 'was put'} away."
    gained = sum(map(_gained, found))
    if gained > 0:
        on_disk = f" and {'free about' if dry_run else 'freed'} {size(gained)} on disk"
    else:
        takes = f"{'about ' if dry_run else ''}{size(-gained)} more of the disk"
        on_disk = f", which {'would take' if dry_run else 'takes'} {takes}"
    of_all = f"{changed:,} of " if changed < len(found) else ""
    many = f"{of_all}{count(len(found), 'session')}: {'would move' if dry_run else 'moved'}"
    return f"{many} {size(sum(map(_freed, found)))} out of the client's folder{on_disk}."


def _brought_back(found: Sequence[Outcome], *, dry_run: bool) -> str:
    many = sum(entry.result in CHANGED for entry in found)
    if not many:
        return "No session comes back."  # of a plan that nothing follows, it is said, too
    verb = "would come" if dry_run else "came"
    of_all = f"{many:,} of {count(len(found), 'session')}"
    return f"{of_all} {verb} back: {size(grown(found))} to the client's folder."


def grown(found: Iterable[Outcome]) -> int:
    """Return how many bytes come, or came, back into the client's folder."""
    return max(0, -sum(entry.freed for entry in found if entry.result in CHANGED))


def _freed(entry: Outcome) -> int:
    return entry.freed


def _gained(entry: Outcome) -> int:
    return entry.gained


def _takes(entry: Outcome) -> str:
    """Return how much of the disk the archived session takes; in a plan, about how much."""
    about = "~" if entry.result == "planned" else ""
    return f"{about}{size(max(0, entry.disk - entry.gained))}"


_FILES: Final = {
    "bytes_before": lambda entry: entry.before,
    "bytes_after": lambda entry: entry.size,
}
_SUMS: Final = {"bytes_moved": _freed, "disk_bytes_gained": _gained}

ROTATED: Final = Wording(
    columns={
        "live file": lambda entry: size(entry.before),
        "freed": lambda entry: size(max(0, entry.gained)),
        "after": lambda entry: size(entry.size),
    },
    keys=_FILES | {"disk_bytes_gained": _gained},
    sums=_SUMS,
    total=_rotated,
)
PUT_AWAY: Final = Wording(
    columns={"size": lambda entry: size(entry.freed), "archived": _takes},
    keys={
        "bytes_moved": _freed,
        "bytes_stored": lambda entry: entry.size,
        "disk_bytes_gained": _gained,
    },
    sums=_SUMS,
    total=_put_away,
    note=render.PUT_AWAY,
)
BROUGHT_BACK: Final = Wording(
    columns={
        "live file": lambda entry: size(entry.before),
        "after": lambda entry: size(entry.size),
    },
    keys=_FILES,
    sums={},
    total=_brought_back,
)
