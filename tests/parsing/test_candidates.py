"""The lines that are found in windows are those that a sieve lets through, one by one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.parsing import candidates as windows
from sessrotate.parsing import split
from sessrotate.parsing.candidates import Sieve, candidates, is_across, sieve
from support.examples import examples

PIECES = st.lists(
    st.lists(
        st.sampled_from(
            [b"\n", b" need", b"needle", b"NeeDle", b"\\u00", b"6e", b"41", b"20", b"x" * 9]
        ),
        max_size=8,
    ).map(b"".join),
    max_size=6,
)
SIEVES = [
    Sieve((b"needle",)),
    Sieve((b"needle", b"x" * 12)),
    Sieve((b"needle",), is_caseless=True),
    Sieve((b"x needle",)),
    Sieve((b"need", b"NeeDle")),
    Sieve((b"needle",), also=(b"dle4",)),
    Sieve((b"Dle",), is_caseless=False),
    Sieve(()),
]


def found(pieces: list[bytes], wanted: Sieve, window: int) -> list[tuple[bytes, int, int, bool]]:
    lines = candidates([memoryview(piece) for piece in pieces], wanted, 7, window)
    return [(bytes(line), at, size, is_ended) for line, at, size, is_ended in lines]


@examples(600)
@given(pieces=PIECES, wanted=st.sampled_from(SIEVES), window=st.sampled_from([16, 24, 50, 4096]))
def test_what_is_found_in_windows_is_what_a_sieve_lets_through(
    pieces: list[bytes], wanted: Sieve, window: int
) -> None:
    expected = [
        (bytes(line), at, size, is_ended)
        for line, at, size, is_ended in split(pieces, 7)
        if wanted(bytes(line))
    ]
    assert found(pieces, wanted, window) == expected


def test_of_a_line_that_is_too_long_the_beginning_is_kept_and_all_is_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(windows, "LONGEST", 100)
    line = b"a" * 300 + b"needle" + b"b" * 70
    pieces = [line[at : at + 13] for at in range(0, len(line), 13)]
    other = b"c" * 400
    data = [b"first\n", *pieces, b"\n", other, b"\nneedle\n", other]
    assert found(data, Sieve((b"needle",)), 32) == [
        (b"a" * 100, 13, 376, True),
        (b"needle", 13 + 377 + 401, 6, True),
    ]


@pytest.mark.parametrize("pattern", ["needle", "a needle", "(?i)needle", "NEEDLE", "ne|x9"])
def test_a_literal_of_which_any_character_is_escaped_is_found(pattern: str) -> None:
    for character in pattern.removeprefix("(?i)").split("|")[0].encode():
        lines = b"other \\u001b\n..\\u00%02x..\nother" % character
        expected = [(b"..\\u00%02x.." % character, 20, 10, True)]
        assert found([lines], sieve(re.compile(pattern)), 4096) == expected


@pytest.mark.parametrize("pattern", ["needle", "(?i)needle"])
def test_a_literal_that_lies_in_two_pieces_is_found(pattern: str) -> None:
    for cut in range(1, 6):
        pieces = [b"x\n..needle"[: 4 + cut], b"x\n..needle"[4 + cut :]]
        assert found(pieces, sieve(re.compile(pattern)), 4096) == [(b"..needle", 9, 8, False)]


@examples(300)
@given(
    words=st.text("ab: ", max_size=5),
    said=st.text("ab: ", max_size=5),
    literal=st.text("ab: ", min_size=1, max_size=4),
)
def test_a_literal_that_only_words_before_a_text_bring_is_known(
    words: str, said: str, literal: str
) -> None:
    if literal in words + said and literal not in said:
        assert is_across(literal.encode(), words)


def test_a_literal_that_no_words_bring_needs_no_care() -> None:
    assert not is_across(b"needle", "stream error: ")
    assert is_across(b"Error: no", "stream error: ")
    assert is_across(b" no", "stream error: ")
