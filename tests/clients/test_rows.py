"""Rows of Codex and Gemini CLI: real ones fit their types, and odd ones have one row, not two."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.clients.codex import rows as codex
from sessrotate.clients.gemini import rows as gemini
from sessrotate.parsing import LONGEST, Record
from sessrotate.parsing.json_typed import Decoder
from support.conformance import mutating
from support.conformance.specimen import FIXTURES
from support.lines import any_lines


def _lines(client: str, pattern: str) -> list[bytes]:
    files = sorted((FIXTURES / client).rglob(pattern))
    found = {line for path in files for line in path.read_bytes().splitlines()}
    return sorted(found, key=lambda line: (len(line), line))


CODEX: Final = _lines("codex", "*.jsonl")
GEMINI: Final = _lines("gemini", "session-*.jsonl")
DECODERS: Final[dict[str, tuple[Decoder[Any], list[bytes]]]] = {
    "codex": (codex.LINES, CODEX),
    "gemini": (Decoder(gemini.Row), GEMINI),
}

_every_client = pytest.mark.parametrize("client", DECODERS)


@_every_client
def test_a_real_row_fits_its_type_without_the_guarded_way(
    client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, lines = DECODERS[client]
    untyped = 0
    monkeypatch.setattr(type(rows), "guarded", lambda *_: None)
    for line in lines:
        untyped += rows(line) is None
    # Bare rows without a type, of 0.29: the first one, and notes of the client's state.
    assert untyped == sum(b'"type"' not in line for line in lines if client == "codex")


@_every_client
@given(st.data())
def test_an_odd_row_is_the_same_whichever_way_it_is_decoded(
    client: str, data: st.DataObject
) -> None:
    rows, real = DECODERS[client]
    line = data.draw(mutating.lines(real) | any_lines() | st.binary(max_size=60))
    assert repr(rows(line)) == repr(rows.guarded(line))


@_every_client
def test_a_row_that_has_any_odd_value_is_the_same_either_way(client: str) -> None:
    rows, real = DECODERS[client]
    for line in mutating.variants(real):
        assert repr(rows(line)) == repr(rows.guarded(line))


def test_a_line_that_is_too_long_to_be_held_is_never_decoded() -> None:
    for row_of, begins in (
        (codex.row_of, b'{"timestamp":"t","type":"response_item","payload":{"type":"message"}}'),
        (gemini.row_of, b'{"id":"a","timestamp":"t","type":"user","content":""}'),
    ):
        whole, cut = Record(0, 0, begins, len(begins)), Record(0, 0, begins, LONGEST + 1)
        assert row_of(whole) is not None
        assert row_of(cut) is None
