"""Digests and line counts do not depend on how the bytes arrive; a table is a dictionary."""

from __future__ import annotations

import re

import msgspec
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.model import Digest
from sessrotate.system import digest

LINES = st.lists(st.binary(max_size=9), max_size=2_000).map(b"\n".join)


@given(LINES, st.integers(1, 5_000))
def test_a_tally_is_that_of_all_bytes_at_once(data: bytes, piece: int) -> None:
    tally = digest.Tally()
    for start in range(0, len(data), piece):
        tally.update(data, min(start + piece, len(data)), start)
    assert tally.digest == "xxh3_128:" + xxhash.xxh3_128_hexdigest(data)
    assert tally.size == len(data)
    assert tally.lines == len(re.findall(rb"[^\n]*\n|[^\n]+", data))


@pytest.mark.parametrize("sound", [digest.Fingerprint().digest, digest.ZERO])
def test_a_digest_has_one_form(sound: str) -> None:
    assert msgspec.convert(sound, Digest) == sound
    for other in (None, 5, "", "xxh3_128:", "sha256:" + "0" * 32, sound + "\n", "\n" + sound):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(other, Digest)


# Few bytes, so that they share buckets, and one stands across the border of two others.
DIGESTS = st.builds(bytes, st.lists(st.integers(0, 1), min_size=6, max_size=6))
STEPS = st.lists(st.tuples(st.sampled_from(["number", "number", "find", "forget"]), DIGESTS))


@given(STEPS)
def test_digests_are_numbered_as_by_a_dictionary(steps: list[tuple[str, bytes]]) -> None:
    table, plain, count = digest.Numbering(5), dict[bytes, int](), 0
    for name, each in steps:
        kept = each[:5]
        if name == "number":
            assert table.number(each) == plain.setdefault(kept, count)
            count += count in plain.values()
        elif name == "find":
            assert table.find(each) == plain.get(kept)
        else:
            copied = table.copy()
            table.forget(each)
            assert {key: number for number, key in copied.digests()} == plain
            plain.pop(kept, None)
    assert {key: number for number, key in table.digests()} == plain
    assert table.count == count
