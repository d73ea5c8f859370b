"""The commands: rotate, restore, recover, prune, free. Rules 1, 2, 9, 10 and 11."""

from __future__ import annotations

from support.next_order.disk import CLIENTS, LIVE, OURS
from support.next_order.exchanging import Exchanger
from support.next_order.parts import (
    Content,
    Header,
    Manifest,
    Record,
    Segment,
    SegmentHeader,
    body_of,
    count_of,
    is_boundary,
    lines_of,
)
from support.next_order.reading import MANIFEST, RECORD, Kind, joined
from support.next_order.rules import Rule
from support.next_order.world import BusyError, RefusedError


class Tool(Exchanger):
    """Follows the rules on the files of one session, but for the one that is left out."""

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
        self.sync_live()
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

    def sync_live(self) -> None:
        """Have on the disk which file the live one is, before segments go because of that."""
        if self.keeps(Rule.SYNC_LIVE_FIRST):
            self.world.sync_folder(CLIENTS)

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

    # -- recovery, prune, grace period ------------------------------------------------------------

    def recover(self) -> None:
        """Finish or undo what an earlier run began, and settle what waits."""
        world = self.world
        world.sync_folder(CLIENTS)
        world.sync_folder(OURS)
        if MANIFEST not in world.names:
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
        """Free the segments that the live file has itself: their grace period is over."""
        world = self.world
        self.recover()
        live, manifest = world.read(LIVE), self.manifest()
        if not live or self.fit(live, manifest).kind is not Kind.SPARE:
            return
        self.sync_live()
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
