"""Whatever a power loss leaves of a run, nothing is lost, and each fsync is there for a reason.

The mutants test these tests: for each fsync that is left out some state must be wrong, or a
reason stands here why the one after it does its work.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.in_place import swap
from sessrotate.model import Span
from support.crash.judging import crashes
from support.crash.late import late_states
from support.crash.power import JUDGE, Judge, Recorded, recorded
from support.crash.scenes import CHANGED, ID, LATE, MEANWHILE, NAMES, OPENING, recovered, scene
from support.crash.simulator import ROOT, Event
from support.newcomers import exchanges

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessrotate.archive.place import Place
    from sessrotate.archive.record import Intent, Swap
    from sessrotate.system.source import Source
    from support.crash.disk import Image
    from support.crash.scenes import Session

ARCHIVE: Final = f"sessrotate/archives/{ID}"

FIRST, _, RESTORE, _, *LATER, GONE = NAMES

HAS_EXCHANGE: Final = exchanges()
EXCHANGE: Final = (
    "exchange live.partial and ID.jsonl" if HAS_EXCHANGE else "rename live.partial to ID.jsonl"
)
SWAPPED: Final = "unlink live.partial" if HAS_EXCHANGE else EXCHANGE


# ── the runs ─────────────────────────────────────────────────────────────────────────────────


def of_scene(name: str) -> list[Recorded]:
    of = scene(name)
    if name in LATER:
        return [bringing_over(name, of.before, of.history, of.run)]
    runs = [recorded(name, of.before, of.history, of.run)]
    if name in CHANGED:
        runs += [
            recorded(f"{name}, late lines not synced", of.before, of.history, of.run, "unsynced"),
            recorded(f"{name}, late lines", of.before, of.history, of.run, "synced"),
        ]
    return runs


def bringing_over(
    title: str, before: Image, history: bytes, run: Callable[[Session], None]
) -> Recorded:
    """Return a run that brings over late lines, which are on the disk before it."""
    history = history.removesuffix(LATE)
    return replace(recorded(title, before, history, run), late="synced")


def of_recovery(name: str) -> list[Recorded]:
    """Return the recoveries of crashes before the swap and after it, and of crashes of those."""
    of = scene(name)
    title = f"recovery of a {name}"
    if name in LATER:
        torn = next(image for image in crashes(name) if not live_of(image).endswith(b"\n"))
        return [bringing_over(f"recovery of torn {name}", torn, of.history, recovered)]
    begun = next(image for image in crashes(name) if has(image, "record.json", "live.partial"))
    runs = [recorded(f"{title}, undone", begun, of.history, recovered)]
    if name in CHANGED:
        late = min(late_states(name), key=lambda image: image.names)
        runs.append(bringing_over(title, late, of.history + MEANWHILE + LATE, recovered))
    return runs


def has(image: Image, *files: str) -> bool:
    there = {path for path, _ in image.names}
    return all(f"{ARCHIVE}/{file}" in there for file in files)


def live_of(image: Image) -> bytes:
    return next(image.contents[at] for path, at in image.names if path.endswith(f"/p/{ID}.jsonl"))


def never_synced() -> Recorded:
    """Return the first rotation of a session of which nothing was synced before."""
    of = scene(FIRST)
    run = recorded("first rotation, nothing synced", of.before, of.history, of.run)
    folders = run.trace.folders
    node = folders[folders[folders[ROOT]["projects"]]["p"]][f"{ID}.jsonl"]
    files = {**run.trace.files, node: b""}
    written = Event("data", node, "all that was written", data=OPENING)
    swapped = next(event for event in run.trace.events if shown(event.text) == EXCHANGE)
    trace = replace(run.trace, files=files, events=(written, *run.trace.events))
    return replace(run, trace=trace, judged_from=swapped)


@cache
def runs() -> tuple[Recorded, ...]:
    return (
        *(run for name in NAMES for run in of_scene(name)),
        *(run for name in NAMES for run in of_recovery(name)),
        never_synced(),
    )


def test_every_state_that_a_power_loss_leaves_is_whole_and_recovered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changes = 0
    for run in runs():
        changes += len(run.trace.events)
        assert JUDGE.first_fault(run) is None
    states = len(JUDGE.known)
    assert states > 500
    with capsys.disabled():
        print(f"\npower losses: {len(runs())} runs, {changes} changes, {states} states")  # noqa: T201


# ── mutants: an fsync less ───────────────────────────────────────────────────────────────────

AGAIN: Final = "the same folder is synced again before the change that depends on this one"
HARMLESS: Final = "nothing depends on it: if it is lost, the next recovery does it again"
EITHER: Final = (
    "a rename is on the disk when either folder is synced, and both are; a name that the old file "
    "has again goes with its pack"
)

README: Final = (
    ("fsync README.partial", "write README.partial"),
    ("fsync sessrotate", "fsync README.partial"),
    ("fsync sessrotate", "rename README.partial to README"),
)
"""Of the text beside the archives, nothing has to outlive a power loss."""

REDUNDANT: Final[dict[tuple[str, str], str]] = {
    ("fsync ID", "link ID.jsonl to pack"): AGAIN,
    ("fsync ID", "fsync record.json.partial"): AGAIN,
    ("fsync p", SWAPPED): EITHER,
    ("fsync ID", "fsync p"): EITHER,
    ("fsync ID", "create live.partial"): AGAIN,
    ("fsync ID", "fsync manifest.json.partial"): AGAIN,
    ("fsync ID", "rename manifest.json.partial to manifest.json"): AGAIN,
    ("fsync ID", "unlink record.json"): HARMLESS,
    ("fsync archives", "rmdir ID"): HARMLESS,
    ("fsync ID", "unlink live.partial"): "A second name of the old file is known by its inode.",
    **dict.fromkeys(README, "It is a courtesy, and stands in for nothing."),
    ("fsync ID", "create waiting"): AGAIN,
    ("fsync ID", "rmdir waiting"): HARMLESS,
    **dict.fromkeys(
        (
            ("fsync ID", "rename pack to 1"),
            ("fsync ID", "fsync waiting"),
            ("fsync waiting", "fsync ID"),
        ),
        EITHER,
    ),
    ("fsync p", "link live.partial to ID.jsonl"): "The archive has all of it, and stays.",
}
"""The fsyncs that may be left out, each by itself, by what was changed before it."""


def shown(text: str) -> str:
    return text.replace(ID, "ID")


def place_of(run: Recorded, at: int) -> tuple[str, str]:
    """Return what an fsync is called here: itself, and the change before it."""
    events = run.trace.events
    return shown(events[at].text), shown(events[at - 1].text) if at else ""


def syncs(run: Recorded) -> list[int]:
    return [
        at for at, event in enumerate(run.trace.events) if event.kind == "sync" and event.is_ours
    ]


def without(run: Recorded, *dropped: int) -> Recorded:
    events = run.trace.events
    return run.with_events(tuple(e for at, e in enumerate(events) if at not in dropped))


def test_each_fsync_is_needed_or_a_reason_says_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    caught: set[tuple[str, str]] = set()
    survived: set[tuple[str, str]] = set()
    mutants = 0
    for run in runs():
        for at in syncs(run):
            if place_of(run, at) in caught:
                continue  # one run that needs it is enough
            mutants += 1
            is_missed = JUDGE.first_fault(without(run, at)) is None
            (survived if is_missed else caught).add(place_of(run, at))
    assert survived - caught == set(REDUNDANT)
    with capsys.disabled():
        print(  # noqa: T201 - said on purpose: how much was looked at
            f"\nfsyncs left out: {mutants} mutants at {len(caught | survived)} places, "
            f"{len(caught)} places caught, {len(REDUNDANT)} redundant"
        )


# ── what a restoration does ──────────────────────────────────────────────────────────────────


def recording(name: str) -> Recorded:
    return next(run for run in runs() if run.title == name)


def test_a_restoration_takes_nothing_from_the_archive() -> None:
    for name in (RESTORE, GONE):
        changes = [shown(event.text) for event in recording(name).trace.events]
        touched = {text for text in changes if ".jsonl" in text and "ID" in text}
        assert touched <= {
            EXCHANGE,
            "link live.partial to ID.jsonl",
            "link ID.jsonl to pack",
            "fsync ID.jsonl",
            "fsync live.partial",
        }, touched
        assert not [text for text in changes if "manifest.json" in text]


# ── mutants: other code ──────────────────────────────────────────────────────────────────────


def test_without_a_second_name_the_old_file_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(place: Place, _old: Source, intent: Intent) -> None:
        swap.write_intent(place, intent)

    of = scene(FIRST)
    monkeypatch.setattr(swap, "begin", begin)
    run = recorded("no second name", of.before, of.history, of.run, "synced")
    monkeypatch.undo()
    swapped = next(event for event in run.trace.events if shown(event.text) == EXCHANGE)
    run = replace(run, judged_from=swapped)
    assert Judge().first_fault(run) is not None


def test_late_lines_are_not_told_by_whether_the_same_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def residue(begun: Swap, pack: Source, live: Source) -> Span:
        there = set(live.read_at(0, live.size()).splitlines())
        start = begun.cut + begun.tail.size
        for line in pack.read_at(start, max(0, pack.size() - start)).splitlines(keepends=True):
            if line.rstrip(b"\n") not in there:
                break
            start += len(line)
        return Span(min(start, pack.size()), pack.size())

    run = recording(f"recovery of a {FIRST}")
    assert Judge().first_fault(run) is None
    monkeypatch.setattr("sessrotate.archive.state.residue", residue)
    assert Judge().first_fault(run) is not None
