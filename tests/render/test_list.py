"""The list fits the terminal, whatever sessions say of themselves, and every value can be read."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.preview import Continues
from sessrotate.render import columns, size
from sessrotate.render import list as render_list
from sessrotate.render.list import Look
from sessrotate.reports import SessionInfo
from support.command_line import raw_controls, without_ansi
from support.entries import NOW, entry, titled

TEXTS = st.text(max_size=80) | st.text("aé日本e\u0301⚠\ufe0f\x1b[31m\x9b\u202e \t\r\n", max_size=80)
SIZES = st.integers(0, 1 << 50)
ENTRIES = st.builds(
    lambda number, **fields: entry(f"{number:08x}-0000", **fields),
    st.integers(0, 1 << 32),
    client=st.sampled_from(["claude", "codex", "gemini"]),
    project=TEXTS,
    title=TEXTS.map(titled),
    bytes=SIZES,
    is_live=st.booleans(),
    is_away=st.booleans(),
    archived_bytes=SIZES | st.none(),
    archived_disk_bytes=SIZES,
    waiting_disk_bytes=SIZES,
    side_bytes=SIZES,
    segments=st.integers(0, 9999),
    compactions=st.none() | st.integers(0, 9999),
    live_tail_bytes=st.none() | SIZES,
    last_used=st.floats(-1e15, 1e15),
    is_running=st.booleans(),
    standing=st.sampled_from(["session", "empty", "warm-up", "agent", "copy"]),
    continues=st.none() | st.builds(Continues, TEXTS, st.sampled_from(["same rows", "says so"])),
)

NO_COPIES = ENTRIES.filter(lambda each: each.standing != "copy")
"""Sessions of which the beginning of the id is shown."""


def shown(entries: list[SessionInfo], **look: Any) -> list[str]:
    told = [each.name for each in entries]
    return [*render_list.table(entries, told, Look(now=NOW, **look))]


# ── any session, any terminal ────────────────────────────────────────────────────────────────


@given(st.lists(ENTRIES, min_size=1, max_size=6), st.integers(1, 200), st.booleans())
def test_no_line_is_wider_than_the_terminal(
    entries: list[SessionInfo], width: int, colour: bool
) -> None:
    lines = shown(entries, width=width, colour=colour)
    total = render_list.total(entries, entries, Look(now=NOW, width=width))
    assert len(lines) == len(entries) + 1
    for line in (*lines, *total.splitlines(keepends=True)):
        assert line.count("\n") == 1
        assert line.endswith("\n")
        plain = without_ansi(line[:-1])
        assert columns.width(plain) <= width
        assert not raw_controls(plain)
        assert colour or line[:-1] == plain


@given(st.lists(NO_COPIES, min_size=1, max_size=6), st.integers(30, 200))
def test_columns_stand_below_their_names_and_sizes_are_whole(
    entries: list[SessionInfo], width: int
) -> None:
    head, *rows = shown(entries, width=width)
    names = {found[0]: found.span() for found in re.finditer(r"\S+(?: \S+)*", head)}
    assert {"session", "size"} <= names.keys()
    for row, each in zip(rows, entries, strict=True):
        cells = at_columns(row)
        assert "".join(cells[:10]).strip() == each.id[:8]
        away = "put away" if each.is_away else "gone" if each.archived_disk_bytes else "-"
        wanted = {"size": size(each.bytes) if each.is_live else away}
        if "archived" in names:
            held = each.archived_bytes
            wanted["archived"] = "?" if held is None else size(held) if held else "-"
        for name, told in wanted.items():
            end = names[name][1]
            assert "".join(cells[end - len(told) - 2 : end]) == f"  {told}"


def at_columns(line: str) -> list[str]:
    """Return what stands in each column of a terminal."""
    cells = []
    for character in line.rstrip("\n"):
        wide = columns.width(character)
        cells += [character, *[""] * (wide - 1)] if wide else []
    return cells


@given(ENTRIES)
def test_where_nothing_is_cut_every_value_is_there(each: SessionInfo) -> None:
    text = "".join(shown([each, entry("other", client="other")]))
    assert "…" not in text or "…" in each.title.text + each.project + str(each.continues)
    for value in (each.client, each.id[:8], size(each.side_bytes)):
        assert value in text or value == "0 B"
    assert not raw_controls(text)


@given(st.lists(ENTRIES, max_size=4))
def test_json_holds_what_the_sessions_say(entries: list[SessionInfo]) -> None:
    document = json.loads("".join(render_list.as_json(entries)))
    told = [(each.id, each.bytes, each.title.text, each.project) for each in entries]
    names = ("session", "bytes", "title", "project")
    assert [tuple(each[name] for name in names) for each in document] == told


# ── some sessions ────────────────────────────────────────────────────────────────────────────


def test_the_table_for_a_pipe_has_all_and_no_colour() -> None:
    entries = [
        entry(
            "aaaaaaaa-1",
            bytes=5 << 20,
            archived_bytes=3 << 30,
            archived_disk_bytes=1 << 30,
            segments=7,
            disk_bytes=4 << 30,
            gain_bytes=7 << 20,
        ),
        entry("bbbbbbbb-1", bytes=5 << 10, is_running=True, compactions=0, live_tail_bytes=5120),
    ]
    told = "".join(shown(entries, home="/home/somebody"))
    assert re.sub(" +", " ", told).split("\n") == [
        "session size on disk archived gain compactions live tail last used project title",
        "aaaaaaaa 5.0 MiB 4.0 GiB 3.0 GiB 7.0 MiB 7+ - 2026-03-01 12:00:00 ~/project A title",
        "bbbbbbbb 5.0 KiB 4.0 KiB - - 0 5.0 KiB running ~/project A title",
        "",
    ]


def test_columns_that_say_nothing_are_left_out() -> None:
    assert shown([entry()])[0].split() == ["session", "size", "last", "used", "project", "title"]


def test_a_narrow_terminal_does_without_what_tells_least() -> None:
    entries = [
        entry("a", client="x", archived_bytes=1, archived_disk_bytes=1, side_bytes=1, gain_bytes=1),
        entry("b"),
    ]
    heads = [shown(entries, width=width)[0].split() for width in range(150, 0, -1)]
    lost = [name for one, two in pairwise(heads) for name in one if name not in two]
    assert lost[:4] == ["beside", "archived", "client", "gain"]
    assert lost.index("gain") < lost.index("project") < lost.index("disk") < lost.index("title")
    assert heads[-1] == ["…"]


def test_a_long_id_leaves_room_for_the_rest() -> None:
    lines = shown([entry("a" * 200), entry("a" * 200 + "b")], width=80)
    assert all("1000 B" in line and line.endswith("  A title\n") for line in lines[1:])


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-3600.0, "2026-03-01"),
        (-5.0, "just now"),
        (59.0, "just now"),
        (60.0, "1 minute ago"),
        (3599.0, "59 minutes ago"),
        (3600.0, "1 hour ago"),
        (47 * 3600.0, "47 hours ago"),
        (48 * 3600.0, "2 days ago"),
        (20.9 * 86_400, "20 days ago"),
        (21 * 86_400.0, "3 weeks ago"),
        (70 * 86_400.0, "2 months ago"),
        (729 * 86_400.0, "23 months ago"),
        (730 * 86_400.0, "1 year ago"),
        (4000 * 86_400.0, "10 years ago"),
    ],
)
def test_ages_are_told_as_people_do(seconds: float, told: str) -> None:
    assert render_list.ago(NOW - seconds, NOW) == told


def test_a_project_is_cut_in_the_middle_and_a_title_at_its_end() -> None:
    each = entry(project="/srv/" + "x" * 80 + "/app", title=titled("word " * 40))
    line = shown([each], width=80)[1]
    assert len(line) == 81
    assert re.search(r"  /srv/x+…x+/app  word (word )+…\n|  /srv/x+…x+/app  [word ]+…\n", line)


def test_one_that_runs_stands_out() -> None:
    lines = shown([entry(is_running=True), entry("b")], width=100, colour=True)
    assert "\x1b[1;32mrunning" in lines[1]
    assert "running" not in lines[2]


def test_what_a_session_continues_is_named_as_short_as_that_is() -> None:
    chain = [
        entry("aaaaaaaa-1"),
        entry("bbbbbbbb-1", continues=Continues("aaaaaaaa-1", "same rows")),
    ]
    text = "".join(shown(chain))
    assert re.findall(r"  (aaaaaaaa|-) ", text) == ["-", "aaaaaaaa"]


def test_the_total_counts_what_there_is() -> None:
    entries = [
        entry(
            bytes=1024,
            archived_bytes=2048,
            archived_disk_bytes=512,
            side_bytes=3072,
            is_running=True,
        ),
        entry(bytes=1024),
    ]
    hidden = [entry(standing="empty", disk_bytes=0)] * 4
    assert render_list.total(entries, hidden, Look(now=NOW)) == (
        "2 sessions: 2.0 KiB live, 2.0 KiB archived, 8.0 KiB on disk, 3.0 KiB beside, 1 running, "
        "4 unused hidden\n\n"
    )
    for copies, told in ((1, "4 unused and 1 copy"), (2, "4 unused and 2 copies")):
        found = [*hidden, *[entry(standing="copy", disk_bytes=1024)] * copies]
        total = render_list.total(entries, found, Look(now=NOW))
        assert total.endswith(f", {told} hidden ({copies}.0 KiB)\n\n")
    found = [*hidden, *[entry(standing="agent", disk_bytes=1024)] * 2]
    total = render_list.total(entries, found, Look(now=NOW))
    assert total.endswith(", 2 of agents and 4 unused hidden (2.0 KiB)\n\n")
    waits = [entry(bytes=1024, archived_disk_bytes=3 << 20, waiting_disk_bytes=1 << 20)]
    assert render_list.total(waits, [], Look(now=NOW)) == (
        "1 session: 1.0 KiB live, 4.0 KiB on disk, 1.0 MiB of it freed later\n\n"
    )
    assert render_list.total(entries[1:], [], Look(now=NOW)) == "1 session: 1.0 KiB live\n\n"


def test_what_nobody_used_is_called_so() -> None:
    kinds = ["empty", "warm-up", "agent", "session"]
    lines = shown([entry(kind, standing=kind, title=titled("")) for kind in kinds])
    assert [line.split("project  ")[1] for line in lines[1:]] == [
        *("(empty)\n", "(warm-up)\n", "(agents only)\n", "-\n")
    ]


def test_no_session_is_an_empty_list() -> None:
    assert "".join(render_list.as_json([])) == "[]\n"


@pytest.mark.parametrize(("by", "title"), [("gain", "gain"), ("disk", "on disk")])
@given(st.lists(ENTRIES, min_size=1, max_size=6))
def test_what_sessions_are_sorted_by_comes_first_and_is_never_left_out(
    by: str, title: str, entries: list[SessionInfo]
) -> None:
    telling = any(each.gain_bytes for each in entries)
    if by == "disk":
        telling = any(each.archived_disk_bytes or each.side_bytes for each in entries)
    head = shown(entries, width=60, by=by)[0].split("  ")
    assert ([each.strip() for each in head if each.strip()][1] == title) == telling
