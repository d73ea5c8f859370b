"""The hook's background process finds the compaction that was announced, and no other.

Rule: what is there and what comes are appended by the test itself; the wait is never timed, but for
being over at all.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.claude import cleanup
from sessrotate.clients.in_place import Compacted
from sessrotate.hook import compaction
from sessrotate.model import Boundary
from support import command_line, homes
from support.command_line import boundary, row

if TYPE_CHECKING:
    from support.homes import Home

DATA: Final = command_line.session(boundaries=2, padding=1000)
PATIENT: Final = 20.0
AT_ONCE: Final = 0.0


def new(number: int = 500, **changes: Any) -> bytes:
    """Return a boundary's line as a client would write it next."""
    return boundary(number, **changes)


def summary(number: int = 501) -> bytes:
    return row(number, isCompactSummary=True)


def announced(home: Home) -> os.stat_result:
    return home.live.stat()


def looked(home: Home, before: os.stat_result) -> Compacted | None:
    """Return what there is to be found now, without waiting."""
    return compaction.awaited(home.where, before, AT_ONCE)


def test_a_boundary_with_its_summary_is_the_compaction(home: Home) -> None:
    before = announced(home)
    assert looked(home, before) is None
    home.append(new(version="2.1.330", entrypoint="cli") + summary())
    assert looked(home, before) == Compacted()


def test_it_is_found_when_it_comes_later(home: Home) -> None:
    before = announced(home)
    parts = [new()[:100], new()[100:], summary()[:20], summary()[20:]]

    def writing_it() -> None:
        for part in parts:
            threading.Event().wait(0.05)
            home.append(part)

    writing = threading.Thread(target=writing_it)
    writing.start()
    try:
        assert compaction.awaited(home.where, before, PATIENT) is not None
    finally:
        writing.join()


@pytest.mark.parametrize("kind", ["boundary", "no newline", "no summary behind it"])
def test_half_of_it_is_none(home: Home, kind: str) -> None:
    before = announced(home)
    home.append(
        {
            "boundary": new(),
            "no newline": new() + summary()[:-1],
            "no summary behind it": summary() + new() + row(502),
        }[kind]
    )
    assert looked(home, before) is None


def test_what_was_there_at_the_call_is_none_even_written_again(home: Home) -> None:
    before = announced(home)
    old = [line for line in DATA.splitlines(keepends=True) if b"compact_boundary" in line]
    home.append(old[-1] + summary())
    assert looked(home, before) is None
    home.append(old[0] + summary(502))
    assert looked(home, before) is None
    home.append(new() + summary(503))
    assert looked(home, before) is not None


def test_what_is_in_the_archive_only_is_none_when_it_is_written_again(home: Home) -> None:
    old = [line for line in DATA.splitlines(keepends=True) if b"compact_boundary" in line]
    home.rotate()
    before = announced(home)
    home.append(old[0] + summary())
    assert looked(home, before) is None
    home.append(new() + summary(502))
    assert looked(home, before) is not None


def test_a_rotation_meanwhile_does_not_hide_it(home: Home) -> None:
    before = announced(home)
    found: list[Compacted | None] = []
    waiting = threading.Thread(
        target=lambda: found.append(compaction.awaited(home.where, before, PATIENT))
    )
    waiting.start()
    threading.Event().wait(0.1)
    home.rotate(wait=5.0)
    home.append(new() + summary())
    waiting.join()
    assert found[0] is not None


def test_a_file_that_goes_away_is_waited_for_and_not_failed_on(home: Home) -> None:
    before = announced(home)
    home.live.unlink()
    assert compaction.awaited(home.where, before, 0.1) is None


@given(st.data())
def test_it_is_found_exactly_if_a_new_boundary_and_then_a_summary_are_complete(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    lines = data.draw(
        st.lists(st.sampled_from(["row", "old", "new", "summary", "junk", "quoted"]), max_size=8)
    )
    old = next(line for line in DATA.splitlines(keepends=True) if b"compact_boundary" in line)
    text = {
        "row": row(600),
        "old": old,
        "new": new(),
        "summary": summary(),
        "junk": b'{"compact_boundary"\n',
        "quoted": row(601, note='{"subtype":"compact_boundary"}'),
    }
    wanted = "new" in lines and "summary" in lines[lines.index("new") :]
    with pytest.MonkeyPatch.context() as patch:
        home = homes.home(tmp_path_factory.mktemp("home"), patch, DATA)
        before = announced(home)
        home.append(b"".join(text[name] for name in lines))
        assert (looked(home, before) is not None) == wanted


SDK: Final = {"version": "2.1.112", "entrypoint": "sdk-ts", "trigger": "manual"}


@pytest.mark.parametrize(
    ("changes", "repeated"),
    [
        ({}, True),
        ({"trigger": "auto"}, False),
        ({"entrypoint": "cli"}, False),
        ({"version": "2.0.28"}, False),
        ({"version": "2.1.200"}, False),
        ({"version": None, "entrypoint": None}, False),
        ({"version": "x.y"}, False),
    ],
)
def test_only_one_version_in_one_mode_writes_archived_rows_again(
    changes: dict[str, str], repeated: bool
) -> None:
    said = {**SDK, **changes}
    line, trigger = new(version=said["version"], entrypoint=said["entrypoint"]), said["trigger"]
    found = cleanup.compacted(line, Boundary(0, trigger=trigger))
    assert found == Compacted(repeated)
