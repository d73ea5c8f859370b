"""What is counted of lines by their types against what is counted of records by their views."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.claude import reader
from sessrotate.reports.counting import Tally
from support.examples import examples
from support.lines import row

if TYPE_CHECKING:
    from sessrotate.clients.protocol import Reader


def message(speaker: str, *blocks: dict[str, Any], **fields: Any) -> bytes:
    return row(type=speaker, message={"role": speaker, "content": [*blocks]}, **fields)


PICTURE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 9},
}
TEXT = {"type": "text", "text": "some words"}
CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "a file"}
ROWS = [
    *(row(1), row(2, uuid=None), row(1, slug="x"), row(3, timestamp="2026-03-02T00:00:00+02:00")),
    message("assistant", TEXT),
    message("assistant", CALL, uuid="c"),
    message("assistant", TEXT, CALL, {**CALL, "id": "t2", "name": "Read"}, timestamp=None),
    message("user", RESULT, uuid="r"),
    message("user", {**RESULT, "tool_use_id": "t2"}, RESULT, timestamp="2026-03-05T01:00:00.000Z"),
    message("user", {**RESULT, "content": [TEXT, PICTURE]}),
    *(message("user", PICTURE), message("user", PICTURE, TEXT, uuid="p")),
    b'{"type":"mode","mode":"normal"}',
    b'{"type":"progress","timestamp":"2026-02-28T23:59:59.999Z"}',
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Draw a row of which some bytes are others."""
    line, at, cut = draw(st.sampled_from(ROWS)), draw(st.integers(0, 300)), draw(st.integers(0, 9))
    return line[:at] + draw(st.binary(max_size=4)) + line[at + cut :]


LINES = st.one_of(st.sampled_from(ROWS), mutated(), st.binary(max_size=30))
SESSIONS = st.builds(
    lambda lines, end: b"\n".join(lines) + end,
    st.lists(LINES, max_size=30),
    st.sampled_from([b"", b"\n", b"\n\n"]),
)


def figures(of: Reader, segments: list[bytes], size: int) -> tuple[Any, ...]:
    """Return all that is counted of these segments, read in pieces of `size` bytes."""
    tally, start, told = Tally("s", of, lambda found: iter((found.line,))), 0, []
    for index, data in enumerate(segments):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        told.append(tally.segment(pieces, index, start))
        start += len(data)
    return told, tally.counts.contents(), tally.growth()


@given(st.lists(SESSIONS, min_size=1, max_size=3), st.integers(1, 4000))
@examples(400)
def test_lines_told_by_their_types_have_the_figures_of_their_views(
    segments: list[bytes], size: int
) -> None:
    # Without `gist` and `line_key`, so that each line is a record and has a view.
    by_view = cast(
        "Reader", SimpleNamespace(records=reader.records, view=reader.view, key=reader.key)
    )
    assert figures(reader, segments, size) == figures(by_view, segments, 1 << 20)
