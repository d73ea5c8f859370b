"""The next order of writes: archive first, then one exchange of names. Its rules, and the tool.

This is *not* what sessrotate does (that is `docs/internals/protocol.md`): issue 54 is to bring it.

1. **Begin.** Lock, recover, plan. The lease is asked for and let go: busy is 75 before anything
   is written.
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
   grace time is over. It begins at *j* > *k* and holds *j* to *n-1*: it gets header *j* by the
   same exchange. Else some lack: uncounted ones go to `aside` and all goes on; counted ones are
   74 with the way out, for readers too.
10. **A restoration** takes the mark from what it brings back before its exchange; what is freed
    for good stays behind the header.
11. **Prune** takes only counted segments below *k*. It, and what frees spare ones: manifest, then
    files; recovery settles that. Segments that no manifest lists go, unless the live file counts
    them. A lost manifest follows from the segments' headers if they have all that the live file
    counts; else 74.
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

from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from support.next_order.disk import CLIENTS, LIVE, OURS
from support.next_order.parts import (
    Content,
    Exchange,
    Header,
    Manifest,
    Record,
    Segment,
    SegmentHeader,
    Waiting,
    body_of,
    count_of,
    has_no_uuid,
    is_boundary,
    is_torn,
    lines_of,
)
from support.next_order.world import BusyError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from support.next_order.world import World

MANIFEST: Final = "manifest"
RECORD: Final = "record"


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
    READER_COMPARES = "9: a reader compares what it leaves out"
    MARK_TAKEN_FIRST = "10: a restoration takes the mark before its exchange"
    ONLY_COUNTED_PRUNED = "11: prune takes only what the live file counts"
    PRUNE_IS_SETTLED = "11: recovery settles what a prune left"
    GONE_GOES_ASIDE = "12: the live file is gone: the old one goes aside"


class Kind(Enum):
    """What the live file is for the segments that its header does not count."""

    ALL = "it counts all"
    SPARE = "it holds the others itself"
    TAIL = "it is the tail without its header"
    NEVER = "it lacks some that were never counted"
    LACKING = "it lacks some that were counted"


class Fit(NamedTuple):
    """How the live file and the segments go together."""

    kind: Kind
    at: int
    """From which segment on the live file has it itself; if it lacks some, the first of these."""


class Tool:
    """Follows the rules on the files of one session, but for the one that is left out."""

    def __init__(self, world: World, without: Rule | None = None) -> None:
        self.world = world
        self.without = without

    def keeps(self, rule: Rule) -> bool:
        """Return whether a rule is followed."""
        return rule is not self.without

    # -- small files ----------------------------------------------------------------------------

    def put(self, path: str, value: tuple[object, ...]) -> None:
        """Write a small file whole: a partial one, synced, renamed, its folder synced."""
        world = self.world
        world.step(f"put {path}")
        inode = world.new(value)
        world.synced[inode] = world.files[inode]
        world.files[inode] = world.synced[inode] = value
        world.name(path, inode)
        if self.keeps(Rule.SYNC_SMALL_FOLDER):
            world.sync_folder(OURS)

    def record(self) -> Record:
        """Return the record, or one that says nothing."""
        found: Record | None = self.world.read(RECORD)
        return found or Record()

    def exchange_ends(self, waiting: tuple[Waiting, ...]) -> None:
        """Have the record say that no exchange goes on, and which files wait."""
        self.put(RECORD, self.record()._replace(exchange=None, waiting=waiting))

    def waiting(self, path: str) -> Waiting | None:
        """Return what the record says of a waiting file."""
        return next((one for one in self.record().waiting if one.path == path), None)

    def others_waiting(self, path: str) -> tuple[Waiting, ...]:
        """Return what waits besides a file."""
        return tuple(one for one in self.record().waiting if one.path != path)

    def note(self, entry: Waiting) -> None:
        """Have the record say something new of a waiting file."""
        waiting = tuple(entry if one.path == entry.path else one for one in self.record().waiting)
        self.put(RECORD, self.record()._replace(waiting=waiting))

    def manifest(self) -> Manifest:
        """Return the manifest, or what follows from the headers of the segments.

        Raises RefusedError if there is none and segments lack: what was pruned is not known.
        """
        found: Manifest | None = self.world.read(MANIFEST)
        return self.rebuilt() if found is None else found

    def rebuilt(self) -> Manifest:
        """Return a manifest by the segments' own headers; what does not verify is not there."""
        world = self.world
        live = world.read(LIVE)
        counted = count_of(live) if live else 0
        listed: list[Segment] = []
        while self.verifies(len(listed)):
            header: SegmentHeader = world.read(f"seg/{len(listed)}")[0]
            listed.append(Segment(header.lines, header.following, len(listed) < counted))
        if len(listed) < counted:
            raise RefusedError
        return tuple(listed)

    def verifies(self, index: int) -> bool:
        """Return whether a segment's file is whole."""
        content = self.world.read(f"seg/{index}")
        return bool(content) and content[0].lines == content[1:]

    def reads_back(self, index: int, lines: Content) -> bool:
        """Return whether a segment's file is whole and has these lines."""
        return self.verifies(index) and self.world.read(f"seg/{index}")[1:] == lines

    def remove(self, path: str, folder: str = OURS) -> None:
        """Take a name away, and have that on the disk."""
        self.world.step(f"remove {path}")
        self.world.name(path, None)
        self.world.sync_folder(folder)

    def put_aside(self, path: str) -> None:
        """Give a file a second name that every command tells."""
        world = self.world
        inode = world.names[path]
        if inode not in {world.names[other] for other in world.paths("aside/")}:
            world.step(f"aside {path}")
            if world.names.get(path) == inode:
                number = 1 + max((int(p[6:]) for p in world.paths("aside/")), default=-1)
                world.name(f"aside/{number}", inode)
        world.sync_folder(OURS)

    # -- what the live file goes on from --------------------------------------------------------

    def fit(self, live: Content, manifest: Manifest) -> Fit:
        """Say how a live file goes on from its segments."""
        counted, rest = count_of(live), body_of(live)
        if counted > len(manifest):
            return Fit(Kind.LACKING, len(manifest))
        if counted == len(manifest):
            return Fit(Kind.ALL, counted)
        if rest[: len(others := joined(manifest[counted:]))] == others:
            return Fit(Kind.SPARE, counted)
        for at in range(counted + 1, len(manifest) + 1):
            if self.is_tail(rest, manifest, at):
                return Fit(Kind.TAIL, at)
        lacks = counted
        while rest[: len(held := joined(manifest[counted : lacks + 1]))] == held:
            lacks += 1
        was_counted = any(segment.counted for segment in manifest[lacks:])
        if not self.keeps(Rule.NEVER_COUNTED_ASIDE):
            was_counted = True
        if not self.keeps(Rule.COUNTED_REFUSED):
            was_counted = False
        return Fit(Kind.LACKING if was_counted else Kind.NEVER, lacks)

    def is_tail(self, rest: Content, manifest: Manifest, at: int) -> bool:
        """Return whether a file begins where a segment begins, and holds those from there on."""
        held = joined(manifest[at:])
        follows = rest[:1] == (manifest[at - 1].following,)
        return self.keeps(Rule.TAIL_GETS_HEADER) and follows and rest[: len(held)] == held

    def history(self) -> Content:
        """Return what a reader gives: the segments that the live file counts, and the live file."""
        world = self.world
        live, manifest = world.read(LIVE), self.manifest()
        if live is None:
            old = next((world.read(path) for path in world.paths("old/")), None)
            if old is None:
                return joined(
                    segment
                    for index, segment in enumerate(manifest)
                    if self.reads_back(index, segment.lines)
                )
            live = old
        fit = self.fit(live, manifest)
        compares = self.keeps(Rule.READER_COMPARES)
        if fit.kind is Kind.LACKING and (compares or count_of(live) > len(manifest)):
            raise RefusedError
        before: Content = ()
        for index in range(fit.at if fit.kind is Kind.TAIL else count_of(live)):
            segment = manifest[index]
            if not segment.tombstone:
                before += self.segment_lines(index, segment)
        return before + body_of(live)

    def segment_lines(self, index: int, segment: Segment) -> Content:
        """Return a segment's lines out of its file, which a prune may have moved to the trash."""
        for path in (f"seg/{index}", f"trash/{index}"):
            if (content := self.world.read(path)) and content[1:] == segment.lines:
                return segment.lines
        raise RefusedError

    # -- rotation and restoration ---------------------------------------------------------------

    def rotate(self) -> None:
        """Cut the live file at its last boundary."""
        world = self.world
        self.recover()
        if LIVE not in world.names:
            return
        if self.keeps(Rule.BUSY_FIRST):
            self.ask_for_a_lease()
        source, live, manifest = world.names[LIVE], world.read(LIVE), self.manifest()
        fit = self.fit(live, manifest)
        if fit.kind is Kind.LACKING:
            raise RefusedError
        if fit.kind is Kind.TAIL:
            self.exchange(source, (Header(fit.at),), live[: len(live) - len(body_of(live))])
            return
        if fit.kind is Kind.NEVER:
            manifest = self.put_segments_aside(manifest, fit.at)
        before = self.taken_by_trims(live)
        history = before + body_of(live)
        bounds = [at for at, line in enumerate(history) if at and is_boundary(line)]
        if bounds and bounds[-1] < len(before):
            bounds.append(len(before))  # what a trim kept is never the live file's
        if not bounds:
            return
        made = self.write_segments(history, bounds, manifest, count_of(live))
        self.put(MANIFEST, made)
        world.copy = live
        header = len(live) - len(body_of(live))
        cut = header + bounds[-1] - len(before)
        self.exchange(source, (Header(len(made)),), live[:cut])
        self.remove_what_trims_kept()

    def ask_for_a_lease(self) -> None:
        """End with 75 if somebody has the live file open for writing."""
        if self.world.leases:
            if not self.world.lease(LIVE):
                raise BusyError
            self.world.release()

    def put_segments_aside(self, manifest: Manifest, at: int) -> Manifest:
        """Put the segments from one on aside; return the manifest without them."""
        for index in range(at, len(manifest)):
            if f"seg/{index}" in self.world.names:
                self.put_aside(f"seg/{index}")
        self.put(MANIFEST, manifest[:at])
        return manifest[:at]

    def write_segments(
        self, history: Content, bounds: list[int], manifest: Manifest, counted: int
    ) -> Manifest:
        """Write the segments that are not there yet; return the manifest that lists them."""
        world = self.world
        made = [*manifest[:counted]]
        for start, end in zip([0, *bounds], bounds, strict=False):
            index, lines = len(made), history[start:end]
            listed = manifest[index] if index < len(manifest) else None
            trusted = not self.keeps(Rule.LISTED_IS_READ_BACK) or (
                listed is not None and not listed.tombstone and self.reads_back(index, lines)
            )
            if listed and listed.lines == lines and trusted:
                made.append(listed)
                continue
            world.step("segment")
            world.name(f"seg/{index}", world.new((SegmentHeader(lines, history[end]), *lines)))
            if self.keeps(Rule.SYNC_SEGMENT):
                world.sync(f"seg/{index}")
            made.append(Segment(lines, history[end]))
        if self.keeps(Rule.SYNC_SEGMENTS_FOLDER):
            world.sync_folder(OURS)
        return tuple(made)

    def taken_by_trims(self, live: Content) -> Content:
        """Return what trims took from the beginning of the live file, out of what they kept."""
        before: Content = ()
        if self.keeps(Rule.KEPT_IS_READ):
            for path in reversed(self.world.paths("kept/")):
                kept = self.world.read(path)
                first = (before + body_of(live))[:1]
                if count_of(kept) == count_of(live) and first and first[0] in body_of(kept):
                    before = body_of(kept)[: body_of(kept).index(first[0])] + before
        return before

    def remove_what_trims_kept(self) -> None:
        """Let go of what trims kept, as far as the history has all of it."""
        world = self.world
        for path in world.paths("kept/"):
            read = lines_of(world.read(path)) <= {*self.history()}
            if not self.keeps(Rule.KEPT_GOES_WHEN_READ) or (world.lease(path) and read):
                self.remove(path, CLIENTS)
            world.release()

    def restore(self) -> None:
        """Bring the history back into the live file, as far as it was not freed for good."""
        world = self.world
        self.recover()
        live, manifest = world.read(LIVE), self.manifest()
        if not live or not count_of(live):
            return
        if self.keeps(Rule.BUSY_FIRST):
            self.ask_for_a_lease()
        source, counted = world.names[LIVE], count_of(live)
        if self.fit(live, manifest).kind is Kind.LACKING:
            raise RefusedError
        manifest = self.back_from_trash(manifest, counted)
        freed = [index for index in range(counted) if manifest[index].tombstone]
        low = freed[-1] + 1 if freed else 0
        if low == counted:
            return
        back = joined(self.there(index, manifest[index]) for index in range(low, counted))
        world.short = live
        if self.keeps(Rule.MARK_TAKEN_FIRST):
            self.put(
                MANIFEST,
                tuple(
                    segment._replace(counted=segment.counted and index < low)
                    for index, segment in enumerate(manifest)
                ),
            )
        self.exchange(source, ((Header(low),) if low else ()) + back, live[:1])

    def there(self, index: int, segment: Segment) -> Segment:
        """Return a segment whose file has what the manifest says; else raise RefusedError."""
        self.segment_lines(index, segment)
        return segment

    def back_from_trash(self, manifest: Manifest, counted: int) -> Manifest:
        """Take what was pruned out of the trash: names, manifest, then the names in the trash."""
        world = self.world
        back = [
            index
            for index in range(counted)
            if manifest[index].tombstone and f"trash/{index}" in world.names
        ]
        if not back:
            return manifest
        for index in back:
            world.step("back from trash")
            world.name(f"seg/{index}", world.names[f"trash/{index}"])
        world.sync_folder(OURS)
        manifest = tuple(
            segment._replace(tombstone=segment.tombstone and index not in back)
            for index, segment in enumerate(manifest)
        )
        self.put(MANIFEST, manifest)
        for index in back:
            self.remove(f"trash/{index}")
        return manifest

    # -- the exchange ---------------------------------------------------------------------------

    def exchange(self, source: int, begins: Content, sealed: Content) -> None:
        """Give the live name to a new file: `begins`, then the old one's lines behind `sealed`.

        Raises BusyError if it had to be undone.
        """
        number = self.record().number + 1
        try:
            draft = self.make_ready(number, source, begins, sealed)
            self.make_sure(number, source, draft, sealed)
        except BusyError:
            self.undo()
            raise
        if not self.conclude():
            raise BusyError

    def make_ready(self, number: int, source: int, begins: Content, sealed: Content) -> Exchange:
        """Write the new file, give the old one its second name, and have both in the record."""
        world = self.world
        tail = self.settled(world.files[source][len(sealed) :])
        world.step("draft")
        inode = world.new(begins + tail)
        world.name(f"new/{number}", inode)
        if self.keeps(Rule.SYNC_LIVE_FOLDER):
            world.sync_folder(CLIENTS)
        world.step("old")
        if world.names.get(LIVE) != source:
            raise BusyError
        world.name(f"old/{number}", source)
        exchange = Exchange(begins, tail, inode, ready=False)
        self.put(RECORD, self.record()._replace(number=number, exchange=exchange))
        return exchange

    def make_sure(self, number: int, source: int, exchange: Exchange, sealed: Content) -> None:
        """Compare, catch up under the lease, and exchange the names."""
        world = self.world
        draft, older, cut = f"new/{number}", f"old/{number}", len(sealed)
        world.step("compare")
        edge = world.files[source][cut : cut + 1]
        if self.keeps(Rule.COMPARED_BEFORE) and world.files[source][:cut] != sealed:
            raise BusyError
        if self.keeps(Rule.LEASE) and world.leases and not world.lease(older):
            raise BusyError
        world.step("catch up")
        tail = exchange.tail
        if self.keeps(Rule.CATCH_UP):
            tail = self.settled(world.files[source][cut:])
        if self.keeps(Rule.SYNC_OLD):
            world.sync(older)
        world.write(exchange.draft, exchange.begins + tail)
        if self.keeps(Rule.SYNC_DRAFT):
            world.sync(draft)
        ready = exchange._replace(tail=tail, ready=True)
        waits = Waiting(older, sealed + tail, None, world.day)
        self.put(RECORD, Record(number, ready, (*self.record().waiting, waits)))
        world.lease(draft)
        world.step("exchange")
        moved = self.keeps(Rule.EDGE) and world.files[source][cut : cut + 1] != edge
        if moved or LIVE not in world.names:
            raise BusyError
        world.exchange(LIVE, draft)

    def settled(self, lines: Content) -> Content:
        """Return lines without a torn one at the end, unless a lease says that it stays torn."""
        whole = self.keeps(Rule.WHOLE_LINES) and not self.world.leases
        return lines[:-1] if whole and is_torn(lines) else lines

    def conclude(self) -> bool:
        """Finish the exchange that the record knows, or undo it; return whether it was made."""
        world, record = self.world, self.record()
        exchange = record.exchange
        assert exchange
        draft, older = f"new/{record.number}", f"old/{record.number}"
        live, out, old = (world.names.get(path) for path in (LIVE, draft, older))
        if not exchange.ready or live == old:
            made = False
        elif live == exchange.draft or not self.keeps(Rule.NEWER_SAVE_STAYS):
            made = out in {None, old, exchange.draft} or not self.keeps(Rule.CAME_OUT)
            if not made:
                self.exchange_back(draft, live)
        else:
            made = out != exchange.draft and self.keeps(Rule.REPLACED_IS_FINISHED)
        if made:
            self.finish()
        else:
            self.undo()
        return made

    def exchange_back(self, draft: str, expected: int | None) -> None:
        """Give the live name back to the file that came out of it; of several, to the last."""
        world = self.world
        while True:
            world.step("exchange back")
            if LIVE not in world.names:
                return
            put = world.names[draft]
            world.tail.clear()  # promises.md: in this moment a reader sees our new file, or less
            world.exchange(LIVE, draft)
            if world.names[draft] == expected or not self.keeps(Rule.BACK_AGAIN):
                return
            expected = put

    def finish(self) -> None:
        """Bring over what came late, count the segments, and let go of the old file."""
        world, record = self.world, self.record()
        draft, older = f"new/{record.number}", f"old/{record.number}"
        if self.keeps(Rule.SYNC_BOTH_FOLDERS):
            world.sync_folder(CLIENTS)
            world.sync_folder(OURS)
        live = world.read(LIVE)
        if live is None and self.keeps(Rule.GONE_GOES_ASIDE):
            self.put_aside(older)
        self.put_a_stranger_aside(draft)
        if draft in world.names:
            self.remove(draft)
        world.release(older)
        if self.keeps(Rule.LATE_AT_ONCE):
            self.bring(older)
        manifest = self.manifest()
        counted = tuple(
            segment._replace(counted=segment.counted or index < count_of(live or ()))
            for index, segment in enumerate(manifest)
        )
        if self.keeps(Rule.COUNTED) and counted != manifest:
            self.put(MANIFEST, counted)
        self.exchange_ends(record.waiting if live is None else self.record().waiting)
        self.settle(older)
        self.leftovers()
        world.release()

    def undo(self) -> None:
        """Leave the live file as it is; what clients may have found as the live file waits."""
        world, record = self.world, self.record()
        draft, older = f"new/{record.number}", f"old/{record.number}"
        world.sync_folder(CLIENTS)
        world.sync_folder(OURS)
        exchange = record.exchange
        if LIVE not in world.names and older in world.names and self.keeps(Rule.GONE_GOES_ASIDE):
            self.put_aside(older)
        self.put_a_stranger_aside(draft)
        world.release()
        waiting = self.others_waiting(older)
        may_be_found = exchange and exchange.ready and self.keeps(Rule.DRAFT_WAITS)
        if exchange and may_be_found and self.came_out(draft, exchange.draft):
            known = exchange.begins + exchange.tail
            waiting += (Waiting(draft, known, None, world.day),)
        if not self.keeps(Rule.RECORD_FIRST):
            self.leftovers()
        if exchange:
            self.exchange_ends(waiting)
        if self.waiting(draft):
            self.settle(draft)
        self.leftovers()
        world.release()

    def came_out(self, draft: str, inode: int) -> bool:
        """Return whether the new file is where it was made, and not the live file."""
        return self.world.names.get(draft) == inode != self.world.names.get(LIVE)

    def put_a_stranger_aside(self, draft: str) -> None:
        """Put aside what another program saved, if that came out of the live name and stays out."""
        world, record = self.world, self.record()
        if not record.exchange or not record.exchange.ready or draft not in world.names:
            return
        older = f"old/{record.number}"
        ours = {record.exchange.draft, world.names.get(LIVE), world.names.get(older)}
        if world.names[draft] not in ours:
            self.put_aside(draft)

    def leftovers(self) -> None:
        """Take away names that nothing lists: no client has found them, or none holds them."""
        listed = {one.path for one in self.record().waiting}
        for path in self.world.paths("new/", "old/"):
            if path not in listed:
                self.remove(path)

    # -- late lines, and files that wait --------------------------------------------------------

    def bring(self, path: str, *, everything: bool = False) -> None:
        """Append what came to a waiting file to the live file; `everything`: a torn line, too."""
        while self.bring_a_batch(path, everything=everything):
            pass

    def bring_a_batch(self, path: str, *, everything: bool) -> bool:
        """Note a batch, or append the one that is noted; return whether that was worth a call."""
        world = self.world
        entry = self.waiting(path)
        if LIVE not in world.names or path not in world.names or not entry:
            return False
        content, live, at = world.read(path), world.read(LIVE), len(entry.known)
        edited = content[:at] != entry.known and self.keeps(Rule.COMPARED_BEFORE_A_BATCH)
        if edited or not self.may_append(everything=everything):
            return False
        if entry.batch:
            self.append_batch(entry, content, live)
            return True
        late = content[at:]
        if is_torn(late) and not everything and self.keeps(Rule.LATE_ARE_WHOLE):
            late = late[:-1]
        if not late:
            return False
        if self.keeps(Rule.SYNC_BEFORE_A_BATCH):
            world.sync(path)
        if self.keeps(Rule.NOTED_FIRST):
            self.note(entry._replace(batch=(at + len(late), len(live)), since=world.day))
        elif self.append(late):
            self.note(Waiting(path, content[: at + len(late)], None, world.day))
        return True

    def append_batch(self, entry: Waiting, content: Content, live: Content) -> None:
        """Append what is noted, as far as it is not there, and note that it came over."""
        at, (upto, floor) = len(entry.known), entry.batch or (0, 0)
        if self.append(self.missing(content[at:upto], live, floor)):
            if self.keeps(Rule.SYNC_APPENDED):
                self.world.sync(LIVE)
            self.note(Waiting(entry.path, content[:upto], None, self.world.day))

    def may_append(self, *, everything: bool) -> bool:
        """Have the live file's lease; without it, a torn line at its end may still be ended."""
        world = self.world
        if world.lease(LIVE) or not is_torn(world.read(LIVE)):
            return True
        at_rest = not world.leases and everything and not world.known_to_be_open(LIVE)
        return at_rest or not self.keeps(Rule.NOT_BEHIND_A_TORN_LINE)

    def missing(self, batch: Content, live: Content, floor: int) -> Content:
        """Return what of a batch the live file does not have yet."""
        if floor > len(live):
            floor = 0  # another program has replaced it
        there = next(
            (
                length
                for length in range(len(batch), 0, -1)
                if any(
                    live[start : start + length] == batch[:length]
                    for start in range(floor, len(live))
                )
            ),
            0,
        )
        return tuple(
            line
            for line in batch[there:]
            if has_no_uuid(line) or line not in live or not self.keeps(Rule.NO_UUID_TWICE)
        )

    def append(self, lines: Content) -> bool:
        """Append lines to the live file; return False if another file took its name."""
        world = self.world
        inode = world.names[LIVE]
        if lines:
            world.step("append")
            if world.names.get(LIVE) != inode and self.keeps(Rule.NAME_IS_LOOKED_AT):
                return False
            world.write(inode, world.files[inode] + lines)
        return True

    def settle(self, path: str) -> None:
        """Bring over what came to a waiting file; let it go if nobody can write to it any more."""
        world = self.world
        self.bring(path)
        entry = self.waiting(path)
        if not entry:
            return
        leased = world.lease(path) or not self.keeps(Rule.LEASE_LETS_GO)
        quiet = world.day > entry.since or not self.keeps(Rule.QUIET_DAY)
        nobody = not world.known_to_be_open(path) or not self.keeps(Rule.NOBODY_KNOWN)
        at_rest = leased or (not world.leases and quiet and nobody)
        if at_rest:
            self.bring(path, everything=True)
        entry = self.waiting(path)
        content = world.read(path)
        if entry and content is not None and content[: len(entry.known)] != entry.known:
            if self.keeps(Rule.EDITED_GOES_ASIDE):
                self.put_aside(path)
            self.let_go(path)
        elif content is None or (at_rest and entry and content == entry.known):
            self.let_go(path)
        world.release()

    def let_go(self, path: str) -> None:
        """Have the record forget a file, then take its name away."""
        self.put(RECORD, self.record()._replace(waiting=self.others_waiting(path)))
        if path in self.world.names:
            self.remove(path)

    # -- recovery, prune, grace time ------------------------------------------------------------

    def recover(self) -> None:
        """Finish or undo what an earlier run began, and settle what waits."""
        world = self.world
        world.sync_folder(CLIENTS)
        world.sync_folder(OURS)
        if MANIFEST not in world.names and self.rebuilt():
            self.put(MANIFEST, self.rebuilt())
        if RECORD not in world.names:
            self.begin_a_record()
        if self.record().exchange:
            self.conclude()
        self.leftovers()
        for entry in self.record().waiting:
            self.settle(entry.path)
        self.settle_prunes()
        self.unlisted_segments_go()

    def begin_a_record(self) -> None:
        """Write the first record; if one was lost, what it may have listed goes aside."""
        for path in self.world.paths("new/", "old/"):
            same = self.world.names[path] == self.world.names.get(LIVE)
            if not same and self.keeps(Rule.LOST_RECORD_ASIDE):
                self.put_aside(path)
        self.put(RECORD, Record())

    def settle_prunes(self) -> None:
        """Move to the trash what the manifest says is pruned."""
        if MANIFEST not in self.world.names or not self.keeps(Rule.PRUNE_IS_SETTLED):
            return
        for index, segment in enumerate(self.manifest()):
            if segment.tombstone and f"seg/{index}" in self.world.names:
                self.move_to_trash(index)

    def move_to_trash(self, index: int) -> None:
        """Give a segment its name in the trash, then take the other away."""
        world = self.world
        world.step("to trash")
        world.name(f"trash/{index}", world.names[f"seg/{index}"])
        world.sync_folder(OURS)
        self.remove(f"seg/{index}")

    def prune(self) -> None:
        """Prune the first segment, if the live file counts it."""
        world = self.world
        self.recover()
        live, manifest = world.read(LIVE), self.manifest()
        if not live or not manifest or manifest[0].tombstone:
            return
        counts = count_of(live) > 0 and manifest[0].counted
        if self.keeps(Rule.ONLY_COUNTED_PRUNED) and not counts:
            return
        if self.fit(live, manifest).kind not in {Kind.ALL, Kind.SPARE}:
            return
        world.pruned |= {*manifest[0].lines}
        self.put(MANIFEST, (manifest[0]._replace(tombstone=True), *manifest[1:]))
        self.move_to_trash(0)

    def empty_trash(self) -> None:
        """Free for good what was pruned."""
        world = self.world
        self.recover()
        for index, segment in enumerate(self.manifest()):
            path = f"trash/{index}"
            if segment.tombstone and path in world.names:
                world.step("empty trash")
                world.free(lines_of(world.read(path)) & world.pruned)
                world.name(path, None)
                world.sync_folder(OURS)

    def free_spare(self) -> None:
        """Free the segments that the live file has itself: their grace time is over."""
        world = self.world
        self.recover()
        live, manifest = world.read(LIVE), self.manifest()
        if not live or self.fit(live, manifest).kind is not Kind.SPARE:
            return
        self.put(MANIFEST, manifest[: count_of(live)])
        self.unlisted_segments_go()

    def unlisted_segments_go(self) -> None:
        """Remove segments that no manifest lists, unless the live file counts them all the same."""
        world = self.world
        if MANIFEST in world.names:
            kept = max(len(self.manifest()), count_of(world.read(LIVE) or ()))
            for path in world.paths("seg/"):
                if int(path[4:]) >= kept:
                    self.remove(path)


def joined(segments: Iterable[Segment]) -> Content:
    """Return the lines of segments, one after another."""
    return sum((segment.lines for segment in segments), ())
