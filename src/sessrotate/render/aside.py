"""An archive that is put aside: what goes where, and how to go on. Pure.

Rule: it names every place, and the commands that read what is there.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sessrotate import names
from sessrotate.errors import printable
from sessrotate.render import common

if TYPE_CHECKING:
    from pathlib import Path

    from sessrotate.archive.place import Place
    from sessrotate.in_place.aside import Plan


def plan(planned: Plan) -> Iterator[str]:
    """Yield what is going to happen."""
    where = planned.place
    yield (
        f"The archive of {printable(where.session)} ({common.size(planned.size)}) would be put "
        f"aside, whole: {_shown(where.archive)}"
    )
    if planned.is_gone:
        yield (
            "There is no live file: the archive holds all that is left of the session, perhaps as "
            f"{names.PACK} or in {names.ARCHIVED}/."
        )
        return
    yield f"The live file stays as it is: {_shown(where.live)}"
    if planned.waits:
        yield (
            f"{_shown(where.waiting)} goes with it: lines written to a replaced live file there "
            "since the last run, or later, no longer reach the live file. `sessrotate run` brings "
            "them over first, if it can."
        )


def done(where: Place, folder: Path) -> Iterator[str]:
    """Yield where everything is now, and how to go on."""
    path = printable(shlex.quote(str(folder)), 4096)
    yield f"It is now in {_shown(folder)}"
    yield f"To put it back: mv {path} {printable(shlex.quote(str(where.archive)), 4096)}"
    yield f"To read it: sessrotate export --allow-gaps {path}"
    yield (
        f"To rotate the session again: sessrotate rotate --unsafe-adopt {printable(where.session)}"
    )


def _shown(path: Path) -> str:
    return printable(str(path), 4096)
