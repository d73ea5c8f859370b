"""The exchange of names, what comes late, and how old files go: rules 3 to 8 and 12."""

from __future__ import annotations

from support.next_order.disk import CLIENTS, LIVE, OURS
from support.next_order.parts import (
    Content,
    Exchange,
    Record,
    Waiting,
    count_of,
    has_no_uuid,
    is_torn,
)
from support.next_order.reading import MANIFEST, RECORD, Reader
from support.next_order.rules import Rule
from support.next_order.world import BusyError


class Exchanger(Reader):
    """Gives the live name to a new file, whatever happens meanwhile."""

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
