"""The architecture, held: who may import whom, who may change the disk, what a start may cost."""

from __future__ import annotations

import ast
import builtins
import os
import subprocess
import sys
from dataclasses import fields
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

_every_module = pytest.mark.parametrize("name", MODULES)


def tree_of(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_bytes())


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


@_every_module
def test_a_module_imports_what_its_row_allows(name: str) -> None:
    package = name.split(".", maxsplit=1)[0]
    may = (*PACKAGES.get(package, "").split(), *WORDS, *([] if package in WORDS else [package]))
    for other in ours(imported(tree_of(name), at_run_time=False)):
        if (name, other) == ("__init__", "__init__") or (package == "cli" and other == "__init__"):
            continue
        if package in {"job", "status"} and other == "__init__":  # the version, for what they write
            continue
        assert any(other == each or other.startswith(f"{each}.") for each in may), other


@_every_module
def test_nothing_but_clients_imports_one_of_them(name: str) -> None:
    if not name.startswith("clients"):
        used = {
            other.split(".")[1]
            for other in ours(imported(tree_of(name), at_run_time=False))
            if other.startswith("clients.")
        }
        assert used.isdisjoint(clients.CLIENTS)


def test_modules_import_each_other_in_no_circle_not_even_for_types() -> None:
    arrows = {
        name: ours(imported(tree_of(name), at_run_time=False)) - {name, "__init__"}
        for name in MODULES
    }
    while leaves := {name for name, to in arrows.items() if not to}:
        arrows = {name: to - leaves for name, to in arrows.items() if name not in leaves}
    assert arrows == {}


@pytest.mark.parametrize(
    "package", [name for name, path in MODULES.items() if path.stem == "__init__"]
)
def test_no_module_has_the_name_of_a_builtin_that_its_package_uses(package: str) -> None:
    """Python binds a loaded module's name in its package: there it hides the builtin."""
    tree = tree_of(package)
    notes = [each for node in ast.walk(tree) for each in evaluated_never(node)]
    in_notes = {id(inner) for note in notes for inner in ast.walk(note)}
    used = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and id(node) not in in_notes
    }
    beside = {name_of(path).rpartition(".")[2] for path in MODULES[package].parent.glob("*.py")}
    assert used & beside & set(dir(builtins)) == set()


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


@_every_module
def test_a_pure_module_touches_no_system(name: str) -> None:
    tree = tree_of(name)
    opening = (ast.get_docstring(tree) or "").partition("\n\n")[0]
    if name.split(".", maxsplit=1)[0] in PURE or name in SAYS_PURE or "Pure." in opening:
        touched = {found.split(".")[0] for found in imported(tree, at_run_time=True)}
        assert touched.isdisjoint(SYSTEM)


@pytest.mark.parametrize("name", SAYS_PURE)
def test_what_decides_says_that_it_is_pure(name: str) -> None:
    assert "Pure." in (ast.get_docstring(tree_of(name)) or "").partition("\n\n")[0]


@_every_module
def test_a_module_opens_with_what_it_promises(name: str) -> None:
    said = ast.get_docstring(tree_of(name)) or ""
    assert said
    assert len(MODULES[name].read_text().splitlines()) <= 500


@pytest.mark.parametrize("package", [name for name in PACKAGES if (SOURCE / name).is_dir()])
def test_a_package_opens_with_what_it_promises_and_what_it_imports(package: str) -> None:
    said = " ".join((ast.get_docstring(tree_of(package)) or "").split())
    assert "Promise:" in said
    assert "May import" in said


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


@_every_module
def test_only_platforms_asks_which_system_this_is(name: str) -> None:
    assert bool(asks_for_the_system(tree_of(name))) == (name == "platforms")


def test_the_portable_form_has_nothing_that_only_some_systems_have() -> None:
    unix = {"syncs_folders", "probes"}
    has = {each.name for each in fields(PORTABLE) if getattr(PORTABLE, each.name)}
    assert has == unix


# ── who changes the disk ─────────────────────────────────────────────────────────────────────


@_every_module
def test_only_fs_changes_the_disk(name: str) -> None:
    if name.partition(".")[0] != "fs":
        assert disk_guard.changes(tree_of(name)) - ALLOWED.get(name, set()) == set()


@pytest.mark.parametrize("code", disk_guard.WAYS)
def test_the_guard_sees_every_way_to_change_the_disk(code: str) -> None:
    assert disk_guard.changes(ast.parse(code))


@pytest.mark.parametrize("code", disk_guard.HARMLESS)
def test_the_guard_lets_reading_through(code: str) -> None:
    assert not disk_guard.changes(ast.parse(code))


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
