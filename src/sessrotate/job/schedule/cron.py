r"""The scheduled job as a line for cron. Pure.

cron ends the command at a `%` (crontab(5)). `\%` is a plain one, but not after another backslash,
because the two make a pair. So a backslash and a `%` never touch: an empty pair of quotes, which
the shell removes, keeps them apart.

Rule: one line that `crontab -e` accepts as it is.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from sessrotate.errors import RefusedError, printable
from sessrotate.job.schedule.work import HOUR, MINUTE

if TYPE_CHECKING:
    from sessrotate.job.schedule.work import Every, Work

_WHEN: Final[dict[Every, str]] = {
    "hourly": f"{MINUTE} * * * *",
    "daily": f"{MINUTE} {HOUR} * * *",
    "weekly": f"{MINUTE} {HOUR} * * 0",
}


def line(work: Work) -> str:
    """Return the line; raise RefusedError for a path or a variable with a line break in it."""
    words = [
        *(f"{name}={shlex.quote(value)}" for name, value in sorted(work.environment.items())),
        shlex.quote(work.program),
        "run",
    ]
    command = " ".join(words)
    if re.search(r"[\n\r\x00]", command):
        raise RefusedError(
            f"{printable(command)} does not fit on one line: install sessrotate elsewhere."
        )
    # A word with a backslash or a % is in single quotes.
    return f"{_WHEN[work.every]} {command.replace('%', chr(92) + '%').replace(*_APART)}"


_APART: Final = (r"\\%", r"\''\%")
"""A backslash of the path's own before an escaped `%`, and the two with quotes between them."""
