"""The settings of `sessrotate run`: the table of them, and the text (TOML) that sets them.

Promise: a settings file → `Settings`, and where each comes from, or an error that names the file
and the setting.

Rule: anything that is not understood is an error: a rule with a typo in it must not turn into no
rule. An existing file is never overwritten. The Structs here are the only table: the file that
`config init` writes, what `config show` prints and the page of the documentation follow from them.
Nothing that removes or moves is on by default, except rotating and compressing, which lose nothing.
"""

from __future__ import annotations

import difflib
import json
import re
import stat
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, get_args, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import asdict, replace

from sessrotate import fs, units
from sessrotate.errors import RefusedError, WrongUsageError, printable, storage
from sessrotate.retention.policy import Policy
from sessrotate.system import inside, user_folders

if TYPE_CHECKING:
    Given = str | int | bool
    """As it is written in the file."""


class Size(int):
    """Bytes, as they are `given` in the file: in words, or as a whole number."""

    given: str | int

    def __new__(cls, given: object) -> Self:
        """Raise ValueError for what is not a size."""
        value = units.size(given) if isinstance(given, str) else given
        if type(value) is not int or value < 0:
            raise ValueError
        made = super().__new__(cls, value)
        made.given = given if isinstance(given, str) else value
        return made


class Age(float):
    """Seconds, as they are `given` in the file."""

    given: str

    def __new__(cls, given: object) -> Self:
        """Raise ValueError for what is not an age."""
        value = units.age(given) if isinstance(given, str) else None
        if value is None or not isinstance(given, str):
            raise ValueError
        made = super().__new__(cls, value)
        made.given = given
        return made


Count = Annotated[int, Meta(ge=1)]

Value = Size | Age | int | bool | None
"""In bytes, seconds, or a plain number; None if the setting is off."""

_WORDS: Final[dict[Any, str]] = {
    Size: 'a size such as "500K", "50M" or "2G"',
    Age: 'an age such as "30m", "12h", "30d" or "6w"',
    Count: "a whole number, 1 or more",
    bool: "true or false",
}


def _is(means: str, example: Given | None = None) -> Meta:
    """Return what a setting means, in a sentence or two, and an example if it is off by default."""
    return Meta(description=means, examples=None if example is None else [example])


class Table(Struct, frozen=True):
    """The settings of one step; None for one that is off. A table's docstring is in the file."""


class Rotate(Table, frozen=True):
    """Move the history of sessions to their archives, compressed. Nothing is lost."""

    min_gain: Annotated[
        Size | None, _is("Rotate a session if that frees at least this much disk space.")
    ] = Size("1M")
    live: Annotated[
        bool,
        _is("Also rotate sessions that a client is running. Otherwise the next run tries again."),
    ] = False


class Archive(Table, frozen=True):
    """Move whole sessions to where no client looks. Nothing is lost."""

    older_than: Annotated[
        Age | None,
        _is("Archive sessions unused for at least this long; the minimum is a day.", "90d"),
    ] = None
    before_cleanup: Annotated[
        Age | None,
        _is(
            "Archive sessions this long before the client would delete them "
            "(after cleanupPeriodDays in its settings.json, by default 30 days). Capped at a "
            "third of that period; a session that was used within the last day always stays.",
            "3d",
        ),
    ] = None


class Codex(Table, frozen=True):
    """Compress Codex sessions in a form that Codex itself reads. Nothing is lost."""

    compress_after: Annotated[
        Age | None,
        _is(
            "Have each run compress sessions unused for at least this long; the minimum is a day. "
            "Programs that look for *.jsonl no longer see them. If this is not set, `tidy` still "
            "compresses those unused for 7 days; if it is false, `tidy` compresses none.",
            "7d",
        ),
    ] = None


class Prune(Table, frozen=True):
    """Move archived segments to the trash. Without a rule here, none is moved."""

    keep_last: Annotated[
        Count | None, _is("Keep this many of the last segments of each session.", 10)
    ] = None
    keep_within: Annotated[
        Age | None,
        _is(
            "Keep segments that are at most this much older than the newest segment of their "
            "session.",
            "30d",
        ),
    ] = None
    keep_daily: Annotated[
        Count | None,
        _is("Keep the newest segment of each day, for the last N days that have segments.", 7),
    ] = None
    keep_weekly: Annotated[Count | None, _is("The same for weeks.", 8)] = None
    keep_monthly: Annotated[Count | None, _is("The same for months.", 12)] = None
    max_age: Annotated[
        Age | None,
        _is("Remove segments older than this, unless a keep rule applies to them.", "52w"),
    ] = None
    max_size: Annotated[
        Size | None,
        _is(
            "Remove the oldest segments, except those to which a keep rule applies, until all "
            "archives together fit in this size.",
            "20G",
        ),
    ] = None


class Trash(Table, frozen=True):
    """Delete pruned segments. Until then, `sessrotate restore` brings them back."""

    grace: Annotated[
        Age | None,
        _is('How long pruned segments stay in the trash. "0" deletes them in the same run.'),
    ] = Age("7d")


TABLES: Final[dict[str, type[Table]]] = {
    "rotate": Rotate,
    "archive": Archive,
    "codex": Codex,
    "prune": Prune,
    "trash": Trash,
}
"""The tables, in the order in which `run` does what they say."""


class Key(Struct, frozen=True):
    """One setting: where it is, what it can be in words, what it means, its default, an example.

    If it `may_be_off`, `false` turns it off. Default and example are as in the file.
    """

    table: str
    name: str
    words: str
    may_be_off: bool
    means: str
    default: Given
    example: Given

    @property
    def is_off(self) -> bool:
        """Whether the setting is off by default."""
        return self.may_be_off and self.default is False

    @property
    def title(self) -> str:
        """Its name outside of its table."""
        return f"{self.table}.{self.name}"


def _keys() -> Iterator[Key]:
    for title, table in TABLES.items():
        hints, unset = get_type_hints(table, include_extras=True), table()
        for name in table.__struct_fields__:
            kind, said = get_args(hints[name])
            words, *off = (_WORDS.get(each, "") for each in get_args(kind) or (kind,))
            default = written(getattr(unset, name))
            example = said.examples[0] if said.examples else default
            yield Key(title, name, words, bool(off), said.description, default, example)


def written(value: Value) -> Given:
    """Return a setting's value as it is given in the file."""
    if isinstance(value, Size | Age):
        return value.given
    return False if value is None else value


KEYS: Final = tuple(_keys())
"""Every setting; no two have the same name."""


def literal(given: Given) -> str:
    """Return a value as it is written in the file."""
    return json.dumps(given)  # of what a setting can be, TOML and JSON write the same


_HEAD: Final = """\
# The settings of `sessrotate run`. To change one, remove the # in front of it. Sizes are "500K",
# "50M" or "2G" (in powers of 1024); ages are "30m", "12h", "30d" or "6w"; false turns a setting
# off. `sessrotate config show` prints the settings in force, and `sessrotate run --dry-run` what a
# run would do.
"""


def commented() -> str:
    """Return the file that `config init` writes: every setting explained, none set."""
    lines = [_HEAD]
    for title, table in TABLES.items():
        lines += [f"[{title}]", *_comment(table.__doc__ or "")]
        for key in KEYS:
            if key.table == title:
                default = "Off by default" if key.is_off else f"Default: {literal(key.default)}"
                lines += ["", *_comment(f"{key.means} {default}.")]
                lines.append(f"#{key.name} = {literal(key.example)}")
        lines.append("")
    return "\n".join(lines)


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, 98, initial_indent="# ", subsequent_indent="# ")


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
    for table, given in document.items():
        if table not in TABLES:
            what = "table" if isinstance(given, dict) else "setting"
            known = [*TABLES, *(key.title for key in KEYS)]
            raise WrongUsageError(f"Unknown {what} {_near(table, known)}")
        if not isinstance(given, dict):
            raise WrongUsageError(f"{table} is a table: write [{table}], and its settings below.")
        known = [key.name for key in KEYS if key.table == table]
        for name in given.keys() - known:
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
        inside.check_owner(path)
        fs.create_folder(path.parent)
        try:
            with fs.OutputFile(path) as file:
                file.append(commented().encode())
                file.publish()
        except FileExistsError:
            raise RefusedError(
                f"{printable(str(path))} already exists: edit it, or move it away first."
            ) from None
    return path
