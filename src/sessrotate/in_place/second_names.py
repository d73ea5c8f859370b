"""The second names that files get for a client that may trim them, in the client's own place.

Rule: given once, and taken back only by whoever knows that the bytes have another name. Loads
little: the hook gives one while its client waits.
"""

from __future__ import annotations

import os
from pathlib import Path

from sessrotate import fs
from sessrotate.archive.place import Place


def give(place: Place, path: Path, at_ns: int | None = None) -> None:
    """Give a file of a session such a name, unless it has one.

    `at_ns` is as in `in_place.Trims.new_name`. Raises OSError as the system reports.
    """
    if not place.client.trims.names_of(place.live, place.session, path.lstat()):
        name = place.client.trims.new_name(place.live, place.session, at_ns)
        fs.create_folder(name.parent)
        fs.add_name(path, name)


def forget(place: Place, status: os.stat_result) -> None:
    """Take these names from the file with this status. Raises OSError as the system reports."""
    for path in place.client.trims.names_of(place.live, place.session, status):
        fs.remove_files(path.parent, [path.name])
