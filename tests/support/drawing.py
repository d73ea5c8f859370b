"""Prints what the gate draws for a property: run in processes that differ, it prints the same."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from support import examples

examples.register_profiles()
examples.draw_by_the_test_alone()


@examples.examples(200)
@given(st.tuples(st.integers(), st.text(), st.binary(), st.floats(), st.sampled_from("abcdef")))
def draw(values: tuple[object, ...]) -> None:
    """Print what was drawn."""
    sys.stdout.write(f"{values!r}\n")


if __name__ == "__main__":
    draw()
