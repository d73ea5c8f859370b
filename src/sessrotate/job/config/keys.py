"""Every setting of `sessrotate run`: what it may be, its default, what it means. Pure.

Rule: one table, `KEYS`. The file that `config init` writes, what `config show` prints and the page
of the documentation follow from it. Nothing that removes or takes away is on by default.
"""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sessrotate import units

if TYPE_CHECKING:
    from collections.abc import Callable

    Value = int | float | bool | None
    """In bytes, seconds, or a number; None where a setting is off."""

    Given = str | int | bool
    """As it is written in the file."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a setting may be: said to people, and how it is read; `parse` returns None for no such.

    Where `may_be_off`, `false` says that there is none.
    """

    said: str
    parse: Callable[[object], Value]
    may_be_off: bool = True


def _size(given: object) -> Value:
    """Return bytes; a whole number stands for itself."""
    if type(given) is int and given >= 0:
        return given
    return units.size(given) if isinstance(given, str) else None


def _age(given: object) -> Value:
    return units.age(given) if isinstance(given, str) else None


def _count(given: object) -> Value:
    return given if type(given) is int and given >= 1 else None


def _level(given: object) -> Value:
    return given if type(given) is int and 1 <= given <= HIGHEST_LEVEL else None


def _flag(given: object) -> Value:
    return given if isinstance(given, bool) else None


HIGHEST_LEVEL: Final = 19
"""Of zstd; the levels above it need as much memory to read as to write."""

SIZE: Final = Kind('a size such as "500K", "50M" or "2G"', _size)
AGE: Final = Kind('an age such as "12h", "30d" or "6w"', _age)
COUNT: Final = Kind("a whole number, 1 or more", _count)
LEVEL: Final = Kind(f"a whole number from 1 to {HIGHEST_LEVEL}", _level, may_be_off=False)
FLAG: Final = Kind("true or false", _flag, may_be_off=False)


@dataclass(frozen=True, slots=True)
class Key:
    """One setting. `default` and `example` are as in the file; `default` is False where it is off.

    `means` is one or two sentences for the file and the documentation.
    """

    table: str
    name: str
    kind: Kind
    default: Given
    means: str
    example: Given = False

    @property
    def is_off(self) -> bool:
        """Whether there is no such rule by default."""
        return self.kind.may_be_off and self.default is False

    @property
    def title(self) -> str:
        """What it is called outside of its table."""
        return f"{self.table}.{self.name}"


TABLES: Final = {
    "rotate": "Sessions whose history goes to the archive.",
    "compress": "Archived segments that become .jsonl.zst. Nothing is lost by it.",
    "archive": "Whole sessions that are put away, out of the client's sight and reach.",
    "prune": "Archived segments that go to the trash. Without a rule here, none does.",
    "trash": "What was pruned, and can be brought back by `sessrotate undelete` until it is freed.",
}
"""What each table is about, in the order in which `run` does it."""

KEYS: Final = (
    Key("rotate", "min_size", SIZE, "50M", "Sessions from this size on are rotated."),
    Key(
        "rotate",
        "live",
        FLAG,
        default=False,
        means="Also while a client runs them; otherwise such a session waits for the next run.",
    ),
    Key("compress", "older_than", AGE, "7d", "Segments whose last record is older are compressed."),
    Key("compress", "level", LEVEL, 3, "How hard zstd tries: a higher one takes more time."),
    Key(
        "archive",
        "older_than",
        AGE,
        default=False,
        means="Sessions that nobody wrote to for so long are put away.",
        example="90d",
    ),
    Key(
        "archive",
        "before_cleanup",
        AGE,
        default=False,
        means=(
            "Sessions are put away so long before the client would delete them for good "
            "(cleanupPeriodDays in its settings.json; 30 days if it says nothing)."
        ),
        example="3d",
    ),
    Key(
        "prune",
        "keep_last",
        COUNT,
        default=False,
        means="Keep the last so many segments of each session.",
        example=10,
    ),
    Key(
        "prune",
        "keep_within",
        AGE,
        default=False,
        means="Keep what is at most so much older than its session's newest segment.",
        example="30d",
    ),
    Key(
        "prune",
        "keep_daily",
        COUNT,
        default=False,
        means="Keep the newest of each of the last so many days that have any.",
        example=7,
    ),
    Key("prune", "keep_weekly", COUNT, default=False, means="The same for weeks.", example=8),
    Key("prune", "keep_monthly", COUNT, default=False, means="The same for months.", example=12),
    Key(
        "prune",
        "max_age",
        AGE,
        default=False,
        means="Remove what is older, and is not kept by a rule above.",
        example="52w",
    ),
    Key(
        "prune",
        "max_size",
        SIZE,
        default=False,
        means="Remove the oldest that no rule above keeps until all together have this size.",
        example="20G",
    ),
    Key("trash", "grace", AGE, "7d", 'How long it stays there; "0" frees it in the same run.'),
)


# ── the file ─────────────────────────────────────────────────────────────────────────────────


def literal(given: Given) -> str:
    """Return a value as it is written in the file."""
    return json.dumps(given)  # of what a setting can be, TOML and JSON write the same


_HEAD: Final = """\
# What `sessrotate run` does. A line that begins with # is not read: take the # away to change a
# setting. Sizes are "500K", "50M", "2G" (powers of 1024); ages are "12h", "30d", "6w"; false means
# that there is no such rule. `sessrotate config show` says what is in force, and
# `sessrotate run --dry-run` what it would do.
"""


def commented() -> str:
    """Return the file that `config init` writes: what every setting means, and none set."""
    lines = [_HEAD]
    for table, about in TABLES.items():
        lines += [f"[{table}]", *_comment(about)]
        for key in KEYS:
            if key.table == table:
                lines += ["", *_comment(f"{key.means} {default(key)}")]
                shown = key.example if key.is_off else key.default
                lines.append(f"#{key.name} = {literal(shown)}")
        lines.append("")
    return "\n".join(lines)


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, 98, initial_indent="# ", subsequent_indent="# ")


def default(key: Key) -> str:
    """Return a sentence about what is in force if nothing is said."""
    return "Off by default." if key.is_off else f"Default: {literal(key.default)}."
