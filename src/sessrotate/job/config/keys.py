"""Every setting of `sessrotate run`: its kind, its default and what it means. Pure.

Rule: the Structs here are the only table. The file that `config init` writes, what `config show`
prints and the page of the documentation follow from them. Nothing that removes or moves is on by
default, except rotating and compressing, which lose nothing.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, get_args, get_type_hints

from msgspec import Meta, Struct

from sessrotate import units

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
    """Move whole sessions out of the client's folder. Nothing is lost."""

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
            "Compress sessions unused for at least this long; the minimum is a day. "
            "Programs that look for *.jsonl no longer see them. If this is not set, only `tidy` "
            "compresses, after 7 days; if it is false, neither `tidy` nor `run` does.",
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
