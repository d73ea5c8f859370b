"""What a user of the library writes, with its types: mypy checks it as strictly as the rest.

Rule: only names that `sessrotate` itself gives are imported, and every one of them is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

from sessrotate import (
    Agent,
    Boundary,
    Continues,
    DamagedError,
    Image,
    InputError,
    InUseError,
    NotASessionError,
    Record,
    RefusedError,
    RequestError,
    SegmentInfo,
    Session,
    SessionInfo,
    SessrotateError,
    StorageError,
    Text,
    Thinking,
    Title,
    Tokens,
    ToolCall,
    ToolResult,
    Unknown,
    View,
    WrongUsageError,
    open_session,
    sessions,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def listed() -> list[tuple[str, str, Path, str]]:
    """Return of each session its client, its id, its file and its title."""
    found = sessions(hidden=False, continuations=True, on_unread=lambda _path, _reason: None)
    assert_type(found, list[SessionInfo])
    for info in found:
        assert_type(info.title, Title)
        assert_type(info.continues, Continues | None)
        assert_type(info.archived_bytes, int | None)
    return [(info.client, info.id, info.path, info.title.text) for info in found]


def lines(session: str | Path) -> int:
    """Return how many lines a session has, read in each way that there is."""
    with open_session(session, on_gap=print) as opened:
        assert_type(opened, Session)
        assert_type(opened.segments, tuple[SegmentInfo, ...])
        assert_type(opened.boundaries, tuple[Boundary, ...])
        assert_type(opened.agents(), list[Agent])
        every = [*opened.history()]
        assert_type(every, list[Record])
        by_segment = [record for info in opened.segments for record in opened.segment(info.index)]
        assert by_segment == every
        assert sum(len(data) for data in opened.bytes_of(every[0])) == every[0].size
        assert all(opened.problem(info.index) is None for info in opened.segments)
        for record in opened.conversation(with_agents=True):
            for part in words(opened.view(record)):
                assert_type(part, str)
        return len(every)


def words(view: View | None) -> Iterator[str]:
    """Yield what there is to read in a record."""
    if view is None:
        return
    assert_type(view.tokens, Tokens | None)
    for block in view.blocks:
        match block:
            case Text(text) | Thinking(text):
                yield text
            case ToolCall():
                yield block.name
            case ToolResult():
                yield block.id
            case Image():
                yield block.media_type
            case Unknown():
                yield block.type


def failure(session: str | Path) -> tuple[str, int] | None:
    """Return the family of what keeps a session from being read and its exit code, else None."""
    try:
        lines(session)
    except (WrongUsageError, InUseError, RefusedError) as error:
        assert_type(error, WrongUsageError | InUseError | RefusedError)
        return RequestError.__name__, error.exit_code
    except (NotASessionError, DamagedError, StorageError) as error:
        return InputError.__name__, error.exit_code
    except SessrotateError as error:
        return SessrotateError.__name__, error.exit_code
    return None
