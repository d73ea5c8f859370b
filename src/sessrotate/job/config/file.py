"""The settings file: its text (TOML) → the settings in force, and where each comes from.

Rule: anything that is not understood is an error that names the file and the setting. A rule with a
typo in it must not turn into no rule. An existing file is never overwritten.
"""

from __future__ import annotations

import difflib
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict, replace

from sessrotate import fs
from sessrotate.errors import RefusedError, WrongUsageError, printable, storage
from sessrotate.job.config import keys
from sessrotate.job.config.keys import KEYS, TABLES, Age, Archive, Codex, Key, Rotate, Trash, Value
from sessrotate.retention.policy import Policy
from sessrotate.system import ownership, user_folders

# ── the text ─────────────────────────────────────────────────────────────────────────────────


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

        `run` empties it in any case, after its grace period: that is what it says of itself. Where
        no line says it, sessions of Codex are compressed after a week: whoever tidies sees the
        plan.
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


# ── the file ─────────────────────────────────────────────────────────────────────────────────


_LARGEST: Final = 64 * 1024
"""Bytes that a settings file may have; the commented one has less than 4,000."""


class Loaded(Struct, frozen=True):
    """The settings in force, and the file they come from, if it exists."""

    path: Path
    is_there: bool
    settings: Settings


def read(named: Path | None) -> Loaded:
    """Return the settings in a file, by default the one in the platform's folder.

    If that one does not exist, the defaults apply. Raises WrongUsageError if a named file does not
    exist, or a file cannot be understood.
    """
    path = user_folders.config_file() if named is None else named
    with storage("read the settings"):
        data = content(path)
    if data is None:
        if named is not None:
            raise WrongUsageError(f"The settings file {printable(str(path))} does not exist.")
        return Loaded(path, is_there=False, settings=parsed(""))
    try:
        return Loaded(path, is_there=True, settings=parsed(data.decode("utf-8-sig")))
    except UnicodeDecodeError:
        raise WrongUsageError(f"{printable(str(path))} is not UTF-8, which TOML must be.") from None
    except WrongUsageError as error:
        raise WrongUsageError(f"{printable(str(path))}: {error}") from None


def grace() -> float | None:
    """Return for how many seconds what is in a trash stays there; None if it is never freed.

    Whatever frees or judges by that time asks here. Raises as `read` does.
    """
    return read(None).settings.trash.grace


def content(path: Path) -> bytes | None:
    """Return what is in a settings file, None if there is none.

    Raises WrongUsageError if it is no file, or too large; OSError as the system reports.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise WrongUsageError(f"{printable(str(path))} is not a regular file.")
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    if len(data) > _LARGEST:
        raise WrongUsageError(f"{printable(str(path))} is too large for a settings file.")
    return data


def init() -> Path:
    """Write the commented file and return its path; raise RefusedError if one exists."""
    path = user_folders.config_file()
    user_folders.check_home(path)
    with storage("write the settings"):
        ownership.check(path)
        fs.create_folder(path.parent)
        try:
            with fs.OutputFile(path) as file:
                file.append(keys.commented().encode())
                file.publish()
        except FileExistsError:
            raise RefusedError(
                f"{printable(str(path))} already exists: edit it, or move it away first."
            ) from None
    return path
