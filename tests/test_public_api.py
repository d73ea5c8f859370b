"""What `sessrotate` gives to a program: taught, typed, loaded when wanted, and nothing besides."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path
from types import ModuleType

import pytest
from msgspec import Struct

import sessrotate
from sessrotate import model
from support import library_sample

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "library.md"
TAUGHT = {
    word
    for code in re.findall(r"`+([^`]+)`+", PAGE.read_text())
    for word in re.findall(r"\w+", code)
}

FOR_READERS = {"reader", "sight", "older"}
"""What a `Session` has for the package's own readers (`clients.protocol.Reading`)."""


def test_every_public_name_is_taught() -> None:
    assert set(sessrotate.__all__) - TAUGHT == set()


def test_all_that_a_session_does_is_taught() -> None:
    own = {name for name in vars(sessrotate.Session) if not name.startswith("_")}
    attributes = {name for name in sessrotate.Session.__annotations__ if not name.startswith("_")}
    assert own | attributes > {"history", "id"}
    assert (own | attributes) - FOR_READERS - TAUGHT == set()


def test_all_that_is_known_of_a_session_is_taught() -> None:
    assert set(sessrotate.SessionInfo.__annotations__) - TAUGHT == set()


@pytest.mark.parametrize("name", sessrotate.__all__)
def test_every_public_name_says_what_it_is(name: str) -> None:
    said = getattr(sessrotate, name).__doc__ or ""
    assert said.strip().endswith(".") or ".\n" in said
    assert not said.startswith(f"{name}(")  # what a dataclass without a docstring is given


def listing(code: str) -> list[str]:
    """Return what a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return done.stdout.decode().split()


def test_nothing_else_is_to_be_had_without_a_dot() -> None:
    code = (
        "import sessrotate; print(*(n for n in vars(sessrotate) if n[0] != '_'), *dir(sessrotate))"
    )
    assert sorted(listing(code)) == sorted([*sessrotate.__all__, "__version__"])


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("SessrotateError", "sessrotate.reading.session"),
        ("Record", "sessrotate.clients.claude.client"),
        ("View", "sessrotate.system.source"),
        ("open_session", "sessrotate.reports.listing"),
        ("sessions", "sessrotate.reading.session"),
    ],
)
def test_a_name_loads_what_it_needs_and_no_more(name: str, absent: str) -> None:
    code = f"import sys; from sessrotate import {name}; print(*sys.modules)"
    loaded = set(listing(code))
    assert "sessrotate" in loaded
    assert loaded & {absent, "typer", "rich"} == set()


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nobody'"):
        getattr(sessrotate, "nobody")  # noqa: B009 - mypy knows that it does not exist
    with pytest.raises(ImportError, match="nobody"):
        exec("from sessrotate import nobody")


def test_names_from_everywhere_come_with_a_star() -> None:
    found: dict[str, object] = {}
    exec("from sessrotate import *", found)
    assert set(sessrotate.__all__) == set(found) - {"__builtins__"}
    assert not any(isinstance(value, ModuleType) for value in found.values())


def test_types_are_there_for_who_uses_the_package() -> None:
    assert resources.files("sessrotate").joinpath("py.typed").is_file()


def test_the_sample_uses_every_public_name_and_no_other() -> None:
    tree = ast.parse(Path(library_sample.__file__).read_bytes())
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sessrotate")
        for alias in node.names
    }
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names == set(sessrotate.__all__)
    assert modules == {"__future__", "typing", "sessrotate", "collections.abc", "pathlib"}


def undocumented(name: str, source: str) -> list[str]:
    """Return the fields of a class that neither it nor a sentence behind them explains."""
    (found,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    told = ast.get_docstring(found) or ""
    behind = [
        isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        for after in (*found.body[1:], None)
    ]
    return [
        each.target.id
        for each, is_told in zip(found.body, behind, strict=True)
        if isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and not (is_told or f"`{each.target.id}`" in told)
    ]


def is_value(named: object) -> bool:
    return isinstance(named, type) and issubclass(named, Struct) and named is not Struct


FIELDS = sorted(
    {value for value in vars(model).values() if is_value(value)}
    | {value for name in sessrotate.__all__ if is_value(value := getattr(sessrotate, name))},
    key=str,
)


@pytest.mark.parametrize("of", FIELDS)
def test_every_field_of_a_public_value_is_explained(of: type) -> None:
    source = Path(str(sys.modules[of.__module__].__file__)).read_text()
    assert undocumented(of.__name__, source) == []
