"""Which line stays first in a live file, so that lists and clean-ups know how the session began."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.clients.claude.ancestry import NoPlanError
from sessrotate.clients.claude.opening import SMALL, opening
from sessrotate.clients.preview import EDGE
from sessrotate.system.source import Source

if TYPE_CHECKING:
    from pathlib import Path

DESKTOP: Final = "claude-desktop"
HEADER: Final = b'{"type":"segment_header","sessionId":"s"}\n'


def line(number: int, content: object = "Why?", kind: str = "user", **fields: Any) -> bytes:
    message = {"role": kind, "content": content}
    made = {"type": kind, "uuid": str(number), "message": message, **fields}
    return json.dumps(made, separators=(",", ":")).encode() + b"\n"


def stays(tmp_path: Path, *lines: bytes, before: int | None = None) -> bytes | None:
    """Return the line that stays of a file's lines."""
    path, data = tmp_path / "s.jsonl", b"".join(lines)
    path.write_bytes(data)
    with Source(path) as source:
        found = opening(source, len(data) if before is None else before)
    return None if found is None else data[found.line.span.start : found.line.span.end] + b"\n"


def test_it_is_the_first_prompt_of_the_user(tmp_path: Path) -> None:
    no_prompts = (
        HEADER,
        b"torn\n",
        b'{"type":"mode"}\n',
        line(1, "<command-name>/clear</command-name>"),
        line(2, "Caveat: The messages below"),
        line(3, isMeta=True),
        line(4, isCompactSummary=True),
        line(5, isSidechain=True),
        line(6, kind="assistant"),
        line(7, [{"type": "tool_result", "content": "x"}]),
    )
    asked = line(8, [{"type": "image"}, {"type": "text", "text": "What is this?"}])
    assert stays(tmp_path, *no_prompts, asked, line(9)) == asked
    assert stays(tmp_path, *no_prompts) is None
    assert stays(tmp_path) is None


def test_nothing_from_the_first_compaction_on_stays(tmp_path: Path) -> None:
    other = line(1, kind="assistant")
    assert stays(tmp_path, other, line(2), before=len(other)) is None
    assert stays(tmp_path, line(1), before=0) is None


def test_a_prompt_with_much_in_it_does_not_stay_and_no_later_one_takes_its_place(
    tmp_path: Path,
) -> None:
    frame = len(line(1, "")) - 1
    small, large = line(1, "x" * (SMALL - frame)), line(1, "x" * (SMALL - frame + 1))
    assert stays(tmp_path, small, line(2)) == small
    assert stays(tmp_path, large, line(2)) is None


def test_no_more_than_the_first_64_kib_are_looked_at(tmp_path: Path) -> None:
    asked = line(2)
    other = line(1, "x" * (EDGE - len(asked) - len(line(1, "", "assistant"))), "assistant")
    assert len(other + asked) == EDGE
    assert stays(tmp_path, other, asked) == asked
    assert stays(tmp_path, HEADER, other, asked) is None


def test_a_prompt_that_spares_the_session_from_the_clean_up_stays(tmp_path: Path) -> None:
    asked = line(2, entrypoint=DESKTOP)
    began = line(1, kind="system", entrypoint=DESKTOP)
    assert stays(tmp_path, began, asked, line(3, entrypoint="cli")) == asked


@pytest.mark.parametrize("begun_in", [DESKTOP, "claude-desktop-3p", "local-agent", "local_agent"])
def test_where_the_prompt_cannot_spare_it_the_smallest_line_that_can_stays(
    tmp_path: Path, begun_in: str
) -> None:
    large = line(1, "x" * (SMALL + 1), entrypoint=begun_in)
    answer, short = line(2, "Yes, so.", "assistant", entrypoint=begun_in), line(3, "No.", "system")
    told = line(4, "No.", "system", entrypoint=begun_in)
    assert stays(tmp_path, large, answer, short, told) == told
    assert stays(tmp_path, large, answer, short) == answer
    assert stays(tmp_path, told, line(5), line(6, entrypoint="cli")) == told
    assert stays(tmp_path, large.replace(begun_in.encode(), b"cli"), answer) is None


def test_a_session_that_would_be_spared_no_more_is_refused(tmp_path: Path) -> None:
    endless = line(1, "x" * EDGE, entrypoint=DESKTOP)
    begins = json.dumps({"entrypoint": DESKTOP, "type": "user"}, separators=(",", ":")).encode()
    for lines in (
        (begins[:-1] + b',"x":"' + endless + b'"}\n',),
        (line(1, "x" * 50_000, entrypoint=DESKTOP),),
    ):
        with pytest.raises(NoPlanError, match="spares this session"):
            stays(tmp_path, *lines)


def test_what_a_user_quotes_spares_nothing(tmp_path: Path) -> None:
    quoted = line(1, 'I wrote {"entrypoint":"claude-desktop"} there.', kind="assistant")
    assert stays(tmp_path, quoted, line(2)) == line(2)


def test_whatever_stands_there_is_no_error(tmp_path: Path) -> None:
    for odd in (
        b"\0\xff\n",
        b'"user"\n',
        b'{"type":"user"}\n',
        b'{"type":"user","uuid":7}\n',
        b"[\n",
    ):
        assert stays(tmp_path, odd * 40) is None
        assert stays(tmp_path, odd, line(1)) == line(1)
