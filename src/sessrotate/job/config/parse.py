"""The text of a settings file (TOML) → the settings in force, and where each comes from. Pure.

Rule: anything that is not understood is an error that names the setting. A rule with a typo in it
must not turn into no rule.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict, replace

from sessrotate.errors import WrongUsageError, printable
from sessrotate.job.config.keys import KEYS, TABLES, Age, Archive, Codex, Key, Rotate, Trash, Value
from sessrotate.retention.policy import Policy


class Settings(Struct, frozen=True):
    """All settings in force; `lines` says by its title in which line each that is set stands."""

    rotate: Rotate
    archive: Archive
    codex: Codex
    prune: Policy
    trash: Trash
    lines: dict[str, int]

    def value(self, key: Key) -> Value:
        """Return the value of a setting."""
        value: Value = getattr(getattr(self, key.table), key.name)
        return value

    @property
    def for_tidying(self) -> Settings:
        """The same, but the trash is only emptied if a line of the file is about deleting.

        `run` empties it in any case, after its grace time: that is what it says of itself. Where no
        line says it, sessions of Codex are compressed after a week: whoever tidies sees the plan.
        """
        set_in = {key.table for key in KEYS if key.title in self.lines}
        trash = self.trash if set_in & {"prune", "trash"} else Trash(None)
        codex = self.codex if "codex" in set_in else Codex(Age("1w"))
        return replace(self, trash=trash, codex=codex)


def parsed(text: str) -> Settings:
    """Return the settings in a file with this text, with defaults for the others.

    Raises WrongUsageError, naming the setting, if the text is not TOML, or has an unknown setting
    or an invalid value.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise WrongUsageError(f"This is not TOML: {printable(str(error))}.") from None
    except RecursionError:
        raise WrongUsageError("This is not a settings file: it is nested too deeply.") from None
    _check_names(document)
    tables: dict[str, Any] = {name: _table(name, document.get(name, {})) for name in TABLES}
    tables["prune"] = Policy(**asdict(tables["prune"]))
    are_set = (key for key in KEYS if key.name in document.get(key.table, {}))
    return Settings(**tables, lines={key.title: _line(text, key) for key in are_set})


def _check_names(document: Mapping[str, Any]) -> None:
    """Raise WrongUsageError for the first unknown name."""
    for table, inside in document.items():
        if table not in TABLES:
            what = "table" if isinstance(inside, dict) else "setting"
            known = [*TABLES, *(key.title for key in KEYS)]
            raise WrongUsageError(f"Unknown {what} {_near(table, known)}")
        if not isinstance(inside, dict):
            raise WrongUsageError(f"{table} is a table: write [{table}], and its settings below.")
        known = [key.name for key in KEYS if key.table == table]
        for name in inside.keys() - known:
            raise WrongUsageError(f"Unknown setting in [{table}]: {_near(name, known)}")


def _near(name: str, known: list[str]) -> str:
    """Return an unknown name, and what may have been meant."""
    nearest = difflib.get_close_matches(name.replace("-", "_"), known, 1, cutoff=0.5)
    meant = f"did you mean {nearest[0]}?" if nearest else f"known: {', '.join(known)}"
    return f"{printable(name)} ({meant})."


def _table(name: str, given: Mapping[str, Any]) -> Any:
    off = {key.name: None for key in KEYS if key.may_be_off and given.get(key.name) is False}
    try:
        return convert({**given, **off}, TABLES[name], dec_hook=lambda kind, value: kind(value))
    except ValidationError as error:
        key = next(key for key in KEYS if f"`$.{key.name}" in str(error))
        or_off = ", or false to turn it off" if key.may_be_off else ""
        raise WrongUsageError(
            f"{key.title} must be {key.words}{or_off}, not {printable(repr(given[key.name]), 60)}."
        ) from None


def _line(text: str, key: Key) -> int:
    """Return the line in which a setting stands, however its table is written.

    The parser reports none, so its name is looked for: one with an escape in it is in the first.
    """
    found = re.search(rf"(?m)^[^#\n]*\b{key.name}\b[\"']?[ \t]*=", text)
    return 1 + text.count("\n", 0, found.end() if found else 0)
