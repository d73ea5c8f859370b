"""Every setting of `sessrotate run`: its kind, its default and what it means. Pure.

Rule: `KEYS` is the only table. The file that `config init` writes, what `config show` prints and
the page of the documentation follow from it. Nothing that removes or moves is on by default,
except rotating and compressing, which lose nothing.
"""

from __future__ import annotations

import json
import math
import textwrap
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sessrotate import units

if TYPE_CHECKING:
    from collections.abc import Callable

    Value = int | float | bool | None
    """In bytes, seconds, or a plain number; None if the setting is off."""

    Given = str | int | bool
    """As it is written in the file."""


class Kind(Struct, frozen=True):
    """What a setting can be, in words and as a parser, which returns None for an invalid value.

    If it `may_be_off`, `false` turns it off.
    """

    words: str
    parse: Callable[[object], Value]
    may_be_off: bool = True


def _size(given: object) -> Value:
    """Return bytes; a whole number is taken as bytes."""
    if type(given) is int and given >= 0:
        return given
    return units.size(given) if isinstance(given, str) else None


def _whole(most: float) -> Callable[[object], Value]:
    return lambda given: given if type(given) is int and 1 <= given <= most else None


SIZE: Final = Kind('a size such as "500K", "50M" or "2G"', _size)
AGE: Final = Kind(
    'an age such as "30m", "12h", "30d" or "6w"',
    lambda given: units.age(given) if isinstance(given, str) else None,
)
COUNT: Final = Kind("a whole number, 1 or more", _whole(math.inf))
FLAG: Final = Kind(
    "true or false", lambda given: given if isinstance(given, bool) else None, may_be_off=False
)


class Key(Struct, frozen=True):
    """One setting. `default` and `example` are as in the file; a `default` of False means off.

    `means` is a sentence or two for the file and the documentation.
    """

    table: str
    name: str
    kind: Kind
    means: str
    default: Given = False
    example: Given = False

    @property
    def is_off(self) -> bool:
        """Whether the setting is off by default."""
        return self.kind.may_be_off and self.default is False

    @property
    def title(self) -> str:
        """Its name outside of its table."""
        return f"{self.table}.{self.name}"


TABLES: Final = {
    "rotate": "Move the history of sessions to their archives, compressed. Nothing is lost.",
    "archive": "Move whole sessions out of the client's folder. Nothing is lost.",
    "codex": "Compress sessions of Codex, as the client itself reads them. Nothing is lost.",
    "prune": "Move archived segments to the trash. Without a rule here, none is moved.",
    "trash": "Delete pruned segments. Until then, `sessrotate restore` brings them back.",
}
"""What each table does, in the order in which `run` does it."""

KEYS: Final = (
    Key("rotate", "min_gain", SIZE, "Rotate where that frees at least this much disk.", "1M"),
    Key(
        "rotate",
        "live",
        FLAG,
        "Rotate sessions that a client runs, too. Otherwise they wait for the next run.",
    ),
    Key(
        "archive",
        "older_than",
        AGE,
        "Archive sessions unused for at least this long, and for a day in any case.",
        example="90d",
    ),
    Key(
        "archive",
        "before_cleanup",
        AGE,
        "Archive sessions this long before the client would delete them "
        "(after cleanupPeriodDays in its settings.json, by default 30 days): at most a third of "
        "that period, and no session that was used within a day.",
        example="3d",
    ),
    Key(
        "codex",
        "compress_after",
        AGE,
        "Compress sessions unused for at least this long, and for a day in any case. Programs that "
        "look for *.jsonl no longer see them. Unless this is set, or false, `tidy` does so after 7 "
        "days.",
        example="7d",
    ),
    Key(
        "prune",
        "keep_last",
        COUNT,
        "Keep this many of the last segments of each session.",
        example=10,
    ),
    Key(
        "prune",
        "keep_within",
        AGE,
        "Keep segments at most this much older than the newest of their session.",
        example="30d",
    ),
    Key(
        "prune",
        "keep_daily",
        COUNT,
        "Keep the newest segment of each of the last N days that have one.",
        example=7,
    ),
    Key("prune", "keep_weekly", COUNT, "The same for weeks.", example=8),
    Key("prune", "keep_monthly", COUNT, "The same for months.", example=12),
    Key(
        "prune",
        "max_age",
        AGE,
        "Remove segments older than this that no rule above keeps.",
        example="52w",
    ),
    Key(
        "prune",
        "max_size",
        SIZE,
        "Remove the oldest segments that no rule above keeps until all fit in this size.",
        example="20G",
    ),
    Key(
        "trash",
        "grace",
        AGE,
        'How long pruned segments stay in the trash. "0" deletes them in the same run.',
        "7d",
    ),
)


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
    for table, about in TABLES.items():
        lines += [f"[{table}]", *_comment(about)]
        for key in KEYS:
            if key.table == table:
                default = "Off by default" if key.is_off else f"Default: {literal(key.default)}"
                lines += ["", *_comment(f"{key.means} {default}.")]
                shown = key.example if key.is_off else key.default
                lines.append(f"#{key.name} = {literal(shown)}")
        lines.append("")
    return "\n".join(lines)


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, 98, initial_indent="# ", subsequent_indent="# ")
