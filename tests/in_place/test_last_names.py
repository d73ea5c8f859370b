"""No name of a file that a client may have written to goes while it is the last one.

The list is of all places where such a name is removed, with what is known there. Whoever adds one
has to say why nothing is lost.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import sessrotate

PACKAGE: Final = Path(sessrotate.__file__).parent


REMOVING: Final = {"remove_files", "unlink", "rmtree", "remove"}
"""Calls that take a name away."""

OF_CLIENTS: Final = {"PACK", "pack", "waiting", "live"}
"""Words by which such a name is known: the pack, a file that waits, the live file."""

WHY: Final = {
    "in_place/aside.py:execute": "the live file is seen to be the same file",
    "in_place/seal.py:_close": "all of it is sealed, or in the new live file",
    "in_place/swap.py:begin": "the live file has its own name still, and nothing is replaced",
    "in_place/swap.py:undo": "`swap` or recovery has kept it, or the live file has all of it",
    "in_place/waiting.py:keep": "it has a name among the files that wait",
    "in_place/waiting.py:settle": "it is read once more: all of it is in the history",
}


def places() -> set[str]:
    """Return the functions that remove such a name."""
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(function, ast.FunctionDef):
                found |= {
                    f"{path.relative_to(PACKAGE)}:{_innermost(function, call).name}"
                    for call in ast.walk(function)
                    if isinstance(call, ast.Call) and _is_of_a_client(call)
                }
    return found


def _is_of_a_client(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    words = {
        word
        for node in ast.walk(call)
        for word in (getattr(node, "attr", None), getattr(node, "id", None))
    }
    return name in REMOVING and bool(words & OF_CLIENTS)


def _innermost(function: ast.FunctionDef, call: ast.Call) -> ast.FunctionDef:
    """Return the function inside this one in which a call stands."""
    for inner in ast.walk(function):
        if not isinstance(inner, ast.FunctionDef) or inner is function:
            continue
        if any(each is call for each in ast.walk(inner)):
            return _innermost(inner, call)
    return function


def test_every_place_that_removes_such_a_name_says_why_it_may() -> None:
    assert places() == WHY.keys()
