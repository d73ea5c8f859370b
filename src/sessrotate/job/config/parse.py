"""The settings of `sessrotate run`: the text of a TOML file → what is in force, and why. Pure.

Rule: what is not understood is an error that names its line, never passed over: a rule with a
typing error in it must not be no rule.
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sessrotate.errors import WrongUsageError, printable
from sessrotate.job.config.keys import KEYS, TABLES
from sessrotate.retention.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sessrotate.job.config.keys import Given, Key, Value


@dataclass(frozen=True, slots=True)
class Rotate:
    """What is rotated: from how many bytes on, None for nothing; under running clients or not."""

    min_size: int | None
    live: bool


@dataclass(frozen=True, slots=True)
class Compress:
    """What is compressed: from how many seconds on, None for nothing; by which level."""

    older_than: float | None
    level: int


@dataclass(frozen=True, slots=True)
class Archive:
    """What is put away: after how many seconds, and how many before the client deletes it."""

    older_than: float | None
    before_cleanup: float | None


@dataclass(frozen=True, slots=True)
class Trash:
    """After how many seconds the trash is freed, None for never."""

    grace: float | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting in force: as it is written in a file, and in which line; None for a default."""

    key: Key
    given: Given
    value: Value
    line: int | None


@dataclass(frozen=True, slots=True)
class Settings:
    """All that is in force; `entries` has where each comes from, in the order of `KEYS`."""

    rotate: Rotate
    compress: Compress
    archive: Archive
    prune: Policy
    trash: Trash
    entries: tuple[Entry, ...]


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def parsed(text: str) -> Settings:
    """Return what a file with this text says, and the defaults for what it does not say.

    Raises WrongUsageError that names the line: for what is no TOML, a setting that there is
    not, and a value that is none.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise WrongUsageError(f"It is no TOML: {printable(str(error))}.") from None
    except RecursionError:
        raise WrongUsageError("It is no such file: it is nested too deeply.") from None
    lines = _lines(text)
    _check_names(document, lines)
    entries = tuple(_entry(key, document.get(key.table, {}), lines) for key in KEYS)
    values: dict[str, dict[str, Any]] = {table: {} for table in TABLES}
    for entry in entries:
        values[entry.key.table][entry.key.name] = entry.value
    return Settings(
        rotate=Rotate(**values["rotate"]),
        compress=Compress(**values["compress"]),
        archive=Archive(**values["archive"]),
        prune=Policy(**values["prune"]),
        trash=Trash(**values["trash"]),
        entries=entries,
    )


def _check_names(document: Mapping[str, Any], lines: Mapping[tuple[str, ...], int]) -> None:
    """Raise WrongUsageError for the first name that there is not."""
    for table, inside in document.items():
        place = _place(lines, table)
        if table not in TABLES:
            what = "table" if isinstance(inside, dict) else "setting"
            known = [*TABLES, *(key.title for key in KEYS), *(key.name for key in KEYS)]
            raise WrongUsageError(f"{place}there is no {what} {_near(table, known)}")
        if not isinstance(inside, dict):
            raise WrongUsageError(f"{place}{table} is a table: write [{table}] and its settings.")
        for name in inside:
            if all((key.table, key.name) != (table, name) for key in KEYS):
                known = [key.name for key in KEYS if key.table == table]
                place = _place(lines, table, name)
                raise WrongUsageError(f"{place}[{table}] has no setting {_near(name, known)}")


def _near(name: str, known: list[str]) -> str:
    """Return an unknown name and the end of the sentence about it."""
    nearest = difflib.get_close_matches(name.replace("-", "_"), known, 1, cutoff=0.5)
    there = f"the nearest is {nearest[0]}" if nearest else f"there are {', '.join(known)}"
    return f"{printable(name)}: {there}."


def _entry(key: Key, table: Mapping[str, Any], lines: Mapping[tuple[str, ...], int]) -> Entry:
    given: object = table.get(key.name, key.default)
    value = None if given is False and key.kind.may_be_off else key.kind.parse(given)
    is_off = given is False and key.kind.may_be_off
    if not isinstance(given, str | int | bool) or (value is None and not is_off):
        off = ", or false for none" if key.kind.may_be_off else ""
        raise WrongUsageError(
            f"{_place(lines, key.table, key.name)}{key.title} is {key.kind.said}{off}, and not "
            f"{printable(repr(given), 60)}."
        )
    return Entry(key, given, value, lines.get((key.table, key.name)))


def _place(lines: Mapping[tuple[str, ...], int], *path: str) -> str:
    return f"Line {lines[path]}: " if path in lines else ""


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line in which each table and setting of a sound TOML text is first named.

    The parser says no lines. So it is given statement by statement, each below its table's head.
    """
    found: dict[tuple[str, ...], int] = {}
    head, statement, first = "", "", 1
    for number, line in enumerate(text.split("\n"), 1):
        if not statement:
            first = number
        statement += f"{line}\n"
        is_head = statement.lstrip().startswith("[")
        try:
            inside = tomllib.loads(statement if is_head else head + statement)
        except tomllib.TOMLDecodeError:
            continue  # its value goes on in the next line
        for path in _paths(inside):
            found.setdefault(path, first)
        if is_head:
            head = statement
        statement = ""
    return found


def _paths(inside: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for table, content in inside.items():
        yield (table,)
        if isinstance(content, dict):
            yield from ((table, name) for name in content)


# ── showing ──────────────────────────────────────────────────────────────────────────────────


def origin(entry: Entry) -> str:
    """Return in words where a value comes from."""
    return "default" if entry.line is None else f"line {entry.line}"


def as_document(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return what is in force for programs: by table and name, in bytes and seconds, and as given.

    `from` is "default" or "file".
    """
    found: dict[str, dict[str, Any]] = {table: {} for table in TABLES}
    for entry in settings.entries:
        found[entry.key.table][entry.key.name] = {
            "value": entry.value,
            "given": entry.given,
            "from": "default" if entry.line is None else "file",
            "line": entry.line,
        }
    return found
