"""The architecture, held: who may import whom, who may change the disk, what a start may cost."""

from __future__ import annotations

import ast
import builtins
import os
import subprocess
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from sessrotate import clients
from sessrotate.platforms import PORTABLE
from support import disk_guard

SOURCE: Final = Path(__file__).parents[1] / "src" / "sessrotate"

WORDS: Final = ("errors", "model", "names", "platforms", "safe_text", "units")
"""Modules at the top that everybody uses; they import nothing but each other."""

PACKAGES: Final = {
    "fs": "",
    "system": "fs",
    "parsing": "system",
    "clients": "parsing system",
    "segments": "clients parsing system fs",
    "archive": "segments clients parsing system fs",
    "find": "archive segments clients parsing system",
    "in_place": "find archive segments clients parsing system fs",
    "reading": "find archive segments clients parsing system",
    "retention": "in_place find archive segments clients parsing system fs",
    "reports": "retention.sizes in_place.gain in_place.obstacles "
    "in_place.outcome in_place.rotate reading find archive segments clients parsing system",
    "hook": "in_place find archive segments clients parsing system fs",
    "job": "retention in_place find archive segments clients parsing system fs",
    "automation": "hook job clients system",
    "doctor": "automation hook job retention in_place find archive segments clients system",
    "status": "automation hook job reports retention in_place archive segments clients parsing "
    "system fs",
    "render": "automation status job retention reports in_place reading archive segments "
    "clients parsing",
    "export": "render reading clients parsing",
    "cli": "export render status doctor automation job hook reports retention reading in_place "
    "find archive segments clients parsing system fs",
    "__init__": "reports reading find clients parsing",
}
"""What each package may import, besides itself and the words. Every arrow points to a row above.

`in_place.rotate` in a row: that module and no other of its package.
"""

PURE: Final = ("parsing", "render")
"""Packages in which no module touches the system. Elsewhere a module says "Pure." of itself."""

SAYS_PURE: Final = (
    "retention.policy",
    "segments.headers",
    "segments.manifest",
    "parsing.json_typed",
    "segments.manifest",
)
"""Where the rule matters most, so that nobody drops the word to get around it."""

ALLOWED: Final = {
    "platforms": {"renameat2", "renameatx_np"},  # the names of calls; `fs` makes them
    "cli.app": {"formatter.write_text"},  # a line of the help
    "cli.streams": {"open"},  # standard output, by its descriptor
    "reports.in_parallel": {"open"},  # a pipe, by its descriptor
    "segments.compressed": {
        "tempfile",
        "tempfile.gettempdir",
    },  # the folder's name, no more
    "system.locks": {"filelock", "filelock.FileLock", "filelock.Timeout"},  # the lock's own file
}
"""What the guard sees in these modules, and why it is no change of somebody's file."""

SYSTEM: Final = {"os", "time", "pathlib", "shutil", "subprocess", "socket", "tempfile"}


def name_of(path: Path) -> str:
    """Return a module's dotted name within the package; a package has its folder's."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES: Final = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


@cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_bytes())


@cache
def imported(tree: ast.Module, *, at_run_time: bool) -> set[str]:
    """Return what a module imports, functions' own imports included; types' only if asked for."""
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if at_run_time and node in for_types:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def ours(names: set[str]) -> set[str]:
    """Return the modules of sessrotate among names, without their first word."""
    found = set()
    for name in names:
        top, _, inner = name.partition(".")
        if top == "sessrotate":
            while inner and inner not in MODULES:
                inner = inner.rpartition(".")[0]
            found.add(inner or "__init__")
    return found


# ── who imports whom ─────────────────────────────────────────────────────────────────────────


def test_the_table_has_every_package_and_no_other() -> None:
    assert {name.split(".")[0] for name in MODULES} == {*PACKAGES, *WORDS}


def test_every_arrow_of_the_table_points_up_to_a_row_that_is_there() -> None:
    above: set[str] = set()
    for package, may in PACKAGES.items():
        assert {each.split(".")[0] for each in may.split()} <= above, package
        above.add(package)


def may_import(name: str, other: str) -> bool:
    package = name.split(".", maxsplit=1)[0]
    if other == "__init__":  # `job` and `status`: the version, for what they write
        return package in {"__init__", "cli", "job", "status"}
    may = (*PACKAGES.get(package, "").split(), *WORDS, *([] if package in WORDS else [package]))
    return any(other == each or other.startswith(f"{each}.") for each in may)


def test_a_module_imports_what_its_row_allows() -> None:
    arrows = {
        (name, other)
        for name in MODULES
        for other in ours(imported(tree_of(name), at_run_time=False))
    }
    assert {arrow for arrow in arrows if not may_import(*arrow)} == set()


def test_nothing_but_clients_imports_one_of_them() -> None:
    arrows = {
        (name, other)
        for name in MODULES
        if not name.startswith("clients")
        for other in ours(imported(tree_of(name), at_run_time=False))
        if other.startswith("clients.") and other.split(".")[1] in clients.CLIENTS
    }
    assert arrows == set()


def test_modules_import_each_other_in_no_circle_not_even_for_types() -> None:
    arrows = {
        name: ours(imported(tree_of(name), at_run_time=False)) - {name, "__init__"}
        for name in MODULES
    }
    while leaves := {name for name, to in arrows.items() if not to}:
        arrows = {name: to - leaves for name, to in arrows.items() if name not in leaves}
    assert arrows == {}


def test_no_module_has_the_name_of_a_builtin_that_its_package_uses() -> None:
    """Python binds a loaded module's name in its package: there it hides the builtin."""
    for package in (name for name, path in MODULES.items() if path.stem == "__init__"):
        tree = tree_of(package)
        notes = [each for node in ast.walk(tree) for each in evaluated_never(node)]
        in_notes = {id(inner) for note in notes for inner in ast.walk(note)}
        used = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and id(node) not in in_notes
        }
        beside = {name_of(path).rpartition(".")[2] for path in MODULES[package].parent.glob("*.py")}
        assert used & beside & set(dir(builtins)) == set(), package


def evaluated_never(node: ast.AST) -> list[ast.expr]:
    """Return what is no name at run time: annotations are not evaluated."""
    found = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    return [each for each in found if each is not None]


def test_what_is_remembered_is_for_the_status_alone() -> None:
    def names(name: str) -> set[str]:
        nodes = ast.walk(tree_of(name))
        return {getattr(node, "id", "") or getattr(node, "attr", "") for node in nodes}

    assert {name for name in MODULES if "Memory" in names(name)} == {"status"}


# ── what a module is ─────────────────────────────────────────────────────────────────────────


def says_pure(name: str) -> bool:
    return "Pure." in (ast.get_docstring(tree_of(name)) or "").partition("\n\n")[0]


def test_a_pure_module_touches_no_system_and_what_decides_says_that_it_is_pure() -> None:
    assert [name for name in SAYS_PURE if not says_pure(name)] == []
    touched = {
        (name, found)
        for name in MODULES
        if name.split(".", maxsplit=1)[0] in PURE or says_pure(name)
        for found in imported(tree_of(name), at_run_time=True)
        if found.split(".")[0] in SYSTEM
    }
    assert touched == set()


def test_a_module_opens_with_what_it_promises() -> None:
    assert [name for name in MODULES if not ast.get_docstring(tree_of(name))] == []
    lines = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert {name: count for name, count in lines.items() if count > 500} == {}


def test_a_package_opens_with_what_it_promises_and_what_it_imports() -> None:
    for package in (name for name in PACKAGES if (SOURCE / name).is_dir()):
        said = " ".join((ast.get_docstring(tree_of(package)) or "").split())
        assert "Promise:" in said, package
        assert "May import" in said, package


# ── which system this is ─────────────────────────────────────────────────────────────────────


def asks_for_the_system(tree: ast.Module) -> set[str]:
    """Return how a module asks what the system is or can do: by its name, or by what Python has."""
    asked = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name("sys"), attr="platform"):
                asked.add("sys.platform")
            case ast.Attribute(value=ast.Name("os"), attr="name" | "uname"):
                asked.add("os.name")
            case ast.Call(func=ast.Name("hasattr" | "getattr"), args=[ast.Name(module), *_]):
                asked |= {module} & {"os", "fcntl", "signal", "select"}
            case ast.Import(names=[ast.alias("fcntl" | "platform" | "msvcrt")]):
                asked.add("its modules")
    return asked


def test_only_platforms_asks_which_system_this_is() -> None:
    assert [name for name in MODULES if asks_for_the_system(tree_of(name))] == ["platforms"]


def test_the_portable_form_has_nothing_that_only_some_systems_have() -> None:
    unix = {"syncs_folders", "probes"}
    has = {each.name for each in fields(PORTABLE) if getattr(PORTABLE, each.name)}
    assert has == unix


# ── who changes the disk ─────────────────────────────────────────────────────────────────────


def test_only_fs_changes_the_disk() -> None:
    changes = {
        name: disk_guard.changes(tree_of(name)) - ALLOWED.get(name, set())
        for name in MODULES
        if name.partition(".")[0] != "fs"
    }
    assert {name: found for name, found in changes.items() if found} == {}


def test_the_guard_sees_every_way_to_change_the_disk_and_lets_reading_through() -> None:
    assert [code for code in disk_guard.WAYS if not disk_guard.changes(ast.parse(code))] == []
    assert [code for code in disk_guard.HARMLESS if disk_guard.changes(ast.parse(code))] == []


# ── what a start costs ───────────────────────────────────────────────────────────────────────


def test_only_what_runs_without_msgspec_has_dataclasses() -> None:
    """Each is compiled anew at every start, and takes half a millisecond of it."""
    used = {name: imported(tree_of(name), at_run_time=True) for name in MODULES}
    has = {name for name, found in used.items() if "dataclasses.dataclass" in found}
    assert has == {"fs.replacing", "hook.call", "platforms", "units"}


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        (
            "import sessrotate",
            {"typer", "rich", "sessrotate.clients.claude.client", "json", "msgspec"},
        ),
        (
            "import sys; sys.argv[1:] = ['--version']; import sessrotate.cli as c; c.main()",
            {"typer", "rich", "sessrotate.clients.claude.client", "msgspec"},
        ),
        (
            "import sys; sys.argv[1:] = ['list', '-h']; import sessrotate.cli as c; c.main()",
            {"typer", "rich", "sessrotate.cli.list", "msgspec"},
        ),
        (
            "import sys; sys.argv[1:] = ['hook']; import sessrotate.cli as c; c.main()",
            {
                "typer",
                "rich",
                "sessrotate.clients.claude.client",
                "sessrotate.in_place.operations",
                "filelock",
                "msgspec",
            },
        ),
        (
            "import sys; sys.argv[1:] = []; import sessrotate.cli as c; c.main()",
            {"rich", "sessrotate.doctor", "sessrotate.cli.list", "sessrotate.reading.search"},
        ),
        ("import sessrotate.cli.split, sessrotate.cli.stitch", {"rich", "ctypes"}),
        ("import sessrotate.cli.setup, sessrotate.cli.status", {"tomlkit"}),
        (
            "import sessrotate.segments.load, sessrotate.segments.split, sessrotate.reading.pieces",
            {"typer", "rich"},
        ),
    ],
)
def test_nothing_is_loaded_before_it_is_needed(tmp_path: Path, code: str, absent: set[str]) -> None:
    # Every name must be one that there is: a module that was renamed is never loaded either.
    for name in absent:
        if name.startswith("sessrotate."):
            assert name.removeprefix("sessrotate.") in MODULES
    # At the end, however that is come to: a command leaves by SystemExit.
    listing = f"import atexit, sys; atexit.register(lambda: print('|', *sys.modules))\n{code}"
    command = [sys.executable, "-c", listing]
    nothing = subprocess.DEVNULL
    env = os.environ | {"HOME": str(tmp_path)}
    said = subprocess.run(command, stdin=nothing, capture_output=True, check=True, env=env)
    loaded = set(said.stdout.decode().partition("|")[2].split())
    assert "sessrotate" in loaded
    assert loaded & absent == set()
