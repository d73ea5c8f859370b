"""What a Codex session is called, and what can be seen of it at a glance."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessrotate.clients.codex.reader import sight
from sessrotate.clients.preview import EDGE, Continues, Sight, Title
from support import homes
from support.codex_sessions import BARE, FILES, ID, Rows, as_line, message

PARENT = "01a20069-0000-7812-9750-2eae4d402117"


@pytest.fixture(autouse=True)
def _nobody_is_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CODEX_SESSIONS_DIR", raising=False)


def begun(shape: str = "paginated", **meta: object) -> Rows:
    rows = Rows(shape)
    rows.add("session_meta", id=ID, cwd="/srv/demo", **meta)
    rows.item(**message("user", "<environment_context>\n  <cwd>/srv</cwd>"))
    return rows


def whole(rows: Rows) -> bytes:
    return b"".join(line + b"\n" for line in rows.lines)


def seen_of(data: bytes) -> Sight:
    return sight(data[:EDGE], data[-EDGE:], is_whole=len(data) <= EDGE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem[:20]}")
def test_a_real_session_is_called_by_what_was_asked_first(path: Path) -> None:
    data = path.read_bytes()
    seen = seen_of(data)
    assert seen.title.source == "first prompt"
    asked = {"alpha one USAGE=1500", "hello first turn", "child turn USAGE=6000"}
    assert seen.title.text in asked
    assert (seen.folder, seen.standing) == ("/srv/r2/w1", "session")
    assert (seen.id, seen.first is not None) == (None, True)
    assert seen.started is not None
    assert seen.ended is not None
    assert seen.started <= seen.ended


def test_where_no_row_has_the_folder_it_is_the_one_that_the_model_was_told() -> None:
    data = BARE.read_bytes()
    seen = seen_of(data)
    assert (seen.folder, seen.standing) == ("/srv/demo/w1", "session")
    assert seen.title.text == "alpha [[run echo hi; seq 1 5]]"
    odd = data.replace(b"/srv/demo/w1", b'/srv/\\"a\\\\b\\u00e9')
    assert seen_of(odd).folder == '/srv/"a\\bé'
    torn = data.replace(b"/srv/demo/w1", b"/srv/\\x")
    assert seen_of(torn).folder is None


@pytest.mark.parametrize("shape", ["bare", "legacy", "paginated"])
def test_the_first_prompt_is_the_title_in_all_shapes(shape: str) -> None:
    rows = begun(shape)
    rows.turn("mend the\n ferry  ledger")
    rows.turn("and the tide table")
    assert seen_of(whole(rows)).title == Title("mend the ferry ledger", "first prompt")


def test_what_an_editor_sends_around_a_prompt_is_no_part_of_it() -> None:
    rows = begun("legacy")
    rows.turn("# Context from my IDE setup:\n\n## My request for Codex:\nmend it\n")
    assert str(seen_of(whole(rows)).title) == "mend it"


def test_an_event_tells_better_than_what_is_sent() -> None:
    rows = begun("legacy")
    rows.item(**message("user", "<some_new_note> of the client"))
    rows.turn("mend it")
    assert str(seen_of(whole(rows)).title) == "mend it"


def test_the_last_name_that_the_user_gave_counts(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    rows = begun()
    rows.turn("mend it")
    assert seen_of(whole(rows)).title.text == "mend it"
    names = [{"id": ID, "thread_name": name} for name in ("first", "the ferry\n\x1bledger")]
    odd = [b"torn", b"[]", b'{"id":5}', b"\xff", b'{"id":"%b"' % ID.encode()]
    lines = [
        as_line(names[0]),
        *odd,
        as_line(names[1]),
        as_line({"id": PARENT, "thread_name": "x"}),
    ]
    (home / "session_index.jsonl").write_bytes(b"\n".join(lines))
    found = seen_of(whole(rows)).title
    assert (found.text, found.source) == ("the ferry ␛ledger", "custom")


def test_a_session_where_nothing_was_asked_is_empty() -> None:
    rows = begun()
    seen = seen_of(whole(rows))
    assert (seen.standing, seen.title) == ("empty", Title("", "none"))


def test_an_agents_session_and_a_fork_say_so() -> None:
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
    rows = begun(source=spawn, git={"branch": "ebb", "commit_hash": "c"})
    rows.turn("look")
    seen = seen_of(whole(rows))
    assert (seen.standing, seen.branch, seen.origin) == ("agent", "ebb", None)
    rows = begun(history_base={"thread_id": PARENT, "end_ordinal_exclusive": 118})
    rows.turn("go on")
    seen = seen_of(whole(rows))
    assert (seen.standing, seen.origin) == ("session", Continues(PARENT, "says so", 118))


def test_of_a_first_row_that_is_longer_than_what_is_in_sight_the_beginning_tells() -> None:
    rows = begun(base_instructions={"text": "i" * EDGE})
    rows.turn("go on")
    seen = seen_of(whole(rows))
    assert (seen.folder, seen.standing) == ("/srv/demo", "session")
    assert seen.started == "2026-11-21T12:00:00.000Z"
    assert seen.ended == "2026-11-21T12:00:05.000Z"


def test_of_a_prompt_with_a_picture_the_text_is_in_sight() -> None:
    rows = begun()
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * EDGE}
    rows.item(
        type="message", role="user", content=[{"type": "input_text", "text": "look"}, picture]
    )
    assert seen_of(whole(rows)).title.text == "look"


def test_of_a_compressed_session_the_beginning_is_in_sight() -> None:
    rows = begun()
    rows.turn("mend it")
    for number in range(4000):
        rows.turn(f"{number} {number * 7919}")
    packed = homes.packed(whole(rows))
    seen = seen_of(packed)
    assert (seen.title.text, seen.folder) == ("mend it", "/srv/demo")
    for cut in (5, 100, 3000):
        seen_of(packed[:cut])
    assert sight(packed[:4] + b"damaged" * 99, b"", is_whole=True).folder is None
