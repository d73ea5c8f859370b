"""Regular expressions mean the same on every Python that sessrotate promises to run on."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import sessrotate

PACKAGE = Path(sessrotate.__file__).parent

REPEATED = re.compile(r"(?<!\\)\)(?:[*+?]|\{[0-9,]+\})\+")
"""The end of a group that is repeated possessively."""


def expressions() -> dict[str, str]:
    """Return every text of the source with such a group, by where it stands."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
                if REPEATED.search(text):
                    found[f"{path.relative_to(PACKAGE)}:{node.lineno}"] = text
    return found


@pytest.mark.parametrize("where", expressions())
def test_what_is_repeated_possessively_is_an_atomic_group(where: str) -> None:
    """Other groups match too much before Python 3.11.5 (CPython issues 100061 and 106052)."""
    text = expressions()[where]
    repeated = len(REPEATED.findall(text))
    assert repeated == len(re.findall(r"\)" + REPEATED.pattern, text))
    assert repeated == text.count("(?:(?>")
