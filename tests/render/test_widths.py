"""A text that was cut to a width is no wider on any terminal, and says as much as fits."""

from __future__ import annotations

import wcwidth
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.render import columns as widths

MOST = st.integers(1, 40)
PRINTABLE = st.characters(exclude_categories=("Cc", "Cs"))
TEXTS = st.text(PRINTABLE, max_size=60) | st.text("aé日本語e\u0301⚠\ufe0f👩\u200d", max_size=60)


def most(text: str) -> int:
    """Return what a terminal takes that joins characters, or one that does not, if more."""
    apart = sum(max(0, wcwidth.wcwidth(character)) for character in text)
    return max(apart, wcwidth.wcswidth(text))


def test_no_character_takes_more_than_is_counted() -> None:
    controls = {*range(0x20), *range(0x7F, 0xA0)}
    characters = (chr(code) for code in range(0x110000) if code not in controls)
    narrow = [each for each in characters if wcwidth.wcwidth(each) > widths.width(each)]
    assert narrow == []


@given(TEXTS)
def test_a_text_takes_no_more_than_is_counted(text: str) -> None:
    assert most(text) <= widths.width(text)


@given(TEXTS)
def test_a_text_takes_what_its_characters_take(text: str) -> None:
    assert widths.width(text) == sum(map(widths.width, text))


@given(TEXTS, MOST)
def test_what_is_cut_fits_and_what_fits_is_not_cut(text: str, columns: int) -> None:
    for cut in (widths.cut(text, columns), widths.cut_middle(text, columns)):
        assert widths.width(cut) <= columns
        assert (cut == text) == (widths.width(text) <= columns)
        assert cut == text or cut.count("…") == text.count("…", 0, 0) + 1 or "…" in text


@given(TEXTS, MOST)
def test_a_cut_text_is_its_beginning(text: str, columns: int) -> None:
    cut = widths.cut(text, columns)
    if cut != text:
        assert cut.endswith("…")
        assert text.startswith(cut[:-1])
        assert widths.width(cut) >= columns - 1 or " " in text or not text.isprintable()


@given(TEXTS, MOST)
def test_a_text_cut_in_its_middle_has_both_ends(text: str, columns: int) -> None:
    cut = widths.cut_middle(text, columns)
    if cut != text and "…" not in text:
        start, _, end = cut.partition("…")
        assert text.startswith(start)
        assert text.endswith(end)
        assert widths.width(end) + 2 >= widths.width(start)


def test_what_is_known_of_terminals() -> None:
    told = {"abc": 3, "日本": 4, "e\u0301": 1, "⚠\ufe0f": 2, "한": 2, "\ue0b0": 2, "": 0}
    assert {text: widths.width(text) for text in told} == told
    assert widths.cut("abcdef", 4) == "abc…"
    assert widths.cut("日本語", 4) == "日…"
    assert widths.cut_middle("/home/somebody/project", 12) == "/ho…/project"
    assert widths.cut("ab cdef", 4) == "ab…"
