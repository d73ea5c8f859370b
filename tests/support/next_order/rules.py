"""The next order of writes: archive first, then one exchange of names. Its rules.

This is *not* what sessrotate does now: that is `docs/internals/protocol.md`.

1. **Begin.** Lock, recover, plan. The first run writes an empty manifest and an empty record. The
   lease is asked for and let go: busy is 75 before anything else is written.
2. **Segments** are written from the live file (before it, from what a trim kept), synced, read
   back, the folder too; then the manifest lists them, *not counted*. A listed one is kept only if
   its file reads back equal and is no tombstone. What a trim kept goes once the history has all
   of it.
3. **Each exchange has a number.** `new/N` is a header of *n* segments and the tail (a
   restoration: the history). The live folder is synced; `old/N` becomes a second name of the live
   file; then the record says *N*, which file `new/N` is, how it begins, and its tail. Without
   leases the tail ends with the last whole line.
4. **`old/N` is compared** with the segments. Under its lease the tail is caught up, both files
   are synced, the record says *ready* and lists `old/N` as waiting, the boundary still stands at
   the cut; then the names are exchanged. Else undone, 75.
5. **The header is the commit**, and the names say what happened, right behind the exchange and in
   recovery alike. The live file is `old/N`: undone. It is the new file, and `old/N` came out:
   done. Another program's file came out: exchanged back if the live file still is the new one,
   and again if yet another comes out; what of that is not the last save goes to `aside`. Another
   program has replaced the new file since: done all the same.
6. **Then** both folders are synced, late lines come over, what the live file's header counts is
   counted, and a write of the record ends the exchange.
7. **Late lines** go to the live file's end, under its lease: `old/N` is compared with what is
   known of it and synced, the batch noted, appended, synced, noted. Never behind a torn line; a
   torn one only once nobody can write its end; no row whose uuid is there; again, if another file
   took the name.
8. **What waits** is `old/N`, or a `new/N` that clients may have found. Changed since it was
   compared: `aside`. It goes if a lease proves that nobody can write to it, or without leases
   after a day of quiet with nobody known to have it open. The record first, then names; names
   that nothing lists go. Where the record is lost they go to `aside` first, and a new one begins.
9. **The live file counts *k* of *n*.** It holds *k* to *n-1* itself: these are spare until their
   grace period is over. It begins at *j* > *k* and holds *j* to *n-1*: it gets header *j* by the
   same exchange. Else some lack: uncounted ones go to `aside` and all goes on; counted ones are
   74 with the way out, for readers too. The live folder is synced before any go for that.
10. **A restoration** takes the mark from what it brings back before its exchange; what is freed
    for good stays behind the header.
11. **Prune** takes only counted segments below *k*. It, and what frees spare ones: manifest, then
    files; recovery settles that. Segments that no manifest lists go, unless the live file counts
    them. A lost manifest follows from the segments' headers if none lacks; else 74.
12. **The live file is gone:** `old/N` goes to `aside`, named; `restore` brings back archive and
    that.
13. No file is shortened, no last name removed, while a client may have it open. Each step is on
    the disk, file then folder, before the next.

Not in the model: the bytes of a line, digests that collide, ctime (an edit shows by comparing
only), a second folder of ours, several sessions, forks, a full disk, attributes, a restoration
where the live file is gone, carried lines, grouped segments, whole sessions put away, file
systems without an exchange of names.
"""

from __future__ import annotations

from enum import StrEnum


class Rule(StrEnum):
    """Each single thing that the rules ask for: `Tool` can be told to leave one out."""

    BUSY_FIRST = "1: busy is asked before anything is written"
    KEPT_IS_READ = "2: segments are written from what a trim kept, too"
    LISTED_IS_READ_BACK = "2: a listed segment is kept only if it reads back and is no tombstone"
    SYNC_SEGMENT = "2: a segment is synced"
    SYNC_SEGMENTS_FOLDER = "2: the folder of the segments is synced before they are listed"
    KEPT_GOES_WHEN_READ = "2: what a trim kept goes only when the history has all of it"
    SYNC_LIVE_FOLDER = "3: the live folder is synced before the second name"
    WHOLE_LINES = "3: without leases the tail ends with a whole line"
    SYNC_SMALL_FOLDER = "3: a small file's name is on the disk before the next step"
    COMPARED_BEFORE = "4: the old file is compared with the segments before the lease"
    LEASE = "4: the names are exchanged under a lease"
    CATCH_UP = "4: the tail is caught up under the lease"
    SYNC_OLD = "4: the old file is synced before the record says ready"
    SYNC_DRAFT = "4: the new file is synced before the exchange"
    EDGE = "4: the boundary stands at the cut"
    CAME_OUT = "5: what came out of the live name is looked at"
    NEWER_SAVE_STAYS = "5: it is exchanged back only while the live file is our new one"
    BACK_AGAIN = "5: what comes out when it is exchanged back is looked at, too"
    REPLACED_IS_FINISHED = "5: an exchange whose new file was replaced since is finished"
    SYNC_BOTH_FOLDERS = "6: both folders are synced behind the exchange"
    LATE_AT_ONCE = "6: late lines come over at once"
    COUNTED = "6: the segments are counted"
    COMPARED_BEFORE_A_BATCH = "7: the old file is compared before a batch is noted"
    LATE_ARE_WHOLE = "7: a torn late line waits until nobody can write its end"
    NOTED_FIRST = "7: a batch is noted before it is appended"
    SYNC_BEFORE_A_BATCH = "7: the old file is synced before a batch is noted"
    SYNC_APPENDED = "7: what was appended is synced before that is noted"
    NOT_BEHIND_A_TORN_LINE = "7: nothing is appended to a torn line"
    NO_UUID_TWICE = "7: no row comes over whose uuid is there"
    NAME_IS_LOOKED_AT = "7: if another file took the name, late lines come over again"
    EDITED_GOES_ASIDE = "8: a waiting file that was edited goes aside"
    LEASE_LETS_GO = "8: a lease proves that nobody can write to it before it goes"
    QUIET_DAY = "8: without leases it goes after a day of quiet"
    NOBODY_KNOWN = "8: without leases it goes if nobody is known to have it open"
    DRAFT_WAITS = "8: a new file that clients may have found waits like an old one"
    RECORD_FIRST = "8: the record is first, then the names"
    LOST_RECORD_ASIDE = "8: where the record is lost, what it may have listed goes aside"
    NEVER_COUNTED_ASIDE = "9: segments that lack and were never counted go aside"
    COUNTED_REFUSED = "9: segments that lack and were counted are refused"
    TAIL_GETS_HEADER = "9: the tail without its header gets it back"
    SYNC_LIVE_FIRST = "9: the live folder is synced before segments go because of what is there"
    READER_COMPARES = "9: a reader compares what it leaves out"
    MARK_TAKEN_FIRST = "10: a restoration takes the mark before its exchange"
    ONLY_COUNTED_PRUNED = "11: prune takes only what the live file counts"
    PRUNE_IS_SETTLED = "11: recovery settles what a prune left"
    GONE_GOES_ASIDE = "12: the live file is gone: the old one goes aside"
