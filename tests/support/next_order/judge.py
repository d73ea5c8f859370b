"""The judge: is everything there, once and in order, at every step and when all is calm?

`complaints` are broken promises. `remarks` are what a person may have to do something about: a line
is in a file that is put aside and named, or a session is refused (74).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.next_order.disk import LIVE
from support.next_order.parts import FIRST, count_of, is_half, lines_of, other_half
from support.next_order.world import RefusedError, World

if TYPE_CHECKING:
    from support.next_order.parts import Content
    from support.next_order.tool import Tool

LONG = 3
"""From so many events on, some of what `promises.md` excludes comes together."""


class JudgedWorld(World):
    """A world that judges itself before each step, with a tool that reads."""

    tool: Tool

    def judge(self) -> None:
        """Look at what a reader would see now."""
        judged(self, calm=False)


def judged(world: JudgedWorld, *, calm: bool) -> None:
    """Note what is wrong now; `calm`: nobody is at work, and recovery has had its chance."""
    refused = False
    history: Content = ()
    try:
        history = world.tool.history()
    except RefusedError:
        refused = True
        if world.plain:
            world.complaints.add("a reader is refused")
    lines = [entry for entry in history if isinstance(entry, str)]
    if len(lines) != len(history):
        world.complaints.add("a header within the history")
    _look_for_doubles(world, lines)
    first = [line for line in lines if line in FIRST]
    if first != sorted(first, key=FIRST.index):
        world.complaints.add("not in order")
    _look_for_lost(world, {*lines}, calm=calm, refused=refused)
    live = world.read(LIVE)
    if live is not None and not world.tail & world.required <= lines_of(live):
        world.complaints.add("the live file lacks its tail")
    if live is None and world.tail:
        world.complaints.add("no live file")
    if calm:
        _look_at_what_is_left(world, refused=refused)
        _look_at_torn_lines(world, lines)


def _look_at_what_is_left(world: JudgedWorld, *, refused: bool) -> None:
    if world.plain and world.paths("aside/"):
        world.complaints.add("something was put aside for nothing")
    if refused:
        _look_at_refusal(world)
    elif LIVE in world.names and world.paths("new/", "old/"):
        world.complaints.add("a file is left over")


def _look_for_doubles(world: JudgedWorld, lines: list[str]) -> None:
    if len({*lines}) < len(lines):
        twice = {line[0] for line in lines if lines.count(line) > 1}
        if twice == {"L"} and world.events >= LONG:
            world.remarks.add("a line without a uuid is there twice")
        else:
            world.complaints.add("doubled")


def _look_for_lost(world: JudgedWorld, lines: set[str], *, calm: bool, refused: bool) -> None:
    lost = world.required - lines
    if lost and world.pruned:
        trash = [lines_of(world.read(path)) for path in world.paths("trash/")]
        lost -= set[str]().union(*trash) & world.pruned
    if not lost:
        return
    for path in world.names:
        told = path.startswith(("aside/", "kept/")) or not calm
        if told or (refused and path.startswith((LIVE, "seg/", "old/", "trash/"))):
            lost -= lines_of(world.read(path))
    if lost:
        world.complaints.add("lost " + "".join(sorted({line[0] for line in lost})))
    elif calm and not refused and world.saved & world.required - lines and not world.unclear:
        world.complaints.add("the last save is only in a file that is put aside")
    elif calm and not refused:
        world.remarks.add("only in a file that is put aside")


def _look_at_torn_lines(world: JudgedWorld, lines: list[str]) -> None:
    for at, line in enumerate(lines[:-1]):
        end = other_half(line)
        if is_half(line) and line not in world.glued and end in lines and lines[at + 1] != end:
            if world.leases:
                world.complaints.add("a torn line is mended wrongly")
            else:
                world.remarks.add("a line came between the halves of another, without leases")


def _look_at_refusal(world: JudgedWorld) -> None:
    """A refusal is right if segments that were counted lack, or those that the live file counts."""
    counted = count_of(world.read(LIVE) or ())
    manifest = world.read("manifest")
    right = (
        manifest is None
        or (world.short_came and any(f"seg/{at}" not in world.names for at in range(counted)))
        or (world.short_came and counted > len(manifest))
        or any(segment.counted for segment in manifest[counted:])
    )
    if right:
        world.remarks.add("refused")
    else:
        world.complaints.add("refused, although nothing that was counted lacks")
