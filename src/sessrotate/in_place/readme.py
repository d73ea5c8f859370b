"""The text beside the archives, for somebody who looks for what may be deleted.

Promise: whoever opens the folder of archives finds what it is, and how to get space without losing
anything. In comes a `Place`; nothing comes out.

Rule: it is a courtesy. It appears whole or not at all, stands in for nothing, is never written over
what is there, and nothing fails because it could not be written.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from sessrotate import fs, names
from sessrotate.archive import away_file, place
from sessrotate.archive.place import Place

TEXT: Final = b"""\
This folder is the history of your coding-agent sessions. Do not delete it by hand.

sessrotate keeps the live files small, and the rest of each session is here, compressed. If you
delete a session's folder, the beginning of that session is lost for good.

To see what takes space:    sessrotate list
To free space:              sessrotate prune --all --keep-within 90d --dry-run
To get a session back:      sessrotate restore SESSION
To check that all is there: sessrotate verify --all

If it was deleted already: put it back from the trash or from a backup, under this name.
"""


def leave(where: Place) -> None:
    """Write the text into the folder of all archives, if the session has an archive and it lacks.

    Where it cannot be written, as on a full disk, nothing is raised and nothing stays of it: a next
    time will do. What a kill left of it goes the next time too, whichever session that is for.
    """
    path = where.config / place.FOLDER / place.README
    _clear(path)
    is_any = os.path.lexists(where.archive / names.MANIFEST) or away_file.away(where)
    if os.path.lexists(path) or not is_any:
        return
    try:
        fs.create_file_at_once(path, TEXT)
    except OSError:
        _clear(path)


def _clear(path: Path) -> None:
    """Remove the draft of the text. Another process that is writing it will do without."""
    draft = path.with_name(path.name + names.PARTIAL)
    if os.path.lexists(draft):
        with suppress(OSError):
            fs.remove_files(draft.parent, [draft.name])
