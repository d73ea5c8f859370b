"""What has the draft's name after a crash that came in the middle of a swap.

While two names exchange their files, a crash may leave any of three files under the draft's name:
the new live file, the one that was replaced, or one that another program saved at that very moment.
The last is the newest of all, and nothing else has it.

Rule: told by identity and by all that the file holds. What is not surely ours is not removed.
"""

from __future__ import annotations

import stat

from sessrotate import names, platforms
from sessrotate.archive.late_lines import begins_with, is_at
from sessrotate.archive.live_tail import first_line, has_all_of, holds
from sessrotate.archive.record import Intent, Mark
from sessrotate.archive.recovery_table import Drafted
from sessrotate.archive.state import State
from sessrotate.model import Span
from sessrotate.segments import live_header
from sessrotate.system import lease
from sessrotate.system.source import Source


def judged(found: State, begun: Intent) -> Drafted:
    """Return what has the draft's name, having looked into it where that matters.

    It matters where neither that nor the live file is the one that was to be replaced.
    """
    if found.drafted != "unread" or found.match == "pack" or found.pack is None:
        return found.drafted
    if not is_plain(found):
        return "stranger"
    with Source.inside(found.place.archive, names.DRAFT) as draft:
        # Somebody may have found it under the live file's name, and write to it only now.
        is_free = lease.write(draft.fd) != "busy"
        return "new" if is_free and is_new(found, begun, draft) else "stranger"


def is_plain(found: State) -> bool:
    """Tell whether the draft's name has a file of the user's own, under this name alone.

    Nothing else takes the live file's place: an archive may come from somebody else.
    """
    status = found.place.draft.lstat()
    is_own = platforms.is_ours(status.st_uid)
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and is_own


def is_superfluous(live: Source | None, pack: Source, session: str) -> bool:
    """Tell whether the live file is the pack, or has all that is in it."""
    if live is None:
        return False
    whole = [(pack, Span(0, pack.identity().size))]
    # A backup makes two files of two names.
    if live.identity().is_same_file(pack.identity()) or begins_with(live, whole):
        return True
    # A session that was restored has all that came behind the header. Nobody may write to it now.
    answer = lease.read(pack.fd)
    if answer == "taken":
        lease.release(pack.fd)
    return answer == "taken" and has_all_of(live, None, None, pack, session)


def is_new(found: State, begun: Intent, draft: Source) -> bool:
    """Tell whether a file holds all that the new one of a swap did, and nothing else."""
    swap, size = begun.swap, draft.size()
    if size != swap.prefix + swap.tail.size or not is_at(draft, swap.prefix, swap.tail):
        return False
    if begun.operation == "restore":
        return found.manifest is not None and holds(draft, found.manifest.segments)
    if swap.new.size == swap.prefix:
        return is_at(draft, 0, swap.new)
    head = live_header.parse(first_line(draft), found.place.session)
    carried = None if head is None else Mark(head.carried_bytes, head.carried_digest)
    return is_at(draft, 0, swap.new) and bool(carried and is_at(draft, swap.new.size, carried))
