"""Many sessions one after the other: what there is no room for is tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessrotate.archive.place import Place
from sessrotate.in_place import fleet
from sessrotate.in_place.obstacles import NoRoomError
from sessrotate.in_place.outcome import Outcome

if TYPE_CHECKING:
    from pathlib import Path


def test_what_needs_room_that_others_free_is_done_behind_them(tmp_path: Path) -> None:
    """Each frees ten times what it needs; the last needs what is never free."""
    places = [Place(tmp_path, "p", str(n), tmp_path / f"{n}.jsonl") for n in (3, 2, 1, 0, 9)]
    free, tried = 1, list[str]()

    def act(where: Place) -> Outcome:
        nonlocal free
        tried.append(where.session)
        needs = 10 ** int(where.session)
        if free < needs:
            raise NoRoomError("The disk has no room for it.")
        free += 10 * needs
        return Outcome(where, "done", gained=10 * needs)

    done = [*fleet.as_room_comes(places, act, "rotate the session")]
    assert [each.where and each.where.session for each in done] == ["0", "1", "2", "3", "9"]
    assert [each.result for each in done] == ["done"] * 4 + ["failed"]
    assert tried.count("9") == 6
