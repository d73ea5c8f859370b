"""A plan fits the terminal, and its reader knows each session by more than its id."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.test_list import SIZES, TEXTS
from sessrotate.archive.place import Place
from sessrotate.errors import InUseError
from sessrotate.in_place.outcome import Outcome, failure
from sessrotate.render import columns, outcomes, tidy
from sessrotate.render.outcomes import Seen
from support.command_line import raw_controls
from support.entries import NOW, entry, titled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Figures = Mapping[str, Callable[[Outcome], str]]

FIGURES = {
    "rotate": outcomes.ROTATED.columns,
    "archive": outcomes.PUT_AWAY.columns,
    "restore": outcomes.BROUGHT_BACK.columns,
    "tidy": tidy.FIGURES,
}

TITLE = "Why does the import of invoices take forty minutes on the new machine"


def of_session(session: str) -> Place:
    return Place(Path("c"), "p", session, Path(f"c/projects/p/{session}.jsonl"))


def shown(
    figures: Figures, told: list[tuple[str, str, int, str]], width: int | None
) -> tuple[list[Outcome], list[str]]:
    """Return outcomes of sessions with these titles, projects, sizes and details, and the lines."""
    found = [
        Outcome(of_session(f"{number:08x}-0000"), "planned", size, size, size, detail, disk=size)
        for number, (_, _, size, detail) in enumerate(told)
    ]
    known = {
        each.where: entry(each.session, title=titled(title), project=project, last_used=NOW - 3e6)
        for each, (title, project, _, _) in zip(found, told, strict=True)
        if each.where is not None
    }
    return found, [*outcomes.table(found, figures, Seen(now=NOW, width=width, known=known))]


@given(
    st.sampled_from(sorted(FIGURES)),
    st.lists(st.tuples(TEXTS, TEXTS, SIZES, TEXTS), min_size=1, max_size=5),
    st.integers(20, 160) | st.none(),
)
def test_a_row_fits_and_has_nothing_that_steers_a_terminal(
    name: str, told: list[tuple[str, str, int, str]], width: int | None
) -> None:
    found, lines = shown(FIGURES[name], told, width)
    assert len(lines) == len(found) + 1
    for line in lines:
        assert not raw_controls(line)
        assert width is None or columns.width(line) <= width


@pytest.mark.parametrize("name", FIGURES)
def test_at_eighty_columns_a_plan_has_title_project_age_and_two_sizes(name: str) -> None:
    row = (TITLE, "/home/somebody/work/invoices", 123 << 30, "its first prompt went to its archive")
    _, (head, line) = shown(FIGURES[name], [row], 80)
    first, second, *_ = FIGURES[name]
    titles = ["session", "title", "project", "last used", first, second]
    assert re.split(r"  +", head) == titles
    cells = re.split(r"  +", line)
    assert cells[0] == "00000000"
    assert TITLE.startswith(cells[1].rstrip("…"))
    assert cells[2].endswith("invoices")
    assert cells[3].endswith("ago")
    assert cells[4].endswith(".0 GiB")


def test_of_each_that_stays_it_is_said_why_and_the_usual_is_counted() -> None:
    places = [of_session(f"{number}-0000") for number in range(6)]
    stay = [
        Outcome(where, "nothing to do", detail="it has not been compacted") for where in places[:4]
    ]
    used = failure(places[5], InUseError("Claude Code runs it."))
    lines = [*outcomes.table([*stay, used], FIGURES["rotate"], Seen(now=NOW, width=40))]
    assert lines == [
        "4 sessions: nothing to do: it has not been compacted",
        "5-0000: in use: Claude Code runs it.",
    ]
