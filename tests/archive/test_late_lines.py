"""What came late to a replaced file: found by position, then in whole lines, never by likeness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.archive.late_lines import common, is_at, residue, whole
from sessrotate.archive.record import Batch, Mark, Swap
from sessrotate.model import Span
from sessrotate.system.source import Source
from support.command_line import write

if TYPE_CHECKING:
    from pathlib import Path

HISTORY: Final = b"history\n" * 3
HEAD: Final = b"header\ncarried\n"
TAIL: Final = b'{"boundary"}\n{"row":1}\n'


def found(
    folder: Path,
    pack: bytes,
    live: bytes,
    *,
    tail: bytes = TAIL,
    batch: tuple[bytes, int] | None = None,
) -> bytes:
    """Return the residue of a pack and a live file whose tails are these bytes.

    `batch` is the late bytes that were being appended, and how many of the live tail's bytes were
    there before.
    """
    swap = Swap(
        old=Mark.of(HISTORY),
        new=Mark.of(HEAD),
        cut=len(HISTORY),
        prefix=len(HEAD),
        tail=Mark.of(tail),
    )
    if batch is not None:
        late, before = batch
        start = len(HISTORY) + pack.index(late)
        floor = len(HEAD) + before
        swap = Swap(
            swap.old,
            swap.new,
            swap.cut,
            swap.prefix,
            swap.tail,
            Batch(Span(start, start + len(late)), floor),
        )
    with (
        Source(write(folder / "pack", HISTORY + pack)) as old,
        Source(write(folder / "live", HEAD + live)) as new,
    ):
        span = residue(swap, old, new)
        return old.read_at(span.start, span.size)


@pytest.mark.parametrize(
    ("pack", "live", "late"),
    [
        pytest.param(TAIL, TAIL, b"", id="the same"),
        pytest.param(TAIL, TAIL + b"new\n", b"", id="the new one goes on"),
        pytest.param(TAIL + b"late\n", TAIL, b"late\n", id="the old one goes on"),
        pytest.param(TAIL + b"late\n", TAIL + b"new\n", b"late\n", id="both go on"),
        pytest.param(TAIL + b"a\nb\n", TAIL + b"a\n", b"b\n", id="one of two was brought over"),
        pytest.param(TAIL + b"a\nb\n", TAIL + b"a\nb\nc\n", b"", id="both were"),
        pytest.param(TAIL + b"a\na\n", TAIL + b"a\n", b"a\n", id="lines that are the same"),
        pytest.param(TAIL + b"a\na\n", TAIL, b"a\na\n", id="none of two that are the same"),
        pytest.param(
            TAIL + b'{"uuid":1}\n',
            TAIL + b'{"uuid":2}\n',
            b'{"uuid":1}\n',
            id="lines that begin alike",
        ),
        pytest.param(TAIL + b"late\n", TAIL + b"la", b"te\n", id="a copy that a crash tore"),
        pytest.param(TAIL + b"la", TAIL + b"late\n", b"", id="a line that the new one completed"),
        pytest.param(TAIL + b"torn", TAIL, b"torn", id="a late line that is torn"),
        pytest.param(TAIL[:-3] + b"xyz", TAIL, TAIL[13:-3] + b"xyz", id="an edited old file"),
        pytest.param(TAIL[:-5], TAIL, b"", id="an old file that was taken back from"),
    ],
)
def test_late_bytes_are_those_that_the_live_file_has_yet_to_get(
    tmp_path: Path, pack: bytes, live: bytes, late: bytes
) -> None:
    assert found(tmp_path, pack, live) == late


EDITED: Final = b'{"boundary"}\n{"row":1}\n{"row":2}\nmode\n'
"""A tail of which clients take a row back."""


@pytest.mark.parametrize(
    ("pack", "live", "late"),
    [
        pytest.param(b'{"boundary"}\n{"row":2}\nmode\n', EDITED, b"", id="only the old one"),
        pytest.param(
            b'{"boundary"}\n{"row":2}\nmode\nlate\n', EDITED, b"late\n", id="and it goes on"
        ),
        pytest.param(
            b'{"boundary"}\n{"row":2}\nmode\nlate\n',
            EDITED + b"new\n",
            b"late\n",
            id="and both go on",
        ),
        pytest.param(
            b'{"boundary"}\n{"row":2}\nmode\nmode\n',
            EDITED + b"new\n",
            b"mode\n",
            id="a late line that is the same as another",
        ),
        pytest.param(
            b'{"boundary"}\n{"row":2}\nmode\na\nb\n',
            EDITED + b"a\n",
            b"b\n",
            id="one of two was brought over",
        ),
        pytest.param(b'{"boundary"}\n', EDITED + b"new\n", b"", id="all that followed"),
        pytest.param(EDITED, b'{"boundary"}\n{"row":1}\nmode\n', b"", id="only the new one"),
        pytest.param(
            EDITED + b"late\n",
            b'{"boundary"}\n{"row":1}\nmode\nnew\n',
            b"late\n",
            id="only the new one, and the old one goes on",
        ),
        pytest.param(
            b'{"boundary"}\n{"row":2}\nmode\n',
            b'{"boundary"}\n{"row":1}\nmode\n',
            b'{"row":2}\nmode\n',
            id="both: what cannot be told comes twice",
        ),
    ],
)
def test_a_row_that_was_taken_back_from_either_file_makes_no_other_late(
    tmp_path: Path, pack: bytes, live: bytes, late: bytes
) -> None:
    assert found(tmp_path, pack, live, tail=EDITED) == late


def test_a_torn_tail_is_completed_on_either_side(tmp_path: Path) -> None:
    torn = TAIL + b"half"
    assert found(tmp_path, torn + b"one\n", torn + b"two\n", tail=torn) == b"one\n"
    assert found(tmp_path, torn + b" one\n", torn, tail=torn) == b" one\n"


@pytest.mark.parametrize(
    ("live", "late"),
    [
        pytest.param(TAIL, b"a\nb\n", id="not yet"),
        pytest.param(TAIL + b"a\nb\n", b"", id="done"),
        pytest.param(TAIL + b"a\nb\nnew\n", b"", id="done, and the client went on"),
        pytest.param(TAIL + b"new\na\nb\n", b"", id="the client was first"),
        pytest.param(TAIL + b"new\n", b"a\nb\n", id="only the client was there"),
        pytest.param(TAIL + b"a\n", b"b\n", id="half of it"),
        pytest.param(TAIL + b"a\nb", b"\n", id="all but its end"),
    ],
)
def test_a_batch_is_looked_for_behind_where_it_was_to_go(
    tmp_path: Path, live: bytes, late: bytes
) -> None:
    assert found(tmp_path, TAIL + b"a\nb\n", live, batch=(b"a\nb\n", len(TAIL))) == late


def test_a_batch_is_not_found_in_what_the_live_file_had_before(tmp_path: Path) -> None:
    before = TAIL + b"a\n"
    late = found(tmp_path, TAIL + b"a\n" + b"b\na\n", before, batch=(b"b\na\n", len(before)))
    assert late == b"b\na\n"
    again = found(tmp_path, TAIL + b"x\n" + b"a\n", before, batch=(b"x\na\n", len(before)))
    assert again == b"x\na\n"


@pytest.mark.parametrize("is_ours", [False, True])
@pytest.mark.parametrize(
    ("done", "live", "start", "is_rest"),
    [
        pytest.param(2, b"a\n", 2, False, id="a line begins there"),
        pytest.param(4, b"a\nha", 4, True, id="half of it is the live file's end"),
        pytest.param(4, b"a\nha{}\n", 2, False, id="somebody wrote behind that half"),
        pytest.param(4, b"", 2, False, id="the live file was emptied"),
    ],
)
def test_half_a_line_is_gone_on_with_or_said_whole_if_it_is_ours(
    tmp_path: Path, done: int, live: bytes, start: int, *, is_rest: bool, is_ours: bool
) -> None:
    with (
        Source(write(tmp_path / "pack", b"a\nhalf\n")) as old,
        Source(write(tmp_path / "live", live)) as new,
    ):
        expected = start if is_ours or is_rest else done
        assert whole(old, done, new, is_ours=is_ours) == (expected, is_rest)


def test_what_comes_behind_a_batch_is_late_too(tmp_path: Path) -> None:
    pack = TAIL + b"a\n" + b"b\n"
    assert found(tmp_path, pack, TAIL + b"a\n", batch=(b"a\n", len(TAIL))) == b"b\n"
    assert found(tmp_path, pack, TAIL + b"new\na\n", batch=(b"a\n", len(TAIL))) == b"b\n"


@pytest.mark.parametrize("size", [0, 5, len(HISTORY)])
def test_a_pack_that_lost_its_tail_has_nothing_late(tmp_path: Path, size: int) -> None:
    swap = Swap(Mark.of(b""), Mark.of(HEAD), len(HISTORY), len(HEAD), Mark.of(TAIL))
    with (
        Source(write(tmp_path / "pack", HISTORY[:size])) as old,
        Source(write(tmp_path / "live", HEAD + b"edited")) as new,
    ):
        span = residue(swap, old, new)
        assert (span.start, span.end) == (size, size)


PIECES: Final = [64 * 1024, 256 * 1024]


@pytest.mark.parametrize("size", [size + more for size in PIECES for more in (-7, -1, 0, 1)])
def test_lines_and_batches_may_be_as_long_as_they_like(tmp_path: Path, size: int) -> None:
    line = b"x" * (size - 1) + b"\n"
    other = b"x" * (size - 2) + b"y\n"
    assert found(tmp_path, TAIL + line + line, TAIL + line) == line
    assert found(tmp_path, TAIL + other, TAIL + line) == other
    assert found(tmp_path, TAIL + line, TAIL + other + line, batch=(line, len(TAIL))) == b""


@given(
    st.lists(st.sampled_from([b"a\n", b"b\n", b"aa\n", b"{}\n", b"\n"]), max_size=6),
    st.integers(0, 6),
    st.integers(0, 3),
)
def test_whole_lines_that_were_brought_over_are_not_late(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], done: int, torn: int
) -> None:
    copied = b"".join(lines[:done])
    rest = b"".join(lines[done:])
    torn = min(torn, len(rest))
    folder = tmp_path_factory.mktemp("residue")
    live = TAIL + copied + rest[:torn]
    assert found(folder, TAIL + copied + rest, live) == rest[torn:]


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_what_two_runs_have_in_common_is_counted_byte_by_byte(one: bytes, other: bytes) -> None:
    size = min(len(one), len(other))
    one, other = one[:size], other[:size]
    expected = 0
    while expected < size and one[expected] == other[expected]:
        expected += 1
    assert common(one, other) == expected


def test_a_mark_is_found_only_where_it_is(tmp_path: Path) -> None:
    with Source(write(tmp_path / "file", b"abcdef")) as source:
        assert is_at(source, 2, Mark.of(b"cd"))
        assert is_at(source, 6, Mark.of(b""))
        assert not is_at(source, 1, Mark.of(b"cd"))
        assert not is_at(source, 5, Mark.of(b"cd"))
        assert not is_at(source, 7, Mark.of(b""))
