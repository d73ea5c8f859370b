"""Reports to draw: made up, the same every time, like those of a busy year."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, Final, get_args

from msgspec.structs import replace

from sessrotate.clients.view import LineKind
from sessrotate.model import Boundary
from sessrotate.reports import (
    Contents,
    Day,
    LargeLine,
    MachineReport,
    SegmentRow,
    SessionReport,
    Share,
    Total,
)

START: Final = datetime(2026, 1, 12, 8, 30, tzinfo=UTC)
MIB: Final = 1024 * 1024

TITLES: Final = (
    "Move the parser to a table of states",
    "Why does the nightly import stop at 2 GB?",
    "Timetables: weekdays and holidays",
    "Flaky test in the scheduler, again",
    "Port the importer to streaming",
    "Write the migration for orders",
    "Review: retries in the upload queue",
    "A map of all train stations",
    "Refactor settings into one module",
    "Make the search index incremental",
)
FOLDERS: Final = (
    "/home/dev/timetable",
    "/home/dev/shop/backend",
    "/home/dev/shop/frontend",
    "/home/dev/maps",
    "/srv/import",
    "/home/dev/notes",
    "/home/dev/compiler",
    "/home/dev/games/chess",
    "/home/dev/site",
    "/home/dev/tools/backup",
    "/home/dev/weather",
    "/home/dev/dotfiles",
)
WEIGHTS: Final = {
    "user text": 0.4,
    "assistant text": 2.1,
    "thinking": 3.2,
    "tool calls": 9,
    "tool results": 46,
    "images": 12,
    "attachments": 4,
    "file-history": 14,
    "progress": 7,
    "metadata": 2,
    "unknown": 0.3,
}
TOOLS: Final = {
    "Bash": 40,
    "Read": 33,
    "Grep": 9,
    "Task": 7,
    "WebFetch": 5,
    "Edit": 4,
    "mcp__tracker__issues": 2,
}


def iso(time: datetime) -> str:
    """Return a time as clients write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def name(number: int) -> str:
    """Return the id of the session of this number."""
    return f"{number:08x}-1111-4222-8333-{number:012x}"


def shares(weights: dict[str, Any], whole: int) -> tuple[Share, ...]:
    """Return shares of so many bytes, largest first."""
    sums = sum(weights.values())
    sizes = {each: int(whole * weight / sums) for each, weight in weights.items()}
    sizes[max(sizes, key=lambda each: sizes[each])] += whole - sum(sizes.values())
    found = (Share(each, 1 + bytes_ // 4000, bytes_) for each, bytes_ in sizes.items())
    return tuple(sorted(found, key=lambda share: -share.bytes))


def contents(whole: int, session: str) -> Contents:
    """Return what a session of so many bytes holds."""
    kinds = shares(WEIGHTS, whole)
    results = next(share.bytes for share in kinds if share.name == "tool results")
    largest = tuple(
        LargeLine(
            session=session,
            segment=number % 4,
            offset=number * 100_000 + 17,
            within=number * 1000 + 17,
            bytes=int(6.1 * MIB / (1 + number / 3)),
            kind=get_args(LineKind)[4 if number % 3 else 5],
            tool=list(TOOLS)[number % 4] if number % 3 else None,
        )
        for number in range(10)
    )
    lines = 1 + whole // 9000
    copies = (
        Share("pictures", lines // 2, whole * 48 // 100),
        Share("history", lines, whole * 20 // 100),
    )
    return Contents(kinds, shares(TOOLS, results), copies, lines, largest)


def session(
    number: int = 1, segments: int = 23, *, sealed: int = 9, kinds: bool = True
) -> SessionReport:
    """Return a session's report: so many segments, the first ones in its archive."""
    chance = random.Random(number)
    time = START + timedelta(days=chance.uniform(0, 250))
    parts = []
    start = 0
    for index in range(segments):
        bytes_ = int(chance.lognormvariate(1.6, 0.6) * MIB)
        end = time + timedelta(hours=chance.lognormvariate(2.5, 0.9))
        boundary = Boundary(
            start,
            f"b{index}",
            iso(time),
            "manual" if chance.random() < 0.2 else "auto",
            int(chance.gauss(158_000, 6000)),
        )
        parts.append(
            SegmentRow(
                index=index,
                start=start,
                bytes=bytes_,
                lines=bytes_ // 4000 + 3,
                boundary=boundary if index else None,
                first_timestamp=iso(time),
                last_timestamp=iso(end),
                state="sealed" if index < sealed else "live",
            )
        )
        start += bytes_
        time = end + timedelta(minutes=chance.uniform(1, 400))
    whole = start
    live = sum(part.bytes for part in parts if part.state == "live")
    free = live - parts[-1].bytes
    growth: dict[str, int] = {}
    for part in parts:
        day = str(part.first_timestamp)[:10]
        growth[day] = growth.get(day, 0) + part.bytes
    folder = FOLDERS[min(int(chance.expovariate(0.35)), len(FOLDERS) - 1)]
    path = f"~/.claude/projects/{folder.replace('/', '-')}/{name(number)}.jsonl"
    return SessionReport(
        id=name(number),
        client="claude",
        path=path,
        folder=folder,
        title=TITLES[number % len(TITLES)],
        is_running=number % 40 == 7,
        live_bytes=live,
        segments=tuple(parts),
        would_free=free,
        kept=None if free else "There is nothing to rotate: the file begins at its compaction.",
        command=f"sessrotate rotate {name(number)}" if free else None,
        growth=tuple(Day(day, bytes_) for day, bytes_ in sorted(growth.items())),
        contents=contents(whole, name(number)) if kinds else None,
        disk_bytes=live + (whole - live) // 5,
        deletes_at=START.timestamp() + 86_400 * number if number % 3 else None,
    )


def hostile(text: str) -> SessionReport:
    """Return a session with this text wherever a session or a client has a say."""
    made = session(segments=4, sealed=1)
    boundary = Boundary(0, text, text, text, 10**400)
    part = replace(
        made.segments[1], boundary=boundary, first_timestamp=text, last_timestamp=text, problem=text
    )
    held = contents(made.bytes, text)
    return replace(
        made,
        id=text,
        client=text,
        path=text,
        folder=text,
        title=text,
        command=text,
        kept=text,
        segments=(
            made.segments[0],
            part,
            replace(made.segments[2], state="absent"),
            made.segments[3],
        ),
        growth=(*made.growth, Day(text, 17)),
        contents=replace(
            held,
            tools=(Share(text, 3, 3000), *held.tools),
            largest=tuple(replace(line, tool=text) for line in held.largest),
        ),
    )


def machine(count: int, *, kinds: bool = True) -> MachineReport:
    """Return the report of so many sessions, summed up here."""
    chance = random.Random(5)
    sessions = []
    for number in range(1, count + 1):
        segments = 1 + int(chance.expovariate(0.35))
        made = session(number, segments, sealed=chance.randrange(segments), kinds=False)
        client = chance.choices(("claude", "codex", "gemini"), (80, 14, 6))[0]
        sessions.append(replace(made, client=client))
    made_up = totalled(sessions)
    if kinds and sessions:
        return replace(made_up, contents=contents(made_up.bytes + 3 * MIB, made_up.sessions[0].id))
    return made_up


def totalled(sessions: list[SessionReport]) -> MachineReport:
    """Return the report of these sessions, of which 3 MiB more were written who knows when."""
    sessions = sorted(sessions, key=lambda each: -each.bytes)
    growth: dict[str, int] = {}
    for each in sessions:
        for day in each.growth:
            growth[str(day.day)] = growth.get(str(day.day), 0) + day.bytes
    return MachineReport(
        sessions=tuple(sessions),
        clients=totals(sessions, "client"),
        projects=totals(sessions, "folder"),
        growth=(Day(None, 3 * MIB), *(Day(day, bytes_) for day, bytes_ in sorted(growth.items()))),
        worth=tuple(
            each
            for each in sorted(sessions, key=lambda each: -each.would_free)
            if each.would_free > 8 * MIB and each.command
        ),
        unread=(),
        contents=None,
    )


def totals(sessions: list[SessionReport], key: str) -> tuple[Total, ...]:
    """Return the sums over the sessions that have the same client or folder."""
    groups: dict[tuple[str, str], list[SessionReport]] = {}
    for each in sessions:
        groups.setdefault((getattr(each, key), each.client), []).append(each)
    found = (
        Total(
            named,
            client,
            len(group),
            sum(each.bytes for each in group),
            sum(each.archived_bytes for each in group),
            sum(each.would_free for each in group),
        )
        for (named, client), group in groups.items()
    )
    return tuple(sorted(found, key=lambda total: -total.bytes))
