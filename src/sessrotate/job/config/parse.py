"""The text of a settings file (TOML) → the settings in force, and where each comes from. Pure.

Rule: anything that is not understood is an error that names its line. A rule with a typo in it must
not turn into no rule.
"""

from __future__ import annotations

import difflib
import tomllib
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sessrotate.errors import WrongUsageError, printable
from sessrotate.job.config.keys import KEYS, TABLES
from sessrotate.retention.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sessrotate.job.config.keys import Given, Key, Value


_WEEK: Final = 7 * 86_400.0


class Rotate(Struct, frozen=True):
    """Rotate what frees so many bytes of the disk (None: never), running ones too if `live`."""

    min_gain: int | None
    live: bool


class Archive(Struct, frozen=True):
    """Archive sessions after so many seconds, or so many before their client deletes them."""

    older_than: float | None
    before_cleanup: float | None


class Codex(Struct, frozen=True):
    """Compress sessions of Codex that were not used for so many seconds (None: never)."""

    compress_after: float | None


class Trash(Struct, frozen=True):
    """Free the trash after so many seconds (None: never)."""

    grace: float | None


class Entry(Struct, frozen=True):
    """One setting in force: its value, as written, and in which line; None for a default."""

    key: Key
    given: Given
    value: Value
    line: int | None


class Settings(Struct, frozen=True):
    """All settings in force; `entries` says where each comes from, in the order of `KEYS`."""

    rotate: Rotate
    archive: Archive
    codex: Codex
    prune: Policy
    trash: Trash
    entries: tuple[Entry, ...]

    @property
    def for_tidying(self) -> Settings:
        """The same, but the trash is only emptied if a line of the file is about deleting.

        `run` empties it in any case, after its grace time: that is what it says of itself. Where no
        line says it, sessions of Codex are compressed after a week: whoever tidies sees the plan.
        """
        set_in = {entry.key.table for entry in self.entries if entry.line is not None}
        trash = self.trash if set_in & {"prune", "trash"} else Trash(None)
        return replace(self, trash=trash, codex=self.codex if "codex" in set_in else Codex(_WEEK))


def parsed(text: str) -> Settings:
    """Return the settings in a file with this text, with defaults for the others.

    Raises WrongUsageError, naming the line, if the text is not TOML, or has an unknown setting or
    an invalid value.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise WrongUsageError(f"This is not TOML: {printable(str(error))}.") from None
    except RecursionError:
        raise WrongUsageError("This is not a settings file: it is nested too deeply.") from None
    lines = _lines(text)
    _check_names(document, lines)
    entries = tuple(_entry(key, document.get(key.table, {}), lines) for key in KEYS)
    values = by_table(entries, lambda entry: entry.value)
    return Settings(
        rotate=Rotate(**values["rotate"]),
        archive=Archive(**values["archive"]),
        codex=Codex(**values["codex"]),
        prune=Policy(**values["prune"]),
        trash=Trash(**values["trash"]),
        entries=entries,
    )


def by_table(entries: Sequence[Entry], told: Callable[[Entry], Any]) -> dict[str, dict[str, Any]]:
    """Return what is told of each setting, by table and name."""
    return {
        table: {entry.key.name: told(entry) for entry in entries if entry.key.table == table}
        for table in TABLES
    }


def _check_names(document: Mapping[str, Any], lines: Mapping[tuple[str, ...], int]) -> None:
    """Raise WrongUsageError for the first unknown name."""
    for table, inside in document.items():
        place = _place(lines, table)
        if table not in TABLES:
            what = "table" if isinstance(inside, dict) else "setting"
            known = [*TABLES, *(key.title for key in KEYS)]
            raise WrongUsageError(f"{place}unknown {what} {_near(table, known)}")
        if not isinstance(inside, dict):
            raise WrongUsageError(
                f"{place}{table} is a table: write [{table}], and its settings below."
            )
        for name in inside:
            if all((key.table, key.name) != (table, name) for key in KEYS):
                known = [key.name for key in KEYS if key.table == table]
                place = _place(lines, table, name)
                raise WrongUsageError(f"{place}unknown setting in [{table}]: {_near(name, known)}")


def _near(name: str, known: list[str]) -> str:
    """Return an unknown name, and what may have been meant."""
    nearest = difflib.get_close_matches(name.replace("-", "_"), known, 1, cutoff=0.5)
    meant = f"did you mean {nearest[0]}?" if nearest else f"known: {', '.join(known)}"
    return f"{printable(name)} ({meant})."


def _entry(key: Key, table: Mapping[str, Any], lines: Mapping[tuple[str, ...], int]) -> Entry:
    given: object = table.get(key.name, key.default)
    is_off = given is False and key.kind.may_be_off
    value = None if is_off else key.kind.parse(given)
    if not isinstance(given, str | int | bool) or (value is None and not is_off):
        off = ", or false for none" if key.kind.may_be_off else ""
        raise WrongUsageError(
            f"{_place(lines, key.table, key.name)}{key.title} must be {key.kind.words}{off}, not "
            f"{printable(repr(given), 60)}."
        )
    return Entry(key, given, value, lines.get((key.table, key.name)))


def _place(lines: Mapping[tuple[str, ...], int], *path: str) -> str:
    return f"Line {lines[path]}: " if path in lines else ""


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line in which each table and setting of a valid TOML text is first named.

    The parser does not report lines, so it is given one statement at a time, each below the head
    of its table.
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
            continue  # the value continues on the next line
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
