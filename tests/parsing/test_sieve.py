"""A sieve lets every line through that matches, and few others."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.parsing.candidates import sieve
from support.examples import examples


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("needle", (b"needle",)),
        ("a needle|thread", (b"a needle", b"thread")),
        ("^def \\w+\\(self", (b"(self",)),
        ("colou?r here", (b"r here",)),
        ("ab*cde", (b"cde",)),
        ("x{2,3}yz", (b"yz",)),
        ("ab{2}", (b"a",)),
        ("(inside)outer", (b"outer",)),
        ("[abc]def", (b"def",)),
        ("[]a]bc", (b"bc",)),
        ("src/needle.py", (b"needle",)),
        ('say "hello"', (b"hello",)),
        ("(?i)NeedLe", (b"needle",)),
        ("(?i)thinks", (b"th",)),
        ("größe", (b"gr",)),
        ("Ké; café", (b" caf",)),
        ("a\\.b\\|c", (b"a.b|c",)),
        ("\\d+", ()),
        ("a|\\d", ()),
        ("(all)", ()),
        ("\\x41bc", ()),
        ("(?x) a b c", ()),
        ("(?#note)abc", ()),
        ("", ()),
    ],
)
def test_the_longest_certain_literal_is_wanted(pattern: str, wanted: tuple[bytes, ...]) -> None:
    assert sieve(re.compile(pattern)).wanted == wanted


def test_a_line_without_the_literal_is_passed_over() -> None:
    found = sieve(re.compile("needle"))
    assert found(b'{"text":"a needle"}')
    assert not found(b'{"text":"a Needle \\u001b[0m \\u2026"}')
    assert sieve(re.compile("(?i)needle"))(b'{"text":"a NEEDLE"}')


def test_a_line_with_escaped_letters_may_match() -> None:
    assert sieve(re.compile("needle"))(b'{"text":"\\u006eeedle"}')


def escaped(text: str, ascii_only: bool, all_of_it: bool) -> bytes:
    """Return a row with this text, as different writers would write it."""
    if all_of_it:
        units = text.encode("utf-16-be", "surrogatepass").hex()
        body = "".join(f"\\u{units[n : n + 4]}" for n in range(0, len(units), 4))
        return f'{{"text":"{body}"}}'.encode()
    line = json.dumps({"text": text}, ensure_ascii=ascii_only).replace("/", "\\/")
    return line.encode("utf-8", "surrogatepass")


ESCAPES = ["\\.", "\\d", "\\b", "\\\\", "\\/"]
CLASSES = ["[ab]", "[^a]", "[)]", "[]b]"]
GROUPS = ["(ab)", "(?:a|b)", "(a(b)c)", "(ab)?", "(?:a)*", "(\\))", "([)])"]
REPEATED = ["a?", "b*", "ab+", "a+?", "a{2}", "a{0,1}"]
ATOMS = st.sampled_from(
    [*'abkisKIS; /".é…{}|^$', *ESCAPES, *CLASSES, *GROUPS, *REPEATED]
)  # fmt: skip
RELATIVES = "\u0131\u017f\u212a"  # of i, s and k, where case is ignored
UNCOMPOSED = "e\u0301\u212a\u037e\u1fef"  # of which é, K, ; and ` are made


@examples(400)
@given(
    atoms=st.lists(ATOMS, max_size=6),
    flags=st.sampled_from(["", "(?i)", "(?s)", "(?x)"]),
    text=st.text(alphabet=RELATIVES + UNCOMPOSED + 'abcABikKsS /"\\.é…12\n{}|', max_size=12),
    ascii_only=st.booleans(),
    all_of_it=st.booleans(),
)
def test_no_line_that_matches_is_passed_over(
    atoms: list[str], flags: str, text: str, ascii_only: bool, all_of_it: bool
) -> None:
    try:
        pattern = re.compile(flags + "".join(atoms))
    except re.error:
        return
    # With an accent, texts are composed before they are compared.
    compared = text if pattern.pattern.isascii() else unicodedata.normalize("NFC", text)
    if pattern.search(text) or pattern.search(compared):
        assert sieve(pattern)(escaped(text, ascii_only, all_of_it))
