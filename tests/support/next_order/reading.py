"""What the files of a session say together, and how small ones are written."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from support.next_order.disk import LIVE, OURS
from support.next_order.parts import (
    Content,
    Manifest,
    Record,
    Segment,
    SegmentHeader,
    Waiting,
    body_of,
    count_of,
)
from support.next_order.rules import Rule
from support.next_order.world import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from support.next_order.world import World

MANIFEST: Final = "manifest"
RECORD: Final = "record"


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


class Reader:
    """Reads and writes the files of one session by the rules, but for one that is left out."""

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
        beyond = [path for path in world.paths("seg/") if int(path[4:]) >= len(listed)]
        if len(listed) < counted or beyond:
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


def joined(segments: Iterable[Segment]) -> Content:
    """Return the lines of segments, one after another."""
    return sum((segment.lines for segment in segments), ())
